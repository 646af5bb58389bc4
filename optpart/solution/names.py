"""Conversion of placements and orders from names of vertices and devices to their numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import combinations, pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from optpart.base.choices import close
from optpart.base.errors import ArgumentError, InputError
from optpart.problem.instance import Instance
from optpart.problem.rational import shown

#: A map from vertex names to device names.
NamedPlacement: TypeAlias = Mapping[str, str]

#: Vertex names in order, or such a sequence for each device name.
NamedOrder: TypeAlias = Sequence[str] | Mapping[str, Sequence[str]]


def vertex(instance: Instance, name: object, place: str) -> int:
    """Return the number of a vertex; raise :class:`InputError` for an unknown name."""
    return _number(instance.graph.index, name, "vertex", place)


def device(instance: Instance, name: object, place: str) -> int:
    """Return the number of a device; raise :class:`InputError` for an unknown name."""
    return _number(instance.cluster.index, name, "device", place)


def _number(index: Mapping[str, int], name: object, kind: str, place: str) -> int:
    if isinstance(name, str) and name in index:
        return index[name]
    near = close(name, index)
    remedy = f"did you mean {' or '.join(near)}?" if near else f"name a {kind} of the instance"
    raise InputError(place, f"no {kind} {shown(name)}", remedy)


def part_placement(instance: Instance, placement: NamedPlacement) -> dict[int, int]:
    """Convert a placement of some or all vertices from names to numbers.

    Raises
    ------
    InputError
        If a name is unknown; the message suggests similar names.
    """
    return {
        vertex(instance, v, "placement"): device(instance, d, "placement")
        for v, d in placement.items()
    }


def placement_of(instance: Instance, placement: NamedPlacement) -> NDArray[np.int32]:
    """Convert a placement of all vertices from names to numbers.

    Raises
    ------
    InputError
        If a name is unknown or a vertex is missing.
    """
    found = part_placement(instance, placement)
    if len(found) < instance.vertices:
        missing = next(v for v in range(instance.vertices) if v not in found)
        raise InputError(
            "placement",
            f"{instance.vertices - len(found)} vertices are missing, "
            f"the first {instance.graph.names[missing]!r}",
            "place every vertex",
        )
    return np.array([found[v] for v in range(instance.vertices)], dtype=np.int32)


def lists_of(
    instance: Instance, order: NamedOrder, placement: Mapping[int, int]
) -> list[list[int]]:
    """Convert an order from names to numbers, one list for each list of names.

    Raises
    ------
    InputError
        If a name is unknown, a vertex is named twice, or it is listed under a device other than
        that of the placement.
    """
    lists: Iterable[tuple[str, Sequence[str]]] = (
        order.items() if isinstance(order, Mapping) else [("", order)]
    )
    found = []
    seen: set[int] = set()
    for name, names in lists:
        where = device(instance, name, "order") if isinstance(order, Mapping) else None
        found.append([vertex(instance, v, "order") for v in names])
        for v, name_ in zip(found[-1], names, strict=True):
            if v in seen:
                raise InputError("order", f"names {name_!r} twice", "name every vertex once")
            if where is not None and placement.get(v) != where:
                raise InputError(
                    "order",
                    f"lists {name_!r} on {name}, but the placement does not assign it there",
                    "give the order of this placement",
                )
            seen.add(v)
    return found


def device_list(instance: Instance, names: Sequence[str]) -> tuple[int, ...]:
    """Convert an order of devices from names to numbers.

    Raises
    ------
    InputError
        If a name is unknown or repeated, or there is none.
    """
    place = "device_order"
    if isinstance(names, str):
        raise InputError(place, f"{names!r} is not a list", "list the names of devices")
    found = tuple(device(instance, name, place) for name in names)
    if not found:
        raise InputError(place, "names no device", "name the devices that may be used, in order")
    for i, d in enumerate(found):
        if d in found[:i]:
            raise InputError(place, f"names {names[i]!r} twice", "name every device once")
    return found


def given_device_order(instance: Instance, names: Sequence[str] | None) -> tuple[int, ...]:
    """Convert the argument ``device_order`` to numbers; empty if it is not given.

    Raises
    ------
    ArgumentError
        As for :func:`device_list`.
    """
    try:
        return () if names is None else device_list(instance, names)
    except InputError as error:
        raise ArgumentError(error.place, error.problem, error.remedy) from None


def order_pairs(
    instance: Instance, order: NamedOrder, placement: Mapping[int, int]
) -> tuple[tuple[int, int], ...]:
    """Return pairs of vertices; the first must run before the second if they share a device."""
    lists = lists_of(instance, order, placement)
    return tuple(pair for numbers in lists for pair in combinations(numbers, 2))


def whole_order(
    instance: Instance, order: Mapping[str, Sequence[str]], placement: Sequence[int]
) -> list[int]:
    """Return an order of all vertices that respects the order on each device and all edges.

    Raises
    ------
    InputError
        As for :func:`lists_of`, or if the order contradicts the edges or omits a vertex.
    """
    lists = lists_of(instance, order, dict(enumerate(placement)))
    graph = instance.graph
    before: TopologicalSorter[int] = TopologicalSorter(dict.fromkeys(range(instance.vertices), ()))
    for u, v in graph.pairs():
        before.add(v, u)
    for numbers in lists:
        for u, v in pairwise(numbers):
            before.add(v, u)
    try:
        found = list(before.static_order())
    except CycleError as error:
        circle = " before ".join(graph.names[v] for v in error.args[1])
        raise InputError(
            "order", f"contradicts the edges: {circle}", "order vertices after what they depend on"
        ) from None
    if len({v for numbers in lists for v in numbers}) < instance.vertices:
        raise InputError("order", "does not name every vertex", "name every vertex once")
    return found
