"""The profiler of [G] §3.3: lines ``α + β·samples`` fitted to measured times.

Measurements come as CSV, the unit of time in the header, seconds if there is none. Of operations::

    op,kind,batch,time (ms)
    conv1,v100-16gb,8,1.25
    conv1,v100-16gb,16,2.4

and of transfers, with bytes in place of samples::

    sender,receiver,bytes,time (us)
    gpu0,gpu1,1048576,107

Each line is fitted by non-negative least squares of the *relative* errors, as calibrations are
(:mod:`optpart.interop.costs.calibration`): plain regression gives negative ``α`` on real data, with
which nothing could be proven, and absolute errors would let the largest batch decide alone.

The result is written as JSON, in nanoseconds and bytes::

    {"format": "optpart-costs/1",
     "source": "times.csv",
     "operations": [{"op": "conv1", "kind": "v100-16gb", "alpha": 100000, "beta": 143750,
                     "rows": 2, "error": 0, "worst": 0}],
     "transfers": [{"sender": "gpu0", "receiver": "gpu1", "alpha": 12000, "beta": "1/10",
                    "rows": 5, "error": 0.01, "worst": 0.03}]}

``error`` is the median of the relative errors, ``worst`` the largest.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from optpart.applications.training.cluster import TrainingCluster
from optpart.applications.training.graph import Line, TrainingGraph
from optpart.base.choices import choice
from optpart.base.errors import FaultsOf, InputError
from optpart.base.escaping import listed
from optpart.base.files import Kind, of_format, read_text, write_text
from optpart.interop.costs.calibration import fit_relative
from optpart.interop.formats.json import flag, keys, parse_json, pretty, sequence, text, version
from optpart.interop.formats.tables import read_table
from optpart.problem.document import number
from optpart.problem.rational import non_negative, rational, shown

FORMAT = "optpart-costs/1"
KIND = Kind("fitted costs", of_format(FORMAT))

_NANOSECONDS = {"ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": 10**9}
_TIME = re.compile(r"time\s*(?:\((?P<unit>[^()]*)\))?")
_OPERATIONS, _TRANSFERS = ("op", "kind", "batch"), ("sender", "receiver", "bytes")
_FIT = ("alpha", "beta", "rows", "error", "worst")


@dataclass(frozen=True)
class Fit:
    """A fitted line, and how well it fits.

    Attributes
    ----------
    line : Line
        Nanoseconds by samples or by bytes.
    error, worst : float
        Median and largest relative error: (fitted - measured) / measured, without sign. A time of
        0 that is not met counts as an error of 1.
    determined : bool
        Whether the rows tell ``α`` and ``β`` apart.
    """

    line: Line
    rows: int
    error: float
    worst: float
    determined: bool = True


def fit(points: Sequence[tuple[Fraction, Fraction]]) -> Fit:
    """Fit a line to pairs of samples (or bytes) and nanoseconds, at least one.

    With a single number of samples, ``α`` is 0: the time grows with the samples. Both have nine
    significant digits, far more than measurements.
    """
    x = np.array([float(samples) for samples, _ in points])
    y = np.array([float(time) for _, time in points])
    if not y.any():
        return Fit(Line(), len(points), 0.0, 0.0)
    determined = len(set(x.tolist())) > 1
    columns = [x] if not determined and x.any() else [np.ones(len(points)), x]
    coefficients, _ = fit_relative(np.stack(columns, axis=1), y)
    *alpha, beta = (rational(f"{value:.9g}") for value in coefficients)
    fitted = Line(alpha[0] if alpha else Fraction(0), beta)
    errors = [
        abs(float(fitted.at(samples) / time) - 1) if time else float(fitted.at(samples) > 0)
        for samples, time in points
    ]
    return Fit(fitted, len(points), median(errors), max(errors), determined)


@dataclass(frozen=True)
class FittedCosts:
    """Fitted times of operations and transfers.

    Attributes
    ----------
    operations : mapping from (str, str) to Fit
        By operation and kind of device.
    transfers : mapping from (str, str) to Fit
        By sender and receiver.
    """

    operations: Mapping[tuple[str, str], Fit]
    transfers: Mapping[tuple[str, str], Fit]
    source: str = ""

    def remarks(self) -> tuple[str, ...]:
        """Say what the measurements do not tell, one sentence each."""
        found = []
        for what, fits, grows in (
            ("operation", self.operations, "samples"),
            ("transfer", self.transfers, "bytes"),
        ):
            single = [" ".join(key) for key, each in fits.items() if not each.determined]
            if single:
                found.append(
                    f"{what} {listed(single, 3)}: measured for a single number of "
                    f"{grows}; α = 0 is assumed, so that times are proportional to {grows}."
                )
        return tuple(found)


def fit_files(paths: Iterable[str | Path]) -> FittedCosts:
    """Fit the measurements of tables, of operations or of transfers; faults name file and line."""
    found: dict[tuple[str, ...], dict[tuple[str, str], list[tuple[Fraction, Fraction]]]]
    found = {_OPERATIONS: {}, _TRANSFERS: {}}
    names = []
    for path in paths:
        names.append(Path(path).name)
        with FaultsOf(path):
            columns, points = _table(path)
            for key, point in points:
                found[columns].setdefault(key, []).append(point)
    return FittedCosts(
        {key: fit(points) for key, points in found[_OPERATIONS].items()},
        {key: fit(points) for key, points in found[_TRANSFERS].items()},
        ", ".join(names),
    )


def _table(
    path: str | Path,
) -> tuple[tuple[str, ...], list[tuple[tuple[str, str], tuple[Fraction, Fraction]]]]:
    header, rows = read_table(path)
    columns, unit = tuple(header[:3]), _unit(header[3]) if len(header) == 4 else None
    if columns not in (_OPERATIONS, _TRANSFERS) or unit is None:
        wanted = " or ".join(f"{','.join(each)},time (us)" for each in (_OPERATIONS, _TRANSFERS))
        raise InputError("line 1", f"the header is {shown(','.join(header))}", f"write {wanted}")
    if not rows:
        raise InputError("", "has no rows", "give at least one measurement")
    points = []
    for place, row in rows:
        first, second, amount, time = (field.strip() for field in row)
        for column, name in zip(columns, (first, second), strict=False):
            if not name:
                raise InputError(f"{place}, {column}", "is empty", "name it")
        samples = non_negative(amount, f"{place}, {columns[2]}")
        if columns == _OPERATIONS and not samples:
            raise InputError(f"{place}, batch", "0", "give a number of samples > 0")
        nanoseconds = non_negative(time, f"{place}, time") * unit
        points.append(((first, second), (samples, nanoseconds)))
    return columns, points


def _unit(column: str) -> int | None:
    """Return the nanoseconds of the unit in the header of the times."""
    match = _TIME.fullmatch(column)
    if match is None:
        return None
    unit = (match["unit"] or "s").strip()
    if unit not in _NANOSECONDS:
        raise InputError(
            "line 1", f"unknown unit {shown(unit)}", f"write one of {', '.join(_NANOSECONDS)}"
        )
    return _NANOSECONDS[unit]


# --- files ---------------------------------------------------------------------------------------


def write(costs: FittedCosts, path: str | Path) -> None:
    """Write a file of costs, completely or not at all."""
    write_text(path, dumps(costs), KIND)


def dumps(costs: FittedCosts) -> str:
    """Return the text of a file of costs, as :func:`read` reads it."""
    return pretty(
        {
            "format": FORMAT,
            "source": costs.source,
            "operations": _entries(costs.operations, ("op", "kind")),
            "transfers": _entries(costs.transfers, ("sender", "receiver")),
        }
    )


def _entries(fits: Mapping[tuple[str, str], Fit], names: tuple[str, str]) -> list[dict[str, Any]]:
    return [
        dict(zip(names, key, strict=True))
        | {"alpha": number(each.line.alpha), "beta": number(each.line.beta)}
        | {"rows": each.rows, "error": each.error, "worst": each.worst}
        | ({} if each.determined else {"determined": False})
        for key, each in fits.items()
    ]


def read(path: str | Path) -> FittedCosts:
    """Read a file of costs; every fault is an :class:`InputError` that names file and place."""
    with FaultsOf(path):
        document = parse_json(read_text(path))
        version(document, FORMAT)
        top = keys(document, {"$schema", "format", "source", "operations", "transfers"}, "")
        return FittedCosts(
            _read_entries(top.get("operations", []), ("op", "kind"), "operations"),
            _read_entries(top.get("transfers", []), ("sender", "receiver"), "transfers"),
            text(top.get("source", ""), "source"),
        )


def _read_entries(value: Any, names: tuple[str, str], place: str) -> dict[tuple[str, str], Fit]:
    found: dict[tuple[str, str], Fit] = {}
    for i, entry in enumerate(sequence(value, place)):
        at = f"{place}[{i}]"
        needed, remedy = (*names, "alpha", "beta"), f"{', '.join(names)}, α and β"
        fields = keys(entry, {*names, *_FIT, "determined"}, at, needed, remedy)
        one, two = (text(fields[name], f"{at}.{name}") for name in names)
        if (one, two) in found:
            raise InputError(at, f"{one} {two} again", "give every line once")
        rows = rational(fields.get("rows", 1), f"{at}.rows")
        if rows.denominator != 1 or rows < 1:
            raise InputError(f"{at}.rows", shown(rows), "give a whole number from 1")
        found[one, two] = Fit(
            Line.of(fields["alpha"], fields["beta"], at),
            int(rows),
            _rounded(fields.get("error", 0), f"{at}.error"),
            _rounded(fields.get("worst", 0), f"{at}.worst"),
            flag(fields.get("determined", True), f"{at}.determined"),
        )
    return found


def _rounded(value: Any, place: str) -> float:
    """Read a number that is only shown."""
    try:
        return float(non_negative(value, place))
    except OverflowError:
        raise InputError(place, f"{shown(value)} is too large", "give a share") from None


# --- use -----------------------------------------------------------------------------------------


def timed(
    graph: TrainingGraph, costs: FittedCosts, kinds: Sequence[str], *, others: bool = False
) -> TrainingGraph:
    """Return a graph with fitted times.

    Parameters
    ----------
    kinds : sequence of str
        Kinds of devices that the result has times for.
    others : bool
        Whether operations that were not measured keep the times of the graph.

    Raises
    ------
    InputError
        If an operation was not measured on a kind, or none that was measured is in the graph.
    """
    known = {kind: k for k, kind in enumerate(graph.kinds)}
    kept = 0
    operations = []
    for operation in graph.operations:
        times = []
        for kind in kinds:
            found = costs.operations.get((operation.name, kind))
            if found is not None:
                times.append(found.line)
                continue
            if not others or kind not in known:
                raise InputError(
                    f"operation {shown(operation.name)}",
                    f"was not measured on {shown(kind)}",
                    "measure it" if others else "measure it, or let it keep its own times",
                )
            times.append(operation.times[known[kind]])
            kept += 1
        operations.append(replace(operation, times=tuple(times)))
    foreign = [op for op, _ in costs.operations if op not in graph.index]
    if foreign and len(foreign) == len(costs.operations):
        raise InputError(
            graph.name, f"has no operation {shown(foreign[0])}", "name operations as the graph does"
        )
    unused = dict.fromkeys(kind for _, kind in costs.operations if kind not in kinds)
    remarks = [f"Times were fitted to {costs.source or 'measurements'}.", *costs.remarks()]
    if kept:
        remarks.append(f"{kept} times were not measured and are those of the graph.")
    if foreign:
        listed = ", ".join(dict.fromkeys(foreign[:3]))
        remarks.append(f"Measured, but not in the graph: {len(set(foreign))} ({listed}).")
    if unused:
        remarks.append(f"Not used: times measured on {', '.join(unused)}.")
    return replace(
        graph, kinds=tuple(kinds), operations=tuple(operations), assumed=(*graph.assumed, *remarks)
    )


def linked(cluster: TrainingCluster, costs: FittedCosts) -> TrainingCluster:
    """Return a cluster with the latencies and bandwidths of the transfers that were measured."""
    known, changed = cluster.cluster, {}
    for pair, found in costs.transfers.items():
        for name in pair:
            if name not in known.index:
                raise InputError(
                    f"transfer {' '.join(pair)}",
                    f"no device {shown(name)}",
                    choice(name, known.names),
                )
        d, e = (known.index[name] for name in pair)
        if d == e:
            raise InputError(f"transfer {' '.join(pair)}", "to itself", "leave it out")
        changed[d, e] = found.line.alpha, 1 / found.line.beta if found.line.beta else None
    return cluster.with_links(changed)
