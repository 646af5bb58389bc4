"""Run times that were measured on the devices.

Every file is bound to a device, to a name of the library or to a type of device; the file of a type
serves all devices of that type. These are read, and told apart by their content:

- tables with a column per device (:mod:`optpart.interop.formats.times_csv`),
- profiles of ONNX Runtime (:mod:`optpart.interop.formats.ort_profile`),
- profiles of PyTorch (:mod:`optpart.interop.formats.torch_profile`),
- exported reports of NVIDIA Nsight Systems (:mod:`optpart.interop.formats.nsys`).

Of several measurements the median counts, rounded to the nearest nanosecond: what was measured is
no more precise than that. Transfers are estimated as :mod:`optpart.interop.costs.roofline` does it.
Only equal names match; operations to which a profile gave names of its own match by kind and order,
provided that profile and graph have equally many.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from statistics import median
from typing import Literal

from optpart.base.errors import FaultsOf, InputError
from optpart.base.files import opened
from optpart.interop.costs.costed import Costed, counted, in_nanoseconds
from optpart.interop.costs.efficiency import Efficiencies
from optpart.interop.costs.roofline import estimates, known_spec
from optpart.interop.devices.named import NamedCluster
from optpart.interop.formats import nsys, ort_memory, ort_profile, sqlite, times_csv, torch_profile
from optpart.interop.formats.json import parse_json
from optpart.interop.formats.parsing import named
from optpart.interop.formats.profile import Profile, read_trace
from optpart.problem.graph import Graph
from optpart.problem.instance import Instance
from optpart.problem.model import Memory
from optpart.problem.rational import RationalArray
from optpart.problem.workload import Work, Workload

Fill = Literal["roofline"]

_FILES = "a CSV, a profile of ONNX Runtime or PyTorch, or a report of nsys as SQLite"

_NO_FIGURES = 'measure every vertex on it, or name one of the library with of = "NAME"'


@dataclass(frozen=True)
class Matched:
    """The times of a profile by vertex.

    Attributes
    ----------
    times : tuple of (Fraction or None), length n
        Medians in nanoseconds; ``None`` where nothing was measured.
    unmatched : tuple of str
        Names of the profile that are no vertex.
    remarks : tuple of str
        One sentence each, to stand after a name and a colon.
    """

    times: tuple[Fraction | None, ...]
    unmatched: tuple[str, ...]
    remarks: tuple[str, ...]

    def missing(self, graph: Graph) -> list[str]:
        """Return the vertices that were not measured."""
        return [name for name, time in zip(graph.names, self.times, strict=True) if time is None]


def measured(
    workload: Workload,
    named_cluster: NamedCluster,
    files: Mapping[str, str | Path],
    *,
    fill: Fill | None = None,
    exact: bool = False,
    efficiencies: Efficiencies | None = None,
    node_memory: str | Path | None = None,
    memory: Memory | None = None,
) -> Costed:
    """Make an instance of measured times, in nanoseconds.

    Parameters
    ----------
    files : mapping from str to path
        By what they were measured on. A device takes the file under its own name, else under the
        name of its entry in the cluster file (``gpu`` for ``gpu0``, ``gpu1``), else under its name
        in the library, else under its type.
    fill : {"roofline"}, optional
        Estimate what was not measured, instead of refusing it.
    exact : bool
        Keep fractions of nanoseconds.
    efficiencies : Efficiencies, optional
        Of what is estimated.
    node_memory : path, optional
        Memory statistics of ONNX Runtime: what an operation allocates for itself is added to its
        resident memory.
    memory : {"none", "estimate", "edges", "refcount"}, optional
        Without it, limits of memory count if there are any.

    Raises
    ------
    InputError
        If a file cannot be read or is for no device, or a time was not measured and is not filled.
    """
    if fill not in (None, "roofline"):
        raise InputError("fill", f"unknown {fill!r}", "give 'roofline', or leave it out")
    keys = _bindings(named_cluster, files)
    matched = {key: read(workload, path, key) for key, path in files.items()}
    remarks = []
    for key, found in matched.items():
        remarks += [f"{key}: {remark}" for remark in found.remarks]
    graph, of_memory = workload.graph, tuple[str, ...]()
    if node_memory is not None:
        graph, of_memory = _with_temporary(workload, node_memory)
    columns, filled = _columns(workload, named_cluster, keys, matched, fill, efficiencies)
    if not exact:
        columns, rounding = _rounded(columns)
        remarks += rounding
    if not named_cluster.fixed_units:
        remarks.append("The cluster's latencies and bandwidths are taken as nanoseconds and bytes.")
    listed = ", ".join(f"{key} {Path(path).name}" for key, path in files.items())
    return in_nanoseconds(
        workload,
        graph,
        named_cluster,
        f"measured, in nanoseconds, {listed}" + (", the rest by roofline" if filled else ""),
        (*remarks, *filled, *of_memory),
        list(zip(*columns, strict=True)),
        memory,
    )


def read(workload: Workload, path: str | Path, device: str) -> Matched:
    """Read the times of a device and match them with the vertices.

    Parameters
    ----------
    device : str
        What the file is bound to; in a table, the column.
    """
    profile = _profile(workload, path, device)
    graph = workload.graph
    known = set(graph.names)
    name_of = {name: name for name in profile.times if name in known}
    by_order = _by_order(workload, profile, name_of)
    name_of |= by_order
    times = tuple(
        median(profile.times[name_of[name]]) if name in name_of else None for name in graph.names
    )
    used = set(name_of.values())
    unmatched = tuple(
        sorted({name for name in (*profile.times, *profile.unmatched) if name not in used})
    )
    if graph.names and not used:
        raise InputError(
            "",
            "no name in it is a vertex",
            f"measure operations such as {graph.names[0]}",
            str(path),
        )
    return Matched(times, unmatched, _remarks(graph, profile, name_of, by_order, unmatched))


def _profile(workload: Workload, path: str | Path, device: str) -> Profile:
    with FaultsOf(path):
        with opened(path) as stream:
            head = stream.read(16)
        names = workload.graph.names
        if sqlite.sniff(head):
            return nsys.read(path, names)
        if head[:2] == b"\x1f\x8b":
            raise InputError("", "is compressed", "unpack it with gunzip")
        if head.startswith(ort_memory.COLUMNS[0].encode()):
            raise InputError("", "holds memory, not times", "give it as node_memory")
        if Path(path).suffix.lower() == ".csv":
            return times_csv.read(path, device)
        document = parse_json(read_trace(path))
        if ort_profile.sniff(document):
            return ort_profile.from_document(document)
        if torch_profile.sniff(document):
            kinds = () if workload.work is None else workload.work.kinds
            return torch_profile.from_document(document, names, kinds)
        raise InputError("", "is no profile that is known", f"give {_FILES}")


def _by_order(workload: Workload, profile: Profile, name_of: Mapping[str, str]) -> dict[str, str]:
    """Match operations without names: those of a kind in order, if there are equally many."""
    if workload.work is None:
        return {}
    taken = set(name_of.values())
    left: dict[str, list[str]] = {}
    for name, kind in zip(workload.graph.names, workload.work.kinds, strict=True):
        if name not in name_of:
            left.setdefault(kind, []).append(name)
    found: dict[str, str] = {}
    for kind, made_up in profile.unnamed.items():
        free = [name for name in made_up if name not in taken]
        if len(free) == len(left.get(kind, ())):
            found |= dict(zip(left.get(kind, ()), free, strict=True))
    return found


def _remarks(
    graph: Graph,
    profile: Profile,
    name_of: Mapping[str, str],
    by_order: Mapping[str, str],
    unmatched: Sequence[str],
) -> tuple[str, ...]:
    runs = sorted({len(profile.times[name]) for name in name_of.values()})
    several = f"{runs[0]} to {runs[-1]}" if len(runs) > 1 else str(runs[0] if runs else 0)
    remarks = [
        *profile.remarks,
        f"{len(name_of):,} of {counted(len(graph), 'operation')} measured"
        + (f"; the median of {several} measurements counts." if runs != [1] else ", once each."),
    ]
    if by_order:
        remarks.append(
            f"{counted(len(by_order), 'operation')} without a name matched by kind and order: "
            f"{named(sorted(by_order))}."
        )
    if unmatched:
        remarks.append(
            f"{counted(len(unmatched), 'name')} of no vertex, not counted: {named(unmatched)}."
        )
    return tuple(remarks)


def _bindings(named_cluster: NamedCluster, files: Mapping[str, str | Path]) -> list[str | None]:
    """Return the key of each device's file, and refuse files that no device uses."""
    cluster = named_cluster.cluster
    keys: list[str | None] = []
    for name, spec, kind in zip(cluster.names, named_cluster.specs, cluster.types, strict=True):
        entry = name.rstrip("0123456789")
        candidates = (
            name,
            None if entry in cluster.index else entry,
            None if spec is None else spec.name,
            kind,
        )
        keys.append(next((key for key in candidates if key is not None and key in files), None))
    for key in files:
        if key not in keys:
            raise InputError(
                f"measured {key!r}",
                "no device takes its times from this file",
                f"name a device or type of {named(_names(named_cluster))}",
            )
    return keys


def _names(named_cluster: NamedCluster) -> list[str]:
    types = {kind for kind in named_cluster.cluster.types if kind is not None}
    return [*named_cluster.cluster.names, *sorted(types)]


def _columns(
    workload: Workload,
    named_cluster: NamedCluster,
    keys: Sequence[str | None],
    matched: Mapping[str, Matched],
    fill: Fill | None,
    efficiencies: Efficiencies | None,
) -> tuple[list[list[Fraction | None]], tuple[str, ...]]:
    """Return the times of each device, and what was assumed for those that were not measured.

    ``None`` stands where a vertex must not run and was not measured.
    """
    names = named_cluster.cluster.names
    n = len(workload.graph)
    columns: list[list[Fraction | None]] = [
        list(matched[key].times) if key is not None else [None] * n for key in keys
    ]
    allowed = Instance(workload.graph, named_cluster.cluster).vertex_allowed
    groups: dict[tuple[int, ...], list[int]] = {}
    for d, column in enumerate(columns):
        missing = tuple(v for v, time in enumerate(column) if time is None and allowed[v, d])
        if missing:
            groups.setdefault(missing, []).append(d)
    remarks: list[str] = []
    for missing, devices in groups.items():
        if fill is None:
            raise _unmeasured(workload.graph, missing, names[devices[0]], matched, keys[devices[0]])
        if workload.work is None:
            raise InputError(
                workload.name,
                "says neither operations nor bytes of its vertices",
                "measure all of them, since nothing can be estimated",
            )
        work = _part(workload.work, missing)
        alike = [names[d] for d in devices]
        times, assumed = estimates(
            work, alike, [known_spec(named_cluster, d, _NO_FIGURES) for d in devices], efficiencies
        )
        for d, estimated in zip(devices, times, strict=True):
            for v, time in zip(missing, estimated, strict=True):
                columns[d][v] = time
        listed = named([workload.graph.names[v] for v in missing])
        remarks.append(
            f"{named(alike, 3)}: {counted(len(missing), 'operation')} not measured, so estimated: "
            f"{listed}."
        )
        remarks += assumed
    return columns, tuple(dict.fromkeys(remarks))


def _unmeasured(
    graph: Graph,
    missing: Sequence[int],
    device: str,
    matched: Mapping[str, Matched],
    key: str | None,
) -> InputError:
    choices = 'measure them, or estimate them with fill="roofline"'
    if key is None:
        return InputError(f"device {device!r}", "has no file of times", choices)
    listed = named([graph.names[v] for v in missing], 3)
    unmatched = matched[key].unmatched
    also = f" (the file has {named(unmatched, 3)} instead)" if unmatched else ""
    return InputError(f"device {device!r}", f"not measured: {listed}{also}", choices)


def _part(work: Work, vertices: Sequence[int]) -> Work:
    index = list(vertices)
    return Work(
        tuple(work.kinds[v] for v in index),
        tuple(work.precisions[v] for v in index),
        work.flops[index],
        work.read[index],
        work.written[index],
    )


def _rounded(
    columns: list[list[Fraction | None]],
) -> tuple[list[list[Fraction | None]], list[str]]:
    whole = [
        [None if time is None else Fraction(round(time)) for time in column] for column in columns
    ]
    if whole == columns:
        return columns, []
    return whole, ["Run times were rounded to the nearest nanosecond."]


def _with_temporary(workload: Workload, path: str | Path) -> tuple[Graph, tuple[str, ...]]:
    """Add what operations allocate for themselves to their resident memory."""
    graph = workload.graph
    rows = ort_memory.read(path)
    count = Counter(row.name for row in rows)
    vertex = {name: v for v, name in enumerate(graph.names)}
    kinds = workload.work.kinds if workload.work is not None else ()
    of_kind: dict[str, list[int]] = {}
    for at, kind in enumerate(kinds):
        if graph.names[at] not in count:
            of_kind.setdefault(kind, []).append(at)
    extra = [Fraction(0)] * len(graph)
    unmatched, known = [], set()
    for row in rows:
        v: int | None = vertex.get(row.name)
        if v is None and len(of_kind.get(row.name, ())) == 1:
            v = of_kind[row.name][0]  # the only operation of its kind without a name
        if v is None or count[row.name] > 1:
            unmatched.append(row.name)
            continue
        extra[v] += row.temporary
        known.add(v)
    if graph.names and not known:
        raise InputError(
            "", "no name in it is a vertex", "give the statistics of this model", str(path)
        )
    total = [size + more for size, more in zip(graph.memory.fractions(), extra, strict=True)]
    remarks = [
        f"Memory: temporary allocations of {counted(len(known), 'operation')} count for the whole "
        "run, on top of weights; ONNX Runtime adds them up, so they are an upper limit."
    ]
    if len(known) < len(graph):
        missing = [name for at, name in enumerate(graph.names) if at not in known]
        remarks.append(
            f"Memory: {counted(len(missing), 'operation')} not in {Path(path).name}, taken to "
            f"allocate nothing: {named(missing)}."
        )
    if unmatched:
        remarks.append(
            f"Memory: {counted(len(unmatched), 'name')} of no vertex, not counted: "
            f"{named(sorted(unmatched))}."
        )
    return replace(graph, memory=RationalArray.from_fractions(total)), tuple(remarks)
