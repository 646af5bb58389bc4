"""Families of graphs: algorithms, and kinds of graphs that papers compare methods on.

A family is a shape, tasks and edges. Its costs are drawn as those of
:func:`~optpart.interop.generate.small.small`, so that all run times and delays are whole numbers:
operations and sizes uniformly, then scaled to the ratio of communication to computation. A task has
one output tensor, which all its out-edges consume. Memory is not limited.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from optpart.base.errors import InputError
from optpart.base.limits import MOST_DEVICES, MOST_VERTICES, check_devices, check_size
from optpart.interop.generate import draw
from optpart.interop.generate.option import Option
from optpart.interop.generate.whole_times import (
    FINE,
    LEAST_CCR,
    MOST_CCR,
    Machines,
    check_ccr,
    scaled,
)
from optpart.problem.graph import Graph
from optpart.problem.instance import Instance
from optpart.problem.rational import RationalArray

Devices: TypeAlias = Annotated[int, Option(2, MOST_DEVICES)]
Ratio: TypeAlias = Annotated[float, Option(LEAST_CCR, MOST_CCR, "Communication to computation.")]


class Shape(NamedTuple):
    """Tasks and edges without costs.

    Attributes
    ----------
    names : list of str
        Of all tasks.
    edges : list of (int, int)
        Pairs of a task and one that needs its output, all distinct.
    free : tuple of int
        Tasks that take no time and whose output has size 0, such as an entry added to a graph.
    """

    names: list[str]
    edges: list[tuple[int, int]]
    free: tuple[int, ...] = ()


def instance_of(
    shape: Callable[[np.random.Generator], Shape],
    *,
    tasks: int,
    edges: float,
    name: Mapping[str, object],
    devices: int,
    seed: int,
    ccr: float,
    source: str,
) -> Instance:
    """Draw the costs of a shape, and a cluster.

    For one seed and shape, ``devices`` changes only the cluster, and ``ccr`` only the scale.

    Parameters
    ----------
    shape : callable
        Returns the shape; called only if its size is within the limits.
    tasks, edges : int, float
        The size of the shape; of edges that are drawn, the expected number.
    name : mapping
        The family under its name, and its parameters by the prefix that they have in the name of
        the instance.
    devices : int
        At least 2, since one device needs no communication. Speeds and bandwidths are those of
        :class:`~optpart.interop.generate.whole_times.Machines`.
    ccr : float
        Mean delay, over tensors and ordered pairs of devices, divided by the mean run time, over
        tasks and devices. Rounding changes it by a few percent.
    source : str
        Where the family comes from.

    Raises
    ------
    InputError
        If a number is out of its range, or the instance would be too large.
    """
    check_devices(devices, least=2)
    check_size(tasks, edges, devices, place="tasks, edges and devices")
    check_ccr(ccr)
    for_shape, for_costs, for_cluster = draw.generator(seed).spawn(3)
    made = shape(for_shape)
    machines = Machines.drawn(for_cluster, devices)
    marks = [f"{prefix}{value}" for prefix, value in name.items()]
    return Instance(
        scaled(_graph(for_costs, made), machines, ccr),
        machines.cluster(),
        name="-".join([*marks, f"d{devices}", f"ccr{ccr:g}", f"s{seed}"]),
        source=f"{source}, with whole-number times, seed {seed}",
    )


def _graph(rng: np.random.Generator, shape: Shape) -> Graph:
    n = len(shape.names)
    ends = np.array(shape.edges, dtype=np.int32).reshape(-1, 2)
    ends = ends[np.lexsort((ends[:, 1], ends[:, 0]))]
    source, target = ends[:, 0].copy(), ends[:, 1].copy()
    return Graph(
        names=tuple(shape.names),
        ops=_drawn(rng, n, shape.free),
        memory=RationalArray(np.zeros(n, dtype=np.int64)),
        device_types=(None,) * n,
        allowed_devices={},
        tensor_vertex=np.arange(n, dtype=np.int32),
        tensor_output=np.zeros(n, dtype=np.int32),
        tensor_size=_drawn(rng, n, shape.free),
        tensor_delay={},
        edge_source=source,
        edge_target=target,
        edge_tensor=source,
        colocation=(),
    )


def _drawn(rng: np.random.Generator, n: int, free: tuple[int, ...]) -> RationalArray:
    values: NDArray[np.int64] = draw.integers(rng, (1, FINE), n)
    values[list(free)] = 0
    return RationalArray(values)


def fork_join(
    width: Annotated[int, Option(1, MOST_VERTICES, "Workers between a fork and its join.")] = 8,
    stages: Annotated[int, Option(1, MOST_VERTICES)] = 1,
    devices: Devices = 4,
    *,
    ccr: Ratio = 1.0,
    seed: int = 0,
) -> Instance:
    """Draw a chain of forks into ``width`` workers, whose join is the fork of the next stage.

    It has ``stages · (width + 1) + 1`` tasks and ``2 · stages · width`` edges. The structure is
    that of H. Wang and O. Sinnen, List-scheduling versus cluster-scheduling, IEEE TPDS 29 (2018).
    See :func:`instance_of`.
    """
    draw.count(width, "width", least=1)
    draw.count(stages, "stages", least=1)

    def shape(rng: np.random.Generator) -> Shape:
        names, edges = ["fork_0"], []
        for stage in range(stages):
            fork = stage * (width + 1)
            join = fork + width + 1
            names += [f"work_{stage}_{i}" for i in range(width)]
            names.append(f"fork_{stage + 1}" if stage + 1 < stages else "join")
            for worker in range(fork + 1, join):
                edges += [(fork, worker), (worker, join)]
        return Shape(names, edges)

    return instance_of(
        shape,
        tasks=stages * (width + 1) + 1,
        edges=2 * stages * width,
        name={"fork-join": "", "w": width, "t": stages},
        devices=devices,
        seed=seed,
        ccr=ccr,
        source="fork-join graph",
    )


#: Of the edges of a tree.
Direction = Literal["in", "out"]


def tree(
    direction: Annotated[Direction, Option(help="Towards the root, or away from it.")] = "in",
    levels: Annotated[int, Option(1, MOST_VERTICES, "The root included.")] = 4,
    branching: Annotated[int, Option(1, MOST_VERTICES, "Children of a task.")] = 2,
    devices: Devices = 4,
    *,
    ccr: Ratio = 1.0,
    seed: int = 0,
) -> Instance:
    """Draw a complete tree whose edges lead to the root (``in``) or away from it (``out``).

    With ``b`` for ``branching`` and ``h`` for ``levels``, it has ``1 + b + … + b^(h−1)`` tasks,
    which is ``(b^h − 1) / (b − 1)`` if ``b > 1``, and one edge less. In-trees are reductions, such
    as a sum; out-trees distribute, such as a broadcast. The structures are among those of H. Wang
    and O. Sinnen, List-scheduling versus cluster-scheduling, IEEE TPDS 29 (2018).
    See :func:`instance_of`.
    """
    if direction not in get_args(Direction):
        raise InputError("direction", f"unknown {direction!r}", "choose one of in, out")
    draw.count(levels, "levels", least=1, most=MOST_VERTICES)
    draw.count(branching, "branching", least=1, most=MOST_VERTICES)
    tasks = 0
    for _ in range(levels):
        tasks = 1 + branching * tasks
        if tasks > MOST_VERTICES:
            break

    def shape(rng: np.random.Generator) -> Shape:
        # Breadth first from the root: the children of v are b·v + 1 to b·v + b.
        up = [(v, (v - 1) // branching) for v in range(1, tasks)]
        names = [f"t{v}" for v in range(tasks)]
        return Shape(names, up if direction == "in" else [(parent, v) for v, parent in up])

    return instance_of(
        shape,
        tasks=tasks,
        edges=tasks - 1,
        name={f"{direction}-tree": "", "h": levels, "b": branching},
        devices=devices,
        seed=seed,
        ccr=ccr,
        source=f"complete {direction}-tree",
    )


def fft(
    points: Annotated[int, Option(1, MOST_VERTICES, "A power of two.")] = 8,
    devices: Devices = 4,
    *,
    ccr: Ratio = 1.0,
    seed: int = 0,
) -> Instance:
    """Draw the one-dimensional fast Fourier transform of ``points`` numbers.

    With ``m`` points, ``2m − 1`` recursive calls form a binary tree, whose ``m`` leaves feed
    ``log₂ m`` rows of ``m`` butterflies: ``2m − 1 + m·log₂ m`` tasks and
    ``2m − 2 + 2m·log₂ m`` edges. The graph is that of H. Topcuoglu, S. Hariri and M.-Y. Wu,
    Performance-effective and low-complexity task scheduling for heterogeneous computing, IEEE TPDS
    13 (2002). See :func:`instance_of`.
    """
    if points < 1 or points & (points - 1):
        raise InputError("points", f"{points} is not a power of two", "give 1, 2, 4, 8, …")
    rows = points.bit_length() - 1

    def shape(rng: np.random.Generator) -> Shape:
        calls = 2 * points - 1
        names = [f"call_{v}" for v in range(calls)]
        edges = [((v - 1) // 2, v) for v in range(1, calls)]
        above = points - 1  # the first leaf
        for row in range(rows):
            here = len(names)
            names += [f"butterfly_{row}_{i}" for i in range(points)]
            for i in range(points):
                edges += [(above + i, here + i), (above + (i ^ (1 << row)), here + i)]
            above = here
        return Shape(names, edges)

    return instance_of(
        shape,
        tasks=2 * points - 1 + points * rows,
        edges=2 * points - 2 + 2 * points * rows,
        name={"fft": "", "m": points},
        devices=devices,
        seed=seed,
        ccr=ccr,
        source="fast Fourier transform of Topcuoglu et al. 2002",
    )


def gauss(
    size: Annotated[int, Option(2, MOST_VERTICES, "Rows and columns of the matrix.")] = 5,
    devices: Devices = 4,
    *,
    ccr: Ratio = 1.0,
    seed: int = 0,
) -> Instance:
    """Draw Gaussian elimination of a square matrix, column by column.

    Step ``k`` finds the pivot column (``pivot_k``) and then updates every column ``j > k``
    (``update_k_j``). The first update is what the next pivot needs, and each other one is what the
    next update of the same column needs. With ``m`` for ``size``, there are ``(m² + m − 2) / 2``
    tasks and ``m(m − 1) − 1`` edges. The graph is that of H. Topcuoglu, S. Hariri and M.-Y. Wu,
    Performance-effective and low-complexity task scheduling for heterogeneous computing, IEEE TPDS
    13 (2002), after M. Cosnard et al., Parallel Gaussian elimination on an MIMD computer, Parallel
    Computing 6 (1988). See :func:`instance_of`.
    """
    draw.count(size, "size", least=2)

    def shape(rng: np.random.Generator) -> Shape:
        names: list[str] = []
        edges: list[tuple[int, int]] = []
        before = 0  # the last pivot
        for k in range(1, size):
            pivot = len(names)
            names.append(f"pivot_{k}")
            names += [f"update_{k}_{j}" for j in range(k + 1, size + 1)]
            edges += [(pivot, v) for v in range(pivot + 1, len(names))]
            if k > 1:  # from the updates of the last step to this pivot and these updates
                edges += [(before + 1 + i, pivot + i) for i in range(size - k + 1)]
            before = pivot
        return Shape(names, edges)

    return instance_of(
        shape,
        tasks=(size * size + size - 2) // 2,
        edges=size * (size - 1) - 1,
        name={"gauss": "", "m": size},
        devices=devices,
        seed=seed,
        ccr=ccr,
        source="Gaussian elimination of Topcuoglu et al. 2002",
    )


def cholesky(
    tiles: Annotated[int, Option(1, MOST_VERTICES, "Tiles in a row of the matrix.")] = 4,
    devices: Devices = 4,
    *,
    ccr: Ratio = 1.0,
    seed: int = 0,
) -> Instance:
    """Draw the right-looking Cholesky factorisation of a matrix of ``tiles × tiles`` tiles.

    Every task writes one tile. With ``t`` for ``tiles``, there are ``t`` tasks ``potrf_k``,
    ``t(t − 1) / 2`` each of ``trsm_i_k`` and ``syrk_i_k``, and ``t(t − 1)(t − 2) / 6`` of
    ``gemm_i_j_k``: in all, ``t(t + 1)(t + 2) / 6`` tasks and ``(t − 1)t(t + 1) / 2`` edges. The
    graph is that of A. Buttari et al., A class of parallel tiled linear algebra algorithms for
    multicore architectures, Parallel Computing 35 (2009). Operations are drawn without regard to
    the kind of task. See :func:`instance_of`.
    """
    draw.count(tiles, "tiles", least=1)

    def shape(rng: np.random.Generator) -> Shape:
        names: list[str] = []
        edges: list[tuple[int, int]] = []
        writer: dict[tuple[int, int], int] = {}  # of each tile, so far

        def task(name: str, tile: tuple[int, int], *reads: tuple[int, int]) -> None:
            """Add a task that reads tiles and updates one."""
            v = len(names)
            names.append(name)
            edges.extend((writer[one], v) for one in (tile, *reads) if one in writer)
            writer[tile] = v

        for k in range(tiles):
            task(f"potrf_{k}", (k, k))
            for i in range(k + 1, tiles):
                task(f"trsm_{i}_{k}", (i, k), (k, k))
            for i in range(k + 1, tiles):
                task(f"syrk_{i}_{k}", (i, i), (i, k))
                for j in range(k + 1, i):
                    task(f"gemm_{i}_{j}_{k}", (i, j), (i, k), (j, k))
        return Shape(names, edges)

    return instance_of(
        shape,
        tasks=tiles * (tiles + 1) * (tiles + 2) // 6,
        edges=(tiles - 1) * tiles * (tiles + 1) // 2,
        name={"cholesky": "", "t": tiles},
        devices=devices,
        seed=seed,
        ccr=ccr,
        source="tiled Cholesky factorisation of Buttari et al. 2009",
    )


def stencil(
    width: Annotated[int, Option(1, MOST_VERTICES, "Cells of the line.")] = 5,
    steps: Annotated[int, Option(1, MOST_VERTICES, "How often each cell is computed.")] = 5,
    devices: Devices = 4,
    *,
    ccr: Ratio = 1.0,
    seed: int = 0,
) -> Instance:
    """Draw a stencil of three points on a line of cells.

    A cell of one step needs itself and its neighbours of the step before: ``width · steps`` tasks
    and ``(steps − 1)(3 · width − 2)`` edges. The structure is among those of H. Wang and O. Sinnen,
    List-scheduling versus cluster-scheduling, IEEE TPDS 29 (2018).
    See :func:`instance_of`.
    """
    draw.count(width, "width", least=1)
    draw.count(steps, "steps", least=1)

    def shape(rng: np.random.Generator) -> Shape:
        names = [f"cell_{step}_{i}" for step in range(steps) for i in range(width)]
        edges = [
            ((step - 1) * width + near, step * width + i)
            for step in range(1, steps)
            for i in range(width)
            for near in range(max(0, i - 1), min(width, i + 2))
        ]
        return Shape(names, edges)

    return instance_of(
        shape,
        tasks=width * steps,
        edges=(steps - 1) * (3 * width - 2),
        name={"stencil": "", "w": width, "t": steps},
        devices=devices,
        seed=seed,
        ccr=ccr,
        source="stencil of three points",
    )


def gnp(
    tasks: Annotated[int, Option(1, MOST_VERTICES)] = 20,
    probability: Annotated[float, Option(0, 1, "Of each edge.")] = 0.2,
    devices: Devices = 4,
    *,
    ccr: Ratio = 1.0,
    seed: int = 0,
) -> Instance:
    """Draw each edge from a task to a later one with the same probability.

    Of ``n`` tasks, ``probability · n(n − 1) / 2`` edges are expected; with probability 1, there are
    exactly ``n(n − 1) / 2``. This is the method of P. Erdős and A. Rényi for graphs without cycles,
    as in D. Cordeiro et al., Random graph generation for scheduling simulations, SIMUTools 2010.
    See :func:`instance_of`.
    """
    draw.count(tasks, "tasks", least=1)
    draw.probability(probability, "probability")
    pairs = tasks * (tasks - 1) // 2

    def shape(rng: np.random.Generator) -> Shape:
        # A uniform set of a binomial number of pairs: the same as a draw for each pair. Pair number
        # v(v−1)/2 + u joins u < v; rounding of the root is corrected exactly.
        drawn = draw.distinct(rng, pairs, int(rng.binomial(pairs, probability)))
        v = ((1 + np.sqrt(1 + 8 * drawn.astype(np.float64))) / 2).astype(np.int64)
        v -= v * (v - 1) // 2 > drawn
        v += v * (v + 1) // 2 <= drawn
        u = drawn - v * (v - 1) // 2
        return Shape(
            [f"t{i}" for i in range(tasks)], list(zip(u.tolist(), v.tolist(), strict=True))
        )

    return instance_of(
        shape,
        tasks=tasks,
        edges=probability * pairs,
        name={"gnp": "", "n": tasks, "p": f"{probability:g}"},
        devices=devices,
        seed=seed,
        ccr=ccr,
        source="random graph G(n, p) ordered by the numbers of tasks",
    )


def stg_layers(
    layers: Annotated[int, Option(1, MOST_VERTICES)] = 5,
    width: Annotated[int, Option(1, MOST_VERTICES, "Tasks of a layer.")] = 6,
    predecessors: Annotated[
        int, Option(1, MOST_VERTICES, "Of each task, in the layer before; at most the width.")
    ] = 2,
    devices: Devices = 4,
    *,
    ccr: Ratio = 1.0,
    seed: int = 0,
) -> Instance:
    """Draw layers in which every task has the same number of predecessors in the layer before.

    As in the Standard Task Graph Set, an entry comes before the tasks of the first layer and an
    exit after all tasks without successors; both take no time and send nothing. There are
    ``layers · width + 2`` tasks and ``width + (layers − 1) · width · predecessors`` edges and one
    for each task without successors, which are the last layer and those that were not drawn. This
    is in the manner of ``layrpred``, one of the four methods of T. Tobita and H. Kasahara, A
    standard task graph set for fair evaluation of multiprocessor scheduling algorithms, Journal of
    Scheduling 5 (2002), but with the same width for all layers, and not of their files, which
    optpart reads, too. See :func:`instance_of`.
    """
    draw.count(layers, "layers", least=1)
    draw.count(width, "width", least=1)
    draw.count(predecessors, "predecessors", least=1, most=width)
    tasks = layers * width
    inner = (layers - 1) * width * predecessors

    def shape(rng: np.random.Generator) -> Shape:
        # The entry is 0, and the exit comes last.
        names = ["entry", *(f"t_{i}_{j}" for i in range(layers) for j in range(width)), "exit"]
        edges = [(0, v) for v in range(1, width + 1)]
        for v in range(width + 1, tasks + 1):
            before = v - (v - 1) % width - width
            drawn = rng.choice(width, predecessors, replace=False)
            edges += [(before + int(j), v) for j in np.sort(drawn)]
        followed = {u for u, _ in edges}
        edges += [(v, tasks + 1) for v in range(1, tasks + 1) if v not in followed]
        return Shape(names, edges, free=(0, tasks + 1))

    return instance_of(
        shape,
        tasks=tasks + 2,
        edges=width + inner + tasks,
        name={"stg-layers": "", "l": layers, "w": width, "q": predecessors},
        devices=devices,
        seed=seed,
        ccr=ccr,
        source="layered random graph like those of Tobita and Kasahara 2002",
    )
