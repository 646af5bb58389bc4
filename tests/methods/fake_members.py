"""Members of a portfolio that find, prove, fail or lie as told; processes import them, too."""

from __future__ import annotations

import os
import time
from fractions import Fraction
from typing import Any

from optpart import Instance, Result, Schedule, conclude, retime
from optpart.errors import UnsupportedError
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


def idles(instance: Instance, **_: Any) -> Result:
    return ended(instance)


def breaks(instance: Instance, **_: Any) -> Result:
    raise ZeroDivisionError(f"on {instance.name}")


def dies(instance: Instance, **_: Any) -> Result:
    os._exit(7)


def hangs(instance: Instance, **_: Any) -> Result:
    while True:
        time.sleep(1000)


def finds_then_hangs(instance: Instance, *, watch: Watch | None, **_: Any) -> Result:
    found = spread(instance)
    told(watch, found, found.makespan(instance), Fraction(0))
    return hangs(instance)


def proves_then_hangs(instance: Instance, *, watch: Watch | None, **_: Any) -> Result:
    told(watch, None, None, spread(instance).makespan(instance))
    return hangs(instance)


def solves_then_hangs(instance: Instance, *, watch: Watch | None, **_: Any) -> Result:
    found = spread(instance)
    told(watch, found, found.makespan(instance), found.makespan(instance))
    return hangs(instance)


def refuses(instance: Instance, **_: Any) -> Result:
    raise UnsupportedError("model", "too odd for this member", "")


def finds(instance: Instance, **_: Any) -> Result:
    return ended(instance, spread(instance))


def finds_worse(instance: Instance, **_: Any) -> Result:
    return ended(instance, on_one(instance))


def proves(instance: Instance, **_: Any) -> Result:
    return ended(instance, bound=spread(instance).makespan(instance))


def solves(instance: Instance, **_: Any) -> Result:
    found = spread(instance)
    return ended(instance, found, bound=found.makespan(instance))


def boasts(instance: Instance, **_: Any) -> Result:
    return ended(instance, bound=Fraction(10**9))


def contradicts_itself(instance: Instance, **_: Any) -> Result:
    raise AssertionError("one and one make three; please report this")


def excludes(instance: Instance, **_: Any) -> Result:
    return conclude(instance, NAME, None, infeasible="no room")


def rounds(instance: Instance, **_: Any) -> Result:
    ends = {"termination": Termination.ROUNDING, "reason": "closed except for rounding"}
    found = spread(instance)
    return ended(instance, found, bound=found.makespan(instance) * (1 - Fraction(1, 10**9)), **ends)


def needs_a_start(instance: Instance, *, start: Schedule | None, **_: Any) -> Result:
    found = "none" if start is None else start.makespan(instance)
    return ended(instance, termination=Termination.FAILED, reason=f"started from {found}")


def waits(instance: Instance, *, watch: Watch, **_: Any) -> Result:
    """Report that nothing is new, as a method that waits for its solver does, until stopped."""
    try:
        while True:
            told(watch, None, None, Fraction(0))
            time.sleep(0.01)
    except KeyboardInterrupt:
        return ended(instance, termination=Termination.INTERRUPTED, reason="interrupted")
