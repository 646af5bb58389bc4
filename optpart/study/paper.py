"""The comparison of stored runs that a paper reports: what is averaged, and what is not."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations

from optpart.base.errors import InputError
from optpart.base.escaping import visible
from optpart.base.rounding import double
from optpart.solution.result import Status
from optpart.study.statistics import bootstrap_mean, holm, integral, signed_rank
from optpart.study.stored import StoredRun, strongest

#: Stands for a factor that an instance does not state.
NOT_STATED = "–"


@dataclass(frozen=True)
class Cell:
    """One method on one instance with one combination of factors: its runs with all seeds.

    Attributes
    ----------
    best : Fraction or None
        The least makespan that any run of the store has on this instance.
    """

    group: tuple[str, ...]
    method: str
    instance: str
    runs: tuple[StoredRun, ...]
    best: Fraction | None

    @property
    def unsolved(self) -> int:
        """The number of runs without a schedule."""
        return sum(run.makespan is None for run in self.runs)

    @cached_property
    def ratio(self) -> Fraction | None:
        """The mean of makespan / best over the seeds; ``None`` if any of the runs is unsolved."""
        if self.unsolved or not self.best:
            return None
        total = sum((run.makespan or Fraction(0) for run in self.runs), Fraction(0))
        return total / self.best / len(self.runs)

    @property
    def value(self) -> Fraction | float:
        """The ratio, exact; infinite if a run is unsolved."""
        return math.inf if self.ratio is None else self.ratio


@dataclass(frozen=True)
class Row:
    """One method in one group of instances.

    Attributes
    ----------
    instances, missing : int
        Instances of the group, and those of them on which the method was not run.
    runs, unsolved : int
        Runs, and those without a schedule.
    optimal : int
        Runs whose makespan is optimal, as the bound of some run of the store claims.
    mean : Fraction or None
        Mean ratio over the instances, each counted once; ``None`` if a run is unsolved or missing.
    low, high : float or None
        The bootstrap interval of the mean, if it is given and there are two instances or more.
    median : float or None
        With unsolved instances as infinite; ``None`` if an instance is missing.
    mean_of_solved : Fraction or None
        Mean ratio over the instances with a schedule in every run.
    seconds : float
        Mean time of a run, solved or not.
    primal, dual : float
        Mean integrals of the gaps, in seconds; an unsolved run has the largest.
    """

    group: tuple[str, ...]
    method: str
    instances: int
    missing: int
    runs: int
    unsolved: int
    optimal: int
    mean: Fraction | None
    low: float | None
    high: float | None
    median: float | None
    mean_of_solved: Fraction | None
    seconds: float
    primal: float
    dual: float


@dataclass(frozen=True)
class Pair:
    """Two methods, tested on the instances that both were run on.

    Attributes
    ----------
    first_better, second_better, equal : int
        Instances.
    p, adjusted : float
        Of Wilcoxon's signed-rank test, and adjusted for all pairs (Holm).
    """

    first: str
    second: str
    first_better: int
    second_better: int
    equal: int
    p: float
    adjusted: float


class Comparison:
    """Everything that a paper reports about the runs of a store.

    Parameters
    ----------
    runs : sequence of StoredRun
    by : sequence of str
        The factors that divide instances into groups; see :meth:`StoredRun.factor`.

    Attributes
    ----------
    runs : list of StoredRun
        Those that count.
    cells : list of Cell
    methods, groups : list
        In the order of tables.
    notes : list of str
        What was left out, and why.

    Raises
    ------
    InputError
        If there are no runs, no run states a factor, runs differ in what ``by`` does not name, or
        a bound contradicts a schedule.
    """

    def __init__(self, runs: Sequence[StoredRun], by: Sequence[str] = ()) -> None:
        if not runs:
            raise InputError("", "has no runs", "fill it with 'optpart gap --store'")
        self.by = tuple(by)
        self.notes: list[str] = []
        runs = self._of_latest_code(runs)
        self._vertices = {run.sha256: run.vertices for run in runs if run.vertices is not None}
        _check_claims(runs)
        self.runs = self._with_ratio(runs)
        for name in self.by:
            self._check_stated(name)
        self._best = {
            sha: min((r.makespan for r in of if r.makespan is not None), default=None)
            for sha, of in _by_instance(self.runs).items()
        }
        self._bound = {
            sha: None if (best := strongest(of)) is None else best.lower_bound
            for sha, of in _by_instance(self.runs).items()
        }
        self._check_verified()
        self.cells = self._cells()
        self.methods = sorted({cell.method for cell in self.cells})
        self.groups = sorted({cell.group for cell in self.cells}, key=_by_numbers)

    def _check_verified(self) -> None:
        """Note how many makespans are claimed only."""
        unverified = sum(not run.is_verified and run.makespan is not None for run in self.runs)
        if unverified:
            self.notes.append(
                "Makespans that are only claimed by the store, because the instances were not "
                f"given: {unverified}."
            )

    def _check_stated(self, name: str) -> None:
        """Note that some runs do not state a factor; refuse it if none does."""
        place = self.by.index(name)
        without = sum(self.group(run)[place] == NOT_STATED for run in self.runs)
        if without == len(self.runs):
            raise InputError(
                f"--by {name}",
                "no run states it",
                "use n, seconds, workers, optpart, instance, or the prefix of a number in the "
                "names of instances, such as ccr",
            )
        if without:
            count = f"{without} of {len(self.runs)} runs"
            self.notes.append(f"Group {NOT_STATED}: {count} do not state {visible(name)}.")

    def _of_latest_code(self, runs: Sequence[StoredRun]) -> list[StoredRun]:
        """Leave out, with a note, runs of a method as it was before the last sweep with it."""
        left = sorted(run.method for run in runs if not run.is_latest)
        if left:
            shown = ", ".join(visible(name) for name in dict.fromkeys(left))
            self.notes.append(
                "Runs by other code than that of the last sweep with the method are left out, "
                f"{len(left)}: {shown}."
            )
        return [run for run in runs if run.is_latest]

    def _with_ratio(self, runs: Sequence[StoredRun]) -> list[StoredRun]:
        """Leave out, with a note, instances that are infeasible or whose least makespan is 0."""
        left: dict[str, list[str]] = {
            "are proven infeasible": [],
            "have a schedule of length 0": [],
        }
        kept = []
        for of in _by_instance(runs).values():
            if any(run.status is Status.INFEASIBLE for run in of):
                left["are proven infeasible"].append(of[0].instance)
            elif any(run.makespan == 0 for run in of):
                left["have a schedule of length 0"].append(of[0].instance)
            else:
                kept += of
        for why, names in left.items():
            if names:
                shown = ", ".join(map(visible, sorted(names)))
                self.notes.append(f"Instances that {why} are left out, {len(names)}: {shown}.")
        refused = sum(run.refused for run in kept)
        if refused:
            self.notes.append(f"Runs that failed or made a false claim are unsolved: {refused}.")
        if not kept:
            raise InputError("", "no instance is left", "; ".join(self.notes))
        return kept

    def group(self, run: StoredRun) -> tuple[str, ...]:
        """Return the factors of a run; ``n`` also from other runs on the same instance."""
        found = []
        for name in self.by:
            value = run.factor(name)
            if name == "n" and run.sha256 in self._vertices:
                value = str(self._vertices[run.sha256])
            found.append(NOT_STATED if value is None else value)
        return tuple(found)

    def best(self, run: StoredRun) -> Fraction | None:
        """Return the least makespan on the instance of a run."""
        return self._best[run.sha256]

    def bound(self, run: StoredRun) -> Fraction | None:
        """Return the largest lower bound on the instance of a run."""
        return self._bound[run.sha256]

    def ratio(self, run: StoredRun) -> Fraction | None:
        """Return makespan / best; ``None`` if the run is unsolved."""
        best = self.best(run)
        return None if run.makespan is None or best is None else run.makespan / best

    def is_optimal(self, run: StoredRun) -> bool:
        """Return whether the makespan of this run is optimal, as the store claims."""
        return run.makespan is not None and run.makespan == self.bound(run)

    def gaps(self, run: StoredRun) -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
        """Return the primal and the dual gap over time, to the least makespan of the store.

        The primal gap is ``1 − best / makespan``, the dual one ``1 − bound / best``, and each is 1
        without the former or the latter. A run without a trace has both from its end on.
        """
        best = self.best(run)
        if best is None:
            return [], []
        steps = (*run.trace, (run.seconds, run.makespan, run.lower_bound))
        primal = [(t, float(1 - best / value)) for t, value, _ in steps if value]
        dual = [(t, float(1 - bound / best)) for t, _, bound in steps if bound is not None]
        return primal, dual

    def integrals(self, run: StoredRun) -> tuple[float, float]:
        """Return the integrals of both gaps until the time limit, in seconds."""
        primal, dual = self.gaps(run)
        return integral(primal, run.limit), integral(dual, run.limit)

    def _cells(self) -> list[Cell]:
        by_cell: dict[tuple[tuple[str, ...], str, str], list[StoredRun]] = {}
        for run in self.runs:
            by_cell.setdefault((self.group(run), run.method, run.sha256), []).append(run)
        cells = []
        for (group, method, sha), runs in by_cell.items():
            if len({run.seed for run in runs}) < len(runs):
                differ = [
                    name
                    for name in ("seconds", "workers", "memory", "deterministic", "optpart")
                    if len({run.factor(name) for run in runs}) > 1
                ]
                raise InputError(
                    f"{visible(method)} on {visible(runs[0].instance)}",
                    f"has runs that differ in {' and '.join(differ)}",
                    f"add {' '.join(f'--by {name}' for name in differ)}",
                )
            cells.append(Cell(group, method, sha, tuple(runs), self._best[sha]))
        return cells

    def rows(self) -> list[Row]:
        """Return a row per group and method."""
        return [
            self._row(group, method)
            for group in self.groups
            for method in self.methods
            if any(cell.group == group and cell.method == method for cell in self.cells)
        ]

    def _row(self, group: tuple[str, ...], method: str) -> Row:
        here = [cell for cell in self.cells if cell.group == group]
        mine = [cell for cell in here if cell.method == method]
        runs = [run for cell in mine for run in cell.runs]
        instances = len({cell.instance for cell in here})
        ratios = [cell.ratio for cell in mine if cell.ratio is not None]
        whole = len(ratios) == instances
        low, high = None, None
        if whole and instances > 1:
            low, high = bootstrap_mean([float(ratio) for ratio in ratios])
        areas = [self.integrals(run) for run in runs]
        complete = len(mine) == instances
        return Row(
            group,
            method,
            instances=instances,
            missing=instances - len(mine),
            runs=len(runs),
            unsolved=sum(cell.unsolved for cell in mine),
            optimal=sum(map(self.is_optimal, runs)),
            mean=_mean(ratios) if whole else None,
            low=low,
            high=high,
            median=_median([cell.value for cell in mine]) if complete else None,
            mean_of_solved=_mean(ratios),
            seconds=math.fsum(run.seconds for run in runs) / len(runs),
            primal=math.fsum(primal for primal, _ in areas) / len(runs),
            dual=math.fsum(dual for _, dual in areas) / len(runs),
        )

    def values(self, method: str) -> dict[tuple[tuple[str, ...], str], Fraction | float]:
        """Return the value of a method by group and instance."""
        return {(c.group, c.instance): c.value for c in self.cells if c.method == method}

    def common(self) -> list[tuple[tuple[str, ...], str]]:
        """Return the groups and instances that all methods were run on."""
        shared = set.intersection(*(set(self.values(method)) for method in self.methods))
        return sorted(shared)

    def all_instances(self) -> int:
        """Return the number of pairs of a group and an instance."""
        return len({(cell.group, cell.instance) for cell in self.cells})

    def pairs(self) -> list[Pair]:
        """Test every two methods against each other."""
        found = []
        for first, second in combinations(self.methods, 2):
            mine, theirs = self.values(first), self.values(second)
            both = sorted(mine.keys() & theirs.keys())
            a, b = [mine[key] for key in both], [theirs[key] for key in both]
            less = sum(x < y for x, y in zip(a, b, strict=True))
            more = sum(x > y for x, y in zip(a, b, strict=True))
            found.append((first, second, less, more, len(both) - less - more, signed_rank(a, b)))
        adjusted = holm([pair[-1] for pair in found])
        return [Pair(*pair, p) for pair, p in zip(found, adjusted, strict=True)]


def _mean(values: Sequence[Fraction]) -> Fraction | None:
    return sum(values, Fraction(0)) / len(values) if values else None


def _median(values: Sequence[Fraction | float]) -> float:
    """Return the median, rounded up."""
    ordered = sorted(values)
    middle = (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2
    return double(middle, up=True) if isinstance(middle, Fraction) else middle


def _by_instance(runs: Iterable[StoredRun]) -> dict[str, list[StoredRun]]:
    found: dict[str, list[StoredRun]] = {}
    for run in runs:
        found.setdefault(run.sha256, []).append(run)
    return found


def _by_numbers(group: tuple[str, ...]) -> list[tuple[bool, float, str]]:
    """Order groups by their numbers, then by their words; what is not stated comes last."""

    def key(value: str) -> tuple[bool, float, str]:
        try:
            return False, float(value), value
        except ValueError:
            return True, 0.0, value

    return [key(value) for value in group]


def _check_claims(runs: Sequence[StoredRun]) -> None:
    """Refuse a store in which a bound, or a proof that there is no schedule, is false."""
    for of in _by_instance(runs).values():
        found = [run for run in of if run.makespan is not None]
        least = min(found, key=lambda run: run.makespan or 0, default=None)
        if least is None or least.makespan is None:
            continue
        for run in of:
            too_high = run.lower_bound is not None and run.lower_bound > least.makespan
            if too_high or run.status is Status.INFEASIBLE:
                claim = f"bound {run.lower_bound}" if too_high else "no schedule"
                raise InputError(
                    visible(run.instance),
                    f"{visible(run.method)} claims {claim}, {visible(least.method)} has a schedule "
                    f"of {least.makespan}",
                    "find out which is wrong with 'optpart gap', which verifies",
                )
