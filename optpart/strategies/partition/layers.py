"""Language models and devices as the rules of their runtimes see them.

Such a rule counts layers. It applies where the vertices are parts of a single chain of blocks
(:mod:`optpart.interop.formats.llm_parts`). What it decides is never repaired: if a device would
hold more than it can, there is no placement.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from optpart.base.errors import InputError, UnsupportedError
from optpart.interop.formats.llm import EXPERTS
from optpart.interop.formats.llm_parts import BLOCK, EMBEDDING, REMEDY, VISION, part_of
from optpart.problem.instance import Instance
from optpart.strategies.base import NoPlacementError, Partition

if TYPE_CHECKING:
    from optpart.solution.goal import Goal


@dataclass(frozen=True)
class Layers:
    """A language model and the devices.

    Layer 0 is the embedding, 1 to ``L`` are the blocks, ``L + 1`` is the output: norm and head.

    Attributes
    ----------
    instance : Instance
    of : ndarray of int64, length n
        Layer of each vertex.
    is_expert : ndarray of bool, length n
        Whether it is the experts of a block alone.
    whole, dense : ndarray of float64, length L + 2
        Resident memory of each layer, with and without such experts.
    memory, room : ndarray of float64, length k
        What each device can hold, infinite without a limit, and what is left of it beside the
        largest inputs and outputs of a vertex.
    cards, hosts : list of int
        Devices of other types than ``CPU``, and those of that type, as the cluster lists them.
    """

    instance: Instance
    of: NDArray[np.int64]
    is_expert: NDArray[np.bool_]
    whole: NDArray[np.float64]
    dense: NDArray[np.float64]
    memory: NDArray[np.float64]
    room: NDArray[np.float64]
    cards: list[int]
    hosts: list[int]

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return len(self.whole) - 2

    @property
    def host(self) -> int:
        """The first processor, or the first device if there is none."""
        return self.hosts[0] if self.hosts else 0

    @property
    def shares(self) -> NDArray[np.float64]:
        """What devices count in proportions by memory; without limit as the largest limit."""
        limits = self.memory[np.isfinite(self.memory)]
        return np.where(np.isfinite(self.memory), self.memory, max(limits, default=1.0))

    def stages(self, devices: list[int], counts: list[int]) -> NDArray[np.int64]:
        """Return the device of each layer by counts of blocks, the ends with first and last."""
        inner = np.repeat(devices, counts)
        return np.concatenate([inner[:1], inner, inner[-1:]])

    def placed(self, home: NDArray[np.int64], away: NDArray[np.bool_] | None = None) -> Partition:
        """Place vertices where their layers are, colocated ones with the last layer of them.

        Parameters
        ----------
        home : ndarray of int64, length L + 2
            Device of each layer.
        away : ndarray of bool, length L + 2, optional
            Layers whose experts are on the first processor.
        """
        device = home[self.of]
        if away is not None:
            device = np.where(self.is_expert & away[self.of], self.host, device)
        of_unit = np.zeros(len(self.instance.units), np.int64)
        for v in np.argsort(self.of, kind="stable").tolist():
            of_unit[self.instance.unit_of[v]] = device[v]
        return settled(self.instance, of_unit)


def layers_of(instance: Instance) -> Layers:
    """Find the layers of a language model; raise :class:`UnsupportedError` if it is none."""
    graph, cluster = instance.graph, instance.cluster
    try:
        parts = [part_of(name) for name in graph.names]
    except InputError as error:
        raise UnsupportedError(error.place, error.problem, error.remedy) from None
    if any(part.place == VISION for part in parts):
        problem = "has a vision tower, and rules of runtimes split the language model alone"
        raise UnsupportedError(instance.name, problem, "use another method")
    halves = [(part.number, part.half) for part in parts if part.place == BLOCK]
    blocks = len({number for number, _ in halves})
    if not blocks or max(halves)[0] >= blocks:
        raise UnsupportedError(instance.name, "is no language model with all its blocks", REMEDY)
    if len({*halves}) < len(halves):
        problem = "has an encoder and a decoder, and rules of runtimes split a single chain"
        raise UnsupportedError(instance.name, problem, "use another method")
    first = {EMBEDDING: 0, BLOCK: 1}
    of = np.array([first.get(part.place, blocks + 1) + part.number for part in parts])
    is_expert = np.array([part.half.split(".")[0] == EXPERTS for part in parts])
    size, tensor, n = graph.memory.floats, graph.tensor_size.floats, len(graph)
    limited = instance.model.memory != "none"
    memory = np.array([float(m) if m is not None and limited else np.inf for m in cluster.memory])
    flight = np.bincount(graph.tensor_vertex, tensor, n)
    flight += np.bincount(graph.edge_target, tensor[graph.edge_tensor], n)
    is_host = np.array([(kind or "").upper() == "CPU" for kind in cluster.types])
    return Layers(
        instance,
        of,
        is_expert,
        np.bincount(of, size, blocks + 2).astype(np.float64),
        np.bincount(of, np.where(is_expert, 0.0, size), blocks + 2).astype(np.float64),
        memory,
        memory - flight.max(),
        np.flatnonzero(~is_host).tolist(),
        np.flatnonzero(is_host).tolist(),
    )


def settled(instance: Instance, device: NDArray[np.int64]) -> Partition:
    """Return a placement of units as it is, in the order of the model.

    Raises
    ------
    NoPlacementError
        If a device would exceed its memory, or may not run what it gets.
    """
    used, names = [Fraction(0)] * instance.devices, instance.cluster.names
    need = instance.static_memory.fractions()
    for unit, d in enumerate(device.tolist()):
        if not instance.allowed[unit, d]:
            raise NoPlacementError(f"{names[d]} may not run {instance.unit_name(unit)}")
        used[d] += need[unit]
    for name, held, limit in zip(names, used, instance.cluster.memory, strict=True):
        if limit is not None and held > limit:
            raise NoPlacementError(f"exceeds the memory of {name}")
    order = instance.graph.topological_order.tolist()
    return Partition(device[instance.unit_of].astype(np.int32), order=order)


def check_scope(instance: Instance, goal: Goal) -> None:
    """Refuse what is no language model."""
    layers_of(instance)
