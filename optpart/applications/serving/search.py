"""Plans of many machines: blocks of layers, chosen by CP-SAT, and a local search.

A *block* is a number of consecutive layers, and a few machines of one site that pass a throughput
through them along parallel *lanes*; a lane is one machine, or two or three in a row. Blocks of all
layers, one after another, are a plan. CP-SAT chooses how many blocks of each form there are; where
the sites change, a block with many lanes spreads the tokens over enough links. Rates are doubles
here: they only choose, and :func:`~optpart.applications.serving.plan.route` tells what passes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement, pairwise, permutations, product
from random import Random
from typing import TypeAlias

from optpart.applications.serving.plan import Interval, Plan, route
from optpart.applications.serving.problem import Serving
from optpart.applications.serving.sweep import Sites, sites_of
from optpart.base.clock import now

#: Most machines of a lane and of a block, layers of a block, and blocks of one length.
_IN_LANE, _IN_BLOCK, _LONGEST, _BLOCKS = 3, 5, 32, 1500
#: Seconds for the choice of blocks.
_CHOICE = 5.0
#: Between more sites, no order of them is looked for.
_MOST_SITES = 3

#: Groups of the machines in a row, and how many layers each holds.
_Lane: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True)
class _Block:
    layers: int
    site: int
    lanes: tuple[_Lane, ...]

    @property
    def uses(self) -> Counter[int]:
        """The machines of each group."""
        return Counter(g for groups, _ in self.lanes for g in groups)


def _lanes(sites: Sites) -> dict[tuple[int, int], dict[tuple[int, ...], tuple[int, _Lane]]]:
    """Return, by length and site, the fastest lane of every few machines."""
    found: dict[tuple[int, int], dict[tuple[int, ...], tuple[int, _Lane]]] = {}
    rates = [group.rates for group in sites.groups]
    for size in range(1, _IN_LANE + 1):
        for groups in combinations_with_replacement(range(len(rates)), size):
            site = sites.groups[groups[0]].site
            if any(sites.groups[g].site != site for g in groups):
                continue
            for held in product(*(range(1, min(len(rates[g]), _LONGEST) + 1) for g in groups)):
                if sum(held) <= _LONGEST:
                    rate = min(rates[g][k - 1] for g, k in zip(groups, held, strict=True))
                    best = found.setdefault((sum(held), site), {})
                    if rate > best.get(groups, (0,))[0]:
                        best[groups] = rate, (groups, held)
    return found


class _Blocks:
    """The forms of blocks at any throughput."""

    def __init__(self, sites: Sites) -> None:
        self.sites, self._lanes = sites, _lanes(sites)

    def reaching(self, throughput: int) -> list[_Block]:
        """Return the blocks that pass a throughput, without those that others spare machines."""
        found = []
        for (layers, site), known in sorted(self._lanes.items()):
            order = sorted(known.values(), key=lambda each: -each[0])
            best: dict[tuple[frozenset[tuple[int, int]], int], _Block] = {}
            for chosen in _fill(order, 0, throughput, _IN_BLOCK):
                block = _Block(layers, site, chosen)
                uses = block.uses
                if all(u <= len(self.sites.groups[g].machines) for g, u in uses.items()):
                    wide = len(chosen) if self.sites.count > 1 else 0
                    best.setdefault((frozenset(uses.items()), wide), block)
                if len(best) >= _BLOCKS:
                    break
            counted = [(block, block.uses, wide) for (_, wide), block in best.items()]
            found += [
                b
                for b, uses, wide in counted
                if not any(other < uses and lanes >= wide for _, other, lanes in counted)
            ]
        return found


def _fill(
    lanes: list[tuple[int, _Lane]], first: int, need: int, room: int
) -> Iterator[tuple[_Lane, ...]]:
    """Yield the fewest parallel lanes that pass so much, from some lane on."""
    for j in range(first, len(lanes)):
        rate, lane = lanes[j]
        if rate * room < need:
            return
        size = len(lane[0])
        if size <= room and rate >= need:
            yield (lane,)
        elif size < room:
            for more in _fill(lanes, j, need - rate, room - size):
                yield (lane, *more)


def _choose(
    serving: Serving, blocks: list[_Block], sites: Sites, throughput: int, deadline: float
) -> list[_Block] | None:
    """Return blocks in order that make up all layers, or ``None``."""
    whole = range(sites.count)
    orders = [order for order in permutations(whole) if len(order) < 2 or order[0] < order[-1]]
    for order in orders if sites.count <= _MOST_SITES else [tuple(whole)]:
        found = _chosen(serving, blocks, sites, throughput, order, deadline)
        if found is not None:
            return found
    return None


def _chosen(
    serving: Serving,
    blocks: list[_Block],
    sites: Sites,
    throughput: int,
    order: tuple[int, ...],
    deadline: float,
) -> list[_Block] | None:
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    number = [
        model.new_int_var(0, min(len(sites.groups[g].machines) // u for g, u in b.uses.items()), "")
        for b in blocks
    ]
    for g, group in enumerate(sites.groups):
        used = [b.uses[g] * x for b, x in zip(blocks, number, strict=True) if g in b.uses]
        model.add(sum(used) <= len(group.machines))
    model.add(sum(b.layers * x for b, x in zip(blocks, number, strict=True)) == serving.layers)
    # Where the site changes, the last block before or the first one after has enough lanes.
    wide: dict[int, list[tuple[bool, cp_model.IntVar]]] = {p: [] for p in order}
    lanes = {}
    for p, q in pairwise(order):
        link = sites.worst[p][q]
        if not link:
            return None
        sides = [(p, False, model.new_bool_var("")), (q, True, model.new_bool_var(""))]
        model.add(sides[0][2] + sides[1][2] >= 1)
        for site, start, chosen in sides:
            lanes[site, start] = -(-throughput // link)
            wide[site].append((start, chosen))
    for site, ends in wide.items():
        for start, _ in ends:
            # At both ends of a site, so many lanes as this end needs take another block.
            need = lanes[site, start]
            enough = [
                x
                for b, x in zip(blocks, number, strict=True)
                if b.site == site and len(b.lanes) >= need
            ]
            model.add(sum(enough) >= sum(c for s, c in ends if lanes[site, s] >= need))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_time_in_seconds = max(0.0, deadline - now())
    if solver.solve(model) not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None
    result: list[_Block] = []
    for site in order:
        own = [b for b, x in zip(blocks, number, strict=True) for _ in range(solver.value(x))]
        own = sorted((b for b in own if b.site == site), key=lambda b: len(b.lanes))
        starts_wide = any(start and solver.value(chosen) for start, chosen in wide[site])
        # The widest blocks are at the end, or one of them at the beginning.
        if starts_wide and own:
            own.insert(0, own.pop())
        result += own
    return result


def _placed(serving: Serving, sites: Sites, blocks: list[_Block]) -> Plan:
    """Return the plan of blocks in order, with any machines of their groups."""
    intervals: list[Interval] = [None] * len(serving.machines)
    free = [list(group.machines) for group in sites.groups]
    at = 0
    for block in blocks:
        for groups, held in block.lanes:
            begin = at
            for g, k in zip(groups, held, strict=True):
                intervals[free[g].pop()] = begin, begin + k
                begin += k
        at += block.layers
    return route(serving, intervals)


def in_blocks(serving: Serving, bound: Fraction, deadline: float, steps: int = 10) -> Plan:
    """Return the best plan of blocks that is found by bisection below a bound.

    Parameters
    ----------
    steps : int
        How often the distance to the bound is halved.
    """
    low, high = 0, int(bound * serving.unit)
    best = Plan((None,) * len(serving.machines), {})
    forms: dict[Sites, _Blocks] = {}
    aim = high
    for _ in range(steps):
        if now() > deadline or aim <= low:
            break
        sites = sites_of(serving, aim)
        blocks = forms.setdefault(sites, _Blocks(sites)).reaching(aim)
        chosen = _choose(serving, blocks, sites, aim, min(deadline, now() + _CHOICE))
        if chosen is None:
            high = aim
        else:
            plan = _placed(serving, sites, chosen)
            best = max(best, plan, key=lambda each: each.through(serving.sink))
            low = max(aim, int(plan.through(serving.sink) * serving.unit))
        aim = (low + high) // 2
    return best


def improved(serving: Serving, plan: Plan, bound: Fraction, deadline: float, seed: int) -> Plan:
    """Return a plan at least as good, after moves of single machines and exchanges of two."""
    random = Random(seed)
    n = len(serving.machines)
    value = plan.through(serving.sink)
    while now() < deadline and value < bound:
        held = list(plan.intervals)
        i, j = random.randrange(n), random.randrange(n)
        held[i], held[j] = held[j], held[i]
        if i == j or random.random() < 0.5:
            k = random.randint(1, len(serving.machines[i].rates))
            ends = sorted({0, *(x for each in plan.intervals if each for x in each)})
            begin = random.choice(ends)
            held[i] = (begin, begin + k) if begin + k <= serving.layers else None
        if any(h and h[1] - h[0] > len(serving.machines[x].rates) for x, h in enumerate(held)):
            continue
        other = route(serving, held)
        if other.through(serving.sink) >= value:
            plan, value = other, other.through(serving.sink)
    return plan
