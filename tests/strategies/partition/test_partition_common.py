"""What the strategies of [L] and [M] share."""

from __future__ import annotations

import numpy as np
import pytest

from optpart import Cluster, Device, GraphBuilder, Instance, Model
from optpart.kernels.compiled import arrays, assign, fits, nothing_placed
from optpart.strategies.partition.common import (
    find_feasible,
    fit_together,
    groups_first,
    total_rank,
    unit_time,
)
from optpart.testing.draw import random_instance


def test_total_rank() -> None:
    """[M] eq. 5 and 6 on a (2) → b (5) → d (1), a → c (3) → d, c → e (4) and f (6) by itself."""
    builder = GraphBuilder()
    for name, ops in zip("abcdef", (2, 5, 3, 1, 4, 6), strict=True):
        builder.vertex(name, ops)
    for u, v in ("ab", "bd", "ac", "cd", "ce"):
        builder.edge(u, v, None)
    rank = total_rank(Instance(builder.build(), Cluster.uniform(2)))
    assert rank.tolist() == [9 + 2, 6 + 7, 7 + 5, 1 + 8, 4 + 9, 6 + 6]


def test_groups_come_before_single_vertices() -> None:
    builder = GraphBuilder()
    for name in "abcdef":
        builder.vertex(name)
    instance = Instance(builder.colocate("f", "b").colocate("c", "e").build(), Cluster.uniform(2))
    first = [instance.unit_name(unit)[-14:] for unit in groups_first(instance)]
    assert first == ["b (2 vertices)", "c (2 vertices)", "a", "d"]


def test_a_unit_runs_as_long_as_all_its_members() -> None:
    builder = GraphBuilder().vertex("a", 3).vertex("b", 5).colocate("a", "b")
    instance = Instance(builder.build(), Cluster.of([Device("d0", 1), Device("d1", 4)]))
    a = arrays(instance)
    assert [unit_time(a, np.int32(0), d) / a.scale for d in (0, 1)] == [8, 2]


class TestFitTogether:
    def fit(self, builder: GraphBuilder, *, memory: int = 9, d: int = 0) -> bool:
        instance = Instance(
            builder.build(), Cluster.uniform(2, memory=memory), Model(memory="estimate")
        )
        a = arrays(instance)
        state = nothing_placed(a)
        units = np.arange(len(instance.units), dtype=np.int32)
        fit: bool = fit_together(a, units, d, state)
        assert state.device.tolist() == [-1] * len(units)
        assert not state.used.any()
        assert not state.placed.any()
        return fit

    def three(self) -> GraphBuilder:
        builder = GraphBuilder().vertex("a", memory=2).vertex("b", memory=3)
        return builder.vertex("c", memory=4)

    @pytest.mark.parametrize("memory", [9, 8, 4, 0])
    def test_memory_is_needed_for_all(self, memory: int) -> None:
        assert self.fit(self.three(), memory=memory) == (memory >= 9)

    def test_all_have_to_be_allowed(self) -> None:
        builder = self.three().vertex("x", devices=["d1"])
        assert not self.fit(builder)
        assert self.fit(builder, d=1)

    def test_none_may_be_separated(self) -> None:
        assert not self.fit(self.three().separate("a", "c"))


def test_feasible_devices_are_those_that_fit() -> None:
    rng = np.random.default_rng(0)
    for _ in range(100):
        instance = random_instance(rng, 8, 4, memory="estimate")
        a = arrays(instance)
        state = nothing_placed(a)
        feasible = np.empty(instance.devices, dtype=np.bool_)
        for unit in rng.permutation(len(instance.units)).astype(np.int32):
            find_feasible(a, unit, state, feasible)
            expected = [bool(fits(a, unit, d, state)) for d in range(instance.devices)]
            assert feasible.tolist() == expected
            if feasible.any():
                assign(a, unit, int(rng.choice(np.flatnonzero(feasible))), state)
