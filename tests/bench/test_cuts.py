"""The best cuts of a chain into stages, against all cuts."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from bench.reality.cuts import (
    Cuts,
    Layout,
    best_cuts,
    iteration_time,
    least,
    simple_bound,
)
from optpart.base.errors import InputError

UNBOUNDED = 10**9


def drawn(seed: int) -> Layout:
    """Draw a layout of at most three pipelines, four stages, seven layers, five microbatches."""
    rng = np.random.default_rng(seed)
    pipelines, stages = int(rng.integers(1, 4)), int(rng.integers(1, 5))
    layers = int(rng.integers(stages, 8))
    shape, square = (pipelines, stages, layers), (stages, layers + 1, layers + 1)
    slowness = rng.integers(1, 4, (pipelines, stages, 1))
    return Layout(
        slowness * rng.integers(0, 9, (1, 1, layers)),
        slowness * rng.integers(0, 9, (1, 1, layers)) + rng.integers(0, 3, shape),
        rng.integers(0, int(rng.choice([1, 4, 20])), shape),
        rng.integers(0, int(rng.choice([1, 9, 60])), square),
        rng.random(square) < rng.choice([0.6, 1.0]),
        int(rng.integers(1, 6)),
        bool(rng.integers(2)),
    )


def all_cuts(layout: Layout) -> list[Cuts]:
    """Return all cuts that fit."""
    inner = combinations(range(1, layout.layers), layout.stages - 1)
    every = [(0, *each, layout.layers) for each in inner]
    return [
        cuts
        for cuts in every
        if all(layout.fits[s, cuts[s], cuts[s + 1]] for s in range(layout.stages))
    ]


# --- an iteration whose time is known ------------------------------------------------------------

BOTH = pytest.mark.parametrize("blocking", [False, True])


def iteration(
    stages: list[tuple[int, int]], microbatches: int, *, transfer: int = 0, blocking: bool
) -> int:
    """Time a pipeline of stages with one layer each: forward and backward; a step ends with 7."""
    count = len(stages)
    passes = np.array([stages]).transpose(2, 0, 1)[:, :, :, None] * np.eye(count, dtype=np.int64)
    square = (count, count + 1, count + 1)
    layout = Layout(
        passes[0], passes[1], np.full((1, count, count), transfer), np.full(square, 7),
        np.ones(square, dtype=np.bool_), microbatches, blocking,
    )  # fmt: skip
    return iteration_time(layout, tuple(range(count + 1)))


@BOTH
def test_a_single_stage_runs_all_microbatches(blocking: bool) -> None:
    assert iteration([(1, 2)], 4, blocking=blocking) == 4 * (1 + 2) + 7


@BOTH
def test_equal_stages_fill_and_drain_once(blocking: bool) -> None:
    assert iteration([(1, 2)] * 3, 5, blocking=blocking) == (5 + 3 - 1) * (1 + 2) + 7


@BOTH
def test_a_single_microbatch_waits_for_every_transfer(blocking: bool) -> None:
    time = iteration([(4, 8)] * 2, 1, transfer=1, blocking=blocking)
    assert time == 2 * (4 + 8) + 2 * 1 + 7


def test_blocking_transfers_add_to_the_slowest_stage() -> None:
    stages = [(100, 100), (100, 300)]
    times = [iteration(stages, 50, transfer=100, blocking=blocking) for blocking in (True, False)]
    assert np.array(times) / 50 == pytest.approx([100 + 300 + 2 * 100, 100 + 300], rel=0.05)


@BOTH
def test_the_end_of_a_step_waits_for_the_slowest_pipeline(blocking: bool) -> None:
    times = np.array([[[3]], [[1]]])
    square = np.ones((1, 2, 2), dtype=np.int64)
    layout = Layout(times, times, 0 * times, 2 * square, square > 0, 2, blocking)
    assert iteration_time(layout, (0, 1)) == 2 * 6 + 2


# --- bounds and the best -------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(60))
def test_bounds_are_below_all_plans(seed: int) -> None:
    layout = drawn(seed)
    times = [iteration_time(layout, cuts) for cuts in all_cuts(layout)]
    path = least(layout, UNBOUNDED)
    if not times:
        assert path is None
        assert best_cuts([layout]).time is None
        return
    simple = simple_bound(layout)
    assert path is not None
    assert simple is not None
    assert max(simple, path[0]) <= min(times)
    assert least(layout, path[0]) is None
    found = best_cuts([layout])
    assert found.bound is not None
    assert found.time is not None
    assert max(simple, path[0]) <= found.bound <= min(times) <= found.time
    assert found.cuts in all_cuts(layout)
    assert found.time == iteration_time(layout, found.cuts)


@pytest.mark.parametrize("seed", range(30))
def test_the_best_of_several_layouts(seed: int) -> None:
    layouts = [drawn(1000 + 3 * seed + k) for k in range(3)]
    times = [iteration_time(one, cuts) for one in layouts for cuts in all_cuts(one)]
    found = best_cuts(layouts)
    if not times:
        assert found.time is None
        return
    assert found.time is not None
    assert found.bound is not None
    assert found.layout is not None
    assert found.bound <= min(times) <= found.time
    assert found.time == iteration_time(layouts[found.layout], found.cuts)


def test_equal_stages_have_the_time_of_the_textbook() -> None:
    """``(microbatches + stages − 1)·(forward + backward)``, which the path bound reaches."""
    shape, square = (1, 4, 8), (4, 9, 9)
    layout = Layout(
        np.ones(shape, np.int64),
        np.full(shape, 2),
        np.zeros(shape, np.int64),
        np.zeros(square, np.int64),
        np.ones(square, np.bool_),
        6,
        blocking=True,
    )
    assert iteration_time(layout, (0, 2, 4, 6, 8)) == (6 + 4 - 1) * 6
    found = best_cuts([layout])
    assert (found.time, found.bound) == (54, 54)
    assert simple_bound(layout) == 6 * 6


def test_a_layout_is_checked() -> None:
    layout = drawn(0)
    with pytest.raises(InputError, match="arrays of different shapes"):
        replace(layout, backward=layout.backward[:, :, :-1])
    with pytest.raises(InputError, match=r"layout\.finish: is negative"):
        replace(layout, finish=layout.finish - 100)
    with pytest.raises(InputError, match="is empty"):
        replace(layout, microbatches=0)
