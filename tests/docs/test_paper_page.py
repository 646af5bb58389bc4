"""The walk-through for papers runs as it stands, and prints what the page shows."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from commandline import Run

from optpart.interop.generate.registry import GENERATORS

PAGE = (Path(__file__).parents[2] / "docs" / "use" / "paper.md").read_text(encoding="utf-8")


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_the_page_runs(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for part in "".join(blocks("console")).split("$ optpart ")[1:]:
        command, _, shown = part.partition("\n")
        words = shlex.split(command)
        done = run(*words)
        assert done.code == 0, done.err
        assert done.out == shown or words[0] == "gap"
    (code,), (printed,) = blocks("python"), blocks("text")
    exec(compile(code, "paper.md", "exec"), {})  # the page is our own
    assert capsys.readouterr().out == printed


def test_it_names_every_file() -> None:
    for name in ("summary", "wilcoxon", "profile", "box", "convergence", "runs", "notes"):
        assert f"`{name}" in PAGE


def test_it_names_every_family() -> None:
    families = [name for name in GENERATORS if f"| `{name}` |" in PAGE]
    assert len(families) == 8


def test_other_pages_lead_here() -> None:
    root = Path(__file__).parents[2]
    for other in ("README.md", "docs/usage.md"):
        assert "use/paper.md" in (root / other).read_text(encoding="utf-8")
