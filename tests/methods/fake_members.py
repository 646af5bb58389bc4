"""Members of a portfolio that find, prove, fail or lie as told; processes import them, too."""

from __future__ import annotations

import os
import time
from fractions import Fraction
from typing import Any

from optpart import Instance, Result, Schedule, conclude, retime
from optpart.base.errors import UnsupportedError
from optpart.solution.job import Job
from optpart.solution.result import Progress, Watch
from optpart.solution.termination import Termination

#: A result's method; the portfolio does not look at it.
NAME = "fake"


def on_one(instance: Instance) -> Schedule:
    """Everything on the first device, one after another."""
    order = instance.graph.topological_order.tolist()
    return retime(instance, [0] * instance.vertices, order)


def spread(instance: Instance) -> Schedule:
    """Vertices on the devices in turn."""
    order = instance.graph.topological_order.tolist()
    return retime(instance, [v % instance.devices for v in range(instance.vertices)], order)


def told(watch: Watch | None, schedule: Schedule | None, value: object, bound: object) -> None:
    assert watch is not None
    watch(Progress(0.0, value, bound, schedule))  # type: ignore[arg-type]


def ended(instance: Instance, schedule: Schedule | None = None, **found: Any) -> Result:
    found = {"termination": Termination.TIME_LIMIT, "reason": "time limit", **found}
    return conclude(instance, NAME, schedule, **found)


def idles(job: Job, *_: Any) -> Result:
    return ended(job.instance)


def breaks(job: Job, *_: Any) -> Result:
    raise ZeroDivisionError(f"on {job.instance.name}")


def dies(job: Job, *_: Any) -> Result:
    os._exit(7)


def hangs(job: Job, *_: Any) -> Result:
    while True:
        time.sleep(1000)


def finds_then_hangs(job: Job, watch: Watch | None, **_: Any) -> Result:
    found = spread(job.instance)
    told(watch, found, found.makespan(job.instance), Fraction(0))
    return hangs(job)


def proves_then_hangs(job: Job, watch: Watch | None, **_: Any) -> Result:
    told(watch, None, None, spread(job.instance).makespan(job.instance))
    return hangs(job)


def solves_then_hangs(job: Job, watch: Watch | None, **_: Any) -> Result:
    found = spread(job.instance)
    told(watch, found, found.makespan(job.instance), found.makespan(job.instance))
    return hangs(job)


def refuses(job: Job, *_: Any) -> Result:
    raise UnsupportedError("model", "too odd for this member", "")


def finds(job: Job, *_: Any) -> Result:
    return ended(job.instance, spread(job.instance))


def finds_worse(job: Job, *_: Any) -> Result:
    return ended(job.instance, on_one(job.instance))


def proves(job: Job, *_: Any) -> Result:
    return ended(job.instance, bound=spread(job.instance).makespan(job.instance))


def solves(job: Job, *_: Any) -> Result:
    found = spread(job.instance)
    return ended(job.instance, found, bound=found.makespan(job.instance))


def boasts(job: Job, *_: Any) -> Result:
    return ended(job.instance, bound=Fraction(10**9))


def contradicts_itself(job: Job, *_: Any) -> Result:
    raise AssertionError("one and one make three; please report this")


def excludes(job: Job, *_: Any) -> Result:
    return conclude(job.instance, NAME, None, infeasible="no room")


def rounds(job: Job, *_: Any) -> Result:
    ends = {"termination": Termination.ROUNDING, "reason": "closed except for rounding"}
    found = spread(job.instance)
    return ended(
        job.instance, found, bound=found.makespan(job.instance) * (1 - Fraction(1, 10**9)), **ends
    )


def needs_a_start(job: Job, *_: Any) -> Result:
    found = "none" if job.start is None else job.start.makespan(job.instance)
    return ended(job.instance, termination=Termination.FAILED, reason=f"started from {found}")


def waits(job: Job, watch: Watch, **_: Any) -> Result:
    """Report that nothing is new, as a method that waits for its solver does, until stopped."""
    try:
        while True:
            told(watch, None, None, Fraction(0))
            time.sleep(0.01)
    except KeyboardInterrupt:
        return ended(job.instance, termination=Termination.INTERRUPTED, reason="interrupted")
