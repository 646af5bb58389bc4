"""Everything on one device ([B] §5.2.2): the baseline for any distribution."""

from __future__ import annotations

import numpy as np

from optpart.base.choices import choice
from optpart.base.errors import InputError
from optpart.kernels.compiled import State, arrays
from optpart.problem.instance import Instance
from optpart.strategies.base import Partition, partition_of
from optpart.strategies.partition.common import first_fit
from optpart.strategies.partition.ranks import devices_by_speed
from optpart.strategies.partition.unit_graph import by_first_vertex


def single_device(
    instance: Instance, rng: np.random.Generator, *, device: str | None = None
) -> Partition:
    """Put everything on one device.

    Parameters
    ----------
    device : str, optional
        Its name; by default, the fastest device that can take everything.

    Raises
    ------
    InputError
        If no device has that name.
    NoPlacementError
        If it, or by default any device, cannot take everything. In the latter case the error names
        the first unit that the fastest device cannot take.
    """
    index = instance.cluster.index
    if device is None:
        candidates = devices_by_speed(instance).tolist()
    elif device in index:
        candidates = [index[device]]
    else:
        raise InputError("device", f"no device {device!r}", choice(device, index))
    a, units = arrays(instance), by_first_vertex(instance)
    nothing_else = np.zeros(len(units), dtype=np.int64)

    def on(d: int) -> State:
        found: State = first_fit(a, units, nothing_else, np.array([d], dtype=np.int32))
        return found

    whole = (state for state in map(on, candidates) if (state.device >= 0).all())
    return partition_of(instance, next(whole, None) or on(candidates[0]))
