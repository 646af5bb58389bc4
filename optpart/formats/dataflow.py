"""Models as graphs of operations, whichever format they are read from.

A vertex is an operation whose output depends on the inputs of the model. Everything else is
constant: parameters and what is computed of them alone are resident memory of the operations that
read them, each of which holds a copy, since they may run on different devices. The inputs lie ready
on every device, and the outputs stay where they are computed. A vertex has an output for its first
one and for every further one that something reads.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from optpart.errors import InputError
from optpart.formats.json import is_whole
from optpart.formats.operator_cost import Operation, Operators, Tensor
from optpart.formats.parsing import listed
from optpart.problem.graph import GraphBuilder
from optpart.problem.rational import shown
from optpart.problem.workload import Work, Workload

#: Counts and sizes stay below.
MOST = 2**63


@dataclass(frozen=True)
class Vertex:
    """An operation that is a vertex.

    Attributes
    ----------
    name : str
    operation : Operation
    place : str
        As errors name it.
    reads, outputs : list of str
        Values that it reads, and those that are its outputs in the graph.
    """

    name: str
    operation: Operation
    place: str
    reads: list[str]
    outputs: list[str]


class Values(Protocol):
    """What a reader knows of the values of a model."""

    @property
    def inputs(self) -> Collection[str]:
        """Inputs of the model."""

    @property
    def constant(self) -> Mapping[str, str]:
        """Values that do not depend on the inputs, each with the constant that it is a part of.

        A part may be in another order or type, or the whole.
        """

    def tensor(self, name: str, place: str) -> Tensor:
        """Return the type and shape of a value."""


def workload(
    vertices: Sequence[Vertex],
    values: Values,
    operators: Operators,
    name: str,
    source: str,
    assumed: Sequence[str],
    remedy: str,
) -> Workload:
    """Return the workload of a model.

    Raises
    ------
    InputError
        If nothing depends on an input, or an operation has shapes that do not fit it; ``remedy``
        says what would be right.
    """
    if not vertices:
        problem = "no operation depends on an input"
        raise InputError("graph", problem, "give a model that has some")
    builder, producer = GraphBuilder(), dict[str, tuple[str, int]]()
    readers: dict[str, list[int]] = {}
    costs = [_cost(vertex, operators, remedy) for vertex in vertices]
    for v, vertex in enumerate(vertices):
        memory = 0
        for value in dict.fromkeys(vertex.reads):
            if value in values.constant:
                memory += values.tensor(value, vertex.place).bytes
                readers.setdefault(value, []).append(v)
        sizes = [values.tensor(value, vertex.place).bytes for value in vertex.outputs]
        builder.vertex(vertex.name, costs[v][0], memory=memory, outputs=sizes)
        for value in vertex.reads:
            if value in producer:
                builder.edge(producer[value][0], vertex.name, producer[value][1])
        producer |= {value: (vertex.name, k) for k, value in enumerate(vertex.outputs)}
    operations = [vertex.operation for vertex in vertices]
    flops, read, written = (np.array(column, dtype=np.int64) for column in zip(*costs, strict=True))
    kinds = tuple(operation.kind for operation in operations)
    precisions = tuple(operation.precision for operation in operations)
    remarks = [*assumed]
    if values.inputs:
        remarks.append(f"The inputs lie ready on every device: {listed(values.inputs)}.")
    remarks += _copies(readers, values)
    guessed = [kind for kind in dict.fromkeys(kinds) if kind not in operators]
    if guessed:
        remarks.append(
            "Operators whose work is unknown count one operation per output element: "
            f"{listed(guessed)}."
        )
    work = Work(kinds, precisions, flops, read, written)
    return Workload(builder.build(), work, name=name, source=source, assumed=tuple(remarks))


def _cost(vertex: Vertex, operators: Operators, remedy: str) -> tuple[int, int, int]:
    try:
        found = operators.cost(vertex.operation)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        problem = f"its shapes or arguments do not fit the operator ({error})"
        raise InputError(vertex.place, problem, remedy) from None
    if not all(is_whole(count, 0, MOST - 1) for count in found):
        raise InputError(vertex.place, "takes more than 2^63 operations", "give smaller shapes")
    return found


def _copies(readers: Mapping[str, list[int]], values: Values) -> list[str]:
    """Say which constants several operations hold."""
    held: dict[str, int] = {}
    vertices: dict[str, set[int]] = {}
    for name, reading in readers.items():
        whole = values.constant[name]
        held[whole] = held.get(whole, 0) + len(reading) * values.tensor(name, "").bytes
        vertices.setdefault(whole, set()).update(reading)
    excess = {
        whole: size - values.tensor(whole, "").bytes
        for whole, size in held.items()
        if len(vertices[whole]) > 1
    }
    several = sorted((name for name in excess if excess[name] > 0), key=lambda n: -excess[n])
    if not several:
        return []
    total = sum(excess[name] for name in several)
    return [
        f"Constants that several operations read are counted at each, {total} bytes in excess: "
        f"{listed(several)}."
    ]


def check_sizes(sizes: Mapping[str, int]) -> None:
    """Refuse what is given as the size of a symbol, but is none."""
    for symbol, size in sizes.items():
        if not is_whole(size, 0, MOST - 1):
            raise InputError(f"shape {symbol!r}", f"size {shown(size)}", "give a whole number ≥ 0")


def check_symbols(sizes: Mapping[str, int], known: Collection[str]) -> None:
    """Refuse sizes of what a model does not have."""
    for symbol in sizes:
        if symbol not in known:
            remedy = f"choose one of {listed(known)}" if known else "leave it out"
            raise InputError(f"shape {symbol!r}", "the model has no such size", remedy)
