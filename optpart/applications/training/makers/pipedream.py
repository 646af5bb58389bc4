"""PipeDream's dynamic programme: stages with replicas whose longest takes the least time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cache, cached_property
from itertools import accumulate
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optpart.applications.training.actions import even, gradients, proportional, speeds
from optpart.applications.training.collectives import allreduce, ring_order
from optpart.applications.training.graph import CONTROL
from optpart.applications.training.groups import along
from optpart.applications.training.makers.base import DEFAULT, Clock, Made, evaluate_exactly
from optpart.applications.training.problem import StrategyProblem
from optpart.applications.training.strategy import Decision
from optpart.base.errors import InputError
from optpart.solution.result import Budget

Floats = NDArray[np.float64]


def pipedream(problem: StrategyProblem, *, budget: Budget = DEFAULT, seed: int = 0) -> Made:
    """Cut the model into stages on runs of devices; the longest stage or border is least.

    From Narayanan et al., *PipeDream: Generalized Pipeline Parallelism for DNN Training* (SOSP
    2019) §3.1: ``A(j, m)``, the least time of the slowest stage that runs groups 1 to j on m
    devices, is the least, over the first group and the number of devices of the last stage, of the
    largest of ``A(i, m′)``, the border ``2 · activations / bandwidth`` and the stage; a replicated
    stage takes the longer of computation and AllReduce, which overlap.

    What differs: PipeDream's devices are equal, on levels of bandwidth. Here stages take runs of
    the devices in a given order, and replicas are even or in proportion to the speeds, whichever is
    shorter; two orders are tried, server by server and the fastest first, and devices at the end
    may stay empty. A border's bandwidth is that between the devices on its two sides. That each
    device holds its parameters and the optimiser's tensors is a constraint. PipeDream minimises the
    time per item of a pipeline that never drains; here it is judged, as all makers are, by one
    iteration; unless it has microbatches, a device of a pipeline waits for all the others.
    """
    clock = Clock(budget)
    best = least_bottleneck(problem)
    clock.moves = 1
    if best is None:
        return evaluate_exactly(problem, None, clock, "no stages fit memory and links")
    return evaluate_exactly(problem, best.decisions(problem), clock)


def least_bottleneck(problem: StrategyProblem) -> Stages | None:
    """Return the stages of :func:`pipedream`; ``None`` if none fit memory and links."""
    k = len(problem.cluster)
    speed = speeds(problem)
    by_server = ring_order(problem.cluster, range(k))
    by_speed = tuple(sorted(range(k), key=lambda d: (-speed[d], d)))
    best: Stages | None = None
    for order in dict.fromkeys((by_server, by_speed)):
        found = StageCosts(problem, order).best()
        if found is not None and (best is None or found.bottleneck < best.bottleneck):
            best = found
    return best


class Stages(NamedTuple):
    """Consecutive stages: groups and decision of each."""

    bottleneck: float  # nanoseconds of the longest stage or border
    stages: tuple[tuple[tuple[int, ...], Decision], ...]

    def decisions(self, problem: StrategyProblem) -> list[Decision]:
        """Return the decision of each group."""
        found = {group: decision for groups, decision in self.stages for group in groups}
        return [found[g] for g in range(len(problem.groups))]


class StageCosts:
    """Times of stages and borders, for groups in the order of the forward pass.

    Each stage takes a run of the devices in ``order``.
    """

    def __init__(self, problem: StrategyProblem, order: Sequence[int]) -> None:
        self.problem, self.order = problem, tuple(order)
        self.groups = along(problem.graph, problem.groups)
        self._counts = even(problem), proportional(problem)
        held = problem.graph.held(problem.options.slots)
        each = (sum((held[o] for o in problem.groups[g]), Fraction(0)) for g in self.groups)
        #: Bytes that the first groups hold for the whole run.
        self._resident = [*accumulate(each, initial=Fraction(0))]
        #: Bytes of the gradients of each group.
        self._sums = [[size for _, _, size in gradients(problem, g)] for g in self.groups]
        # The dynamic programme asks for each many times.
        self._replicated = cache(self._decisions)
        self._synchronised = cache(self._all_reduced)
        self._border = cache(self._across)

    def best(self) -> Stages | None:
        """Return the stages of the dynamic programme; ``None`` if there are none."""
        n, k = len(self.groups), len(self.order)
        least = np.full((n + 1, k + 1), np.inf)
        least[0, 0] = 0.0
        cut: dict[tuple[int, int], tuple[int, int]] = {}
        for j in range(1, n + 1):
            for m in range(1, k + 1):
                for i in range(j):
                    for before in range(m) if i else (0,):
                        known = max(least[i, before], self.border(i, before))
                        if known >= least[j, m]:
                            continue
                        time = max(known, self.stage(i, j, before, m)[0])
                        if time < least[j, m]:
                            least[j, m] = time
                            cut[j, m] = i, before
        m = int(least[n].argmin())
        if not math.isfinite(least[n, m]):
            return None
        bottleneck, stages, j = float(least[n, m]), [], n
        while j:
            i, before = cut[j, m]
            stages.append((tuple(self.groups[i:j]), self.stage(i, j, before, m)[1]))
            j, m = i, before
        return Stages(bottleneck, tuple(reversed(stages)))

    def stage(self, i: int, j: int, first: int, last: int) -> tuple[float, Decision]:
        """Return the time of groups i to j on a run of devices, and its replicas.

        Infinite if a device cannot hold the stage, the batch has too few samples, or several
        devices have no ring.
        """
        problem, devices = self.problem, self.order[first:last]
        synchronised = self._synchronised(first, last)
        possible = synchronised is not None and self._fits(i, j, devices)
        best: tuple[float, Decision] | None = None
        for decision in self._replicated(devices):
            time = math.inf
            if possible and synchronised is not None and decision.total <= problem.batch:
                time = max(self._computing(i, j, decision), synchronised[j] - synchronised[i])
            if best is None or time < best[0]:
                best = time, decision
        assert best is not None
        return best

    def border(self, i: int, device: int) -> float:
        """Return the time that tensors take across a border, both ways; infinite without a link.

        There are ``i`` groups and ``device`` devices before it.
        """
        return self._border(i, device) if i and device < len(self.order) else 0.0

    def _decisions(self, devices: tuple[int, ...]) -> list[Decision]:
        """Return replicas on some devices, even and in proportion to the speeds."""
        found = []
        for counts in self._counts:
            common = math.gcd(*(counts[d] for d in devices))
            chosen = tuple(n // common if d in devices else 0 for d, n in enumerate(counts))
            found.append(Decision(chosen, "allreduce" if len(devices) > 1 else None))
        return list(dict.fromkeys(found))

    def _across(self, i: int, device: int) -> float:
        cluster = self.problem.cluster
        pair = self.order[device - 1], self.order[device]
        total = Fraction(0)
        for first, last, size, backward in self._tensors:
            if first < i <= last:
                ends = pair[::-1] if backward else pair
                if not cluster.linked(*ends):
                    return math.inf
                total += cluster.transfer(*ends, size)
        return float(total)

    def _fits(self, i: int, j: int, devices: Sequence[int]) -> bool:
        if self.problem.options.memory == "none":
            return True
        limits = self.problem.cluster.cluster.memory
        held = self._resident[j] - self._resident[i]
        return all(limit is None or held <= limit for limit in (limits[d] for d in devices))

    def _computing(self, i: int, j: int, decision: Decision) -> float:
        kind, batch = self.problem.kind, self.problem.batch
        fixed, slope = self._lines[j] - self._lines[i]
        return max(
            float(fixed[kind[d]] + slope[kind[d]] * float(decision.shares[d] * batch))
            for d in decision.devices
        )

    def _all_reduced(self, first: int, last: int) -> list[float] | None:
        """Return the time of all AllReduces of the first groups; ``None`` without a ring."""
        cluster, devices = self.problem.cluster, self.order[first:last]
        sizes = {size for sums in self._sums for size in sums}
        try:
            times = {size: float(allreduce(cluster, devices, size).time) for size in sizes}
        except InputError:
            return None
        each = (sum(times[size] for size in sums) for sums in self._sums)
        return [*accumulate(each, initial=0.0)]

    @cached_property
    def _lines(self) -> Floats:
        """Fixed times and times by sample of the first groups, groups + 1 × 2 × kinds."""
        graph, batch = self.problem.graph, self.problem.batch
        found = np.zeros((len(self.groups) + 1, 2, len(graph.kinds)))
        for i, g in enumerate(self.groups):
            for o in self.problem.groups[g]:
                operation = graph.operations[o]
                for kind, line in enumerate(operation.times):
                    split = operation.splittable
                    found[i + 1, 0, kind] += float(line.alpha if split else line.at(batch))
                    found[i + 1, 1, kind] += float(line.beta if split else 0)
        sums: Floats = found.cumsum(axis=0)
        return sums

    @cached_property
    def _tensors(self) -> list[tuple[int, int, Fraction, bool]]:
        """Tensors that leave their group: both ends, bytes, and whether against the order."""
        graph, problem = self.problem.graph, self.problem
        place = {g: i for i, g in enumerate(self.groups)}
        reach: dict[tuple[int, int], tuple[int, int]] = {}
        for edge in graph.edges:
            if edge.output != CONTROL and not graph.sums(edge):
                key = edge.producer, edge.output
                at = place[problem.group_of[edge.consumer]]
                low, high = reach.get(key, (at, at))
                reach[key] = min(low, at), max(high, at)
        found = []
        for (o, output), (low, high) in reach.items():
            at = place[problem.group_of[o]]
            size = graph.operations[o].outputs[output].size.at(problem.batch)
            if high > at:
                found.append((at, high, size, False))
            if low < at:
                found.append((low, at, size, True))
        return found
