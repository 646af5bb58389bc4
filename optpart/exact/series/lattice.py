"""The downsets of a part, as flat arrays for compiled code."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from numpy.typing import NDArray

from optpart.base.clock import check_time
from optpart.exact.series.parts import Part
from optpart.kernels.struct import BoolMatrix, Longs, Struct
from optpart.kernels.ticks import Grid
from optpart.problem.instance import Instance

#: Stands for "never": beyond every horizon, but safe to add up.
NEVER = 2**60

#: Downsets times vertices of a part that are enumerated at most, in a few seconds.
_MOST_ENTRIES = 10_000_000

#: What happens to a waiting vertex when another is placed.
NOTHING, SAME, APART = 0, 1, 2


class Lattice(Struct):
    """All downsets of a part, in the order of their sizes, and the steps between them.

    A *slot* of a downset is a vertex not yet placed about which something is known: an input, the
    device of its group, or a device that it must avoid.

    Attributes
    ----------
    vertices : ndarray, length m
        Those of the part, in topological order.
    level : ndarray, length m + 2
        First node of every size.
    slot_first, slot_vertex : ndarray
        Slots of every node.
    step_first, step_vertex, step_slot, step_to : ndarray
        For every node, the vertices that can be placed next, their slots, and the node reached.
    step_need : ndarray
        Memory that the step takes.
    move_first : ndarray
        For every step, where the entries for the slots of its target begin.
    move_from, move_delay, move_rule : ndarray
        For every slot of the target: the same vertex's slot at the source or −1; the delay matrix
        of the tensors that the step sends to it or −1; and one of the rules above.
    rest : ndarray of bool, nodes × m
        Vertices of the part that are still to be placed.
    arc_first, arc_to, arc_delay : ndarray
        For each vertex of the part, its successors inside: first entries, positions, delay rows.
    """

    vertices: Longs
    level: Longs
    slot_first: Longs
    slot_vertex: Longs
    step_first: Longs
    step_vertex: Longs
    step_slot: Longs
    step_to: Longs
    step_need: Longs
    move_first: Longs
    move_from: Longs
    move_delay: Longs
    move_rule: Longs
    rest: BoolMatrix
    arc_first: Longs
    arc_to: Longs
    arc_delay: Longs

    @property
    def nodes(self) -> int:
        """Number of downsets."""
        return len(self.slot_first) - 1

    def slots(self, node: int) -> NDArray[np.int64]:
        """Return the vertices with a slot at a node."""
        return self.slot_vertex[self.slot_first[node] : self.slot_first[node + 1]]


class Links:
    """Connections between the vertices of an instance, for building lattices.

    Attributes
    ----------
    pairs : dict
        For every vertex, its successors, each with the row of ``delays``.
    delays : ndarray, matrices × k × k
        The latest arrival over the tensors of a pair of vertices, in ticks after the end.
    charge : ndarray, length n
        Memory that placing each vertex takes.
    mates, apart : dict
        The other members of the group of a vertex; the vertices that must not share its device.
    """

    def __init__(self, instance: Instance, grid: Grid, charge: NDArray[np.int64]) -> None:
        graph, k = instance.graph, instance.devices
        tensors: dict[tuple[int, int], set[int]] = defaultdict(set)
        for u, v, tensor in graph.edges():
            tensors[u, v].add(tensor)
        rows: dict[frozenset[int], int] = {}
        matrices: list[NDArray[np.int64]] = []
        classes: dict[bytes, int] = {}
        self.after: dict[int, list[tuple[int, int]]] = defaultdict(list)
        self.before: dict[int, list[int]] = defaultdict(list)
        for (u, v), group in tensors.items():
            check_time()
            key = frozenset(group)
            if key not in rows:
                matrix = np.zeros((k, k), dtype=np.int64)
                for tensor in group:
                    np.maximum(matrix, delay_matrix(grid, tensor, k), out=matrix)
                row = classes.setdefault(matrix.tobytes(), len(matrices))
                if row == len(matrices):
                    matrices.append(matrix)
                rows[key] = row
            self.after[u].append((v, rows[key]))
            self.before[v].append(u)
        self.delays = np.array(matrices, dtype=np.int64).reshape(-1, k, k)
        self.mates: dict[int, list[int]] = defaultdict(list)
        for members in instance.units:
            for v in members.tolist():
                self.mates[v] = [w for w in members.tolist() if w != v]
        self.apart: dict[int, list[int]] = defaultdict(list)
        for a, b in instance.separated_units:
            for v in instance.units[a].tolist():
                self.apart[v] += instance.units[b].tolist()
            for v in instance.units[b].tolist():
                self.apart[v] += instance.units[a].tolist()
        self.charge = charge


def delay_matrix(grid: Grid, tensor: int, devices: int) -> NDArray[np.int64]:
    """Return the delays of a tensor, k × k; ``NEVER`` where there is no link."""
    row = int(grid.size_class[tensor])
    if row < len(grid.delays):
        matrix = grid.delays[row][grid.link_class].astype(np.int64)
    else:
        matrix = grid.measured[row - len(grid.delays)].copy()
    np.fill_diagonal(matrix, 0)
    known: NDArray[np.int64] = np.where(matrix < 0, NEVER, matrix)
    return known


def build(part: Part, done: set[int], waiting: set[int], links: Links, most: int) -> Lattice | None:
    """Enumerate the downsets of a part; ``None`` if there are more than ``most``, or too large.

    Parameters
    ----------
    done, waiting : set of int
        The vertices of all earlier parts, and the others about which these say something.
    """
    vertices = part.vertices
    most = min(most, _MOST_ENTRIES // max(1, len(vertices)))
    if len(vertices) >= most:  # even a chain has one more downset than vertices
        return None
    index = {v: i for i, v in enumerate(vertices)}
    before = [sum(1 << index[u] for u in links.before[v] if u in index) for v in vertices]
    after: list[list[int]] = [[] for _ in vertices]
    for v in vertices:
        for u in links.before[v]:
            if u in index:
                after[index[u]].append(index[v])
    # By level, the downsets and the vertices that may follow them.
    levels = [{0: [i for i in range(len(vertices)) if not before[i]]}]
    masks = [0]
    while levels[-1]:
        following: dict[int, list[int]] = {}
        for mask, ready in levels[-1].items():
            check_time()
            for i in ready:
                larger = mask | 1 << i
                if larger not in following:
                    new = [j for j in after[i] if not before[j] & ~larger]
                    following[larger] = sorted({*ready, *new} - {i})
            if len(masks) + len(following) > most:
                return None
        levels.append(following)
        masks += following
    levels.pop()
    node = {mask: i for i, mask in enumerate(masks)}
    slots: list[list[int]] = []
    for mask in masks:
        check_time()
        inside = {v for i, v in enumerate(vertices) if mask >> i & 1}
        known = (waiting | touched(inside, links)) - inside - done
        known |= {v for v in vertices if v not in inside and not links.before[v]}
        slots.append(sorted(known))
    steps: list[tuple[int, int, int, int]] = []
    step_first = [0]
    moves: list[tuple[int, int, int]] = []
    move_first = [0]
    for mask, here in zip(masks, slots, strict=True):
        check_time()
        place = {v: i for i, v in enumerate(here)}
        for i, v in enumerate(vertices):
            if mask >> i & 1 or before[i] & ~mask:
                continue
            to = node[mask | 1 << i]
            steps.append((v, place[v], to, int(links.charge[v])))
            sent = dict(links.after[v])
            mates, apart = set(links.mates[v]), set(links.apart[v])
            for w in slots[to]:
                rule = SAME if w in mates else APART if w in apart else NOTHING
                moves.append((place.get(w, -1), sent.get(w, -1), rule))
            move_first.append(len(moves))
        step_first.append(len(steps))
    step = np.array(steps, dtype=np.int64).reshape(-1, 4)
    move = np.array(moves, dtype=np.int64).reshape(-1, 3)
    arcs = [[(index[w], row) for w, row in links.after[v] if w in index] for v in vertices]
    arc = np.array([pair for row in arcs for pair in row], dtype=np.int64).reshape(-1, 2)
    rest = np.array([[not mask >> i & 1 for i in range(len(vertices))] for mask in masks])
    return Lattice(
        np.array(vertices, dtype=np.int64),
        np.cumsum([0, *(len(level) for level in levels)]),
        np.cumsum([0, *(len(row) for row in slots)]),
        np.array([v for row in slots for v in row], dtype=np.int64),
        np.array(step_first, dtype=np.int64),
        step[:, 0].copy(),
        step[:, 1].copy(),
        step[:, 2].copy(),
        step[:, 3].copy(),
        np.array(move_first, dtype=np.int64),
        move[:, 0].copy(),
        move[:, 1].copy(),
        move[:, 2].copy(),
        rest.reshape(len(masks), len(vertices)),
        np.cumsum([0, *map(len, arcs)]),
        arc[:, 0].copy(),
        arc[:, 1].copy(),
    )


def touched(placed: set[int], links: Links) -> set[int]:
    """Return the vertices about which placed ones say something."""
    found: set[int] = set()
    for v in placed:
        found.update(w for w, _ in links.after[v])
        found.update(links.mates[v])
        found.update(links.apart[v])
    return found
