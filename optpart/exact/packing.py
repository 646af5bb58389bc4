"""A placement that keeps every rule without time, found by CP-SAT: a packing of the devices.

To choose a device for each unit under capacities is a multiple-choice knapsack problem. Heuristics
that place one unit after another can fail although a placement exists; this model cannot, given
time. Among placements it prefers those with little work.

Under ``edges`` and ``refcount``, what a device holds changes with time. If a device has room for
all that its units could ever hold at once, every order keeps its limit; such *cautious* placements
come first. Otherwise only the memory that does not depend on time is packed, and an order within
the limits may or may not exist.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from optpart.exact.conflict import blocked_pairs, conflict
from optpart.exact.messages import Limits
from optpart.exact.process import answer
from optpart.kernels.compiled import UNLIMITED, Arrays, arrays, whole_amounts
from optpart.problem.instance import Instance
from optpart.problem.rational import RationalArray
from optpart.solution.result import Budget

WORKER = "optpart.exact.packing_worker"

#: Limit on the size of the model: allowed devices, and forbidden pairs, summed over all units.
_MOST_LITERALS = 500_000

#: The sum of all run times, in the solver's integers.
_TOTAL = 2**30

#: Share of the budget for each of at most two models, and maximum seconds; the same in the solver's
#: deterministic time if the budget counts moves.
_SHARE, _SECONDS, _EFFORT = 0.15, 60.0, 2.0

#: A time limit that is hardly reached, because the deterministic one is.
_PLENTY = 600.0

#: Seconds that the solver's process takes to start: with fewer, it is not asked.
_STARTING = 1.0


@dataclass(frozen=True)
class Packing:
    """The job for the solver.

    Attributes
    ----------
    cost : list of dict from device to int, one per unit
        The devices that a unit may use, and its run time on each.
    need : list of int, one per unit
    room : dict from device to int
        Capacity of each device that has a limit.
    apart : list of (int, int)
        Units that must not share a device.
    blocked : dict from (int, int) to set of (int, int)
        For units that communicate, pairs of devices that they cannot use.
    """

    cost: list[dict[int, int]]
    need: list[int]
    room: dict[int, int]
    apart: list[tuple[int, int]]
    blocked: dict[tuple[int, int], set[tuple[int, int]]]


@dataclass(frozen=True)
class Packed:
    """The outcome.

    Attributes
    ----------
    device : ndarray of int32, one per unit, optional
        ``None`` if no placement was found.
    contradiction : str
        Why there is none, if that is proven.
    """

    device: NDArray[np.int32] | None = None
    contradiction: str = ""


def pack(instance: Instance, budget: Budget, seed: int = 0) -> Packed:
    """Find a placement within a share of a budget.

    If the budget counts moves, the limit is deterministic, whatever their number, unless the
    seconds end before.
    """
    left = budget.seconds - _STARTING
    seconds = min(_SECONDS, max(1.0, _SHARE * budget.seconds), left)
    limits = Limits(seconds, budget.workers, seed, None, budget.memory)
    if budget.deterministic is not None:
        limits = Limits(min(_PLENTY, left), 1, seed, _EFFORT, budget.memory)
    size = int(instance.allowed.sum())
    if limits.seconds <= 0.0 or size > _MOST_LITERALS:
        return Packed()
    blocked = blocked_pairs(instance)
    size += sum(len(pairs) for pairs in blocked.values())
    if size > _MOST_LITERALS:
        return Packed()
    if instance.model.timed_memory:
        device, _ = _solved(_packing(instance, _most_held(instance), blocked), limits)
        if device is not None:
            return Packed(device)
    device, impossible = _solved(_packing(instance, instance.static_memory, blocked), limits)
    return Packed(device, conflict(instance) if impossible else "")


def _solved(task: Packing, limits: Limits) -> tuple[NDArray[np.int32] | None, bool]:
    """Return a placement, and whether the solver says that there is none."""
    answered = answer(WORKER, task, limits, what="packing", prompt=True)
    device = None if answered.found is None else answered.found.placement
    return device, answered.status == "INFEASIBLE"


def _most_held(instance: Instance) -> RationalArray:
    """Return what each unit could hold at once under a memory model that changes with time.

    Under ``edges``, all its in-edges; under ``refcount``, also its own memory and its outputs. A
    device holds no copy but of what its units make or consume.
    """
    graph = instance.graph
    sizes, resident = graph.tensor_size, graph.memory
    size = sizes.numerators.astype(object) * resident.denominator
    need = np.zeros(instance.vertices, dtype=object)
    np.add.at(need, graph.edge_target, size[graph.edge_tensor])
    if instance.model.memory == "refcount":
        np.add.at(need, graph.tensor_vertex, size)
        need += resident.numerators.astype(object) * sizes.denominator
    total = [0] * len(instance.units)
    for unit, amount in zip(instance.unit_of.tolist(), need.tolist(), strict=True):
        total[unit] += amount
    return RationalArray.from_integers(total, sizes.denominator * resident.denominator)


def _packing(
    instance: Instance,
    held: RationalArray,
    blocked: dict[tuple[int, int], set[tuple[int, int]]],
) -> Packing:
    need, capacity = whole_amounts(held, instance.cluster.memory, relax=False)
    run = _unit_times(arrays(instance))
    longest = float(np.where(instance.allowed, run, 0.0).max(axis=1, initial=0.0).sum())
    scale = _TOTAL / longest if longest > 0.0 else 0.0
    return Packing(
        [
            {d: round(float(run[unit, d]) * scale) for d in np.flatnonzero(row).tolist()}
            for unit, row in enumerate(instance.allowed)
        ],
        need.tolist(),
        {d: int(room) for d, room in enumerate(capacity.tolist()) if room < UNLIMITED},
        list(instance.separated_units),
        blocked,
    )


def _unit_times(a: Arrays) -> NDArray[np.float64]:
    """Return the run time of each unit on each device."""
    run = a.durations if len(a.durations) else a.ops[:, None] / a.speed
    total = np.zeros((len(a.need), len(a.speed)))
    np.add.at(total, a.unit, run)
    return total
