"""Limits on what a user may ask for, each with its reason."""

from __future__ import annotations

import math
import os
from numbers import Integral, Real

from optpart.base.errors import InputError

#: CP-SAT's seed is a 32-bit integer, and a negative one has a special meaning.
LARGEST_SEED = 2**31 - 1

#: Eleven days. The system waits for processes for less than 2^31 milliseconds.
MOST_SECONDS = 1_000_000

#: More threads than today's largest machines have; CP-SAT refuses more than 10,000.
MOST_WORKERS = 1024

#: More repetitions would hardly narrow an average, and all results are kept in memory.
MOST_RUNS = 10_000

#: A cluster of k devices takes few digits in a file, but k² links in memory.
MOST_DEVICES = 1000

#: A generated instance of this size takes about 2 GiB while it is built and written.
MOST_VERTICES = 1_000_000
MOST_EDGES = 5_000_000

#: Tokens, sequences and microbatches of a model: products of a few stay within 64 bits.
MOST_TOKENS = 1_000_000_000

#: Groups of the experts of a block, far beyond any model.
MOST_EXPERT_GROUPS = 1024

#: Samples of a training iteration, whose shares must stay exact; and groups with a decision each.
MOST_SAMPLES = 1_000_000_000
MOST_GROUPS = 100_000

#: The table of allowed devices takes one byte per vertex and device.
MOST_PLACES = 100_000_000


def check_seed(seed: int, runs: int = 1, place: str = "seed") -> int:
    """Return the seed if it, and the seeds of all further runs, are in range."""
    if runs < 1:
        raise InputError("seeds", f"{runs} is below 1", "give a number ≥ 1")
    if not 0 <= seed <= LARGEST_SEED - (runs - 1):
        through = f" to {seed + runs - 1}" if runs > 1 else ""
        raise InputError(
            place,
            f"{seed}{through} is out of range",
            f"give whole numbers from 0 to {LARGEST_SEED}",
        )
    return seed


def check_seconds(seconds: float, place: str = "seconds") -> float:
    """Return the time limit if it is in range."""
    remedy = f"give 0 to {MOST_SECONDS} seconds"
    if not isinstance(seconds, Real):
        raise InputError(place, f"{seconds!r} is not a number", remedy)
    if math.isnan(seconds) or not 0 <= seconds <= MOST_SECONDS:
        raise InputError(place, f"{seconds} is out of range", remedy)
    return seconds


def check_workers(workers: int, place: str = "workers") -> int:
    """Return the number of workers if it is in range."""
    remedy = f"give a whole number from 1 to {MOST_WORKERS}"
    if not isinstance(workers, Integral):
        raise InputError(place, f"{workers!r} is not a whole number", remedy)
    if not 1 <= workers <= MOST_WORKERS:
        raise InputError(place, f"{workers} is out of range", remedy)
    return workers


def available_processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0))


def check_devices(devices: int, place: str = "devices", least: int = 1) -> int:
    """Return the number of devices if it is in range."""
    if not least <= devices <= MOST_DEVICES:
        raise InputError(
            place,
            f"{devices} is out of range",
            f"give a whole number from {least} to {MOST_DEVICES}",
        )
    return devices


def check_size(vertices: int, edges: float = 0, devices: int = 1, place: str = "size") -> None:
    """Refuse to build an instance that is too large; ``edges`` may be an estimate."""
    for count, most, what in (
        (vertices, MOST_VERTICES, "vertices"),
        (edges, MOST_EDGES, "edges"),
        (vertices * devices, MOST_PLACES, "pairs of a vertex and a device"),
    ):
        if count > most:
            raise InputError(
                place, f"would have about {count:,.0f} {what}", f"ask for at most {most:,}"
            )
