"""MITE ([L] §4.7, [M] §3.3.1): every factor by itself, and the strategy that weighs them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from numpy.typing import NDArray

from optpart import Cluster, Device, GraphBuilder, InputError, Instance, Model
from optpart.kernels.compiled import State, arrays, assign, nothing_placed
from optpart.problem.cluster import Matrix
from optpart.strategies.partition.common import Variant
from optpart.strategies.partition.mite import (
    execution_time,
    importance,
    importance_speed_boost,
    incoming_traffic,
    memory,
    mite,
    relative_traffic,
    traffic,
)

VARIANTS: list[Variant] = ["thesis", "paper"]

#: From row to column; all different, so that a wrong direction shows.
RATES = [[None, 2, 1], [4, None, 5], [10, 20, None]]


def values(*numbers: float) -> NDArray[np.float64]:
    return np.array(numbers, dtype=np.float64)


def approx(*numbers: float) -> object:
    return pytest.approx(list(numbers), rel=1e-12)


def star() -> GraphBuilder:
    """a → v by a tensor of 20, b → v by one of 40, v → x, y, z by one of 100."""
    builder = GraphBuilder().vertex("a", 1, outputs=[20]).vertex("b", 1, outputs=[40])
    builder.vertex("v", 1, outputs=[100]).vertex("x", 1).vertex("y", 1).vertex("z", 1)
    for u, v in ("av", "bv", "vx", "vy", "vz"):
        builder.edge(u, v)
    return builder


class Placed:
    """Some vertices of an instance, by name, on devices."""

    def __init__(self, instance: Instance, devices: Mapping[str, int]) -> None:
        graph = instance.graph
        self.instance, self.arrays = instance, arrays(instance)
        self.state: State = nothing_placed(self.arrays)
        self.held = np.zeros((graph.tensors, instance.devices), dtype=np.bool_)
        for name, d in devices.items():
            v = graph.index[name]
            unit = instance.unit_of[v]
            if self.state.device[unit] < 0:
                assign(self.arrays, unit, d, self.state)
            self.held[graph.edge_tensor[graph.edge_target == v], d] = True

    def unit(self, name: str) -> np.int32:
        unit: np.int32 = self.instance.unit_of[self.instance.graph.index[name]]
        return unit

    def traffic(self, name: str, feasible: str = "+++") -> list[float]:
        """[L] eq. 4.7 to 4.10, in time units."""
        before = self.held.copy()
        some = np.array([sign == "+" for sign in feasible], dtype=np.bool_)
        total = traffic(self.arrays, self.unit(name), self.state, self.held, some)
        assert (self.held == before).all()
        return [float(value) / self.arrays.scale for value in total]

    def incoming(self, name: str) -> list[float]:
        """[M] eq. 10, in time units."""
        everywhere = np.ones(self.instance.devices, dtype=np.bool_)
        total = incoming_traffic(self.arrays, self.unit(name), self.state, everywhere)
        return [float(value) / self.arrays.scale for value in total]


def placed(
    builder: GraphBuilder, devices: Mapping[str, int], rates: Matrix = RATES, latency: Matrix = 0
) -> Placed:
    cluster = Cluster.of([Device("d0"), Device("d1"), Device("d2")], rates, latency)
    return Placed(Instance(builder.build(), cluster), devices)


class TestTraffic:
    def test_nothing_comes_from_or_goes_to_what_is_not_placed(self) -> None:
        assert placed(star(), {}).traffic("v") == [0, 0, 0]

    def test_inputs_come_from_where_they_are_made(self) -> None:
        """[L] eq. 4.7, first sum: 40/4; 20/2; 20/1 + 40/5."""
        assert placed(star(), {"a": 0, "b": 1}).traffic("v") == approx(10, 10, 28)

    def test_outputs_go_to_where_they_are_consumed(self) -> None:
        """[L] eq. 4.7, second sum: 100/2; 0; 100/20."""
        assert placed(star(), {"x": 1}).traffic("v") == approx(50, 0, 5)

    def test_both_add_up(self) -> None:
        """40/4 + 100/1; 20/2 + 100/4 + 100/5; 20/1 + 40/5 + 100/10."""
        where = placed(star(), {"a": 0, "b": 1, "x": 2, "z": 0})
        assert where.traffic("v") == approx(110, 55, 38)

    def test_an_input_that_is_there_already_costs_nothing(self) -> None:
        """[L] eq. 4.8: w on d1 consumes what a hands on as well."""
        builder = star().vertex("w", 1).edge("a", "w")
        assert placed(builder, {"a": 0, "w": 1}).traffic("v") == approx(0, 0, 20)

    def test_another_output_of_the_same_vertex_is_another_input(self) -> None:
        builder = star().vertex("w", 1).edge("a", "w", size=7)
        assert placed(builder, {"a": 0, "w": 1}).traffic("v") == approx(0, 10, 20)

    def test_an_output_crosses_once_for_all_its_consumers_on_a_device(self) -> None:
        """[L] eq. 4.9: once to d1 for x and y, and to d2 for z."""
        where = placed(star(), {"x": 1, "y": 1, "z": 2})
        assert where.traffic("v") == approx(50 + 100, 20, 5)

    def test_outputs_of_one_vertex_count_one_by_one(self) -> None:
        """To x on d1 go 100 and 6."""
        assert placed(star().edge("v", "x", size=6), {"x": 1}).traffic("v") == approx(53, 0, 5.3)

    def test_control_dependencies_carry_nothing(self) -> None:
        builder = star().vertex("w", 1).edge("w", "v", None)
        assert placed(builder, {"w": 0}).traffic("v") == [0, 0, 0]

    def test_a_group_has_the_sum_of_its_members(self) -> None:
        """[L] eq. 4.10: v and w consume a; on d1 that counts 20/2 for each."""
        builder = star().vertex("w", 1).edge("a", "w").colocate("v", "w")
        where = placed(builder, {"a": 0, "b": 1, "x": 1})
        assert where.traffic("v") == approx(
            40 / 4 + 100 / 2, 2 * 20 / 2, 2 * 20 + 40 / 5 + 100 / 20
        )
        assert where.traffic("w") == where.traffic("v")

    def test_inside_a_group_nothing_crosses(self) -> None:
        assert placed(star().colocate("a", "v", "x"), {"b": 1}).traffic("v") == approx(10, 0, 8)

    def test_latency_counts(self) -> None:
        latency = [[0, 3, 1], [1, 0, 1], [1, 1, 0]]
        assert placed(star(), {"a": 0}, RATES, latency).traffic("v") == approx(0, 13, 21)

    def test_infinite_bandwidth_takes_no_time(self) -> None:
        assert placed(star(), {"a": 0, "x": 2}, None).traffic("v") == [0, 0, 0]

    def test_only_feasible_devices_count(self) -> None:
        """There is no way from d0 to d1."""
        rates = [[None, 0, 1], [4, None, 5], [10, 20, None]]
        where = placed(star(), {"a": 0, "b": 1}, rates)
        assert where.traffic("v", "+-+") == approx(10, 0, 28)

    def test_is_relative_to_the_most(self) -> None:
        """[L] eq. 4.11."""
        assert relative_traffic(values(110, 55, 44)).tolist() == approx(1, 0.5, 0.4)

    def test_none_is_very_little_beside_some(self) -> None:
        assert relative_traffic(values(0, 8, 2)).tolist() == [0.000001, 1, 0.25]

    def test_none_anywhere_is_1(self) -> None:
        assert relative_traffic(values(0, 0)).tolist() == [1, 1]


class TestIncomingTraffic:
    """[M] eq. 10."""

    def test_counts_every_edge_from_a_placed_vertex(self) -> None:
        builder = star().vertex("w", 1).edge("a", "w")
        where = placed(builder, {"a": 0, "b": 1, "w": 1, "x": 2})
        assert where.incoming("v") == approx(10, 10, 28)

    def test_a_group_has_the_sum_of_its_members(self) -> None:
        builder = star().vertex("w", 1).edge("a", "w").colocate("v", "w")
        assert placed(builder, {"a": 0}).incoming("v") == approx(0, 20, 40)


class TestExecutionTime:
    def test_is_relative_to_the_most_of_all_devices_with_the_unit_on_it(self) -> None:
        """[L] eq. 4.12, 4.13: 5, 4 and 8."""
        load, time = values(2, 0, 6), values(3, 4, 2)
        assert execution_time(load, time).tolist() == approx(5 / 8, 4 / 8, 1)

    def test_is_1_where_nothing_takes_time(self) -> None:
        assert execution_time(values(0, 0), values(0, 0)).tolist() == [1, 1]


class TestMemory:
    def test_is_the_portion_used(self) -> None:
        """[L] eq. 4.14, second case."""
        used, room = np.array([10, 40]), values(40, 100)
        assert memory(used, room, True).tolist() == approx(0.25, 0.4)

    def test_of_an_empty_device_is_a_tenth_of_the_least_portion(self) -> None:
        used, room = np.array([0, 10, 40]), values(10, 40, 100)
        assert memory(used, room, True).tolist() == approx(0.025, 0.25, 0.4)

    def test_is_a_tenth_where_all_are_empty(self) -> None:
        assert memory(np.array([0, 0]), values(0, 5), True).tolist() == [0.1, 0.1]

    def test_of_an_empty_device_is_0_in_the_paper(self) -> None:
        used, room = np.array([0, 10, 40]), values(10, 40, 100)
        assert memory(used, room, False).tolist() == approx(0, 0.25, 0.4)


class TestImportance:
    """[L] eq. 4.16."""

    def diamond(self) -> GraphBuilder:
        """a (2) → b (5) → d (1), a → c (3) → d, c → e (4)."""
        builder = GraphBuilder()
        for name, ops in zip("abcde", (2, 5, 3, 1, 4), strict=True):
            builder.vertex(name, ops)
        for u, v in ("ab", "bd", "ac", "cd", "ce"):
            builder.edge(u, v, None)
        return builder

    def test_is_the_operations_rank_relative_to_the_largest(self) -> None:
        instance = Instance(self.diamond().build(), Cluster.uniform(2))
        assert importance(instance, False).tolist() == approx(1, 8 / 9, 1, 8 / 9, 1)

    def test_is_the_total_rank_relative_to_the_largest_in_the_paper(self) -> None:
        """[M] eq. 9: 9 + 2, 6 + 7, 7 + 5, 1 + 8 and 4 + 9."""
        instance = Instance(self.diamond().build(), Cluster.uniform(2))
        assert importance(instance, True).tolist() == approx(11 / 13, 1, 12 / 13, 9 / 13, 1)

    def test_of_a_group_is_the_mean(self) -> None:
        instance = Instance(self.diamond().colocate("a", "d").build(), Cluster.uniform(2))
        assert importance(instance, False).tolist() == approx(17 / 18, 8 / 9, 1, 1)

    def test_is_0_without_operations(self) -> None:
        instance = Instance(GraphBuilder().vertex("a").vertex("b").build(), Cluster.uniform(2))
        assert importance(instance, False).tolist() == [0, 0]


class TestImportanceSpeedBoost:
    """[L] eq. 4.15."""

    def test_is_relative_to_the_fastest(self) -> None:
        everywhere = np.ones(3, dtype=np.bool_)
        boost = importance_speed_boost(0.5, values(1, 4, 2), everywhere)
        assert boost.tolist() == approx(1 - 0.125, 1 - 0.5, 1 - 0.25)

    def test_is_relative_to_the_fastest_that_counts(self) -> None:
        boost = importance_speed_boost(0.5, values(1, 4, 2), np.array([True, False, True]))
        assert [boost[0], boost[2]] == approx(1 - 0.25, 1 - 0.5)

    def test_of_what_is_most_important_is_0_on_the_fastest(self) -> None:
        everywhere = np.ones(2, dtype=np.bool_)
        assert importance_speed_boost(1.0, values(3, 7), everywhere).tolist() == approx(4 / 7, 0)


def placement(instance: Instance, variant: Variant = "thesis") -> list[int]:
    partition = mite(instance, np.random.default_rng(0), variant=variant)
    return [int(device) for device in partition.placement]


def two(memory: tuple[int, int] | None = None) -> Cluster:
    """Speeds 1 and 2, all transfers at 2."""
    limits = memory or (None, None)
    return Cluster.of([Device("d0", 1, memory=limits[0]), Device("d1", 2, memory=limits[1])], 2)


class TestThesis:
    def test_multiplies_all_factors(self) -> None:
        """Operations ranks 6, 6, 2; memory is 1/10 throughout; traffic, time and boost are, for

        a: 1, 4/4, 1 − 1/2 and 1, 2/4, **0**;
        b: 1, 2/3, 1 − 1/2 and 0.000001, (2 + 1)/3, **0**;
        c: 1, 2/4, 1 − 1/6, **5/12**, and 1, (3 + 1)/4, 1 − 1/3, 2/3.
        """
        builder = GraphBuilder().vertex("a", 4, outputs=[4]).vertex("b", 2).vertex("c", 2)
        assert placement(Instance(builder.edge("a", "b").build(), two())) == [1, 1, 0]

    @pytest.mark.parametrize(("q", "device"), [(10, 0), (3, 1)])
    def test_little_memory_attracts(self, q: int, device: int) -> None:
        """Operations ranks 8, 8, 2, 16; for the third, traffic and importance are 1 and 1/8.

        Time is (8 + 2)/10 on d0, (4 + 1)/10 on d1, the boost 15/16 and 7/8. Memory is 1/10 and
        q/40: with 10 the scores are 0.09375 and 0.109375, with 3 that of d1 is 0.0328.
        """
        builder = GraphBuilder().vertex("p", 8, memory=4, devices=["d0"])
        builder.vertex("q", 8, memory=q, devices=["d1"]).vertex("v", 2)
        builder.vertex("w", 16)
        instance = Instance(builder.build(), two((40, 40)), Model(memory="estimate"))
        assert placement(instance)[2] == device

    @pytest.mark.parametrize(("limit", "device"), [(15, 1), (25, 0)])
    def test_without_a_limit_the_portion_is_that_of_what_all_need(
        self, limit: int, device: int
    ) -> None:
        """On d1 8/20; on d0 8/15 or 8/25. All else is equal."""
        builder = GraphBuilder().vertex("p", 1, memory=8, devices=["d0"])
        builder.vertex("q", 1, memory=8, devices=["d1"]).vertex("v", 1, memory=4).vertex("w", 4)
        cluster = Cluster.of([Device("d0", memory=limit), Device("d1")])
        instance = Instance(builder.build(), cluster, Model(memory="estimate"))
        assert placement(instance)[2] == device

    def test_equally_important_vertices_share_equal_devices(self) -> None:
        """All have a score of 0 everywhere."""
        builder = GraphBuilder()
        for v in range(6):
            builder.vertex(f"v{v}", 1)
        assert placement(Instance(builder.build(), Cluster.uniform(3))) == [0, 1, 2, 0, 1, 2]

    def test_a_critical_path_stays_on_one_of_equal_devices(self) -> None:
        builder = GraphBuilder().vertex("x", 5)
        for v in range(4):
            builder.vertex(f"v{v}", 5, outputs=[1])
        for v in range(3):
            builder.edge(f"v{v}", f"v{v + 1}")
        instance = Instance(builder.build(), Cluster.uniform(2, bandwidth=1))
        assert placement(instance) == [0, 1, 1, 1, 1]

    def test_an_input_follows_the_consumer_that_is_there(self) -> None:
        """a (on d0) is consumed by w on d2; there v costs no more than on d0, and the load is less.

        Without w, traffic keeps v on d0.
        """
        for extra, device in ((True, 2), (False, 0)):
            builder = GraphBuilder().vertex("a", 9, outputs=[6], devices=["d0"])
            builder.vertex("w", 1, devices=["d2"]).vertex("v", 1).vertex("z", 20, devices=["d0"])
            builder.edge("a", "v")
            if extra:
                builder.edge("a", "w")
            instance = Instance(builder.build(), Cluster.uniform(3, bandwidth=1))
            assert placement(instance)[2] == device


class TestPaper:
    def test_of_equal_scores_traffic_and_time_decide(self) -> None:
        """All scores are 0: no memory is used. b has no traffic on d1; c would end at 2 and 4."""
        builder = GraphBuilder().vertex("a", 4, outputs=[4]).vertex("b", 2).vertex("c", 2)
        assert placement(Instance(builder.edge("a", "b").build(), two()), "paper") == [1, 1, 0]

    @pytest.mark.parametrize(("used", "device"), [((10, 30), 0), ((90, 10), 1)])
    def test_multiplies_all_factors(self, used: tuple[int, int], device: int) -> None:
        """Total ranks 10, 10, 14, 28. The third has

        traffic 4/2 on d0 and 12/2 on d1, time 6/6 and 3/6, boost 1 − 1/4 and 1 − 1/2,
        together 1.5 and 1.5, so that memory decides.
        """
        builder = GraphBuilder()
        builder.vertex("p", 2, memory=used[0], outputs=[12], devices=["d0"])
        builder.vertex("q", 2, memory=used[1], outputs=[4], devices=["d1"])
        builder.vertex("v", 6).edge("p", "v").edge("q", "v").vertex("z", 14)
        instance = Instance(builder.build(), two((100, 100)), Model(memory="refcount"))
        assert placement(instance, "paper")[2] == device


@pytest.mark.parametrize("variant", VARIANTS)
class TestBoth:
    def test_groups_come_first(self, variant: Variant) -> None:
        builder = GraphBuilder().vertex("a", 1).vertex("b", 1).vertex("c", 1).vertex("d", 1)
        instance = Instance(builder.colocate("b", "d").build(), two())
        found = mite(instance, np.random.default_rng(0), variant=variant).placed
        assert found is not None
        assert found.tolist() == [1, 0, 2, 0]

    def test_only_feasible_devices_count(self, variant: Variant) -> None:
        builder = GraphBuilder().vertex("a", 4, memory=3).vertex("b", 2, devices=["d0"])
        instance = Instance(builder.build(), two((5, 2)), Model(memory="estimate"))
        assert placement(instance, variant) == [0, 0]

    def test_given_run_times_stand_for_speed(self, variant: Variant) -> None:
        graph = GraphBuilder().vertex("a").vertex("b").vertex("c").build()
        instance = Instance(graph, two(), durations=[[2, 7], [9, 0], [None, 3]])
        assert placement(instance, variant) == [0, 1, 1]

    def test_nothing_takes_time(self, variant: Variant) -> None:
        graph = GraphBuilder().vertex("a").vertex("b").edge("a", "b", None).build()
        assert placement(Instance(graph, two()), variant) == [0, 0]

    def test_numbers_beyond_doubles_are_placed_somehow(self, variant: Variant) -> None:
        huge = 10**400
        builder = GraphBuilder().vertex("a", huge, outputs=[huge]).vertex("b", huge)
        instance = Instance(builder.edge("a", "b").build(), two())
        assert len(placement(instance, variant)) == 2


def test_an_unknown_variant_is_refused() -> None:
    instance = Instance(star().build(), Cluster.uniform(2))
    with pytest.raises(InputError, match="variant: unknown 'book'; choose one of thesis, paper"):
        mite(instance, np.random.default_rng(0), variant="book")  # type: ignore[arg-type]
