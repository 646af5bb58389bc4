"""Bounds for any shares of the batch, whatever the actions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from optpart.applications.training.bounds.costs import FINE
from optpart.applications.training.graph import CONTROL, Layout, Line
from optpart.applications.training.problem import StrategyProblem, check_options
from optpart.lower_bounds.proof import Rows, minimise

#: A program that takes longer than this proves nothing.
_SECONDS = 60.0


def load(problem: StrategyProblem) -> Fraction | None:
    """Bound the iteration time of every strategy by the load of the devices.

    Minimise C over shares ``x[u,d] ≥ 0`` of each group of operations that must stay together,
    ``Σ_d x[u,d] = 1``, ``Σ_u x[u,d]·Σ_o (α + β·B) ≤ C`` on every device, and
    ``Σ_u x[u,d]·resident_u ≤ M_d``.

    A replica with the share ``x > 0`` of the batch takes ``α + β·B·x ≥ x·(α + β·B)``, and holds all
    of its parameters. Further replicas on a device, microbatches, and whatever else the compiler
    adds only add to the loads, so the bound holds for all options.

    Returns
    -------
    Fraction or None
        Nanoseconds; ``None`` if no strategy fits the memory. The multipliers of the linear program
        are evaluated in exact integers.

    Notes
    -----
    Times are rounded down to 1/1000 ns, and only the tick makes the result larger. Whole bytes are
    enough because a device holds whole replicas, and the sum of their bytes, each rounded down, is
    at most that of the device, rounded down.
    """
    graph, cluster = problem.graph, problem.cluster
    units, k = graph.tied, len(cluster)
    work = np.zeros((len(units), k), dtype=object)
    need = np.zeros(len(units), dtype=object)
    held = graph.held(problem.options.slots)
    for u, members in enumerate(units):
        for d, kind in enumerate(problem.kind):
            time = sum(
                (graph.operations[o].times[kind].at(problem.batch) for o in members), Fraction(0)
            )
            work[u, d] = math.floor(time * FINE)
        need[u] = math.floor(sum((held[o] for o in members), Fraction(0)))
    rows, columns = Rows(), np.arange(len(units) * k).reshape(len(units), k)
    rows.add(
        np.ones(len(units), dtype=np.int64),
        (np.arange(len(units))[:, None], columns, 1),
        equal=True,
    )
    longest = max(1, int(work.max()))
    rows.add(
        np.zeros(k, dtype=np.int64),
        (np.arange(k), len(units) * k, 1),
        (np.arange(k)[None, :], columns, -work.astype(np.int64)),
        scale=float(longest),
    )
    limits = cluster.cluster.memory
    for d in range(k):
        limit = None if problem.options.memory == "none" else limits[d]
        if limit is not None:
            rows.add(
                np.array([-math.floor(limit)]),
                (0, columns[:, d], -need.astype(np.int64)),
                scale=float(max(1, math.floor(limit))),
            )
    upper = np.ones(len(units) * k + 1, dtype=np.int64)
    unit = np.append(np.ones(len(units) * k), float(longest))
    proof = minimise(rows, upper, unit, len(units) * k, _SECONDS)
    if proof is None:
        return Fraction(0)
    return None if proof.value is None else _on_grid(problem, proof.value / FINE)


def average_path(problem: StrategyProblem) -> Fraction:
    """Bound the iteration time of every strategy by what its samples pass on average.

    With share ``x_d`` on device ``d``, an operation takes ``α_d + β_d·B·x_d`` there, and a share
    ``x_d`` of the samples has to wait for it. So a sample waits for
    ``Σ_d x_d·(α_d + β_d·B·x_d)`` on average, at least the minimum over all shares, and the sum of
    these minima along a path bounds the average over all samples of when its end has been
    computed. An operation that cannot split waits for all samples, and takes at least
    ``min_d (α_d + β_d·B)``. A path takes no edge along which one replica of a splittable operation
    may be all that is read: a ``WHOLE`` output.

    Raises
    ------
    InputError
        If operations have several replicas on a device or several microbatches, or slices are
        exchanged between other replicas than those that share samples: a sample then passes
        shorter tasks, or none.
    """
    check_options(problem.options, ("replicas", "resharding", "microbatches"))
    graph = problem.graph
    end = [0] * len(graph)
    for o in graph.topological_order:
        operation = graph.operations[o]
        lines = [operation.times[kind] for kind in problem.kind]
        ready = 0
        for edge in graph.in_edges[o]:
            producer = graph.operations[edge.producer]
            whole = edge.output != CONTROL and producer.outputs[edge.output].layout is Layout.WHOLE
            if whole and producer.splittable:
                continue
            ready = max(ready, end[edge.producer])
        if operation.splittable:
            least = least_average(lines, problem.batch)
        else:
            least = min(line.at(problem.batch) for line in lines)
        end[o] = ready + math.floor(least * FINE)
    return _on_grid(problem, Fraction(max(end), FINE))


def least_average(lines: Sequence[Line], batch: int) -> Fraction:
    """Return ``min Σ_d x_d (α_d + β_d·B·x_d)`` over shares ``x ≥ 0`` that sum to 1.

    All devices with ``α_d`` below some level ``μ`` have ``α_d + 2·β_d·B·x_d = μ``, and the others
    no share. A device with ``β = 0`` takes any share at that level.
    """
    level = min((line.alpha for line in lines if not line.beta), default=None)
    growing = sorted(
        ((line.alpha, line.beta * batch) for line in lines if line.beta), key=lambda pair: pair[0]
    )
    used: list[tuple[Fraction, Fraction]] = []
    slope = offset = Fraction(0)  # the shares at level μ sum to slope · μ − offset
    for alpha, beta in growing:
        if (level is not None and alpha >= level) or (used and slope * alpha - offset >= 1):
            break
        used.append((alpha, beta))
        slope += 1 / (2 * beta)
        offset += alpha / (2 * beta)
    top = (1 + offset) / slope if used else level
    assert top is not None
    if level is not None:
        top = min(top, level)
    total = rest = Fraction(0)
    for alpha, beta in used:
        share = (top - alpha) / (2 * beta)
        total += share * (alpha + beta * share)
        rest += share
    return total + (1 - rest) * top if rest < 1 else total


def _on_grid(problem: StrategyProblem, bound: Fraction) -> Fraction:
    """Return a bound rounded up to the tick, of which every compiled time is a multiple.

    Without a tick, iterations may take any time, as shares are any fractions: nothing is rounded.
    """
    tick = problem.options.tick
    return bound if tick is None else math.ceil(bound / tick) * tick
