"""A cluster in TOML.

::

    bandwidth = 25               # size per time unit; "infinite" (default), or k rows of k
    latency = 0                  # per transfer (default 0), or k rows of k

    [[device]]
    name = "cpu"
    type = "CPU"                 # optional
    speed = 10                   # operations per time unit; default 1
    memory = 64.5                # optional; unlimited without it

    [[device]]
    name = "gpu"
    type = "GPU"
    speed = 30
    count = 2                    # two such devices: gpu0 and gpu1

    [[link]]                     # overrides bandwidth, latency or both of one pair of devices
    from = "gpu0"
    to = "gpu1"
    bandwidth = "infinite"
    latency = "1/3"
    both = true                  # in both directions (default)

Rows of a matrix are senders, columns receivers; its diagonal is ignored; bandwidth 0 means no
link. Numbers are exact: an integer, a decimal, or a string such as ``"1/3"``. Where links overlap,
the last one counts.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeAlias

from optpart.errors import FaultsOf, InputError
from optpart.files import read_text, write_text
from optpart.formats.json import keys, sequence
from optpart.limits import MOST_DEVICES
from optpart.problem.cluster import Cluster, Device
from optpart.problem.document import number
from optpart.problem.rational import decimal, non_negative, rational

_TOP = {"device", "bandwidth", "latency", "link"}
_DEVICE = {"name", "type", "speed", "memory", "count"}
_LINK = {"from", "to", "bandwidth", "latency", "both"}

#: ``None`` is infinite.
_Rows: TypeAlias = list[list[Fraction | None]]

#: Reads one value; the text is its place.
_ReadEntry: TypeAlias = Callable[[Any, str], Fraction | None]


def read(path: str | Path) -> Cluster:
    """Read a cluster file; every fault is an :class:`InputError` that names file and place."""
    with FaultsOf(path):
        return loads(read_text(path))


def write(cluster: Cluster, path: str | Path) -> None:
    """Write a cluster file, completely or not at all."""
    write_text(path, dumps(cluster))


def loads(text: str) -> Cluster:
    """Build a cluster from the text of a file."""
    top = keys(_parse(text), _TOP, "")
    devices = _devices(sequence(top.get("device", []), "device"))
    bandwidth = _rows(top.get("bandwidth", "infinite"), len(devices), "bandwidth", _bandwidth)
    latency = _rows(top.get("latency", 0), len(devices), "latency", non_negative)
    index = {device.name: d for d, device in enumerate(devices)}
    for i, entry in enumerate(sequence(top.get("link", []), "link")):
        _override(entry, f"link[{i}]", index, bandwidth, latency)
    return Cluster.of(devices, bandwidth, latency)


def _parse(text: str) -> Any:
    try:
        return tomllib.loads(text, parse_float=decimal)
    except tomllib.TOMLDecodeError as error:
        raise InputError("", f"is not TOML ({error})", "give a TOML document") from None
    except RecursionError:
        raise InputError("", "is nested too deeply", "give a TOML document") from None
    except ValueError as error:  # a number with too many digits
        raise InputError("", f"cannot be read ({error})", "give shorter numbers") from None


def _devices(entries: list[Any]) -> list[Device]:
    devices: list[Device] = []
    for i, entry in enumerate(entries):
        place = f"device[{i}]"
        table = keys(entry, _DEVICE, place)
        name, kind = table.get("name"), table.get("type")
        if not isinstance(name, str) or not name:
            raise InputError(f"{place}.name", "missing name", "give every device a unique name")
        if kind is not None and not isinstance(kind, str):
            raise InputError(
                f"{place}.type", f"must be a string, not {kind!r}", 'give one such as "GPU"'
            )
        speed = rational(table.get("speed", 1), f"{place}.speed")
        if speed <= 0:
            raise InputError(f"{place}.speed", f"{speed} is not positive", "give a speed > 0")
        memory = table.get("memory")
        if memory is not None:
            memory = non_negative(memory, f"{place}.memory")
        names = _names(name, table.get("count"), f"{place}.count")
        devices += [Device(unique, speed, kind, memory) for unique in names]
    if len(devices) > MOST_DEVICES:
        raise InputError("device", f"{len(devices)} devices", f"give at most {MOST_DEVICES}")
    return devices


def _names(name: str, count: Any, place: str) -> list[str]:
    if count is None:
        return [name]
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MOST_DEVICES:
        raise InputError(
            place, f"cannot be {count!r}", f"give a whole number from 1 to {MOST_DEVICES}"
        )
    return [f"{name}{i}" for i in range(count)]


def _bandwidth(value: Any, place: str) -> Fraction | None:
    return None if value == "infinite" else non_negative(value, place)


def _rows(value: Any, k: int, place: str, read_entry: _ReadEntry) -> _Rows:
    """Read one value for all pairs, or ``k`` rows of ``k`` values."""
    if not isinstance(value, list):
        return [[read_entry(value, place)] * k for _ in range(k)]
    rows = [sequence(row, f"{place}[{i}]") for i, row in enumerate(value)]
    if len(rows) != k or any(len(row) != k for row in rows):
        raise InputError(
            place, "has the wrong size", f"give {k} rows of {k} entries, one per device"
        )
    return [
        [read_entry(entry, f"{place}[{i}][{j}]") for j, entry in enumerate(row)]
        for i, row in enumerate(rows)
    ]


def _override(
    entry: Any, place: str, index: dict[str, int], bandwidth: _Rows, latency: _Rows
) -> None:
    link = keys(entry, _LINK, place)
    ends = []
    for key in ("from", "to"):
        name = link.get(key)
        if not isinstance(name, str) or name not in index:
            raise InputError(f"{place}.{key}", f"no device {name!r}", "name a device from the file")
        ends.append(index[name])
    d, e = ends
    if d == e:
        raise InputError(place, "links a device to itself", "name two devices")
    both = link.get("both", True)
    if not isinstance(both, bool):
        raise InputError(f"{place}.both", f"cannot be {both!r}", "give true or false")
    for sender, receiver in [(d, e), (e, d)] if both else [(d, e)]:
        if "bandwidth" in link:
            bandwidth[sender][receiver] = _bandwidth(link["bandwidth"], f"{place}.bandwidth")
        if "latency" in link:
            latency[sender][receiver] = non_negative(link["latency"], f"{place}.latency")


def dumps(cluster: Cluster) -> str:
    """Return the text of a cluster file, as :func:`loads` reads it."""
    k = len(cluster)
    rates = [
        [
            '"infinite"' if cluster.infinite[d, e] else _number(cluster.bandwidth[d, e])
            for e in range(k)
        ]
        for d in range(k)
    ]
    delays = [[_number(cluster.latency[d, e]) for e in range(k)] for d in range(k)]
    # The diagonal is ignored, but kept, so that reading returns what was written.
    distinct_rates = {rate for row in rates for rate in row}
    distinct_delays = {delays[d][e] for d in range(k) for e in range(k) if d != e}
    lines = [
        f"bandwidth = {_matrix(rates, distinct_rates)}",
        f"latency = {_matrix(delays, distinct_delays)}",
    ]
    for d, name in enumerate(cluster.names):
        kind, memory = cluster.types[d], cluster.memory[d]
        lines += ["", "[[device]]", f"name = {_quoted(name)}"]
        if kind is not None:
            lines.append(f"type = {_quoted(kind)}")
        lines.append(f"speed = {_number(cluster.speed[d])}")
        if memory is not None:
            lines.append(f"memory = {_number(memory)}")
    return "\n".join(lines) + "\n"


def _matrix(rows: list[list[str]], distinct: set[str]) -> str:
    """Write one value if all entries off the diagonal are equal, else the rows."""
    if len(distinct) <= 1:
        return distinct.pop() if distinct else "0"
    return "[\n" + "".join(f"  [{', '.join(row)}],\n" for row in rows) + "]"


def _number(value: Fraction) -> str:
    return json.dumps(number(value))


def _quoted(text: str) -> str:
    # JSON strings are TOML strings, except for one character that only TOML escapes.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
