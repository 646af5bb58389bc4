"""The best strategy of some choices together with the best order, proven."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from optpart.applications.training.bounds.costs import Costs
from optpart.applications.training.bounds.joint import JointModel
from optpart.applications.training.bounds.milp import Key, horizon
from optpart.applications.training.bounds.program import Program
from optpart.applications.training.bounds.rows import Rows
from optpart.applications.training.compiled import Compiled, VertexKind, by_rank
from optpart.applications.training.compiler import compile_strategy, memory_violation
from optpart.applications.training.evaluator import Evaluator, unsupported
from optpart.applications.training.problem import Choices
from optpart.applications.training.strategy import ALL, Strategy
from optpart.base.errors import InputError, OptpartError
from optpart.solution.result import Status
from optpart.solution.schedule import Schedule, crossings, retime

#: Share of the time for the linear program, and for the search of a first strategy.
_BOUNDING = 0.2
_STARTING = 0.1

#: Strategies that are improved before the model begins.
_STARTS = 4

#: Neighbouring strategies that are evaluated at a time.
_NEAR = 4000


class _Best(NamedTuple):
    strategy: Strategy
    chosen: tuple[int, ...]
    compiled: Compiled
    schedule: Schedule
    makespan: Fraction


@dataclass(frozen=True)
class Joint:
    """The best strategy of some choices, and the proven bound.

    Attributes
    ----------
    status : Status
        ``OPTIMAL`` if the verifier accepts the schedule, and its makespan equals the bound.
    bound : Fraction or None
        No strategy of the choices takes less, in any order.
    program : Fraction or None
        The bound of the linear program, which the model began with.
    refused : int
        Strategies whose best order, memory apart, exceeds the memory that changes with time. Such
        a strategy may fit in another order, so that the bound stays below its time.
    strategy, chosen, compiled, schedule, makespan : optional
        The best found: its decisions, the numbers of its actions, its instance, its order, and
        nanoseconds.
    """

    status: Status
    bound: Fraction | None
    program: Fraction | None
    refused: int
    seconds: float
    strategy: Strategy | None = None
    chosen: tuple[int, ...] | None = None
    compiled: Compiled | None = None
    schedule: Schedule | None = None
    makespan: Fraction | None = None


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
        found = Program(self.rows).solve(max(0.1, _BOUNDING * self.seconds))
        self.program = self.bound = found.ticks
        if found.ticks is None:
            return self._result()
        rounded = tuple(int(share.argmax()) for share in found.point)
        for chosen in self._first([*map(tuple, starts), rounded]):
            compiled = self._compiled(chosen)
            if compiled is not None:
                self._keep(chosen, compiled, by_rank(compiled))
        while self._left() > 0 and not self._reached():
            model = JointModel(self.rows, self.bound or 0, self._most(), found.multipliers.cuts)
            for chosen in self.refused:
                model.forbid(chosen)
            if self.best is not None:
                known = starts_of(self.best.compiled, self.best.schedule, self.rows.costs)
                model.hint(self.best.chosen, known)
            solution = model.solve(max(0.05, self._left()), self.workers, self.seed)
            if solution.status == "INFEASIBLE":
                # Everything that is shorter than the best known is excluded, or refused.
                if not self.refused:
                    self.bound = None if self.best is None else self._most() + 1
                break
            if not self.refused:
                assert self.bound is not None
                self.bound = max(self.bound, min(solution.bound, self._most() + 1))
            if solution.best is None:
                continue
            chosen, times = solution.best
            compiled = self._compiled(chosen)
            if compiled is None:
                raise OptpartError("the joint model uses a missing link; please report this")
            order = _order(compiled, times)
            schedule = retime(compiled.instance, compiled.placement, order)
            if not self._keep(chosen, compiled, schedule):
                self.refused.append(chosen)
            elif solution.status == "OPTIMAL":
                break
        return self._result()

    def _left(self) -> float:
        return self.seconds - (time.perf_counter() - self.begin)

    def _reached(self) -> bool:
        if self.best is None or self.bound is None:
            return False
        return self.best.makespan <= self.rows.costs.time(self.bound)

    def _most(self) -> int:
        """Return the largest makespan that is of interest, in ticks."""
        if self.best is None:
            return horizon(self.rows)
        ticks = self.best.makespan * self.rows.costs.scale
        return -(-ticks.numerator // ticks.denominator) - 1

    def _first(self, starts: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
        """Return a good strategy: the best start, improved group by group."""
        actions, problem = self.choices.actions, self.choices.problem
        alike = min(map(len, actions))
        starts = [*starts, *((a,) * len(actions) for a in range(alike))]
        if unsupported(problem):
            return starts[:3]
        evaluator = Evaluator(problem)
        numbers = [evaluator.actions(row) for row in actions]
        deadline = time.perf_counter() + _STARTING * self.seconds

        def values(rows: list[tuple[int, ...]]) -> list[tuple[int, Fraction]]:
            chosen = np.array([[numbers[g][a] for g, a in enumerate(row)] for row in rows])
            outcomes = map(evaluator.outcome, evaluator.many(chosen.astype(np.int32)))
            return [
                (2, Fraction(0)) if time is None else (int(excess > 0), time)
                for time, excess in outcomes
            ]

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
        sizes = self.rows.sizes
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

    def _compiled(self, chosen: Sequence[int]) -> Compiled | None:
        problem, strategy = self.choices.problem, self.choices.strategy(chosen)
        try:
            return compile_strategy(problem.graph, problem.cluster, strategy, problem.options)
        except InputError:  # a link is missing
            return None

    def _keep(self, chosen: tuple[int, ...], compiled: Compiled, schedule: Schedule) -> bool:
        """Keep a schedule if it fits memory and is better; return whether it fits."""
        if memory_violation(compiled, schedule) is not None:
            return False
        makespan = schedule.makespan(compiled.instance)
        if self.bound is not None and makespan < self.rows.costs.time(self.bound):
            raise OptpartError("a strategy takes less than a proven bound; please report this")
        if self.best is None or makespan < self.best.makespan:
            self.best = _Best(compiled.strategy, chosen, compiled, schedule, makespan)
        return True

    def _result(self) -> Joint:
        time_of, best = self.rows.costs.time, self.best
        bound = None if self.bound is None else time_of(self.bound)
        if best is not None:
            if bound is None:
                raise OptpartError("a strategy exists that was excluded; please report this")
            status = Status.OPTIMAL if best.makespan == bound else Status.FEASIBLE
        else:
            status = Status.INFEASIBLE if self.bound is None else Status.UNKNOWN
        return Joint(
            status,
            bound,
            None if self.program is None else time_of(self.program),
            len(self.refused),
            time.perf_counter() - self.begin,
            *(best or ()),
        )


# --- from the model to schedules and back --------------------------------------------------------


def _keys(compiled: Compiled) -> Iterator[tuple[int | tuple[int, int], list[Key]]]:
    """Yield every vertex and crossing with the keys that the model may know it by."""
    instance, graph = compiled.instance, compiled.instance.graph
    names = {VertexKind.SPLIT: "split", VertexKind.CONCAT: "concat", VertexKind.ADDN: "add"}
    for v, (kind, o, output, d, samples, _) in enumerate(compiled.vertices):
        if kind is VertexKind.REPLICA:
            yield v, [("run", o, 0, d, d, None)]
        elif kind is VertexKind.ALLREDUCE:
            yield v, [("allreduce", o, output, 0, 0, None)]
        else:
            keys: list[Key] = [(names[kind], o, output, d, d, None)]
            yield v, [*keys, (*keys[0][:-1], samples)] if kind is VertexKind.CONCAT else keys
    for tensor, e in crossings(instance, compiled.placement):
        u, i = int(graph.tensor_vertex[tensor]), int(graph.tensor_output[tensor])
        kind, o, output, d, samples, _ = compiled.vertices[u]
        if max(d, e) >= len(compiled.cluster):
            continue  # to or from the queue of collectives, which takes no time
        if kind is VertexKind.ADDN:
            yield (tensor, e), [("down", o, output, d, e, None)]
            continue
        if kind is VertexKind.SPLIT:
            samples = compiled.parts[u][i]
        else:
            output = i
        parts = None, ALL if i < 0 else samples, ALL
        keys = [("transfer", o, output, d, e, part) for part in parts]
        yield (tensor, e), [*keys, ("up", o, output, d, e, None)]


def _order(compiled: Compiled, times: Mapping[Key, tuple[int, int]]) -> list[int | tuple[int, int]]:
    """Sort the vertices and crossings of an instance by start, then end, producers first.

    ``times`` are starts and ends in ticks.
    """
    graph = compiled.instance.graph
    position = {v: i for i, v in enumerate(graph.topological_order.tolist())}
    found: list[tuple[tuple[int, int, int, int], int | tuple[int, int]]] = []
    for what, keys in _keys(compiled):
        start, end = next(times[key] for key in keys if key in times)
        crosses = not isinstance(what, int)
        u = what if isinstance(what, int) else int(graph.tensor_vertex[what[0]])
        found.append(((start, end, position[u], int(crosses)), what))
    found.sort(key=lambda pair: pair[0])
    return [what for _, what in found]


def starts_of(compiled: Compiled, schedule: Schedule, costs: Costs) -> dict[Key, int]:
    """Return the starts of a schedule in ticks, by every key that the model may know them by."""
    moves = schedule.transfers
    begin = dict(
        zip(
            zip(moves.tensor.tolist(), moves.target.tolist(), strict=True),
            moves.start.fractions(),
            strict=True,
        )
    )
    found: dict[Key, int] = {}
    for what, keys in _keys(compiled):
        start = schedule.start[what] if isinstance(what, int) else begin[what]
        ticks = start * costs.scale
        found |= dict.fromkeys(keys, ticks.numerator // ticks.denominator)
    return found
