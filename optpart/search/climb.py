"""One searcher: rounds of simulated annealing, each from the best known, at what heat pays."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from optpart.compiled import Arrays, arrays, kernel
from optpart.goal import Objective
from optpart.instance import Instance
from optpart.schedule import Schedule, retime
from optpart.search.anneal import Best, Heat, anneal, latest
from optpart.search.change import notes
from optpart.search.draw import source
from optpart.search.execute import EDGES, Execution, Rules, excess, execute, execution, rules
from optpart.search.moves import MOVES, ORDER_SHARES, SHARES
from optpart.search.plan import Layout, Links, Plan, by_start, empty_plan, links, load, rebuild
from optpart.search.traffic import Crossed, count_all, crossed

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

#: Weight of what counts second, against what counts first.
_SECOND = 1e-5

#: Memory beyond a capacity counts as if the schedule were so many times as long as it is above it.
_EXCESS = 4.0

#: Excess of memory, what counts first, what counts second: smaller is better.
Value = tuple[float, float, float]

_NOTHING: Value = (np.inf, np.inf, np.inf)


@dataclass
class Round:
    """One cooling: its heat by number, and from which to which share of the budget it lasts."""

    heat: int
    begin: float
    end: float


@dataclass
class Tally:
    """What has been done: moves made, and per kind how many were evaluated, accepted, best."""

    moves: int = 0
    kinds: np.ndarray[Any, np.dtype[np.int64]] = field(
        default_factory=lambda: np.zeros((len(MOVES), 3), dtype=np.int64)
    )


class Climb:
    """The state of one searcher.

    Attributes
    ----------
    best : Layout
    value : tuple of float
        Of the best: excess of memory, what counts first and second; in the unit of
        :class:`~optpart.compiled.Arrays`.
    tally : Tally
    """

    def __init__(
        self,
        instance: Instance,
        start: Layout,
        objective: Objective,
        rng: np.random.Generator,
        *,
        timed: bool,
    ) -> None:
        self.instance = instance
        self.objective = objective
        self.rng = rng
        self.timed = timed
        self._arrays = arrays(instance)
        self._links = links(instance)
        self._rules = rules(instance)
        self._plan = empty_plan(instance)
        self._notes = notes(instance.vertices, len(self._arrays.in_source))
        self._execution = execution(instance, self._rules)
        sizes = instance.graph.tensor_size.floats
        counts = objective != "makespan"
        self._crossed = crossed(sizes, instance.devices, len(self._arrays.in_source), counts)
        self._state = source(rng)
        placed = bool((instance.allowed.sum(axis=1) == 1).all())
        shares = np.array(ORDER_SHARES if placed else SHARES, dtype=np.float64)
        if self._rules.communication == 0:
            shares[MOVES.index("transfer")] = 0.0
        self._shares = np.cumsum(shares / shares.sum())
        self.tally = Tally()
        self._since = _NOTHING
        self._spent = 0.0
        self._round: Round | None = None
        self._length = _ROUND
        self._moves = 200 if timed else _MOVES
        self.best = start
        self.value = _NOTHING
        self._met = self._empty()
        self._enter(start)
        self.value = self._value()

    def offer(self, layout: Layout, value: Value) -> None:
        """Take another searcher's best into account; rounds from the next on start from it."""
        if value < self.value:
            self.best, self.value = layout, value

    def consider(self, layout: Layout) -> None:
        """Take a layout into account whose value is not known."""
        self._enter(layout)
        value = self._value()
        self.offer(layout, value)

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
            self._moves = int(min(max(self._moves * _SECONDS / seconds, 20), 4 * self._moves))
        value: Value = tuple(self._met.value.tolist())
        if not value < self.value:
            return False
        self.best = Layout(self._met.device.copy(), self._met.order.copy(), self._met.eager.copy())
        self.value = value
        return True

    def schedule(self, layout: Layout) -> Schedule:
        """Return the schedule of a layout in exact time."""
        order: list[int | tuple[int, int]] = layout.order.tolist()
        if self._rules.whole:
            plan = empty_plan(self.instance)
            load(plan, layout)
            rebuild(self._arrays, self._links, plan)
            _carry_out(self._arrays, self._links, self._rules, plan, self._execution)
            n, k = self.instance.vertices, self.instance.devices
            items = self._execution.items[: self._execution.run[1]].tolist()
            order = [item if item < n else divmod(item - n, k) for item in items]
        return retime(self.instance, layout.device, order)

    # --- rounds ----------------------------------------------------------------------------

    def _next_round(self, share: float) -> Round:
        # Moves per vertex and whole budget, as far as can be told.
        rate = self.tally.moves / max(share, 1e-9) / max(1, self.instance.vertices)
        left = max(1e-9, 1.0 - share)
        length = min(self._length, _ENOUGH / rate) if rate > 0 else self._length
        if length * 1.5 > left:
            length = left
        heat = self._heat(rate * length)
        self._length *= _LONGER
        self._since = self.value
        self._round = Round(heat, share, share + length)
        self._met = self._empty()
        self._enter(self.best)
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
        n, t = self.instance.vertices, self.instance.graph.tensors
        return Best(
            np.array(_NOTHING),
            np.zeros(n, dtype=np.int32),
            np.zeros(n, dtype=np.int32),
            np.zeros(t, dtype=np.bool_),
        )

    def _enter(self, layout: Layout) -> None:
        load(self._plan, layout)
        self._refresh()

    def _refresh(self) -> None:
        """Compute everything anew, which also ends the drift of sums of doubles."""
        rebuild(self._arrays, self._links, self._plan)
        if self._crossed.counts:
            _count(self._arrays, self._links, self._plan, self._crossed)

    def _value(self) -> Value:
        over, makespan = _carry_out(
            self._arrays, self._links, self._rules, self._plan, self._execution
        )
        traffic = float(self._crossed.total[0])
        if self.objective == "makespan":
            return over, makespan, 0.0
        first = (makespan, traffic) if self.objective == "lexicographic" else (traffic, makespan)
        return (over, *first)

    def _anneal(self, hot: float, cold: float) -> None:
        weights = self._weights()
        first = max(self.value[1], 1e-300)
        anneal(
            self._arrays,
            self._links,
            self._rules,
            self._plan,
            self._notes,
            self._execution,
            self._crossed,
            Heat(*weights, hot * first, cold * first),
            self._met,
            self._state,
            self._shares,
            self.tally.kinds,
            self._moves,
        )
        self.tally.moves += self._moves
        self._plan.order[:] = by_start(self._plan)
        self._refresh()

    def _weights(self) -> tuple[float, float, float]:
        """Weights of makespan, traffic and excess of memory."""
        _, first, second = self.value
        if self.objective == "makespan":
            return 1.0, 0.0, _EXCESS * first
        other = _SECOND * max(first, 1e-9) / max(second, 1e-9)
        if self.objective == "lexicographic":
            return 1.0, other, _EXCESS * first
        return other, 1.0, _EXCESS * max(first, 1e-9)


@kernel
def _carry_out(a: Arrays, g: Links, r: Rules, p: Plan, x: Execution) -> Any:
    """Return excess of memory and makespan of a plan."""
    if not r.whole:
        return 0.0, latest(p)
    makespan = execute(a, g, r, p, x, np.zeros(p.last.shape[0]))
    return (excess(a, g, r, p, x) if r.memory >= EDGES else 0.0), makespan


@kernel
def _count(a: Arrays, g: Links, p: Plan, c: Crossed) -> None:
    count_all(a, g, p, c)
