"""Questions about training strategies, from names to answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

from optpart.applications.training import strategy_file
from optpart.applications.training.actions import actions
from optpart.applications.training.bounds.exact import joint_optimum
from optpart.applications.training.bounds.program import program_excess
from optpart.applications.training.cluster import TrainingCluster
from optpart.applications.training.comparison import (
    NO_STRATEGY,
    Bounded,
    bound_of_all,
    bounded,
    check_bound,
    check_makers,
    check_problem,
)
from optpart.applications.training.comparison import grouped as grouped_problem
from optpart.applications.training.compiled import Compiled, Options, by_rank
from optpart.applications.training.compiler import compile_strategy
from optpart.applications.training.graph import TrainingGraph
from optpart.applications.training.makers import MAKERS
from optpart.applications.training.makers.base import DEFAULT, Clock, Made
from optpart.applications.training.opening import open_model
from optpart.applications.training.problem import Choices, StrategyProblem
from optpart.applications.training.strategy_file import Header, Reading, Step, StrategyFile
from optpart.base.errors import FaultsOf, InputError, MemoryLimitError
from optpart.base.escaping import brief
from optpart.base.showing import Shown
from optpart.kernels.all import expect
from optpart.methods import registry
from optpart.methods.fitting import require_memory
from optpart.solution.goal import Goal
from optpart.solution.job import Job
from optpart.solution.result import Budget, Status
from optpart.solution.schedule import Schedule
from optpart.solution.verifier import verify

#: The name of [G]'s order of execution.
RANK = "rank"

#: The name of the method that proves optima.
EXACT = "exact"

#: Methods that order, one after another; each starts from the best schedule so far.
ORDERING_METHODS = ("hybrid", "cpsat")


@dataclass(frozen=True, eq=False)
class Question:
    """A problem, and the sources of its model and cluster.

    Attributes
    ----------
    header : Header
        Model and cluster as files of its strategies name them.
    remarks : tuple of str
        Assumptions about model and cluster, one sentence each.
    """

    problem: StrategyProblem
    header: Header
    remarks: tuple[str, ...]

    def __repr__(self) -> str:
        problem = self.problem
        return (
            f"<Question on {brief(problem.graph.name)}: batch {problem.batch:,}, "
            f"{len(problem.groups):,} groups, {len(problem.cluster):,} devices>"
        )


@dataclass(frozen=True, eq=False)
class Solved(Shown):
    """A strategy, and what is proven about it.

    Attributes
    ----------
    order : tuple of Step
        Order of execution if it is not [G]'s.
    """

    question: Question
    method: str
    made: Made
    bound: Bounded
    order: tuple[Step, ...] = ()

    def __repr__(self) -> str:
        header = self.question.header
        where = f" on {brief(header.cluster, 30)}" if header.cluster else ""
        model = brief(self.question.problem.graph.name, 30)
        return f"<Solved {brief(self.method, 20)} for {model}{where}: {self.made!r}>"

    @property
    def gap(self) -> float | None:
        """By how much of its time the strategy may be too long."""
        return self.bound.gap(self.made.makespan)

    @property
    def file(self) -> StrategyFile:
        """The content of its file."""
        if self.made.strategy is None:
            raise InputError("strategy", self.made.reason, "there is nothing to write")
        return StrategyFile(
            self.made.strategy,
            self.question.header,
            self.method,
            self.made.makespan,
            self.bound.value,
            self.order,
        )

    def dumps(self) -> str:
        """Return the text of the file."""
        problem = self.question.problem
        return strategy_file.dumps(self.file, problem.graph, problem.cluster)

    def save(self, path: str | Path) -> None:
        """Write the strategy, completely or not at all."""
        problem = self.question.problem
        strategy_file.write(self.file, problem.graph, problem.cluster, path)


@dataclass(frozen=True)
class Ordered:
    """A strategy in a better order than [G]'s.

    Attributes
    ----------
    made : Made
        The strategy by rank, as it was given.
    makespan : Fraction
        Of the best order found.
    schedule : Schedule
        That order; the verifier accepts it.
    by : str
        The method that found it; ``rank`` if none found a better one.
    bound : Fraction
        Proven lower bound of any order of this compiled strategy.
    """

    made: Made
    makespan: Fraction
    schedule: Schedule
    by: str
    bound: Fraction
    seconds: float

    @property
    def optimal(self) -> bool:
        """True if no order of this strategy is shorter."""
        return self.makespan == self.bound


@dataclass(frozen=True, eq=False)
class Checked:
    """The strategy of a file, compiled and executed again.

    Attributes
    ----------
    schedule : Schedule
        In the order of the file, or in that of [G].
    faults : tuple of str
        Rules of the verifier that the schedule breaks, and claims that do not hold.
    remarks : tuple of str
        Assumptions about the model, one sentence each.
    """

    file: StrategyFile
    compiled: Compiled
    schedule: Schedule
    faults: tuple[str, ...]
    remarks: tuple[str, ...]


def ask(
    model: TrainingGraph | str | Path,
    cluster: TrainingCluster | str | Path,
    batch: int,
    *,
    groups: int = 20,
    grouping: str = "contiguous",
    options: Options | None = None,
    reading: Reading | None = None,
) -> Question:
    """Ask for strategies of a model on a cluster; see :func:`optpart.strategy_question`."""
    options, reading = options or Options(), reading or Reading()
    opened = open_model(model, cluster, reading, options.slots)
    whole = StrategyProblem(opened.graph, opened.cluster, batch, options=options)
    problem = grouped_problem(whole, groups, grouping)
    header = Header(
        "" if isinstance(model, TrainingGraph) else str(model),
        "" if isinstance(cluster, TrainingCluster) else str(cluster),
        reading,
        options,
    )
    return Question(problem, header, opened.remarks)


def solve(
    question: Question, method: str, *, order: str = RANK, budget: Budget = DEFAULT, seed: int = 0
) -> Solved:
    """Find one strategy, and bound all that give its groups an action of [G] or of its own.

    ``method`` is a maker (:data:`optpart.applications.training.makers.MAKERS`), or ``"exact"``:
    actions of [G] and order together, by CP-SAT. ``order`` is ``"rank"``, or a method of the
    project that improves on it, with the time of the budget once more.
    """
    problem = question.problem
    if method != EXACT:
        check_makers([method], EXACT)
    if order != RANK:
        registry.get(order)  # refuses an unknown one before any work
    check_problem(problem)
    proven = None
    if method == EXACT:
        made, proven = _exact(problem, budget, seed)
    else:
        expect()
        made = MAKERS[method](problem, budget=budget, seed=seed)
    if order != RANK and made.feasible:
        better = ordered(made, methods=(order,), budget=replace(budget, workers=1), seed=seed)
        made = replace(made, makespan=better.makespan, schedule=better.schedule)
        method = f"{method}, order by {better.by}"
    if proven is None:
        strategies = [made.strategy] if made.feasible and made.strategy is not None else []
        proven = bounded(problem, budget.seconds, strategies, budget.memory)
    check_bound(proven, made.makespan, method)
    return Solved(question, method, made, proven, _own_order(made))


def _exact(problem: StrategyProblem, budget: Budget, seed: int) -> tuple[Made, Bounded]:
    """Choose among the actions of [G] and order everything, with a bound on just that."""
    rows = [[action.decision for action in row] for row in actions(problem)]
    choices = Choices(problem, rows)
    too_much = program_excess(choices, budget.memory)
    if too_much:
        more = "free some" if budget.memory is None else "allow more"
        raise MemoryLimitError(
            "", f"the linear program of {EXACT} {too_much}", f"use search, or {more}"
        )
    found = joint_optimum(choices, seconds=budget.seconds, seed=seed)
    infeasible = found.status is Status.INFEASIBLE
    reason = ""
    if found.makespan is None:
        reason = NO_STRATEGY if infeasible else "none was found in the time limit"
    made = Made(
        found.strategy,
        found.makespan,
        found.compiled,
        found.schedule,
        reason,
        seconds=found.seconds,
    )
    least = bound_of_all(problem)
    value = found.bound if least is None or found.bound is None else max(found.bound, least)
    why = reason if infeasible else ""
    return made, Bounded(value, least, why, infeasible, sum(map(len, rows)), found.seconds)


def ordered(
    made: Made,
    *,
    methods: Sequence[str] = ORDERING_METHODS,
    budget: Budget = DEFAULT,
    seed: int = 0,
) -> Ordered:
    """Improve the order of a feasible strategy.

    Parameters
    ----------
    methods : sequence of str
        Names of ``optpart methods``; each has an equal part of the time that is left.

    Raises
    ------
    InputError
        If the strategy is not feasible, or a method is unknown or cannot solve the instance, or
        would need more memory than the budget allows.
    """
    if made.makespan is None or made.compiled is None or made.schedule is None:
        raise InputError("strategy", made.reason, "give one that respects links and memory")
    clock = Clock(budget)
    instance = made.compiled.instance
    makespan, schedule, by, bound = made.makespan, made.schedule, "rank", Fraction(0)
    for i, name in enumerate(methods):
        registry.require(name, instance)
        if clock.spent:
            break
        left = max(0.0, budget.seconds - clock.seconds) / (len(methods) - i)
        given = replace(budget, seconds=left)
        require_memory(instance, name, Goal(), given)
        job = Job(instance, budget=given, seed=seed, start=schedule)
        result = registry.run(name, job)
        if result.lower_bound is not None:
            bound = max(bound, result.lower_bound)
        shorter = result.makespan is not None and result.makespan < makespan
        if shorter and result.makespan is not None and result.schedule is not None:
            makespan, schedule, by = result.makespan, result.schedule, name
        if makespan == bound:
            break
    return Ordered(made, makespan, schedule, by, bound, clock.seconds)


def _own_order(made: Made) -> tuple[Step, ...]:
    """Return the order of a schedule; none if that of [G] takes as long."""
    if made.compiled is None or made.schedule is None or made.makespan is None:
        return ()
    if by_rank(made.compiled).makespan(made.compiled.instance) == made.makespan:
        return ()
    return strategy_file.order_of(made.compiled, made.schedule)


def check(
    path: str | Path,
    model: TrainingGraph | str | Path | None = None,
    cluster: TrainingCluster | str | Path | None = None,
) -> Checked:
    """Read a strategy, compile it, execute it, and compare the outcome with what the file claims.

    Model and cluster may be given instead of those that the file names.
    """
    document = strategy_file.read_document(path)
    with FaultsOf(path):
        header = strategy_file.header_of(document)
        for given, named, what in (
            (model, header.model, "model"),
            (cluster, header.cluster, "cluster"),
        ):
            if given is None and not named:
                raise InputError(what, "is not named", f"give the {what} with --{what}")
    reading = Reading() if isinstance(model, TrainingGraph) else header.reading
    opened = open_model(
        header.model if model is None else model,
        header.cluster if cluster is None else cluster,
        reading,
        header.options.slots,
    )
    with FaultsOf(path):
        found = strategy_file.from_document(document, opened.graph, opened.cluster)
        compiled = compile_strategy(opened.graph, opened.cluster, found.strategy, header.options)
        if found.order:
            schedule = strategy_file.in_order(compiled, found.order)
        else:
            schedule = by_rank(compiled)
    return Checked(
        found, compiled, schedule, tuple(_faults(found, compiled, schedule)), opened.remarks
    )


def _faults(found: StrategyFile, compiled: Compiled, schedule: Schedule) -> list[str]:
    faults = [str(violation) for violation in verify(compiled.instance, schedule)]
    makespan = schedule.makespan(compiled.instance)
    if found.makespan is not None and found.makespan != makespan:
        faults.append(f"makespan is {makespan}, not {found.makespan}")
    if found.lower_bound is not None and found.lower_bound > makespan:
        faults.append(f"lower_bound {found.lower_bound} is above the makespan {makespan}")
    return faults
