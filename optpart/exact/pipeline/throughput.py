"""Pipelines of msr-fiddle/dnn-partitioning, the throughput problem of Tarnawski et al. (2020).

The format is that of :mod:`optpart.interop.formats.dnn_partitioning`; here it is read as its
authors mean it. A pipeline of ``maxFPGAs`` accelerators and ``maxCPUs`` CPUs is to have the least
bottleneck.

- The load of a CPU is the sum of its run times. An accelerator also pays the ``cost`` of each node
  whose output it sends or receives, once each, since it does not compute meanwhile.
- Sizes of the nodes on an accelerator add up to at most ``maxSizePerFPGA``.
- Nodes of a ``colorClass`` share a stage. Edges between forward nodes lead to the same or a later
  stage. Backward nodes follow the forward nodes of their class. A class without forward nodes is
  ordered by its backward edges, reversed, as in the authors' dynamic programme.

Times are milliseconds and sizes bytes in the published files. The format does not tell weights from
other memory: replicas that synchronise exchange the sizes of their nodes. Nor does it describe
activations stored for later items; ``size`` is all memory that a node takes.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from optpart.base.errors import FaultsOf, InputError
from optpart.base.files import read_text
from optpart.exact.pipeline.problem import Pipeline, Ring, Tensor
from optpart.interop.formats.dnn_partitioning import from_dict, sniff
from optpart.interop.formats.json import parse_json
from optpart.interop.formats.parsing import identifier
from optpart.problem.rational import non_negative, shown

#: Costs of the edges of a node that differ by less count as equal, as in the source.
_SAME = Fraction(1, 10**6)


def is_throughput(path: str | Path) -> bool:
    """Return whether a file exists and gives a number of accelerators."""
    if not os.path.isfile(path) or Path(path).suffix.lower() != ".json":
        return False
    with FaultsOf(path):
        document = parse_json(read_text(path))
    return isinstance(document, dict) and sniff(document)


def read_throughput(path: str | Path, sync_rate: Fraction | None = None) -> Pipeline:
    """Read a pipeline; every fault is an :class:`InputError` that names file and place.

    Parameters
    ----------
    sync_rate : Fraction, optional
        Size per time at which replicas on accelerators exchange what they hold. By default they
        exchange nothing.
    """
    with FaultsOf(path):
        return throughput_from(parse_json(read_text(path)), Path(path).stem, sync_rate)


def throughput_from(document: Any, name: str, sync_rate: Fraction | None = None) -> Pipeline:
    """Build a pipeline from the parsed document."""
    instance = from_dict(document, name)  # which checks all that it reads
    nodes, edges = document["nodes"], document["edges"]
    number = {identifier(node["id"], "id"): v for v, node in enumerate(nodes)}
    pairs = [
        (number[identifier(edge["sourceId"], "")], number[identifier(edge["destId"], "")])
        for edge in edges
    ]
    accelerators = document["maxFPGAs"]
    k = instance.devices
    alike = (0,) * accelerators + (int(accelerators > 0),) * (k - accelerators)
    rings: list[Ring | None] = []
    if accelerators:
        rings.append(Ring(1 / sync_rate if sync_rate else Fraction(0)))
    if k > accelerators:
        rings.append(Ring())  # CPUs share their memory
    sizes = instance.graph.memory.fractions()
    return Pipeline(
        name=name,
        vertices=instance.graph.names,
        devices=instance.cluster.names,
        alike=alike,
        edges=tuple(_order(nodes, pairs)),
        times=tuple(
            tuple(
                instance.duration(v, d) if instance.vertex_allowed[v, d] else None for d in range(k)
            )
            for v in range(len(nodes))
        ),
        need=tuple(sizes),
        capacity=instance.cluster.memory,
        together=instance.graph.colocation,
        apart=(),
        tensors=tuple(_tensors(edges, pairs)),
        pays=(True,) * accelerators + (False,) * (k - accelerators),
        weights=tuple(sizes) if sync_rate else (Fraction(0),) * len(nodes),
        rings=tuple(rings),
        sha256=_digest(document, sync_rate),
    )


def _order(nodes: list[Any], pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the edges that stages must follow."""
    backward = [_is_backward(node, v) for v, node in enumerate(nodes)]
    color = [node.get("colorClass") for node in nodes]
    known = {str(c) for c, back in zip(color, backward, strict=True) if c is not None and not back}
    orphan = [back and str(c) not in known for c, back in zip(color, backward, strict=True)]
    found = []
    for u, v in pairs:
        if not backward[u] and not backward[v]:
            found.append((u, v))
        elif backward[u] and backward[v] and (orphan[u] or orphan[v]):
            found.append((v, u))
        elif backward[u] and not backward[v]:
            raise InputError(
                "edges",
                f"lead from the backward node {shown(nodes[u]['id'])} to the forward node "
                f"{shown(nodes[v]['id'])}",
                "check isBackwardNode",
            )
    return found


def _is_backward(node: Mapping[str, Any], v: int) -> bool:
    value = node.get("isBackwardNode", False)
    if value not in (0, 1):
        raise InputError(
            f"nodes[{v}].isBackwardNode", f"cannot be {shown(value)}", "give true or false"
        )
    return bool(value)


def _tensors(edges: list[Any], pairs: list[tuple[int, int]]) -> list[Tensor]:
    cost: dict[int, Fraction] = {}
    consumers: dict[int, list[int]] = {}
    for e, (edge, (u, v)) in enumerate(zip(edges, pairs, strict=True)):
        own = non_negative(edge["cost"], f"edges[{e}].cost")
        if abs(cost.setdefault(u, own) - own) > _SAME:
            raise InputError(
                f"edges[{e}].cost",
                f"{shown(own)} differs from {shown(cost[u])} of another edge of this node",
                "give all edges of a node the same cost",
            )
        consumers.setdefault(u, []).append(v)
    return [Tensor(u, tuple(dict.fromkeys(to)), cost[u]) for u, to in consumers.items()]


def _digest(document: Any, sync_rate: Fraction | None) -> str:
    text = json.dumps([document, str(sync_rate)], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()
