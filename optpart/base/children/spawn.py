"""The start of all child processes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

from optpart.base.children import start


def python(module: str, *arguments: str) -> list[str]:
    """Return the command that runs ``main`` of a module of this package in a process of its own.

    What lies in the current folder, or beside any file of the user, is never imported there. The
    user's ``PYTHONPATH`` counts.
    """
    return [sys.executable, "-P", start.__file__, module, *arguments]


def spawn(command: Sequence[str]) -> subprocess.Popen[bytes]:
    """Start a process in its own process group, with pipes for input and output.

    Ctrl-C does not reach the group; this process handles it. No other child inherits the pipes, so
    the child's input ends when this process ends.
    """
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
