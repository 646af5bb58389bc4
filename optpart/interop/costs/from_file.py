"""Run times that a workload brings itself, because its file holds measurements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from optpart.base.errors import InputError
from optpart.interop.costs.costed import Costed, costed, counted, in_nanoseconds
from optpart.interop.devices.named import NamedCluster
from optpart.interop.formats.parsing import named
from optpart.problem.model import Memory
from optpart.problem.workload import Workload


def from_file(
    workload: Workload, named_cluster: NamedCluster, *, memory: Memory | None = None
) -> Costed:
    """Take the measured run times of a workload, rounded up to whole nanoseconds.

    If it has none but operations, as graphs in DOT, these count, in units of the file: the cluster
    must give speeds and bandwidths in the same.

    A device of the cluster has the times that were measured under its own name, else under its
    name in the library, else under its type. A vertex that was not measured there cannot run there.

    Raises
    ------
    InputError
        If the workload has neither times nor operations, no times for a device, or
        none for a vertex.
    """
    cluster = named_cluster.cluster
    if not workload.measured:
        if workload.work is not None or not workload.graph.ops.numerators.any():
            raise InputError(workload.name, "holds no measured times", "use other costs")
        how = "operations and sizes of the file"
        units = (
            "as FLOPs and bytes on this cluster" if named_cluster.fixed_units else "without units"
        )
        remarks = [f"The operations and sizes of the file count {units}."]
        unit = "ns" if named_cluster.fixed_units else ""
        return costed(
            workload, workload.graph, cluster, how, remarks, memory=memory, time_unit=unit
        )
    columns: list[Sequence[Fraction | None]] = []
    remarks = []
    for d, name in enumerate(cluster.names):
        spec = named_cluster.specs[d]
        column = _times(workload, name, None if spec is None else spec.name, cluster.types[d])
        columns.append(column)
        missing = column.count(None)
        if missing:
            remarks.append(
                f"{name}: {counted(missing, 'operation')} not measured, so not run there."
            )
    for v, name in enumerate(workload.graph.names):
        if all(column[v] is None for column in columns):
            raise InputError(
                workload.name, f"{name!r} was measured on no device", "measure it, or remove it"
            )
    if any(time is not None and time.denominator != 1 for column in columns for time in column):
        remarks.append("Run times were rounded up to whole nanoseconds.")
    if not named_cluster.fixed_units:
        remarks.append("The cluster's latencies and bandwidths are taken as nanoseconds and bytes.")
    durations = [
        [None if time is None else math.ceil(time) for time in row]
        for row in zip(*columns, strict=True)
    ]
    how = "measured times of the file, in nanoseconds"
    return in_nanoseconds(workload, workload.graph, named_cluster, how, remarks, durations, memory)


def _times(workload: Workload, *names: str | None) -> Sequence[Fraction | None]:
    for name in names:
        if name is not None and name in workload.measured:
            return workload.measured[name]
    raise InputError(
        f"device {names[0]!r}",
        "was not measured",
        f"name a device, or give it a type, of {named(sorted(workload.measured))}",
    )
