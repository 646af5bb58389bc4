"""Destructive improvement: assume a length and try to refute it.

Klein & Scholl (1999) name the scheme: if a relaxation proves a length impossible, the bound rises
to the next length. An assumed length is a deadline for everything, so heads and tails exclude
devices; fewer devices make heads and tails larger; vertices that can no longer be apart become one
unit; units with one device left share it one at a time. Heads and tails of cases, which need no
length, come first. When nothing changes any more, the energy bound is tried. Then comes *probing*
(shaving; Carlier & Pinson 1994, Martin & Shmoys 1996): a unit is put on a device tentatively, and
if that is refuted, the device is excluded. Finally, a unit that has a choice is put on each of its
devices in turn, and everything is repeated: if all are refuted, so is the length. It is the unit of
which a look ahead (Li & Anbulagan 1997) expects that the others are left with the least choice.
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import NamedTuple

import numpy as np

from optpart.base import clock
from optpart.kernels.ticks import Grid
from optpart.lower_bounds.bisection import least_not_refuted
from optpart.lower_bounds.cases import Growth, fits, raised
from optpart.lower_bounds.energy import overloaded
from optpart.lower_bounds.load import load_ticks
from optpart.lower_bounds.one_machine import Sharpening, must_run_on, sharpened
from optpart.lower_bounds.windows import NEVER, Windows, windows
from optpart.problem.instance import Instance

#: Passes of sharpening for one trial: the first finds almost everything.
_TRIAL_ROUNDS = 1

#: Depths of branching on the devices of units. A greater depth is tried only after the search with
#: a smaller one has ended, since lengths that are not refuted take the longest.
_DEPTHS = (3, 6, 12)

#: On a rounded grid, precision (see ``part``) of the search without trials, and of those with them.
_FINE = 2**14
_PART = 2**9

#: Of the latter, the first step as a part of the length, and into how many parts an interval is
#: divided: what is not refuted takes longest.
_FIRST, _DIVISOR = 512, 3

#: Vertices of an interval and cases of its tree that raise heads and tails at first, and the share
#: of the time for these.
_GROWTH, _RAISING = (48, 100), 0.2

#: Most trials of a look ahead, unless those of its first unit are more, and the weight of their
#: freedom. With a weight of 1, their number would count for nothing, though each has to be probed.
_LOOKED_AT, _FREEDOM = 64, 0.25

#: Probing pauses to propagate after this many devices have been excluded, and ends after this many
#: failures in a row: the most doubtful devices come first.
_STRUCK = 32
_IN_VAIN = 64


def destructive_bound(
    instance: Instance,
    seconds: float = np.inf,
    makespan: Fraction | None = None,
    *,
    known: Fraction = Fraction(0),
) -> Fraction | None:
    """Bound the makespan by the least length that is not refuted.

    Parameters
    ----------
    seconds : float
        Time limit; branching uses all of it if need be.
    makespan : Fraction, optional
        Makespan of a schedule; the search goes no higher.
    known : Fraction
        A bound to begin from, by whatever it was proven.

    Returns
    -------
    Fraction or None
        ``None`` if there is no schedule of any length.
    """
    deadline = clock.now() + seconds
    grid = Grid.of(instance)
    refutation = Refutation(instance, grid, deadline)
    window = windows(instance, grid, seconds=seconds)
    window = sharpened(instance, grid, window, seconds=refutation.left)
    if window.bound is None:
        return None
    least = load_ticks(instance, grid, window, seconds=refutation.left)
    least = max(least, grid.floor(known))
    if fits(instance, grid, refutation.left):
        growth = Growth(*_GROWTH, clock.now() + _RAISING * refutation.left)
        refutation.known, ticks = raised(instance, grid, window, growth)
        if ticks is None:
            return None
        least = max(least, ticks)
    top = np.inf if makespan is None else grid.floor(makespan)
    search = partial(least_not_refuted, grid=grid, deadline=deadline, makespan=makespan)
    found = search(refutation.follows, least=least, part=_FINE)
    for depth in _DEPTHS:
        if found is None:
            return None
        refuted = partial(refutation.by_trial, depth=depth)
        # A deeper search mostly ends where the one before did, whose probing of it is kept. On a
        # rounded grid, that one ended before the length that it could not refute.
        deeper = depth > _DEPTHS[0] and grid.exact
        if deeper and found < top and refutation.left > 0 and not refuted(found):
            continue
        found = search(refuted, least=found, part=_PART, first=_FIRST, divisor=_DIVISOR)
    return None if found is None else grid.time(found)


class _Branch(NamedTuple):
    """A unit, and what follows from putting it on each of the devices that are left to it."""

    unit: int
    trials: dict[int, Sharpening]

    @property
    def choice(self) -> float:
        """The work left to refute: less if there are few trials, which leave little freedom."""
        return float(np.logaddexp.reduce([_FREEDOM * x.freedom for x in self.trials.values()]))


class Refutation:
    """Refutation of lengths of one instance, until a deadline.

    Attributes
    ----------
    known : Windows, optional
        Heads and tails of every schedule.
    """

    def __init__(self, instance: Instance, grid: Grid, deadline: float) -> None:
        self.instance = instance
        self.grid = grid
        self.deadline = deadline
        self.known: Windows | None = None
        #: The last length that probing did not refute, and what is left by then.
        self._probed_last: tuple[int, Sharpening] | None = None

    @property
    def left(self) -> float:
        """The seconds that are left."""
        return self.deadline - clock.now()

    def follows(self, limit: int) -> bool:
        """Return whether propagation and energy refute a length."""
        return self._left(limit) is None

    def by_trial(self, limit: int, depth: int = _DEPTHS[-1]) -> bool:
        """Return whether these, probing and branching refute a length."""
        if self._probed_last is not None and self._probed_last[0] == limit:
            return self._each_refuted(self._probed_last[1], limit, depth)
        work = self._left(limit)
        if work is None or self._probed_empty(work, limit):
            return True
        self._probed_last = limit, work
        return self._each_refuted(work, limit, depth)

    def _refuted(self, work: Sharpening, limit: int, depth: int) -> bool:
        return self._probed_empty(work, limit) or self._each_refuted(work, limit, depth)

    def _probed_empty(self, work: Sharpening, limit: int) -> bool:
        """Probe until no device is excluded; return whether that refutes a length."""
        while self.left > 0 and self._strike_off(work, limit):
            if not work.run(self.deadline) or self._overfull(work, limit):
                return True
        return False

    def _each_refuted(self, work: Sharpening, limit: int, depth: int) -> bool:
        """Return whether a unit has a choice of devices, and each refutes a length."""
        if depth == 0 or clock.now() > self.deadline:
            return False
        branch = self._look_ahead(work, limit)
        if branch is None:
            return not work.run(self.deadline) or self._overfull(work, limit)
        # The most promising device first: one that is not refuted ends the loop.
        for d in sorted(branch.trials, key=lambda d: -branch.trials[d].freedom):
            trial = branch.trials[d]
            if not self._refuted(trial, limit, depth - 1):
                work.settle()
                return False
            work.exclude(branch.unit, d, trial)
        return True

    def _look_ahead(self, work: Sharpening, limit: int) -> _Branch | None:
        """Return the unit whose devices leave the least choice to all others.

        Large units are looked at first, as far as the number of trials permits. Devices that are
        refuted by the way are excluded.

        Returns
        -------
        _Branch or None
            ``None`` if no unit has a choice any more, or one has no device left.
        """
        size = np.zeros(work.possible.shape, dtype=np.int64)
        np.add.at(size, work.unit, self.grid.duration)
        units = np.unique(work.unit)
        least = np.where(work.possible, size, NEVER).min(axis=1)[units]
        best: _Branch | None = None
        tried = 0
        for unit in units[np.argsort(-least, kind="stable")].tolist():
            devices = np.flatnonzero(work.possible[unit]).tolist()
            if len(devices) < 2:
                continue
            tried += len(devices)
            if best is not None and (tried > _LOOKED_AT or clock.now() > self.deadline):
                break
            trials = {}
            for d in devices:
                trial = work.only(unit, d)
                if trial.run(self.deadline) and not (must_run_on(trial) > limit).any():
                    trials[d] = trial
                else:
                    work.exclude(unit, d, trial)
            work.settle()
            if not trials:
                return None
            branch = _Branch(unit, trials)
            if len(trials) > 1 and (best is None or branch.choice < best.choice):
                best = branch
        return best

    def _left(self, limit: int) -> Sharpening | None:
        """Return heads, tails and devices for a length; ``None`` if it is refuted."""
        instance, grid = self.instance, self.grid
        window = windows(instance, grid, limit, known=self.known, seconds=self.left)
        if window.bound is None:
            return None
        work = self._begin(window, limit)
        if not work.run(self.deadline) or self._overfull(work, limit):
            return None
        return work

    def _begin(self, window: Windows, limit: int) -> Sharpening:
        return Sharpening(self.instance, self.grid, window, limit)

    def _overfull(self, work: Sharpening, limit: int) -> bool:
        if (must_run_on(work) > limit).any():
            return True
        return overloaded(self.instance, self.grid, work.windows(), limit, seconds=self.left)

    def _strike_off(self, work: Sharpening, limit: int) -> bool:
        """Try units on the devices left to them; return whether a device was excluded."""
        units = np.unique(work.unit)
        through = work.windows().through
        units = units[work.possible[units].sum(axis=1) > 1]  # what has no choice has been sharpened
        trials = [(int(u), int(d)) for u in units for d in np.flatnonzero(work.possible[u])]
        struck, in_vain = 0, 0
        for u, d in sorted(trials, key=lambda trial: -int(through[trial])):
            trial = work.only(u, d)
            left = trial.run(self.deadline, _TRIAL_ROUNDS, brief=True)
            if not left or (must_run_on(trial) > limit).any():
                work.exclude(u, d, trial)
                struck, in_vain = struck + 1, 0
            else:
                in_vain += 1
            if struck == _STRUCK or in_vain == _IN_VAIN or not work.feasible:
                break
            if clock.now() > self.deadline:
                break
        work.settle()
        return struck > 0
