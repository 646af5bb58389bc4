"""The comparison behind ``optpart gap``."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from dataclasses import replace
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
    Schedule,
    Status,
    conclude,
    register,
    retime,
)
from optpart.interop.formats import native
from optpart.lower_bounds.best import LowerBound
from optpart.methods import registry
from optpart.solution.result import Result
from optpart.study import library
from optpart.study.gap import Comparison, compare, excess, summarise, sweep
from optpart.study.report.console import PlainConsole
from optpart.study.report.gap_table import print_comparison, to_csv

BUDGET = Budget(seconds=10, workers=1)


def chain(**model: str) -> Instance:
    builder = GraphBuilder().vertex("a", 2, outputs=[4]).vertex("b", 2).vertex("c", 2)
    graph = builder.edge("a", "b").edge("a", "c").build()
    return Instance(graph, Cluster.uniform(2, bandwidth=1), Model(**model), name="chain")  # type: ignore[arg-type]


def test_the_reference_is_the_optimum_if_it_is_proven() -> None:
    comparison = compare(chain(), ["hash+pct", "fastest+pct"], budget=BUDGET)
    assert comparison.reference.kind == "optimum"
    assert comparison.reference.makespan == comparison.reference.bound == 6
    assert [result.method for result in comparison.results] == ["hash+pct", "fastest+pct"]
    by_name = {result.method: result for result in comparison.results}
    assert comparison.is_optimal(by_name["fastest+pct"])
    assert comparison.over_reference(by_name["hash+pct"]) == pytest.approx(8 / 6 - 1)


def test_a_table_states_the_unit_of_the_times_of_each_instance() -> None:
    both = [
        compare(replace(chain(), time_unit=unit), ["heft"], budget=BUDGET) for unit in ("ns", "")
    ]
    rows = csv.DictReader(io.StringIO(to_csv(both)))
    assert [row["time_unit"] for row in rows] == ["ns", ""]


@pytest.fixture
def without_proof(monkeypatch: pytest.MonkeyPatch) -> Callable[[], Comparison]:
    """Compare methods while neither the reference method nor the bounds prove much."""

    def compared() -> Comparison:
        with monkeypatch.context() as patch:
            bound = LowerBound("weak", Fraction(4), 0.0)
            patch.setattr("optpart.study.gap.best_bound", lambda *_, **__: bound)
            patch.setattr("optpart.study.gap.EXACT", "hash+fifo")
            return compare(chain(communication="link"), ["hash+pct", "heft"], budget=BUDGET)

    return compared


def test_without_a_proof_the_reference_is_the_best_known(
    without_proof: Callable[[], Comparison],
) -> None:
    reference = without_proof().reference
    assert reference.kind == "best known"
    assert (reference.makespan, reference.bound) == (6, 4)
    assert reference.bound_by == "weak"


def test_a_method_that_fails_loses_its_own_row_only() -> None:
    @register("fails")
    def fails(instance: Instance, **_: object) -> Result:
        raise ZeroDivisionError("as a user's own method may")

    comparison = compare(chain(), ["fails", "heft"], budget=BUDGET)
    assert comparison.results[0].makespan is None
    assert "ZeroDivisionError" in comparison.results[0].reason
    assert comparison.results[1].makespan == 6


def test_a_registered_method_is_compared_with_the_others() -> None:
    @register("all-on-first")
    def all_on_first(instance: Instance, **_: object) -> Result:
        order = instance.graph.topological_order.tolist()
        schedule = retime(instance, [0] * instance.vertices, order)
        return conclude(instance, "all-on-first", schedule)

    assert registry.get("all-on-first") is all_on_first
    comparison = compare(chain(), ["all-on-first"], budget=BUDGET)
    assert comparison.is_optimal(comparison.results[0])


def test_an_invalid_schedule_of_a_method_is_dropped_with_the_violation() -> None:
    @register("wrong")
    def wrong(instance: Instance, **_: object) -> Result:
        valid = retime(instance, [0, 0, 0], [0, 1, 2])
        early = type(valid)(valid.placement, valid.start.take([0, 0, 0]), valid.transfers)  # type: ignore[arg-type]
        return conclude(instance, "wrong", early)

    result = compare(chain(), ["wrong"], budget=BUDGET).results[0]
    assert result.schedule is None
    assert "not valid: precedence" in result.reason


def test_a_bound_above_a_verified_schedule_stops_everything() -> None:
    instance = chain()
    schedule = retime(instance, [0, 0, 0], [0, 1, 2])
    with pytest.raises(AssertionError, match="above a verified schedule"):
        conclude(instance, "wrong", schedule, bound=Fraction(7))


def test_the_library_is_the_reference_only_for_exactly_the_same_instance() -> None:
    tiny = Budget(seconds=0.0, workers=1)
    same = library.load("small-30-4-ccr10-s24")
    known = library.index()["small-30-4-ccr10-s24"]
    comparison = compare(same, ["hash+pct"], budget=tiny)
    assert comparison.reference.makespan == known.makespan
    assert comparison.reference.makespan_by == "library"
    changed = Instance(same.graph, Cluster.uniform(4), name=same.name)
    assert library.known(changed) is None
    assert compare(changed, ["hash+pct"], budget=tiny).reference.makespan_by != "library"


def test_summary_counts_solved_means_and_proven_optima(
    without_proof: Callable[[], Comparison],
) -> None:
    comparisons = [compare(chain(), ["hash+pct", "heft"], budget=BUDGET), without_proof()]
    rows = {row.method: row for row in summarise(comparisons)}
    assert (rows["heft"].solved, rows["heft"].instances) == (2, 2)
    assert (rows["heft"].optimal, rows["heft"].references) == (1, 1)
    assert rows["heft"].mean == 0.0
    assert rows["hash+pct"].worst == pytest.approx(8 / 6 - 1)


def test_unknown_methods_are_refused() -> None:
    with pytest.raises(InputError, match="'optpart methods' lists"):
        registry.get("magic")


@pytest.mark.parametrize(
    ("value", "base", "expected"),
    [
        (Fraction(3), Fraction(2), 0.5),
        (Fraction(0), Fraction(0), 0.0),
        (Fraction(1), Fraction(0), None),
        (None, Fraction(1), None),
        (Fraction(1), None, None),
    ],
)
def test_excess(value: Fraction | None, base: Fraction | None, expected: float | None) -> None:
    assert excess(value, base) == expected


# --- nobody is trusted --------------------------------------------------------------------------


def alone(instance: Instance) -> Schedule:
    """Run everything on the first device: 6 on the chain."""
    return retime(instance, [0] * instance.vertices, instance.graph.topological_order.tolist())


def apart(instance: Instance) -> Result:
    """Run the last vertex on the second device: 8 on the chain."""
    return conclude(instance, "", retime(instance, [0, 0, 1], [0, 1, 2]))


def overlapping(instance: Instance) -> Schedule:
    valid = alone(instance)
    return replace(valid, start=valid.start.take([0, 0, 0]))  # type: ignore[arg-type]


def honest(instance: Instance) -> Result:
    return conclude(instance, "", alone(instance))


def raises(error: BaseException) -> Callable[[Instance], Result]:
    def raiser(_: Instance) -> Result:
        raise error

    return raiser


class UnprintableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError


def unlike() -> Instance:
    return Instance(chain().graph, Cluster.uniform(3), name="chain")


def bare(instance: Instance, status: Status, **claims: Any) -> Result:
    """A result that no function of the package has built."""
    return Result(instance, "", status, **claims)


OPTIMAL, FEASIBLE, INFEASIBLE = Status.OPTIMAL, Status.FEASIBLE, Status.INFEASIBLE

#: What a method does, and what its row then says.
LIARS: dict[str, tuple[Callable[[Instance], Any], str]] = {
    "liar_infeasible": (
        lambda i: conclude(i, "", None, infeasible="no room"),
        "INFEASIBLE contradicts a verified schedule of 6 by heft",
    ),
    "liar_bound": (
        lambda i: conclude(i, "", None, bound=Fraction(9)),
        "bound 9 contradicts a verified schedule of 6 by heft",
    ),
    "liar_optimal": (
        lambda i: replace(apart(i), bounds={"makespan": Fraction(8)}, status=OPTIMAL),
        "OPTIMAL at 8 contradicts a verified schedule of 6 by heft",
    ),
    "optimal_without_proof": (
        lambda i: replace(honest(i), status=OPTIMAL),
        "OPTIMAL without a bound that proves it",
    ),
    "above_itself": (
        lambda i: replace(honest(i), bounds={"makespan": Fraction(9)}),
        "bound 9 contradicts its own schedule of 6",
    ),
    "asserts": (
        lambda i: conclude(i, "", alone(i), bound=Fraction(9)),
        "failed: AssertionError: : lower bound 9 above a verified schedule of 6",
    ),
    "two_minds": (
        lambda i: replace(honest(i), status=INFEASIBLE),
        "INFEASIBLE contradicts its own schedule of 6",
    ),
    "flatters": (
        lambda i: replace(honest(i), values={"makespan": Fraction(5)}),
        "makespan 5 is not that of its schedule, which is 6",
    ),
    "invalid": (
        lambda i: bare(i, FEASIBLE, values={"makespan": Fraction(2)}, schedule=overlapping(i)),
        "its schedule is not valid: precedence",
    ),
    "empty": (lambda i: bare(i, FEASIBLE), "FEASIBLE without a schedule"),
    "boasts": (
        lambda i: bare(i, FEASIBLE, values={"makespan": Fraction(1)}),
        "1 without a schedule",
    ),
    "raiser": (raises(ZeroDivisionError("oh")), "failed: ZeroDivisionError: oh"),
    "exits": (raises(SystemExit(0)), "failed: SystemExit: 0"),
    "hungry": (raises(MemoryError()), "failed: out of memory"),
    "unprintable": (raises(UnprintableError()), "failed: UnprintableError"),
    "garbage": (lambda i: "6", "returned 'str', not a Result"),
    "nothing": (lambda i: None, "returned 'NoneType', not a Result"),
    "elsewhere": (lambda i: honest(unlike()), "returned a result for another instance"),
    "misplaced": (
        lambda i: bare(i, FEASIBLE, schedule=replace(alone(i), placement=[2, 2, 2])),
        "its result cannot be read (AttributeError",
    ),
    "nan": (
        lambda i: bare(i, Status.UNKNOWN, bounds={"makespan": float("nan")}),
        "lower_bound: nan is no",
    ),
    "floats": (
        lambda i: bare(i, Status.UNKNOWN, bounds={"makespan": 9.0}),
        "9.0 is not an exact number",
    ),
    "text": (
        lambda i: bare(i, Status.UNKNOWN, bounds={"makespan": "9"}),
        "'9' is not an exact number",
    ),
    "unknown_status": (lambda i: bare(i, "GREAT"), "status: 'GREAT' is not a valid status"),  # type: ignore[arg-type]
    "early": (lambda i: replace(honest(i), seconds=-1.0), "seconds: -1.0 is not a duration"),
    "no_trace": (lambda i: replace(honest(i), trace=(1, 2)), "trace: 1 is not a valid trace"),
    "wrong_schedule": (
        lambda i: bare(i, FEASIBLE, schedule="abc"),
        "'abc' is not a valid schedule",
    ),
}


@pytest.fixture(autouse=True)
def own_methods() -> None:
    for name, (act, _) in LIARS.items():
        register(name)(lambda instance, act=act, **_: act(instance))


@pytest.mark.parametrize("name", LIARS)
def test_a_method_that_lies_or_fails_loses_its_own_row_and_is_named(name: str) -> None:
    said = LIARS[name][1]
    comparison = compare(chain(), ["heft", name, "hash+pct"], budget=BUDGET)
    assert (comparison.reference.kind, comparison.reference.makespan) == ("optimum", 6)
    heft, liar, hashed = comparison.results
    assert (heft.makespan, hashed.makespan) == (6, 8)
    assert comparison.over_bound(heft) == 0
    assert comparison.over_bound(hashed) == pytest.approx(1 / 3)
    assert said in liar.reason
    assert (liar.refused, liar.lower_bound) == (True, None)
    assert liar.status in (Status.FEASIBLE, Status.UNKNOWN)
    (finding,) = comparison.findings
    assert str(finding).startswith(f"chain: {name}: ")
    assert said in str(finding)


def test_all_liars_together_do_not_change_the_table() -> None:
    honest_rows = compare(chain(), ["heft", "hash+pct"], budget=BUDGET)
    comparison = compare(chain(), [*LIARS, "heft", "hash+pct"], budget=BUDGET)
    assert replace(comparison.reference, makespan_by="") == replace(
        honest_rows.reference, makespan_by=""
    )
    assert {finding.source for finding in comparison.findings} == set(LIARS)


def test_a_valid_schedule_counts_even_if_its_method_made_false_claims() -> None:
    result = compare(chain(), ["above_itself"], budget=BUDGET).results[0]
    assert (result.makespan, result.status, result.refused) == (6, Status.FEASIBLE, True)


@pytest.mark.parametrize("lie", ["liar_infeasible", "liar_bound", "liar_optimal"])
def test_the_method_for_the_reference_is_not_trusted_either(
    monkeypatch: pytest.MonkeyPatch, lie: str
) -> None:
    monkeypatch.setattr("optpart.study.gap.EXACT", lie)
    comparison = compare(chain(), ["heft"], budget=BUDGET)
    assert comparison.reference.makespan == comparison.reference.bound == 6
    assert [finding.source for finding in comparison.findings] == [lie]


def test_a_liar_among_the_bounds_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for value in (Fraction(9), None):
        bound = LowerBound("wrong", value, 0.0)
        monkeypatch.setattr("optpart.study.gap.best_bound", lambda *_, b=bound, **__: b)
        monkeypatch.setattr("optpart.study.gap.EXACT", "hash+fifo")
        comparison = compare(chain(), ["heft"], budget=BUDGET)
        assert (comparison.reference.makespan, comparison.reference.bound) == (6, None)
        assert [finding.source for finding in comparison.findings] == ["wrong"]


def test_infeasible_without_a_schedule_names_its_source() -> None:
    builder = GraphBuilder().vertex("a", 1, outputs=[5]).vertex("b", 1, outputs=[5])
    graph = builder.vertex("c", 1).edge("a", "c").edge("b", "c").build()
    cluster = Cluster.of([Device("x", memory=9), Device("y", memory=9)], bandwidth=1)
    instance = Instance(graph, cluster, Model(memory="refcount"))
    comparison = compare(instance, ["liar_infeasible"], budget=BUDGET)
    assert comparison.reference.infeasible == "no room"
    assert comparison.reference.bound_by == "liar_infeasible"
    assert comparison.findings == ()


def test_a_bound_for_a_given_placement_does_not_bound_others() -> None:
    @register("restricted")
    def restricted(instance: Instance, **_: object) -> Result:
        return conclude(instance, "", None, bound=Fraction(9), given="a on the second device")

    comparison = compare(chain(), ["restricted", "heft"], budget=BUDGET)
    assert (comparison.reference.bound, comparison.findings) == (6, ())


def test_of_several_seeds_the_one_that_lied_is_named() -> None:
    @register("moody")
    def moody(instance: Instance, *, seed: int = 0, **_: object) -> Result:
        return conclude(instance, "", None, bound=Fraction(9)) if seed == 1 else honest(instance)

    (comparison,) = sweep([chain()], ["moody"], budget=BUDGET, seeds=[0, 1, 2])
    assert [finding.source for finding in comparison.findings] == ["moody, seed 1"]
    (spread,) = comparison.spreads()
    assert "bound 9 contradicts" in spread.reason
    assert spread.optimal == 2


class TestCommand:
    @pytest.fixture
    def file(self, tmp_path: Path) -> Path:
        path = tmp_path / "chain.json"
        native.write(chain(), path)
        return path

    def test_contradictions_are_named_and_the_exit_code_is_1(self, run: Run, file: Path) -> None:
        names = ("heft", "liar_bound", "raiser")
        outcome = run("gap", file, *(part for name in names for part in ("-m", name)))
        assert outcome.code == 1
        assert outcome.err.splitlines() == [
            "optpart: chain: liar_bound: bound 9 contradicts a verified schedule of 6 by heft",
            "optpart: chain: raiser: failed: ZeroDivisionError: oh",
        ]
        assert "optimum 6 by heft" in outcome.out
        (row,) = (line for line in outcome.out.splitlines() if "liar_bound" in line)
        assert row.endswith("bound 9 contradicts a verified schedule of 6 by heft")

    def test_in_80_columns_figures_are_complete_and_refused_rows_are_marked(self) -> None:
        stream = io.StringIO()
        console = PlainConsole(file=stream, width=80, highlight=False, soft_wrap=True)
        names = ["heft", "hash+pct", "liar_infeasible"]
        print_comparison(console, compare(chain(), names, budget=BUDGET))
        lines = stream.getvalue().splitlines()
        assert max(map(len, lines)) <= 80
        rows = {line.split()[0]: line.split() for line in lines[3:] if line}
        assert rows["heft"][1:4] == ["6", "0", "0"]
        assert rows["hash+pct"][2:5] == ["33.34%", "33.34%", "4"]
        assert any(line.startswith("! liar_infeasible ") for line in lines)
        assert "INFEAS" in stream.getvalue()

    def test_documents_hold_the_findings(self, run: Run, file: Path) -> None:
        outcome = run("gap", file, "-m", "heft", "-m", "liar_optimal", "--json")
        document = json.loads(outcome.out)
        assert outcome.code == 1
        assert document["instances"][0]["findings"] == [
            {"source": "liar_optimal", "problem": LIARS["liar_optimal"][1]}
        ]
        assert [row["refused"] for row in document["results"]] == [False, True]
        assert [row["optimal"] for row in document["results"]] == [True, False]

    def test_the_output_of_a_method_is_not_part_of_the_table(self, run: Run, file: Path) -> None:
        @register("talks")
        def talks(instance: Instance, **_: object) -> Result:
            print("here I am")
            return honest(instance)

        outcome = run("gap", file, "-m", "talks", "--json")
        assert outcome.code == 0
        assert json.loads(outcome.out)["results"][0]["makespan"] == "6"
        assert outcome.err == "here I am\n"

    def test_a_plug_in_that_cannot_be_loaded_loses_its_row_only(
        self, run: Run, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        info = tmp_path / "broken_plug_in-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text("[optpart.methods]\nbroken = no_such_module:x\n")
        monkeypatch.syspath_prepend(str(tmp_path))
        outcome = run("gap", file, "-m", "heft", "-m", "broken")
        assert outcome.code == 1
        assert "chain: broken: failed: ModuleNotFoundError: No module" in outcome.err
        assert "optimum 6 by heft" in outcome.out
