"""Search: annealing from the best simple strategies, then large neighbourhoods."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optpart.applications.training.actions import decision, even, gradients, proportional, speeds
from optpart.applications.training.compiled import STANDARD
from optpart.applications.training.evaluator import Evaluator, unsupported
from optpart.applications.training.groups import along
from optpart.applications.training.makers.alpa import least_sum
from optpart.applications.training.makers.base import DEFAULT, Clock, Made, better, evaluate_exactly
from optpart.applications.training.makers.baselines import (
    in_blocks,
    in_turn,
    replicated,
    singles,
    spread,
)
from optpart.applications.training.makers.pipedream import least_bottleneck
from optpart.applications.training.makers.search_kernel import (
    Objective,
    Space,
    Walk,
    anneal,
    cost_of,
    rebuild,
)
from optpart.applications.training.makers.stages import staged
from optpart.applications.training.problem import StrategyProblem
from optpart.applications.training.strategy import Decision
from optpart.base.clock import OutOfTimeError, limited
from optpart.kernels.rng import source
from optpart.problem.graph import grouped
from optpart.solution.result import Budget

#: Runs of annealing, and the share of the budget that they have together.
_RUNS = 3
_ANNEALING = 0.6

#: Temperatures as parts of the makespan.
_HOT, _COLD = 0.02, 0.0002

#: Moves between two looks at the budget, if moves are counted; and seconds, if time is.
_MOVES = 250
_SECONDS = 0.1

#: Share of the budget after which no start is judged, and of each run for making new slots.
_JUDGING = 0.5
_MAKING = 0.1

#: Slots made between two looks at the budget.
_AT_ONCE = 8

#: Slots of one group at most; places of servers are left out first.
_MOST_SLOTS = 160

#: New counts of replicas that one round of large neighbourhoods tries, and how long a round is.
_NEW_COUNTS = 3
_ROUND = 40

#: The programmes of PipeDream and Alpa take time by the square of groups × devices. They are left
#: out if that square is larger than this times the seconds, or larger than the number of moves.
_SQUARE = 10_000

#: Limits of Alpa's program: its share of the seconds; its nodes, if moves are counted.
_SHARE = 0.1
_NODES = 100

Sync = Literal["ps", "allreduce"] | int | None

#: Replicas by device, and how their gradients are synchronised.
Slot = tuple[tuple[int, ...], Sync]


def search(problem: StrategyProblem, *, budget: Budget = DEFAULT, seed: int = 0) -> Made:
    """Improve the best of many simple strategies by annealing and large neighbourhoods.

    It starts from the four baselines of [G], replicas whose servers share the gradients, all single
    devices, blocks, round-robin and contiguous stages; if the budget allows it, also from the
    strategies of PipeDream and Alpa. Every strategy is evaluated exactly, and all starts are,
    whatever the budget, so that the result is at least as good as every start. The time to verify
    the result comes on top. With a deterministic limit, the same seed gives the same strategy.

    Notes
    -----
    Under options that :class:`~optpart.applications.training.evaluator.Evaluator` does not know, it
    searches with the defaults in their place, and judges what it finds and the starts as asked.
    Since that takes longer, starts are no longer judged once half of the seconds are spent and one
    is feasible; the remark says so.
    """
    clock = Clock(budget)
    foreign = unsupported(problem)
    known = replace(problem.options, **STANDARD, tick=problem.options.tick or Fraction(1))
    engine = _Search(replace(problem, options=known), clock, seed)
    starts = engine.ranked([*simple(problem), *from_peers(problem, clock)])
    remarks = [f"searched without {foreign}, judged with it"] if foreign else []
    kept = None
    if foreign or not engine.evaluator.exact_memory:
        kept, left = _judged(problem, starts, clock)
        if left:
            remarks.append(f"{left} of {len(starts)} starts not judged for want of time")
    made = evaluate_exactly(problem, engine.run(), clock, "found no strategy that the links allow")
    if kept is not None and not better(made, kept):
        made = kept
    reason = "; ".join(remarks) if made.feasible else made.reason
    return replace(made, reason=reason, moves=clock.moves, seconds=clock.seconds)


def _judged(
    problem: StrategyProblem, starts: Sequence[list[Decision]], clock: Clock
) -> tuple[Made | None, int]:
    """Judge starts, and return the best with the number of those for which time did not suffice."""
    best: Made | None = None
    for i, start in enumerate(starts):
        timed = clock.limit is None
        if best is not None and best.feasible and timed and clock.share > _JUDGING:
            return best, len(starts) - i
        made = evaluate_exactly(problem, start, clock)
        clock.moves += 1
        if best is None or better(made, best):
            best = made
    return best, 0


def simple(problem: StrategyProblem) -> Iterable[list[Decision]]:
    """Yield the strategies that take no search."""
    for counts in (proportional(problem), even(problem)):
        for found in (
            replicated(problem, counts, "allreduce"),
            replicated(problem, counts, "ps"),
            spread(problem, counts),
        ):
            if found is not None:
                yield found
    yield from singles(problem)
    yield in_blocks(problem)
    yield in_turn(problem)
    yield from staged(problem)


def from_peers(problem: StrategyProblem, clock: Clock) -> Iterable[list[Decision]]:
    """Yield the strategies of PipeDream and Alpa if they take a small part of the budget."""
    square = (len(problem.groups) * len(problem.cluster)) ** 2
    seconds, timed = clock.budget.seconds, clock.limit is None
    if square > (seconds * _SQUARE if timed else clock.limit or 0):
        return
    stages = least_bottleneck(problem)
    if stages is not None:
        yield stages.decisions(problem)
    found, _ = least_sum(problem, *((_SHARE * seconds, None) if timed else (None, _NODES)))
    if found is not None:
        yield found


class _Point(NamedTuple):
    """A strategy as slots, and its cost."""

    row: NDArray[np.int32]
    cost: float


class _Search:
    def __init__(self, problem: StrategyProblem, clock: Clock, seed: int) -> None:
        self.problem, self.clock = problem, clock
        self.rng = np.random.default_rng(seed)
        self.state = source(self.rng)
        self.evaluator = Evaluator(problem)
        self.summed = [bool(gradients(problem, g)) for g in range(len(problem.groups))]
        self.order = np.array(along(problem.graph, problem.groups), dtype=np.int32)
        self.near = _neighbours(problem)
        self.slots: list[Slot] = []
        self.column: dict[Slot, NDArray[np.int32]] = {}
        self.starts: list[list[Decision]] = []
        self.more: list[Slot] = []
        self.evaluations_per_second = 100.0

    def ranked(self, starts: list[list[Decision]]) -> list[list[Decision]]:
        """Evaluate strategies to start from, and return them, the best first.

        Those that lack memory come after those that fit, and those that lack a link come last.
        """
        outcomes = [self.evaluator.of(decisions) for decisions in starts]
        self.clock.moves += len(starts)

        def value(i: int) -> tuple[bool, Fraction, Fraction]:
            time, excess = outcomes[i]
            return time is None, excess, time or Fraction(0)

        self.starts = [starts[i] for i in sorted(range(len(starts)), key=value)]
        return self.starts

    def run(self) -> list[Decision] | None:
        """Return the best decisions found; ``None`` if the links allow none."""
        best = None
        if not self.clock.spent:
            own, self.more = self._first_slots()
            self._add(own)
            # Machine code that is still being compiled may come too late.
            with suppress(OutOfTimeError), limited(self.clock.seconds_left):
                for point in self._improved():
                    best = point
        if best is None:
            first = self.starts[0]
            return first if self.evaluator.of(first).makespan is not None else None
        return self._decisions(best.row) if np.isfinite(best.cost) else None

    def _improved(self) -> Iterator[_Point]:
        """Yield the best strategy after every step of the search."""
        points = [self._point(decisions) for decisions in self.starts[:_RUNS]]
        best = points[0]
        yield best
        for i in range(_RUNS):
            self._grow(_ANNEALING * i / _RUNS + _MAKING)
            # Every run but the first begins at another start.
            best = self._anneal(points[min(i, len(points) - 1)] if i else best, best, i)
            yield best
        yield self._large_neighbourhoods(best)

    # --- slots -----------------------------------------------------------------------------

    def _first_slots(self) -> tuple[list[Slot], list[Slot]]:
        """List the slots of all starts; and those of subsets of devices, and places of servers."""
        k = len(self.problem.cluster)
        own: dict[Slot, None] = {}
        for d in range(k):
            own[tuple(int(e == d) for e in range(k)), None] = None
        decisions = dict.fromkeys(d for start in self.starts for d in start if len(d.devices) > 1)
        used = dict.fromkeys(one.replicas for one in decisions)
        own.update(dict.fromkeys((counts, sync) for counts in used for sync in _SYNCS))
        own.update(dict.fromkeys((one.replicas, one.sync) for one in decisions))
        subsets = self._subsets()
        more = dict.fromkeys((counts, sync) for counts in subsets for sync in _SYNCS)
        for counts in dict.fromkeys((*used, *subsets)):
            more.update(dict.fromkeys((counts, p) for p in range(k) if counts[p]))
        rest = [slot for slot in more if slot not in own]
        return [*own], rest[: max(0, _MOST_SLOTS - len(own))]

    def _subsets(self) -> list[tuple[int, ...]]:
        """Return even and proportional replicas on servers, kinds, and the fastest devices."""
        cluster = self.problem.cluster
        k = len(cluster)
        speed = speeds(self.problem)
        fastest = sorted(range(k), key=lambda d: (-speed[d], d))
        sets = [fastest[:m] for m in range(2, k)]
        for labels in (cluster.servers, cluster.kinds):
            sets += [[d for d in range(k) if labels[d] == label] for label in {*labels}]
        sets.sort()
        whole = proportional(self.problem)
        found: dict[tuple[int, ...], None] = {}
        for devices in sets:
            if len(devices) > 1:
                found[tuple(int(d in devices) for d in range(k))] = None
                found[tuple(whole[d] if d in devices else 0 for d in range(k))] = None
        return [*found]

    def _grow(self, until: float) -> None:
        """Add more slots, as long as less than a share of the budget is spent."""
        timed = self.clock.limit is None
        while self.more and not (timed and self.clock.share > until):
            self._add(self.more[:_AT_ONCE])
            del self.more[:_AT_ONCE]

    def _add(self, slots: Iterable[Slot]) -> None:
        """Add slots, and rebuild what depends on them."""
        for slot in slots:
            if slot in self.column:
                continue
            column = np.array(
                [self._action(g, slot) for g in range(len(self.problem.groups))], dtype=np.int32
            )
            if (column >= 0).any():
                self.slots.append(slot)
                self.column[slot] = column
        self.evaluator.add_all_pairs()
        columns = [self.column[slot] for slot in self.slots]
        slots = np.ascontiguousarray(np.stack(columns, axis=1))
        self.space = Space(slots, self.order, *self.near, *_related(self.slots))
        self.objective = Objective(self.evaluator.tables(), self.evaluator.work, self.space)

    def _action(self, group: int, slot: Slot) -> int:
        """Return the number of a slot's action for a group; −1 if it is impossible."""
        counts, sync = slot
        if sum(counts) > self.problem.batch:
            return -1
        if isinstance(sync, int) and self.summed[group]:
            return self.evaluator.action(Decision(counts, sync))
        made = decision(self.problem, group, counts, "allreduce" if sync == "allreduce" else "ps")
        return -1 if made is None else self.evaluator.action(made)

    def _point(self, decisions: list[Decision]) -> _Point:
        """Return decisions as slots; all of them must be known."""
        row = [
            np.flatnonzero(self.space.slots[g] == self.evaluator.action(made))[0]
            for g, made in enumerate(decisions)
        ]
        return self._evaluated(np.array(row, dtype=np.int32))

    def _evaluated(self, row: NDArray[np.int32]) -> _Point:
        return _Point(row, cost_of(self.objective, row))

    def _decisions(self, row: NDArray[np.int32]) -> list[Decision]:
        return [
            self.evaluator.decisions[self.space.slots[g, slot]]
            for g, slot in enumerate(row.tolist())
        ]

    # --- annealing -------------------------------------------------------------------------

    def _anneal(self, start: _Point, best: _Point, number: int) -> _Point:
        """Anneal once, and return the better of what it finds and ``best``."""
        if not np.isfinite(start.cost):
            return best
        walk = Walk(
            row=start.row.copy(),
            best=start.row.copy(),
            old=start.row.copy(),
            costs=np.array([start.cost, start.cost]),
        )
        costs = walk.costs
        first, last = (_ANNEALING * (number + i) / _RUNS for i in range(2))

        while self.clock.share < last and not self.clock.spent:
            moves = self._chunk()
            share = (self.clock.share - first) / (last - first)
            cooled = (_COLD / _HOT) ** min(1.0, max(0.0, share))
            temperature, began = float(costs[1] * _HOT * cooled), time.perf_counter()
            anneal(self.objective, walk, moves, temperature, temperature, self.state)
            self._count(moves, began)
        return _Point(walk.best, float(costs[1])) if costs[1] < best.cost else best

    def _chunk(self) -> int:
        """Return the moves until the next look at the budget."""
        limit = self.clock.limit
        if limit is not None:
            return min(_MOVES, limit - self.clock.moves)
        return max(1, min(20_000, int(self.evaluations_per_second * _SECONDS)))

    def _left(self) -> int:
        """Return how many evaluations the budget still has."""
        limit = self.clock.limit
        if limit is not None:
            return limit - self.clock.moves
        return 1 + int(self.evaluations_per_second * self.clock.seconds_left)

    def _count(self, moves: int, began: float) -> None:
        self.clock.moves += moves
        self.evaluations_per_second = max(1.0, moves / max(1e-6, time.perf_counter() - began))

    # --- large neighbourhoods --------------------------------------------------------------

    def _large_neighbourhoods(self, best: _Point) -> _Point:
        """Free a few groups that are close, and repair them, until the budget is spent."""
        if not np.isfinite(best.cost):
            return best
        n = len(self.order)
        best = self._rebuilt(best, self.order, best)
        turn = 0
        while not self.clock.spent:
            turn += 1
            if turn % _ROUND == 0:
                best = self._new_counts(best)
            free = self._close(min(n, int(self.rng.integers(3, 7))))
            row = best.row.copy()
            for g in free:
                if self.rng.random() < 0.5:
                    possible = np.flatnonzero(self.space.slots[g] >= 0)
                    row[g] = self.rng.choice(possible)
            self.clock.moves += 1
            best = self._rebuilt(self._evaluated(row), free, best)
        return best

    def _rebuilt(self, point: _Point, free: NDArray[np.int32], best: _Point) -> _Point:
        """Rebuild groups, and return the better of the result and ``best``."""
        row, costs = point.row.copy(), np.array([point.cost])
        while True:
            before = float(costs[0])
            for first in range(0, len(free), 8):
                if self.clock.spent:
                    break
                some = free[first : first + 8]
                moves, began = self._left(), time.perf_counter()
                done = rebuild(self.objective, row, costs, some, moves)
                self._count(max(1, done), began)
            if costs[0] >= before or self.clock.spent or len(free) <= 8:
                break
        return _Point(row, float(costs[0])) if costs[0] < best.cost else best

    def _close(self, size: int) -> NDArray[np.int32]:
        """Draw groups that are close: a run, or a group and those around it."""
        n = len(self.order)
        place = int(self.rng.integers(n))
        if self.rng.random() < 0.5:
            return self.order[np.arange(place, place + size) % n]
        start, near = self.near
        found = [int(self.order[place])]
        for g in found:
            around = near[start[g] : start[g + 1]]
            for other in self.rng.permutation(around).tolist():
                if len(found) < size and other not in found:
                    found.append(other)
        return np.array(found, dtype=np.int32)

    def _new_counts(self, best: _Point) -> _Point:
        """Offer the replicas of the best strategy with one more or less on a device."""
        decisions = self._decisions(best.row)
        used = sorted({one.replicas for one in decisions if len(one.devices) > 1})
        known = {counts for counts, _ in self.slots}
        fresh = []
        for counts in used:
            for d in range(len(counts)):
                for step in (-1, 1):
                    other = tuple(c + step * (e == d) for e, c in enumerate(counts))
                    if min(other) >= 0 and sum(1 for c in other if c) > 1 and other not in known:
                        fresh.append(other)
        if not fresh:
            return best
        chosen = self.rng.permutation(len(fresh))[:_NEW_COUNTS].tolist()
        # Drop what is not used, so that the table does not grow.
        kept = set(best.row.tolist())
        while len(self.slots) > _MOST_SLOTS:
            worst = next((s for s in range(len(self.slots) - 1, -1, -1) if s not in kept), None)
            if worst is None:
                break
            del self.column[self.slots.pop(worst)]
            kept = {slot - (slot > worst) for slot in kept}
        self._add((fresh[i], sync) for i in chosen for sync in _SYNCS)
        self.clock.moves += 1
        return self._point(decisions)


_SYNCS: tuple[Sync, ...] = ("allreduce", "ps")


def _related(slots: Sequence[Slot]) -> Iterator[NDArray[np.int32]]:
    """Yield the related slots of each slot, and the slots with the same replicas: starts, list."""
    counts = np.array([slot[0] for slot in slots])
    sync = np.unique([str(slot[1]) for slot in slots], return_inverse=True)[1]
    single = (counts > 0).sum(axis=1) == 1
    distance = np.abs(counts[:, None] - counts).sum(axis=2)
    alike = (sync[:, None] == sync) | single[:, None] | single
    near = (distance == 0) | (single[:, None] & single) | ((distance == 1) & alike)
    np.fill_diagonal(near, val=False)
    for related in (near, distance == 0):
        one, two = np.nonzero(related)
        yield np.searchsorted(one, np.arange(len(slots) + 1)).astype(np.int32)
        yield two.astype(np.int32)


def _neighbours(problem: StrategyProblem) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the groups that share an edge with each group."""
    group = problem.group_of
    ends = [(group[edge.producer], group[edge.consumer]) for edge in problem.graph.edges]
    pairs = {pair for g, h in ends if g != h for pair in ((g, h), (h, g))}
    listed = np.array(sorted(pairs), dtype=np.int32).reshape(-1, 2)
    start, order = grouped(listed[:, 0].copy(), len(problem.groups))
    return start, listed[order, 1].copy()
