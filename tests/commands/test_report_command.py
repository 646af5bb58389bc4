"""``optpart report``: a page or a folder, by the name of the output."""

from __future__ import annotations

from pathlib import Path

import pytest
from commandline import Run


@pytest.fixture
def store(run: Run, tmp_path: Path) -> Path:
    path = tmp_path / "runs.db"
    done = run("gap", "graham-1969-4", "-m", "heft", "-m", "peft", "--store", str(path))
    assert done.code == 0, done.err
    return path


def test_a_name_of_a_page_gives_a_page(run: Run, store: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    assert run("report", str(store), "-o", str(page)).code == 0
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_any_other_name_gives_a_folder_with_tables(run: Run, store: Path, tmp_path: Path) -> None:
    done = run("report", str(store), "--by", "n", "-o", str(tmp_path / "paper"))
    assert (done.code, done.out) == (0, f"tables and figures → {tmp_path / 'paper'}\n")
    assert (tmp_path / "paper" / "summary.tex").exists()


def test_groups_are_for_tables(run: Run, store: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    done = run("report", str(store), "--by", "n", "-o", str(page))
    assert done.code == 2
    assert "--by" in done.err
    assert not page.exists()


def test_tables_are_about_one_store(run: Run, store: Path, tmp_path: Path) -> None:
    for others in ((str(store), str(store)), ("heft-10",)):
        done = run("report", *others, "-o", str(tmp_path / "report"))
        assert done.code == 2
        assert not (tmp_path / "report").exists()


def test_tables_take_the_instances_that_the_schedules_are_verified_against(
    run: Run, store: Path, tmp_path: Path
) -> None:
    done = run("report", "heft-10", str(store), "-o", str(tmp_path / "report"))
    assert (done.code, done.err) == (0, "")
    assert (tmp_path / "report" / "runs.csv").exists()


def test_a_result_alone_makes_a_page_and_no_tables(run: Run, tmp_path: Path) -> None:
    result = tmp_path / "r.json"
    run("solve", "heft-10", "-m", "heft", "-o", str(result))
    done = run("report", str(result), "-o", str(tmp_path / "report"))
    assert done.code == 2
    assert "is not a page; name it" in done.err
