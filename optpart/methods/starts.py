"""The start of a solve, or the part that it must keep: from a file, a strategy or the instance."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import chain

import numpy as np

from optpart.base.clock import is_time_up, seconds_left
from optpart.base.errors import InputError, UnsupportedError
from optpart.base.limits import MOST_SECONDS
from optpart.interop.formats.pipeline_parts import pass_of
from optpart.interop.formats.result import read_schedule
from optpart.methods import registry
from optpart.methods.parts import PARTITIONERS, PASSES
from optpart.problem.instance import Instance
from optpart.solution.goal import Goal
from optpart.solution.job import Job
from optpart.solution.result import Budget
from optpart.solution.schedule import Schedule
from optpart.solution.verifier import verify
from optpart.strategies.base import NoPlacementError, Partition
from optpart.strategies.simulator import simulate

#: The scheduler for partitioning strategies without an order of their own.
_SCHEDULER = "pct"

#: The budget of a heuristic that only the time limit around the call ends.
UNTIMED = Budget(MOST_SECONDS)

#: The goal of a search for the least makespan, with nothing given.
_SHORTEST = Goal()


def heuristic_schedules(
    instance: Instance, seed: int = 0, memory: int | None = None, *, goal: Goal = _SHORTEST
) -> Iterator[Schedule]:
    """Yield the schedules that the heuristics for starts of solvers find.

    The first fills one device after another, if memory is limited or the goal asks for blocks;
    then come the published orders of passes, if the instance is a training pipeline. If
    none is found, placements are sought by exchanges and by an exact method. When the time limit
    around the call is over (:mod:`optpart.base.clock`), no further heuristic begins.
    """
    found = False
    for early in chain(fills(instance, goal), pass_orders(instance)):
        found = True
        yield early
    for number, name in enumerate(registry.starts(groups=len(instance.units) < instance.vertices)):
        if (found or number) and is_time_up():
            return
        job = Job(instance, budget=UNTIMED, seed=seed)
        schedule = registry.run(name, job).schedule
        if schedule is not None:
            found = True
            yield schedule
    if not found:
        yield from _packed(instance, seed, memory)


def fills(instance: Instance, goal: Goal = _SHORTEST) -> Iterator[Schedule]:
    """Yield the best schedule that fills one device after another, where that is of use."""
    from optpart.search.fill import filled

    limited = any(capacity is not None for capacity in instance.cluster.memory)
    if goal.blocks or (limited and instance.model.memory != "none"):
        schedule = filled(instance, goal.device_order)
        if schedule is not None:
            yield schedule


def pass_orders(instance: Instance) -> Iterator[Schedule]:
    """Yield the schedules of published orders, if the instance is a training pipeline."""
    if not instance.vertices or pass_of(instance.graph.names[0]) is None:
        return
    for name, part in PARTITIONERS.rows.items():
        if part.scope == PASSES:
            try:
                schedule = registry.run(name, Job(instance, budget=UNTIMED)).schedule
            except UnsupportedError:  # an order for another shape, or the name means no pass
                continue
            if schedule is not None:
                yield schedule


def _packed(instance: Instance, seed: int, memory: int | None) -> Iterator[Schedule]:
    """Yield valid schedules of placements that keep static memory, however tight it is."""
    from optpart.exact.packing import pack
    from optpart.search.layout import repaired

    scheduler = registry.scheduler(_SCHEDULER)
    layout = repaired(instance, None, np.random.default_rng(seed))
    if layout is not None:
        schedule = simulate(instance, Partition(layout.device), scheduler, seed)
        if not verify(instance, schedule):
            yield schedule
            return
    seconds = min(seconds_left(), MOST_SECONDS)
    device = pack(instance, Budget(seconds, 1, deterministic=1.0, memory=memory), seed).device
    if device is not None:
        schedule = simulate(instance, Partition(device[instance.unit_of]), scheduler, seed)
        if not verify(instance, schedule):
            yield schedule


def pair_of(name: str) -> str | None:
    """Return the pair of strategies that a name stands for; ``None`` if it stands for none.

    The name of a partitioning strategy alone means its own order if it has one, else ``pct``.
    """
    pairs = (name, f"{name}+{_SCHEDULER}")
    return next((pair for pair in pairs if registry.split(pair) is not None), None)


def started(name: str, instance: Instance, seed: int = 0) -> Schedule:
    """Return the schedule of a result file or, if there is no such file, of a strategy.

    The schedule is not verified. If the strategy ignores the memory model, or the file was made for
    another model, the placement may be usable even if the schedule is not.

    Raises
    ------
    InputError
        If the name is neither, the file is not valid, or the strategy finds no placement.
    """
    if os.path.exists(name):
        return read_schedule(name, instance)
    pair = pair_of(name)
    if pair is None:
        raise InputError(
            "",
            "neither a file nor a strategy",
            "give a result file, or a strategy listed by 'optpart methods'",
            name,
        )
    partition, scheduler = registry.split(pair) or ("", "")
    try:
        found: Partition = registry.partitioner(partition)(instance, np.random.default_rng(seed))
    except NoPlacementError as error:
        raise InputError("", str(error), "choose another strategy", name) from None
    if scheduler:
        return simulate(instance, found, registry.scheduler(scheduler), seed)
    return found.schedule(instance)


def only_placement(instance: Instance) -> dict[int, int] | None:
    """Return the device of each vertex if every unit has one allowed device, else ``None``."""
    if (instance.allowed.sum(axis=1) > 1).any():
        return None
    units, devices = np.nonzero(instance.allowed)
    return {
        int(v): int(d) for unit, d in zip(units, devices, strict=True) for v in instance.units[unit]
    }
