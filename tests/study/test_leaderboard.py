"""The leaderboard: ratios to proven bounds, and no mean over other instances has a rank."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from commandline import Run

from optpart import InputError
from optpart.solution.result import INVALID, Status
from optpart.study.dataset import Dataset
from optpart.study.leaderboard import Leaderboard, Line, Section
from optpart.study.library import Known
from optpart.study.report.html.leaderboard import leaderboard_page
from optpart.study.stored import StoredRun


def instance(
    name: str, vertices: int = 10, makespan: int | None = 4, bound: int | None = 4
) -> Known:
    best = (None if value is None else Fraction(value) for value in (makespan, bound))
    return Known(name, "g", False, vertices, 0, 2, *best, "", name, "")


def run(name: str, method: str, makespan: int | None, seed: int = 0) -> StoredRun:
    return StoredRun(
        instance=name, sha256=name, method=method, seed=seed, limit=10.0, workers=1,
        deterministic=0.0, optpart="1", status=Status.UNKNOWN, lower_bound=None, seconds=1.0,
        makespan=None if makespan is None else Fraction(makespan), vertices=None, refused=False,
        trace=(), is_verified=True,
    )  # fmt: skip


def board(rows: list[Known], runs: list[StoredRun], *more: list[StoredRun]) -> Leaderboard:
    stores = {f"{i}.db": each for i, each in enumerate([runs, *more])}
    return Leaderboard(Dataset("s", "1", tuple(rows)), stores)


def lines(section: Section) -> dict[str, Line]:
    return {line.contestant.method: line for line in section.lines}


TWO = [instance("x"), instance("y")]


def test_the_ratio_is_the_geometric_mean_over_instances_of_that_over_seeds() -> None:
    runs = [run("x", "a", 4), run("x", "a", 16, seed=1), run("y", "a", 8)]
    (section,) = board(TWO, runs).sections
    line = lines(section)["a"]
    assert line.ratio == pytest.approx(2)  # of √(1·4) and 2
    assert (line.optimal, line.run, line.solved, section.optima) == (0, 2, 2, 2)


def test_only_exact_optima_have_the_ratio_one() -> None:
    rows = [replace(row, makespan=Fraction(10**30), bound=Fraction(10**30)) for row in TWO]
    runs = [run(name, who, 10**30 + more) for name in "xy" for who, more in (("a", 0), ("b", 1))]
    (section,) = board(rows, runs).sections
    found = lines(section)
    assert found["a"].ratio == 1
    assert found["b"].ratio is not None
    assert found["b"].ratio > 1
    assert (found["a"].rank, found["b"].rank) == (1, 2)
    assert "<td>1.001</td>" in leaderboard_page(board(rows, runs))


def test_only_whole_sets_have_a_rank() -> None:
    runs = [
        run("x", "all", 8), run("y", "all", 8), run("x", "same", 8), run("y", "same", 8),
        run("x", "part", 4), run("x", "fails", 4), run("y", "fails", None),
    ]  # fmt: skip
    (section,) = board(TWO, runs).sections
    found = lines(section)
    assert [line.contestant.method for line in section.lines] == ["all", "same", "fails", "part"]
    assert [line.rank for line in section.lines] == [1, 1, None, None]
    assert (found["part"].run, found["part"].solved, found["part"].failed) == (1, 1, 0)
    assert (found["fails"].run, found["fails"].solved, found["fails"].failed) == (2, 1, 1)


def test_a_seed_without_a_schedule_leaves_the_instance_unsolved() -> None:
    (section,) = board([instance("x")], [run("x", "a", 4), run("x", "a", None, seed=1)]).sections
    assert lines(section)["a"].solved == 0
    assert lines(section)["a"].ratio is None


def test_rejected_schedules_are_told_from_failures() -> None:
    rejected = replace(run("x", "a", None), reason=f"{INVALID}: v starts too early")
    (section,) = board(TWO, [rejected, run("y", "a", None)]).sections
    line = lines(section)["a"]
    assert (line.rejected, line.failed, line.rank) == (1, 1, None)


def test_there_is_a_section_for_each_size() -> None:
    rows = [instance("x", 30), instance("y", 31), instance("z", 201, 9, 6)]
    found = board(rows, [run("x", "a", 4), run("z", "a", 12)]).sections
    assert [(each.size, each.instances, each.optima) for each in found] == [
        ("all", 3, 2), ("small", 1, 1), ("middle", 1, 1), ("large", 1, 0),
    ]  # fmt: skip
    assert [lines(each)["a"].rank if each.lines else 0 for each in found] == [None, 1, 0, 1]


def test_without_a_bound_of_the_index_that_of_the_stores_counts_and_is_said_to_be_claimed() -> None:
    rows = [instance("x", makespan=None, bound=None), instance("y", makespan=None, bound=None)]
    proven = replace(run("x", "b", 5), lower_bound=Fraction(5))
    made = board(rows, [run("x", "a", 10), run("y", "a", 3), proven])
    assert lines(made.sections[0])["a"].ratio == pytest.approx(2)
    assert lines(made.sections[0])["b"].optimal == 1
    assert made.notes == [
        "Instances whose bound, and optimum, only the stores claim: 1.",
        "Instances without a bound, which have no ratio: 1.",
    ]


def test_claims_of_stores_do_not_replace_the_bound_of_the_index() -> None:
    row = instance("x", makespan=9, bound=4)
    made = board([row], [replace(run("x", "a", 8), lower_bound=Fraction(8))])
    assert lines(made.sections[0])["a"].ratio == pytest.approx(2)
    assert made.sections[0].optima == 0


def test_a_schedule_below_the_bound_is_an_error() -> None:
    with pytest.raises(InputError, match="x: its bound is 4, and a has a schedule of 3; find out"):
        board(TWO, [run("x", "a", 3)])


def test_the_same_method_with_other_limits_or_code_is_another_line() -> None:
    runs = [run("x", "a", 4), replace(run("x", "a", 8), limit=60.0)]
    other = [replace(run("x", "a", 16), code="other"), run("x", "a", 4)]
    made = board([instance("x")], runs, other)
    assert [
        (line.rank, line.contestant.limits, line.stores) for line in made.sections[0].lines
    ] == [
        (1, "10 s, 1 worker", ("0.db",)),
        (2, "60 s, 1 worker", ("0.db",)),
        (3, "10 s, 1 worker", ("1.db",)),
    ]
    assert made.notes == ["Runs that an earlier store has, too, count once: 1."]


def test_what_does_not_count_is_said() -> None:
    made = board([instance("x")], [
        run("x", "a", 4), run("else", "a", 4), replace(run("x", "b", 4), is_latest=False),
    ])  # fmt: skip
    assert [*lines(made.sections[0])] == ["a"]
    assert [note.rpartition(": ")[2] for note in made.notes] == ["1.", "1."]
    with pytest.raises(InputError, match=r"0\.db: has no run on the set s; fill it with 'optpart"):
        board([instance("x")], [run("else", "a", 4)])


def test_names_are_text_in_the_page() -> None:
    page = leaderboard_page(board([instance("x")], [run("x", "<script>\u202e", 4)]))
    assert "<script>" not in page
    assert "\u202e" not in page
    assert "http" not in page.replace("http-equiv", "")


def test_the_command_ranks_what_gap_has_stored(run: Run, tmp_path: Path) -> None:
    store, page = tmp_path / "runs.db", tmp_path / "board.html"
    shown = run(
        "gap", "--set", "worst", "-m", "heft", "-m", "cpsat", "--time-limit", 5, "--store", store
    )
    assert shown.code == 0
    assert shown.err.startswith("set worst, version 1: 12 instances, sha256 68270ce7927628e1\n")
    assert run("report", store, "--set", "worst", "-o", page).code == 0
    text = page.read_text(encoding="utf-8")
    assert "Small: 12 instances, 12 with a known optimum" in text
    assert "<td>1</td><td class=text>cpsat</td><td>1.000</td><td>12 of 12</td>" in text
    assert "<td>2</td><td class=text>heft</td><td>2.019</td><td>12 of 12</td>" in text
    assert "has no run on the set large" in run("report", store, "--set", "large", "-o", page).err
    assert page.read_text(encoding="utf-8") == text


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["-o", "x.html"], "heft-10: is no store, of which leaderboards are; give stores of"),
        (["-o", "x"], "x: --set: is for pages; name it x.html"),
    ],
)
def test_what_is_no_leaderboard_is_refused(run: Run, more: list[str], said: str) -> None:
    shown = run("report", "heft-10", "--set", "worst", *more)
    assert shown.code == 2
    assert said in shown.err
