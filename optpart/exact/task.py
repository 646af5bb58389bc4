"""The task for CP-SAT and its answer, in whole ticks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from optpart.exact.longest_path import Choices
from optpart.exact.model_data import ModelData
from optpart.solution import goal

#: The question: minimise the makespan, the traffic or the bottleneck, or find any schedule.
Asked = Literal["makespan", "traffic", "bottleneck", "decision"]


@dataclass(frozen=True, eq=False)
class Known:
    """The initial schedule, in ticks.

    Attributes
    ----------
    placement, start : ndarray, length n
    begin : dict from (tensor, destination) to the start of the transfer
    """

    placement: NDArray[np.int32]
    start: NDArray[np.int64]
    begin: dict[tuple[int, int], int]


@dataclass(frozen=True, eq=False, kw_only=True)
class Task(ModelData):
    """The data from which the CP-SAT model is built.

    Attributes
    ----------
    size : ndarray of int64, length t
        Memory of each tensor in units of ``need``, if memory varies over time.
    known : Known, optional
        The initial schedule, within ``upper``.
    turn : ndarray of int64
        All units, in the order in which they occupy interchangeable devices.
    identical : bool
        Whether devices are identical and transfers take no time.
    asked : {"makespan", "traffic", "bottleneck", "decision"}
    timed : bool
        Whether times matter, not only the placement.
    order : tuple of pairs of tasks
    weight : ndarray of int64, length t
        Size of each tensor in units of traffic.
    most_traffic : int
        Upper limit of the traffic; −1 means unlimited.
    contiguous : bool
        Whether no path may leave a device and come back to it.
    device_order : tuple of int
        If not empty: the devices in use, with no edge from a later one back to an earlier one.
    loads : pair of int
        Proven lower bound and upper limit of the bottleneck, in ticks divided by ``channels``.
    excluded : tuple of Choices
        Choices that must not all be made, of each entry.
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
    contiguous: bool
    device_order: tuple[int, ...]
    loads: tuple[int, int]
    excluded: tuple[Choices, ...] = ()

    @property
    def sequences_only(self) -> bool:
        """True if the placement is fixed, so that only the orders on devices and links are free."""
        return not self.identical and bool((self.possible.sum(axis=1) == 1).all())

    @property
    def counts_traffic(self) -> bool:
        """True if the traffic is minimised or limited."""
        return self.asked == "traffic" or self.most_traffic >= 0

    @property
    def loads_links(self) -> bool:
        """True if the bottleneck is minimised and transfers load devices, links or ports."""
        return self.asked == "bottleneck" and self.instance.model.queues
