"""A forward pass at any number of samples: what :mod:`~optpart.training.backward` differentiates.

Layer-built models, model files and measured profiles all become a :class:`Forward` first.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from optpart.errors import InputError
from optpart.training.graph import Layout, Line, Output


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
    name : str
    times, backward_times : tuple of Line
        Nanoseconds by kind of device. ``backward_times`` is that of all gradients.
    reads : tuple of Tensor
        Distinct; the inputs of the model lie ready on every device and are not among them.
    outputs : tuple of Output
    after : tuple of int
        Operations that it waits for without reading anything of them.
    saved : Line or None
        Bytes that it keeps for its own backward pass besides what it reads and returns.
    needs_reads, needs_outputs : bool
        Whether its backward pass reads what it read, and what it returned.
    first_backward_times : tuple of Line, optional
        Instead of ``backward_times`` if nothing that it reads needs a gradient.
    splittable : bool
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
class Weights:
    """A trained tensor of the forward pass: bytes, and the operations that read it."""

    name: str
    size: Fraction
    users: tuple[int, ...]


@dataclass(frozen=True)
class Forward:
    """A whole forward pass.

    Attributes
    ----------
    name : str
    kinds : tuple of str
        Kinds of devices that times are known for.
    operations : tuple of ForwardOperation
        Each after those that it reads.
    weights : tuple of Weights
    updates : tuple of tuple of Line
        Times of the update of each of ``weights``, by kind of device.
    source : str
    assumed : tuple of str
    """

    name: str
    kinds: tuple[str, ...]
    operations: tuple[ForwardOperation, ...]
    weights: tuple[Weights, ...]
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
