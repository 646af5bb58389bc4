"""Task graphs on unrelated machines by Santiago et al. (AASantiago/SchedulingInstances).

Sections begin with a hash sign. A task has its number, counted from 0, and its run time on every
machine; an edge has its number, its source and target task, and the time that its data
takes between two different machines::

    #critical
    0.0
    #tasks
    0: 17, 28
    1: 26, 11
    #edges
    0: 0, 1, 13
    #end

As a TF instance: devices ``d0``, ``d1``, …, run times given per device, an output tensor for every
edge, bandwidth 1 and no contention (R|prec,c_ij|Cmax), all in the units of the file. The number
under ``#critical`` is not read.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

from optpart.base.errors import FaultsOf, InputError
from optpart.base.files import read_text
from optpart.base.limits import MOST_DEVICES
from optpart.interop.formats.parsing import Line
from optpart.problem.cluster import Cluster
from optpart.problem.graph import GraphBuilder
from optpart.problem.instance import Instance

_SECTIONS = ("#tasks", "#edges", "#end")


def sniff(text: str) -> bool:
    """Return whether a text has a section of tasks."""
    return any(line.strip() == _SECTIONS[0] for line in text.split("\n"))


def read(path: str | Path) -> Instance:
    """Read a task graph; every fault is an :class:`InputError` that names file and line."""
    with FaultsOf(path):
        return _instance(read_text(path), Path(path).stem)


def _instance(text: str, name: str) -> Instance:
    tasks, edges = _sections(text)
    machines = _machines(tasks)
    builder = GraphBuilder()
    durations: list[list[Fraction]] = []
    for v, line in enumerate(tasks):
        line.whole("task number", v, v)
        durations.append([line.number("run time") for _ in range(machines)])
        line.end()
        builder.vertex(str(v), place=line.place)
    for e, line in enumerate(edges):
        line.whole("edge number", e, e)
        source, target = (str(line.whole("task", 0, len(tasks) - 1)) for _ in range(2))
        builder.edge(source, target, size=line.number("transfer time"), place=line.place)
        line.end()
    cluster = Cluster.uniform(machines, bandwidth=1)
    return Instance(builder.build(), cluster, durations=durations, name=name)


def _machines(tasks: list[Line]) -> int:
    if not tasks:
        raise InputError("#tasks", "no tasks", "give at least one; it tells the number of machines")
    machines = len(tasks[0].fields) - 1
    if not 1 <= machines <= MOST_DEVICES:
        raise InputError(
            tasks[0].place, f"{machines} run times", f"give 1 to {MOST_DEVICES}, one per machine"
        )
    return machines


def _sections(text: str) -> tuple[list[Line], list[Line]]:
    """Return the lines of the tasks and of the edges."""
    found: dict[str, list[Line]] = {}
    section = ""
    for number, content in enumerate(text.split("\n"), start=1):
        row = content.strip()
        if row.startswith("#"):
            section = row
            if section in found:
                raise InputError(f"line {number}", f"a second {section}", "give one of each")
            found[section] = []
        elif row and section:
            task, _, fields = row.partition(":")
            found[section].append(
                Line(number, [task.strip(), *(field.strip() for field in fields.split(","))])
            )
    for section in _SECTIONS:
        if section not in found:
            raise InputError("", f"no line {section}", f"give {', '.join(_SECTIONS)}, in full")
    return found["#tasks"], found["#edges"]
