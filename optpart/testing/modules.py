"""Random instances of modules in series, as in convolutional networks."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from optpart.interop.formats.native import from_dict
from optpart.problem.instance import Instance


def draw_modules(
    seed: int, *, vertices: int = 9, devices: int = 3, memory: bool = True
) -> Instance:
    """Draw an instance whose graph is a chain of vertices and of modules with parallel branches.

    Edges may jump over modules; vertices may be colocated, separated, typed or restricted to some
    devices; links may be missing. The same arguments give the same instance.

    Parameters
    ----------
    vertices, devices : int
        The greatest numbers.
    memory : bool
        Whether devices may have limits, with memory model ``estimate``.
    """
    rng = np.random.default_rng(seed)
    edges, count = _graph(rng, int(rng.integers(2, vertices + 1)))
    k = int(rng.integers(1, devices + 1))
    scarce = memory and rng.random() < 0.7
    document: dict[str, Any] = {
        "format": "optpart-instance/1",
        "name": f"modules-{seed}",
        "vertices": [_vertex(rng, f"v{v}", k) for v in range(count)],
        "edges": [[f"v{u}", f"v{v}", 0 if rng.random() < 0.9 else None] for u, v in edges],
        "devices": [
            {"name": f"d{d}", "type": "AB"[d % 2], "speed": int(rng.integers(1, 4))}
            for d in range(k)
        ],
        "bandwidth": [[_rate(rng) if d != e else None for e in range(k)] for d in range(k)],
        "latency": [[int(rng.integers(0, 3)) if d != e else 0 for e in range(k)] for d in range(k)],
        "model": {"communication": "delay", "memory": "estimate" if scarce else "none"},
    }
    if rng.random() < 0.5:  # identical devices
        for device in document["devices"]:
            device["speed"] = 2
        document["bandwidth"] = [[None if d == e else 2 for e in range(k)] for d in range(k)]
        document["latency"] = [[0] * k for _ in range(k)]
    if scarce:
        need = sum(_needs(document))
        same = rng.random() < 0.5
        share = rng.uniform(0.3, 0.8)
        for device in document["devices"]:
            if same or rng.random() < 0.8:
                device["memory"] = int(need * (share if same else rng.uniform(0.2, 0.9)))
    for key in ("colocation", "separation"):
        if rng.random() < 0.3 and count > 2:
            one, other = rng.choice(count, size=2, replace=False).tolist()
            document[key] = [[f"v{one}", f"v{other}"]]
            for v in (one, other):  # so that a group always has a device
                document["vertices"][v].pop("devices", None)
    return from_dict(document)


def _graph(rng: np.random.Generator, limit: int) -> tuple[list[tuple[int, int]], int]:
    """Return the edges and the number of vertices of modules in series."""
    edges: list[tuple[int, int]] = []
    last, count = 0, 1
    while count < limit:
        branches = [int(rng.integers(0, 3)) for _ in range(int(rng.integers(1, 4)))]
        if count + sum(branches) + 1 > limit:
            branches = [0]
        ends = []
        for length in branches:
            at = last
            for _ in range(length):
                edges.append((at, count))
                at, count = count, count + 1
            ends.append(at)
        edges += [(end, count) for end in dict.fromkeys(ends)]
        last, count = count, count + 1
    if count > 3 and rng.random() < 0.4:  # an edge that jumps
        u, v = sorted(rng.choice(count, size=2, replace=False).tolist())
        if (u, v) not in edges:
            edges.append((u, v))
    if count > 3 and rng.random() < 0.3:  # no single last vertex
        edges = [(u, v) for u, v in edges if v != count - 1] + [
            (int(rng.integers(count - 1)), count - 1)
        ]
    return edges, count


def _vertex(rng: np.random.Generator, name: str, devices: int) -> dict[str, Any]:
    vertex: dict[str, Any] = {
        "name": name,
        "ops": int(rng.integers(0, 13)),
        "memory": int(rng.integers(0, 6)),
        "outputs": [int(rng.integers(0, 8))],
    }
    if rng.random() < 0.1:
        vertex["devices"] = [f"d{int(rng.integers(devices))}"]
    return vertex


def _rate(rng: np.random.Generator) -> int | None:
    if rng.random() < 0.1:
        return 0
    return None if rng.random() < 0.2 else int(rng.integers(1, 5))


def _needs(document: dict[str, Any]) -> list[int]:
    sizes = {v["name"]: v["outputs"][0] for v in document["vertices"]}
    inputs = sum(sizes[u] for u, _, index in document["edges"] if index is not None)
    return [v["memory"] + v["outputs"][0] for v in document["vertices"]] + [inputs]


def draw_wide(seed: int, *, vertices: int = 9, devices: int = 3) -> Instance:
    """Draw an instance of one or more modules with four branches, with hardly enough memory.

    The same arguments give the same instance.

    Parameters
    ----------
    vertices, devices : int
        The greatest numbers; at least 6 and 2.
    """
    rng = np.random.default_rng(seed)
    edges: list[tuple[int, int]] = []
    last, count = 0, 1
    while vertices - count >= 5:
        lengths = [1] * 4
        for _ in range(int(rng.integers(0, vertices - count - 4))):
            lengths[int(rng.integers(4))] += 1
        ends = []
        for length in lengths:
            path = [last, *range(count, count + length)]
            edges += list(pairwise(path))
            count += length
            ends.append(count - 1)
        edges += [(end, count) for end in ends]
        if rng.random() < 0.3:  # past the module
            edges.append((last, count))
        last, count = count, count + 1
    k = int(rng.integers(2, devices + 1))
    same = rng.random() < 0.4
    document: dict[str, Any] = {
        "format": "optpart-instance/1",
        "name": f"wide-{seed}",
        "vertices": [_vertex(rng, f"v{v}", k) for v in range(count)],
        "edges": [[f"v{u}", f"v{v}", 0 if rng.random() < 0.9 else None] for u, v in edges],
        "devices": [
            {"name": f"d{d}", "type": "AB"[d % 2], "speed": 2 if same else int(rng.integers(1, 4))}
            for d in range(k)
        ],
        "bandwidth": [
            [None if d == e else 2 if same else _rate(rng) for e in range(k)] for d in range(k)
        ],
        "model": {"communication": "delay", "memory": "estimate"},
    }
    need = sum(_needs(document))
    share = rng.dirichlet(np.full(k, 4.0)) * rng.uniform(1.05, 1.4)
    for d, device in enumerate(document["devices"]):
        device["memory"] = int(need * (share.mean() if same else share[d]))
    return from_dict(document)
