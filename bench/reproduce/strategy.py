"""One run of a strategy: with :mod:`cases`, everything that a stored run depends on."""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from bench.reproduce.records import Run
from optpart.kernels.compiled import arrays
from optpart.kernels.tasks import tasks
from optpart.methods import registry
from optpart.problem.instance import Instance
from optpart.solution.metrics import traffic
from optpart.solution.schedule import Schedule, retime
from optpart.solution.verifier import verify
from optpart.strategies.base import NoPlacementError, Partition
from optpart.strategies.simulator import execute, simulate

#: Name of the order that a partitioning strategy gives itself.
OWN = "own"
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)

#: Exact makespans and those in doubles may differ by so much, relatively.
_TOLERANCE = 1e-9


def measured(
    instance: Instance, case: str, run: int, partitioner: str, checked: tuple[str, ...]
) -> Run:
    """Run a partitioning strategy, then all scheduling strategies."""
    partition_by = registry.PARTITIONERS[partitioner].load()
    scale = arrays(instance).scale
    begin = time.process_time()  # of this process alone, whatever else the machine does
    try:
        partition = partition_by(instance, np.random.default_rng(run))
    except NoPlacementError as error:
        return Run(case, run, partitioner, time.process_time() - begin, str(error))
    seconds = time.process_time() - begin
    work = tasks(instance, partition.placement)
    makespan, choices = {}, {}
    for name in registry.SCHEDULERS:
        rule = registry.scheduler(name)
        done = execute(work, rule(work, partition, np.random.default_rng(run)))
        makespan[name] = float((done.start + work.duration).max(initial=0.0)) / scale
        choices[name] = _spread(done.choices[: instance.vertices])
    exact = {
        name: value
        for name in checked
        if (value := exact_makespan(instance, partition, name, run)) is not None
    }
    for name, value in exact.items():
        if name == OWN:
            makespan[OWN] = value
        elif abs(makespan[name] - value) > _TOLERANCE * value:
            raise AssertionError(
                f"{partitioner}+{name} on {case}: {makespan[name]} in doubles, exactly {value}"
            )
    duration = work.duration[: instance.vertices]
    busy = np.bincount(partition.placement, duration, instance.devices) / scale
    return Run(
        case,
        run,
        partitioner,
        seconds,
        traffic=float(traffic(instance, partition.placement)),
        used=len(np.unique(partition.placement)),
        busy=float(busy.sum()),
        busiest=float(busy.max()),
        makespan=makespan,
        choices=choices,
        exact=exact,
        cost=time.process_time() - begin,
    )


def _spread(choices: NDArray[np.int32]) -> list[float]:
    return [float(choices.mean()), *np.quantile(choices, QUANTILES).tolist()]


def exact_makespan(
    instance: Instance, partition: Partition, scheduler: str, run: int
) -> float | None:
    """Time a schedule exactly and have it verified; ``None`` for an order that is not there."""
    schedule: Schedule
    if scheduler == OWN:
        if partition.order is None:
            return None
        schedule = retime(instance, partition.placement, partition.order)
    else:
        schedule = simulate(instance, partition, registry.scheduler(scheduler), run)
    violations = verify(instance, schedule, most=1)
    if violations:
        raise AssertionError(f"{instance.name}, {scheduler}: {violations[0]}")
    return float(schedule.makespan(instance))
