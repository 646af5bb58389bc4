"""Standard streams that are closed, full or no longer read, in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from optpart.base.terminal import say

_OPTPART = f'{sys.executable} -P -c "from optpart.cli import main; main()"'

needs_full = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")


def shell(line: str) -> subprocess.CompletedProcess[str]:
    """Run a line of bash in which ``optpart`` stands for the command line."""
    return subprocess.run(
        ["bash", "-c", f"set -o pipefail; {line.replace('optpart', _OPTPART, 1)}"],
        capture_output=True,
        text=True,
        check=False,
    )


@needs_full
@pytest.mark.parametrize(
    "command",
    ["methods", "solve --help", "gap --list", "solve laich-2.5 -m heft"],
)
def test_a_full_standard_output_is_one_line(command: str) -> None:
    ended = shell(f"optpart {command} > /dev/full")
    assert ended.returncode == 2
    said = [line for line in ended.stderr.splitlines() if "compiling" not in line]
    assert said == [
        "optpart: standard output: cannot be written (No space left on device); "
        "redirect it elsewhere"
    ]


def test_a_closed_standard_output_is_one_line() -> None:
    ended = shell("optpart methods >&-")
    assert ended.returncode == 2
    assert ended.stderr == (
        "optpart: standard output: closed; redirect it to a file or to /dev/null\n"
    )


def test_all_streams_closed() -> None:
    assert shell("optpart methods <&- >&- 2>&-").returncode == 2


@pytest.mark.parametrize("command", ["methods", "gap --list", "solve --help"])
def test_a_reader_that_has_seen_enough_ends_it_quietly(command: str) -> None:
    # The reader is gone before the first byte comes.
    ended = shell(f"(sleep 0.1; optpart {command}) | exec true")
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize(
    ("closed", "name", "found"),
    [
        ("2>&-", "laich-2.5", "OPTIMAL, makespan 14"),
        ("2>/dev/full", "laich-2.5", "OPTIMAL, makespan 14"),
        ("<&- 2>&-", "heft-10", "FEASIBLE, makespan 80"),  # with compiled loops
    ],
)
def test_a_run_needs_no_standard_error(closed: str, name: str, found: str) -> None:
    ended = shell(f"optpart solve {name} -m heft {closed}")
    assert ended.returncode == 0
    assert ended.stdout.startswith(f"{name}: {found}")
    assert shell(f"optpart solve no-such-instance {closed}").returncode == 2


def test_remarks_are_wrapped_on_terminals_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    line = "one two " * 10
    say(line)
    assert capsys.readouterr().out.count("\n") == 1
    monkeypatch.setenv("COLUMNS", "30")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    say(line)
    shown = capsys.readouterr().out.splitlines()
    assert len(shown) > 2
    assert max(map(len, shown)) <= 30


@pytest.mark.parametrize("command", ["methods", "gap heft-10 -m heft", "solve nix"])
def test_a_terminal_of_ascii_gets_ascii_signs(command: str) -> None:
    ended = shell(f"export PYTHONIOENCODING=ascii; optpart {command}")
    shown = ended.stdout + ended.stderr
    assert shown.isascii()
    assert "\\u" not in shown
    assert "\\x" not in shown


@pytest.mark.parametrize(
    "command",
    [
        "gap heft-10 kwok-ahmad-9-2 -m heft",
        "solve laich-2.5 -m heft --json",
        "bound kwok-ahmad-9-2 --time-limit 0",
    ],
)
def test_a_run_whose_reader_left_ends_quietly(command: str) -> None:
    ended = shell(f"optpart {command} | head -1")
    assert (ended.returncode, "Traceback" in ended.stderr) == (0, False)
