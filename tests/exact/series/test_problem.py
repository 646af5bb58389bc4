"""The instance by parts: the memory of a group counts once."""

from time import perf_counter

import numpy as np
import pytest

from optpart.exact.enumeration import enumerate_all
from optpart.exact.series.bound import series_bound
from optpart.exact.series.dual import Pricing
from optpart.exact.series.problem import Series
from optpart.exact.series.solve import solve_series
from optpart.interop.formats.native import from_dict
from optpart.solution.result import Budget, Status

_CHAIN = [("a", "b"), ("b", "c"), ("c", "d")]
_FORK = [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")]


def _instance(edges, group):
    """The fast device has exactly the room that the group and another vertex need."""
    return from_dict(
        {
            "format": "optpart-instance/1",
            "vertices": [{"name": v, "ops": 6, "memory": 4} for v in "abcd"],
            "edges": [[u, v, None] for u, v in edges],
            "devices": [
                {"name": "d0", "speed": 6, "memory": 12},
                {"name": "d1", "speed": 1, "memory": 8},
            ],
            "bandwidth": [[None, 1], [1, None]],
            "model": {"communication": "delay", "memory": "estimate"},
            "colocation": [list(group)],
        }
    )


@pytest.mark.parametrize("edges", [_CHAIN, _FORK])
@pytest.mark.parametrize("group", ["ab", "bc", "ad", "bd", "cd"])
def test_the_memory_of_a_group_counts_once_inside_and_between_parts(edges, group):
    instance = _instance(edges, group)
    expected = enumerate_all(instance, budget=Budget(60))
    result = solve_series(instance, budget=Budget(60))

    assert expected.status is Status.OPTIMAL
    assert (result.status, result.makespan) == (Status.OPTIMAL, expected.makespan)
    assert series_bound(instance, seconds=10, makespan=None) <= expected.makespan
    series = Series(instance)
    assert series.charge.sum() == series.need.sum()
    assert np.flatnonzero(series.charge == 0).tolist() == ["abcd".index(group[1])]


def test_the_cost_of_what_is_far_too_large_for_a_device_fits_64_bits():
    instance = from_dict(
        {
            "format": "optpart-instance/1",
            "vertices": [
                {"name": f"v{v}", "ops": 6000 + v, "memory": 1 if v % 3 else 10**6 + v}
                for v in range(8)
            ],
            "edges": [[f"v{v}", f"v{v + 1}", None] for v in range(7)],
            "devices": [
                {"name": "d0", "speed": 6, "memory": 3},
                {"name": "d1", "speed": 1, "memory": 2_000_020},
                {"name": "d2", "speed": 1, "memory": 2_000_020},
            ],
            "bandwidth": [[None, 1, 1], [1, None, 1], [1, 1, None]],
            "model": {"communication": "delay", "memory": "estimate"},
        }
    )
    pricing = Pricing(Series(instance), 10**6)
    dual = pricing.relax(np.array([10.0**6, 0, 0]), 30_000, perf_counter() + 60)

    assert (dual.cost >= 0).all()
    assert dual.cost[0, 0] > 10**6 >= dual.cost[1, 0]


def test_a_part_too_wide_for_either_method_is_left_out(monkeypatch):
    graph = {
        "format": "optpart-instance/1",
        "vertices": [{"name": f"v{v}", "ops": 6, "memory": 1} for v in range(40)],
        "edges": [[f"v{v}", f"v{v + 10}", None] for v in range(30)],
        "devices": [{"name": "d0", "speed": 6, "memory": 30}, {"name": "d1", "speed": 1}],
        "bandwidth": [[None, 1], [1, None]],
        "model": {"communication": "delay", "memory": "estimate"},
    }
    instance = from_dict(graph)
    (wide,) = Series(instance).stretches
    assert wide.lattice is None  # 5^10 downsets
    assert wide.chains is not None
    monkeypatch.setattr("optpart.exact.series.problem._MOST_STEPS", 1000)
    (wide,) = Series(instance).stretches
    assert wide.chains is None


def test_downsets_of_a_long_part_are_counted_with_its_vertices(monkeypatch):
    instance = _instance([("a", "c"), ("b", "d")], "ab")
    (part,) = Series(instance).stretches
    assert part.lattice is not None
    monkeypatch.setattr("optpart.exact.series.lattice._MOST_ENTRIES", 4)
    (part,) = Series(instance).stretches
    assert part.lattice is None
