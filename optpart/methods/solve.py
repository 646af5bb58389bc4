"""Running a method for a user: check the arguments first, solve, and add a lower bound."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, get_args

from optpart.base import clock
from optpart.base.choices import Fix as Fix
from optpart.base.choices import Objective, choice
from optpart.base.errors import ArgumentError, InputError, OptpartError, PluginError
from optpart.base.limits import MOST_WORKERS, available_processors
from optpart.exact.cross_check import compare, confirmed
from optpart.exact.given_order import given_by
from optpart.kernels.all import expect
from optpart.lower_bounds.best import BRIEF, SECONDS, best_bound
from optpart.methods import registry
from optpart.methods.fitting import require_memory
from optpart.methods.pareto import pareto
from optpart.methods.starts import only_placement, started
from optpart.problem.feasibility import contradiction, excluded
from optpart.problem.footprint import read_memory
from optpart.problem.instance import Instance
from optpart.problem.rational import non_negative, rational
from optpart.search.checkpoint import StateFile, check_new
from optpart.search.layout import read_start
from optpart.solution.audit import audited, described
from optpart.solution.goal import Goal
from optpart.solution.job import Job
from optpart.solution.names import NamedOrder, NamedPlacement, given_device_order
from optpart.solution.pruning import ALL
from optpart.solution.result import (
    Budget,
    Result,
    Status,
    Watch,
    conclude,
    proven_infeasible,
    with_bound,
)
from optpart.solution.schedule import Schedule
from optpart.solution.termination import Termination
from optpart.solution.verifier import verify

#: A schedule or result, the path of a result file, or the name of a strategy.
Start = str | Path | Schedule | Result

#: Workers of a run on this machine, unless something else is asked for.
WORKERS = 2

#: Seconds of a time limit that are kept for the end of every vertex.
_END_OF_VERTEX = 1e-5

#: Share of the time for the least makespan where the traffic is minimised after it.
_FIRST = 0.7


@dataclass(frozen=True, eq=False)
class Question:
    """A checked request to run a method on an instance; only :func:`ask` builds it.

    Attributes
    ----------
    job : Job
        Its start is valid unless the method repairs it.
    method : str
        The name of the method.
    options : mapping
        Arguments of the method: where it keeps its state.
    forced : bool
        Whether the placement is fixed to the only one that the instance allows.
    cluster : str or None
        Address of the scheduler of a Dask cluster; empty to start one on this machine; ``None``
        for this machine alone.
    everybody : bool
        Whether to use all workers of that cluster instead of as many as the budget has.
    near : Fraction or None
        By how many percent a schedule may be longer than the shortest that is found first.
    """

    job: Job
    method: str
    options: Mapping[str, Any] = field(default_factory=dict)
    forced: bool = False
    cluster: str | None = None
    everybody: bool = False
    near: Fraction | None = None

    @property
    def goal(self) -> Goal | None:
        """The goal of the job; ``None`` if it is the least makespan, with nothing given."""
        return None if self.job.goal == Goal() else self.job.goal

    def answer(self, watch: Watch | None = None, begin: float | None = None) -> Result:
        """Run the method, add a lower bound, and check proofs about small instances.

        Parameters
        ----------
        begin : float, optional
            When the time of the budget began, on the clock of :mod:`optpart.base.clock`; now by
            default.

        Raises
        ------
        ContradictionError
            If enumeration contradicts the result for a small instance.
        """
        expect()
        asked, goal = clock.now() if begin is None else begin, self.job.goal
        end = asked + self.job.budget.seconds - _ending(self.job.instance)
        if self.cluster is not None:
            result, asked = self._spread(watch)
            end = asked + self.job.budget.seconds
        else:
            begun = clock.now()
            if self._in_two_steps:
                result, goal = self._first_shortest(watch, end)
            else:
                answers = self._own if registry.is_own(self.method) else self._run
                result = answers(watch, end)
            # A pair of strategies is timed around the strategies, without what is loaded once.
            if registry.split(self.method) is None:
                result = replace(result, seconds=clock.now() - begun)
        result = bounded(result, min(SECONDS, max(0.0, end - clock.now())))
        return confirmed(result, goal)

    @property
    def _in_two_steps(self) -> bool:
        """True if the least makespan is sought first, as if nothing else were asked for."""
        goal = self.job.goal
        lexicographic = goal.objective == "lexicographic" and goal.makespan is None
        return self.near is not None or (lexicographic and self.method == "auto")

    def _first_shortest(self, watch: Watch | None, end: float) -> tuple[Result, Goal]:
        """Find a short schedule, then one of less traffic; return also the goal that this has.

        If the makespan is proven or a longer one will do, the second step has the traffic as its
        objective, and the makespan as a limit.
        """
        job, begin = self.job, clock.now()
        seconds = max(0.0, end - begin)

        def run(goal: Goal, seconds: float, start: Schedule | None) -> Result:
            budget = replace(job.budget, seconds=max(0.0, seconds))
            return registry.run(
                self.method, replace(job, goal=goal, budget=budget, start=start), watch
            )

        first = run(replace(job.goal, objective="makespan"), _FIRST * seconds, job.start)
        if first.makespan is None:
            return replace(first, objective=job.goal.objective), job.goal
        goal, second = job.goal, first
        limit = first.makespan * (1 + (self.near or Fraction(0)) / 100)
        if self.near is not None:
            goal = replace(goal, makespan=limit)
        if first.termination is not Termination.INTERRUPTED:
            limited = replace(goal, objective="traffic", makespan=limit)
            closed = self.near is not None or first.status is Status.OPTIMAL
            second = run(limited if closed else goal, end - clock.now(), first.schedule)
        bounds = dict(second.bounds)
        known = [x.lower_bound for x in (first, second) if x.lower_bound is not None]
        if known:
            bounds["makespan"] = max(known)
        result = conclude(
            job.instance,
            self.method,
            second.schedule or first.schedule,
            bound=bounds,
            goal=goal,
            termination=second.termination,
            reason=second.reason,
            seed=job.seed,
            workers=job.budget.workers,
            trace=second.trace if self.near is not None else first.trace,
        )
        by = first if second.schedule_by in ("", "start") else second
        bound_by = second.bound_by if second is not first and closed else first.bound_by
        return replace(result, schedule_by=by.schedule_by, bound_by=bound_by), goal

    def _run(self, watch: Watch | None, end: float) -> Result:
        budget = replace(self.job.budget, seconds=max(0.0, end - clock.now()))
        return registry.run(self.method, replace(self.job, budget=budget), watch, **self.options)

    def _spread(self, watch: Watch | None) -> tuple[Result, float]:
        """Run the method on a cluster; return also when it began, which connecting delays."""
        from optpart.methods.cluster import connected
        from optpart.methods.fingerprint import fingerprint

        assert self.cluster is not None
        codes = {self.method: fingerprint(self.method)}
        budget = self.job.budget
        most = budget.workers - 1
        processes = available_processors() if self.everybody else most
        with connected(self.cluster, max(1, processes), codes) as cluster:
            cluster.take(MOST_WORKERS - 1 if self.everybody else most)
            remarks = [f"not used: {refused}" for refused in cluster.refused]
            if not self.everybody and cluster.workers < budget.workers:
                remarks.append(f"used {cluster.workers} of {budget.workers} workers")
            begin = clock.now()
            job = replace(self.job, budget=replace(budget, workers=cluster.workers))
            result = registry.run(self.method, job, watch, pool=cluster, **self.options)
        reason = "; ".join(part for part in (result.reason, *remarks) if part)
        return replace(result, reason=reason), begin

    def _own(self, watch: Watch | None, end: float) -> Result:
        """Run a method that is not built in, which may raise or claim anything."""
        try:
            claimed: object = self._run(watch, end)
        except OptpartError:
            raise
        except Exception as error:
            raise PluginError(
                self.method, f"failed ({described(error)})", "fix the method"
            ) from error
        job = self.job
        result = audited(claimed, job.instance, self.method, job.seed, self.goal)
        if result.refused:
            raise PluginError(self.method, result.reason, "fix the method")
        return result

    def front(self, watch: Watch | None = None) -> list[Result]:
        """Return the Pareto front of makespan and traffic; see :func:`pareto`."""
        return pareto(self.job, watch)

    def check_audit(self) -> None:
        """Raise :class:`InputError` if the method cannot solve without pruning."""
        if not registry.takes(self.method, "without"):
            able = registry.listed(registry.taking("without"))
            raise ArgumentError("audit", "not supported by this method", f"use {able}")
        if self.cluster is not None:
            raise ArgumentError("audit", "runs on this machine", "leave out `engine`")

    def audit(self, result: Result) -> Result:
        """Solve again without pruning, for methods that have a parameter ``without``.

        Raises
        ------
        InputError
            If the method has no such parameter.
        ContradictionError
            If the two results contradict each other.
        """
        self.check_audit()
        other = registry.run(self.method, replace(self.job, start=None, without=ALL))
        compare(result, other)
        return other


def _ending(instance: Instance) -> float:
    """Return the seconds that it takes to print a result, and to end."""
    return clock.END + _END_OF_VERTEX * instance.vertices


def ask(
    instance: Instance,
    method: str = "auto",
    *,
    objective: Objective = "makespan",
    within: str | int | Fraction | None = None,
    within_percent: str | int | Fraction | None = None,
    traffic_limit: str | int | Fraction | None = None,
    fix: Fix | None = None,
    start: Start | None = None,
    placement: NamedPlacement | None = None,
    order: NamedOrder | None = None,
    contiguous: bool = False,
    device_order: Sequence[str] | None = None,
    checkpoint: str | Path | StateFile | None = None,
    resume: bool = False,
    engine: str = "local",
    seconds: float = 60.0,
    workers: int | None = None,
    seed: int = 0,
    memory: int | str | None = None,
) -> Question:
    """Check the arguments for running a method; see :func:`optpart.solve` for them.

    Raises
    ------
    InputError
        If the method is unknown or does not support the request, would need more memory than is
        allowed, or if an argument is invalid.
    """
    registry.get(method)
    given_memory = None if memory is None else read_memory(memory)
    budget = Budget(seconds, WORKERS if workers is None else workers, memory=given_memory)
    cluster = _cluster(engine, method)
    if cluster is not None and workers is not None and workers < WORKERS:
        raise ArgumentError("workers", f"{workers} is this process alone", "give 2 or more")
    if objective not in get_args(Objective):
        raise ArgumentError(
            "objective", f"no objective {objective!r}", choice(objective, get_args(Objective))
        )
    if not isinstance(contiguous, bool):
        raise ArgumentError("contiguous", f"cannot be {contiguous!r}", "use True or False")
    if fix is not None and fix not in get_args(Fix):
        raise ArgumentError("fix", f"cannot fix {fix!r}", choice(fix, get_args(Fix)))
    if fix is not None and (placement is not None or order is not None):
        name = "order" if placement is None else "placement"
        raise ArgumentError(name, "cannot be combined with `fix`", "leave one of them out")
    given = first = None
    if start is not None:
        repairs = registry.repairs(method)
        given = first = _schedule(start, instance, seed, repair=repairs)
        if not repairs:
            first = _valid(start, instance, given, needed=fix != "placement")
    forced = fix is not None and given is None
    goal = Goal.of(instance, placement=placement, order=order)
    if fix is not None:
        goal = _only(instance, fix) if given is None else given_by(instance, given, fix)
    goal = replace(
        goal,
        objective=objective,
        makespan=_limit(within, "within"),
        traffic=_limit(traffic_limit, "traffic_limit", non_negative),
        contiguous=contiguous,
        device_order=given_device_order(instance, device_order),
    )
    near = _limit(within_percent, "within_percent", non_negative)
    if near is not None:
        _check_near(method, goal, cluster)
    asked = goal if near is None or goal.makespan is not None else replace(goal, makespan=near)
    registry.require(method, instance, asked)
    # On a cluster, one worker is here.
    require_memory(
        instance, method, goal, budget if cluster is None else replace(budget, workers=1)
    )
    options = {}
    if checkpoint is not None or resume:
        options = _checkpoint(method, checkpoint, resume)
    job = Job(instance, goal, budget, seed, first)
    return Question(job, method, options, forced, cluster, workers is None, near)


def _check_near(method: str, goal: Goal, cluster: str | None) -> None:
    """Raise an error unless schedules near the least makespan can be asked for."""
    if goal.objective != "traffic":
        raise ArgumentError(
            "within_percent", f"used with objective {goal.objective}", "minimise the traffic"
        )
    if goal.makespan is not None:
        raise ArgumentError("within_percent", "used with `within`", "leave one of them out")
    if cluster is not None or registry.is_own(method):
        where = "on a cluster" if cluster is not None else f"by {method}"
        raise ArgumentError("within_percent", f"not supported {where}", "use auto, here")


def _cluster(engine: str, method: str) -> str | None:
    """Return the address of the cluster of an engine; see :class:`Question`."""
    if engine == "local":
        return None
    from optpart.methods.cluster import address

    if not registry.takes(method, "pool"):
        able = registry.listed(registry.taking("pool"))
        raise ArgumentError(
            "engine", f"{method} does not run on several machines", f"use it with `method` {able}"
        )
    return address(engine)


def bounded(result: Result, seconds: float = SECONDS) -> Result:
    """Add the combinatorial bounds to a result without a lower bound.

    Parameters
    ----------
    seconds : float
        Time limit; some bound is proven in any case.
    """
    if result.lower_bound is not None or result.status is Status.INFEASIBLE:
        return result
    reason = contradiction(result.instance)
    if reason:
        return proven_infeasible(result, reason)
    bound = best_bound(result.instance, seconds, result.makespan, among=BRIEF)
    if bound.value is None:
        return proven_infeasible(result, excluded(result.instance, "bounds"))
    return with_bound(result, bound.value)


def _schedule(start: Start, instance: Instance, seed: int, *, repair: bool) -> Schedule:
    """Return the initial schedule, unverified; searches also accept results of other instances."""
    if isinstance(start, Result):
        if start.schedule is None:
            raise ArgumentError(
                "start", "the result has no schedule", "give one that has a schedule"
            )
        start = start.schedule
    if isinstance(start, Schedule):
        start.check_fits(instance)
        return start
    if repair and os.path.exists(start):
        return read_start(start, instance)
    return started(str(start), instance, seed)


def _valid(start: Start, instance: Instance, found: Schedule, *, needed: bool) -> Schedule | None:
    """Return the schedule, or ``None`` if it is not valid; raise an error then if it is needed."""
    violations = verify(instance, found, most=1)
    if violations and needed:
        raise InputError(
            "schedule",
            f"not valid for this instance ({violations[0]})",
            "give a valid schedule",
            str(start) if isinstance(start, str | Path) else None,
        )
    return None if violations else found


def _only(instance: Instance, fix: Fix) -> Goal:
    """Return the goal that fixes the placement if the instance allows only one."""
    placement = only_placement(instance) if fix == "placement" else None
    if placement is None:
        raise ArgumentError(
            "fix",
            "no schedule to take it from",
            "give a result with `start`, or a strategy such as heft",
        )
    return Goal(placement=placement)


def _limit(
    value: str | int | Fraction | None,
    parameter: str,
    read: Callable[[object, str], Fraction] = rational,
) -> Fraction | None:
    """Return a limit as a number."""
    try:
        return None if value is None else read(value, parameter)
    except InputError as error:
        raise ArgumentError(parameter, error.problem, error.remedy) from None


def _checkpoint(
    method: str, checkpoint: str | Path | StateFile | None, resume: bool
) -> dict[str, Any]:
    """Return the options of a method that saves its state."""
    if not registry.takes(method, "checkpoint"):
        able = registry.listed(registry.taking("checkpoint"))
        raise ArgumentError(
            "checkpoint", f"{method} does not save its state", f"use it with `method` {able}"
        )
    if checkpoint is None:
        raise ArgumentError(
            "resume", "no checkpoint to resume from", "name the file with `checkpoint`"
        )
    if not resume:
        check_new(checkpoint.path if isinstance(checkpoint, StateFile) else checkpoint)
    return {"checkpoint": checkpoint, "resume": resume}
