"""Measurements: every partitioning strategy under every scheduling strategy, and bounds."""

from __future__ import annotations

import multiprocessing
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

import numpy as np

from bench.reproduce import bounding
from bench.reproduce.cases import Case
from bench.reproduce.records import Run
from bench.reproduce.rows import keep, measured, records
from bench.store import Store
from optpart.kernels import all as kernels
from optpart.kernels.compiled import arrays
from optpart.kernels.tasks import tasks
from optpart.methods import registry
from optpart.problem.instance import Instance
from optpart.strategies.base import Partition
from optpart.strategies.partition.scoring import scoring
from optpart.strategies.simulator import execute

PROCESSES = 2
#: A strategy that takes longer on a case in the first run is not run there again.
SLOW = 2.0


@dataclass(frozen=True)
class Job:
    """The work of one process: strategies on an instance, or its bound."""

    case: Case
    run: int
    partitioners: tuple[str, ...] = ()
    bound: bool = False

    @property
    def weight(self) -> int:
        """A rough measure of its length, by which long jobs come first."""
        size = 20_000 if self.case.graph.startswith("thesis-") else 4_000
        return size * (100 + self.case.devices) * (10 if self.bound else 1)


def run(cases: Iterable[Case], runs: int, store: Store, *, only_bounds: bool = False) -> None:
    """Measure everything that is missing in the store.

    The first run of everything comes first, since it decides who is too slow for the others.
    """
    cases = list(cases)
    kernels.load()
    for numbers in ((1,), range(2, runs + 1)):
        jobs = list(_missing(cases, numbers, store, only_bounds))
        jobs.sort(key=lambda job: -job.weight)
        begin = time.perf_counter()
        # Forked processes inherit the machine code.
        with multiprocessing.get_context("fork").Pool(PROCESSES) as pool:
            work = partial(_work, store)
            for done, (job, seconds) in enumerate(pool.imap_unordered(work, jobs), 1):
                what = "bound" if job.bound else f"{len(job.partitioners)} strategies"
                print(
                    f"[{time.perf_counter() - begin:5.0f} s] {done}/{len(jobs)} {job.case.key} "
                    f"run {job.run}: {what}, {seconds:.1f} s",
                    file=sys.stderr,
                    flush=True,
                )


def _missing(
    cases: list[Case], numbers: Iterable[int], store: Store, only_bounds: bool
) -> Iterable[Job]:
    done: set[tuple[str, int, str]] = set()
    slow: set[tuple[str, str]] = set()
    for record in records(store):
        name = record.partitioner if isinstance(record, Run) else ""
        done.add((record.case, record.run, name))
        if isinstance(record, Run) and record.seconds > SLOW:
            slow.add((record.case, name))
    for number in numbers:
        for case in cases:
            if case.has_bound(number) and (case.key, number, "") not in done:
                yield Job(case, number, bound=True)
            left = tuple(
                name
                for name in case.partitioners
                if (case.key, number, name) not in done and (case.key, name) not in slow
            )
            if left and not only_bounds:
                yield Job(case, number, left)


def _work(store: Store, job: Job) -> tuple[Job, float]:
    begin = time.perf_counter()
    if job.bound:
        instance = job.case.instance(job.run)
        keep(store, bounding.bound(instance, job.case.key, job.run))
    for name in job.partitioners:
        keep(store, measured(job.case, job.run, name))
    return job, time.perf_counter() - begin


def weighed(case: Case, ratios: Iterable[float]) -> list[float]:
    """Return the makespans of scoring under FIFO by weights of load, that of communication being 1.

    Means over the orders in which FIFO breaks ties; the networks and the strategy draw nothing.
    """
    instance = case.instance(1)
    scale, rule = arrays(instance).scale, registry.scheduler("fifo")
    found = []
    for ratio in ratios:
        partition = scoring(instance, np.random.default_rng(1), alpha=ratio, beta=1.0)
        work = tasks(instance, partition.placement)
        ends = [
            execute(work, rule(work, partition, np.random.default_rng(seed))).start + work.duration
            for seed in range(1, 6)
        ]
        found.append(float(np.mean([end.max() for end in ends])) / scale)
    return found


def placed(case: Case, run: int, partitioner: str) -> tuple[Instance, Partition]:
    """Partition once more, for a picture."""
    instance = case.instance(run)
    partition: Partition = registry.PARTITIONERS[partitioner].load()(
        instance, np.random.default_rng(run)
    )
    return instance, partition
