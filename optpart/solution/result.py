"""The result of a method: its proven status, with the evidence."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fractions import Fraction
from functools import cache
from importlib import metadata
from typing import TYPE_CHECKING, TypedDict, Unpack

from optpart.base.arguments import checked, checked_names
from optpart.base.escaping import brief
from optpart.base.limits import check_seconds, check_workers
from optpart.base.rounding import number
from optpart.base.showing import Shown, notebook
from optpart.problem.footprint import read_memory
from optpart.problem.instance import Instance
from optpart.problem.units import with_unit
from optpart.solution.claim import Claim
from optpart.solution.goal import MINIMISED, Goal, Measure, Objective, bound_of, objective_gap
from optpart.solution.schedule import Schedule
from optpart.solution.termination import Termination
from optpart.solution.verifier import verify

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame


class Status(StrEnum):
    """The proven status of an instance after a run (design §3)."""

    OPTIMAL = "OPTIMAL"
    FEASIBLE = "FEASIBLE"
    INFEASIBLE = "INFEASIBLE"
    UNKNOWN = "UNKNOWN"

    @classmethod
    def of(cls, value: Fraction | None, bound: Fraction | None) -> Status:
        """Return that of a verified value and of a bound; without a bound, nothing is possible."""
        if bound is None:
            return cls.INFEASIBLE
        if value is None:
            return cls.UNKNOWN
        return cls.OPTIMAL if value == bound else cls.FEASIBLE

    @property
    def proven(self) -> bool:
        """True if the status is final: optimal or infeasible."""
        return self in (Status.OPTIMAL, Status.INFEASIBLE)


@dataclass(frozen=True)
class Progress:
    """One step of a run: seconds since its start, value of the incumbent, proven lower bound.

    Values are makespans, or traffic or bottlenecks if those are the objective. A step that is
    passed to a ``watch`` also has the incumbent itself, if the method has verified it, and what the
    method says about the step; a trace has neither.
    """

    seconds: float
    objective: Fraction | None
    bound: Fraction | None
    schedule: Schedule | None = field(default=None, compare=False, repr=False)
    remark: str = field(default="", compare=False, repr=False)


Watch = Callable[[Progress], None]

#: Generates initial schedules for an instance, a seed and bytes of memory that may be used at most
#: (see :class:`Budget`); the verifier has accepted them.
Starts = Callable[[Instance, int, int | None], Iterable[Schedule]]


@checked_names
@dataclass(frozen=True)
class Budget:
    """The time and the workers that a method may use.

    Attributes
    ----------
    seconds : float
        Wall-clock limit, at most :data:`~optpart.base.limits.MOST_SECONDS`.
    workers : int
        Threads or processes, at most :data:`~optpart.base.limits.MOST_WORKERS`.
    deterministic : float, optional
        Limit in the solver's deterministic time; with one worker, every run then gives the same
        result.
    memory : int, optional
        Bytes that this process and those that it starts may hold together; by default, what the
        machine has available. What is estimated to take more is refused before it begins.

    Raises
    ------
    InputError
        If a value is out of range.
    """

    seconds: float = 60.0
    workers: int = 2
    deterministic: float | None = None
    memory: int | None = None

    def __post_init__(self) -> None:
        check_seconds(self.seconds)
        check_workers(self.workers)
        if self.deterministic is not None:
            check_seconds(self.deterministic, "deterministic")
        if self.memory is not None:
            # Also a text with a unit, for those who write one.
            object.__setattr__(self, "memory", read_memory(self.memory))


@dataclass(frozen=True, eq=False)
class Result(Shown):
    """The outcome of one method on one instance; built by :func:`conclude` only.

    Attributes
    ----------
    status : Status
    values : mapping from measure to Fraction
        Makespan and traffic of the schedule, and its bottleneck if that is minimised; also as
        ``makespan``, ``traffic`` and ``bottleneck``, which are ``None`` where there is none.
    bounds : mapping from measure to Fraction
        Proven lower bounds of what is minimised; also as ``lower_bound`` (of the makespan),
        ``traffic_bound`` and ``bottleneck_bound``. Under ``lexicographic``, that of the traffic
        holds among schedules of minimal makespan.
    objective : {"makespan", "traffic", "lexicographic", "bottleneck"}
        The objective that was minimised.
    contiguous, device_order : bool, tuple of int
        Whether blocks had to be contiguous, and along which order of devices; see
        :class:`~optpart.solution.goal.Goal`.
    schedule : Schedule or None
        The schedule, if the verifier accepts it.
    given : str
        The fixed decisions and limits in words, empty if there are none; status and bounds are
        valid for schedules that satisfy them.
    schedule_by, bound_by : str
        The members of a portfolio that found the schedule and proved the bound, or that proved that
        there is no schedule; empty for other methods.
    claim : Claim or None
        What a file, such as a checkpoint, claims beyond these bounds; no status follows from it.
    termination : Termination or None
        Why the method ended; ``None`` only for results from older files that do not state it.
    reason : str
        Why there is no schedule or no proof, or another remark. It is meant for people: no code may
        depend on its wording.
    refused : bool
        Whether the claims of the method are discarded because it failed or they are false; see
        :func:`refused`. A solver that died is not refused: what it had proven before still counts.
    trace : tuple of Progress
    """

    instance: Instance
    method: str
    status: Status
    values: Mapping[Measure, Fraction] = field(default_factory=dict)
    bounds: Mapping[Measure, Fraction] = field(default_factory=dict)
    schedule: Schedule | None = None
    reason: str = ""
    seconds: float = 0.0
    seed: int = 0
    workers: int = 1
    trace: tuple[Progress, ...] = ()
    versions: dict[str, str] = field(default_factory=lambda: versions())
    objective: Objective = "makespan"
    given: str = ""
    refused: bool = False
    termination: Termination | None = Termination.COMPLETED
    contiguous: bool = False
    device_order: tuple[int, ...] = ()
    schedule_by: str = ""
    bound_by: str = ""
    claim: Claim | None = None

    def __repr__(self) -> str:
        name, value, least = "makespan", self.makespan, self.lower_bound
        if self.objective == "bottleneck":
            name, value, least = "bottleneck", self.bottleneck, self.bottleneck_bound
        unit = self.instance.time_unit
        made = "" if value is None else f", {name} {with_unit(number(value, up=True), unit)}"
        least_shown = with_unit(number(least, up=False), unit)
        bound = "" if least is None else f", lower bound {least_shown}"
        return f"<Result {brief(self.method, 20)} on {brief(self.instance.name, 30)}: " + (
            f"{self.status}{made}{bound}>"
        )

    @property
    def makespan(self) -> Fraction | None:
        """The makespan of the schedule."""
        return self.values.get("makespan")

    @property
    def lower_bound(self) -> Fraction | None:
        """The proven lower bound on the makespan."""
        return self.bounds.get("makespan")

    @property
    def traffic(self) -> Fraction | None:
        """The traffic of the schedule."""
        return self.values.get("traffic")

    @property
    def traffic_bound(self) -> Fraction | None:
        """The proven lower bound on the traffic, if that is minimised."""
        return self.bounds.get("traffic")

    @property
    def bottleneck(self) -> Fraction | None:
        """The bottleneck of the placement, if that is minimised."""
        return self.values.get("bottleneck")

    @property
    def bottleneck_bound(self) -> Fraction | None:
        """The proven lower bound on the bottleneck, if that is minimised."""
        return self.bounds.get("bottleneck")

    @property
    def placement(self) -> dict[str, str] | None:
        """The device of each vertex, by name; ``None`` without a schedule."""
        if self.schedule is None:
            return None
        return self.schedule.named_placement(self.instance)

    @property
    def order(self) -> dict[str, list[str]] | None:
        """The vertices of each device in order of start, by name; ``None`` without a schedule."""
        return None if self.schedule is None else self.schedule.named_order(self.instance)

    @checked
    def plot(self, *, ax: Axes | None = None) -> Axes:
        """Draw the schedule, devices over time.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; by default, a new figure of pyplot.

        Raises
        ------
        InputError
            If there is no schedule.
        """
        axes: Axes = notebook().plot_schedule(self, ax)
        return axes

    @checked
    def plot_progress(self, *, ax: Axes | None = None) -> Axes:
        """Draw the best value found and the best bound over the seconds of the run.

        Raises
        ------
        InputError
            If the method left no trace.
        """
        axes: Axes = notebook().plot_progress(self, ax)
        return axes

    @checked
    def to_dataframe(self) -> DataFrame:
        """Return a row per vertex in order of start; times as doubles, and as exact fractions.

        Raises
        ------
        InputError
            If there is no schedule, or pandas is not installed.
        """
        return notebook().frame_of_result(self)

    @property
    def gap(self) -> float | None:
        """``(value − bound) / value`` of the objective; 0.0 if and only if they are equal.

        Under ``lexicographic``, that of the makespan, and once that is closed, of the traffic.
        """
        return objective_gap(self.objective, self.values, self.bounds)


class Details(TypedDict, total=False):
    """What a result says beside its values and bounds; see :class:`Result`."""

    termination: Termination | None
    reason: str
    seconds: float
    seed: int
    workers: int
    trace: tuple[Progress, ...]
    objective: Objective
    given: str


def conclude(
    instance: Instance,
    method: str,
    schedule: Schedule | None,
    *,
    bound: Fraction | Mapping[Measure, Fraction] | None = None,
    infeasible: str = "",
    goal: Goal | None = None,
    **details: Unpack[Details],
) -> Result:
    """Verify a schedule and derive the status of the instance.

    Parameters
    ----------
    bound : Fraction or mapping from measure to Fraction, optional
        A proven lower bound on the makespan, or one on each of several measures.
    infeasible : str
        Why no schedule exists, if that is proven.
    goal : Goal, optional
        The goal, which the schedule must satisfy; by default, the least makespan.
    **details
        Further fields of the result: ``termination``, why the method ended without a proof
        (``PROVEN`` follows from the status), ``reason``, ``seconds``, ``seed``, ``workers``,
        ``trace``; and, for a goal that is not at hand, its ``objective`` and what is ``given``.

    Returns
    -------
    Result
        ``OPTIMAL`` only if the verifier accepts the schedule, the schedule satisfies the goal, and
        its objective value equals the bound. A schedule that the verifier rejects or that violates
        the goal is dropped, and the first violation becomes the reason.
    """
    goal = goal or Goal()
    given: Mapping[Measure, Fraction] = (
        {} if bound is None else (bound if isinstance(bound, Mapping) else {"makespan": bound})
    )
    said: Details = {"objective": goal.objective, "given": goal.given, **details}
    base = Result(
        instance,
        method,
        Status.UNKNOWN,
        bounds=given,
        contiguous=goal.contiguous,
        device_order=goal.device_order,
        **said,
    )
    base = replace(base, termination=_ended(Status.UNKNOWN, base.termination))
    if infeasible:
        return proven_infeasible(base, infeasible)
    if schedule is None:
        return base
    violations = verify(instance, schedule, most=1)
    if violations:
        return replace(base, reason=f"its schedule is not valid: {violations[0]}")
    if broken := goal.broken(instance, schedule):
        return replace(base, reason=f"its schedule violates the goal: {broken}")
    known = replace(base, values=goal.values(instance, schedule), schedule=schedule)
    for measure, value in known.values.items():
        least = given.get(measure)
        if least is not None and least > value:
            raise AssertionError(
                f"{method}: {bound_of(measure)} {least} above a verified schedule of {value} on "
                f"{instance.name}; please report this as a bug"
            )
    return with_status(known)


def with_status(result: Result) -> Result:
    """Return a result with a schedule, its status derived from its bounds."""
    proven = all(
        measure in result.bounds and result.values[measure] == result.bounds[measure]
        for measure in MINIMISED[result.objective]
    )
    status = Status.OPTIMAL if proven else Status.FEASIBLE
    ended = result.termination if result.refused else _ended(status, result.termination)
    return replace(result, status=status, termination=ended)


def proven_infeasible(result: Result, why: str) -> Result:
    """Return the result with the status ``INFEASIBLE``."""
    ended = _ended(Status.INFEASIBLE, result.termination)
    return replace(result, status=Status.INFEASIBLE, termination=ended, reason=why)


def refused(result: Result, why: str) -> Result:
    """Return the result marked as refused because the method failed or made a false claim."""
    rejected = result.termination is Termination.REJECTED
    ended = Termination.REJECTED if rejected else Termination.FAILED
    return replace(result, termination=ended, reason=why, refused=True)


def _ended(status: Status, termination: Termination | None) -> Termination | None:
    """Return why a method ended: a proven status means by proof unless it was interrupted."""
    if status.proven and termination is not Termination.INTERRUPTED:
        return Termination.PROVEN
    return Termination.COMPLETED if termination is Termination.PROVEN else termination


def with_bound(result: Result, bound: Fraction) -> Result:
    """Return the result updated with another proven lower bound on the makespan."""
    best = bound if result.lower_bound is None else max(bound, result.lower_bound)
    bounds: dict[Measure, Fraction] = {**result.bounds, "makespan": best}
    result = with_claim(replace(result, bounds=bounds), result.claim)
    if result.status is Status.INFEASIBLE or result.makespan is None:
        return result
    return with_status(result)


def with_claim(result: Result, claim: Claim | None) -> Result:
    """Return the result with what a file claims beyond what is proven."""
    if claim is not None:
        claim = None if result.status is Status.INFEASIBLE else claim.beyond(result.bounds)
    return replace(result, claim=claim)


def only_claimed(result: Result, file: str, code: str = "") -> Result:
    """Return a result that was read from a file: its verified schedule, and all else as a claim.

    Why it ended is not kept where the file says: by a proof.

    Parameters
    ----------
    code : str
        The code that made it, as the file says.
    """
    claim = Claim(
        file,
        result.bounds,
        result.status is Status.INFEASIBLE,
        result.bound_by or result.method,
        code,
    )
    ended = None if result.termination is Termination.PROVEN else result.termination
    bare = replace(result, bounds={}, termination=ended)
    if result.claim is not None:  # the file itself has taken this from another one
        beyond = result.claim.beyond(claim.bounds)
        claim = claim if beyond is None else beyond
    known = replace(bare, status=Status.UNKNOWN) if bare.schedule is None else with_status(bare)
    return with_claim(known, claim)


def versions() -> dict[str, str]:
    """Return the versions of the software on which a result depends."""
    return dict(_versions())


@cache
def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in ("optpart", "ortools", "pulp", "highspy"):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found
