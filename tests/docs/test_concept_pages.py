"""The cells of the concept pages run, so what they assert of their pictures holds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")
FOLDER = Path(__file__).parents[2] / "docs" / "concepts"
CELL = re.compile(
    r"^```\{code-cell\} python\n(?:---\n.*?\n---\n|(?::[^\n]*\n)*)(.*?)^```", re.M | re.S
)


@pytest.mark.parametrize("name", ["bounds.md", "search.md", "certificates.md"])
def test_a_page_runs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(FOLDER)
    page = (FOLDER / name).read_text(encoding="utf-8")
    cells = CELL.findall(page)
    assert len(cells) == page.count("```{code-cell}")
    names: dict[str, object] = {}
    for cell in cells:
        exec(compile(cell, name, "exec"), names)  # the page is the project's own


def test_every_picture_is_described() -> None:
    for page in FOLDER.glob("*.md"):
        cells = re.findall(r"^```\{code-cell\}.*?^```", page.read_text("utf-8"), re.M | re.S)
        drawn = [cell for cell in cells if "Picture(figure)" in cell]
        assert drawn
        assert all("    alt: " in cell for cell in drawn)
