"""The data from which every solver model of an instance is built."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from optpart.kernels.ticks import Grid
from optpart.problem.instance import Instance


@dataclass(frozen=True, eq=False, kw_only=True)
class ModelData:
    """An instance, and what is known about its schedules before the search; times are in ticks.

    Attributes
    ----------
    head, tail : ndarray of int64, n × k
    possible : ndarray of bool, units × k
    lower, upper : int
        Proven lower bound, and upper limit of the makespan.
    need, capacity : ndarray of int64
        Static memory per unit, and capacity per device; a capacity of −1 means unlimited.
    alike : list of list of int
        Classes of interchangeable devices.
    load_cuts : bool
        Whether to add redundant constraints on the load of devices, links and ports.
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
    alike: list[list[int]]
    load_cuts: bool

    @property
    def channels(self) -> int:
        """The channels among which the load of a port is divided; 1 without ports."""
        return self.instance.model.parallel
