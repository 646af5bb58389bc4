"""Task parallel ([B] Alg. 4.2): a fringe of as many ready units as devices, one a device."""

from __future__ import annotations

import numpy as np

from optpart import Cluster, Device, GraphBuilder, Instance, Model
from optpart.strategies.partition.task_parallel import task_parallel


def placement(
    builder: GraphBuilder, cluster: Cluster, model: Model | None = None
) -> dict[str, int]:
    instance = Instance(builder.build(), cluster, model or Model())
    partition = task_parallel(instance, np.random.default_rng(0))
    return dict(zip(instance.graph.names, partition.placement.tolist(), strict=True))


def of(vertices: str, *edges: str) -> GraphBuilder:
    builder = GraphBuilder()
    for name in vertices:
        builder.vertex(name, 1, memory=1)
    for u, v in edges:
        builder.edge(u, v, None)
    return builder


def test_chains_stay_each_on_its_device() -> None:
    chains = of("abcxyz", "ab", "bc", "xy", "yz")
    assert placement(chains, Cluster.uniform(2)) == {"a": 0, "b": 0, "c": 0, "x": 1, "y": 1, "z": 1}


def test_the_fringe_is_that_of_highest_up_rank() -> None:
    """u and v end at once and x at 2 edges: of the three, x and u come first."""
    assert placement(of("uvxyz", "xy", "yz"), Cluster.uniform(2)) == {
        "x": 0,
        "u": 1,
        "y": 0,
        "v": 1,
        "z": 0,
    }


def test_the_pair_with_most_inputs_is_chosen_first() -> None:
    """After a and b on d0 and c on d1: y has one input there, x two, so x goes there."""
    builder = GraphBuilder().vertex("a", devices=["d0"]).vertex("b", devices=["d0"])
    builder.vertex("c", devices=["d1"]).vertex("y").vertex("x")
    for u, v in ("ay", "ax", "bx"):
        builder.edge(u, v, None)
    assert placement(builder, Cluster.uniform(2)) == {"a": 0, "c": 1, "b": 0, "y": 1, "x": 0}


def test_what_becomes_ready_waits_for_the_next_fringe() -> None:
    """a (rank 1) and c make the first fringe, b alone the second, on the device of its input."""
    assert placement(of("abc", "ab"), Cluster.uniform(3)) == {"a": 0, "c": 1, "b": 0}


def test_a_critical_path_does_not_move_without_need() -> None:
    """[B] §4.2: its operations are never ready together."""
    path = of("abcd", "ab", "bc", "cd")
    assert set(placement(path, Cluster.uniform(4)).values()) == {0}


def test_a_unit_that_fits_no_device_left_waits_for_the_next_fringe() -> None:
    """p and q need d0: the second fringe is q and r."""
    builder = GraphBuilder().vertex("p", devices=["d0"]).vertex("q", devices=["d0"]).vertex("r")
    assert placement(builder, Cluster.uniform(2)) == {"p": 0, "q": 0, "r": 1}


def test_colocated_vertices_count_as_one() -> None:
    """{a, x} → b, y: both have their input on d0, and b is of lower number."""
    builder = of("axby", "ab", "xy").colocate("a", "x")
    assert placement(builder, Cluster.uniform(2)) == {"a": 0, "x": 0, "b": 0, "y": 1}


def test_a_device_that_is_full_is_left_out() -> None:
    cluster = Cluster.of([Device("d0", memory=1), Device("d1", memory=3)])
    path = of("abcd", "ab", "bc", "cd")
    assert placement(path, cluster, Model(memory="estimate")) == {"a": 0, "b": 1, "c": 1, "d": 1}
