"""HEFT whose colocation groups are placed by load first, and ranked one member after another."""

from __future__ import annotations

import numpy as np
import pytest

from optpart import Cluster, Device, GraphBuilder, Instance, Model, retime
from optpart.kernels.compiled import arrays
from optpart.solution.verifier import verify
from optpart.strategies.base import Partitioner
from optpart.strategies.partition.heft import heft
from optpart.strategies.partition.heft_groups import heft_groups
from optpart.strategies.partition.insertion import inserted
from optpart.testing.draw import draw_instance


def length(instance: Instance, strategy: Partitioner = heft_groups) -> float:
    found = strategy(instance, np.random.default_rng(0))
    schedule = retime(instance, found.placement, found.order)
    assert verify(instance, schedule) == []
    return float(schedule.makespan(instance))


def on(builder: GraphBuilder, *speeds: int) -> Instance:
    return Instance(builder.build(), Cluster.of([Device(f"d{s}", s) for s in speeds]))


def test_a_group_goes_where_all_of_it_ends_first() -> None:
    """Its first member, of one operation, ends earlier on the slow device; the rest does not."""
    builder = GraphBuilder().vertex("x", 30).vertex("a", 1).vertex("b", 29).colocate("a", "b")
    instance = on(builder.edge("a", "b", None), 10, 1)
    assert length(instance, heft) == 30
    assert length(instance) == 6


def test_members_are_ranked_one_after_another() -> None:
    """By paths, q (2 + 6) comes before p (2 + 3); but four members of 3 each follow p in turn."""
    builder = GraphBuilder().vertex("q", 2, devices=["a"]).vertex("p", 2, devices=["a"])
    builder.vertex("r", 6, devices=["c"]).edge("q", "r", None)
    for member in "efgh":
        builder.vertex(member, 3, devices=["b"]).edge("p", member, None)
    graph = builder.colocate(*"efgh").build()
    instance = Instance(graph, Cluster.of([Device(name) for name in "abc"]))
    assert length(instance, heft) == 16
    assert length(instance) == 14


def test_memory_is_kept_for_groups() -> None:
    """HEFT places x first, on the fast device, where the group then finds no room."""
    builder = GraphBuilder().vertex("x", 40, memory=5)
    for member in "ab":
        builder.vertex(member, 30, memory=4)
    devices = [Device("fast", 10, memory=10), Device("slow", 1, memory=100)]
    graph = builder.colocate("a", "b").build()
    instance = Instance(graph, Cluster.of(devices), Model(memory="estimate"))
    assert length(instance, heft) == 60
    assert length(instance) == 40


def test_without_groups_it_is_heft() -> None:
    for seed in range(20):
        instance = draw_instance(
            seed, vertices=12, colocation=False, separation=False, no_links=False
        )
        one, other = (f(instance, np.random.default_rng(0)) for f in (heft, heft_groups))
        assert one.placement.tolist() == other.placement.tolist()
        assert one.order == other.order


@pytest.mark.parametrize(("most", "devices"), [(np.inf, [0, 0, 0]), (2.0, [0, 0, 1])])
def test_a_full_device_is_left_out_while_there_is_another(most: float, devices: list[int]) -> None:
    builder = GraphBuilder().vertex("a", 4).vertex("b", 4).vertex("c", 2)
    instance = on(builder.edge("a", "b", None).edge("b", "c", None), 4, 2)
    most *= arrays(instance).scale
    found = inserted(instance, np.arange(3, dtype=np.int32), most=most)
    assert found.state.device.tolist() == devices
