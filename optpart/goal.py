"""What an exact method is asked for: the objective, what is given, and what must be kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

Objective = Literal["makespan", "traffic", "lexicographic"]

#: A vertex, or the transfer of a tensor to a device.
Task = int | tuple[int, int]


@dataclass(frozen=True)
class Goal:
    """Objective, fixed decisions and limits of an exact method (design §2).

    Attributes
    ----------
    objective : {"makespan", "traffic", "lexicographic"}
        ``lexicographic`` is least makespan, then least traffic among schedules of that makespan.
    placement : mapping from vertex to device
        Where these vertices must run; others are free.
    order : tuple of pairs of tasks
        Of each pair, the first ends before the second starts wherever both occupy the same device
        (vertices) or the same link or port (transfers, as ``(tensor, destination)``). Pairs that
        share nothing say nothing.
    makespan, traffic : Fraction, optional
        What must not be exceeded: with ``makespan`` alone this is the decision problem.
    """

    objective: Objective = "makespan"
    placement: Mapping[int, int] = field(default_factory=dict)
    order: tuple[tuple[Task, Task], ...] = ()
    makespan: Fraction | None = None
    traffic: Fraction | None = None
