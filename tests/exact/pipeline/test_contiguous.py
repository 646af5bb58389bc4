"""The dynamic programmes against every contiguous placement of small instances."""

from __future__ import annotations

from fractions import Fraction
from typing import get_args

import numpy as np
import pytest
from naive_pipelines import (
    Placement,
    chained,
    convex,
    loads,
    makespan,
    orderable,
    ordered,
    placements,
)

from optpart.base.errors import UnsupportedError
from optpart.exact.pipeline import labels, solve
from optpart.exact.pipeline.path import Measure, is_chain
from optpart.exact.pipeline.solve import ContiguousResult, best_contiguous
from optpart.problem.cluster import Cluster, Device
from optpart.problem.graph import GraphBuilder
from optpart.problem.instance import Instance
from optpart.problem.model import Communication
from optpart.testing.draw import draw_instance

COMMUNICATIONS = get_args(Communication)


def drawn(seed: int, communication: Communication) -> Instance:
    memory = "estimate" if seed % 2 else "none"
    return draw_instance(seed, communication, memory, vertices=(2, 5), devices=(1, 3))


def order_of(instance: Instance, seed: int) -> tuple[int, ...]:
    order = np.random.default_rng(seed).permutation(instance.devices).tolist()
    return tuple(order[: max(1, instance.devices - (seed % 3 == 0))])


def placed(found: ContiguousResult) -> Placement:
    assert found.placement is not None
    return tuple(found.placement.tolist())


def bottleneck(instance: Instance, placement: Placement) -> Fraction:
    found = loads(instance, placement)
    assert found is not None
    return max(found.values())


def require(found: ContiguousResult, instance: Instance, values: list[Fraction]) -> None:
    """The least of all values is found and proven, or that there is none."""
    if not values:
        assert found.infeasible
        return
    assert found.bound == bottleneck(instance, placed(found)) == min(values)


@pytest.mark.parametrize("communication", COMMUNICATIONS)
def test_the_least_bottleneck_along_an_order(communication: Communication) -> None:
    for seed in range(60):
        instance = drawn(seed, communication)
        order = order_of(instance, seed)
        found = best_contiguous(instance, "bottleneck", order)
        values = [b for p, b in placements(instance) if ordered(instance, p, order)]
        require(found, instance, values)
        assert not values or ordered(instance, placed(found), order)


@pytest.mark.parametrize("communication", COMMUNICATIONS)
def test_the_least_bottleneck_of_chains_in_any_order(communication: Communication) -> None:
    for seed in range(40):
        instance = chained(drawn(seed, communication))
        found = best_contiguous(instance, "bottleneck")
        values = [b for p, b in placements(instance) if convex(instance, p)]
        require(found, instance, values)
        assert not values or convex(instance, placed(found))


@pytest.mark.parametrize("communication", COMMUNICATIONS)
def test_without_an_order_only_blocks_that_can_be_ordered_are_searched(
    communication: Communication,
) -> None:
    for seed in range(40):
        instance = drawn(seed, communication)
        if is_chain(instance):
            continue
        found = best_contiguous(instance, "bottleneck")
        every = list(placements(instance))
        values = [b for p, b in every if orderable(instance, p)]
        assert not found.infeasible
        assert (found.placement is None) == (not values)
        if values:
            assert orderable(instance, placed(found))
            assert bottleneck(instance, placed(found)) == min(values)
        contiguous = [b for p, b in every if convex(instance, p)]
        assert not contiguous or (found.bound is not None and found.bound <= min(contiguous))


@pytest.mark.parametrize("communication", COMMUNICATIONS)
@pytest.mark.parametrize("in_order", [True, False])
def test_the_least_makespan_of_chains(communication: Communication, in_order: bool) -> None:
    for seed in range(10):
        instance = chained(drawn(seed, communication))
        order = order_of(instance, seed) if in_order else ()
        try:
            found = best_contiguous(instance, "makespan", order)
        except UnsupportedError:
            assert instance.model.channels > 1
            continue
        values = [
            makespan(instance, p)
            for p, _ in placements(instance)
            if (ordered(instance, p, order) if order else convex(instance, p))
        ]
        assert found.infeasible == (not values)
        if values:
            assert found.bound == min(values) == makespan(instance, placed(found))


def both_ways() -> Instance:
    """Two blocks of 2 each are best, ``a1, b2`` and ``b1, a2``, and wait for each other."""
    graph = (
        GraphBuilder()
        .vertex("a1", devices=["x"]).vertex("a2", devices=["y"])
        .vertex("b1", devices=["y"]).vertex("b2", devices=["x"])
        .edge("a1", "a2", None).edge("b1", "b2", None)
        .build()
    )  # fmt: skip
    return Instance(graph, Cluster.of([Device("x"), Device("y")]), durations=[[1, 1]] * 4)


def test_blocks_that_wait_for_each_other_are_contiguous_but_never_claimed_away() -> None:
    found = best_contiguous(both_ways(), "bottleneck")
    assert found.placement is None
    assert not found.infeasible
    assert convex(both_ways(), (0, 1, 1, 0))
    assert best_contiguous(both_ways(), "bottleneck", (0, 1)).infeasible


def test_equal_devices_multiply_nothing() -> None:
    builder = GraphBuilder()
    for i in range(40):
        builder.vertex(f"v{i}", 1 + i % 3, outputs=[1])
        if i:
            builder.edge(f"v{i - 1}", f"v{i}")
    instance = Instance(builder.build(), Cluster.uniform(60, bandwidth=1))
    found = best_contiguous(instance, "bottleneck")
    assert found.bound == bottleneck(instance, placed(found)) == 3


def test_numbers_that_fit_no_grid_are_still_proven() -> None:
    """The sums are beyond 64 bits, so close ones are told apart in exact arithmetic."""
    tiny = Fraction(1, 10**30)
    times = [3 + tiny, 2 - tiny, 1 + 2 * tiny, 4 - 3 * tiny, 2 + tiny]
    builder = GraphBuilder()
    for i, time in enumerate(times):
        builder.vertex(f"v{i}", time)
        if i:
            builder.edge(f"v{i - 1}", f"v{i}", None)
    instance = Instance(builder.build(), Cluster.uniform(3))
    found = best_contiguous(instance, "bottleneck")
    values = [b for p, b in placements(instance) if convex(instance, p)]
    assert found.bound == bottleneck(instance, placed(found)) == min(values)


def test_a_search_that_is_given_up_proves_only_the_bound_without_transfers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(labels, "MOST_LABELS", 0)
    given_up = 0
    for seed in range(30):
        instance = drawn(seed, "link")
        order = order_of(instance, seed)
        found = best_contiguous(instance, "bottleneck", order)
        values = [b for p, b in placements(instance) if ordered(instance, p, order)]
        given_up += bool(found.reason)
        if found.reason:
            assert not found.infeasible
            assert not values or (found.bound is not None and found.bound <= min(values))
        else:
            require(found, instance, values)
    assert given_up


@pytest.mark.parametrize("measure", ["makespan"])
def test_the_makespan_of_other_graphs_is_refused(measure: Measure) -> None:
    with pytest.raises(UnsupportedError, match="only chains"):
        best_contiguous(both_ways(), measure)


def test_the_simple_bound_is_below_every_placement() -> None:
    for seed in range(60):
        instance = drawn(seed, "delay")
        values = [b for _, b in placements(instance)]
        bound = solve.simple_bound(solve.relaxed_pipeline(instance))
        assert not values or bound <= min(values)
