"""What fails on the way is said by results, bounds and commands."""

from __future__ import annotations

import json

import pytest
from commandline import Run

from optpart.base.children import worker
from optpart.solution.termination import Termination


@pytest.fixture(autouse=True)
def _no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no worker start."""

    def refuse(_: object) -> None:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(worker, "spawn", refuse)
    monkeypatch.setattr("optpart.exact.process._shared", {})


@pytest.mark.parametrize("method", ["auto", "cpsat", "search", "milp"])
def test_a_solve_without_its_processes_is_failed_and_exits_with_5(run: Run, method: str) -> None:
    limits = ("--time-limit", 2, "--workers", 2)
    shown = run("solve", "heft-10", "-m", method, *limits, "--json")
    found = json.loads(shown.out)
    assert (shown.code, found["termination"]) == (5, Termination.FAILED)
    assert "could not be started (Too many open files)" in found["reason"]
    assert "could not be started (Too many open files)" in shown.err


def test_a_program_that_cannot_be_written_is_one_line(run: Run) -> None:
    shown = run("export", "heft-10", "--to", "lp", "-o", "-")
    assert (shown.code, shown.err.count("\n")) == (5, 1)
