"""The interface of partitioning strategies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from optpart.base.errors import OptpartError
from optpart.kernels.compiled import State
from optpart.problem.instance import Instance
from optpart.solution.goal import Task
from optpart.solution.schedule import Schedule, retime_after


class Partition(NamedTuple):
    """A placement, and optional further results of its strategy.

    Attributes
    ----------
    placement : ndarray of int32, length n
    placed : ndarray of int64, length n, or None
        Position in the order of placement; the same for all members of a unit unless the strategy
        placed them one by one.
    order : list of tasks, or None
        The execution order of a strategy that also schedules: all vertices, topologically sorted,
        and those transfers whose turn differs from that of what they carry.
    waits : mapping from task to task, or None
        Of a strategy with an order: what must have ended before a task starts, as for its memory.
    """

    placement: NDArray[np.int32]
    placed: NDArray[np.int64] | None = None
    order: Sequence[Task] | None = None
    waits: Mapping[Task, Task] | None = None

    def schedule(self, instance: Instance) -> Schedule:
        """Return the schedule of the own order of a strategy."""
        assert self.order is not None
        return retime_after(instance, self.placement, self.order, self.waits or {})


#: A partitioning strategy; raises :class:`NoPlacementError` if it finds no placement. Further
#: options are keyword arguments with defaults.
Partitioner: TypeAlias = Callable[..., Partition]


class NoPlacementError(OptpartError):
    """A strategy found no placement that keeps colocation, allowed devices and static memory.

    One may exist nevertheless.
    """


def partition_of(instance: Instance, state: State, order: list[int] | None = None) -> Partition:
    """Turn placed units into a partition.

    Raises
    ------
    NoPlacementError
        If a unit was not placed.
    """
    missing = np.flatnonzero(state.device < 0)
    if len(missing):
        raise NoPlacementError(
            f"found no feasible placement: no device was left for {instance.unit_name(missing[0])}"
        )
    unit = instance.unit_of
    return Partition(state.device[unit], state.placed[:-1][unit], order)
