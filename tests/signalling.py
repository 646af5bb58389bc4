"""Signals to worker processes, at a moment that does not depend on the machine's speed."""

from __future__ import annotations

import os
import signal

import pytest

from optpart.base.children.worker import Worker


def signal_with_the_job(
    monkeypatch: pytest.MonkeyPatch, number: signal.Signals, times: int = 1
) -> list[int]:
    """Send a signal to the next workers along with their job; return who has got one."""
    struck: list[int] = []
    send = Worker.send

    def strike(self: Worker, message: object) -> None:
        send(self, message)
        if len(struck) < times:
            struck.append(self.process.pid)
            os.kill(self.process.pid, number)

    monkeypatch.setattr(Worker, "send", strike)
    return struck
