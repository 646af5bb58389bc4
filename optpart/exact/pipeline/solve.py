"""Contiguous placements of an instance, optimal by dynamic programming where that is sound.

A placement whose blocks follow each other along some order of devices is a chain of downsets. With
a given order, these are all placements that count. Without one, contiguous blocks may also wait for
each other both ways (``a1 → b1`` and ``b2 → a2`` with nothing else), except in a *chain*, where
every vertex feeds the next: there contiguous blocks are intervals. So without an order, the result
is optimal on chains; on other graphs it is the best of the placements that can be ordered, with a
bound that holds for all.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from optpart.base.errors import UnsupportedError
from optpart.exact.pipeline.clock import NEVER, TimeUpError, check
from optpart.exact.pipeline.downsets import Items, items_of
from optpart.exact.pipeline.labels import TooManyLabelsError, best_labelled
from optpart.exact.pipeline.path import Measure, best_path, is_chain, only_neighbours
from optpart.exact.pipeline.problem import Pipeline, all_linked, relaxed_pipeline
from optpart.exact.pipeline.splits import Split, Stage, best_split
from optpart.problem.instance import Instance
from optpart.solution.metrics import bottleneck
from optpart.solution.schedule import crossings


@dataclass(frozen=True)
class ContiguousResult:
    """The best contiguous placement found, and the proven bound.

    Attributes
    ----------
    placement : ndarray of int32 or None
        The best that was found.
    bound : Fraction or None
        A proven lower bound of the bottleneck or makespan.
    infeasible : bool
        Whether it is proven that there is no placement.
    reason : str
        Why there is no placement or no proof.
    time_up : bool
        Whether that is because time was up.
    """

    placement: NDArray[np.int32] | None
    bound: Fraction | None
    infeasible: bool = False
    reason: str = ""
    time_up: bool = False


def best_contiguous(
    instance: Instance, measure: Measure, order: Sequence[int] = (), deadline: float = NEVER
) -> ContiguousResult:
    """Return the best contiguous placement of an instance, and a proven bound.

    Parameters
    ----------
    order : sequence of int
        The only devices to use; no edge leads from a later to an earlier one. By default, any
        contiguous placement counts.
    deadline : float
        On the clock of :func:`optpart.base.clock.now`.

    Raises
    ------
    UnsupportedError
        If the instance has too many downsets, memory depends on time, or its makespan is asked and
        it is not a chain.
    """
    relaxed = relaxed_pipeline(instance)
    try:
        check(deadline)
        if measure == "makespan":
            return _known(instance, _least_makespan(instance, relaxed, order, deadline))
        return _least_bottleneck(instance, relaxed, order, deadline)
    except TimeUpError:
        bound = simple_bound(relaxed) if measure == "bottleneck" else None
        return ContiguousResult(None, bound, time_up=True)


def _least_bottleneck(
    instance: Instance, relaxed: Pipeline, order: Sequence[int], deadline: float
) -> ContiguousResult:
    whole = bool(order) or is_chain(instance)
    items = items_of(relaxed)
    check(deadline)
    if instance.model.communication == "delay" and all_linked(instance):
        split = _without_transfers(instance, relaxed, items, order, deadline)
    elif only_neighbours(instance, items):
        split = best_path(instance, items, "bottleneck", order, deadline)
    else:
        return _labelled(instance, relaxed, order, deadline, whole=whole)
    if split is not None and split.time_up:
        bound = simple_bound(relaxed)
        best = max(bound, split.bound) if whole else bound
        return ContiguousResult(placed(instance, split.stages), best, time_up=True)
    return _known(instance, split) if whole else _orderable(instance, relaxed, split)


def _without_transfers(
    instance: Instance,
    relaxed: Pipeline,
    items: Items,
    order: Sequence[int],
    deadline: float,
) -> Split | None:
    """Return the best split where transfers load nothing."""
    if order and only_neighbours(instance, items):
        # the fastest, but it may round
        split = best_path(instance, items, "bottleneck", order, deadline)
        if split is None or split.bound == split.bottleneck:
            return split
    return best_split(relaxed, order=order, deadline=deadline)


def require_path(instance: Instance) -> None:
    """Raise an error unless the instance is a chain without edges that skip a vertex."""
    graph = instance.graph
    place = graph.position
    far = place[graph.edge_target] - place[graph.edge_source] > 1
    if not is_chain(instance) or bool(far.any()):
        raise UnsupportedError(
            "objective",
            "only chains, in which each vertex feeds just the next one, have their least makespan "
            "found here",
            "minimise the bottleneck",
        )


def _least_makespan(
    instance: Instance, relaxed: Pipeline, order: Sequence[int], deadline: float
) -> Split | None:
    """Return the split of a chain: nothing overlaps, so times of stages and cuts add up."""
    require_path(instance)
    items = items_of(relaxed, merge=False)
    check(deadline)
    return best_path(instance, items, "makespan", order, deadline)


def _labelled(
    instance: Instance,
    relaxed: Pipeline,
    order: Sequence[int],
    deadline: float,
    *,
    whole: bool,
) -> ContiguousResult:
    """Solve with transfers that count; what is optimal without them is a bound."""
    free = best_split(relaxed, order=order, deadline=deadline)
    if free is None:
        return _known(instance, None) if whole else _orderable(instance, relaxed, None)
    bound = free.bound if whole and not free.time_up else simple_bound(relaxed)
    best, value = None, None
    for placement in _candidates(instance, relaxed, free, order):
        found = bottleneck(instance, placement)
        if value is None or found < value:
            best, value = placement, found
    reason = ""
    if value != free.bound:
        try:
            split = best_labelled(instance, items_of(relaxed), order, value, deadline)
        except TimeUpError:
            return ContiguousResult(best, bound, time_up=True)
        except (TooManyLabelsError, UnsupportedError):
            reason = "too many ways to send tensors from stage to stage"
        else:
            if split is not None:
                best, value = placed(instance, split.stages), split.bound
            if whole:
                bound = value if value is not None else bound
    if best is None and whole and not reason:
        return _known(instance, None)
    if not reason and value != bound:
        reason = _NOT_ALL
    return ContiguousResult(best, bound, reason=reason)


def _candidates(
    instance: Instance, relaxed: Pipeline, free: Split, order: Sequence[int]
) -> Iterator[NDArray[np.int32]]:
    """Yield placements that are valid under the transfers of the instance."""
    everything = tuple(range(instance.vertices))
    devices = order or range(instance.devices)
    whole = [(Stage(everything, (d,)),) for d in devices if _fits(relaxed, d)]
    for stages in (free.stages, *whole):
        placement = placed(instance, stages)
        sender = instance.graph.tensor_vertex
        if all(
            instance.delay(tensor, int(placement[sender[tensor]]), target) is not None
            for tensor, target in crossings(instance, placement)
        ):
            yield placement


def _fits(pipeline: Pipeline, d: int) -> bool:
    limit = pipeline.capacity[d]
    return (
        not pipeline.apart
        and all(row[d] is not None for row in pipeline.times)
        and (limit is None or sum(pipeline.need) <= limit)
    )


def placed(instance: Instance, stages: Sequence[Stage]) -> NDArray[np.int32]:
    """Return the device of each vertex, for stages of one device each."""
    placement = np.zeros(instance.vertices, dtype=np.int32)
    for stage in stages:
        placement[list(stage.vertices)] = stage.devices[0]
    return placement


_NOT_ALL = (
    "the best of the placements whose blocks follow each other; blocks that wait for each other "
    "both ways were not searched"
)


def _known(instance: Instance, split: Split | None) -> ContiguousResult:
    if split is None:
        return ContiguousResult(None, None, infeasible=True)
    return ContiguousResult(placed(instance, split.stages), split.bound)


def _orderable(instance: Instance, relaxed: Pipeline, split: Split | None) -> ContiguousResult:
    """Return what is known if contiguous blocks may also wait for each other both ways."""
    bound = simple_bound(relaxed)
    if split is None:
        return ContiguousResult(
            None, bound, reason="no placement has blocks that follow each other"
        )
    reason = "" if split.bound == bound else _NOT_ALL
    return ContiguousResult(placed(instance, split.stages), bound, reason=reason)


def simple_bound(pipeline: Pipeline) -> Fraction:
    """Return a lower bound of the bottleneck of any placement, without replicas.

    For weights ``λ_d ≥ 0`` of sum 1, the bottleneck is at least ``Σ_d λ_d · load(d)``, which is at
    least ``Σ_v min_d λ_d · p[v,d]``. The weights here are in proportion to speeds. It is also at
    least the least time of every vertex.
    """
    if not pipeline.vertices:
        return Fraction(0)
    # Whole numbers of one denominator add up much faster than fractions.
    scale = math.lcm(*{time.denominator for row in pipeline.times for time in row if time})
    ticks = [
        [None if time is None else time.numerator * (scale // time.denominator) for time in row]
        for row in pipeline.times
    ]
    means = []
    for column in zip(*ticks, strict=True):
        own = [time for time in column if time is not None]
        means.append(Fraction(sum(own), len(own)) if own else Fraction(0))
    fastest = min((mean for mean in means if mean), default=Fraction(0))
    shares = [(fastest / mean).limit_denominator(10**6) if mean else Fraction(0) for mean in means]
    parts = math.lcm(*(share.denominator for share in shares))
    weights = [int(parts * share) for share in shares]
    largest = spread = 0
    for row in ticks:
        times = [
            (time, weight) for time, weight in zip(row, weights, strict=True) if time is not None
        ]
        if not times:
            return Fraction(0)
        largest = max(largest, min(time for time, _ in times))
        spread += min(time * weight for time, weight in times)
    least = Fraction(largest, scale)
    return max(least, Fraction(spread, scale * sum(weights))) if any(weights) else least
