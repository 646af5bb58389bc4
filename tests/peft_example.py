"""The example of Arabnejad and Barbosa 2014, which strategies are compared on."""

from __future__ import annotations

from optpart import Cluster, GraphBuilder, Instance

#: The example of the paper, figure 2: run times on three processors, and data on the edges.
TIMES = [
    [22, 21, 36],
    [22, 18, 18],
    [32, 27, 43],
    [7, 10, 4],
    [29, 27, 35],
    [26, 17, 24],
    [14, 25, 30],
    [29, 23, 36],
    [15, 21, 8],
    [13, 16, 33],
]
EDGES = [
    (1, 2, 17), (1, 3, 31), (1, 4, 29), (1, 5, 13), (1, 6, 7), (2, 8, 3), (2, 9, 30), (3, 7, 16),
    (4, 8, 11), (4, 9, 7), (5, 9, 57), (6, 8, 5), (7, 10, 9), (8, 10, 42), (9, 10, 7),
]  # fmt: skip


def example() -> Instance:
    builder = GraphBuilder()
    for v in range(1, 11):
        builder.vertex(f"T{v}")
    for u, v, data in EDGES:
        builder.edge(f"T{u}", f"T{v}", size=data)
    return Instance(builder.build(), Cluster.uniform(3, bandwidth=1), durations=TIMES)
