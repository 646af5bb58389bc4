"""A compiled strategy: its instance, the origin of each vertex, and the options."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import cached_property
from types import MappingProxyType
from typing import Literal, NamedTuple, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from optpart.applications.training.cluster import TrainingCluster
from optpart.applications.training.graph import TrainingGraph
from optpart.applications.training.strategy import ALL, Interval, Strategy
from optpart.base.choices import choice
from optpart.base.errors import InputError
from optpart.problem.instance import Instance
from optpart.problem.rational import shown
from optpart.solution.schedule import Schedule
from optpart.strategies.base import Partition
from optpart.strategies.scheduling.heterog import heterog
from optpart.strategies.simulator import simulate

#: A vertex and the number of its output, or ``CONTROL``.
Tensor = tuple[int, int]


class VertexKind(StrEnum):
    """The work of a vertex of a compiled instance."""

    REPLICA = "replica"
    SPLIT = "split"
    CONCAT = "concat"
    ADDN = "addn"
    ALLREDUCE = "allreduce"
    CHUNK = "chunk"
    TRANSFER = "transfer"


@dataclass(frozen=True)
class Options:
    """Options of compiling a strategy.

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
        One link per ordered pair of devices ([G]), or one per server and one between servers.
    memory : {"refcount", "none"}
        Limits of memory hold, or are left out.
    slots : int
        Tensors that the optimiser keeps per parameter (Adam: 2).
    tick : Fraction or None
        Times are rounded up to multiples of it; ``None`` keeps them exact.
    microbatches : int
        Equal parts of the batch that pass one after another; gradients are accumulated.
    """

    replicas: Literal["fused", "separate"] = "fused"
    resharding: Literal["overlap", "heterog"] = "overlap"
    auxiliary: Literal["memory", "free"] = "memory"
    collectives: Literal["queue", "ring"] = "queue"
    topology: Literal["pairs", "shared"] = "pairs"
    memory: Literal["refcount", "none"] = "refcount"
    slots: int = 2
    tick: Fraction | None = Fraction(1)
    microbatches: int = 1

    def __post_init__(self) -> None:
        for key, kind in get_type_hints(Options).items():
            value = getattr(self, key)
            if get_origin(kind) is Literal and value not in get_args(kind):
                raise InputError(key, f"unknown {value!r}", choice(value, get_args(kind)))
        if self.slots < 0:
            raise InputError("slots", f"negative ({self.slots})", "give a whole number ≥ 0")
        if self.tick is not None and self.tick <= 0:
            raise InputError("tick", f"{shown(self.tick)} is not positive", "give a time > 0")
        if self.microbatches < 1:
            raise InputError("microbatches", f"{self.microbatches}", "give a whole number ≥ 1")


DEFAULT = Options()

#: The options that evaluator and bounds describe; others they accept with any value.
STANDARD = MappingProxyType(
    {
        name: getattr(DEFAULT, name)
        for name in ("replicas", "resharding", "collectives", "topology", "microbatches")
    }
)


class CompiledVertex(NamedTuple):
    """The origin of a vertex of a compiled instance.

    Attributes
    ----------
    operation : int
        The operation that it is a replica of, or whose output it converts, sums or sends.
    output : int
        Which output of the operation; ``CONTROL`` for a replica, or the transfer of a signal.
    device : int
        Device of the instance.
    samples : (Fraction, Fraction)
        For a replica, the samples of its microbatch that it computes; for a Split or Concat, those
        of its input or its output; otherwise all.
    """

    kind: VertexKind
    operation: int
    output: int
    device: int
    samples: Interval = ALL
    microbatch: int = 0


@dataclass(frozen=True, eq=False)
class Compiled:
    """A strategy as an instance; built by :func:`~.compile_strategy`.

    Attributes
    ----------
    instance : Instance
        Its devices are those of the cluster in their order, then ``nccl`` if an AllReduce runs
        there, then shared links. Every vertex may run on one device only.
    vertices : tuple of CompiledVertex
        Origin of each vertex.
    parts : mapping from vertex to tuple of (Fraction, Fraction)
        For a Split, the samples of each of its outputs.
    chunks : mapping from vertex to (int, bool)
        For a chunk of a ring, its number, and whether it is added to the device's own or replaces
        it.
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


def by_rank(compiled: Compiled) -> Schedule:
    """Return the schedule of a compiled strategy in [G]'s order (§4.2)."""
    return simulate(compiled.instance, Partition(compiled.placement), heterog)
