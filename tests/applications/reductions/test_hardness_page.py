"""The page on NP-hardness runs: every block of Python, in order, prints the output below it."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "hardness.md"
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)


def test_the_page_prints_what_it_says() -> None:
    text = PAGE.read_text()
    blocks = BLOCK.findall(text)
    assert len(blocks) == text.count("```python") == text.count("```text")
    session: dict[str, object] = {}
    for code, shown in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, str(PAGE), "exec"), session)  # the page is the project's own
        assert printed.getvalue() == shown, code


def test_the_pictures_of_the_page_are_there() -> None:
    for target in re.findall(r"!\[[^]]*\]\(([^)]*)\)", PAGE.read_text()):
        assert (PAGE.parent / target).is_file(), target
