"""From a strategy to an instance: the graph that the devices then run ([G] §3.4).

``docs/training.md`` says what every option means and where the rules come from.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from optpart.errors import InputError
from optpart.problem.cluster import Cluster, Device
from optpart.problem.graph import DelayMatrix, Graph
from optpart.problem.instance import Instance
from optpart.problem.model import Model
from optpart.problem.rational import RationalArray, shown
from optpart.training.cluster import TrainingCluster
from optpart.training.collectives import allreduce, missing_link, ring_chunks, ring_order
from optpart.training.graph import CONTROL, Edge, Layout, Role, TrainingGraph
from optpart.training.strategy import Strategy

Replicas = Literal["fused", "separate"]
Resharding = Literal["overlap", "heterog"]
Auxiliary = Literal["memory", "free"]
Collectives = Literal["queue", "ring"]
Topology = Literal["pairs", "shared"]
MemoryModel = Literal["refcount", "none"]

#: Samples as a half-open part of [0, 1).
Interval = tuple[Fraction, Fraction]

#: A vertex and the number of its output, or ``CONTROL``.
Tensor = tuple[int, int]

_ALL = (Fraction(0), Fraction(1))


class Kind(StrEnum):
    """What a vertex of a compiled instance does."""

    REPLICA = "replica"
    SPLIT = "split"
    CONCAT = "concat"
    ADDN = "addn"
    ALLREDUCE = "allreduce"
    CHUNK = "chunk"
    TRANSFER = "transfer"


@dataclass(frozen=True)
class Options:
    """How a strategy is compiled.

    Attributes
    ----------
    replicas : {"fused", "separate"}
        The replicas of an operation on one device are one vertex, or one vertex each ([G]).
    resharding : {"overlap", "heterog"}
        Between unlike layouts, devices exchange the slices in which they overlap, or as in the
        original artifact [R].
    auxiliary : {"memory", "free"}
        Split, Concat and AddN take the time that the device's memory needs, or none ([R]).
    collectives : {"queue", "ring"}
        An AllReduce is one vertex of a queue that occupies neither devices nor links ([R]), or
        the transfers along a ring.
    topology : {"pairs", "shared"}
        One link per ordered pair of devices ([G]), or one per server and one between servers ([R]).
    memory : {"refcount", "none"}
        Limits of memory hold, or are left out.
    slots : int
        Tensors that the optimiser keeps per parameter (Adam: 2).
    tick : Fraction or None
        Times are rounded up to multiples of it; ``None`` keeps them exact.
    microbatches : int
        Equal parts of the batch that pass one after another; gradients are accumulated.
    """

    replicas: Replicas = "fused"
    resharding: Resharding = "overlap"
    auxiliary: Auxiliary = "memory"
    collectives: Collectives = "queue"
    topology: Topology = "pairs"
    memory: MemoryModel = "refcount"
    slots: int = 2
    tick: Fraction | None = Fraction(1)
    microbatches: int = 1

    def __post_init__(self) -> None:
        for key, choices in (
            ("replicas", Replicas),
            ("resharding", Resharding),
            ("auxiliary", Auxiliary),
            ("collectives", Collectives),
            ("topology", Topology),
            ("memory", MemoryModel),
        ):
            value = getattr(self, key)
            if value not in get_args(choices):
                listed = ", ".join(get_args(choices))
                raise InputError(key, f"unknown {value!r}", f"choose one of {listed}")
        if self.slots < 0:
            raise InputError("slots", f"negative ({self.slots})", "give a whole number ≥ 0")
        if self.tick is not None and self.tick <= 0:
            raise InputError("tick", f"{shown(self.tick)} is not positive", "give a time > 0")
        if self.microbatches < 1:
            raise InputError("microbatches", f"{self.microbatches}", "give a whole number ≥ 1")


class CompiledVertex(NamedTuple):
    """What a vertex of a compiled instance is.

    Attributes
    ----------
    kind : Kind
    operation : int
        The operation that it is a replica of, or whose output it converts, sums or sends.
    output : int
        Which output of the operation; ``CONTROL`` for a replica, or the transfer of a signal.
    device : int
        Device of the instance.
    samples : (Fraction, Fraction)
        For a replica, the samples of its microbatch that it computes; for a Split or Concat, those
        of its input or its output; otherwise all.
    microbatch : int
    """

    kind: Kind
    operation: int
    output: int
    device: int
    samples: Interval = _ALL
    microbatch: int = 0


@dataclass(frozen=True, eq=False)
class Compiled:
    """A strategy as an instance; built by :func:`compile_strategy`.

    Attributes
    ----------
    graph : TrainingGraph
    cluster : TrainingCluster
    strategy : Strategy
    options : Options
    instance : Instance
        Its devices are those of the cluster in their order, then ``nccl`` if an AllReduce runs
        there, then shared links. Every vertex may run on one device only.
    vertices : tuple of CompiledVertex
        What each vertex is.
    parts : mapping from vertex to tuple of (Fraction, Fraction)
        For a Split, the samples of each of its outputs.
    chunks : mapping from vertex to (int, int)
        For a chunk of a ring, its number and whether it is added (1) or replaces (0).
    """

    graph: TrainingGraph
    cluster: TrainingCluster
    strategy: Strategy
    options: Options
    instance: Instance
    vertices: tuple[CompiledVertex, ...]
    parts: dict[int, tuple[Interval, ...]]
    chunks: dict[int, tuple[int, bool]]

    @cached_property
    def placement(self) -> NDArray[np.int32]:
        """The only device of each vertex."""
        return np.array([vertex.device for vertex in self.vertices], dtype=np.int32)

    def __repr__(self) -> str:
        return f"<Compiled: {self.instance!r}>"


def compile_strategy(
    graph: TrainingGraph,
    cluster: TrainingCluster,
    strategy: Strategy,
    options: Options = Options(),
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
    need: list[tuple[Fraction, str]] = []
    together: dict[int, list[tuple[Fraction, str]]] = {}
    home = {o: i for i, group in enumerate(graph.tied) for o in group}
    for parameter in graph.parameters:
        applied = any(graph.operations[u].role is Role.APPLY for u in parameter.users)
        size = parameter.size * (1 + slots if applied else 1)
        need.append((size, parameter.name))
        together.setdefault(home[parameter.users[0]], []).append((size, parameter.name))
    for rows, room, where in (
        *((rows, max(limits), "the largest device has") for rows in together.values()),
        (need, sum(limits), "all devices have"),
    ):
        total, named = Fraction(0), []
        for size, name in sorted(rows, reverse=True):
            total += size
            named.append(name)
            if total > room:
                listed = ", ".join(named[:4]) + (f" and {len(named) - 4} more" if named[4:] else "")
                raise InputError(
                    f"parameters {listed}",
                    f"need {shown(total)} bytes with the optimiser's, but {where} {shown(room)}",
                    "add memory, or choose an optimiser that keeps less",
                )


class _Replica(NamedTuple):
    vertex: int
    device: int
    samples: Interval


class _Draft:
    """The vertices, outputs and edges that have been made so far."""

    def __init__(self) -> None:
        self.vertices: list[CompiledVertex] = []
        self.names: list[str] = []
        self.times: list[Fraction] = []
        self.memory: list[Fraction] = []
        self.outputs: list[list[Fraction]] = []
        self.edges: dict[tuple[int, int, int], None] = {}
        self._taken: set[str] = set()

    def vertex(
        self,
        what: CompiledVertex,
        name: str,
        time: Fraction,
        outputs: Iterable[Fraction] = (),
        memory: Fraction = Fraction(0),
    ) -> int:
        unique, number = name, 1
        while unique in self._taken:
            number += 1
            unique = f"{name} ({number})"
        self._taken.add(unique)
        self.vertices.append(what)
        self.names.append(unique)
        self.times.append(time)
        self.memory.append(memory)
        self.outputs.append(list(outputs))
        return len(self.vertices) - 1

    def output(self, vertex: int, size: Fraction) -> Tensor:
        self.outputs[vertex].append(size)
        return vertex, len(self.outputs[vertex]) - 1

    def edge(self, tensor: Tensor, consumer: int) -> None:
        self.edges[(*tensor, consumer)] = None

    def size(self, tensor: Tensor) -> Fraction:
        vertex, output = tensor
        return Fraction(0) if output == CONTROL else self.outputs[vertex][output]


class _Compiler:
    def __init__(
        self,
        graph: TrainingGraph,
        cluster: TrainingCluster,
        strategy: Strategy,
        options: Options,
    ) -> None:
        self.graph = graph
        self.cluster = cluster
        self.strategy = strategy
        self.options = options
        self.decisions = strategy.of_operations(len(graph))
        self.kinds = cluster.kind_indices(graph.kinds)
        self.samples = Fraction(strategy.batch, options.microbatches)
        self.draft = _Draft()
        self.nccl: int | None = None
        #: By operation and microbatch; an apply has none but the first.
        self.replicas: list[list[list[_Replica]]] = []
        self.splits: dict[Tensor, int] = {}
        self.parts: dict[int, list[Interval]] = {}
        self.chunks: dict[int, tuple[int, bool]] = {}
        self.sources: dict[tuple[int, int, int, int, Interval], Tensor] = {}
        self.layouts: dict[
            tuple[int, int, int, tuple[tuple[int, Interval], ...]], list[Tensor]
        ] = {}
        self.sums: dict[tuple[int, int], dict[int, list[Tensor]]] = {}

    def run(self) -> Compiled:
        for o in range(len(self.graph)):
            copies = 1 if self._is_apply(o) else self.options.microbatches
            self.replicas.append([self._replicate(o, m) for m in range(copies)])
        for o in self.graph.topological_order:
            for edge in self.graph.in_edges[o]:
                self._connect(edge)
        return self._finish()

    # --- replicas --------------------------------------------------------------------------

    def _is_apply(self, o: int) -> bool:
        return self.graph.operations[o].role is Role.APPLY

    def _replicate(self, o: int, microbatch: int) -> list[_Replica]:
        operation, decision = self.graph.operations[o], self.decisions[o]
        resident = self.graph.resident[o]
        if self._is_apply(o):
            resident *= 1 + self.options.slots
        made = []
        for d, interval in decision.intervals.items():
            count = decision.replicas[d]
            # Parameters and what does not split are there once, however many replicas use them.
            if self.options.replicas == "fused" or self._is_apply(o) or not operation.splittable:
                count = 1
            for i, samples in enumerate(_equal_parts(interval, count)):
                if not operation.splittable:
                    samples = _ALL
                name = f"{operation.name} @{self.cluster.names[d]}"
                if count > 1:
                    name += f" #{i + 1}"
                if self.options.microbatches > 1 and not self._is_apply(o):
                    name += f" m{microbatch + 1}"
                width = samples[1] - samples[0]
                whole = self.strategy.batch if self._is_apply(o) else self.samples
                vertex = self.draft.vertex(
                    CompiledVertex(Kind.REPLICA, o, CONTROL, d, samples, microbatch),
                    name,
                    operation.times[self.kinds[d]].at(width * whole),
                    [output.size.at(width * self.samples) for output in operation.outputs],
                    resident if i == 0 and microbatch == 0 else Fraction(0),
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
                        self.draft.edge((replica.vertex, CONTROL), target.vertex)
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
                tensors = [self._nearest(o, edge.output, m, t.device) for t in targets]
            elif self.options.resharding == "heterog":
                tensors = self._heterog(o, edge.output, m, targets)
            else:
                tensors = [self._overlap(o, edge.output, m, t.device, t.samples) for t in targets]
            for tensor, target in zip(tensors, targets, strict=True):
                self.draft.edge(tensor, target.vertex)

    def _nearest(self, o: int, output: int, m: int, device: int) -> Tensor:
        """Choose among whole copies: the device's own, else the one that arrives soonest."""
        return self._source(o, output, m, device, _ALL), output

    def _source(self, o: int, output: int, m: int, device: int, samples: Interval) -> int:
        replicas = self._copies(o, m)
        own = [replica for replica in replicas if replica.device == device]
        if own:
            return own[0].vertex
        width = samples[1] - samples[0]
        size = self.graph.operations[o].outputs[output].size.at(width * self.samples)
        linked = [r for r in replicas if self.cluster.linked(r.device, device)]
        if not linked:
            raise self._no_link(o, replicas[0].device, device)
        return min(linked, key=lambda r: self.cluster.transfer(r.device, device, size)).vertex

    def _no_link(self, o: int, sender: int, receiver: int) -> InputError:
        names = self.cluster.names
        return InputError(
            f"{names[sender]} → {names[receiver]}",
            f"no link, but the strategy sends what {shown(self.graph.operations[o].name)} makes",
            "give one, or a strategy that does not need it",
        )

    # --- slices of samples -----------------------------------------------------------------

    def _overlap(self, o: int, output: int, m: int, device: int, samples: Interval) -> Tensor:
        """Return what holds ``samples`` on a device, made of the slices that overlap them."""
        key = (o, output, m, device, samples)
        if key not in self.sources:
            if self.graph.operations[o].splittable:
                pieces = [
                    self._slice((replica.vertex, output), _intersection(replica.samples, samples))
                    for replica in self._copies(o, m)
                    if _intersect(replica.samples, samples)
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
        if replicas[0].samples == _ALL:
            if targets[0].samples == _ALL:
                found = [self._nearest(o, output, m, target.device) for target in targets]
            else:
                found = [self._slice(tensors[0], target.samples) for target in targets]
        elif targets[0].samples == _ALL:
            joined = self._joined(tensors, o, output, m, targets[0].device, _ALL)
            found = [joined] * len(targets)
        else:
            found = []
            for part in _common_parts(replicas, targets):
                inside = [r for r in replicas if _intersect(r.samples, part)]
                joined = self._joined(
                    [(r.vertex, output) for r in inside], o, output, m, inside[0].device, part
                )
                found += [
                    self._slice(joined, t.samples) for t in targets if _intersect(t.samples, part)
                ]
        self.layouts[key] = found
        return found

    def _slice(self, tensor: Tensor, samples: Interval) -> Tensor:
        """Return the part of a tensor for some of its samples; equal parts are made once."""
        vertex = self.draft.vertices[tensor[0]]
        if samples == vertex.samples:
            return tensor
        o = vertex.operation
        output = tensor[1] if vertex.kind is Kind.REPLICA else vertex.output
        if tensor not in self.splits:
            d, name = vertex.device, self._tensor_name(o, output)
            split = self.draft.vertex(
                vertex._replace(kind=Kind.SPLIT, output=output),
                f"split {name} @{self.cluster.names[d]}",
                self._copying(d, self.draft.size(tensor)),
            )
            self.draft.edge(tensor, split)
            self.splits[tensor] = split
            self.parts[split] = []
        split = self.splits[tensor]
        if samples not in self.parts[split]:
            self.parts[split].append(samples)
            self.draft.output(split, self._size(o, output, samples))
        return split, self.parts[split].index(samples)

    def _joined(
        self, pieces: list[Tensor], o: int, output: int, m: int, device: int, samples: Interval
    ) -> Tensor:
        """Return the one piece, or the Concat of several, in the order of their samples."""
        if len(pieces) == 1:
            return pieces[0]
        size = self._size(o, output, samples)
        vertex = self.draft.vertex(
            CompiledVertex(Kind.CONCAT, o, output, device, samples, m),
            f"concat {self._tensor_name(o, output)} @{self.cluster.names[device]}",
            self._copying(device, size),
            [size],
        )
        for piece in pieces:
            self.draft.edge(piece, vertex)
        return vertex, 0

    def _size(self, o: int, output: int, samples: Interval) -> Fraction:
        line = self.graph.operations[o].outputs[output].size
        return line.at((samples[1] - samples[0]) * self.samples)

    def _copying(self, device: int, size: Fraction) -> Fraction:
        free = self.options.auxiliary == "free"
        return Fraction(0) if free else self.cluster.copying(device, size)

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
                self.draft.edge(tensor, target.vertex)

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
        size = self._size(o, output, _ALL)
        if self.nccl is None:
            self.nccl = len(self.cluster)
        vertex = self.draft.vertex(
            CompiledVertex(Kind.ALLREDUCE, o, output, self.nccl),
            f"allreduce {self._tensor_name(o, output)}",
            allreduce(self.cluster, local, size).time,
        )
        for producer, _ in local.values():
            self.draft.edge((producer, CONTROL), vertex)
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
        size = self._size(o, output, _ALL)
        vertex = self.draft.vertex(
            CompiledVertex(
                Kind.ADDN,
                o,
                output,
                device,
                microbatch=max(self.draft.vertices[v].microbatch for v, _ in tensors),
            ),
            f"addn {self._tensor_name(o, output)} @{self.cluster.names[device]}",
            self._copying(device, size),
            [size],
        )
        for tensor in tensors:
            self.draft.edge(tensor, vertex)
        return vertex, 0

    def _ring(self, o: int, output: int, local: dict[int, Tensor]) -> dict[int, list[Tensor]]:
        ring = ring_order(self.cluster, local)
        n = len(ring)
        for i, d in enumerate(ring):
            if not self.cluster.linked(d, ring[(i + 1) % n]):
                raise missing_link(self.cluster, ring)
        size = self._size(o, output, _ALL) / n
        found: dict[int, list[Tensor]] = {d: [tensor] for d, tensor in local.items()}
        before: list[int] = []
        for step, position, chunk in ring_chunks(n):
            d = ring[position]
            last = step == 2 * (n - 1)
            vertex = self.draft.vertex(
                CompiledVertex(Kind.CHUNK, o, output, d),
                f"chunk {chunk + 1} of {self._tensor_name(o, output)} "
                f"after step {step} @{self.cluster.names[d]}",
                Fraction(0),
                [] if last else [size],
            )
            self.chunks[vertex] = (chunk, step < n)
            if step:
                previous = before[(step - 1) * n + (position - 1) % n]
                self.draft.edge((previous, 0), vertex)
            self.draft.edge(local[d], vertex)
            if step >= n - 1:
                found[d].append((vertex, CONTROL))
            before.append(vertex)
        return found

    # --- the instance ----------------------------------------------------------------------

    def _finish(self) -> Compiled:
        draft, options = self.draft, self.options
        devices = [
            Device(name, 1, kind, memory)
            for name, kind, memory in zip(
                self.cluster.names,
                self.cluster.cluster.types,
                self.cluster.cluster.memory,
                strict=True,
            )
        ]
        names = set(self.cluster.names)
        if self.nccl is not None:
            devices.append(Device(_unused("nccl", names)))
        if options.topology == "shared":
            self._share_links(devices, names)
        k, extra = len(self.cluster), len(devices)
        free = options.topology == "shared"
        bandwidth: list[list[Fraction | None]] = [[None] * extra for _ in range(extra)]
        latency = [[Fraction(0)] * extra for _ in range(extra)]
        if not free:
            self._check_links()
            for d in range(k):
                bandwidth[d][:k] = self.cluster.rate[d]
                latency[d][:k] = [self._rounded(time) for time in self.cluster.latency[d]]
        limited = any(device.memory is not None for device in devices)
        refcount = options.memory == "refcount" and limited
        instance = Instance(
            self._graph([device.name for device in devices]),
            Cluster.of(devices, bandwidth, latency),
            Model("link", "refcount" if refcount else "none"),
            name=self.graph.name,
            source=self.graph.source,
        )
        return Compiled(
            self.graph,
            self.cluster,
            self.strategy,
            options,
            instance,
            tuple(draft.vertices),
            {vertex: tuple(parts) for vertex, parts in self.parts.items()},
            self.chunks,
        )

    def _rounded(self, time: Fraction) -> Fraction:
        tick = self.options.tick
        return time if tick is None else math.ceil(time / tick) * tick

    def _crosses(self, sender: int, receiver: int) -> bool:
        """Whether two devices of the instance exchange over a link of the cluster."""
        return sender != receiver and max(sender, receiver) < len(self.cluster)

    def _check_links(self) -> None:
        vertices = self.draft.vertices
        for u, _, v in self.draft.edges:
            d, e = vertices[u].device, vertices[v].device
            if self._crosses(d, e) and not self.cluster.linked(d, e):
                raise self._no_link(vertices[u].operation, d, e)

    def _share_links(self, devices: list[Device], names: set[str]) -> None:
        """Send every crossing tensor through a vertex on the link that it shares."""
        self._check_links()
        draft, cluster = self.draft, self.cluster
        links: dict[int, int] = {}
        sent: dict[tuple[int, int, int], Tensor] = {}
        edges = draft.edges
        draft.edges = {}
        for u, output, v in edges:
            d, e = draft.vertices[u].device, draft.vertices[v].device
            if not self._crosses(d, e):
                draft.edge((u, output), v)
                continue
            if (u, output, e) not in sent:
                server = cluster.servers[d] if cluster.servers[d] == cluster.servers[e] else -1
                if server not in links:
                    links[server] = len(devices)
                    name = "link between servers" if server < 0 else f"link in server {server}"
                    devices.append(Device(_unused(name, names)))
                size = draft.size((u, output))
                what = "signal" if output == CONTROL else f"output {output}"
                transfer = draft.vertex(
                    draft.vertices[u]._replace(kind=Kind.TRANSFER, device=links[server]),
                    f"{what} of {draft.names[u]} to {cluster.names[e]}",
                    cluster.transfer(d, e, size),
                    [] if output == CONTROL else [size],
                )
                draft.edge((u, output), transfer)
                sent[u, output, e] = (transfer, CONTROL if output == CONTROL else 0)
            draft.edge(sent[u, output, e], v)

    def _graph(self, devices: Sequence[str]) -> Graph:
        draft = self.draft
        n = len(draft.vertices)
        first = np.cumsum([0, *(len(outputs) for outputs in draft.outputs)])
        signals = sorted({u for u, output, _ in draft.edges if output == CONTROL})
        signal = {u: int(first[-1]) + i for i, u in enumerate(signals)}
        start = first.tolist()
        tensors = [signal[u] if i == CONTROL else start[u] + i for u, i, _ in draft.edges]
        producers = [u for u, outputs in enumerate(draft.outputs) for _ in outputs]
        indices = [i for outputs in draft.outputs for i in range(len(outputs))]
        sizes = [size for outputs in draft.outputs for size in outputs]
        return Graph(
            names=tuple(draft.names),
            ops=RationalArray.from_fractions(self._rounded(time) for time in draft.times),
            memory=RationalArray.from_fractions(draft.memory),
            device_types=(None,) * n,
            allowed_devices={v: (devices[w.device],) for v, w in enumerate(draft.vertices)},
            tensor_vertex=np.array([*producers, *signals], dtype=np.int32),
            tensor_output=np.array([*indices, *(CONTROL for _ in signals)], dtype=np.int32),
            tensor_size=RationalArray.from_fractions([*sizes, *(Fraction(0) for _ in signals)]),
            tensor_delay=self._delays(len(devices), start),
            edge_source=np.array([u for u, _, _ in draft.edges], dtype=np.int32),
            edge_target=np.array([v for _, _, v in draft.edges], dtype=np.int32),
            edge_tensor=np.array(tensors, dtype=np.int32),
            colocation=self._copies_together(),
        )

    def _delays(self, devices: int, start: Sequence[int]) -> dict[int, DelayMatrix]:
        """Return the rounded times of the tensors that cross; those of signals are latencies."""
        if self.options.tick is None or self.options.topology == "shared":
            return {}
        vertices, k = self.draft.vertices, len(self.cluster)
        crossing = {
            (u, output): vertices[u].device
            for u, output, v in self.draft.edges
            if output != CONTROL and self._crosses(vertices[u].device, vertices[v].device)
        }
        made: dict[tuple[int, Fraction], DelayMatrix] = {}
        found: dict[int, DelayMatrix] = {}
        nowhere = (None,) * devices
        for (u, output), d in sorted(crossing.items()):
            size = self.draft.outputs[u][output]
            if (d, size) not in made:
                times = [
                    self._rounded(self.cluster.transfer(d, e, size))
                    if self.cluster.linked(d, e)
                    else None
                    for e in range(k)
                ]
                row = (*times, *(Fraction(0) for _ in range(k, devices)))
                made[d, size] = tuple(row if i == d else nowhere for i in range(devices))
            found[start[u] + output] = made[d, size]
        return found

    def _copies_together(self) -> tuple[tuple[int, ...], ...]:
        """Group the microbatches of each replica: they share one device."""
        return tuple(
            tuple(replica.vertex for replica in same)
            for copies in self.replicas
            if len(copies) > 1
            for same in zip(*copies, strict=True)
        )


def _equal_parts(samples: Interval, count: int) -> list[Interval]:
    first, last = samples
    cuts = [first + (last - first) * i / count for i in range(count + 1)]
    return [*pairwise(cuts)]


def _intersect(one: Interval, two: Interval) -> bool:
    return max(one[0], two[0]) < min(one[1], two[1])


def _intersection(one: Interval, two: Interval) -> Interval:
    return max(one[0], two[0]), min(one[1], two[1])


def _common_parts(one: Iterable[_Replica], two: Iterable[_Replica]) -> list[Interval]:
    """Cut [0, 1) wherever a part begins on both sides."""
    cuts = {r.samples[0] for r in one} & {r.samples[0] for r in two}
    return [*pairwise((*sorted(cuts), Fraction(1)))]


def _unused(name: str, names: set[str]) -> str:
    while name in names:
        name += "'"
    names.add(name)
    return name
