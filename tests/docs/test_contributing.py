"""The guide for contributors: its examples run, and what it names is there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from optpart.cli import app
from optpart.lower_bounds.best import BOUNDS
from optpart.methods import registry
from optpart.search.bounding import bounded
from optpart.solution.result import Budget
from optpart.testing.draw import random_instance

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
EXAMPLES = dict(
    re.findall(r"^\*\*An? ([^*]+)\*\*.*?^```python\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)
)


def test_there_is_an_example_of_each_part() -> None:
    assert [*EXAMPLES] == [
        "partitioning strategy",
        "scheduling strategy",
        "lower bound",
        "search move",
        "reduction",
        "command",
        "file format",
    ]


@pytest.fixture(autouse=True)
def tables_restored(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Forget after a test what its example registered."""
    monkeypatch.setattr(app, "registered_commands", [*app.registered_commands])
    with patch.dict(BOUNDS):
        yield


def run_example(part: str, folder: Path) -> dict[str, Any]:
    # numba finds the file of what it compiles.
    file = folder / "example.py"
    file.write_text(EXAMPLES[part], encoding="utf-8")
    names: dict[str, Any] = {"__name__": "example"}
    exec(compile(EXAMPLES[part], file, "exec"), names)  # the page is our own
    return names


@pytest.mark.parametrize("part", EXAMPLES)
def test_an_example_runs(part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_example(part, tmp_path)


def test_the_bound_of_the_example_takes_part_in_search_and_in_cpsat(tmp_path: Path) -> None:
    run_example("lower bound", tmp_path)
    row, computed = BOUNDS["pigeonhole"], []

    def counted(*arguments: Any, **options: Any) -> Fraction | None:
        computed.append(row.compute(*arguments, **options))
        return computed[-1]

    BOUNDS["pigeonhole"] = replace(row, compute=counted)
    no_bound_reaches_it = random_instance(np.random.default_rng(65), 13, 3)
    bounded(no_bound_reaches_it, 5.0, None)
    assert len(computed) == 1
    registry.get("cpsat")(no_bound_reaches_it, budget=Budget(20.0, 1))
    assert len(computed) == 2


@pytest.mark.parametrize("part", EXAMPLES)
def test_an_example_is_short(part: str) -> None:
    assert len([line for line in EXAMPLES[part].splitlines() if line]) < 30


def test_every_path_in_the_guide_exists() -> None:
    paths = re.findall(r"`((?:optpart|tests|docs|bench|instances)/[\w./]*)`", GUIDE)
    assert "optpart/strategies/partition/" in paths
    for path in paths:
        assert (ROOT / path).exists(), path


def test_every_table_is_in_the_module_that_the_guide_names() -> None:
    rows = re.findall(r", a row in `([A-Z]+)` \(`([\w/.]+)`\)", GUIDE)
    assert len(rows) == 7
    for name, path in rows:
        assert f"\n{name}" in (ROOT / path).read_text(encoding="utf-8")
