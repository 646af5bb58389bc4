"""What ``optpart simulate`` runs and prints."""

from __future__ import annotations

import statistics
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from optpart import methods
from optpart.instance import Instance
from optpart.metrics import busy, utilisation
from optpart.partition.base import Partition
from optpart.report.text import number, percent
from optpart.result import Result, conclude
from optpart.simulate import simulate


def run(
    instance: Instance, method: str, placement: NDArray[np.int32] | None, seeds: Iterable[int]
) -> list[Result]:
    """Execute once per seed; with a placement, only the scheduling part of ``method`` counts."""
    if placement is None:
        return [methods.get(method)(instance, seed=seed) for seed in seeds]
    name = method.rpartition("+")[2]
    rule = methods.scheduler(name)
    return [
        conclude(
            instance,
            f"given+{name}",
            simulate(instance, Partition(placement), rule, seed),
            seed=seed,
        )
        for seed in seeds
    ]


def print_results(results: list[Result]) -> None:
    """Print the makespan over all runs, and the devices of the first."""
    first = results[0]
    makespans = [result.makespan for result in results if result.makespan is not None]
    if not makespans or first.schedule is None:
        print(f"{first.instance.name}: {first.method}: {first.reason}")
        return
    spread = ""
    if len(results) > 1:
        values = [float(value) for value in makespans]
        deviation = statistics.stdev(values) if len(values) > 1 else 0.0
        spread = (
            f" (mean of {len(values)} runs {statistics.fmean(values):.6g}, "
            f"standard deviation {deviation:.3g})"
        )
    print(
        f"{first.instance.name}: {first.method}, makespan {number(first.makespan, up=True)}"
        f"{spread}, traffic {number(first.traffic, up=True)}"
    )
    _print_devices(first)


def _print_devices(result: Result) -> None:
    assert result.schedule is not None
    instance, schedule = result.instance, result.schedule
    times, shares = busy(instance, schedule), utilisation(instance, schedule)
    print(f"{'device':>12}  {'vertices':>8}  {'busy':>10}  {'of makespan':>11}")
    for d, name in enumerate(instance.cluster.names):
        count = int((schedule.placement == d).sum())
        if count:
            print(
                f"{name:>12}  {count:>8}  {number(times[d], up=True):>10}  {percent(shares[d]):>11}"
            )
