"""Model graphs with CPU and accelerator times, in the JSON of Tarnawski et al. (2020).

This is the format of msr-fiddle/dnn-partitioning, which calls every accelerator an FPGA::

    {"maxFPGAs": 2, "maxCPUs": 1, "maxSizePerFPGA": 600.0,
     "nodes": [{"id": 1, "name": "embed", "supportedOnFpga": true, "cpuLatency": 6.0,
                "fpgaLatency": 0.5, "colorClass": 7, "size": 100.0},
               {"id": 2, "supportedOnFpga": 0, "cpuLatency": 1.0, "size": 8.0}],
     "edges": [{"sourceId": 1, "destId": 2, "cost": 1.5}]}

As a TF instance, with times in milliseconds and sizes in bytes as in the published files:

- ``fpga0``, ``fpga1``, … are devices of type FPGA with ``maxSizePerFPGA`` of memory, ``cpu0``, … of
  type CPU with unlimited memory;
- run times are given per device; a node that is not supported on an FPGA runs on CPUs only;
- nodes of one ``colorClass`` are a colocation group;
- ``cost`` is the time to bring the output of a node from an accelerator into the memory of the
  CPUs, or back: a tensor takes as long between an FPGA and a CPU, twice as long between two FPGAs,
  and no time between CPUs, which share that memory. Edges of one node and cost share a tensor;
- ``size`` is the total memory of a node on an accelerator. The memory model is ``estimate`` with
  tensors of size 0, so that a device holds the sum of sizes, as in the source. The ``size`` of an
  edge is debugging information there and not read.

A vertex takes the ``name`` of its node if all nodes have distinct ones, otherwise its
``id``. The ``layerId`` of a node is not read, and its ``isBackwardNode`` only for pipelines; keys
that the published files do not have are refused.

The source has two objectives, and neither is the makespan of an instance:

- of ``latency`` files it minimises another latency: accelerators run one contiguous piece of the
  graph each, and CPUs any number of nodes at a time;
- of ``throughput`` files, which describe pipelines of inference or training, it minimises the
  largest load of a device, the time per item in steady state. The load of a CPU is the sum of its
  run times. The load of an accelerator adds to that sum the ``cost`` of every node whose output
  enters it or leaves it, once for each direction, since it does not compute meanwhile. A transfer
  between two accelerators thus loads both. Forward nodes may have to be contiguous on each device;
  in a variant, the largest forward load and the largest backward load (``isBackwardNode``) are
  minimised in sum. Colour classes and memory are as above.

:mod:`optpart.pipeline.throughput` reads the latter with their own objective.

In the published throughput files of layer graphs (``layer-…``), an edge's size divided by its
``cost`` is a thousand times what it is in all other files, about 2 TB/s, as if ``cost`` were in
seconds there. The numbers are read as they stand.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from optpart.errors import FaultsOf, InputError
from optpart.files import read_text
from optpart.formats.json import Entry, parse_json
from optpart.formats.parsing import check_entries
from optpart.limits import MOST_DEVICES
from optpart.problem.cluster import Cluster, Device
from optpart.problem.graph import GraphBuilder
from optpart.problem.instance import Instance
from optpart.problem.model import Model
from optpart.problem.rational import shown

_KEYS = {"maxFPGAs", "maxCPUs", "maxSizePerFPGA", "nodes", "edges"}
_NODE = {
    "id", "name", "supportedOnFpga", "cpuLatency", "fpgaLatency", "isBackwardNode", "colorClass",
    "size", "layerId",
}  # fmt: skip
_EDGE = {"sourceId", "destId", "cost", "size"}


def sniff(document: Mapping[str, Any]) -> bool:
    """Return whether an object gives a number of accelerators."""
    return "maxFPGAs" in document


def read(path: str | Path) -> Instance:
    """Read a model graph; every fault is an :class:`InputError` that names file and place."""
    with FaultsOf(path):
        return from_dict(parse_json(read_text(path)), Path(path).stem)


def from_dict(document: Any, name: str) -> Instance:
    """Build an instance from the parsed document."""
    top = Entry(document, "", _KEYS)
    accelerators = top.whole("maxFPGAs", 0, MOST_DEVICES)
    cpus = top.whole("maxCPUs", 0, MOST_DEVICES - accelerators)
    capacity = top.number("maxSizePerFPGA")
    nodes, edges = top.entries("nodes", _NODE), top.entries("edges", _EDGE)
    check_entries(len(nodes) * (accelerators + cpus), "run times, nodes times devices")
    builder = GraphBuilder()
    names = _names(nodes)
    for node, vertex in zip(nodes, names.values(), strict=True):
        builder.vertex(vertex, memory=node.number("size"), place=node.place)
    _add_edges(builder, edges, names, accelerators, cpus)
    classes: dict[str, list[str]] = {}
    for node, vertex in zip(nodes, names.values(), strict=True):
        if node.get("colorClass") is not None:
            classes.setdefault(node.identifier("colorClass"), []).append(vertex)
    for group in classes.values():
        if len(group) > 1:
            builder.colocate(*group)
    fpgas = [Device(f"fpga{i}", type="FPGA", memory=capacity) for i in range(accelerators)]
    return Instance(
        builder.build(),
        Cluster.of([*fpgas, *(Device(f"cpu{i}", type="CPU") for i in range(cpus))]),
        Model(memory="estimate"),
        durations=[_durations(node, accelerators, cpus) for node in nodes],
        name=name,
    )


def _names(nodes: list[Entry]) -> dict[str, str]:
    """Return the names of the vertices by id, in order."""
    titles = {title for node in nodes if isinstance(title := node.get("name"), str) and title}
    names: dict[str, str] = {}
    for node in nodes:
        identity = node.identifier("id")
        if identity in names:
            raise InputError(node.at("id"), f"a second node {shown(identity)}", "make ids unique")
        names[identity] = node["name"] if len(titles) == len(nodes) else identity
    return names


def _durations(node: Entry, accelerators: int, cpus: int) -> list[Fraction | None]:
    supported = node["supportedOnFpga"]
    if supported not in (0, 1):
        place = node.at("supportedOnFpga")
        raise InputError(place, f"cannot be {shown(supported)}", "give true or false")
    fast = node.number("fpgaLatency") if supported else None
    return [fast] * accelerators + [node.number("cpuLatency")] * cpus


def _add_edges(
    builder: GraphBuilder,
    edges: list[Entry],
    names: Mapping[str, str],
    accelerators: int,
    cpus: int,
) -> None:
    known = names.keys()
    tensors = [(names[e.identifier("sourceId", known)], e.number("cost")) for e in edges]
    targets = [names[e.identifier("destId", known)] for e in edges]
    distinct = dict.fromkeys(tensors)
    entries = len(distinct) * (accelerators + cpus) ** 2
    check_entries(entries, "transfer times, tensors times pairs of devices")
    # A transfer costs as much at each of its ends that is on an accelerator.
    ends = [1] * accelerators + [0] * cpus
    outputs = {
        (source, cost): builder.output(source, 0, [[cost * (a + b) for b in ends] for a in ends])
        for source, cost in distinct
    }
    for tensor, target in zip(tensors, targets, strict=True):
        builder.edge(tensor[0], target, outputs[tensor])
