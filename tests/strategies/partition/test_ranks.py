"""What a vertex, a transfer and a device cost on average."""

from __future__ import annotations

import numpy as np
import pytest

from optpart import Cluster, Device, GraphBuilder, Instance
from optpart.kernels.compiled import arrays
from optpart.strategies.partition.ranks import mean_run, mean_transfer, speed_share, upward_rank
from optpart.testing.draw import random_instance


def test_mean_times() -> None:
    """Mean speed 2; mean bandwidth 3 on the half of the pairs that is not infinite; latency 4."""
    builder = GraphBuilder().vertex("a", 6, outputs=[12]).vertex("b", 4).edge("a", "b")
    links = Cluster.of([Device("d0", 1), Device("d1", 3)], [[None, 3], [None, None]], 4)
    instance = Instance(builder.build(), links)
    scale = arrays(instance).scale
    assert (mean_run(instance) / scale).tolist() == [3, 2]
    assert (mean_transfer(instance) / scale).tolist() == [12 / 3 / 2 + 4]


def test_given_times_count_by_their_mean() -> None:
    builder = GraphBuilder().vertex("a").vertex("b")
    builder.output("a", 0, [[0, 3, 4], [None, 0, 5], [6, 7, 0]])
    instance = Instance(
        builder.edge("a", "b").build(), Cluster.uniform(3), durations=[[1, 2, 6], [4, None, 8]]
    )
    scale = arrays(instance).scale
    assert (mean_run(instance) / scale).tolist() == [3, 6]
    assert (mean_transfer(instance) / scale).tolist() == [5]


@pytest.mark.parametrize("seed", range(8))
def test_upward_ranks_are_made_of_them(seed: int) -> None:
    instance = random_instance(np.random.default_rng(seed))
    graph, run, transfer = instance.graph, mean_run(instance), mean_transfer(instance)
    rank = run.copy()
    for v in graph.topological_order[::-1]:
        edges = np.flatnonzero(graph.edge_source == v)
        after = transfer[graph.edge_tensor[edges]] + rank[graph.edge_target[edges]]
        rank[v] += after.max(initial=0.0)
    assert rank == pytest.approx(upward_rank(instance))


class TestSpeedShare:
    def test_by_speed(self) -> None:
        graph = GraphBuilder().vertex("a", 1).build()
        cluster = Cluster.of([Device("d0", 1), Device("d1", 5), Device("d2", 2)])
        assert speed_share(Instance(graph, cluster)).tolist() == [1 / 8, 5 / 8, 2 / 8]

    def test_by_given_run_times_relative_to_the_mean_of_each_vertex(self) -> None:
        """Twice as slow for a, four times for b: 2/3 and 2/5 of the mean, or 4/3 and 8/5."""
        graph = GraphBuilder().vertex("a").vertex("b").build()
        instance = Instance(graph, Cluster.uniform(2), durations=[[2, 4], [20, 80]])
        fast, slow = 2 / (2 / 3 + 2 / 5), 2 / (4 / 3 + 8 / 5)
        expected = [fast / (fast + slow), slow / (fast + slow)]
        assert speed_share(instance).tolist() == pytest.approx(expected)

    def test_a_device_that_nothing_may_use_has_none(self) -> None:
        graph = GraphBuilder().vertex("a", 1, devices=["d1"]).build()
        assert speed_share(Instance(graph, Cluster.uniform(2))).tolist() == [0, 1]
        graph = GraphBuilder().vertex("a").build()
        instance = Instance(graph, Cluster.uniform(3), durations=[[3, None, 3]])
        assert speed_share(instance).tolist() == [0.5, 0, 0.5]

    def test_run_times_of_zero(self) -> None:
        graph = GraphBuilder().vertex("a").build()
        instance = Instance(graph, Cluster.uniform(2), durations=[[0, 0]])
        assert speed_share(instance).tolist() == [0.5, 0.5]
        instance = Instance(graph, Cluster.uniform(2), durations=[[0, 1]])
        assert speed_share(instance).tolist() == pytest.approx([2000 / 2001, 1 / 2001])

    def test_of_an_empty_graph(self) -> None:
        assert speed_share(Instance(GraphBuilder().build(), Cluster.uniform(2))).sum() == 1
