"""Execution of training graphs and compiled strategies with numbers.

A compiled strategy is run vertex by vertex in a random topological order. Nothing reaches a vertex
except by the edges of the instance, so a missing edge or vertex shows in the updated parameters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from optpart.applications.training.compiled import Compiled, VertexKind
from optpart.applications.training.graph import CONTROL, Role
from optpart.applications.training.strategy import Interval
from optpart.testing.training import Array, NumericGraph

#: Edges of a compiled instance: producer, output, consumer.
Edges: TypeAlias = Sequence[tuple[int, int, int]]


def updated(numeric: NumericGraph, batch: int) -> dict[str, Array]:
    """Return the parameters after an iteration on a single device."""
    graph, weights = numeric.graph, dict(numeric.weights)
    made: dict[int, list[Array]] = {}
    for o in graph.topological_order:
        inputs = [made[e.producer][e.output] for e in graph.in_edges[o] if e.output != CONTROL]
        made[o] = numeric.functions[o](inputs, weights, range(batch))
    return weights


def edges_of(compiled: Compiled) -> list[tuple[int, int, int]]:
    """Return the edges of the instance in their order, which is that of a vertex's inputs."""
    graph = compiled.instance.graph
    output = graph.tensor_output[graph.edge_tensor].tolist()
    return [*zip(graph.edge_source.tolist(), output, graph.edge_target.tolist(), strict=True)]


def updated_by(
    compiled: Compiled,
    numeric: NumericGraph,
    rng: np.random.Generator,
    edges: Edges | None = None,
) -> dict[int, dict[str, Array]]:
    """Return the parameters on each device after the compiled iteration.

    Parameters
    ----------
    edges : sequence of (int, int, int), optional
        In place of those of the instance, to see what a missing one does.
    """
    return _Execution(compiled, numeric, edges_of(compiled) if edges is None else edges).run(rng)


def same_update(
    compiled: Compiled, found: Mapping[int, Mapping[str, Array]], expected: Mapping[str, Array]
) -> bool:
    """Return whether every device has the expected value of each parameter that it updates."""
    graph = compiled.graph
    decisions = compiled.strategy.of_operations(len(graph))
    return all(
        np.array_equal(found[d][parameter.name], expected[parameter.name])
        for parameter in graph.parameters
        for user in parameter.users
        if graph.operations[user].role is Role.APPLY
        for d in decisions[user].devices
    )


class _Execution:
    def __init__(self, compiled: Compiled, numeric: NumericGraph, edges: Edges) -> None:
        self.compiled = compiled
        self.numeric = numeric
        n = len(compiled.vertices)
        self.incoming: list[list[tuple[int, int]]] = [[] for _ in range(n)]
        self.outgoing: list[set[int]] = [set() for _ in range(n)]
        for u, output, v in edges:
            self.incoming[v].append((u, output))
            self.outgoing[u].add(v)
        self.weights = {d: dict(numeric.weights) for d in range(len(compiled.cluster))}
        self.made: list[list[Array]] = [[] for _ in range(n)]
        self.microbatch = compiled.strategy.batch // compiled.options.microbatches

    def run(self, rng: np.random.Generator) -> dict[int, dict[str, Array]]:
        missing = [len({u for u, _ in incoming}) for incoming in self.incoming]
        ready = [v for v, count in enumerate(missing) if not count]
        while ready:
            v = ready.pop(int(rng.integers(len(ready))))
            self.made[v] = self._execute(v)
            for w in self.outgoing[v]:
                missing[w] -= 1
                if not missing[w]:
                    ready.append(w)
        return self.weights

    def _execute(self, v: int) -> list[Array]:
        what = self.compiled.vertices[v]
        inputs = [self.made[u][output] for u, output in self.incoming[v] if output != CONTROL]
        match what.kind:
            case VertexKind.REPLICA:
                start = what.microbatch * self.microbatch
                first, last = (int(cut * self.microbatch) for cut in what.samples)
                function = self.numeric.functions[what.operation]
                samples = range(start + first, start + last)
                return function(inputs, self.weights[what.device], samples)
            case VertexKind.SPLIT:
                (whole,) = inputs
                return [
                    whole[self._place(part[0], what.samples) : self._place(part[1], what.samples)]
                    for part in self.compiled.parts[v]
                ]
            case VertexKind.CONCAT:
                joined = np.concatenate(inputs)
                if len(joined) != self._place(what.samples[1], what.samples):
                    raise ValueError(f"{len(joined)} samples")
                return [joined]
            case VertexKind.ADDN:
                return [sum(inputs[1:], start=inputs[0])]
            case VertexKind.ALLREDUCE:
                # In place: the devices' own gradients become the sum.
                buffers = [self._gradient(u, what.output) for u, _ in self.incoming[v]]
                total = sum(buffers[1:], start=buffers[0])
                for buffer in buffers:
                    buffer[...] = total
                return []
            case VertexKind.CHUNK:
                return self._chunk(v, inputs)
            case VertexKind.TRANSFER:
                return [value.copy() for value in inputs]

    def _chunk(self, v: int, inputs: list[Array]) -> list[Array]:
        """Add or put a received chunk into the device's own gradient, and send it on."""
        vertices, what = self.compiled.vertices, self.compiled.vertices[v]
        number, adds = self.compiled.chunks[v]
        producers = [u for u, output in self.incoming[v] if output != CONTROL]
        sent = [vertices[u].device != what.device for u in producers]
        received = [x for x, there in zip(inputs, sent, strict=True) if there]
        (gradient,) = (x for x, there in zip(inputs, sent, strict=True) if not there)
        flat = gradient.reshape(-1)
        decisions = self.compiled.strategy.of_operations(len(self.compiled.graph))
        n = len(decisions[what.operation].devices)
        place = np.array_split(np.arange(len(flat)), n)[number]
        for value in received:
            flat[place] = flat[place] + value if adds else value
        return [flat[place].copy()]

    def _gradient(self, u: int, output: int) -> Array:
        replica = self.compiled.vertices[u].kind is VertexKind.REPLICA
        return self.made[u][output if replica else 0]

    def _place(self, cut: Fraction, whole: Interval) -> int:
        return int((cut - whole[0]) * self.microbatch)
