"""The process that solves parts: one CP-SAT model after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
from ortools.sat.python import cp_model

from optpart.exact import cp_sat
from optpart.exact.messages import Incumbent, Limits, Send, serve
from optpart.search.part import NOWHERE, Part


def main() -> None:
    """Serve parts until standard input ends."""
    serve(_solve)


def _solve(part: Part, limits: Limits, send: Send) -> None:
    def tune(parameters: Any) -> None:
        parameters.num_workers = 1
        parameters.linearization_level = 0

    cp_sat.solve(lambda: PartModel(part), limits, send, tune, steps=False)


class PartModel:
    """Start times and, of freed units, one literal per device; every variable is hinted."""

    def __init__(self, part: Part) -> None:
        self.part = part
        self.model = cp_model.CpModel()
        self._placement()
        self._times()
        self._arrivals()
        self._one_at_a_time()
        self.model.minimize(self.longest)

    def _placement(self) -> None:
        part, model = self.part, self.model
        members: dict[int, list[int]] = {}
        for i, unit in enumerate(part.unit):
            if unit >= 0:
                members.setdefault(unit, []).append(i)
        self.on: list[dict[int, cp_model.IntVar]] = []
        for unit, inside in sorted(members.items()):
            where = part.stays[inside[0]]
            literals = {d: model.new_bool_var(f"x{unit},{d}") for d in where}
            model.add_exactly_one(literals.values())
            for d, literal in literals.items():
                model.add_hint(literal, d == part.device[inside[0]])
                if any(part.stays[i][d] == NOWHERE for i in inside):
                    model.add(literal == 0)
            self.on.append(literals)
        for d, room in part.room.items():
            there = [(u, self.on[u][d]) for u in range(len(self.on)) if d in self.on[u]]
            if sum(part.need[u] for u, _ in there) > room:
                model.add(sum(part.need[u] * literal for u, literal in there) <= room)
        for one, other in part.apart:
            for d in self.on[one].keys() & self.on[other].keys():
                model.add_at_most_one(self.on[one][d], self.on[other][d])

    def _sum(self, i: int, values: dict[int, int]) -> cp_model.LinearExpr:
        """Return the value of a per-device table at the device of a vertex."""
        unit = self.part.unit[i]
        if unit < 0:
            return cp_model.LinearExpr.sum([values[self.part.device[i]]])
        literals = self.on[unit]
        return cp_model.LinearExpr.weighted_sum(
            list(literals.values()), [values[d] for d in literals]
        )

    def _times(self) -> None:
        part, model = self.part, self.model
        self.longest = model.new_int_var(0, part.upper, "longest")
        model.add_hint(self.longest, part.upper)
        self.start: list[cp_model.IntVar] = []
        self.end: list[cp_model.LinearExpr] = []
        for i, stays in enumerate(part.stays):
            start = model.new_int_var(min(stay.head for stay in stays.values()), part.upper, "")
            model.add_hint(start, part.start[i])
            end = start + self._sum(i, {d: stay.run for d, stay in stays.items()})
            self.start.append(start)
            self.end.append(end)
            if len(stays) > 1:
                model.add(start >= self._sum(i, {d: stay.head for d, stay in stays.items()}))
            tail = self._sum(i, {d: stay.run + stay.tail for d, stay in stays.items()})
            model.add(start + tail <= self.longest)

    def _arrivals(self) -> None:
        part, model = self.part, self.model
        for i, j in part.chains:
            model.add(self.start[j] >= self.end[i])
        for i, j, delay in part.edges:
            start, end = self.start[j], self.end[i]
            if part.unit[j] < 0:
                there = part.device[j]
                crossing = self._sum(i, {d: delay[d, there] for d in part.stays[i]})
                model.add(start >= end + crossing)
            elif part.unit[i] < 0:
                home = part.device[i]
                crossing = self._sum(j, {d: delay[home, d] for d in part.stays[j]})
                model.add(start >= end + crossing)
            elif part.unit[i] == part.unit[j]:
                model.add(start >= end)
            else:
                for there, literal in self.on[part.unit[j]].items():
                    crossing = self._sum(i, {d: delay[d, there] for d in part.stays[i]})
                    model.add(start >= end + crossing).only_enforce_if(literal)
            self._missing(i, j, delay)

    def _missing(self, i: int, j: int, delay: dict[tuple[int, int], int]) -> None:
        """Exclude pairs of devices between which a tensor cannot cross."""
        for (d, there), crossing in delay.items():
            if crossing < 0:
                literals = [
                    self.on[unit][e].negated()
                    for unit, e in ((self.part.unit[i], d), (self.part.unit[j], there))
                    if unit >= 0
                ]
                self.model.add_bool_or(literals)

    def _one_at_a_time(self) -> None:
        part, model = self.part, self.model
        intervals: dict[int, list[cp_model.IntervalVar]] = {}
        freed = {d for stays, unit in zip(part.stays, part.unit, strict=True) if unit >= 0
                 for d in stays}  # fmt: skip
        for i, stays in enumerate(part.stays):
            for d, stay in stays.items():
                # On devices without freed vertices, the chains alone keep the order.
                if d not in freed or stay == NOWHERE:
                    continue
                if part.unit[i] < 0:
                    made = model.new_fixed_size_interval_var(self.start[i], stay.run, "")
                else:
                    literal = self.on[part.unit[i]][d]
                    made = model.new_optional_fixed_size_interval_var(
                        self.start[i], stay.run, literal, ""
                    )
                intervals.setdefault(d, []).append(made)
        for listed in intervals.values():
            model.add_no_overlap(listed)

    def found(self, value: cp_sat.Value) -> Incumbent:
        """Return device and start of every vertex of the part."""
        device = [
            next(d for d, literal in self.on[unit].items() if value(literal))
            if unit >= 0
            else self.part.device[i]
            for i, unit in enumerate(self.part.unit)
        ]
        start = [value(start) for start in self.start]
        return Incumbent(np.array(device, np.int32), np.array(start, np.int64))
