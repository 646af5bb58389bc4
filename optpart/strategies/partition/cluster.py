"""Clustering by random contraction: the best of many tries, one cluster per device ([B] §4.4)."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from optpart.base.clock import is_time_up
from optpart.base.errors import InputError
from optpart.kernels.compiled import arrays, inner, kernel
from optpart.kernels.struct import IntMatrix, Longs, Struct
from optpart.problem.instance import Instance
from optpart.strategies.base import Partition, partition_of
from optpart.strategies.partition.ranks import devices_by_speed
from optpart.strategies.partition.unit_graph import (
    UnitGraph,
    by_first_vertex,
    place_preferred,
    unit_graph,
)

Version = Literal["load", "comm", "cap"]

#: [B] §4.4.
TRIES = 1000

#: "comm" contracts edges until this many clusters are left ([B] §5.6.2).
_CLUSTERS = 100

#: Largest size of a cluster of "cap", relative to an even share ([B] §4.4).
_CAP = 1.5

#: Random numbers drawn at a time.
_BATCH = 2**20


def cluster(
    instance: Instance, rng: np.random.Generator, *, version: Version = "load", tries: int = TRIES
) -> Partition:
    """Contract random edges of the unit graph down to one cluster per device; keep the best try.

    [B] Alg. 4.4, after Karger: every remaining edge is equally likely to be next; edges inside a
    cluster have no effect. When no edge is left, or 100 clusters under ``comm``, the two smallest
    clusters are merged until there are as many as devices.

    Parameters
    ----------
    version : {"load", "comm", "cap"}
        ``load`` keeps the try with the largest ratio of smallest to largest cluster. ``comm`` keeps
        the one with fewest edges between clusters and stops contracting at 100 clusters (§5.6.2),
        lest nearly everything end in one cluster. ``cap`` uses the same score, contracts to the
        end, and drops edges whose contraction would make a cluster larger than 1.5 times an even
        share (Alg. 4.5).
    tries : int
        1000, as in [B]: a few seconds for 36,319 vertices and 100 devices. Time grows with tries
        times vertices and edges. A time limit ends them early.

    Raises
    ------
    InputError
        If the version is unknown or there are no tries.

    Notes
    -----
    The size of a cluster is its number of units, as [B] counts a colocation group as one operation.
    If a graph has fewer than 200 units, ``comm`` stops contracting at half as many clusters as
    units instead of at 100: [B]'s graphs are larger, and little or nothing would be contracted. [B]
    starts from a best score of 0, which no negative score beats; here the first try is always kept.

    [B] has identical devices and does not say which cluster goes where. Here, starting with the
    largest, each cluster takes the fastest remaining device that may run all of it, else the
    fastest remaining. A unit that cannot run there goes to the next slower feasible device, or
    after the slowest to the fastest.
    """
    if version not in ("load", "comm", "cap"):
        raise InputError("version", f"unknown {version!r}", "choose one of load, comm, cap")
    if tries < 1:
        raise InputError("tries", f"{tries} is too few", "give a whole number ≥ 1")
    graph = unit_graph(instance)
    label = best_clusters(graph, instance.devices, rng, version, tries)
    devices = devices_by_speed(instance)
    preferred = _devices_of(instance, label, devices)[label]
    state = place_preferred(instance, graph, by_first_vertex(instance), preferred, devices)
    return partition_of(instance, state)


def best_clusters(
    graph: UnitGraph, clusters: int, rng: np.random.Generator, version: Version, tries: int
) -> NDArray[np.int64]:
    """Return the cluster of each unit, numbered from 0, in the best of several tries.

    There are ``clusters`` clusters, or as many as units if these are fewer.
    """
    units, edges = len(graph.rank), len(graph.source)
    contraction = _Contraction(
        source=graph.source.astype(np.int64),
        target=graph.target.astype(np.int64),
        clusters=clusters,
        stop=max(clusters, min(_CLUSTERS, units // 2)) if version == "comm" else clusters,
        most=int(_CAP * units / clusters) if version == "cap" else units,
        by_load=version == "load",
    )
    label = np.zeros(units, dtype=np.int64)
    score = -np.inf
    at_once = max(1, _BATCH // max(1, edges))
    for first in range(0, tries, at_once):
        count = min(at_once, tries - first)
        orders = rng.permuted(np.tile(np.arange(edges, dtype=np.int32), (count, 1)), axis=1)
        score = _best_try(contraction, orders, score, label)
        if is_time_up():
            break
    return np.unique(label, return_inverse=True)[1]


class _Contraction(Struct):
    """A rule of contraction, and when it ends.

    Attributes
    ----------
    source, target : ndarray of int64, one per edge
    clusters : int
        How many are left in the end.
    stop : int
        How many are left when edges are no longer contracted.
    most : int
        Largest size of a cluster that an edge may make.
    by_load : bool
        Whether the score is that of ``load``.
    """

    source: Longs
    target: Longs
    clusters: int
    stop: int
    most: int
    by_load: bool


@kernel
def _best_try(c: _Contraction, orders: IntMatrix, best: float, label: Longs) -> float:
    """Try every order of the edges; return the best score, and its clusters in ``label``."""
    units = label.shape[0]
    parent, size = np.empty(units, np.int64), np.empty(units, np.int64)
    for i in range(orders.shape[0]):
        _contract(c, orders[i], parent, size)
        smallest, largest = _merge_smallest(parent, size, c.clusters)
        score = smallest / largest if c.by_load else 0.0
        if not c.by_load:
            for e in range(c.source.shape[0]):
                if _root(parent, c.source[e]) != _root(parent, c.target[e]):
                    score -= 1.0
        if score > best:
            best = score
            for u in range(units):
                label[u] = _root(parent, u)
    return best


@inner
def _contract(c: _Contraction, order: Any, parent: Any, size: Any) -> None:
    """Contract edges in order until ``stop`` clusters are left, none with more than ``most``."""
    left = parent.shape[0]
    for u in range(left):
        parent[u] = u
        size[u] = 1
    for e in order:
        if left <= c.stop:
            break
        u, v = _root(parent, c.source[e]), _root(parent, c.target[e])
        if u != v and size[u] + size[v] <= c.most:
            _join(parent, size, u, v)
            left -= 1


@inner
def _merge_smallest(parent: Any, size: Any, clusters: int) -> Any:
    """Merge the two smallest clusters until few enough are left; return least and largest size."""
    units = parent.shape[0]
    place = np.zeros(units + 2, np.int64)
    for u in range(units):
        if parent[u] == u:
            place[size[u] + 1] += 1
    for s in range(units + 1):
        place[s + 1] += place[s]
    roots = place[units + 1]
    queue = np.empty(2 * roots, np.int64)
    for u in range(units):
        if parent[u] == u:
            queue[place[size[u]]] = u
            place[size[u]] += 1
    # Two queues, both by size: contracted clusters, and merged ones, whose sizes never decrease.
    contracted, merged, end = 0, roots, roots
    pair = np.empty(2, np.int64)
    for _ in range(roots - clusters):
        for i in range(2):
            if merged == end or (
                contracted < roots and size[queue[contracted]] <= size[queue[merged]]
            ):
                pair[i] = queue[contracted]
                contracted += 1
            else:
                pair[i] = queue[merged]
                merged += 1
        queue[end] = _join(parent, size, pair[0], pair[1])
        end += 1
    least, greatest = units, 1
    if contracted < roots:
        least, greatest = size[queue[contracted]], size[queue[roots - 1]]
    if merged < end:
        least, greatest = min(least, size[queue[merged]]), max(greatest, size[queue[end - 1]])
    return least, greatest


@inner
def _root(parent: Any, u: int) -> Any:
    while parent[u] != u:
        parent[u] = parent[parent[u]]
        u = parent[u]
    return u


@inner
def _join(parent: Any, size: Any, u: int, v: int) -> Any:
    """Join the clusters of two roots; return the root."""
    if size[u] < size[v]:
        u, v = v, u
    parent[v] = u
    size[u] += size[v]
    return u


def _devices_of(
    instance: Instance, label: NDArray[np.int64], by_speed: NDArray[np.int32]
) -> NDArray[np.int64]:
    """Return the position in ``by_speed`` of the device of each cluster."""
    a = arrays(instance)
    size = np.bincount(label)
    need = np.zeros(len(size), dtype=np.int64)
    np.add.at(need, label, a.need)
    allowed = np.ones((len(size), instance.devices), dtype=np.bool_)
    np.logical_and.at(allowed, label, a.allowed)
    takes_all = (allowed & (need[:, None] <= a.capacity))[:, by_speed]
    free = np.ones(instance.devices, dtype=np.bool_)
    chosen = np.empty(len(size), dtype=np.int64)
    for one in np.argsort(-size, kind="stable").tolist():
        able = takes_all[one] & free
        chosen[one] = np.argmax(able if able.any() else free)
        free[chosen[one]] = False
    return chosen
