"""Changes of a plan: new times are those of the whole order, and taking back leaves no trace."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optpart.kernels.compiled import Arrays, arrays
from optpart.kernels.struct import hints
from optpart.problem.instance import Instance
from optpart.search.incremental import Notes, forget, keep, move, notes, settle, take_back
from optpart.search.plan import Layout, Links, Plan, empty_plan, links, load, rebuild
from optpart.testing.draw import random_instance
from optpart.testing.solutions import random_order, random_placement


def planned(seed: int) -> tuple[Instance, Arrays, Links, Plan, Notes] | None:
    rng = np.random.default_rng(seed)
    instance = random_instance(rng, max_vertices=7, max_devices=3, colocation=False)
    placement = random_placement(rng, instance)
    if placement is None or not instance.vertices:
        return None
    order = np.array(random_order(rng, instance), dtype=np.int32)
    made, a, g = empty_plan(instance), arrays(instance), links(instance)
    load(made, Layout(placement, order, np.ones(instance.graph.tensors, dtype=np.bool_)))
    rebuild(a, g, made)
    return instance, a, g, made, notes(instance.vertices, len(a.in_source))


def copy(p: Plan) -> Plan:
    return Plan(*(np.copy(array) for array in p))


def same(one: Plan, other: Plan) -> bool:
    names = [name for name in hints(Plan) if name != "used"]
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in names)


def some_position(a: Arrays, p: Plan, v: int, rng: np.random.Generator) -> int:
    low, high = 0, len(p.order) - 1
    for e in range(a.in_start[v], a.in_start[v + 1]):
        low = max(low, p.position[a.in_source[e]] + 1)
    for e in range(a.out_start[v], a.out_start[v + 1]):
        high = min(high, p.position[a.out_target[e]] - 1)
    return int(rng.integers(low, high, endpoint=True))


@settings(derandomize=True, deadline=None, max_examples=50)
@given(seed=st.integers(0, 10**6), moves=st.integers(1, 4))
def test_settled_times_are_those_of_a_plan_built_anew(seed: int, moves: int) -> None:
    case = planned(seed)
    if case is None:
        return
    instance, a, g, p, s = case
    rng = np.random.default_rng([seed, 1])
    forget(p, s)
    for _ in range(moves):
        v = int(rng.integers(instance.vertices))
        to = some_position(a, p, v, rng) if moves == 1 else int(p.position[v])
        move(a, g, p, s, v, int(rng.integers(instance.devices)), to)
    assert settle(a, g, p, s, np.inf)
    keep(a, g, p, s)
    anew = copy(p)
    rebuild(a, g, anew)
    assert same(p, anew)


@settings(derandomize=True, deadline=None, max_examples=50)
@given(seed=st.integers(0, 10**6), moves=st.integers(1, 4), share=st.floats(0, 1.5))
def test_taking_back_restores_everything_also_after_an_early_stop(
    seed: int, moves: int, share: float
) -> None:
    case = planned(seed)
    if case is None:
        return
    instance, a, g, p, s = case
    before = copy(p)
    rng = np.random.default_rng([seed, 1])
    forget(p, s)
    for _ in range(moves):
        v = int(rng.integers(instance.vertices))
        to = some_position(a, p, v, rng) if moves == 1 else int(p.position[v])
        move(a, g, p, s, v, int(rng.integers(instance.devices)), to)
    settle(a, g, p, s, share * before.end.max())
    take_back(p, s)
    assert same(p, before)
    assert not s.waits.any()


@pytest.mark.parametrize("seed", range(20))
def test_a_schedule_is_refused_only_if_it_is_too_long(seed: int) -> None:
    case = planned(seed)
    if case is None:
        return
    instance, a, g, p, s = case
    rng = np.random.default_rng([seed, 2])
    v = int(rng.integers(instance.vertices))
    forget(p, s)
    move(a, g, p, s, v, int(rng.integers(instance.devices)), int(p.position[v]))
    anew = copy(p)
    rebuild(a, g, anew)
    limit = float(rng.random() * 1.5 * anew.end.max())
    assert settle(a, g, p, s, limit) == (anew.end.max() <= limit)
