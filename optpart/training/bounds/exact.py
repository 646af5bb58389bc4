"""The best strategy of some choices together with the best order, proven."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from ortools.sat.python import cp_model

from optpart.errors import InputError, OptpartError
from optpart.solution.result import Status
from optpart.solution.schedule import Schedule, crossings, retime
from optpart.solution.verifier import verify
from optpart.training.bounds.choice_model import horizon
from optpart.training.bounds.choices import Choices
from optpart.training.bounds.costs import Costs
from optpart.training.bounds.joint import JointModel, Key
from optpart.training.bounds.program import Program
from optpart.training.bounds.rows import Rows
from optpart.training.compiler import Compiled, Kind, compile_strategy
from optpart.training.evaluator import Evaluator, unsupported
from optpart.training.problem import StrategyProblem
from optpart.training.ranking import by_rank
from optpart.training.strategy import Strategy

#: Share of the time for the linear program, and for the search of a first strategy.
_BOUNDING = 0.2
_STARTING = 0.1

#: Strategies that are improved before the model begins.
_STARTS = 4

#: Strategies near another one that are evaluated at a time.
_NEAR = 4000

_ALL = (Fraction(0), Fraction(1))

#: Start and end in ticks.
Times = dict[Key, tuple[int, int]]


@dataclass(frozen=True)
class Joint:
    """The best strategy of some choices, and the proven bound.

    Attributes
    ----------
    status : Status
        ``OPTIMAL`` if the verifier accepts the schedule, and its makespan equals the bound.
    strategy : Strategy or None
    chosen : tuple of int or None
        The number of the action of each group.
    compiled : Compiled or None
    schedule : Schedule or None
    makespan : Fraction or None
        Nanoseconds.
    bound : Fraction or None
        No strategy of the choices takes less, in any order.
    program : Fraction or None
        The bound of the linear program, which the model began with.
    refused : int
        Strategies whose best order, memory apart, exceeds the memory that changes with time. Such
        a strategy may fit in another order, so that the bound stays below its time.
    seconds : float
    """

    status: Status
    strategy: Strategy | None
    chosen: tuple[int, ...] | None
    compiled: Compiled | None
    schedule: Schedule | None
    makespan: Fraction | None
    bound: Fraction | None
    program: Fraction | None
    refused: int
    seconds: float


@dataclass
class _Best:
    chosen: tuple[int, ...]
    compiled: Compiled
    schedule: Schedule
    makespan: Fraction


def joint_optimum(
    choices: Choices,
    *,
    seconds: float = 60.0,
    workers: int = 2,
    seed: int = 0,
    starts: Sequence[Sequence[int]] = (),
) -> Joint:
    """Find the best action of every group and the best order of execution, and prove it.

    One CP-SAT model has a literal per action, a start per operation and device, and every Split,
    transfer, Concat, AddN and AllReduce that some strategy may have. It begins with the bound of
    the linear program, whose rows it keeps. Every solution is compiled, timed again in exact
    arithmetic, and verified.

    Parameters
    ----------
    starts : sequence of sequence of int
        Strategies to begin with, as numbers of actions per group.
    """
    return _Search(choices, seconds, workers, seed).run(starts)


class _Search:
    def __init__(self, choices: Choices, seconds: float, workers: int, seed: int) -> None:
        self.choices, self.workers, self.seed = choices, workers, seed
        self.random = np.random.default_rng(seed)
        self.begin = time.perf_counter()
        self.seconds = seconds
        self.rows = Rows(Costs(choices))
        self.best: _Best | None = None
        self.refused: list[tuple[int, ...]] = []
        self.program: int | None = None
        self.bound: int | None = 0

    def run(self, starts: Sequence[Sequence[int]]) -> Joint:
        """Bound, find a first strategy, and solve."""
        program = Program(self.rows)
        found = program.solve(max(0.1, _BOUNDING * self.seconds))
        self.program = self.bound = found.ticks
        if found.ticks is None:
            return self._result(closed=True)
        rounded = tuple(int(share.argmax()) for share in found.point)
        for chosen in self._first([*map(tuple, starts), rounded]):
            self._note_rank(chosen)
        cuts = [row for row, _ in found.multipliers.rows if row.kind != "memory"]
        closed = False
        while not closed and self._left() > 0 and not self._reached():
            floor = self.bound or 0
            model = JointModel(self.rows, floor, self._most(), cuts)
            for chosen in self.refused:
                model.forbid(chosen)
            if self.best is not None:
                model.hint(
                    self.best.chosen,
                    starts_of(self.best.compiled, self.best.schedule, self.rows.costs),
                )
            status, solved = self._solve(model)
            if status == cp_model.INFEASIBLE:
                # Everything that is shorter than the best known is excluded, or refused.
                if not self.refused:
                    self.bound = None if self.best is None else self._most() + 1
                closed = True
            elif status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
                kept = self._note(solved)
                if kept and status == cp_model.OPTIMAL:
                    closed = True
                elif not kept:
                    self.refused.append(solved[0])
        return self._result(closed)

    def _left(self) -> float:
        return self.seconds - (time.perf_counter() - self.begin)

    def _reached(self) -> bool:
        return (
            self.best is not None
            and self.bound is not None
            and (self.best.makespan <= self.rows.costs.time(self.bound))
        )

    def _most(self) -> int:
        """Return the largest makespan that is of interest, in ticks."""
        if self.best is None:
            return horizon(self.rows)
        ticks = self.best.makespan * self.rows.costs.scale
        return -(-ticks.numerator // ticks.denominator) - 1

    # --- first strategies ------------------------------------------------------------------

    def _first(self, starts: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
        """Return a good strategy: the best start, improved group by group."""
        choices = self.choices
        alike = min(len(actions) for actions in choices.actions)
        starts = [*starts, *(tuple([a] * len(choices.actions)) for a in range(alike))]
        problem = StrategyProblem(
            choices.graph, choices.cluster, choices.batch, choices.groups, choices.options
        )
        if unsupported(problem):
            return starts[:3]
        evaluator = Evaluator(problem)
        numbers = [evaluator.actions(actions) for actions in choices.actions]
        deadline = time.perf_counter() + _STARTING * self.seconds

        def values(rows: list[tuple[int, ...]]) -> list[tuple[int, Fraction]]:
            chosen = np.array([[numbers[g][a] for g, a in enumerate(row)] for row in rows])
            found = []
            for row in evaluator.many(chosen.astype(np.int32)):
                outcome = evaluator.outcome(row)
                missing = outcome.makespan is None
                found.append(
                    (2 if missing else int(outcome.excess > 0), outcome.makespan or Fraction(0))
                )
            return found

        scores = values(starts)
        best: list[tuple[tuple[int, Fraction], tuple[int, ...]]] = []
        for i in sorted(range(len(starts)), key=lambda i: scores[i])[:_STARTS]:
            at, score, improved = starts[i], scores[i], True
            while improved and (not best or time.perf_counter() < deadline):
                near = self._near(at)
                found = values(near)
                j = min(range(len(near)), key=lambda j: found[j], default=0)
                improved = bool(near) and found[j] < score
                if improved:
                    at, score = near[j], found[j]
                if time.perf_counter() >= deadline:
                    break
            best.append((score, at))
        return [min(best)[1]]

    def _near(self, at: tuple[int, ...]) -> list[tuple[int, ...]]:
        """Return strategies in which one group, or groups in a row, take another action."""
        sizes = [len(actions) for actions in self.choices.actions]
        near = {
            (*at[:g], *(min(a, size - 1) for size in sizes[g:h]), *at[h:])
            for g in range(len(at))
            for h in range(g + 1, len(at) + 1)
            for a in range(max(sizes[g:h]))
        }
        found = sorted(near - {at})
        if len(found) > _NEAR:
            drawn = self.random.choice(len(found), _NEAR, replace=False)
            found = [found[i] for i in sorted(drawn.tolist())]
        return found

    def _note_rank(self, chosen: tuple[int, ...]) -> None:
        compiled = self._compiled(chosen)
        if compiled is not None:
            self._keep(chosen, compiled, by_rank(compiled))

    def _compiled(self, chosen: Sequence[int]) -> Compiled | None:
        choices = self.choices
        try:
            return compile_strategy(
                choices.graph, choices.cluster, choices.strategy(chosen), choices.options
            )
        except InputError:  # a link is missing
            return None

    def _keep(self, chosen: tuple[int, ...], compiled: Compiled, schedule: Schedule) -> bool:
        """Keep a schedule if it is valid and better; return whether it is valid."""
        violations = verify(compiled.instance, schedule)
        others = [violation for violation in violations if violation.rule != "memory"]
        if others:
            raise OptpartError(f"a compiled strategy breaks a rule: {others[0]}")
        if violations:
            return False
        makespan = schedule.makespan(compiled.instance)
        if self.bound is not None and makespan < self.rows.costs.time(self.bound):
            raise OptpartError("a strategy takes less than a proven bound; please report this")
        if self.best is None or makespan < self.best.makespan:
            self.best = _Best(chosen, compiled, schedule, makespan)
        return True

    # --- the joint model -------------------------------------------------------------------

    def _solve(
        self, model: JointModel
    ) -> tuple[cp_model.CpSolverStatus, tuple[tuple[int, ...], Times]]:
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = self.workers
        solver.parameters.random_seed = self.seed
        solver.parameters.max_time_in_seconds = max(0.05, self._left())
        status = solver.solve(model.model)
        if status == cp_model.MODEL_INVALID:
            raise OptpartError("the joint model is invalid; please report this")
        if status in (cp_model.OPTIMAL, cp_model.FEASIBLE, cp_model.UNKNOWN) and not self.refused:
            assert self.bound is not None
            # The solver passes integer bounds as doubles, which are exact below 2^53.
            least = round(solver.best_objective_bound)
            self.bound = max(self.bound, min(least, self._most() + 1))
        found: Times = {}
        chosen: tuple[int, ...] = ()
        if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            chosen = tuple(
                next(a for a, literal in enumerate(row) if solver.boolean_value(literal))
                for row in model.y
            )
            found = {
                key: (solver.value(task.start), solver.value(task.end))
                for key, task in model.tasks.items()
            }
        return status, (chosen, found)

    def _note(self, solved: tuple[tuple[int, ...], Times]) -> bool:
        chosen, starts = solved
        compiled = self._compiled(chosen)
        if compiled is None:
            raise OptpartError("the joint model uses a link that is missing; please report this")
        schedule = retime(compiled.instance, compiled.placement, _order(compiled, starts))
        return self._keep(chosen, compiled, schedule)

    def _result(self, closed: bool) -> Joint:
        costs, best = self.rows.costs, self.best
        bound = None if self.bound is None else costs.time(self.bound)
        if best is not None:
            if bound is None:
                raise OptpartError("a strategy exists that was excluded; please report this")
            status = Status.OPTIMAL if best.makespan == bound else Status.FEASIBLE
        else:
            status = Status.INFEASIBLE if self.bound is None else Status.UNKNOWN
        return Joint(
            status,
            None if best is None else self.choices.strategy(best.chosen),
            None if best is None else best.chosen,
            None if best is None else best.compiled,
            None if best is None else best.schedule,
            None if best is None else best.makespan,
            bound,
            None if self.program is None else costs.time(self.program),
            len(self.refused),
            time.perf_counter() - self.begin,
        )


# --- from the model to schedules and back --------------------------------------------------------


def _keys(compiled: Compiled) -> Iterator[tuple[int | tuple[int, int], list[Key]]]:
    """Yield every vertex and crossing with the keys that the model may know it by."""
    instance, graph = compiled.instance, compiled.instance.graph
    for v, vertex in enumerate(compiled.vertices):
        o, d = vertex.operation, vertex.device
        match vertex.kind:
            case Kind.REPLICA:
                yield v, [("run", o, 0, d, d, None)]
            case Kind.SPLIT:
                yield v, [("split", o, vertex.output, d, d, None)]
            case Kind.CONCAT:
                kept = [("concat", o, vertex.output, d, d, part) for part in (None, vertex.samples)]
                yield v, kept
            case Kind.ADDN:
                yield v, [("add", o, vertex.output, d, d, None)]
            case _:
                yield v, [("allreduce", o, vertex.output, 0, 0, None)]
    for tensor, e in crossings(instance, compiled.placement):
        u, i = int(graph.tensor_vertex[tensor]), int(graph.tensor_output[tensor])
        vertex = compiled.vertices[u]
        o, d = vertex.operation, vertex.device
        if max(d, e) >= len(compiled.cluster):
            continue  # to or from the queue of collectives, which takes no time
        if vertex.kind is Kind.ADDN:
            yield (tensor, e), [("down", o, vertex.output, d, e, None)]
            continue
        output = vertex.output if vertex.kind is Kind.SPLIT else i
        part = compiled.parts[u][i] if vertex.kind is Kind.SPLIT else vertex.samples
        whole = _ALL if i < 0 else part
        keys: list[Key] = [
            ("transfer", o, output, d, e, None),
            ("transfer", o, output, d, e, whole),
            ("transfer", o, output, d, e, _ALL),
            ("up", o, output, d, e, None),
        ]
        yield (tensor, e), keys


def _order(compiled: Compiled, times: Times) -> list[int | tuple[int, int]]:
    """Sort the vertices and crossings of an instance by start, then end, producers first."""
    instance = compiled.instance
    position = {v: i for i, v in enumerate(instance.graph.topological_order.tolist())}
    found: list[tuple[tuple[int, int, int, int], int | tuple[int, int]]] = []
    for what, keys in _keys(compiled):
        start, end = next(times[key] for key in keys if key in times)
        if isinstance(what, int):
            found.append(((start, end, position[what], 0), what))
        else:
            u = int(instance.graph.tensor_vertex[what[0]])
            found.append(((start, end, position[u], 1), what))
    found.sort(key=lambda pair: pair[0])
    return [what for _, what in found]


def starts_of(compiled: Compiled, schedule: Schedule, costs: Costs) -> dict[Key, int]:
    """Return the starts of a schedule in ticks, by every key that the model may know them by."""
    begin = {
        (tensor, target): start
        for tensor, target, start in zip(
            schedule.transfers.tensor.tolist(),
            schedule.transfers.target.tolist(),
            schedule.transfers.start.fractions(),
            strict=True,
        )
    }
    found: dict[Key, int] = {}
    for what, keys in _keys(compiled):
        start = schedule.start[what] if isinstance(what, int) else begin[what]
        ticks = start * costs.scale
        for key in keys:
            found[key] = ticks.numerator // ticks.denominator
    return found
