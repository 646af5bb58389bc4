"""Minimum cut: little traffic under balanced load, by multilevel partitioning ([B] §6.3.2)."""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array

from optpart.base.errors import InputError
from optpart.kernels.compiled import Arrays, arrays, assign, fits, kernel, nothing_placed
from optpart.kernels.struct import Ints, Longs
from optpart.problem.instance import Instance
from optpart.strategies.base import Partition, partition_of
from optpart.strategies.partition.linear_greedy import linear_greedy, stream
from optpart.strategies.partition.ranks import speed_share, work

#: The sum to which all weights of a kind are scaled as integers; METIS may use 32 bits.
_TOTAL = 2**28
#: METIS cannot balance against a side that should stay empty.
_LEAST_SHARE = 1e-3
_FREE = -1
#: From this many units per device on, METIS cuts all parts at once; fewer units are halved together
#: with their devices instead, which balances better.
_MANY = 8


def min_cut(instance: Instance, rng: np.random.Generator) -> Partition:
    """Cut the graph with METIS into one part per device, so that few data cross the cuts.

    Each device gets operations in proportion to its speed. A tensor that connects units on two
    devices costs its size; control dependencies are free. Devices that different units may use, for
    instance those of different types, are separated first, in halves: a unit that may use devices
    of only one half goes there, and the others are cut around it. Parts have no direction: METIS
    cuts undirected graphs, and data may go back and forth between two devices.

    METIS has no further constraints. Units stay where it puts them if they fit, those of largest
    static memory first. The others follow, those of most operations first, by the score of
    :func:`~optpart.strategies.partition.linear_greedy.linear_greedy`. If that leads into a dead
    end, as missing links can, all units are placed that way.

    Raises
    ------
    InputError
        If the package ``pymetis`` is not installed.

    Notes
    -----
    Karypis and Kumar 1998. METIS cuts graphs, but a tensor may connect more than two units: it then
    becomes a vertex without weight between them, and costs its size for every unit that is
    separated from the side where most of them are.
    """
    graph, share = Tensors.of(instance), speed_share(instance)
    columns = [column.tobytes() for column in np.packbits(instance.allowed.T, axis=1)]
    kind = np.array([columns.index(column) for column in columns], dtype=np.int64)
    task = _Task(instance.allowed, share, kind, _metis(), int(rng.integers(2**31)))
    units = np.arange(len(graph.weight))
    where = _divide(task, graph, units, np.argsort(kind, kind="stable"))
    largest_first = np.argsort(-arrays(instance).need, kind="stable").astype(np.int32)
    state = _keep(arrays(instance), largest_first, where)
    heaviest_first = np.argsort(-graph.weight, kind="stable").astype(np.int32)
    left = heaviest_first[state.device[heaviest_first] < 0]
    state = stream(instance, left, work(instance), share, state)
    if (state.device < 0).any():
        return linear_greedy(instance, rng)
    return partition_of(instance, state)


def _metis() -> Any:
    try:
        return import_module("pymetis")
    except ImportError:
        raise InputError("min-cut", "needs the package pymetis", "install optpart[metis]") from None


class Tensors(NamedTuple):
    """Units, and the tensors that connect at least two of them.

    Attributes
    ----------
    weight : ndarray of float64, one per unit
        Operations.
    size : ndarray of float64, one per tensor
    tensor, unit : ndarray of int64
        ``tensor[i]`` is produced or consumed by ``unit[i]``; ascending, each pair once.
    """

    weight: NDArray[np.float64]
    size: NDArray[np.float64]
    tensor: NDArray[np.int64]
    unit: NDArray[np.int64]

    @classmethod
    def of(cls, instance: Instance) -> Tensors:
        """Merge colocated vertices, and leave out edges without size."""
        graph, units = instance.graph, len(instance.units)
        unit_of, size = instance.unit_of.astype(np.int64), graph.tensor_size.floats
        weight = np.bincount(unit_of, work(instance), units).astype(np.float64)
        tensor = np.concatenate((np.arange(graph.tensors), graph.edge_tensor), dtype=np.int64)
        unit = np.concatenate((unit_of[graph.tensor_vertex], unit_of[graph.edge_target]))
        costs = size[tensor] > 0
        return cls(weight, size, tensor[costs], unit[costs]).merged(np.arange(units), units)

    def merged(self, number: NDArray[np.int64], units: int) -> Tensors:
        """Merge units that get the same new number below ``units``, and leave out those with −1."""
        inside, kept = number >= 0, number[self.unit] >= 0
        pairs = np.unique(self.tensor[kept] * units + number[self.unit[kept]])
        tensor, unit = np.divmod(pairs, max(1, units))
        connects = np.bincount(tensor, minlength=len(self.size)) > 1
        renumbered, kept = np.cumsum(connects) - 1, connects[tensor]
        return Tensors(
            np.bincount(number[inside], self.weight[inside], units).astype(np.float64),
            self.size[connects],
            renumbered[tensor[kept]],
            unit[kept],
        )

    def matrix(self) -> csr_array[Any]:
        """Return the METIS graph: units, then a vertex for each tensor that more than two share."""
        pins = np.bincount(self.tensor, minlength=len(self.size))
        between = self.unit[pins[self.tensor] == 2].reshape(-1, 2)
        hub = len(self.weight) + np.cumsum(pins > 2) - 1
        shared = pins[self.tensor] > 2
        source = np.concatenate((between[:, 0], hub[self.tensor[shared]]))
        target = np.concatenate((between[:, 1], self.unit[shared]))
        size = np.concatenate((self.size[pins == 2], self.size[self.tensor[shared]]))
        vertices = len(self.weight) + int((pins > 2).sum())
        half = coo_array((size, (source, target)), shape=(vertices, vertices))
        return csr_array(half + half.T)


class _Task(NamedTuple):
    """Data shared by all cuts: per unit and device, per device, and for METIS."""

    allowed: NDArray[np.bool_]
    share: NDArray[np.float64]
    kind: NDArray[np.int64]
    metis: Any
    seed: int


def _divide(
    task: _Task, graph: Tensors, units: NDArray[np.int64], devices: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the device of each of ``units``, which are those of the graph."""
    if len(devices) == 1 or not len(units):
        return np.full(len(units), devices[0])
    alike = bool((task.kind[devices] == task.kind[devices[0]]).all())
    if alike and len(units) >= _MANY * len(devices):
        return devices[_cut(task, graph, task.share[devices])]
    middle = _middle(task.kind[devices])
    halves = devices[:middle], devices[middle:]
    first, second = (task.allowed[np.ix_(units, half)].any(axis=1) for half in halves)
    fixed = np.where(first == second, _FREE, second)
    speed = task.share[halves[0]].sum(), task.share[devices].sum()
    side = _bisect(task, graph, fixed, speed[0] / speed[1] if speed[1] else 0.5)
    where = np.empty(len(units), dtype=np.int64)
    for half, inside in zip(halves, (side == 0, side == 1), strict=True):
        number = np.where(inside, np.cumsum(inside) - 1, -1)
        part = graph.merged(number, int(inside.sum()))
        where[inside] = _divide(task, part, units[inside], half)
    return where


def _middle(kind: NDArray[np.int64]) -> int:
    """Return where to split devices: between two kinds, if possible, as evenly as possible."""
    between = np.flatnonzero(np.diff(kind)) + 1
    if not len(between):
        return len(kind) // 2
    return int(between[np.argmin(np.abs(2 * between - len(kind)))])


def _bisect(
    task: _Task, graph: Tensors, fixed: NDArray[np.int64], share: float
) -> NDArray[np.int64]:
    """Return the side of each unit, 0 with this share of all operations, or 1."""
    free = fixed == _FREE
    if not free.any():
        return fixed
    shares = np.array([share, 1 - share])
    if free.all():
        return _cut(task, graph, shares)
    # Each side gets one more vertex: all of its fixed units, as heavy as everything together, so
    # that the balance separates the two.
    units = int(free.sum())
    merged = graph.merged(np.where(free, np.cumsum(free) - 1, units + fixed), units + 2)
    total = float(merged.weight.sum())
    if not total:
        merged.weight[:units] = 1
        total = float(units)
    shares = np.maximum(shares * total, merged.weight[units:])
    merged.weight[units:] += total
    side = _cut(task, merged, shares / shares.sum() + 1)
    fixed = fixed.copy()
    fixed[free] = side[:units] if side[units] == 0 else 1 - side[:units]
    return fixed


def _cut(task: _Task, graph: Tensors, share: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the part of each unit; parts have these shares of all operations."""
    matrix, units = graph.matrix(), len(graph.weight)
    weight = np.zeros(matrix.shape[0], dtype=np.int64)
    weight[:units] = _whole(graph.weight) if graph.weight.any() else 1
    share = np.maximum(share, _LEAST_SHARE * share.mean()) if share.any() else np.ones(len(share))
    _, parts = task.metis.part_graph(
        len(share),
        task.metis.CSRAdjacency(matrix.indptr, matrix.indices),
        vweights=weight,
        eweights=np.maximum(1, _whole(matrix.data)),
        tpwgts=(share / share.sum()).tolist(),
        recursive=True,
        options=task.metis.Options(seed=task.seed),
    )
    return np.array(parts, dtype=np.int64)[:units]


def _whole(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Scale to a sum of ``_TOTAL`` and round."""
    total = float(values.sum())
    return np.rint(values * (_TOTAL / total if total else 0.0)).astype(np.int64)


@kernel
def _keep(a: Arrays, units: Ints, where: Longs) -> Any:
    """Place, in turn, the units that fit where they should be."""
    state = nothing_placed(a)
    for unit in units:
        if fits(a, unit, where[unit], state):
            assign(a, unit, where[unit], state)
    return state
