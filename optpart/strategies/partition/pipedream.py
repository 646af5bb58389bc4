"""The planner of PipeDream without replicas: a contiguous split with the least bottleneck."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from optpart.kernels.compiled import Arrays, arrays, kernel
from optpart.problem.instance import Instance
from optpart.strategies.base import Partition
from optpart.strategies.partition.contiguous import Line, cut_time, line, settle
from optpart.strategies.partition.sequential_fill import sequential_fill

#: A stage follows one of this many devices before its own.
_WINDOW = 8


def pipedream(instance: Instance, rng: np.random.Generator) -> Partition:
    """Cut the topological order into stages, so that the slowest stage or transfer is fastest.

    A stage takes the sum of the run times of its vertices on its device; the transfer between two
    stages takes the sum of the transfer times of all tensors that are live between them. The
    largest of these times is what a pipeline takes per input. Stages go to the devices in the
    order in which the cluster lists them; up to 7 in a row may be left out. Of splits with the same
    bottleneck, the one found first is taken, with the last stage as short as possible and on the
    first possible device.

    Stages keep to allowed devices, separation and static memory. If no such split exists, units
    that may not run on the device of their stage, or must be separated, are placed on other
    devices; if that fails as well, one device is filled after the other, as in
    :func:`~optpart.strategies.partition.sequential_fill.sequential_fill`.

    Raises
    ------
    NoPlacementError
        If that leaves a unit without a device.

    Notes
    -----
    Narayanan et al., *PipeDream: Generalized Pipeline Parallelism for DNN Training*, SOSP 2019,
    §3.1. Its devices are alike, so that their order does not matter, and a stage may be replicated
    on several; without replicas, that is the option ``--straight_pipeline`` of its optimizer. It
    counts each transfer twice, since gradients return; here a graph holds the backward pass if
    there is one. Its stages are cut out of all sets of vertices that are closed under predecessors,
    here out of one topological order.
    """
    order, devices = arrays(instance).order, np.arange(instance.devices, dtype=np.int32)
    for strict in (True, False):
        row = line(instance, order, add=True, strict=strict)
        device = stages(instance, row)
        if device is None:
            continue
        return settle(instance, row.units, device, devices)
    return sequential_fill(instance, rng)


def stages(instance: Instance, row: Line) -> NDArray[np.int32] | None:
    """Return the device of each unit in the split of least bottleneck, or ``None``."""
    value, before = _bottleneck(arrays(instance), row)
    last, end = int(value[:, -1].argmin()), len(row.units)
    if not np.isfinite(value[last, -1]):
        return None
    device = np.empty(len(row.units), dtype=np.int32)
    while end:
        begin, previous = divmod(int(before[last, end]), instance.devices)
        device[row.units[begin:end]] = last
        last, end = previous, begin
    return device


@kernel
def _bottleneck(a: Arrays, row: Line) -> Any:
    """Return the least bottleneck of the first ``i`` units per last device, and how to get there.

    ``before[d, i]`` is ``j · k + previous``: the stage on ``d`` begins at ``j``, after one on the
    device ``previous``.
    """
    m, k = row.units.shape[0], a.speed.shape[0]
    value, before = np.full((k, m + 1), np.inf), np.zeros((k, m + 1), np.int64)
    rest, previous = np.empty(m + 1), np.empty(m + 1, np.int32)
    for d in range(k):
        value[d, 0] = 0.0
        rest[:] = np.inf
        rest[0], previous[0] = 0.0, 0
        for s in range(max(0, d - _WINDOW), d):
            for j in range(1, m):
                if value[s, j] < rest[j]:
                    time = max(value[s, j], cut_time(a, row, j, s, d))
                    if time < rest[j]:
                        rest[j], previous[j] = time, s
        run = row.run[d]
        for i in range(1, m + 1):
            for j in range(i - 1, row.first[d, i] - 1, -1):
                stage = run[i] - run[j]
                if stage >= value[d, i]:
                    break
                time = max(rest[j], stage)
                if time < value[d, i]:
                    value[d, i], before[d, i] = time, j * k + previous[j]
    return value, before
