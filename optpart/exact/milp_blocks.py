"""Contiguous blocks and loads in the linear program (design §2).

The rows differ from those for CP-SAT (:mod:`optpart.exact.blocks`), so that each checks the other:
a vertex between two vertices of a device is on that device.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pulp

from optpart.exact.milp_model import MilpModel, consumers
from optpart.exact.milp_task import passed_tensors
from optpart.problem.model import Resource


def blocks(model: MilpModel) -> Iterator[Any]:
    """Yield rows that keep blocks contiguous, or along the order of devices, if asked for."""
    edges = sorted(passed_tensors(model.instance))
    if model.task.device_order:
        yield from _along(model, edges)
    elif model.task.contiguous:
        for d in range(model.instance.devices):
            yield from _block(model, edges, d)


def _along(model: MilpModel, edges: list[tuple[int, int]]) -> Iterator[Any]:
    """No edge goes from a later device of the order back to an earlier one."""
    order, unit = model.task.device_order, model.unit
    for u, v in sorted({(unit[a], unit[b]) for a, b in edges if unit[a] != unit[b]}):
        for i in range(1, len(order)):
            here, there = (
                pulp.lpSum(model.on[w, d] for d in order[i:] if (w, d) in model.on) for w in (u, v)
            )
            yield there - here >= 0


def _block(model: MilpModel, edges: list[tuple[int, int]], d: int) -> Iterator[Any]:
    """A vertex with a vertex of the block before it and one after it is in the block itself."""
    topological = model.instance.graph.topological_order.tolist()
    incoming: dict[int, list[int]] = defaultdict(list)
    outgoing: dict[int, list[int]] = defaultdict(list)
    for u, v in edges:
        incoming[v].append(u)
        outgoing[u].append(v)
    begun: dict[int, pulp.LpVariable] = {}
    going: dict[int, pulp.LpVariable] = {}
    yield from _spread(model, topological, incoming, d, begun, "a")
    yield from _spread(model, topological[::-1], outgoing, d, going, "b")
    for v in topological:
        if v in begun and v in going:
            here = model.on.get((model.unit[v], d))
            yield begun[v] + going[v] - (0 if here is None else here) <= 1


def _spread(
    model: MilpModel,
    order: list[int],
    before: dict[int, list[int]],
    d: int,
    found: dict[int, pulp.LpVariable],
    name: str,
) -> Iterator[Any]:
    """Add variables for whether a vertex, or one from which it is reached, is on a device."""
    placement = model.task.placement
    for v in order:
        here = model.on.get((model.unit[v], d))
        sources = [found[u] for u in before[v] if u in found]
        sources += [] if here is None else [here]
        if not sources:
            continue
        found[v] = model.problem.add_variable(f"{name}_{v}_{d}", 0, 1)
        if placement is not None:
            found[v].setInitialValue(int(any(source.varValue for source in sources)))
        yield from (found[v] - source >= 0 for source in sources)


def loads(model: MilpModel) -> Iterator[Any]:
    """Yield rows that keep every load below the objective, which is the bottleneck.

    All are in ticks divided by the channels of a port.
    """
    load: dict[Resource, list[tuple[int, pulp.LpVariable]]] = defaultdict(list)
    rules = model.instance.model
    share = rules.parallel
    for (u, d), literal in model.on.items():
        run = sum(int(model.grid.duration[v, d]) for v in model.instance.units[u].tolist())
        load["device", d, d].append((share * run, literal))
    for tensor, units in consumers(model.instance).items():
        maker = model.unit[int(model.instance.graph.tensor_vertex[tensor])]
        for e in model.devices[maker]:
            for d in range(model.instance.devices):
                there = [model.on[u, d] for u in sorted(units - {maker}) if (u, d) in model.on]
                if d == e or not there:
                    continue
                here, delay = model.on[maker, e], model.grid.delay(tensor, e, d)
                if delay < 0:
                    yield from (here + literal <= 1 for literal in there)
                    continue
                resources = rules.occupied(e, d)
                if not resources:
                    continue
                crosses = model.problem.add_variable(f"z_{tensor}_{e}_{d}", 0, 1)
                if model.task.placement is not None:
                    used = here.varValue and any(literal.varValue for literal in there)
                    crosses.setInitialValue(int(bool(used)))
                yield from (crosses - here - literal >= -1 for literal in there)
                amount = int(model.grid.send[e]) if rules.sends else delay
                for resource in resources:
                    load[resource].append((amount, crosses))
    _, most = model.task.sought
    for terms in load.values():
        # More than the limit is too much, however much more; solvers expect moderate numbers.
        total = pulp.lpSum(min(amount, most + 1) * literal for amount, literal in terms)
        yield model.objective - total >= 0
