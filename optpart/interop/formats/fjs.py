"""The flexible job shop: the standard format, and that of Birgin et al. (2014).

In the *standard* format (Brandimarte 1993, Hurink et al. 1994) the first line gives the numbers of
jobs and machines, and may add the average number of machines per operation, which is not read. Then
every job has a line: the number of its operations, and for each in order the number of machines
that can run it, followed by each machine, counted from 1, and the duration there::

    2 3 1.5
    2  1 1 4  2 2 6 3 5
    1  2 1 3 3 2

In *Birgin's* format precedence is a directed acyclic graph. The first line gives the numbers of
operations, arcs and machines; then come the arcs, one per line, between operations counted from 0;
then every operation has a line: the number of machines that can run it, each machine, counted from
0, and the duration there::

    3 2 2
    0 2
    1 2
    1  0 4
    2  0 6 1 5
    1  1 3

The second line distinguishes the formats: only in the latter it is an arc, that is, two numbers.
A hash sign begins a comment.

As a TF instance: machines are devices ``m1``, ``m2``, … (in Birgin's format ``m0``, ``m1``, …),
operation ``i`` of job ``j`` is the vertex ``j{j}.{i}``, jobs and operations counted from 0 (in
Birgin's format the vertex ``i``); durations are given per machine, in the units of the file; and
precedence is control dependencies, so that nothing has to be transferred.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from pathlib import Path

from optpart.base.errors import FaultsOf, InputError
from optpart.base.files import read_text
from optpart.base.limits import MOST_DEVICES
from optpart.interop.formats.parsing import (
    Line,
    check_count,
    check_entries,
    header_and_rows,
    leading_counts,
)
from optpart.problem.cluster import Cluster, Device
from optpart.problem.graph import GraphBuilder
from optpart.problem.instance import Instance

#: Duration by machine, counted from 0.
_Durations = dict[int, Fraction]


def sniff(text: str) -> bool:
    """Return whether a text begins with numbers of jobs and machines, and perhaps another."""
    return leading_counts(text) in (2, 3)


def read(path: str | Path) -> Instance:
    """Read a flexible job shop; every fault is an :class:`InputError` that names file and line."""
    with FaultsOf(path):
        return _instance(read_text(path), Path(path).stem)


def _instance(text: str, name: str) -> Instance:
    header, rest = header_and_rows(text)
    first = header.whole("number of jobs or operations", 1)
    second = header.whole("number of machines or arcs")
    # A job shop has machines, so a 0 is a number of arcs.
    if second == 0 or (rest and len(rest[0].fields) == 2):
        return _birgin(first, second, header, rest, name)
    return _standard(first, second, header, rest, name)


def _standard(jobs: int, machines: int, header: Line, rest: list[Line], name: str) -> Instance:
    if machines > MOST_DEVICES:
        raise InputError(header.place, f"{machines} machines", f"give at most {MOST_DEVICES}")
    if len(header.fields) > 2:
        header.number("average number of machines")
    header.end()
    check_count(rest, jobs, "lines of jobs")
    builder = GraphBuilder()
    durations = []
    for j, line in enumerate(rest):
        operations = [
            _durations(line, machines, first=1) for _ in range(line.whole("number of operations"))
        ]
        line.end()
        names = [f"j{j}.{i}" for i in range(len(operations))]
        for operation in names:
            builder.vertex(operation, place=line.place)
        for before, after in pairwise(names):
            builder.edge(before, after, None)
        durations += operations
    return _built(builder, durations, [f"m{d + 1}" for d in range(machines)], name)


def _birgin(operations: int, arcs: int, header: Line, rest: list[Line], name: str) -> Instance:
    machines = header.whole("number of machines", 1, MOST_DEVICES)
    header.end()
    check_count(rest, arcs + operations, "lines of arcs and operations")
    builder = GraphBuilder()
    for v in range(operations):
        builder.vertex(str(v))
    for line in rest[:arcs]:
        source, target = (line.whole("operation", 0, operations - 1) for _ in range(2))
        line.end()
        builder.edge(str(source), str(target), None, place=line.place)
    durations = []
    for line in rest[arcs:]:
        durations.append(_durations(line, machines, first=0))
        line.end()
    return _built(builder, durations, [f"m{d}" for d in range(machines)], name)


def _durations(line: Line, machines: int, first: int) -> _Durations:
    """Take the machines of one operation, which the file counts from ``first``."""
    found: _Durations = {}
    for _ in range(line.whole("number of machines of an operation", 1, machines)):
        machine = line.whole("machine", first, machines - 1 + first)
        if machine - first in found:
            raise InputError(
                line.place, f"duplicate machine {machine}", "name it once per operation"
            )
        found[machine - first] = line.number("duration")
    return found


def _built(
    builder: GraphBuilder, durations: list[_Durations], machines: list[str], name: str
) -> Instance:
    check_entries(len(durations) * len(machines), "durations, operations times machines")
    return Instance(
        builder.build(),
        Cluster.of([Device(machine) for machine in machines]),
        durations=[[row.get(d) for d in range(len(machines))] for row in durations],
        name=name,
    )
