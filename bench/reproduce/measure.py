"""Measurements: every partitioning strategy under every scheduling strategy, and bounds."""

from __future__ import annotations

import multiprocessing
import sys
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from functools import partial

import numpy as np

from bench.reproduce.cases import CASES, NETWORKS, Case
from bench.store import Store, Values
from optpart.kernels import all as kernels
from optpart.kernels.compiled import arrays
from optpart.kernels.tasks import tasks
from optpart.lower_bounds.best import best_bound
from optpart.methods import registry
from optpart.problem.instance import Instance
from optpart.solution.metrics import traffic
from optpart.solution.schedule import Schedule, retime
from optpart.solution.verifier import verify
from optpart.strategies.base import NoPlacementError, Partition
from optpart.strategies.partition.scoring import scoring
from optpart.strategies.simulator import execute, simulate
from optpart.study import library


@dataclass(frozen=True)
class Run:
    """One run of a partitioning strategy, with the results under every scheduling strategy.

    Attributes
    ----------
    case, run, partitioner : str, int, str
    seconds : float
        Processor time of partitioning.
    failed : str
        Why there is no placement; the further fields are then empty.
    traffic : float
    used : int
        Devices that run something.
    busy, busiest : float
        Time that devices spend on vertices: sum over all, and the largest.
    makespan : dict of str to float
        By scheduling strategy; ``own`` is the order that the partitioning strategy gives.
    choices : dict of str to list of float
        Executable vertices at each decision: mean, and quantiles 0.05, 0.25, 0.5, 0.75, 0.95.
    exact : dict of str to float
        Makespans of those schedules that were timed exactly and accepted by the verifier.
    cost : float
        Processor time of all that.
    """

    case: str
    run: int
    partitioner: str
    seconds: float = 0.0
    failed: str = ""
    traffic: float = 0.0
    used: int = 0
    busy: float = 0.0
    busiest: float = 0.0
    makespan: dict[str, float] = field(default_factory=dict)
    choices: dict[str, list[float]] = field(default_factory=dict)
    exact: dict[str, float] = field(default_factory=dict)
    cost: float = 0.0


@dataclass(frozen=True)
class Bound:
    """A proven lower bound of the makespan, and the best makespan that the library knows."""

    case: str
    run: int
    value: float
    method: str
    seconds: float
    library: float | None


Record = Run | Bound

#: Graph on which every pair is verified.
_VERIFIED = NETWORKS[0]
_PARAMETERS = ("case", "run", "partitioner")


def records(store: Store) -> Iterable[Record]:
    """Yield all measurements."""
    for row in store.rows():
        values = {name: value for name, value in row.flat.items() if name != "kind"}
        yield Run(**values) if row.run["kind"] == "run" else Bound(**values)


def keep(store: Store, record: Record) -> None:
    """Add a measurement."""
    values = asdict(record)
    run: Values = {"kind": "run" if isinstance(record, Run) else "bound"}
    run |= {name: values.pop(name) for name in _PARAMETERS if name in values}
    store.append(run, values)


def to_verify(case: Case, run: int, partitioner: str) -> tuple[str, ...]:
    """Return the scheduling strategies whose schedules are verified.

    Only in the first run: all on the smallest TensorFlow graph; elsewhere, where it takes seconds,
    a strategy has a schedule verified on every second case, the scheduling strategies in turn.
    Orders of a strategy's own are always verified.
    """
    if run > 1:
        return ()
    every = tuple(registry.USUAL_SCHEDULERS)
    if case.graph == _VERIFIED and not case.variant:
        return (*every, OWN)
    number = [other for other in CASES if other.setting == case.setting].index(case)
    turn, rest = divmod(number + list(registry.PARTITIONERS).index(partitioner), 2)
    return (OWN,) if rest else (every[turn % len(every)], OWN)


#: Name of the order that a partitioning strategy gives itself.
OWN = "own"
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)

#: Exact makespans and those in doubles may differ by so much, relatively.
_TOLERANCE = 1e-9


def measured(case: Case, run: int, partitioner: str) -> Run:
    """Run a partitioning strategy, then all scheduling strategies."""
    instance, key = case.instance(run), case.key
    partition_by = registry.PARTITIONERS[partitioner].load()
    scale = arrays(instance).scale
    begin = time.process_time()  # of this process alone, whatever else the machine does
    try:
        partition = partition_by(instance, np.random.default_rng(run))
    except NoPlacementError as error:
        return Run(key, run, partitioner, time.process_time() - begin, str(error))
    seconds = time.process_time() - begin
    work = tasks(instance, partition.placement)
    makespan, choices = {}, {}
    for name in registry.USUAL_SCHEDULERS:
        rule = registry.scheduler(name)
        done = execute(work, rule(work, partition, np.random.default_rng(run)))
        makespan[name] = float((done.start + work.duration).max(initial=0.0)) / scale
        found = done.choices[: instance.vertices]
        choices[name] = [float(found.mean()), *np.quantile(found, QUANTILES).tolist()]
    exact = {
        name: value
        for name in to_verify(case, run, partitioner)
        if (value := exact_makespan(instance, partition, name, run)) is not None
    }
    for name, value in exact.items():
        if name == OWN:
            makespan[OWN] = value
        elif abs(makespan[name] - value) > _TOLERANCE * value:
            raise AssertionError(
                f"{partitioner}+{name} on {key}: {makespan[name]} in doubles, exactly {value}"
            )
    duration = work.duration[: instance.vertices]
    busy = np.bincount(partition.placement, duration, instance.devices) / scale
    return Run(
        key, run, partitioner, seconds,
        traffic=float(traffic(instance, partition.placement)),
        used=len(np.unique(partition.placement)),
        busy=float(busy.sum()),
        busiest=float(busy.max()),
        makespan=makespan,
        choices=choices,
        exact=exact,
        cost=time.process_time() - begin,
    )  # fmt: skip


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
        schedule = simulate(instance, partition, registry.scheduler(scheduler), run)
    violations = verify(instance, schedule, most=1)
    if violations:
        raise AssertionError(f"{instance.name}, {scheduler}: {violations[0]}")
    return float(schedule.makespan(instance))


def bound_of(instance: Instance, case: str, run: int) -> Bound:
    """Return the best bound of the makespan, and the best makespan that the library knows.

    The library's bound stands where it has one of this very instance.
    """
    known = library.known(instance)
    if known is not None and known.bound is not None and known.makespan is not None:
        return Bound(case, run, float(known.bound), "library", 0.0, float(known.makespan))
    best = best_bound(instance)
    assert best.value is not None
    return Bound(case, run, float(best.value), best.name, best.seconds, None)


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


def run(cases: Iterable[Case], runs: int, store: Store) -> None:
    """Measure everything that is missing in the store.

    The first run of everything comes first, since it decides who is too slow for the others.
    """
    cases = list(cases)
    kernels.load()
    for numbers in ((1,), range(2, runs + 1)):
        jobs = list(_missing(cases, numbers, store))
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


def _missing(cases: list[Case], numbers: Iterable[int], store: Store) -> Iterable[Job]:
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
            if left:
                yield Job(case, number, left)


def _work(store: Store, job: Job) -> tuple[Job, float]:
    begin = time.perf_counter()
    if job.bound:
        keep(store, bound_of(job.case.instance(job.run), job.case.key, job.run))
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
