"""HeteroG's order of execution: one rank for computation and communication ([G] §4.2)."""

from __future__ import annotations

import numpy as np

from optpart.kernels.tasks import Tasks
from optpart.strategies.base import Partition
from optpart.strategies.scheduling.pct import path_computation_time
from optpart.strategies.simulator import Priority


def heterog(work: Tasks, partition: Partition, rng: np.random.Generator) -> Priority:
    """Prefer the task of highest rank; ties go to the lower number, vertices first.

    [G] treats a link between two devices as a device, and a transfer as an operation that is
    placed on it. Every operation gets the rank ``p_i`` plus the largest rank of its successors,
    ``p_i`` being its computation or communication time, and every device and link, whenever it is
    free, runs the ready operation of highest rank. (The formula itself is missing from the text of
    [G]; this follows its words and its model, HEFT.)

    Under ``link`` and ``port`` the transfers are tasks of :class:`~optpart.kernels.tasks.Tasks`,
    so this is the path computation time of [L] eq. 5.1 over all tasks: the two strategies were
    published independently, but are the same. Under ``delay`` and ``sendrecv``, where links never
    queue, a transfer counts in the rank but never waits.

    Notes
    -----
    [G] theorem 1, ``T ≤ (M + M²) · T*`` for M devices under ``link``, with T* the least makespan
    of the same placement, does not depend on the rank. In a schedule in which nothing could start
    earlier in its order, a chain of tasks without a pause leads from 0 to the makespan, so T is at
    most the sum of all times. In the best order, each device and link does its share of that sum
    within T*, so T ≤ R · T*, where R is the number of devices and links in use.
    Between distinct devices there are M² − M directed links, not M²; hence ``T ≤ M² · T*``, which
    :func:`~optpart.interop.generate.heterog_worst.heterog_worst` approaches. The factor M + M²
    includes a link from every device to itself, and is approached only with such links.
    """
    return Priority(path_computation_time(work), np.arange(len(work.duration)))
