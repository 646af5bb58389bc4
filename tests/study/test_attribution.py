"""The attribution of a pair's loss to its placement and its order."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from commandline import Run

from optpart import (
    Budget,
    Cluster,
    Device,
    GraphBuilder,
    InputError,
    Instance,
    Model,
    Status,
    conclude,
)
from optpart.interop.formats import native
from optpart.methods.cpsat import cpsat
from optpart.solution.job import Job
from optpart.solution.result import Result
from optpart.solution.schedule import retime
from optpart.solution.termination import Termination
from optpart.study import library
from optpart.study.attribution import Bracket, Division, Split, divide
from optpart.study.report.axis_table import share

BUDGET = Budget(seconds=10, workers=1)


def shop() -> Instance:
    """Device x runs "long" and "first" in either order; "third", on y, waits for "first"."""
    builder = GraphBuilder()
    for name, ops, device in (("long", 4, "x"), ("first", 3, "x"), ("third", 5, "y")):
        builder.vertex(name, ops, devices=[device])
    builder.edge("first", "third", None)
    return Instance(builder.build(), Cluster.of([Device("x"), Device("y")]), name="shop")


def of(pair: int, ordered: tuple[int, int], free: tuple[int, int]) -> Split:
    """Make a split from a makespan and two brackets of bound and makespan."""
    builder = GraphBuilder().vertex("a", 1)

    def result(bound: int, makespan: int) -> Result:
        cluster = Cluster.of([Device("x", Fraction(1, makespan))])
        instance = Instance(builder.build(), cluster)
        return conclude(instance, "heft", retime(instance, [0], [0]), bound=Fraction(bound))

    return Split(result(0, pair), result(*ordered), result(*free))


class TestTheThreeNumbers:
    def test_losses_add_up_if_both_optima_are_proven(self) -> None:
        split = of(15, (12, 12), (10, 10))
        assert split.by_order == Bracket(Fraction(3, 10), Fraction(3, 10))
        assert split.by_placement == Bracket(Fraction(1, 5), Fraction(1, 5))
        assert split.in_all == Bracket(Fraction(1, 2), Fraction(1, 2))

    def test_brackets_are_valid_for_all_possible_optima(self) -> None:
        split = of(15, (11, 12), (8, 10))
        assert split.by_order is not None
        assert split.by_placement is not None
        assert split.in_all is not None
        for best in range(8, 11):
            assert split.in_all.low <= Fraction(15 - best, best) <= (split.in_all.high or 0)
            for ordered in range(11, 13):
                by_order, by_placement = Fraction(15 - ordered, best), Fraction(ordered, best) - 1
                assert split.by_order.low <= by_order <= (split.by_order.high or 0)
                assert split.by_placement.low <= by_placement <= (split.by_placement.high or 0)

    def test_no_loss_is_negative(self) -> None:
        """The best order is at least 8, the best of all at most 10."""
        split = of(15, (8, 12), (8, 10))
        assert split.by_placement == Bracket(Fraction(0), Fraction(1, 2))

    def test_the_bound_of_all_placements_holds_for_one(self) -> None:
        split = of(15, (5, 12), (9, 10))
        assert split.best_order == Bracket(Fraction(9), Fraction(12))

    def test_without_a_bound_nothing_limits_a_loss(self) -> None:
        split = of(15, (0, 12), (0, 10))
        assert split.by_placement == Bracket(Fraction(0), None)
        assert of(12, (12, 12), (0, 10)).by_order == Bracket(Fraction(0), Fraction(0))


@pytest.mark.parametrize(
    ("bracket", "shown"),
    [
        (None, "–"),
        (Bracket(Fraction(0), Fraction(0)), "0"),
        (Bracket(Fraction(1, 8), Fraction(1, 8)), "12.50%"),
        (Bracket(Fraction(1, 3), Fraction(1, 3)), "33.34%"),
        (Bracket(Fraction(1, 3), Fraction(2, 3)), "33.33% … 66.67%"),
        (Bracket(Fraction(0), Fraction(1, 10**6)), "0 … <0.01%"),
        (Bracket(Fraction(1, 3), None), "33.33% or more"),
    ],
)
def test_shares_are_rounded_outwards(bracket: Bracket | None, shown: str) -> None:
    assert share(bracket) == shown


def by_pair(division: Division) -> dict[str, Split]:
    return {split.pair.method: split for split in division.splits}


def test_a_loss_by_order_alone() -> None:
    """In the order of arrival, x may run "long" first, and "third" starts on y only at 7."""
    division = divide(shop(), ["hash+fifo", "hash+pct"], budget=BUDGET, seeds=range(4))
    assert division.free.status is Status.OPTIMAL
    assert division.free.makespan == 8
    for split in division.splits:
        assert split.by_placement == Bracket(Fraction(0), Fraction(0))
        assert split.by_order == split.in_all
    lost = {split.in_all.low for split in division.splits if split.in_all is not None}
    assert lost == {Fraction(0), Fraction(1, 2)}


def test_a_loss_by_placement_alone() -> None:
    """A single device is never idle, so its order loses nothing."""
    division = divide(library.load("heft-10"), ["fastest+pct", "heft"], budget=BUDGET)
    alone = by_pair(division)["fastest+pct"]
    assert alone.by_order == Bracket(Fraction(0), Fraction(0))
    assert alone.by_placement == alone.in_all
    heft = by_pair(division)["heft"]
    assert heft.pair.makespan == 80
    assert heft.free.makespan == 73
    assert heft.in_all == Bracket(Fraction(7, 73), Fraction(7, 73))


@pytest.mark.parametrize("communication", ["delay", "sendrecv", "link", "port"])
def test_every_communication_model_is_split(communication: str) -> None:
    builder = GraphBuilder()
    for i in range(6):
        builder.vertex(f"v{i}", 2 + i % 3, outputs=[3 + i % 2])
    for i in range(4):
        builder.edge(f"v{i}", f"v{i + 2}").edge(f"v{i // 2}", "v5")
    model = Model(communication, send_ops=Fraction(1))  # type: ignore[arg-type]
    instance = Instance(builder.build(), Cluster.uniform(2, bandwidth=2), model)
    division = divide(instance, ["hash+fifo"], budget=BUDGET)
    (split,) = division.splits
    assert split.ordered is not None
    assert split.ordered.status is split.free.status is Status.OPTIMAL
    assert split.by_order is not None
    assert split.by_placement is not None
    assert split.in_all is not None
    assert split.by_order.low + split.by_placement.low == split.in_all.low


def test_a_placement_without_a_valid_order_says_so() -> None:
    """b and c wait for a's tensors, and one device would have to hold both at once."""
    builder = GraphBuilder().vertex("a", 1, outputs=[5]).vertex("b", 1, outputs=[5])
    graph = builder.vertex("c", 1).edge("a", "c").edge("b", "c").build()
    cluster = Cluster.of([Device("x", memory=5), Device("y", memory=12)], bandwidth=1)
    instance = Instance(graph, cluster, Model(memory="refcount"))
    division = divide(instance, ["fastest+pct"], budget=BUDGET)
    (split,) = division.splits
    assert split.pair.makespan is None
    assert split.by_order is None
    assert split.in_all is None
    assert split.ordered is not None
    assert split.ordered.status is Status.INFEASIBLE
    assert split.free.status is Status.OPTIMAL


def test_the_library_is_used_if_the_run_proves_less() -> None:
    instance = library.load("heft-10")
    division = divide(instance, ["hash+pct"], budget=Budget(seconds=0, workers=1))
    assert division.free.status is Status.OPTIMAL
    assert division.free.makespan == 73
    assert division.free.reason == "bound from the library"


def test_a_solver_is_not_a_pair() -> None:
    with pytest.raises(InputError, match="'cpsat' is not a pair of strategies"):
        divide(shop(), ["cpsat"], budget=BUDGET)


class TestCommand:
    def test_the_table(self, run: Run) -> None:
        outcome = run("gap", "--axis", "heft-10", "-m", "heft", "-m", "hash+pct")
        assert not outcome.code
        shown = outcome.out.splitlines()
        assert shown[0] == "heft-10  10 vertices, 15 edges, 3 devices"
        assert shown[1] == "  optimum 73; losses are shares of it"
        assert shown[3].split() == ["heft", "80", "80", "9.59%", "0", "9.59%"]

    def test_json_holds_exact_numbers(self, run: Run, tmp_path: Path) -> None:
        output = tmp_path / "axis.json"
        arguments = ("heft-10", "-m", "heft", "--seeds", 2, "--json", "-o", output)
        outcome = run("gap", "--axis", *arguments)
        assert not outcome.code
        printed = outcome.out
        assert output.read_text(encoding="utf-8") == printed
        (found,) = json.loads(printed)["instances"]
        assert found["free"]["makespan"] == found["free"]["lower_bound"] == "73"
        assert [pair["seed"] for pair in found["pairs"]] == [0, 1]
        assert found["pairs"][0]["lost"] == {
            "placement": ["7/73", "7/73"],
            "order": ["0", "0"],
            "in_all": ["7/73", "7/73"],
        }

    def test_an_infeasible_instance(self, run: Run, tmp_path: Path) -> None:
        builder = GraphBuilder().vertex("a", 1, memory=9)
        cluster = Cluster.of([Device("x", memory=5)])
        instance = Instance(builder.build(), cluster, Model(memory="estimate"), name="full")
        path = tmp_path / "full.json"
        native.write(instance, path)
        outcome = run("gap", "--axis", path, "-m", "heft")
        assert outcome.code == 3
        assert "INFEASIBLE: a needs memory 9" in outcome.out

    def test_an_interruption_keeps_finished_results(
        self, run: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def interrupted(job: Job, **options: Any) -> Result:
            if job.instance.name == "heft-10":
                return cpsat(job, **options)
            return conclude(job.instance, "cpsat", None, termination=Termination.INTERRUPTED)

        monkeypatch.setattr("optpart.study.attribution.cpsat", interrupted)
        files = ("heft-10", "kwok-ahmad-9-2")
        outcome = run("gap", "--axis", *files, "-m", "heft", "--json")
        assert outcome.code == 130
        (found,) = json.loads(outcome.out)["instances"]
        assert found["instance"] == "heft-10"
        assert outcome.err.startswith("the table is partial: 1 of 2 ")
        outcome = run("gap", "--axis", files[1], "-m", "heft", "--json")
        assert (outcome.code, outcome.out) == (130, "")
        assert outcome.err == "optpart: interrupted\n"

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ("-m cpsat", "method: 'cpsat' is not a pair of strategies"),
            ("-m nope", "method: no method 'nope'"),
            ("--csv", "--axis: used with --csv, --engine or --store"),
            ("-o table.csv", "table.csv: unknown suffix '.csv'; use .json"),
        ],
    )
    def test_invalid_options_are_refused(self, run: Run, arguments: str, message: str) -> None:
        outcome = run("gap", "--axis", "heft-10", *arguments.split())
        assert outcome.code == 2
        assert message in outcome.err


class TestNobodyIsTrusted:
    """Verified schedules overrule the claims of CP-SAT, of the library and of a pair."""

    @pytest.mark.parametrize(
        ("placed", "lie", "problem"),
        [
            (False, "infeasible", "INFEASIBLE contradicts a verified schedule of 8 by "),
            (False, "bound", "bound 99 contradicts a verified schedule of 8 by "),
            (True, "infeasible", "INFEASIBLE contradicts a verified schedule of 8 by hash+pct"),
            (True, "bound", "bound 99 contradicts a verified schedule of 8 by hash+pct"),
            (False, "raise", "failed: AssertionError: a bug"),
            (True, "raise", "failed: AssertionError: a bug"),
        ],
    )
    def test_a_wrong_solver_loses_only_its_own_claim(
        self, monkeypatch: pytest.MonkeyPatch, placed: bool, lie: str, problem: str
    ) -> None:
        def wrong(job: Job, **options: Any) -> Result:
            instance = job.instance
            if bool(job.goal.placement) != placed:
                return cpsat(job, **options)
            if lie == "raise":
                raise AssertionError("a bug")
            if lie == "bound":
                return conclude(instance, "cpsat", None, bound=Fraction(99))
            return conclude(instance, "cpsat", None, infeasible="no room")

        monkeypatch.setattr("optpart.study.attribution.cpsat", wrong)
        division = divide(shop(), ["hash+pct"], budget=BUDGET)
        assert any(problem in str(finding) for finding in division.findings)
        assert {finding.source for finding in division.findings} == {"cpsat"}
        (split,) = division.splits
        assert split.best.high == 8
        assert split.best.low <= 8
        assert split.best_order is not None
        assert split.best_order.high == 8

    def test_a_bound_of_the_library_that_a_schedule_contradicts(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        wrong = library.Evidence(bound=Fraction(99))
        monkeypatch.setattr("optpart.study.attribution.library.evidence", lambda _: wrong)
        division = divide(shop(), ["hash+pct"], budget=BUDGET)
        assert division.free.makespan == division.free.lower_bound == 8
        assert [finding.source for finding in division.findings] == ["library"]

    def test_the_command_names_it_and_exits_with_1(
        self, run: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def wrong(job: Job, **options: Any) -> Result:
            return conclude(job.instance, "cpsat", None, bound=Fraction(999))

        monkeypatch.setattr("optpart.study.attribution.cpsat", wrong)
        outcome = run("gap", "--axis", "heft-10", "-m", "heft", "--json")
        assert outcome.code == 1
        assert outcome.err.startswith("optpart: heft-10: cpsat: bound 999 contradicts a verified")
        (found,) = json.loads(outcome.out)["instances"]
        assert found["free"]["makespan"] == "73"
        assert len(found["findings"]) == 2
