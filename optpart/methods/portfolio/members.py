"""Which methods ``auto`` runs on an instance, when, and with how much of the budget."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

from optpart.base.errors import UnsupportedError
from optpart.exact.layers.solve import wide_layers
from optpart.exact.series.cycles import repeats
from optpart.exact.series.parts import parts
from optpart.methods import registry
from optpart.problem.instance import Instance
from optpart.solution.goal import Goal
from optpart.solution.job import Job
from optpart.solution.result import Budget

#: Up to this many vertices, CP-SAT alone proves most optima, so nothing may take time from it.
_SMALL = 100

#: Beyond this many vertices, or terms of its model, CP-SAT finds and proves next to nothing.
_LARGE, _MANY_TERMS = 2000, 500_000

#: With fewer workers, members that share them would be too slow: they take turns.
_SEVERAL = 4

#: Parts of a graph beyond this share of its vertices hardly decompose it.
_PART = 0.25

#: Layers of fewer vertices leave nothing to the method for them.
_WIDE = 8

#: CP-SAT proves paths of up to this many vertices at once.
_SHORT = 30

#: MILP is stronger than CP-SAT only on few vertices with long run times.
_FEW = 50

#: Enumeration, which computes without a grid, settles what rounding leaves of up to this many.
_TINY = 9

#: A turn of fewer seconds would be spent on starting a process.
SHORTEST = 2.0

#: Where a member runs: in this process, which costs nothing to start, or in a process of its own,
#: which can be stopped at any moment. ``beside`` means in a process, from the second turn to the
#: end.
Place = Literal["here", "process", "beside"]


@dataclass(frozen=True)
class Case:
    """A job and the circumstances, which decide which members take part."""

    job: Job
    cluster: bool = False
    compiled: bool = True

    @property
    def instance(self) -> Instance:
        """The instance of the job."""
        return self.job.instance

    @property
    def goal(self) -> Goal:
        """The goal of the job."""
        return self.job.goal

    @property
    def budget(self) -> Budget:
        """The budget of the job."""
        return self.job.budget

    @property
    def tiny(self) -> bool:
        """True if enumeration is quick."""
        return self.instance.vertices <= _TINY

    @property
    def small(self) -> bool:
        """True if CP-SAT is likely to prove the optimum."""
        return self.instance.vertices <= _SMALL

    @property
    def large(self) -> bool:
        """True if only a search can improve a schedule."""
        terms = len(self.instance.graph.edge_source) * self.instance.devices**2
        return self.instance.vertices > _LARGE or terms > _MANY_TERMS

    @property
    def medium(self) -> bool:
        """True if it is neither small nor large."""
        return not self.small and not self.large

    @property
    def shared(self) -> bool:
        """True if there are workers for two members side by side."""
        return self.budget.workers >= _SEVERAL and self.searched

    @property
    def spread(self) -> bool:
        """True if a search is spread over a cluster, which all else works beside."""
        return self.cluster and self.shared

    @property
    def lonely(self) -> bool:
        """True if there is only one worker."""
        return self.budget.workers == 1

    @property
    def halved(self) -> bool:
        """True if a member beside others would have half of the workers or a third."""
        return self.medium and not self.lonely and self.budget.workers < _SEVERAL

    @cached_property
    def decomposes(self) -> bool:
        """True if the graph is a series of small parts; the method for these heeds the clock."""
        if self.large or self.budget.deterministic is not None:
            return False
        sizes = [len(part.vertices) for part in parts(self.instance.graph)]
        return max(sizes, default=0) <= self.instance.vertices * _PART

    @property
    def layered(self) -> bool:
        """True if cut vertices separate wide layers; the method for these heeds the clock."""
        graph = self.instance.graph
        if self.large or self.budget.deterministic is not None or len(parts(graph)) < 2:
            return False
        return max(map(len, wide_layers(self.instance)), default=0) >= _WIDE

    @property
    def repeats(self) -> bool:
        """True if the graph is a long path of like vertices, of which a small model is solved."""
        long = self.instance.vertices > _SHORT
        return long and self.budget.deterministic is None and repeats(self.instance)

    @property
    def searched(self) -> bool:
        """True if a search supports the goal."""
        return self.supported_by("hybrid")

    def worth_starting(self, member: Member, share: float) -> bool:
        """Return whether a turn that has this share of the budget, or what is left, is worth it."""
        seconds = share * self.budget.seconds
        timed = self.budget.deterministic is None
        return member.place == "here" or not timed or seconds >= SHORTEST

    def supported_by(self, name: str) -> bool:
        """Return whether a method supports the goal and can leave out the pruning rules."""
        if self.job.without and not registry.takes(name, "without"):
            return False
        return not registry.supports(name, self.instance, self.goal)


class Member(NamedTuple):
    """A row of the table of members.

    Attributes
    ----------
    name : str
        The method in the registry, which decides whether the goal is supported.
    path : str
        The location of the function, ``module:name``.
    place : {"here", "process", "beside"}
        Members beside begin after the first turn; the others work in turn, in the order of the
        table.
    fits : callable
        Whether it takes part.
    until : float
        Share of the budget at which its turn ends; the last turn ends with the budget.
    workers : callable
        Beside: its workers, given all of them; 0 leaves it out. Turns get those that are left.
    gridless : bool
        Whether it can close the gap that rounding to a grid leaves.
    """

    name: str
    path: str
    place: Place
    fits: Callable[[Case], bool]
    until: float = 1.0
    workers: Callable[[int], int] = int
    gridless: bool = False

    @property
    def interpreted(self) -> bool:
        """True if it does without machine code, which may still be compiled."""
        return self.path in (_CPSAT, _MILP, _ENUMERATE)


_CPSAT = "optpart.methods.cpsat:alone"
_SEARCH = "optpart.methods.search:search"
_HYBRID = "optpart.methods.search:hybrid"
_MILP = "optpart.methods.milp:milp"
_LAYERS = "optpart.methods.layers:layers"
_SERIES = "optpart.methods.series:series"
_PIPELINE = "optpart.methods.pipeline:pipeline"
_ENUMERATE = "optpart.exact.enumeration:enumerate_all"


def _one(workers: int) -> int:
    return min(1, workers - 1)


def _quarter(workers: int) -> int:
    return workers // _SEVERAL


def _half(workers: int) -> int:
    return workers // 2 if workers >= _SEVERAL else 0


def _less_than_half(workers: int) -> int:
    return workers // 2 - 1


#: Every member. A method may have several rows.
MEMBERS = (
    # First what takes a moment, and CP-SAT alone with all workers: most instances end here.
    Member("pipeline", _PIPELINE, "here", lambda x: x.goal.blocks, until=0.04),
    Member("series", _SERIES, "here", lambda x: x.repeats, until=0.8),
    Member("cpsat", _CPSAT, "here", lambda x: not x.large and not x.repeats, until=0.05),
    Member("layers", _LAYERS, "here", lambda x: x.layered, until=0.4),
    # Then those that work from here to the end.
    Member("series", _SERIES, "beside", lambda x: x.decomposes and not x.halved, workers=_one),
    Member("milp", _MILP, "beside", lambda x: x.instance.vertices <= _FEW, workers=_quarter),
    Member("hybrid", _HYBRID, "beside", lambda x: x.small and not x.spread, workers=_quarter),
    Member("hybrid", _HYBRID, "beside", lambda x: x.medium and not x.spread, workers=_half),
    Member("cpsat", _CPSAT, "beside", lambda x: x.spread and not x.large, workers=_less_than_half),
    # A single worker takes turns, and so do two or three: series is slower with one of them.
    Member("series", _SERIES, "process", lambda x: x.decomposes and x.lonely, until=0.5),
    Member("series", _SERIES, "process", lambda x: x.decomposes and x.halved, until=0.65),
    # Small: what CP-SAT closes must take no longer than with CP-SAT, so search has the last tenth.
    Member("cpsat", _CPSAT, "here", lambda x: x.small and not x.spread, until=0.9),
    # What CP-SAT leaves of so few vertices is nearly always a matter of rounding.
    Member("enumerate", _ENUMERATE, "here", lambda x: x.tiny, until=0.95, gridless=True),
    Member("hybrid", _HYBRID, "process", lambda x: x.small),
    # Medium: search finds, CP-SAT proves what is easy, and begins anew from what search has found.
    Member("cpsat", _CPSAT, "process", lambda x: x.medium and x.shared and not x.spread, until=0.4),
    Member("cpsat", _CPSAT, "process", lambda x: x.medium and x.shared and not x.spread),
    Member("hybrid", _HYBRID, "process", lambda x: x.medium and x.spread),
    Member("hybrid", _HYBRID, "process", lambda x: x.medium and not x.shared, until=0.9),
    Member("cpsat", _CPSAT, "here", lambda x: x.medium and not x.shared),
    # Large: annealing alone finds shorter schedules than with CP-SAT on parts, in the same time.
    Member("search", _SEARCH, "process", lambda x: x.large),
    # CP-SAT only where no search supports the goal.
    Member("cpsat", _CPSAT, "here", lambda x: x.large and not x.searched),
)


class Plan(NamedTuple):
    """Members one after another, and members beside them with their workers."""

    sequence: tuple[Member, ...]
    beside: tuple[tuple[Member, int], ...]


def plan(case: Case) -> Plan:
    """Return who works on an instance, and when.

    Raises
    ------
    UnsupportedError
        If no member supports the goal on the instance.
    """
    rows = [row for row in MEMBERS if row.fits(case) and case.supported_by(row.name)]
    if not case.compiled:
        rows = [row for row in rows if row.interpreted] or rows
    if case.cluster:  # there, a search that is not beside others has its searchers elsewhere
        rows = [
            row._replace(place="here")
            if row.place == "process" and registry.takes(row.name, "pool")
            else row
            for row in rows
        ]
    if not rows:
        raise UnsupportedError("goal", "no member of auto supports it", "ask for something else")
    if all(row.place == "beside" for row in rows):
        rows = [rows[0]._replace(place="process")]
    counts = [(row, row.workers(case.budget.workers)) for row in rows if row.place == "beside"]
    beside = tuple((row, count) for row, count in counts if count > 0)
    sequence: list[Member] = []
    for row in (row for row in rows if row.place != "beside"):
        if sequence:
            again = sequence[-1].name == row.name and not beside
            if again or not case.worth_starting(row, row.until - sequence[-1].until):
                sequence[-1] = sequence[-1]._replace(until=row.until)
            if again:
                continue  # it would begin from its own schedule
        sequence.append(row)  # one that is too short begins only if the one before ends early
    sequence[-1] = sequence[-1]._replace(until=1.0)
    return Plan(tuple(sequence), beside)


def check_scope(instance: Instance, goal: Goal) -> None:
    """Raise :class:`UnsupportedError` if no member supports the goal on the instance."""
    plan(Case(Job(instance, goal)))
