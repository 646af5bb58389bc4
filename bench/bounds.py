"""Is any bound ever above a schedule, and how close do bounds come?

``python bench/bounds.py [COUNT] [SEED]`` draws ``COUNT`` tiny instances of every model of
communication and memory in turn. Where enumeration gives the optimum (``delay`` without memory or
with static memory) the optimum is held against every bound and against everything that sharpening
infers; elsewhere the best verified schedule of random placements and orders and of heuristics is.
It stops at the first contradiction with the draw that shows it, and prints per bound how often it
is the optimum, how far below it is on average, and what it takes.
"""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import get_args

import numpy as np

from optpart.bounds.best import BOUNDS
from optpart.bounds.destructive import Refutation
from optpart.bounds.one_machine import sharpened
from optpart.bounds.windows import windows
from optpart.kernels.ticks import Grid
from optpart.methods import registry
from optpart.problem.instance import Instance
from optpart.problem.model import Communication, Memory
from optpart.solution.schedule import Schedule, crossings, retime
from optpart.solution.verifier import verify
from optpart.testing.brute_force import optimum
from optpart.testing.draw import random_instance
from optpart.testing.solutions import random_order, random_placement

_HEURISTICS = ("heft", "single+fifo")

#: Random schedules per instance whose optimum is not known.
_TRIES = 20

#: More than any bound needs.
_SECONDS = 600.0


@dataclass
class Tally:
    """The results of one bound."""

    optimal: int = 0
    known: int = 0
    below: float = 0.0
    seconds: float = 0.0


def best_schedule(instance: Instance, rng: np.random.Generator) -> tuple[Schedule | None, bool]:
    """Return a verified schedule, and whether it is optimal."""
    model = instance.model
    if model.communication == "delay" and model.memory in ("none", "estimate"):
        best = optimum(instance)
        return (None if best is None else retime(instance, best.placement, best.order)), True
    found = [registry.get(name)(instance).schedule for name in _HEURISTICS]
    for _ in range(_TRIES):
        placement = random_placement(rng, instance)
        if placement is not None:
            order = random_order(rng, instance, crossings(instance, placement))
            schedule = retime(instance, placement, order)
            found.append(None if verify(instance, schedule, most=1) else schedule)
    there = [schedule for schedule in found if schedule is not None]
    return min(there, key=lambda s: s.makespan(instance), default=None), False


def check_inference(instance: Instance, schedule: Schedule) -> None:
    """Assert that no inference from the makespan contradicts the schedule."""
    makespan = schedule.makespan(instance)
    grid = Grid.of(instance)
    limit = grid.floor(makespan)
    window = sharpened(instance, grid, windows(instance, grid, limit), limit)
    for v, d in enumerate(schedule.placement.tolist()):
        assert window.possible[instance.unit_of[v], d], "a device is lost"
        assert window.head[v, d] <= grid.floor(schedule.start[v]), "a head is too large"
        left = makespan - schedule.end(instance, v)
        assert grid.time(int(window.tail[v, d])) <= left, "a tail is too large"
    assert not Refutation(instance, grid, np.inf).by_trial(limit), "a makespan is refuted"


def check_bounds(
    instance: Instance, makespan: Fraction | None, optimal: bool, tallies: dict[str, Tally]
) -> None:
    """Assert that no bound exceeds the makespan."""
    for name, bound in BOUNDS.items():
        tally = tallies[name]
        begin = time.perf_counter()
        value = bound.compute(instance, seconds=_SECONDS, makespan=None)
        tally.seconds += time.perf_counter() - begin
        if makespan is None:
            continue
        assert value is not None, f"{name} says that there is no schedule"
        assert value <= makespan, f"{name} says {value}, a schedule takes {makespan}"
        if optimal:
            tally.known += 1
            tally.optimal += value == makespan
            tally.below += float(1 - value / makespan) if makespan else 0.0


def main(count: int, seed: int) -> None:
    models: list[tuple[Communication, Memory]] = list(
        product(get_args(Communication), get_args(Memory))
    )
    tallies: dict[str, Tally] = defaultdict(Tally)
    feasible = 0
    for draw in range(count):
        # Half of the draws are of models whose optimum is known.
        which = draw // 2 % (len(models) if draw % 2 else 2)
        communication, memory = models[which]
        rng = np.random.default_rng([seed, draw])
        instance = random_instance(rng, 6, 3, communication=communication, memory=memory)
        schedule, optimal = best_schedule(instance, rng)
        try:
            makespan = None if schedule is None else schedule.makespan(instance)
            if schedule is not None:
                feasible += 1
                check_inference(instance, schedule)
            check_bounds(instance, makespan, optimal, tallies)
        except AssertionError as error:
            sys.exit(f"draw {draw} of seed {seed}, {communication} with {memory}: {error}")
    print(f"{count} instances, {feasible} with a schedule: no bound and no inference is wrong")
    print(f"{'bound':>14} {'= optimum':>10} {'below it':>9} {'ms':>8}")
    for name, tally in tallies.items():
        known = max(1, tally.known)
        print(
            f"{name:>14} {tally.optimal / known:>10.1%} {tally.below / known:>9.2%} "
            f"{1000 * tally.seconds / count:>8.2f}"
        )


if __name__ == "__main__":
    given = [int(argument) for argument in sys.argv[1:]]
    main(*given, *(1000, 1)[len(given) :])
