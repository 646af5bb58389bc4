"""Messages between the solver process and its caller, and the main loop of the process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optpart.base.children.caller import Caller

#: Sends a message to the caller.
Send = Callable[[object], None]


@dataclass(frozen=True)
class Limits:
    """The limits of one solve."""

    seconds: float
    workers: int
    seed: int
    deterministic: float | None
    memory: int | None = None


@dataclass(frozen=True)
class Incumbent:
    """A solution: placement, and starts in ticks.

    ``start`` is ``None`` if only a placement was requested. ``begin`` maps (tensor, destination) to
    the start of the transfer if transfers queue.
    """

    placement: NDArray[np.int32]
    start: NDArray[np.int64] | None = None
    begin: dict[tuple[int, int], int] = field(default_factory=dict)


@dataclass(frozen=True)
class LowerBound:
    """A better bound on the objective, in its integer units."""

    value: int


@dataclass(frozen=True)
class Waiting:
    """Nothing new; the caller's end of the channel yields it, so that the caller can stop a job."""


@dataclass(frozen=True)
class Done:
    """The end of a job: the solver's status and its last bound."""

    status: str
    value: int | None


def serve(solve: Callable[[Any, Limits, Send], None]) -> None:
    """Solve jobs, one after another, until the caller exits."""
    caller = Caller()
    while True:
        task, limits = caller.receive()
        solve(task, limits, caller.send)
