"""Devices that train together, in nanoseconds and bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

from optpart.base.errors import InputError
from optpart.problem.cluster import Cluster
from optpart.problem.rational import RationalArray


@dataclass(frozen=True)
class TrainingCluster:
    """A cluster with what strategies need to know besides.

    Attributes
    ----------
    cluster : Cluster
        Memory in bytes, bandwidth in bytes per nanosecond, latency in nanoseconds. Between servers,
        the bandwidth of a pair is the least on its route.
    kinds : tuple of str, length k
        Kind of each device, by which a :class:`~optpart.applications.training.graph.TrainingGraph`
        knows times.
    servers : tuple of int, length k
        Server that each device is in.
    memory_bandwidth : tuple of (Fraction or None), length k
        Bytes per nanosecond that the device reads or writes in its own memory; ``None`` takes no
        time for what only copies and adds (Split, Concat, AddN).
    """

    cluster: Cluster
    kinds: tuple[str, ...]
    servers: tuple[int, ...]
    memory_bandwidth: tuple[Fraction | None, ...]

    def __post_init__(self) -> None:
        for name in ("kinds", "servers", "memory_bandwidth"):
            if len(getattr(self, name)) != len(self.cluster):
                raise InputError(
                    name,
                    f"{len(getattr(self, name))} entries",
                    f"give {len(self.cluster)}, one per device",
                )

    def __len__(self) -> int:
        return len(self.cluster)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the devices."""
        return self.cluster.names

    @cached_property
    def latency(self) -> tuple[tuple[Fraction, ...], ...]:
        """Nanoseconds before a transfer's first byte arrives, k × k."""
        matrix, k = self.cluster.latency, len(self)
        return tuple(tuple(matrix[d, e] for e in range(k)) for d in range(k))

    @cached_property
    def rate(self) -> tuple[tuple[Fraction | None, ...], ...]:
        """Bytes per nanosecond, k × k; ``None`` is infinite, 0 is no link."""
        cluster, k = self.cluster, len(self)
        return tuple(
            tuple(
                None if d == e or cluster.infinite[d, e] else cluster.bandwidth[d, e]
                for e in range(k)
            )
            for d in range(k)
        )

    def with_links(
        self, links: Mapping[tuple[int, int], tuple[Fraction, Fraction | None]]
    ) -> TrainingCluster:
        """Return a cluster with other latencies and rates (``None`` is infinite) of some pairs."""
        known, k = self.cluster, len(self)
        rates, latencies = known.bandwidth.fractions(), known.latency.fractions()
        infinite = known.infinite.copy()
        for (d, e), (latency, rate) in links.items():
            latencies[d * k + e] = latency
            infinite[d, e] = rate is None
            rates[d * k + e] = rate or Fraction(0)
        changed = replace(
            known,
            bandwidth=RationalArray.from_fractions(rates).reshape(k, k),
            latency=RationalArray.from_fractions(latencies).reshape(k, k),
            infinite=infinite,
        )
        return replace(self, cluster=changed)

    def linked(self, sender: int, receiver: int) -> bool:
        """Return whether tensors can go from one device to another."""
        return bool(self.cluster.linked[sender, receiver])

    def transfer(self, sender: int, receiver: int, size: Fraction) -> Fraction:
        """Return the nanoseconds of a transfer over an idle link; there must be one."""
        if sender == receiver:
            return Fraction(0)
        if not self.linked(sender, receiver):
            names = self.names
            raise InputError(
                f"{names[sender]} → {names[receiver]}",
                "no link",
                "give one, or a strategy that does not need it",
            )
        rate = self.rate[sender][receiver]
        return self.latency[sender][receiver] + (0 if rate is None else size / rate)

    def copying(self, device: int, size: Fraction) -> Fraction:
        """Return the nanoseconds that a device reads and writes a tensor in its own memory."""
        rate = self.memory_bandwidth[device]
        return Fraction(0) if rate is None else 2 * size / rate

    def kind_indices(self, kinds: Sequence[str]) -> tuple[int, ...]:
        """Return, by device, the place of its kind among the kinds of a training graph."""
        known = {kind: i for i, kind in enumerate(kinds)}
        for name, kind in zip(self.names, self.kinds, strict=True):
            if kind not in known:
                raise InputError(
                    name,
                    f"no times are known for its kind {kind!r}",
                    f"the graph has {', '.join(kinds)}",
                )
        return tuple(known[kind] for kind in self.kinds)
