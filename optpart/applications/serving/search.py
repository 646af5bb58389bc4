"""Plans of many machines: blocks of layers, chosen by CP-SAT, and a local search.

A *block* is a number of consecutive layers, and a few machines of one site that pass a throughput
through them along parallel *lanes*; a lane is one machine, or two or three in a row. Blocks of all
layers, one after another, are a plan. CP-SAT chooses how many blocks of each form there are; where
the site changes, a block of many lanes spreads the tokens over enough links. What passes in the end
is told by :func:`~optpart.applications.serving.plan.route`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from itertools import combinations_with_replacement, pairwise, permutations, product
from random import Random
from typing import NamedTuple, TypeAlias

from optpart.applications.serving.plan import Interval, Plan, route
from optpart.applications.serving.problem import Serving
from optpart.applications.serving.sweep import Sites, sites_of
from optpart.base.clock import now

#: Most machines of a lane and of a block, layers of a block, blocks of one length, and bisections.
_IN_LANE, _IN_BLOCK, _LONGEST, _BLOCKS, _STEPS = 3, 5, 32, 1500, 10
#: Seconds for one choice of blocks.
_CHOICE = 5.0

#: Rate, groups of the machines in a row, and how many layers each holds.
_Lane: TypeAlias = tuple[int, tuple[int, ...], tuple[int, ...]]


class _Block(NamedTuple):
    """Its layers, site and lanes, and how many machines of each group they take."""

    layers: int
    site: int
    lanes: tuple[_Lane, ...]
    uses: Counter[int]


@lru_cache(maxsize=4)
def _lanes(sites: Sites) -> dict[tuple[int, int], list[_Lane]]:
    """Return, by length and site, the fastest lane of every few machines, the fastest first."""
    best: dict[tuple[int, int], dict[tuple[int, ...], _Lane]] = {}
    rates = [group.rates for group in sites.groups]
    for size in range(1, _IN_LANE + 1):
        for groups in combinations_with_replacement(range(len(rates)), size):
            if len({sites.groups[g].site for g in groups}) > 1:
                continue
            for held in product(*(range(1, min(len(rates[g]), _LONGEST) + 1) for g in groups)):
                if sum(held) <= _LONGEST:
                    rate = min(rates[g][k - 1] for g, k in zip(groups, held, strict=True))
                    known = best.setdefault((sum(held), sites.groups[groups[0]].site), {})
                    known[groups] = max(known.get(groups, (0, (), ())), (rate, groups, held))
    return {key: sorted(known.values(), reverse=True) for key, known in sorted(best.items())}


def _blocks(sites: Sites, throughput: int, deadline: float) -> list[_Block]:
    """Return the blocks that pass a throughput, without those that others spare machines."""
    found = []
    for (layers, site), lanes in _lanes(sites).items():
        best: dict[tuple[frozenset[tuple[int, int]], int], _Block] = {}
        for chosen in _fill(lanes, 0, throughput, _IN_BLOCK):
            uses = Counter(g for _, groups, _ in chosen for g in groups)
            if all(u <= len(sites.groups[g].machines) for g, u in uses.items()):
                wide = len(chosen) if sites.number > 1 else 0
                best.setdefault((frozenset(uses.items()), wide), _Block(layers, site, chosen, uses))
            if len(best) >= _BLOCKS or now() > deadline:
                break
        widths = [(block, wide) for (_, wide), block in best.items()]
        found += [
            block
            for block, wide in widths
            if not any(other.uses < block.uses and lanes >= wide for other, lanes in widths)
        ]
    return found


def _fill(lanes: list[_Lane], first: int, need: int, room: int) -> Iterator[tuple[_Lane, ...]]:
    """Yield the fewest parallel lanes that pass so much, from some lane on."""
    for j in range(first, len(lanes)):
        lane, size = lanes[j], len(lanes[j][1])
        if lane[0] * room < need:
            return
        if size <= room and lane[0] >= need:
            yield (lane,)
        elif size < room:
            yield from ((lane, *more) for more in _fill(lanes, j, need - lane[0], room - size))


def _chosen(
    layers: int, sites: Sites, throughput: int, order: tuple[int, ...], deadline: float
) -> list[_Block]:
    """Return blocks of all layers, with sites in some order; none if none are found."""
    from ortools.sat.python import cp_model

    from optpart.exact.cp_sat import solver_within

    if any(not sites.worst[p][q] for p, q in pairwise(order)):
        return []
    model, blocks = cp_model.CpModel(), _blocks(sites, throughput, deadline)
    number = [
        model.new_int_var(0, min(len(sites.groups[g].machines) // u for g, u in b.uses.items()), "")
        for b in blocks
    ]
    counted = list(zip(blocks, number, strict=True))
    for g, group in enumerate(sites.groups):
        model.add(sum(b.uses[g] * x for b, x in counted if g in b.uses) <= len(group.machines))
    model.add(sum(b.layers * x for b, x in counted) == layers)
    # Where the site changes, the last block before it or the first one after it has enough lanes.
    wide: dict[tuple[int, bool], tuple[int, cp_model.IntVar]] = {}
    for p, q in pairwise(order):
        need = -(-throughput // sites.worst[p][q])
        wide[p, False], wide[q, True] = ((need, model.new_bool_var("")) for _ in range(2))
        model.add_at_least_one(wide[p, False][1], wide[q, True][1])
    for (site, _), (need, _) in wide.items():
        enough = sum(x for b, x in counted if b.site == site and len(b.lanes) >= need)
        ends = [wide[site, first] for first in (False, True) if (site, first) in wide]
        model.add(enough >= sum(chosen for least, chosen in ends if least >= need))
    solver = solver_within(max(0.0, min(deadline - now(), _CHOICE)), model=model)
    if solver.solve(model) not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return []
    result: list[_Block] = []
    for site in order:
        own = [b for b, x in counted if b.site == site for _ in range(solver.value(x))]
        own.sort(key=lambda b: len(b.lanes))  # the widest is the last one, or the first
        if (site, True) in wide and solver.value(wide[site, True][1]):
            own.insert(0, own.pop())
        result += own
    return result


def _placed(serving: Serving, sites: Sites, blocks: list[_Block]) -> Plan:
    """Return the plan of blocks in order, with any machines of their groups."""
    intervals: list[Interval] = [None] * len(serving.machines)
    free = [list(group.machines) for group in sites.groups]
    at = 0
    for block in blocks:
        for _, groups, held in block.lanes:
            begin = at
            for g, k in zip(groups, held, strict=True):
                intervals[free[g].pop()] = begin, begin + k
                begin += k
        at += block.layers
    return route(serving, intervals)


def in_blocks(serving: Serving, bound: Fraction, deadline: float) -> Plan:
    """Return the best plan of blocks that is found by bisection below a bound."""
    best = Plan((None,) * len(serving.machines), {})
    low, high = 0, int(bound * serving.unit)
    aim = high
    for _ in range(_STEPS):
        if now() > deadline or aim <= low:
            break
        sites = sites_of(serving, aim)
        chosen: list[_Block] = []
        for order in permutations(range(sites.number)):
            chosen = chosen or _chosen(serving.layers, sites, aim, order, deadline)
        plan = _placed(serving, sites, chosen)
        best = max(best, plan, key=lambda each: each.through(serving.sink))
        if chosen:
            low = max(aim, int(plan.through(serving.sink) * serving.unit))
        else:
            high = aim
        aim = (low + high) // 2
    return best


def improved(serving: Serving, plan: Plan, bound: Fraction, deadline: float, seed: int) -> Plan:
    """Return a plan at least as good, after moves of single machines and exchanges of two."""
    random, machines = Random(seed), range(len(serving.machines))
    value = plan.through(serving.sink)
    while now() < deadline and value < bound:
        held = list(plan.intervals)
        i, j = random.choice(machines), random.choice(machines)
        held[i], held[j] = held[j], held[i]
        if i == j or random.random() < 0.5:
            ends = sorted({0, *(x for each in plan.intervals if each for x in each)})
            begin, k = random.choice(ends), random.randint(1, len(serving.machines[i].rates))
            held[i] = (begin, begin + k) if begin + k <= serving.layers else None
        if all(not h or h[1] - h[0] <= len(serving.machines[x].rates) for x, h in enumerate(held)):
            other = route(serving, held)
            if other.through(serving.sink) >= value:
                plan, value = other, other.through(serving.sink)
    return plan
