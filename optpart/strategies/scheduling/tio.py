"""TIO, timing-independent ordering of transfers ([H] §4.3, algorithm 3)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from optpart.kernels.compiled import kernel
from optpart.kernels.struct import Floats, WordMatrix
from optpart.kernels.tasks import Tasks
from optpart.strategies.base import Partition
from optpart.strategies.scheduling.transfers import (
    Outstanding,
    dependencies,
    impending,
    outstanding,
    set_of,
    transfers,
)
from optpart.strategies.simulator import Priority


def tio(work: Tasks, partition: Partition, rng: np.random.Generator) -> Priority:
    """Prefer the transfers of smallest :func:`tio_load`; ties and other tasks in random order.

    If ops with and without numbers share a resource, those without go first, as under
    :func:`~optpart.strategies.scheduling.tao.tao`.
    """
    total = len(work.duration)
    value = np.zeros(total)
    task, load = tio_load(work, len(partition.placement))
    # Larger than all others, but finite, so that it compares.
    value[task] = -np.where(np.isfinite(load), load, 2.0 * total)
    return Priority(value, rng.permutation(total))


def tio_load(work: Tasks, vertices: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the transfers and their ``M⁺`` under the general time oracle ([H] eq. 6).

    Transfers take time 1 and all other ops none, so ``M⁺`` is the least number of transfers that
    have to complete before some op that waits for this one and others can run; of several channels,
    the one with most of them counts. It is infinite if no such op exists: algorithm 3 puts these
    transfers last.
    """
    found = transfers(work, vertices)
    sets, _ = dependencies(work, found)
    state = outstanding(sets, found, np.ones(len(found.task)))
    load = np.empty(len(found.task))
    every = set_of(np.arange(len(load), dtype=np.int32), sets.shape[1])
    _impending(state, every, load)
    return found.task, load


@kernel
def _impending(state: Outstanding, missing: WordMatrix, load: Floats) -> None:
    impending(state, state.order.shape[0], missing, load)
