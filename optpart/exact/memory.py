"""Memory that changes with time in the CP-SAT model: active edges and copies of tensors.

On an exact grid these constraints are those of design §2. On a rounded grid they are a relaxation:
an amount held over real times ``[a, b)`` in a true schedule is counted here over at most the whole
ticks ``[⌈a⌉, ⌊b⌋)``, at each of which it is truly held. A sum of up to three times, each rounded
down, is less than three ticks below the true sum, so an amount may begin :data:`_SLACK` ticks later
than these sums say, or so late that nothing is held at all.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from ortools.sat.python import cp_model

from optpart.exact.communication import Crossings
from optpart.exact.core import Core, Expression

_SLACK = 3


def add_dynamic_memory(core: Core, crossings: Crossings | None) -> None:
    """Limit memory under ``edges`` or ``refcount`` on every device with a capacity."""
    if core.instance.model.timed_memory and (core.task.capacity >= 0).any():
        _Memory(core, crossings).add()


class _Memory:
    def __init__(self, core: Core, crossings: Crossings | None) -> None:
        self.core = core
        self.crossings = crossings
        self.model = core.model
        self.slack = 0 if core.task.grid.exact else _SLACK
        self.limited = set(np.flatnonzero(core.task.capacity >= 0).tolist())
        self.held: dict[int, list[tuple[cp_model.IntervalVar, int]]] = defaultdict(list)

    def add(self) -> None:
        if self.core.instance.model.memory == "edges":
            self._active_edges()
        else:
            self._copies()
        for d, held in sorted(self.held.items()):
            self.model.add_cumulative(
                [interval for interval, _ in held], [amount for _, amount in held], self._room(d)
            )

    def _room(self, d: int) -> Expression:
        """Return the capacity of a device less the static memory of its units."""
        core, capacity = self.core, int(self.core.task.capacity[d])
        if core.instance.model.memory == "edges":
            return capacity
        need = [(int(core.task.need[u]), x) for (u, e), x in core.on.items() if e == d]
        if not any(amount for amount, _ in need):
            return capacity
        taken = sum(
            int(core.task.need[u])
            for u, members in enumerate(core.instance.units)
            if core.device_known(int(members[0])) == d
        )
        room = core.integer(0, capacity, f"room[{d}]", max(0, capacity - taken))
        self.model.add(room == capacity - sum(amount * x for amount, x in need))
        return room

    # --- edges -----------------------------------------------------------------------------

    def _active_edges(self) -> None:
        """An in-edge is active from its arrival until its target starts ([M] eq. 2)."""
        for i, (u, v, tensor) in enumerate(self.core.instance.graph.edges()):
            amount = int(self.core.task.size[tensor])
            where = [(d, x) for d, x in self.core.literals(v) if d in self.limited]
            if amount and where:
                self._active(i, u, v, tensor, amount, where)

    def _active(
        self, i: int, u: int, v: int, tensor: int, amount: int,
        where: list[tuple[int, cp_model.IntVar]],
    ) -> None:  # fmt: skip
        core = self.core
        since, size = self._span(
            f"edge[{i}]", self._arrival_known(u, v, tensor), core.start[v], core.start_known(v)
        )
        for d, there in where:
            self._active_since(since, u, v, tensor, d, there)
            self._hold(d, since, size, core.start[v], there, amount)

    def _arrival_known(self, u: int, v: int, tensor: int) -> int:
        core, d = self.core, self.core.device_known(v)
        e = core.device_known(u)
        if e == d:
            return core.end_known(u)
        if self.crossings is not None and self.crossings.begin:
            return self.crossings.arrival_known(tensor, d)
        return core.end_known(u) + core.task.grid.delay(tensor, e, d)

    def _active_since(
        self, since: cp_model.IntVar, u: int, v: int, tensor: int, d: int, there: cp_model.IntVar
    ) -> None:
        """Require the interval of an edge to begin no later than its arrival, up to the slack."""
        core, unit = self.core, self.core.instance.unit_of
        if unit[u] == unit[v]:
            core.no_later(since, core.end[u] + self.slack)
            return
        if not core.instance.model.queues:
            delay = sum(
                max(0, core.task.grid.delay(tensor, e, d)) * here for e, here in core.literals(u)
            )
            core.no_later(since, core.end[u] + delay + self.slack, there)
            return
        here = core.on.get((int(unit[u]), d))
        if here is not None:
            core.no_later(since, core.end[u] + self.slack, there, here)
        crossings = self.crossings
        assert crossings is not None
        if (tensor, d) in crossings.begin:
            crosses = crossings.happens[tensor, d]
            core.no_later(since, crossings.arrival(tensor, d) + self.slack, there, crosses)

    # --- refcount --------------------------------------------------------------------------

    def _copies(self) -> None:
        """Every copy of a tensor is held until its last use there ([L] §3.1.6, [G] §5)."""
        consumers: dict[int, list[int]] = defaultdict(list)
        for _, v, tensor in self.core.instance.graph.edges():
            consumers[tensor].append(v)
        for tensor, amount in enumerate(self.core.task.size.tolist()):
            if amount:
                self._at_home(tensor, amount, consumers[tensor])
                self._away(tensor, amount, consumers[tensor])

    def _freed(self, v: int) -> Expression:
        at_start = self.core.instance.model.release == "start"
        return self.core.start[v] if at_start else self.core.end[v]

    def _freed_known(self, v: int) -> int:
        at_start = self.core.instance.model.release == "start"
        return self.core.start_known(v) if at_start else self.core.end_known(v)

    def _at_home(self, tensor: int, amount: int, consumers: list[int]) -> None:
        core, crossings = self.core, self.crossings
        assert crossings is not None
        u, unit = crossings.producer[tensor], core.instance.unit_of
        where = [(d, x) for d, x in core.literals(u) if d in self.limited]
        if not where:
            return
        targets = crossings.targets[tensor]
        home = core.device_known(u)
        last = max(
            core.end_known(u),
            *(self._freed_known(v) for v in consumers if core.device_known(v) == home),
            *(
                crossings.arrival_known(tensor, d)
                for d in targets
                if d != home and any(core.device_known(v) == d for v in consumers)
            ),
            0,
        )
        until = core.integer(0, core.task.upper, f"home[{tensor}]", last)
        since, size = self._begin(
            f"home[{tensor}]", core.start[u], core.start_known(u), until, last
        )
        core.no_later(core.end[u], until)
        for v in consumers:
            if unit[v] == unit[u]:
                core.no_later(self._freed(v), until)
                continue
            for d, here in where:
                there = core.on.get((int(unit[v]), d))
                if there is not None:
                    core.no_later(self._freed(v), until, here, there)
        for d in targets:
            core.no_later(crossings.arrival(tensor, d), until, crossings.happens[tensor, d])
        for d, here in where:
            self._hold(d, since, size, until, here, amount)

    def _away(self, tensor: int, amount: int, consumers: list[int]) -> None:
        core, crossings = self.core, self.crossings
        assert crossings is not None
        u, unit = crossings.producer[tensor], core.instance.unit_of
        for d in sorted(self.limited):
            if (tensor, d) not in crossings.happens:
                continue
            start: Expression = crossings.begin.get((tensor, d), core.end[u])
            begun = crossings.begin_known(tensor, d)
            there = [v for v in consumers if core.device_known(v) == d]
            last = max([begun, *(self._freed_known(v) for v in there)])
            until = core.integer(0, core.task.upper, f"copy[{tensor},{d}]", last)
            since, size = self._begin(f"copy[{tensor},{d}]", start, begun, until, last)
            for v in consumers:
                literal = core.on.get((int(unit[v]), d))
                if literal is not None and unit[v] != unit[u]:
                    core.no_later(self._freed(v), until, literal)
            self._hold(d, since, size, until, crossings.happens[tensor, d], amount)

    # --- intervals -------------------------------------------------------------------------

    def _begin(
        self, name: str, start: Expression, start_known: int,
        until: cp_model.IntVar, until_known: int,
    ) -> tuple[cp_model.IntVar, cp_model.IntVar]:  # fmt: skip
        """Make the span of an amount held from ``start``, or later by the slack, to ``until``."""
        if isinstance(start, cp_model.IntVar) and not self.slack:
            size = self.core.integer(
                0, self.core.task.upper, f"{name}.size", until_known - start_known
            )
            self.model.add(start + size == until)
            return start, size
        known = min(start_known + self.slack, until_known)
        since, size = self._span(name, known, until, until_known)
        self.core.no_later(since, start + self.slack)
        return since, size

    def _span(
        self, name: str, since_known: int, until: cp_model.IntVar, until_known: int
    ) -> tuple[cp_model.IntVar, cp_model.IntVar]:
        """Make the beginning and length of a span that ends at ``until``."""
        core = self.core
        known = min(since_known, until_known)
        since = core.integer(0, core.task.upper, f"{name}.since", known)
        size = core.integer(0, core.task.upper, f"{name}.size", until_known - known)
        self.model.add(since + size == until)
        return since, size

    def _hold(
        self, d: int, since: cp_model.IntVar, size: cp_model.IntVar, until: cp_model.IntVar,
        literal: cp_model.IntVar, amount: int,
    ) -> None:  # fmt: skip
        """Hold an amount on a device over a span, if a literal holds."""
        interval = self.model.new_optional_interval_var(since, size, until, literal, "")
        self.held[d].append((interval, amount))
