"""Moves can be undone, and those that heads and tails show to be too long are not made."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from layouts import copied, random_layout

from optpart import load as load_named
from optpart.kernels.compiled import Arrays, arrays
from optpart.kernels.rng import source
from optpart.kernels.struct import hints
from optpart.search.incremental import Notes, forget, notes, settle, take_back
from optpart.search.moves import (
    MOVES,
    _swapped,
    before_previous,
    change,
    cumulative_shares,
    is_narrow,
)
from optpart.search.plan import Links, Plan, empty_plan, links, load, rebuild
from optpart.search.units import release
from optpart.testing.draw import draw_instance


def planned(seed: int) -> tuple[Arrays, Links, Plan, Notes] | None:
    instance = draw_instance(seed, vertices=9, devices=2)
    layout = random_layout(instance, np.random.default_rng(seed))
    if layout is None:
        return None
    made, a, g = empty_plan(instance), arrays(instance), links(instance)
    load(made, layout)
    rebuild(a, g, made)
    return a, g, made, notes(instance.vertices, len(a.in_source))


def different(one: Plan, other: Plan) -> list[str]:
    """Name the arrays in which two plans differ."""
    names = hints(Plan)
    return [x for x in names if not np.array_equal(getattr(one, x), getattr(other, x))]


@pytest.mark.filterwarnings("ignore:overflow")  # random numbers wrap around
@pytest.mark.parametrize("name", MOVES)
def test_every_move_leads_to_times_built_anew_and_undo_restores_the_plan(name: str) -> None:
    made = 0
    for seed in range(16):
        case = planned(seed)
        if case is None:
            continue
        a, g, p, s = case
        state = source(np.random.default_rng(seed))
        for v in range(len(p.device)):
            before = copied(p)
            forget(p, s)
            if change(a, g, p, s, state, MOVES.index(name), v, np.inf):
                made += 1
                assert different(p, before), "a move that is made changes something"
                assert settle(a, g, p, s, np.inf)
                anew = copied(p)
                rebuild(a, g, anew)
                # Tails come up to date only when a change is kept; memory is not derived.
                assert set(different(p, anew)) <= {"tail"}
                release(a, p, s)
                take_back(p, s)
            assert not different(p, before)
    assert made > 20


def test_a_number_that_no_move_has_is_not_taken_for_another() -> None:
    """So a row appended to the table does nothing until it has a branch of its own."""
    case = planned(0)
    assert case is not None
    a, g, p, s = case
    before, state = copied(p), source(np.random.default_rng(0))
    for v in range(len(p.device)):
        for number in (-1, len(MOVES)):
            assert not change(a, g, p, s, state, number, v, np.inf)
    assert not different(p, before)


def test_where_transfers_do_not_matter_none_is_drawn() -> None:
    shares = np.diff(cumulative_shares(placed=False, transfers=False), prepend=0.0)
    assert shares[MOVES.index("transfer")] == 0.0
    assert shares.sum() == pytest.approx(1.0)


def test_with_every_device_given_only_moves_of_the_order_are_drawn() -> None:
    shares = np.diff(cumulative_shares(placed=True, transfers=True), prepend=0.0)
    drawn = [name for name, share in zip(MOVES, shares, strict=True) if share > 0]
    known = MOVES[: MOVES.index("exchange-blocks") + 1]  # new moves are appended
    drawn = [name for name in drawn if name in known]
    assert drawn == ["before-previous", "anywhere", "past-block", "block-end", "transfer"]


def test_moves_of_stretches_are_frequent_in_narrow_graphs_only() -> None:
    narrow, wide = (
        np.diff(cumulative_shares(placed=False, transfers=True, narrow=it), prepend=0.0)
        for it in (True, False)
    )
    for name in ("stretch", "block", "boundary", "part", "exchange-stretches", "exchange-blocks"):
        assert narrow[MOVES.index(name)] > wide[MOVES.index(name)]
    assert is_narrow(links(load_named("resnet-50-edge-free")))
    assert not is_narrow(links(load_named("convolutional_network-50")))


@pytest.mark.parametrize("name", ["exchange", "exchange-stretches", "chain"])
def test_exchanges_and_chains_are_rare_only_in_large_wide_graphs(name: str) -> None:
    def share(vertices: int, *, narrow: bool = False) -> float:
        all_of_them = cumulative_shares(
            placed=False, transfers=True, narrow=narrow, vertices=vertices
        )
        return float(np.diff(all_of_them, prepend=0.0)[MOVES.index(name)])

    # Where memory is full, a unit may find room only by exchange, so none is left out.
    assert 0.0 < share(3000) < share(300) / 2
    assert share(300) == share(100_000)
    assert share(3000, narrow=True) == share(300, narrow=True)


def exchanges(seed: int) -> list[tuple[float, float]]:
    """Of each adjacent exchange that is possible: its lower bound and its true makespan."""
    case = planned(seed)
    found: list[tuple[float, float]] = []
    if case is None:
        return found
    a, g, p, s = case
    for v in range(len(p.device)):
        forget(p, s)
        bound = _swapped(a, g, p, p.before[v], v) if p.before[v] >= 0 else 0.0
        if before_previous(a, g, p, s, v, np.inf):
            anew = copied(p)
            rebuild(a, g, anew)
            found.append((bound, float(anew.end.max())))
            take_back(p, s)
    return found


@settings(derandomize=True, deadline=None, max_examples=50)
@given(seed=st.integers(0, 10**6))
def test_the_bound_of_an_exchange_is_never_above_its_makespan(seed: int) -> None:
    for bound, makespan in exchanges(seed):
        assert bound <= makespan


def test_the_bound_of_an_exchange_is_often_its_makespan() -> None:
    pairs = [pair for seed in range(40) for pair in exchanges(seed)]
    assert sum(bound == makespan for bound, makespan in pairs) > 0.3 * len(pairs) > 0


@settings(derandomize=True, deadline=None, max_examples=60)
@given(seed=st.integers(0, 10**6))
def test_an_exchange_is_made_if_its_makespan_is_within_the_limit(seed: int) -> None:
    case = planned(seed)
    if case is None:
        return
    a, g, p, s = case
    for v in range(len(p.device)):
        forget(p, s)
        if not before_previous(a, g, p, s, v, np.inf):
            continue
        anew = copied(p)
        rebuild(a, g, anew)
        take_back(p, s)
        assert before_previous(a, g, p, s, v, float(anew.end.max()))
        take_back(p, s)


def test_an_exchange_that_is_certainly_too_long_leaves_the_plan_alone() -> None:
    rejected = 0
    for seed in range(20):
        case = planned(seed)
        if case is None:
            continue
        a, g, p, s = case
        before = copied(p)
        for v in range(len(p.device)):
            forget(p, s)
            rejected += not before_previous(a, g, p, s, v, 0.0)
            assert p.order.tolist() == before.order.tolist()
    assert rejected > 0
