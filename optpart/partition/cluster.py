"""Clustering by random contraction: the best of many tries, one cluster a device ([B] §4.4)."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from optpart.compiled import arrays, kernel
from optpart.errors import InputError
from optpart.instance import Instance
from optpart.partition.base import Partition, partition_of
from optpart.partition.ranks import devices_by_speed
from optpart.partition.unit_graph import UnitGraph, by_first_vertex, place_preferred, unit_graph

Version = Literal["load", "comm", "cap"]

#: [B] §4.4.
TRIES = 1000

#: "comm" contracts edges until so many clusters are left ([B] §5.6.2).
_CLUSTERS = 100

#: Largest size of a cluster of "cap", relative to an even share ([B] §4.4).
_CAP = 1.5

#: Random numbers drawn at a time.
_BATCH = 2**20


def cluster(
    instance: Instance, rng: np.random.Generator, *, version: Version = "load", tries: int = TRIES
) -> Partition:
    """Contract random edges of the unit graph to as many clusters as devices; keep the best try.

    [B] Alg. 4.4, after Karger: every remaining edge is equally likely to be next, edges inside a
    cluster do nothing. Where no edge is left, or from 100 clusters on under ``comm``, the two
    smallest clusters are merged until there are as many as devices.

    Parameters
    ----------
    version : {"load", "comm", "cap"}
        ``load`` keeps the try with the largest ratio of smallest to largest cluster. ``comm`` keeps
        the one with fewest edges between clusters and stops contracting at 100 clusters (§5.6.2),
        so that not nearly everything ends in one cluster. ``cap`` keeps the same, contracts to the
        end, and drops edges whose contraction would make a cluster larger than 1.5 times an even
        share (Alg. 4.5).
    tries : int
        1000, as in [B], takes a few seconds with 36,319 vertices and 100 devices.

    Raises
    ------
    InputError
        If the version is unknown or there is no try.

    Notes
    -----
    The size of a cluster is its number of units, as [B] counts a colocation group as one operation.
    Where a graph has fewer than 200 units, ``comm`` stops contracting at half as many clusters as
    units instead of at 100: [B]'s graphs are larger, and nothing would be contracted. [B] starts
    from a best score of 0, which no negative score beats; here any first try is kept.

    [B] has equal devices and does not say which cluster goes where. Here, from the largest cluster
    on, each takes the fastest device left that may run all of it, else the fastest left. A unit
    that cannot run there goes to the next slower device that is feasible, after the slowest to the
    fastest.
    """
    if version not in ("load", "comm", "cap"):
        raise InputError("version", f"unknown {version!r}", "choose of load, comm, cap")
    if tries < 1:
        raise InputError("tries", f"{tries} is too few", "give a whole number ≥ 1")
    label = best_clusters(unit_graph(instance), instance.devices, rng, version, tries)
    devices = devices_by_speed(instance)
    preferred = _devices_of(instance, label, devices)[label]
    units = by_first_vertex(instance)
    return partition_of(instance, place_preferred(instance, units, preferred, devices))


def best_clusters(
    graph: UnitGraph, clusters: int, rng: np.random.Generator, version: Version, tries: int
) -> NDArray[np.int32]:
    """Return the cluster of each unit, numbered from 0, in the best of several tries.

    There are ``clusters`` of them, or as many as units if these are fewer.
    """
    units, edges = len(graph.rank), len(graph.source)
    stop = max(clusters, min(_CLUSTERS, units // 2)) if version == "comm" else clusters
    largest = int(_CAP * units / clusters) if version == "cap" else units
    label = np.zeros(units, dtype=np.int32)
    score = -np.inf
    at_once = max(1, _BATCH // max(1, edges))
    for first in range(0, tries, at_once):
        count = min(at_once, tries - first)
        orders = rng.permuted(np.tile(np.arange(edges, dtype=np.int32), (count, 1)), axis=1)
        score = _best_try(
            graph, orders, clusters, stop, largest, version == "load", score, label
        )  # fmt: skip
    return np.unique(label, return_inverse=True)[1].astype(np.int32)


@kernel
def _best_try(
    graph: UnitGraph, orders: Any, clusters: int, stop: int, largest: int, by_load: bool,
    best: float, label: Any,
) -> Any:  # fmt: skip
    """Make a try with each order of the edges; return the best score, its clusters in ``label``."""
    units = graph.rank.shape[0]
    parent = np.empty(units, np.int32)
    size = np.empty(units, np.int32)
    # Roots that may still be merged: first by size as contraction leaves them, then as merged.
    queue = np.empty(2 * units, np.int32)
    for order in orders:
        _contract(graph, order, stop, largest, parent, size)
        begin, end = _merge_smallest(parent, size, clusters, queue)
        if by_load:
            score = size[queue[begin]] / size[queue[end - 1]] if begin < end else 1.0
        else:
            score = 0.0
            for e in range(order.shape[0]):
                if _root(parent, graph.source[e]) != _root(parent, graph.target[e]):
                    score -= 1.0
        if score > best:
            best = score
            for u in range(units):
                label[u] = _root(parent, u)
    return best


@kernel
def _contract(
    graph: UnitGraph, order: Any, stop: int, largest: int, parent: Any, size: Any
) -> None:
    left = parent.shape[0]
    for u in range(left):
        parent[u] = u
        size[u] = 1
    for e in order:
        if left <= stop:
            break
        u, v = _root(parent, graph.source[e]), _root(parent, graph.target[e])
        if u != v and size[u] + size[v] <= largest:
            _join(parent, size, u, v)
            left -= 1


@kernel
def _merge_smallest(parent: Any, size: Any, clusters: int, queue: Any) -> Any:
    ...
