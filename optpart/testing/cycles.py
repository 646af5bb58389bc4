"""Random paths in which some vertices repeat in turn, as in language models."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from optpart.interop.formats.native import from_dict
from optpart.problem.instance import Instance


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
    names = [f"v{v}" for v in range(count)]
    needs = [made[kind]["memory"] + 2 * made[kind]["outputs"][0] for kind in kinds]
    total, direct = sum(needs), rng.random() < 0.5
    document: dict[str, Any] = {
        "format": "optpart-instance/1",
        "name": f"cycles-{seed}",
        "vertices": [
            {"name": name, "ops": 1, **{key: made[kind][key] for key in ("memory", "outputs")}}
            for name, kind in zip(names, kinds, strict=True)
        ],
        "durations": [made[kind]["times"] for kind in kinds],
        "edges": [[u, v, 0] for u, v in pairwise(names)],
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
    if rng.random() < 0.3:
        key = "colocation" if rng.random() < 0.5 else "separation"
        document[key] = [[names[0], names[-1]]]
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
