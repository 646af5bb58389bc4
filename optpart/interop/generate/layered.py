"""Random dataflow graphs, drawn level by level ([L] §6.2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, TypeAlias

import numpy as np
from numpy.typing import NDArray

from optpart.base.errors import InputError
from optpart.base.limits import MOST_DEVICES, MOST_EDGES, MOST_VERTICES, check_size
from optpart.interop.generate import draw
from optpart.interop.generate.cluster import drawn_cluster
from optpart.interop.generate.draw import Range, Seed
from optpart.interop.generate.option import Option
from optpart.problem.graph import Graph
from optpart.problem.instance import Instance
from optpart.problem.rational import RationalArray

#: The decay of an edge's probability with the level distance: a factor per further level, or a
#: function from the distance (≥ 1) to a factor from 0 to 1.
Decay: TypeAlias = float | Callable[[int], float]

_Edges: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int64]]

_LARGEST_GROUP = 100

#: Largest number of pools of equal probability × levels: each pool takes time for every level.
_MOST_POOLS = 10**9


#: Default probability of an edge between two vertices of different levels.
EDGE_PROBABILITY = 0.05


def layered(
    seed: Seed = 0,
    *,
    levels: int = 20,
    width: Range = (5, 15),
    vertices: int | None = None,
    edge_probability: float | None = None,
    level_edges: int | None = None,
    level_limit: int | None = None,
    decay: Decay | None = None,
    random_edges: int = 0,
    ops: Range = (1, 100),
    sizes: Range = (1, 100),
    memory: Range = (1, 100),
    cpu_probability: float = 0.0,
    gpu_probability: float = 0.0,
    colocated: int = 0,
) -> Graph:
    """Draw a graph in levels; every edge leads from a lower level to a higher one ([L] §6.2).

    Vertices are numbered level by level and named ``v0``, ``v1``, …; each has one output tensor,
    which all its out-edges consume ([L] §2.2). All numbers are drawn uniformly from their ranges.

    Parameters
    ----------
    seed : int or numpy.random.Generator
        Levels, level-based edges, random edges, weights, device types and colocation groups are
        drawn in this order, so the parameters of one do not change the earlier ones.
    levels, width, vertices
        See :func:`level_starts`.
    edge_probability : float, optional
        Probability of an edge between two vertices of different levels. Without it and without
        ``level_edges``, it is :data:`EDGE_PROBABILITY`.
    level_edges : int, optional
        Exact number of level-based edges; all admissible pairs are equally likely.
    level_limit : int, optional
        Greatest level distance of a level-based edge.
    decay : float or function, optional
        Factor on ``edge_probability``: ``decay ** (distance - 1)``, or ``decay(distance)``.
    random_edges : int
        Exact number of edges between pairs of different levels at any distance, drawn uniformly
        from the pairs without a level-based edge.
    ops, sizes, memory : (int, int)
        Ranges of operations and memory per vertex, and of tensor sizes.
    cpu_probability, gpu_probability : float
        Probability that a vertex, or a colocation group, requires a ``CPU`` or ``GPU``.
    colocated : int
        Exact number of vertices in colocation groups. The sizes of groups follow the power law
        ``P(size) ∝ size^-2`` from 2 to 100: many small groups and few large ones, as in [L]
        figure 6.1. The colocated vertices are drawn uniformly and grouped in the order of their
        numbers, so the members of a group are in the same or in nearby levels. All members require
        the device type of the group.

    Raises
    ------
    InputError
        If a number is out of its range, or the exact totals cannot be met.

    Notes
    -----
    Time and memory are linear in vertices and edges: instead of testing each pair, the number of
    edges is drawn from the equivalent binomial distribution, and then a uniform set of that many
    pairs.

    Examples
    --------
    >>> len(layered(1, levels=5, width=(2, 4), vertices=15, edge_probability=0.3))
    15
    """
    rng = draw.generator(seed)
    first = level_starts(rng, levels=levels, width=width, vertices=vertices)
    n = int(first[-1])
    source, target = _edges(
        rng, first, edge_probability, level_edges, level_limit, decay, random_edges
    )
    weights = [
        RationalArray(draw.integers(rng, draw.bounds(within, place), n))
        for within, place in ((ops, "ops"), (memory, "memory"), (sizes, "sizes"))
    ]
    types = _device_types(rng, n, cpu_probability, gpu_probability)
    groups = _groups(rng, n, colocated)
    for group in groups:
        types[group] = types[group[0]]
    by_source = np.lexsort((target, source))
    source, target = source[by_source], target[by_source]
    return Graph(
        names=tuple(f"v{v}" for v in range(n)),
        ops=weights[0],
        memory=weights[1],
        device_types=tuple(types.tolist()),
        allowed_devices={},
        tensor_vertex=np.arange(n, dtype=np.int32),
        tensor_output=np.zeros(n, dtype=np.int32),
        tensor_size=weights[2],
        tensor_delay={},
        edge_source=source.astype(np.int32),
        edge_target=target.astype(np.int32),
        edge_tensor=source.astype(np.int32),
        colocation=tuple(tuple(group.tolist()) for group in groups),
    )


def instance(
    levels: Annotated[int, Option(1, MOST_VERTICES)] = 20,
    min_width: Annotated[int, Option(1, MOST_VERTICES, "Least vertices a level.")] = 5,
    max_width: Annotated[int, Option(1, MOST_VERTICES, "Most vertices a level.")] = 15,
    edge_probability: Annotated[
        float, Option(0, 1, "Of an edge between vertices of two levels.")
    ] = EDGE_PROBABILITY,
    level_limit: Annotated[
        int | None, Option(1, MOST_VERTICES, "No edge over more levels than this.")
    ] = None,
    decay: Annotated[
        float | None, Option(0, 1, "Factor of the probability per further level.")
    ] = None,
    random_edges: Annotated[int, Option(0, MOST_EDGES, "Long-range edges.")] = 0,
    cpu_probability: Annotated[float, Option(0, 1, "Of a vertex to need a CPU.")] = 0.0,
    gpu_probability: Annotated[float, Option(0, 1, "Of a vertex to need a GPU.")] = 0.0,
    colocated: Annotated[int, Option(0, MOST_VERTICES, "Vertices in colocation groups.")] = 0,
    devices: Annotated[int, Option(1, MOST_DEVICES)] = 10,
    seed: int = 0,
    *,
    name: str = "layered",
) -> Instance:
    """Draw a layered graph and a cluster, both from the same seed ([L] §6.2).

    Parameters
    ----------
    min_width, max_width : int
        Least and greatest number of vertices of a level.
    devices : int
        See :func:`~optpart.interop.generate.cluster.drawn_cluster`; all else is as of
        :func:`layered`.
    """
    graph = layered(
        seed,
        levels=levels,
        width=(min_width, max_width),
        edge_probability=edge_probability,
        level_limit=level_limit,
        decay=decay,
        random_edges=random_edges,
        cpu_probability=cpu_probability,
        gpu_probability=gpu_probability,
        colocated=colocated,
    )
    check_size(len(graph), devices=devices, place="vertices and devices")
    source = f"layered graph and cluster drawn as in [L] §6.2, seed {seed}"
    return Instance(graph, drawn_cluster(seed, devices), name=name, source=source)


def level_starts(
    seed: Seed, *, levels: int, width: Range, vertices: int | None = None
) -> NDArray[np.int64]:
    """Draw the number of vertices of each level.

    :func:`layered` draws these first, so the same seed gives the levels of its graph.

    Parameters
    ----------
    levels : int
    width : (int, int)
        Least and greatest number of vertices of a level, which is drawn uniformly.
    vertices : int, optional
        Exact total; the difference to the drawn widths is spread over random levels.

    Returns
    -------
    ndarray of int64, length levels + 1
        Level ``i`` consists of the vertices ``result[i]`` to ``result[i + 1] - 1``.
    """
    rng = draw.generator(seed)
    draw.count(levels, "levels", least=1)
    low, high = draw.bounds(width, "width", least=1)
    check_size(levels * low if vertices is None else vertices, place="levels and width")
    if high > MOST_VERTICES:
        check_size(high, place="width")
    if vertices is not None and not levels * low <= vertices <= levels * high:
        raise InputError(
            "vertices",
            f"{levels} levels of {low} to {high} vertices cannot hold exactly {vertices}",
            f"give a number from {levels * low} to {levels * high}",
        )
    widths = draw.integers(rng, (low, high), levels)
    while vertices is not None and (missing := vertices - int(widths.sum())):
        movable = np.flatnonzero(widths != (high if missing > 0 else low))
        chance = np.full(len(movable), 1 / len(movable))
        widths[movable] += np.sign(missing) * rng.multinomial(abs(missing), chance)
        np.clip(widths, low, high, out=widths)
    check_size(int(widths.sum()), place="levels and width")
    return np.concatenate(([0], np.cumsum(widths)))


@dataclass(frozen=True)
class _Pairs:
    """The pairs of vertices whose level distance is in a range, numbered from 0.

    Attributes
    ----------
    first : ndarray, length levels + 1
        As returned by :func:`level_starts`.
    low, span : ndarray, length levels
        First possible source, and number of possible sources, of the vertices of each level.
    start : ndarray, length levels + 1
        Number of the first pair whose target is in each level.
    """

    first: NDArray[np.int64]
    low: NDArray[np.int64]
    span: NDArray[np.int64]
    start: NDArray[np.int64]

    @classmethod
    def within(cls, first: NDArray[np.int64], nearest: int, farthest: int) -> _Pairs:
        level = np.arange(len(first) - 1)
        low = first[np.maximum(level - farthest, 0)]
        span = first[np.maximum(level - nearest + 1, 0)] - low
        start = np.concatenate(([0], np.cumsum(span * np.diff(first))))
        return cls(first, low, span, start)

    @property
    def total(self) -> int:
        return int(self.start[-1])

    def ends(self, number: NDArray[np.int64]) -> _Edges:
        """Return the sources and targets of pairs."""
        level = np.searchsorted(self.start, number, side="right") - 1
        target, source = np.divmod(number - self.start[level], self.span[level])
        return self.low[level] + source, self.first[level] + target

    def numbers(self, source: NDArray[np.int64], target: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the numbers of pairs; the inverse of :meth:`ends`."""
        level = np.searchsorted(self.first, target, side="right") - 1
        row = (target - self.first[level]) * self.span[level]
        return self.start[level] + row + source - self.low[level]


def _edges(
    rng: np.random.Generator,
    first: NDArray[np.int64],
    edge_probability: float | None,
    level_edges: int | None,
    level_limit: int | None,
    decay: Decay | None,
    random_edges: int,
) -> _Edges:
    levels = len(first) - 1
    farthest = levels - 1
    if level_limit is not None:
        farthest = min(farthest, draw.count(level_limit, "level_limit", least=1))
    if level_edges is not None:
        if edge_probability is not None or decay is not None:
            raise InputError(
                "level_edges", "given with a probability or a decay", "give one or the other"
            )
        source, target = _exact_edges(rng, _Pairs.within(first, 1, farthest), level_edges)
    else:
        edge_probability = EDGE_PROBABILITY if edge_probability is None else edge_probability
        draw.probability(edge_probability, "edge_probability")
        source, target = _probable_edges(rng, first, farthest, edge_probability, decay)
    every = _Pairs.within(first, 1, levels - 1)
    _check_total(random_edges, every.total - len(source), "random_edges")
    added = every.ends(draw.distinct(rng, every.total, random_edges, every.numbers(source, target)))
    return np.concatenate((source, added[0])), np.concatenate((target, added[1]))


def _exact_edges(rng: np.random.Generator, pairs: _Pairs, edges: int) -> _Edges:
    _check_total(edges, pairs.total, "level_edges")
    return pairs.ends(draw.distinct(rng, pairs.total, edges))


def _probable_edges(
    rng: np.random.Generator,
    first: NDArray[np.int64],
    farthest: int,
    edge_probability: float,
    decay: Decay | None,
) -> _Edges:
    """Draw each pair with its probability; pairs of equal probability are drawn together."""
    pools = (
        [(1, farthest, edge_probability)]
        if decay is None
        else [(d, d, edge_probability * _factor(decay, d)) for d in range(1, farthest + 1)]
    )
    if len(pools) * len(first) > _MOST_POOLS:
        raise InputError(
            "decay",
            f"{len(pools)} distances between {len(first) - 1} levels",
            "set a smaller level_limit",
        )
    expected = 0.0
    source, target = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
    for nearest, furthest, chance in pools:
        if chance == 0:
            continue
        pairs = _Pairs.within(first, nearest, furthest)
        expected += pairs.total * chance
        check_size(0, expected, place="edge_probability")
        edges = draw.distinct(rng, pairs.total, int(rng.binomial(pairs.total, chance)))
        for ends, drawn in zip((source, target), pairs.ends(edges), strict=True):
            ends.append(drawn)
    return np.concatenate(source), np.concatenate(target)


def _factor(decay: Decay, distance: int) -> float:
    if not callable(decay):
        return draw.probability(decay, "decay") ** (distance - 1)
    return draw.probability(decay(distance), f"decay({distance})")


def _check_total(edges: int, possible: int, place: str) -> None:
    check_size(0, draw.count(edges, place), place=place)
    if edges > possible:
        raise InputError(
            place,
            f"{edges} edges, but only {possible} pairs to draw them from",
            f"give at most {possible}",
        )


def _device_types(rng: np.random.Generator, n: int, cpu: float, gpu: float) -> NDArray[np.object_]:
    draw.probability(cpu, "cpu_probability")
    draw.probability(gpu, "gpu_probability")
    draw.probability(cpu + gpu, "cpu_probability + gpu_probability")
    kinds = np.array(["CPU", "GPU", None], dtype=np.object_)
    return kinds[np.digitize(rng.random(n), [cpu, cpu + gpu])]


def _groups(rng: np.random.Generator, n: int, colocated: int) -> list[NDArray[np.int64]]:
    if colocated == 0:
        return []
    if not 2 <= colocated <= n:
        raise InputError(
            "colocated", f"{colocated} of {n} vertices", f"give 0, or a number from 2 to {n}"
        )
    members = draw.distinct(rng, n, colocated)
    return np.split(members, np.cumsum(_group_sizes(rng, colocated))[:-1])


def _group_sizes(rng: np.random.Generator, total: int) -> NDArray[np.int64]:
    """Draw sizes ≥ 2 from a truncated power law; the last one is cut to make the sum exact."""
    sizes = np.arange(2, _LARGEST_GROUP + 1)
    chance = 1.0 / sizes**2
    drawn = rng.choice(sizes, total // 2, p=chance / chance.sum())
    whole = drawn[np.cumsum(drawn) <= total]
    rest = total - int(whole.sum())
    if rest >= 2:
        return np.append(whole, rest)
    if rest == 1:
        whole[np.argmin(whole)] += 1
    return whole
