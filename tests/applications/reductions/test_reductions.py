"""A reduction preserves the answer, and its proof runs in both directions."""

from __future__ import annotations

import itertools
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from applications.reductions.sources import answer, draw, solutions

from optpart import Budget, Cluster, GraphBuilder, Instance
from optpart.applications.reductions.base import Question
from optpart.applications.reductions.bin_packing import BIN_PACKING, Items
from optpart.applications.reductions.catalogue import REDUCTIONS
from optpart.applications.reductions.clique import CLIQUE, Network
from optpart.applications.reductions.communication import UNIT_DELAYS, Placed, Tasks
from optpart.applications.reductions.decide import decide, fault
from optpart.applications.reductions.job_shop import JOB_SHOP, Operation, Shop
from optpart.applications.reductions.partition import PARTITION, Numbers
from optpart.applications.reductions.single_execution_time import SINGLE_EXECUTION_TIME, Jobs
from optpart.applications.reductions.three_partition import THREE_PARTITION, Threes, critical_bound
from optpart.base.errors import InputError
from optpart.methods import registry
from optpart.solution.goal import Goal
from optpart.solution.result import Status

ONE = Budget(seconds=60, workers=1)

#: Some fillers make even small cliques larger than what enumeration is for.
METHOD = {"clique": "cpsat"}
SOURCES = {name: 25 if name in METHOD else 80 for name in REDUCTIONS}


@pytest.mark.parametrize("name", REDUCTIONS)
def test_the_answers_are_equal(name: str) -> None:
    """Dozens of sources each: TF by enumeration against brute force on the source."""
    chosen, rng, seen = REDUCTIONS.find(name), np.random.default_rng(7), Counter[bool | None]()
    for _ in range(SOURCES[name]):
        source = draw(name, rng)
        found = decide(chosen, source, METHOD.get(name, "enumerate"), budget=ONE)
        assert found.verdict == answer(name, source), source
        assert (found.schedule_fault, found.solution_fault, found.forth_fault) == ("", "", "")
        seen[found.verdict] += 1
    assert min(seen[True], seen[False]) >= 2


@pytest.mark.parametrize("name", REDUCTIONS)
def test_the_answers_are_equal_by_the_default_method(name: str) -> None:
    chosen, rng = REDUCTIONS.find(name), np.random.default_rng(8)
    for _ in range(10):
        source = draw(name, rng, larger=True)
        found = decide(chosen, source, budget=ONE)
        assert found.verdict == answer(name, source), source
        assert (found.schedule_fault, found.solution_fault, found.forth_fault) == ("", "", "")


@pytest.mark.parametrize("name", REDUCTIONS)
def test_solutions_become_schedules_and_come_back(name: str) -> None:
    """The direction of the proof that needs no solver, on every kind of solution."""
    chosen, rng, seen = REDUCTIONS.find(name), np.random.default_rng(9), 0
    for _ in range(120):
        source = draw(name, rng)
        for solution in itertools.islice(solutions(name, source), 3):
            assert chosen.check(source, solution) == ""
            schedule = chosen.forth(source, solution)
            assert fault(chosen.to_tf(source), schedule) == ""
            assert chosen.check(source, chosen.back(source, schedule)) == ""
            seen += 1
    assert seen >= 40


@pytest.mark.parametrize("name", REDUCTIONS)
def test_random_sources_have_both_answers(name: str) -> None:
    chosen, seen = REDUCTIONS.find(name), set()
    for seed in range(40):
        source = chosen.random(chosen.size, np.random.default_rng(seed))
        seen.add(decide(chosen, source, budget=Budget(10, 1)).verdict)
        if seen >= {True, False}:
            return
    raise AssertionError(seen)


# --- how [M]'s lemma 2.2 is read -----------------------------------------------------------------

FORK = Jobs(("a", "b", "c"), ((0, 1), (0, 2)), processors=2, limit=2)


def test_the_lemma_builds_one_vertex_per_job_and_one_edge_per_pair() -> None:
    chain = Jobs(("a", "b", "c"), ((0, 1), (1, 2)), processors=4, limit=3)
    question = SINGLE_EXECUTION_TIME.to_tf(chain)
    graph, cluster = question.instance.graph, question.instance.cluster
    edges = {(int(u), int(v)) for u, v in zip(graph.edge_source, graph.edge_target, strict=True)}
    assert edges == {(0, 1), (1, 2), (0, 2)}  # ≺ is transitive
    assert graph.ops.fractions() == [1, 1, 1]
    assert cluster.speed.fractions() == [1, 1, 1, 1]
    assert set(graph.tensor_size.fractions()) == {0}
    assert question.deadline == 3


def test_a_bandwidth_of_zero_taken_literally_makes_the_lemma_false() -> None:
    assert decide(SINGLE_EXECUTION_TIME, FORK, "enumerate").verdict is True
    builder = GraphBuilder()
    for name in FORK.names:
        builder.vertex(name, 1, outputs=[0])
    builder.edge("a", "b").edge("a", "c")
    literal = Instance(builder.build(), Cluster.uniform(2, bandwidth=0))
    best = registry.get("enumerate")(literal, budget=ONE)
    assert (best.status, best.makespan) == (Status.OPTIMAL, 3)


def test_the_strict_inequality_is_about_starts() -> None:
    """All starts are below the limit if and only if the makespan is not above it."""
    found = decide(SINGLE_EXECUTION_TIME, FORK, "enumerate")
    assert found.result.schedule is not None
    assert max(found.result.schedule.start.fractions()) < FORK.limit
    assert found.result.makespan == FORK.limit


@pytest.mark.parametrize("name", ["scheduling", "communication"])
def test_starts_between_slots_are_rounded_down(name: str) -> None:
    """Schedules with slack may have starts between slots."""
    chosen, rng, shifted = REDUCTIONS.find(name), np.random.default_rng(3), 0
    for _ in range(100):
        source = draw(name, rng)
        question = chosen.to_tf(source)
        solution = next(solutions(name, source), None)
        if solution is None:
            continue
        schedule = chosen.forth(source, solution)
        slack = question.deadline - schedule.makespan(question.instance)
        late = Fraction(1, 3) if slack >= 1 else Fraction(0)
        starts = type(schedule.start).from_fractions(s + late for s in schedule.start.fractions())
        moves = schedule.transfers
        later = type(schedule)(
            schedule.placement,
            starts,
            type(moves)(
                moves.tensor,
                moves.target,
                type(starts).from_fractions(s + late for s in moves.start.fractions()),
                type(starts).from_fractions(s + late for s in moves.end.fractions()),
            ),
        )
        assert fault(question, later) == ""
        assert chosen.check(source, chosen.back(source, later)) == ""
        shifted += bool(late)
    assert shifted >= 10


# --- checkers say what is wrong ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("chosen", "source", "wrong", "words"),
    [
        (SINGLE_EXECUTION_TIME, FORK, (0, 1), "2 slots for 3 jobs"),
        (SINGLE_EXECUTION_TIME, FORK, (0, 0, 1), "a is not before b"),
        (SINGLE_EXECUTION_TIME, FORK, (0, 1, 2), "c is in slot 2 of 2"),
        (SINGLE_EXECUTION_TIME, Jobs(("a", "b"), (), 1, 2), (1, 1), "2 jobs in slot 1"),
        (PARTITION, Numbers((3, 1, 2)), frozenset({0, 1}), "the sides sum to 4 and 2"),
        (PARTITION, Numbers((3, 3)), frozenset({7}), "a number that does not exist"),
        (THREE_PARTITION, Threes((9, 9, 9, 8, 9, 10)), ((0, 1, 3), (2, 4, 5)), "sum 26"),
        (THREE_PARTITION, Threes((9, 9, 9)), ((0, 1),), "not every number"),
        (BIN_PACKING, Items((5, 6), 10, 2), (0, 0), "bin 0 holds 11 of 10"),
        (BIN_PACKING, Items((5, 6), 10, 2), (0, 2), "no bin 2"),
        (BIN_PACKING, Items((5, 6), 10, 2), (0,), "1 bins given for 2 items"),
        (CLIQUE, Network(("a", "b", "c"), ((0, 1),), 2), frozenset({0, 2}), "a and c are not"),
        (CLIQUE, Network(("a", "b", "c"), ((0, 1),), 2), frozenset({0}), "1 nodes, not 2"),
        (UNIT_DELAYS, Tasks(("a", "b"), ((0, 1),), 3), (Placed(0, 0), Placed(1, 1)), "too early"),
        (UNIT_DELAYS, Tasks(("a", "b"), (), 3), (Placed(0, 0), Placed(0, 0)), "on one processor"),
        (UNIT_DELAYS, Tasks(("a",), (), 3), (Placed(0, 3),), "in slot 3 of 3"),
        (UNIT_DELAYS, Tasks(("a",), (), 3), (), "0 places for 1 tasks"),
    ],
)
def test_wrong_solutions_are_refused(chosen, source, wrong, words) -> None:  # type: ignore[no-untyped-def]
    assert words in chosen.check(source, wrong)


def test_wrong_starts_of_a_shop_are_refused() -> None:
    half = Fraction(1, 2)
    shop = Shop(
        ((Operation("m", half), Operation("n", half)), (Operation("m", half),)), Fraction(1)
    )
    good = ((Fraction(0), half), (half,))
    assert JOB_SHOP.check(shop, good) == ""
    assert "before 1/2" in JOB_SHOP.check(shop, ((Fraction(0), Fraction(0)), (half,)))
    assert "after 1" in JOB_SHOP.check(shop, ((Fraction(0), Fraction(1)), (half,)))
    assert "two operations on m" in JOB_SHOP.check(shop, ((Fraction(0), half), (Fraction(0),)))
    assert "not exactly one start" in JOB_SHOP.check(shop, ((Fraction(0),), (half,)))


def test_a_schedule_past_the_deadline_is_not_valid() -> None:
    source = Numbers((1, 2, 3))
    question = PARTITION.to_tf(source)
    assert fault(question, PARTITION.forth(source, frozenset({2}))) == ""
    assert "makespan 5 > 3" in fault(question, PARTITION.forth(source, frozenset({0})))


# --- the rest ------------------------------------------------------------------------------------


def test_an_odd_sum_is_a_no() -> None:
    found = decide(PARTITION, Numbers((1, 2, 4)), budget=ONE)
    assert (found.question.deadline, found.verdict) == (Fraction(7, 2), False)


def test_too_few_edges_for_a_clique_are_a_no() -> None:
    found = decide(CLIQUE, Network(("a", "b", "c"), ((0, 1),), 3), "enumerate", budget=ONE)
    assert found.verdict is False


def test_only_communication_makes_the_limit_of_unit_delays_impossible() -> None:
    """With two levels of joins, six slots are too few for any number of devices."""
    join = Tasks(tuple("abcdefg"), ((0, 4), (1, 4), (2, 5), (3, 5), (4, 6), (5, 6)), 4)
    assert decide(UNIT_DELAYS, join, "enumerate", budget=ONE).verdict is False
    assert (
        decide(UNIT_DELAYS, Tasks(join.names, join.order, 5), "enumerate", budget=ONE).verdict
        is True
    )


def test_critical_bounds_grow() -> None:
    bounds = [critical_bound(m) for m in range(2, 12)]
    assert bounds == sorted(bounds)
    assert 60 <= critical_bound(4) <= 100


def test_a_method_that_proves_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="heft can only minimise the makespan"):
        decide(PARTITION, Numbers((1, 1)), "heft")


def test_an_unknown_reduction_is_refused() -> None:
    with pytest.raises(InputError, match="choose one of scheduling, clique"):
        REDUCTIONS.find("sorting")


def test_a_question_is_a_goal() -> None:
    question = Question(PARTITION.to_tf(Numbers((1, 1))).instance, Fraction(1))
    assert question.goal == Goal(makespan=Fraction(1))
