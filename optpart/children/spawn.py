"""How every child process is started."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence


def spawn(command: Sequence[str]) -> subprocess.Popen[bytes]:
    """Start a process with pipes for its input and output, in a group of its own.

    Ctrl-C does not reach the group: this process handles it. No other child inherits the pipes, so
    the child's input ends when this process does.
    """
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
