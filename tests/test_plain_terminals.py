"""A terminal that wants no colours, or knows none, gets no escape sequence."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

import pytest


def printed(command: str, **variables: str) -> str:
    """Run the program on a terminal of its own, and return all that it writes there."""
    ours, theirs = pty.openpty()
    environment = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "optpart", *command.split()],
        stdin=theirs, stdout=theirs, stderr=theirs,
        env=environment | {"TERM": "xterm-256color", "COLUMNS": "80"} | variables,
    ):  # fmt: skip
        os.close(theirs)
        text = b""
        try:
            while piece := os.read(ours, 65536):
                text += piece
        except OSError:  # how Linux says that nobody else has the terminal any more
            pass
        finally:
            os.close(ours)
    return text.decode()


@pytest.mark.parametrize("variables", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
@pytest.mark.parametrize(
    "command",
    ["--help", "gap laich-2.5 -m heft --workers 1", "solve nowhere"],
)
def test_no_escape_sequence_where_none_is_wanted(command: str, variables: dict[str, str]) -> None:
    text = printed(command, **variables)
    assert text
    assert "\x1b" not in text


def test_tables_have_styles_elsewhere() -> None:
    assert "\x1b[" in printed("gap --list", COLUMNS="200")
