"""The process that solves paths of runs with CP-SAT."""

from __future__ import annotations

import numpy as np
from ortools.sat.python import cp_model

from optpart.exact import cp_sat
from optpart.exact.messages import Incumbent, Limits, Send, serve
from optpart.exact.series.repeats import Path, Run

#: Node of a circuit from which a run starts and to which its end leads.
_OUTSIDE = 0


def main() -> None:
    """Serve jobs until standard input ends."""
    serve(_solve)


def _solve(path: Path, limits: Limits, send: Send) -> None:
    cp_sat.solve(lambda: PathModel(path), limits, send)


class _RunModel:
    """A path of one run through distinct devices, and the number of vertices on each.

    Attributes
    ----------
    first, last : dict from device to literal
        Whether the run begins, or ends, on the device.
    amount : dict from device to expression
        Vertices on the device.
    """

    def __init__(self, model: cp_model.CpModel, run: Run) -> None:
        self.run = run
        self.devices = list(run.time)
        literal = model.new_bool_var
        self.first = {d: literal("") for d in self.devices}
        self.steps: dict[tuple[int, int], cp_model.IntVar] = {}
        #: Steps back to the first device, for the last vertex alone.
        self.back: dict[tuple[int, int], cp_model.IntVar] = {}
        self.cost: list[cp_model.LinearExprT] = []
        if run.length == 1:
            model.add_exactly_one(self.first.values())
            self.last: dict[int, cp_model.LinearExprT] = dict(self.first)
            self.amount: dict[int, cp_model.LinearExprT] = dict(self.first)
        else:
            self._several(model)
        self.cost += [run.time[d] * self.amount[d] for d in self.devices]

    def _several(self, model: cp_model.CpModel) -> None:
        run, literal = self.run, model.new_bool_var
        node = {d: 1 + i for i, d in enumerate(self.devices)}
        again = {d: 1 + len(self.devices) + i for i, d in enumerate(self.devices)}
        visited = {d: literal("") for d in self.devices}
        ends = {d: literal("") for d in self.devices}
        returns = {d: literal("") for d in self.devices}
        self.stay = {d: model.new_int_var(0, run.length, "") for d in self.devices}
        self.steps = {pair: literal("") for pair in run.inside}
        self.back = {pair: literal("") for pair in run.inside}
        arcs: list[tuple[int, int, cp_model.LiteralT]] = []
        for d in self.devices:
            arcs += [
                (_OUTSIDE, node[d], self.first[d]),
                (node[d], _OUTSIDE, ends[d]),
                (node[d], node[d], ~visited[d]),
                (again[d], _OUTSIDE, returns[d]),
                (again[d], again[d], ~returns[d]),
            ]
            model.add_implication(returns[d], self.first[d])
            model.add(self.stay[d] >= visited[d])
            model.add(self.stay[d] <= run.length * visited[d])
        arcs += [(node[d], node[e], step) for (d, e), step in self.steps.items()]
        arcs += [(node[d], again[e], step) for (d, e), step in self.back.items()]
        model.add_circuit(arcs)
        self.last = {d: ends[d] + returns[d] for d in self.devices}
        self.amount = {d: self.stay[d] + returns[d] for d in self.devices}
        model.add(cp_model.LinearExpr.sum(list(self.amount.values())) == run.length)
        self.cost += [run.inside[pair] * step for pair, step in self.steps.items()]
        self.cost += [run.inside[pair] * step for pair, step in self.back.items()]

    def found(self, value: cp_sat.Value) -> list[int]:
        """Return the device of every vertex of the run."""
        device = next(d for d in self.devices if value(self.first[d]))
        if self.run.length == 1:
            return [device]
        placed: list[int] = []
        following = {d: e for (d, e), step in self.steps.items() if value(step)}
        coming_back = {d: e for (d, e), step in self.back.items() if value(step)}
        while True:
            placed += [device] * value(self.stay[device])
            if device in coming_back:
                return [*placed, coming_back[device]]
            if device not in following:
                return placed
            device = following[device]


class PathModel:
    """All runs, the transfers between them, and the memory that they share."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.model = cp_model.CpModel()
        self.runs = [_RunModel(self.model, run) for run in path.runs]
        cost = [term for run in self.runs for term in run.cost]
        for one, other in zip(self.runs, self.runs[1:], strict=False):
            cost += self._between(one, other)
        self._memory()
        for r, s in path.same:
            for d in self.runs[r].first.keys() | self.runs[s].first.keys():
                self.model.add(self.runs[r].first.get(d, 0) == self.runs[s].first.get(d, 0))
        for r, s in path.apart:
            for d in self.runs[r].first.keys() & self.runs[s].first.keys():
                self.model.add_at_most_one(self.runs[r].first[d], self.runs[s].first[d])
        self.model.minimize(cp_model.LinearExpr.sum(cost))

    def _between(self, one: _RunModel, other: _RunModel) -> list[cp_model.LinearExprT]:
        """Let the tensor between two runs cross, and return what it costs."""
        after = one.run.after
        crossing = {
            (d, e): self.model.new_bool_var("")
            for d in one.devices
            for e in other.devices
            if d == e or (d, e) in after
        }
        for d in one.devices:
            out = [x for (sender, _), x in crossing.items() if sender == d]
            self.model.add(cp_model.LinearExpr.sum(out) == one.last[d])
        for e in other.devices:
            into = [x for (_, receiver), x in crossing.items() if receiver == e]
            self.model.add(cp_model.LinearExpr.sum(into) == other.first[e])
        return [after[pair] * x for pair, x in crossing.items() if pair in after]

    def _memory(self) -> None:
        for d, room in self.path.capacity.items():
            held = [run.run.need * run.amount[d] for run in self.runs if d in run.amount]
            if held:
                self.model.add(cp_model.LinearExpr.sum(held) <= room)

    def found(self, value: cp_sat.Value) -> Incumbent:
        """Return the device of every vertex, in the order of the path."""
        return Incumbent(np.array([d for run in self.runs for d in run.found(value)], np.int32))
