"""What the command line leaves behind, for tests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Outcome:
    """Exit code and what was printed."""

    code: int
    out: str
    err: str


#: Runs ``optpart`` with arguments.
Run = Callable[..., Outcome]
