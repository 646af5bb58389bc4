"""From a strategy to an instance: the graph that the devices then run ([G] §3.4).

``docs/training.md`` says what every option means and where the rules come from.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

from optpart.applications.training.cluster import TrainingCluster
from optpart.applications.training.collectives import (
    allreduce,
    missing_link,
    ring_chunks,
    ring_order,
)
from optpart.applications.training.compiled import (
    DEFAULT,
    Compiled,
    CompiledVertex,
    Options,
    Tensor,
    VertexKind,
)
from optpart.applications.training.graph import CONTROL, Edge, Layout, Role, TrainingGraph
from optpart.applications.training.instance_builder import InstanceBuilder
from optpart.applications.training.strategy import ALL, Interval, Strategy, overlap
from optpart.base.errors import InputError, OptpartError
from optpart.base.escaping import listed
from optpart.problem.rational import rounded
from optpart.solution.schedule import Schedule
from optpart.solution.verifier import Violation, verify


def compile_strategy(
    graph: TrainingGraph, cluster: TrainingCluster, strategy: Strategy, options: Options = DEFAULT
) -> Compiled:
    """Turn a strategy into the instance that the devices run.

    Raises
    ------
    InputError
        If the strategy does not fit the graph or the cluster, it needs a link that is missing, or
        the parameters fit on no device.
    """
    strategy.check(graph, cluster)
    most = max(decision.total for decision in strategy.decisions)
    if options.microbatches > 1 and most * options.microbatches > strategy.batch:
        raise InputError(
            "microbatches",
            f"{options.microbatches} for {most} replicas and a batch of {strategy.batch}",
            "give fewer, or a larger batch",
        )
    limited = any(memory is not None for memory in cluster.cluster.memory)
    if options.memory == "refcount" and limited:
        check_parameters_fit(graph, cluster, options.slots)
        if options.topology == "shared":
            raise InputError(
                "topology",
                "shared links do not keep limits of memory",
                "choose pairs, or leave memory out (none)",
            )
    return _Compiler(graph, cluster, strategy, options).run()


def check_parameters_fit(graph: TrainingGraph, cluster: TrainingCluster, slots: int) -> None:
    """Check that the parameters may fit on the devices under some strategy.

    Raises
    ------
    InputError
        If operations that must stay together need more than the largest memory, or all parameters
        need more than all memories. Names a least set of parameters.
    """
    limits = [m for m in cluster.cluster.memory if m is not None]
    if len(limits) < len(cluster):
        return
    together: dict[int, list[tuple[Fraction, str]]] = {}
    home = {o: i for i, group in enumerate(graph.tied) for o in group}
    for parameter in graph.parameters:
        applied = any(graph.operations[u].role is Role.APPLY for u in parameter.users)
        size = parameter.size * (1 + slots if applied else 1)
        together.setdefault(home[parameter.users[0]], []).append((size, parameter.name))
    everything = [one for tied in together.values() for one in tied]
    for rows, room, where in (
        *((tied, max(limits), "the largest device has") for tied in together.values()),
        (everything, sum(limits), "all devices have"),
    ):
        total, named = Fraction(0), []
        for size, name in sorted(rows, reverse=True):
            total += size
            named.append(name)
            if total > room:
                raise InputError(
                    f"parameters {listed(named)}",
                    f"need {rounded(total, up=True)} bytes with the optimiser's, "
                    f"but {where} {rounded(Fraction(room), up=False)}",
                    "add memory, or choose an optimiser that keeps less",
                )


def memory_violation(compiled: Compiled, schedule: Schedule) -> Violation | None:
    """Verify a schedule of a compiled strategy; return where memory does not suffice, if anywhere.

    Raises
    ------
    OptpartError
        If the verifier finds anything but memory: the compiler or the simulator is wrong.
    """
    violations = verify(compiled.instance, schedule)
    others = [violation for violation in violations if violation.rule != "memory"]
    if others:
        raise OptpartError(f"a compiled strategy breaks a rule: {others[0]}")
    return violations[0] if violations else None


class _Replica(NamedTuple):
    vertex: int
    device: int
    samples: Interval


class _Compiler:
    """The state of one compilation; :meth:`run` does it."""

    def __init__(
        self, graph: TrainingGraph, cluster: TrainingCluster, strategy: Strategy, options: Options
    ) -> None:
        self.graph, self.cluster, self.strategy, self.options = graph, cluster, strategy, options
        self.resident = graph.held(options.slots)
        self.decisions = strategy.of_operations(len(graph))
        self.kinds = cluster.kind_indices(graph.kinds)
        self.samples = Fraction(strategy.batch, options.microbatches)
        self.builder = InstanceBuilder(graph, cluster, options)
        #: By operation and microbatch; an apply has none but the first.
        self.replicas: list[list[list[_Replica]]] = []
        self.splits: dict[Tensor, int] = {}
        self.parts: dict[int, list[Interval]] = {}
        self.chunks: dict[int, tuple[int, bool]] = {}
        self.sources: dict[object, Tensor] = {}
        self.layouts: dict[object, list[Tensor]] = {}
        self.sums: dict[object, dict[int, list[Tensor]]] = {}

    def run(self) -> Compiled:
        for o in range(len(self.graph)):
            copies = 1 if self._is_apply(o) else self.options.microbatches
            self.replicas.append([self._replicate(o, m) for m in range(copies)])
            if copies > 1:  # of a replica, all microbatches run on its device
                vertices = ([replica.vertex for replica in copy] for copy in self.replicas[o])
                self.builder.together += zip(*vertices, strict=True)
        for o in self.graph.topological_order:
            for edge in self.graph.in_edges[o]:
                self._connect(edge)
        return Compiled(
            self.graph,
            self.cluster,
            self.strategy,
            self.options,
            self.builder.instance(),
            tuple(self.builder.vertices),
            {vertex: tuple(parts) for vertex, parts in self.parts.items()},
            self.chunks,
        )

    # --- replicas --------------------------------------------------------------------------

    def _is_apply(self, o: int) -> bool:
        return self.graph.operations[o].role is Role.APPLY

    def _replicate(self, o: int, microbatch: int) -> list[_Replica]:
        operation, decision = self.graph.operations[o], self.decisions[o]
        made = []
        for d, interval in decision.intervals.items():
            count = decision.replicas[d]
            # Parameters and what does not split are there once, however many replicas use them.
            if self.options.replicas == "fused" or self._is_apply(o) or not operation.splittable:
                count = 1
            for i, samples in enumerate(_equal_parts(interval, count)):
                if not operation.splittable:
                    samples = ALL
                name = f"{operation.name} @{self.cluster.names[d]}"
                if count > 1:
                    name += f" #{i + 1}"
                if self.options.microbatches > 1 and not self._is_apply(o):
                    name += f" m{microbatch + 1}"
                width = samples[1] - samples[0]
                whole = self.strategy.batch if self._is_apply(o) else self.samples
                vertex = self.builder.vertex(
                    CompiledVertex(VertexKind.REPLICA, o, CONTROL, d, samples, microbatch),
                    name,
                    operation.times[self.kinds[d]].at(width * whole),
                    [output.size.at(width * self.samples) for output in operation.outputs],
                    self.resident[o] if i == 0 and microbatch == 0 else Fraction(0),
                )
                made.append(_Replica(vertex, d, samples))
        return made

    def _copies(self, o: int, microbatch: int) -> list[_Replica]:
        """Return the replicas for a microbatch; an apply serves all of them."""
        return self.replicas[o][0 if self._is_apply(o) else microbatch]

    # --- edges -----------------------------------------------------------------------------

    def _connect(self, edge: Edge) -> None:
        o, consumer = edge.producer, edge.consumer
        if edge.output == CONTROL:
            for m in range(self.options.microbatches):
                for replica in self._copies(o, m):
                    for target in self._copies(consumer, m):
                        self.builder.edge((replica.vertex, CONTROL), target.vertex)
            return
        layout = self.graph.operations[o].outputs[edge.output].layout
        if layout is Layout.SUMMED:
            self._connect_sum(edge)
            return
        if layout is Layout.BATCHED and self._is_apply(consumer) and self.options.microbatches > 1:
            raise InputError(
                self.graph.operations[consumer].name,
                "reads samples, of which every microbatch has others",
                "let it read a sum over samples, or choose one microbatch",
            )
        for m in range(1 if self._is_apply(consumer) else self.options.microbatches):
            targets = self._copies(consumer, m)
            if layout is Layout.WHOLE:
                tensors = [
                    (self._source(o, edge.output, m, t.device), edge.output) for t in targets
                ]
            elif self.options.resharding == "heterog":
                tensors = self._heterog(o, edge.output, m, targets)
            else:
                tensors = [self._overlap(o, edge.output, m, t.device, t.samples) for t in targets]
            for tensor, target in zip(tensors, targets, strict=True):
                self.builder.edge(tensor, target.vertex)

    def _source(self, o: int, output: int, m: int, device: int, samples: Interval = ALL) -> int:
        """Choose among whole copies: the device's own, else the one that arrives soonest."""
        replicas = self._copies(o, m)
        own = [replica for replica in replicas if replica.device == device]
        if own:
            return own[0].vertex
        size = self._size(o, output, samples)
        linked = [r for r in replicas if self.cluster.linked(r.device, device)]
        if not linked:
            raise self.builder.no_link(o, replicas[0].device, device)
        return min(linked, key=lambda r: self.cluster.transfer(r.device, device, size)).vertex

    # --- slices of samples -----------------------------------------------------------------

    def _overlap(self, o: int, output: int, m: int, device: int, samples: Interval) -> Tensor:
        """Return what holds ``samples`` on a device, made of the slices that overlap them."""
        key = (o, output, m, device, samples)
        if key not in self.sources:
            if self.graph.operations[o].splittable:
                pieces = [
                    self._slice((r.vertex, output), common)
                    for r in self._copies(o, m)
                    if (common := overlap(r.samples, samples))
                ]
            else:
                whole = self._source(o, output, m, device, samples), output
                pieces = [self._slice(whole, samples)]
            self.sources[key] = self._joined(pieces, o, output, m, device, samples)
        return self.sources[key]

    def _heterog(self, o: int, output: int, m: int, targets: Sequence[_Replica]) -> list[Tensor]:
        """Return what each target reads, by the rules of [R].

        Where both sides have parts of the samples, [R] chunks them by the greatest common divisor
        of the numbers of replicas. That is to chunk them wherever a part begins on both sides,
        which says the same for parts of unlike size.
        """
        key = (o, output, m, tuple((target.device, target.samples) for target in targets))
        if key in self.layouts:
            return self.layouts[key]
        replicas = self._copies(o, m)
        tensors = [(replica.vertex, output) for replica in replicas]
        if replicas[0].samples == ALL:
            if targets[0].samples == ALL:
                found = [(self._source(o, output, m, t.device), output) for t in targets]
            else:
                found = [self._slice(tensors[0], target.samples) for target in targets]
        elif targets[0].samples == ALL:
            joined = self._joined(tensors, o, output, m, targets[0].device, ALL)
            found = [joined] * len(targets)
        else:
            found = []
            for part in _common_parts(replicas, targets):
                inside = [r for r in replicas if overlap(r.samples, part)]
                joined = self._joined(
                    [(r.vertex, output) for r in inside], o, output, m, inside[0].device, part
                )
                found += [
                    self._slice(joined, t.samples) for t in targets if overlap(t.samples, part)
                ]
        self.layouts[key] = found
        return found

    def _slice(self, tensor: Tensor, samples: Interval) -> Tensor:
        """Return the part of a tensor for some of its samples; equal parts are made once."""
        vertex = self.builder.vertices[tensor[0]]
        if samples == vertex.samples:
            return tensor
        o = vertex.operation
        output = tensor[1] if vertex.kind is VertexKind.REPLICA else vertex.output
        if tensor not in self.splits:
            d = vertex.device
            split = self.builder.vertex(
                vertex._replace(kind=VertexKind.SPLIT, output=output),
                self._name("split", o, output, d, vertex.microbatch),
                self._copying(d, self.builder.size(tensor)),
            )
            self.builder.edge(tensor, split)
            self.splits[tensor] = split
            self.parts[split] = []
        split = self.splits[tensor]
        if samples not in self.parts[split]:
            self.parts[split].append(samples)
            self.builder.output(split, self._size(o, output, samples))
        return split, self.parts[split].index(samples)

    def _joined(
        self, pieces: list[Tensor], o: int, output: int, m: int, device: int, samples: Interval
    ) -> Tensor:
        """Return the one piece, or the Concat of several, in the order of their samples."""
        if len(pieces) == 1:
            return pieces[0]
        size = self._size(o, output, samples)
        vertex = self.builder.vertex(
            CompiledVertex(VertexKind.CONCAT, o, output, device, samples, m),
            self._name("concat", o, output, device, m),
            self._copying(device, size),
            [size],
        )
        for piece in pieces:
            self.builder.edge(piece, vertex)
        return vertex, 0

    def _size(self, o: int, output: int, samples: Interval) -> Fraction:
        line = self.graph.operations[o].outputs[output].size
        return line.at((samples[1] - samples[0]) * self.samples)

    def _copying(self, device: int, size: Fraction) -> Fraction:
        free = self.options.auxiliary == "free"
        return Fraction(0) if free else self.cluster.copying(device, size)

    def _name(self, kind: str, o: int, output: int, device: int, m: int) -> str:
        name = f"{kind} {self._tensor_name(o, output)} @{self.cluster.names[device]}"
        return f"{name} m{m + 1}" if self.options.microbatches > 1 else name

    def _tensor_name(self, o: int, output: int) -> str:
        return f"{self.graph.operations[o].name}:{output}"

    # --- sums over samples -----------------------------------------------------------------

    def _connect_sum(self, edge: Edge) -> None:
        key = edge.producer, edge.output
        if key not in self.sums:
            self.sums[key] = self._synchronised(*key)
        tensors = self.sums[key]
        for target in self._copies(edge.consumer, 0):
            for tensor in tensors[target.device]:
                self.builder.edge(tensor, target.vertex)

    def _synchronised(self, o: int, output: int) -> dict[int, list[Tensor]]:
        """Return, by device, what an apply reads and waits for to have the whole sum."""
        decision = self.decisions[o]
        local = {d: self._accumulated(o, output, d) for d in decision.devices}
        if len(local) == 1 or not self.graph.operations[o].splittable:
            return {d: [tensor] for d, tensor in local.items()}
        if decision.sync != "allreduce":
            assert decision.sync is not None
            total = self._sum([*local.values()], o, output, decision.sync)
            return {d: [total] for d in local}
        if self.options.collectives == "ring":
            return self._ring(o, output, local)
        size = self._size(o, output, ALL)
        vertex = self.builder.vertex(
            CompiledVertex(VertexKind.ALLREDUCE, o, output, self.builder.nccl),
            f"allreduce {self._tensor_name(o, output)}",
            allreduce(self.cluster, local, size).time,
        )
        for producer, _ in local.values():
            self.builder.edge((producer, CONTROL), vertex)
        return {d: [tensor, (vertex, CONTROL)] for d, tensor in local.items()}

    def _accumulated(self, o: int, output: int, device: int) -> Tensor:
        """Return the sum of the replicas on a device, of one microbatch after another."""
        total: list[Tensor] = []
        for copies in self.replicas[o]:
            total += [(r.vertex, output) for r in copies if r.device == device]
            if len(total) > 1:
                total = [self._sum(total, o, output, device)]
        return total[0]

    def _sum(self, tensors: list[Tensor], o: int, output: int, device: int) -> Tensor:
        size = self._size(o, output, ALL)
        m = max(self.builder.vertices[v].microbatch for v, _ in tensors)
        vertex = self.builder.vertex(
            CompiledVertex(VertexKind.ADDN, o, output, device, microbatch=m),
            self._name("addn", o, output, device, m),
            self._copying(device, size),
            [size],
        )
        for tensor in tensors:
            self.builder.edge(tensor, vertex)
        return vertex, 0

    def _ring(self, o: int, output: int, local: dict[int, Tensor]) -> dict[int, list[Tensor]]:
        ring = ring_order(self.cluster, local)
        n = len(ring)
        for i, d in enumerate(ring):
            if not self.cluster.linked(d, ring[(i + 1) % n]):
                raise missing_link(self.cluster, ring)
        size = self._size(o, output, ALL) / n
        found: dict[int, list[Tensor]] = {d: [tensor] for d, tensor in local.items()}
        before: list[int] = []
        for step, position, chunk in ring_chunks(n):
            d = ring[position]
            last = step == 2 * (n - 1)
            vertex = self.builder.vertex(
                CompiledVertex(VertexKind.CHUNK, o, output, d),
                f"chunk {chunk + 1} of {self._tensor_name(o, output)} "
                f"after step {step} @{self.cluster.names[d]}",
                Fraction(0),
                [] if last else [size],
            )
            self.chunks[vertex] = (chunk, step < n)
            if step:
                previous = before[(step - 1) * n + (position - 1) % n]
                self.builder.edge((previous, 0), vertex)
            self.builder.edge(local[d], vertex)
            if step >= n - 1:
                found[d].append((vertex, CONTROL))
            before.append(vertex)
        return found


def _equal_parts(samples: Interval, count: int) -> list[Interval]:
    first, last = samples
    return [*pairwise(first + (last - first) * i / count for i in range(count + 1))]


def _common_parts(one: Iterable[_Replica], two: Iterable[_Replica]) -> list[Interval]:
    """Cut [0, 1) wherever a part begins on both sides."""
    cuts = {r.samples[0] for r in one} & {r.samples[0] for r in two}
    return [*pairwise((*sorted(cuts), Fraction(1)))]
