"""The tutorials: ``make docs`` runs their code; every exercise has its solution."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def numbers(page: str, pattern: str) -> list[int]:
    text = (DOCS / page).read_text(encoding="utf-8")
    return [int(number) for number in re.findall(pattern, text, re.MULTILINE)]


def test_every_exercise_has_a_solution() -> None:
    exercise = r"^\*\*Exercise (\d+)\.\*\*"
    posed = numbers("hardness.md", exercise) + numbers("tutorials/hardness.md", exercise)
    solved = numbers("tutorials/hardness-solutions.md", r"^## (\d+)\. ")
    assert solved == posed == [*range(1, len(posed) + 1)]


def test_all_code_of_the_tutorials_is_run() -> None:
    for page in (DOCS / "tutorials").glob("*.md"):
        text = page.read_text(encoding="utf-8")
        assert "```python" not in text
        assert "raises-exception" not in text
        assert "skip-execution" not in text
