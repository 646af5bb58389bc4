"""More devices than eight: limits of all of them together need more than 64 bits."""

from __future__ import annotations

import numpy as np
import pytest

from optpart.exact.enumeration import enumerate_all
from optpart.exact.series.bound import series_bound
from optpart.exact.series.dual import Pricing
from optpart.exact.series.problem import Series
from optpart.exact.series.solve import solve_series
from optpart.problem.cluster import Cluster, Device
from optpart.problem.graph import GraphBuilder
from optpart.problem.instance import Instance
from optpart.solution.result import Budget, Status


def diamond(devices: int, seed: int) -> Instance:
    """Draw a diamond and two leaves, three parts, on devices of few speeds."""
    rng = np.random.default_rng(seed)
    builder = GraphBuilder()
    for name in "abcdef":
        builder.vertex(name, int(rng.integers(1, 20)), outputs=[int(rng.integers(1, 9))])
    for edge in ("ab", "ac", "bd", "cd", "de", "df"):
        builder.edge(*edge)
    speeds = rng.integers(1, 6, devices).tolist()
    cluster = Cluster.of([Device(f"d{d}", speed) for d, speed in enumerate(speeds)], 1)
    return Instance(builder.build(), cluster)


@pytest.mark.parametrize("devices", [8, 9, 16])
@pytest.mark.parametrize("seed", range(3))
def test_without_a_known_schedule_nothing_is_excluded_wrongly(devices: int, seed: int) -> None:
    instance = diamond(devices, seed)
    expected = enumerate_all(instance, budget=Budget(60, 1))
    assert expected.status is Status.OPTIMAL
    assert expected.makespan is not None
    found = solve_series(instance, budget=Budget(60, 1))
    assert (found.status, found.makespan) == (Status.OPTIMAL, expected.makespan)
    bound = series_bound(instance, seconds=60.0, makespan=None)
    assert bound is not None
    assert bound <= expected.makespan


@pytest.mark.parametrize("devices", [8, 33, 64])
def test_what_all_memory_costs_fits_64_bits(devices: int) -> None:
    for upper in (100, 10**7, 2**40):
        pricing = Pricing(Series(diamond(devices, 0)), upper)
        dearest = pricing.relax(np.full(devices, 10.0**30), 1, 0.0).price.max()
        assert devices * max(int(dearest), 8 * upper << pricing.shift) < 2**62
