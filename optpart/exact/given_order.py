"""Fix the placement of a schedule, its order, or both for a solve ([H] §3)."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations

from optpart.base.errors import ContradictionError
from optpart.problem.instance import Instance
from optpart.solution.goal import Goal, Occupied, Task, occupied
from optpart.solution.schedule import Schedule


def placement_of(instance: Instance, schedule: Schedule) -> dict[int, int]:
    """Return the device of every vertex, for :class:`~optpart.solution.goal.Goal`."""
    return dict(enumerate(schedule.placement.tolist()))


def order_of(
    instance: Instance, schedule: Schedule, *, placed: bool
) -> tuple[tuple[Task, Task], ...]:
    """Return the order of tasks on every device, link and port.

    Parameters
    ----------
    placed : bool
        Whether the placement is given as well. If so, pairs implied by others are left out;
        otherwise every pair of vertices is ordered, wherever they may meet. Transfers are ordered
        only if they are certain to exist, that is, if the placement is given.
    """
    rank = {v: i for i, v in enumerate(instance.graph.topological_order.tolist())}

    def key(entry: tuple[Task, Occupied]) -> tuple[Fraction, Fraction, int]:
        """Sort simultaneous tasks without length so that producers come before consumers."""
        task, use = entry
        vertex = task if isinstance(task, int) else int(instance.graph.tensor_vertex[task[0]])
        return use.start, use.end, rank[vertex]

    tasks = sorted(occupied(instance, schedule), key=key)
    if not placed:
        return tuple(combinations((task for task, _ in tasks if isinstance(task, int)), 2))
    resources: dict[tuple[str, int, int], list[tuple[Task, Occupied]]] = {}
    for task, use in tasks:
        for resource in sorted(use.what):
            resources.setdefault(resource, []).append((task, use))
    pairs = (pair for listed in resources.values() for pair in _successive(listed))
    return tuple(dict.fromkeys(pairs))


def _successive(tasks: list[tuple[Task, Occupied]]) -> Iterator[tuple[Task, Task]]:
    """Yield the pairs of tasks on one resource of which the first ends before the second starts.

    If a port has several channels, tasks that overlap are not ordered. If ``a`` comes before ``b``
    and ``b`` before ``c``, the pair ``a, c`` is left out.

    Parameters
    ----------
    tasks : list of tasks and what they occupy, by start
    """
    for i, (task, use) in enumerate(tasks):
        ended = [entry for entry in tasks[:i] if entry[1].end <= use.start]
        for other, before in ended:
            last, latest = ended[-1]
            if other == last or before.end > latest.start:
                yield other, task


def given_by(instance: Instance, schedule: Schedule, what: str) -> Goal:
    """Return the goal that keeps the ``placement``, the ``order`` or ``both`` of a schedule.

    Raises
    ------
    ContradictionError
        If the schedule breaks the goal derived from it, which would be a bug.
    """
    placed, ordered = what in ("placement", "both"), what in ("order", "both")
    goal = Goal(
        placement=placement_of(instance, schedule) if placed else {},
        order=order_of(instance, schedule, placed=placed) if ordered else (),
    )
    broken = goal.broken(instance, schedule)
    if broken:
        words = "placement and order" if what == "both" else what
        raise ContradictionError(
            f"{instance.name}: a schedule breaks the {words} taken from it ({broken}); "
            "please report this as a bug"
        )
    return goal
