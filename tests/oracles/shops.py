"""Job shops: every operation has its one machine, and machines differ in speed."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

from optpart import Cluster, Device, GraphBuilder, Instance

#: One operation: its machine and how long it takes there.
Operation = tuple[int, Fraction]
Job = Sequence[Operation]

SPEEDS = (1, 3, 2, 5)


def job_shop(jobs: Sequence[Job], machines: int, name: str) -> Instance:
    """Operations of a job follow one another at once: control dependencies, no transfers."""
    speeds = [SPEEDS[d % len(SPEEDS)] for d in range(machines)]
    builder = GraphBuilder()
    for j, job in enumerate(jobs):
        for i, (d, time) in enumerate(job):
            builder.vertex(f"j{j}.{i}", time * speeds[d], devices=[f"d{d}"])
        for i, _ in enumerate(pairwise(job)):
            builder.edge(f"j{j}.{i}", f"j{j}.{i + 1}", None)
    devices = [Device(f"d{d}", speed) for d, speed in enumerate(speeds)]
    return Instance(builder.build(), Cluster.of(devices), name=name)
