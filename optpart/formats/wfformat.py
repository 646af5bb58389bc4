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
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from optpart.errors import ArgumentError, FaultsOf, InputError, UnsupportedError
from optpart.files import Kind, of_document, read_text, write_text
from optpart.formats.json import Entry, parse_json
from optpart.formats.nanoseconds import SECOND, Times
from optpart.formats.parsing import check_entries
from optpart.languages import to_json
from optpart.limits import check_devices
from optpart.problem.cluster import Cluster, Device
from optpart.problem.graph import CONTROL, GraphBuilder
from optpart.problem.instance import Instance
from optpart.problem.rational import Number, shown
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
            remedy = "add them, or describe them in a cluster file"
            raise InputError("workflow", "lists no machines", remedy)
        check_devices(sum(self._devices(each, cores) for each in self.machines), "machines")
        devices: list[Device] = []
        homes: list[int] = []
        for m, machine in enumerate(self.machines):
            known = machine.speed is not None or len(self.machines) > 1
            speed = _speed(machine) / 1000 if known else 1
            name = machine.name
            if cores:
                devices += [
                    Device(f"{name}#{i}", speed) for i in range(self._devices(machine, True))
                ]
            else:
                devices.append(Device(name, speed, memory=machine.memory))
            homes += [m] * (len(devices) - len(homes))
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
            row = [
                Fraction(round(self._time(v, machine) * factor))
                for machine in self.machines
                for _ in range(self._devices(machine, cores))
            ]
            rows.append(row)
        remarks = self.remarks(cores)
        return Instance(
            graph,
            cluster,
            durations=rows,
            name=self.workload.name,
            source=" ".join((self.workload.source, *remarks)).strip(),
        )

    def _time(self, v: int, machine: Machine) -> Fraction:
        """Return the run time on a machine, measured or converted."""
        measured = self.workload.measured
        for other in (machine, *self.machines):
            time = measured[other.name][v] if other.name in measured else None
            if time is not None:
                return time if other is machine else time * _speed(other) / _speed(machine)
        raise InputError(
            f"task {self.workload.graph.names[v]!r}",
            "has no run time on a machine of the list",
            "give its runtimeInSeconds and the machine that it ran on",
        )

    def _devices(self, machine: Machine, cores: bool) -> int:
        """Return how many devices a machine makes."""
        if cores and machine.cores is None:
            remedy = "add its cpu.coreCount, or take machines as devices"
            raise InputError(f"machine {machine.name!r}", "has no number of cores", remedy)
        return machine.cores or 1 if cores else 1

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


def _speed(machine: Machine) -> Fraction:
    if machine.speed is None:
        remedy = "add its cpu.speedInMHz, or describe the machines in a cluster file"
        raise InputError(f"machine {machine.name!r}", "has no speed", remedy)
    return machine.speed


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
            problem = "missing; the file does not tell how its machines are linked"
            raise ArgumentError("bandwidth", problem, "give one, such as '10 Gbit/s'", str(path))
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
        return from_dict(parse_json(read_text(path)), Path(path).stem, inputs=inputs)


def from_dict(document: Any, name: str, *, inputs: bool = False) -> Workflow:
    """Build a workflow from the parsed document; ``name`` is for one that has none."""
    top = Entry(document)
    version = top["schemaVersion"]
    if version not in VERSIONS:
        remedy = f"give a workflow of WfFormat {', '.join(VERSIONS[:-1])} or {VERSIONS[-1]}"
        raise InputError("schemaVersion", f"{shown(version)} is unknown", remedy)
    content = _Content()
    (content.read_14 if version == "1.4" else content.read_15)(top.entry("workflow"))
    given = top.get("name")
    title = given if isinstance(given, str) and given else name
    return content.workflow(title, f"WfFormat {version}", inputs)


@dataclass
class _Task:
    """A task in the terms of version 1.5."""

    name: str
    place: str
    parents: list[str]
    children: list[str]
    reads: list[str]
    writes: list[str]
    time: Fraction | None = None
    machines: tuple[str, ...] = ()
    cores_used: Fraction | None = None
    memory: bool = False


class _Content:
    """The content that all versions have."""

    def __init__(self) -> None:
        self.tasks: dict[str, _Task] = {}
        self.sizes: dict[str, Fraction] = {}
        self.machines: tuple[Machine, ...] = ()
        self.times = Times(SECOND)

    def read_15(self, workflow: Entry) -> None:
        specification = workflow.entry("specification")
        for entry in specification.entries("tasks"):
            task = self._add(entry, "id")
            task.reads = entry.texts("inputFiles", optional=True)
            task.writes = entry.texts("outputFiles", optional=True)
        for entry in specification.entries("files", optional=True):
            file = entry.name("id")
            if file in self.sizes:
                raise InputError(entry.at("id"), f"a second file {shown(file)}", "give it once")
            self.sizes[file] = entry.number("sizeInBytes")
        if "execution" not in workflow:
            return
        execution = workflow.entry("execution")
        self.machines = _machines(execution, "coreCount", "speedInMHz")
        seen: set[str] = set()
        for entry in execution.entries("tasks"):
            name, place = entry.name("id"), entry.at("id")
            if name not in self.tasks:
                raise InputError(place, f"no task {shown(name)}", "give the id of a specified task")
            if name in seen:
                raise InputError(place, f"{shown(name)} ran before", "give it once")
            seen.add(name)
            entry.number("runtimeInSeconds")
            self._run(self.tasks[name], entry, "coreCount")

    def read_14(self, workflow: Entry) -> None:
        names: dict[str, str] = {}
        for entry in workflow.entries("tasks"):
            task = self._add(entry, "name")
            if "id" in entry:
                names.setdefault(entry.name("id"), task.name)
            for file in entry.entries("files", optional=True):
                name = file.name("name")
                if "path" in file:
                    name = file.text("path") + name
                size = file.number("sizeInBytes")
                if self.sizes.setdefault(name, size) != size:
                    before = f"and {shown(self.sizes[name])} before"
                    problem = f"{shown(name)} has {shown(size)} bytes here {before}"
                    raise InputError(file.at("sizeInBytes"), problem, "give one size")
                link = file["link"]
                if link not in ("input", "output"):
                    raise InputError(file.at("link"), shown(link), "give input or output")
                (task.reads if link == "input" else task.writes).append(name)
            self._run(task, entry, "cores")
        for task in self.tasks.values():  # some name their neighbours by id
            for listed in (task.parents, task.children):
                listed[:] = [
                    each if each in self.tasks else names.get(each, each) for each in listed
                ]
        self.machines = _machines(workflow, "count", "speed")

    def _add(self, entry: Entry, key: str) -> _Task:
        name = entry.name(key)
        if name in self.tasks:
            raise InputError(entry.at(key), f"a second task {shown(name)}", "give it once")
        parents, children = (entry.texts(each, optional=True) for each in ("parents", "children"))
        task = self.tasks[name] = _Task(name, entry.place, parents, children, [], [])
        return task

    def _run(self, task: _Task, entry: Entry, cores: str) -> None:
        """Read how a task ran."""
        if "runtimeInSeconds" in entry:
            task.time = self.times.whole([entry.number("runtimeInSeconds")])
        if cores in entry:
            task.cores_used = entry.positive(cores)
        if "avgCPU" in entry:
            task.cores_used = entry.number("avgCPU") / 100
        if "memoryInBytes" in entry:
            task.memory = entry.number("memoryInBytes") > 0
        task.machines = tuple(entry.texts("machines", optional=True))
        if "machine" in entry:  # as 1.4 and the first edition of 1.5 call it
            task.machines += (entry.name("machine"),)

    def workflow(self, name: str, source: str, inputs: bool) -> Workflow:
        """Build the graph and the rest."""
        writer = self._writers()
        reads = dict.fromkeys(file for task in self.tasks.values() for file in task.reads)
        outside = [file for file in reads if file not in writer]
        builder = GraphBuilder()
        output: dict[str, int] = {}
        if inputs:
            if INPUTS in self.tasks:
                problem = f"is called {INPUTS!r}, as is the vertex for input files"
                raise InputError(self.tasks[INPUTS].place, problem, "rename the task")
            builder.vertex(INPUTS, outputs=[self._size(file) for file in outside])
            writer |= dict.fromkeys(outside, INPUTS)
            output = {file: i for i, file in enumerate(outside)}
        for task in self.tasks.values():
            written = list(dict.fromkeys(task.writes))
            sizes = [self._size(file, task.place) for file in written]
            builder.vertex(task.name, outputs=sizes, place=task.place)
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
        front = [Fraction(0)] if inputs else []
        workload = Workload(
            builder.build(),
            measured={device: (*front, *times) for device, times in self._measured().items()},
            name=name,
            source=source,
            assumed=(*self.times.remarks(), *self._remarks(outside, inputs)),
        )
        used = [task.cores_used for task in self.tasks.values()]
        return Workflow(workload, self.machines, (*front, *used))

    def _writers(self) -> dict[str, str]:
        writer: dict[str, str] = {}
        for task in self.tasks.values():
            for file in task.writes:
                if writer.setdefault(file, task.name) != task.name:
                    problem = f"writes {shown(file)}, which {shown(writer[file])} writes too"
                    raise InputError(task.place, problem, "give every file one writer")
        return writer

    def _size(self, file: str, place: str = "workflow") -> Fraction:
        if file not in self.sizes:
            raise InputError(place, f"the size of file {shown(file)} is not given", "list the file")
        return self.sizes[file]

    def _listed_pairs(self) -> Iterator[tuple[str, str]]:
        for task in self.tasks.values():
            for key, names in (("parents", task.parents), ("children", task.children)):
                for name in names:
                    if name not in self.tasks:
                        place = f"{task.place}.{key}"
                        raise InputError(place, f"no task {shown(name)}", "name a listed task")
                    yield (name, task.name) if key == "parents" else (task.name, name)

    def _measured(self) -> dict[str, list[Fraction | None]]:
        tasks = list(self.tasks.values())
        if all(task.time is None for task in tasks):
            return {}
        known = [machine.name for machine in self.machines]
        for task in tasks:
            for name in task.machines:
                if known and name not in known:
                    problem = f"ran on {shown(name)}, which is no machine"
                    raise InputError(task.place, problem, "list the machine")
        alone = (known[0] if len(known) == 1 else UNNAMED,)
        ran = {task.name: task.machines or alone for task in tasks if task.time is not None}
        where = {name for names in ran.values() for name in names}
        check_entries(len(where) * len(tasks), "run times, tasks times machines")
        order = dict.fromkeys((*known, *(name for names in ran.values() for name in names)))
        measured: dict[str, list[Fraction | None]] = {
            name: [None] * len(tasks) for name in order if name in where
        }
        for v, task in enumerate(tasks):
            for name in ran.get(task.name, ()):
                measured[name][v] = task.time
        return measured

    def _remarks(self, outside: list[str], inputs: bool) -> Iterator[str]:
        if outside and not inputs:
            total = sum(self._size(file) for file in outside)
            yield (
                f"{_counted(len(outside), 'input file')} ({shown(total)} bytes in all) counted as "
                "at hand on every device."
            )
        silent = sum(task.time is not None and not task.machines for task in self.tasks.values())
        if silent:
            one = len(self.machines) == 1
            on = repr(self.machines[0].name) if one else "a machine not given"
            yield f"{_counted(silent, 'task')} without a machine counted as run on {on}."
        memory = sum(task.memory for task in self.tasks.values())
        if memory:
            yield (
                f"The memory of {_counted(memory, 'task')} is not used: a process holds it while "
                "it runs, a vertex for the whole run."
            )


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _machines(document: Entry, cores: str, speed: str) -> tuple[Machine, ...]:
    found: dict[str, Machine] = {}
    for entry in document.entries("machines", optional=True):
        name = entry.name("nodeName")
        if name in found or name == UNNAMED:
            problem = f"a second machine {shown(name)}"
            raise InputError(entry.at("nodeName"), problem, "make names unique")
        cpu = Entry(entry.content.get("cpu", {}), entry.at("cpu"))
        count = cpu.positive(cores) if cores in cpu else None
        if count is not None and (count.denominator > 1 or count > _MOST_CORES):
            remedy = f"give a whole number up to {_MOST_CORES}"
            raise InputError(cpu.at(cores), shown(count), remedy)
        found[name] = Machine(
            name,
            None if count is None else int(count),
            cpu.positive(speed) if speed in cpu else None,
            entry.number("memoryInBytes") if "memoryInBytes" in entry else None,
        )
    return tuple(found.values())


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
    graph, workload = workflow.workload.graph, workflow.workload
    _check_writable(workflow)
    outputs = zip(graph.tensor_vertex.tolist(), graph.tensor_output.tolist(), strict=True)
    files = {t: f"{graph.names[v]}.{k}" for t, (v, k) in enumerate(outputs) if k != CONTROL}
    lists = ("parents", "children", "inputFiles", "outputFiles")
    tasks: list[dict[str, Any]] = [
        {"name": name, "id": name, **{key: [] for key in lists}} for name in graph.names
    ]
    for t, file in files.items():
        tasks[graph.tensor_vertex[t]]["outputFiles"].append(file)
    joined: set[tuple[int, int]] = set()
    ends = graph.edge_source.tolist(), graph.edge_target.tolist(), graph.edge_tensor.tolist()
    for u, v, t in zip(*ends, strict=True):
        if (u, v) not in joined:
            joined.add((u, v))
            tasks[v]["parents"].append(graph.names[u])
            tasks[u]["children"].append(graph.names[v])
        if t in files:
            tasks[v]["inputFiles"].append(files[t])
    sizes = [{"id": file, "sizeInBytes": int(graph.tensor_size[t])} for t, file in files.items()]
    content: dict[str, Any] = {"specification": {"tasks": tasks, "files": sizes}}
    if workload.measured:
        content["execution"] = _execution(workflow)
    document = {"name": workload.name, "schemaVersion": "1.5", "workflow": content}
    if workload.source:
        document["description"] = workload.source
    return to_json(document, indent=1) + "\n"


def _execution(workflow: Workflow) -> dict[str, Any]:
    measured = workflow.workload.measured
    tasks, total = [], Fraction(0)
    for v, name in enumerate(workflow.workload.graph.names):
        times = {
            where: time for where, column in measured.items() if (time := column[v]) is not None
        }
        if not times:
            continue
        place = f"task {name!r}"
        if len(set(times.values())) > 1:
            remedy = "give it one; WfFormat holds one"
            raise UnsupportedError(place, "has several run times", remedy)
        time = next(iter(times.values()))
        total += time
        entry: dict[str, Any] = {"id": name, "runtimeInSeconds": _decimal(time / SECOND, place)}
        used = workflow.cores_used[v] if workflow.cores_used else None
        if used is not None:
            entry["avgCPU"] = _decimal(used * 100, place)
        entry["machines"] = [device for device in times if device != UNNAMED]
        tasks.append(entry)
    machines = []
    for machine in workflow.machines:
        place = f"machine {machine.name!r}"
        cpu: dict[str, Any] = {} if machine.cores is None else {"coreCount": machine.cores}
        if machine.speed is not None:
            cpu["speedInMHz"] = _decimal(machine.speed, place)
        given: dict[str, Any] = {"nodeName": machine.name, "cpu": cpu}
        if machine.memory is not None:
            given["memoryInBytes"] = _decimal(machine.memory, place)
        machines.append(given)
    return {
        "makespanInSeconds": float(total / SECOND),
        "executedAt": "1970-01-01T00:00:00Z",
        "tasks": tasks,
        **({"machines": machines} if machines else {}),
    }


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
            remedy = "use letters, digits and _.#:/-"
            raise UnsupportedError(f"task {name!r}", "the id has other characters", remedy)


def _decimal(value: Fraction, place: str) -> int | float:
    """Return a number whose notation in JSON is exact."""
    if value.denominator == 1:
        return int(value)
    near = float(value)
    if Fraction(Decimal(repr(near))) != value:
        raise UnsupportedError(place, f"{shown(value)} is no short decimal", "round it")
    return near
