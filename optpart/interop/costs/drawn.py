"""Costs where only the structure is known: drawn, as in the literature, or units."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from optpart.base.errors import InputError
from optpart.problem.graph import CONTROL, Graph
from optpart.problem.rational import RationalArray

#: Least and largest value, both included.
Range = tuple[int, int]


def drawn(
    graph: Graph,
    seed: int | np.random.Generator,
    *,
    ops: Range = (1, 100),
    sizes: Range = (1, 100),
    memory: Range | None = None,
) -> Graph:
    """Return the graph with integer costs drawn uniformly ([M] §5.1, [L] §6.2).

    Parameters
    ----------
    seed : int or numpy.random.Generator
    ops, sizes : (int, int)
        Ranges of the operations of a vertex and of the size of an output tensor, ends included.
    memory : (int, int), optional
        Range of the resident memory of a vertex; (1, 100) in [L] §6.2. By default there is none,
        as in [M] §5.1.

    Returns
    -------
    Graph
        Signals of control dependencies keep size 0. Operations are drawn first, sizes second,
        memory last, so that operations and sizes do not depend on whether there is memory.
    """
    rng = np.random.default_rng(seed)
    size = np.zeros(graph.tensors, dtype=np.int64)
    operations = _uniform(rng, ops, len(graph), "ops")
    outputs = np.flatnonzero(graph.tensor_output != CONTROL)
    size[outputs] = _uniform(rng, sizes, len(outputs), "sizes")
    resident = _uniform(rng, (0, 0) if memory is None else memory, len(graph), "memory")
    return replace(
        graph,
        ops=RationalArray(operations),
        memory=RationalArray(resident),
        tensor_size=RationalArray(size),
    )


def unit(graph: Graph) -> Graph:
    """Return the graph with 1 operation per vertex, outputs of size 1, and no resident memory."""
    return replace(
        graph,
        ops=RationalArray(np.ones(len(graph), dtype=np.int64)),
        memory=RationalArray.zeros(len(graph)),
        tensor_size=RationalArray((graph.tensor_output != CONTROL).astype(np.int64)),
    )


def _uniform(rng: np.random.Generator, bounds: Range, count: int, place: str) -> NDArray[np.int64]:
    low, high = bounds
    if not 0 <= low <= high < 2**63:
        raise InputError(place, f"range {low} to {high}", "give 0 ≤ least ≤ largest < 2^63")
    return rng.integers(low, high, size=count, endpoint=True)
