"""Training clusters from cluster files, and the testbeds.

The kind of a device is the name of its figures, such as ``v100-16gb``, or else its ``type``; its
memory's bandwidth is that of its figures. Every device of several names its ``server``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from importlib.resources import files
from pathlib import Path

from optpart.applications.training.cluster import TrainingCluster
from optpart.base.errors import FaultsOf, InputError
from optpart.interop.devices import library
from optpart.interop.devices.named import NamedCluster
from optpart.interop.devices.spec import DeviceSpec, Spec
from optpart.interop.formats import cluster_toml
from optpart.problem.rational import shown

_FOLDER = "optpart.applications.training.clusters"


def read(path: str | Path) -> NamedCluster:
    """Read a cluster file, or the testbed of a name; see :func:`testbeds`."""
    if isinstance(path, str) and path in shipped():
        text = files(_FOLDER).joinpath(f"{path}.toml").read_text(encoding="utf-8")
        with FaultsOf(path):
            return cluster_toml.loads_named(text)
    return cluster_toml.read_named(path)


def shipped() -> tuple[str, ...]:
    """Return the names of the clusters that the package brings."""
    names = (path.name for path in files(_FOLDER).iterdir())
    return tuple(sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml")))


def training_cluster(named: NamedCluster) -> TrainingCluster:
    """Return a cluster that trains.

    Every device of several names its server, all have figures or a type, and those of one kind
    have the same figures; otherwise it is an :class:`InputError`.
    """
    cluster = named.cluster
    if len(cluster) > 1:
        for d, name in enumerate(cluster.names):
            if not named.servers or named.servers[d] is None:
                raise InputError(
                    f"device {shown(name)}",
                    "names no server, so nobody knows which devices share one",
                    'give every [[device]] a server = "NAME"',
                )
    servers = named.servers or (None,)
    number = {server: i for i, server in enumerate(dict.fromkeys(servers))}
    figures(named)
    return TrainingCluster(
        cluster,
        tuple(_kind(named, d) for d in range(len(cluster))),
        tuple(number[server] for server in servers),
        tuple(spec.bandwidth if isinstance(spec, DeviceSpec) else None for spec in named.specs),
    )


def remarks(named: NamedCluster) -> tuple[str, ...]:
    """Say what :func:`training_cluster` takes for granted, one sentence each."""
    found = []
    if not named.fixed_units:
        found.append("Cluster: its numbers count as nanoseconds and bytes.")
    names = [
        name
        for name, spec in zip(named.cluster.names, named.specs, strict=True)
        if not isinstance(spec, DeviceSpec)
    ]
    if names:
        found.append(
            f"{', '.join(names)}: no bandwidth of memory is known, so that splitting, "
            "concatenating and adding tensors takes no time."
        )
    return tuple(found)


def figures(named: NamedCluster) -> Mapping[str, Spec]:
    """Return what is known of each kind of device that has figures.

    Two devices of one kind may differ in their memory only.
    """
    found: dict[str, tuple[str, Spec]] = {}
    for d, (name, spec) in enumerate(zip(named.cluster.names, named.specs, strict=True)):
        if spec is None:
            continue
        alike = replace(spec, memory=None, type=None)
        first, known = found.setdefault(_kind(named, d), (name, alike))
        if known != alike:
            raise InputError(
                f"device {shown(name)}",
                f"other figures than {shown(first)}, of the same kind",
                "give it a name and figures of its own, without `of`",
            )
    return {kind: spec for kind, (_, spec) in found.items()}


def _kind(named: NamedCluster, device: int) -> str:
    spec, kind = named.specs[device], named.cluster.types[device]
    if spec is not None:
        return spec.name
    if kind is None:
        raise InputError(
            f"device {shown(named.cluster.names[device])}",
            "neither figures nor a type tell its kind",
            'give of = "NAME", or a type',
        )
    return kind


def with_bandwidth(
    cluster: TrainingCluster, *, within: Fraction | None = None, between: Fraction | None = None
) -> TrainingCluster:
    """Return a cluster with other bandwidths, in bytes per nanosecond; ``None`` keeps them.

    Parameters
    ----------
    within, between : Fraction, optional
        Of links between devices of one server, and of two. Pairs without a link stay without.
    """
    changed, k = {}, len(cluster)
    for d in range(k):
        for e in range(k):
            rate = within if cluster.servers[d] == cluster.servers[e] else between
            if d != e and rate is not None and cluster.linked(d, e):
                changed[d, e] = cluster.latency[d][e], rate
    return cluster.with_links(changed)


def specs_of(*kinds: str) -> Mapping[str, Spec]:
    """Return the figures of devices of the library, by name."""
    return {kind: library.device(kind, "kinds") for kind in kinds}
