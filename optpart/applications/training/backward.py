"""A forward pass at any number of samples, and the backward pass and the updates that follow of it.

Layer-built models, model files and measured profiles all become a :class:`Forward` first.

The backward operation of ``o`` reads the gradients of ``o``'s outputs, which the backward
operations of its consumers return, and of the activations those that it needs; it returns a
gradient for each tensor that ``o`` read, as large as the tensor, and the gradient of ``o``'s
weights, as large as the weights and summed over samples. An operation whose outputs nobody reads
ends in the loss: its backward operation begins with those outputs. One apply updates the weights
that an operation is the first to read; other operations that share them return gradients to the
same apply.

Only what leads to weights has a backward operation: neither do operations before the first weights,
nor is a gradient of the model's inputs computed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from optpart.applications.training.graph import (
    CONTROL,
    Edge,
    Layout,
    Line,
    Operation,
    Output,
    Parameter,
    Role,
    TrainingGraph,
)
from optpart.base.errors import InputError
from optpart.problem.rational import shown

#: Suffixes of the names of backward operations and applies.
BACKWARD, UPDATE = "/backward", "/apply"


@dataclass(frozen=True)
class Tensor:
    """One output of one operation, by their numbers."""

    operation: int
    output: int = 0


@dataclass(frozen=True)
class ForwardOperation:
    """One operation of the forward pass, and what its backward pass takes.

    Attributes
    ----------
    times, backward_times : tuple of Line
        Nanoseconds by kind of device. ``backward_times`` is that of all gradients.
    reads : tuple of Tensor
        Distinct; the inputs of the model lie ready on every device and are not among them.
    after : tuple of int
        Operations that it waits for without reading anything of them.
    saved : Line or None
        Bytes that it keeps for its own backward pass besides what it reads and returns.
    needs_reads, needs_outputs : bool
        Whether its backward pass reads what it read, and what it returned.
    first_backward_times : tuple of Line, optional
        Instead of ``backward_times`` if nothing that it reads needs a gradient.
    """

    name: str
    times: tuple[Line, ...]
    backward_times: tuple[Line, ...]
    reads: tuple[Tensor, ...] = ()
    outputs: tuple[Output, ...] = ()
    after: tuple[int, ...] = ()
    saved: Line | None = None
    needs_reads: bool = True
    needs_outputs: bool = False
    first_backward_times: tuple[Line, ...] | None = None
    splittable: bool = True


@dataclass(frozen=True)
class Forward:
    """A whole forward pass.

    Attributes
    ----------
    kinds : tuple of str
        Kinds of devices that times are known for.
    operations : tuple of ForwardOperation
        Each after those that it reads.
    weights : tuple of Parameter
        Their users are those operations that read them.
    updates : tuple of tuple of Line
        Times of the update of each of ``weights``, by kind of device.
    """

    name: str
    kinds: tuple[str, ...]
    operations: tuple[ForwardOperation, ...]
    weights: tuple[Parameter, ...]
    updates: tuple[tuple[Line, ...], ...]
    source: str = ""
    assumed: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for o, operation in enumerate(self.operations):
            before = (*(tensor.operation for tensor in operation.reads), *operation.after)
            if any(not 0 <= u < o for u in before):
                raise InputError(
                    operation.name, "reads of a later operation", "give operations in order"
                )


def batched(alpha: Fraction | int, beta: Fraction | int) -> Output:
    """Return an output of which replicas hold the slices of their samples."""
    return Output(Layout.BATCHED, Line(Fraction(alpha), Fraction(beta)))


def with_backward(forward: Forward) -> TrainingGraph:
    """Return the training graph of a forward pass.

    It is an :class:`InputError` if an operation that can be split reads something that depends on
    weights, but on no sample.
    """
    return _Differentiation(forward).graph()


class _Differentiation:
    def __init__(self, forward: Forward) -> None:
        self.forward = forward
        operations = forward.operations
        self.held: list[list[int]] = [[] for _ in operations]
        for w, weights in enumerate(forward.weights):
            for user in weights.users:
                self.held[user].append(w)
        self.consumers: dict[Tensor, list[int]] = {}
        for o, operation in enumerate(operations):
            for tensor in operation.reads:
                self.consumers.setdefault(tensor, []).append(o)
        self.found: list[Operation] = []
        self.edges: list[Edge] = []

    def graph(self) -> TrainingGraph:
        forward = self.forward
        self.trained = self._trained()
        for o, op in enumerate(forward.operations):
            outputs = op.outputs
            if op.saved is not None and self.trained[o]:
                outputs = (*outputs, Output(Layout.BATCHED, op.saved))
            self.found.append(Operation(op.name, Role.FORWARD, op.times, outputs, op.splittable))
            self.edges += [Edge(t.operation, t.output, o) for t in op.reads]
            self.edges += [Edge(u, CONTROL, o) for u in op.after]
        n = len(self.found)
        trained = [o for o in reversed(range(n)) if self.trained[o]]
        backward = {o: n + i for i, o in enumerate(trained)}
        firsts = dict.fromkeys(weights.users[0] for weights in forward.weights)
        applies = {first: n + len(backward) + i for i, first in enumerate(firsts)}
        for o in backward:
            self._backward(o, backward, applies)
        for first, apply in applies.items():
            updated = [w for w in self.held[first] if forward.weights[w].users[0] == first]
            times = [forward.updates[w] for w in updated]
            summed = tuple(sum(lines, Line()) for lines in zip(*times, strict=True))
            name = forward.operations[first].name + UPDATE
            assert len(self.found) == apply
            self.found.append(Operation(name, Role.APPLY, summed))
        return TrainingGraph(
            forward.name,
            forward.kinds,
            tuple(self.found),
            tuple(dict.fromkeys(self.edges)),
            tuple(
                replace(
                    w, users=(*w.users, *map(backward.__getitem__, w.users), applies[w.users[0]])
                )
                for w in forward.weights
            ),
            forward.source,
            forward.assumed,
        )

    def _trained(self) -> list[bool]:
        """Return whether an operation has weights, or reads something that depends on some."""
        known: list[bool] = []
        for o, operation in enumerate(self.forward.operations):
            known.append(bool(self.held[o]) or any(known[t.operation] for t in operation.reads))
        return known

    def _backward(self, o: int, backward: dict[int, int], applies: dict[int, int]) -> None:
        """Add the backward operation of one operation, and what it reads."""
        operation = self.forward.operations[o]
        number = len(self.found)
        assert number == backward[o]
        gradients = [t for t in operation.reads if self.trained[t.operation]]
        outputs = [self._gradient(operation, t) for t in gradients]
        of_apply: dict[int, Fraction] = {}
        for w in self.held[o]:
            weights = self.forward.weights[w]
            apply = applies[weights.users[0]]
            of_apply[apply] = of_apply.get(apply, Fraction(0)) + weights.size
        for apply, size in of_apply.items():
            self.edges.append(Edge(number, len(outputs), apply))
            outputs.append(Output(Layout.SUMMED, Line(size)))
        times = operation.backward_times
        if not gradients and operation.first_backward_times is not None:
            times = operation.first_backward_times
        name = operation.name + BACKWARD
        self.found.append(
            Operation(name, Role.BACKWARD, times, tuple(outputs), operation.splittable)
        )
        self._reads(o, number, backward)

    def _gradient(self, reader: ForwardOperation, tensor: Tensor) -> Output:
        producer = self.forward.operations[tensor.operation]
        output = producer.outputs[tensor.output]
        if output.layout is Layout.WHOLE and reader.splittable:
            raise InputError(
                reader.name,
                f"its gradient of {shown(producer.name)}, which does not depend on samples, is a "
                "sum over samples that only an apply could read",
                "make it unsplittable, or its input weights",
            )
        return output

    def _reads(self, o: int, number: int, backward: dict[int, int]) -> None:
        operation = self.forward.operations[o]
        ends = True
        for k in range(len(operation.outputs)):
            tensor = Tensor(o, k)
            for consumer in self.consumers.get(tensor, ()):
                ends = False
                read = self.forward.operations[consumer].reads
                inputs = [t for t in read if self.trained[t.operation]]
                self.edges.append(Edge(backward[consumer], inputs.index(tensor), number))
        if ends and not operation.outputs:
            self.edges.append(Edge(o, CONTROL, number))
        if ends or operation.needs_outputs:
            self.edges += [Edge(o, k, number) for k in range(len(operation.outputs))]
        if operation.needs_reads:
            self.edges += [Edge(t.operation, t.output, number) for t in operation.reads]
        if operation.saved is not None:
            self.edges.append(Edge(o, len(operation.outputs), number))
