"""Pruning rules of the exact methods, each with a switch that turns it off.

Each rule removes solutions, or asserts something about those that are left, under a premise that
``models/README.md`` states and argues. A rule applied where its premise fails is the likeliest way
to a wrong optimum; solving again without it is the quickest way to find out.
"""

from __future__ import annotations

from enum import StrEnum


class Pruning(StrEnum):
    """A rule that removes redundant solutions."""

    #: Units of earlier turn use earlier interchangeable devices.
    SYMMETRY = "symmetry"
    #: Heads and tails confine starts, and bar devices on which the limit cannot be kept.
    WINDOWS = "windows"
    #: The makespan is at least what combinatorial bounds prove.
    BOUNDS = "bounds"
    #: The incumbent's makespan is an upper limit.
    INCUMBENT = "incumbent"
    #: Load cuts: tasks on a device, link or port fit between heads and tails.
    LOAD_CUTS = "load-cuts"
    #: Identical machines become one cumulative resource.
    IDENTICAL = "identical"


#: Every rule.
ALL = frozenset(Pruning)

#: No rule.
NONE: frozenset[Pruning] = frozenset()
