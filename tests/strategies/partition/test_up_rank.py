"""Up-rank as a strategy: by falling up-rank ([B] §4.1), to devices in turn."""

from __future__ import annotations

import numpy as np

from optpart import Cluster, Device, GraphBuilder, Instance, Model
from optpart.strategies.partition.up_rank import up_rank


def placement(builder: GraphBuilder, cluster: Cluster, model: Model | None = None) -> list[int]:
    instance = Instance(builder.build(), cluster, model or Model())
    partition = up_rank(instance, np.random.default_rng(0))
    assert partition.order is None
    return [int(device) for device in partition.placement]


def graph() -> GraphBuilder:
    """a → b → c with ranks 2, 1, 0; x → y with 1, 0."""
    builder = GraphBuilder()
    for name in "axbyc":
        builder.vertex(name, 1, memory=1)
    return builder.edge("a", "b", None).edge("b", "c", None).edge("x", "y", None)


def test_the_farthest_from_the_end_goes_first() -> None:
    """a, then x and b, then y and c."""
    assert placement(graph(), Cluster.uniform(3)) == [0, 1, 2, 0, 1]


def test_a_group_has_the_rank_of_the_whole() -> None:
    """Units a (3), {x, b} (2), {y} (0), c (0): b → c and x → y leave the group."""
    builder = graph().colocate("x", "b")
    assert placement(builder, Cluster.uniform(2)) == [0, 1, 1, 0, 1]


def test_a_device_that_is_full_is_passed_over() -> None:
    cluster = Cluster.of([Device("d0", memory=1), Device("d1", memory=2), Device("d2")])
    assert placement(graph(), cluster, Model(memory="estimate")) == [0, 1, 2, 1, 2]
