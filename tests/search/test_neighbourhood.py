"""Large neighbourhoods: what is freed, and how it is placed again greedily."""

from __future__ import annotations

from itertools import product
from typing import get_args

import numpy as np
import pytest
from layouts import broken_rules, copied, differing, random_state

from optpart import Cluster, Device, GraphBuilder, Instance, Model
from optpart.kernels.rng import source
from optpart.problem.model import Communication, Memory
from optpart.search.destroy import (
    FREEING,
    boundaries,
    colocation_groups,
    critical_path,
    heaviest_traffic,
    idle_time,
    parts,
)
from optpart.search.evaluator import Evaluator
from optpart.search.neighbourhood import Greedy, Operator
from optpart.search.plan import Layout, load, rebuild
from optpart.search.repair import _reinsert, earliest_finish, regret
from optpart.search.state import State, valued
from optpart.testing.draw import draw_instance, random_instance

REPAIRS = [earliest_finish, regret]

COMBINATIONS: list[tuple[Communication, Memory]] = list(
    product(get_args(Communication), get_args(Memory))
)

freeing = pytest.mark.parametrize("free", FREEING, ids=lambda free: str(free.__name__))
repairing = pytest.mark.parametrize("repair", REPAIRS, ids=lambda repair: str(repair.__name__))
models = pytest.mark.parametrize(("communication", "memory"), COMBINATIONS)


def states(
    vertices: int,
    seeds: range,
    communication: Communication = "delay",
    memory: Memory = "none",
    size: int = 5,
) -> list[State]:
    made = [
        random_state(
            draw_instance(seed, communication, memory, vertices=vertices, devices=3),
            np.random.default_rng(seed),
            size,
        )
        for seed in seeds
    ]
    return [state for state in made if state is not None]


# --- the state ---------------------------------------------------------------------------------


@models
def test_the_value_of_a_state_is_that_of_its_layout(
    communication: Communication, memory: Memory
) -> None:
    for state in states(12, range(10), communication, memory):
        anew = Evaluator(state.at.instance, "makespan")
        anew.enter(state.layout)
        assert anew.value() == pytest.approx(state.value)


# --- freeing -----------------------------------------------------------------------------------


@freeing
@pytest.mark.parametrize("size", [1, 4, 9, 60])
def test_freeing_takes_at_least_one_unit_and_about_as_many_as_asked_for(
    free: Operator, size: int
) -> None:
    for i, state in enumerate(states(20, range(12), size=size)):
        freed = free(state, np.random.default_rng(i)).freed
        assert 1 <= len(freed) <= max(size, 2)
        assert len(set(freed.tolist())) == len(freed)
        assert set(freed.tolist()) <= set(range(len(state.at.instance.units)))


@freeing
def test_freeing_leaves_the_state_as_it_was(free: Operator) -> None:
    for i, state in enumerate(states(12, range(4))):
        found = free(state, np.random.default_rng(i))
        assert len(state.freed) == 0
        assert found.layout is state.layout
        assert found.cost == state.cost


@freeing
def test_freeing_is_the_same_with_the_same_seed_and_not_with_all_seeds(free: Operator) -> None:
    state = states(40, range(12))[0]
    found = [free(state, np.random.default_rng(seed)).freed.tolist() for seed in range(6)]
    assert found == [free(state, np.random.default_rng(seed)).freed.tolist() for seed in range(6)]
    assert len({tuple(units) for units in found}) > 1 or free in (critical_path, colocation_groups)


def test_a_window_may_hold_every_vertex() -> None:
    state = states(20, range(12), size=4)[0]
    for free in FREEING:
        if free in (critical_path, heaviest_traffic, colocation_groups, boundaries, parts):
            continue
        seen = {
            unit
            for i in range(300)
            for unit in free(state, np.random.default_rng(i)).freed.tolist()
        }
        assert seen == set(range(len(state.at.instance.units))), free


def test_critical_path_frees_only_what_cannot_start_later() -> None:
    for i, state in enumerate(states(20, range(12))):
        found = critical_path(state, np.random.default_rng(i))
        units = state.at.arrays.unit
        critical = np.isclose(state.end + state.tail, state.value[1])
        assert set(found.freed.tolist()) <= set(units[critical].tolist())


def two_devices(ops: dict[str, int], device: list[int], size: int) -> State:
    """A state of vertices without edges that run in this order on two devices of speed 1."""
    builder = GraphBuilder()
    for name, count in ops.items():
        builder = builder.vertex(name, count)
    instance = Instance(builder.build(), Cluster.uniform(2, bandwidth=1))
    at = Evaluator(instance, "makespan")
    count = len(device)
    at.enter(Layout(np.array(device, np.int32), np.arange(count, dtype=np.int32), np.ones(0, bool)))
    return valued(at, at.weights(at.value()), size)


def test_idle_time_frees_beside_a_device_that_waits_and_on_a_critical_one() -> None:
    # Device 0 runs a and c until 4; device 1 runs b until 1 and then waits.
    state = two_devices({"a": 3, "b": 1, "c": 1}, [0, 1, 0], size=2)
    found = {
        tuple(idle_time(state, np.random.default_rng(seed)).freed.tolist()) for seed in range(20)
    }
    assert found == {(0, 1), (1, 2)}


def test_idle_time_frees_anything_where_no_device_waits() -> None:
    state = two_devices({"a": 2, "b": 2}, [0, 1], size=1)
    found = {
        tuple(idle_time(state, np.random.default_rng(seed)).freed.tolist()) for seed in range(20)
    }
    assert found == {(0,), (1,)}


def test_heaviest_traffic_frees_ends_of_transfers() -> None:
    for i, state in enumerate(states(20, range(12))):
        graph, device = state.at.instance.graph, state.layout.device
        crossing = device[graph.edge_source] != device[graph.edge_target]
        ends = np.concatenate((graph.edge_source[crossing], graph.edge_target[crossing]))
        if (state.delay > 0.0).any():
            found = heaviest_traffic(state, np.random.default_rng(i))
            assert set(found.freed.tolist()) <= set(state.at.arrays.unit[ends].tolist())


def test_colocation_groups_are_freed_whole_and_alone() -> None:
    some = 0
    for i, state in enumerate(states(20, range(30))):
        length = np.diff(state.at.arrays.unit_start)
        found = colocation_groups(state, np.random.default_rng(i))
        if (length > 1).any():
            some += 1
            assert (length[found.freed] > 1).all()
    assert some > 0


def chain_on(devices: list[int], size: int) -> State:
    builder = GraphBuilder()
    for i in range(len(devices)):
        builder.vertex(str(i), 1)
        if i:
            builder.edge(str(i - 1), str(i), None)
    instance = Instance(builder.build(), Cluster.uniform(3))
    at = Evaluator(instance, "makespan")
    order = np.arange(len(devices), dtype=np.int32)
    eager = np.ones(instance.graph.tensors, dtype=np.bool_)
    at.enter(Layout(np.array(devices, np.int32), order, eager))
    return valued(at, at.weights(at.value()), size)


def test_boundaries_free_what_runs_around_changes_of_device() -> None:
    state = chain_on([0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2], size=4)
    found = {tuple(boundaries(state, np.random.default_rng(i)).freed.tolist()) for i in range(60)}
    assert found == {(2, 3, 4, 5), (6, 7, 8, 9), (3, 4, 7, 8)}


def test_parts_are_freed_from_cut_vertex_to_cut_vertex() -> None:
    builder = GraphBuilder()
    for name in "abcdefg":
        builder.vertex(name, 1)
    for source_name, target in ("ab", "bc", "bd", "ce", "de", "ef", "fg"):
        builder.edge(source_name, target, None)
    at = Evaluator(Instance(builder.build(), Cluster.uniform(2)), "makespan")
    order = np.arange(7, dtype=np.int32)
    eager = np.ones(at.instance.graph.tensors, dtype=np.bool_)
    at.enter(Layout(np.zeros(7, np.int32), order, eager))
    state = valued(at, at.weights(at.value()), 3)
    found = {tuple(parts(state, np.random.default_rng(i)).freed.tolist()) for i in range(60)}
    assert found == {(0, 1), (1,), (2, 3, 4), (5, 6), (6,)}


# --- greedy repair -----------------------------------------------------------------------------


def position(order: np.ndarray) -> np.ndarray:
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    return place


@repairing
@models
def test_repaired_states_keep_every_rule(
    communication: Communication, memory: Memory, repair: Operator
) -> None:
    for seed, state in enumerate(states(12, range(8), communication, memory)):
        rng = np.random.default_rng([seed, 1])
        found = repair(FREEING[seed % len(FREEING)](state, rng), rng)
        graph, place = state.at.instance.graph, position(found.layout.order)
        assert sorted(found.layout.order.tolist()) == list(range(state.at.instance.vertices))
        assert (place[graph.edge_source] < place[graph.edge_target]).all()
        assert broken_rules(state.at, found.layout) == []


@repairing
@pytest.mark.parametrize("memory", ["none", "estimate"])
@pytest.mark.parametrize("seed", range(12))
def test_repair_holds_with_separation_missing_links_and_given_run_times(
    repair: Operator, memory: Memory, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    state = random_state(random_instance(rng, 9, 3, memory=memory), rng)
    if state is None:
        return
    found = repair(state.freeing(np.arange(len(state.layout.order))), rng)
    assert broken_rules(state.at, found.layout) == []


@repairing
def test_repair_moves_only_what_was_freed(repair: Operator) -> None:
    for seed, state in enumerate(states(16, range(20), memory="estimate")):
        rng = np.random.default_rng(seed)
        freed = FREEING[seed % len(FREEING)](state, rng)
        found = repair(freed, rng)
        kept = ~np.isin(state.at.arrays.unit, freed.freed)
        assert found.layout.device[kept].tolist() == state.layout.device[kept].tolist()


@pytest.mark.parametrize("by_regret", [False, True])
def test_times_after_insertion_are_those_of_a_plan_built_anew(by_regret: bool) -> None:
    done = 0
    for seed, state in enumerate(states(14, range(60), memory="estimate")):
        at, rng = state.at, np.random.default_rng(seed)
        freed = FREEING[seed % len(FREEING)](state, rng).freed
        load(at.plan, state.layout)
        at.refresh()
        if _reinsert(at.arrays, at.links, at.plan, at.notes, freed, by_regret, source(rng)):
            anew = copied(at.plan)
            rebuild(at.arrays, at.links, anew)
            assert differing(at.plan, anew) == []
            assert not at.notes.waits.any()
            done += 1
    assert done > 40


def knapsack() -> State:
    """On the fast device runs the large one, on the slow one the small one; no other way fits."""
    graph = GraphBuilder().vertex("small", 1, memory=2).vertex("large", 4, memory=3).build()
    devices = [Device("fast", speed=2, memory=3), Device("slow", memory=2)]
    instance = Instance(graph, Cluster.of(devices), Model(memory="estimate"))
    at = Evaluator(instance, "makespan")
    layout = Layout(
        np.array([1, 0], np.int32), np.array([0, 1], np.int32), np.ones(0, dtype=np.bool_)
    )
    at.enter(layout)
    return valued(at, at.weights(at.value()), 2).freeing(np.arange(2))


def test_a_state_that_cannot_be_repaired_comes_back_unchanged() -> None:
    """The small one, placed first, takes the room of the large one."""
    state = knapsack()
    assert earliest_finish(state, np.random.default_rng(0)) is state


def test_regret_places_first_what_has_one_choice_left() -> None:
    state = knapsack()
    found = regret(state, np.random.default_rng(0))
    assert found is not state
    assert found.layout.device.tolist() == [1, 0]


@repairing
def test_repair_is_the_same_with_the_same_seed(repair: Operator) -> None:
    for state in states(16, range(6)):
        found = [
            repair(
                state.freeing(np.arange(0, 16, 2)), np.random.default_rng(3)
            ).layout.device.tolist()
            for _ in range(2)
        ]
        assert found[0] == found[1]


@models
def test_greedy_repair_finds_better_layouts_whose_value_is_true(
    communication: Communication, memory: Memory
) -> None:
    improved = 0
    for seed, state in enumerate(states(16, range(5), communication, memory)):
        at = Evaluator(state.at.instance, "makespan")
        greedy = Greedy(at, state.layout, np.random.default_rng(seed), timed=False)
        before = greedy.value
        for share in (0.0, 0.3, 0.6):
            improved += greedy.step(share)
        assert greedy.value <= before
        assert greedy.moves == 150
        at.enter(greedy.best)
        assert at.value() == pytest.approx(greedy.value)
    assert improved > 0
