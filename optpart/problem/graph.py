"""The dataflow graph: operations, and the tensors that pass between them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from optpart.base.arguments import checked, checked_names
from optpart.base.choices import close
from optpart.base.errors import InputError
from optpart.problem import networkx_attributes
from optpart.problem.rational import Number, RationalArray, check_text, non_negative, shown

if TYPE_CHECKING:
    import networkx as nx

#: Output index of the size-0 signal that a control dependency carries.
CONTROL = -1

#: A matrix of transfer times per (sender, receiver); ``None`` where the tensor cannot cross.
DelayMatrix = tuple[tuple[Fraction | None, ...], ...]


@checked
@dataclass(frozen=True, eq=False)
class Graph:
    """A directed acyclic dataflow graph, held in arrays ([L] §2.2, [M] §2).

    Vertices, tensors and edges are numbered from 0. A *tensor* is one output of one vertex; the
    control dependencies that leave a vertex share one further tensor of size 0 with output index
    ``CONTROL``, so that every edge consumes exactly one tensor.

    Attributes
    ----------
    names : tuple of str, length n
    ops : RationalArray, length n
        Operations ``c_v ≥ 0``.
    memory : RationalArray, length n
        Resident memory ``m_v ≥ 0``.
    device_types : tuple of (str or None), length n
        Required device type.
    allowed_devices : mapping from vertex to tuple of str
        Only for vertices that name their devices.
    tensor_vertex, tensor_output : ndarray of int32, length t
        Producer and output index of each tensor.
    tensor_size : RationalArray, length t
    tensor_delay : mapping from tensor to DelayMatrix
        Only for tensors whose transfer times are given per device pair.
    edge_source, edge_target, edge_tensor : ndarray of int32, length e
        Distinct edges.
    colocation : tuple of tuple of int
        Groups of vertices that share a device, as given; overlapping groups are merged by
        :class:`~optpart.problem.instance.Instance`.
    separation : tuple of (int, int)
        Pairs that must not share a device.

    Raises
    ------
    InputError
        If the graph has a cycle, which the message names.
    """

    names: tuple[str, ...]
    ops: RationalArray
    memory: RationalArray
    device_types: tuple[str | None, ...]
    allowed_devices: Mapping[int, tuple[str, ...]]
    tensor_vertex: NDArray[np.int32]
    tensor_output: NDArray[np.int32]
    tensor_size: RationalArray
    tensor_delay: Mapping[int, DelayMatrix]
    edge_source: NDArray[np.int32]
    edge_target: NDArray[np.int32]
    edge_tensor: NDArray[np.int32]
    colocation: tuple[tuple[int, ...], ...] = ()
    separation: tuple[tuple[int, int], ...] = ()
    topological_order: NDArray[np.int32] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "topological_order", self._sorted())
        for array in (*self._arrays(), self.topological_order):
            array.setflags(write=False)

    def __len__(self) -> int:
        return len(self.names)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Graph):
            return NotImplemented
        mine, its = self._parts(), other._parts()
        arrays = zip(self._arrays(), other._arrays(), strict=True)
        return mine == its and all(np.array_equal(one, two) for one, two in arrays)

    def __hash__(self) -> int:
        return hash((len(self), self.tensors, len(self.edge_source)))

    def __repr__(self) -> str:
        return (
            f"<Graph of {len(self):,} vertices, {len(self.edge_source):,} edges, "
            f"{self.tensors:,} tensors>"
        )

    def _parts(self) -> tuple[object, ...]:
        return (
            self.names,
            self.device_types,
            self.allowed_devices,
            self.colocation,
            self.separation,
            self.tensor_delay,
            self.ops,
            self.memory,
            self.tensor_size,
        )

    def _arrays(self) -> tuple[NDArray[np.int32], ...]:
        return (
            self.tensor_vertex,
            self.tensor_output,
            self.edge_source,
            self.edge_target,
            self.edge_tensor,
        )

    @property
    def tensors(self) -> int:
        """Number of tensors, control signals included."""
        return len(self.tensor_vertex)

    @cached_property
    def index(self) -> dict[str, int]:
        """Vertex number by name."""
        return {name: v for v, name in enumerate(self.names)}

    @property
    def position(self) -> NDArray[np.int64]:
        """The position of each vertex in the topological order."""
        return inverse(self.topological_order)

    @cached_property
    def in_edges(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Edges by target: ``edges[start[v]:start[v+1]]`` enter ``v``."""
        return grouped(self.edge_target, len(self))

    @cached_property
    def out_edges(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Edges by source: ``edges[start[v]:start[v+1]]`` leave ``v``."""
        return grouped(self.edge_source, len(self))

    @cached_property
    def tensor_edges(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Edges by tensor: ``edges[start[t]:start[t+1]]`` consume ``t``."""
        return grouped(self.edge_tensor, self.tensors)

    def edges(self) -> list[tuple[int, int, int]]:
        """List source, target and tensor of every edge."""
        ends = self.edge_source.tolist(), self.edge_target.tolist(), self.edge_tensor.tolist()
        return list(zip(*ends, strict=True))

    def pairs(self) -> list[tuple[int, int]]:
        """List source and target of every edge."""
        return list(zip(self.edge_source.tolist(), self.edge_target.tolist(), strict=True))

    def tensor_name(self, tensor: int) -> str:
        """Return ``vertex:output`` or, for a control signal, ``vertex (control)``."""
        name = self.names[self.tensor_vertex[tensor]]
        output = int(self.tensor_output[tensor])
        return f"{name} (control)" if output == CONTROL else f"{name}:{output}"

    def _sorted(self) -> NDArray[np.int32]:
        """Sort topologically (Kahn's algorithm with a first-in, first-out queue)."""
        n = len(self)
        start, edges = self.out_edges
        heads = self.edge_target[edges].tolist()
        begin = start.tolist()
        missing = np.bincount(self.edge_target, minlength=n).tolist()
        order = [v for v in range(n) if not missing[v]]
        for v in order:
            for w in heads[begin[v] : begin[v + 1]]:
                missing[w] -= 1
                if not missing[w]:
                    order.append(w)
        if len(order) < n:
            cycle = self._cycle({v for v in range(n) if missing[v]})
            raise InputError(
                "edges",
                "cycle " + " → ".join(self.names[v] for v in cycle),
                "remove one of its edges; the graph must be acyclic",
            )
        return np.array(order, dtype=np.int32)

    def _cycle(self, stuck: set[int]) -> list[int]:
        """Find a cycle by walking backwards in ``stuck``, where every vertex has a predecessor."""
        start, edges = self.in_edges
        path = [min(stuck)]
        position = {path[0]: 0}
        while True:
            v = path[-1]
            sources = self.edge_source[edges[start[v] : start[v + 1]]]
            u = next(int(s) for s in sources if int(s) in stuck)
            if u in position:
                return [u, *reversed(path[position[u] :])]
            position[u] = len(path)
            path.append(u)

    @classmethod
    def from_networkx(
        cls, graph: nx.DiGraph[Any], *, attributes: Mapping[str, str] | None = None
    ) -> Graph:
        """Read a networkx ``DiGraph`` or ``MultiDiGraph``.

        Node attributes: ``ops`` (or ``weight``), ``memory``, ``device_type``, ``devices``,
        ``outputs``, and ``delays``, measured transfer times by the number of an output. Edge
        attributes: ``output``, the output consumed (``None`` for a control dependency), or ``size``
        (or ``weight``), the size of a tensor of its own; an edge with neither is a control
        dependency. Graph attributes: ``colocation`` and ``separation``, lists of groups and pairs
        of nodes.

        Parallel edges of a ``MultiDiGraph`` are edges of their own, whatever their attributes.
        Their keys only tell them apart.

        Parameters
        ----------
        attributes : mapping from str to str, optional
            What the graph calls these attributes, if not so:
            ``{"ops": "cost", "memory": "weights", "size": "bytes"}``. Every vertex and every edge
            must have them, only ``output`` may be missing.

        Raises
        ------
        InputError
            If it has any other attribute, lacks one that was named, or has two for the same
            quantity, is undirected, or an edge without attributes has a number as its key that may
            be meant as its size.
        """
        networkx_attributes.check_graph(graph)
        if attributes:
            graph = networkx_attributes.renamed(graph, attributes)
        networkx_attributes.check(graph)
        builder = GraphBuilder()
        for node, data in graph.nodes(data=True):
            builder.vertex(
                str(node),
                data.get("ops", data.get("weight", 0)),
                memory=data.get("memory", 0),
                device_type=data.get("device_type"),
                devices=data.get("devices"),
            )
            delays = data.get("delays", {})
            for i, size in enumerate(data.get("outputs", ())):
                builder.output(str(node), size, delays.get(i))
        for source, target, data in graph.edges(data=True):
            size = data.get("size", data.get("weight"))
            if "output" not in data and size is not None:
                builder.edge(str(source), str(target), size=size)
            else:
                builder.edge(str(source), str(target), data.get("output"))
        for group in graph.graph.get("colocation", ()):
            builder.colocate(*map(str, group))
        for first, second in graph.graph.get("separation", ()):
            builder.separate(str(first), str(second))
        return builder.build()

    def to_networkx(self) -> nx.MultiDiGraph[str]:
        """Return the graph with the attributes that :meth:`from_networkx` reads.

        Numbers are exact. Several edges may lead from one vertex to another.
        """
        import networkx as nx

        names = self.names
        graph: nx.MultiDiGraph[str] = nx.MultiDiGraph(
            colocation=[[names[v] for v in group] for group in self.colocation],
            separation=[(names[u], names[v]) for u, v in self.separation],
        )
        outputs: list[dict[int, Fraction]] = [{} for _ in names]
        delays: list[dict[int, DelayMatrix]] = [{} for _ in names]
        for tensor, (v, i) in enumerate(
            zip(self.tensor_vertex.tolist(), self.tensor_output.tolist(), strict=True)
        ):
            if i != CONTROL:
                outputs[v][i] = self.tensor_size[tensor]
                if tensor in self.tensor_delay:
                    delays[v][i] = self.tensor_delay[tensor]
        for v, name in enumerate(names):
            known = {
                "device_type": self.device_types[v],
                "devices": self.allowed_devices.get(v),
                "delays": delays[v] or None,
            }
            graph.add_node(
                name,
                ops=self.ops[v],
                memory=self.memory[v],
                outputs=[outputs[v][i] for i in sorted(outputs[v])],
                **{key: value for key, value in known.items() if value is not None},
            )
        for u, v, tensor in self.edges():
            output = int(self.tensor_output[tensor])
            graph.add_edge(names[u], names[v], output=None if output == CONTROL else output)
        return graph


def inverse(order: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return the position of each number in a permutation of 0, 1, 2, …"""
    position = np.empty(len(order), dtype=np.int64)
    position[order] = np.arange(len(order))
    return position


def grouped(key: NDArray[np.int32], groups: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Group positions by key: ``order[start[g]:start[g+1]]`` have key ``g`` and are ascending."""
    order = np.argsort(key, kind="stable").astype(np.int32)
    start = np.zeros(groups + 1, dtype=np.int32)
    np.cumsum(np.bincount(key, minlength=groups), out=start[1:])
    return start, order


_NAME_ONE = "name a vertex from the list of vertices"


class GraphBuilder:
    """A collector of vertices and edges by name; :meth:`build` checks and freezes them.

    Examples
    --------
    >>> graph = GraphBuilder().vertex("a", 30, outputs=[50]).vertex("b", 20).edge("a", "b").build()
    >>> len(graph)
    2
    """

    def __init__(self) -> None:
        self._index: dict[str, int] = {}
        self._ops: list[object] = []
        self._memory: list[object] = []
        self._types: list[str | None] = []
        self._allowed: dict[int, tuple[str, ...]] = {}
        self._outputs: list[list[object]] = []
        self._delays: dict[tuple[int, int], DelayMatrix] = {}
        self._edges: list[tuple[int, int, int]] = []
        self._colocation: list[tuple[int, ...]] = []
        self._separation: list[tuple[int, int]] = []

    def __repr__(self) -> str:
        return f"<GraphBuilder: {len(self._index):,} vertices, {len(self._edges):,} edges>"

    @checked_names
    def vertex(
        self,
        name: str,
        ops: Number = 0,
        *,
        memory: Number = 0,
        outputs: Sequence[Number] = (),
        device_type: str | None = None,
        devices: Iterable[str] | None = None,
        place: str = "",
    ) -> GraphBuilder:
        """Add a vertex with ``ops`` operations and one output tensor per entry of ``outputs``."""
        place = place or f"vertices[{len(self._index)}]"
        if not isinstance(name, str) or not name:
            raise InputError(f"{place}.name", "missing name", "give every vertex a unique name")
        if name in self._index:
            raise InputError(
                f"{place}.name",
                f"{name!r} is already vertices[{self._index[name]}]",
                "give every vertex a unique name",
            )
        if isinstance(outputs, str) or not hasattr(outputs, "__iter__"):
            raise InputError(f"{place}.outputs", f"{outputs!r} is not a list", "list the sizes")
        if isinstance(devices, str) or not hasattr(devices or (), "__iter__"):
            raise InputError(f"{place}.devices", f"{devices!r} is not a list", "list the names")
        if device_type is not None and not isinstance(device_type, str):
            raise InputError(
                f"{place}.device_type", f"{shown(device_type)} is not a name", "name a type"
            )
        check_text(name, f"{place}.name")
        if device_type is not None:
            check_text(device_type, f"{place}.device_type")
        v = self._index[name] = len(self._index)
        self._ops.append(ops)
        self._memory.append(memory)
        self._types.append(device_type)
        if devices is not None:
            self._allowed[v] = tuple(devices)
        self._outputs.append(list(outputs))
        return self

    @checked_names
    def output(
        self, vertex: str, size: Number, delay: Sequence[Sequence[Number | None]] | None = None
    ) -> int:
        """Add an output tensor; return its index.

        Parameters
        ----------
        delay : matrix, optional
            Transfer time per (sending, receiving) device, in place of latency and bandwidth;
            ``None`` where the tensor cannot cross.
        """
        v = self._vertex(vertex, "outputs")
        index = len(self._outputs[v])
        place = f"vertices[{v}].outputs[{index}]"
        self._outputs[v].append(size)
        if delay is not None:
            rows = delay if hasattr(delay, "__iter__") else [delay]
            if not all(hasattr(row, "__iter__") for row in rows):
                raise InputError(f"{place}.delay", "is no matrix", "give a row per device")
            self._delays[v, index] = tuple(
                tuple(
                    None if entry is None else non_negative(entry, f"{place}.delay[{i}][{j}]")
                    for j, entry in enumerate(row)
                )
                for i, row in enumerate(delay)
            )
        return index

    @checked_names
    def edge(
        self,
        source: str,
        target: str,
        output: int | None = 0,
        *,
        size: Number | None = None,
        place: str = "",
    ) -> GraphBuilder:
        """Make ``target`` consume output number ``output`` of ``source``.

        ``output=None`` is a control dependency. With ``size`` the edge gets an output of its own.
        """
        place = place or f"edges[{len(self._edges)}]"
        u, v = self._vertex(source, place), self._vertex(target, place)
        if size is not None:
            if output != 0:
                raise InputError(place, "both output and size", "give one of them")
            output = self.output(source, size)
        if output is None:
            output = CONTROL
        elif isinstance(output, bool) or not isinstance(output, int):
            raise InputError(
                place, f"no output {output!r}", "give its index, or null for a control dependency"
            )
        elif not 0 <= output < len(self._outputs[u]):
            raise InputError(
                place,
                f"{source!r} has no output {output} (it has {len(self._outputs[u]) or 'none'})",
                "name an existing output, or null for a control dependency",
            )
        self._edges.append((u, v, output))
        return self

    @checked_names
    def colocate(self, *names: str, place: str = "") -> GraphBuilder:
        """Require these vertices to share a device."""
        place = place or f"colocation[{len(self._colocation)}]"
        self._colocation.append(tuple(self._vertex(name, place) for name in names))
        return self

    @checked_names
    def separate(self, first: str, second: str, *, place: str = "") -> GraphBuilder:
        """Forbid two vertices from sharing a device."""
        place = place or f"separation[{len(self._separation)}]"
        self._separation.append((self._vertex(first, place), self._vertex(second, place)))
        return self

    def _vertex(self, name: str, place: str) -> int:
        try:
            return self._index[name]
        except (KeyError, TypeError):
            near = close(name, self._index, 0.7) if isinstance(name, str) else []
            remedy = f"did you mean {' or '.join(near)}?" if near else _NAME_ONE
            raise InputError(place, f"no vertex {name!r}", remedy) from None

    def build(self) -> Graph:
        """Check everything and return the frozen graph."""
        count = np.array([len(outputs) for outputs in self._outputs], dtype=np.int64)
        first = np.concatenate(([0], np.cumsum(count))).astype(np.int64)
        producer = np.repeat(np.arange(len(count)), count)
        output = np.arange(int(first[-1])) - first[producer] if len(producer) else producer
        distinct = list(dict.fromkeys(self._edges))
        controls = sorted({u for u, _, k in distinct if k == CONTROL})
        control_tensor = {u: int(first[-1]) + i for i, u in enumerate(controls)}
        tensors = [control_tensor[u] if k == CONTROL else first[u] + k for u, _, k in distinct]
        sizes = [size for outputs in self._outputs for size in outputs]
        return Graph(
            names=tuple(self._index),
            ops=RationalArray.of(self._ops, "vertices[{}].ops".format),
            memory=RationalArray.of(self._memory, "vertices[{}].memory".format),
            device_types=tuple(self._types),
            allowed_devices=dict(self._allowed),
            tensor_vertex=np.array([*producer, *controls], dtype=np.int32),
            tensor_output=np.array([*output, *(CONTROL for _ in controls)], dtype=np.int32),
            tensor_size=RationalArray.of(
                [*sizes, *(0 for _ in controls)],
                lambda t: f"vertices[{producer[t]}].outputs[{output[t]}]",
            ),
            tensor_delay={int(first[v]) + k: m for (v, k), m in self._delays.items()},
            edge_source=np.array([u for u, _, _ in distinct], dtype=np.int32),
            edge_target=np.array([v for _, v, _ in distinct], dtype=np.int32),
            edge_tensor=np.array(tensors, dtype=np.int32),
            colocation=tuple(self._colocation),
            separation=tuple(self._separation),
        )
