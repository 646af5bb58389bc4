"""``optpart gap`` that is interrupted: what was found is shown, and nothing is no success."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from commandline import Run

from optpart.methods import registry
from optpart.solution.job import Job
from optpart.solution.result import Result


@pytest.fixture(autouse=True)
def _interrupting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the user interrupt ``heft`` on any instance but ``laich-2.5``."""
    found = registry.get

    def get(name: str) -> registry.Method:
        method = found(name)

        def stopped(job: Any, *rest: Any, **options: Any) -> Result:
            instance = job.instance if isinstance(job, Job) else job
            if name == "heft" and instance.name != "laich-2.5":
                raise KeyboardInterrupt
            return method(job, *rest, **options)

        return stopped

    monkeypatch.setattr("optpart.methods.registry.get", get)


@pytest.mark.parametrize("options", ["", "--json", "--csv", "-o out.json", "--store runs.db"])
def test_before_any_result_it_is_one_line_and_130(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: str
) -> None:
    monkeypatch.chdir(tmp_path)
    shown = run("gap", "heft-10", "kwok-ahmad-9-2", "-m", "heft", *options.split())
    assert (shown.code, shown.out, shown.err) == (130, "", "optpart: interrupted\n")
    assert not Path("out.json").exists()


@pytest.mark.parametrize("axis", [[], ["--axis"]])
def test_after_some_results_they_follow_and_the_table_is_called_partial(
    run: Run, axis: list[str]
) -> None:
    shown = run("gap", "laich-2.5", "heft-10", "-m", "heft", "--workers", 1, "--json", *axis)
    assert shown.code == 130
    (found,) = json.loads(shown.out)["instances"]
    assert found["instance"] == "laich-2.5"
    partial = "the table is partial: 1 of 2 instances are done"
    assert shown.err == f"{partial}\noptpart: interrupted\n"
