"""A given order in the CP-SAT model ([H] §3)."""

from __future__ import annotations

from typing import NamedTuple

from ortools.sat.python import cp_model

from optpart.exact.communication import Crossings
from optpart.exact.core import Core, Expression
from optpart.solution.goal import Task


class _Use(NamedTuple):
    """The use of a resource by a task: name and devices, literal, start and end."""

    resource: tuple[str, int, int]
    literal: cp_model.IntVar
    start: Expression
    end: Expression


def add_order(core: Core, crossings: Crossings | None) -> None:
    """Add the order: in each pair, the first ends before the second starts on a shared resource."""
    for first, second in core.task.order:
        for one in _uses(core, crossings, first):
            for other in _uses(core, crossings, second):
                if one.resource == other.resource:
                    core.no_later(one.end, other.start, one.literal, other.literal)


def _uses(core: Core, crossings: Crossings | None, task: Task) -> list[_Use]:
    if isinstance(task, int):
        return [
            _Use(("device", d, d), literal, core.start[task], core.end[task])
            for d, literal in core.literals(task)
        ]
    if crossings is None or task not in crossings.begin:
        return []
    begin, target = crossings.begin[task], task[1]
    uses: list[_Use] = []
    for e, sent in crossings.sent[task]:
        model, length = core.instance.model, crossings.length(task[0], e, target)
        end = begin + (int(core.task.grid.send[e]) if model.sends else length)
        uses += [_Use(resource, sent, begin, end) for resource in model.occupied(e, target)]
    return uses
