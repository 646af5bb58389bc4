"""The design page has what docstrings refer to, and says what the code says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import typer.main

from optpart.cli import app
from optpart.problem.model import Communication, Memory
from optpart.solution.result import Status
from optpart.solution.termination import Termination

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")


def section(number: int) -> str:
    return PAGE.partition(f"\n## {number}. ")[2].partition("\n## ")[0]


def first_column(text: str) -> set[str]:
    rows = re.findall(r"^\| (`[^|]*) \|", text, re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`([^`]*)`", row)}


def test_every_section_that_a_docstring_cites_is_there() -> None:
    headings = {int(number) for number in re.findall(r"^## (\d+)\. ", PAGE, re.MULTILINE)}
    cited = {
        int(number)
        for path in (ROOT / "optpart").rglob("*.py")
        for place in re.findall(r"design (§[§\d, ]+)", path.read_text(encoding="utf-8"))
        for number in re.findall(r"\d+", place)
    }
    assert cited
    assert cited <= headings


def test_all_models_are_defined() -> None:
    assert first_column(section(2)) == {*get_args(Communication), *get_args(Memory)}


def test_every_status_and_termination_is_defined() -> None:
    assert first_column(section(3)) == {*Status, *Termination}


def test_all_commands_are_listed() -> None:
    command = typer.main.get_command(app)
    assert first_column(section(6)) == set(command.commands)  # type: ignore[attr-defined]


def test_pages_speak_of_the_sources_that_are_cited() -> None:
    glossary = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    for tag in ("[L]", "[M]", "[B]", "[H]", "[G]"):
        row = next(line for line in glossary.splitlines() if line.startswith(f"| {tag} |"))
        entry = next(e for e in citation.split("  - type: ") if tag in e)
        title = re.search(r'title: "(.*)"', entry)
        assert title is not None
        assert title[1] in row
        assert all(name in row for name in re.findall(r"family-names: (.*)", entry))
