"""A searcher that anneals: rounds of cooling, each from the best known, at what heat pays."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass

import numpy as np

from optpart.search.anneal import Best, Heat, anneal
from optpart.search.draw import source
from optpart.search.evaluator import NOTHING, Evaluator, Value
from optpart.search.moves import MOVES, ORDER_SHARES, SHARES
from optpart.search.plan import Layout, by_start

#: First temperatures of a round as shares of the objective, cold to hot: large graphs melt at
#: temperatures at which small ones are still frozen.
HEATS = (3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2)

#: Moves per vertex in a round from which on the next heat is the usual one.
_COOLABLE = (30, 100, 1000, 2000, 4000)

#: A round ends at this share of the temperature that it began with.
_COOLING = 1 / 30

#: The first round takes this share of the budget, each further one so many times as much.
_ROUND, _LONGER = 0.05, 1.4

#: Moves per vertex of which more are of little use in one round.
_ENOUGH = 8000

#: How often a round keeps the heat of the last one if that has paid.
_FAITHFUL = 0.7

#: Seconds between two looks at clock and messages, and moves between them where moves are counted.
_SECONDS, _MOVES = 0.03, 1000

#: Seconds more per vertex: between two looks everything is computed anew.
_PER_VERTEX = 1e-5


@dataclass
class Round:
    """One cooling: its heat by number, and from which to which share of the budget it lasts."""

    heat: int
    begin: float
    end: float


class Climb:
    """The state of one searcher.

    Attributes
    ----------
    best : Layout
    value : tuple of float
        Of the best: excess of memory, what counts first and second; in the unit of
        :class:`~optpart.compiled.Arrays`.
    kinds : ndarray of int64, moves × 3
        By kind of move: how many were evaluated, accepted, and led to a new best.
    """

    def __init__(
        self, evaluator: Evaluator, start: Layout, rng: np.random.Generator, *, timed: bool
    ) -> None:
        self.evaluator = evaluator
        self._vertices = evaluator.instance.vertices
        self.rng = rng
        self.timed = timed
        self._state = source(rng)
        placed = bool((evaluator.instance.allowed.sum(axis=1) == 1).all())
        shares = np.array(ORDER_SHARES if placed else SHARES, dtype=np.float64)
        if evaluator.rules.communication == 0:
            shares[MOVES.index("transfer")] = 0.0
        self._shares = np.cumsum(shares / shares.sum())
        self.moves = 0
        self.kinds = np.zeros((len(MOVES), 3), dtype=np.int64)
        self._since = NOTHING
        self._spent = 0.0
        self._round: Round | None = None
        self._length = _ROUND
        self._batch = 200 if timed else _MOVES
        self.best = start
        self._met = self._empty()
        evaluator.enter(start)
        self.value = evaluator.value()

    @property
    def effort(self) -> int:
        """Return about how many moves of annealing what was done took."""
        return self.moves

    @property
    def paid(self) -> Counter[str]:
        """Return how often each operator led to a new best."""
        return Counter(dict(zip(MOVES, self.kinds[:, 2].tolist(), strict=True)))

    def offer(self, layout: Layout, value: Value) -> None:
        """Take another searcher's best into account; rounds from the next on start from it."""
        if value < self.value:
            self.best, self.value = layout, value

    def consider(self, layout: Layout) -> None:
        """Take a layout into account whose value is not known."""
        self.evaluator.enter(layout)
        self.offer(layout, self.evaluator.value())

    def step(self, share: float) -> bool:
        """Search for a moment; return whether the best has become better.

        Parameters
        ----------
        share : float
            How much of the budget is spent.
        """
        current = self._round
        if current is None or share >= current.end:
            current = self._next_round(share)
        whole = current.end - current.begin
        done = min(1.0, (share - current.begin) / whole)
        # As much of the round as the last step took is likely to be spent in this one.
        soon = min(1.0, done + max(0.0, share - self._spent) / whole)
        self._spent = share
        hot = HEATS[current.heat]
        before = time.perf_counter()
        self._anneal(hot * _COOLING**done, hot * _COOLING**soon)
        seconds = max(time.perf_counter() - before, 1e-6)
        if self.timed:
            batch = self._batch * (_SECONDS + _PER_VERTEX * self._vertices) / seconds
            self._batch = int(min(max(batch, 20), 4 * self._batch))
        value: Value = tuple(self._met.value.tolist())
        if not value < self.value:
            return False
        self.best = Layout(self._met.device.copy(), self._met.order.copy(), self._met.eager.copy())
        self.value = value
        return True

    # --- rounds ----------------------------------------------------------------------------

    def _next_round(self, share: float) -> Round:
        # Moves per vertex and whole budget, as far as can be told.
        rate = self.moves / max(share, 1e-9) / max(1, self._vertices)
        left = max(1e-9, 1.0 - share)
        length = min(self._length, _ENOUGH / rate) if rate > 0 else self._length
        if length * 1.5 > left:
            length = left
        heat = self._heat(rate * length)
        self._length *= _LONGER
        self._since = self.value
        self._round = Round(heat, share, share + length)
        self._met = self._empty()
        self.evaluator.enter(self.best)
        return self._round

    def _heat(self, moves: float) -> int:
        """Stay with a heat that has just paid, or draw one near what a round's moves can cool.

        Parameters
        ----------
        moves : float
            Per vertex, in the round.
        """
        last = self._round
        if last is not None and self.value < self._since and self.rng.random() < _FAITHFUL:
            return last.heat
        usual = sum(moves >= most for most in _COOLABLE)
        heat = usual + int(self.rng.choice((-1, 0, 0, 1)))
        return min(max(heat, 0), len(HEATS) - 1)

    # --- the compiled part -----------------------------------------------------------------

    def _empty(self) -> Best:
        n, t = self._vertices, self.evaluator.instance.graph.tensors
        return Best(
            np.array(NOTHING),
            np.zeros(n, dtype=np.int32),
            np.zeros(n, dtype=np.int32),
            np.zeros(t, dtype=np.bool_),
        )

    def _anneal(self, hot: float, cold: float) -> None:
        at = self.evaluator
        first = max(self.value[1], 1e-300)
        anneal(
            at.arrays,
            at.links,
            at.rules,
            at.plan,
            at.notes,
            at.execution,
            at.crossed,
            Heat(*at.weights(self.value), hot * first, cold * first),
            self._met,
            self._state,
            self._shares,
            self.kinds,
            self._batch,
        )
        self.moves += self._batch
        at.plan.order[:] = by_start(at.plan)
        at.refresh()
