"""The time of an AllReduce, and the transfers that it consists of ([G] §3.4)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Literal, NamedTuple

from optpart.applications.training.cluster import TrainingCluster
from optpart.base.errors import InputError


@dataclass(frozen=True)
class AllReduce:
    """The better structure of an AllReduce, and its nanoseconds over idle links.

    It is one ring over all devices, or rings inside servers and one over their first devices.
    """

    structure: Literal["ring", "hierarchical"]
    time: Fraction


class Chunk(NamedTuple):
    """The work of one device in one step of a ring: it holds one chunk more."""

    step: int  # 0 before the first transfer; 1 … n−1 add what arrives, n … 2(n−1) replace by it
    position: int  # of the device in the ring
    chunk: int  # which of the n it then holds and, unless the step is the last, sends on


def ring_order(cluster: TrainingCluster, devices: Iterable[int]) -> tuple[int, ...]:
    """Return devices in the order of the cluster, those of one server side by side."""
    first = {server: d for d, server in reversed(list(enumerate(cluster.servers)))}
    return tuple(sorted(set(devices), key=lambda d: (first[cluster.servers[d]], d)))


def ring_time(cluster: TrainingCluster, ring: Sequence[int], size: Fraction) -> Fraction | None:
    """Return the nanoseconds of an AllReduce along a ring; ``None`` if a link is missing.

    With n devices, largest latency λ and least rate b: ``2(n−1)(λ + size/(n·b))``.
    """
    n = len(ring)
    if n < 2:
        return Fraction(0)
    pairs = [*pairwise(ring), (ring[-1], ring[0])]
    if not all(cluster.linked(d, e) for d, e in pairs):
        return None
    latency = max(cluster.latency[d][e] for d, e in pairs)
    rates = [rate for d, e in pairs if (rate := cluster.rate[d][e]) is not None]
    step = latency + (size / (n * min(rates)) if rates else 0)
    return 2 * (n - 1) * step


def hierarchical_time(
    cluster: TrainingCluster, devices: Iterable[int], size: Fraction
) -> Fraction | None:
    """Return the nanoseconds of rings inside servers and one over their first devices.

    The slowest server counts. ``None`` if a link is missing.
    """
    servers: dict[int, list[int]] = {}
    for d in ring_order(cluster, devices):
        servers.setdefault(cluster.servers[d], []).append(d)
    inside = [ring_time(cluster, ring, size) for ring in servers.values()]
    between = ring_time(cluster, [ring[0] for ring in servers.values()], size)
    known = [time for time in inside if time is not None]
    return None if between is None or len(known) < len(inside) else max(known) + between


def allreduce(cluster: TrainingCluster, devices: Iterable[int], size: Fraction) -> AllReduce:
    """Choose the better structure of an AllReduce of ``size`` bytes; the ring if they are equal.

    Raises
    ------
    InputError
        If links are missing for both.
    """
    ring = ring_order(cluster, devices)
    flat = ring_time(cluster, ring, size)
    nested = hierarchical_time(cluster, ring, size)
    if flat is not None and (nested is None or flat <= nested):
        return AllReduce("ring", flat)
    if nested is not None:
        return AllReduce("hierarchical", nested)
    raise missing_link(cluster, ring)


def missing_link(cluster: TrainingCluster, ring: Sequence[int]) -> InputError:
    """Return the error for an AllReduce along a ring that lacks a link."""
    pairs = [*pairwise(ring), (ring[-1], ring[0])]
    d, e = next((d, e) for d, e in pairs if not cluster.linked(d, e))
    names = cluster.names
    return InputError(
        f"allreduce over {', '.join(names[i] for i in ring)}",
        f"no link {names[d]} → {names[e]}",
        "give one, or synchronise at a parameter server",
    )


def ring_chunks(n: int) -> list[Chunk]:
    """List what every device of a ring does, step by step.

    Device ``i`` sends chunk ``i`` first. What ``(step, i)`` holds goes to device ``i + 1``, which
    holds the same chunk after step ``step + 1``; after step n−1 a chunk is complete.
    """
    return [
        Chunk(step, position, (position - step) % n)
        for step in range(2 * n - 1)
        for position in range(n)
    ]
