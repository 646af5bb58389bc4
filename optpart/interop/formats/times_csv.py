"""Measured times of several devices in one table.

A column per device, its unit in the header, seconds if there is none; an operation measured several
times has several rows, and an empty field means that it was not measured on the device::

    name,gpu (us),cpu (ms)
    conv1,23.5,1.25
    conv1,22,1.5
    relu1,5,
"""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

from optpart.base.errors import FaultsOf, InputError
from optpart.interop.formats.profile import Profile
from optpart.interop.formats.tables import read_table
from optpart.problem.rational import non_negative, shown

_NANOSECONDS = {"ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": 10**9}
_COLUMN = re.compile(r"(?P<device>.*?)\s*(?:\((?P<unit>[^()]*)\))?", re.DOTALL)


def read(path: str | Path, device: str) -> Profile:
    """Read the times of one device; every fault is an :class:`InputError` with file and line.

    Parameters
    ----------
    device : str
        The column to read, without its unit.
    """
    with FaultsOf(path):
        header, rows = read_table(path)
        if not header or header[0] != "name":
            raise InputError("line 1", "the first column is not 'name'", "write name,DEVICE (ms)")
        units = _units(header[1:])
        if device not in units:
            raise InputError(
                "line 1",
                f"no column {shown(device)}",
                f"name one of {', '.join(units) or 'the devices, which are missing'}",
            )
        column = 1 + list(units).index(device)
        times: dict[str, list[Fraction]] = {}
        for place, row in rows:
            name, field = row[0], row[column].strip()
            if not name:
                raise InputError(f"{place}, name", "is empty", "name the operation")
            # Columns of other devices must be in order as well.
            for other, text in zip(units, row[1:], strict=True):
                if text.strip():
                    non_negative(text, f"{place}, {other}")
            if field:
                time = non_negative(field, f"{place}, {device}") * units[device]
                times.setdefault(name, []).append(time)
        return Profile({name: tuple(found) for name, found in times.items()})


def _units(columns: list[str]) -> dict[str, int]:
    """Return nanoseconds per unit by device."""
    found: dict[str, int] = {}
    for column in columns:
        match = _COLUMN.fullmatch(column)
        assert match is not None
        device, unit = match["device"], match["unit"]
        if unit is not None and unit.strip() not in _NANOSECONDS:
            raise InputError(
                "line 1", f"unknown unit {shown(unit)}", f"write one of {', '.join(_NANOSECONDS)}"
            )
        if not device or device in found:
            problem = f"two columns {shown(device)}" if device else "a column without a device"
            raise InputError("line 1", problem, "give every device one column")
        found[device] = _NANOSECONDS[(unit or "s").strip()]
    return found
