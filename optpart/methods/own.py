"""User-defined strategies: their return values are checked before compiled code uses them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from optpart.base.errors import OptpartError, PluginError
from optpart.problem.instance import Instance
from optpart.solution.names import placement_of

if TYPE_CHECKING:
    from optpart.strategies.base import Partition
    from optpart.strategies.simulator import Priority

_REMEDY = "fix the strategy"


def checked_partitioner(
    name: str, function: Callable[..., Any]
) -> Callable[[Instance, np.random.Generator], Partition]:
    """Wrap a partitioning strategy: check its results, and report failures under its name."""

    @wraps(function)
    def run(instance: Instance, rng: np.random.Generator) -> Partition:
        from optpart.strategies.base import Partition

        found: Any = _called(name, function, instance, rng)
        placed: Any = None
        if isinstance(found, Partition):
            found, placed = found.placement, found.placed
        if isinstance(found, Mapping):
            where: NDArray[Any] = placement_of(instance, found)
        else:
            where = _numbers(name, found, instance.vertices, "device numbers, one per vertex")
        if len(where) and not (where.min() >= 0 and where.max() < instance.devices):
            raise PluginError(
                name,
                "returns a device that does not exist",
                f"use numbers below {instance.devices}",
            )
        if placed is not None:
            placed = _numbers(name, placed, instance.vertices, "turns, one per vertex")
        return Partition(where.astype(np.int32), placed)

    return run


def checked_scheduler(name: str, function: Callable[..., Any]) -> Callable[..., Priority]:
    """Wrap a scheduling strategy: check its results, and report failures under its name."""

    @wraps(function)
    def run(work: Any, partition: Partition, rng: np.random.Generator) -> Priority:
        from optpart.strategies.simulator import Priority

        found = _called(name, function, work, partition, rng)
        size = len(work.duration)
        if not isinstance(found, Priority):
            found = Priority(found, np.arange(size))
        value, tie, weights = found
        if value is not None:
            value = _floats(name, value, size, "numbers, one per task")
        tie = _numbers(name, tie, size, "one tie-breaking number per task")
        if len(np.unique(tie)) < size:
            raise PluginError(name, "returns equal tie-breaking numbers", "make them distinct")
        if weights is not None:
            weights = _floats(name, weights, 4, "four weights")
        return Priority(value, tie, weights)

    return run


def _called(name: str, function: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except OptpartError:
        raise
    except Exception as error:
        raise PluginError(name, f"failed ({type(error).__name__}: {error})", _REMEDY) from error


def _numbers(name: str, values: Any, size: int, what: str) -> NDArray[np.int64]:
    array = _array(values)
    if array is None or array.shape != (size,) or (size and array.dtype.kind not in "iu"):
        raise PluginError(name, f"does not return {what}", f"return {size} whole numbers")
    return array.astype(np.int64)


def _floats(name: str, values: Any, size: int, what: str) -> NDArray[np.float64]:
    array = _array(values)
    if array is None or array.shape != (size,) or (size and array.dtype.kind not in "iuf"):
        raise PluginError(name, f"does not return {what}", f"return {size} numbers")
    numbers = array.astype(np.float64)
    if np.isnan(numbers).any():
        raise PluginError(name, "returns a value that is not a number", f"return {size} numbers")
    return numbers


def _array(values: Any) -> NDArray[Any] | None:
    try:
        return np.asarray(values)
    except Exception:  # reading a foreign object may raise anything
        return None
