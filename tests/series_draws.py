"""Random instances of blocks in a row, and records in series at any prices."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import numpy as np

from optpart import Cluster, Device, GraphBuilder, Instance, Model
from optpart.certificates import check
from optpart.certificates.check import (
    Problem,
    RejectedError,
    Series,
    Windows,
    refute_in_series,
)
from optpart.certificates.series import priced
from optpart.interop.formats import native

Record = dict[str, Any]


def problem_of(instance: Instance) -> Problem:
    return Problem(check.read_json(native.dumps(instance).encode(), "instance"))


def record_of(windows: Windows, *prices: list[Fraction]) -> Record:
    """Return the record with exact potentials at some prices; by default, memory is free."""
    free = [Fraction(0)] * len(windows.problem.devices)
    sets = [priced(Series(windows), values) for values in prices or [free]]
    return json.loads(json.dumps({"sets": sets}))


def accepted(windows: Windows, record: Record) -> bool:
    try:
        refute_in_series(windows, record)
    except RejectedError as error:
        if "does not exclude" not in str(error):
            raise
        return False
    return True


def drawn_prices(rng: np.random.Generator, windows: Windows) -> list[Fraction]:
    """Draw prices of which the whole capacity costs up to about twice the makespan."""
    return [
        Fraction(int(rng.integers(0, 3) * rng.integers(0, windows.horizon + 2)), 1) / max(1, limit)
        if limit is not None
        else Fraction(0)
        for limit in windows.problem.capacity
    ]


def blocks(rng: np.random.Generator, memory: str) -> Instance:
    """Draw blocks of one to three parallel vertices in a row, with edges that jump over blocks."""
    k = int(rng.integers(2, 4))
    builder = GraphBuilder()
    names: list[str] = []
    before: list[str] = []
    while len(names) < 6:
        width = int(rng.choice([1, 1, 2, 3])) if before else 1
        here = [f"v{len(names) + i}" for i in range(width)]
        for name in here:
            kind = "CPU" if rng.random() < 0.2 else None
            builder.vertex(
                name,
                int(rng.integers(0, 7)),
                memory=int(rng.integers(0, 3)),
                outputs=[int(rng.integers(0, 4))],
                device_type=kind,
            )
            for other in before:
                builder.edge(other, name)
            for other in names[: -len(before) or None]:
                if rng.random() < 0.15:
                    builder.edge(other, name)
        names += here
        before = here
    a, b, c, e = (str(name) for name in rng.choice(names, 4, replace=False))
    if rng.random() < 0.4:
        builder.colocate(a, b)
    if rng.random() < 0.4:
        builder.separate(c, str(rng.choice([a, e])))
    devices = [
        Device(f"d{d}", int(rng.integers(1, 3)), type="CPU" if d else "GPU") for d in range(k)
    ]
    graph = builder.build()
    cluster = Cluster.of(devices, 1)
    instance = Instance(graph, cluster, Model(memory=memory))  # type: ignore[arg-type]
    if memory == "none":
        return instance
    everything = int(sum(instance.static_memory.fractions()))
    limits = [
        None if rng.random() < 0.2 else everything * int(rng.integers(20, 90)) // 100
        for _ in range(k)
    ]
    devices = [
        Device(device.name, device.speed, type=device.type, memory=limit)
        for device, limit in zip(devices, limits, strict=True)
    ]
    return Instance(graph, Cluster.of(devices, 1), instance.model)
