"""Contiguous placements: blocks that no path leaves and enters again (design §2)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from optpart.problem.instance import Instance

#: Maximal number of vertices of a path that are named.
_SHOWN = 8


def is_contiguous(
    instance: Instance, placement: NDArray[np.int32], order: Sequence[int] = ()
) -> bool:
    """Return whether a placement is contiguous; see :func:`first_violation`."""
    return not first_violation(instance, placement, order)


def first_violation(
    instance: Instance, placement: NDArray[np.int32], order: Sequence[int] = ()
) -> str:
    """Return where a placement is not contiguous, naming a path; empty if it is contiguous.

    A placement is *contiguous* if no path leaves the block of a device, which is the set of its
    vertices, and comes back to it. Each block is judged by itself: two blocks may feed each other,
    as long as no path returns.

    Parameters
    ----------
    placement : ndarray of int32, length n
    order : sequence of int, optional
        An order of devices. If given, every vertex must be on one of them, and no edge may go from
        a later device back to an earlier one, which implies that the blocks are contiguous.
    """
    device = placement.tolist()
    return _backward(instance, device, order) if order else _returning(instance, device)


def _backward(instance: Instance, device: list[int], order: Sequence[int]) -> str:
    names, devices = instance.graph.names, instance.cluster.names
    place = {d: i for i, d in enumerate(order)}
    for v, d in enumerate(device):
        if d not in place:
            return f"{names[v]} is on {devices[d]}, which is not in the order of devices"
    graph = instance.graph
    for u, v in graph.pairs():
        if place[device[u]] > place[device[v]]:
            return (
                f"the edge from {names[u]} to {names[v]} goes from {devices[device[u]]} back to "
                f"{devices[device[v]]}"
            )
    return ""


def _returning(instance: Instance, device: list[int]) -> str:
    graph = instance.graph
    following: list[list[int]] = [[] for _ in device]
    for u, v in graph.pairs():
        following[u].append(v)
    for d in sorted(set(device)):
        path = _return(device, following, d)
        if path:
            names = [graph.names[v] for v in path]
            if len(names) > _SHOWN:
                names = [*names[: _SHOWN // 2], "…", *names[-_SHOWN // 2 :]]
            return (
                f"the path {' → '.join(names)} leaves {instance.cluster.names[d]} and comes back "
                "to it"
            )
    return ""


def _return(device: list[int], following: list[list[int]], d: int) -> list[int]:
    """Return a shortest path that leaves a device and comes back to it; empty if none does."""
    before: dict[int, int] = {}
    reached: list[int] = []
    for u, here in enumerate(device):
        if here == d:
            for v in following[u]:
                if device[v] != d and v not in before:
                    before[v] = u
                    reached.append(v)
    for u in reached:  # which grows: breadth first
        for v in following[u]:
            if device[v] == d:
                path = [v, u]
                while device[path[-1]] != d:
                    path.append(before[path[-1]])
                return path[::-1]
            if v not in before:
                before[v] = u
                reached.append(v)
    return []
