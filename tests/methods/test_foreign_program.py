"""Programs of others: only a schedule that the verifier accepts counts."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from commandline import Run

from optpart.methods import registry
from optpart.methods.program import register_program

#: Everything on one device, one vertex after another; claims to be optimal.
ONE_AFTER_ANOTHER = """
import json, sys
instance = json.load(open(sys.argv[1]))
names = [vertex["name"] for vertex in instance["vertices"]]
schedule = {"placement": {name: "d0" for name in names},
            "start": {name: STEP * i for i, name in enumerate(names)}}
json.dump({"format": "optpart-result/1", "status": "OPTIMAL", "schedule": schedule},
          open(sys.argv[2], "w"))
"""


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    yield
    for name in registry.own():
        registry.forget(name)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def measured(run: Run, text: str, *more: object) -> tuple[dict[str, object], str]:
    """Return the row of a program in the current folder, and what was complained of."""
    Path("mine.py").write_text(text)
    command = f"'{sys.executable}' mine.py {{instance}} {{result}}"
    shown = run("gap", "heft-10", "-m", "heft", "--program", command, "--json", *more)
    rows = json.loads(shown.out)["results"]
    return next(row for row in rows if row["method"].endswith("mine.py")), shown.err


def test_its_schedule_is_measured_and_its_claims_are_not_believed(run: Run) -> None:
    row, err = measured(run, ONE_AFTER_ANOTHER.replace("STEP", "100"))
    assert row["makespan"] == "921"
    assert row["optimal"] is False
    assert "mine.py" not in err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (ONE_AFTER_ANOTHER.replace("STEP", "1"), "is not valid"),
        ("import sys; sys.exit('too hard')", "failed (exit code 1: too hard)"),
        ("", "wrote no result"),
        ("import sys; open(sys.argv[2], 'w').write('{}')", "its result cannot be read"),
    ],
)
def test_one_that_fails_loses_its_row_only(run: Run, text: str, said: str) -> None:
    row, err = measured(run, text)
    assert row["makespan"] is None
    assert said in err


def test_at_the_limit_it_is_killed_and_what_it_has_written_counts(run: Run) -> None:
    text = ONE_AFTER_ANOTHER.replace("STEP", "100").replace("json.dump", "f = json.dump")
    text += "\nimport gc, time\ngc.collect()\ntime.sleep(600)"
    row, _ = measured(run, text, "--time-limit", 1)
    assert row["makespan"] == "921"
    assert row["reason"] == "time limit"


def test_a_store_keeps_its_runs_until_a_file_of_its_command_changes(run: Run) -> None:
    text = ONE_AFTER_ANOTHER.replace("STEP", "100")
    text += "\nopen('count', 'a').write('x')"
    for changed in ("", "", "\n# another program"):
        row, _ = measured(run, text + changed, "--store", "runs.db")
        assert row["makespan"] == "921"
    assert Path("count").read_text() == "xx"


def test_it_must_not_change_while_it_is_measured(run: Run) -> None:
    text = ONE_AFTER_ANOTHER.replace("STEP", "100") + "\nopen('mine.py', 'a').write('#')"
    row, err = measured(run, text, "--seeds", 2)
    assert row["makespan"] == "921"
    assert "was changed while it is measured" in err


def test_it_starts_in_the_current_folder_and_leaves_nothing(run: Run, here: Path) -> None:
    Path("data").write_text("100")
    measured(run, ONE_AFTER_ANOTHER.replace("STEP", "int(open('data').read())"))
    assert {path.name for path in here.iterdir()} == {"data", "mine.py"}


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("mine {instance}", "does not name {result}; add {result} to the command"),
        ("mine {result}", "does not name {instance}"),
        ("'mine {instance} {result}", "no closing quotation"),
    ],
)
def test_a_command_without_its_files_is_refused(run: Run, command: str, said: str) -> None:
    shown = run("gap", "heft-10", "--program", command)
    assert shown.code == 2
    assert shown.err.startswith(f"optpart: --program: {said}")


@pytest.mark.parametrize("more", [("--axis",), ("--engine", "dask")])
def test_what_would_need_its_code_is_refused(run: Run, more: tuple[str, ...]) -> None:
    shown = run("gap", "heft-10", "--program", "mine {instance} {result}", *more)
    assert shown.code == 2
    assert "--program: used with --axis or --engine" in shown.err


def test_the_name_has_no_files() -> None:
    assert register_program("./mine -i{instance} --out={result} -v") == "./mine -v"
