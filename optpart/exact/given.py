"""What a schedule gives to a solve: its placement, its order, or both ([H] §3)."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, pairwise

from optpart.goal import Goal, Task, occupied
from optpart.instance import Instance
from optpart.schedule import Schedule


def placement_of(instance: Instance, schedule: Schedule) -> dict[int, int]:
    """Return where every vertex is, as :class:`~optpart.goal.Goal` takes it."""
    return dict(enumerate(schedule.placement.tolist()))


def order_of(
    instance: Instance, schedule: Schedule, *, placed: bool
) -> tuple[tuple[Task, Task], ...]:
    """Return the order of tasks on every device, link and port.

    Parameters
    ----------
    placed : bool
        Whether the placement is given as well. Neighbours then say all; otherwise every pair of
        vertices is ordered, for wherever they may meet. Transfers are ordered only if they are
        certain to be there, that is if the placement is given.
    """
    rank = {v: i for i, v in enumerate(instance.graph.topological_order.tolist())}

    def key(task: Task, start: Fraction, end: Fraction) -> tuple[Fraction, Fraction, int]:
        """Of tasks without length that share a moment, those that others wait for come first."""
        vertex = task if isinstance(task, int) else int(instance.graph.tensor_vertex[task[0]])
        return start, end, rank[vertex]

    tasks = sorted(
        ((key(task, use.start, use.end), task, use.what)
         for task, use in occupied(instance, schedule)),
        key=lambda entry: entry[0],
    )  # fmt: skip
    if not placed:
        return tuple(combinations((task for _, task, _ in tasks if isinstance(task, int)), 2))
    resources: dict[tuple[str, int, int], list[Task]] = {}
    for _, task, what in tasks:
        for resource in what:
            resources.setdefault(resource, []).append(task)
    return tuple(pair for listed in resources.values() for pair in pairwise(listed))


def given_by(instance: Instance, schedule: Schedule, what: str) -> Goal:
    """Return the goal that keeps the ``placement``, the ``order`` or ``both`` of a schedule."""
    placed, ordered = what in ("placement", "both"), what in ("order", "both")
    return Goal(
        placement=placement_of(instance, schedule) if placed else {},
        order=order_of(instance, schedule, placed=placed) if ordered else (),
    )
