"""Run times given per vertex and device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from optpart.base.arguments import checked
from optpart.base.errors import InputError
from optpart.problem.rational import Number, RationalArray


@checked
@dataclass(frozen=True, eq=False)
class Durations:
    """Run times given per vertex and device, in place of ``c_v / s_d``.

    Attributes
    ----------
    times : RationalArray, n × k
    possible : ndarray of bool, n × k
        ``False`` where the vertex cannot run.
    """

    times: RationalArray
    possible: NDArray[np.bool_]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Durations):
            return NotImplemented
        # Times where a vertex cannot run mean nothing.
        return bool(np.array_equal(self.possible, other.possible)) and (
            self.times.take(self.possible) == other.times.take(other.possible)
        )

    def __hash__(self) -> int:
        return hash(self.possible.shape)

    def __repr__(self) -> str:
        n, k = self.possible.shape
        return f"<Durations of {n:,} vertices on {k:,} devices>"

    @classmethod
    def of(cls, rows: Sequence[Sequence[Number | None]], n: int, k: int) -> Durations:
        """Read ``n`` rows of ``k`` times; ``None`` means that the vertex cannot run there."""
        if isinstance(rows, np.ndarray):
            rows = rows.tolist()
        if len(rows) != n:
            raise InputError("durations", f"{len(rows)} rows", f"give {n} rows, one per vertex")
        for v, row in enumerate(rows):
            if not isinstance(row, Sequence) or isinstance(row, str) or len(row) != k:
                size = len(row) if isinstance(row, Sequence) else "no"
                raise InputError(
                    f"durations[{v}]", f"{size} entries", f"give {k} entries, one per device"
                )
        times = RationalArray.of(
            [0 if entry is None else entry for row in rows for entry in row],
            lambda i: f"durations[{i // k}][{i % k}]",
        )
        possible = [[entry is not None for entry in row] for row in rows]
        return cls(times.reshape(n, k), np.array(possible, dtype=np.bool_).reshape(n, k))
