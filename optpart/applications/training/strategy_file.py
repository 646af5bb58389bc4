"""Strategies in JSON, ``optpart-strategy/1``.

::

    {"format": "optpart-strategy/1",
     "model": "vgg19", "model_sha256": "…", "cluster": "heterog-4",
     "batch": 96,
     "compiler": {"auxiliary": "free"},
     "method": "search", "makespan": 362946563, "lower_bound": 355000000,
     "groups": [
       {"ops": ["conv1", "conv1/backward", "conv1/apply"], "place": "v100-0"},
       {"ops": ["conv2", "conv2/backward", "conv2/apply"],
        "replicas": {"v100-0": 2, "1080ti-0": 1}, "sync": {"ps": "v100-0"}}],
     "order": ["conv1 @v100-0", ["conv1 @v100-0", 0, "1080ti-0"]]}

Times are nanoseconds, and exact: an integer, or a string such as ``"1/3"``. ``place`` puts a group
on one device; ``replicas`` counts replicas by device, whose gradients an ``"allreduce"`` or a
parameter server, ``{"ps": DEVICE}``, sums. ``compiler`` holds the fields of
:class:`~optpart.applications.training.compiled.Options` that differ from their defaults, and
``reading`` what a reader had to be told about the model. ``model`` and ``cluster`` are names of
files or of what the package brings; ``model_sha256`` decides whether a strategy is that of a model.

``order`` is that of execution, of the vertices and transfers of the compiled instance: names, and
triples of producer, output (``null`` if nothing is sent but a signal) and receiving device. Without
it, the rank of [G] decides, and ``makespan`` is that of the order.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from optpart.applications.training import graph_file
from optpart.applications.training.cluster import TrainingCluster
from optpart.applications.training.compiled import DEFAULT, Compiled, Options
from optpart.applications.training.graph import CONTROL, TrainingGraph
from optpart.applications.training.strategy import Decision, Strategy
from optpart.base.errors import FaultsOf, InputError
from optpart.base.files import Kind, of_format, read_text, write_text
from optpart.interop.formats.json import (
    count,
    keys,
    mapping,
    named,
    parse_json,
    pretty,
    sequence,
    text,
    version,
)
from optpart.problem.document import number
from optpart.problem.rational import non_negative, rational, shown
from optpart.solution.schedule import Schedule, retime

FORMAT = "optpart-strategy/1"
KIND = Kind("a strategy", of_format(FORMAT))

_TOP = {"$schema", "format", "model", "model_sha256", "reading", "cluster", "batch", "compiler"}
_TOP |= {"method", "makespan", "lower_bound", "groups", "order"}
_GROUP = {"ops", "place", "replicas", "sync"}

_Value = TypeVar("_Value")

#: A vertex by name, or a transfer: producer, output (``None`` for a signal), receiving device.
Step = str | tuple[str, int | None, str]


@dataclass(frozen=True)
class Reading:
    """Figures that the file of a model lacks.

    Attributes
    ----------
    samples : int or str, optional
        Samples that the figures of the file are for, or the symbol that it has for them.
    slowness : mapping from str to Fraction
        By kind of device, how many times as long it takes as the device that was measured.
    shapes : mapping from str to int
        Sizes that a model leaves open.
    costs : str
        File of fitted times (:mod:`optpart.applications.training.profile`) that replace those of
        the model, and the links of the cluster; empty for none.
    network : str
        Which of the networks in a folder of profiles; empty if nothing was said.
    tensor_parallel : int, optional
        GPUs that compute each layer of a folder of profiles together.
    gpus : mapping from str to str
        By kind of device, the GPU type whose profile it has, if that has another name.
    """

    samples: int | str | None = None
    slowness: Mapping[str, Fraction] = field(default_factory=dict)
    shapes: Mapping[str, int] = field(default_factory=dict)
    costs: str = ""
    network: str = ""
    tensor_parallel: int | None = None
    gpus: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Header:
    """Model and cluster as a file names them, before either is read.

    Attributes
    ----------
    model, cluster : str
        Names or paths; empty if the file does not say.
    """

    model: str = ""
    cluster: str = ""
    reading: Reading = Reading()
    options: Options = DEFAULT


@dataclass(frozen=True)
class StrategyFile:
    """A strategy with what is claimed of it.

    Attributes
    ----------
    method : str
        What found it.
    makespan : Fraction, optional
        Nanoseconds of one iteration.
    lower_bound : Fraction, optional
        Nanoseconds below which no strategy is that gives these groups one of the actions in
        question.
    order : tuple of Step
        Order of execution; empty for the rank of [G].
    """

    strategy: Strategy
    header: Header = Header()
    method: str = ""
    makespan: Fraction | None = None
    lower_bound: Fraction | None = None
    order: tuple[Step, ...] = ()


def sha256(graph: TrainingGraph) -> str:
    """Return the SHA-256 of a training graph's canonical JSON, without name and remarks."""
    document = graph_file.to_dict(graph)
    for key in ("name", "source", "assumed"):
        del document[key]
    canonical = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


# --- writing -------------------------------------------------------------------------------------


def write(
    found: StrategyFile, graph: TrainingGraph, cluster: TrainingCluster, path: str | Path
) -> None:
    """Write a strategy, completely or not at all."""
    write_text(path, dumps(found, graph, cluster), KIND)


def dumps(found: StrategyFile, graph: TrainingGraph, cluster: TrainingCluster) -> str:
    """Return the text of a file, as :func:`read` reads it."""
    header, strategy = found.header, found.strategy
    document: dict[str, Any] = {"format": FORMAT}
    if header.model:
        document["model"] = header.model
    document["model_sha256"] = sha256(graph)
    told = {
        each.name: _written(getattr(header.reading, each.name))
        for each in fields(Reading)
        if getattr(header.reading, each.name) not in (None, "", {})
    }
    if told:
        document["reading"] = told
    if header.cluster:
        document["cluster"] = header.cluster
    document["batch"] = strategy.batch
    changed = {
        each.name: getattr(header.options, each.name)
        for each in fields(Options)
        if getattr(header.options, each.name) != each.default
    }
    if changed:
        document["compiler"] = {key: _written(value) for key, value in changed.items()}
    if found.method:
        document["method"] = found.method
    for key, value in (("makespan", found.makespan), ("lower_bound", found.lower_bound)):
        document[key] = None if value is None else number(value)
    document["groups"] = [
        {"ops": [graph.operations[o].name for o in group], **_decision_document(decision, cluster)}
        for group, decision in zip(strategy.groups, strategy.decisions, strict=True)
    ]
    if found.order:
        document["order"] = [step if isinstance(step, str) else list(step) for step in found.order]
    return pretty(document)


def _written(value: Any) -> Any:
    """Return the JSON of a number, text or mapping."""
    if isinstance(value, Mapping):
        return {key: _written(entry) for key, entry in value.items()}
    return number(value) if isinstance(value, Fraction) else value


def _decision_document(decision: Decision, cluster: TrainingCluster) -> dict[str, Any]:
    names = cluster.names
    if decision.sync is None and decision.total == 1:
        return {"place": names[decision.devices[0]]}
    counts = {names[d]: decision.replicas[d] for d in decision.devices}
    if decision.sync is None:
        return {"replicas": counts}
    sync = decision.sync if decision.sync == "allreduce" else {"ps": names[decision.sync]}
    return {"replicas": counts, "sync": sync}


def order_of(compiled: Compiled, schedule: Schedule) -> tuple[Step, ...]:
    """Return the order of execution of a schedule: vertices and transfers by their starts."""
    instance = compiled.instance
    graph, devices = instance.graph, instance.cluster.names
    rank = np.empty(len(graph), dtype=np.int64)
    rank[graph.topological_order] = np.arange(len(graph))
    # Of what starts and ends together, a producer comes before its transfers, and these before
    # what reads them.
    steps: list[tuple[tuple[Fraction | int, ...], Step]] = []
    for v, start in enumerate(schedule.start.fractions()):
        end = start + instance.duration(v, int(schedule.placement[v]))
        steps.append(((start, end, int(rank[v]), 0, 0, 0), graph.names[v]))
    moves = schedule.transfers
    for i, (tensor, target) in enumerate(
        zip(moves.tensor.tolist(), moves.target.tolist(), strict=True)
    ):
        v, output = int(graph.tensor_vertex[tensor]), int(graph.tensor_output[tensor])
        key = (moves.start[i], moves.end[i], int(rank[v]), 1, tensor, target)
        steps.append(
            (key, (graph.names[v], None if output == CONTROL else output, devices[target]))
        )
    return tuple(step for _, step in sorted(steps, key=lambda row: row[0]))


# --- reading -------------------------------------------------------------------------------------


def read_document(path: str | Path) -> Mapping[str, Any]:
    """Read the document of a file; faults of its form are :class:`InputError` s with the file."""
    with FaultsOf(path):
        document = parse_json(read_text(path))
        version(document, FORMAT)
        return keys(document, _TOP, "")


def header_of(document: Mapping[str, Any]) -> Header:
    """Return what a document says about model and cluster."""
    told = keys(document.get("reading", {}), {each.name for each in fields(Reading)}, "reading")
    samples, degree = told.get("samples"), told.get("tensor_parallel")
    if samples is not None and not isinstance(samples, str):
        samples = count(samples, "reading.samples")

    def each(key: str, read: Callable[[Any, str], _Value]) -> dict[str, _Value]:
        entries = mapping(told.get(key, {}), f"reading.{key}")
        return {name: read(entry, f"reading.{key}.{name}") for name, entry in entries.items()}

    return Header(
        text(document.get("model", ""), "model"),
        text(document.get("cluster", ""), "cluster"),
        Reading(
            samples,
            each("slowness", non_negative),
            each("shapes", count),
            text(told.get("costs", ""), "reading.costs"),
            text(told.get("network", ""), "reading.network"),
            None if degree is None else count(degree, "reading.tensor_parallel"),
            each("gpus", text),
        ),
        _options(document.get("compiler", {})),
    )


def from_document(
    document: Mapping[str, Any], graph: TrainingGraph, cluster: TrainingCluster
) -> StrategyFile:
    """Build the strategy of a document for a model and a cluster.

    Raises
    ------
    InputError
        If it is the strategy of another model, names unknown operations or devices, or breaks a
        rule of :meth:`Strategy.check <optpart.applications.training.strategy.Strategy.check>`.
    """
    said = document.get("model_sha256")
    if said is not None and text(said, "model_sha256") != sha256(graph):
        raise InputError(
            "model_sha256",
            f"the strategy of another model than {shown(graph.name)}",
            "name its model, as it was read when the strategy was made",
        )
    for key in ("batch", "groups"):
        if key not in document:
            raise InputError(key, "is missing", "give batch and groups")
    entries = [
        keys(entry, _GROUP, f"groups[{g}]")
        for g, entry in enumerate(sequence(document["groups"], "groups"))
    ]
    strategy = Strategy(
        count(document["batch"], "batch"),
        tuple(_group(entry, graph, f"groups[{g}].ops") for g, entry in enumerate(entries)),
        tuple(_decision(entry, cluster, f"groups[{g}]") for g, entry in enumerate(entries)),
    )
    strategy.check(graph, cluster)
    return StrategyFile(
        strategy,
        header_of(document),
        text(document.get("method", ""), "method"),
        _time(document.get("makespan"), "makespan"),
        _time(document.get("lower_bound"), "lower_bound"),
        tuple(
            _step(step, f"order[{i}]")
            for i, step in enumerate(sequence(document.get("order", []), "order"))
        ),
    )


def read(path: str | Path, graph: TrainingGraph, cluster: TrainingCluster) -> StrategyFile:
    """Read a file; every fault is an :class:`InputError` that names file and place."""
    document = read_document(path)
    with FaultsOf(path):
        return from_document(document, graph, cluster)


def in_order(compiled: Compiled, order: tuple[Step, ...]) -> Schedule:
    """Return the schedule of a compiled strategy that keeps an order of execution.

    Raises
    ------
    InputError
        If the order names something unknown, is incomplete or contradicts the edges.
    """
    graph, cluster = compiled.instance.graph, compiled.instance.cluster
    made = zip(graph.tensor_vertex.tolist(), graph.tensor_output.tolist(), strict=True)
    tensors = {
        (graph.names[v], None if output == CONTROL else output): tensor
        for tensor, (v, output) in enumerate(made)
    }
    devices = {name: d for d, name in enumerate(cluster.names)}
    vertices = set(graph.names)

    def known(i: int, there: bool, what: str, name: str) -> None:
        if not there:
            problem = f"no {what} {shown(name)} in the compiled strategy"
            raise InputError(f"order[{i}]", problem, "use its names")

    steps: list[str | tuple[int, int]] = []
    for i, step in enumerate(order):
        if isinstance(step, str):
            known(i, step in vertices, "vertex", step)
            steps.append(step)
            continue
        producer, output, device = step
        there = (producer, output) in tensors
        known(i, there, "output of a vertex", f"{producer}, {output}")
        known(i, device in devices, "device", device)
        steps.append((tensors[producer, output], devices[device]))
    return retime(compiled.instance, compiled.placement, steps)


def _time(value: Any, place: str) -> Fraction | None:
    return None if value is None else non_negative(value, place)


def _options(value: Any) -> Options:
    known = {each.name for each in fields(Options)}
    given = dict(keys(value, known, "compiler"))
    for key, entry in given.items():
        place = f"compiler.{key}"
        if key == "tick":
            given[key] = None if entry is None else rational(entry, place)
        elif key in ("slots", "microbatches"):
            if isinstance(entry, bool) or not isinstance(entry, int):
                raise InputError(place, f"is {shown(entry)}", "give a whole number")
        else:
            text(entry, place)
    try:
        return Options(**given)
    except InputError as error:
        raise InputError(f"compiler.{error.place}", error.problem, error.remedy) from None


def _group(entry: Mapping[str, Any], graph: TrainingGraph, place: str) -> tuple[int, ...]:
    if "ops" not in entry:
        raise InputError(place, "is missing", "list the operations of the group")
    unknown = "the model has no operation"
    found = tuple(
        named(value, graph.index, f"{place}[{i}]", unknown, "use its names")
        for i, value in enumerate(sequence(entry["ops"], place))
    )
    if not found:
        raise InputError(place, "is empty", "list the operations of the group")
    return found


def _decision(entry: Mapping[str, Any], cluster: TrainingCluster, place: str) -> Decision:
    index = {name: d for d, name in enumerate(cluster.names)}

    def device(value: Any, at: str) -> int:
        return named(value, index, at, "no device")

    if ("place" in entry) == ("replicas" in entry):
        raise InputError(place, "place and replicas, or neither", "give one of the two")
    counts = [0] * len(cluster)
    if "place" in entry:
        counts[device(entry["place"], f"{place}.place")] = 1
    else:
        for name, replicas in mapping(entry["replicas"], f"{place}.replicas").items():
            at = f"{place}.replicas.{name}"
            counts[device(name, at)] = count(replicas, at)
    sync = entry.get("sync")
    if isinstance(sync, dict):
        server = keys(sync, {"ps"}, f"{place}.sync").get("ps")
        sync = device(server, f"{place}.sync.ps")
    elif sync not in (None, "allreduce"):
        raise InputError(f"{place}.sync", f"is {shown(sync)}", 'give "allreduce" or {"ps": DEVICE}')
    try:
        return Decision(tuple(counts), sync)
    except InputError as error:
        raise InputError(f"{place}.{error.place}", error.problem, error.remedy) from None


def _step(value: Any, place: str) -> Step:
    if isinstance(value, str):
        return value
    parts = sequence(value, place)
    if len(parts) != 3:
        raise InputError(place, f"{len(parts)} entries", "give [producer, output or null, device]")
    output = parts[1]
    if output is not None and (isinstance(output, bool) or not isinstance(output, int)):
        raise InputError(f"{place}[1]", f"is {shown(output)}", "give the number of an output")
    return text(parts[0], f"{place}[0]"), output, text(parts[2], f"{place}[2]")
