"""Random small instances and solutions of them.

One generator serves both sources of chance: a seeded numpy generator (:func:`random_instance`),
where a test wants many draws, and hypothesis (:func:`instances`), where it wants a small
counterexample.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise, product
from typing import TypedDict, Unpack

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st
from numpy.typing import NDArray

from optpart.cluster import Cluster, Device
from optpart.graph import GraphBuilder
from optpart.instance import Communication, Instance, Memory, Model
from optpart.schedule import crossings

#: Draws a whole number between two bounds, both included.
Pick = Callable[[int, int], int]

#: A step of an order: a vertex, or a transfer (tensor, destination device).
Step = int | tuple[int, int]


class Options(TypedDict, total=False):
    """What may occur in a random instance; see :class:`_Shape` for the defaults."""

    communication: Communication
    memory: Memory
    types: bool
    allowed: bool
    colocation: bool
    separation: bool
    no_links: bool
    durations: bool
    measured: bool
    control: bool
    latency: bool
    zero_length: bool
    rational: bool


@dataclass(frozen=True)
class _Shape:
    max_vertices: int
    max_devices: int
    communication: Communication = "delay"
    memory: Memory = "none"
    types: bool = True
    allowed: bool = True
    colocation: bool = True
    separation: bool = True
    no_links: bool = True
    durations: bool = True
    measured: bool = True
    control: bool = True
    latency: bool = True
    zero_length: bool = True
    rational: bool = True


def picking(rng: np.random.Generator) -> Pick:
    """Return the whole numbers of a numpy generator as a :data:`Pick`."""
    return lambda low, high: int(rng.integers(low, high, endpoint=True))


def random_instance(
    rng: np.random.Generator,
    max_vertices: int = 6,
    max_devices: int = 3,
    **options: Unpack[Options],
) -> Instance:
    """Draw an instance; every feature may occur unless its option is ``False``.

    Every assignment unit has an allowed device. Separation, missing links and memory may still
    make the instance infeasible.
    """
    return _draw(picking(rng), _Shape(max_vertices, max_devices, **options))


@st.composite
def instances(
    draw: st.DrawFn, max_vertices: int = 5, max_devices: int = 3, **options: Unpack[Options]
) -> Instance:
    """Hypothesis strategy of what :func:`random_instance` draws."""
    return _draw(_drawing(draw), _Shape(max_vertices, max_devices, **options))


@st.composite
def solutions(
    draw: st.DrawFn, max_vertices: int = 5, max_devices: int = 3, **options: Unpack[Options]
) -> tuple[Instance, NDArray[np.int32], list[Step]]:
    """Strategy of an instance, an allowed placement of it and an order of everything."""
    pick = _drawing(draw)
    instance = _draw(pick, _Shape(max_vertices, max_devices, **options))
    placements = allowed_placements(instance)
    assume(placements)
    placement = placements[pick(0, len(placements) - 1)]
    return instance, placement, _order(pick, instance, crossings(instance, placement))


def random_placement(rng: np.random.Generator, instance: Instance) -> NDArray[np.int32] | None:
    """Draw a placement that keeps every rule but memory; ``None`` if there is none."""
    placements = allowed_placements(instance)
    return placements[int(rng.integers(len(placements)))] if placements else None


def random_order(
    rng: np.random.Generator, instance: Instance, transfers: Sequence[tuple[int, int]] = ()
) -> list[Step]:
    """Draw a topological order of the vertices, with ``transfers`` strewn in where they fit."""
    return _order(picking(rng), instance, transfers)


def allowed_placements(instance: Instance) -> list[NDArray[np.int32]]:
    """List the placements that keep types, groups, separation and links; memory is not asked."""
    choices = [np.flatnonzero(row).tolist() for row in instance.allowed]
    found = []
    for devices in product(*choices):
        if any(devices[a] == devices[b] for a, b in instance.separated_units):
            continue
        placement = np.array(devices, dtype=np.int32)[instance.unit_of]
        sender = placement[instance.graph.tensor_vertex]
        if all(
            instance.delay(tensor, int(sender[tensor]), target) is not None
            for tensor, target in crossings(instance, placement)
        ):
            found.append(placement)
    return found


def _drawing(draw: st.DrawFn) -> Pick:
    return lambda low, high: draw(st.integers(low, high))


def _order(pick: Pick, instance: Instance, transfers: Sequence[tuple[int, int]]) -> list[Step]:
    """Pick, again and again, one of the steps whose predecessors are done.

    A vertex waits for all transfers of its input tensors, whichever device they go to: a few more
    than it needs, and independent of the placement.
    """
    graph = instance.graph
    producer = graph.tensor_vertex.tolist()
    before: dict[Step, set[Step]] = {v: set() for v in range(instance.vertices)}
    for tensor, target in transfers:
        before[tensor, target] = {producer[tensor]}
    for u, v, tensor in zip(graph.edge_source, graph.edge_target, graph.edge_tensor, strict=True):
        before[int(v)] |= {int(u)} | {move for move in transfers if move[0] == tensor}
    order: list[Step] = []
    while before:
        ready = [step for step, missing in before.items() if not missing]
        step = ready[pick(0, len(ready) - 1)]
        del before[step]
        for missing in before.values():
            missing.discard(step)
        order.append(step)
    return order


def _draw(pick: Pick, shape: _Shape) -> Instance:
    # The greater of two draws: small instances say little, yet have to occur.
    n = max(pick(1, shape.max_vertices), pick(1, shape.max_vertices))
    k = max(pick(1, shape.max_devices), pick(1, shape.max_devices))
    devices = [f"d{d}" for d in range(k)]
    types = [("CPU", "GPU")[pick(0, 1)] if shape.types else None for _ in devices]
    group = _some(pick, n) if shape.colocation and n > 1 and pick(0, 2) == 0 else []
    # Every vertex has a home where it may run; colocated vertices have the same.
    home = [pick(0, k - 1) for _ in range(n)]
    for v in group:
        home[v] = home[group[0]]

    builder = GraphBuilder()
    outputs: list[int] = []
    for v in range(n):
        own_type = types[home[v]] if pick(0, 3) == 0 else None
        own_devices = (
            sorted({devices[home[v]], *(d for d in devices if pick(0, 1))})
            if shape.allowed and pick(0, 3) == 0
            else None
        )
        builder.vertex(
            f"v{v}",
            _length(pick, shape),
            memory=_number(pick, shape, 0, 4) if shape.memory != "none" else 0,
            device_type=own_type,
            devices=own_devices,
        )
        outputs.append(pick(0, 2))
        for _ in range(outputs[v]):
            delay = None
            if shape.measured and pick(0, 5) == 0:
                delay = _matrix(k, lambda: None if pick(0, 9) == 0 else _number(pick, shape, 0, 4))
            builder.output(f"v{v}", _number(pick, shape, 0, 6), delay)
    _draw_edges(pick, shape, builder, outputs)
    if len(group) > 2 and pick(0, 1):
        for a, b in pairwise(group):  # closes transitively
            builder.colocate(f"v{a}", f"v{b}")
    elif group:
        builder.colocate(*(f"v{v}" for v in group))
    apart = [(a, b) for a in range(n) for b in range(a) if home[a] != home[b]]
    if shape.separation and apart and pick(0, 2) == 0:
        a, b = apart[pick(0, len(apart) - 1)]
        builder.separate(f"v{a}", f"v{b}")
    graph = builder.build()

    def rate() -> Fraction | None:
        match pick(0, 7):
            case 0:
                return None
            case 1 if shape.no_links:
                return Fraction(0)
            case _:
                return _number(pick, shape, 1, 4)

    demand = graph.memory.sum() + graph.tensor_size.sum()
    limited = shape.memory != "none"
    durations = None
    if shape.durations and pick(0, 3) == 0:
        durations = [
            [None if d != home[v] and pick(0, 4) == 0 else _length(pick, shape) for d in range(k)]
            for v in range(n)
        ]
    late = shape.latency and pick(0, 1) == 0
    return Instance(
        graph,
        Cluster.of(
            [
                Device(
                    devices[d],
                    _number(pick, shape, 1, 4),
                    types[d],
                    demand * pick(2, 6) / 4 if limited and pick(0, 3) else None,
                )
                for d in range(k)
            ],
            _matrix(k, rate),
            _matrix(k, lambda: _number(pick, shape, 0, 2)) if late else 0,
        ),
        Model(
            shape.communication,
            shape.memory,
            send_ops=_number(pick, shape, 0, 3 if shape.communication == "sendrecv" else 0),
            channels=pick(1, 2) if shape.communication == "port" else 1,
            release=("end", "start")[pick(0, 1)] if shape.memory == "refcount" else "end",
        ),
        durations,
        name="random",
    )


def _draw_edges(pick: Pick, shape: _Shape, builder: GraphBuilder, outputs: list[int]) -> None:
    """Draw edges along a random rank, so that numbers and topological order differ."""
    rank = _some(pick, len(outputs), len(outputs))
    for i, u in enumerate(rank):
        for v in rank[i + 1 :]:
            for output in range(outputs[u]):
                if pick(0, 2) == 0:
                    builder.edge(f"v{u}", f"v{v}", output)
            if shape.control and pick(0, 5) == 0:
                builder.edge(f"v{u}", f"v{v}", None)


def _some(pick: Pick, n: int, size: int | None = None) -> list[int]:
    """Draw ``size`` distinct numbers below ``n``, in random order; 2 or 3 unless told."""
    left = list(range(n))
    size = min(n, pick(2, 3)) if size is None else size
    return [left.pop(pick(0, len(left) - 1)) for _ in range(size)]


def _number(pick: Pick, shape: _Shape, low: int, high: int) -> Fraction:
    return Fraction(pick(low, high), pick(1, 3) if shape.rational else 1)


def _length(pick: Pick, shape: _Shape) -> Fraction:
    if shape.zero_length and pick(0, 5) == 0:
        return Fraction(0)
    return _number(pick, shape, 1, 9)


def _matrix(k: int, entry: Callable[[], Fraction | None]) -> list[list[Fraction | None]]:
    return [[entry() for _ in range(k)] for _ in range(k)]
