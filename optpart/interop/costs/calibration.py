"""Run times fitted to measurements of one device.

The model is linear: ``time = constant + per_flop · FLOPs + per_byte · bytes``, all coefficients
≥ 0, fitted to all rows, to those of each class of operations and, if asked for, to those of each
kind. Least squares of the *relative* errors (``scipy.optimize.nnls`` on rows divided by their
time), or the few longest operations would decide alone.

Measurements come as CSV::

    kind,class,flops,bytes,seconds
    Conv,contraction,231211008,4014080,0.000113
    Relu,,802816,6422528,0.0000081

``class`` may be empty; it is then the one that :mod:`optpart.interop.costs.efficiency` gives to the
kind.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from statistics import median

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from optpart.base.errors import FaultsOf, InputError
from optpart.interop.costs.costed import counted
from optpart.interop.costs.efficiency import defaults
from optpart.interop.devices.spec import Coefficients, FittedSpec
from optpart.interop.formats.tables import read_rows
from optpart.problem.rational import non_negative, rational

#: A class or kind with fewer rows is not fitted by itself: there are three coefficients.
LEAST_ROWS = 4

_COLUMNS = ("kind", "class", "flops", "bytes", "seconds")
_NANOSECONDS = 10**9


@dataclass(frozen=True)
class Measurement:
    """One measured operation.

    Attributes
    ----------
    kind, class_ : str
    flops : int
        Floating-point operations.
    moved : int
        Bytes read and written.
    seconds : float
        Above 0.
    """

    kind: str
    class_: str
    flops: int
    moved: int
    seconds: float

    def __post_init__(self) -> None:
        if not (0 < self.seconds < math.inf) or self.flops < 0 or self.moved < 0:
            raise InputError(
                "measurement",
                f"{self.flops} FLOPs and {self.moved} bytes in {self.seconds} s",
                "give counts ≥ 0 and seconds > 0",
            )


@dataclass(frozen=True)
class Calibration:
    """A fitted device, and how well it fits.

    Attributes
    ----------
    spec : FittedSpec
        What a cluster can name once it is written
        (:mod:`optpart.interop.formats.calibration_toml`).
    error : float
        Median over the rows of the relative error: (predicted - measured) / measured, without sign.
    class_errors, kind_errors : mapping from str to float
        The same by class and by kind.
    remarks : tuple of str
        What the measurements do not tell, one sentence each.
    """

    spec: FittedSpec
    error: float
    class_errors: Mapping[str, float]
    kind_errors: Mapping[str, float]
    remarks: tuple[str, ...]


def read_measurements(path: str | Path) -> list[Measurement]:
    """Read a table of measurements; every fault is an :class:`InputError` with file and line."""
    table = defaults()
    with FaultsOf(path):
        return [
            Measurement(
                kind=row["kind"],
                class_=row["class"] or table.class_of(row["kind"]),
                flops=_whole(row["flops"], f"{place}, flops"),
                moved=_whole(row["bytes"], f"{place}, bytes"),
                seconds=_seconds(row["seconds"], f"{place}, seconds"),
            )
            for place, row in read_rows(path, _COLUMNS)
        ]


def _whole(value: str, place: str) -> int:
    number = non_negative(value, place)
    if number.denominator != 1:
        raise InputError(place, f"{value} is not whole", "give a whole number")
    return int(number)


def _seconds(value: str, place: str) -> float:
    number = rational(value, place)
    if number <= 0:
        raise InputError(place, f"{value} is not positive", "give seconds > 0")
    return float(number)


def calibrate(
    rows: Sequence[Measurement],
    *,
    name: str,
    precision: str,
    type: str | None = None,
    memory: Fraction | None = None,
    source: str = "",
    by_kind: bool = False,
) -> Calibration:
    """Fit a device to measurements.

    Parameters
    ----------
    rows : sequence of Measurement
        At least :data:`LEAST_ROWS`.
    name, precision, type, memory, source
        Of the device; see :class:`~optpart.interop.devices.spec.FittedSpec`.
    by_kind : bool
        Also fit each kind that has enough rows, beyond its class.

    Raises
    ------
    InputError
        If there are too few rows.
    """
    if len(rows) < LEAST_ROWS:
        raise InputError("measurements", counted(len(rows), "row"), f"give {LEAST_ROWS} or more")
    remarks: list[str] = []
    classes = _fits(rows, lambda row: row.class_, "class", remarks)
    kinds = _fits(rows, lambda row: row.kind, "kind", remarks) if by_kind else {}
    overall, _ = _fit(rows)
    spec = FittedSpec(name, type, memory, precision, overall, classes, kinds, source)
    errors = [_error(spec, row) for row in rows]
    return Calibration(
        spec,
        median(errors),
        _medians([row.class_ for row in rows], errors),
        _medians([row.kind for row in rows], errors),
        tuple(remarks),
    )


def _fits(
    rows: Sequence[Measurement], key: Callable[[Measurement], str], what: str, remarks: list[str]
) -> dict[str, Coefficients]:
    """Fit each group of rows that is large enough."""
    found = {}
    for name in sorted({key(row) for row in rows}):
        members = [row for row in rows if key(row) == name]
        if len(members) < LEAST_ROWS:
            remarks.append(
                f"{what} {name}: {counted(len(members), 'row')}, too few for a fit of its own."
            )
            continue
        found[name], determined = _fit(members)
        if not determined:
            remarks.append(
                f"{what} {name}: the rows do not tell launch, FLOPs and bytes apart; operations of "
                "other proportions may be far off."
            )
    return found


def fit_relative(
    table: NDArray[np.float64], times: NDArray[np.float64]
) -> tuple[NDArray[np.float64], bool]:
    """Fit ``table · x = times``, ``x ≥ 0``, by least squares of the relative errors.

    A time of 0 has no relative error; it weighs as much as the shortest that has. Not all may be 0.
    Also returns whether the rows determine the coefficients.
    """
    weight = np.where(times > 0, times, times[times > 0].min())
    relative = table / weight[:, None]
    # Columns of like size: seconds and bytes are many powers of ten apart.
    scale = np.linalg.norm(relative, axis=0)
    scale[scale == 0] = 1
    scaled = relative / scale
    solution, _ = nnls(scaled, times / weight)
    determined = np.linalg.matrix_rank(scaled, tol=1e-6) == table.shape[1]
    return solution / scale, bool(determined)


def _fit(rows: Sequence[Measurement]) -> tuple[Coefficients, bool]:
    """Return the fitted coefficients in nanoseconds, and whether the rows determine them."""
    table = np.array([[1.0, float(row.flops), float(row.moved)] for row in rows])
    found, determined = fit_relative(table, np.array([row.seconds for row in rows]))
    return Coefficients(*(rational(float(x)) for x in found * _NANOSECONDS)), determined


def _error(spec: FittedSpec, row: Measurement) -> float:
    fit, _ = spec.coefficients(row.kind, row.class_)
    return abs(float(fit.time(row.flops, row.moved)) / (row.seconds * _NANOSECONDS) - 1)


def _medians(names: Sequence[str], errors: Sequence[float]) -> dict[str, float]:
    return {
        name: median(error for other, error in zip(names, errors, strict=True) if other == name)
        for name in sorted(set(names))
    }
