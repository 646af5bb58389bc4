"""Large units are placed anew, held, and annealed around."""

from __future__ import annotations

import numpy as np
import pytest

from optpart import Cluster, GraphBuilder, Instance, Model
from optpart.lower_bounds.load import load_bound
from optpart.search import climb
from optpart.search.climb import Climb
from optpart.search.evaluator import Evaluator, Value
from optpart.search.plan import Layout
from optpart.search.repacking import Repacking, large_units, repacking
from optpart.solution.schedule import retime
from optpart.solution.verifier import verify

LARGE = (60, 50, 40)


def packed(memory: int | None = None, apart: bool = False) -> Instance:
    """Three large vertices and many small ones on three devices."""
    builder = GraphBuilder()
    for i, ops in enumerate(LARGE):
        builder.vertex(f"large{i}", ops, memory=2)
    for i in range(40):
        builder.vertex(f"small{i}", 1)
    if apart:
        builder.separate("large0", "large1")
    cluster = Cluster.uniform(3, 1, 1, memory=memory)
    model = Model() if memory is None else Model(memory="estimate")
    return Instance(builder.build(), cluster, model)


def all_on(instance: Instance, d: int) -> Layout:
    n = instance.vertices
    return Layout(np.full(n, d, np.int32), np.arange(n, dtype=np.int32), np.zeros(0, np.bool_))


def begun(instance: Instance, seed: int = 0) -> tuple[Repacking, Layout, Value]:
    at, layout = Evaluator(instance, "makespan"), all_on(instance, 0)
    at.enter(layout)
    trials = repacking(at, at.value()[1], np.random.default_rng(seed))
    assert trials is not None
    return trials, layout, at.value()


def units(trials: Repacking, layout: Layout) -> list[int]:
    return [int(layout.device[members[0]]) for members in trials._members]


def test_units_are_large_that_are_out_of_proportion() -> None:
    at = Evaluator(packed(), "makespan")
    scale = at.arrays.scale
    unit_of = at.arrays.unit
    assert large_units(at.arrays, 100 * scale) == [int(unit_of[v]) for v in range(3)]
    # None of them is a 25th of this makespan.
    assert large_units(at.arrays, 2000 * scale) == []
    alike = GraphBuilder()
    for name in "abcd":
        alike.vertex(name, 10)
    same = Evaluator(Instance(alike.build(), Cluster.uniform(2, bandwidth=1)), "makespan")
    assert large_units(same.arrays, 20.0) == []


def test_a_unit_without_a_choice_is_not_repacked() -> None:
    builder = GraphBuilder().vertex("a", 50, devices=["d0"])
    for i in range(40):
        builder.vertex(f"small{i}", 1)
    at = Evaluator(Instance(builder.build(), Cluster.uniform(2, bandwidth=1)), "makespan")
    assert repacking(at, 90.0 * at.arrays.scale, np.random.default_rng(0)) is None


def test_nothing_is_repacked_where_only_paths_count() -> None:
    builder = GraphBuilder().vertex("a", 50, outputs=[1])
    for i in range(40):
        builder.vertex(f"small{i}", 1, outputs=[1]).edge(f"small{i - 1}" if i else "a", f"small{i}")
    graph = builder.build()
    for devices in (9, 1):
        at = Evaluator(Instance(graph, Cluster.uniform(devices, bandwidth=1)), "makespan")
        assert repacking(at, 90.0 * at.arrays.scale, np.random.default_rng(0)) is None
    at = Evaluator(packed(), "traffic")
    assert repacking(at, 90.0 * at.arrays.scale, np.random.default_rng(0)) is None


def test_a_trial_moves_one_large_unit_or_exchanges_two_and_holds_them() -> None:
    trials, layout, value = begun(packed())
    for _ in range(20):
        trial = trials.next(layout, value)
        assert trial is not None
        changed = np.flatnonzero(trial.layout.device != layout.device).tolist()
        assert changed
        assert set(changed) <= {0, 1, 2}
        assert trial.arrays.allowed[trials.large].sum(axis=1).tolist() == [1, 1, 1]
        others = np.setdiff1d(np.arange(43), trials.large)
        assert trial.arrays.allowed[others].all()
    assert trials._at.arrays.allowed.all()


def test_trials_keep_memory_and_separation() -> None:
    instance = packed(memory=4, apart=True)
    at = Evaluator(instance, "makespan")
    device = np.arange(43, dtype=np.int32) % 3
    layout = Layout(device, np.arange(43, dtype=np.int32), np.zeros(0, np.bool_))
    at.enter(layout)
    trials = repacking(at, at.value()[1], np.random.default_rng(2))
    assert trials is not None
    for _ in range(60):
        trial = trials.next(layout, at.value())
        if trial is None:
            continue
        first, second, third = units(trials, trial.layout)
        assert first != second
        assert len({first, second, third}) > 1  # a device holds two
        trials._known[trials._key(trial.layout.device)] = np.inf


def test_a_placement_that_is_known_to_be_no_better_is_not_tried_again() -> None:
    trials, layout, value = begun(packed())
    seen = set()
    for _ in range(200):
        trial = trials.next(layout, value)
        if trial is None:
            break
        key = tuple(units(trials, trial.layout))
        assert key not in seen
        seen.add(key)
        over, makespan, second = value
        trials.goes_on(trial, trial.layout, (over, 2.0 * makespan, second))
    assert trial is None
    assert len(seen) > 3


def test_a_trial_goes_on_only_while_it_is_promising_and_the_best_replaces_the_current() -> None:
    trials, layout, value = begun(packed())
    over, makespan, second = value
    trial = trials.next(layout, value)
    assert trial is not None
    assert trials.goes_on(trial, trial.layout, (over, 1.02 * makespan, second))
    assert trial.stage == 1
    assert not trials.goes_on(trial, trial.layout, (over, 1.02 * makespan, second))
    trial = trials.next(layout, value)
    assert trial is not None
    better = (over, 0.5 * makespan, second)
    while trials.goes_on(trial, trial.layout, better):
        pass
    assert trial.stage == 2
    assert trials._value == better
    # Another worker's best: by far better, so trials continue there.
    elsewhere = all_on(packed(), 2)
    trials.next(elsewhere, (over, 0.4 * makespan, second))
    assert units(trials, trials._layout or layout) == [2, 2, 2]


def test_the_annealer_spends_most_moves_on_trials_and_finds_the_best_packing() -> None:
    """Six large groups on three devices, of which the best packing has two each: 9 + 3, …"""
    builder = GraphBuilder()
    for i, ops in enumerate((9, 8, 7, 3, 4, 5)):
        for j in range(12):
            builder.vertex(f"g{i}.{j}", ops, outputs=[1])
            if j:
                builder.edge(f"g{i}.{j - 1}", f"g{i}.{j}").colocate(f"g{i}.{j - 1}", f"g{i}.{j}")
        for j in range(6):
            builder.vertex(f"small{i}.{j}", 1).edge(f"g{i}.11", f"small{i}.{j}")
    instance = Instance(builder.build(), Cluster.uniform(3, bandwidth=1))
    at, order = Evaluator(instance, "makespan"), instance.graph.topological_order
    start = all_on(instance, 0)._replace(
        order=order.astype(np.int32), eager=np.zeros(instance.graph.tensors, np.bool_)
    )
    own = Climb(at, start, np.random.default_rng(1), timed=False)
    budget = 6000 * instance.vertices
    while own.moves < budget:
        own.step(own.moves / budget)
    assert own._repacked > 0.5 * own.moves
    schedule = retime(instance, own.best.device, own.best.order.tolist())
    assert not verify(instance, schedule)
    assert schedule.makespan(instance) == load_bound(instance) == 156


def test_trials_need_a_budget_of_many_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(climb, "_FOR_TRIALS", np.inf)
    instance = packed()
    own = Climb(
        Evaluator(instance, "makespan"), all_on(instance, 0), np.random.default_rng(1), timed=False
    )
    budget = 6000 * instance.vertices
    while own.moves < budget:
        own.step(own.moves / budget)
    assert own._repacked == 0
