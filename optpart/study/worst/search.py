"""A search for the instance on which a method is furthest from the optimum.

The search is simulated annealing over instances, as in PISA (J. Coleman and B. Krishnamachari,
Comparing task graph scheduling algorithms: an adversarial approach, 2024; part of SAGA). PISA
compares heuristics with one another only. Here, the value of an instance is the ratio of the
method's makespan, of a verified schedule, to the optimum, which an exact method proves. So the
ratio is a lower bound of the method's worst case in the family: the family has an instance that is
at least as bad.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from optpart.base import clock
from optpart.base.choices import choice
from optpart.base.errors import ArgumentError
from optpart.base.limits import MOST_SECONDS, check_seed
from optpart.base.showing import Shown
from optpart.exact.enumeration import enumerate_all
from optpart.lower_bounds.best import BOUNDS, best_bound
from optpart.methods import registry
from optpart.methods.cpsat import cpsat
from optpart.problem.instance import Instance
from optpart.solution.goal import Goal
from optpart.solution.result import Budget, Result, Status
from optpart.solution.termination import Termination
from optpart.study.run import Run, execute
from optpart.study.worst.draft import Draft, changed, drawn
from optpart.study.worst.families import FAMILIES

#: Sizes for which optima are proven in a moment.
VERTICES, DEVICES = (2, 16), (2, 6)

#: Seconds of a search that nothing else limits.
WORST_SECONDS = 20.0

#: Candidates of a round, which begins with a new instance or, every second time, the worst so far.
_ROUND = 200

#: How far the ratio may fall in one step at the beginning of a round, on average, as a share.
_HEAT = 0.02

#: Enumeration is fastest up to this size; beyond, CP-SAT is.
_ENUMERATED = 9

#: Deterministic time for the optimum of a candidate, and seconds for the method.
_EFFORT, _SECONDS = 1.0, 10.0

#: The two bounds that take next to no time.
_QUICK = tuple(BOUNDS[name] for name in ("critical-path", "load"))


@dataclass(frozen=True, eq=False)
class Worst(Shown):
    """The worst instance that was found for a method.

    Attributes
    ----------
    instance : Instance
    makespan : Fraction
        Of the method's schedule, which is verified.
    optimum : Fraction
        The least makespan, proven.
    tries : int
        Instances that were tried.
    proven : int
        Those of them that the optimum was computed for; bounds excluded the others.
    interrupted : bool
        Whether the user stopped the search.
    """

    instance: Instance
    method: str
    makespan: Fraction
    optimum: Fraction
    seed: int
    tries: int
    proven: int
    interrupted: bool = False

    @property
    def ratio(self) -> Fraction:
        """``makespan / optimum``, at least 1."""
        return self.makespan / self.optimum

    def __repr__(self) -> str:
        return f"<Worst of {self.method}: {self.makespan} / {self.optimum}, {self.tries} tries>"


def worst_case(
    method: str,
    *,
    vertices: int = 8,
    devices: int = 3,
    family: str = "general",
    ccr: Fraction = Fraction(1),
    seconds: float | None = None,
    tries: int | None = None,
    seed: int = 0,
    watch: Callable[[int, Fraction], None] | None = None,
) -> Worst | None:
    """Search a family for an instance on which a method is as far from the optimum as possible.

    Run times, sizes, speeds and bandwidths are whole numbers in the ranges of
    :mod:`optpart.study.worst.draft`. A candidate is accepted if its ratio reaches a threshold,
    which is drawn first. Those that a lower bound keeps below it are never solved; of the others,
    the exact method only answers whether the optimum is small enough, and which it is. Candidates
    for which it cannot do so within its effort are discarded, and so are those on which the method
    has no schedule.

    Parameters
    ----------
    method : str
        Every run has the seed ``seed``.
    ccr : Fraction
        Most mean delay, over edges and pairs of devices, for one unit of mean run time; 0 for no
        communication. Many heuristics have no worst case without such a limit.
    seconds : float, optional
        Time limit.
    tries : int, optional
        Number of candidates. With it alone, the search of a heuristic is deterministic.
    watch : callable, optional
        Called with the number of candidates and the largest ratio so far.

    Returns
    -------
    Worst or None
        ``None`` if there was no candidate with a schedule and a proven optimum.

    Raises
    ------
    InputError
        If the method or the family is unknown, a number is out of range, or nothing limits the
        search.
    """
    registry.get(method)
    if family not in FAMILIES:
        raise ArgumentError("family", f"no family {family!r}", choice(family, FAMILIES))
    for name, value, (least, most) in (
        ("vertices", vertices, VERTICES), ("devices", devices, DEVICES),
    ):  # fmt: skip
        if not least <= value <= most:
            problem = f"{value} is out of range"
            raise ArgumentError(name, problem, f"give a whole number from {least} to {most}")
    if ccr < 0:
        raise ArgumentError("ccr", f"{ccr} is negative", "give a number ≥ 0")
    if tries is None and seconds is None:
        raise ArgumentError("tries", "nothing limits the search", "give `tries` or `seconds`")
    check_seed(seed)
    kinds = family, vertices, devices, ccr
    return _Search(method, kinds, seconds, tries, seed, watch).run()


class _Search:
    """One search, in rounds of annealing."""

    def __init__(
        self,
        method: str,
        kinds: tuple[str, int, int, Fraction],
        seconds: float | None,
        tries: int | None,
        seed: int,
        watch: Callable[[int, Fraction], None] | None,
    ) -> None:
        self.method, self.seed, self.watch = method, seed, watch
        self.name, self.vertices, self.devices, self.ccr = kinds
        self.family = FAMILIES[self.name]
        self.deadline = math.inf if seconds is None else clock.now() + seconds
        self.most = math.inf if tries is None else tries
        self.rng = np.random.default_rng(seed)
        self.tries = self.proven = 0
        self.best: tuple[Draft, Fraction, Fraction] | None = None

    def run(self) -> Worst | None:
        interrupted, rounds = False, 0
        try:
            while self._goes_on():
                self._round(afresh=rounds % 2 == 0)
                rounds += 1
        except KeyboardInterrupt:
            if self.best is None:
                raise
            interrupted = True
        if self.best is None:
            return None
        draft, makespan, optimum = self.best
        name = f"worst-{self.method}-{self.name}-{self.vertices}-{self.devices}-s{self.seed}"
        source = f"{self.method} takes {makespan}, the optimum is {optimum}: ratio "
        instance = draft.instance(name, source + str(makespan / optimum))
        return Worst(instance, self.method, makespan, optimum, self.seed, self.tries, self.proven,
                     interrupted)  # fmt: skip

    def _goes_on(self) -> bool:
        return self.tries < self.most and clock.now() < self.deadline

    def _round(self, *, afresh: bool) -> None:
        """Anneal from a new instance, or from the worst one."""
        if afresh or self.best is None:
            draft = drawn(self.family, self.vertices, self.devices, self.ccr, self.rng)
            ratio = self._tried(draft, Fraction(0)) or Fraction(0)
        else:
            draft, makespan, optimum = self.best
            ratio = makespan / optimum
        for i in range(_ROUND):
            if not self._goes_on():
                return
            candidate = changed(draft, self.family, self.ccr, self.rng)
            heat = _HEAT * (1 - i / _ROUND)
            share = max(0.0, 1 + heat * math.log(1 - self.rng.random()))
            # Few digits keep the limits of exact methods short.
            threshold = Fraction(math.floor(1000 * float(ratio) * share), 1000)
            found = None if candidate == draft else self._tried(candidate, threshold)
            if found is not None:
                draft, ratio = candidate, found

    def _tried(self, draft: Draft, threshold: Fraction) -> Fraction | None:
        """Return the ratio of a candidate if it is proven, and at least the threshold."""
        self.tries += 1
        instance = draft.instance("candidate")
        result = _unless_interrupted(
            execute(Run(instance, self.method, self.seed, Budget(_SECONDS, 1)))
        )
        makespan = result.makespan
        if makespan is None:
            return None
        limit = makespan / max(threshold, Fraction(1))
        bound = best_bound(instance, _SECONDS, makespan, among=_QUICK).value
        if bound is None or bound > limit:
            return None
        optimum = makespan if bound == makespan else self._optimum(instance, limit)
        if optimum is None:
            return None
        ratio = makespan / optimum
        if self.best is None or ratio > self.best[1] / self.best[2]:
            self.best = draft, makespan, optimum
        if self.watch is not None:
            self.watch(self.tries, self.best[1] / self.best[2])
        return ratio

    def _optimum(self, instance: Instance, limit: Fraction) -> Fraction | None:
        """Return the optimum if it is at most the limit and can be proven in a moment."""
        left = min(MOST_SECONDS, max(0.0, self.deadline - clock.now()))
        budget = Budget(left, 1, deterministic=_EFFORT)
        if instance.vertices <= _ENUMERATED:
            result = enumerate_all(instance, budget=budget, goal=Goal(makespan=limit))
        else:  # CP-SAT would stop at any schedule within the limit
            result = cpsat(instance, budget=budget)
        _unless_interrupted(result)
        self.proven += result.status in (Status.OPTIMAL, Status.INFEASIBLE)
        return result.makespan if result.status is Status.OPTIMAL else None


def _unless_interrupted(result: Result) -> Result:
    """Return a result that is final."""
    if result.termination is Termination.INTERRUPTED:
        raise KeyboardInterrupt
    return result
