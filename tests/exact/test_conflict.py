"""The smallest set of units without a placement."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from optpart import Budget, Cluster, Device, GraphBuilder, Instance, Model, Status
from optpart.exact.conflict import conflict, memory_conflict
from optpart.methods import registry
from optpart.testing.brute_force import optimum
from optpart.testing.draw import random_instance

ESTIMATE = Model(memory="estimate")


def test_three_of_60_do_not_go_into_two_of_100() -> None:
    builder = GraphBuilder()
    for name, memory in (("small", 1), ("a", 60), ("b", 60), ("c", 60)):
        builder.vertex(name, 1, memory=memory, device_type="GPU")
    devices = [Device("cpu", 1, "CPU"), Device("g0", 1, "GPU", 100), Device("g1", 1, "GPU", 100)]
    instance = Instance(builder.build(), Cluster.of(devices, bandwidth=1), ESTIMATE)
    assert conflict(instance) == (
        "units a, b, c may go to GPU only, and cannot all be placed: "
        "GPU memory (they need 60, 60, 60 of 100, 100)"
    )


def test_separation_of_three_from_one_another_on_two_devices() -> None:
    builder = GraphBuilder()
    for name in "abcd":
        builder.vertex(name, 1)
    builder.separate("a", "b").separate("b", "d").separate("a", "d").separate("a", "c")
    instance = Instance(builder.build(), Cluster.uniform(2))
    assert conflict(instance) == (
        "units a, b, d may go to d0, d1 only, and cannot all be placed: "
        "separation (a apart from b, a apart from d, b apart from d)"
    )


def test_a_link_that_is_missing() -> None:
    builder = GraphBuilder().vertex("a", 1, devices=["d0"]).vertex("b", 1, devices=["d1"])
    builder.vertex("c", 1)
    graph = builder.edge("a", "b", size=1).edge("b", "c", size=1).build()
    instance = Instance(
        graph, Cluster.of([Device("d0"), Device("d1")], bandwidth=[[None, 0], [1, None]])
    )
    assert conflict(instance) == (
        "units a, b may go to d0 or d1 only, and cannot all be placed: missing links (d0 → d1)"
    )


def test_a_tensor_that_cannot_cross() -> None:
    builder = GraphBuilder().vertex("a", 1, devices=["d0"]).vertex("b", 1, devices=["d1"])
    builder.output("a", 1, delay=[[0, None], [0, 0]])
    instance = Instance(builder.edge("a", "b").build(), Cluster.uniform(2))
    assert "missing links (d0 → d1)" in conflict(instance)


def test_a_feasible_instance_has_none() -> None:
    assert conflict(Instance(GraphBuilder().vertex("a", 1).build(), Cluster.uniform(1))) == ""


def test_agrees_with_trying_everything() -> None:
    infeasible = 0
    for seed in range(150):
        instance = random_instance(np.random.default_rng(seed), 5, 3, memory="estimate")
        reason = conflict(instance)
        assert bool(reason) == (optimum(instance) is None)
        infeasible += bool(reason)
    assert infeasible >= 20


def test_no_unit_that_is_named_can_be_spared() -> None:
    """Without any one of the units the others have a placement within all memory limits."""
    checked = 0
    for seed in range(80):
        rng = np.random.default_rng(seed)
        builder = GraphBuilder()
        memory = rng.integers(3, 9, 6).tolist()
        for name, amount in zip("abcdef", memory, strict=True):
            builder.vertex(name, 1, memory=amount)
        capacity = rng.integers(8, 14, 3).tolist()
        devices = [Device(f"d{d}", 1, None, amount) for d, amount in enumerate(capacity)]
        instance = Instance(builder.build(), Cluster.of(devices, bandwidth=1), ESTIMATE)
        reason = conflict(instance)
        if not reason:
            assert _fits(memory, capacity)
            continue
        named = reason.removeprefix("units ").partition(" may go")[0].split(", ")
        needs = [memory["abcdef".index(name)] for name in named]
        assert not _fits(needs, capacity)
        for spared in range(len(needs)):
            assert _fits(needs[:spared] + needs[spared + 1 :], capacity)
        checked += 1
    assert checked >= 8


def _fits(needs: list[int], capacity: list[int]) -> bool:
    return any(
        all(
            sum(need for need, e in zip(needs, where, strict=True) if e == d) <= room
            for d, room in enumerate(capacity)
        )
        for where in product(range(len(capacity)), repeat=len(needs))
    )


class TestMemoryOverTime:
    """c waits for b with a tensor of 9 from a, wherever it runs."""

    @pytest.fixture
    def full(self) -> Instance:
        builder = GraphBuilder().vertex("a", 1, outputs=[9]).vertex("b", 1).vertex("c", 1)
        graph = builder.edge("a", "b", None).edge("b", "c", None).edge("a", "c").build()
        devices = [Device("d0", 1, None, 8), Device("d1", 1, None, 3), Device("d2", 1, None, 99)]
        return Instance(
            graph, Cluster.of(devices, bandwidth=0), Model(memory="refcount"), name="full"
        )

    def test_names_the_limits_that_no_order_keeps(self, full: Instance) -> None:
        instance = replace(full, graph=replace(full.graph, allowed_devices={0: ("d0", "d1")}))
        result = registry.get("cpsat")(instance, budget=Budget(20, 1))
        assert result.status is Status.INFEASIBLE
        assert result.reason == (
            "memory over time (refcount): no placement and order keep the limits of "
            "d0 (8), d1 (3) (proven by search)"
        )

    def test_has_nothing_to_say_of_memory_that_stands_still(self, full: Instance) -> None:
        instance = replace(full, model=ESTIMATE)
        assert memory_conflict(instance, lambda _: True) == ""
