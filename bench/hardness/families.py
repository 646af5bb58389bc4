"""Sources of every reduction by size: some with a solution hidden in them, some without."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from optpart import Budget
from optpart.applications.reductions.bin_packing import Items
from optpart.applications.reductions.clique import Network
from optpart.applications.reductions.communication import UNIT_DELAYS, Tasks
from optpart.applications.reductions.job_shop import JOB_SHOP, Shop, random_shop
from optpart.applications.reductions.partition import Numbers, random_numbers
from optpart.applications.reductions.single_execution_time import Jobs
from optpart.applications.reductions.three_partition import Threes, critical_bound, random_threes
from optpart.methods import registry


@dataclass(frozen=True)
class Family:
    """A family of sources: those drawn as yes have a solution, those drawn as no may have one."""

    sizes: tuple[int, ...]
    draw: Callable[[int, bool, np.random.Generator], Any]
    size_is: str
    yes: str
    no: str


def scheduling(size: int, yes: bool, rng: np.random.Generator) -> Jobs:
    """Fill every slot of three processors; order neighbouring slots; for no, within slots too."""
    processors = 3
    slot = np.repeat(np.arange(size // processors), processors)
    order = [
        (u, v)
        for v in range(len(slot))
        for u in range(v)
        if slot[u] + 1 == slot[v] and rng.random() < 0.5
    ]
    label = rng.permutation(len(slot)).tolist()
    if not yes:  # two jobs of every slot, where all slots are full
        order += [(v, v + 1) for v in range(0, len(slot), processors)]
    pairs = tuple((label[u], label[v]) for u, v in order)
    return Jobs(tuple(f"j{v}" for v in range(len(slot))), pairs, processors, size // processors)


def clique(size: int, yes: bool, rng: np.random.Generator) -> Network:
    """Turán's graph of k − 1 equal parts, which has no clique of k; for yes, one is put in."""
    wanted = max(3, size // 3)
    part = [v % (wanted - 1) for v in range(size)]
    pairs = [pair for pair in combinations(range(size), 2) if part[pair[0]] != part[pair[1]]]
    kept = [pair for pair in pairs if rng.random() < 0.8]
    if yes:
        chosen = {*range(wanted)}
        inside = [pair for pair in combinations(range(size), 2) if {*pair} <= chosen]
        kept = sorted({*kept, *inside})
    label = rng.permutation(size).tolist()
    edges = tuple((label[u], label[v]) for u, v in kept)
    return Network(tuple(f"n{v}" for v in range(size)), edges, wanted)


def three_partition(size: int, yes: bool, rng: np.random.Generator) -> Threes:
    """Draw triples of one sum, or numbers at the bound where hardly any split is left."""
    triples = size // 3
    bound = critical_bound(triples)
    if not yes:
        return random_threes(triples, 2 * bound, rng)
    numbers: list[int] = []
    for _ in range(triples):
        numbers += random_threes(1, bound, rng).numbers
    return Threes(tuple(int(x) for x in rng.permutation(numbers)))


def job_shop(size: int, yes: bool, rng: np.random.Generator) -> Shop:
    """Take the optimum of a square shop as the limit, or one less."""
    shop = random_shop(size, size, rng)
    question = JOB_SHOP.to_tf(shop)
    best = registry.get("cpsat")(question.instance, budget=Budget(20, 1))
    assert best.makespan is not None
    return replace(shop, limit=best.makespan if yes else best.makespan - 1)


def partition(size: int, yes: bool, rng: np.random.Generator) -> Numbers:
    """Draw as many bits as numbers and even out the halves, or a few bits more."""
    if not yes:
        return random_numbers(size, size + 3, rng)
    while True:
        numbers = rng.integers(1, 2**size, size=size, endpoint=True).tolist()
        half = size // 2
        last = sum(numbers[:half]) - sum(numbers[half:-1])
        if 1 <= last <= 2**size:
            return Numbers(tuple(int(x) for x in rng.permutation([*numbers[:-1], last])))


def communication(size: int, yes: bool, rng: np.random.Generator) -> Tasks:
    """Take the least limit of layered tasks, or one less."""
    tasks = UNIT_DELAYS.random(size, rng)
    best = registry.get("cpsat")(UNIT_DELAYS.to_tf(tasks).instance, budget=Budget(20, 1))
    assert best.makespan is not None
    return replace(tasks, limit=int(best.makespan) if yes else int(best.makespan) - 1)


def bin_packing(size: int, yes: bool, rng: np.random.Generator) -> Items:
    """Draw bins of three items that fill them, or the same with one unit more."""
    capacity = 1000
    sizes: list[int] = []
    for _ in range(size // 3):
        sizes += random_threes(1, capacity, rng).numbers
    if not yes:  # one unit is moved between items: full bins must now be other ones
        for i in range(0, len(sizes) - 3, 3):
            sizes[i], sizes[i + 3] = sizes[i] + 1, sizes[i + 3] - 1
    return Items(tuple(int(x) for x in rng.permutation(sizes)), capacity, size // 3)


FAMILIES = {
    "scheduling": Family(
        (9, 15, 30, 60, 120),
        scheduling,
        "jobs",
        "slots of 3 processors filled, order drawn to suit",
        "the same with one pair of every slot ordered",
    ),
    "clique": Family(
        (6, 9, 12, 15, 18, 21),
        clique,
        "nodes",
        "clique of a third of the nodes hidden",
        "four fifths of the edges of a Turán graph",
    ),
    "three-partition": Family(
        (9, 12, 15, 18, 24, 30, 36),
        three_partition,
        "numbers",
        "triples of one sum, at the critical bound",
        "random, at twice the critical bound",
    ),
    "job-shop": Family(
        (3, 4, 5, 6, 8, 10),
        job_shop,
        "jobs = machines",
        "limit = best makespan found in 20 s",
        "one less",
    ),
    "partition": Family(
        (8, 12, 16, 20, 24, 28, 32),
        partition,
        "numbers",
        "as many bits as numbers, two equal halves",
        "random, three bits more than numbers",
    ),
    "communication": Family(
        (10, 20, 30, 40, 60),
        communication,
        "tasks",
        "limit = best makespan found in 20 s",
        "one less",
    ),
    "bin-packing": Family(
        (6, 9, 12, 15, 18, 24, 30),
        bin_packing,
        "items",
        "three items to each full bin of 1000",
        "one unit moved between items of different bins",
    ),
}
