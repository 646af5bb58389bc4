"""Task graphs of the Standard Task Graph Set (Tobita & Kasahara 2002), without communication.

The first line gives the number of tasks without the two dummies: task 0, before all others, and the
last one, after all others. Then every task has a line: its number, its processing time, the number
of its predecessors, and these::

    2
    0  0  0
    1  9  1  0
    2  4  1  0
    3  0  2  1  2
    # text after a hash sign is ignored

As a TF instance: identical devices of speed 1, whose number the caller gives, as the file does
not; times are operations, in the units of the file; a precedence is a control dependency, so that
nothing has to be transferred (P|prec|Cmax). The dummies are kept: they take no time.
"""

from __future__ import annotations

from pathlib import Path

from optpart.base.errors import FaultsOf
from optpart.base.files import read_text
from optpart.base.limits import MOST_DEVICES
from optpart.interop.formats.parsing import (
    check_count,
    checked_range,
    header_and_rows,
    leading_counts,
)
from optpart.problem.cluster import Cluster
from optpart.problem.graph import Graph, GraphBuilder
from optpart.problem.instance import Instance

_DUMMIES = 2


def sniff(text: str) -> bool:
    """Return whether a text begins with a number of tasks alone on its line."""
    return leading_counts(text) == 1


def read(path: str | Path, devices: int) -> Instance:
    """Read a task graph for a number of devices; every fault is an :class:`InputError`."""
    checked_range(devices, 1, MOST_DEVICES, "devices", "number of devices")
    with FaultsOf(path):
        return Instance(_graph(read_text(path)), Cluster.uniform(devices), name=Path(path).stem)


def _graph(text: str) -> Graph:
    header, tasks = header_and_rows(text)
    count = header.whole("number of tasks") + _DUMMIES
    header.end()
    check_count(tasks, count, "lines of tasks, the two dummies included")
    builder = GraphBuilder()
    predecessors = []
    for v, line in enumerate(tasks):
        line.whole("task number", v, v)
        builder.vertex(str(v), line.number("processing time"), place=line.place)
        for _ in range(line.whole("number of predecessors")):
            u = line.whole("predecessor", 0, count - 1)
            predecessors.append((str(u), str(v), line.place))
        line.end()
    for source, target, place in predecessors:
        builder.edge(source, target, None, place=place)
    return builder.build()
