"""Transfers as vertices: a placed instance in which every link is a device ([G] §4.2)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from optpart.base.errors import InputError
from optpart.problem.cluster import Cluster, Device
from optpart.problem.graph import GraphBuilder
from optpart.problem.instance import Instance
from optpart.solution.schedule import crossings


def explicit(instance: Instance, placement: NDArray[np.int32] | Sequence[int]) -> Instance:
    """Return the ordering problem of a placement, without any transfers.

    Every crossing of the placement becomes a vertex on a device that represents its link, every
    vertex may run on one device only, and all edges are control dependencies. Schedules of the
    result are those of ``instance`` under the placement, with the same times: a vertex keeps its
    number, and crossing ``c`` of :func:`~optpart.solution.schedule.crossings` is vertex ``n + c``.

    Parameters
    ----------
    instance : Instance
        Communication ``link``, memory ``none``.
    placement : array of int, length n
        A placement that respects types, colocation and separation; the result has none of them.

    Raises
    ------
    InputError
        If the model is another one, or a tensor must cross where there is no link.
    """
    model = instance.model
    if (model.communication, model.memory) != ("link", "none"):
        raise InputError(
            "model",
            f"communication {model.communication} and memory {model.memory}",
            "use communication link and memory none",
        )
    placement = np.asarray(placement, dtype=np.int32)
    graph, names = instance.graph, instance.cluster.names
    moves = crossings(instance, placement)
    home = [names[d] for d in placement.tolist()]
    builder = GraphBuilder()
    for v, name in enumerate(graph.names):
        builder.vertex(name, instance.duration(v, int(placement[v])), devices=[home[v]])
    taken = set(graph.names)
    links: dict[tuple[str, str], str] = {}
    move_name: dict[tuple[int, int], str] = {}
    for tensor, target in moves:
        u = int(graph.tensor_vertex[tensor])
        link = home[u], names[target]
        links.setdefault(link, _unused(f"{link[0]} to {link[1]}", {*names, *links.values()}))
        name = _unused(f"{graph.tensor_name(tensor)} to {names[target]}", taken)
        taken.add(name)
        move_name[tensor, target] = name
        time = instance.delay(tensor, int(placement[u]), target)
        if time is None:
            raise InputError(
                "placement",
                f"{graph.tensor_name(tensor)} must cross from {link[0]} to {link[1]}, which are "
                "not linked",
                "place producer and consumer together or on linked devices",
            )
        builder.vertex(name, time, devices=[links[link]])
        builder.edge(graph.names[u], name, None)
    ends = graph.edge_source.tolist(), graph.edge_target.tolist(), graph.edge_tensor.tolist()
    for u, v, tensor in zip(*ends, strict=True):
        source = move_name.get((tensor, int(placement[v])), graph.names[u])
        builder.edge(source if home[u] != home[v] else graph.names[u], graph.names[v], None)
    devices = [Device(name) for name in (*names, *links.values())]
    return Instance(
        builder.build(),
        Cluster.of(devices),
        name=f"{instance.name}-explicit",
        source=f"{instance.name} under a placement, transfers as vertices on links",
        time_unit=instance.time_unit,
    )


def _unused(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "'"
    return name
