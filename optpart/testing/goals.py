"""Random goals: every objective, limit and given decision, alone and combined."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Literal, get_args

from optpart.exact.given_order import given_by
from optpart.problem.instance import Instance
from optpart.solution.goal import Goal, Objective, Task, undefined_bottleneck
from optpart.solution.metrics import traffic
from optpart.solution.schedule import Schedule
from optpart.testing.pick import Draw, seeded

GoalKind = Literal[
    "makespan",
    "traffic",
    "lexicographic",
    "decision",
    "traffic-limit",
    "both-limits",
    "placement",
    "order",
    "both",
    "some-placement",
    "some-order",
    "mixed",
    "bottleneck",
    "blocks",
]

#: The distances of a limit from a schedule's value, as shares of the value.
_STEPS = (
    Fraction(0),
    Fraction(-1, 1000),
    Fraction(1, 1000),
    Fraction(-1, 10**9),
    Fraction(1, 10**9),
    Fraction(-1, 3),
    Fraction(1, 3),
)


def draw_goal(
    instance: Instance, schedule: Schedule | None, seed: int, kind: GoalKind | None = None
) -> Goal:
    """Draw a goal; the same arguments give the same one.

    Parameters
    ----------
    schedule : Schedule, optional
        A valid schedule of the instance. Placements and orders are taken from it, and limits are
        drawn near its makespan and traffic, so an optimal schedule gives the hardest goals. Without
        a schedule, everything is drawn freely.
    kind : optional
        The kind of goal; by default any.
    """
    return _Goals(Draw(seeded(seed, "goal", kind)), instance, schedule).drawn(kind)


class _Goals:
    def __init__(self, draw: Draw, instance: Instance, schedule: Schedule | None) -> None:
        self.draw, self.instance, self.schedule = draw, instance, schedule

    def drawn(self, kind: GoalKind | None) -> Goal:
        draw = self.draw
        every: tuple[GoalKind, ...] = get_args(GoalKind)
        kind = draw.one_of(every) if kind is None else kind
        match kind:
            case "makespan" | "traffic" | "lexicographic":
                return Goal(kind)
            case "decision":
                return Goal(makespan=self._makespan())
            case "traffic-limit":
                return Goal(self._objective(), traffic=self._traffic())
            case "both-limits":
                return Goal(self._objective(), makespan=self._makespan(), traffic=self._traffic())
            case "placement" | "order" | "both":
                if self.schedule is None:
                    return Goal(
                        placement={} if kind == "order" else self._placement(),
                        order=() if kind == "placement" else self._order(),
                    )
                goal = given_by(self.instance, self.schedule, kind)
                return replace(goal, objective=self._objective()) if draw.chance(4) else goal
            case "some-placement":
                return Goal(placement=self._placement())
            case "some-order":
                return Goal(order=self._order())
            case "bottleneck" if undefined_bottleneck(self.instance):
                return Goal()
            case "bottleneck":
                return Goal(kind)
            case "blocks":
                ordered = draw.chance(2)
                return Goal(
                    self._objective(),
                    contiguous=not ordered,
                    device_order=self._device_order() if ordered else (),
                )
            case _:
                return Goal(
                    self._objective(),
                    self._placement() if draw.chance(2) else {},
                    self._order() if draw.chance(2) else (),
                    self._makespan() if draw.chance(2) else None,
                    self._traffic() if draw.chance(3) else None,
                    contiguous=draw.chance(4),
                    device_order=self._device_order() if draw.chance(5) else (),
                )

    def _objective(self) -> Objective:
        every: tuple[Objective, ...] = get_args(Objective)
        if undefined_bottleneck(self.instance):
            every = tuple(objective for objective in every if objective != "bottleneck")
        return self.draw.one_of(every)

    def _device_order(self) -> tuple[int, ...]:
        """Draw an order of all devices, except for one time in four of some."""
        k = self.instance.devices
        return tuple(self.draw.some(k, self.draw.between(1, k) if self.draw.chance(4) else k))

    def _makespan(self) -> Fraction:
        if self.schedule is None:
            return Fraction(self.draw.between(0, 9))
        return self._about(self.schedule.makespan(self.instance))

    def _traffic(self) -> Fraction:
        if self.schedule is None:
            return Fraction(self.draw.between(0, 9))
        return self._about(traffic(self.instance, self.schedule.placement))

    def _about(self, limit: Fraction) -> Fraction:
        return limit * (1 + self.draw.one_of(_STEPS))

    def _placement(self) -> dict[int, int]:
        """Draw devices for some vertices: as scheduled, except for one in eight."""
        draw, instance = self.draw, self.instance
        n = instance.vertices
        given = {}
        for v in draw.some(n, draw.between(1, n)) if n else []:
            given[v] = draw.between(0, instance.devices - 1)
            if self.schedule is not None and not draw.chance(8):
                given[v] = int(self.schedule.placement[v])
        return given

    def _order(self) -> tuple[tuple[Task, Task], ...]:
        """Draw some ordered pairs: in the order of the schedule, or any."""
        draw = self.draw
        if self.schedule is not None and draw.chance(2):
            what = draw.one_of(("order", "both"))
            kept = given_by(self.instance, self.schedule, what).order
            return tuple(kept[i] for i in draw.some(len(kept), draw.between(1, len(kept) or 1)))
        if not self.instance.vertices:
            return ()
        pairs = [(self._task(), self._task()) for _ in range(draw.between(1, 4))]
        return tuple((a, b) for a, b in pairs if a != b)

    def _task(self) -> Task:
        """Draw a vertex, or the transfer of a tensor to any device."""
        draw, instance = self.draw, self.instance
        if instance.graph.tensors and draw.chance(2):
            tensor = draw.between(0, instance.graph.tensors - 1)
            return tensor, draw.between(0, instance.devices - 1)
        return draw.between(0, instance.vertices - 1)
