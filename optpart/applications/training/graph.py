"""One training iteration, on a single device and at any batch size ([G] §3.2)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from functools import cached_property
from graphlib import CycleError, TopologicalSorter

import numpy as np
from numpy.typing import NDArray

from optpart.base.errors import InputError
from optpart.base.escaping import brief, writable
from optpart.problem.rational import Number, non_negative, shown

#: Output index of a control dependency: the consumer waits, and nothing is transferred.
CONTROL = -1


class Role(StrEnum):
    """The part of the iteration that an operation belongs to."""

    FORWARD = "forward"
    BACKWARD = "backward"
    APPLY = "apply"


class Layout(StrEnum):
    """The way in which replicas' outputs make up the output of an operation.

    ``BATCHED``: each replica holds the slice of its samples; slices are concatenated.
    ``SUMMED``: each replica holds a sum over its samples, as of a gradient; sums are added.
    ``WHOLE``: the output does not depend on samples; every replica holds the same.
    """

    BATCHED = "batched"
    SUMMED = "summed"
    WHOLE = "whole"


@dataclass(frozen=True)
class Line:
    """A quantity that grows with the number of samples: ``alpha + beta · samples`` ([G] §3.3).

    Attributes
    ----------
    alpha, beta : Fraction
        At least 0: a negative part would break the bounds, and no time is negative.
    """

    alpha: Fraction = Fraction(0)
    beta: Fraction = Fraction(0)

    @classmethod
    def of(cls, alpha: Number = 0, beta: Number = 0, place: str = "") -> Line:
        """Read both numbers exactly; a negative one is an :class:`InputError`."""
        return cls(
            non_negative(alpha, f"{place}.alpha" if place else "alpha"),
            non_negative(beta, f"{place}.beta" if place else "beta"),
        )

    def __post_init__(self) -> None:
        for name, value in (("alpha", self.alpha), ("beta", self.beta)):
            if value < 0:
                raise InputError(name, f"negative ({shown(value)})", "give a number ≥ 0")

    def at(self, samples: Fraction | int) -> Fraction:
        """Return the value at a number of samples."""
        return self.alpha + self.beta * samples

    def __add__(self, other: Line) -> Line:
        return Line(self.alpha + other.alpha, self.beta + other.beta)


@dataclass(frozen=True)
class Output:
    """One output of an operation: bytes at a number of samples, and how replicas share it.

    A ``SUMMED`` or ``WHOLE`` output has ``beta = 0``: its size does not depend on the batch.
    """

    layout: Layout
    size: Line

    def __post_init__(self) -> None:
        if self.layout is not Layout.BATCHED and self.size.beta:
            raise InputError(
                "output", f"{self.layout}, but grows with the batch", "make it batched or fixed"
            )


@dataclass(frozen=True)
class Operation:
    """One operation of the single-device graph.

    Attributes
    ----------
    times : tuple of Line
        Nanoseconds on each of the graph's kinds of devices, in their order.
    splittable : bool
        Whether a replica may compute a part of the batch. Otherwise each computes all of it.
    """

    name: str
    role: Role
    times: tuple[Line, ...]
    outputs: tuple[Output, ...] = ()
    splittable: bool = True


@dataclass(frozen=True)
class Edge:
    """The consumer reads one output of the producer, or waits for it (``CONTROL``)."""

    producer: int
    output: int
    consumer: int


@dataclass(frozen=True)
class Parameter:
    """A trained tensor.

    Attributes
    ----------
    size : Fraction
        Bytes of the tensor itself; what the optimiser keeps besides is counted by the compiler.
    users : tuple of int
        Operations that read it (forward, backward) or update it (apply). They have the same
        replicas, so they belong to one group of any strategy.
    """

    name: str
    size: Fraction
    users: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class TrainingGraph:
    """One training iteration on a single device: forward pass, backward pass, updates.

    Attributes
    ----------
    kinds : tuple of str
        Kinds of devices that times are known for.
    edges : tuple of Edge
        Distinct.
    source : str
        Source of the figures.
    assumed : tuple of str
        Assumptions of the reader, one sentence each, for the user to see.

    Faults are :class:`InputError` s: repeated names, other numbers of times than of kinds, an edge
    or a parameter that refers to nothing, an apply with an output, a ``SUMMED`` output that
    anything but an apply reads, or a cycle, which the message names.
    """

    name: str
    kinds: tuple[str, ...]
    operations: tuple[Operation, ...]
    edges: tuple[Edge, ...]
    parameters: tuple[Parameter, ...] = ()
    source: str = ""
    assumed: tuple[str, ...] = ()
    topological_order: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        for label in ("name", "source"):  # often made of the name of a file
            object.__setattr__(self, label, writable(getattr(self, label)))
        self._check_operations()
        self._check_edges()
        self._check_parameters()
        object.__setattr__(self, "topological_order", self._sorted())

    def __len__(self) -> int:
        return len(self.operations)

    def __repr__(self) -> str:
        return (
            f"<TrainingGraph {brief(self.name)}: {len(self):,} operations, "
            f"{len(self.parameters):,} parameters, {len(self.kinds)} kinds of devices>"
        )

    @cached_property
    def index(self) -> dict[str, int]:
        """Operation number by name."""
        return {operation.name: o for o, operation in enumerate(self.operations)}

    @cached_property
    def in_edges(self) -> tuple[tuple[Edge, ...], ...]:
        """Edges by consumer."""
        found: list[list[Edge]] = [[] for _ in self.operations]
        for edge in self.edges:
            found[edge.consumer].append(edge)
        return tuple(map(tuple, found))

    @cached_property
    def resident(self) -> tuple[Fraction, ...]:
        """Bytes of the parameters that each operation updates, by operation.

        A parameter that no apply updates counts at its first user.
        """
        found = [Fraction(0)] * len(self)
        for parameter in self.parameters:
            applies = (u for u in parameter.users if self.operations[u].role is Role.APPLY)
            found[next(applies, parameter.users[0])] += parameter.size
        return tuple(found)

    def held(self, slots: int) -> list[Fraction]:
        """Return the bytes that a replica of each operation holds for the whole iteration.

        An apply holds what an optimiser with so many slots keeps besides its parameters.
        """
        return [
            size * (1 + slots if operation.role is Role.APPLY else 1)
            for size, operation in zip(self.resident, self.operations, strict=True)
        ]

    @cached_property
    def tied(self) -> tuple[tuple[int, ...], ...]:
        """Operations that share parameters or make and apply a sum over samples; merged.

        The members of one have the same replicas under every strategy. The rest stand alone.
        """
        import networkx as nx

        together: nx.Graph[int] = nx.Graph()
        together.add_nodes_from(range(len(self)))
        together.add_edges_from((p.users[0], user) for p in self.parameters for user in p.users[1:])
        together.add_edges_from((e.producer, e.consumer) for e in self.edges if self.sums(e))
        return tuple(tuple(sorted(group)) for group in nx.connected_components(together))

    def sums(self, edge: Edge) -> bool:
        """Return whether an edge carries a sum over samples, such as a gradient."""
        outputs = self.operations[edge.producer].outputs
        return edge.output != CONTROL and outputs[edge.output].layout is Layout.SUMMED

    def times(self, batch: Fraction | int) -> NDArray[np.float64]:
        """Return the times of whole operations at a batch, operations × kinds, for choices only."""
        rows = [[float(line.at(batch)) for line in o.times] for o in self.operations]
        return np.array(rows, dtype=np.float64).reshape(len(self), len(self.kinds))

    def _check_operations(self) -> None:
        if not self.operations:
            raise InputError("operations", "none", "give at least one")
        if not self.kinds or len(set(self.kinds)) < len(self.kinds):
            raise InputError("kinds", "missing or repeated", "name every kind of device once")
        for o, operation in enumerate(self.operations):
            place = f"operations[{o}] ({brief(operation.name)})"
            if len(operation.times) != len(self.kinds):
                raise InputError(
                    place,
                    f"{len(operation.times)} times",
                    f"give {len(self.kinds)}, one per kind of device",
                )
            if operation.role is Role.APPLY and operation.outputs:
                raise InputError(place, "an apply with an output", "leave it out")
        name, count = Counter(o.name for o in self.operations).most_common(1)[0]
        if count > 1:
            raise InputError(
                "operations", f"{count} have the name {shown(name)}", "make names unique"
            )

    def _check_edges(self) -> None:
        n = len(self)
        for e, edge in enumerate(self.edges):
            place = f"edges[{e}]"
            if not (0 <= edge.producer < n and 0 <= edge.consumer < n):
                raise InputError(place, "refers to no operation", f"give numbers from 0 to {n - 1}")
            outputs = self.operations[edge.producer].outputs
            if not CONTROL <= edge.output < len(outputs):
                raise InputError(
                    place, f"reads output {edge.output} of {len(outputs)}", "give one that exists"
                )
            if self.sums(edge) and self.operations[edge.consumer].role is not Role.APPLY:
                name = self.operations[edge.consumer].name
                raise InputError(
                    place,
                    f"{shown(name)} reads a sum over samples",
                    "only an apply can, since replicas have parts of the sum",
                )
        if len(set(self.edges)) < len(self.edges):
            raise InputError("edges", "repeated", "give each edge once")

    def _check_parameters(self) -> None:
        for p, parameter in enumerate(self.parameters):
            place = f"parameters[{p}] ({brief(parameter.name)})"
            if not parameter.users or not all(0 <= u < len(self) for u in parameter.users):
                raise InputError(place, "used by no operation", "name the operations that use it")
            if parameter.size < 0:
                raise InputError(place, "a negative size", "give bytes ≥ 0")

    def _sorted(self) -> tuple[int, ...]:
        sorter = TopologicalSorter({o: set[int]() for o in range(len(self))})
        for edge in self.edges:
            sorter.add(edge.consumer, edge.producer)
        try:
            return tuple(sorter.static_order())
        except CycleError as error:
            cycle = " → ".join(shown(self.operations[o].name) for o in error.args[1])
            raise InputError("edges", f"a cycle: {cycle}", "remove an edge of it") from None
