"""The annealer: rounds of melting and cooling, each from the best known layout.

The temperature of a round is determined on the instance itself, by the increase in cost: at the
same temperature, relative to the makespan, one graph is still frozen while another has lost all
structure. Rebuilding a melted layout takes a number of moves that grows with the graph; so there
are few rounds on large graphs, and on the largest nothing ever melts.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from optpart.base import clock
from optpart.kernels.compiled import Arrays
from optpart.kernels.rng import source
from optpart.search.annealer import Best, Heat, anneal
from optpart.search.evaluator import NOTHING, Evaluator, Value
from optpart.search.moves import MOVES, cumulative_shares, is_narrow
from optpart.search.plan import Layout, Plan, by_start
from optpart.search.repacking import Trial, repacking

#: A round melts the best layout until its cost has risen by one of these shares.
MELTS = (0.01, 0.03, 0.1, 0.3)

#: Probability of each of these shares.
_LIKELY = (0.15, 0.3, 0.35, 0.2)

#: The share of the first round: if the budget suffices for another one, and if not.
_FIRST, _ONLY = 0.1, 0.03

#: Temperatures of melting, as shares of the best cost: the first, until experience replaces it, and
#: the maximum.
_COLD, _HOTTEST = 3e-5, 0.1

#: Factor by which melting raises the temperature in each move per vertex, and maximal share of a
#: round that it takes.
_RAISE, _MELTING = 1.07, 0.1

#: Maximal moves per vertex between two evaluations of the cost while melting.
_MELTED = 5

#: Melting begins at this share of the temperature at which the last one ended.
_AGAIN = 0.1

#: A round ends at this share of the temperature at which cooling began.
_COOLING = 1 / 30

#: Share of the budget for improving the start without melting it.
_QUENCH = 0.02

#: Share of the budget of the first round, and the growth factor of each further round.
_ROUND, _LONGER = 0.05, 1.4

#: Minimal (if the budget allows) and maximal moves per vertex in a round: fewer cannot rebuild what
#: has melted, more are of little use. Both grow with the graph beyond this many vertices.
_NEEDED, _ENOUGH = 4000, 8000
_GROWING = 1000

#: Large units are repacked if the budget suffices for so many moves per vertex. Then the first
#: round has fewer of them, and trials have this share of all moves; between them, all melts as
#: usual.
_FOR_TRIALS, _BEFORE_TRIALS, _REPACKING = 3000, 1000, 0.8

#: Probability that a round melts as much as the last one if that one succeeded.
_FAITHFUL = 0.7

#: Seconds between two checks of clock and messages, or moves if the budget counts moves.
_SECONDS, _MOVES = 0.03, 1000

#: Additional seconds per vertex: everything is recomputed between two checks.
_PER_VERTEX = 1e-5

#: The least vertices of a graph of which the drain phase is searched first; the share of all idle
#: time that may be before it; and its vertices, as a multiple of those that come after devices
#: begin to idle, and at least: what runs late can change only together with what runs before it.
_DRAINED, _IDLE_BEFORE, _WIDER, _FEWEST = 10_000, 0.01, 2.0, 500

#: The least vertices of a graph that is searched in frames: see :mod:`optpart.search.annealer`.
_FRAMED = 30_000

#: Least and most vertices of a frame, and the temperature at which it begins, as a share of the
#: time that as many vertices take on average.
_NARROWEST, _WIDEST, _FRAME_HEAT = 500, 5000, 2e-3


@dataclass
class Round:
    """One round of melting and cooling.

    Attributes
    ----------
    melt : float
        Share by which the cost should rise.
    begin, end : float
        Shares of the budget at which it begins and ends.
    temperature : float
        As a share of the best cost: the last one of melting, the first one of cooling.
    cooling : float, optional
        Share of the budget at which cooling began; ``None`` before.
    fixed : int
        Number of vertices at the beginning of the order that stay as they are.
    framed : bool
        Whether each step changes one frame, and cools it.
    trial : Trial, optional
        The placement of large units that the round tries; it ends when that is done.
    """

    melt: float
    begin: float
    end: float
    temperature: float
    cooling: float | None = None
    fixed: int = 0
    framed: bool = False
    trial: Trial | None = None


class Climb:
    """The state of one searcher.

    Attributes
    ----------
    best : Layout
    value : tuple of float
        Value of the best layout: excess memory, primary and secondary objective; in the unit of
        :class:`~optpart.kernels.compiled.Arrays`.
    kinds : ndarray of int64, moves × 3
        By kind of move: numbers of moves that were evaluated, accepted, and led to a new best.
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
        transfers = evaluator.rules.communication != 0
        self._shares = cumulative_shares(
            placed=placed,
            transfers=transfers,
            narrow=is_narrow(evaluator.links),
            vertices=self._vertices,
        )
        self.moves = 0
        self.kinds = np.zeros((len(MOVES), 3), dtype=np.int64)
        self._since = NOTHING
        self._begun = self._spent = 0.0
        self._round: Round | None = None
        self._length = _ROUND
        self._batch = 200 if timed else _MOVES
        self.best = start
        self._met = self._empty()
        evaluator.enter(start)
        self.value = evaluator.value()
        self._repacking = None if placed else repacking(evaluator, self.value[1], rng)
        self._repacked = 0
        self._heat = 0.0

    @property
    def effort(self) -> int:
        """Return the effort so far, in equivalent annealing moves."""
        return self.moves

    @property
    def improvements(self) -> Counter[str]:
        """Return how often each operator led to a new best."""
        return Counter(dict(zip(MOVES, self.kinds[:, 2].tolist(), strict=True)))

    def offer(self, layout: Layout, value: Value) -> None:
        """Take another searcher's best into account; rounds from the next on start from it."""
        if value < self.value:
            self.best, self.value = layout, value

    def consider(self, layout: Layout) -> None:
        """Take a layout of unknown value into account."""
        self.evaluator.enter(layout)
        self.offer(layout, self.evaluator.value())

    def step(self, share: float) -> bool:
        """Search briefly; return whether the best layout improved.

        Parameters
        ----------
        share : float
            Share of the budget spent so far.
        """
        current = self._round
        if current is None or share >= current.end:
            current = self._next_round(share)
        before = clock.now()
        if current.framed:
            self._anneal_frame()
        elif current.trial is not None:
            self._anneal_trial(current, current.trial)
        elif current.cooling is None:
            self._melt(current, share)
        else:
            whole = current.end - current.cooling
            done = min(1.0, (share - current.cooling) / whole)
            # This step is likely to take as large a share of the round as the last one did.
            soon = min(1.0, done + max(0.0, share - self._spent) / whole)
            hot = current.temperature
            self._anneal(hot * _COOLING**done, hot * _COOLING**soon)
        self._spent = share
        seconds = max(clock.now() - before, 1e-6)
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
        last = self._round
        if last is None:
            self._begun = share
            fixed = self._before_drain()
            if fixed == 0 and self._in_frames():
                return self._next_frames(share)
            self._round = Round(0.0, share, share + _QUENCH, _COLD, share, fixed)
            return self._round
        if self._in_frames():
            return self._next_frames(share)
        # Estimated moves per vertex in the whole budget.
        rate = self.moves / max(share - self._begun, 1e-9) / max(1, self._vertices)
        if self._heat > 0.0 and rate >= _FOR_TRIALS and self._repacked < _REPACKING * self.moves:
            trial = self._next_trial(share)
            if trial is not None:
                return trial
        grown = max(1.0, self._vertices / _GROWING)
        length = min(max(self._length, grown * _NEEDED / rate), grown * _ENOUGH / rate)
        first = last.melt == 0.0 and last.trial is None
        if first and self._repacking is not None and rate >= _FOR_TRIALS:
            length = _BEFORE_TRIALS / rate
        left = max(1e-9, 1.0 - share)
        if length * 1.5 > left:
            length = left
        if first:
            melt = _FIRST if length < left else _ONLY
        elif last.trial is None and self.value < self._since and self.rng.random() < _FAITHFUL:
            melt = last.melt
        else:
            melt = float(self.rng.choice(MELTS, p=_LIKELY))
        cold = max(_COLD, _AGAIN * last.temperature)
        self._length *= _LONGER
        self._since = self.value
        self._round = Round(melt, share, share + length, cold)
        self._met = self._empty()
        self.evaluator.enter(self.best)
        return self._round

    def _in_frames(self) -> bool:
        """Return whether the whole graph is searched in frames."""
        at = self.evaluator
        whole = at.objective != "makespan" or at.rules.whole
        return self._vertices >= _FRAMED and not whole

    def _next_frames(self, share: float) -> Round:
        """Begin a round of frames, which lasts until the end."""
        self._round = Round(0.0, share, np.inf, 0.0, share, framed=True)
        self._met = self._empty()
        self.evaluator.enter(self.best)
        return self._round

    def _anneal_frame(self) -> None:
        """Draw a frame and anneal it; go back to the best layout if it becomes worse."""
        n = self._vertices
        size = int(_NARROWEST * (_WIDEST / _NARROWEST) ** self.rng.random())
        low = int(self.rng.integers(-size // 2, n - size // 2))
        self._met.value[:] = self.value
        hot = _FRAME_HEAT * size / n
        self._anneal(hot, hot * _COOLING, (max(0, low), min(n, low + size)))
        if self.evaluator.value() > tuple(self._met.value.tolist()):
            at = self._met if tuple(self._met.value.tolist()) < self.value else self.best
            self.evaluator.enter(Layout(at.device, at.order, at.eager))

    def _next_trial(self, share: float) -> Round | None:
        """Begin a round that tries another placement of large units, if there is one."""
        assert self._repacking is not None
        trial = self._repacking.next(self.best, self.value)
        if trial is None:
            return None
        self._round = Round(0.0, share, np.inf, self._heat, share, trial=trial)
        self._met = self._empty()
        self.evaluator.enter(trial.layout)
        return self._round

    def _anneal_trial(self, current: Round, trial: Trial) -> None:
        """Anneal the current stage of a trial; go on to the next stage or end the round."""
        assert self._repacking is not None
        self._batch = min(self._batch, trial.moves - trial.done)
        hot = current.temperature * trial.heat
        done = trial.done / trial.moves
        trial.done += self._batch
        soon = trial.done / trial.moves
        self._anneal(hot * _COOLING**done, hot * _COOLING**soon, arrays=trial.arrays)
        self._repacked += self._batch
        if trial.done < trial.moves:
            return
        value: Value = tuple(self._met.value.tolist())
        layout = Layout(self._met.device.copy(), self._met.order.copy(), self._met.eager.copy())
        if self._repacking.goes_on(trial, layout, value):
            self.evaluator.enter(layout)
        else:
            current.end = 0.0

    def _before_drain(self) -> int:
        """Return how many vertices stay while the start is improved: those before it drains."""
        at = self.evaluator
        # Idle time says nothing about traffic or memory, and queues delay what follows them.
        if at.objective != "makespan" or at.rules.whole:
            return 0
        return before_drain(at.plan)

    def _melt(self, current: Round, share: float) -> None:
        """Make moves at a temperature, and raise it until the best has melted."""
        before = self.moves
        self._batch = min(self._batch, max(1, _MELTED * self._vertices))
        cost = self._anneal(current.temperature, current.temperature)
        late = share - current.begin > _MELTING * (current.end - current.begin)
        if late or cost > 1.0 + current.melt or current.temperature >= _HOTTEST:
            current.cooling = share
            if self._repacking is not None and current.melt == _FIRST:
                self._heat = current.temperature
        else:
            current.temperature *= _RAISE ** ((self.moves - before) / max(1, self._vertices))

    # --- the compiled part -----------------------------------------------------------------

    def _empty(self) -> Best:
        n, t = self._vertices, self.evaluator.instance.graph.tensors
        return Best(
            np.array(NOTHING),
            np.zeros(n, dtype=np.int32),
            np.zeros(n, dtype=np.int32),
            np.zeros(t, dtype=np.bool_),
        )

    def _anneal(
        self,
        hot: float,
        cold: float,
        frame: tuple[int, int] | None = None,
        arrays: Arrays | None = None,
    ) -> float:
        """Make a batch of moves; return the plan's cost relative to the best.

        Parameters
        ----------
        arrays : Arrays, optional
            What replaces those of the instance.
        """
        at = self.evaluator
        weights = at.weights(self.value)
        first = max(self.value[1], 1e-300)
        fixed = 0 if self._round is None else self._round.fixed
        at.notes.frame[:] = frame or (fixed, self._vertices)
        cost = anneal(
            at.work if arrays is None else at.work.replaced(arrays=arrays),
            Heat(*weights, hot * first, cold * first),
            self._met,
            self._state,
            self._shares,
            self.kinds,
            self._batch,
        )
        self.moves += self._batch
        if frame:
            at.refresh()  # what is behind the frame has old times
        at.plan.order[:] = by_start(at.plan)
        at.refresh()
        return float(cost) / max(at.cost(self.value, weights), 1e-300)


def before_drain(p: Plan) -> int:
    """Return how many vertices of the order come before the drain phase; none if there are few.

    In a large graph, devices may be busy from the beginning until shortly before the end. The drain
    phase, after devices begin to idle, then decides how long the schedule is, and moves there cost
    little, however large the graph is, because little comes after them.

    The times of the plan are up to date.
    """
    n = len(p.order)
    if n < _DRAINED:
        return 0
    makespan = float(p.end.max())
    idle = p.start - np.where(p.before < 0, 0.0, p.end[p.before])
    used = p.last[p.last >= 0]
    idle[used] += makespan - p.end[used]
    spent = np.cumsum(idle[p.order])
    if not spent[-1] > 0.0:
        return 0
    since = int(np.searchsorted(spent, _IDLE_BEFORE * spent[-1]))
    return max(0, n - max(_FEWEST, int(_WIDER * (n - since))))
