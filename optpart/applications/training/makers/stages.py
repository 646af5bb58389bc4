"""Contiguous stages of model parallelism by dynamic programming, within memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optpart.applications.training.graph import CONTROL, Role
from optpart.applications.training.groups import along
from optpart.applications.training.makers.baselines import best_candidate, placed
from optpart.applications.training.problem import StrategyProblem
from optpart.applications.training.strategy import Decision


def staged(problem: StrategyProblem) -> list[list[Decision]]:
    """Return strategies of contiguous stages, each device running at most one of them.

    For several orders of the devices, dynamic programming finds the cut with the least time of one
    sample batch through all stages (``sum``: without microbatches, stages run one after another),
    and that with the least time of the longest stage (``max``: what a pipeline is limited by). A
    stage takes the time of its groups on its device and of the tensors that enter and leave it. It
    fits if parameters, what the optimiser keeps, and all activations of its forward pass fit; if
    that leaves no cut, parameters alone must fit, and the verifier has the last word.
    """
    line = _Chain.of(problem)
    found: dict[tuple[int, ...], list[Decision]] = {}
    for estimate in (line.resident + line.activations, line.resident):
        for order in _orders(problem):
            for reduce in (np.add, np.maximum):
                cut = _cut(problem, line, estimate, order, reduce)
                if cut is not None and tuple(cut) not in found:
                    device = dict(zip(line.groups, cut, strict=True))
                    found[tuple(cut)] = placed(problem, device)
        if found:
            break
    return [*found.values()]


stages = best_candidate(staged, "no cut into stages fits the memory of the devices")


class _Chain(NamedTuple):
    """The groups along the forward pass; arrays are by place, and for choices only."""

    groups: list[int]
    time: NDArray[np.float64]  # × devices
    resident: NDArray[np.float64]
    activations: NDArray[np.float64]
    crossing: NDArray[np.float64]  # bytes that cross before the place, one more than places

    @classmethod
    def of(cls, problem: StrategyProblem) -> _Chain:
        graph = problem.graph
        groups = along(graph, problem.groups)
        n = len(groups)
        place = {g: i for i, g in enumerate(groups)}
        times = graph.times(problem.batch)
        time = np.zeros((n, len(problem.cluster)))
        resident, activations, crossing = np.zeros(n), np.zeros(n), np.zeros(n + 2)
        held = graph.held(problem.options.slots)
        for o, operation in enumerate(graph.operations):
            i = place[problem.group_of[o]]
            time[i] += times[o, list(problem.kind)]
            resident[i] += float(held[o])
            if operation.role is Role.FORWARD:
                activations[i] += sum(
                    float(output.size.at(problem.batch)) for output in operation.outputs
                )
        for edge in graph.edges:
            one, two = sorted(place[problem.group_of[o]] for o in (edge.producer, edge.consumer))
            if edge.output != CONTROL and not graph.sums(edge) and one < two:
                output = graph.operations[edge.producer].outputs[edge.output]
                size = float(output.size.at(problem.batch))
                crossing[one + 1] += size
                crossing[two + 1] -= size
        return cls(groups, time, resident, activations, np.cumsum(crossing)[: n + 1])


def _orders(problem: StrategyProblem) -> Iterator[list[int]]:
    """Yield orders of the devices: the cluster's, the fastest first, and both reversed."""
    devices = list(range(len(problem.cluster)))
    times = problem.graph.times(problem.batch).sum(axis=0)
    fastest = sorted(devices, key=lambda d: (times[problem.kind[d]], d))
    orders = (devices, fastest, devices[::-1], fastest[::-1])
    yield from map(list, dict.fromkeys(map(tuple, orders)))


def _cut(
    problem: StrategyProblem,
    line: _Chain,
    need: NDArray[np.float64],
    order: list[int],
    reduce: np.ufunc,
) -> list[int] | None:
    """Return the device of every place, or ``None`` if no cut fits.

    ``best[j, i]`` is the least value of the first ``i`` places on the first ``j`` devices of the
    order. A device may have no stage.
    """
    n, cluster = len(line.groups), problem.cluster
    best = np.full((len(order) + 1, n + 1), np.inf)
    best[:, 0] = 0.0
    chosen = np.zeros((len(order) + 1, n + 1), dtype=np.int64)
    total = np.concatenate(([0.0], np.cumsum(need)))
    rates = [
        float(rate)
        for d in order
        for e in order
        if d != e and (rate := cluster.rate[d][e]) is not None and rate > 0
    ]
    slow = 1 / min(rates) if rates else 0.0
    for j, d in enumerate(order, start=1):
        limit = cluster.cluster.memory[d]
        room = np.inf if limit is None or problem.options.memory == "none" else float(limit)
        ends = np.concatenate(([0.0], np.cumsum(line.time[:, d])))
        best[j], chosen[j] = best[j - 1], np.arange(n + 1)
        for i in range(1, n + 1):
            # The stage begins before i; what crosses its border counts in the later stage.
            value = reduce(best[j - 1, :i], ends[i] - ends[:i] + line.crossing[:i] * slow)
            value = np.where(total[i] - total[:i] <= room, value, np.inf)
            least = int(np.argmin(value))
            if value[least] < best[j, i]:
                best[j, i], chosen[j, i] = value[least], least
    if not np.isfinite(best[len(order), n]):
        return None
    device = [0] * n
    i = n
    for j in range(len(order), 0, -1):
        device[chosen[j, i] : i] = [order[j - 1]] * (i - int(chosen[j, i]))
        i = int(chosen[j, i])
    return device
