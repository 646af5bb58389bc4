"""Measurements: every partitioning strategy under every scheduling strategy, and bounds."""

from __future__ import annotations

import multiprocessing
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

import numpy as np
from cases import CASES, NETWORKS, Case
from numpy.typing import NDArray
from store import Bound, Run, Store

from optpart import library, methods
from optpart.bounds.best import best_bound
from optpart.cluster import Cluster
from optpart.compiled import arrays
from optpart.graph import GraphBuilder
from optpart.instance import Instance
from optpart.metrics import traffic
from optpart.partition.base import NoPlacementError, Partition
from optpart.partition.scoring import scoring
from optpart.schedule import Schedule, retime
from optpart.simulate import execute, simulate
from optpart.tasks import tasks
from optpart.verify import verify

PROCESSES = 2
#: A strategy that takes longer on a case in the first run is not run there again.
SLOW = 2.0
#: Graph on which every pair is verified.
_VERIFIED = NETWORKS[0]
#: Name of the order that a partitioning strategy gives itself.
OWN = "own"
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)

#: Exact makespans and those in doubles may differ by so much, relatively.
_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Job:
    """What one process does in one go: strategies on an instance, or its bound."""

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
    """Measure what the store lacks.

    The first run of everything comes first, since it decides who is too slow for the others.
    """
    cases = list(cases)
    warm_up()
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
    for record in store.records():
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


def warm_up() -> None:
    """Compile or load all machine code, so that times are those of the strategies."""
    builder = GraphBuilder().vertex("a", 1, outputs=[1]).vertex("b", 1).vertex("c", 1, outputs=[1])
    graph = builder.edge("a", "b").edge("a", "c").edge("c", "b").build()
    tiny = Instance(graph, Cluster.uniform(2, bandwidth=1), name="warm-up")
    for name in methods.PARTITIONERS:
        measured(tiny, "", 1, name, ())
    best_bound(tiny)


def _work(store: Store, job: Job) -> tuple[Job, float]:
    begin = time.perf_counter()
    instance = job.case.instance(job.run)
    if job.bound:
        store.append(bound(instance, job.case.key, job.run))
    for name in job.partitioners:
        checked = to_verify(job.case, job.run, name)
        store.append(measured(instance, job.case.key, job.run, name, checked))
    return job, time.perf_counter() - begin


def to_verify(case: Case, run: int, partitioner: str) -> tuple[str, ...]:
    """Return the scheduling strategies whose schedules are verified.

    Only in the first run: all on the smallest TensorFlow graph; elsewhere, where it takes seconds,
    a strategy has a schedule verified on every second case, the scheduling strategies in turn.
    Orders of a strategy's own are always verified.
    """
    if run > 1:
        return ()
    every = tuple(methods.SCHEDULERS)
    if case.graph == _VERIFIED and not case.variant:
        return (*every, OWN)
    number = [other for other in CASES if other.setting == case.setting].index(case)
    turn, rest = divmod(number + list(methods.PARTITIONERS).index(partitioner), 2)
    return (OWN,) if rest else (every[turn % len(every)], OWN)


def bound(instance: Instance, case: str, run: int) -> Bound:
    """Return the best bound of the makespan, and the best makespan that the library knows.

    The library's bound stands where it has one of this very instance.
    """
    known = library.known(instance)
    if known is not None and known.bound is not None and known.makespan is not None:
        return Bound(case, run, float(known.bound), "library", 0.0, float(known.makespan))
    best = best_bound(instance)
    assert best.value is not None
    return Bound(case, run, float(best.value), best.name, best.seconds, None)


def measured(
    instance: Instance, case: str, run: int, partitioner: str, checked: tuple[str, ...]
) -> Run:
    """Run a partitioning strategy, then all scheduling strategies."""
    partition_by = methods.PARTITIONERS[partitioner].load()
    scale = arrays(instance).scale
    begin = time.process_time()  # of this process alone, whatever else the machine does
    try:
        partition = partition_by(instance, np.random.default_rng(run))
    except NoPlacementError as error:
        return Run(case, run, partitioner, time.process_time() - begin, str(error))
    seconds = time.process_time() - begin
    work = tasks(instance, partition.placement)
    makespan, choices = {}, {}
    for name in methods.SCHEDULERS:
        rule = methods.scheduler(name)
        done = execute(work, rule(work, partition, np.random.default_rng(run)))
        makespan[name] = float((done.start + work.duration).max(initial=0.0)) / scale
        choices[name] = _spread(done.choices[: instance.vertices])
    exact = {
        name: value
        for name in checked
        if (value := exact_makespan(instance, partition, name, run)) is not None
    }
    for name, value in exact.items():
        if name == OWN:
            makespan[OWN] = value
        elif abs(makespan[name] - value) > _TOLERANCE * value:
            raise AssertionError(
                f"{partitioner}+{name} on {case}: {makespan[name]} in doubles, exactly {value}"
            )
    duration = work.duration[: instance.vertices]
    busy = np.bincount(partition.placement, duration, instance.devices) / scale
    return Run(
        case,
        run,
        partitioner,
        seconds,
        traffic=float(traffic(instance, partition.placement)),
        used=len(np.unique(partition.placement)),
        busy=float(busy.sum()),
        busiest=float(busy.max()),
        makespan=makespan,
        choices=choices,
        exact=exact,
        cost=time.process_time() - begin,
    )


def _spread(choices: NDArray[np.int32]) -> list[float]:
    return [float(choices.mean()), *np.quantile(choices, QUANTILES).tolist()]


def exact_makespan(
    instance: Instance, partition: Partition, scheduler: str, run: int
) -> float | None:
    """Time a schedule exactly and have it verified; ``None`` for an order that is not there."""
    schedule: Schedule
    if scheduler == OWN:
        if partition.order is None:
            return None
        schedule = retime(instance, partition.placement, partition.order)
    else:
        schedule = simulate(instance, partition, methods.scheduler(scheduler), run)
    violations = verify(instance, schedule, most=1)
    if violations:
        raise AssertionError(f"{instance.name}, {scheduler}: {violations[0]}")
    return float(schedule.makespan(instance))


def weighed(case: Case, ratios: Iterable[float]) -> list[float]:
    """Return the makespans of scoring under FIFO by weights of load, that of communication being 1.

    Means over the orders in which FIFO breaks ties; the networks and the strategy draw nothing.
    """
    instance = case.instance(1)
    scale, rule = arrays(instance).scale, methods.scheduler("fifo")
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
    partition: Partition = methods.PARTITIONERS[partitioner].load()(
        instance, np.random.default_rng(run)
    )
    return instance, partition
