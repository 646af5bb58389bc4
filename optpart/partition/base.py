"""What every partitioning strategy returns."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from optpart.errors import OptpartError
from optpart.instance import Instance


class Partition(NamedTuple):
    """A placement, and the order that the strategy had in mind, if it has one.

    Attributes
    ----------
    placement : ndarray of int32, length n
    order : list of int, or None
        All vertices, topologically sorted.
    """

    placement: NDArray[np.int32]
    order: list[int] | None = None


#: A partitioning strategy; it raises :class:`NoPlacementError` where it finds no placement.
Partitioner: TypeAlias = Callable[[Instance, np.random.Generator], Partition]


class NoPlacementError(OptpartError):
    """A strategy found no placement that keeps colocation, allowed devices and static memory.

    That says nothing about whether one exists.
    """


def placement_of(instance: Instance, device: NDArray[np.int32]) -> NDArray[np.int32]:
    """Turn devices per unit into devices per vertex.

    Raises
    ------
    NoPlacementError
        If a unit has no device (−1).
    """
    missing = np.flatnonzero(device < 0)
    if len(missing):
        raise NoPlacementError(
            f"found no feasible placement: no device was left for {instance.unit_name(missing[0])}"
        )
    return device[instance.unit_of]
