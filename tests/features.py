"""Features of instances, of which random draws must show each with each other."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, product
from typing import Any

import numpy as np

from optpart.kernels.ticks import Grid
from optpart.problem.graph import CONTROL
from optpart.problem.instance import Instance


def off_diagonal(instance: Instance) -> np.ndarray[Any, np.dtype[np.bool_]]:
    return ~np.eye(instance.devices, dtype=np.bool_)


def parallel(instance: Instance) -> bool:
    pairs = list(
        zip(instance.graph.edge_source.tolist(), instance.graph.edge_target.tolist(), strict=True)
    )
    return len(pairs) > len(set(pairs))


def isolated(instance: Instance) -> bool:
    ends = {*instance.graph.edge_source.tolist(), *instance.graph.edge_target.tolist()}
    return len(ends) < instance.vertices


def unconsumed(instance: Instance) -> bool:
    return len(set(instance.graph.edge_tensor.tolist())) < instance.graph.tensors


def several_outputs(instance: Instance) -> bool:
    graph = instance.graph
    producer = graph.tensor_vertex[graph.tensor_output != CONTROL].tolist()
    return len(producer) > len(set(producer))


def overlapping(instance: Instance) -> bool:
    groups = instance.graph.colocation
    return any(set(a) & set(b) for a, b in combinations(groups, 2))


def interchangeable(instance: Instance, *, but_speed: bool = False) -> bool:
    """Return whether exchanging the names of two devices maps the instance to itself.

    With ``but_speed`` it does so for devices that are not equally fast.
    """
    k, cluster, given = instance.devices, instance.cluster, instance.given_durations
    for d, e in combinations(range(k), 2):
        swap = list(range(k))
        swap[d], swap[e] = e, d
        if (
            (cluster.speed[d] != cluster.speed[e]) == but_speed
            and cluster.memory[d] == cluster.memory[e]
            and (instance.allowed[:, d] == instance.allowed[:, e]).all()
            and (
                given is None
                or (given.times.numerators[:, d] == given.times.numerators[:, e]).all()
            )
            and all(
                instance.delay(t, a, b) == instance.delay(t, swap[a], swap[b])
                for t in range(instance.graph.tensors)
                for a, b in product(range(k), repeat=2)
            )
        ):
            return True
    return False


def capacities(instance: Instance) -> list[Any]:
    return list(instance.cluster.memory) if instance.model.memory != "none" else []


FEATURES: dict[str, Callable[[Instance], bool]] = {
    "sendrecv": lambda i: i.model.communication == "sendrecv" and i.model.send_ops > 0,
    "link": lambda i: i.model.communication == "link",
    "port": lambda i: i.model.communication == "port",
    "channels": lambda i: i.model.channels > 1,
    "estimate": lambda i: i.model.memory == "estimate",
    "edges": lambda i: i.model.memory == "edges",
    "refcount": lambda i: i.model.memory == "refcount",
    "release at start": lambda i: i.model.release == "start",
    "durations": lambda i: i.durations is not None,
    "impossible duration": lambda i: (
        i.given_durations is not None and not i.given_durations.possible.all()
    ),
    "unlike speeds": lambda i: len(set(i.cluster.speed.fractions())) > 1,
    "interchangeable devices": interchangeable,
    "tensor delay": lambda i: bool(i.graph.tensor_delay),
    "no tensor delay": lambda i: any(
        entry is None for m in i.graph.tensor_delay.values() for row in m for entry in row
    ),
    "missing link": lambda i: not i.cluster.linked.all(),
    "infinite link": lambda i: bool(i.cluster.infinite[off_diagonal(i)].any()),
    "latency": lambda i: bool(i.cluster.latency.numerators.any()),
    "several separations": lambda i: len(set(i.graph.separation)) > 1,
    "several groups": lambda i: len(i.graph.colocation) > 1,
    "overlapping groups": overlapping,
    "device types": lambda i: any(i.graph.device_types),
    "allowed devices": lambda i: bool(i.graph.allowed_devices),
    "zero size": lambda i: bool((i.graph.tensor_size.numerators == 0).any()),
    "zero run time": lambda i: bool((i.graph.ops.numerators == 0).any()),
    "resident memory": lambda i: bool(i.graph.memory.numerators.any()),
    "limited memory": lambda i: any(m is not None for m in capacities(i)),
    "no memory": lambda i: any(m == 0 for m in capacities(i)),
    "unlimited memory": lambda i: None in capacities(i),
    "several outputs": several_outputs,
    "unconsumed tensor": unconsumed,
    "control edge": lambda i: CONTROL in i.graph.tensor_output.tolist(),
    "parallel edges": parallel,
    "isolated vertex": isolated,
    "fraction": lambda i: i.graph.ops.denominator > 1,
    "inexact grid": lambda i: not Grid.of(i).exact,
}

#: What cannot be: exclusive models, and what implies a model.
COMMUNICATIONS = {"sendrecv", "link", "port"}
MEMORIES = {"estimate", "edges", "refcount"}
IMPOSSIBLE = [
    *combinations(sorted(COMMUNICATIONS), 2),
    *combinations(sorted(MEMORIES), 2),
    ("channels", "sendrecv"),
    ("channels", "link"),
    ("release at start", "estimate"),
    ("release at start", "edges"),
]
