"""CP-SAT proves what brute force finds, says only what it can prove, and outlives its solver."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from ortools.sat.python import cp_model
from relabelling import relabelled, stretched
from signalling import signal_with_the_job

from optpart import (
    Cluster,
    Device,
    GraphBuilder,
    Instance,
    Model,
    RationalArray,
    Schedule,
    costed,
    read_instance,
    retime,
    workload,
)
from optpart.base.children.worker import Worker
from optpart.exact import process
from optpart.exact import solve as module
from optpart.exact.cp_sat import solver_within
from optpart.exact.cross_check import compare
from optpart.exact.enumeration import enumerate_all
from optpart.exact.process import shared
from optpart.exact.symmetry import interchangeable_devices
from optpart.interop.formats.cluster_toml import loads_named
from optpart.kernels import ticks
from optpart.lower_bounds.load import load_bound
from optpart.methods.cpsat import cpsat
from optpart.problem.model import Communication, Memory
from optpart.problem.rational import Number
from optpart.solution.goal import Goal
from optpart.solution.pruning import Pruning
from optpart.solution.result import Budget, Progress, Result, Status
from optpart.solution.termination import Termination
from optpart.solution.verifier import verify
from optpart.testing.brute_force import optimum
from optpart.testing.draw import draw_instance, random_instance

DATA = Path(__file__).parents[3] / "shared/data"
BIRGIN = DATA / "scheduleopt/flexible-jobshop/instances/fajsp/BFFMOR2014"

#: One worker: for tiny models starting threads takes longer than solving.
ONE = Budget(seconds=30, workers=1)

#: A limit that only a test that fails reaches.
NEVER_REACHED = Budget(seconds=600, workers=1)


def solve(instance: Instance) -> Result:
    """Solve, and check what holds for every result."""
    result = cpsat(instance, budget=ONE)
    if result.schedule is not None:
        assert verify(instance, result.schedule) == []
        assert result.makespan == result.schedule.makespan(instance)
    if result.status is Status.OPTIMAL:
        assert result.lower_bound == result.makespan
        assert result.gap == 0
    return result


def check(instance: Instance) -> bool:
    """Assert that the solver agrees with brute force; say whether there is a schedule."""
    best, result = optimum(instance), solve(instance)
    if best is None:
        assert result.status is Status.INFEASIBLE
        assert result.schedule is None
        assert result.reason
    else:
        assert result.status is Status.OPTIMAL
        assert result.makespan == best.makespan
        assert result.reason == ""
    return best is not None


def random_dag(n: int, k: int, seed: int, density: float = 0.2) -> Instance:
    """Whole numbers, unlike devices; with 40 vertices nothing that closes within seconds."""
    rng = np.random.default_rng(seed)
    builder = GraphBuilder()
    for v in range(n):
        builder.vertex(f"v{v}", int(rng.integers(1, 100)), outputs=[int(rng.integers(1, 200))])
    for u in range(n):
        for v in range(u + 1, n):
            if rng.random() < density:
                builder.edge(f"v{u}", f"v{v}")
    devices = [Device(f"d{d}", int(rng.integers(2, 6))) for d in range(k)]
    return Instance(builder.build(), Cluster.of(devices, bandwidth=3), name=f"dag-{n}-{k}-{seed}")


HARD = random_dag(95, 5, 1)
#: No heuristic finds its optimum of 41.
EASY = random_dag(6, 3, 9)


class TestAgainstBruteForce:
    @pytest.mark.parametrize("memory", ["none", "estimate"])
    @pytest.mark.parametrize("rational", [False, True])
    def test_everything_at_once(self, memory: Memory, rational: bool) -> None:
        rng = np.random.default_rng(1)
        draws = [random_instance(rng, 6, 3, memory=memory, rational=rational) for _ in range(10)]
        feasible = sum(map(check, draws))
        assert 4 <= feasible < 10 + (memory == "none")

    def test_hard_placements(self) -> None:
        """Separation, missing links and little memory: heuristics often find nothing."""
        rng = np.random.default_rng(2)
        feasible = 0
        for _ in range(40):
            instance = random_instance(rng, 6, 3, memory="estimate", durations=False, far=False)
            capacities = fair_shares(rng, instance)
            devices = [
                Device(f"d{d}", 1 + d, instance.cluster.types[d], capacities[d])
                for d in range(instance.devices)
            ]
            rates = rng.integers(0, 3, size=(instance.devices, instance.devices)).tolist()
            scarce = Cluster.of(devices, rates)
            feasible += check(Instance(instance.graph, scarce, instance.model))
        assert 5 < feasible < 35

    def test_alike_devices(self) -> None:
        """Three of a kind: of schedules that differ in names of devices only one is looked at."""
        rng = np.random.default_rng(3)
        for _ in range(25):
            instance = random_instance(
                rng, 6, 3, types=False, allowed=False, durations=False, measured=False, far=False
            )
            latency = int(rng.integers(0, 3))
            cluster = Cluster.uniform(3, bandwidth=int(rng.integers(1, 5)), latency=latency)
            alike = Instance(instance.graph, cluster)
            assert interchangeable_devices(alike) == [[0, 1, 2]]
            check(alike)

    def test_alike_devices_with_little_memory(self) -> None:
        rng = np.random.default_rng(4)
        feasible = 0
        for _ in range(25):
            graph = random_instance(
                rng, 6, 3, memory="estimate", types=False, allowed=False, measured=False
            ).graph
            need = graph.memory.sum() + 2 * graph.tensor_size.sum()
            cluster = Cluster.uniform(3, bandwidth=2, memory=need * int(rng.integers(3, 8)) / 12)
            feasible += check(Instance(graph, cluster, Model(memory="estimate")))
        assert 8 < feasible < 25

    def test_two_alike_beside_one_that_is_not(self) -> None:
        rng = np.random.default_rng(5)
        for _ in range(16):
            instance = random_instance(
                rng, 6, 3, types=False, allowed=False, durations=False, measured=False, far=False
            )
            speeds = rng.permutation([1, 1, 3]).tolist()
            devices = [Device(f"d{d}", speed) for d, speed in enumerate(speeds)]
            alike = Instance(instance.graph, Cluster.of(devices, bandwidth=2))
            assert [len(members) for members in interchangeable_devices(alike)] == [2]
            check(alike)


def fair_shares(rng: np.random.Generator, instance: Instance) -> list[Fraction]:
    """Capacities from half to twice a fair share of all that needs memory."""
    need = instance.static_memory.sum() / instance.devices
    return [need * int(rng.integers(2, 9)) / 4 for _ in range(instance.devices)]


class TestInvariance:
    def test_numbering_changes_no_optimum(self) -> None:
        rng = np.random.default_rng(1)
        for draw in range(30):
            instance = random_instance(rng, 9, 4, memory="estimate" if draw % 2 else "none")
            first, second = solve(instance), solve(relabelled(instance, rng))
            assert first.status is second.status
            assert first.makespan == second.makespan

    def test_the_unit_of_time_changes_no_optimum(self) -> None:
        rng = np.random.default_rng(2)
        for draw in range(30):
            instance = random_instance(rng, 7, 3, memory="estimate" if draw % 2 else "none")
            factor = Fraction(int(rng.integers(1, 1000)), int(rng.integers(1, 1000)))
            first, second = solve(instance), solve(stretched(instance, factor))
            assert first.status is second.status
            assert second.makespan == (first.makespan and first.makespan * factor)


class TestSmallest:
    def test_an_empty_graph_is_optimal(self) -> None:
        result = solve(Instance(GraphBuilder().build(), Cluster.uniform(2)))
        assert result.status is Status.OPTIMAL
        assert result.makespan == 0

    def test_a_single_vertex_is_optimal(self) -> None:
        cluster = Cluster.of([Device("d0", 3), Device("d1", 7)])
        result = solve(Instance(GraphBuilder().vertex("a", 5).build(), cluster))
        assert result.status is Status.OPTIMAL
        assert result.makespan == Fraction(5, 7)

    def test_vertices_without_length_take_no_time(self) -> None:
        builder = GraphBuilder().vertex("a").vertex("b").edge("a", "b", None)
        result = solve(Instance(builder.build(), Cluster.uniform(2)))
        assert result.status is Status.OPTIMAL
        assert result.makespan == 0


class TestInfeasible:
    def reason(self, instance: Instance) -> str:
        result = solve(instance)
        assert result.status is Status.INFEASIBLE
        assert result.lower_bound is None
        return result.reason

    def test_a_unit_without_device(self) -> None:
        graph = GraphBuilder().vertex("a").vertex("b").build()
        instance = Instance(graph, Cluster.uniform(2), durations=[[1, 1], [None, None]])
        assert self.reason(instance) == "b has no device that it may run on"

    def test_a_group_that_is_separated(self) -> None:
        graph = GraphBuilder().vertex("a").vertex("b").vertex("c")
        graph.colocate("a", "b").colocate("b", "c").separate("a", "c")
        reason = self.reason(Instance(graph.build(), Cluster.uniform(2)))
        assert reason == "a and c are both colocated and separated"

    def test_a_vertex_too_large_for_every_device(self) -> None:
        graph = GraphBuilder().vertex("a", memory=7).build()
        cluster = Cluster.of([Device("d0", memory=5), Device("d1", memory=6)])
        reason = self.reason(Instance(graph, cluster, Model(memory="estimate")))
        assert "a needs memory 7" in reason
        assert "has 6" in reason

    def test_too_little_memory_in_all(self) -> None:
        builder = GraphBuilder()
        for v in range(3):
            builder.vertex(f"v{v}", memory=4)
        instance = Instance(builder.build(), Cluster.uniform(2, memory=5), Model(memory="estimate"))
        assert "12" in self.reason(instance)
        assert "10" in self.reason(instance)

    def test_a_missing_link(self) -> None:
        graph = GraphBuilder().vertex("a", devices=["d0"]).vertex("b", devices=["d1"])
        instance = Instance(graph.edge("a", "b", None).build(), Cluster.uniform(2, bandwidth=0))
        assert "missing links" in self.reason(instance)

    def test_more_separated_vertices_than_devices(self) -> None:
        builder = GraphBuilder().vertex("a").vertex("b").vertex("c")
        builder.separate("a", "b").separate("b", "c").separate("c", "a")
        reason = self.reason(Instance(builder.build(), Cluster.uniform(2)))
        assert "separation" in reason

    def test_memory_that_no_packing_satisfies(self) -> None:
        """Three of 4 in two of 6: enough in all, and yet too little."""
        builder = GraphBuilder()
        for v in range(3):
            builder.vertex(f"v{v}", memory=4)
        instance = Instance(builder.build(), Cluster.uniform(2, memory=6), Model(memory="estimate"))
        assert "memory" in self.reason(instance)


class TestMemoryOfManyDigits:
    """Sizes whose common unit is beyond 64 bits are no reason for a wrong claim."""

    PRIMES = (97, 89, 83, 79, 73, 71, 67, 61, 59, 53, 47, 43)

    def instance(self, devices: list[Device]) -> Instance:
        """Twelve vertices of 1 operation and 1/p of memory."""
        builder = GraphBuilder()
        for p in self.PRIMES:
            builder.vertex(f"v{p}", 1, memory=Fraction(1, p))
        return Instance(builder.build(), Cluster.of(devices), Model(memory="estimate"))

    def room(self, primes: tuple[int, ...]) -> Fraction:
        return sum((Fraction(1, p) for p in primes), Fraction(0))

    def test_what_fits_to_the_last_bit_is_not_infeasible(self) -> None:
        devices = [
            Device("d0", memory=self.room(self.PRIMES[:6])),
            Device("d1", memory=self.room(self.PRIMES[6:])),
        ]
        instance = self.instance(devices)
        schedule = retime(instance, [0] * 6 + [1] * 6, range(12))
        assert verify(instance, schedule) == []
        result = solve(instance)
        assert result.status is not Status.INFEASIBLE
        assert result.lower_bound is None or result.lower_bound <= 6

    def test_what_fits_to_the_last_bit_is_not_cut_off(self) -> None:
        devices = [Device("fast", 1000, memory=self.room(self.PRIMES)), Device("slow", 1)]
        instance = self.instance(devices)
        schedule = retime(instance, [0] * 12, range(12))
        assert verify(instance, schedule) == []
        result = solve(instance)
        assert result.lower_bound is not None
        assert result.lower_bound <= Fraction(12, 1000)

    def test_what_is_too_large_by_the_last_bit_does_not_fit(self) -> None:
        tiny = Fraction(1, 10**30)
        devices = [Device("fast", 1000, memory=self.room(self.PRIMES) - tiny), Device("slow", 1)]
        instance = self.instance(devices)
        result = solve(instance)
        assert result.makespan is not None
        assert result.makespan >= 1

    def test_what_only_rounding_lets_fit_is_left_open_for_a_reason(self) -> None:
        """Three of just more than 1/2 in two of 1: no solver of whole numbers sees that."""
        builder = GraphBuilder()
        for v in range(3):
            builder.vertex(f"v{v}", 1, memory=Fraction(1, 2) + Fraction(1, 10**30))
        instance = Instance(builder.build(), Cluster.uniform(2, memory=1), Model(memory="estimate"))
        result = solve(instance)
        assert result.schedule is None
        assert result.status in (Status.UNKNOWN, Status.INFEASIBLE)
        assert "memory" in result.reason


class TestRounding:
    """Times without a common unit that a solver could count in (design §3)."""

    SPEEDS = (97, 89, 83, 79, 73, 71, 67)

    def test_what_rounding_leaves_open_is_closed_in_exact_time(self) -> None:
        rng = np.random.default_rng(1)
        for _ in range(5):
            instance = self.instance(rng)
            best, result = optimum(instance), solve(instance)
            assert best is not None
            assert (result.status, result.makespan) == (Status.OPTIMAL, best.makespan)

    @pytest.mark.parametrize("communication", ["sendrecv", "link", "port"])
    def test_so_it_is_where_transfers_wait(self, communication: Communication) -> None:
        rng = np.random.default_rng(1)
        for _ in range(4):
            instance = replace(self.instance(rng), model=Model(communication, send_ops=1))
            result = solve(instance)
            assert result.status is Status.OPTIMAL
            compare(result, enumerate_all(instance, budget=ONE))

    def test_but_not_for_ports_of_several_channels(self) -> None:
        """A transfer that waits then waits for one of several others."""
        rng = np.random.default_rng(2)
        for _ in range(8):
            instance = replace(self.instance(rng), model=Model("port", channels=2))
            result = solve(instance)
            assert result.gap is not None
            if result.status is not Status.OPTIMAL:
                assert result.termination is Termination.ROUNDING
                assert 0 < result.gap < 1e-5

    @pytest.mark.parametrize("communication", ["delay", "sendrecv", "link", "port"])
    def test_a_limit_that_only_rounding_exceeds_is_kept(
        self, communication: Communication, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """On a grid of a few ticks: the optimum as the limit, and a millionth less.

        Where tasks of different order take no tick at all, the solver's order says little.
        """
        monkeypatch.setattr(ticks, "MAX_HORIZON", 16)
        monkeypatch.setattr(module, "_TICKS", 64)
        open_ = 0
        for seed in range(8):
            instance = draw_instance(
                seed, communication, "none", vertices=(3, 5), devices=(1, 2), exact=False
            )
            instance = replace(instance, model=replace(instance.model, channels=1))
            best = enumerate_all(instance, budget=ONE).makespan
            if not best:
                continue
            within = module.solve(instance, budget=ONE, goal=Goal(makespan=best))
            below = Goal(makespan=best * (1 - Fraction(1, 10**6)))
            none = module.solve(instance, budget=ONE, goal=below)
            assert within.makespan in (best, None)
            assert none.makespan is None
            open_ += within.makespan is None or none.status is not Status.INFEASIBLE
        assert open_ < 2

    def instance(self, rng: np.random.Generator) -> Instance:
        """Four or five vertices of a prime of operations on seven devices."""
        builder = GraphBuilder()
        n = int(rng.integers(4, 6))
        for v, ops in enumerate(rng.choice([101, 103, 107, 109, 113, 127], size=n)):
            builder.vertex(f"v{v}", int(ops), outputs=[1])
        for v in range(1, n):
            builder.edge(f"v{int(rng.integers(v))}", f"v{v}")
        devices = [Device(f"d{s}", int(s)) for s in rng.permutation(self.SPEEDS)]
        return Instance(builder.build(), Cluster.of(devices, bandwidth=Fraction(131, 10)))

    def test_run_times_of_any_denominator(self) -> None:
        rng = np.random.default_rng(2)
        for _ in range(20):
            rows = [
                [Fraction(int(rng.integers(1, 10**9)), int(rng.integers(1, 10**9))) for _ in "123"]
                for _ in range(5)
            ]
            builder = GraphBuilder()
            for v in range(5):
                builder.vertex(f"v{v}")
            instance = Instance(builder.build(), Cluster.uniform(3), durations=rows)
            best, result = optimum(instance), solve(instance)
            assert best is not None
            assert result.makespan is not None
            assert result.lower_bound is not None
            assert result.lower_bound <= best.makespan <= result.makespan
            assert result.makespan - result.lower_bound < best.makespan / 10**5

    def test_a_poor_start_does_not_leave_a_coarse_grid(self) -> None:
        """All heuristics take the wrong one of two groups; the optimum is 4, they find 2·10⁹."""
        builder = GraphBuilder()
        for name in "abcde":
            builder.vertex(name)
        builder.colocate("a", "b").edge("a", "b", None).colocate("c", "d").edge("c", "d", None)
        p, q, long = 10**9 + 7, 10**9 + 9, 10**9
        a = [Fraction(p + 1, p), Fraction(2 * q + 1, q)]
        rows: list[list[Number | None]] = [[*a], [2 * long, 1], [2, 1], [1, long], [1, 9]]
        instance = Instance(builder.build(), Cluster.uniform(2), durations=rows)
        best, result = optimum(instance), solve(instance)
        assert best is not None
        assert best.makespan == 4
        assert result.makespan == 4
        assert result.gap is not None
        assert result.gap < 1e-5

    def test_on_coarse_grids_nothing_wrong_is_claimed(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A few ticks to the makespan, so that rounding decides much."""
        monkeypatch.setattr(ticks, "MAX_HORIZON", 16)
        rng = np.random.default_rng(3)
        open_ = 0
        for draw in range(60):
            monkeypatch.setattr(module, "_TICKS", 2 ** int(rng.integers(3, 12)))
            memory: Memory = "estimate" if draw % 2 else "none"
            instance = random_instance(rng, 6, 3, memory=memory, exact=False, longest=9)
            best, result = optimum(instance), solve(instance)
            if best is None:
                assert result.status is Status.INFEASIBLE
                continue
            assert result.makespan is not None
            assert result.lower_bound is not None
            assert result.lower_bound <= best.makespan <= result.makespan
            if result.status is Status.OPTIMAL:
                assert result.makespan == best.makespan
            else:
                open_ += 1
                assert result.termination is Termination.ROUNDING
        assert open_ < 6

    def test_infeasible_is_infeasible_on_any_grid(self) -> None:
        """Three of 4 in two of 6."""
        builder = GraphBuilder()
        for v in range(3):
            builder.vertex(f"v{v}", memory=4)
        rows = [[Fraction(1, 10**9 + 7), Fraction(1, 10**9 + 9)]] * 3
        cluster = Cluster.uniform(2, memory=6)
        result = solve(Instance(builder.build(), cluster, Model(memory="estimate"), rows))
        assert result.status is Status.INFEASIBLE
        assert "memory" in result.reason


class TestLongTimes:
    """Where a step of the solver's presolve, which is left out, cuts off the optimum."""

    def test_a_workflow_in_nanoseconds(self) -> None:
        result = solve(read_instance(Path(__file__).with_name("long_times.json")))
        assert result.status is Status.OPTIMAL
        assert result.makespan == Fraction(386143696768, 5)

    def test_prompts_of_a_language_model(self) -> None:
        read = workload("llama-3-70b", mode="prefill", context=4096, weights="q4_K")
        devices = loads_named(
            'default_link = "pcie-3-x16"\n'
            'device = [{of = "t4", count = 4}, {of = "epyc-7763", memory = "256 GB"}]'
        )
        result = solve(costed(read, devices, "roofline").instance)
        assert result.status is Status.OPTIMAL
        assert result.makespan == 119972179183


@pytest.mark.skipif(not BIRGIN.exists(), reason=f"{BIRGIN} is not here")
def test_decisions_by_linear_programs_are_left_out() -> None:
    """With them, one worker proves 513; 512 has a certificate."""
    result = cpsat(read_instance(BIRGIN / "YFJS12.txt"), budget=Budget(60, 1), seed=0)
    assert (result.status, result.makespan) == (Status.OPTIMAL, 512)


def test_only_models_without_intervals_keep_them() -> None:
    model = cp_model.CpModel()
    start = model.new_int_var(0, 9, "")
    assert solver_within(model=model).parameters.exploit_all_lp_solution
    model.new_fixed_size_interval_var(start, 2, "")
    for solver in (solver_within(model=model), solver_within()):
        assert not solver.parameters.exploit_all_lp_solution
        assert not solver.parameters.exploit_integer_lp_solution


@pytest.mark.parametrize("without", [frozenset(), frozenset(Pruning)], ids=["all", "none"])
def test_a_flexible_shop_of_which_another_model_has_a_false_optimum(
    without: frozenset[Pruning],
) -> None:
    """OR-Tools 9.15 proves 6 for PyJobShop's model of it (tests/runtimes)."""
    only = {"b": ["fast"], "e": ["fast"], "g": ["slow"]}
    builder = GraphBuilder()
    for name in "abcdefg":
        builder.vertex(name, 2, devices=only.get(name))
    for name in "abcefg":
        builder.edge(name, "d", None)
    devices = [Device("slow", 1), Device("fast", 2)]
    instance = Instance(builder.build(), Cluster.of(devices))
    result = cpsat(instance, budget=ONE, without=without)
    assert (result.status, result.makespan) == (Status.OPTIMAL, 5)


class TestStart:
    def test_a_given_start_is_used(self) -> None:
        best = optimum(EASY)
        assert best is not None
        assert best.makespan == 41
        start = retime(EASY, best.placement, best.order)
        result = cpsat(EASY, budget=Budget(0, 1), start=start)
        assert result.makespan == 41
        assert [step.objective for step in result.trace] == [41, 41]  # then the bound
        without = cpsat(EASY, budget=Budget(0, 1))
        assert without.makespan is not None
        assert without.makespan > 41

    def test_a_start_that_breaks_a_rule_is_not(self) -> None:
        graph = GraphBuilder().vertex("a", 6, devices=["d1"]).build()
        instance = Instance(graph, Cluster.of([Device("d0", 9), Device("d1", 1)]))
        start = retime(instance, [0], [0])
        assert verify(instance, start)
        result = cpsat(instance, budget=ONE, start=start)
        assert result.status is Status.OPTIMAL
        assert result.makespan == 6
        assert "the given start was not used: allowed devices: a must not be on d0" in result.reason

    def test_a_start_need_not_be_earliest(self) -> None:
        """One that idles is improved upon."""
        start = retime(EASY, [0] * 6, EASY.graph.topological_order.tolist())
        late = Schedule(
            start.placement,
            RationalArray.from_fractions(t + 1000 for t in start.start.fractions()),
            start.transfers,
        )
        assert verify(EASY, late) == []
        result = cpsat(EASY, budget=ONE, start=late)
        assert result.status is Status.OPTIMAL
        assert result.makespan == 41

    def test_without_time_the_best_heuristic_counts(self) -> None:
        result = cpsat(HARD, budget=Budget(0, 1))
        assert result.status is Status.FEASIBLE
        assert result.termination is Termination.TIME_LIMIT
        assert result.lower_bound is not None
        bound = load_bound(HARD)
        assert bound is not None
        assert result.lower_bound >= bound


class TestLimits:
    def test_time(self) -> None:
        result = cpsat(HARD, budget=Budget(1.5, 1))
        assert result.status is Status.FEASIBLE
        # One that goes on past its limit is ended from outside, which counts as a failure.
        assert result.termination is Termination.TIME_LIMIT

    def test_deterministic_time_gives_the_same_result(self) -> None:
        budget = Budget(seconds=60, workers=1, deterministic=0.02)
        first, second = (cpsat(HARD, budget=budget, seed=3) for _ in range(2))
        assert first.schedule is not None
        assert second.schedule is not None
        assert first.status is Status.FEASIBLE
        assert first.termination is Termination.TIME_LIMIT
        assert first.makespan == second.makespan
        assert first.lower_bound == second.lower_bound
        assert first.schedule.placement.tolist() == second.schedule.placement.tolist()
        assert first.schedule.start.fractions() == second.schedule.start.fractions()
        steps = [[(s.objective, s.bound) for s in result.trace] for result in (first, second)]
        assert steps[0] == steps[1]


class TestTrace:
    def test_a_watch_sees_the_incumbent_and_can_stop_a_solver_that_finds_nothing(self) -> None:
        seen: list[Progress] = []

        def stop(step: Progress) -> None:
            known = [(other.objective, other.bound) for other in seen]
            seen.append(step)
            if (step.objective, step.bound) in known:
                raise KeyboardInterrupt

        result = cpsat(HARD, budget=NEVER_REACHED, watch=stop)
        assert result.termination is Termination.INTERRUPTED
        assert seen[-1].schedule is result.schedule is not None
        assert all(step.schedule is None for step in result.trace)

    def test_improves_from_step_to_step(self) -> None:
        seen: list[Progress] = []
        result = cpsat(HARD, budget=Budget(1.5, 2), watch=seen.append)
        assert tuple(step for step in seen if step in result.trace) == result.trace
        assert len(result.trace) >= 2
        for before, after in pairwise(result.trace):
            assert before.seconds <= after.seconds
            assert after.bound is not None
            assert before.bound is not None
            assert after.objective is not None
            assert before.objective is not None
            assert after.bound >= before.bound
            assert after.objective <= before.objective
            assert (after.bound, after.objective) != (before.bound, before.objective)
            assert after.bound <= after.objective
        assert seen[-1].objective == result.makespan
        assert seen[-1].bound == result.lower_bound


class TestSolverProcess:
    @pytest.fixture(autouse=True)
    def _fresh(self) -> Iterator[None]:
        shared(module.WORKER).stop()
        yield
        shared(module.WORKER).stop()

    def still_works(self) -> None:
        result = solve(EASY)
        assert result.status is Status.OPTIMAL
        assert result.makespan == 41

    def test_a_death_costs_only_that_solve(self, monkeypatch: pytest.MonkeyPatch) -> None:
        signal_with_the_job(monkeypatch, signal.SIGKILL)
        result = cpsat(HARD, budget=NEVER_REACHED)
        assert result.status is Status.FEASIBLE
        assert result.schedule is not None
        assert result.reason == "the solver died (signal 9)"
        assert result.termination is Termination.FAILED
        self.still_works()

    def test_a_death_keeps_what_the_solver_had_found(self) -> None:
        self.still_works()
        seen: list[Progress] = []
        killed: list[int] = []

        def kill(step: Progress) -> None:
            """Kill at the first step that is the solver's: the one before is the load bound."""
            running = shared(module.WORKER).worker
            seen.append(step)
            late = len([s for s in seen if s.bound]) > 1
            if late and running is not None and running.process.pid not in killed:
                killed.append(running.process.pid)
                os.kill(killed[-1], signal.SIGKILL)

        result = cpsat(HARD, budget=NEVER_REACHED, watch=kill)
        assert result.status is Status.FEASIBLE
        assert result.reason == "the solver died (signal 9)"
        assert result.termination is Termination.FAILED
        assert result.makespan == min(step.objective for step in seen if step.objective)
        assert result.lower_bound == max(step.bound for step in seen if step.bound)
        self.still_works()

    def test_a_death_between_solves_costs_nothing(self) -> None:
        self.still_works()
        running = shared(module.WORKER).worker
        assert running is not None
        os.kill(running.process.pid, signal.SIGKILL)
        running.process.wait()
        self.still_works()

    def test_a_solver_that_hangs_is_ended(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(process, "GRACE", 0.0)
        signal_with_the_job(monkeypatch, signal.SIGSTOP)
        result = cpsat(HARD, budget=Budget(2, 1))
        assert result.status is Status.FEASIBLE
        assert result.reason == "time limit"
        assert result.termination is Termination.TIME_LIMIT
        self.still_works()

    def test_an_interrupt_returns_the_best_so_far(self) -> None:
        def interrupt(step: Progress) -> None:
            if step.bound:
                raise KeyboardInterrupt

        result = cpsat(HARD, budget=ONE, watch=interrupt)
        assert result.status is Status.FEASIBLE
        assert result.termination is Termination.INTERRUPTED
        self.still_works()

    def test_an_error_in_the_watch_reaches_the_caller_and_leaves_nothing_behind(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        sent: list[object] = []
        send = Worker.send

        def recorded(worker: Worker, message: object) -> None:
            sent.append(message)
            send(worker, message)

        def fail(step: Progress) -> None:
            if sent:  # before, the process waits for its job
                raise ZeroDivisionError

        monkeypatch.setattr(Worker, "send", recorded)

        with pytest.raises(ZeroDivisionError):
            cpsat(HARD, budget=NEVER_REACHED, watch=fail)
        assert shared(module.WORKER).worker is None
        self.still_works()

    def test_two_threads_do_not_mix_up_their_solves(self) -> None:
        instances = [random_dag(9, 3, seed, 0.25) for seed in range(12)]
        alone = [solve(instance).makespan for instance in instances]
        together: dict[int, Result | Exception] = {}

        def work(first: int) -> None:
            for i in range(first, len(instances), 2):
                try:
                    together[i] = cpsat(instances[i], budget=Budget(10, 1))
                except Exception as error:
                    together[i] = error

        threads = [threading.Thread(target=work, args=(first,), daemon=True) for first in (0, 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        for i, makespan in enumerate(alone):
            result = together[i]
            assert isinstance(result, Result)
            assert result.status is Status.OPTIMAL
            assert result.makespan == makespan
