"""How much may be asked for. Each limit has its reason, and one place."""

from __future__ import annotations

import math
import os

from optpart.errors import InputError

#: What CP-SAT takes: its seed is a 32-bit integer, and a negative one means something else.
LARGEST_SEED = 2**31 - 1

#: Eleven days. The system waits for processes in milliseconds below 2^31.
MOST_SECONDS = 1_000_000

#: More threads than today's largest machines have; CP-SAT refuses more than 10,000.
MOST_WORKERS = 1024

#: Repeating a run more often narrows no average any further; all results are kept in memory.
MOST_RUNS = 10_000

#: A count is a few digits in a file and its square many links in memory.
MOST_DEVICES = 1000

#: A generated instance of this size takes about 2 GiB while it is built and written.
MOST_VERTICES = 1_000_000
MOST_EDGES = 5_000_000

#: Which vertex may go where is one byte for each vertex and device.
MOST_PLACES = 100_000_000


def check_seed(seed: int, runs: int = 1, place: str = "seed") -> int:
    """Return a seed if it, and those of the runs after the first, are in range."""
    if not 0 <= seed <= LARGEST_SEED - (runs - 1):
        through = f" to {seed + runs - 1}" if runs > 1 else ""
        raise InputError(
            place, f"{seed}{through} is out of range", f"give whole numbers of 0 to {LARGEST_SEED}"
        )
    return seed


def check_seconds(seconds: float, place: str = "seconds") -> float:
    """Return a time limit if it is in range."""
    if math.isnan(seconds) or not 0 <= seconds <= MOST_SECONDS:
        raise InputError(place, f"{seconds} is out of range", f"give 0 to {MOST_SECONDS} seconds")
    return seconds


def check_workers(workers: int, place: str = "workers") -> int:
    """Return a number of workers if it is in range."""
    if not 1 <= workers <= MOST_WORKERS:
        raise InputError(
            place, f"{workers} is out of range", f"give a whole number of 1 to {MOST_WORKERS}"
        )
    return workers


def available_processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0))


def check_devices(devices: int, place: str = "devices", least: int = 1) -> int:
    """Return a number of devices if it is in range."""
    if not least <= devices <= MOST_DEVICES:
        raise InputError(
            place,
            f"{devices} is out of range",
            f"give a whole number of {least} to {MOST_DEVICES}",
        )
    return devices


def check_size(vertices: int, edges: float = 0, devices: int = 1, place: str = "size") -> None:
    """Refuse to build what would not fit; ``edges`` may be an estimate."""
    for count, most, what in (
        (vertices, MOST_VERTICES, "vertices"),
        (edges, MOST_EDGES, "edges"),
        (vertices * devices, MOST_PLACES, "pairs of a vertex and a device"),
    ):
        if count > most:
            raise InputError(
                place, f"would have about {count:,.0f} {what}", f"ask for at most {most:,}"
            )
