"""A wide layer: many vertices between few, whose devices are given.

The vertices of a layer differ in size, and the devices in the time that they take per unit of it.
On each device, one of them runs first, not before its head, and one last, before its tail; so these
two and all sizes limit the length from below (one-machine relaxation). With which vertices are
first and last decided, only whole sizes are to be shared among devices of limited room. Lengths are
refuted from the least one on (iterative weakening): there, hardly any way to share is left, and all
are tried. Whatever else holds between the vertices of a layer is seen only then, when their order
on the devices is sought.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import accumulate, cycle, islice, pairwise
from random import Random
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optpart.base.clock import check_time, seconds_left
from optpart.exact.layers.sums import MOST_ITEMS, subsets
from optpart.exact.solve import solve
from optpart.exact.symmetry import interchangeable_devices
from optpart.kernels.tasks import Tasks
from optpart.kernels.ticks import Grid
from optpart.lower_bounds.one_machine import sharpened
from optpart.lower_bounds.windows import NEVER, Windows, windows
from optpart.problem.instance import Instance
from optpart.solution.goal import Goal
from optpart.solution.result import Budget
from optpart.solution.schedule import Schedule
from optpart.solution.termination import Termination
from optpart.strategies.base import Partition
from optpart.strategies.scheduling.pct import path_computation_time
from optpart.strategies.simulator import Priority, simulate

#: Placements of a layer of which CP-SAT seeks the order, at most, and seconds for each.
_MOST_ORDERS, _ORDER_SECONDS = 200, 10.0

#: Of more vertices than can be shared in all ways: samples for each length, and ways of each.
#: The smallest vertices are shared in all ways.
_SAMPLES, _WAYS, _SMALLEST = 200, 4, 36

#: By how much, at most, a sample changes what it prefers.
_NOISE = 0.2

#: Run times may differ from what is proportional to sizes by this part of them.
_UNLIKE = Fraction(1, 1000)

#: The sides of a layer on a device: its first and its last vertex.
_FIRST, _LAST = 0, 1

Slot = tuple[int, int]


class Sizes(NamedTuple):
    """Whole sizes of vertices, and the time that each device takes for them.

    Attributes
    ----------
    size : list of int
    rate : dict from device to Fraction
        Ticks per unit of size.
    less : dict from device to int
        By how many ticks less than so, at most, any of the vertices take together, where times are
        rounded.
    """

    size: list[int]
    rate: dict[int, Fraction]
    less: dict[int, int]


def sizes(duration: NDArray[np.int64], devices: Sequence[int]) -> Sizes | None:
    """Return sizes to which run times are proportional; ``None`` if they hardly are.

    Parameters
    ----------
    duration : ndarray of int64, n × k
        −1 where a vertex is not allowed.
    devices : sequence of int
        Those that count, at least one.
    """
    times = {d: duration[:, d].tolist() for d in devices}
    if any(min(ticks, default=0) < 0 for ticks in times.values()):
        return None
    # Where times are rounded, the fewest units are those of the device on which they are not.
    size = min(
        ([one // (math.gcd(*ticks) or 1) for one in ticks] for ticks in times.values()), key=sum
    )
    rate, less = {}, {}
    for d, ticks in times.items():
        rate[d] = Fraction(sum(ticks), sum(size) or 1)
        over = [rate[d] * own - one for one, own in zip(ticks, size, strict=True)]
        if any(abs(x) > _UNLIKE * one for x, one in zip(over, ticks, strict=True)):
            return None
        rate[d], less[d] = rate[d] or Fraction(1), math.ceil(sum(x for x in over if x > 0))
    return Sizes(size, rate, less)


def _before(classes: Iterable[Sequence[int]], devices: Sequence[int]) -> dict[int, int]:
    """Return the one before of each device of a class but the first, among some devices."""
    inside = [[d for d in alike if d in devices] for alike in classes]
    return {e: d for alike in inside for d, e in pairwise(alike)}


class _Choice(NamedTuple):
    """First and last vertices, device by device.

    Attributes
    ----------
    room : tuple of int
        The size that each device can take.
    ends : tuple of int
        Its first and last vertex, as a set of bits.
    beyond, later : tuple of int
        The same of all devices that follow.
    """

    room: tuple[int, ...]
    ends: tuple[int, ...]
    beyond: tuple[int, ...]
    later: tuple[int, ...]

    @classmethod
    def of(cls, room: Sequence[int], ends: Sequence[int]) -> _Choice:
        after = [*accumulate(reversed(room), initial=0)][-2::-1]
        later = [*accumulate(reversed(ends), initial=0)][-2::-1]  # sets of bits are disjoint
        return cls(tuple(room), tuple(ends), tuple(after), tuple(later))


class Layer:
    """Bounds and the best schedule of a layer, in ticks, better with each step.

    Parameters
    ----------
    instance : Instance
        The layer alone, with communication ``delay``, all links and no limit of memory.
    grid : Grid
        An exact one.
    wide : sequence of int
        The vertices whose devices are not given.
    given : mapping from vertex to device
        The others.
    sizes : Sizes
        Of what is wide; it may run on the devices that have a rate.

    Attributes
    ----------
    lower : int
        No schedule is shorter.
    upper : int or None
    schedule : Schedule or None
        Of length ``upper``.
    ended : bool
        Whether further steps are of no use.
    """

    def __init__(
        self, instance: Instance, grid: Grid, wide: Sequence[int], given: Mapping[int, int],
        sizes: Sizes,
    ) -> None:  # fmt: skip
        self.instance, self.grid, self.wide, self.given = instance, grid, wide, given
        # The slowest device comes first: it has the fewest subsets.
        self.devices = sorted(sizes.rate, key=lambda d: -sizes.rate[d])
        self._size = dict(zip(wide, sizes.size, strict=True))
        self._total, self._less = sum(sizes.size), sizes.less
        #: Per device, so much size takes so many ticks.
        self._speed = {d: (rate.denominator, rate.numerator) for d, rate in sizes.rate.items()}
        window = windows(instance, grid)
        self._measure(window)
        #: Of each device, the one before that could take its place.
        self._alike: dict[int, int] = {}
        self.lower = self._least(window.bound or 0, self._loosely_possible)
        self.upper: int | None = None
        self.schedule: Schedule | None = None
        self.ended = False
        self._limit, self._step = self.lower, 0
        self._whole = True
        self._orders = 0
        self._known: dict[bytes, int] = {}
        self._random = Random(0)

    def _measure(self, window: Windows) -> None:
        """Note the ends of what is wide and, for each device, of what is given."""
        self._ends: dict[Slot, list[tuple[int, int]]] = {
            (d, side): sorted((int(times[v, d]), v) for v in self.wide)
            for d in self.devices
            for side, times in ((_FIRST, window.head), (_LAST, window.tail))
        }
        #: Least head, all run times, least tail.
        self._fixed: dict[int, tuple[int, int, int]] = {}
        for v, d in self.given.items():
            head, run, tail = self._fixed.get(d, (NEVER, 0, NEVER))
            self._fixed[d] = (
                min(head, int(window.head[v, d])), run + int(self.grid.duration[v, d]),
                min(tail, int(window.tail[v, d])),
            )  # fmt: skip

    def step(self, most: int, budget: Budget) -> None:
        """Look for schedules of a limited length, and raise the bound if there are none.

        Parameters
        ----------
        most : int
            Longer ones are not of interest.
        budget : Budget
            Its workers and memory are those of CP-SAT.
        """
        if not self._step:
            self._begin()
            return
        if self.upper is not None:
            most = min(most, self.upper - 1)
        limit = min(self._limit, most)
        if limit >= self.lower and self._found(limit, budget):
            assert self.upper is not None
            self._limit = self.upper - 1
        else:
            if self._whole:
                self.lower = max(self.lower, limit + 1)
            self._limit, self._step = limit + self._step, 2 * self._step
            self.ended |= limit >= most and not self._whole
        near = self.lower if self._whole else self._near
        self.ended |= self.upper is not None and self.upper <= near

    @property
    def _near(self) -> int:
        """What samples of placements can reach: where times are rounded, they decide the rest."""
        return self.lower + max(self._less.values())

    def _begin(self) -> None:
        """Raise the bound by what takes longer."""
        window = windows(self.instance, self.grid)
        self._measure(sharpened(self.instance, self.grid, window))
        self._alike = _before(interchangeable_devices(self.instance), self.devices)
        self.lower = self._limit = self._least(self.lower, self._possible)
        self._step = 1

    def _least(self, known: int, possible: Callable[[int], bool]) -> int:
        """Return the least length that is possible, from a known bound on."""
        low, high = known, known
        while not possible(high):
            low, high = high + 1, 2 * high + 1
        while low < high:
            middle = (low + high) // 2
            if possible(middle):
                high = middle
            else:
                low = middle + 1
        return low

    def _possible(self, limit: int) -> bool:
        """Return whether some first and last vertices leave enough room."""
        return next(self._choices(limit), None) is not None

    def _loosely_possible(self, limit: int) -> bool:
        """Return whether the least heads and tails leave enough room."""
        if not self.wide:
            return True
        ends = ((d, self._ends[d, _FIRST][0][0], self._ends[d, _LAST][0][0]) for d in self.devices)
        return sum(self._room(limit, *end) for end in ends) >= self._total

    def _room(self, limit: int, d: int, head: int, tail: int) -> int:
        """Return the size that a device can take between the ends of its first and last vertex."""
        around = head + tail
        if d in self._fixed:
            other_head, run, other_tail = self._fixed[d]
            around = max(around, min(head, other_head) + run + min(tail, other_tail))
        per, ticks = self._speed[d]
        return max(0, (limit - around + self._less[d]) * per // ticks)

    def _choices(self, limit: int) -> Iterator[_Choice]:
        """Yield choices of first and last vertices that leave enough room."""
        ends, devices = self._ends, self.devices
        if not self.wide:
            yield _Choice.of([0] * len(devices), [0] * len(devices))
            return
        value = {slot: found[0][0] for slot, found in ends.items()}

        def room(d: int) -> int:
            return self._room(limit, d, value[d, _FIRST], value[d, _LAST])

        rooms = {d: room(d) for d in devices}
        largest, spare = max(self._size.values()), sum(rooms.values()) - self._total
        slots = [
            (d, side)
            for d in devices
            # What others cannot take is more than one vertex, so that its first one is not its
            # last; and the least ends are too few for all devices.
            if rooms[d] - spare > largest
            for side in (_FIRST, _LAST)
            if ends[d, side][min(2 * len(devices), len(self.wide)) - 1][0] > value[d, side]
        ]
        sides = dict(reversed(slots))
        chosen: dict[int, Slot] = {}
        rank: dict[Slot, int] = {}

        def extended(number: int) -> Iterator[_Choice]:
            check_time()
            if sum(rooms.values()) < self._total:
                return
            if number == len(slots):
                own = dict.fromkeys(devices, 0)
                for v, (d, _) in chosen.items():
                    own[d] |= 1 << v
                yield _Choice.of(list(rooms.values()), list(own.values()))
                return
            d, side = slot = slots[number]
            before, begin = value[slot], 0
            if side == sides[d] and (self._alike.get(d), side) in rank:
                # Of devices that are alike, the first has what comes first.
                begin = rank[self._alike[d], side] + 1
            for place, (time, v) in enumerate(ends[slot][begin:], begin):
                if v in chosen:
                    continue
                rank[slot] = place
                value[slot] = time
                rooms[d] = room(d)
                if sum(rooms.values()) < self._total:
                    break
                chosen[v] = slot
                yield from extended(number + 1)
                del chosen[v]
            value[slot] = before
            rooms[d] = room(d)
            rank.pop(slot, None)

        yield from extended(0)

    def _found(self, limit: int, budget: Budget) -> bool:
        """Return whether there is a schedule within a limit, which is then the best one."""
        if len(self.wide) > MOST_ITEMS:
            self._whole = False
            choices = list(islice(self._choices(limit), _SAMPLES))
            return any(
                self._listed(self._placement(place)) <= max(limit, self._near)
                for choice in islice(cycle(choices), _SAMPLES)
                for place in self._sampled(choice)
            )
        ways = self._shared(self.wide, list(self._choices(limit)))
        return any(self._in_order(place, limit, budget) for place in ways)

    def _shared(
        self, free: Sequence[int], choices: Sequence[_Choice], number: int = 0
    ) -> Iterator[dict[int, int]]:
        """Yield every device of each free vertex that some choice has room for.

        The first device gets each subset that leaves no more than the others hold, as in sequential
        number partitioning (Korf, Schreiber and Moffitt 2014).
        """
        d, size = self.devices[number], tuple(self._size[v] for v in free)
        total = sum(size)
        most = max((choice.room[number] for choice in choices), default=-1)
        least = total - max((choice.beyond[number] for choice in choices), default=0)
        if number == len(self.devices) - 1:
            if total <= most:
                yield dict.fromkeys(free, d)
            return
        for places in subsets(size, least, most):
            here = {free[i]: d for i in places}
            own, mask = sum(size[i] for i in places), sum(1 << v for v in here)
            left = [
                choice
                for choice in choices
                if own <= choice.room[number]
                and total - own <= choice.beyond[number]
                and not choice.ends[number] & ~mask
                and not choice.later[number] & mask
            ]
            if left:
                rest = [v for v in free if v not in here]
                for others in self._shared(rest, left, number + 1):
                    yield here | others

    def _sampled(self, choice: _Choice) -> Iterator[dict[int, int]]:
        """Yield some: the largest vertices where they leave most, the smallest ones in all ways."""
        place = {
            v: d
            for d, ends in zip(self.devices, choice.ends, strict=True)
            for v in self.wide
            if ends >> v & 1
        }
        room = dict(zip(self.devices, choice.room, strict=True))
        left = dict(room)
        for v, d in place.items():
            left[d] -= self._size[v]

        def noise() -> float:
            return self._random.uniform(1 - _NOISE, 1 + _NOISE)

        free = [v for v in self.wide if v not in place]
        for v in sorted(free, key=lambda v: -self._size[v] * noise())[:-_SMALLEST]:
            d = max(left, key=lambda d: (left[d] - self._size[v]) / max(1, room[d]) * noise())
            place[v] = d
            left[d] -= self._size[v]
        if min(left.values()) < 0:
            return
        rest = [v for v in free if v not in place]
        only = _Choice.of(list(left.values()), [0] * len(left))
        for found in islice(self._shared(rest, [only]), _WAYS):
            yield place | found

    def _in_order(self, place: Mapping[int, int], limit: int, budget: Budget) -> bool:
        """Return whether a placement has a schedule within a limit, which is then the best."""
        at = self._placement(place)
        key = at.tobytes()
        if self._known.get(key, 0) > limit:
            return False
        if self._listed(at) <= limit:
            return True
        allowed = np.arange(self.instance.devices) == at[:, None]  # each vertex is a unit
        window = windows(self.instance, self.grid, allowed=allowed)
        bound = sharpened(self.instance, self.grid, window).bound
        if bound is not None and bound > limit:
            self._known[key] = bound
            return False
        self._orders += 1
        if self._orders > _MOST_ORDERS:  # too much depends on the order
            self._whole, self.ended = False, True
            return False
        goal = Goal(placement={v: int(d) for v, d in enumerate(at)})
        seconds = max(0.01, min(_ORDER_SECONDS, seconds_left()))
        own = Budget(seconds, budget.workers, memory=budget.memory)
        result = solve(self.instance, goal=goal, budget=own)
        if result.termination is Termination.INTERRUPTED:
            raise KeyboardInterrupt
        if result.lower_bound is not None:
            self._known[key] = math.ceil(result.lower_bound * self.grid.scale)
        if result.schedule is not None and self._offer(result.schedule) <= limit:
            return True
        self._whole &= self._known.get(key, 0) > limit
        return False

    def _placement(self, place: Mapping[int, int]) -> NDArray[np.int32]:
        device = {**place, **self.given}
        return np.array([device[v] for v in range(self.instance.vertices)], dtype=np.int32)

    def _listed(self, at: NDArray[np.int32]) -> int:
        """Return the length of a schedule of a placement, which may be the best."""
        return self._offer(simulate(self.instance, Partition(at), _by_tail))

    def _offer(self, schedule: Schedule) -> int:
        ticks = math.ceil(schedule.makespan(self.instance) * self.grid.scale)
        if self.upper is None or ticks < self.upper:
            self.upper, self.schedule = ticks, schedule
        return ticks


def _by_tail(work: Tasks, partition: Partition, rng: np.random.Generator) -> Priority:
    """Prefer what has most to follow (Jackson's rule)."""
    return Priority(path_computation_time(work) - work.duration, np.arange(len(work.duration)))
