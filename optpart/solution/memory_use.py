"""The memory that each device holds over time, exactly."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

import numpy as np

from optpart.problem.instance import Instance
from optpart.solution.metrics import uses_over_time
from optpart.solution.schedule import Schedule

#: Moments and what is held from each of them until the next.
Steps = list[tuple[Fraction, Fraction]]


def memory_use(instance: Instance, schedule: Schedule) -> list[Steps]:
    """Return what each device holds over time, as the instance's memory model counts it.

    Without a memory model, it is counted as under ``refcount``.

    Parameters
    ----------
    schedule : Schedule
        One that the verifier accepts.

    Returns
    -------
    list of (time, amount) lists, length k
        Ascending moments, the first of them 0; an amount holds until the next moment.
    """
    model, k = instance.model.memory, instance.devices
    static = _static(instance, schedule)
    if model == "estimate":
        return [[(Fraction(0), amount)] for amount in static]
    kind: Literal["edges", "refcount"] = "edges" if model == "edges" else "refcount"
    moments, (device, since, until, amount) = uses_over_time(
        instance, schedule, kind, instance.model.release
    )
    unit = instance.graph.tensor_size.denominator
    change: list[dict[int, int]] = [{} for _ in range(k)]
    for d, begin, end, size in zip(
        device.tolist(), since.tolist(), until.tolist(), amount.tolist(), strict=True
    ):
        if begin < end and size:
            change[d][begin] = change[d].get(begin, 0) + size
            change[d][end] = change[d].get(end, 0) - size
    use: list[Steps] = []
    for d in range(k):
        held, steps = 0, {Fraction(0): static[d]}
        for rank in sorted(change[d]):
            held += change[d][rank]
            steps[moments[rank]] = static[d] + Fraction(held, unit)
        use.append(list(steps.items()))
    return use


def _static(instance: Instance, schedule: Schedule) -> list[Fraction]:
    """Return what the vertices of each device take for the whole run."""
    total = [Fraction(0)] * instance.devices
    match instance.model.memory:
        case "edges":
            pass
        case "estimate":
            for unit, members in enumerate(instance.units):
                total[int(schedule.placement[members[0]])] += instance.static_memory[unit]
        case _:
            for d in range(instance.devices):
                here = np.flatnonzero(schedule.placement == d)
                total[d] = instance.graph.memory.sum(here)
    return total
