"""Costs from a CSV table, for instance measured ones.

::

    name,ops,memory,sizes
    conv,30,4,50;1/3
    loss,0.5,0,

``sizes`` has one entry per output, separated by semicolons; numbers are exact: integers, decimals
or fractions.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np

from optpart.base.errors import FaultsOf, InputError
from optpart.interop.formats.tables import entries, read_rows
from optpart.problem.graph import CONTROL, Graph
from optpart.problem.rational import RationalArray, non_negative

_COLUMNS = ("name", "ops", "memory", "sizes")


def from_csv(graph: Graph, path: str | Path) -> Graph:
    """Return the graph with the costs of a table.

    Raises
    ------
    InputError
        If the table does not name every vertex exactly once, or the number of sizes in a row is
        not the number of outputs of its vertex.
    """
    with FaultsOf(path):
        return _with_costs(graph, read_rows(path, _COLUMNS))


def _with_costs(graph: Graph, rows: list[tuple[str, dict[str, str]]]) -> Graph:
    n = len(graph)
    plain = graph.tensor_output != CONTROL
    outputs = np.bincount(graph.tensor_vertex[plain], minlength=n)
    ops: list[Fraction | None] = [None] * n
    memory = [Fraction(0)] * n
    sizes: list[list[Fraction]] = [[] for _ in range(n)]
    for place, row in rows:
        name = row["name"]
        if name not in graph.index:
            raise InputError(place, f"no vertex {name!r}", "name a vertex of the graph")
        v = graph.index[name]
        if ops[v] is not None:
            raise InputError(place, f"a second row for {name!r}", "give one row per vertex")
        ops[v] = non_negative(row["ops"], f"{place}, ops")
        memory[v] = non_negative(row["memory"], f"{place}, memory")
        sizes[v] = [non_negative(size, f"{place}, sizes") for size in entries(row["sizes"])]
        if len(sizes[v]) != outputs[v]:
            raise InputError(
                f"{place}, sizes", f"{len(sizes[v])} sizes", f"give {outputs[v]}, one per output"
            )
    given = [count for count in ops if count is not None]
    if len(given) < n:
        missing = graph.names[ops.index(None)]
        raise InputError("", f"no row for vertex {missing!r}", "give one row per vertex")
    return replace(
        graph,
        ops=RationalArray.from_fractions(given),
        memory=RationalArray.from_fractions(memory),
        tensor_size=RationalArray.from_fractions(
            Fraction(0) if output == CONTROL else sizes[v][output]
            for v, output in zip(
                graph.tensor_vertex.tolist(), graph.tensor_output.tolist(), strict=True
            )
        ),
    )
