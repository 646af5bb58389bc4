"""The parts of the soak, and what a case of any of them needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

#: Runs the case of a number in an empty folder, and says what came of it: ``accepted`` or
#: ``refused``. Anything that it raises is a failure.
Case = Callable[[int, Path], str]


class FailedError(Exception):
    """What must hold does not."""


class HangsError(BaseException):
    """A case has taken more processor time than any should; no ``except Exception`` hides it."""


@dataclass(frozen=True)
class Part:
    """A kind of case.

    Attributes
    ----------
    name : str
        The module of this folder that has the function ``case``.
    what : str
        What is tried.
    count : int
        Cases of the whole soak.
    minute : int
        Cases of the short run that precedes every change.
    block : int
        Cases that one process runs, and after which progress is kept.
    seconds : float
        Processor time after which a case hangs.
    """

    name: str
    what: str
    count: int
    minute: int
    block: int
    seconds: float

    def load(self) -> Case:
        """Return the function that runs a case."""
        case: Case = import_module(f"bench.soak.{self.name}").case
        return case


#: By name, in the order of the table.
PARTS = {
    part.name: part
    for part in (
        Part("files", "mutated files", 100_000, 4000, 2000, 30.0),
        Part("commands", "random command lines", 10_000, 120, 100, 120.0),
        Part("schedules", "random schedules", 1_000_000, 4000, 20_000, 10.0),
        Part("instances", "random instances", 100_000, 80, 200, 300.0),
        Part("plans", "random pipeline plans", 10_000, 300, 500, 60.0),
        Part("certificates", "forged certificates", 10_000, 400, 500, 60.0),
        Part("kills", "killed commands", 1_000, 8, 20, 300.0),
    )
}
