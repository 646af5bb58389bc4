"""The task for CP-SAT and its answer, in whole ticks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from optpart.exact.model_data import ModelData
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


@dataclass(frozen=True, eq=False, kw_only=True)
class Task(ModelData):
    """All that the model for CP-SAT is built from.

    Attributes
    ----------
    size : ndarray of int64, length t
        Memory of each tensor in units of ``need``, where memory changes with time.
    known : Known, optional
        A schedule within ``upper`` to start from.
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
        −1 is no limit.
    """

    size: NDArray[np.int64]
    known: Known | None
    turn: NDArray[np.int64]
    identical: bool
    asked: Asked
    timed: bool
    order: tuple[tuple[goal.Task, goal.Task], ...]
    weight: NDArray[np.int64]
    most_traffic: int

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
