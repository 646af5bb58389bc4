"""What a solve starts from, or has to keep: a result file, a strategy, or the instance itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from optpart.errors import InputError
from optpart.formats.result import read_schedule
from optpart.methods import registry
from optpart.problem.instance import Instance
from optpart.solution.schedule import Schedule, retime
from optpart.strategies.base import NoPlacementError
from optpart.strategies.simulator import simulate

#: Orders what a partitioning strategy without an order of its own has placed.
_SCHEDULER = "pct"


def heuristic_schedules(instance: Instance, seed: int = 0) -> Iterator[Schedule]:
    """Yield the schedules of the heuristics that solvers start from, where they find one."""
    for name in registry.heuristics():
        schedule = registry.get(name)(instance, seed=seed).schedule
        if schedule is not None:
            yield schedule


def pair_of(name: str) -> str | None:
    """Return the pair of strategies that a name stands for; ``None`` if for none.

    A partitioning strategy alone is one with its own order if it has one, else with ``pct``.
    """
    pairs = (name, f"{name}+{_SCHEDULER}")
    return next((pair for pair in pairs if registry.split(pair) is not None), None)


def started(name: str, instance: Instance, seed: int = 0) -> Schedule:
    """Return the schedule of a result file or, if there is no such file, of a strategy.

    It is not verified. Of a strategy that knows nothing of the memory model, or of a file that was
    made for another, the placement may serve where the schedule does not.

    Raises
    ------
    InputError
        If the name is neither, the file is not valid, or the strategy finds no placement.
    """
    if Path(name).exists():
        return read_schedule(name, instance)
    pair = pair_of(name)
    if pair is None:
        raise InputError(
            "",
            "no such file, and no strategy of this name",
            "name a result file, or a strategy of 'optpart methods'",
            name,
        )
    partition, scheduler = registry.split(pair) or ("", "")
    try:
        found = registry.partitioner(partition)(instance, np.random.default_rng(seed))
    except NoPlacementError as error:
        raise InputError("", str(error), "choose another strategy", name) from None
    if scheduler:
        return simulate(instance, found, registry.scheduler(scheduler), seed)
    return retime(instance, found.placement, found.order)


def only_placement(instance: Instance) -> dict[int, int] | None:
    """Return where each vertex must run, if the instance leaves no unit a choice of device."""
    if (instance.allowed.sum(axis=1) > 1).any():
        return None
    units, devices = np.nonzero(instance.allowed)
    return {
        int(v): int(d) for unit, d in zip(units, devices, strict=True) for v in instance.units[unit]
    }
