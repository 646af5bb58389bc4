"""A model's dataflow graph with the work of every operation, before it meets any device."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from optpart.base.arguments import checked
from optpart.base.errors import InputError
from optpart.problem.graph import Graph


@checked
@dataclass(frozen=True, eq=False)
class Work:
    """Work and traffic of every vertex, as far as its model file tells.

    Attributes
    ----------
    kinds : tuple of str, length n
        Operator types as the source names them, such as ``"Conv"``.
    precisions : tuple of str, length n
        Data types that the operations compute in, such as ``"float32"`` or ``"q4_K"``.
    flops : ndarray of int64, length n
        Floating-point operations; a multiply-add counts as two.
    read, written : ndarray of int64, length n
        Bytes that the operation reads, weights included, and writes.
    """

    kinds: tuple[str, ...]
    precisions: tuple[str, ...]
    flops: NDArray[np.int64]
    read: NDArray[np.int64]
    written: NDArray[np.int64]

    @classmethod
    def of(
        cls, kinds: Iterable[str], precisions: Iterable[str], counts: Sequence[tuple[int, int, int]]
    ) -> Work:
        """Collect the work of vertices from their operations, bytes read and bytes written."""
        flops, read, written = np.array(counts, dtype=np.int64).reshape(-1, 3).T.copy()
        return cls(tuple(kinds), tuple(precisions), flops, read, written)

    def __post_init__(self) -> None:
        for array in (self.flops, self.read, self.written):
            if (array < 0).any():
                raise InputError("work", "negative", "give counts ≥ 0")
            array.setflags(write=False)


@checked
@dataclass(frozen=True, eq=False)
class Workload:
    """The content of a model file: structure, sizes and work, but neither devices nor times.

    A source of costs (:mod:`optpart.interop.costs`) makes an
    :class:`~optpart.problem.instance.Instance` of it and of a cluster.

    Attributes
    ----------
    graph : Graph
        Resident memory (weights) and tensor sizes in bytes; its ``ops`` repeat the FLOPs, or are
        zero where they are unknown.
    work : Work or None
        ``None`` if the file does not tell, as a graph without shapes.
    measured : mapping from str to tuple of (Fraction or None), length n
        Run times in nanoseconds by device, of files that hold measurements; ``None`` where a
        vertex was not measured.
    name, source : str
    assumed : tuple of str
        What the reader had to assume, one sentence each, for the user to see.
    reserve : int
        Bytes that every device needs beside what its vertices hold, whatever these are.
    reserved_for : str
        What that is, to follow "for".
    cached : tuple of int
        Bytes of each vertex's memory that are keys and values, and no weights; empty if none are.
    sequences, context : int
        How many sequences there are keys and values of, and of how many positions each; 0 if of
        none.
    """

    graph: Graph
    work: Work | None = None
    measured: Mapping[str, tuple[Fraction | None, ...]] = field(default_factory=dict)
    name: str = "unnamed"
    source: str = ""
    assumed: tuple[str, ...] = ()
    reserve: int = 0
    reserved_for: str = ""
    cached: tuple[int, ...] = ()
    sequences: int = 0
    context: int = 0

    def __post_init__(self) -> None:
        n = len(self.graph)
        lengths = {device: len(times) for device, times in self.measured.items()}
        if self.cached:
            lengths["cached"] = len(self.cached)
        if self.work is not None:
            work = self.work
            parts = ("kinds", "precisions", "flops", "read", "written")
            lengths |= {part: len(getattr(work, part)) for part in parts}
        for part, length in lengths.items():
            if length != n:
                raise InputError(part, f"{length} entries", f"give {n}, one per vertex")
