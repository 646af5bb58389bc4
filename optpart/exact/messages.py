"""Messages between the solver process and its caller."""

from __future__ import annotations

import pickle
import struct
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Limits:
    """The limits of one solve."""

    seconds: float
    workers: int
    seed: int
    deterministic: float | None


@dataclass(frozen=True)
class Incumbent:
    """A solution: seconds since the job was read, placement and starts in ticks.

    There are no starts if only a placement was requested; ``begin`` has those of transfers,
    by (tensor, destination), if they queue.
    """

    seconds: float
    placement: NDArray[np.int32]
    start: NDArray[np.int64] | None
    begin: dict[tuple[int, int], int]


@dataclass(frozen=True)
class LowerBound:
    """A better bound of the objective, in its integer units."""

    seconds: float
    value: int


@dataclass(frozen=True)
class Done:
    """The end of a job: the solver's status and its last bound."""

    seconds: float
    status: str
    value: int | None


def send(stream: IO[bytes], message: object) -> None:
    """Write one message."""
    content = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    stream.write(struct.pack("<Q", len(content)) + content)
    stream.flush()


def receive(stream: IO[bytes]) -> Any:
    """Read one message; ``None`` at the end of the stream."""
    header = stream.read(8)
    if len(header) < 8:
        return None
    (length,) = struct.unpack("<Q", header)
    content = stream.read(length)
    return pickle.loads(content) if len(content) == length else None
