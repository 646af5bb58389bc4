"""The interface of searchers."""

from __future__ import annotations

from collections import Counter
from typing import Protocol

from optpart.search.evaluator import Evaluator, Value
from optpart.search.plan import Layout


class Searcher(Protocol):
    """A method that searches for better layouts.

    Attributes
    ----------
    evaluator : Evaluator
    best : Layout
    value : tuple of float
        Value of the best layout: excess memory, primary and secondary objective; in the unit of
        :class:`~optpart.kernels.compiled.Arrays`.
    """

    evaluator: Evaluator
    best: Layout
    value: Value

    @property
    def moves(self) -> int:
        """Return the number of changes tried."""

    @property
    def effort(self) -> int:
        """Return the effort so far, in equivalent annealing moves."""

    @property
    def paid(self) -> Counter[str]:
        """Return how often each operator led to a new best."""

    def offer(self, layout: Layout, value: Value) -> None:
        """Take another searcher's best into account."""

    def step(self, share: float) -> bool:
        """Search briefly; return whether the best layout improved.

        Parameters
        ----------
        share : float
            Share of the budget spent so far.
        """
