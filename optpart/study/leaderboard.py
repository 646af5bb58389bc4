"""Methods ranked on a set of instances, from the runs of stores."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

from optpart.base.errors import InputError
from optpart.base.escaping import visible
from optpart.base.rounding import number
from optpart.study.dataset import SIZES, Dataset, size_of
from optpart.study.library import Known
from optpart.study.store import instances_of
from optpart.study.stored import StoredRun, read_runs, strongest

#: The section of all sizes.
ALL = "all"


class Contestant(NamedTuple):
    """A method as it was run: the same name with other code or limits is another one."""

    method: str
    limits: str
    optpart: str
    code: str


@dataclass(frozen=True)
class Line:
    """A method on the instances of a section.

    Attributes
    ----------
    rank : int or None
        Only with a schedule in every run on every instance of the section.
    ratio : float or None
        Geometric mean of makespan / bound over the solved instances, rounded up; each counts once,
        with the geometric mean over its seeds.
    optimal : int
        Instances whose proven optimum every run has reached.
    run, solved : int
        Instances with runs, and those of them with a schedule in every run.
    failed, rejected : int
        Runs without a schedule, and those whose schedule the verifier rejected.
    stores : tuple of str
        The files that the runs are from.
    """

    contestant: Contestant
    rank: int | None
    ratio: float | None
    optimal: int
    run: int
    solved: int
    failed: int
    rejected: int
    stores: tuple[str, ...]


@dataclass(frozen=True)
class Section:
    """The methods on the instances of a size.

    Attributes
    ----------
    instances, optima : int
        All instances of the set that have this size, and those whose optimum is known.
    lines : list of Line
        The ranked ones first, then those with the most instances.
    """

    size: str
    instances: int
    optima: int
    lines: list[Line]


Runs = dict[str, list[StoredRun]]


def read_stores(dataset: Dataset, stores: Sequence[str | Path]) -> dict[str, list[StoredRun]]:
    """Return the runs of each store; the schedules of those on the set are verified.

    Raises
    ------
    InputError
        If a store or an instance cannot be read.
    """
    rows = {row.sha256: row for row in dataset.rows}
    found = {}
    for store in stores:
        known = (dataset.load(rows[sha]) for sha, _ in instances_of(store) if sha in rows)
        found[str(store)] = read_runs(store, known)
    return found


class Leaderboard:
    """All methods of stores on a set.

    The bound of an instance is that of the index; without one, the largest that a run of the stores
    claims.

    Parameters
    ----------
    stores : mapping from str to sequence of StoredRun
        The runs of each file. Of the same run in several, the first counts.

    Attributes
    ----------
    sections : list of Section
        One for each size, and before them one for all if there are several.
    notes : list of str
        What is left out, and what is not proven.

    Raises
    ------
    InputError
        If there is no run on the set, or a bound contradicts a schedule.
    """

    def __init__(self, dataset: Dataset, stores: Mapping[str, Sequence[StoredRun]]) -> None:
        self.dataset = dataset
        self._rows = {row.sha256: row for row in dataset.rows}
        self._by: dict[Contestant, Runs] = {}
        self._of: Runs = {}
        self._stores: dict[Contestant, dict[str, None]] = {}
        self.notes: list[str] = []
        self._read(stores)
        self._bound = {sha: self._bound_of(row) for sha, row in self._rows.items()}
        self._optimum = {sha: self._optimum_of(row) for sha, row in self._rows.items()}
        self._note_bounds()
        sizes = {row.sha256: size_of(row.vertices) for row in dataset.rows}
        present = [size for size in SIZES if size in sizes.values()]
        self.sections = [] if len(present) == 1 else [self._section(ALL, [*self._rows])]
        for size in present:
            self.sections.append(self._section(size, [sha for sha in sizes if sizes[sha] == size]))

    def _read(self, stores: Mapping[str, Sequence[StoredRun]]) -> None:
        earlier = outside = repeated = 0
        seen: set[tuple[Contestant, str, int]] = set()
        for store, runs in stores.items():
            for run in runs:
                who = Contestant(run.method, _limits(run), run.optpart, run.code)
                key = who, run.sha256, run.seed
                if run.sha256 not in self._rows:
                    outside += 1
                elif not run.is_latest:
                    earlier += 1
                elif key in seen:
                    repeated += 1
                else:
                    seen.add(key)
                    self._by.setdefault(who, {}).setdefault(run.sha256, []).append(run)
                    self._of.setdefault(run.sha256, []).append(run)
                    self._stores.setdefault(who, {})[store] = None
        if not self._by:
            problem = f"has no run on the set {self.dataset.name}"
            raise InputError(
                "", problem, "fill it with 'optpart gap --set'", next(iter(stores), "")
            )
        for count, what in (
            (outside, "on instances that are not in the set are left out"),
            (earlier, "by other code than that of the last sweep with the method are left out"),
            (repeated, "that an earlier store has, too, count once"),
        ):
            if count:
                self.notes.append(f"Runs {what}: {count}.")

    def _bound_of(self, row: Known) -> Fraction | None:
        runs = self._of.get(row.sha256, [])
        best = strongest(runs)
        bound = row.bound or (None if best is None else best.lower_bound)
        for run in runs:
            if bound is not None and run.makespan is not None and run.makespan < bound:
                raise InputError(
                    visible(row.name),
                    f"its bound is {bound}, and {visible(run.method)} has a schedule of "
                    f"{run.makespan}",
                    "find out which is wrong with 'optpart gap', which verifies",
                )
        return bound

    def _optimum_of(self, row: Known) -> Fraction | None:
        """Return the optimum, if a schedule is as long as the bound."""
        found = [run.makespan for run in self._of.get(row.sha256, [])]
        bound = self._bound[row.sha256]
        return bound if bound in [row.makespan, *found] else None

    def _note_bounds(self) -> None:
        claimed = sum(not row.bound for row in self.dataset.rows if self._bound[row.sha256])
        if claimed:
            self.notes.append(
                f"Instances whose bound, and optimum, only the stores claim: {claimed}."
            )
        without = sum(not bound for bound in self._bound.values())
        if without:
            self.notes.append(f"Instances without a bound, which have no ratio: {without}.")

    def _section(self, size: str, of: Sequence[str]) -> Section:
        found = [
            self._line(who, mine)
            for who, runs in self._by.items()
            if (mine := {sha: runs[sha] for sha in of if sha in runs})
        ]
        found.sort(key=lambda line: (-line.solved, line.ratio or math.inf, line.contestant))
        whole = [line.ratio for line in found if line.solved == len(of) and line.ratio is not None]
        lines = [
            replace(line, rank=1 + whole.index(line.ratio or 0)) if i < len(whole) else line
            for i, line in enumerate(found)
        ]
        return Section(size, len(of), sum(self._optimum[sha] is not None for sha in of), lines)

    def _line(self, who: Contestant, runs: Runs) -> Line:
        solved = [sha for sha, of in runs.items() if all(run.makespan is not None for run in of)]
        every = [run for of in runs.values() for run in of]
        rejected = sum(run.is_rejected for run in every)
        return Line(
            who,
            None,
            _geometric_mean(
                [run.makespan / bound for run in runs[sha] if run.makespan is not None]
                for sha in solved
                if (bound := self._bound[sha])
            ),
            optimal=sum(
                self._optimum[sha] is not None
                and all(run.makespan == self._optimum[sha] for run in runs[sha])
                for sha in solved
            ),
            run=len(runs),
            solved=len(solved),
            failed=sum(run.makespan is None for run in every) - rejected,
            rejected=rejected,
            stores=tuple(self._stores[who]),
        )


def _limits(run: StoredRun) -> str:
    """Say what limited a run."""
    parts = [
        f"{number(run.limit, up=False)} s",
        f"{run.workers} worker{'s' if run.workers > 1 else ''}",
    ]
    parts += [f"{number(run.memory, up=False)} bytes"] * bool(run.memory)
    parts += [f"deterministic {number(run.deterministic, up=False)}"] * bool(run.deterministic)
    return ", ".join(parts)


def _geometric_mean(ratios: Iterable[list[Fraction]]) -> float | None:
    """Return the mean over instances of the mean over seeds, rounded up; 1 only if all are."""
    found = [*ratios]
    if not found:
        return None
    if all(ratio == 1 for each in found for ratio in each):
        return 1.0
    logs = [math.fsum(map(math.log, each)) / len(each) for each in found]
    return max(math.nextafter(1, 2), math.exp(math.fsum(logs) / len(logs)))
