"""Quality of an order: ordering efficiency and speed-up ([H] §3.1), and the attainable optimum.

[H] measures an order between two makespans that ignore all dependencies (eq. 1 and 2), because the
optimal order is NP-hard to find. If it is known and proven, an order can be measured against it:
``E*`` is the efficiency of the optimal order, ``E / E*`` the share of it that a heuristic reaches,
and ``makespan* / lower`` the looseness of eq. 2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from optpart.base.errors import InputError
from optpart.problem.instance import Instance
from optpart.solution.result import Result
from optpart.solution.schedule import crossings


@dataclass(frozen=True)
class MakespanBounds:
    """The makespans between which orders are measured.

    Attributes
    ----------
    upper : Fraction
        Eq. 1, the theoretical worst: one op at a time.
    lower : Fraction
        Eq. 2, the theoretical best: the total time of the busiest resource.
    """

    upper: Fraction
    lower: Fraction

    def efficiency(self, makespan: Fraction) -> Fraction:
        """Return the ordering efficiency ``E`` (eq. 3): 1 at best, 0 at worst.

        If nothing can overlap, upper and lower are equal and every order is optimal. Idle resources
        can make ``E`` negative: eq. 1 bounds only schedules that never wait needlessly.
        """
        if self.upper == self.lower:
            return Fraction(1)
        return (self.upper - makespan) / (self.upper - self.lower)

    @property
    def speedup(self) -> Fraction:
        """The largest speed-up ``S`` of one order over another (eq. 4); 0 if nothing runs."""
        return (self.upper - self.lower) / self.lower if self.lower else Fraction(0)


def assigned(instance: Instance) -> NDArray[np.int32]:
    """Return the placement of an instance that leaves no choice of devices.

    Raises
    ------
    InputError
        If some vertex may run on several devices, or on none.
    """
    allowed = instance.vertex_allowed
    free = np.flatnonzero(allowed.sum(axis=1) != 1)
    if len(free):
        v = int(free[0])
        raise InputError(
            f"vertices[{v}]",
            f"{instance.graph.names[v]!r} may run on {int(allowed[v].sum())} devices",
            "allow one device per vertex or, in Python, give a placement",
        )
    return np.asarray(allowed.argmax(axis=1), dtype=np.int32)


def makespan_bounds(
    instance: Instance, placement: NDArray[np.int32] | Sequence[int] | None = None
) -> MakespanBounds:
    """Return eq. 1 and eq. 2 of an assigned graph.

    Ops are the vertices and all transfers. Devices are resources. Transfers add to the resources
    that they occupy: their link under ``link``, both ports under ``port`` (divided evenly among the
    channels), and, by their send vertex, the sender under ``sendrecv``. Under ``delay`` they occupy
    nothing, so they count only in eq. 1.

    Parameters
    ----------
    placement : array of int, length n, optional
        Not needed if every vertex has only one allowed device.
    """
    device = assigned(instance) if placement is None else np.asarray(placement, dtype=np.int32)
    load: dict[tuple[object, ...], Fraction] = {}
    upper = Fraction(0)

    def run(time: Fraction, *resources: tuple[object, ...], share: int = 1) -> None:
        nonlocal upper
        upper += time
        for resource in resources:
            load[resource] = load.get(resource, Fraction(0)) + time / share

    for d in range(instance.devices):
        run(instance.total_duration(np.flatnonzero(device == d), d), ("device", d, d))
    producer = instance.graph.tensor_vertex
    model = instance.model
    crossing: dict[tuple[int, int], list[int]] = {}
    for tensor, target in crossings(instance, device):
        crossing.setdefault((int(device[producer[tensor]]), target), []).append(tensor)
    for (sender, target), tensors in crossing.items():
        delay = instance.total_delay(tensors, sender, target)
        if delay is None:
            first = next(t for t in tensors if instance.delay(t, sender, target) is None)
            raise InputError(
                "placement",
                f"{instance.graph.tensor_name(first)} cannot cross",
                "place producer and consumer on linked devices",
            )
        occupied = model.occupied(sender, target)
        if model.sends:
            run(len(tensors) * instance.send_duration(sender), *occupied)
            run(delay)
        else:
            run(delay, *occupied, share=model.parallel)
    return MakespanBounds(upper, max(load.values(), default=Fraction(0)))


@dataclass(frozen=True)
class Attainable:
    """The best attainable value of an order, as far as it is proven.

    Attributes
    ----------
    makespan : Fraction or None
        Makespan of the best known order.
    proven : Fraction
        Proven lower bound of the makespan of all orders, at least eq. 2.
    """

    bounds: MakespanBounds
    makespan: Fraction | None
    proven: Fraction

    @property
    def optimal(self) -> bool:
        """Return whether the best known order is proven optimal."""
        return self.makespan == self.proven

    @property
    def efficiency(self) -> tuple[Fraction, Fraction]:
        """Return the range of ``E*``; both ends are equal if the optimal order is proven."""
        least = Fraction(0) if self.makespan is None else self.bounds.efficiency(self.makespan)
        return least, self.bounds.efficiency(self.proven)

    def share(self, makespan: Fraction) -> tuple[Fraction, Fraction]:
        """Return the range of ``E / E*`` of an order; 1 if ``E*`` is 0, so that all are equal."""
        own = self.bounds.efficiency(makespan)
        low, high = self.efficiency
        return (own / high if high else Fraction(1), own / low if low else Fraction(1))

    @property
    def looseness(self) -> tuple[Fraction, Fraction | float]:
        """Return the range of the optimal makespan over eq. 2, minus 1."""
        low = self.proven / self.bounds.lower - 1 if self.bounds.lower else Fraction(0)
        if self.makespan is None:
            return low, math.inf
        return low, self.makespan / self.bounds.lower - 1 if self.bounds.lower else Fraction(0)


def attainable(result: Result) -> Attainable:
    """Return what a result proves about an instance with fixed placement.

    Parameters
    ----------
    result : Result
        The result of a solver that minimised the makespan without fixed decisions.
    """
    if result.objective != "makespan" or result.given:
        raise InputError(
            "result", "has another objective than the makespan", "solve it without a goal"
        )
    bounds = makespan_bounds(result.instance)
    proven = max(bounds.lower, result.lower_bound or Fraction(0))
    return Attainable(bounds, result.makespan, proven)
