"""Plans: which layers every machine holds, and how many tokens per second pass every link."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from optpart.applications.serving.problem import Serving

#: The first layer that a machine holds, and the one after the last; ``None`` for an idle machine.
Interval: TypeAlias = tuple[int, int] | None


@dataclass(frozen=True)
class Plan:
    """The layers of every machine, and a flow of tokens.

    Attributes
    ----------
    flows : mapping from (int, int) to Fraction
        Tokens per second over each link that is used.
    """

    intervals: tuple[Interval, ...]
    flows: Mapping[tuple[int, int], Fraction]

    def through(self, node: int) -> Fraction:
        """Return the tokens per second that reach a machine or the sink."""
        return sum((flow for (_, v), flow in self.flows.items() if v == node), Fraction(0))


def joined(serving: Serving, intervals: Sequence[Interval], u: int, v: int) -> bool:
    """Return whether tokens may go from ``u`` to ``v``: ``v`` holds the layer that follows."""
    ahead, behind = (None if x >= serving.source else intervals[x] for x in (u, v))
    end = 0 if u == serving.source else ahead and ahead[1]
    begin = serving.layers if v == serving.sink else behind and behind[0]
    return u != v and end is not None and end == begin


def violations(serving: Serving, plan: Plan) -> Iterator[str]:
    """Yield every rule that a plan breaks.

    A machine holds consecutive layers, no more than it has rates for. A token passes all layers
    that a machine on its way holds, and goes on where the next one is held. What enters a machine
    leaves it, at most its rate; no link carries more than it can.
    """
    names = [*(machine.name for machine in serving.machines), "source", "sink"]
    if len(plan.intervals) != len(serving.machines):
        yield f"{len(plan.intervals)} machines instead of {len(serving.machines)}"
        return
    for machine, held in zip(serving.machines, plan.intervals, strict=True):
        if held is not None and not (
            0 <= held[0] < held[1] <= serving.layers and held[1] - held[0] <= len(machine.rates)
        ):
            yield f"{machine.name} cannot hold layers {held[0]} to {held[1] - 1}"
            return
    entering: dict[int, Fraction] = defaultdict(Fraction)
    leaving: dict[int, Fraction] = defaultdict(Fraction)
    for (u, v), flow in plan.flows.items():
        link = f"{names[u]} to {names[v]}"
        if flow < 0:
            yield f"{link}: the flow is negative"
        if (u, v) not in serving.links:
            yield f"{link}: there is no link"
            continue
        capacity = serving.links[u, v]
        if capacity is not None and flow > capacity:
            yield f"{link}: {flow} tokens/s exceed {capacity}"
        if not joined(serving, plan.intervals, u, v):
            yield f"{link}: the layers do not follow each other"
        leaving[u] += flow
        entering[v] += flow
    for i, (machine, held) in enumerate(zip(serving.machines, plan.intervals, strict=True)):
        if entering[i] != leaving[i]:
            yield f"{machine.name}: {entering[i]} tokens/s enter, {leaving[i]} leave"
        if held is not None and entering[i] > machine.rates[held[1] - held[0] - 1]:
            yield f"{machine.name}: {entering[i]} tokens/s exceed its rate"


def route(serving: Serving, intervals: Sequence[Interval]) -> Plan:
    """Return a plan with these layers and a maximal flow, in exact whole numbers."""
    import networkx as nx

    graph: nx.DiGraph[object] = nx.DiGraph()
    n, source, sink = len(intervals), serving.source, serving.sink
    graph.add_nodes_from([source, sink])

    def connect(u: object, v: object, capacity: Fraction | None) -> None:
        limit = serving.whole(capacity)
        graph.add_edge(u, v, **({} if limit is None else {"capacity": limit}))

    for i, held in enumerate(intervals):
        if held is not None:
            rate = serving.machines[i].rates[held[1] - held[0] - 1]
            connect(i, ("out", i), rate)
    for (u, v), capacity in serving.links.items():
        if joined(serving, intervals, u, v):
            connect(u if u >= n else ("out", u), v, capacity)
    _, flows = nx.maximum_flow(graph, source, sink)
    found = {
        (u if u == source else u[1], v): Fraction(flow, serving.unit)
        for u, after in flows.items()
        for v, flow in after.items()
        if flow and (u == source or isinstance(u, tuple))
    }
    return Plan(tuple(intervals), found)
