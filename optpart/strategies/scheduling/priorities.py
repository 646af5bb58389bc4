"""Priorities of tasks that one rule gives for all of a schedule: arrival, placement, or rank."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from optpart.kernels.longest_paths import longest_from
from optpart.kernels.tasks import Tasks
from optpart.problem.graph import inverse
from optpart.strategies.base import Partition
from optpart.strategies.simulator import Priority


def fifo(work: Tasks, partition: Partition, rng: np.random.Generator) -> Priority:
    """Prefer the task that became executable first ([L] §5.2); ties break at random ([M] §5.1)."""
    return Priority(None, rng.permutation(len(work.duration)))


def as_received(work: Tasks, partition: Partition, rng: np.random.Generator) -> Priority:
    """Prefer the task that has been executable longest; ties go to the lower number.

    All transfers of a worker are executable at once ([H] §2.4), so they run in the order in which
    the graph lists them.
    """
    return Priority(None, np.arange(len(work.duration)))


def random_order(work: Tasks, partition: Partition, rng: np.random.Generator) -> Priority:
    """Run executable tasks in a random order of all tasks, drawn once.

    [H] §2 observes this if transfers are not ordered.
    """
    total = len(work.duration)
    return Priority(np.zeros(total), rng.permutation(total))


def as_placed(work: Tasks, partition: Partition, rng: np.random.Generator) -> Priority:
    """Prefer the vertex that was placed first; transfers follow, by number.

    If the strategy gives no placement times, the topological order stands for them.
    """
    n = len(partition.placement)
    topological = inverse(work.order)
    placed = topological.astype(np.float64)
    if partition.placed is not None:
        placed[:n] = partition.placed
    return Priority(-placed, topological)


def pct(work: Tasks, partition: Partition, rng: np.random.Generator) -> Priority:
    """Prefer the task with the longest remaining path ([L] §5.3, [M] §4.1); ties by number."""
    return Priority(path_computation_time(work), np.arange(len(work.duration)))


def path_computation_time(work: Tasks) -> NDArray[np.float64]:
    """Return the longest time from the start of each task to the end of the last dependent one.

    [L] eq. 5.1, [M] eq. 12: run time, plus the largest of transfer time and path computation time
    over the successors.
    """
    times: NDArray[np.float64] = longest_from(
        work.order, work.out_start, work.out_target, work.out_delay, work.duration
    )
    return times


#: α, β, γ, δ of maximum successor rank: [M] eq. 13, as in [L] eq. 5.2 and [M] §5.2.
WEIGHTS = (1.0, 1.0, 1.0, 5.0)


def msr(
    work: Tasks,
    partition: Partition,
    rng: np.random.Generator,
    *,
    weights: tuple[float, float, float, float] = WEIGHTS,
) -> Priority:
    """Prefer the task of largest successor rank, whose end enables most work elsewhere ([L] §5.4).

    Each distinct successor adds α; β more if it is on another device; γ more if the task is its
    only unfinished predecessor; and in that case δ more if its device is idle. The device that
    decides is not idle, since it is about to run something. Equal ranks are compared by path
    computation time, as in [L] §5.4, then by number.
    """
    return Priority(path_computation_time(work), np.arange(len(work.duration)), np.array(weights))


def heterog(work: Tasks, partition: Partition, rng: np.random.Generator) -> Priority:
    """Prefer the task of highest rank ([G] §4.2); ties go to the lower number, vertices first.

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
