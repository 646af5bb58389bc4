"""Plans of training under the model of :mod:`bench.reality.cuts`: measured ones, and the best.

A stage of a pipeline runs its microbatches in the order 1F1B; then the replicas of each stage sum
their gradients and update their weights. A transfer between stages either overlaps with computing,
or blocks sender and receiver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from bench.reality.cuts import Cuts, Layout, Times, best_cuts, distinct, iteration_time

NANOSECONDS = 10**9

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Plan:
    """A plan that was measured.

    Attributes
    ----------
    layout : callable
        Of whether transfers block and, where it may be fitted, of a rate in Gbit/s.
    measured : float
        Seconds of one iteration; infinite if it did not run.
    claimed : float or None
        Seconds that the source itself predicted.
    traits : mapping from str to str
        By which plans are grouped.
    doubt : str
        Why the measured time does not count.
    rates : tuple of int
        Values of the rate that may be fitted.
    """

    name: str
    layout: Callable[..., Layout]
    cuts: Cuts
    measured: float
    claimed: float | None = None
    traits: Mapping[str, str] = field(default_factory=dict)
    doubt: str = ""
    rates: tuple[int, ...] = ()

    def seconds(self, *given: object, blocking: bool) -> float:
        """Predict the time of an iteration."""
        return iteration_time(self.layout(*given, blocking=blocking), self.cuts) / NANOSECONDS


@dataclass(frozen=True)
class Choice:
    """A layout, and the nodes of each stage."""

    layout: Layout
    name: str
    where: tuple[str, ...]


@dataclass(frozen=True)
class Case:
    """A cluster and batch: measured plans, all layouts, and by how much memory is scaled."""

    name: str
    plans: tuple[str, ...]
    choices: tuple[Choice, ...]
    memory: str = ""


@dataclass(frozen=True)
class Best:
    """The best plan of a case and a bound, predicted in seconds; layouts that were in question."""

    seconds: float
    bound: float
    plan: str
    layouts: int


def best(case: Case) -> Best:
    """Search the best plan of a case."""
    found = best_cuts([choice.layout for choice in case.choices])
    if found.layout is None or found.time is None or found.bound is None:
        raise AssertionError(f"{case.name}: no plan fits, but some were measured")
    choice, cuts = case.choices[found.layout], found.cuts
    stages = (f"{where} {cuts[s + 1] - cuts[s]}" for s, where in enumerate(choice.where))
    plan = f"{choice.name}: {' | '.join(stages)}"
    return Best(found.time / NANOSECONDS, found.bound / NANOSECONDS, plan, len(case.choices))


def ring_allreduce(replicas: int, size: float, rate: float) -> float:
    """Return the seconds of a ring all-reduce of so many bytes over links of that rate."""
    return 2 * (replicas - 1) / replicas * size / rate


def of_seconds(
    passes: Iterable[Floats | list[list[Floats]]],
    finish: Floats,
    fits: NDArray[np.bool_],
    microbatches: int,
    blocking: bool,
) -> Layout:
    """Return a layout, with pipelines that are alike only once, in whole nanoseconds.

    Parameters
    ----------
    passes : iterable of (pipeline, stage, layer) arrays
        Forward, backward, and transfer to the next stage.
    """
    rows = [_whole(each) for each in passes]
    kept = distinct(np.stack(rows, axis=1))
    forward, backward, transfer = (row[kept] for row in rows)
    return Layout(forward, backward, transfer, _whole(finish), fits, microbatches, blocking)


def _whole(seconds: object) -> Times:
    return np.rint(np.asarray(seconds, dtype=np.float64) * NANOSECONDS).astype(np.int64)


def between_sums(values: Iterable[float]) -> Floats:
    """Return the sums of the values from ``i`` to ``j − 1``."""
    sums = np.concatenate(([0.0], np.cumsum(list(values))))
    return np.asarray(sums[None, :] - sums[:, None])
