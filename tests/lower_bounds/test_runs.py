"""Runs: what cannot all be on a device is left by some crossing, in every placement."""

from __future__ import annotations

import itertools

import numpy as np

from optpart.lower_bounds.runs import Run, Runs

#: A path of four units, each with memory 2.
PATH = np.array([[0, 1], [1, 2], [2, 3]])
NEED = np.full(4, 2)
WORK = np.ones((4, 2), dtype=np.int64)


def separated(runs: Runs, share: list[float], limit: int | None = None) -> list[Run]:
    """Cuts for a solution in which nothing crosses."""
    nothing = np.zeros((3, 2))
    placed = np.array([[x, 1 - x] for x in share])
    runs.separate(placed, nothing, nothing, limit)
    return runs.holding(limit)


class TestByHand:
    def test_neighbours_that_exceed_the_memory_are_left(self) -> None:
        runs = separated(Runs(PATH, NEED, np.array([5, -1]), WORK), [1, 1, 1, 1])
        assert {(run.root, run.device) for run in runs} <= {(u, 0) for u in range(4)}
        assert {len(run.steps) for run in runs} == {2}
        assert all(run.limit is None for run in runs)

    def test_the_tree_says_on_which_side_of_a_pair_it_begins(self) -> None:
        """The third unit has a smaller neighbour before it, and a larger one after it."""
        need = np.array([2, 2, 2, 3])
        (run,) = separated(Runs(PATH, need, np.array([4, -1]), WORK), [0, 0, 1, 0])
        assert run.steps.tolist() == [[2, 0]]
        (run,) = separated(Runs(PATH, need[::-1], np.array([4, -1]), WORK), [0, 1, 0, 0])
        assert run.steps.tolist() == [[0, 1]]

    def test_units_that_take_longer_than_a_limit_are_left_within_it(self) -> None:
        runs = Runs(PATH, NEED, np.array([-1, -1]), WORK)
        assert not separated(runs, [1, 1, 1, 1])
        found = separated(runs, [1, 1, 1, 1], 3)
        assert {run.limit for run in found} == {3}
        assert runs.holding(3) == runs.holding(2) == found
        assert not runs.holding(4)
        assert not runs.holding(None)

    def test_what_crosses_enough_is_not_violated(self) -> None:
        runs = Runs(PATH, NEED, np.array([5, -1]), WORK)
        placed = np.array([[1.0, 0.0]] * 2 + [[0.0, 1.0]] * 2)
        leaving = np.zeros((3, 2))
        leaving[1, 0] = 1.0
        assert runs.separate(placed, leaving, leaving[:, ::-1], None) == 0

    def test_a_unit_too_large_by_itself_is_not_there(self) -> None:
        runs = separated(Runs(PATH, NEED, np.array([1, -1]), WORK), [1, 0, 0, 0])
        assert [(run.root, len(run.steps)) for run in runs] == [(0, 0)]

    def test_runs_that_never_bind_are_dropped(self) -> None:
        runs = Runs(PATH, NEED, np.array([5, -1]), WORK)
        used = separated(runs, [1, 1, 1, 1])
        for _ in range(2):
            runs.keep(used, np.zeros(len(used), dtype=np.bool_))
        assert not runs.holding(None)


def test_every_placement_that_fits_satisfies_every_run() -> None:
    rng = np.random.default_rng(1)
    checked = 0
    for _ in range(40):
        units, k = int(rng.integers(2, 6)), 2
        pairs = np.array(
            [(u, w) for u, w in itertools.combinations(range(units), 2) if rng.random() < 0.6],
            dtype=np.int64,
        ).reshape(-1, 2)
        need, work = rng.integers(1, 4, units), rng.integers(1, 4, (units, k))
        capacity, limit = rng.integers(2, 8, k), int(rng.integers(2, 10))
        runs = Runs(pairs, need, capacity, work)
        for _ in range(4):
            share = rng.dirichlet(np.ones(k), units)
            nothing = np.zeros((len(pairs), k))
            runs.separate(share, nothing, nothing, limit)
        for placement in itertools.product(range(k), repeat=units):
            at = np.array(placement)
            on = at[:, None] == np.arange(k)
            fits = (need @ on <= capacity).all()
            if not fits or ((work * on).sum(axis=0) > limit).any():
                continue
            for run in runs.holding(limit):
                ends = [tuple(pairs[q][::-1] if back else pairs[q]) for q, back in run.steps]
                left = sum(at[near] == run.device != at[far] for near, far in ends)
                assert left >= (at[run.root] == run.device)
                checked += 1
    assert checked > 100
