"""Files that an earlier version wrote are still read, and mean the same."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from commandline import Run

import optpart as op
from optpart.methods import registry

EARLIER = Path(__file__).with_name("earlier")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(EARLIER, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_an_instance_is_the_same() -> None:
    found = op.read_instance(EARLIER / "instance.json")
    assert found.name == "small-30-4-ccr10-t-g-loose-s99"
    assert found.sha256 == "767e994cf62cc02b09c63dbb739d1d987a280756ed034aa7ae0b77f9aebfc7d2"


@pytest.mark.usefixtures("folder")
def test_a_result_is_verified_drawn_and_continued(run: Run) -> None:
    shown = run("verify", "instance.json", "result.json")
    assert (shown.code, shown.out) == (0, "valid: makespan 3212, claimed lower bound 1564\n")
    assert run("plot", "result.json", "--instance", "instance.json", "-o", "picture.png").code == 0
    command = ("simulate", "instance.json", "--start", "result.json", "-m", "pct", "--json")
    assert json.loads(run(*command).out)["makespan"] == "3603"


def test_a_checkpoint_is_resumed(folder: Path) -> None:
    budget = op.Budget(600.0, 1, 12)
    given = {"budget": budget, "checkpoint": folder / "checkpoint.json", "resume": True}
    result = registry.get("search")(op.read_instance(folder / "instance.json"), **given)
    assert (result.makespan, result.traffic) == (2131, 227940)


def test_a_store_of_runs_is_added_to(folder: Path, run: Run) -> None:
    """What another version measured is measured again, and its rows stay."""

    def versions() -> list[str]:
        with closing(sqlite3.connect(folder / "store.sqlite")) as database:
            return [row[0] for row in database.execute("SELECT optpart FROM run ORDER BY rowid")]

    before = versions()
    command = ("gap", "heft-10", "-m", "heft", "--workers", 1, "--store", "store.sqlite")
    assert run(*command).code == 0
    after = versions()
    assert after[: len(before)] == before
    assert set(after[len(before) :]) == {op.__version__}
