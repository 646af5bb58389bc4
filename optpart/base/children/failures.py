"""The parts that a computation lacks because a process failed.

Whoever goes on without a process records that here, however deep in a computation. Results and
commands that were begun before then say that a part is missing.
"""

from __future__ import annotations

from contextvars import ContextVar

_recorded: ContextVar[tuple[str, ...]] = ContextVar("failures", default=())


def record_failure(part: str, why: object) -> None:
    """Record that a part has failed, and why."""
    record_failures(f"{part} failed: {why}")


def record_failures(*failures: str) -> None:
    """Record failures that another process has described."""
    _recorded.set((*_recorded.get(), *failures))


class Failures:
    """All failures from now on, in this thread."""

    def __init__(self) -> None:
        self._before = len(_recorded.get())

    def __len__(self) -> int:
        return len(_recorded.get()) - self._before

    def described(self) -> tuple[str, ...]:
        """Return what failed, and why, each once."""
        return tuple(dict.fromkeys(_recorded.get()[self._before :]))
