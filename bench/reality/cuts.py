"""The best cuts of a chain of layers into the stages of 1F1B, with a proven bound.

A *layout* says what runs where before the layers are cut: the number of stages, the device of each
stage in each pipeline, the size of a microbatch. Its times are whole numbers, so everything here is
exact. The time of a plan is that of the order 1F1B: stage ``s`` of ``P`` begins with ``P − 1 − s``
forward passes, and goes on with a forward and a backward pass by turns. Transfers between stages
either *block* (they take their time on the sender after the pass, and again on the receiver before
its own), or they run on a link of their own, one after the other.

Two bounds hold for all cuts of a layout:

- :func:`simple_bound`: some stage has at least the mean of all loads, however they are weighted; a
  microbatch passes all layers forward and backward; and a layer is computed by one stage.
- :func:`least` looks at two kinds of paths for each stage: to it, through all of its passes, and
  back; and through as many rounds as it has to wait for, in each of which one microbatch goes
  forward to the last stage and back, and the passes that are left on the stage. The least value
  over all cuts is found by dynamic programming from the last stage, with the values that no other
  choice is better than in every respect.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from optpart.base.errors import InputError

Times: TypeAlias = NDArray[np.int64]

#: The first layer of each stage, and the number of layers at the end.
Cuts: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Layout:
    """Stages without layers.

    Attributes
    ----------
    forward, backward : int64 array of shape (pipelines, stages, layers)
        Time of a microbatch.
    transfer : int64 array of shape (pipelines, stages, layers)
        Of a microbatch behind a layer, from stage to stage + 1, and of the gradients back; nothing
        is read of the last stage.
    finish : int64 array of shape (stages, layers + 1, layers + 1)
        What follows the last backward pass of a stage with the layers from ``i`` to ``j − 1``, when
        all pipelines have ended it: summing gradients, and updates.
    fits : bool array of shape (stages, layers + 1, layers + 1)
        Whether these layers fit the memory of the stage.
    microbatches : int
        Of each pipeline.
    blocking : bool
        Whether transfers keep sender and receiver from computing.

    Raises
    ------
    InputError
        If shapes do not fit each other, a time is negative, or there are fewer layers than stages.
    """

    forward: Times
    backward: Times
    transfer: Times
    finish: Times
    fits: NDArray[np.bool_]
    microbatches: int
    blocking: bool

    def __post_init__(self) -> None:
        shape = self.forward.shape
        if len(shape) != 3 or min(shape) < 1 or self.microbatches < 1:
            raise InputError("layout", "is empty", "give pipelines, stages, layers, microbatches")
        _, stages, layers = shape
        if stages > layers:
            raise InputError("layout", f"{stages} stages of {layers} layers", "give fewer stages")
        square = (stages, layers + 1, layers + 1)
        if not (
            self.backward.shape == self.transfer.shape == shape
            and self.finish.shape == self.fits.shape == square
        ):
            raise InputError("layout", "arrays of different shapes", "see their description")
        for name in ("forward", "backward", "transfer", "finish"):
            if (getattr(self, name) < 0).any():
                raise InputError(f"layout.{name}", "is negative", "give times ≥ 0")

    @property
    def stages(self) -> int:
        """The number of stages."""
        return int(self.forward.shape[1])

    @property
    def layers(self) -> int:
        """The number of layers."""
        return int(self.forward.shape[2])

    def segments(self, s: int, i: int) -> Iterator[int]:
        """Yield the ends of stage ``s`` from layer ``i`` that fit, and leave each stage a layer."""
        after = self.stages - 1 - s
        ends = range(i + 1, self.layers - after + 1) if after else (self.layers,)
        return (j for j in ends if j > i and self.fits[s, i, j])


@dataclass(frozen=True)
class Found:
    """The best cuts that were found.

    Attributes
    ----------
    layout : int or None
        Its number; ``None`` if there are no cuts that fit.
    cuts : tuple of int
    time : int or None
    bound : int or None
        No cuts of any layout take less; ``None`` if none fit any.
    """

    layout: int | None
    cuts: Cuts
    time: int | None
    bound: int | None


def iteration_time(layout: Layout, cuts: Cuts) -> int:
    """Return the time of an iteration in the order 1F1B."""
    last = np.array([_last_passes(layout, r, cuts) for r in range(len(layout.forward))]).max(axis=0)
    return max(int(last[s] + layout.finish[s, cuts[s], cuts[s + 1]]) for s in range(layout.stages))


def _last_passes(layout: Layout, r: int, cuts: Cuts) -> list[int]:
    """Return when each stage of a pipeline ends its last backward pass."""
    stages, count = layout.stages, layout.microbatches
    held = [slice(cuts[s], cuts[s + 1]) for s in range(stages)]
    forward = [int(layout.forward[r, s, held[s]].sum()) for s in range(stages)]
    backward = [int(layout.backward[r, s, held[s]].sum()) for s in range(stages)]
    border = [int(layout.transfer[r, s, cuts[s + 1] - 1]) for s in range(stages - 1)]
    blocking = layout.blocking
    ended: dict[tuple[bool, int, int], int] = {}
    clock = [0] * stages
    link = {(s, way): 0 for s in range(stages) for way in (True, False)}  # into a stage
    passes = [_passes(s, stages, count) for s in range(stages)]
    done = [0] * stages
    waiting = list(range(stages))
    while waiting:
        s = waiting.pop()
        while done[s] < len(passes[s]):
            ahead, m = passes[s][done[s]]
            before, after = (s - 1, s + 1) if ahead else (s + 1, s - 1)
            if 0 <= before < stages:
                if (ahead, m, before) not in ended:
                    break
                time = border[min(s, before)]
                if blocking:
                    clock[s] = max(clock[s], ended[ahead, m, before]) + time
                else:
                    arrived = max(link[s, ahead], ended[ahead, m, before]) + time
                    link[s, ahead] = arrived
                    clock[s] = max(clock[s], arrived)
            clock[s] += forward[s] if ahead else backward[s]
            ended[ahead, m, s] = clock[s]
            done[s] += 1
            if 0 <= after < stages:
                if blocking:
                    clock[s] += border[min(s, after)]
                if after not in waiting:
                    waiting.append(after)
    return [ended[False, count - 1, s] for s in range(stages)]


def _passes(stage: int, stages: int, count: int) -> list[tuple[bool, int]]:
    """Return the passes of a stage in order: whether forward, and the microbatch."""
    ahead = min(stages - 1 - stage, count)
    found = [(True, m) for m in range(ahead)]
    for m in range(count):
        if ahead + m < count:
            found.append((True, ahead + m))
        found.append((False, m))
    return found


# --- bounds --------------------------------------------------------------------------------------


def simple_bound(layout: Layout) -> int | None:
    """Return a time that no cuts go below; ``None`` if no stage fits any layers.

    Stage ``s`` takes ``t[s, l]`` for layer ``l`` of a microbatch, forward and backward. With
    weights ``w`` that sum to 1, the largest load of a stage is at least the weighted mean, so at
    least ``Σ_l min_s w_s·t[s, l]`` for each microbatch; weights in proportion to speed are near the
    best. A layer alone loads its stage with ``min_s t[s, l]`` for each microbatch. One microbatch
    passes all layers, and all borders, forward and backward. After either, gradients are summed.
    """
    stages, layers = layout.stages, layout.layers
    finishes = [
        int(layout.finish[s, i, j])
        for s in range(stages)
        for i in (range(s, layers) if s else (0,))
        for j in layout.segments(s, i)
    ]
    if not finishes:
        return None
    found = 0
    for r in range(len(layout.forward)):
        times = layout.forward[r] + layout.backward[r]
        totals = [max(1, int(row.sum())) for row in times]
        speed = [Fraction(1, total) for total in totals]
        weights = [each / sum(speed) for each in speed]
        columns = times.T.tolist()
        mean = sum(
            (min(w * t for w, t in zip(weights, column, strict=True)) for column in columns),
            Fraction(0),
        )
        largest = max(min(column) for column in columns)
        through = sum(min(column) for column in columns)
        through += 2 * sum(int(layout.transfer[r, s].min()) for s in range(stages - 1))
        found = max(found, ceil(layout.microbatches * max(mean, Fraction(largest))), through)
    return found + min(finishes)


def least(layout: Layout, below: int) -> tuple[int, Cuts] | None:
    """Return the least value of the path bound, and cuts that have it.

    Parameters
    ----------
    below : int
        Values from here on do not matter.

    Returns
    -------
    tuple or None
        ``None`` if all cuts that fit have a bound of at least ``below``.
    """
    stages, layers, pipelines = layout.stages, layout.layers, len(layout.forward)
    sums = (
        [
            [np.concatenate(([0], np.cumsum(row))).tolist() for row in layout.forward[r]]
            for r in range(pipelines)
        ],
        [
            [np.concatenate(([0], np.cumsum(row))).tolist() for row in layout.backward[r]]
            for r in range(pipelines)
        ],
    )
    border = layout.transfer.tolist()
    before = [_soonest(layout, r, sums[0][r], border[r]) for r in range(pipelines)]
    # By first layer: values of the stages from s on, counted from the moment the stage before has
    # ended its first forward pass, to that at which it could begin its last backward pass. Of each
    # pipeline: the path of the first microbatch, the longest path, and when all has ended.
    labels: dict[int, list[_Label]] = {layers: [_Label((0,) * (3 * pipelines), ())]}
    for s in reversed(range(stages)):
        new: dict[int, list[_Label]] = {}
        for i in range(s, layers - (stages - 1 - s)) if s else (0,):
            rows = []
            for j in layout.segments(s, i):
                finish = int(layout.finish[s, i, j])
                costs = []
                for r in range(pipelines):
                    f = sums[0][r][s][j] - sums[0][r][s][i]
                    b = sums[1][r][s][j] - sums[1][r][s][i]
                    enter = border[r][s - 1][i - 1] if s else 0
                    leave = border[r][s][j - 1] if s < stages - 1 else 0
                    costs.append((f, b, enter, leave))
                for label in labels.get(j, ()):
                    values = _extended(layout, s, costs, finish, label.values)
                    ends = (values[3 * r + 2] + before[r][s][i] for r in range(pipelines))
                    if max(ends) < below:
                        rows.append(_Label(values, (j, *label.ends)))
            new[i] = _undominated(rows)
        labels = new
    best = min(labels.get(0, ()), key=lambda label: max(label.values[2::3]), default=None)
    return None if best is None else (max(best.values[2::3]), (0, *best.ends))


@dataclass(frozen=True)
class _Label:
    values: tuple[int, ...]
    ends: tuple[int, ...]


def _extended(
    layout: Layout,
    s: int,
    costs: Sequence[tuple[int, int, int, int]],
    finish: int,
    values: tuple[int, ...],
) -> tuple[int, ...]:
    """Return the values with stage ``s`` before the others."""
    count = layout.microbatches
    ahead = min(layout.stages - 1 - s, count)
    found: list[int] = []
    for r, (f, b, enter, leave) in enumerate(costs):
        first, longest, end = values[3 * r : 3 * r + 3]
        first += 2 * enter + f + b
        paths = [2 * enter + f + b + longest]
        if layout.blocking:
            # Every pass waits for its transfer, and sends on; the last one's sending is counted as
            # the stage before receives it.
            sends = enter + leave
            paths.append(count * (f + b + 2 * sends))
        else:
            sends = 0
            paths.append(2 * enter + max(count * (f + b), (count - 1) * enter + f + b))
        # The stage has at most ``ahead + 1`` microbatches under way: after so many, it waits until
        # the first of them is back.
        again = first if layout.blocking else first - 2 * enter
        for rounds in {1, max(1, count // (ahead + 1)), -(-count // (ahead + 1))}:
            left = count - 1 - (rounds - 1) * (ahead + 1)
            after = left * (b + sends) + max(0, left - ahead) * (f + sends)
            paths.append(first + (rounds - 1) * again + after)
        longest = max(paths)
        end = max(longest - enter + finish, enter + f + end)
        found += [first, longest, end]
    return tuple(found)


def _soonest(
    layout: Layout, r: int, sums: Sequence[Sequence[int]], border: Sequence[Sequence[int]]
) -> list[list[int]]:
    """Return when the stage before ``s`` ends its first pass at the soonest, if ``s`` begins at i.

    Memory is left out, which makes it only sooner.
    """
    stages, layers = layout.stages, layout.layers
    never = 2**62
    found = [[0] + [never] * layers]
    for s in range(stages):
        row = [never] * (layers + 1)
        for j in range(s + 1, layers + 1):
            row[j] = min(
                found[s][i] + (border[s - 1][i - 1] if s else 0) + sums[s][j] - sums[s][i]
                for i in range(s, j)
            )
        found.append(row)
    return found


def _undominated(labels: list[_Label]) -> list[_Label]:
    """Return the labels than which no other is as good in every value."""
    kept: list[_Label] = []
    for label in sorted(labels, key=lambda one: one.values[::-1]):
        if not any(all(map(int.__le__, other.values, label.values)) for other in reversed(kept)):
            kept.append(label)
    return kept


# --- search --------------------------------------------------------------------------------------


def best_cuts(layouts: Sequence[Layout]) -> Found:
    """Return the best cuts of all layouts that a descent finds from those with the least bound.

    Layouts whose bound is no better than the best time are left out, so the bound holds for all.
    """
    simple = [simple_bound(layout) for layout in layouts]
    fitting = [(bound, n) for n, bound in enumerate(simple) if bound is not None]
    best: Found = Found(None, (), None, None)
    bounds = []
    for bound, n in sorted(fitting):
        if best.time is not None and bound >= best.time:
            bounds.append(bound)
            break  # nor do those that follow
        found = least(layouts[n], 2**62 if best.time is None else best.time)
        if found is None:
            continue  # as long as the best at least, or no cuts fit
        bounds.append(max(bound, found[0]))
        cuts, time = descended(layouts[n], found[1])
        if best.time is None or time < best.time:
            best = Found(n, cuts, time, None)
    if best.time is None:
        return best
    return Found(best.layout, best.cuts, best.time, min([*bounds, best.time]))


def descended(layout: Layout, cuts: Cuts) -> tuple[Cuts, int]:
    """Move single cuts and runs of neighbouring cuts by a layer while that shortens the time."""
    time = iteration_time(layout, cuts)
    improved = True
    while improved:
        improved = False
        for moved in _neighbours(layout, cuts):
            found = iteration_time(layout, moved)
            if found < time:
                cuts, time, improved = moved, found, True
                break
    return cuts, time


def _neighbours(layout: Layout, cuts: Cuts) -> Iterator[Cuts]:
    stages = layout.stages
    for length in range(1, stages):
        for first in range(1, stages - length + 1):
            for step in (-1, 1):
                moved = (
                    *cuts[:first],
                    *(cut + step for cut in cuts[first : first + length]),
                    *cuts[first + length :],
                )
                if all(
                    moved[s] < moved[s + 1] and layout.fits[s, moved[s], moved[s + 1]]
                    for s in range(stages)
                ):
                    yield moved


def distinct(times: NDArray[Any]) -> list[int]:
    """Return the numbers of pipelines that differ, of an array with one row for each."""
    _, first = np.unique(times.reshape(len(times), -1), axis=0, return_index=True)
    return sorted(first.tolist())
