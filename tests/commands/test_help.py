"""Help pages: no word is cut, however narrow the terminal."""

from __future__ import annotations

import re

import pytest
from commandline import Run

from optpart.commands.registry import COMMANDS, GROUPS


@pytest.fixture(params=[200, 80, 60, 40])
def width(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    columns: int = request.param
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERMINAL_WIDTH", str(columns))
    return columns


@pytest.mark.usefixtures("width")
@pytest.mark.parametrize("width", [200, 40], indirect=True)
@pytest.mark.parametrize("command", ["", *GROUPS, *COMMANDS, "generate small", "generate thesis"])
def test_options_are_whole(run: Run, command: str) -> None:
    shown = run(*command.split(), "--help")
    assert shown.code == 0
    assert "…" not in shown.out
    assert "..." not in shown.out.partition("Commands:")[2]
    assert not re.search(r"[─│╭╰]", shown.out)  # no frame takes the room of words
    assert "--help" in shown.out


def test_choices_are_whole(run: Run, width: int) -> None:
    shown = run("solve", "--help").out
    for word in ("--time-limit", "--device-order", "makespan|traffic|lexicographic|bottleneck"):
        assert word in shown
    if width >= 80:
        assert max(map(len, shown.splitlines())) <= width
