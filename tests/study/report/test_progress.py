"""The progress line stays one line, whatever the terminal and the names."""

from __future__ import annotations

from fractions import Fraction

import pytest
from rich.cells import cell_len

from optpart.base.terminal import note
from optpart.solution.result import Progress
from optpart.study.report.progress import ProgressLine, said

STEP = Progress(12.5, Fraction(987654), Fraction(123456))


@pytest.mark.parametrize("width", [1, 2, 20, 40, 79])
@pytest.mark.parametrize(
    "name", ["頂点" * 50, "a\u0301" * 80, "x\n\x1b[31m" * 9, "", "\U0001f600" * 50]
)
def test_a_line_is_no_wider_than_the_terminal(name: str, width: int) -> None:
    for step in (None, STEP):
        line = said(name, step, width)
        assert cell_len(line) <= max(width, 2)
        assert line.isprintable()


def test_what_is_said_meanwhile_has_a_line_of_its_own(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")
    line = ProgressLine()
    line("heft-10  cpsat", None)
    note("compiling")
    line("heft-10  cpsat", None)
    line.clear()
    line.clear()
    blank = " " * len("heft-10  cpsat")
    assert capsys.readouterr().err == (
        f"\rheft-10  cpsat\r{blank}\rcompiling\n\rheft-10  cpsat\r{blank}\r"
    )


def test_a_terminal_that_became_narrower_is_not_filled_with_blanks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    line = ProgressLine()
    line("a-rather-long-name-of-an-instance  heft", STEP)
    monkeypatch.setenv("COLUMNS", "40")
    line("a-rather-long-name-of-an-instance  heft", STEP)
    monkeypatch.setenv("COLUMNS", "20")
    line.clear()
    wide, narrow, blank, end = capsys.readouterr().err.split("\r")[1:]
    assert (len(wide) <= 79, len(narrow) <= 39, blank, end) == (True, True, " " * 19, "")


def test_where_no_schedule_is_sought_only_the_bound_is_said() -> None:
    step = Progress(12.5, None, Fraction(73))
    assert said("load", step, seeks=False) == "load  bound 73  12.5 s"
    assert said("load", step) == "load  incumbent –  bound 73  gap –  12.5 s"
