"""Job shop → TF with the placement given.

M. R. Garey, D. S. Johnson, R. Sethi, The complexity of flowshop and jobshop scheduling, Mathematics
of Operations Research 1 (1976): every job is a chain of operations, each with its machine and its
time; do all end within a limit? A machine becomes a device. An operation becomes a vertex that may
run only on this device, after the operation before it. So TF remains NP-hard if the placement is
given and only the order is free, as [H] §3 and [G] §4.2 say of their problems ([H] calls machines
*resources*).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from optpart.applications.reductions.base import Question, Reduction, parallel
from optpart.base.errors import InputError
from optpart.interop.formats.json import sequence
from optpart.problem.cluster import Cluster, Device
from optpart.problem.document import number
from optpart.problem.graph import GraphBuilder
from optpart.problem.instance import Instance
from optpart.problem.rational import rational, shown
from optpart.solution.schedule import Schedule

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Starts = tuple[tuple[Fraction, ...], ...]


class Operation(NamedTuple):
    """One step of a job: its machine and its time."""

    machine: str
    time: Fraction


@dataclass(frozen=True)
class Shop:
    """Jobs as chains of operations, and the limit."""

    jobs: tuple[tuple[Operation, ...], ...]
    limit: Fraction

    @property
    def machines(self) -> tuple[str, ...]:
        """All machines, sorted by name."""
        return tuple(sorted({operation.machine for job in self.jobs for operation in job}))


class JobShop(Reduction[Shop, Starts]):
    """Machines become devices, operations become vertices with one allowed device."""

    name = "job-shop"
    title = "job shop, J||Cmax"
    reference = "Garey, Johnson & Sethi 1976; [H] §3, [G] §4.2"
    reading = "TF is NP-hard even if the placement is given and only the order is free"
    size = 4
    keys = frozenset({"jobs", "limit"})
    colours = "always"

    def read(self, document: Mapping[str, Any]) -> Shop:
        """Read a list of jobs, each a list of [machine, time], and the limit."""
        jobs = []
        for j, job in enumerate(sequence(document["jobs"], "jobs")):
            steps = sequence(job, f"jobs[{j}]")
            jobs.append(tuple(_operation(step, f"jobs[{j}][{i}]") for i, step in enumerate(steps)))
        if not any(jobs):
            raise InputError("jobs", "no operations", "give at least one [machine, time]")
        return Shop(tuple(jobs), _positive(document["limit"], "limit"))

    def document(self, source: Shop) -> dict[str, Any]:
        """Return jobs and limit."""
        return {
            "problem": self.name,
            "jobs": [[[step.machine, number(step.time)] for step in job] for job in source.jobs],
            "limit": number(source.limit),
        }

    def random(self, size: int, rng: np.random.Generator) -> Shop:
        """Draw ``size`` jobs that visit each of three machines once, and a limit above the load."""
        shop = random_shop(size, 3, rng)
        return Shop(shop.jobs, shop.limit + int(rng.integers(0, 6)))

    def to_tf(self, source: Shop) -> Question:
        """Build one vertex per operation, and control dependencies along each job."""
        builder = GraphBuilder()
        for j, job in enumerate(source.jobs):
            for i, step in enumerate(job):
                builder.vertex(f"j{j}.{i}", step.time, devices=[step.machine])
            for i, _ in enumerate(pairwise(job)):
                builder.edge(f"j{j}.{i}", f"j{j}.{i + 1}", None)
        instance = Instance(
            builder.build(),
            Cluster.of([Device(machine) for machine in source.machines]),
            name=f"job-shop-{len(source.jobs)}-{len(source.machines)}",
            source="job shop",
        )
        return Question(instance, source.limit)

    def forth(self, source: Shop, solution: Starts) -> Schedule:
        """Start each vertex when its operation starts."""
        index = {machine: d for d, machine in enumerate(source.machines)}
        placement = [index[step.machine] for job in source.jobs for step in job]
        starts = [start for job in solution for start in job]
        return parallel(self.to_tf(source), placement, starts)

    def back(self, source: Shop, schedule: Schedule) -> Starts:
        """Return the starts, job by job."""
        starts = iter(schedule.start.fractions())
        return tuple(tuple(next(starts) for _ in job) for job in source.jobs)

    def check(self, source: Shop, solution: Starts) -> str:
        """Check jobs, machines and the limit."""
        if [len(job) for job in solution] != [len(job) for job in source.jobs]:
            return "not exactly one start per operation"
        busy: dict[str, list[tuple[Fraction, Fraction]]] = {}
        for j, (job, starts) in enumerate(zip(source.jobs, solution, strict=True)):
            free = Fraction(0)
            for step, start in zip(job, starts, strict=True):
                if start < free:
                    return f"job {j} is on {step.machine} at {start}, before {free}"
                free = start + step.time
                busy.setdefault(step.machine, []).append((start, free))
            if free > source.limit:
                return f"job {j} ends at {free}, after {source.limit}"
        for machine, intervals in busy.items():
            for one, other in pairwise(sorted(intervals)):
                if other[0] < one[1]:
                    return f"two operations on {machine} at {other[0]}"
        return ""

    def describe(self, source: Shop) -> str:
        """Return the jobs."""
        jobs = "; ".join(
            " ".join(f"{step.machine}:{step.time}" for step in job) for job in source.jobs[:6]
        )
        more = "; …" if len(source.jobs) > 6 else ""
        return f"{len(source.jobs)} jobs ({jobs}{more}); do all end within {source.limit}?"

    def describe_solution(self, source: Shop, solution: Starts) -> str:
        """Return the order on every machine."""
        parts = []
        for machine in source.machines:
            runs = sorted(
                (start, j)
                for j, (job, starts) in enumerate(zip(source.jobs, solution, strict=True))
                for step, start in zip(job, starts, strict=True)
                if step.machine == machine
            )
            parts.append(f"{machine}: " + " ".join(f"j{j}@{start}" for start, j in runs))
        return "; ".join(parts)

    def draw(self, axes: Axes, source: Shop, solution: Starts | None) -> None:
        """Draw every job as a row of its operations, coloured by machine."""
        from optpart.applications.reductions.picture import draw_jobs

        rows = [[(step.machine, step.time) for step in job] for job in source.jobs]
        draw_jobs(axes, rows, source.machines, solution)


def _operation(step: object, place: str) -> Operation:
    if not isinstance(step, list) or len(step) != 2:
        raise InputError(place, "not a pair", "give [machine, time]")
    if not isinstance(step[0], str) or not step[0]:
        raise InputError(place, shown(step[0]), "name a machine")
    return Operation(step[0], _positive(step[1], place))


def _positive(value: object, place: str) -> Fraction:
    time = rational(value, place)
    if time <= 0:
        raise InputError(place, f"{shown(time)} is not positive", "give a time > 0")
    return time


def random_shop(jobs: int, machines: int, rng: np.random.Generator) -> Shop:
    """Draw jobs that visit every machine once; the limit is the largest load of a machine or job.

    This is the least limit that is not trivially impossible.
    """
    drawn = tuple(
        tuple(
            Operation(f"m{m}", Fraction(int(rng.integers(1, 9, endpoint=True))))
            for m in rng.permutation(machines)
        )
        for _ in range(jobs)
    )
    load: dict[str, Fraction] = {}
    for job in drawn:
        for step in job:
            load[step.machine] = load.get(step.machine, Fraction(0)) + step.time
    longest = max(sum((step.time for step in job), Fraction(0)) for job in drawn)
    return Shop(drawn, max(longest, *load.values()))


JOB_SHOP = JobShop()
