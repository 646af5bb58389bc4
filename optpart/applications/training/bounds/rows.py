"""The inequalities that every strategy satisfies, as rows of a linear program.

Columns are ``y[g,a]`` (group ``g`` takes action ``a``) and ``w[g,h,l,m]`` (adjacent groups have the
layouts ``l`` and ``m``). A row says that the makespan is at least a sum over columns, or, for
memory, that a sum is at most what a device has. :class:`Row` is what a certificate stores; its
coefficients are always computed from the choices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from optpart.applications.training.bounds.costs import Conversion, Costs, Ints, Synchronisation
from optpart.applications.training.graph import CONTROL, Edge, Layout

#: Above every number of ticks.
_LARGE = 2**60

Resource = tuple[str, int, int]  # ("device", d, d), ("link", d, e) or ("nccl", 0, 0)

NCCL: Resource = ("nccl", 0, 0)


@dataclass(frozen=True)
class Row:
    """One inequality.

    Attributes
    ----------
    kind : {"load", "path", "head", "tail", "memory"}
        ``load``: everything on one resource. ``path``: along edges of the graph. ``head``: a path,
        and then everything on one resource that has to wait for its end. ``tail``: everything on
        one resource that its start waits for, and then a path. ``memory``: parameters on a device.
    resource : Resource or None
        Of a load, head, tail or memory.
    start : int
        The first operation of a path.
    edges : tuple of int
        Numbers of the edges of a path.
    sample : Fraction or None
        The sample that a path follows; ``None`` follows the least of all replicas.
    consumer : int
        Number of the consumer of a tensor that counts, where several groups read it.
    """

    kind: str
    resource: Resource | None = None
    start: int = 0
    edges: tuple[int, ...] = ()
    sample: Fraction | None = None
    consumer: int = 0


class Term(NamedTuple):
    """Coefficients of consecutive columns."""

    first: int
    values: Ints


class Rows:
    """The columns of the program for some choices, and the coefficients of its rows.

    Attributes
    ----------
    pairs : list of (int, int)
        Adjacent groups, the lower number first.
    sizes, areas : list of int
        Columns of each group, and of each pair.
    y, w : list of int
        First column of each group, and of each pair, whose columns are a matrix of the groups' own
        layouts.
    own, own_of : list of ndarray
        Layouts of each group, and which of them each of its actions has.
    possible : ndarray of bool, columns
        Columns that are not excluded by a missing link, or by parameters too large for a device.
    moves : list of Conversion or Synchronisation
        The cost to read each edge.
    alike : list of int
        A number per edge: edges that share it have equal columns and coefficients.
    in_edges, out_edges : list of list of int
        Numbers of the edges that enter and leave each operation.
    readers : list of list of list of int
        Edges of each tensor of each operation, one for each way to read it: operations of one group
        read the same slices, unless only some of them can split.
    resources : list of Resource
        Devices, links between them, and the queue of collectives.
    """

    def __init__(self, costs: Costs) -> None:
        self.costs, self.graph = costs, costs.graph
        graph, k = costs.graph, costs.k
        self.sizes = [len(actions) for actions in costs.actions]
        used = [np.unique(row, return_inverse=True) for row in costs.layout_of]
        self.own = [layouts for layouts, _ in used]
        self.own_of = [place.reshape(-1) for _, place in used]
        ends = map(self._groups, graph.edges)
        self.pairs = sorted({(min(g, h), max(g, h)) for g, h in ends if g != h})
        self.pair = {pair: p for p, pair in enumerate(self.pairs)}
        self.areas = [len(self.own[g]) * len(self.own[h]) for g, h in self.pairs]
        first = np.cumsum([0, *self.sizes, *self.areas]).tolist()
        self.y, self.w = first[: len(self.sizes)], first[len(self.sizes) : -1]
        self.columns: int = first[-1]
        self._steps: dict[object, Ints] = {}
        self._firsts: dict[object, Ints] = {}
        self._moved: dict[tuple[int, Resource], Term] = {}
        self.in_edges: list[list[int]] = [[] for _ in graph.operations]
        self.out_edges: list[list[int]] = [[] for _ in graph.operations]
        for e, edge in enumerate(graph.edges):
            self.in_edges[edge.consumer].append(e)
            self.out_edges[edge.producer].append(e)
        numbers: dict[object, int] = {}
        self._times = [numbers.setdefault(o.times, len(numbers)) for o in graph.operations]
        self.moves: list[Conversion | Synchronisation] = [
            costs.synchronisation(edge) if graph.sums(edge) else costs.conversion(edge)
            for edge in graph.edges
        ]
        numbers = {}
        self.alike = [
            numbers.setdefault(self._likeness(e), len(numbers)) for e in range(len(graph.edges))
        ]
        self.readers = [self._readers(o) for o in range(len(graph))]
        links = [("link", d, e) for d in range(k) for e in range(k)]
        linked = [x for x in links if x[1] != x[2] and costs.cluster.linked(*x[1:])]
        self.resources: list[Resource] = [*(("device", d, d) for d in range(k)), *linked, NCCL]
        self.possible = np.ones(self.columns, dtype=np.bool_)
        for e, moves in enumerate(self.moves):
            at, missing = self.between(e, moves.missing.astype(np.int64))
            self.possible[at : at + len(missing)] &= missing == 0
        for d in range(k):
            limit = self.capacity(d)
            if limit is not None:
                self.possible &= self.coefficients(Row("memory", ("device", d, d))) <= limit

    def point(self, chosen: Sequence[int]) -> Ints:
        """Return the columns of one strategy, given by an action per group."""
        found = np.zeros(self.columns, dtype=np.int64)
        for first, a in zip(self.y, chosen, strict=True):
            found[first + a] = 1
        for first, (g, h) in zip(self.w, self.pairs, strict=True):
            one, two = self.own_of[g][chosen[g]], self.own_of[h][chosen[h]]
            found[first + one * len(self.own[h]) + two] = 1
        return found

    # --- edges -----------------------------------------------------------------------------

    def _groups(self, edge: Edge) -> tuple[int, int]:
        return self.costs.group_of[edge.producer], self.costs.group_of[edge.consumer]

    def _likeness(self, e: int) -> object:
        edge = self.graph.edges[e]
        producer, consumer = (self.graph.operations[o] for o in (edge.producer, edge.consumer))
        return (
            id(self.moves[e]),
            self._times[edge.consumer],
            self._groups(edge),
            producer.splittable,
            consumer.splittable,
            None if edge.output == CONTROL else producer.outputs[edge.output].layout,
        )

    def between(self, e: int, values: Ints) -> Term:
        """Return values by actions, or by layouts of both ends, as coefficients of columns."""
        edge = self.graph.edges[e]
        g, h = self._groups(edge)
        if self.graph.sums(edge):
            return Term(self.y[g], values)
        if g == h:
            layouts = self.costs.layout_of[g]
            return Term(self.y[g], values[layouts, layouts])
        matrix = values[np.ix_(self.own[g], self.own[h])]
        if g > h:
            matrix = matrix.T
        return Term(self.w[self.pair[min(g, h), max(g, h)]], matrix.reshape(-1))

    def follows(self, o: int, sample: Fraction | None) -> bool:
        """Return whether a path with this sample follows one replica of an operation.

        The replicas of an operation that cannot split all compute every sample; a path then takes
        the one that ends first.
        """
        return sample is not None and self.graph.operations[o].splittable

    def _whole(self, edge: Edge) -> bool:
        outputs = self.graph.operations[edge.producer].outputs
        return edge.output != CONTROL and outputs[edge.output].layout is Layout.WHOLE

    def usable(self, e: int, sample: Fraction | None) -> bool:
        """Return whether a path with a sample may take an edge.

        The replica of a sample is read by the replica of the same sample, but one copy of a
        ``WHOLE`` output may be read by nobody.
        """
        edge = self.graph.edges[e]
        return not (self._whole(edge) and self.follows(edge.producer, sample))

    def returns(self, e: int) -> bool:
        """Return whether every replica of the producer is read by some replica of the consumer."""
        edge = self.graph.edges[e]
        splittable = self.graph.operations[edge.producer].splittable
        return edge.output == CONTROL or (splittable and not self._whole(edge))

    def step(self, e: int, sample: Fraction | None, backwards: bool = False) -> Term:
        """Return the ticks from the end of the producer of an edge to the end of the consumer.

        Forwards, from the replica of the sample, or the one that ends first, to such a replica of
        the consumer. Backwards, from any replica of the producer to the end of a replica that
        reads it.
        """
        edge = self.graph.edges[e]
        # Networks repeat their layers: most edges are like others.
        key = (
            id(self.moves[e]),
            self._times[edge.consumer],
            self.costs.group_of[edge.consumer] if self.graph.sums(edge) else -1,
            self.follows(edge.producer, sample),
            self.follows(edge.consumer, sample),
            # Fractions take long to hash.
            None if sample is None else (sample.numerator, sample.denominator),
            backwards,
        )
        if key not in self._steps:
            self._steps[key] = self._step(e, sample, backwards)
        return self.between(e, self._steps[key])

    def _step(self, e: int, sample: Fraction | None, backwards: bool) -> Ints:
        costs, edge = self.costs, self.graph.edges[e]
        delay, o, sums = self.moves[e].delay, edge.consumer, self.graph.sums(edge)
        if sums:
            layouts = costs.layout_of[costs.group_of[o]]
            delay, here, there = delay[:, None], layouts, layouts[:, None]
        else:
            n = len(costs.layouts)
            here, there = np.arange(n), np.arange(n)[None, :].repeat(n, axis=0)
        # delay: rows × columns × k × k, with layouts ``here`` of rows and ``there`` of cells.
        run = costs.duration[o][there]  # rows × columns × k
        rows = np.arange(len(here))[:, None]
        cells = np.arange(delay.shape[1])[None, :]
        if backwards:
            whole = np.where(delay >= 0, delay + run[:, :, None, :], -1).max(axis=3)
            cost = np.where(costs.present[here][:, None, :], whole, _LARGE).min(axis=2)
        else:
            if self.follows(edge.producer, sample):
                source = delay[rows, cells, costs.at_sample(sample)[here][:, None], :]
            else:
                source = delay.max(axis=2)
            if self.follows(o, sample):
                device = costs.at_sample(sample)[there]
                cost = source[rows, cells, device] + run[rows, cells, device]
            else:
                cost = np.where(costs.present[there], source + run, _LARGE).min(axis=2)
        found: Ints = cost[:, 0] if sums else cost
        return found

    def first(self, o: int, sample: Fraction | None) -> Term:
        """Return the ticks of an operation that a path begins with."""
        g = self.costs.group_of[o]
        key = o, None if sample is None else (sample.numerator, sample.denominator)
        if key not in self._firsts:
            layouts = self.costs.layout_of[g]
            run = self.costs.duration[o][layouts]
            if self.follows(o, sample):
                devices = self.costs.at_sample(sample)[layouts]
                self._firsts[key] = run[np.arange(len(layouts)), devices]
            else:
                present = self.costs.present[layouts]
                self._firsts[key] = np.where(present, run, _LARGE).min(axis=1)
        return Term(self.y[g], self._firsts[key])

    # --- loads -----------------------------------------------------------------------------

    def _readers(self, o: int) -> list[list[int]]:
        tensors: dict[int, dict[tuple[int, bool], int]] = {}
        for e in self.out_edges[o]:
            edge = self.graph.edges[e]
            key = (
                self.costs.group_of[edge.consumer],
                self.graph.operations[edge.consumer].splittable,
            )
            tensors.setdefault(edge.output, {}).setdefault(key, e)
        found = []
        for ways in tensors.values():
            edges = list(ways.values())
            found.append([e for e in edges if self._costly(self.moves[e])] or edges[:1])
        return found

    @staticmethod
    def _costly(moves: Conversion | Synchronisation) -> bool:
        free = isinstance(moves, Conversion) and not (moves.transfer.any() or moves.copying.any())
        return not free

    def moved(self, e: int, resource: Resource) -> Term:
        """Return the ticks that reading an edge takes on a resource."""
        key = self.alike[e], resource
        if key not in self._moved:
            moves, (kind, d, target) = self.moves[e], resource
            if kind == "link":
                self._moved[key] = self.between(e, moves.transfer[..., d, target])
            elif kind == "device":
                self._moved[key] = self.between(e, moves.copying[..., d])
            elif isinstance(moves, Synchronisation):
                self._moved[key] = self.between(e, moves.collective)
            else:
                self._moved[key] = Term(0, np.zeros(0, dtype=np.int64))
        return self._moved[key]

    def cells(self, e: int) -> Ints:
        """Return the columns of an edge: of actions, or of the layouts of producer and consumer."""
        g, h = self._groups(self.graph.edges[e])
        if g == h:
            actions: Ints = self.y[g] + np.arange(len(self.own_of[g]))
            return actions
        first = self.w[self.pair[min(g, h), max(g, h)]]
        low, high = len(self.own[min(g, h)]), len(self.own[max(g, h)])
        matrix: Ints = first + np.arange(low * high).reshape(low, high)
        return matrix if g < h else matrix.T

    def within(self, e: int) -> tuple[Ints, Ints, Ints]:
        """Return transfers, copying and collectives of an edge, by :meth:`cells` and devices."""
        moves, (g, h) = self.moves[e], self._groups(self.graph.edges[e])
        if isinstance(moves, Synchronisation):
            return moves.transfer, moves.copying, moves.collective[:, None]
        layouts = self.costs.layout_of[g]
        at = (layouts, layouts) if g == h else np.ix_(self.own[g], self.own[h])
        transfer, copying = moves.transfer[at], moves.copying[at]
        return transfer, copying, np.zeros_like(copying[..., :1])

    def computed(self, o: int, resource: Resource) -> Term:
        """Return the ticks that an operation runs on a resource."""
        g = self.costs.group_of[o]
        if resource[0] != "device":
            return Term(self.y[g], np.zeros(0, dtype=np.int64))
        return Term(self.y[g], self.costs.duration[o][self.costs.layout_of[g], resource[1]])

    # --- order -----------------------------------------------------------------------------

    def after(self, o: int, sample: Fraction | None) -> list[int]:
        """Return an operation and all that paths with a sample lead to from it."""
        edges = self.graph.edges
        return _reached(
            o, lambda u: [edges[e].consumer for e in self.out_edges[u] if self.usable(e, sample)]
        )

    def before(self, o: int) -> list[int]:
        """Return an operation and all operations of which every replica ends before it starts.

        They precede it along edges that read every replica; see :meth:`returns`.
        """
        edges = self.graph.edges
        return _reached(
            o, lambda u: [edges[e].producer for e in self.in_edges[u] if self.returns(e)]
        )

    # --- rows ------------------------------------------------------------------------------

    def coefficients(self, row: Row) -> Ints:
        """Return the coefficients of all columns."""
        found = np.zeros(self.columns, dtype=np.int64)
        for first, values in self._terms(row):
            found[first : first + len(values)] += values
        return found

    def _terms(self, row: Row) -> Iterator[Term]:
        if row.kind == "memory":
            yield from self._memory(row)
            return
        if row.kind == "load":
            yield from self._loads(range(len(self.graph)), row)
            return
        end = row.start
        yield self.first(row.start, None if row.kind == "tail" else row.sample)
        for e in row.edges:
            yield self.step(e, row.sample, row.kind == "tail")
            end = self.graph.edges[e].consumer
        if row.kind == "head":
            yield from self._loads(self.after(end, row.sample), row, without=end)
        elif row.kind == "tail":
            before = self.before(row.start)
            yield from self._loads(before, row, set(before), without=row.start)

    def _loads(
        self,
        operations: Iterable[int],
        row: Row,
        readers: set[int] | None = None,
        without: int | None = None,
    ) -> Iterator[Term]:
        """Yield what operations, but for one, and their outputs take on a resource.

        Only tensors that ``readers`` read count, if any are given.
        """
        assert row.resource is not None
        for o in operations:
            if o != without:
                yield self.computed(o, row.resource)
            for ways in self.readers[o]:
                e = ways[row.consumer % len(ways)]
                if readers is None or self.graph.edges[e].consumer in readers:
                    yield self.moved(e, row.resource)

    def _memory(self, row: Row) -> Iterator[Term]:
        assert row.resource is not None
        for o, size in enumerate(self.costs.resident):
            if size:
                g = self.costs.group_of[o]
                there = self.costs.present[self.costs.layout_of[g], row.resource[1]]
                yield Term(self.y[g], there * (size.numerator // size.denominator))

    def capacity(self, d: int) -> int | None:
        """Return the whole bytes that a device has; ``None`` without a limit.

        Whole replicas fit a limit only if their bytes, each rounded down, fit it rounded down.
        """
        limit = self.costs.cluster.cluster.memory[d]
        ignored = self.costs.options.memory == "none"
        return None if limit is None or ignored else limit.numerator // limit.denominator


def _reached(o: int, following: Callable[[int], list[int]]) -> list[int]:
    seen, stack = {o}, [o]
    while stack:
        for v in following(stack.pop()):
            if v not in seen:
                seen.add(v)
                stack.append(v)
    return sorted(seen)
