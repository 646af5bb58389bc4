"""The memory that each device holds over time, in exact arithmetic."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from optpart.report.html.waits import Waits

#: What a device holds from each of these times on, ascending; nothing before the first.
Curve = list[tuple[Fraction, Fraction]]


def memory_curves(waits: Waits) -> list[Curve] | None:
    """Return what each device holds under the instance's memory model (design §2).

    Returns
    -------
    list of curve, length k, or None
        ``None`` if the model is ``none``.
    """
    instance = waits.instance
    if instance.model.memory == "none":
        return None
    scale = instance.graph.tensor_size.denominator
    held = _static(waits)
    if instance.model.memory == "estimate":
        return [[(Fraction(0), amount)] for amount in held]
    uses = _edges(waits) if instance.model.memory == "edges" else _copies(waits)
    changes: list[defaultdict[Fraction, int]] = [defaultdict(int) for _ in held]
    for d, since, until, size in uses:
        if since < until:  # half-open: a copy that lives for no time takes no memory
            changes[d][since] += size
            changes[d][until] -= size
    curves = []
    for d, amount in enumerate(held):
        curve = [(Fraction(0), amount)]
        total = 0
        for time in sorted(changes[d]):
            if changes[d][time]:
                total += changes[d][time]
                if time == 0:
                    curve.clear()
                curve.append((time, amount + Fraction(total, scale)))
        curves.append(curve)
    return curves


def _static(waits: Waits) -> list[Fraction]:
    """Return the memory that each device holds for the whole run."""
    instance = waits.instance
    units = [waits.device[members[0]] for members in instance.units]
    on = np.array(units, dtype=np.int64)
    return [instance.static_memory.sum(np.flatnonzero(on == d)) for d in range(instance.devices)]


def _edges(waits: Waits) -> Iterator[tuple[int, Fraction, Fraction, int]]:
    graph = waits.instance.graph
    sizes = graph.tensor_size.numerators.tolist()
    arrivals = dict(zip(zip(waits.tensor, waits.target, strict=True), waits.arrival, strict=True))
    columns = (graph.edge_source, graph.edge_target, graph.edge_tensor)
    for u, v, tensor in zip(*(column.tolist() for column in columns), strict=True):
        d = waits.device[v]
        arrival = waits.end[u] if waits.device[u] == d else arrivals[tensor, d]
        yield d, arrival, waits.start[v], sizes[tensor]


def _copies(waits: Waits) -> Iterator[tuple[int, Fraction, Fraction, int]]:
    instance, graph = waits.instance, waits.instance.graph
    sizes = graph.tensor_size.numerators.tolist()
    freed = waits.start if instance.model.release == "start" else waits.end
    last: dict[tuple[int, int], Fraction] = {}
    for v, tensor in zip(graph.edge_target.tolist(), graph.edge_tensor.tolist(), strict=True):
        copy = tensor, waits.device[v]
        last[copy] = max(last.get(copy, freed[v]), freed[v])
    home = [waits.device[u] for u in waits.producer]
    until = [waits.end[u] for u in waits.producer]
    for tensor, arrival in zip(waits.tensor, waits.arrival, strict=True):
        until[tensor] = max(until[tensor], arrival)
    for tensor, u in enumerate(waits.producer):
        end = max(until[tensor], last.get((tensor, home[tensor]), until[tensor]))
        yield home[tensor], waits.start[u], end, sizes[tensor]
    for tensor, d, begin in zip(waits.tensor, waits.target, waits.begin, strict=True):
        yield d, begin, last[tensor, d], sizes[tensor]
