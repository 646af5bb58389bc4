"""Pruning rules of the exact methods, each with a switch that turns it off.

Each rule removes solutions, or asserts something about those that are left, under a premise that
``models/README.md`` states and argues. A rule applied where its premise fails is the likeliest way
to a wrong optimum; solving again without it is the quickest way to find out.
"""

from __future__ import annotations

from enum import StrEnum


class Pruning(StrEnum):
    """A rule that removes redundant solutions."""

    #: Of interchangeable devices, units of earlier turn use the earlier.
    SYMMETRY = "symmetry"
    #: Heads and tails confine starts, and bar devices on which the limit cannot be kept.
    WINDOWS = "windows"
    #: The makespan is at least what combinatorial bounds prove.
    BOUNDS = "bounds"
    #: Only schedules no longer than the incumbent are looked for.
    INCUMBENT = "incumbent"
    #: What runs on a device, or crosses a link or port, fits between heads and tails.
    LOAD_CUTS = "load-cuts"
    #: Machines that differ in nothing become one cumulative resource.
    IDENTICAL = "identical"


#: Every rule.
ALL = frozenset(Pruning)

#: No rule.
NONE: frozenset[Pruning] = frozenset()
