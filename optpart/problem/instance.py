"""An instance of the TF problem: a graph, a cluster, and how transfers and memory count."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from optpart.base.arguments import checked
from optpart.base.choices import choice
from optpart.base.errors import InputError
from optpart.base.escaping import brief, listed, writable
from optpart.base.showing import Shown, notebook
from optpart.problem.cluster import Cluster
from optpart.problem.document import document
from optpart.problem.durations import Durations
from optpart.problem.graph import Graph
from optpart.problem.model import Model
from optpart.problem.rational import Number, RationalArray, shown
from optpart.problem.units import TIME_UNITS

if TYPE_CHECKING:
    import networkx as nx
    from matplotlib.axes import Axes
    from pandas import DataFrame


@checked
@dataclass(frozen=True, eq=False)
class Instance(Shown):
    """One TF problem; immutable and checked when built.

    Parameters
    ----------
    graph : Graph
    cluster : Cluster
    model : Model
    durations : Durations or n rows of k numbers (``None`` where impossible), optional
    name, source : str
        Name and origin.
    time_unit : {"", "ns", "us", "ms", "s"}
        The unit of its times, if it is known; shown beside them, and nothing else depends on it.

    Raises
    ------
    InputError
        If the graph does not fit the cluster: an unknown device, a device type that no device has,
        a colocation group without a common device, a matrix of the wrong size; or if there is no
        such unit of time.
    """

    graph: Graph
    cluster: Cluster
    model: Model = field(default_factory=Model)
    durations: Durations | Sequence[Sequence[Number | None]] | None = None
    name: str = "unnamed"
    source: str = ""
    time_unit: str = ""

    def __post_init__(self) -> None:
        for label in ("name", "source"):  # often made of the name of a file
            object.__setattr__(self, label, writable(getattr(self, label)))
        if self.time_unit and self.time_unit not in TIME_UNITS:
            problem = f"unknown {shown(self.time_unit)}"
            raise InputError("time_unit", problem, choice(self.time_unit, TIME_UNITS))
        n, k = len(self.graph), len(self.cluster)
        if self.durations is not None and not isinstance(self.durations, Durations):
            object.__setattr__(self, "durations", Durations.of(self.durations, n, k))
        self._check_delays(k)
        self._check_groups()  # computes, and thereby checks, types and allowed devices as well

    def _check_delays(self, k: int) -> None:
        for tensor, matrix in self.graph.tensor_delay.items():
            if len(matrix) != k or any(len(row) != k for row in matrix):
                v, i = self.graph.tensor_vertex[tensor], self.graph.tensor_output[tensor]
                raise InputError(
                    f"vertices[{v}].outputs[{i}].delay",
                    "has the wrong size",
                    f"give {k} rows of {k}",
                )

    def _check_groups(self) -> None:
        allowed = self.allowed
        for u, members in enumerate(self.units):
            if len(members) > 1 and not allowed[u].any():
                alone = [self.graph.names[v] for v in members if not self.vertex_allowed[v].any()]
                names = listed([self.graph.names[v] for v in members])
                raise InputError(
                    "colocation",
                    f"group {names} has no device that all its members may use"
                    + (f" ({listed(alone)} has none at all)" if alone else ""),
                    "relax a device_type or devices entry, or split the group",
                )

    # --- equality and text -----------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        """Return whether both say the same; names, sources and units of time included."""
        if self is other:
            return True
        if not isinstance(other, Instance):
            return NotImplemented
        return (
            (self.name, self.source, self.time_unit) == (other.name, other.source, other.time_unit)
            and self.model == other.model
            and self.graph == other.graph
            and self.cluster == other.cluster
            and self.durations == other.durations
        )

    def __hash__(self) -> int:
        return hash((self.name, self.vertices, self.devices, len(self.graph.edge_source)))

    def __repr__(self) -> str:
        return (
            f"<Instance {brief(self.name)}: {self.vertices:,} vertices, {self.devices:,} devices, "
            f"{self.model.communication}, memory {self.model.memory}>"
        )

    # --- for other libraries ---------------------------------------------------------------

    @checked
    def plot(self, placement: Mapping[str, str] | None = None, *, ax: Axes | None = None) -> Axes:
        """Draw the graph from left to right, coloured by device if there is a placement.

        Parameters
        ----------
        placement : mapping from vertex names to device names, optional
            Vertices that it leaves out stay grey.
        ax : Axes, optional
            Where to draw; by default, a new figure of pyplot.
        """
        axes: Axes = notebook().plot_graph(self, placement, ax)
        return axes

    def to_networkx(self) -> nx.MultiDiGraph[str]:
        """Return the graph; :meth:`Graph.from_networkx` reads it."""
        return self.graph.to_networkx()

    @checked
    def to_dataframe(self) -> DataFrame:
        """Return a row per vertex; exact numbers as fractions.

        Raises
        ------
        InputError
            If pandas is not installed.
        """
        return notebook().frame_of_instance(self)

    # --- sizes -----------------------------------------------------------------------------

    @property
    def vertices(self) -> int:
        """Number of vertices n."""
        return len(self.graph)

    @property
    def devices(self) -> int:
        """Number of devices k."""
        return len(self.cluster)

    # --- allowed devices -------------------------------------------------------------------

    @cached_property
    def vertex_allowed(self) -> NDArray[np.bool_]:
        """True if each vertex by itself may run on each device, n × k."""
        graph, cluster = self.graph, self.cluster
        n, k = len(graph), len(cluster)
        allowed = np.ones((n, k), dtype=np.bool_)
        of_type = {
            kind: np.array([t == kind for t in cluster.types], dtype=np.bool_)
            for kind in set(cluster.types)
        }
        for v, kind in enumerate(graph.device_types):
            if kind is None:
                continue
            if kind not in of_type:
                present = listed(sorted({t for t in cluster.types if t is not None})) or "none"
                raise InputError(
                    f"vertices[{v}].device_type",
                    f"no device is of type {kind!r}",
                    f"add such a device or use a type that exists ({present})",
                )
            allowed[v] &= of_type[kind]
        for v, names in graph.allowed_devices.items():
            row = np.zeros(k, dtype=np.bool_)
            for i, name in enumerate(names):
                if not isinstance(name, str) or name not in cluster.index:
                    raise InputError(
                        f"vertices[{v}].devices[{i}]",
                        f"no device {name!r}",
                        choice(name, cluster.names, lead="name one of"),
                    )
                row[cluster.index[name]] = True
            allowed[v] &= row
        if self.given_durations is not None:
            allowed &= self.given_durations.possible
        return allowed

    @property
    def given_durations(self) -> Durations | None:
        """The run times given per vertex and device, if any."""
        return cast("Durations | None", self.durations)

    @cached_property
    def unit_of(self) -> NDArray[np.int32]:
        """The assignment unit of each vertex; units are numbered by their first vertex."""
        if not self.graph.colocation:
            return np.arange(self.vertices, dtype=np.int32)
        import networkx as nx  # which takes long to load, and few instances need

        groups: nx.Graph[int] = nx.Graph()
        for group in self.graph.colocation:
            nx.add_path(groups, group)
        component = np.arange(self.vertices, dtype=np.int32)
        for members in nx.connected_components(groups):
            component[list(members)] = min(members)
        first = np.unique(component)
        return np.searchsorted(first, component).astype(np.int32)

    @cached_property
    def units(self) -> list[NDArray[np.int32]]:
        """Members of each assignment unit (colocation group or single vertex), ascending."""
        order = np.argsort(self.unit_of, kind="stable").astype(np.int32)
        cuts = np.cumsum(np.bincount(self.unit_of, minlength=0))[:-1]
        return np.split(order, cuts) if self.vertices else []

    @cached_property
    def allowed(self) -> NDArray[np.bool_]:
        """True if each assignment unit may run on each device, units × k."""
        allowed = np.ones((len(self.units), self.devices), dtype=np.bool_)
        np.logical_and.at(allowed, self.unit_of, self.vertex_allowed)
        return allowed

    @cached_property
    def separated_units(self) -> list[tuple[int, int]]:
        """Pairs of units that must not share a device; ``(u, u)`` contradicts itself."""
        pairs = {
            tuple(sorted((int(self.unit_of[a]), int(self.unit_of[b]))))
            for a, b in self.graph.separation
        }
        return cast("list[tuple[int, int]]", sorted(pairs))

    def unit_name(self, unit: int) -> str:
        """Return the vertex, or ``the group of NAME (m vertices)`` for a colocation group."""
        members = self.units[unit]
        first = self.graph.names[members[0]]
        return first if len(members) == 1 else f"the group of {first} ({len(members)} vertices)"

    # --- exact times -----------------------------------------------------------------------

    def duration(self, vertex: int, device: int) -> Fraction:
        """Return the exact run time ``p[v,d]``, meaningless where the vertex is not allowed."""
        if self.given_durations is not None:
            return self.given_durations.times[vertex, device]
        return self.graph.ops[vertex] / self.cluster.speed[device]

    def delay(self, tensor: int, sender: int, receiver: int) -> Fraction | None:
        """Return the exact transfer time ``δ(τ,d,e)``; ``None`` where the tensor cannot cross."""
        if sender == receiver:
            return Fraction(0)
        if not self.cluster.linked[sender, receiver]:
            return None
        measured = self.graph.tensor_delay.get(tensor)
        if measured is not None:
            return measured[sender][receiver]
        delay = self.cluster.latency[sender, receiver]
        if not self.cluster.infinite[sender, receiver]:
            delay += self.graph.tensor_size[tensor] / self.cluster.bandwidth[sender, receiver]
        return delay

    def total_duration(self, vertices: NDArray[np.int64], device: int) -> Fraction:
        """Return the sum of :meth:`duration` over vertices."""
        if self.given_durations is not None:
            times = self.given_durations.times
            return Fraction(sum(times.numerators[vertices, device].tolist()), times.denominator)
        return self.graph.ops.sum(vertices) / self.cluster.speed[device]

    def total_delay(self, tensors: Sequence[int], sender: int, receiver: int) -> Fraction | None:
        """Return the sum of :meth:`delay` over tensors between two different devices.

        ``None`` where one of them cannot cross.
        """
        if not self.cluster.linked[sender, receiver]:
            return None
        measured = self.graph.tensor_delay
        rest = np.array([t for t in tensors if t not in measured], dtype=np.int64)
        total = len(rest) * self.cluster.latency[sender, receiver]
        if not self.cluster.infinite[sender, receiver]:
            size = self.graph.tensor_size.sum(rest)
            total += size / self.cluster.bandwidth[sender, receiver]
        for each in (measured[t][sender][receiver] for t in tensors if t in measured):
            if each is None:
                return None
            total += each
        return total

    def send_duration(self, device: int) -> Fraction:
        """Return the exact run time of a send vertex on ``device`` under ``sendrecv``."""
        return self.model.send_ops / self.cluster.speed[device]

    # --- static memory ---------------------------------------------------------------------

    @cached_property
    def static_memory(self) -> RationalArray:
        """Memory that each assignment unit takes for the whole run.

        ``estimate``: ``m_v`` + own output sizes + sizes of distinct input tensors ([L] §4.1 (3));
        ``refcount``: ``m_v``, the part of it that does not depend on time; otherwise 0.
        """
        graph = self.graph
        if self.model.memory in ("none", "edges"):
            return RationalArray.zeros(len(self.units))
        # Python integers: sums over a unit may exceed 64 bits.
        sizes, resident = graph.tensor_size, graph.memory
        common = sizes.denominator * resident.denominator
        need = resident.numerators.astype(object) * sizes.denominator
        if self.model.memory == "estimate":
            size = sizes.numerators.astype(object) * resident.denominator
            np.add.at(need, graph.tensor_vertex, size)
            np.add.at(need, graph.edge_target, size[graph.edge_tensor])
        total = [0] * len(self.units)
        for unit, amount in zip(self.unit_of.tolist(), need.tolist(), strict=True):
            total[unit] += amount
        return RationalArray.from_integers(total, common)

    # --- identity --------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return the native JSON document of the instance (``optpart-instance/1``)."""
        content = document(
            self.graph, self.cluster, self.model, self.given_durations, self.name, self.source
        )
        if self.time_unit:
            content["time_unit"] = self.time_unit
        return content

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of the canonical native JSON without name, source and unit of time."""
        content = self.to_dict()
        for key in ("name", "source", "time_unit"):  # the problem is the same without them
            content.pop(key, None)
        text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()
