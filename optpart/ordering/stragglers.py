"""Noisy steps of several workers, and the cost of waiting for stragglers ([H] §5.1, §6.3)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optpart.errors import InputError
from optpart.kernels.tasks import Tasks
from optpart.ordering.enforcement import overtaken
from optpart.strategies.base import Partition
from optpart.strategies.simulator import Priority, Scheduler, execute


class Steps(NamedTuple):
    """Measurements of several steps; times are in the unit of the tasks.

    Attributes
    ----------
    makespan : ndarray of float64, steps × workers
    upper, lower : ndarray of float64, steps × workers
        Eq. 1 and eq. 2 for the times that the worker's ops took in that step ([H] §3.1: they are
        measured in the same iteration as the makespan).
    """

    makespan: NDArray[np.float64]
    upper: NDArray[np.float64]
    lower: NDArray[np.float64]

    @property
    def efficiency(self) -> NDArray[np.float64]:
        """Ordering efficiency (eq. 3) of every step and worker."""
        return (self.upper - self.makespan) / (self.upper - self.lower)

    @property
    def time(self) -> NDArray[np.float64]:
        """Time of every step: that of the slowest worker."""
        slowest: NDArray[np.float64] = self.makespan.max(axis=1)
        return slowest

    @property
    def straggler(self) -> NDArray[np.float64]:
        """Straggler effect of every step: the longest wait of a worker over the step's time."""
        wait: NDArray[np.float64] = (self.time - self.makespan.min(axis=1)) / self.time
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
    makespan = np.empty((steps, workers))
    upper, lower = np.empty_like(makespan), np.empty_like(makespan)
    for step in range(steps):
        for w in range(workers):
            factor = system.standard_normal(n) * noise + system.standard_normal() * slowness
            noisy = work.replaced(duration=work.duration * np.exp(factor))
            priority = scheduler(work, partition, drawing)
            if out_of_order:
                priority = overtaken(work, priority, out_of_order, swapping)
            makespan[step, w] = (execute(noisy, priority).start + noisy.duration).max(initial=0.0)
            upper[step, w] = noisy.duration.sum()
            lower[step, w] = np.bincount(work.resource, weights=noisy.duration).max(initial=0.0)
    return Steps(makespan, upper, lower)


def offline(work: Tasks, scheduler: Scheduler) -> Scheduler:
    """Compute priorities once, before all steps ([H] §5); ties are redrawn in every step."""
    total = len(work.duration)
    value = scheduler(work, Partition(work.resource), np.random.default_rng(0)).value
    return lambda _work, _partition, rng: Priority(value, rng.permutation(total))
