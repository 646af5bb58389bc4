"""The result of readers of profiles: measured times by the names that the profile uses."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Generic, TypeVar

from optpart.errors import InputError
from optpart.files import read_text

#: A parsed trace takes about six times its length in memory.
MOST_BYTES = 2**28

#: What tells threads apart.
Thread = TypeVar("Thread", bound=Hashable)


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


class Ranges(Generic[Thread]):
    """Ranges of vertices by thread, and the work on a device that was launched in each.

    Raises
    ------
    InputError
        If a range contains another: what is launched in the inner one could count for either.
    """

    def __init__(self, by_thread: Mapping[Thread, list[Range]]) -> None:
        self.by_thread = by_thread
        for ranges in by_thread.values():
            ranges.sort(key=lambda each: (each.start, -each.end))
            for before, after in pairwise(ranges):
                if after.start < before.end and after.end <= before.end:
                    problem = f"lies within {before.name!r}, and both are vertices"
                    remedy = "name only one of the two after a vertex"
                    raise InputError(f"range {after.name!r}", problem, remedy)
        self._starts = {thread: [each.start for each in by_thread[thread]] for thread in by_thread}
        self._sums = {thread: [Fraction(0)] * len(by_thread[thread]) for thread in by_thread}
        self._outside = 0

    def launch(self, thread: Thread, begin: Fraction | int, time: Fraction | int) -> None:
        """Count work that a call on the host launched."""
        index = bisect_right(self._starts.get(thread, []), begin) - 1
        if index < 0 or begin > self.by_thread[thread][index].end:
            self._outside += 1
        else:
            self._sums[thread][index] += time

    def lengths(self) -> dict[str, list[Fraction]]:
        """Return the lengths of the ranges of each vertex."""
        found: dict[str, list[Fraction]] = {}
        for ranges in self.by_thread.values():
            for each in ranges:
                found.setdefault(each.name, []).append(Fraction(each.end - each.start))
        return found

    def launched(self, unlinked: str, remedy: str) -> tuple[dict[str, list[Fraction]], list[str]]:
        """Return the sums of what was launched in the ranges of each vertex, and remarks.

        Parameters
        ----------
        unlinked : str
            What to say of work without a launch; empty if there is none.
        remedy : str
            What to do if no range launched anything.
        """
        if self.by_thread and not any(map(any, self._sums.values())):
            raise InputError("", "no work was launched in the range of a vertex", remedy)
        times: dict[str, list[Fraction]] = {}
        for thread, ranges in self.by_thread.items():
            for each, total in zip(ranges, self._sums[thread], strict=True):
                times.setdefault(each.name, []).append(total)
        idle = sum(not any(found) for found in times.values())
        remarks = ["times are sums of the kernels, copies and fills that were launched."]
        if idle:
            remarks.append(f"{idle:,} of the vertices launched nothing and take no time.")
        if self._outside:
            remarks.append(f"{self._outside:,} launches were in the range of no vertex.")
        return times, [*remarks, *([unlinked] if unlinked else [])]


def check_devices(devices: Collection[object], place: str) -> None:
    """Refuse a profile of several devices, whose times cannot be told apart."""
    if len(devices) > 1:
        some = ", ".join(sorted(map(str, devices))[:8])
        raise InputError(place, f"work on devices {some}", "profile one device at a time")
