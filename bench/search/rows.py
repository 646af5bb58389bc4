"""The storage of runs, and the format of numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

from bench.store import Store, Values


def up(value: float) -> str:
    """Write a makespan, rounded up."""
    return f"{math.ceil(100 * value - 1e-6) / 100:.2f}"


def down(value: float) -> str:
    """Write a bound, rounded down."""
    return f"{math.floor(100 * value + 1e-6) / 100:.2f}"


def gap(makespan: float, bound: float) -> float:
    """Return by how much a makespan exceeds a bound, as a share of the bound."""
    return makespan / bound - 1.0


def over(makespan: float, bound: float) -> str:
    """Write a makespan, a bound, and the gap between them."""
    return f"{up(makespan)} over {down(bound)}: {gap(makespan, bound):.1%}"


class Part:
    """The runs of one part; ``runs.jsonl`` in a folder."""

    def __init__(self, folder: Path, part: str) -> None:
        self._store = Store(folder / "runs.jsonl")
        self._part = part

    @property
    def rows(self) -> list[Values]:
        """Parameters and results."""
        return [row.flat for row in self._store.rows() if row.run["part"] == self._part]

    def known(self, run: Values) -> bool:
        """Whether a run was made before."""
        return self._store.known({"part": self._part, **run}) is not None

    def run(self, run: Values, call: Callable[[], Values]) -> None:
        """Make a run unless it was made before."""
        row = self._store.run({"part": self._part, **run}, call)
        print({k: v for k, v in row.flat.items() if not isinstance(v, list)}, flush=True)
