"""A plan of a pipeline: its stages with their devices, and what is proven about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from optpart.base import clock
from optpart.exact.pipeline.problem import Pipeline
from optpart.exact.pipeline.splits import Stage, best_split
from optpart.exact.pipeline.verifier import loads, violations
from optpart.solution.gap import gap
from optpart.solution.result import Status, versions


@dataclass(frozen=True, eq=False)
class PipelinePlan:
    """The outcome of planning a pipeline; built by :func:`plan_pipeline` or :func:`concluded`.

    Attributes
    ----------
    status : Status
        ``OPTIMAL`` only if the verifier accepts the stages and their bottleneck equals the bound.
    stages : tuple of Stage
        In order.
    loads : tuple of Fraction
        The load of each device of each stage.
    bound : Fraction or None
        A proven lower bound of the bottleneck of all plans.
    order : tuple of int
        The devices in the order that was given; empty if they were free.
    replicas : int
        Most replicas of a stage.
    """

    pipeline: Pipeline
    status: Status
    stages: tuple[Stage, ...] = ()
    loads: tuple[Fraction, ...] = ()
    bound: Fraction | None = None
    order: tuple[int, ...] = ()
    replicas: int = 1
    reason: str = ""
    seconds: float = 0.0
    versions: dict[str, str] = field(default_factory=versions)

    @property
    def bottleneck(self) -> Fraction | None:
        """The largest load, the time per item; ``None`` without stages."""
        if not self.stages and self.pipeline.vertices:
            return None
        return max(self.loads, default=Fraction(0))

    @property
    def gap(self) -> float | None:
        """``(bottleneck − bound) / bottleneck``."""
        return gap(self.bottleneck, self.bound)

    @property
    def memory(self) -> list[Fraction]:
        """The memory that each device of each stage holds."""
        need = self.pipeline.need
        return [sum((need[v] for v in stage.vertices), Fraction(0)) for stage in self.stages]


def plan_pipeline(
    pipeline: Pipeline, *, order: Sequence[int] = (), replicas: int = 1
) -> PipelinePlan:
    """Split a pipeline into stages with the least bottleneck.

    Parameters
    ----------
    order : sequence of int
        The only devices to use: every device of a stage comes before those of later stages. By
        default, all in any order.
    replicas : int
        Most devices of a stage.

    Raises
    ------
    UnsupportedError
        If the graph has too many downsets, or devices can be used in too many ways.
    """
    begin = clock.now()
    found = best_split(pipeline, order=order, replicas=replicas)
    seconds = clock.now() - begin
    if found is None:
        return PipelinePlan(
            pipeline,
            Status.INFEASIBLE,
            order=tuple(order),
            replicas=replicas,
            reason=_excluded(pipeline, order),
            seconds=seconds,
        )
    return concluded(
        pipeline, found.stages, found.bound, order=order, replicas=replicas, seconds=seconds
    )


def _excluded(pipeline: Pipeline, order: Sequence[int]) -> str:
    """Return why there is no plan; if a group or vertex fits no device, it is named."""
    grouped = {v for group in pipeline.together for v in group}
    alone = [(v,) for v in range(len(pipeline.vertices)) if v not in grouped]
    used = order or range(len(pipeline.devices))
    for unit in sorted([*pipeline.together, *alone]):
        name = pipeline.vertices[unit[0]]
        if len(unit) > 1:
            name = f"the group of {name} ({len(unit)} vertices)"
        allowed = [d for d in used if all(pipeline.times[v][d] is not None for v in unit)]
        if not allowed:
            return f"{name} may run on none of {', '.join(pipeline.devices[d] for d in used)}"
        limits = [pipeline.capacity[d] for d in allowed]
        need = sum((pipeline.need[v] for v in unit), Fraction(0))
        if all(limit is not None and limit < need for limit in limits):
            return f"{name} needs more memory than any device that it may use has"
    return "no split into stages satisfies allowed devices, groups, separations and memory"


def concluded(
    pipeline: Pipeline,
    stages: Sequence[Stage],
    bound: Fraction | None,
    *,
    order: Sequence[int] = (),
    replicas: int = 1,
    seconds: float = 0.0,
) -> PipelinePlan:
    """Verify stages and derive the status.

    Raises
    ------
    AssertionError
        If the verifier rejects the stages, or they are better than the bound.
    """
    for violation in violations(pipeline, stages, order, replicas):
        raise AssertionError(f"a plan is not valid: {violation}; please report this as a bug")
    load = loads(pipeline, stages)
    value = max(load, default=Fraction(0))
    if bound is not None and bound > value:
        raise AssertionError(
            f"the bound {bound} is above the bottleneck {value}; please report this as a bug"
        )
    return PipelinePlan(
        pipeline,
        Status.OPTIMAL if value == bound else Status.FEASIBLE,
        tuple(stages),
        tuple(load),
        bound,
        tuple(order),
        replicas,
        reason="" if value == bound else "numbers had to be rounded",
        seconds=seconds,
    )
