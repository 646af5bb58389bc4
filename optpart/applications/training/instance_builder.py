"""Builder of the instance that a strategy is compiled to."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction

import numpy as np

from optpart.applications.training.cluster import TrainingCluster
from optpart.applications.training.compiled import CompiledVertex, Options, Tensor, VertexKind
from optpart.applications.training.graph import CONTROL, TrainingGraph
from optpart.base.errors import InputError
from optpart.problem.cluster import Cluster, Device
from optpart.problem.graph import DelayMatrix, Graph
from optpart.problem.instance import Instance
from optpart.problem.model import Model
from optpart.problem.rational import RationalArray, shown


class InstanceBuilder:
    """Builder of the instance of a strategy: vertices, outputs and edges so far.

    Devices are those of the cluster; the next number stands for the queue of AllReduces.
    """

    def __init__(self, graph: TrainingGraph, cluster: TrainingCluster, options: Options) -> None:
        self.graph = graph
        self.cluster = cluster
        self.options = options
        self.vertices: list[CompiledVertex] = []
        self.outputs: list[list[Fraction]] = []
        #: Vertices of which each runs on the device of the first.
        self.together: list[tuple[int, ...]] = []
        self._names: list[str] = []
        self._times: list[Fraction] = []
        self._memory: list[Fraction] = []
        self._edges: dict[tuple[int, int, int], None] = {}
        self._taken: set[str] = set()

    @property
    def nccl(self) -> int:
        """The device of AllReduces."""
        return len(self.cluster)

    def vertex(
        self,
        what: CompiledVertex,
        name: str,
        time: Fraction,
        outputs: Iterable[Fraction] = (),
        memory: Fraction = Fraction(0),
    ) -> int:
        """Add a vertex; a name that is taken gets a number."""
        unique, number = name, 1
        while unique in self._taken:
            number += 1
            unique = f"{name} ({number})"
        self._taken.add(unique)
        self.vertices.append(what)
        self.outputs.append(list(outputs))
        self._names.append(unique)
        self._times.append(time)
        self._memory.append(memory)
        return len(self.vertices) - 1

    def output(self, vertex: int, size: Fraction) -> Tensor:
        """Add an output to a vertex."""
        self.outputs[vertex].append(size)
        return vertex, len(self.outputs[vertex]) - 1

    def edge(self, tensor: Tensor, consumer: int) -> None:
        """Let a vertex read a tensor, or wait for its producer; inputs keep their order."""
        self._edges[(*tensor, consumer)] = None

    def size(self, tensor: Tensor) -> Fraction:
        """Return the bytes of a tensor; none for a signal."""
        vertex, output = tensor
        return Fraction(0) if output == CONTROL else self.outputs[vertex][output]

    def instance(self) -> Instance:
        """Build the instance.

        Raises
        ------
        InputError
            If a tensor has to cross between devices that are not linked.
        """
        self._check_links()
        shared = self.options.topology == "shared"
        names = set(self.cluster.names)
        known = self.cluster.cluster
        devices = [
            Device(name, 1, kind, memory)
            for name, kind, memory in zip(known.names, known.types, known.memory, strict=True)
        ]
        if any(vertex.device == self.nccl for vertex in self.vertices):
            devices.append(Device(_unused("nccl", names)))
        if shared:
            self._share_links(devices, names)
        k, total = len(self.cluster), len(devices)
        rate: list[list[Fraction | None]] = [[None] * total for _ in range(total)]
        latency = [[Fraction(0)] * total for _ in range(total)]
        if not shared:
            for d in range(k):
                rate[d][:k] = self.cluster.rate[d]
                latency[d][:k] = [self._rounded(time) for time in self.cluster.latency[d]]
        limited = any(memory is not None for memory in known.memory)
        refcount = self.options.memory == "refcount" and limited
        return Instance(
            self._graph([device.name for device in devices]),
            Cluster.of(devices, rate, latency),
            Model("link", "refcount" if refcount else "none"),
            name=self.graph.name,
            source=self.graph.source,
            time_unit="ns",
        )

    def no_link(self, operation: int, sender: int, receiver: int) -> InputError:
        """Return the error for a tensor or signal of an operation that cannot cross."""
        names = self.cluster.names
        made_by = shown(self.graph.operations[operation].name)
        return InputError(
            f"{names[sender]} → {names[receiver]}",
            f"no link, but the strategy sends what {made_by} makes",
            "give one, or a strategy that does not need it",
        )

    # --- links -----------------------------------------------------------------------------

    def _rounded(self, time: Fraction) -> Fraction:
        tick = self.options.tick
        return time if tick is None else math.ceil(time / tick) * tick

    def _crosses(self, sender: int, receiver: int) -> bool:
        """Return whether two devices of the instance exchange over a link of the cluster."""
        return sender != receiver and max(sender, receiver) < len(self.cluster)

    def _check_links(self) -> None:
        for u, _, v in self._edges:
            d, e = self.vertices[u].device, self.vertices[v].device
            if self._crosses(d, e) and not self.cluster.linked(d, e):
                raise self.no_link(self.vertices[u].operation, d, e)

    def _share_links(self, devices: list[Device], names: set[str]) -> None:
        """Add a vertex on a shared link for every tensor that crosses it."""
        cluster = self.cluster
        links: dict[int | None, int] = {}
        sent: dict[tuple[int, int, int], Tensor] = {}
        edges, self._edges = self._edges, {}
        for u, output, v in edges:
            d, e = self.vertices[u].device, self.vertices[v].device
            if not self._crosses(d, e):
                self.edge((u, output), v)
                continue
            if (u, output, e) not in sent:
                server = cluster.servers[d] if cluster.servers[d] == cluster.servers[e] else None
                if server not in links:
                    links[server] = len(devices)
                    where = "between servers" if server is None else f"in server {server}"
                    devices.append(Device(_unused(f"link {where}", names)))
                signal, size = output == CONTROL, self.size((u, output))
                what = "signal" if signal else f"output {output}"
                transfer = self.vertex(
                    self.vertices[u]._replace(kind=VertexKind.TRANSFER, device=links[server]),
                    f"{what} of {self._names[u]} to {cluster.names[e]}",
                    cluster.transfer(d, e, size),
                    [] if signal else [size],
                )
                self.edge((u, output), transfer)
                sent[u, output, e] = (transfer, CONTROL if signal else 0)
            self.edge(sent[u, output, e], v)

    # --- the graph -------------------------------------------------------------------------

    def _graph(self, devices: Sequence[str]) -> Graph:
        """Return the graph: outputs in the order of their vertices, then signals."""
        start = np.cumsum([0, *(len(outputs) for outputs in self.outputs)]).tolist()
        signals = sorted({u for u, output, _ in self._edges if output == CONTROL})
        signal = {u: start[-1] + i for i, u in enumerate(signals)}
        tensors = [signal[u] if i == CONTROL else start[u] + i for u, i, _ in self._edges]
        producers = [u for u, outputs in enumerate(self.outputs) for _ in outputs]
        indices = [i for outputs in self.outputs for i in range(len(outputs))]
        sizes = [size for outputs in self.outputs for size in outputs]
        return Graph(
            names=tuple(self._names),
            ops=RationalArray.from_fractions(self._rounded(time) for time in self._times),
            memory=RationalArray.from_fractions(self._memory),
            device_types=(None,) * len(self.vertices),
            allowed_devices={v: (devices[what.device],) for v, what in enumerate(self.vertices)},
            tensor_vertex=np.array([*producers, *signals], dtype=np.int32),
            tensor_output=np.array([*indices, *(CONTROL for _ in signals)], dtype=np.int32),
            tensor_size=RationalArray.from_fractions([*sizes, *(Fraction(0) for _ in signals)]),
            tensor_delay=self._delays(len(devices), start),
            edge_source=np.array([u for u, _, _ in self._edges], dtype=np.int32),
            edge_target=np.array([v for _, _, v in self._edges], dtype=np.int32),
            edge_tensor=np.array(tensors, dtype=np.int32),
            colocation=tuple(self.together),
        )

    def _delays(self, devices: int, start: Sequence[int]) -> dict[int, DelayMatrix]:
        """Return the rounded times of the tensors that cross; those of signals are latencies.

        Only the row of the one device on which a tensor is made has entries.
        """
        if self.options.tick is None or self.options.topology == "shared":
            return {}
        k = len(self.cluster)
        crossing = {
            (u, output): self.vertices[u].device
            for u, output, v in self._edges
            if output != CONTROL and self._crosses(self.vertices[u].device, self.vertices[v].device)
        }
        made: dict[tuple[int, Fraction], DelayMatrix] = {}
        found: dict[int, DelayMatrix] = {}
        nowhere = (None,) * devices
        for (u, output), d in sorted(crossing.items()):
            size = self.outputs[u][output]
            if (d, size) not in made:
                times = (
                    self._rounded(self.cluster.transfer(d, e, size))
                    if self.cluster.linked(d, e)
                    else None
                    for e in range(k)
                )
                row = (*times, *(Fraction(0) for _ in range(k, devices)))
                made[d, size] = tuple(row if i == d else nowhere for i in range(devices))
            found[start[u] + output] = made[d, size]
        return found


def _unused(name: str, names: set[str]) -> str:
    while name in names:
        name += "'"
    names.add(name)
    return name
