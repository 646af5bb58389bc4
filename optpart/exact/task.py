"""The task for CP-SAT and its answer, in whole ticks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from optpart.kernels.ticks import Grid
from optpart.problem.instance import Instance
from optpart.solution import goal

#: The question: least makespan, least traffic, or any schedule.
Asked = Literal["makespan", "traffic", "decision"]


@dataclass(frozen=True, eq=False)
class Known:
    """A schedule to start from, in ticks.

    Attributes
    ----------
    placement, start : ndarray, length n
    begin : dict from (tensor, destination) to start of the transfer
    """

    placement: NDArray[np.int32]
    start: NDArray[np.int64]
    begin: dict[tuple[int, int], int]


@dataclass(frozen=True, eq=False)
class Task:
    """Everything that the model is built from; times are integers, in ticks.

    Attributes
    ----------
    head, tail : ndarray of int64, n × k
    possible : ndarray of bool, units × k
    lower, upper : int
        Proven bound, and the makespan that must not be exceeded.
    need, capacity : ndarray of int64
        Static memory per unit and device; −1 means no limit.
    size : ndarray of int64, length t
        Memory of each tensor in units of ``need``, where memory changes with time.
    known : Known, optional
        A schedule within ``upper`` to start from.
    alike : list of list of int
        Classes of interchangeable devices.
    turn : ndarray of int64
        All units; earlier ones use earlier interchangeable devices.
    identical : bool
        Whether devices are identical and crossing takes no time.
    asked : {"makespan", "traffic", "decision"}
    timed : bool
        Whether times matter; otherwise, only the placement does.
    order : tuple of pairs of tasks
    weight : ndarray of int64, length t
        Size of each tensor as it counts in the traffic.
    most_traffic : int
        −1 means no limit.
    load_cuts : bool
        Whether to add constraints implied by tasks taking turns on devices, links and ports.
    """

    instance: Instance
    grid: Grid
    head: NDArray[np.int64]
    tail: NDArray[np.int64]
    possible: NDArray[np.bool_]
    lower: int
    upper: int
    need: NDArray[np.int64]
    capacity: NDArray[np.int64]
    size: NDArray[np.int64]
    known: Known | None
    alike: list[list[int]]
    turn: NDArray[np.int64]
    identical: bool
    asked: Asked
    timed: bool
    order: tuple[tuple[goal.Task, goal.Task], ...]
    weight: NDArray[np.int64]
    most_traffic: int
    load_cuts: bool

    @property
    def sequences_only(self) -> bool:
        """Whether nothing is left to place, so that only orders on devices and links are free."""
        return not self.identical and bool((self.possible.sum(axis=1) == 1).all())

    @property
    def counts_traffic(self) -> bool:
        """Whether traffic matters, so that crossings count beyond the time they take."""
        return self.asked == "traffic" or self.most_traffic >= 0


@dataclass(frozen=True)
class Found:
    """A solution: placement and starts in ticks, and starts of transfers where they may wait."""

    placement: NDArray[np.int32]
    start: NDArray[np.int64] | None
    begin: dict[tuple[int, int], int]
