"""A cluster whose devices are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from optpart.base.errors import InputError
from optpart.interop.devices.spec import Spec
from optpart.problem.cluster import Cluster


@dataclass(frozen=True)
class NamedCluster:
    """A cluster, and what is known of each of its devices.

    Attributes
    ----------
    cluster : Cluster
        With at least one spec or named link in nanoseconds, bytes, and both per nanosecond;
        otherwise in units of the user's choice.
    specs : tuple of (DeviceSpec, FittedSpec or None), length k
        ``None`` for devices that give their speed only.
    fixed_units : bool
        Whether it is in nanoseconds and bytes.
    servers : tuple of (str or None), length k
        Server that each device is in; ``None`` where none is named, ``()`` if none is at all.
    computes_on : tuple of (int or None), length k
        The device that computes with what each holds; ``None`` if it does so itself, ``()`` if all
        do.
    """

    cluster: Cluster
    specs: tuple[Spec | None, ...]
    fixed_units: bool
    servers: tuple[str | None, ...] = ()
    computes_on: tuple[int | None, ...] = ()

    def __post_init__(self) -> None:
        if len(self.specs) != len(self.cluster):
            raise InputError(
                "specs", f"{len(self.specs)} entries", f"give {len(self.cluster)}, one per device"
            )
        for part, given in (("servers", self.servers), ("computes_on", self.computes_on)):
            if given and len(given) != len(self.cluster):
                remedy = f"give {len(self.cluster)}, one per device"
                raise InputError(part, f"{len(given)} entries", remedy)

    def only(self, kept: Sequence[int]) -> NamedCluster:
        """Return the cluster of some of the devices, by number, and the links between them."""
        on = (self.computes_on[d] for d in kept) if self.computes_on else ()
        return NamedCluster(
            self.cluster.only(kept),
            tuple(self.specs[d] for d in kept),
            self.fixed_units,
            tuple(self.servers[d] for d in kept) if self.servers else (),
            tuple(None if d is None else kept.index(d) for d in on),
        )

    @classmethod
    def unnamed(cls, cluster: Cluster) -> NamedCluster:
        """Take a cluster of which nothing is known but its speeds."""
        return cls(cluster, (None,) * len(cluster), fixed_units=False)
