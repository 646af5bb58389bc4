"""Who has ended, and who has not."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable

#: Seconds until what is to happen has certainly happened.
PATIENCE = 300.0


def wait_for(happened: Callable[[], bool]) -> None:
    """Wait for what a machine of any speed does in the end."""
    deadline = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def gone(process: int) -> bool:
    """Say whether a process has ended; one that nobody has waited for has ended, too."""
    shown = subprocess.run(
        ["ps", "-o", "stat=", "-p", str(process)], capture_output=True, text=True, check=False
    ).stdout
    return not shown.strip() or shown.startswith("Z")


def descendants(process: int) -> dict[int, str]:
    """Return the commands of all that a process has started, directly or not."""
    shown = subprocess.run(
        ["ps", "-ww", "-e", "-o", "pid=,ppid=,args="], capture_output=True, text=True, check=True
    ).stdout
    listed = [(int(pid), int(parent), command) for pid, parent, command in
              (line.split(maxsplit=2) for line in shown.splitlines())]  # fmt: skip
    found: dict[int, str] = {}
    left = [process]
    while left:
        above = left.pop()
        for pid, parent, command in listed:
            if parent == above:
                found[pid] = command
                left.append(pid)
    return found
