"""Devices filled one after another: the first schedule where memory is scarce.

Whether the next unit still fits is decided by the memory model of the instance: what is filled so
far is executed, and the peak of every device is compared with its capacity.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optpart.base.clock import is_time_up
from optpart.base.errors import InputError
from optpart.kernels.compiled import Arrays, arrays, run_time, short_kernel
from optpart.kernels.struct import Bools
from optpart.problem.graph import inverse
from optpart.problem.instance import Instance
from optpart.search.execute import EDGES, Execution, Rules, execute, execution, peaks, rules
from optpart.search.plan import Links, Plan, empty_plan, links
from optpart.solution.schedule import Schedule, retime
from optpart.solution.verifier import verify
from optpart.strategies.partition.contiguous_split import orders
from optpart.strategies.partition.ranks import devices_by_speed

#: Up to this many devices, they are filled in every order.
_PERMUTED = 4

#: Shares of the capacities that are filled, the next only if no fill with the one before is valid.
_SHARES = (1.0, 0.9, 0.75, 0.5)

#: Vertices and edges to execute in all.
_WORK = 2**24

#: Shortest fills that are verified.
_VERIFIED = 3


class _Fill(NamedTuple):
    makespan: float
    device: NDArray[np.int32]
    order: NDArray[np.int32]


def filled(instance: Instance, device_order: Sequence[int] = ()) -> Schedule | None:
    """Return the shortest of the valid schedules that fill one device after another.

    The units come in topological order of their first vertices. A device takes as many of them as
    it can hold under the memory model, as far as bisection finds; those behind are taken to be on
    the next device meanwhile. A unit that may not run on a device goes to the next one where it
    may. Blocks are contiguous, except for such units, and for units of several vertices.

    Devices are filled in every order or, if they are many, by speed, by memory and as listed. If no
    fill is valid, devices are filled to smaller shares of their memory, and then in other
    topological orders, until the time limit around the call is over (:mod:`optpart.base.clock`).

    Parameters
    ----------
    device_order : sequence of int
        The only order of devices to fill; by default, those above.

    Returns
    -------
    Schedule or None
        It has passed the verifier.
    """
    if not instance.vertices:
        return None
    filler = _Filler(instance)
    rows = [device_order] if device_order else _device_orders(instance)
    for order in orders(instance):
        for share in _SHARES:
            fills = sorted(filler.fills(order, rows, share), key=lambda fill: fill.makespan)
            for fill in fills[:_VERIFIED]:
                schedule = _timed(instance, fill)
                if schedule is not None:
                    return schedule
            if filler.ended:
                return None
    return None


def _device_orders(instance: Instance) -> list[Sequence[int]]:
    by_speed = devices_by_speed(instance).tolist()
    if instance.devices <= _PERMUTED:
        return list(permutations(by_speed))
    by_memory = np.argsort(-rules(instance).capacity, kind="stable").tolist()
    listed = range(instance.devices)
    return list(dict.fromkeys(map(tuple, (by_speed, by_memory, listed))))


def _timed(instance: Instance, fill: _Fill) -> Schedule | None:
    try:
        schedule = retime(instance, fill.device, fill.order.tolist())
    except InputError:  # devices without a link
        return None
    return None if verify(instance, schedule, most=1) else schedule


class _Filler:
    """What all fills of an instance share."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.arrays, self.links = arrays(instance), links(instance)
        # Under every model, plans are executed as a whole.
        self.rules = rules(instance).replaced(whole=True)
        self.plan = empty_plan(instance)
        self.execution = execution(instance, self.rules)
        self.over = np.zeros(instance.devices, dtype=np.bool_)
        self.work = 0

    @property
    def ended(self) -> bool:
        return self.work > _WORK or is_time_up()

    def fills(
        self, order: NDArray[np.int32], rows: Sequence[Sequence[int]], share: float
    ) -> Iterator[_Fill]:
        """Yield the fills of these orders of devices in which none is filled beyond a share."""
        unit_of = self.instance.unit_of
        units = np.argsort(np.unique(unit_of[order], return_index=True)[1])
        place = inverse(units)
        self.plan.order[:] = order
        for devices in rows:
            if self.ended:
                return
            found = self._fill(place[unit_of], devices, share)
            if found is not None:
                yield _Fill(found, self.plan.device.copy(), order)

    def _fill(self, place: NDArray[np.int64], devices: Sequence[int], share: float) -> float | None:
        """Fill these devices, which the plan then has; return the makespan if no one is too full.

        ``place`` is the position of each vertex's unit in the row of units.
        """
        table = self._allowed(devices)
        count = len(self.instance.units)
        ends: list[int] = []
        for _ in devices[:-1]:
            # Of the units up to ``low``, all fit; up to ``high``, they do not.
            low, high = ends[-1] if ends else 0, count + 1
            while high - low > 1:
                if is_time_up():
                    return None
                middle = (low + high) // 2
                self._execute(place, [*ends, middle], table, share)
                if self.over[list(devices[: len(ends) + 1])].any():
                    high = middle
                else:
                    low = middle
            ends.append(low)
            if low == count:
                break
        makespan = self._execute(place, ends, table, share)
        return None if self.over.any() else makespan

    def _allowed(self, devices: Sequence[int]) -> NDArray[np.int32]:
        """Return for each position among the devices where each unit meant for it may run."""
        row = np.array(devices, dtype=np.int32)
        allowed = self.instance.allowed[:, row]
        table = np.empty((len(row), len(allowed)), dtype=np.int32)
        for at in range(len(row)):
            turn = np.roll(row, -at)
            table[at] = turn[np.roll(allowed, -at, axis=1).argmax(axis=1)]
        return table

    def _execute(
        self, place: NDArray[np.int64], ends: list[int], table: NDArray[np.int32], share: float
    ) -> float:
        self.work += self.instance.vertices + len(self.arrays.in_source)
        segment = np.searchsorted(np.array(ends, dtype=np.int64), place, side="right")
        self.plan.device[:] = table[segment, self.instance.unit_of]
        made: float = _executed(
            self.arrays, self.links, self.rules, self.plan, self.execution, self.over, share
        )
        return made


@short_kernel
def _executed(
    a: Arrays, g: Links, r: Rules, p: Plan, x: Execution, over: Bools, share: float
) -> Any:
    """Execute a placement in an order; return the makespan, and note which devices are too full."""
    p.used[:] = 0
    for u in range(a.need.shape[0]):
        p.used[p.device[a.unit_vertex[a.unit_start[u]]]] += a.need[u]
    for v in range(p.device.shape[0]):
        p.run[v] = run_time(a, v, p.device[v])
    makespan = execute(a, g, r, p, x, np.zeros(p.last.shape[0]))
    for d in range(over.shape[0]):
        over[d] = p.used[d] > a.capacity[d] * share
    if r.memory >= EDGES:
        peak = peaks(a, g, r, p, x)
        for d in range(over.shape[0]):
            over[d] = over[d] or peak[d] > r.capacity[d] * share
    return makespan
