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
    server = "left"              # optional: the server that they are in, for training strategies
    [[link]]                     # overrides bandwidth, latency or both of one pair of devices
    from = "gpu0"
    to = "gpu1"
    bandwidth = "infinite"
    latency = "1/3"
    both = true                  # in both directions (default)

Rows of a matrix are senders, columns receivers; its diagonal is ignored; bandwidth 0 means no
link. Numbers are exact: an integer, a decimal, or a string such as ``"1/3"``. Where links overlap,
the last one counts. A link may also name all devices of a counted entry by its ``name``.

Devices and links may be those of the library (:mod:`optpart.interop.devices.library`), or of
calibration files (:mod:`optpart.interop.formats.calibration_toml`)::

    default_link = "ethernet-1g"

    [[device]]
    of = "rtx-3090"              # what else is given overrides the library
    name = "gpu"                 # default: the name in the library
    count = 2
    memory = "20 GiB"

    [[device]]
    of = "measured-cpu.toml"     # relative to the folder of this file

    [[device]]
    name = "prototype"
    peak = {float32 = "2 TFLOP/s"}
    memory_bandwidth = "100 GB/s"
    overhead = "5 us"

    [[device]]
    name = "disk"
    memory = "1 TB"
    computes_on = "gpu0"         # holds weights only, with which that device computes

    [[link]]
    from = "gpu"                 # gpu0 and gpu1, each with the other
    to = "gpu"
    of = "pcie-4-x16"

In such a file, units are fixed: times are nanoseconds, sizes bytes, bandwidths bytes per
nanosecond (GB/s), speeds and peaks operations per nanosecond (GFLOP/s); strings may bring units of
their own. Every pair of devices needs a link there.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeAlias

from optpart.base.choices import choice
from optpart.base.errors import FaultsOf, InputError
from optpart.base.files import Kind, of_document, read_text, write_text
from optpart.base.languages import to_toml
from optpart.base.limits import MOST_DEVICES
from optpart.interop.devices import library
from optpart.interop.devices.named import NamedCluster
from optpart.interop.devices.spec import PRECISIONS, DeviceSpec, FittedSpec, LinkSpec, Spec
from optpart.interop.formats import calibration_toml
from optpart.interop.formats.json import keys, sequence
from optpart.interop.formats.parsing import is_whole
from optpart.interop.formats.toml import exact, parse_toml
from optpart.problem.cluster import Cluster, Device
from optpart.problem.rational import non_negative, rational, shown
from optpart.problem.units import Dimension, has_unit, quantity

_TOP = {"device", "bandwidth", "latency", "link", "default_link"}
KIND = Kind(
    "a cluster file", of_document(lambda d: "device" in d and d.keys() <= _TOP, tomllib.load)
)
_SPEC = {"of", "peak", "memory_bandwidth", "overhead"}
_DEVICE = {"name", "type", "speed", "memory", "count", "server", "computes_on"} | _SPEC
_LINK = {"from", "to", "of", "bandwidth", "latency", "both"}

#: Names of data types, so that a slip of the pen is no data type that nothing computes in.
_PRECISION = re.compile(r"(float|bfloat|tf|u?int|complex|mxfp|nvfp|i?q)\d\w*|bool")

#: ``None`` is infinite.
_Rows: TypeAlias = list[list[Fraction | None]]

#: Reads one value; the text is its place.
_ReadEntry: TypeAlias = Callable[[Any, str], Fraction | None]


def read(path: str | Path) -> Cluster:
    """Read a cluster file; every fault is an :class:`InputError` that names file and place."""
    return read_named(path).cluster


def read_named(path: str | Path) -> NamedCluster:
    """Read a cluster file, with what is known of each device."""
    with FaultsOf(path):
        return loads_named(read_text(path), Path(path).parent)


def opened(cluster: Cluster | NamedCluster | str | Path) -> NamedCluster:
    """Return a cluster that is given as an object or as the path of its file."""
    if isinstance(cluster, str | Path):
        return read_named(cluster)
    return NamedCluster.unnamed(cluster) if isinstance(cluster, Cluster) else cluster


def write(cluster: Cluster, path: str | Path) -> None:
    """Write a cluster file, completely or not at all."""
    write_text(path, dumps(cluster), KIND)


def loads(text: str) -> Cluster:
    """Build a cluster from the text of a file."""
    return loads_named(text).cluster


def loads_named(text: str, folder: str | Path = ".") -> NamedCluster:
    """Build a cluster, with what is known of each device, from the text of a file.

    Parameters
    ----------
    folder : str or Path
        What the names of calibration files are relative to.
    """
    top = keys(parse_toml(text), _TOP, "")
    tables = [
        keys(entry, _DEVICE, f"device[{i}]")
        for i, entry in enumerate(sequence(top.get("device", []), "device"))
    ]
    overrides = [
        keys(entry, _LINK, f"link[{i}]")
        for i, entry in enumerate(sequence(top.get("link", []), "link"))
    ]
    fixed = (
        "default_link" in top
        or any(table.keys() & _SPEC for table in tables)
        or any("of" in table for table in overrides)
    )
    file = _File(Path(folder), fixed)
    devices, specs, groups = file.devices(tables)
    cluster = file.cluster(top, devices, groups, overrides)
    on = _computing(tables, cluster.names)
    return NamedCluster(cluster, tuple(specs), fixed, _servers(tables), on)


@dataclass(frozen=True)
class _File:
    """The way to read the values of one file: whether its units are fixed, and where it lies."""

    folder: Path
    fixed: bool

    def amount(self, value: Any, dimension: Dimension, place: str) -> Fraction:
        if not self.fixed and isinstance(value, str) and has_unit(value):
            raise InputError(
                place,
                f"{shown(value)} has a unit, but without named devices the units are the graph's",
                'give a number, or name the device, as in of = "rtx-4090"',
            )
        return quantity(value, dimension, place) if self.fixed else non_negative(value, place)

    def bandwidth(self, value: Any, place: str) -> Fraction | None:
        return None if value == "infinite" else self.amount(value, "bandwidth", place)

    def latency(self, value: Any, place: str) -> Fraction:
        return self.amount(value, "time", place)

    def devices(
        self, tables: list[Any]
    ) -> tuple[list[Device], list[Spec | None], dict[str, list[int]]]:
        """Return the devices, what is known of each, and the numbers of those that a name means."""
        devices: list[Device] = []
        specs: list[Spec | None] = []
        groups: dict[str, list[int]] = {}
        for i, table in enumerate(tables):
            place = f"device[{i}]"
            spec = self.spec(table, place)
            name, kind = table.get("name", spec.name if spec else None), table.get("type")
            if not isinstance(name, str) or not name:
                raise InputError(f"{place}.name", "missing name", "give every device a unique name")
            if kind is not None and not isinstance(kind, str):
                problem = f"must be a string, not {kind!r}"
                raise InputError(f"{place}.type", problem, 'give one such as "GPU"')
            speed = self.speed(table, spec, f"{place}.speed")
            memory = table.get("memory")
            if memory is not None:
                memory = self.amount(memory, "size", f"{place}.memory")
            if spec is not None:
                kind = spec.type if kind is None else kind
                memory = spec.memory if memory is None else memory
                spec = replace(spec, type=kind, memory=memory)
            names = _names(name, table.get("count"), f"{place}.count")
            groups.setdefault(name, []).extend(range(len(devices), len(devices) + len(names)))
            devices += [Device(unique, speed, kind, memory) for unique in names]
            specs += [spec] * len(names)
        if len(devices) > MOST_DEVICES:
            raise InputError("device", f"{len(devices)} devices", f"give at most {MOST_DEVICES}")
        # A device's own name means that device alone.
        groups |= {device.name: [d] for d, device in enumerate(devices)}
        return devices, specs, groups

    def speed(self, table: Any, spec: Spec | None, place: str) -> Fraction:
        if "speed" not in table and spec is not None:
            return spec.speed
        value = table.get("speed", 1)
        speed = quantity(value, "speed", place) if self.fixed else rational(value, place)
        if speed <= 0:
            raise InputError(place, f"{speed} is not positive", "give a speed > 0")
        return speed

    def spec(self, table: Any, place: str) -> Spec | None:
        """Return what is known of the devices of one entry."""
        of = table.get("of")
        if of is None:
            if not table.keys() & _SPEC:
                return None
            for key in ("peak", "memory_bandwidth"):
                if key not in table:
                    raise InputError(
                        f"{place}.{key}",
                        "missing, although other figures of a device are given",
                        'give peak and memory_bandwidth, or of = "NAME"',
                    )
            known: Spec = DeviceSpec(
                str(table.get("name")), None, {}, Fraction(0), None, Fraction(0)
            )
        elif isinstance(of, str) and of.endswith(".toml"):
            known = calibration_toml.read(self.folder / of)
        else:
            known = library.device(of, f"{place}.of")
        return self.overridden(known, table, place)

    def overridden(self, known: Spec, table: Any, place: str) -> Spec:
        """Return a spec with the figures that an entry gives in place of its own."""
        given = table.keys() & (_SPEC - {"of"})
        if isinstance(known, FittedSpec):
            if given:
                raise InputError(
                    f"{place}.{min(given)}", "not of a calibrated device", "leave it out"
                )
            return known
        peak = dict(known.peak)
        for precision, rate in _entries(table.get("peak", {}), f"{place}.peak"):
            if not _PRECISION.fullmatch(precision):
                raise InputError(
                    f"{place}.peak",
                    f"{precision!r} is no data type",
                    f"give {', '.join(PRECISIONS)}, or another that a model computes in",
                )
            peak[precision] = self.amount(rate, "speed", f"{place}.peak.{precision}")
        bandwidth, overhead = known.bandwidth, known.overhead
        if "memory_bandwidth" in table:
            where = f"{place}.memory_bandwidth"
            bandwidth = self.amount(table["memory_bandwidth"], "bandwidth", where)
        if "overhead" in table:
            overhead = self.amount(table["overhead"], "time", f"{place}.overhead")
        if not bandwidth:
            raise InputError(f"{place}.memory_bandwidth", "0", "give a bandwidth > 0")
        if not peak or not all(peak.values()):
            raise InputError(f"{place}.peak", "0 or empty", 'give {float32 = "10 TFLOP/s"}')
        return replace(known, peak=peak, bandwidth=bandwidth, overhead=overhead)

    def cluster(
        self, top: Any, devices: list[Device], groups: dict[str, list[int]], overrides: list[Any]
    ) -> Cluster:
        """Build the cluster: the values for all pairs first, then those of single links."""
        k = len(devices)
        common = _link(top.get("default_link"), "default_link")
        rate, delay = ("infinite", 0) if common is None else (common.bandwidth, common.latency)
        bandwidth = _rows(top.get("bandwidth", rate), k, "bandwidth", self.bandwidth)
        latency = _rows(top.get("latency", delay), k, "latency", self.latency)
        linked = {(d, d) for d in range(k)}
        if not self.fixed or common is not None or "bandwidth" in top:
            linked = {(d, e) for d in range(k) for e in range(k)}
        for i, link in enumerate(overrides):
            place = f"link[{i}]"
            spec = _link(link.get("of"), f"{place}.of")
            values = {} if spec is None else {"bandwidth": spec.bandwidth, "latency": spec.latency}
            values |= {key: link[key] for key in ("bandwidth", "latency") if key in link}
            for d, e in _pairs(link, place, groups):
                if "bandwidth" in values:
                    bandwidth[d][e] = self.bandwidth(values["bandwidth"], f"{place}.bandwidth")
                    linked.add((d, e))
                if "latency" in values:
                    latency[d][e] = self.latency(values["latency"], f"{place}.latency")
        missing = next(((d, e) for d in range(k) for e in range(k) if (d, e) not in linked), None)
        if missing is not None:
            d, e = missing
            raise InputError(
                "link",
                f"none from {devices[d].name!r} to {devices[e].name!r}",
                'give default_link, or a [[link]] with of = "NAME" or bandwidth (0: no link)',
            )
        return Cluster.of(devices, bandwidth, latency)


def _servers(tables: list[Any]) -> tuple[str | None, ...]:
    """Return the server of each device, or nothing if no entry names one."""
    found: list[str | None] = []
    for i, table in enumerate(tables):
        server = table.get("server")
        if server is not None and (not isinstance(server, str) or not server):
            raise InputError(f"device[{i}].server", f"cannot be {server!r}", 'give one such as "a"')
        found += [server] * table.get("count", 1)
    return tuple(found) if any(server is not None for server in found) else ()


def _computing(tables: list[Any], names: Sequence[str]) -> tuple[int | None, ...]:
    """Return the device that computes for each, or nothing if all do so themselves."""
    found: list[int | None] = []
    for i, table in enumerate(tables):
        on, place = table.get("computes_on"), f"device[{i}].computes_on"
        if on is not None and on not in names:
            raise InputError(place, f"{shown(on)} is no device", choice(str(on), names))
        found += [None if on is None else names.index(on)] * table.get("count", 1)
    for d, e in enumerate(found):
        if e is not None and (found[e] is not None or d == e):
            place = f"device {names[d]!r}"
            raise InputError(place, f"{names[e]!r} does not compute itself", "name one that does")
    return tuple(found) if any(on is not None for on in found) else ()


def _entries(value: Any, place: str) -> Iterable[tuple[str, Any]]:
    """Return the entries of a table of any keys."""
    if not isinstance(value, dict):
        raise InputError(place, f"{value!r} is no table", 'give {float32 = "10 TFLOP/s"}')
    return value.items()


def _link(name: Any, place: str) -> LinkSpec | None:
    return None if name is None else library.link(name, place)


def _names(name: str, count: Any, place: str) -> list[str]:
    if count is None:
        return [name]
    if not is_whole(count, 1, MOST_DEVICES):
        raise InputError(
            place, f"cannot be {count!r}", f"give a whole number from 1 to {MOST_DEVICES}"
        )
    return [f"{name}{i}" for i in range(count)]


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


def _pairs(link: Any, place: str, groups: dict[str, list[int]]) -> list[tuple[int, int]]:
    """Return the pairs of sender and receiver that a link is between."""
    ends = []
    for key in ("from", "to"):
        name = link.get(key)
        if not isinstance(name, str) or name not in groups:
            raise InputError(f"{place}.{key}", f"no device {name!r}", "name a device of the file")
        ends.append(groups[name])
    both = link.get("both", True)
    if not isinstance(both, bool):
        raise InputError(f"{place}.both", f"cannot be {both!r}", "give true or false")
    pairs = [(d, e) for d in ends[0] for e in ends[1] if d != e]
    if not pairs:
        raise InputError(place, "links a device to itself", "name two devices")
    return [*pairs, *((e, d) for d, e in pairs)] if both else pairs


def dumps(cluster: Cluster) -> str:
    """Return the text of a cluster file, as :func:`loads` reads it."""
    k = len(cluster)
    rates = [
        [
            '"infinite"' if cluster.infinite[d, e] else exact(cluster.bandwidth[d, e])
            for e in range(k)
        ]
        for d in range(k)
    ]
    delays = [[exact(cluster.latency[d, e]) for e in range(k)] for d in range(k)]
    # The diagonal does not count, but a bandwidth keeps it: what is read must be what was written.
    distinct_rates = {rate for row in rates for rate in row}
    distinct_delays = {delays[d][e] for d in range(k) for e in range(k) if d != e}
    lines = [
        f"bandwidth = {_matrix(rates, distinct_rates)}",
        f"latency = {_matrix(delays, distinct_delays)}",
    ]
    for d, name in enumerate(cluster.names):
        kind, memory = cluster.types[d], cluster.memory[d]
        lines += ["", "[[device]]", f"name = {to_toml(name)}"]
        if kind is not None:
            lines.append(f"type = {to_toml(kind)}")
        lines.append(f"speed = {exact(cluster.speed[d])}")
        if memory is not None:
            lines.append(f"memory = {exact(memory)}")
    return "\n".join(lines) + "\n"


def _matrix(rows: list[list[str]], distinct: set[str]) -> str:
    """Write one value if all entries off the diagonal are equal, else the rows."""
    if len(distinct) <= 1:
        return distinct.pop() if distinct else "0"
    return "[\n" + "".join(f"  [{', '.join(row)}],\n" for row in rows) + "]"
