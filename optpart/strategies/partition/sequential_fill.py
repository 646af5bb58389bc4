"""One device is filled after the other: what the device maps of Hugging Face accelerate do."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from optpart.kernels.compiled import Arrays, arrays, kernel, nothing_placed
from optpart.kernels.struct import Floats, Ints
from optpart.problem.instance import Instance
from optpart.strategies.base import Partition, partition_of
from optpart.strategies.partition.common import place_from
from optpart.strategies.partition.contiguous import settle
from optpart.strategies.partition.unit_graph import by_first_vertex


def sequential_fill(
    instance: Instance, rng: np.random.Generator, *, balanced: bool = False
) -> Partition:
    """Fill the devices one after the other, in topological order of the units' first vertices.

    A unit goes to the current device. Once a unit does not fit into its memory, that device is
    closed, and the next one is current. The devices come as the cluster lists them, those of type
    ``CPU`` after all others, as accelerate puts the processor after all accelerators. A unit that
    may not run on the current device, because of its type, its allowed devices, separation or
    missing links, goes to the first device after it, or else before it, that can take it; the
    current device stays open.

    Without memory limits (model ``none``, or devices without capacity) everything goes to the first
    device, as accelerate does with a model that fits.

    Where accelerate offloads to disk, because all devices are closed, units go to the first device
    that still has room for them. If one finds none, all are placed again on the devices found so
    far, those that may use the fewest devices first, of these the ones that need most memory.

    Parameters
    ----------
    balanced : bool
        Whether each device but the last of the accelerators (of all devices, if there are none) is
        closed earlier: when an equal share of the resident memory of all vertices, plus 5/4 of the
        largest unit's, is full. Under memory model ``none`` as well.

    Raises
    ------
    NoPlacementError
        If a unit is left without a device.

    Notes
    -----
    ``infer_auto_device_map`` in ``accelerate/utils/modeling.py``; ``balanced`` is its
    ``get_balanced_memory``, which ``device_map="auto"`` calls first and ``"sequential"`` does not.
    accelerate keeps room on the first accelerator for the largest layer that it offloads, which has
    to run there; here every unit runs where it is placed, and no room is kept. Its modules come in
    the order of their definition, and may be split into their children; here they are units.
    """
    devices = accelerators_first(instance)
    units = by_first_vertex(instance)
    memory = instance.graph.memory.floats
    # For empty input, numpy would count in integers.
    resident = np.bincount(instance.unit_of, memory, len(units)).astype(np.float64)
    limit = np.full(len(devices), np.inf)
    if balanced and len(units):
        accelerators = len(devices) - int(_is_host(instance).sum()) or len(devices)
        limit[: accelerators - 1] = resident.sum() / accelerators + 1.25 * resident.max()
    state = _fill(arrays(instance), units, devices, resident, limit)
    if (state.device < 0).any():
        device = np.where(state.device < 0, devices[0], state.device).astype(np.int32)
        return settle(instance, units, device, devices)
    return partition_of(instance, state)


def accelerators_first(instance: Instance) -> NDArray[np.int32]:
    """Return the devices as the cluster lists them, those of type ``CPU`` in any case last."""
    return np.argsort(_is_host(instance), kind="stable").astype(np.int32)


def _is_host(instance: Instance) -> NDArray[np.bool_]:
    kinds = [(kind or "").upper() for kind in instance.cluster.types]
    return np.array([kind == "CPU" for kind in kinds], dtype=np.bool_)


@kernel
def _fill(a: Arrays, units: Ints, devices: Ints, size: Floats, limit: Floats) -> Any:
    """Place units in turn; ``limit`` is how much of their size each of ``devices`` takes."""
    state, k = nothing_placed(a), devices.shape[0]
    current, filled = 0, 0.0
    for unit in units:
        while current < k and (
            state.used[devices[current]] + a.need[unit] > a.capacity[devices[current]]
            or filled + size[unit] > limit[current]
        ):
            current += 1
            filled = 0.0
        position = place_from(a, unit, current if current < k else 0, devices, state)
        if position < 0:
            break
        if position == current:
            filled += size[unit]
    return state
