"""Unit costs, so that only the structure matters."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from optpart.problem.graph import CONTROL, Graph
from optpart.problem.rational import RationalArray


def unit(graph: Graph) -> Graph:
    """Return the graph with 1 operation per vertex, outputs of size 1, and no resident memory."""
    return replace(
        graph,
        ops=RationalArray(np.ones(len(graph), dtype=np.int64)),
        memory=RationalArray.zeros(len(graph)),
        tensor_size=RationalArray((graph.tensor_output != CONTROL).astype(np.int64)),
    )
