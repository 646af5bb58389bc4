"""``optpart profile fit``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commandline import Run

TIMES = """op,kind,batch,time (us)
conv,fast,1,105
conv,fast,2,110
conv,fast,4,121
relu,fast,8,40
"""
LINKS = "sender,receiver,bytes,time (us)\nx,y,0,12\nx,y,1000000,112\n"


@pytest.fixture
def tables(tmp_path: Path) -> tuple[Path, Path]:
    times, links = tmp_path / "times.csv", tmp_path / "links.csv"
    times.write_text(TIMES)
    links.write_text(LINKS)
    return times, links


def test_lines_are_printed_with_their_errors(run: Run, tables: tuple[Path, Path]) -> None:
    done = run("profile", "fit", *tables)
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert lines[0].split() == [
        "operation,", "kind", "rows", "alpha", "beta/sample", "error", "worst",
    ]  # fmt: skip
    conv = lines[1].split()
    assert conv[:3] == ["conv,", "fast", "3"]
    assert conv[4:] == ["us", "5.348", "us", "0.13%", "0.20%"]
    assert "2 lines of 4 rows" in lines[3]
    assert lines[5].split() == ["x,", "y", "2", "12", "us", "100", "us", "0", "0"]
    assert "operation relu fast: measured for a single number of samples; α = 0" in lines[-1]


def test_costs_are_written(run: Run, tables: tuple[Path, Path], tmp_path: Path) -> None:
    output = tmp_path / "costs.json"
    done = run("profile", "fit", *tables, "-o", output)
    assert done.code == 0, done.err
    document = json.loads(output.read_text())
    assert document["format"] == "optpart-costs/1"
    assert document["transfers"][0]["beta"] == "1/10"
    assert run("profile", "fit", *tables, "--json").out == output.read_text()


def test_bad_tables_end_in_one_line(run: Run, tables: tuple[Path, Path], tmp_path: Path) -> None:
    times, _ = tables
    times.write_text(TIMES.replace("110", "-1"))
    done = run("profile", "fit", times, "-o", tmp_path / "costs.json")
    assert (done.code, done.out) == (2, "")
    assert done.err == f"optpart: {times}: line 3, time: -1 is negative; give a number ≥ 0\n"
    assert not (tmp_path / "costs.json").exists()


def test_a_table_counts_once(run: Run, tables: tuple[Path, Path]) -> None:
    done = run("profile", "fit", tables[0], tables[0])
    assert (done.code, done.err) == (
        2,
        "optpart: TIMES.csv: a table given twice; give every table once\n",
    )


def test_without_tables_there_is_a_usage_error(run: Run) -> None:
    assert run("profile", "fit").code == 2
    assert "optpart profile fit" in run("profile", "fit", "--help").out
