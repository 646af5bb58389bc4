"""Wide layers: what they prove against enumeration, whatever their shape, sizes and speeds."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from optpart import Instance
from optpart.base.errors import UnsupportedError
from optpart.exact.enumeration import enumerate_all
from optpart.exact.layers import layer
from optpart.exact.layers.solve import check_scope, exact_grid, solve_layers, stages
from optpart.exact.layers.sums import subsets
from optpart.interop.formats.native import from_dict
from optpart.interop.generate.workflow import workflow
from optpart.solution.goal import Goal
from optpart.solution.result import Budget, Status
from optpart.solution.termination import Termination
from optpart.solution.verifier import verify
from optpart.testing.modules import draw_modules

_BUDGET = Budget(60, 1)
_SHAPES = {"fork-join": 7, "blast": 5, "montage": 1, "epigenomics": 1}


def agrees(instance: Instance) -> Status:
    """Compare with enumeration, and return the status."""
    expected = enumerate_all(instance, budget=_BUDGET)
    result = solve_layers(instance, budget=_BUDGET)
    assert expected.status is Status.OPTIMAL
    assert result.lower_bound is None or result.lower_bound <= expected.makespan
    if result.schedule is not None:
        assert not verify(instance, result.schedule)
    if result.status is Status.OPTIMAL:
        assert result.makespan == expected.makespan
    return result.status


def drawn_workflow(shape, seed, devices=None):
    """Speeds may make times that are rounded, so that they are hardly proportional."""
    rng = np.random.default_rng(seed)
    width = int(rng.integers(1, _SHAPES[shape] + 1))
    drawn = workflow(shape, width, devices or int(rng.integers(1, 4)), seed)
    return drawn.instance(Fraction(1, int(rng.integers(1, 500))), int(rng.integers(0, 10**6)))


def drawn(seed):
    """One or two vertices before and after a layer of small sizes, many of them equal or zero."""
    rng = np.random.default_rng(seed)
    wide, k, most = int(rng.integers(1, 6)), int(rng.integers(1, 4)), int(rng.choice([2, 4, 50]))
    begins = "rs" if wide > 2 and rng.random() < 0.4 else "s"
    names = [*begins, *(f"w{i}" for i in range(wide)), "t", "u"]
    edges = [[begin, f"w{i}", int(rng.integers(2))] for i in range(wide) for begin in begins]
    chained = rng.random() < 0.5
    ends = "t" if chained else "tu"
    edges += [[f"w{i}", end, int(rng.integers(2))] for i in range(wide) for end in ends]
    edges += [["t", "u", 0]] * chained + [["w0", "w1", 0]] * (wide > 2 and rng.random() < 0.5)
    edges += [["s", "t", 0]] * (wide > 2 and rng.random() < 0.3)
    alike = rng.random() < 0.4

    def matrix(low):
        one = int(rng.integers(low, 4))
        return [[one if alike else int(rng.integers(low, 4)) for _ in range(k)] for _ in range(k)]

    return from_dict(
        {
            "format": "optpart-instance/1",
            "vertices": [
                {
                    "name": name,
                    "ops": int(rng.integers(0, most)),
                    "outputs": rng.integers(0, 6, size=2).tolist(),
                }
                for name in names
            ],
            "edges": edges,
            "devices": [
                {"name": f"d{d}", "speed": 1 if alike else int(rng.integers(1, 4))}
                for d in range(k)
            ],
            "bandwidth": matrix(1),
            "latency": matrix(0),
        }
    )


def fork(seed):
    """Two or three tasks for each of three devices that are alike, so that first ones count."""
    rng = np.random.default_rng(seed)
    wide, latency = int(rng.integers(6, 8)), int(rng.integers(2))
    names = ["s", *(f"w{i}" for i in range(wide)), "t"]
    return from_dict(
        {
            "format": "optpart-instance/1",
            "vertices": [
                {"name": "s", "ops": 0, "outputs": rng.integers(1, 9, size=wide).tolist()},
                *(
                    {"name": name, "ops": int(rng.integers(10, 13)), "outputs": [int(size)]}
                    for name, size in zip(names[1:-1], rng.integers(1, 9, size=wide), strict=True)
                ),
                {"name": "t", "ops": 0},
            ],
            "edges": [
                *(["s", name, i] for i, name in enumerate(names[1:-1])),
                *([name, "t", 0] for name in names[1:-1]),
            ],
            "devices": [{"name": name} for name in "xyz"],
            "bandwidth": 1,
            "latency": latency,
        }
    )


class TestAgainstEnumeration:
    @pytest.mark.parametrize("seed", range(16))
    def test_forks_on_devices_that_are_alike(self, seed):
        assert agrees(fork(seed)) is Status.OPTIMAL

    @pytest.mark.parametrize("shape", _SHAPES)
    @pytest.mark.parametrize("seed", range(12))
    def test_workflows(self, shape, seed):
        assert agrees(drawn_workflow(shape, seed)) is Status.OPTIMAL

    @pytest.mark.parametrize("seed", range(40))
    def test_small_sizes(self, seed):
        assert agrees(drawn(seed)) is Status.OPTIMAL

    @pytest.mark.parametrize("seed", range(40))
    def test_modules_that_edges_jump_over(self, seed):
        instance = draw_modules(seed, vertices=7, devices=2, memory=False)
        try:
            check_scope(instance, Goal())
        except UnsupportedError:
            return
        if (grid := exact_grid(instance)) and stages(instance, grid):
            agrees(instance)

    @pytest.mark.parametrize("seed", range(8))
    def test_samples_of_a_layer_prove_nothing_of_their_own(self, seed, monkeypatch):
        monkeypatch.setattr(layer, "MOST_ITEMS", 3)
        monkeypatch.setattr(layer, "_SMALLEST", 3)
        agrees(drawn(seed))
        agrees(drawn_workflow("fork-join", seed, 3))


def test_times_of_workflows_are_rounded():
    layers = [drawn_workflow("blast", seed) for seed in range(12)]
    rounded = [
        any(stage.sizes.less.values())
        for instance in layers
        for stage in stages(instance, exact_grid(instance))
    ]
    assert 3 < sum(rounded) < len(rounded)


def test_hubs_have_their_devices_given():
    instance = drawn_workflow("blast", 1)
    first, last = stages(instance, exact_grid(instance))
    assert [instance.graph.names[v] for v in first.given] == ["split"]
    assert {instance.graph.names[v] for v in last.given} >= {"collect_hits", "collect_messages"}


def test_an_edge_that_jumps_over_a_cut_vertex_leaves_a_gap_or_is_proven():
    """The tensor of ``a`` is needed again after ``c``, wherever ``d`` runs."""
    instance = from_dict(
        {
            "format": "optpart-instance/1",
            "vertices": [{"name": name, "ops": 4, "outputs": [9]} for name in "abcd"],
            "edges": [["a", "c", 0], ["b", "c", 0], ["c", "d", 0], ["a", "d", 0]],
            "devices": [{"name": "x"}, {"name": "y"}],
            "bandwidth": 1,
        }
    )
    agrees(instance)


class TestScope:
    @pytest.mark.parametrize(
        "other",
        [
            {"model": {"communication": "port"}},
            {"model": {"memory": "estimate"}, "devices": [{"name": "x", "memory": 9}]},
            {"colocation": [["a", "b"]]},
        ],
    )
    def test_what_it_does_not_know_is_refused(self, other):
        document = {
            "format": "optpart-instance/1",
            "vertices": [{"name": name, "ops": 1} for name in "ab"],
            "devices": [{"name": "x"}],
        }
        with pytest.raises(UnsupportedError):
            solve_layers(from_dict(document | other), budget=_BUDGET)

    def test_a_limit_is_refused(self):
        with pytest.raises(UnsupportedError):
            solve_layers(drawn(0), goal=Goal(makespan=Fraction(9)), budget=_BUDGET)

    @pytest.mark.parametrize("missing", ["speed", "link"])
    def test_other_speeds_and_missing_links_are_not_solved(self, missing):
        rows = [[0, 0], [0, 0]] if missing == "link" else 1
        times = [[2, 3], [3, 2]] if missing == "speed" else [[2, 2], [3, 3]]
        instance = from_dict(
            {
                "format": "optpart-instance/1",
                "vertices": [{"name": name, "ops": 0} for name in "ab"],
                "edges": [["a", "b", None]] * (missing == "link"),
                "durations": times,
                "devices": [{"name": "x"}, {"name": "y"}],
                "bandwidth": rows,
            }
        )
        result = solve_layers(instance, budget=_BUDGET)
        assert result.termination is Termination.UNSUPPORTED

    def test_a_placement_is_kept(self):
        instance = drawn_workflow("fork-join", 5, 2)
        result = solve_layers(instance, goal=Goal(placement={0: 1}), budget=_BUDGET)
        expected = enumerate_all(instance, goal=Goal(placement={0: 1}), budget=_BUDGET)
        assert (result.status, result.makespan) == (Status.OPTIMAL, expected.makespan)


@pytest.mark.parametrize("seed", range(20))
def test_subsets_within_limits(seed):
    rng = np.random.default_rng(seed)
    size = tuple(rng.integers(0, 6, size=int(rng.integers(0, 7))).tolist())
    least, most = sorted(rng.integers(-2, 12, size=2).tolist())
    expected = [
        list(chosen)
        for count in range(len(size) + 1)
        for chosen in combinations(range(len(size)), count)
        if least <= sum(size[i] for i in chosen) <= most
    ]
    assert sorted(subsets(size, least, most)) == sorted(expected)
