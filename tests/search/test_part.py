"""Parts of a schedule: cut out, solved by themselves, merged; the rest stays exact."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from layouts import broken_rules, random_state
from ortools.sat.python import cp_model

from optpart.problem.model import Memory
from optpart.search.destroy import FREEING
from optpart.search.part import Part, cut, merged
from optpart.search.part_worker import PartModel
from optpart.search.plan import Layout
from optpart.search.state import State
from optpart.testing.brute_force import optimum
from optpart.testing.draw import draw_instance, random_instance


def solved(part: Part) -> tuple[list[int], list[int], int]:
    """Return devices, starts and the least longest way through a part."""
    built = PartModel(part)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    assert solver.solve(built.model) == cp_model.OPTIMAL
    found = built.found(solver.value)
    assert found.start is not None
    return found.placement.tolist(), found.start.tolist(), round(solver.objective_value)


def value_of(state: State, layout: Layout) -> float:
    state.at.enter(layout)
    over, makespan, _ = state.at.value()
    assert over == 0.0
    return makespan


def freed_somewhere(seed: int, vertices: int, memory: Memory, size: int) -> State | None:
    rng = np.random.default_rng(seed)
    instance = draw_instance(seed, "delay", memory, vertices=vertices, devices=3)
    state = random_state(instance, rng, size)
    return None if state is None else FREEING[seed % len(FREEING)](state, rng)


@pytest.mark.parametrize("memory", ["none", "estimate"])
def test_merging_a_part_as_it_is_changes_no_value(memory: Memory) -> None:
    for seed in range(30):
        state = freed_somewhere(seed, 16, memory, 2 + seed % 6)
        part = None if state is None else cut(state, np.random.default_rng(0))
        if state is None or part is None:
            continue
        layout = merged(state, part, part.device, part.start)
        assert layout.device.tolist() == state.layout.device.tolist()
        assert value_of(state, layout) == state.value[1]
        assert part.upper <= state.value[1]


@pytest.mark.parametrize("memory", ["none", "estimate"])
def test_a_part_of_everything_is_as_long_as_the_schedule(memory: Memory) -> None:
    for seed in range(15):
        state = random_state(draw_instance(seed, "delay", memory), np.random.default_rng(seed))
        if state is None:
            continue
        everything = state.freeing(np.arange(state.at.instance.vertices))
        part = cut(everything, np.random.default_rng(0))
        assert part is not None
        assert part.upper == state.value[1]
        assert part.start == state.start[part.vertices].tolist()


@pytest.mark.parametrize("memory", ["none", "estimate"])
@pytest.mark.parametrize("kind", ["scarce", "varied"])
@pytest.mark.parametrize("seeds", [range(12), range(12, 24)], ids=["first", "second"])
def test_a_part_of_everything_is_solved_to_the_optimum(
    memory: Memory, kind: str, seeds: range
) -> None:
    done = 0
    for seed in seeds:
        rng = np.random.default_rng([seed, 5])
        instance = (
            draw_instance(seed, "delay", memory, vertices=5)
            if kind == "scarce"
            else random_instance(rng, 5, 3, memory=memory)
        )
        best, state = optimum(instance), random_state(instance, rng)
        if state is None:
            continue
        assert best is not None
        part = cut(state.freeing(np.arange(instance.vertices)), rng)
        assert part is not None
        device, start, _ = solved(part)
        layout = merged(state, part, device, start)
        assert broken_rules(state.at, layout) == []
        assert state.at.schedule(layout).makespan(instance) == best.makespan
        done += 1
    assert done >= 6


@pytest.mark.parametrize("memory", ["none", "estimate"])
def test_a_solved_part_of_the_middle_says_how_long_the_schedule_is(memory: Memory) -> None:
    shorter = middle = 0
    for seed in range(24):
        state = freed_somewhere(seed, 14, memory, 4)
        part = None if state is None else cut(state, np.random.default_rng(0))
        if state is None or part is None:
            continue
        device, start, longest = solved(part)
        layout = merged(state, part, device, start)
        makespan = value_of(state, layout)
        assert broken_rules(state.at, layout) == []
        # Ways that miss the part are as long as before.
        assert longest <= makespan <= max(longest, state.value[1])
        shorter += makespan < state.value[1]
        middle += len(part.vertices) < state.at.instance.vertices
    assert shorter > 3
    assert middle > 3


def test_units_that_are_not_freed_keep_device_and_order() -> None:
    for seed in range(10):
        state = freed_somewhere(seed, 14, "none", 3)
        part = None if state is None else cut(state, np.random.default_rng(0))
        if state is None or part is None:
            continue
        device, start, _ = solved(part)
        layout = merged(state, part, device, start)
        kept = ~np.isin(state.at.arrays.unit, state.freed)
        assert layout.device[kept].tolist() == state.layout.device[kept].tolist()
        for d in range(state.at.instance.devices):
            before, after = (
                [v for v in order.tolist() if kept[v] and state.layout.device[v] == d]
                for order in (state.layout.order, layout.order)
            )
            assert after == before


def test_ticks_of_a_part_are_the_unit_of_time() -> None:
    state = random_state(draw_instance(4, vertices=6), np.random.default_rng(4))
    assert state is not None
    instance = state.at.instance
    part = cut(state.freeing(np.arange(6)), np.random.default_rng(0))
    assert part is not None
    i = part.vertices.index(0)
    d = int(state.layout.device[0])
    ticks = Fraction(state.at.arrays.scale)
    assert part.stays[i][d].run == instance.duration(0, d) * ticks
