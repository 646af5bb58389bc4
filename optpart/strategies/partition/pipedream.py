"""The planner of PipeDream without replicas: a contiguous split with the least bottleneck."""

from __future__ import annotations

import numpy as np

from optpart.kernels.compiled import arrays
from optpart.kernels.segments import in_order
from optpart.problem.instance import Instance
from optpart.strategies.base import Partition
from optpart.strategies.partition.contiguous import SKIPPED, Line, Split, best_splits, line, settle
from optpart.strategies.partition.sequential_fill import sequential_fill


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
    if not instance.vertices:
        return sequential_fill(instance, rng)
    devices = np.arange(instance.devices, dtype=np.int32)
    for strict in (True, False):
        row = line(instance, arrays(instance).order, add=True, strict=strict)
        found = best_stages(row, instance.devices)
        if found is not None:
            return settle(instance, row.units, found.devices(row), devices)
    return sequential_fill(instance, rng)


def best_stages(row: Line, devices: int) -> Split | None:
    """Return the split of least bottleneck, or ``None``."""
    found = best_splits(row, in_order(range(devices), skipped=SKIPPED), add=False)
    return found[0] if found else None
