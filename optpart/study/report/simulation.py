"""The runs and the output of ``optpart simulate``."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optpart.base.errors import ArgumentError
from optpart.base.rounding import number, percent
from optpart.base.terminal import say
from optpart.interop.formats import result as result_format
from optpart.methods import registry
from optpart.problem.instance import Instance
from optpart.solution.metrics import busy, peak_memory
from optpart.solution.result import Result, conclude
from optpart.solution.schedule import Schedule
from optpart.strategies.base import NoPlacementError, Partition
from optpart.strategies.simulator import simulation
from optpart.study.report.console import PlainConsole, plain_console, plain_table


@dataclass(frozen=True, eq=False)
class Simulated:
    """One execution.

    Attributes
    ----------
    result : Result
        Without a schedule if the verifier rejects it.
    schedule : Schedule or None
        The executed schedule, valid or not; ``None`` without a placement.
    choices : ndarray of int32 or None
        Number of executable vertices at each decision ([L] figure 7.10); ``None`` if a strategy's
        own order leaves nothing to decide.
    """

    result: Result
    schedule: Schedule | None = None
    choices: NDArray[np.int32] | None = None

    def __repr__(self) -> str:
        return f"<Simulated {self.result!r}>"


def run(
    instance: Instance, method: str, placement: NDArray[np.int32] | None, seeds: Iterable[int]
) -> list[Simulated]:
    """Execute once per seed; with a placement, use only the scheduling part of ``method``."""
    if placement is not None:
        scheduler = method.rpartition("+")[2]
        registry.scheduler(scheduler)
        given = Partition(placement)
        return [_executed(instance, f"given+{scheduler}", given, scheduler, s) for s in seeds]
    parts = registry.split(method)
    if parts is None:
        registry.get(method)
        raise ArgumentError(
            "method", f"{method!r} is not a pair of strategies", "give PARTITIONING+SCHEDULER"
        )
    return [_placed(instance, method, *parts, seed) for seed in seeds]


def _placed(
    instance: Instance, method: str, partitioner: str, scheduler: str, seed: int
) -> Simulated:
    try:
        found = registry.partitioner(partitioner)(instance, np.random.default_rng(seed))
    except NoPlacementError as error:
        return Simulated(conclude(instance, method, None, reason=str(error), seed=seed))
    return _executed(instance, method, found, scheduler, seed)


def _executed(
    instance: Instance, method: str, partition: Partition, scheduler: str, seed: int
) -> Simulated:
    begin = time.perf_counter()
    choices = None
    if scheduler:
        schedule, choices = simulation(instance, partition, registry.scheduler(scheduler), seed)
    else:
        schedule = partition.schedule(instance)
    seconds = time.perf_counter() - begin
    result = conclude(instance, method, schedule, seconds=seconds, seed=seed)
    return Simulated(result, schedule, choices)


@dataclass(frozen=True)
class Row:
    """The activity of one device, and its peak memory under two models."""

    device: str
    vertices: int
    busy: Fraction
    idle: Fraction
    edges: Fraction
    refcount: Fraction


def rows(instance: Instance, schedule: Schedule) -> list[Row]:
    """Return the activity of every device until the makespan."""
    times, makespan = busy(instance, schedule), schedule.makespan(instance)
    count = np.bincount(schedule.placement, minlength=instance.devices).tolist()
    edges = peak_memory(instance, schedule, "edges")
    refcount = peak_memory(instance, schedule, "refcount", instance.model.release)
    return [
        Row(name, count[d], times[d], makespan - times[d], edges[d], refcount[d])
        for d, name in enumerate(instance.cluster.names)
    ]


def to_document(simulated: Simulated) -> dict[str, Any]:
    """Return the result and, under ``simulation``, the activity of its devices."""
    document = result_format.to_dict(simulated.result)
    schedule, choices = simulated.schedule, simulated.choices
    if schedule is not None:
        document["simulation"] = {
            "executable": None if choices is None else choices.tolist(),
            "devices": [
                {
                    "device": row.device,
                    "vertices": row.vertices,
                    "busy": str(row.busy),
                    "idle": str(row.idle),
                    "peak_memory": {"edges": str(row.edges), "refcount": str(row.refcount)},
                }
                for row in rows(simulated.result.instance, schedule)
            ],
        }
    return document


def print_runs(runs: list[Simulated]) -> None:
    """Print the makespan over all runs, and the devices of the first run."""
    first = runs[0]
    result, instance = first.result, first.result.instance
    if first.schedule is None:
        say(f"{instance.name}: {result.method}: {result.reason}")
        return
    makespan = number(first.schedule.makespan(instance), up=True)
    if result.schedule is None:
        say(f"{instance.name}: {result.method}, makespan {makespan}, but not a valid schedule:")
        say(f"  {result.reason.removeprefix('its schedule is not valid: ')}")
    else:
        traffic = number(result.traffic, up=True)
        say(
            f"{instance.name}: {result.method}, makespan {makespan}{_spread(runs)}, "
            f"traffic {traffic}"
        )
    if first.choices is not None and len(first.choices):
        quartiles = np.quantile(first.choices, (0.25, 0.5, 0.75))
        say(
            f"executable vertices at a decision: mean "
            f"{_figure(first.choices.mean())}, quartiles {', '.join(map(_figure, quartiles))}, "
            f"most {first.choices.max()}"
        )
    print_devices(plain_console(), instance, first.schedule)


def _spread(runs: list[Simulated]) -> str:
    if len(runs) == 1:
        return ""
    values = [run.result.makespan for run in runs if run.result.makespan is not None]
    deviation = statistics.stdev(map(float, values)) if len(values) > 1 else 0.0
    refused = len(runs) - len(values)
    return (
        f" (mean of {len(values)} runs {number(statistics.mean(values), up=True)}, "
        f"standard deviation {_figure(deviation)}{f', {refused} not valid' if refused else ''})"
    )


def _figure(value: float) -> str:
    return number(float(value), up=True, digits=4)


def print_devices(console: PlainConsole, instance: Instance, schedule: Schedule) -> None:
    """Print the activity of each device that runs or holds anything."""
    makespan = schedule.makespan(instance)
    table = plain_table(
        "device", "vertices", "busy", "idle", "share busy", "peak memory by edges",
        "peak memory by refcount",
    )  # fmt: skip
    for row in rows(instance, schedule):
        if row.vertices or row.refcount:
            share = row.busy / makespan if makespan else Fraction(0)
            table.add_row(
                row.device,
                str(row.vertices),
                number(row.busy, up=True),
                number(row.idle, up=True),
                percent(share, up=False),
                number(row.edges, up=True),
                number(row.refcount, up=True),
            )
    console.show(table)
