"""Iterated critical path ([L] §4.5): path after path, each kept together where it can be."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optpart import Cluster, Device, GraphBuilder, Instance, Model
from optpart.kernels.compiled import arrays, nothing_placed
from optpart.strategies.base import NoPlacementError
from optpart.strategies.partition.common import fit_together, take
from optpart.strategies.partition.critical_path import heaviest_path
from optpart.strategies.partition.iterated_critical_path import iterated_critical_path
from optpart.strategies.partition.ranks import work
from optpart.testing.draw import random_instance


def placement(instance: Instance) -> list[int]:
    partition = iterated_critical_path(instance, np.random.default_rng(0))
    return [int(device) for device in partition.placement]


def chain(n: int, **devices: list[str]) -> GraphBuilder:
    """a → b → c …, a operation and a memory of 1 each; some vertices name their devices."""
    builder = GraphBuilder()
    names = "abcdefgh"[:n]
    for name in names:
        builder.vertex(name, 1, memory=1, devices=devices.get(name))
    for u, v in pairwise(names):
        builder.edge(u, v, None)
    return builder


def diamond() -> GraphBuilder:
    """a (2) → b (5) → d (1), a → c (3) → d, c → e (4)."""
    builder = GraphBuilder()
    for name, ops in zip("abcde", (2, 5, 3, 1, 4), strict=True):
        builder.vertex(name, ops)
    for u, v in ("ab", "bd", "ac", "cd", "ce"):
        builder.edge(u, v, None)
    return builder


def cluster() -> Cluster:
    return Cluster.of([Device("d0", 1), Device("d1", 4), Device("d2", 2)])


class TestPaths:
    def test_go_to_the_device_of_least_load_so_far(self) -> None:
        """a, b, d to d0 (8); of the sinks d and e with 5 each, d first: c to d1 (3/4); e to d2."""
        assert placement(Instance(diamond().build(), cluster())) == [0, 0, 1, 0, 2]

    def test_load_is_relative_to_speed(self) -> None:
        """Independent vertices of 6, 8, 2, 3, 1: loads 6, 2, 1, then d2 has 2.5, then d1 is it."""
        builder = GraphBuilder()
        for name, ops in zip("abcde", (6, 8, 2, 3, 1), strict=True):
            builder.vertex(name, ops)
        assert placement(Instance(builder.build(), cluster())) == [0, 1, 2, 2, 1]

    def test_the_first_is_that_of_the_critical_path_strategy(self) -> None:
        instance = Instance(diamond().build(), cluster())
        assert [placement(instance)[v] for v in heaviest_path(instance)] == [0, 0, 0]

    def test_the_edges_of_a_path_no_longer_count(self) -> None:
        """Source ranks of the sinks d, f and h are 18, 18 and 12: a, b and d are first.

        Then f has 9 by b, so that g and h come before it.
        """
        builder = GraphBuilder()
        for name, ops in zip("abdfgh", (9, 9, 1, 1, 12, 1), strict=True):
            builder.vertex(name, ops)
        for u, v in ("ab", "bd", "bf", "gh"):
            builder.edge(u, v, None)
        assert placement(Instance(builder.build(), Cluster.uniform(3))) == [0, 0, 0, 2, 1, 1]

    def test_a_vertex_that_becomes_a_sink_ends_a_path(self) -> None:
        """First c, b and d; then b is a sink with a before it, which is left alone."""
        builder = GraphBuilder().vertex("a", 1).vertex("b", 5).vertex("c", 9).vertex("d", 1)
        builder.edge("c", "b", None).edge("b", "d", None).edge("a", "b", None)
        assert placement(Instance(builder.build(), Cluster.uniform(2))) == [1, 0, 0, 0]

    def test_parallel_edges_go_together(self) -> None:
        builder = GraphBuilder().vertex("a", 1).vertex("b", 1).vertex("c", 1)
        builder.edge("a", "b", size=1).edge("a", "b", size=2).edge("c", "b", size=1)
        assert placement(Instance(builder.build(), Cluster.uniform(2, bandwidth=1))) == [0, 0, 1]


class TestSubpaths:
    def test_end_where_devices_contradict(self) -> None:
        """From the sink: c and b on d1, and a, which cannot be there, on d0."""
        graph = chain(3, a=["d0"], c=["d1"]).build()
        assert placement(Instance(graph, Cluster.uniform(2))) == [0, 1, 1]

    def test_need_one_device_in_common(self) -> None:
        """Any two have one, but not all three."""
        graph = chain(3, a=["d0", "d1"], b=["d1", "d2"], c=["d0", "d2"]).build()
        assert placement(Instance(graph, Cluster.uniform(3))) == [0, 2, 2]

    def test_end_at_a_placed_vertex(self) -> None:
        """First c, e and f; then e is between d and g, which part."""
        builder = GraphBuilder()
        for name, ops in zip("cdefg", (9, 1, 1, 1, 2), strict=True):
            builder.vertex(name, ops)
        for u, v in ("ce", "de", "ef", "eg"):
            builder.edge(u, v, None)
        assert placement(Instance(builder.build(), Cluster.uniform(3))) == [0, 2, 0, 0, 1]

    def test_take_colocated_vertices_along(self) -> None:
        builder = diamond().colocate("b", "e")
        assert placement(Instance(builder.build(), cluster())) == [0, 0, 1, 0, 0]

    def test_a_group_on_the_path_twice_counts_once(self) -> None:
        """a and c need 2 together; with b they fit into 3."""
        instance = Instance(
            chain(3).colocate("a", "c").build(),
            Cluster.uniform(2, memory=3),
            Model(memory="estimate"),
        )
        assert placement(instance) == [0, 0, 0]

    @pytest.mark.parametrize(
        ("n", "memory", "devices"),
        [(4, 2, "1100"), (3, 2, "100"), (4, 1, "3210"), (6, 4, "111000")],
    )
    def test_are_halved_where_no_device_can_take_them(
        self, n: int, memory: int, devices: str
    ) -> None:
        instance = Instance(
            chain(n).build(), Cluster.uniform(4, memory=memory), Model(memory="estimate")
        )
        assert "".join(map(str, placement(instance))) == devices

    def test_separated_vertices_part_them(self) -> None:
        graph = chain(4).separate("a", "d").build()
        assert placement(Instance(graph, Cluster.uniform(2))) == [1, 1, 0, 0]


def test_of_a_long_chain() -> None:
    n = 20_000
    builder = GraphBuilder()
    for v in range(n):
        builder.vertex(str(v), 1, memory=1)
    for v in range(n - 1):
        builder.edge(str(v), str(v + 1), None)
    cluster = Cluster.uniform(2, memory=n // 2)
    instance = Instance(builder.build(), cluster, Model(memory="estimate"))
    assert placement(instance) == [1] * (n // 2) + [0] * (n // 2)


def naive(instance: Instance) -> list[int] | None:
    """The strategy as [L] §4.5 words it, with all ranks computed anew for every path."""
    a, graph, state = arrays(instance), instance.graph, nothing_placed(arrays(instance))
    load = np.zeros(instance.devices)

    def place(units: list[int]) -> bool:
        while units:
            size = len(units)
            while True:
                part = np.array(units[:size], dtype=np.int32)
                able = [d for d in range(instance.devices) if fit_together(a, part, d, state)]
                if able or size == 1:
                    break
                size = (size + 1) // 2
            if not able:
                return False
            device = min(able, key=lambda d: load[d])
            for unit in part:
                take(a, unit, device, state, load)
            units = units[size:]
        return True

    for path in paths(instance):
        units: list[int] = []
        common = np.ones(instance.devices, dtype=np.bool_)
        for v in path:
            unit = int(instance.unit_of[v])
            if unit in units:
                continue
            unplaced = state.device[unit] < 0
            if unplaced and (common & instance.allowed[unit]).any():
                units.append(unit)
                common &= instance.allowed[unit]
                continue
            if not place(units):
                return None
            units = [unit] if state.device[unit] < 0 else []
            common = instance.allowed[unit].copy() if units else np.ones_like(common)
        if not place(units):
            return None
    assert len(graph) == 0 or min(state.device) >= 0
    return [int(state.device[unit]) for unit in instance.unit_of]


def paths(instance: Instance) -> Iterator[list[int]]:
    """Critical paths of ever fewer edges, sink first, until no edge and no vertex is left."""
    graph, ops = instance.graph, work(instance)
    order = graph.topological_order.tolist()
    left = set(zip(graph.edge_source.tolist(), graph.edge_target.tolist(), strict=True))
    fresh = set(order)
    while left or fresh:
        rank, before = dict.fromkeys(order, 0.0), dict.fromkeys(order, -1)
        for v in order:
            for u in sorted(u for u, w in left if w == v):
                if before[v] < 0 or rank[u] + ops[u] > rank[v]:
                    rank[v], before[v] = rank[u] + ops[u], u
        tails = {u for u, _ in left}
        sinks = [v for v in order if v not in tails and (v in fresh or before[v] >= 0)]
        v = max(sinks, key=rank.__getitem__)
        path = []
        while v >= 0:
            path.append(v)
            v = before[v]
        yield path
        fresh -= set(path)
        left -= {(u, v) for v, u in pairwise(path)}


@settings(max_examples=150)
@given(st.integers(0, 10**6))
def test_agrees_with_the_strategy_as_it_is_worded(seed: int) -> None:
    instance = random_instance(np.random.default_rng(seed), 12, 4, memory="estimate")
    expected = naive(instance)
    if expected is None:
        with pytest.raises(NoPlacementError):
            placement(instance)
    else:
        assert placement(instance) == expected
