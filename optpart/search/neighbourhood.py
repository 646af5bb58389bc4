"""Large-neighbourhood search: destroy, then repair greedily or by CP-SAT."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from alns import ALNS
from alns.accept import HillClimbing, LateAcceptanceHillClimbing
from alns.select import SegmentedRouletteWheel
from alns.stop import MaxIterations, MaxRuntime

from optpart.exact.messages import Limits
from optpart.exact.process import TOO_LARGE, answer
from optpart.search.destroy import FREEING
from optpart.search.evaluator import Evaluator, Value
from optpart.search.part import cut, merged
from optpart.search.plan import Layout
from optpart.search.repair import earliest_finish, regret
from optpart.search.state import State, valued

WORKER = "optpart.search.part_worker"

#: Scores of an operator for a new best, a better, an accepted and a rejected layout; the share of
#: its old weight that it keeps at each update; and the tries between updates.
_SCORES, _KEPT, _SEGMENT = [5.0, 2.0, 1.0, 0.2], 0.8, 50

#: Seconds of one step by greedy repair, or its tries if the budget counts moves.
_SECONDS, _TRIES = 0.1, 50

#: Approximate minimum and maximum number of vertices freed for greedy repair.
_FEWEST, _MOST = 4, 40

#: A greedy repair is accepted if it beats the layout of this many tries ago.
_LATE = 300

#: Initial time limit of the solver for a part, in seconds; it is multiplied by ``_MORE`` after
#: ``_PATIENCE`` failures, up to this share of the budget.
_PART, _PATIENCE, _MORE, _LONGEST = 0.5, 10, 2.0, 0.3

#: A time limit that is never reached; if the budget counts moves, the solver's limit is
#: deterministic.
_PLENTY = 600.0

#: Equivalent annealing moves of one neighbourhood.
_GREEDY, _EXACT = 50, 50_000

#: Initial number of vertices freed for the solver, and the factor by which it changes.
_FREED, _GROWS, _SHRINKS = 20, 1.1, 0.9

Operator = Callable[[State, np.random.Generator], State]


class Neighbourhoods:
    """Base class of greedy and exact repair: operators, their weights, the best layout.

    Selection, acceptance and iteration are those of the package ``alns``.

    Attributes
    ----------
    best : Layout
    value : tuple of float
    moves : int
        Neighbourhoods tried.
    effort : int
        Their effort, in equivalent annealing moves.
    improvements : Counter
        Number of new bests per operator.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        start: Layout,
        rng: np.random.Generator,
        repairs: dict[str, Operator],
        accept: Callable[[], Any],
        size: int,
        weight: int,
    ) -> None:
        self.evaluator = evaluator
        self.rng = rng
        self.moves = 0
        self.improvements: Counter[str] = Counter()
        self._alns = ALNS(rng)
        for free in FREEING:
            self._alns.add_destroy_operator(free)
        for name, repair in repairs.items():
            self._alns.add_repair_operator(repair, name=name)
        for listen in (self._alns.on_accept, self._alns.on_better, self._alns.on_best):
            listen(self._keep)
        self._accepting = accept
        self._accept = accept()
        self._select = SegmentedRouletteWheel(_SCORES, _KEPT, _SEGMENT, len(FREEING), len(repairs))
        self._size = size
        self._weight = weight
        self.best, self.value = start, self._enter(start)

    @property
    def effort(self) -> int:
        """Return the effort so far, in equivalent annealing moves."""
        return self._weight * self.moves

    def offer(self, layout: Layout, value: Value) -> None:
        """Take another searcher's best into account and go on from it."""
        if value < self.value:
            self.best, self.value = layout, value
            self._enter(layout)

    def _enter(self, layout: Layout) -> Value:
        at = self.evaluator
        at.enter(layout)
        value = at.value()
        self._now = valued(at, at.weights(value), self._size)
        # Earlier costs had other weights.
        self._accept = self._accepting()
        return value

    def _keep(self, state: State, rng: np.random.Generator) -> None:
        self._now = state

    def _iterate(self, stop: Any) -> bool:
        """Try neighbourhoods until it is time to stop; return whether the best layout improved."""
        start = replace(self._now, size=self._size)
        found = self._alns.iterate(start, self._select, self._accept, stop)
        # The first objective value is that of the start.
        self.moves += len(found.statistics.objectives) - 1
        best = found.best_state
        assert isinstance(best, State)
        if not best.value < self.value:
            return False
        self.best, self.value = best.layout, best.value
        # The operator that led to the best of these tries; at most one is a global best.
        improvements = found.statistics.destroy_operator_counts
        self.improvements[max(improvements, key=lambda name: improvements[name][0])] += 1
        return True


class Greedy(Neighbourhoods):
    """Repair by insertion: thousands of neighbourhoods per second."""

    def __init__(
        self, evaluator: Evaluator, start: Layout, rng: np.random.Generator, *, timed: bool
    ) -> None:
        repairs: dict[str, Operator] = {"earliest-finish": earliest_finish, "regret": regret}
        accept = partial(LateAcceptanceHillClimbing, _LATE)
        super().__init__(evaluator, start, rng, repairs, accept, _FEWEST, _GREEDY)
        self._timed = timed

    def step(self, share: float) -> bool:
        """Try some neighbourhoods; return whether the best layout improved."""
        self._size = int(self.rng.integers(_FEWEST, _MOST + 1))
        return self._iterate(MaxRuntime(_SECONDS) if self._timed else MaxIterations(_TRIES))


class Exact(Neighbourhoods):
    """Repair by CP-SAT in a separate process: a crash there costs only one neighbourhood."""

    def __init__(
        self,
        evaluator: Evaluator,
        start: Layout,
        rng: np.random.Generator,
        *,
        seconds: float | None,
        memory: int | None = None,
    ) -> None:
        repairs: dict[str, Operator] = {"cpsat": self._solved}
        super().__init__(evaluator, start, rng, repairs, HillClimbing, _FREED, _EXACT)
        self._timed = seconds is not None
        self._memory = memory
        self._budget = self._left = seconds or 0.0
        self._longest = max(_PART, _LONGEST * self._budget)
        self._seconds = _PART
        self._vain = 0

    def step(self, share: float) -> bool:
        """Try one neighbourhood; return whether the best layout improved."""
        self._left = (1.0 - share) * self._budget
        better = self._iterate(MaxIterations(1))
        self._vain = 0 if better else self._vain + 1
        if better:
            self._seconds = _PART
        elif self._vain % _PATIENCE == 0:
            self._seconds = min(self._longest, _MORE * self._seconds)
        return better

    def _solved(self, state: State, rng: np.random.Generator) -> State:
        """Let the solver place the freed units."""
        part = cut(state, rng)
        if part is None:
            return state
        seed = int(rng.integers(0, 2**31))
        limits = Limits(max(0.0, min(self._seconds, self._left)), 1, seed, None, self._memory)
        if not self._timed:
            limits = Limits(_PLENTY, 1, seed, self._seconds, self._memory)
        answered = answer(WORKER, part, limits, what="the solver of parts")
        found = answered.found
        if answered.status == TOO_LARGE:
            self._size = self._fitting(closed=False)
            return state
        if not answered.status:
            return state
        self._size = self._fitting(closed=answered.status == "OPTIMAL")
        if found is None or found.start is None:
            return state
        layout = merged(state, part, found.placement.tolist(), found.start.tolist())
        self.evaluator.enter(layout)
        return valued(self.evaluator, state.weights, self._size)

    def _fitting(self, *, closed: bool) -> int:
        """Return how many vertices to free so that the solver closes about half of the parts."""
        n = self.evaluator.instance.vertices
        size = self._size * _GROWS + 1 if closed else self._size * _SHRINKS
        return int(min(max(size, _FEWEST), n))
