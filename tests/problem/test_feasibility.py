"""Reasons of infeasibility: true, and in words that a person can act on."""

from __future__ import annotations

import numpy as np
import pytest

from optpart import Cluster, Device, GraphBuilder, Instance, Model
from optpart.problem.feasibility import contradiction, excluded
from optpart.testing.brute_force import optimum
from optpart.testing.draw import random_instance

ESTIMATE = Model(memory="estimate")


def needs(**memory: int) -> GraphBuilder:
    builder = GraphBuilder()
    for name, amount in memory.items():
        builder.vertex(name, 1, memory=amount, device_type="GPU")
    return builder


def cpu_and_gpus(*memory: int) -> Cluster:
    gpus = [Device(f"gpu{d}", 1, "GPU", amount) for d, amount in enumerate(memory)]
    return Cluster.of([Device("cpu", 1, "CPU", 1000), *gpus], bandwidth=1)


def test_a_smallest_set_of_units_that_do_not_fit_is_named() -> None:
    graph = needs(a=50, b=40, c=30, d=10, e=20).build()
    instance = Instance(graph, cpu_and_gpus(100), ESTIMATE)
    assert contradiction(instance) == (
        "not enough memory on GPU: units a, b, c may run only there and need 120, "
        "but 100 is available"
    )


def test_devices_that_are_not_a_whole_type_are_named() -> None:
    builder = GraphBuilder()
    for name in "ab":
        builder.vertex(name, 1, memory=60, devices=["gpu1"])
    instance = Instance(builder.build(), cpu_and_gpus(100, 100), ESTIMATE)
    assert contradiction(instance) == (
        "not enough memory on gpu1: units a, b may run only there and need 120, "
        "but 100 is available"
    )


def test_units_restricted_to_some_of_the_devices_count_as_well() -> None:
    """a and b must be on gpu0 or gpu1, c on gpu0 and d on gpu1."""
    builder = needs(a=90, b=90)
    builder.vertex("c", 1, memory=20, devices=["gpu0"]).vertex("d", 1, memory=5, devices=["gpu1"])
    instance = Instance(builder.build(), cpu_and_gpus(100, 99), ESTIMATE)
    assert contradiction(instance) == (
        "not enough memory on GPU: units a, b, c may run only there and need 200, "
        "but 199 is available"
    )


def test_many_units_are_counted() -> None:
    graph = needs(**{f"v{i:02}": 10 for i in range(20)}).build()
    reason = contradiction(Instance(graph, cpu_and_gpus(145), ESTIMATE))
    assert "v10, v11 and 3 more may run only there and need 150, but 145 is" in reason


def test_a_unit_larger_than_every_device_is_named() -> None:
    graph = needs(a=101, b=60).colocate("a", "b").build()
    assert contradiction(Instance(graph, cpu_and_gpus(160, 100), ESTIMATE)) == (
        "the group of a (2 vertices) needs memory 161, but the largest device that it may use "
        "has 160"
    )


def test_colocated_and_separated() -> None:
    graph = needs(a=1, b=1).colocate("a", "b").separate("a", "b").build()
    assert contradiction(Instance(graph, cpu_and_gpus(9))) == (
        "a and b are both colocated and separated"
    )


@pytest.mark.parametrize("memory", ["none", "estimate"])
def test_no_reason_is_given_where_a_schedule_exists(memory: str) -> None:
    found = 0
    for seed in range(250):
        instance = random_instance(np.random.default_rng(seed), 5, 3, memory=memory)
        if contradiction(instance):
            found += 1
            assert optimum(instance) is None
    assert found >= (0 if memory == "none" else 20)


class TestExcluded:
    """The sentence for a proof that names no smaller conflict."""

    def test_names_constraints_that_can_exclude_a_schedule(self) -> None:
        graph = GraphBuilder().vertex("a", 1, memory=1, devices=["d0"]).vertex("b", 1).build()
        instance = Instance(graph, Cluster.uniform(2, memory=1), ESTIMATE)
        assert excluded(instance, "bounds") == (
            "no schedule satisfies allowed devices and memory (proven by bounds)"
        )

    def test_names_the_given_decisions_last(self) -> None:
        instance = Instance(GraphBuilder().vertex("a", 1).build(), Cluster.uniform(1))
        assert excluded(instance, "search", "makespan at most 0") == (
            "no schedule satisfies makespan at most 0 (proven by search)"
        )

    def test_a_tensor_that_cannot_cross_is_a_missing_link(self) -> None:
        builder = GraphBuilder().vertex("a", 1).vertex("b", 1)
        output = builder.output("a", 1, [[0, None], [1, 0]])
        graph = builder.edge("a", "b", output).build()
        instance = Instance(graph, Cluster.uniform(2, bandwidth=1))
        assert (
            excluded(instance, "bounds") == "no schedule satisfies missing links (proven by bounds)"
        )
