"""``auto`` runs what fits the instance; whatever one member finds counts for all of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import fake_members as fakes
import pytest
from commandline import Run

from optpart import Budget, Cluster, GraphBuilder, Instance, Model, Result, Status, load, verify
from optpart.base.children.worker import Channel, Worker
from optpart.base.errors import UnsupportedError
from optpart.interop.generate.workflow import instance as workflow
from optpart.methods import registry
from optpart.methods.portfolio import child as child_module
from optpart.methods.portfolio import members as members_module
from optpart.methods.portfolio.auto import auto
from optpart.methods.portfolio.members import Case, Member, Place, plan
from optpart.solution.goal import Goal
from optpart.solution.job import Job
from optpart.solution.pruning import ALL
from optpart.solution.result import Progress
from optpart.solution.termination import Termination
from optpart.testing.draw import draw_instance

#: Two vertices that fit on two devices: 3 side by side, 6 on one device.
PAIR = Instance(GraphBuilder().vertex("a", 3).vertex("b", 3).build(), Cluster.uniform(2))

#: A limit that only a test that fails reaches.
NEVER_REACHED = Budget(600, 1)

#: Names of real methods without limits on the instance, which fakes take.
NAMES = ("cpsat", "search", "hybrid", "enumerate")


def graph(vertices: int, devices: int = 3) -> Instance:
    builder = GraphBuilder()
    for v in range(vertices):
        builder.vertex(f"v{v}", 1)
    return Instance(builder.build(), Cluster.uniform(devices))


def chain(vertices: int, kinds: int = 1000) -> Instance:
    builder = GraphBuilder()
    for v in range(vertices):
        builder.vertex(f"v{v}", 1 + v * kinds // vertices, outputs=[1])
        if v:
            builder.edge(f"v{v - 1}", f"v{v}")
    return Instance(builder.build(), Cluster.uniform(3))


def case(instance: Instance, cluster: bool = False, **asked: Any) -> Case:
    return Case(Job(instance, **asked), cluster)


def shown(of: Case) -> tuple[list[tuple[str, Place, float]], list[tuple[str, int]]]:
    sequence, beside = plan(of)
    return (
        [(row.name, row.place, row.until) for row in sequence],
        [(row.name, count) for row, count in beside],
    )


class TestPlan:
    def test_small_is_for_cpsat_with_every_worker_and_a_search_at_the_end(self) -> None:
        sequence = [("cpsat", "here", 0.9), ("hybrid", "process", 1.0)]
        assert shown(case(graph(60))) == (sequence, [])

    def test_a_search_that_would_be_too_short_begins_only_if_cpsat_gives_up(self) -> None:
        sequence, _ = shown(case(graph(60), budget=Budget(10, 2)))
        assert sequence == [("cpsat", "here", 1.0), ("hybrid", "process", 1.0)]

    def test_others_work_beside_cpsat_where_there_are_many_workers(self) -> None:
        sequence, beside = shown(case(graph(40), budget=Budget(60, 8)))
        assert sequence[:2] == [("cpsat", "here", 0.05), ("cpsat", "here", 0.9)]
        assert beside == [("milp", 2), ("hybrid", 2)]

    def test_medium_is_for_search_beside_cpsat_which_begins_anew(self) -> None:
        sequence, beside = shown(case(graph(200), budget=Budget(60, 4)))
        assert [(name, until) for name, _, until in sequence] == [
            ("cpsat", 0.05), ("cpsat", 0.4), ("cpsat", 1.0),
        ]  # fmt: skip
        assert beside == [("hybrid", 2)]

    @pytest.mark.parametrize("workers", [1, 2, 3])
    def test_few_workers_take_turns(self, workers: int) -> None:
        sequence, beside = shown(case(graph(200), budget=Budget(60, workers)))
        assert [name for name, *_ in sequence] == ["cpsat", "hybrid", "cpsat"]
        assert beside == []

    @pytest.mark.parametrize(("vertices", "workers"), [(60, 2), (60, 4), (200, 4)])
    def test_a_graph_in_series_is_also_for_the_method_of_that_name(
        self, vertices: int, workers: int
    ) -> None:
        sequence, beside = shown(case(chain(vertices), budget=Budget(60, workers)))
        assert sequence[0] == ("cpsat", "here", 0.05)
        assert ("series", 1) in beside

    @pytest.mark.parametrize(
        ("vertices", "workers", "until"), [(60, 1, 0.5), (200, 1, 0.5), (200, 2, 0.65)]
    )
    def test_which_takes_turns_with_others(self, vertices: int, workers: int, until: float) -> None:
        sequence, beside = shown(case(chain(vertices), budget=Budget(60, workers)))
        assert sequence[:2] == [("cpsat", "here", 0.05), ("series", "process", until)]
        assert beside == []

    def test_a_path_of_like_vertices_is_first_for_series(self) -> None:
        sequence, beside = shown(case(chain(60, kinds=3)))
        assert sequence[:2] == [("series", "here", 0.8), ("cpsat", "here", 0.9)]
        assert shown(case(chain(30, kinds=3)))[0][0] == ("cpsat", "here", 0.05)
        assert beside == [("series", 1)]

    @pytest.mark.parametrize(("width", "layered"), [(7, False), (8, True)])
    def test_wide_layers_are_for_the_method_of_that_name(self, width: int, layered: bool) -> None:
        sequence, _ = shown(case(workflow("fork-join", width, 2)))
        assert (sequence[1:2] == [("layers", "here", 0.4)]) == layered
        counted = case(workflow("fork-join", width, 2), budget=Budget(9, 1, deterministic=1))
        assert "layers" not in [name for name, *_ in shown(counted)[0]]

    def test_a_deterministic_limit_leaves_out_what_heeds_the_clock(self) -> None:
        sequence, beside = shown(case(chain(60), budget=Budget(60, 1, deterministic=1)))
        assert ([name for name, *_ in sequence], beside) == (["cpsat", "hybrid"], [])

    def test_blocks_are_for_the_method_of_pipelines(self) -> None:
        sequence, _ = shown(case(chain(20), goal=Goal("bottleneck", contiguous=True)))
        assert [name for name, *_ in sequence][:2] == ["pipeline", "cpsat"]

    def test_large_is_for_search(self) -> None:
        assert shown(case(graph(2001))) == ([("search", "process", 1.0)], [])

    @pytest.mark.parametrize("vertices", [60, 200])
    def test_on_a_cluster_a_search_from_here_is_spread_and_all_else_works_beside(
        self, vertices: int
    ) -> None:
        sequence, beside = shown(case(graph(vertices), budget=Budget(60, 16), cluster=True))
        assert sequence == [("cpsat", "here", 0.05), ("hybrid", "here", 1.0)]
        assert beside == [("cpsat", 7)]

    def test_all_of_a_cluster_searches_a_large_graph(self) -> None:
        found = case(graph(3000), budget=Budget(60, 16), cluster=True)
        assert shown(found) == ([("search", "here", 1.0)], [])

    def test_few_workers_of_a_cluster_take_turns(self) -> None:
        sequence, beside = shown(case(graph(200), budget=Budget(60, 3), cluster=True))
        assert sequence == [
            ("cpsat", "here", 0.05),
            ("hybrid", "here", 0.9),
            ("cpsat", "here", 1.0),
        ]
        assert beside == []

    @pytest.mark.parametrize("vertices", [40, 60, 200])
    def test_a_cluster_always_has_a_place_for_those_beside(self, vertices: int) -> None:
        for workers in range(2, 40):
            found = case(chain(vertices), budget=Budget(60, workers), cluster=True)
            assert sum(count for _, count in plan(found).beside) < workers

    @pytest.mark.parametrize("vertices", [60, 200, 2001])
    @pytest.mark.parametrize("workers", [1, 2, 8])
    def test_cpsat_has_it_all_where_no_search_supports_the_goal(
        self, vertices: int, workers: int
    ) -> None:
        found = case(graph(vertices), goal=Goal(traffic=Fraction(5)), budget=Budget(60, workers))
        sequence, beside = shown(found)
        assert {name for name, *_ in sequence} == {"cpsat"}
        assert len(sequence) == 1 or beside
        assert "hybrid" not in dict(beside)

    def test_only_methods_that_know_the_rules_can_leave_them_out(self) -> None:
        found = case(graph(40), budget=Budget(60, 8), without=ALL)
        sequence, beside = shown(found)
        assert ({name for name, *_ in sequence}, beside) == ({"cpsat"}, [("milp", 2)])

    def test_a_goal_is_refused_only_if_no_member_supports_it(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        row = Member("hybrid", "", "beside", lambda _: True)
        monkeypatch.setattr(members_module, "MEMBERS", (row,))
        assert registry.supports("auto", PAIR) == ""
        assert [row.place for row in plan(case(PAIR)).sequence] == ["process"]
        limited = Goal(traffic=Fraction(5))
        assert registry.supports("auto", PAIR, limited) == "no member of auto supports it"
        with pytest.raises(UnsupportedError, match="no member of auto supports it"):
            auto(PAIR, goal=limited)


@pytest.fixture
def team(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Callable[..., Result]]:
    """Run ``auto`` with fakes as its members: in turn, each here or in a process, and beside."""
    root = Path(__file__).parents[2]
    monkeypatch.setenv("PYTHONPATH", f"{Path(__file__).parent}:{root}")
    monkeypatch.setattr(members_module, "SHORTEST", 0.0)

    def hire(*rows: tuple[Callable[..., Result], Place]) -> Callable[..., Result]:
        hired = tuple(
            Member(
                name, f"fake_members:{fake.__name__}", place, lambda _: True, workers=lambda _: 1
            )
            for name, (fake, place) in zip(NAMES, rows, strict=False)
        )
        monkeypatch.setattr(members_module, "MEMBERS", hired)

        def run(**options: Any) -> Result:
            return auto(PAIR, **{"budget": Budget(600, 2), **options})

        return run

    return hire


Team = Callable[..., Callable[..., Result]]
PLACES: list[Place] = ["here", "process"]


class TestTogether:
    @pytest.mark.parametrize("first", PLACES)
    @pytest.mark.parametrize("second", PLACES)
    def test_one_finds_and_another_proves(self, team: Team, first: Place, second: Place) -> None:
        result = team((fakes.finds, first), (fakes.proves, second))()
        assert (result.status, result.termination) == (Status.OPTIMAL, Termination.PROVEN)
        assert (result.schedule_by, result.bound_by) == ("cpsat", "search")
        assert (result.method, result.reason) == ("auto", "")

    def test_a_proof_of_two_stops_both(self, team: Team) -> None:
        result = team((fakes.finds_then_hangs, "process"), (fakes.proves_then_hangs, "beside"))()
        assert result.status is Status.OPTIMAL
        assert (result.schedule_by, result.bound_by) == ("cpsat", "search")

    def test_a_proof_beside_stops_a_member_that_waits_in_this_process(self, team: Team) -> None:
        result = team((fakes.waits, "here"), (fakes.solves_then_hangs, "beside"))()
        assert (result.status, result.termination) == (Status.OPTIMAL, Termination.PROVEN)
        assert (result.schedule_by, result.bound_by) == ("search", "search")

    @pytest.mark.parametrize("place", PLACES)
    def test_what_one_finds_is_the_start_of_the_next(self, team: Team, place: Place) -> None:
        result = team((fakes.finds, "here"), (fakes.needs_a_start, place))()
        assert "search failed: started from 3" in result.reason

    def test_the_given_start_is_that_of_the_first(self, team: Team) -> None:
        result = team((fakes.needs_a_start, "here"))(start=fakes.on_one(PAIR))
        assert "started from 6" in result.reason
        assert (result.makespan, result.schedule_by, result.bound_by) == (6, "start", "")

    def test_a_worse_schedule_changes_nothing(self, team: Team) -> None:
        result = team((fakes.finds, "here"), (fakes.finds_worse, "process"))()
        assert (result.makespan, result.schedule_by) == (3, "cpsat")

    def test_infeasible_says_who_proved_it(self, team: Team) -> None:
        result = team((fakes.idles, "here"), (fakes.excludes, "process"))()
        assert (result.status, result.reason) == (Status.INFEASIBLE, "no room")
        assert (result.schedule_by, result.bound_by) == ("", "search")

    def test_nobody_is_asked_to_close_what_rounding_leaves(self, team: Team) -> None:
        result = team((fakes.rounds, "here"), (fakes.hangs, "process"))()
        assert (result.status, result.termination) == (Status.FEASIBLE, Termination.ROUNDING)
        assert result.reason == "closed except for rounding"

    @pytest.mark.parametrize("goal", [Goal(), Goal(makespan=Fraction(362780000000003, 10**9))])
    def test_but_of_few_vertices_enumeration_closes_it(self, goal: Goal) -> None:
        """Lengths from 1e-9 to 362780, of which no grid of the solver holds both."""
        tiny = Fraction(1, 10**9)
        builder = GraphBuilder().vertex("v0", 3 * tiny, devices=["d1"], outputs=[0])
        builder.vertex("v1", 362780, outputs=[tiny]).vertex("v2", tiny)
        builder.vertex("v3", tiny, outputs=[tiny]).vertex("v4", 1).edge("v0", "v1", None)
        model = Model("sendrecv", send_ops=tiny)
        instance = Instance(builder.build(), Cluster.uniform(2), model)
        result = auto(instance, budget=Budget(20, 1), goal=goal)
        assert result.makespan == 362780 + 3 * tiny
        assert result.status is Status.OPTIMAL or goal.decides  # any schedule will do then


class TestFaults:
    @pytest.mark.parametrize("place", PLACES)
    def test_a_member_that_breaks_down_costs_nothing_else(self, team: Team, place: Place) -> None:
        result = team((fakes.breaks, place), (fakes.solves, "here"))()
        assert (result.status, result.schedule_by) == (Status.OPTIMAL, "search")
        assert result.reason == f"cpsat failed: ZeroDivisionError: on {PAIR.name}"

    def test_nor_does_one_whose_process_dies(self, team: Team) -> None:
        result = team((fakes.dies, "process"), (fakes.finds, "here"))()
        assert (result.makespan, result.termination) == (3, Termination.FAILED)
        assert result.reason == "time limit; cpsat failed: its process died (exit 7)"

    def test_nor_one_that_hangs(self, team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(child_module, "GRACE", 0.0)
        run = team((fakes.finds, "here"), (fakes.hangs, "beside"), (fakes.hangs, "process"))
        result = run(budget=Budget(0.2, 2))
        assert (result.makespan, result.termination) == (3, Termination.TIME_LIMIT)

    @pytest.mark.parametrize("place", PLACES)
    def test_one_that_does_not_support_the_instance_lets_the_next_try(
        self, team: Team, place: Place
    ) -> None:
        run = team((fakes.refuses, place), (fakes.finds, place))
        result = run()
        assert (result.makespan, result.termination) == (3, Termination.TIME_LIMIT)
        assert result.reason == "time limit; cpsat: too odd for this member"

    def test_all_that_do_not_support_it(self, team: Team) -> None:
        result = team((fakes.refuses, "here"), (fakes.refuses, "process"))()
        assert (result.status, result.termination) == (Status.UNKNOWN, Termination.UNSUPPORTED)
        assert result.reason == "too odd for this member"

    @pytest.mark.parametrize("place", PLACES)
    def test_a_bound_above_a_verified_schedule_stops_the_program(
        self, team: Team, place: Place
    ) -> None:
        with pytest.raises(AssertionError, match="search claims a lower bound of 1000000000"):
            team((fakes.finds, "here"), (fakes.boasts, place))()

    @pytest.mark.parametrize("place", PLACES)
    def test_so_does_a_schedule_below_a_claimed_bound(self, team: Team, place: Place) -> None:
        with pytest.raises(AssertionError, match=r"cpsat claims .* but search has a verified"):
            team((fakes.boasts, place), (fakes.finds, "here"))()

    def test_and_a_proof_that_there_is_no_schedule_where_there_is_one(self, team: Team) -> None:
        with pytest.raises(AssertionError, match="claims that there is no schedule"):
            team((fakes.finds, "here"), (fakes.excludes, "process"))()

    @pytest.mark.parametrize("place", PLACES)
    def test_and_a_member_that_contradicts_itself(self, team: Team, place: Place) -> None:
        with pytest.raises(AssertionError, match="one and one make three"):
            team((fakes.contradicts_itself, place), (fakes.finds, "here"))()


class TestWatch:
    def test_interrupting_keeps_the_best_of_all_members(self, team: Team) -> None:
        def interrupt(step: Progress) -> None:
            if step.objective is not None:
                raise KeyboardInterrupt

        for place in PLACES:
            run = team((fakes.idles, "here"), (fakes.finds_then_hangs, "process"))
            result = run(watch=interrupt)
            assert (result.makespan, result.termination) == (3, Termination.INTERRUPTED), place

    @pytest.mark.parametrize("place", PLACES)
    def test_what_the_watch_raises_is_not_taken_for_a_fault_of_a_member(
        self, team: Team, place: Place
    ) -> None:
        def fail(step: Progress) -> None:
            if step.objective is not None:
                raise ValueError("of the user")

        with pytest.raises(ValueError, match="of the user"):
            team((fakes.idles, "here"), (fakes.finds_then_hangs, place))(watch=fail)

    def test_steps_only_improve(self) -> None:
        steps: list[Progress] = []
        hard = draw_instance(11, "delay", "none", vertices=120, devices=3)
        auto(hard, budget=Budget(3, 2), watch=steps.append)
        assert steps
        for before, after in pairwise(steps):
            assert before.seconds <= after.seconds
            assert (after.bound or 0) >= (before.bound or 0)
            if before.objective is not None:
                assert after.objective is not None
                assert after.objective <= before.objective


class TestAnswers:
    @pytest.mark.parametrize(
        "goal",
        [
            Goal(),
            Goal("traffic"),
            Goal("lexicographic"),
            Goal(makespan=Fraction(80)),
            Goal(makespan=Fraction(72)),
            Goal(traffic=Fraction(60)),
            Goal(placement={0: 0}),
            Goal(order=((1, 2),)),
            Goal("bottleneck"),
            Goal("bottleneck", contiguous=True),
            Goal(device_order=(0, 1, 2)),
        ],
        ids=str,
    )
    def test_every_goal_is_answered_as_by_cpsat(self, goal: Goal) -> None:
        instance = load("heft-10")
        one, other = (
            registry.get(name)(instance, budget=NEVER_REACHED, goal=goal)  # type: ignore[call-arg]
            for name in ("auto", "cpsat")
        )
        assert (one.status, one.termination, one.given) == (
            other.status,
            other.termination,
            other.given,
        )
        if not goal.decides:
            assert (one.lower_bound, one.traffic_bound) == (other.lower_bound, other.traffic_bound)

    def test_one_worker_and_a_deterministic_limit_repeat_the_result(self) -> None:
        hard = load("small-60-8-ccr1-tight-s44")
        runs = [auto(hard, budget=Budget(600, 1, deterministic=0.1), seed=3) for _ in range(2)]
        assert runs[0].termination is Termination.TIME_LIMIT
        first, second = ((x.makespan, x.lower_bound, x.placement, x.schedule_by) for x in runs)
        assert first == second

    def test_the_members_are_named_in_line_and_document(self, run: Run, tmp_path: Path) -> None:
        path = tmp_path / "r.json"
        said = run("solve", "kwok-ahmad-9-2", "-o", path)
        assert said.code == 0
        assert "with auto (cpsat)" in said.out
        document = json.loads(path.read_text())
        assert (document["method"], document["schedule_by"], document["bound_by"]) == (
            "auto",
            "cpsat",
            "cpsat",
        )
        assert run("verify", "kwok-ahmad-9-2", path).code == 0


class Elsewhere:
    """Processes of this machine, as if they ran on others."""

    remote, workers = True, 4

    def __init__(self) -> None:
        self.hired: list[tuple[str, int]] = []

    def hire(self, module: str, threads: int = 1) -> Channel:
        self.hired.append((module, threads))
        return Worker(module, threads)


def test_on_a_cluster_members_and_searchers_run_elsewhere() -> None:
    pool = Elsewhere()
    instance = draw_instance(3, "link", "none", vertices=110, devices=4)
    result = auto(instance, budget=Budget(4, 4), pool=pool)
    assert result.schedule is not None
    assert verify(instance, result.schedule) == []
    assert set(pool.hired) == {
        ("optpart.methods.portfolio.child", 1),  # CP-SAT
        ("optpart.search.worker", 1),
    }
    assert len(pool.hired) == 3
