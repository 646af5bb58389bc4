"""Widening: stages on the fastest devices come first, and all devices in the end."""

from __future__ import annotations

import numpy as np
import pytest

from optpart import Budget, Cluster, Device, GraphBuilder, Instance, Model
from optpart.methods.search import search
from optpart.search.evaluator import Evaluator
from optpart.search.layout import repaired
from optpart.search.searcher import searcher
from optpart.search.widening import STAGES, Widening, fastest, start_on
from optpart.solution.verifier import verify

pytestmark = pytest.mark.filterwarnings("ignore:overflow")  # random numbers wrap around


def broad(devices: int = 20, memory: int | None = None) -> Instance:
    """Return parallel chains for devices of which the last ones are fastest."""
    builder = GraphBuilder()
    for i in range(12):
        builder.vertex(f"{i}a", 3, memory=1, outputs=[1]).vertex(f"{i}b", 2, memory=1)
        builder.edge(f"{i}a", f"{i}b")
    cluster = [Device(str(d), speed=1 + d, memory=memory) for d in range(devices)]
    model = Model(memory="none" if memory is None else "estimate")
    return Instance(builder.build(), Cluster.of(cluster, bandwidth=1), model)


def test_only_the_fastest_devices_remain() -> None:
    few = fastest(broad(), 8)
    assert few is not None
    assert np.flatnonzero(few.allowed.all(axis=0)).tolist() == list(range(12, 20))
    assert few.allowed.sum(axis=1).tolist() == [8] * len(few.units)


def test_devices_that_a_unit_may_not_use_do_not_count() -> None:
    graph = GraphBuilder().vertex("a", 1).vertex("b", 1, devices=["0", "1", "2"]).build()
    cluster = Cluster.of([Device(str(d), speed=1 + d) for d in range(10)])
    few = fastest(Instance(graph, cluster), 2)
    assert few is not None
    assert [np.flatnonzero(row).tolist() for row in few.allowed] == [[8, 9], [1, 2]]


def test_with_few_devices_there_are_no_stages() -> None:
    assert fastest(broad(8), 8) is None
    instance, rng = broad(8), np.random.default_rng(0)
    start = start_on(instance, rng)
    assert start is not None
    made = searcher("search", instance, "makespan", start, rng, seconds=None)
    assert not isinstance(made, Widening)


def test_each_stage_uses_its_devices_and_the_best_never_gets_worse() -> None:
    instance, rng = broad(), np.random.default_rng(0)
    start = repaired(instance, None, rng)
    assert start is not None
    made = searcher("search", instance, "makespan", start, rng, seconds=None)
    assert isinstance(made, Widening)
    seen, values = set(), [made.value]
    for share in np.linspace(0.0, 0.99, 12):
        made.step(float(share))
        values.append(made.value)
        assert made._now is not None
        seen.add(int(made._now.evaluator.instance.allowed.sum(axis=1).max()))
    assert seen == {count for count, _ in STAGES} | {instance.devices}
    assert values == sorted(values, reverse=True)
    anew = Evaluator(instance, "makespan")
    anew.enter(made.best)
    assert anew.value() == pytest.approx(made.value)


def test_a_better_layout_of_another_searcher_is_kept() -> None:
    instance, rng = broad(), np.random.default_rng(0)
    start = repaired(instance, None, rng)
    assert start is not None
    made = searcher("search", instance, "makespan", start, rng, seconds=None)
    made.step(0.0)
    made.offer(start, (0.0, 0.0, 0.0))
    assert made.value == (0.0, 0.0, 0.0)
    assert not made.step(0.01)


def test_where_few_devices_hold_too_little_the_search_begins_on_more() -> None:
    result = search(broad(memory=6), budget=Budget(seconds=60, workers=1, deterministic=20))
    assert result.schedule is not None
    assert verify(broad(memory=6), result.schedule) == []


def test_the_same_seed_gives_the_same_schedule() -> None:
    budget = Budget(seconds=60, workers=1, deterministic=20)
    one, other = (search(broad(), budget=budget, seed=3).schedule for _ in range(2))
    assert one is not None
    assert other is not None
    assert one.placement.tolist() == other.placement.tolist()
    assert one.start.floats.tolist() == other.start.floats.tolist()
