"""The folder of tables and figures: complete, escaped, and the same for the same store."""

from __future__ import annotations

import csv
from fractions import Fraction
from pathlib import Path

import pytest
from hostile import meant

from optpart import Budget, InputError, conclude, retime
from optpart.interop.generate.families import fft, fork_join
from optpart.problem.instance import Instance
from optpart.solution.result import Result
from optpart.study.report.paper.folder import write_folder
from optpart.study.run import Run, execute
from optpart.study.store import Store

PICTURES = [
    f"{name}.{form}" for name in ("box", "profile", "convergence") for form in ("png", "svg", "pdf")
]
TABLES = ["runs.csv", "summary.csv", "summary.tex", "wilcoxon.csv", "wilcoxon.tex", "notes.txt"]
FILES = {*TABLES, *PICTURES}
BUDGET = Budget(5, workers=1)
NASTY = r"50%_of\$x$ & {y}~#^"


def nothing_found(instance: Instance, method: str) -> Result:
    return conclude(instance, method, None)


def all_on_one(instance: Instance, method: str) -> Result:
    order = instance.graph.topological_order.tolist()
    return conclude(instance, method, retime(instance, [0] * instance.vertices, order))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four instances; one method finds nothing on one of them, and has a name of special signs."""
    path = tmp_path_factory.mktemp("store") / "runs.db"
    with Store(path) as kept:
        for i, ccr in enumerate((0.5, 0.5, 5.0, 5.0)):
            instance = fft(4, 2, ccr=ccr, seed=i) if i % 2 else fork_join(3, 1, 2, ccr=ccr, seed=i)
            for method in ("heft", "dls"):
                run = Run(instance, method, 0, BUDGET)
                kept.add(run, execute(run))
            kept.add(
                Run(instance, NASTY, 0, BUDGET),
                nothing_found(instance, NASTY) if i == 0 else all_on_one(instance, NASTY),
            )
    return path


@pytest.fixture(scope="module")
def folder(store: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("reports") / "out"
    write_folder(store, ["ccr"], path)
    return path


def records(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def test_every_file_is_there_and_pictures_are_what_their_names_say(folder: Path) -> None:
    assert {path.name for path in folder.iterdir()} == {*FILES, "manifest.json"}
    for name in ("box", "profile", "convergence"):
        assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert (folder / f"{name}.pdf").read_bytes().startswith(b"%PDF")
        assert b"<svg" in (folder / f"{name}.svg").read_bytes()


def test_the_same_store_gives_the_same_bytes(store: Path, folder: Path, tmp_path: Path) -> None:
    write_folder(store, ["ccr"], tmp_path / "again")
    for name in FILES:
        assert (folder / name).read_bytes() == (tmp_path / "again" / name).read_bytes()


def test_numbers_are_given_as_floats_and_exactly(folder: Path) -> None:
    for row in records(folder / "runs.csv"):
        if row["makespan"]:
            assert float(row["makespan"]) == float(Fraction(row["makespan_exact"]))
            ratio = Fraction(row["makespan_exact"]) / Fraction(row["best_makespan_exact"])
            assert row["ratio_exact"] == str(ratio)


def test_unsolved_runs_are_counted_and_no_mean_hides_them(folder: Path) -> None:
    rows = [row for row in records(folder / "summary.csv") if meant(row["method"]) == NASTY]
    assert [(row["ccr"], row["unsolved"], bool(row["mean_ratio"])) for row in rows] == [
        ("0.5", "1", False),
        ("5", "0", True),
    ]
    assert all(row["mean_ratio_of_solved_only"] for row in rows)
    assert "-- (1 unsolved)" in (folder / "summary.tex").read_text()
    # SVG keeps text as text.
    assert "(1 of 2 unsolved)" in (folder / "box.svg").read_text(encoding="utf-8")


def test_names_are_escaped_for_latex(folder: Path) -> None:
    escaped = r"50\%\_of\textbackslash{}\$x\$ \& \{y\}\textasciitilde{}\#\textasciicircum{}"
    for name in ("summary.tex", "wilcoxon.tex"):
        text = (folder / name).read_text()
        assert escaped in text
        assert NASTY not in text
        # As many columns in every row as the header has.
        body = [line for line in text.splitlines() if line.endswith(r"\\")]
        assert len({line.replace(r"\&", "").count("&") for line in body}) == 1


def test_only_an_exact_best_is_shown_as_one(folder: Path) -> None:
    lines = (folder / "summary.tex").read_text().splitlines()
    shown = [line.split(" & ") for line in lines if line.endswith(r"\\")][1:]
    exact = [row["mean_ratio_exact"] for row in records(folder / "summary.csv")]
    assert [cells[4] == "1.000" for cells in shown] == [ratio == "1" for ratio in exact]


def test_notes_define_every_figure(folder: Path) -> None:
    notes = (folder / "notes.txt").read_text(encoding="utf-8")
    for word in ("ratio:", "mean ratio:", "median:", "95% interval:", "p (Holm):", "primal, dual:"):
        assert word in notes


def test_nothing_is_written_if_the_store_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        write_folder(tmp_path / "missing.db", [], tmp_path / "out")
    assert not [*tmp_path.iterdir()]


def test_a_file_is_not_taken_for_a_folder(store: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InputError, match="is not a folder"):
        write_folder(store, [], tmp_path / "file")
    assert (tmp_path / "file").read_text() == "mine"
