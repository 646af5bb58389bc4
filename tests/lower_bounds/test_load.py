"""The load of the devices, as a linear program spreads it; proven by its rounded multipliers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from relabelling import relabelled, stretched

from optpart import Cluster, Device, GraphBuilder, Instance, Model
from optpart.lower_bounds.critical_path import critical_path_bound
from optpart.lower_bounds.load import load_bound
from optpart.testing.brute_force import optimum
from optpart.testing.draw import random_instance


def vertices(*ops: int, memory: int = 0) -> GraphBuilder:
    builder = GraphBuilder()
    for v, amount in enumerate(ops):
        builder.vertex(f"v{v}", amount, memory=memory)
    return builder


class TestByHand:
    def test_one_device_runs_everything(self) -> None:
        assert load_bound(Instance(vertices(3, 4, 5).build(), Cluster.uniform(1, speed=2))) == 6

    def test_equal_devices_share_and_the_makespan_is_a_whole_number_of_ticks(self) -> None:
        """7.5 by shares; all run times are whole, so the makespan is."""
        assert load_bound(Instance(vertices(4, 5, 6).build(), Cluster.uniform(2))) == 8

    def test_shares_go_by_speed(self) -> None:
        """12 operations at 1 + 2 per time unit."""
        cluster = Cluster.of([Device("d0", 1), Device("d1", 2)])
        assert load_bound(Instance(vertices(5, 4, 3).build(), cluster)) == 4

    def test_the_longest_vertex_counts_as_well(self) -> None:
        assert load_bound(Instance(vertices(9, 1, 1).build(), Cluster.uniform(3))) == 9

    def test_a_unit_loads_only_devices_that_it_may_use(self) -> None:
        """7 and 8 on d0; 15 + 6 would be 11 each."""
        graph = GraphBuilder().vertex("a", 7, devices=["d0"]).vertex("b", 8, devices=["d0"])
        assert load_bound(Instance(graph.vertex("c", 6).build(), Cluster.uniform(2))) == 15

    def test_a_group_loads_a_device_with_all_its_members(self) -> None:
        """Each of two groups takes 10 on d0 or 9 on d1; the four vertices alone take 1 each."""
        rows = [[9, 1], [1, 8], [9, 1], [1, 8]]
        graph = vertices(0, 0, 0, 0)
        assert load_bound(Instance(graph.build(), Cluster.uniform(2), durations=rows)) == 2
        graph.colocate("v0", "v1").colocate("v2", "v3")
        # 10x = 9(2 − x) at 180/19.
        assert load_bound(Instance(graph.build(), Cluster.uniform(2), durations=rows)) == 10

    def test_given_run_times_share_where_each_is_best(self) -> None:
        """v0 on d0, v1 on d1, and v2 by shares x: 3 + 6x = 5 + 3(1 − x) at 19/3."""
        rows = [[3, 9], [9, 5], [6, 3]]
        instance = Instance(vertices(0, 0, 0).build(), Cluster.uniform(2), durations=rows)
        assert load_bound(instance) == 7

    def test_nothing_runs_on_a_device_before_its_least_head(self) -> None:
        """d1 waits for a (10) and a crossing (2), then runs four of 6."""
        builder = GraphBuilder().vertex("a", 10, devices=["d0"], outputs=[4])
        for v in range(4):
            builder.vertex(f"v{v}", 6, devices=["d1"]).edge("a", f"v{v}")
        assert load_bound(Instance(builder.build(), Cluster.uniform(2, bandwidth=2))) == 36

    def test_nothing_runs_on_a_device_within_its_least_tail(self) -> None:
        builder = GraphBuilder().vertex("end", 10, devices=["d0"])
        for v in range(4):
            builder.vertex(f"v{v}", 6, devices=["d1"], outputs=[4]).edge(f"v{v}", "end")
        assert load_bound(Instance(builder.build(), Cluster.uniform(2, bandwidth=2))) == 36

    def test_a_device_may_stay_empty(self) -> None:
        """Only d0 is near enough; d1 could begin at 1 + 100, and need not be used."""
        builder = GraphBuilder().vertex("a", 1, devices=["d0"], outputs=[100]).vertex("b", 3)
        instance = Instance(builder.edge("a", "b").build(), Cluster.uniform(2, bandwidth=1))
        best = optimum(instance)
        assert best is not None
        assert best.makespan == 4
        assert load_bound(instance) == 4

    def test_memory_keeps_load_off_a_device(self) -> None:
        """The fast device has room for one of four: 6 each, three on the slow one."""
        graph = vertices(6, 6, 6, 6, memory=2).build()
        fast_and_small = Cluster.of([Device("d0", 1), Device("d1", 3, memory=2)])
        assert load_bound(Instance(graph, fast_and_small)) == 6
        limited = Instance(graph, fast_and_small, Model(memory="estimate"))
        assert load_bound(limited) == 18

    def test_memory_is_shared_by_fractions(self) -> None:
        """Room for half a unit more on the fast device: 15 by shares, 16 in ticks of 2."""
        graph = vertices(6, 6, 6, 6, memory=2).build()
        cluster = Cluster.of([Device("d0", 1), Device("d1", 3, memory=3)])
        assert load_bound(Instance(graph, cluster, Model(memory="estimate"))) == 16

    def test_at_least_the_critical_path(self) -> None:
        builder = GraphBuilder().vertex("a", 5).vertex("b", 5).vertex("c", 1).edge("a", "b", None)
        assert load_bound(Instance(builder.build(), Cluster.uniform(2))) == 10

    def test_vertices_without_length(self) -> None:
        assert load_bound(Instance(vertices(0, 0, 0).build(), Cluster.uniform(2))) == 0


class TestExactness:
    def test_the_bound_is_a_fraction_and_free_of_numbering_and_scale(self) -> None:
        rng = np.random.default_rng(1)
        for draw in range(60):
            instance = random_instance(rng, 8, 4, memory="estimate" if draw % 2 else "none")
            bound = load_bound(instance)
            assert bound is None or type(bound) is Fraction
            assert load_bound(relabelled(instance, rng)) == bound
            factor = Fraction(int(rng.integers(1, 99)), int(rng.integers(1, 99)))
            expected = None if bound is None else bound * factor
            assert load_bound(stretched(instance, factor)) == expected

    def test_never_below_the_critical_path(self) -> None:
        rng = np.random.default_rng(2)
        for _ in range(60):
            instance = random_instance(rng, 8, 4, memory="estimate")
            load, path = load_bound(instance), critical_path_bound(instance)
            assert (load is None) == (path is None)
            assert load is None or path is None or load >= path

    @pytest.mark.parametrize("longest", [10, 10**6, 10**11])
    def test_tight_memory_and_long_times_overstate_nothing(self, longest: int) -> None:
        """Multipliers of memory grow with run times and as memory runs out."""
        rng = np.random.default_rng(3)
        for _ in range(25):
            instance = tight(rng, longest)
            bound, best = load_bound(instance), optimum(instance)
            assert bound is not None
            assert best is None or bound <= best.makespan

    def test_memory_of_many_digits_overstates_nothing(self) -> None:
        """All fits on the fast device to the last bit of a sum of prime fractions."""
        instance = thirds_and_worse()
        bound = load_bound(instance)
        assert bound is not None
        assert bound <= Fraction(12, 1000)


def tight(rng: np.random.Generator, longest: int) -> Instance:
    """Capacities are what some placement uses, or one more."""
    n, k = int(rng.integers(2, 6)), int(rng.integers(2, 4))
    memory = rng.integers(*((0, 6) if rng.integers(2) else (990, 1003)), size=n)
    device = rng.integers(0, k, size=n)
    builder = GraphBuilder()
    for v in range(n):
        builder.vertex(f"v{v}", memory=int(memory[v]))
    room = [int(memory[device == d].sum() + rng.integers(0, 2)) for d in range(k)]
    cluster = Cluster.of([Device(f"d{d}", memory=room[d]) for d in range(k)])
    rows = rng.integers(1, longest + 1, size=(n, k)).tolist()
    return Instance(builder.build(), cluster, Model(memory="estimate"), rows)


def thirds_and_worse() -> Instance:
    """Twelve vertices of 1 operation that all fit on a device of speed 1000, exactly."""
    primes = (97, 89, 83, 79, 73, 71, 67, 61, 59, 53, 47, 43)
    builder = GraphBuilder()
    for p in primes:
        builder.vertex(f"v{p}", 1, memory=Fraction(1, p))
    room = sum((Fraction(1, p) for p in primes), Fraction(0))
    devices = [Device("fast", 1000, memory=room), Device("slow", 1)]
    return Instance(builder.build(), Cluster.of(devices), Model(memory="estimate"))
