"""Placing vertices one by one in exact arithmetic and without any haste, to test against."""

from __future__ import annotations

from fractions import Fraction

from optpart.problem.instance import Instance


class NaivePlacing:
    """Where units are, when vertices end, and when devices are idle; nothing fills gaps."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.device: dict[int, int] = {}
        self.end: dict[int, Fraction] = {}
        self.idle = [Fraction(0)] * instance.devices

    def predecessors(self, v: int) -> list[int]:
        graph = self.instance.graph
        return [int(u) for u in graph.edge_source[graph.edge_target == v]]

    def is_ready(self, v: int) -> bool:
        return v not in self.end and all(u in self.end for u in self.predecessors(v))

    def may_run(self, v: int, d: int) -> bool:
        """Whether ``v`` may go to ``d`` together with its unit, given where the others are."""
        instance, unit = self.instance, int(self.instance.unit_of[v])
        if unit in self.device:
            return self.device[unit] == d
        if not instance.allowed[unit, d]:
            return False
        capacity = instance.cluster.memory[d]
        here = [other for other, device in self.device.items() if device == d]
        needs = [instance.static_memory[other] for other in [*here, unit]]
        if capacity is not None and sum(needs) > capacity:
            return False
        for pair in instance.separated_units:
            if unit in pair and (pair[0] == pair[1] or any(other in pair for other in here)):
                return False
        return all(self._links(unit, d))

    def _links(self, unit: int, d: int) -> list[bool]:
        instance, graph = self.instance, self.instance.graph
        links = []
        for u, v, tensor in zip(
            graph.edge_source, graph.edge_target, graph.edge_tensor, strict=True
        ):
            sender, target = (int(instance.unit_of[w]) for w in (u, v))
            if target == unit and sender in self.device:
                links.append(instance.delay(int(tensor), self.device[sender], d) is not None)
            if sender == unit and target in self.device:
                links.append(instance.delay(int(tensor), d, self.device[target]) is not None)
        return links

    def start(self, v: int, d: int) -> Fraction:
        """When ``v`` could start on ``d``, where it may run."""
        graph, start = self.instance.graph, self.idle[d]
        for edge in (graph.edge_target == v).nonzero()[0]:
            u = int(graph.edge_source[edge])
            sender = self.device[int(self.instance.unit_of[u])]
            delay = self.instance.delay(int(graph.edge_tensor[edge]), sender, d)
            assert delay is not None
            start = max(start, self.end[u] + delay)
        return start

    def finish(self, v: int, d: int) -> Fraction:
        return self.start(v, d) + self.instance.duration(v, d)

    def place(self, v: int, d: int) -> None:
        self.end[v] = self.idle[d] = self.finish(v, d)
        self.device[int(self.instance.unit_of[v])] = d

    def placement(self) -> list[int]:
        return [self.device[int(unit)] for unit in self.instance.unit_of]
