"""The classical job shop, in the format of OR-Library and JSPLIB.

The first line gives the numbers of jobs and machines; then every job has a line with its operations
in order, each a machine, counted from 0, and a duration::

    # comments begin with a hash sign
    2 3
    0 4  1 2  2 5
    2 1  0 3  1 6

As a TF instance: machines are devices ``m0``, ``m1``, … of speed 1, operation ``i`` of job ``j`` is
the vertex ``j{j}.{i}`` that only its machine may run, durations are operations, in the units of the
file, and the order within a job is control dependencies, so that nothing has to be transferred
(J||Cmax). A job may visit a machine again.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from optpart.base.errors import FaultsOf
from optpart.base.files import read_text
from optpart.base.limits import MOST_DEVICES
from optpart.interop.formats.parsing import Line, check_count, header_and_rows, leading_counts
from optpart.problem.cluster import Cluster, Device
from optpart.problem.graph import GraphBuilder
from optpart.problem.instance import Instance


def sniff(text: str) -> bool:
    """Return whether a text begins with numbers of jobs and machines."""
    return leading_counts(text) == 2


def read(path: str | Path) -> Instance:
    """Read a job shop; every fault is an :class:`InputError` that names file and line."""
    with FaultsOf(path):
        return _instance(read_text(path), Path(path).stem)


def _instance(text: str, name: str) -> Instance:
    header, jobs = header_and_rows(text)
    count = header.whole("number of jobs", 1)
    machines = header.whole("number of machines", 1, MOST_DEVICES)
    header.end()
    check_count(jobs, count, "lines of jobs")
    builder = GraphBuilder()
    for j, line in enumerate(jobs):
        _add_job(builder, j, line, machines)
    cluster = Cluster.of([Device(f"m{d}") for d in range(machines)])
    return Instance(builder.build(), cluster, name=name)


def _add_job(builder: GraphBuilder, job: int, line: Line, machines: int) -> None:
    names = [f"j{job}.{i}" for i in range(machines)]
    for name in names:
        machine = line.whole("machine", 0, machines - 1)
        duration = line.number("duration")
        builder.vertex(name, duration, devices=[f"m{machine}"], place=line.place)
    line.end()
    for before, after in pairwise(names):
        builder.edge(before, after, None)
