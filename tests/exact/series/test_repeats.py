"""Paths of runs: the small model has the optimum of the path, whatever runs, memory and links."""

from itertools import pairwise, product

import numpy as np
import pytest

from optpart.exact.enumeration import enumerate_all
from optpart.exact.messages import Limits
from optpart.exact.series.problem import Series
from optpart.exact.series.repeats import Path, Run, path_of_runs, repeats, solve
from optpart.exact.series.solve import solve_series
from optpart.interop.formats.native import from_dict
from optpart.solution.result import Budget
from optpart.testing.repeats import draw_repeats

_BUDGET = Budget(seconds=60)
_LIMITS = Limits(60, 1, 0, None)


def least(path: Path) -> int | None:
    """Try every device for every vertex."""
    runs = [run for run in path.runs for _ in range(run.length)]
    last = set((np.cumsum([run.length for run in path.runs]) - 1).tolist())
    best = None
    for devices in product(*(run.time for run in runs)):
        held = dict.fromkeys(path.capacity, 0)
        value = 0
        for i, (run, d) in enumerate(zip(runs, devices, strict=True)):
            value += run.time[d]
            if d in held:
                held[d] += run.need
            if i + 1 < len(runs) and devices[i + 1] != d:
                crossing = (run.after if i in last else run.inside).get((d, devices[i + 1]))
                value = np.inf if crossing is None else value + crossing
        if value < np.inf and all(held[d] <= path.capacity[d] for d in held):
            best = value if best is None else min(best, value)
    return best


def solved(path: Path) -> int | None:
    bound = None
    for found in solve(path, _LIMITS):
        if found.impossible:
            return None
        bound = found.bound if found.bound is not None else bound
    return bound


@pytest.mark.parametrize("seed", range(25))
def test_the_model_has_the_optimum_of_all_placements(seed):
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 4))
    place = {d: (int(rng.integers(9)), int(rng.integers(9))) for d in range(k)}

    def crossings():
        """Distances in the plane, which obey the triangle inequality."""
        pairs = [(d, e) for d in range(k) for e in range(k) if d != e]
        return {
            (d, e): abs(place[d][0] - place[e][0]) + abs(place[d][1] - place[e][1])
            for d, e in pairs
        }

    runs, left = [], 7
    while left:
        length = int(rng.integers(1, left + 1))
        time = {d: int(rng.integers(6)) for d in range(k)}
        runs.append(Run(length, time, int(rng.integers(1, 4)), crossings(), crossings()))
        left -= length
    total = sum(run.length * run.need for run in runs)
    capacity = {d: int(total * rng.uniform(0.2, 0.8)) for d in range(k) if rng.random() < 0.9}
    path = Path(runs, capacity, [], [])

    assert solved(path) == least(path)


@pytest.mark.parametrize("seed", range(16))
def test_series_agrees_with_enumeration_on_paths_that_repeat(seed):
    instance = draw_repeats(seed)
    expected = enumerate_all(instance, budget=_BUDGET)
    result = solve_series(instance, budget=_BUDGET)

    assert (result.status, result.makespan) == (expected.status, expected.makespan)


def test_most_draws_that_repeat_are_solved_as_runs():
    solved_so = [path_of_runs(Series(draw_repeats(seed))) is not None for seed in range(200)]
    assert 30 <= sum(solved_so) <= 170


def path(blocks, *, bandwidth=1, **other):
    names = [f"b{i}" for i in range(blocks)]
    return from_dict(
        {
            "format": "optpart-instance/1",
            "vertices": [{"name": name, "ops": 2, "memory": 1, "outputs": [1]} for name in names],
            "edges": [[u, v, 0] for u, v in pairwise(names)],
            "devices": [{"name": "a"}, {"name": "b"}, {"name": "c"}],
            "bandwidth": bandwidth,
            **other,
        }
    )


def test_like_vertices_are_one_run():
    (run,) = path_of_runs(Series(path(6))).runs
    assert (run.length, run.time) == (6, {0: 2, 1: 2, 2: 2})


def test_a_way_that_is_shorter_by_a_third_device_breaks_a_run():
    # From a to b by way of c: 1/4 + 1/4 instead of 1.
    assert path_of_runs(Series(path(6, bandwidth=[[0, 1, 4], [1, 0, 4], [4, 4, 0]]))) is None


def test_a_graph_that_branches_does_not_repeat():
    instance = path(6)
    assert repeats(instance)
    names = list(instance.graph.names)
    edges = [[u, v, 0] for u, v in pairwise(names)]
    assert not repeats(path(6, edges=[*edges, ["b0", "b2", 0]]))


def test_colocated_vertices_are_no_part_of_a_run():
    instance = path(9, colocation=[["b0", "b8"]])
    found = path_of_runs(Series(instance))
    assert [run.length for run in found.runs] == [1, 7, 1]
    assert found.same == [(0, 2)]
