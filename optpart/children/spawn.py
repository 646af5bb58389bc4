"""The function that starts all child processes."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence


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
