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

:mod:`optpart.exact.pipeline.throughput` reads the latter with their own objective.

In the published throughput files of layer graphs (``layer-…``), an edge's size divided by its
``cost`` is a thousand times what it is in all other files, about 2 TB/s, as if ``cost`` were in
seconds there. The numbers are read as they stand.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from optpart.base.errors import FaultsOf, InputError
from optpart.base.limits import MOST_DEVICES
from optpart.interop.formats.json import keys, read_json, sequence
from optpart.interop.formats.parsing import (
    check_entries,
    identifier,
    known,
    member,
    whole_member,
)
from optpart.problem.cluster import Cluster, Device
from optpart.problem.graph import GraphBuilder
from optpart.problem.instance import Instance
from optpart.problem.model import Model
from optpart.problem.rational import non_negative, shown

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
        return from_dict(read_json(path), Path(path).stem)


def from_dict(document: Any, name: str) -> Instance:
    """Build an instance from the parsed document."""
    keys(document, _KEYS, "")
    accelerators = whole_member(document, "maxFPGAs", 0, MOST_DEVICES)
    cpus = whole_member(document, "maxCPUs", 0, MOST_DEVICES - accelerators)
    nodes = sequence(member(document, "nodes"), "nodes")
    edges = sequence(member(document, "edges"), "edges")
    check_entries(len(nodes) * (accelerators + cpus), "run times, nodes times devices")
    builder = GraphBuilder()
    names = _add_nodes(builder, nodes)
    _add_edges(builder, edges, names, accelerators, cpus)
    _colocate(builder, nodes, list(names.values()))
    return Instance(
        builder.build(),
        _cluster(document, accelerators, cpus),
        Model(memory="estimate"),
        durations=[_durations(node, accelerators, cpus, v) for v, node in enumerate(nodes)],
        name=name,
    )


def _cluster(document: Any, accelerators: int, cpus: int) -> Cluster:
    capacity = non_negative(member(document, "maxSizePerFPGA"), "maxSizePerFPGA")
    return Cluster.of(
        [
            *(Device(f"fpga{i}", type="FPGA", memory=capacity) for i in range(accelerators)),
            *(Device(f"cpu{i}", type="CPU") for i in range(cpus)),
        ]
    )


def _add_nodes(builder: GraphBuilder, nodes: list[Any]) -> dict[str, str]:
    """Add the vertices; return their names by id, in order."""
    ids = [
        identifier(member(node, "id", f"nodes[{v}]"), f"nodes[{v}].id")
        for v, node in enumerate(nodes)
    ]
    titles = {title for node in nodes if isinstance(title := node.get("name"), str) and title}
    named = len(titles) == len(nodes)
    names: dict[str, str] = {}
    for v, (node, identity) in enumerate(zip(nodes, ids, strict=True)):
        place = f"nodes[{v}]"
        keys(node, _NODE, place)
        if identity in names:
            raise InputError(f"{place}.id", f"a second node {shown(identity)}", "make ids unique")
        names[identity] = node["name"] if named else identity
        memory = non_negative(member(node, "size", place), f"{place}.size")
        builder.vertex(names[identity], memory=memory, place=place)
    return names


def _durations(node: Any, accelerators: int, cpus: int, v: int) -> list[Fraction | None]:
    place = f"nodes[{v}]"
    supported = member(node, "supportedOnFpga", place)
    if supported not in (0, 1):
        raise InputError(
            f"{place}.supportedOnFpga", f"cannot be {shown(supported)}", "give true or false"
        )
    fast = None
    if supported:
        fast = non_negative(member(node, "fpgaLatency", place), f"{place}.fpgaLatency")
    slow = non_negative(member(node, "cpuLatency", place), f"{place}.cpuLatency")
    return [fast] * accelerators + [slow] * cpus


def _add_edges(
    builder: GraphBuilder, edges: list[Any], names: Mapping[str, str], accelerators: int, cpus: int
) -> None:
    tensors, targets = [], []
    for e, edge in enumerate(edges):
        place = f"edges[{e}]"
        keys(edge, _EDGE, place)
        source, target = (names[known(edge, key, names, place)] for key in ("sourceId", "destId"))
        tensors.append((source, non_negative(member(edge, "cost", place), f"{place}.cost")))
        targets.append(target)
    distinct = dict.fromkeys(tensors)
    check_entries(
        len(distinct) * (accelerators + cpus) ** 2, "transfer times, tensors times pairs of devices"
    )
    outputs = {
        (source, cost): builder.output(source, 0, _delay(cost, accelerators, cpus))
        for source, cost in distinct
    }
    for tensor, target in zip(tensors, targets, strict=True):
        builder.edge(tensor[0], target, outputs[tensor])


def _delay(cost: Fraction, accelerators: int, cpus: int) -> list[list[Fraction]]:
    """Return transfer times by sender and receiver: ``cost`` for each end on an accelerator."""
    ends = [1] * accelerators + [0] * cpus
    return [[cost * (sender + receiver) for receiver in ends] for sender in ends]


def _colocate(builder: GraphBuilder, nodes: list[Any], names: list[str]) -> None:
    classes: dict[str, list[str]] = {}
    for v, node in enumerate(nodes):
        color = node.get("colorClass")
        if color is not None:
            color = identifier(color, f"nodes[{v}].colorClass")
            classes.setdefault(color, []).append(names[v])
    for group in classes.values():
        if len(group) > 1:
            builder.colocate(*group)
