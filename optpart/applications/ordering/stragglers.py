"""Noisy steps of several workers, and the cost of waiting for stragglers ([H] §5.1, §6.3).

Orders of transfers are enforced by counters at their sender: priorities become ranks from 0, the
number of transfers that are submitted before. The sender counts the transfers that it has submitted
to a channel. A transfer waits until the counter has reached its rank, even if it is ready and the
channel is free.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optpart.base.errors import InputError
from optpart.kernels.tasks import Tasks
from optpart.problem.graph import grouped
from optpart.strategies.base import Partition
from optpart.strategies.scheduling.transfers import transfers
from optpart.strategies.simulator import Priority, Scheduler, execute

Floats = NDArray[np.float64]


class Steps(NamedTuple):
    """Measurements of several steps, steps × workers, in the unit of the tasks.

    Attributes
    ----------
    upper, lower : ndarray of float64
        Eq. 1 and eq. 2 for the times that the worker's ops took in that step ([H] §3.1: they are
        measured in the same iteration as the makespan).
    """

    makespan: Floats
    upper: Floats
    lower: Floats

    @property
    def efficiency(self) -> Floats:
        """Ordering efficiency (eq. 3) of every step and worker."""
        return (self.upper - self.makespan) / (self.upper - self.lower)

    @property
    def time(self) -> Floats:
        """Time of every step: that of the slowest worker."""
        slowest: Floats = self.makespan.max(axis=1)
        return slowest

    @property
    def straggler(self) -> Floats:
        """Straggler effect of every step: the longest wait of a worker over the step's time."""
        wait: Floats = (self.time - self.makespan.min(axis=1)) / self.time
        return wait


def simulate_steps(
    work: Tasks,
    scheduler: Scheduler,
    *,
    steps: int,
    workers: int = 1,
    noise: float = 0.0,
    slowness: float = 0.0,
    out_of_order: float = 0.0,
    seed: int = 0,
) -> Steps:
    """Execute the partition of a worker repeatedly, on several workers in parallel.

    Parameters
    ----------
    work : Tasks
        The tasks of one worker, which are its vertices; all workers are identical.
    scheduler : Scheduler
        Called for every step and worker; see :func:`offline`. It is given ``work`` without noise.
    noise : float
        Standard deviation of the logarithm of a random factor on the time of every op.
    slowness : float
        The same for a factor that all ops of a worker share during a step: variations of the whole
        system.
    out_of_order : float
        Probability that a transfer is overtaken by the next one; see :func:`overtaken`.
    seed : int
        The same seed gives the same noise under every scheduler.
    """
    for name, value in (("noise", noise), ("slowness", slowness)):
        if not value >= 0:
            raise InputError(name, f"{value} is negative", "give a number ≥ 0")
    if not 0 <= out_of_order <= 1:
        raise InputError("out_of_order", f"{out_of_order} is not a probability", "give 0 to 1")
    n = len(work.duration)
    partition = Partition(work.resource)
    system, drawing, swapping = (np.random.default_rng([seed, stream]) for stream in range(3))
    found = np.empty((3, steps, workers))
    for step in range(steps):
        for w in range(workers):
            factor = system.standard_normal(n) * noise + system.standard_normal() * slowness
            noisy = work.replaced(duration=work.duration * np.exp(factor))
            priority = scheduler(work, partition, drawing)
            if out_of_order:
                priority = overtaken(work, priority, out_of_order, swapping)
            found[:, step, w] = (
                (execute(noisy, priority).start + noisy.duration).max(initial=0.0),
                noisy.duration.sum(),
                np.bincount(work.resource, weights=noisy.duration).max(initial=0.0),
            )
    return Steps(*found)


def offline(work: Tasks, scheduler: Scheduler) -> Scheduler:
    """Compute priorities once, before all steps ([H] §5); ties are redrawn in every step."""
    total = len(work.duration)
    value = scheduler(work, Partition(work.resource), np.random.default_rng(0)).value
    return lambda _work, _partition, rng: Priority(value, rng.permutation(total))


# --- counters ------------------------------------------------------------------------------------


def counters(work: Tasks, priority: Priority) -> list[NDArray[np.int64]]:
    """Return the transfers of every channel, by rank; equal priorities are ordered by their ties.

    The tasks of ``work`` are its vertices.
    """
    if priority.value is None:
        raise InputError("priority", "none to enforce", "use a strategy that gives priorities")
    found = transfers(work, len(work.duration))
    first = np.lexsort((priority.tie[found.task], -priority.value[found.task]))
    ordered, channel = found.task[first], found.channel[first]
    return [ordered[channel == c] for c in range(found.channels)]


def enforced(work: Tasks, order: list[NDArray[np.int64]]) -> Tasks:
    """Return tasks in which every transfer waits for the one before it in :func:`counters`.

    If all transfers can be sent from the beginning, such as those to a worker, priorities alone
    have the same effect.

    Raises
    ------
    InputError
        If a transfer would wait for one that depends on it: counters would wait forever.
    """
    total = len(work.duration)
    source = np.repeat(np.arange(total), np.diff(work.out_start))
    before = np.concatenate([source, *(one[:-1] for one in order)]).astype(np.int32)
    after = np.concatenate([work.out_target, *(one[1:] for one in order)]).astype(np.int32)
    delay = np.concatenate((work.out_delay, np.zeros(len(after) - len(work.out_target))))
    by_target = np.lexsort((after, before))
    before, after, delay = before[by_target], after[by_target], delay[by_target]
    out_start, _ = grouped(before, total)
    missing = np.bincount(after, minlength=total).astype(np.int32)
    begin, heads, waiting = out_start.tolist(), after.tolist(), missing.tolist()
    ready = [v for v, count in enumerate(waiting) if not count]
    for v in ready:
        for w in heads[begin[v] : begin[v + 1]]:
            waiting[w] -= 1
            if not waiting[w]:
                ready.append(w)
    if len(ready) < total:
        raise InputError(
            "order", "a transfer waits for one that depends on it", "enforce another order"
        )
    return work.replaced(
        out_start=out_start,
        out_target=after,
        out_delay=delay,
        missing=missing,
        order=np.array(ready, dtype=np.int32),
    )


def overtaken(
    work: Tasks, priority: Priority, probability: float, rng: np.random.Generator
) -> Priority:
    """Return priorities under which some transfers are sent after the next one on their channel.

    This happens after transfers were submitted to gRPC: to 0.4% and 0.5% of the transfers of
    Inception ([H] §5.1).
    """
    value = np.zeros(len(work.duration)) if priority.value is None else priority.value.copy()
    for submitted in counters(work, priority):
        sent = submitted.copy()
        for i in np.flatnonzero(rng.random(max(0, len(sent) - 1)) < probability):
            sent[i], sent[i + 1] = sent[i + 1], sent[i]
        value[sent] = -1.0 - np.arange(len(sent))
    return priority._replace(value=value)
