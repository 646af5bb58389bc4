"""Repacking: another device for one of the largest units, around which all others are annealed.

Colocation groups can have many times the work of other units. Where devices are crowded, it matters
most which of the large ones share a device, and annealing seldom finds out: once it is so cold that
the others fall into place, no large unit can move, because nothing has made room for it. So a
*trial* moves a large unit, or exchanges two, holds all large ones, and anneals the rest from hot to
cold; a short first stage rejects most trials. The result replaces what the next trial changes
unless it is longer by more than a fraction of a percent.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from optpart.kernels.compiled import Arrays
from optpart.search.evaluator import NOTHING, Evaluator, Value
from optpart.search.load_ratio import is_load_bound, run_times
from optpart.search.plan import Ints, Layout

#: A unit is large if its work on the device where it takes least is at least this share of the
#: makespan and this many times that of the mean unit. At most so many are.
_SHARE, _OUTLYING, _MOST = 0.04, 4.0, 16

#: Stages of a trial: moves per vertex, the temperature at its beginning as a share of that of the
#: trial, and how much longer than the current schedule the result may be for another stage.
_STAGES = ((60, 1.0, 0.03), (200, 0.6, 0.01), (800, 0.6, 0.0))

#: Mean of the random share by which a result may exceed the current schedule and still replace it.
_WORSE = 0.002

#: The best schedule replaces the current one if it is shorter by more than so many of these shares.
_BEHIND = 3.0

#: Probability that two large units are exchanged, draws of a trial before there is none, and after
#: how many of them, whose placements are known to be no better, one more change is made.
_EXCHANGES, _DRAWS, _PATIENCE = 0.5, 60, 20


@dataclass
class Trial:
    """A placement of the large units, under trial.

    Attributes
    ----------
    layout : Layout
        Where the trial begins.
    arrays : Arrays
        Those of the instance, with one device for each large unit.
    moves : int
        Moves of the current stage.
    heat : float
        Its first temperature, relative to that of the trial.
    done : int
        Its moves so far.
    stage : int
    """

    layout: Layout
    arrays: Arrays
    moves: int
    heat: float
    done: int = 0
    stage: int = 0


class Repacking:
    """Trials of an instance, one after the other.

    Attributes
    ----------
    large : list of int
        The large units.
    """

    def __init__(self, at: Evaluator, large: list[int], rng: np.random.Generator) -> None:
        self._at = at
        self._rng = rng
        self.large = large
        a = at.arrays
        self._members = [a.unit_vertex[a.unit_start[u] : a.unit_start[u + 1]] for u in large]
        work = _least_work(a)[large]
        self._weight = work / work.sum()
        self._known: dict[tuple[int, ...], float] = {}
        self._value = NOTHING
        self._layout: Layout | None = None

    def next(self, best: Layout, value: Value) -> Trial | None:
        """Begin a trial; ``None`` if draws find no placement that is worth one.

        Parameters
        ----------
        best : Layout
            The best of all, and its value.
        """
        if self._is_ahead(best, value):
            self._layout, self._value = best, value
        assert self._layout is not None
        for draw in range(_DRAWS):
            device = self._layout.device.copy()
            for _ in range(1 + draw // _PATIENCE):
                self._change(device)
            key = self._key(device)
            known = self._known.get(key, 0.0)
            if key == self._key(self._layout.device) or known >= self._value[1]:
                continue
            if self._fits(device):
                layout = self._layout._replace(device=device)
                trial = Trial(layout, self._held(device), 0, 0.0)
                self._set_stage(trial, 0)
                return trial
        return None

    def goes_on(self, trial: Trial, layout: Layout, value: Value) -> bool:
        """Return whether a trial has a further stage, which begins with its best layout so far.

        Parameters
        ----------
        layout : Layout
            The best layout of the trial, and its value; infinite if there is none.
        """
        limit = _STAGES[trial.stage][2]
        if trial.stage + 1 < len(_STAGES) and value[:1] <= self._value[:1] and (
            value[1] < self._value[1] * (1.0 + limit)
        ):  # fmt: skip
            trial.layout = layout
            self._set_stage(trial, trial.stage + 1)
            return True
        key = self._key(trial.layout.device)
        self._known[key] = min(value[1], self._known.get(key, np.inf))
        worse = 1.0 + _WORSE * self._rng.exponential()
        if value[0] <= self._value[0] and value[1] < self._value[1] * worse:
            self._layout, self._value = layout, value
        return False

    def _set_stage(self, trial: Trial, stage: int) -> None:
        per_vertex, trial.heat, _ = _STAGES[stage]
        trial.stage, trial.done = stage, 0
        trial.moves = per_vertex * len(trial.layout.device)

    def _is_ahead(self, best: Layout, value: Value) -> bool:
        """Return whether trials should go on from the best layout."""
        if self._layout is None or value[0] < self._value[0]:
            return True
        if self._key(best.device) == self._key(self._layout.device):
            return value < self._value
        return value[1] < self._value[1] * (1.0 - _BEHIND * _WORSE)

    def _key(self, device: Ints) -> tuple[int, ...]:
        return tuple(int(device[members[0]]) for members in self._members)

    def _change(self, device: Ints) -> None:
        """Move a large unit, or exchange two."""
        if self._rng.random() < _EXCHANGES and len(self.large) > 1:
            one, other = self._rng.choice(len(self.large), 2, replace=False, p=self._weight)
            there, here = device[self._members[other][0]], device[self._members[one][0]]
            device[self._members[one]], device[self._members[other]] = there, here
        else:
            one = self._rng.choice(len(self.large), p=self._weight)
            device[self._members[one]] = self._rng.choice(self._at.links.targets)

    def _fits(self, device: Ints) -> bool:
        """Return whether units are on devices that they may use, in memory and apart."""
        a = self._at.arrays
        of_unit = device[a.unit_vertex[a.unit_start[:-1]]]
        if not a.allowed[np.arange(len(of_unit)), of_unit].all():
            return False
        if (of_unit[np.repeat(np.arange(len(of_unit)), np.diff(a.apart_start))]
                == of_unit[a.apart]).any():  # fmt: skip
            return False
        used = np.zeros(len(a.capacity), dtype=np.int64)
        np.add.at(used, of_unit, a.need)
        return bool((used <= a.capacity).all())

    def _held(self, device: Ints) -> Arrays:
        allowed = self._at.arrays.allowed.copy()
        for unit, members in zip(self.large, self._members, strict=True):
            allowed[unit] = False
            allowed[unit, device[members[0]]] = True
        return self._at.arrays.replaced(allowed=allowed)


def repacking(at: Evaluator, makespan: float, rng: np.random.Generator) -> Repacking | None:
    """Return the trials of an instance; ``None`` if no large unit has a choice, or none matters.

    Parameters
    ----------
    makespan : float
        That of a schedule, in the unit of :class:`~optpart.kernels.compiled.Arrays`.
    """
    a = at.arrays
    if at.objective != "makespan" or a.may_block or not is_load_bound(a):
        return None
    large = large_units(a, makespan)
    return Repacking(at, large, rng) if large else None


def large_units(a: Arrays, makespan: float) -> list[int]:
    """Return the units with a choice of devices whose work is out of proportion, largest first."""
    work = _least_work(a)
    if not len(work):
        return []
    least = max(_SHARE * makespan, _OUTLYING * float(work.mean()))
    large = np.flatnonzero((work >= least) & (a.allowed.sum(axis=1) > 1))
    return [int(u) for u in large[np.argsort(-work[large], kind="stable")][:_MOST]]


def _least_work(a: Arrays) -> NDArray[np.float64]:
    """Return the work of each unit on the device where it takes least."""
    work = np.zeros(a.allowed.shape)
    np.add.at(work, a.unit, run_times(a))
    return np.asarray(work.min(axis=1, initial=np.inf))
