"""The result of readers of profiles: measured times by the names that the profile uses."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Generic, TypeVar

from optpart.base.errors import InputError
from optpart.base.files import read_text

_Thread = TypeVar("_Thread")

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


def check_flat(ranges: list[Range]) -> None:
    """Sort ranges of one thread by their start; refuse any that lies within another.

    What is launched in the inner one could count for either.
    """
    ranges.sort(key=lambda each: (each.start, -each.end))
    for before, after in pairwise(ranges):
        if after.start < before.end and after.end <= before.end:
            raise InputError(
                f"range {after.name!r}",
                f"lies within {before.name!r}, and both are vertices",
                "name only one of the two after a vertex",
            )


class Launched(Generic[_Thread]):
    """Work on a device, which counts for the range that its launch on the host lies in.

    Parameters
    ----------
    ranges : mapping from thread to list of Range
        Ranges of vertices, sorted by their start.
    """

    def __init__(self, ranges: Mapping[_Thread, Sequence[Range]]) -> None:
        self._ranges = ranges
        self._starts = {thread: [each.start for each in found] for thread, found in ranges.items()}
        self._sums = {thread: [Fraction(0)] * len(found) for thread, found in ranges.items()}
        self._outside = self._unlinked = 0

    def add(self, launch: tuple[_Thread, Fraction | int] | None, time: Fraction | int) -> None:
        """Count work with the thread and the time of its launch; ``None`` if it has none."""
        if launch is None:
            self._unlinked += 1
            return
        thread, begin = launch
        index = bisect_right(self._starts.get(thread, []), begin) - 1
        if index < 0 or begin > self._ranges[thread][index].end:
            self._outside += 1
        else:
            self._sums[thread][index] += time

    def times(self, together: str, unlinked: str) -> tuple[dict[str, list[Fraction]], list[str]]:
        """Return the sums by name of the range, and what to say of the rest.

        Parameters
        ----------
        together : str
            The remedy if no range launched anything.
        unlinked : str
            What work without a launch does, to follow its number.
        """
        if self._ranges and not any(map(any, self._sums.values())):
            raise InputError("", "no work was launched in the range of a vertex", together)
        times: dict[str, list[Fraction]] = {}
        for thread, found in self._ranges.items():
            for each, total in zip(found, self._sums[thread], strict=True):
                times.setdefault(each.name, []).append(total)
        idle = sum(not any(found) for found in times.values())
        remarks = ["times are sums of the kernels, copies and fills that were launched."]
        if idle:
            remarks.append(f"{idle:,} of the vertices launched nothing and take no time.")
        if self._outside:
            remarks.append(f"{self._outside:,} launches were in the range of no vertex.")
        if self._unlinked:
            remarks.append(f"{self._unlinked:,} pieces of work on the device {unlinked}.")
        return times, remarks
