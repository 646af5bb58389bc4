"""Scientific workflows in WfFormat 1.4, 1.5 and 1.6, the JSON of WfCommons.

From version 1.5 on, the structure and the execution are separate::

    {"name": "two", "schemaVersion": "1.5", "workflow": {
      "specification": {
        "tasks": [{"name": "split", "id": "split_1", "parents": [], "children": ["align_2"],
                   "inputFiles": ["genome"], "outputFiles": ["chunk"]},
                  {"name": "align", "id": "align_2", "parents": ["split_1"], "children": [],
                   "inputFiles": ["chunk"], "outputFiles": []}],
        "files": [{"id": "genome", "sizeInBytes": 3000}, {"id": "chunk", "sizeInBytes": 800}]},
      "execution": {"makespanInSeconds": 3.5, "executedAt": "2024-01-01T00:00:00Z",
        "tasks": [{"id": "split_1", "runtimeInSeconds": 1.5, "machines": ["a"]},
                  {"id": "align_2", "runtimeInSeconds": 2, "coreCount": 1, "avgCPU": 99.1,
                   "machines": ["a"]}],
        "machines": [{"nodeName": "a", "memoryInBytes": 64000,
                      "cpu": {"coreCount": 4, "speedInMHz": 2400}}]}}}

In version 1.4, ``workflow`` has ``tasks`` and ``machines`` itself; a task is known by its ``name``
and has ``runtimeInSeconds``, ``cores``, ``machine`` and ``files``, each with ``name``,
``sizeInBytes`` and ``link`` (``input`` or ``output``); a machine's ``cpu`` has ``count`` and
``speed``.

As a workload, in bytes and whole nanoseconds:

- a task is a vertex, named by its ``id`` (1.4: its ``name``);
- a file that a task writes is an output of it, and whoever reads the file consumes that output. A
  file may have one writer only. A task that reads what it writes itself depends on nobody for it;
- ``parents`` and ``children`` that share no file are control dependencies; whatever either end
  lists counts;
- files that no task writes are the input of the workflow. They are taken to be at hand everywhere;
  with ``inputs``, a vertex ``inputs`` that takes no time hands them out;
- ``runtimeInSeconds`` is the measured time on the machines that the task names, or on the only
  machine; where neither is known it stands under :data:`UNNAMED`.

:class:`Workflow` also holds the machines, and makes a cluster and an instance of them. The files
tell neither bandwidth nor latency: these must be given.

Not used: ``memoryInBytes`` of a task, the peak of a process, as a vertex holds its memory for the
whole run; and what has no bearing on placing: commands, priorities, energy, bytes read and
written, dates, the published makespan and ``metrics``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

from optpart.base.errors import ArgumentError, FaultsOf, InputError, UnsupportedError
from optpart.base.files import Kind, of_document, write_text
from optpart.base.languages import to_json
from optpart.base.limits import check_devices
from optpart.interop.formats.json import read_json, sequence, text
from optpart.interop.formats.nanoseconds import SECOND, Times
from optpart.interop.formats.parsing import check_entries, member
from optpart.problem.cluster import Cluster, Device
from optpart.problem.graph import CONTROL, GraphBuilder
from optpart.problem.instance import Instance
from optpart.problem.rational import Number, non_negative, rational, shown
from optpart.problem.units import quantity
from optpart.problem.workload import Workload

VERSIONS = ("1.4", "1.5", "1.6")

#: Under this name stand the times of tasks that do not say where they ran.
UNNAMED = "machine not given"

#: The vertex that hands out the input files of the workflow.
INPUTS = "inputs"

#: What the schema permits as the id of a task.
_ID = re.compile(r"[0-9a-zA-Z_.#:/-]+")

_MOST_CORES = 1_000_000


@dataclass(frozen=True)
class Machine:
    """A machine that the workflow ran on.

    Attributes
    ----------
    name : str
    cores : int or None
    speed : Fraction or None
        Clock rate in MHz.
    memory : Fraction or None
        Bytes.
    """

    name: str
    cores: int | None = None
    speed: Fraction | None = None
    memory: Fraction | None = None


@dataclass(frozen=True, eq=False)
class Workflow:
    """A workload and the machines that it was measured on.

    Attributes
    ----------
    workload : Workload
        ``measured`` has the run times by name of machine.
    machines : tuple of Machine
        Empty if the file lists none.
    cores_used : tuple of (Fraction or None), length n
        How many cores a task kept busy on average: ``avgCPU`` / 100 or, without it, its number of
        cores; ``None`` if the file tells neither.
    """

    workload: Workload
    machines: tuple[Machine, ...] = ()
    cores_used: tuple[Fraction | None, ...] = ()

    def cluster(self, bandwidth: Number, latency: Number = 0, *, cores: bool = False) -> Cluster:
        """Make a cluster of the machines.

        Parameters
        ----------
        bandwidth : number
            Bytes per nanosecond between any two machines. The file does not tell.
        latency : number
            Nanoseconds of every transfer between two machines.
        cores : bool
            Whether every core is a device, named ``machine#0``, ``machine#1``, …; cores of one
            machine share its files, so that nothing has to cross between them. Their memory is
            unlimited, since they share that too.

        Returns
        -------
        Cluster
            Speeds in cycles per nanosecond (MHz / 1000); 1 for a single machine without speed.

        Raises
        ------
        InputError
            If the file lists no machines, does not tell the speed of one of several, or the
            number of cores where they are asked for.
        """
        if not self.machines:
            raise InputError(
                "workflow", "lists no machines", "add them, or describe them in a cluster file"
            )
        check_devices(sum(self._parts(machine, cores) for machine in self.machines), "machines")
        devices: list[Device] = []
        homes: list[int] = []
        for m, machine in enumerate(self.machines):
            speed = self._speed(machine) / 1000 if machine.speed or len(self.machines) > 1 else 1
            if cores:
                names = [f"{machine.name}#{core}" for core in range(self._cores(machine))]
                devices += [Device(name, speed) for name in names]
            else:
                devices.append(Device(machine.name, speed, memory=machine.memory))
            homes += [m] * self._parts(machine, cores)
        between = [[None if a == b else bandwidth for b in homes] for a in homes]
        waiting = [[0 if a == b else latency for b in homes] for a in homes]
        return Cluster.of(devices, between, waiting)

    def instance(self, bandwidth: Number, latency: Number = 0, *, cores: bool = False) -> Instance:
        """Make an instance of the workload and :meth:`cluster`.

        A run time on a machine where the task did not run is the measured one times the ratio of
        the clock rates, in whole nanoseconds. A machine runs one task at a time, unless ``cores``
        makes devices of its cores: there, a task that kept several cores busy takes as many times
        as long as measured, for it has one.

        Raises
        ------
        InputError
            As :meth:`cluster`, and if the run time of a task is unknown.
        """
        cluster = self.cluster(bandwidth, latency, cores=cores)
        graph = self.workload.graph
        check_entries(len(graph) * len(cluster), "run times, tasks times devices")
        rows: list[list[Fraction]] = []
        for v in range(len(graph)):
            busy = self.cores_used[v] if cores and self.cores_used else None
            factor = max(busy or Fraction(1), Fraction(1))
            row = []
            for machine in self.machines:
                time = Fraction(round(self._time(v, machine) * factor))
                row += [time] * self._parts(machine, cores)
            rows.append(row)
        remarks = self.remarks(cores)
        return Instance(
            graph,
            cluster,
            durations=rows,
            name=self.workload.name,
            source=" ".join((self.workload.source, *remarks)).strip(),
            time_unit="ns",
        )

    def _time(self, v: int, machine: Machine) -> Fraction:
        """Return the run time on a machine, measured or converted."""
        measured = self.workload.measured
        here = measured[machine.name][v] if machine.name in measured else None
        if here is not None:
            return here
        for other in self.machines:
            time = measured[other.name][v] if other.name in measured else None
            if time is not None:
                return time * self._speed(other) / self._speed(machine)
        raise InputError(
            f"task {self.workload.graph.names[v]!r}",
            "has no run time on a machine of the list",
            "give its runtimeInSeconds and the machine that it ran on",
        )

    def remarks(self, cores: bool) -> tuple[str, ...]:
        """Say what :meth:`instance` assumes, and what the reader did."""
        found = [*self.workload.assumed]
        if len(self.machines) > 1:
            found.append("Run times on other machines are scaled by their clock rates.")
        if not cores:
            return (*found, "A machine runs one task at a time.")
        found.append("Every core is a device.")
        several = sum(used is not None and used > 1 for used in self.cores_used)
        if several:
            tasks = "A task" if several == 1 else f"{several} tasks"
            found.append(
                f"{tasks} kept more than one core busy; on one core, that many times as long."
            )
        return tuple(found)

    def _parts(self, machine: Machine, cores: bool) -> int:
        """Return the number of devices that a machine is."""
        return self._cores(machine) if cores else 1

    def _speed(self, machine: Machine) -> Fraction:
        if machine.speed is None:
            raise InputError(
                f"machine {machine.name!r}",
                "has no speed",
                "add its cpu.speedInMHz, or describe the machines in a cluster file",
            )
        return machine.speed

    def _cores(self, machine: Machine) -> int:
        if machine.cores is None:
            raise InputError(
                f"machine {machine.name!r}",
                "has no number of cores",
                "add its cpu.coreCount, or take machines as devices",
            )
        return machine.cores


def sniff(document: Mapping[str, Any]) -> bool:
    """Return whether an object has the version of a schema and a workflow."""
    return "schemaVersion" in document and "workflow" in document


def read(path: str | Path, *, inputs: bool = False) -> Workload:
    """Read a workflow without its machines; see :func:`read_workflow`."""
    return read_workflow(path, inputs=inputs).workload


def read_instance(
    path: str | Path,
    *,
    bandwidth: str | Number | None = None,
    latency: str | Number = 0,
    cores: bool = False,
    inputs: bool = False,
) -> tuple[Instance, tuple[str, ...]]:
    """Read a workflow on its own machines; see :meth:`Workflow.instance`.

    Parameters
    ----------
    bandwidth, latency : number or str
        In bytes per nanosecond and nanoseconds, or strings with units, such as ``"10 Gbit/s"``.
        One machine alone needs none.

    Returns
    -------
    Instance
    tuple of str
        What was assumed; the instance's ``source`` holds it, too.

    Raises
    ------
    InputError
        As :func:`read_workflow` and :meth:`Workflow.instance`, and if there are several machines
        but no bandwidth.
    """
    workflow = read_workflow(path, inputs=inputs)
    delay = quantity(latency, "time", "latency")
    if bandwidth is None:
        if len(workflow.machines) > 1:
            raise ArgumentError(
                "bandwidth",
                "missing; the file does not tell how its machines are linked",
                "give one, such as '10 Gbit/s'",
                str(path),
            )
        bandwidth = 0  # of no link
    rate = quantity(bandwidth, "bandwidth", "bandwidth")
    with FaultsOf(path):
        instance = workflow.instance(rate, delay, cores=cores)
    return instance, workflow.remarks(cores)


def read_workflow(path: str | Path, *, inputs: bool = False) -> Workflow:
    """Read a workflow.

    Parameters
    ----------
    inputs : bool
        Whether a vertex hands out the files that no task writes.

    Raises
    ------
    InputError
        If the file is no WfFormat of a known version, or contradicts itself.
    """
    with FaultsOf(path):
        return from_dict(read_json(path), Path(path).stem, inputs=inputs)


def from_dict(document: Any, name: str, *, inputs: bool = False) -> Workflow:
    """Build a workflow from the parsed document; ``name`` is for one that has none."""
    version = member(document, "schemaVersion")
    if version not in VERSIONS:
        raise InputError(
            "schemaVersion",
            f"{shown(version)} is unknown",
            f"give a workflow of WfFormat {', '.join(VERSIONS[:-1])} or {VERSIONS[-1]}",
        )
    workflow = member(document, "workflow")
    content = _Content.of_14(workflow) if version == "1.4" else _Content.of_15(workflow)
    given = document.get("name")
    title = given if isinstance(given, str) and given else name
    return content.workflow(title, f"WfFormat {version}", inputs)


@dataclass
class _Task:
    """A task in the terms of version 1.5."""

    name: str
    place: str
    parents: list[str]
    children: list[str]
    reads: list[str] = field(default_factory=list)
    writes: list[str] = field(default_factory=list)
    time: Fraction | None = None
    machines: tuple[str, ...] = ()
    cores_used: Fraction | None = None
    memory: bool = False


@dataclass
class _Content:
    """The content that all versions have."""

    tasks: dict[str, _Task]
    sizes: dict[str, Fraction]
    machines: tuple[Machine, ...]
    times: Times

    @classmethod
    def of_15(cls, workflow: Any) -> _Content:
        specification = member(workflow, "specification", "workflow")
        place = "workflow.specification"
        tasks: dict[str, _Task] = {}
        for task, entry in _tasks(specification, place, "id", tasks):
            task.reads = _names(entry, "inputFiles", task.place)
            task.writes = _names(entry, "outputFiles", task.place)
        sizes: dict[str, Fraction] = {}
        for i, entry in enumerate(_list(specification, "files", place)):
            here = f"{place}.files[{i}]"
            file = _name(entry, "id", here)
            if file in sizes:
                raise InputError(f"{here}.id", f"a second file {shown(file)}", "give it once")
            sizes[file] = _bytes(entry, "sizeInBytes", here)
        times = Times(SECOND)
        machines: tuple[Machine, ...] = ()
        if "execution" in workflow:
            place = "workflow.execution"
            execution = member(workflow, "execution", "workflow")
            machines = _machines(execution, place, "coreCount", "speedInMHz")
            seen: set[str] = set()
            for i, entry in enumerate(_list(execution, "tasks", place, needed=True)):
                here = f"{place}.tasks[{i}]"
                name = _name(entry, "id", here)
                if name not in tasks:
                    raise InputError(
                        f"{here}.id", f"no task {shown(name)}", "give the id of a specified task"
                    )
                if name in seen:
                    raise InputError(f"{here}.id", f"{shown(name)} ran before", "give it once")
                seen.add(name)
                task = tasks[name]
                time = member(entry, "runtimeInSeconds", here)
                task.time = times.read(time, f"{here}.runtimeInSeconds")
                _performance(task, entry, here, "coreCount")
                task.machines = tuple(_names(entry, "machines", here))
                if "machine" in entry:  # as the first edition of 1.5 called it
                    task.machines += (_name(entry, "machine", here),)
        return cls(tasks, sizes, machines, times)

    @classmethod
    def of_14(cls, workflow: Any) -> _Content:
        times = Times(SECOND)
        tasks: dict[str, _Task] = {}
        sizes: dict[str, Fraction] = {}
        names: dict[str, str] = {}
        for task, entry in _tasks(workflow, "workflow", "name", tasks):
            here = task.place
            if "id" in entry:
                names.setdefault(_name(entry, "id", here), task.name)
            _files_14(task, entry, sizes)
            if "runtimeInSeconds" in entry:
                task.time = times.read(entry["runtimeInSeconds"], f"{here}.runtimeInSeconds")
            _performance(task, entry, here, "cores")
            if "machine" in entry:
                task.machines = (_name(entry, "machine", here),)
        for task in tasks.values():  # some name their neighbours by id
            for listed in (task.parents, task.children):
                listed[:] = [name if name in tasks else names.get(name, name) for name in listed]
        machines = _machines(workflow, "workflow", "count", "speed")
        return cls(tasks, sizes, machines, times)

    def workflow(self, name: str, source: str, inputs: bool) -> Workflow:
        """Build the graph and the rest."""
        writer = self._writers()
        outside = [
            file
            for file in dict.fromkeys(f for task in self.tasks.values() for f in task.reads)
            if file not in writer
        ]
        builder = GraphBuilder()
        if inputs:
            if INPUTS in self.tasks:
                raise InputError(
                    self.tasks[INPUTS].place,
                    f"is called {INPUTS!r}, as is the vertex for input files",
                    "rename the task",
                )
            builder.vertex(INPUTS, outputs=[self._size(file) for file in outside])
            writer |= dict.fromkeys(outside, INPUTS)
        output: dict[str, int] = {file: i for i, file in enumerate(outside)} if inputs else {}
        for task in self.tasks.values():
            written = list(dict.fromkeys(task.writes))
            builder.vertex(
                task.name,
                outputs=[self._size(file, task.place) for file in written],
                place=task.place,
            )
            output |= {file: i for i, file in enumerate(written)}
        joined: set[tuple[str, str]] = set()
        for task in self.tasks.values():
            for file in dict.fromkeys(task.reads):
                self._size(file, task.place)
                if file in writer and writer[file] != task.name:
                    builder.edge(writer[file], task.name, output[file], place=task.place)
                    joined.add((writer[file], task.name))
        for pair in dict.fromkeys(self._listed_pairs()):
            if pair not in joined:
                builder.edge(*pair, None)
        remarks = [*self.times.remarks(), *self._remarks(outside, inputs)]
        front = [Fraction(0)] if inputs else []
        workload = Workload(
            builder.build(),
            measured={device: (*front, *times) for device, times in self._measured().items()},
            name=name,
            source=source,
            assumed=tuple(remarks),
        )
        used = [task.cores_used for task in self.tasks.values()]
        return Workflow(workload, self.machines, (*front, *used))

    def _writers(self) -> dict[str, str]:
        writer: dict[str, str] = {}
        for task in self.tasks.values():
            for file in task.writes:
                if writer.setdefault(file, task.name) != task.name:
                    raise InputError(
                        task.place,
                        f"writes {shown(file)}, which {shown(writer[file])} writes too",
                        "give every file one writer",
                    )
        return writer

    def _size(self, file: str, place: str = "workflow") -> Fraction:
        if file not in self.sizes:
            raise InputError(place, f"the size of file {shown(file)} is not given", "list the file")
        return self.sizes[file]

    def _listed_pairs(self) -> list[tuple[str, str]]:
        pairs = []
        for task in self.tasks.values():
            for key, names in (("parents", task.parents), ("children", task.children)):
                for name in names:
                    if name not in self.tasks:
                        raise InputError(
                            f"{task.place}.{key}", f"no task {shown(name)}", "name a listed task"
                        )
                    pairs.append((name, task.name) if key == "parents" else (task.name, name))
        return pairs

    @cached_property
    def _known(self) -> list[str]:
        return [machine.name for machine in self.machines]

    def _ran_on(self, task: _Task) -> tuple[str, ...]:
        if task.machines:
            return task.machines
        return (self._known[0],) if len(self._known) == 1 else (UNNAMED,)

    def _measured(self) -> dict[str, list[Fraction | None]]:
        tasks = list(self.tasks.values())
        if all(task.time is None for task in tasks):
            return {}
        known = set(self._known)
        for task in tasks:
            for name in task.machines:
                if known and name not in known:
                    raise InputError(
                        task.place, f"ran on {shown(name)}, which is no machine", "list the machine"
                    )
        where = dict.fromkeys(
            name for task in tasks if task.time is not None for name in self._ran_on(task)
        )
        check_entries(len(where) * len(tasks), "run times, tasks times machines")
        measured: dict[str, list[Fraction | None]] = {
            name: [None] * len(tasks) for name in (*self._known, *where)
        }
        for v, task in enumerate(tasks):
            for name in self._ran_on(task):
                if task.time is not None:
                    measured[name][v] = task.time
        return {name: times for name, times in measured.items() if name in where}

    def _remarks(self, outside: Sequence[str], inputs: bool) -> Sequence[str]:
        found = []
        if outside and not inputs:
            total = sum(self._size(file) for file in outside)
            found.append(
                f"{_counted(len(outside), 'input file')} ({shown(total)} bytes in all) counted as "
                "at hand on every device."
            )
        silent = sum(task.time is not None and not task.machines for task in self.tasks.values())
        if silent:
            on = repr(self._known[0]) if len(self._known) == 1 else "a machine not given"
            found.append(f"{_counted(silent, 'task')} without a machine counted as run on {on}.")
        memory = sum(task.memory for task in self.tasks.values())
        if memory:
            found.append(
                f"The memory of {_counted(memory, 'task')} is not used: a process holds it while "
                "it runs, a vertex for the whole run."
            )
        return found


def _tasks(
    document: Any, place: str, key: str, found: dict[str, _Task]
) -> Iterator[tuple[_Task, Any]]:
    """Add the tasks of a list to those found; yield each with its entry."""
    for i, entry in enumerate(_list(document, "tasks", place, needed=True)):
        here = f"{place}.tasks[{i}]"
        parents, children = (_names(entry, each, here) for each in ("parents", "children"))
        task = _Task(_name(entry, key, here), here, parents, children)
        if task.name in found:
            raise InputError(f"{here}.{key}", f"a second task {shown(task.name)}", "give it once")
        found[task.name] = task
        yield task, entry


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _list(document: Any, key: str, place: str, *, needed: bool = False) -> list[Any]:
    if not needed and isinstance(document, dict) and key not in document:
        return []
    return sequence(member(document, key, place), f"{place}.{key}")


def _name(entry: Any, key: str, place: str) -> str:
    name = text(member(entry, key, place), f"{place}.{key}")
    if not name:
        raise InputError(f"{place}.{key}", "is empty", "give a name")
    return name


def _names(entry: Any, key: str, place: str) -> list[str]:
    return [text(name, f"{place}.{key}[{i}]") for i, name in enumerate(_list(entry, key, place))]


def _bytes(entry: Any, key: str, place: str) -> Fraction:
    return non_negative(member(entry, key, place), f"{place}.{key}")


def _files_14(task: _Task, entry: Any, sizes: dict[str, Fraction]) -> None:
    for j, file in enumerate(_list(entry, "files", task.place)):
        here = f"{task.place}.files[{j}]"
        name = _name(file, "name", here)
        if "path" in file:
            name = text(file["path"], f"{here}.path") + name
        size = _bytes(file, "sizeInBytes", here)
        if sizes.setdefault(name, size) != size:
            raise InputError(
                f"{here}.sizeInBytes",
                f"{shown(name)} has {shown(size)} bytes here and {shown(sizes[name])} before",
                "give one size",
            )
        link = member(file, "link", here)
        if link not in ("input", "output"):
            raise InputError(f"{here}.link", shown(link), "give input or output")
        (task.reads if link == "input" else task.writes).append(name)


def _performance(task: _Task, entry: Any, place: str, cores: str) -> None:
    if cores in entry:
        task.cores_used = _positive(entry[cores], f"{place}.{cores}")
    if "avgCPU" in entry:
        task.cores_used = non_negative(entry["avgCPU"], f"{place}.avgCPU") / 100
    if "memoryInBytes" in entry:
        task.memory = non_negative(entry["memoryInBytes"], f"{place}.memoryInBytes") > 0


def _machines(document: Any, place: str, cores: str, speed: str) -> tuple[Machine, ...]:
    found: dict[str, Machine] = {}
    for i, entry in enumerate(_list(document, "machines", place)):
        here = f"{place}.machines[{i}]"
        name = _name(entry, "nodeName", here)
        if name in found or name == UNNAMED:
            raise InputError(
                f"{here}.nodeName", f"a second machine {shown(name)}", "make names unique"
            )
        cpu = entry.get("cpu", {})
        if not isinstance(cpu, dict):
            raise InputError(f"{here}.cpu", "not an object", f"give {cores} and {speed}")
        count = None
        if cores in cpu:
            given = _positive(cpu[cores], f"{here}.cpu.{cores}")
            if given.denominator > 1 or given > _MOST_CORES:
                raise InputError(
                    f"{here}.cpu.{cores}", shown(given), f"give a whole number up to {_MOST_CORES}"
                )
            count = int(given)
        found[name] = Machine(
            name,
            count,
            _positive(cpu[speed], f"{here}.cpu.{speed}") if speed in cpu else None,
            _bytes(entry, "memoryInBytes", here) if "memoryInBytes" in entry else None,
        )
    return tuple(found.values())


def _positive(value: Any, place: str) -> Fraction:
    number = rational(value, place)
    if number <= 0:
        raise InputError(place, f"{shown(number)} is not positive", "give a number > 0")
    return number


# --- writing -------------------------------------------------------------------------------


KIND = Kind("a workflow", of_document(sniff))


def write(path: str | Path, workflow: Workflow) -> None:
    """Write a workflow as WfFormat 1.5; see :func:`dumps`."""
    with FaultsOf(path):
        write_text(path, dumps(workflow), KIND)


def dumps(workflow: Workflow) -> str:
    """Return a workflow as WfFormat 1.5, of which :func:`read_workflow` makes the same again.

    Output ``i`` of a task becomes a file ``TASK.i``. The published makespan is that of running one
    task after another.

    Raises
    ------
    UnsupportedError
        If the workload holds what WfFormat cannot: groups, device types, memory, operations,
        transfer times, sizes that are no whole bytes, ids with other characters than the schema
        permits, or a task with several different run times.
    """
    graph = workflow.workload.graph
    _check_writable(workflow)
    files = {
        t: f"{graph.names[v]}.{k}"
        for t, (v, k) in enumerate(
            zip(graph.tensor_vertex.tolist(), graph.tensor_output.tolist(), strict=True)
        )
        if k != CONTROL
    }
    lists = ("parents", "children", "inputFiles", "outputFiles")
    tasks: list[dict[str, Any]] = [
        {"name": name, "id": name, **{each: [] for each in lists}} for name in graph.names
    ]
    for t, file in files.items():
        tasks[graph.tensor_vertex[t]]["outputFiles"].append(file)
    ends = (graph.edge_source, graph.edge_target, graph.edge_tensor)
    edges = zip(*(array.tolist() for array in ends), strict=True)
    joined: set[tuple[int, int]] = set()
    for u, v, t in edges:
        if (u, v) not in joined:
            joined.add((u, v))
            tasks[v]["parents"].append(graph.names[u])
            tasks[u]["children"].append(graph.names[v])
        if t in files:
            tasks[v]["inputFiles"].append(files[t])
    content: dict[str, Any] = {
        "specification": {
            "tasks": tasks,
            "files": [
                {"id": file, "sizeInBytes": int(graph.tensor_size[t])} for t, file in files.items()
            ],
        }
    }
    if workflow.workload.measured:
        content["execution"] = _execution(workflow)
    document = {"name": workflow.workload.name, "schemaVersion": "1.5", "workflow": content}
    if workflow.workload.source:
        document["description"] = workflow.workload.source
    return to_json(document, indent=1) + "\n"


def _execution(workflow: Workflow) -> dict[str, Any]:
    workload = workflow.workload
    tasks, total = [], Fraction(0)
    for v, name in enumerate(workload.graph.names):
        times = {
            device: column[v]
            for device, column in workload.measured.items()
            if column[v] is not None
        }
        if not times:
            continue
        if len(set(times.values())) > 1:
            raise UnsupportedError(
                f"task {name!r}", "has several run times", "give it one; WfFormat holds one"
            )
        time = next(iter(times.values())) or Fraction(0)
        total += time
        entry: dict[str, Any] = {
            "id": name,
            "runtimeInSeconds": _decimal(time / SECOND, f"task {name!r}"),
        }
        used = workflow.cores_used[v] if workflow.cores_used else None
        if used is not None:
            entry["avgCPU"] = _decimal(used * 100, f"task {name!r}")
        entry["machines"] = [device for device in times if device != UNNAMED]
        tasks.append(entry)
    machines = []
    for machine in workflow.machines:
        cpu: dict[str, Any] = {}
        if machine.cores is not None:
            cpu["coreCount"] = machine.cores
        if machine.speed is not None:
            cpu["speedInMHz"] = _decimal(machine.speed, f"machine {machine.name!r}")
        given: dict[str, Any] = {"nodeName": machine.name, "cpu": cpu}
        if machine.memory is not None:
            given["memoryInBytes"] = _decimal(machine.memory, f"machine {machine.name!r}")
        machines.append(given)
    execution: dict[str, Any] = {
        "makespanInSeconds": float(total / SECOND),
        "executedAt": "1970-01-01T00:00:00Z",
        "tasks": tasks,
    }
    if machines:
        execution["machines"] = machines
    return execution


def _check_writable(workflow: Workflow) -> None:
    graph = workflow.workload.graph
    for what, held in (
        ("colocation or separation", bool(graph.colocation or graph.separation)),
        ("device types or allowed devices", any(graph.device_types) or bool(graph.allowed_devices)),
        ("measured transfer times", bool(graph.tensor_delay)),
        ("operations", bool(graph.ops.numerators.any())),
        ("resident memory", bool(graph.memory.numerators.any())),
        ("sizes that are no whole bytes", graph.tensor_size.denominator != 1),
    ):
        if held:
            raise UnsupportedError("graph", f"has {what}", "leave them out, or write native JSON")
    if not len(graph):
        raise UnsupportedError("graph", "has no vertices", "give at least one")
    for name in graph.names:
        if not _ID.fullmatch(name):
            raise UnsupportedError(
                f"task {name!r}", "the id has other characters", "use letters, digits and _.#:/-"
            )


def _decimal(value: Fraction, place: str) -> int | float:
    """Return a number whose notation in JSON is exact."""
    if value.denominator == 1:
        return int(value)
    near = float(value)
    if Fraction(Decimal(repr(near))) != value:
        raise UnsupportedError(place, f"{shown(value)} is no short decimal", "round it")
    return near
