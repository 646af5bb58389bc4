"""``optpart import``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from optpart.commands.options import Needed, Seed
from optpart.errors import FaultsOf, InputError
from optpart.formats.detect import FORMATS
from optpart.limits import MOST_DEVICES
from optpart.terminal import say

if TYPE_CHECKING:
    from optpart.problem.cluster import Cluster
    from optpart.problem.graph import Graph
    from optpart.problem.instance import Instance


_SUFFIXES = ", ".join(suffix for row in FORMATS.values() for suffix in row.suffixes)
_FORMATS = ", ".join(f"{row.name} ({row.summary})" for row in FORMATS.values())


class Costs(StrEnum):
    """The costs of an imported graph, unless a file gives them."""

    drawn = "drawn"
    unit = "unit"


def import_(
    file: Annotated[
        Path,
        typer.Argument(
            help=f".pb, .pbtxt, a thesis graph .csv, {_SUFFIXES}, or a file of another FORMAT."
        ),
    ],
    output: Needed,
    format_: Annotated[
        str | None,
        typer.Option(
            "--format",
            help=f"{_FORMATS}; needed only if neither suffix nor content identifies the format.",
        ),
    ] = None,
    cluster: Annotated[
        Path | None, typer.Option(help="Devices: a .toml, or a thesis device .csv.")
    ] = None,
    devices: Annotated[
        int | None,
        typer.Option(
            help="Draw a cluster of this many devices instead; for stg, equal devices.",
            min=1,
            max=MOST_DEVICES,
        ),
    ] = None,
    costs: Annotated[
        str, typer.Option(help="drawn, unit, or a CSV with name, ops, memory, sizes.")
    ] = "drawn",
    break_cycles: Annotated[
        bool,
        typer.Option("--break-cycles", help="Remove edges that close while loops, and list them."),
    ] = False,
    colocate: Annotated[
        str | None,
        typer.Option(
            help="Regular expression; vertices whose names start with the same match are colocated."
        ),
    ] = None,
    seed: Seed = 0,
    name: Annotated[str | None, typer.Option(help="Name of the instance.")] = None,
) -> None:
    """Make an instance from a graph in another format."""
    from optpart.formats import native, thesis_csv
    from optpart.formats.detect import read_instance

    suffix = file.suffix.lower() if format_ is None else ""
    if suffix == ".csv":
        if cluster is None:
            raise InputError("--cluster", "missing", "give the CSV of the devices")
        instance = thesis_csv.read(file, cluster)
    elif suffix in (".pb", ".pbtxt"):
        instance = _import_tensorflow(
            file, _cluster(cluster, devices, seed), costs, seed, break_cycles, colocate
        )
    elif cluster is not None:
        raise InputError(
            "--cluster", "only for TensorFlow graphs and thesis tables", "leave it out", str(file)
        )
    else:
        instance = read_instance(file, format_, devices)
    if name is not None:
        from dataclasses import replace

        instance = replace(instance, name=name)
    native.write(instance, output)
    say(
        f"{instance.name}: {instance.vertices} vertices, {len(instance.graph.edge_source)} edges, "
        f"{instance.devices} devices → {output}"
    )


def _cluster(path: Path | None, devices: int | None, seed: int) -> Cluster:
    from optpart.formats import cluster_toml
    from optpart.generate.cluster import drawn_cluster

    if (path is None) == (devices is None):
        raise InputError("--cluster", "no devices", "give either --cluster FILE or --devices N")
    if path is not None:
        return cluster_toml.read(path)
    assert devices is not None
    return drawn_cluster(seed, devices)


def _import_tensorflow(
    file: Path,
    cluster: Cluster,
    costs: str,
    seed: int,
    break_cycles: bool,
    colocate: str | None,
) -> Instance:
    from optpart.formats import tensorflow
    from optpart.formats.graph_edits import colocate_cells
    from optpart.problem.instance import Instance

    graph, counts = tensorflow.read_graph(file, cluster.names, break_cycles=break_cycles)
    for source, output, target in counts.removed:
        which = "control" if output is None else output
        say(f"removed to break a cycle: {source} ({which}) → {target}")
    if colocate is not None:
        graph = colocate_cells(graph, colocate)
    say(
        f"{file.name}: {counts.vertices} vertices, {counts.inputs} inputs, {counts.edges} distinct "
        f"edges between {counts.pairs} pairs, {counts.groups} colocation groups of two and more, "
        f"the largest of {counts.largest_group}"
    )
    source = f"imported from {file.name}, costs: {Path(costs).name}, seed {seed}"
    with FaultsOf(file):
        return Instance(_costed(graph, costs, seed), cluster, name=file.stem, source=source)


def _costed(graph: Graph, costs: str, seed: int) -> Graph:
    from optpart.costs.drawn import drawn
    from optpart.costs.from_csv import from_csv
    from optpart.costs.unit import unit

    if costs == Costs.drawn:
        return drawn(graph, seed)
    if costs == Costs.unit:
        return unit(graph)
    return from_csv(graph, costs)
