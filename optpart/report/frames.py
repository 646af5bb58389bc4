"""Instances, results and comparisons as data frames of pandas, which is optional."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from optpart.errors import InputError
from optpart.problem.instance import Instance
from optpart.report.gap_table import to_rows
from optpart.solution.result import Result
from optpart.study.gap import Comparison

if TYPE_CHECKING:
    from pandas import DataFrame


def frame_of_instance(instance: Instance) -> DataFrame:
    """Return a row per vertex, with exact numbers as fractions."""
    graph = instance.graph
    inputs, outputs = [0] * len(graph), [0] * len(graph)
    for u, v in zip(graph.edge_source.tolist(), graph.edge_target.tolist(), strict=True):
        outputs[u] += 1
        inputs[v] += 1
    rows = [
        {
            "vertex": name,
            "ops": graph.ops[v],
            "memory": graph.memory[v],
            "device_type": graph.device_types[v],
            "in_edges": inputs[v],
            "out_edges": outputs[v],
        }
        for v, name in enumerate(graph.names)
    ]
    return _frame(rows, ["vertex", "ops", "memory", "device_type", "in_edges", "out_edges"])


def frame_of_result(result: Result) -> DataFrame:
    """Return a row per vertex in order of start."""
    schedule, instance = result.schedule, result.instance
    if schedule is None:
        problem = result.reason or "missing"
        raise InputError("schedule", problem, "take a result that has a schedule")
    rows = []
    for v in schedule.sequence:
        start, end = schedule.start[v], schedule.end(instance, v)
        rows.append(
            {
                "vertex": instance.graph.names[v],
                "device": instance.cluster.names[int(schedule.placement[v])],
                "start": float(start),
                "end": float(end),
                "start_exact": start,
                "end_exact": end,
            }
        )
    return _frame(rows, ["vertex", "device", "start", "end", "start_exact", "end_exact"])


def frame_of_comparison(comparison: Comparison) -> DataFrame:
    """Return a row per method, as ``optpart gap --csv`` does."""
    return _frame(to_rows([comparison]), None)


def _frame(rows: list[dict[str, Any]], columns: list[str] | None) -> DataFrame:
    try:
        from pandas import DataFrame
    except ImportError:
        raise InputError(
            "pandas", "not installed", "install it with: pip install 'optpart[pandas]'"
        ) from None
    return DataFrame(rows, columns=columns)
