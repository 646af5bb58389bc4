"""Strategies: the devices of each operation, and the synchronisation of gradients."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal

from optpart.applications.training.cluster import TrainingCluster
from optpart.applications.training.graph import TrainingGraph
from optpart.base.errors import InputError
from optpart.base.showing import Shown
from optpart.problem.rational import shown

#: Synchronisation of gradients: an AllReduce, a parameter server (its device), or ``None`` on a
#: single device.
Sync = Literal["allreduce"] | int | None

#: Samples as a half-open part of [0, 1).
Interval = tuple[Fraction, Fraction]

ALL: Interval = (Fraction(0), Fraction(1))


def overlap(one: Interval, two: Interval) -> Interval | None:
    """Return the samples that two intervals share; ``None`` if there are none."""
    first, last = max(one[0], two[0]), min(one[1], two[1])
    return (first, last) if first < last else None


@dataclass(frozen=True)
class Decision:
    """Replicas of one group of operations, and their synchronisation ([G] §4.1.2).

    Attributes
    ----------
    replicas : tuple of int, length k
        Replicas on each device, each of an equal part of the batch. A single device with replicas
        is model parallelism; more are data parallelism.
    sync : "allreduce", int or None
        An AllReduce, the device that is the parameter server (it has a replica), or ``None`` on a
        single device.
    """

    replicas: tuple[int, ...]
    sync: Sync = None

    def __post_init__(self) -> None:
        if any(count < 0 for count in self.replicas) or not any(self.replicas):
            raise InputError(
                "replicas", "negative or none", "give counts ≥ 0, at least one of them 1"
            )
        if len(self.devices) == 1:
            if self.sync is not None:
                raise InputError(
                    "sync", "given for a single device", "leave it out: there is nothing to sum"
                )
        elif self.sync is None:
            raise InputError("sync", "missing", "give allreduce or a parameter server")
        elif self.sync != "allreduce" and self.sync not in self.devices:
            raise InputError(
                "sync", "a parameter server without a replica", "choose one that has one"
            )

    @classmethod
    def on(cls, device: int, k: int) -> Decision:
        """Place a group on one of ``k`` devices (model parallelism)."""
        return cls(tuple(int(d == device) for d in range(k)))

    @cached_property
    def devices(self) -> tuple[int, ...]:
        """Devices with at least one replica, in the order of the cluster."""
        return tuple(d for d, count in enumerate(self.replicas) if count)

    @cached_property
    def total(self) -> int:
        """Number of replicas."""
        return sum(self.replicas)

    @cached_property
    def shares(self) -> tuple[Fraction, ...]:
        """Part of the batch that each device computes; they sum to 1."""
        return tuple(Fraction(count, self.total) for count in self.replicas)

    @cached_property
    def intervals(self) -> dict[int, Interval]:
        """Samples of each device, in the order of the cluster."""
        found: dict[int, Interval] = {}
        first = Fraction(0)
        for device in self.devices:
            last = first + self.shares[device]
            found[device] = (first, last)
            first = last
        return found


@dataclass(frozen=True)
class Strategy(Shown):
    """Groups of operations with a decision each.

    Attributes
    ----------
    batch : int
        Samples of one iteration.
    groups : tuple of tuple of int
        Every operation is in exactly one group.
    decisions : tuple of Decision
        One per group.
    """

    batch: int
    groups: tuple[tuple[int, ...], ...]
    decisions: tuple[Decision, ...]

    def __repr__(self) -> str:
        devices = {d for decision in self.decisions for d in decision.devices}
        return (
            f"<Strategy: batch {self.batch:,}, {len(self.groups):,} groups on "
            f"{len(devices):,} devices>"
        )

    def of_operations(self, n: int) -> tuple[Decision, ...]:
        """Return the decision of every operation of a graph of ``n``."""
        pairs = zip(self.groups, self.decisions, strict=True)
        of = {o: decision for group, decision in pairs for o in group}
        return tuple(of[o] for o in range(n) if o in of)

    def check(self, graph: TrainingGraph, cluster: TrainingCluster) -> None:
        """Check that the strategy fits a graph and a cluster.

        See :func:`check_groups`. Every decision is for the devices of the cluster, the batch has a
        sample for each replica, and the graph has times for every kind of device.
        """
        cluster.kind_indices(graph.kinds)
        check_groups(graph, self.groups)
        if len(self.decisions) != len(self.groups):
            raise InputError(
                "groups",
                f"{len(self.decisions)} decisions",
                f"give {len(self.groups)}, one per group",
            )
        if self.batch < 1:
            raise InputError("batch", f"{self.batch} samples", "give at least one")
        for g, decision in enumerate(self.decisions):
            if len(decision.replicas) != len(cluster):
                raise InputError(
                    f"groups[{g}].replicas",
                    f"{len(decision.replicas)} counts",
                    f"give {len(cluster)}, one per device",
                )
            if decision.total > self.batch:
                raise InputError(
                    f"groups[{g}]",
                    f"{decision.total} replicas for a batch of {self.batch}",
                    "give fewer replicas or a larger batch",
                )


def check_groups(graph: TrainingGraph, groups: Sequence[Iterable[int]]) -> None:
    """Check that groups partition the operations and keep those together that must be.

    The error names the first operation in no or in two groups, a parameter used in two, or a
    gradient made in one and applied in another.
    """
    home: dict[int, int] = {}
    for g, group in enumerate(groups):
        for o in group:
            if not 0 <= o < len(graph):
                raise InputError(
                    f"groups[{g}]", f"no operation {o}", f"give numbers from 0 to {len(graph) - 1}"
                )
            if o in home:
                name = shown(graph.operations[o].name)
                raise InputError(
                    f"groups[{g}]", f"{name} is in groups[{home[o]}], too", "keep it in one of them"
                )
            home[o] = g
    for o, operation in enumerate(graph.operations):
        if o not in home:
            raise InputError("groups", f"{shown(operation.name)} is in none", "add it to one")
    for parameter in graph.parameters:
        places = sorted({home[user] for user in parameter.users})
        if len(places) > 1:
            raise InputError(
                "groups",
                f"users of {shown(parameter.name)} are in groups {places[0]} and {places[1]}",
                "put them into one group",
            )
    for edge in graph.edges:
        if graph.sums(edge) and home[edge.producer] != home[edge.consumer]:
            one, two = (graph.operations[o].name for o in (edge.producer, edge.consumer))
            raise InputError(
                "groups",
                f"{shown(one)} sums over samples what {shown(two)} in another group applies",
                "put them into one group",
            )
