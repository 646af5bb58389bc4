"""The result of readers of profiles: measured times by the names that the profile uses."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

from optpart.base.errors import InputError
from optpart.base.files import read_text

#: A parsed trace takes about six times its length in memory.
MOST_BYTES = 2**28


@dataclass(frozen=True)
class Profile:
    """Times that were measured on one device.

    Attributes
    ----------
    times : mapping from str to tuple of Fraction
        Nanoseconds by name, one entry per measurement, at least one.
    unnamed : mapping from str to tuple of str
        Those of the names that the profiler made up because an operation has none, by kind of
        operation, in the order of the graph.
    unmatched : tuple of str
        Names in the file, besides those of ``times``, that no operation was recognised for.
    remarks : tuple of str
        How the times were taken, one sentence each.
    """

    times: Mapping[str, tuple[Fraction, ...]]
    unnamed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unmatched: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Range:
    """A named span of time on a thread, in any unit."""

    start: Fraction | int
    end: Fraction | int
    name: str


def read_trace(path: str | Path) -> str:
    """Read the text of a JSON profile, if it is not too long to be parsed."""
    if os.path.isfile(path) and os.stat(path).st_size > MOST_BYTES:
        raise InputError(
            "", f"is longer than {MOST_BYTES >> 20} MiB", "profile fewer runs", str(path)
        )
    return read_text(path)


def check_flat(ranges: Sequence[Range]) -> None:
    """Refuse ranges of one thread, sorted by their start, of which one contains another.

    What is launched in the inner one could count for either.
    """
    for before, after in pairwise(ranges):
        if after.start < before.end and after.end <= before.end:
            raise InputError(
                f"range {after.name!r}",
                f"lies within {before.name!r}, and both are vertices",
                "name only one of the two after a vertex",
            )
