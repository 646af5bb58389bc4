"""Finding the rows that a fractional solution violates."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from optpart.applications.training.bounds.costs import Ints
from optpart.applications.training.bounds.rows import NCCL, Row, Rows

Floats = NDArray[np.float64]

#: Least violation, as a share of the makespan, that is worth a row.
_VIOLATED = 1e-5

#: Rows found at a time at most.
_FOUND = 40


class _Steps(NamedTuple):
    """Steps of paths along edges that are alike."""

    first: int  # column
    usable: NDArray[np.bool_]  # by sample
    forward: Ints  # samples × columns
    backward: Ints  # columns


class Separator:
    """Finds the rows that a fractional solution violates."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        graph = rows.graph
        self.samples: list[Fraction | None] = [*rows.costs.samples, None]
        self.order = graph.topological_order
        #: The first operation of a path: first column, and values by sample.
        self._alone = []
        for o in range(len(graph)):
            terms = [rows.first(o, sample) for sample in self.samples]
            self._alone.append((terms[0].first, np.stack([term.values for term in terms])))
        self._returns = [rows.returns(e) for e in range(len(graph.edges))]
        # Networks repeat their layers: most edges are like others.
        known: dict[int, _Steps] = {}
        for e, like in enumerate(rows.alike):
            if like not in known:
                known[like] = self._along(e)
        self._steps = [known[like] for like in rows.alike]
        self._reach()
        self._count()

    def _along(self, e: int) -> _Steps:
        rows = self.rows
        usable = np.array([rows.usable(e, sample) for sample in self.samples])
        terms = [
            rows.step(e, sample if fine else None)
            for sample, fine in zip(self.samples, usable.tolist(), strict=True)
        ]
        back = rows.step(e, None, True) if self._returns[e] else terms[-1]
        return _Steps(
            terms[0].first, usable, np.stack([term.values for term in terms]), back.values
        )

    def _reach(self) -> None:
        graph, n = self.rows.graph, len(self.rows.graph)
        self.later = np.zeros((2, n, n), dtype=np.bool_)  # of samples, and of the least replica
        self.earlier = np.zeros((n, n), dtype=np.bool_)
        for o in reversed(self.order):
            self.later[:, o, o] = True
            for e in self.rows.out_edges[o]:
                for i in (0, 1):
                    if self._steps[e].usable[-i]:
                        self.later[i, o] |= self.later[i, graph.edges[e].consumer]
        for o in self.order:
            self.earlier[o, o] = True
            for e in self.rows.in_edges[o]:
                if self._returns[e]:
                    self.earlier[o] |= self.earlier[graph.edges[e].producer]

    def _count(self) -> None:
        """Gather what each operation, and its outputs, take on each resource."""
        rows, n = self.rows, len(self.rows.graph)
        self.resources = rows.resources
        parts: dict[str, list[tuple[Ints, Ints, Ints]]] = {"run": [], "out": [], "in": []}
        number = {resource: r for r, resource in enumerate(self.resources)}
        k = rows.costs.k
        links = np.array([[number.get(("link", d, e), 0) for e in range(k)] for d in range(k)])

        def note(what: str, o: int, where: Ints, columns: Ints, values: Ints) -> None:
            where, columns, values = np.broadcast_arrays(where, columns, values)
            used = values != 0
            at = o * len(self.resources) + where
            parts[what].append((at[used], columns[used], values[used]))

        for o in range(n):
            g = rows.costs.group_of[o]
            run = rows.costs.duration[o][rows.costs.layout_of[g]]
            note("run", o, np.arange(k)[None, :], rows.y[g] + np.arange(len(run))[:, None], run)
            for ways in rows.readers[o]:
                columns = rows.cells(ways[0])
                places = links, np.arange(k), np.array([number[NCCL]])
                for where, values in zip(places, rows.within(ways[0]), strict=True):
                    shaped = columns.reshape(columns.shape + (1,) * (values.ndim - columns.ndim))
                    note("out", o, where, shaped, values)
                    note("in", rows.graph.edges[ways[0]].consumer, where, shaped, values)
        shape = (n * len(self.resources), rows.columns)
        self._on: dict[str, csr_array] = {}
        for what, found in parts.items():
            if found:
                row, column, value = (np.concatenate(x) for x in zip(*found, strict=True))
                self._on[what] = csr_array((value, (row, column)), shape=shape)
            else:
                self._on[what] = csr_array(shape)

    def violated(self, x: Floats, makespan: float) -> list[Row]:
        """Return the rows that a solution violates most, at most ``_FOUND``."""
        found: list[tuple[float, Row]] = []
        rows, graph = self.rows, self.rows.graph
        n, s = len(graph), len(self.samples)
        end = np.array(
            [values @ x[first : first + values.shape[1]] for first, values in self._alone]
        )
        via = np.full((n, s), -1, dtype=np.int64)
        alone = end.copy()
        for o in self.order:
            for e in rows.in_edges[o]:
                first, usable, values, _ = self._steps[e]
                step = values @ x[first : first + values.shape[1]]
                cost = np.where(usable, end[graph.edges[e].producer] + step, -1.0)
                better = cost > end[o]
                end[o][better] = cost[better]
                via[o][better] = e
        rest = np.zeros(n)
        then = np.full(n, -1, dtype=np.int64)
        for o in reversed(self.order):
            for e in rows.out_edges[o]:
                if self._returns[e]:
                    first, _, _, back = self._steps[e]
                    along = float(back @ x[first : first + len(back)])
                    length = rest[graph.edges[e].consumer] + along
                    if length > rest[o]:
                        rest[o], then[o] = length, e
        for i, sample in enumerate(self.samples):
            o = int(end[:, i].argmax())
            found.append((end[o, i], Row("path", None, *self._path(via, o, i), sample)))
        shape = (n, len(self.resources))
        run, out, into = ((self._on[w] @ x).reshape(shape) for w in ("run", "out", "in"))
        nccl = self.resources.index(NCCL)
        loads = (run + out).sum(axis=0).tolist()
        found += [(loads[r], Row("load", resource)) for r, resource in enumerate(self.resources)]
        # Heads: the end of an operation, then all that waits for it.
        queue = self.later[0].astype(np.float64) @ out[:, nccl]
        for i, sample in enumerate(self.samples[:-1]):
            o = int((end[:, i] + queue).argmax())
            found.append((end[o, i] + queue[o], Row("head", NCCL, *self._path(via, o, i), sample)))
        after = self.later[1].astype(np.float64) @ (run + out) - run + end[:, -1:]
        before = (
            self.earlier.astype(np.float64) @ (run + into) - run + (alone[:, -1] + rest)[:, None]
        )
        for r, resource in enumerate(self.resources):
            o = int(after[:, r].argmax())
            found.append((after[o, r], Row("head", resource, *self._path(via, o, s - 1))))
            o = at = int(before[:, r].argmax())
            forward = []
            while then[at] >= 0:
                forward.append(int(then[at]))
                at = graph.edges[forward[-1]].consumer
            found.append((before[o, r], Row("tail", resource, o, tuple(forward))))
        found = [(value, row) for value, row in found if value > makespan + _VIOLATED * makespan]
        found.sort(key=lambda pair: -pair[0])
        return [row for _, row in found[:_FOUND]]

    def _path(self, via: Ints, o: int, i: int) -> tuple[int, tuple[int, ...]]:
        edges: list[int] = []
        while via[o, i] >= 0:
            edges.append(int(via[o, i]))
            o = self.rows.graph.edges[edges[-1]].producer
        return o, tuple(reversed(edges))
