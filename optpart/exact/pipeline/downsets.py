"""Items that stay together in every split into ordered stages, and their downsets.

A *downset* holds, with an item, all that precede it. The stages of a pipeline are the differences
of a chain of downsets, from the empty one to all items.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from optpart.base.errors import UnsupportedError
from optpart.exact.pipeline.clock import NEVER, check
from optpart.exact.pipeline.problem import Pipeline
from optpart.problem.instance import Instance

if TYPE_CHECKING:
    import networkx as nx

#: Most downsets to enumerate.
MOST_DOWNSETS = 50_000
#: Most items: sets of them take a bit for each.
MOST_ITEMS = 20_000


@dataclass(frozen=True, eq=False)
class Items:
    """The items of a pipeline in topological order.

    Attributes
    ----------
    members : list of list of int
        The vertices of each item.
    item : ndarray of int64, length n
        The item of each vertex.
    before : list of int
        Immediate predecessors of each item, as a set of bits.
    """

    members: list[list[int]]
    item: NDArray[np.int64]
    before: list[int]

    @property
    def is_path(self) -> bool:
        """True if each item precedes the next directly, so that their order is total."""
        return all(before >> (i - 1) & 1 for i, before in enumerate(self.before) if i)


def require_few_items(instance: Instance) -> None:
    """Raise :class:`UnsupportedError` if an instance certainly has too many items.

    :func:`items_of` says so, too, but needs the run times of all vertices on all devices first.
    """
    if instance.vertices <= MOST_ITEMS:
        return
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    given = instance.given_durations
    if given is None:
        lasting = np.array(instance.graph.ops.numerators > 0, dtype=np.bool_)
    else:
        lasting = np.any((given.times.numerators > 0) & given.possible, axis=1)
    # Groups on a cycle are one item. So are vertices that take no time, and their neighbours, but
    # these never join two items that take time.
    unit, graph = instance.unit_of, instance.graph
    ends = unit[graph.edge_source], unit[graph.edge_target]
    size = len(instance.units)
    links = coo_array((np.ones(len(ends[0]), dtype=np.int8), ends), shape=(size, size))
    _, item = connected_components(links, connection="strong")
    count = len(np.unique(item[unit[lasting]]))
    if count > MOST_ITEMS:
        raise UnsupportedError(
            "graph",
            f"has {count:,} vertices or groups that take time, of at most {MOST_ITEMS:,}",
            "colocate vertices, or use another method",
        )


def items_of(pipeline: Pipeline, *, merge: bool = True) -> Items:
    """Contract vertices that share a stage in every split.

    These are the groups, and vertices on a cycle through groups: along it, no stage may be later
    than the next.

    Parameters
    ----------
    merge : bool
        Whether to add items without time and memory that have only one neighbour to that
        neighbour: in any split, such an item may move there, and no load grows.
    """
    n = len(pipeline.vertices)
    import networkx as nx  # slow to load, and not needed to tell what the method supports

    groups: nx.Graph[int] = nx.Graph()
    groups.add_nodes_from(range(n))
    for group in pipeline.together:
        nx.add_path(groups, group)
    if merge:
        groups.add_edges_from(_leaves(pipeline, groups))
    group_of = np.zeros(n, dtype=np.int64)
    for number, component in enumerate(nx.connected_components(groups)):
        group_of[list(component)] = number
    between: nx.DiGraph[int] = nx.DiGraph()
    between.add_nodes_from(sorted(set(group_of.tolist())))
    between.add_edges_from((int(group_of[u]), int(group_of[v])) for u, v in pipeline.edges)
    contracted = nx.condensation(between)
    if len(contracted) > MOST_ITEMS:
        raise UnsupportedError(
            "graph",
            f"has {len(contracted):,} vertices or groups, of at most {MOST_ITEMS:,}",
            "colocate vertices, or use another method",
        )
    least = [n] * len(between)
    for v in reversed(range(n)):
        least[group_of[v]] = v
    first = {
        node: min(least[g] for g in data["members"]) for node, data in contracted.nodes.items()
    }
    order = list(nx.lexicographical_topological_sort(contracted, key=first.__getitem__))
    place = {node: i for i, node in enumerate(order)}
    item_of_group = contracted.graph["mapping"]
    item = np.array([place[item_of_group[group]] for group in group_of.tolist()], dtype=np.int64)
    members: list[list[int]] = [[] for _ in order]
    for v, i in enumerate(item.tolist()):
        members[i].append(v)
    before = [sum(1 << place[p] for p in contracted.predecessors(node)) for node in order]
    return Items(members, item, before)


def _leaves(pipeline: Pipeline, groups: nx.Graph[int]) -> list[tuple[int, int]]:
    """Return free groups of vertices with one neighbour, each with that neighbour.

    Where all memory fits every device, memory does not count.
    """
    import networkx as nx  # as above

    group_of: dict[int, int] = {}
    for component in nx.connected_components(groups):
        group_of.update(dict.fromkeys(component, min(component)))
    neighbours: dict[int, set[int]] = {group: set() for group in group_of.values()}
    pairs = list(pipeline.edges)
    for tensor in pipeline.tensors:
        pairs += [(tensor.producer, v) for v in tensor.consumers]
    for u, v in pairs:
        if group_of[u] != group_of[v]:
            neighbours[group_of[u]].add(group_of[v])
            neighbours[group_of[v]].add(group_of[u])
    known = [limit for limit in pipeline.capacity if limit is not None]
    ample = not known or total(pipeline.need) <= min(known)
    bound = {group_of[v] for pair in pipeline.apart for v in pair}
    for v, row in enumerate(pipeline.times):
        if (
            any(time != 0 for time in row)
            or pipeline.weights[v]
            or (pipeline.need[v] and not ample)
        ):
            bound.add(group_of[v])
    merged = []
    waiting = [group for group in neighbours if group not in bound]
    while waiting:
        group = waiting.pop()
        if len(neighbours[group]) != 1:
            continue
        other = neighbours[group].pop()
        merged.append((group, other))
        neighbours[other].discard(group)
        if other not in bound:
            waiting.append(other)
    return merged


def downsets_of(items: Items, most: int = MOST_DOWNSETS, deadline: float = NEVER) -> list[int]:
    """List all downsets as sets of bits, by size.

    Raises
    ------
    UnsupportedError
        If there are more than ``most``.
    TimeUpError
        After the deadline.
    """
    n = len(items.members)
    after: list[list[int]] = [[] for _ in range(n)]
    for i, before in enumerate(items.before):
        for j in bits(before):
            after[j].append(i)
    layer = {0: sum(1 << i for i, before in enumerate(items.before) if not before)}
    found: list[int] = []
    while layer:
        check(deadline)
        found += layer
        following: dict[int, int] = {}
        for downset, ready in layer.items():
            for i in bits(ready):
                larger = downset | 1 << i
                if larger in following:
                    continue
                now = ready & ~(1 << i)
                for j in after[i]:
                    if items.before[j] & ~larger == 0:
                        now |= 1 << j
                following[larger] = now
            if len(found) + len(following) > most:
                raise _too_many(most)
        layer = following
    return found


def _too_many(most: int) -> UnsupportedError:
    return UnsupportedError(
        "graph",
        f"has more than {most:,} downsets (sets of vertices closed under predecessors)",
        "colocate parallel branches, or use another method",
    )


def prefixes(items: Items) -> list[int]:
    """List the downsets along the order of the items."""
    return [(1 << i) - 1 for i in range(len(items.members) + 1)]


def bits(number: int) -> list[int]:
    """List the positions of the bits that are set."""
    found = []
    while number:
        low = number & -number
        found.append(low.bit_length() - 1)
        number ^= low
    return found


def packed(sets: Sequence[int], size: int) -> NDArray[np.uint64]:
    """Return sets of bits as rows of 64-bit words."""
    words = max(1, -(-size // 64))
    data = b"".join(each.to_bytes(8 * words, "little") for each in sets)
    return np.frombuffer(data, dtype="<u8").reshape(len(sets), words).astype(np.uint64)


def unpacked(words: NDArray[np.uint64], size: int) -> NDArray[np.bool_]:
    """Return rows of words as a table of ``size`` columns."""
    flat = np.unpackbits(words.astype("<u8").view(np.uint8), axis=1, bitorder="little")
    return flat[:, :size].astype(np.bool_)


def total(values: Sequence[Fraction]) -> Fraction:
    """Return the sum of fractions."""
    return sum(values, Fraction(0))
