"""Graphs of the operations of a model, as readers of single operations build them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from optpart.base.errors import InputError
from optpart.interop.formats.operator_cost import Operation, Tensor
from optpart.problem.graph import GraphBuilder
from optpart.problem.workload import Work, Workload

#: Operations, bytes read and bytes written.
Counts = tuple[int, int, int]


def checked_cost(compute: Callable[[], Counts], place: str, settings: str, remedy: str) -> Counts:
    """Return what an operation costs, whose settings are called attributes or arguments.

    Raises
    ------
    InputError
        If its shapes or settings do not fit its operator, or a count is beyond 2^63.
    """
    try:
        found = compute()
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        problem = f"its shapes or {settings} do not fit the operator ({error})"
        raise InputError(place, problem, remedy) from None
    if not all(isinstance(count, int) and 0 <= count < 2**63 for count in found):
        raise InputError(place, "takes more than 2^63 operations", "give smaller shapes")
    return found


class ModelGraph:
    """Vertices of a workload, added one after the other with the values that they read and write.

    Attributes
    ----------
    builder : GraphBuilder
    """

    def __init__(self) -> None:
        self.builder = GraphBuilder()
        self._makers: dict[str, tuple[str, int]] = {}
        self._rows: list[tuple[str, str, Counts]] = []

    def add(
        self,
        name: str,
        kind: str,
        operation: Operation,
        counts: Counts,
        memory: int,
        reads: Iterable[str],
        writes: Mapping[str, Tensor],
    ) -> None:
        """Add an operation; values that no vertex has written lie ready on every device."""
        sizes = [tensor.bytes for tensor in writes.values()]
        self.builder.vertex(name, counts[0], memory=memory, outputs=sizes)
        for value in reads:
            if value in self._makers:
                source, output = self._makers[value]
                self.builder.edge(source, name, output)
        self._makers |= {value: (name, k) for k, value in enumerate(writes)}
        self._rows.append((kind, _precision(operation), counts))

    def workload(self, name: str, source: str, assumed: Iterable[str]) -> Workload:
        """Return the workload of all that was added."""
        kinds, precisions, counts = zip(*self._rows, strict=True)
        work = Work.of(kinds, precisions, counts)
        return Workload(self.builder.build(), work, name=name, source=source, assumed=(*assumed,))


def _precision(operation: Operation) -> str:
    """Return the type of the first tensor that is not a mere choice, as that of ``Where`` is."""
    tensors = [each for each in (*operation.inputs, *operation.outputs) if each is not None]
    return next((each for each in tensors if each.type != "bool"), tensors[0]).precision
