"""A record keeps the best verified schedule and the proven bounds, and tells every step."""

from __future__ import annotations

from fractions import Fraction

import pytest

from optpart import Cluster, GraphBuilder, Instance, Schedule, Status, retime
from optpart.solution import record as module
from optpart.solution.goal import Goal, Objective
from optpart.solution.job import Job
from optpart.solution.record import Record
from optpart.solution.result import Budget, Progress, Watch
from optpart.solution.termination import Termination

#: Three vertices of one time unit, of which a feeds b and c.
INSTANCE = Instance(
    GraphBuilder()
    .vertex("a", 1, outputs=[1])
    .vertex("b", 1)
    .vertex("c", 1)
    .edge("a", "b")
    .edge("a", "c")
    .build(),
    Cluster.uniform(2, bandwidth=2),
)

#: On one device (makespan 3, no traffic), and on two (makespan 5/2, traffic 1).
ALONE = retime(INSTANCE, [0, 0, 0], [0, 1, 2])
SPREAD = retime(INSTANCE, [0, 0, 1], [0, 1, 2])

#: Starts b before a has ended.
BROKEN = Schedule(ALONE.placement, type(ALONE.start).from_fractions([0, 0, 1]), ALONE.transfers)


def record(
    objective: Objective = "makespan", watch: Watch | None = None, **given: Fraction
) -> Record:
    return Record(
        Job(INSTANCE, Goal(objective, **given), Budget(60, 4), 3), watch, bound=Fraction(0)
    )


def values(found: Record) -> list[tuple[Fraction | None, Fraction | None]]:
    return [(step.objective, step.bound) for step in found.trace]


class TestSchedules:
    def test_a_better_one_replaces_the_incumbent(self) -> None:
        found = record()
        assert found.offer(ALONE) == found.offer(SPREAD) == found.offer(ALONE) == ""
        assert found.incumbent is SPREAD
        assert found.values == {"makespan": Fraction(5, 2), "traffic": 1}

    @pytest.mark.parametrize(
        ("objective", "best"),
        [
            ("makespan", SPREAD),
            ("traffic", ALONE),
            ("lexicographic", SPREAD),
            ("bottleneck", SPREAD),
        ],
    )
    def test_the_objective_says_which_is_better(self, objective: Objective, best: Schedule) -> None:
        for order in ([ALONE, SPREAD], [SPREAD, ALONE]):
            found = record(objective)
            for schedule in order:
                found.offer(schedule)
            assert found.incumbent is best

    def test_an_invalid_one_is_rejected(self) -> None:
        found = record()
        assert found.offer(BROKEN).startswith("precedence")
        assert found.incumbent is None
        assert found.trace == []

    def test_one_that_violates_the_goal_is_rejected(self) -> None:
        found = record(makespan=Fraction(5, 2))
        assert found.offer(ALONE) == "its makespan is above 5/2"
        assert found.offer(SPREAD) == ""
        assert found.incumbent is SPREAD

    def test_one_that_was_just_verified_is_not_verified_again(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(module, "verify", None)
        found = record(makespan=Fraction(5, 2))
        found.offer_verified(ALONE)
        assert found.incumbent is None  # too long for the goal
        found.offer_verified(SPREAD)
        assert found.incumbent is SPREAD

    def test_the_result_is_verified_whatever_was_said_before(self) -> None:
        found = record()
        found.offer_verified(BROKEN)
        result = found.result("test")
        assert (result.status, result.schedule) == (Status.UNKNOWN, None)
        assert result.reason.startswith("its schedule is not valid: precedence")

    def test_an_unused_start_is_reported(self) -> None:
        found = record()
        found.offer_start(BROKEN)
        found.offer_start(SPREAD)
        (remark,) = found.remarks
        assert remark.startswith("the given start was not used: precedence")
        assert found.result("test").reason == remark


class TestBounds:
    def test_only_rise(self) -> None:
        found = record("lexicographic")
        for bound in (2, 1):
            found.raise_bound(Fraction(bound))
            found.raise_bound(Fraction(bound), "traffic")
        assert found.bounds == {"makespan": 2, "traffic": 2}

    def test_none_is_known_unless_one_is_given(self) -> None:
        assert Record(Job(INSTANCE, Goal("traffic"))).bounds == {}
        assert record("traffic").bounds == {"makespan": 0, "traffic": 0}
        assert record("bottleneck").bounds == {"makespan": 0, "bottleneck": 0}
        assert record().bounds == record("lexicographic").bounds == {"makespan": 0}

    def test_one_above_a_verified_schedule_is_a_bug(self) -> None:
        found = record()
        found.offer(SPREAD)
        found.raise_bound(Fraction(3))
        with pytest.raises(AssertionError, match="lower bound 3 above a verified schedule"):
            found.result("test")


class TestSteps:
    def test_report_the_objective_and_its_bound(self) -> None:
        told: list[Progress] = []
        found = record(watch=told.append)
        found.offer(ALONE)
        found.raise_bound(Fraction(2))
        found.offer(SPREAD)
        assert values(found) == [(3, 0), (3, 2), (Fraction(5, 2), 2)]
        assert told == found.trace
        assert [step.seconds for step in told] == sorted(step.seconds for step in told)

    def test_report_traffic_if_that_is_the_only_objective(self) -> None:
        found = record("traffic")
        found.offer(SPREAD)
        found.raise_bound(Fraction(1))
        found.offer(ALONE)
        assert values(found) == [(1, 0), (0, 0)]

    def test_report_the_bottleneck_if_that_is_the_objective(self) -> None:
        found = record("bottleneck")
        found.offer(ALONE)
        found.raise_bound(Fraction(1))
        found.raise_bound(Fraction(2), "bottleneck")
        found.raise_bound(Fraction(1), "bottleneck")
        found.offer(SPREAD)
        assert values(found) == [(3, 0), (3, 2), (2, 2)]
        result = found.result("test")
        assert (result.status, result.bottleneck, result.bottleneck_bound) == ("OPTIMAL", 2, 2)
        assert result.makespan == Fraction(5, 2)

    def test_nothing_is_reported_twice(self) -> None:
        found = record("lexicographic")
        found.offer(ALONE)
        found.raise_bound(Fraction(0), "traffic")
        assert values(found) == [(3, 0)]


class TestEnd:
    def test_a_proof(self) -> None:
        found = record()
        found.offer(SPREAD)
        found.raise_bound(Fraction(5, 2))
        result = found.result("test")
        assert (result.status, result.termination) == (Status.OPTIMAL, Termination.PROVEN)
        assert (result.method, result.seed, result.workers) == ("test", 3, 4)
        assert result.trace == tuple(found.trace)

    def test_infeasibility_leaves_no_bounds(self) -> None:
        found = record("traffic")
        result = found.result("test", infeasible="no room")
        assert (result.status, result.termination) == (Status.INFEASIBLE, Termination.PROVEN)
        assert (result.lower_bound, result.traffic_bound, result.reason) == (None, None, "no room")

    def test_a_limit_and_remarks(self) -> None:
        found = record()
        found.remarks.append("so it is")
        found.end(Termination.TIME_LIMIT, "time limit")
        result = found.result("test")
        assert (result.termination, result.reason) == (
            Termination.TIME_LIMIT,
            "time limit; so it is",
        )

    def test_a_later_part_has_its_own_end(self) -> None:
        found = record()
        found.end(Termination.ROUNDING, "closed except for rounding")
        found.go_on()
        result = found.result("test")
        assert (result.termination, result.reason) == (Termination.COMPLETED, "")

    def test_an_interrupt_keeps_the_incumbent(self) -> None:
        found = record()
        with found.until_interrupted():
            found.offer(SPREAD)
            raise KeyboardInterrupt
        result = found.result("test")
        assert (result.termination, result.reason) == (Termination.INTERRUPTED, "interrupted")
        assert result.makespan == Fraction(5, 2)


class TestPulse:
    def test_repeats_the_last_step_to_the_watch_but_not_too_often(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        told: list[Progress] = []
        found = record(watch=told.append)
        found.pulse()
        found.offer(ALONE)
        now = found.begin + 1000
        monkeypatch.setattr("optpart.base.clock.now", lambda: now)
        found.pulse()
        found.pulse()
        assert [(step.objective, step.schedule) for step in told] == [(3, ALONE), (3, ALONE)]
        assert len(found.trace) == 1
        assert found.trace[0].schedule is None
