"""Random paths in which vertices repeat in turn, as in language models, also with forks."""

from __future__ import annotations

from typing import Any

import numpy as np

from optpart.interop.formats.native import from_dict
from optpart.problem.instance import Instance


def draw_forks(seed: int) -> Instance:
    """Draw a path of three or four stages of two kinds, with forks of two behind those of one kind.

    All else is as of :func:`draw_cycles`.
    """
    rng = np.random.default_rng(seed)
    k, stages = int(rng.integers(2, 4)), int(rng.integers(3, 5))
    kinds = [int(rng.random() < 0.3) for _ in range(stages)]
    bodies = [2, 3] if rng.random() < 0.5 else [2, 2]
    made = {kind: _kind(rng, k) for kind in range(4)}
    made[3]["outputs"] = made[2]["outputs"]
    direct, order, edges = rng.random() < 0.6, list[int](), list[list[int]]()
    for i, kind in enumerate(kinds):
        first, fork = len(order), bodies if kind == 0 and i + 1 < stages else []
        order += [kind, *fork]
        behind = first + 1 + len(fork)
        edges += [[first, first + b, 0] for b in range(1, 1 + len(fork))]
        if i + 1 < stages:
            edges += [
                [first + b, behind, 0] for b in range(bool(fork and not direct), 1 + len(fork))
            ]
    return _instance(rng, f"forks-{seed}", [made[kind] for kind in order], edges)


def draw_caches(seed: int) -> Instance:
    """Draw two or three blocks of which one or two vertices lie between two that share a device.

    A tensor mostly jumps over them; blocks may have another vertex. Before them may be one that is
    connected with nothing and takes no time. Memory is so scarce that tensors in flight matter. All
    else is as of :func:`draw_cycles`.
    """
    rng = np.random.default_rng(seed)
    k, bodies = int(rng.integers(2, 4)), 1 + int(rng.random() < 0.3)
    blocks = 2 if bodies > 1 else 2 + int(rng.integers(2))
    size = 2 + bodies + int(blocks == 2 and bodies == 1)
    made = [_kind(rng, k) for _ in range(size)]
    made[0]["outputs"] += [int(rng.integers(0, 6))]
    made[bodies]["outputs"] = made[1]["outputs"]
    loose, direct = int(rng.random() < 0.4), bodies == 1 or rng.random() < 0.5
    alone = {**_kind(rng, k), "times": [0] * k}
    edges, colocated = list[list[int]](), list[list[int]]()
    for first in range(loose, loose + blocks * size, size):
        behind = first + 1 + bodies
        edges += [[first, v, 0] for v in range(first + 1, behind)]
        edges += [[first, behind, 1]] * direct
        edges += [[v, behind, 0] for v in range(first + 1, behind)]
        edges += [[v, v + 1, 0] for v in range(behind, first + size)]
        colocated.append([first, behind])
    every = [*[alone] * loose, *made * blocks]
    pairs = colocated if rng.random() < 0.8 else []
    return _instance(rng, f"caches-{seed}", every, edges[:-1], pairs)


def draw_cycles(seed: int, *, vertices: int = 8, devices: int = 3) -> Instance:
    """Draw a path of a few cycles of one to three kinds, between single vertices or not.

    Memory is scarce in most; transfer times obey the triangle inequality in about half; links may
    be missing; single vertices may be colocated or separated. The same arguments give the same
    instance.

    Parameters
    ----------
    vertices, devices : int
        The greatest numbers.
    """
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, devices + 1))
    count = int(rng.integers(4, vertices + 1))
    kinds: list[int] = []
    while len(kinds) < count:
        turns = 1 if rng.random() < 0.6 else int(rng.integers(2, 4))
        length = 1 if rng.random() < 0.15 else int(rng.integers(3, 9))
        first, length = len(kinds), min(length, count - len(kinds))
        kinds += [first + i % turns for i in range(length)]
    made = {kind: _kind(rng, k) for kind in kinds}
    edges = [[v, v + 1, 0] for v in range(count - 1)]
    return _instance(rng, f"cycles-{seed}", [made[kind] for kind in kinds], edges)


def _instance(
    rng: np.random.Generator,
    name: str,
    made: list[dict[str, Any]],
    edges: list[list[int]],
    colocated: list[list[int]] | None = None,
) -> Instance:
    k, names = len(made[0]["times"]), [f"v{v}" for v in range(len(made))]
    flying = [2 * sum(each["outputs"]) for each in made]
    # Where little lies between vertices at a time, what does decides.
    total = sum(each["memory"] for each in made)
    total += sum(flying) if colocated is None else max(flying)
    direct = rng.random() < 0.5
    document: dict[str, Any] = {
        "format": "optpart-instance/1",
        "name": name,
        "vertices": [
            {"name": name, "ops": 1, **{key: each[key] for key in ("memory", "outputs")}}
            for name, each in zip(names, made, strict=True)
        ],
        "durations": [each["times"] for each in made],
        "edges": [[names[u], names[v], output] for u, v, output in edges],
        "devices": [
            {"name": f"d{d}", "memory": int(total * rng.uniform(0.3, 0.9)) + 1} for d in range(k)
        ],
        "bandwidth": [[None if d == e else _rate(rng, direct) for e in range(k)] for d in range(k)],
        "latency": [
            [0 if d == e or direct else int(rng.integers(0, 9)) for e in range(k)] for d in range(k)
        ],
        "model": {
            "memory": ["estimate", "refcount", "refcount", "none"][int(rng.integers(4))],
            "release": "end" if rng.random() < 0.7 else "start",
        },
    }
    document["colocation"] = [[names[v] for v in pair] for pair in colocated or ()]
    if rng.random() < 0.3:
        key = "colocation" if rng.random() < 0.5 else "separation"
        document[key] = [*document.get(key, ()), [names[0], names[-1]]]
    return from_dict(document)


def _kind(rng: np.random.Generator, k: int) -> dict[str, Any]:
    times: list[int | None] = [int(rng.integers(0, 7)) for _ in range(k)]
    if rng.random() < 0.15:
        times[int(rng.integers(1, k))] = None
    return {
        "times": times,
        "memory": int(rng.integers(0, 5)),
        "outputs": [int(rng.integers(0, 4))],
    }


def _rate(rng: np.random.Generator, direct: bool) -> float | None:
    return 1.0 if direct else [0, 0.5, 1, 2, None][int(rng.integers(5))]
