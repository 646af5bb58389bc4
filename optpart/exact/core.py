"""The variables that all constraint groups of the CP-SAT model share: placement and times."""

from __future__ import annotations

import numpy as np
from ortools.sat.python import cp_model

from optpart.exact.task import Task

#: A time in the model.
Expression = cp_model.LinearExpr | int


class Core:
    """Placement literals, start times shared by all devices, and the hints of both.

    A unit that may be on only one device has the constant 1 as its literal.

    Parameters
    ----------
    placed : Core, optional
        One whose model and placement to share: the same units on the same devices, at other times.

    Attributes
    ----------
    model : CpModel
    on : dict from (unit, device) to literal
    makespan : IntVar
    start : list of IntVar, one per vertex
    end : list of linear expressions, one per vertex
        This, ``makespan`` and ``start`` exist only after :meth:`add_times`.
    """

    on: dict[tuple[int, int], cp_model.IntVar]
    makespan: cp_model.IntVar

    def __init__(self, task: Task, placed: Core | None = None) -> None:
        self.task = task
        self.instance = task.instance
        self.duration = task.grid.duration
        self.hints: list[tuple[cp_model.IntVar, int]] = []
        self.devices = [np.flatnonzero(row).tolist() for row in task.possible]
        if placed is None:
            self.model = cp_model.CpModel()
            self.one = self.model.new_constant(1)
            self._placement()
        else:
            self.model, self.one, self.on = placed.model, placed.one, placed.on

    def add_times(self) -> None:
        """Add the makespan, and starts within the windows."""
        task = self.task
        self.makespan = self.integer(task.lower, task.upper, "makespan", task.upper)
        self._starts()

    def add_hints(self) -> None:
        """Hint every variable, if a schedule is known."""
        if self.task.known is not None:
            for variable, value in self.hints:
                self.model.add_hint(variable, value)

    def integer(self, low: int, high: int, name: str, value: int) -> cp_model.IntVar:
        """Make a variable, hinted with its value in the initial schedule.

        Every variable is hinted, or none: incomplete hints cost more than they help.
        """
        variable = self.model.new_int_var(low, high, name)
        self.hints.append((variable, value))
        return variable

    def literal(self, name: str, value: bool) -> cp_model.IntVar:
        """Make a literal, hinted with its value in the initial schedule."""
        variable = self.model.new_bool_var(name)
        self.hints.append((variable, int(value)))
        return variable

    def device_known(self, v: int) -> int:
        """Device of a vertex in the initial schedule; −1 without one."""
        return -1 if self.task.known is None else int(self.task.known.placement[v])

    def start_known(self, v: int) -> int:
        """Start of a vertex in the initial schedule; 0 without one."""
        return 0 if self.task.known is None else int(self.task.known.start[v])

    def end_known(self, v: int) -> int:
        """End of a vertex in the initial schedule; 0 without one."""
        if self.task.known is None:
            return 0
        return self.start_known(v) + int(self.duration[v, self.device_known(v)])

    def literals(self, v: int) -> list[tuple[int, cp_model.IntVar]]:
        """Return the devices that a vertex may be on, each with its literal."""
        u = int(self.instance.unit_of[v])
        return [(d, self.on[u, d]) for d in self.devices[u]]

    def interval(
        self, start: Expression, size: int, literal: cp_model.IntVar
    ) -> cp_model.IntervalVar:
        """Make an optional interval, or a plain one if its literal always holds."""
        if literal is self.one:
            return self.model.new_fixed_size_interval_var(start, size, "")
        return self.model.new_optional_fixed_size_interval_var(start, size, literal, "")

    def no_later(self, one: Expression, other: Expression, *literals: cp_model.LiteralT) -> None:
        """Require one time to be no later than another if all literals hold."""
        conditions = [literal for literal in literals if literal is not self.one]
        added = self.model.add(one <= other)
        if conditions:
            added.only_enforce_if(conditions)

    def _placement(self) -> None:
        """Every unit is on one device."""
        self.on = {}
        for u, devices in enumerate(self.devices):
            if len(devices) == 1:
                self.on[u, devices[0]] = self.one
                continue
            member = int(self.instance.units[u][0])
            for d in devices:
                self.on[u, d] = self.literal(f"on[{u},{d}]", self.device_known(member) == d)
            self.model.add_exactly_one(self.on[u, d] for d in devices)

    def _starts(self) -> None:
        """Starts within the windows, and ends and tails as linear terms of the placement."""
        head, tail, duration = self.task.head, self.task.tail, self.duration
        self.start: list[cp_model.IntVar] = []
        self.end: list[Expression] = []
        for v in range(self.instance.vertices):
            literals = self.literals(v)
            first = min(int(head[v, d]) for d, _ in literals)
            rest = min(int(duration[v, d] + tail[v, d]) for d, _ in literals)
            start = self.integer(first, self.task.upper - rest, f"start[{v}]", self.start_known(v))
            self.start.append(start)
            if len(literals) == 1:
                d = literals[0][0]
                self.end.append(start + int(duration[v, d]))
                if self.task.asked == "makespan":
                    self.model.add(start + rest <= self.makespan)
                continue
            self.end.append(start + sum(int(duration[v, d]) * x for d, x in literals))
            self.model.add(start >= sum(int(head[v, d]) * x for d, x in literals))
            follows = sum(int(duration[v, d] + tail[v, d]) * x for d, x in literals)
            self.model.add(start + follows <= self.makespan)
