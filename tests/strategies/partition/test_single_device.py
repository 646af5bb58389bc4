"""Everything on one device ([B] §5.2.2)."""

from __future__ import annotations

import numpy as np
import pytest

from optpart import Cluster, Device, GraphBuilder, InputError, Instance, Model
from optpart.strategies.base import NoPlacementError
from optpart.strategies.partition.single_device import single_device


def placement(instance: Instance, device: str | None = None) -> set[int]:
    return set(single_device(instance, np.random.default_rng(0), device=device).placement.tolist())


def instance(memory: int | None = None, builder: GraphBuilder | None = None) -> Instance:
    """Four vertices of memory 1 on devices of speeds 1, 3 and 2; ``memory`` is the fastest's."""
    builder = builder or GraphBuilder()
    for name in "abcd":
        builder.vertex(name, 1, memory=1)
    cluster = Cluster.of([Device("d0", 1), Device("d1", 3, memory=memory), Device("d2", 2)])
    return Instance(builder.build(), cluster, Model(memory="estimate"))


def test_is_the_fastest_unless_told() -> None:
    assert placement(instance()) == {1}
    assert placement(instance(), "d0") == {0}


@pytest.mark.parametrize(("memory", "device"), [(4, 1), (3, 2)])
def test_is_one_that_has_room_for_everything(memory: int, device: int) -> None:
    assert placement(instance(memory)) == {device}


def test_is_one_that_everything_may_use() -> None:
    builder = GraphBuilder().vertex("x", devices=["d0", "d1"]).vertex("y", devices=["d2", "d0"])
    assert placement(instance(None, builder)) == {0}


def test_is_the_one_that_run_times_say_is_fastest() -> None:
    graph = GraphBuilder().vertex("a").vertex("b").build()
    times = [[3, 2, 9], [3, 9, 1]]
    assert placement(Instance(graph, Cluster.uniform(3), durations=times)) == {0}


def test_nothing_crosses_so_links_do_not_matter() -> None:
    graph = GraphBuilder().vertex("a", outputs=[1]).vertex("b").edge("a", "b").build()
    assert placement(Instance(graph, Cluster.uniform(2, bandwidth=0))) == {0}


def test_a_device_that_cannot_take_all_is_an_error_that_names_what_is_left() -> None:
    with pytest.raises(NoPlacementError, match="no device was left for d"):
        placement(instance(3), "d1")


def test_so_is_a_graph_that_no_device_can_take() -> None:
    builder = GraphBuilder().vertex("x", devices=["d0"]).vertex("y", devices=["d2"])
    with pytest.raises(NoPlacementError, match="no device was left for x"):
        placement(instance(None, builder))
    builder = GraphBuilder().vertex("x").vertex("y").separate("x", "y")
    with pytest.raises(NoPlacementError, match="no device was left for y"):
        placement(instance(None, builder))


def test_an_unknown_device_is_an_error_that_lists_all() -> None:
    with pytest.raises(InputError, match="no device 'd7'; choose one of d0, d1, d2"):
        placement(instance(), "d7")
