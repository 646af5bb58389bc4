"""The process that packs devices: one CP-SAT model after the other."""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray
from ortools.sat.python import cp_model

from optpart.exact.messages import Done, Incumbent, Limits
from optpart.exact.packing import Packing
from optpart.exact.serving import Send, serve

#: A placement is good enough if its work is at most this share above the least.
_GAP = 0.05


def main() -> None:
    """Serve jobs until standard input ends."""
    serve(_solve)


def _solve(packing: Packing, limits: Limits, send: Send) -> None:
    begin = time.perf_counter()
    built = PackingModel(packing)
    solver = cp_model.CpSolver()
    parameters = solver.parameters
    parameters.num_workers = limits.workers
    parameters.random_seed = limits.seed
    parameters.relative_gap_limit = _GAP
    parameters.max_time_in_seconds = max(0.01, limits.seconds - (time.perf_counter() - begin))
    if limits.deterministic is not None:
        parameters.max_deterministic_time = limits.deterministic
    status = solver.solve(built.model)
    seconds = time.perf_counter() - begin
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        send(Incumbent(seconds, built.found(solver), None, {}))
    send(Done(time.perf_counter() - begin, solver.status_name(status), None))


class PackingModel:
    """One literal per unit and device that it may use."""

    def __init__(self, packing: Packing) -> None:
        self.packing = packing
        self.model = cp_model.CpModel()
        self.on = [{d: self.model.new_bool_var("") for d in cost} for cost in packing.cost]
        for on in self.on:
            self.model.add_exactly_one(on.values())
        self._memory()
        self._apart()
        self._links()
        self._work()

    def _memory(self) -> None:
        need = self.packing.need
        for d, room in self.packing.room.items():
            there = [unit for unit, on in enumerate(self.on) if d in on and need[unit]]
            if sum(need[unit] for unit in there) > room:
                literals = [self.on[unit][d] for unit in there]
                needs = [need[unit] for unit in there]
                self.model.add(cp_model.LinearExpr.weighted_sum(literals, needs) <= room)

    def _apart(self) -> None:
        for one, other in self.packing.apart:
            for d in self.on[one].keys() & self.on[other].keys():
                self.model.add_at_most_one(self.on[one][d], self.on[other][d])

    def _links(self) -> None:
        for (one, other), pairs in self.packing.blocked.items():
            for d, e in pairs:
                if d in self.on[one] and e in self.on[other]:
                    self.model.add_bool_or(~self.on[one][d], ~self.on[other][e])

    def _work(self) -> None:
        literals = [literal for on in self.on for literal in on.values()]
        costs = [time for cost in self.packing.cost for time in cost.values()]
        self.model.minimize(cp_model.LinearExpr.weighted_sum(literals, costs))

    def found(self, solver: cp_model.CpSolver) -> NDArray[np.int32]:
        """Return the device of every unit."""
        return np.array(
            [next(d for d, x in on.items() if solver.boolean_value(x)) for on in self.on],
            dtype=np.int32,
        )
