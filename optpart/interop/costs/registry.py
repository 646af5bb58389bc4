"""The table of sources of costs: what makes an instance of a workload and a cluster.

A new source is a module of its own in this folder and a row here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Literal, TypeAlias

from optpart.base.arguments import checked
from optpart.base.errors import ArgumentError, InputError
from optpart.base.registry import Registry
from optpart.interop.costs import efficiency
from optpart.interop.costs.costed import Costed, costed, reserved
from optpart.interop.costs.drawn import drawn, unit
from optpart.interop.costs.from_csv import from_csv
from optpart.interop.costs.from_file import from_file
from optpart.interop.costs.measured import measured
from optpart.interop.costs.roofline import roofline
from optpart.interop.devices.named import NamedCluster
from optpart.problem.graph import Graph
from optpart.problem.model import Communication, Memory
from optpart.problem.workload import Workload


@checked
@dataclass(frozen=True)
class Options:
    """The options of sources of costs; ``None`` is not given.

    Attributes
    ----------
    file : str or Path, optional
        A table.
    seed : int, optional
        Of what is drawn; 0 if not given.
    efficiencies : str or Path, optional
        A file of efficiencies by class (:mod:`optpart.interop.costs.efficiency`).
    memory : {"none", "estimate", "edges", "refcount"}, optional
        How memory counts; without it, limits of the devices count if there are any.
    communication : {"delay", "sendrecv", "link", "port"}, optional
        How transfers count; ``delay`` if not given.
    measured : mapping from str to (str or Path), optional
        Files of measured times (:mod:`optpart.interop.costs.measured`) by device, name of the
        library or type.
    fill : {"roofline"}, optional
        Where times come from that were not measured.
    exact : bool, optional
        Keep fractions of nanoseconds of measured times.
    node_memory : str or Path, optional
        Memory statistics of ONNX Runtime (:mod:`optpart.interop.formats.ort_memory`).
    """

    file: str | Path | None = None
    seed: int | None = None
    efficiencies: str | Path | None = None
    memory: Memory | None = None
    communication: Communication | None = None
    measured: Mapping[str, str | Path] | None = None
    fill: Literal["roofline"] | None = None
    exact: bool | None = None
    node_memory: str | Path | None = None


#: Options of every source.
_ALL_TAKE = ("memory", "communication")

Apply: TypeAlias = Callable[[Workload, NamedCluster, Options], Costed]


@dataclass(frozen=True)
class Source:
    """A source of costs.

    Attributes
    ----------
    name, summary : str
    needs : str
        What it needs of workload and cluster.
    takes : frozenset of str
        The options that mean something to it.
    apply : callable
        Makes the instance, and says what it drew, assumed or rounded; call it through
        :func:`apply`, which checks the options.
    in_bytes : bool
        Whether memory is that of the workload, in bytes.
    """

    name: str
    summary: str
    needs: str
    takes: frozenset[str]
    apply: Apply
    in_bytes: bool = False


def apply(name: str, workload: Workload, cluster: NamedCluster, options: Options) -> Costed:
    """Make an instance with the costs of a source.

    Returns
    -------
    Costed
        The remarks are what the workload's reader and the source of costs assumed. The instance's
        ``source`` holds them, too.

    Raises
    ------
    InputError
        If there is no such source, an option means nothing to it, or it lacks something.
    """
    source = check_options(name, options)
    before = workload.assumed
    if source.in_bytes and options.memory != "none":
        cluster, kept = reserved(workload, cluster)
        before = (*before, *kept)
    if cluster.computes_on and name != "roofline":
        problem = f"means nothing to the costs {name!r}"
        raise InputError("computes_on", problem, "use --costs roofline, or leave it out")
    made = source.apply(workload, cluster, options)
    return told(with_communication(made, options.communication), before)


def check_options(name: str, options: Options) -> Source:
    """Return the source of a name, if all options mean something to it; see :func:`apply`."""
    source = SOURCES.find(name)
    for field in fields(options):
        given = getattr(options, field.name) is not None
        if given and field.name not in (*source.takes, *_ALL_TAKE):
            raise ArgumentError(field.name, f"means nothing to the costs {name!r}", "leave it out")
    return source


def with_communication(made: Costed, communication: Communication | None) -> Costed:
    """Let transfers count as asked for, if anything is."""
    if communication is None:
        return made
    model = replace(made.instance.model, communication=communication)
    return replace(made, instance=replace(made.instance, model=model))


def told(made: Costed, before: Sequence[str] = ()) -> Costed:
    """Put remarks into the instance's ``source``, after others that come before."""
    remarks = (*before, *made.remarks)
    sentences = [made.instance.source, *remarks]
    source = " ".join(each if each.endswith(".") else f"{each}." for each in sentences if each)
    return Costed(replace(made.instance, source=source), remarks)


def _roofline(workload: Workload, cluster: NamedCluster, options: Options) -> Costed:
    table = None if options.efficiencies is None else efficiency.read(options.efficiencies)
    return roofline(workload, cluster, efficiencies=table, memory=options.memory)


def _file(workload: Workload, cluster: NamedCluster, options: Options) -> Costed:
    return from_file(workload, cluster, memory=options.memory)


def _measured(workload: Workload, cluster: NamedCluster, options: Options) -> Costed:
    if not options.measured:
        raise InputError("measured", "missing", "name a file of times for a device or type")
    if options.efficiencies is not None and options.fill is None:
        raise InputError("efficiencies", "nothing is estimated", 'give fill="roofline" as well')
    table = None if options.efficiencies is None else efficiency.read(options.efficiencies)
    return measured(
        workload,
        cluster,
        options.measured,
        fill=options.fill,
        exact=bool(options.exact),
        efficiencies=table,
        node_memory=options.node_memory,
        memory=options.memory,
    )


def _table(workload: Workload, cluster: NamedCluster, options: Options) -> Costed:
    if options.file is None:
        raise InputError("file", "missing", "name the table of the costs")
    graph = from_csv(workload.graph, options.file)
    how = f"table {Path(options.file).name}"
    return _replaced(workload, cluster, options, graph, how, "The table's")


def _drawn(workload: Workload, cluster: NamedCluster, options: Options) -> Costed:
    seed = options.seed or 0
    graph, how = drawn(workload.graph, seed), f"drawn, seed {seed}"
    remark = (
        f"Operations and sizes were drawn from 1 to 100, with seed {seed}; they say nothing of "
        "the model but its structure."
    )
    return _replaced(workload, cluster, options, graph, how, "Drawn", remark)


def _unit(workload: Workload, cluster: NamedCluster, options: Options) -> Costed:
    remark = "Every vertex has 1 operation and every output size 1; only the structure counts."
    return _replaced(workload, cluster, options, unit(workload.graph), "unit", "Unit", remark)


def _replaced(
    workload: Workload,
    cluster: NamedCluster,
    options: Options,
    graph: Graph,
    how: str,
    whose: str,
    *remarks: str,
) -> Costed:
    """Make an instance of a graph with other costs than those of the file."""
    said = [*remarks, *_overridden(workload)]
    if cluster.fixed_units:
        said.append(f"{whose} operations and sizes count as FLOPs and bytes on this cluster.")
    return costed(workload, graph, cluster.cluster, how, said, memory=options.memory)


def _overridden(workload: Workload) -> tuple[str, ...]:
    """Say that costs of the file do not count, if it has some."""
    graph = workload.graph
    costs = [
        name
        for name, found in (
            ("run times", bool(workload.measured)),
            ("operations", graph.ops.numerators.any()),
            ("memory", graph.memory.numerators.any()),
            ("sizes", graph.tensor_size.numerators.any()),
        )
        if found
    ]
    return (f"Not used: the {', '.join(costs)} of the file.",) if costs else ()


_ROWS = (
    Source(
        "roofline",
        "estimated from datasheets or calibrations of the devices, in whole nanoseconds",
        "a model with shapes; a cluster of devices of the library or of calibrations",
        frozenset({"efficiencies"}),
        _roofline,
        in_bytes=True,
    ),
    Source(
        "file",
        "what the file itself holds: measured times in whole nanoseconds, or operations",
        "measurements, and devices of the names or types that were measured; or operations",
        frozenset(),
        _file,
        in_bytes=True,
    ),
    Source(
        "measured",
        "times measured on the devices, from tables or profiles, in whole nanoseconds",
        "a file of times for each device or type; its names are those of the vertices",
        frozenset({"measured", "fill", "exact", "efficiencies", "node_memory"}),
        _measured,
        in_bytes=True,
    ),
    Source(
        "table",
        "operations, memory and sizes from a CSV: name, ops, memory, sizes",
        "a row per vertex; any cluster, in the same units",
        frozenset({"file"}),
        _table,
    ),
    Source(
        "drawn",
        "operations and sizes drawn from 1 to 100, where only the structure is known",
        "nothing; any cluster",
        frozenset({"seed"}),
        _drawn,
    ),
    Source(
        "unit",
        "1 operation per vertex, outputs of size 1",
        "nothing; any cluster",
        frozenset(),
        _unit,
    ),
)

#: By name, in the order in which they are listed.
SOURCES = Registry("costs", {row.name: row for row in _ROWS}, Source, group="optpart.costs")
