"""Pruning rules of the exact methods, each with a switch that turns it off.

Each rule removes solutions, or constrains the remaining ones, under a premise that
``models/README.md`` states and justifies. A rule applied although its premise fails is the most
likely cause of a wrong optimum; solving again without it is the fastest way to find out.
"""

from __future__ import annotations

from enum import StrEnum


class Pruning(StrEnum):
    """A rule that removes redundant solutions."""

    #: Units of earlier turn use earlier interchangeable devices.
    SYMMETRY = "symmetry"
    #: Heads and tails restrict starts, and exclude devices on which the limit cannot be met.
    WINDOWS = "windows"
    #: The makespan is at least what combinatorial bounds prove.
    BOUNDS = "bounds"
    #: The incumbent's makespan is an upper limit.
    INCUMBENT = "incumbent"
    #: Load cuts: tasks on a device, link or port fit between heads and tails.
    LOAD_CUTS = "load-cuts"
    #: Identical machines become one cumulative resource.
    IDENTICAL = "identical"
    #: On a rounded grid, schedules with the choices along a longest path of one are no shorter.
    LONGEST_PATHS = "longest-paths"


#: Every rule.
ALL = frozenset(Pruning)

#: No rule.
NONE: frozenset[Pruning] = frozenset()
