"""The guide for contributors: its examples run, and what it names is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
EXAMPLES = dict(
    re.findall(r"^\*\*An? ([^*]+)\*\*.*?^```python\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)
)


def test_there_is_an_example_of_each_part() -> None:
    assert [*EXAMPLES] == [
        "partitioning strategy",
        "scheduling strategy",
        "reduction",
        "file format",
    ]


@pytest.mark.parametrize("part", EXAMPLES)
def test_an_example_runs(part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # numba finds the file of what it compiles.
    file = tmp_path / "example.py"
    file.write_text(EXAMPLES[part], encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    exec(compile(EXAMPLES[part], file, "exec"), {"__name__": "example"})  # the page is our own


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
    assert len(rows) == 5
    for name, path in rows:
        assert f"\n{name}" in (ROOT / path).read_text(encoding="utf-8")
