"""The main loop of a solver process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from optpart.base.children.caller import Caller

#: Sends a message to the caller.
Send = Callable[[object], None]


def serve(solve: Callable[[Any, Any, Send], None]) -> None:
    """Solve jobs, one after another, until the caller exits."""
    caller = Caller()
    while True:
        task, limits = caller.receive()
        solve(task, limits, caller.send)
