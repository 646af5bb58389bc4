"""Random values of the options of functions that answer a question about an instance.

Options of :func:`optpart.solve` make a goal, which :mod:`optpart.testing.goals` draws.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from optpart.problem.instance import Instance
from optpart.testing.pick import Draw, seeded

#: Draws the value of an option.
Option = Callable[[Draw, Instance], Any]

#: Rates around the sizes and times that are drawn, one of which fits no common grid with them.
_RATES = (
    Fraction(1),
    Fraction(4, 3),
    Fraction(1, 7),
    Fraction(999999999999, 10**12),
    Fraction(10**12 + 39, 7919),
)


def _device_order(draw: Draw, instance: Instance) -> list[str] | None:
    """Draw no order, one of all devices, or one of some."""
    k = instance.devices
    count = draw.one_of((0, k, k, k - 1, draw.between(1, k)))
    return [instance.cluster.names[d] for d in draw.some(k, count)] or None


def _replicas(draw: Draw, instance: Instance) -> int:
    return draw.one_of((1, 2, 2, draw.between(1, instance.devices + 1)))


def _sync_rate(draw: Draw, instance: Instance) -> Fraction | str | None:
    return draw.one_of((None, None, "links", draw.one_of(_RATES)))


def _contiguous(draw: Draw, instance: Instance) -> bool:
    return draw.chance(2)


#: By function of :mod:`optpart` and option.
OPTIONS: Mapping[str, Mapping[str, Option]] = {
    "plan": {"replicas": _replicas, "device_order": _device_order, "sync_rate": _sync_rate},
    "pipeline_problem": {"sync_rate": _sync_rate},
    "verify": {"contiguous": _contiguous, "device_order": _device_order},
}


def draw_options(function: str, instance: Instance, seed: int) -> dict[str, Any]:
    """Draw all options of a function; the same arguments give the same ones."""
    draw = Draw(seeded(seed, "options", function))
    return {name: option(draw, instance) for name, option in OPTIONS[function].items()}
