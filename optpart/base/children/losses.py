"""The parts that a computation lacks because a process failed.

Whoever goes on without a process records its loss here, however deep in a computation. Results and
commands that were begun before then say that a part is missing.
"""

from __future__ import annotations

from contextvars import ContextVar

_lost: ContextVar[tuple[str, ...]] = ContextVar("lost", default=())


def lose(part: str, why: object) -> None:
    """Record that a part has failed, and why."""
    pass_on(f"{part} failed: {why}")


def pass_on(*lost: str) -> None:
    """Record what another process has lost."""
    _lost.set((*_lost.get(), *lost))


class Losses:
    """All that is lost from now on, in this thread."""

    def __init__(self) -> None:
        self._before = len(_lost.get())

    def __len__(self) -> int:
        return len(_lost.get()) - self._before

    def described(self) -> tuple[str, ...]:
        """Return what is lost, and why, each once."""
        return tuple(dict.fromkeys(_lost.get()[self._before :]))
