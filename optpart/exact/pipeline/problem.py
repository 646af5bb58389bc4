"""The problem of splitting a graph into the stages of a pipeline."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from optpart.base.choices import choice
from optpart.base.errors import ArgumentError, UnsupportedError
from optpart.exact.symmetry import interchangeable_devices
from optpart.problem.instance import Instance

_ZERO = Fraction(0)

#: Most vertices times devices.
MOST_TIMES = 10**6


@dataclass(frozen=True)
class Tensor:
    """An output whose transfers keep both ends busy.

    Attributes
    ----------
    producer : int
    consumers : tuple of int
    cost : Fraction
        Time that a device spends to send it (once) or to receive it (once).
    """

    producer: int
    consumers: tuple[int, ...]
    cost: Fraction


@dataclass(frozen=True)
class Ring:
    """The exchange of weights among a stage's replicas: a ring all-reduce over links alike.

    Attributes
    ----------
    per_unit, latency : Fraction
        Time per unit of memory, and per message, between neighbours.
    """

    per_unit: Fraction = _ZERO
    latency: Fraction = _ZERO

    def time(self, weights: Fraction, replicas: int) -> Fraction:
        """Return the time to sum ``weights`` over the replicas: ``2(r − 1)`` messages of a share.

        Each of ``r`` replicas sends ``2(r − 1)`` messages of ``weights / r``, one after another.
        """
        if not weights:
            return _ZERO
        return 2 * (replicas - 1) * (self.latency + self.per_unit * weights / replicas)


@dataclass(frozen=True, eq=False)
class Pipeline:
    """A graph to be split into stages, one after another, each on a device or on replicas.

    An edge never leads from a stage to an earlier one. The load of a device of a stage with ``r``
    replicas is ``(run times + transfers) / r``, plus the time to synchronise weights if ``r > 1``.
    The bottleneck is the largest load, the time per item in steady state.

    Attributes
    ----------
    vertices, devices : tuple of str
        Names.
    alike : tuple of int, one per device
        Devices of equal numbers may take each other's place, and replicate a stage.
    edges : tuple of (int, int)
        Which vertex may not be in a later stage than which other.
    times : tuple of rows, n × k
        Run times; ``None`` where a vertex cannot run.
    need, capacity : tuple of Fraction
        Memory per vertex and per device (``None`` if unlimited).
    together : tuple of tuple of int
        Groups of vertices that share a stage.
    apart : tuple of (int, int)
        Pairs of vertices that do not.
    tensors : tuple of Tensor
        Outputs whose transfers count; none if transfers overlap with everything else.
    pays : tuple of bool, one per device
        Whether transfers keep the device busy.
    weights : tuple of Fraction
        Per vertex, what the replicas of a stage exchange.
    rings : tuple of (Ring or None), one per class of devices
        ``None`` if devices of the class are not linked.
    sha256 : str
        Identity of what the problem was read from.
    """

    name: str
    vertices: tuple[str, ...]
    devices: tuple[str, ...]
    alike: tuple[int, ...]
    edges: tuple[tuple[int, int], ...]
    times: tuple[tuple[Fraction | None, ...], ...]
    need: tuple[Fraction, ...]
    capacity: tuple[Fraction | None, ...]
    together: tuple[tuple[int, ...], ...]
    apart: tuple[tuple[int, int], ...]
    tensors: tuple[Tensor, ...]
    pays: tuple[bool, ...]
    weights: tuple[Fraction, ...]
    rings: tuple[Ring | None, ...]
    sha256: str

    @property
    def classes(self) -> list[list[int]]:
        """The devices of each class."""
        members: list[list[int]] = [[] for _ in range(max(self.alike, default=-1) + 1)]
        for d, number in enumerate(self.alike):
            members[number].append(d)
        return members


def pipeline_of(
    instance: Instance, *, synchronise: bool = False, rate: Fraction | None = None
) -> Pipeline:
    """Return the problem of splitting an instance into stages whose transfers load nothing.

    Parameters
    ----------
    synchronise : bool
        Whether replicas exchange the resident memory of their vertices, as in training, over the
        links between them.
    rate : Fraction, optional
        Size per time at which they exchange it instead, whatever the links.

    Raises
    ------
    UnsupportedError
        If transfers are counted (a model other than ``delay``), two devices are not linked, or
        memory depends on time.
    """
    if instance.model.communication != "delay":
        raise UnsupportedError(
            "model.communication",
            f"a plan with replicas counts no transfers, but the model is "
            f"{instance.model.communication}",
            "use delay, or solve with --objective bottleneck",
        )
    if not all_linked(instance):
        raise UnsupportedError(
            "bandwidth", "some devices are not linked", "use solve with --objective bottleneck"
        )
    return relaxed_pipeline(instance, synchronise=synchronise, rate=rate)


def relaxed_pipeline(
    instance: Instance, *, synchronise: bool = False, rate: Fraction | None = None
) -> Pipeline:
    """Return the same for any instance, ignoring transfers and missing links."""
    graph, n, k = instance.graph, instance.vertices, instance.devices
    capacity = limits(instance)
    if n * k > MOST_TIMES:
        raise UnsupportedError(
            "graph", f"has {n:,} vertices on {k} devices, which are too many", "use another method"
        )
    allowed = instance.allowed[instance.unit_of]
    times = tuple(
        tuple(instance.duration(v, d) if allowed[v, d] else None for d in range(k))
        for v in range(n)
    )
    columns = [(*(row[d] for row in times), capacity[d]) for d in range(k)]
    alike = _numbered(columns)
    if synchronise:
        alike = _numbered([(of, _linked_like(instance, alike, d)) for d, of in enumerate(alike)])
    weighs = synchronise or rate is not None
    weights = tuple(graph.memory.fractions()) if weighs else (_ZERO,) * n
    rings = _rings(instance, alike) if rate is None else (Ring(1 / rate),) * (max(alike) + 1)
    return Pipeline(
        name=instance.name,
        vertices=graph.names,
        devices=instance.cluster.names,
        alike=alike,
        edges=tuple(graph.pairs()),
        times=times,
        need=vertex_memory(instance),
        capacity=capacity,
        together=tuple(tuple(unit.tolist()) for unit in instance.units if len(unit) > 1),
        apart=graph.separation,
        tensors=(),
        pays=(False,) * k,
        weights=weights,
        rings=rings,
        sha256=_digest(instance, synchronise, rate),
    )


def limits(instance: Instance) -> tuple[Fraction | None, ...]:
    """Return the capacity of each device; raise an error if memory depends on time."""
    capacity = instance.cluster.memory
    if instance.model.memory == "none":
        return (None,) * len(capacity)
    if instance.model.memory != "estimate" and any(limit is not None for limit in capacity):
        raise UnsupportedError(
            "model.memory",
            f"a pipeline has no defined memory under {instance.model.memory}",
            "use memory none or estimate",
        )
    return tuple(capacity)


def vertex_memory(instance: Instance) -> tuple[Fraction, ...]:
    """Return the memory of each vertex under ``estimate``; 0 under other models."""
    graph = instance.graph
    if instance.model.memory != "estimate":
        return (_ZERO,) * instance.vertices
    need, size = graph.memory.fractions(), graph.tensor_size.fractions()
    for tensor, v in enumerate(graph.tensor_vertex.tolist()):
        need[v] += size[tensor]
    for tensor, v in zip(graph.edge_tensor.tolist(), graph.edge_target.tolist(), strict=True):
        need[v] += size[tensor]
    return tuple(need)


def all_linked(instance: Instance) -> bool:
    """Return whether every tensor can cross between all devices."""
    measured = instance.graph.tensor_delay.values()
    barred = any(delay is None for matrix in measured for row in matrix for delay in row)
    return not barred and bool(instance.cluster.linked.all())


def device_numbers(pipeline: Pipeline, names: Sequence[str] | None) -> tuple[int, ...]:
    """Convert an order of devices from names to numbers; ``None`` is no order."""
    if names is None:
        return ()
    place, known = "device_order", pipeline.devices
    for i, name in enumerate(names):
        if name not in known:
            raise ArgumentError(place, f"no device {name!r}", choice(name, known))
        if name in names[:i]:
            raise ArgumentError(place, f"names {name!r} twice", "name every device once")
    if not names:
        raise ArgumentError(place, "names no device", "name the devices that may be used, in order")
    return tuple(known.index(name) for name in names)


def classes_of(instance: Instance) -> list[list[int]]:
    """Return all devices by classes of interchangeable ones, in the order of their first."""
    classes = interchangeable_devices(instance)
    known = {d for members in classes for d in members}
    return sorted([*classes, *([d] for d in range(instance.devices) if d not in known)])


def _numbered(keys: Sequence[Hashable]) -> tuple[int, ...]:
    """Number keys, equal ones alike, in the order of their first."""
    numbers = {key: i for i, key in enumerate(dict.fromkeys(keys))}
    return tuple(numbers[key] for key in keys)


def _linked_like(instance: Instance, alike: Sequence[int], d: int) -> int:
    """Return the first device of a class whose exchange with another keeps the links of the class.

    Such exchanges compose, so all devices for which this is the same one are linked alike.
    """
    cluster = instance.cluster
    members = np.flatnonzero(np.array(alike) == alike[d])
    tables = [cluster.bandwidth.numerators, cluster.infinite, cluster.latency.numerators]

    def keeps_links(first: int) -> bool:
        others = members[members != first]
        exchanged = np.where(others == d, first, others)
        return all(
            np.array_equal(table[first, others], table[d, exchanged])
            and np.array_equal(table[others, first], table[exchanged, d])
            for table in tables
        )

    return next(first for first in members.tolist() if keeps_links(first))


def _rings(instance: Instance, alike: tuple[int, ...]) -> tuple[Ring | None, ...]:
    cluster = instance.cluster
    rings: list[Ring | None] = []
    for number in range(max(alike, default=-1) + 1):
        members = [d for d, of in enumerate(alike) if of == number]
        if len(members) < 2:
            rings.append(Ring())
            continue
        one, other = members[:2]
        if not cluster.linked[one, other]:
            rings.append(None)
            continue
        free = bool(cluster.infinite[one, other])
        rate = _ZERO if free else 1 / cluster.bandwidth[one, other]
        rings.append(Ring(rate, cluster.latency[one, other]))
    return tuple(rings)


def _digest(instance: Instance, synchronise: bool, rate: Fraction | None) -> str:
    if not synchronise and rate is None:
        return instance.sha256
    asked = "links" if rate is None else str(rate)
    return hashlib.sha256(f"{instance.sha256} {asked}".encode()).hexdigest()
