"""The measurements by case, strategies and run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench.reproduce.cases import Case
from bench.reproduce.measure import Bound, Record, Run
from optpart.methods import registry

Floats = NDArray[np.float64]


class MissingError(Exception):
    """A measurement is missing."""


class Pair(NamedTuple):
    """A partitioning and a scheduling strategy."""

    partitioner: str
    scheduler: str

    def __str__(self) -> str:
        return "+".join(self)


class Data:
    """Measurements of some cases: the first ``runs`` runs of each.

    Attributes
    ----------
    cases : list of Case
    runs : int
    """

    def __init__(self, records: Iterable[Record], cases: Iterable[Case], runs: int) -> None:
        self.cases, self.runs = list(cases), runs
        self._runs: dict[tuple[str, str], dict[int, Run]] = {}
        self._bounds: dict[tuple[str, int], Bound] = {}
        keys = {case.key for case in self.cases}
        for record in records:
            if record.case not in keys or record.run > runs:
                continue
            if isinstance(record, Bound):
                self._bounds[record.case, record.run] = record
            else:
                of = self._runs.setdefault((record.case, record.partitioner), {})
                of[record.run] = record

    def of(self, setting: str) -> list[Case]:
        """Return the cases of a setting."""
        return [case for case in self.cases if case.setting == setting]

    @property
    def main(self) -> list[Case]:
        """The cases that are no variants of others."""
        return [case for case in self.cases if not case.variant]

    def case(self, graph: str, devices: int, variant: str = "") -> Case:
        """Return the case of a graph."""
        for case in self.cases:
            if (case.graph, case.devices, case.variant) == (graph, devices, variant):
                return case
        raise MissingError(f"{graph} on {devices} devices {variant}".rstrip())

    def all(self, case: Case, partitioner: str) -> list[Run]:
        """Return all runs of a strategy, those without a placement included."""
        return list(self._runs.get((case.key, partitioner), {}).values())

    def every(self) -> list[Run]:
        """Return all runs of everything."""
        return [run for runs in self._runs.values() for run in runs.values()]

    def found(self, case: Case, partitioner: str) -> list[Run]:
        """Return the runs that found a placement, in order; none is a :class:`MissingError`."""
        runs = sorted(self.all(case, partitioner), key=lambda run: run.run)
        runs = [run for run in runs if not run.failed]
        if not runs:
            raise MissingError(f"{partitioner} on {case.key}")
        return runs

    def partitioners(self, case: Case) -> list[str]:
        """Return the strategies that found a placement at least once, in order of the registry."""
        return [
            name
            for name in registry.PARTITIONERS
            if any(not run.failed for run in self.all(case, name))
        ]

    def makespans(self, case: Case, partitioner: str, scheduler: str) -> Floats:
        """Return the makespan of each run."""
        values = [run.makespan.get(scheduler) for run in self.found(case, partitioner)]
        return np.array([value for value in values if value is not None])

    def makespan(self, case: Case, partitioner: str, scheduler: str) -> float:
        """Return the mean makespan."""
        return float(self.makespans(case, partitioner, scheduler).mean())

    def traffics(self, case: Case, partitioner: str) -> Floats:
        """Return the traffic of each run."""
        return np.array([run.traffic for run in self.found(case, partitioner)])

    def traffic(self, case: Case, partitioner: str) -> float:
        """Return the mean traffic."""
        return float(self.traffics(case, partitioner).mean())

    def times(self, case: Case, partitioner: str) -> Floats:
        """Return the seconds that partitioning took in each run."""
        return np.array([run.seconds for run in self.found(case, partitioner)])

    def seconds(self, case: Case, partitioner: str) -> float:
        """Return the median of the partitioning times: means suffer from what else is at work."""
        return float(np.median(self.times(case, partitioner)))

    def utilisation(self, case: Case, partitioner: str, scheduler: str) -> float:
        """Return the mean share of the makespan that all devices of the case are busy."""
        runs = self.found(case, partitioner)
        return float(np.mean([r.busy / (case.devices * r.makespan[scheduler]) for r in runs]))

    def imbalance(self, case: Case, partitioner: str) -> float:
        """Return the mean of the busiest device's time relative to an even share."""
        runs = self.found(case, partitioner)
        return float(np.mean([r.busiest * case.devices / r.busy for r in runs]))

    def choices(self, case: Case, partitioner: str, scheduler: str) -> Floats:
        """Return mean and quantiles of the executable vertices at a decision, over the runs."""
        runs = self.found(case, partitioner)
        return np.asarray(np.mean([run.choices[scheduler] for run in runs], axis=0))

    def bound(self, case: Case, run: int) -> Bound | None:
        """Return the bound of a run's instance."""
        return self._bounds.get((case.key, 1 if case.fixed else run))

    def best_known(self, case: Case, run: int) -> float:
        """Return the best makespan of a run's instance, of all pairs and the library.

        Where the instance is the same in every run, of all of them.
        """
        bound = self.bound(case, run)
        found = [] if bound is None or bound.library is None else [bound.library]
        for name in self.partitioners(case):
            for one in self.found(case, name):
                if case.fixed or one.run == run:
                    found += one.makespan.values()
        return min(found)

    def cost(self) -> float:
        """Return the processor time of all measurements."""
        bounds = sum(bound.seconds for bound in self._bounds.values())
        return bounds + sum(run.cost for run in self.every())

    def verified(self) -> tuple[int, float]:
        """Return how many schedules were verified, and the largest relative error of doubles."""
        runs = self.every()
        errors = [
            abs(run.makespan[name] / value - 1)
            for run in runs
            for name, value in run.exact.items()
            if value
        ]
        return len(errors), max(errors, default=0.0)
