"""Crowded devices have much work in comparison with the longest path."""

from __future__ import annotations

import numpy as np
import pytest

from optpart import Cluster, GraphBuilder, Instance
from optpart.kernels.compiled import arrays
from optpart.problem.cluster import Device
from optpart.search.load_ratio import is_load_bound, load_ratio
from optpart.search.plan import links


def jobs(count: int, devices: int, ops: int = 1) -> Instance:
    builder = GraphBuilder()
    for i in range(count):
        builder.vertex(f"v{i}", ops)
    return Instance(builder.build(), Cluster.uniform(devices, bandwidth=1))


def chain(count: int, devices: int) -> Instance:
    builder = GraphBuilder().vertex("v0", 1, outputs=[1])
    for i in range(1, count):
        builder.vertex(f"v{i}", 1, outputs=[1]).edge(f"v{i - 1}", f"v{i}")
    return Instance(builder.build(), Cluster.uniform(devices, bandwidth=1))


def test_it_is_the_time_of_all_work_on_all_devices_over_a_longest_path() -> None:
    assert load_ratio(arrays(jobs(6, 2))) == 3.0
    assert load_ratio(arrays(chain(6, 2))) == 0.5
    graph = GraphBuilder().vertex("a", 4).vertex("b", 4).build()
    unlike = Instance(graph, Cluster.of([Device("slow", 1), Device("fast", 3)], 1))
    assert load_ratio(arrays(unlike)) == pytest.approx(2.0 / (4.0 / 3.0))


def test_a_device_that_is_not_allowed_does_not_count() -> None:
    builder = GraphBuilder()
    for name in "abcd":
        builder.vertex(name, 1, devices=["d0"])
    assert load_ratio(arrays(Instance(builder.build(), Cluster.uniform(2, bandwidth=1)))) == 4.0


@pytest.mark.parametrize("count", [0, 3])
def test_without_work_nothing_is_crowded(count: int) -> None:
    assert not is_load_bound(arrays(jobs(count, 2, ops=0)))


def test_a_chain_on_many_devices_is_not_crowded() -> None:
    assert not is_load_bound(arrays(chain(9, 3)))
    assert is_load_bound(arrays(jobs(9, 3)))


def test_large_crowded_graphs_move_late_and_draw_devices_alike() -> None:
    unlike = [Device("slow", 1), Device("fast", 9)]
    for count, crowded in ((1200, True), (900, False)):
        instance = Instance(jobs(count, 2).graph, Cluster.of(unlike, 1))
        g = links(instance)
        assert (g.later > 0.0) == crowded
        assert (np.bincount(g.targets).max() == 1) == crowded
    assert links(chain(1200, 3)).later == 0.0
