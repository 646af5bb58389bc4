"""The process that packs devices: one CP-SAT model after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
from ortools.sat.python import cp_model

from optpart.exact import cp_sat
from optpart.exact.messages import Incumbent, Limits, Send, serve
from optpart.exact.packing import Packing

#: A placement is good enough if its work is at most this share above the least.
_GAP = 0.05


def main() -> None:
    """Serve jobs until standard input ends."""
    serve(_solve)


def _solve(packing: Packing, limits: Limits, send: Send) -> None:
    def tune(parameters: Any) -> None:
        parameters.relative_gap_limit = _GAP

    cp_sat.solve(lambda: PackingModel(packing), limits, send, tune, steps=False)


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

    def found(self, value: cp_sat.Value) -> Incumbent:
        """Return the device of every unit."""
        device = [next(d for d, x in on.items() if value(x)) for on in self.on]
        return Incumbent(np.array(device, np.int32))
