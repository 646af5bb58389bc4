"""Instances in whole numbers, and small changes to them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations

import numpy as np

from optpart.problem.cluster import Cluster, Device
from optpart.problem.graph import GraphBuilder
from optpart.problem.instance import Instance
from optpart.study.worst.families import Edge, Family

#: Least and greatest operations of a vertex, sizes of an edge, speeds of a device, and bandwidths
#: of a link. A unit of each is one time unit of the family ``unit``.
OPS, SIZES, SPEEDS, RATES = (1, 100), (0, 100), (1, 10), (1, 10)


@dataclass(frozen=True)
class Draft:
    """The numbers of an instance.

    Attributes
    ----------
    ops : tuple of int, one per vertex
    sizes : mapping from edge to int
        Of its own tensor.
    speeds : tuple of int, one per device
    rates : mapping from a pair of devices to int
        The bandwidth in both directions.
    """

    ops: tuple[int, ...]
    sizes: Mapping[Edge, int]
    speeds: tuple[int, ...]
    rates: Mapping[Edge, int]

    @property
    def ccr(self) -> Fraction:
        """Mean delay over edges and pairs of devices, over mean run time on all devices."""
        if not self.sizes:
            return Fraction(0)
        delay = _mean(self.sizes.values()) * _mean(
            Fraction(1, rate) for rate in self.rates.values()
        )
        return delay / (_mean(self.ops) * _mean(Fraction(1, speed) for speed in self.speeds))

    def within(self, ccr: Fraction) -> Draft:
        """Return it with all sizes reduced alike, as far as the ratio exceeds the limit."""
        if self.ccr <= ccr:
            return self
        factor = ccr / self.ccr
        return replace(self, sizes={edge: int(size * factor) for edge, size in self.sizes.items()})

    def instance(self, name: str, source: str = "") -> Instance:
        """Return the instance, with communication ``delay`` and without memory."""
        graph = GraphBuilder()
        for v, ops in enumerate(self.ops):
            graph.vertex(f"v{v}", ops)
        for (u, v), size in sorted(self.sizes.items()):
            graph.edge(f"v{u}", f"v{v}", size=size)
        k = len(self.speeds)
        rates = [[self.rates.get((min(a, b), max(a, b)), 1) for b in range(k)] for a in range(k)]
        devices = [Device(f"d{d}", speed) for d, speed in enumerate(self.speeds)]
        return Instance(graph.build(), Cluster.of(devices, rates), name=name, source=source)


def _mean(values: Iterable[int | Fraction]) -> Fraction:
    listed = [*values]
    return Fraction(sum(listed), len(listed))


def drawn(
    family: Family, vertices: int, devices: int, ccr: Fraction, rng: np.random.Generator
) -> Draft:
    """Draw an instance of a family."""
    edges = sorted(family.draw(vertices, rng))
    pairs = [*combinations(range(devices), 2)]
    if family.unit:
        made = Draft((1,) * vertices, dict.fromkeys(edges, 1), (1,) * devices,
                     dict.fromkeys(pairs, 1))  # fmt: skip
        return made.within(ccr)
    return Draft(
        tuple(_any(OPS, rng) for _ in range(vertices)),
        {edge: _any(SIZES, rng) for edge in edges},
        tuple(_any(SPEEDS, rng) for _ in range(devices)),
        {pair: _any(RATES, rng) for pair in pairs},
    ).within(ccr)


def changed(draft: Draft, family: Family, ccr: Fraction, rng: np.random.Generator) -> Draft:
    """Return an instance of the family that differs in one to about four numbers or edges."""
    for _ in range(min(4, int(rng.geometric(0.5)))):
        draft = _changed(draft, family, rng)
    return draft.within(ccr)


def _changed(draft: Draft, family: Family, rng: np.random.Generator) -> Draft:
    kind = 0 if family.unit else rng.integers(5)
    if kind == 0:
        edges = family.change(len(draft.ops), frozenset(draft.sizes), rng)
        size = (1, 1) if family.unit else SIZES
        # In one order, since a new edge draws its size.
        return replace(draft, sizes={edge: draft.sizes[edge] if edge in draft.sizes
                                     else _any(size, rng) for edge in sorted(edges)})  # fmt: skip
    if kind == 1 and draft.sizes:
        return replace(draft, sizes=_with_one(draft.sizes, SIZES, rng))
    if kind == 2:
        return replace(draft, speeds=_one(draft.speeds, SPEEDS, rng))
    if kind == 3:
        return replace(draft, rates=_with_one(draft.rates, RATES, rng))
    return replace(draft, ops=_one(draft.ops, OPS, rng))


def _one(values: tuple[int, ...], within: Edge, rng: np.random.Generator) -> tuple[int, ...]:
    i = int(rng.integers(len(values)))
    return (*values[:i], _near(values[i], within, rng), *values[i + 1 :])


def _with_one(
    values: Mapping[Edge, int], within: Edge, rng: np.random.Generator
) -> dict[Edge, int]:
    keys = sorted(values)
    key = keys[int(rng.integers(len(keys)))]
    return {**values, key: _near(values[key], within, rng)}


def _near(value: int, within: Edge, rng: np.random.Generator) -> int:
    """Return a number near another one, or any in the range."""
    low, high = within
    near = (value - 1, value + 1, value // 2, 2 * value, low, high, _any(within, rng))
    return min(high, max(low, near[int(rng.integers(len(near)))]))


def _any(within: Edge, rng: np.random.Generator) -> int:
    """Draw a number from a range; small ones are as likely as large ones, on a scale of ratios."""
    low, high = within
    return min(high, low - 1 + int((high - low + 2) ** rng.random()))
