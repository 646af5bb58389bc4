"""The solver's side of its process: jobs come from standard input, messages go out."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from typing import IO, Any

from optpart.exact.messages import receive


def serve(solve: Callable[[Any, Any, IO[bytes]], None]) -> None:
    """Solve jobs in turn; exit at once when standard input ends, since the caller is gone."""
    # The solver may print; messages get a descriptor of their own.
    channel = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    jobs: list[Any] = []
    arrived = threading.Condition()

    def listen() -> None:
        while True:
            job = receive(sys.stdin.buffer)
            if job is None:
                os._exit(0)
            with arrived:
                jobs.append(job)
                arrived.notify()

    threading.Thread(target=listen, daemon=True).start()
    while True:
        with arrived:
            while not jobs:
                arrived.wait()
            task, limits = jobs.pop(0)
        solve(task, limits, channel)
