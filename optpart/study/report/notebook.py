"""Objects in notebooks: HTML, pictures and data frames.

Everything here is reached through :mod:`optpart.base.showing`. Names are escaped, and pictures are
drawn for schedules of moderate size only, since a cell must not wait. Pandas is optional.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from functools import singledispatch
from typing import TYPE_CHECKING, Any

from optpart.applications.training.comparison import Comparison as StrategyComparison
from optpart.applications.training.question import Solved
from optpart.applications.training.strategy import Strategy
from optpart.base.errors import InputError
from optpart.base.escaping import brief, listed
from optpart.base.languages import to_html
from optpart.base.rounding import between, number, percent
from optpart.certificates.certify import Refutation
from optpart.problem.instance import Instance
from optpart.problem.model import Model
from optpart.problem.units import with_unit
from optpart.solution.result import Result
from optpart.solution.schedule import Schedule
from optpart.study.gap import Comparison
from optpart.study.report.gap_table import remark_on, to_rows
from optpart.study.report.plots import plot_comparisons, plot_graph, plot_progress, plot_schedule
from optpart.study.report.text import claimed, seconds

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = [
    "frame_of_comparison", "frame_of_instance", "frame_of_result", "html_of", "plot_comparisons",
    "plot_graph", "plot_progress", "plot_schedule",
]  # fmt: skip

#: Larger schedules are drawn only when asked for.
_MOST_DRAWN = 500

#: Rows of a table in a cell.
_MOST_ROWS = 50


@singledispatch
def html_of(shown: object) -> str:
    """Return an object as HTML."""
    return f"<code>{to_html(repr(shown))}</code>"


@html_of.register
def _(instance: Instance) -> str:
    graph, cluster, model = instance.graph, instance.cluster, instance.model
    speeds = "run times given per device" if instance.given_durations is not None else ""
    rows = [
        ("vertices", f"{instance.vertices:,}"),
        ("edges", f"{len(graph.edge_source):,}"),
        ("devices", f"{instance.devices:,}: {listed([brief(name) for name in cluster.names], 8)}"),
        ("communication", _communication(model)),
        ("memory", "does not count" if model.memory == "none" else model.memory),
        ("costs", speeds),
        ("source", instance.source),
    ]
    return _titled(f"Instance {instance.name}", _facts(rows))


def _communication(model: Model) -> str:
    channels = f", {model.channels} channels" if model.communication == "port" else ""
    return f"{model.communication}{channels}"


@html_of.register
def _(schedule: Schedule) -> str:
    counts: dict[int, int] = {}
    for d in schedule.placement.tolist():
        counts[d] = counts.get(d, 0) + 1
    rows = [(str(d), f"{counts[d]:,}") for d in sorted(counts)]
    head = f"Schedule: {len(schedule.placement):,} vertices, {len(schedule.transfers):,} transfers"
    return _titled(head, _table(("device", "vertices"), rows))


@html_of.register
def _(result: Result) -> str:
    name, value, bound = result.objective, result.makespan, result.lower_bound
    if name == "bottleneck":
        value, bound = result.bottleneck, result.bottleneck_bound
    unit = result.instance.time_unit
    found, least = (with_unit(text, unit) for text in between(value, bound))
    rows = [
        ("status", str(result.status)),
        ("bottleneck" if name == "bottleneck" else "makespan", found if value is not None else ""),
        ("lower bound", least if bound is not None else ""),
        ("claimed", "" if result.claim is None else claimed(result.claim)),
        ("gap", percent(result.gap) if result.gap is not None else ""),
        ("traffic", number(result.traffic, up=True) if result.traffic is not None else ""),
        ("time", seconds(result.seconds)),
        ("ended", str(result.termination or "")),
        ("given", result.given),
        ("remark", result.reason),
    ]
    picture = ""
    if result.schedule is not None and 0 < result.instance.vertices <= _MOST_DRAWN:
        picture = _picture(result)
    return _titled(f"{result.method} on {result.instance.name}", _facts(rows) + picture)


def _picture(result: Result) -> str:
    from optpart.study.report.gantt import png

    assert result.schedule is not None
    content = png(result.instance, result.schedule, bound=result.lower_bound)
    data = base64.b64encode(content).decode("ascii")
    name = to_html(result.instance.name)
    return (
        f'<img alt="Gantt chart of {name}" style="max-width:100%" '
        f'src="data:image/png;base64,{data}">'
    )


@html_of.register
def _(comparison: Comparison) -> str:
    reference = comparison.reference
    value, bound = between(reference.makespan, reference.bound)
    head = f"{comparison.instance.name}: {reference.kind}"
    said = reference.infeasible or f"reference {value}, bound {bound}"
    if reference.claim is not None:
        said += f"; {claimed(reference.claim)}"
    rows = [
        (
            result.method,
            str(result.seed),
            number(result.makespan, up=True),
            percent(comparison.over_reference(result)),
            percent(comparison.over_bound(result)),
            seconds(result.seconds),
            remark_on(comparison, result),
        )
        for result in sorted(
            comparison.results, key=lambda r: (r.makespan is None, r.makespan or 0, r.method)
        )
    ]
    columns = ("method", "seed", "makespan", "over reference", "over bound", "time", "remark")
    return _titled(head, f"<p>{to_html(said)}</p>" + _table(columns, rows))


@html_of.register
def _(refutation: Refutation) -> str:
    rows = [
        ("tier", refutation.tier),
        ("variables", f"{refutation.variables:,}"),
        ("clauses", f"{refutation.clauses:,}"),
        ("steps of the proof", f"{refutation.steps:,}"),
        ("time", seconds(sum(refutation.seconds.values()))),
    ]
    return _titled("Certificate: no schedule is shorter", _facts(rows))


@html_of.register
def _(strategy: Strategy) -> str:
    rows = []
    for g, (group, decision) in enumerate(zip(strategy.groups, strategy.decisions, strict=True), 1):
        where = ", ".join(f"{d} ({share})" for d, share in enumerate(decision.shares) if share)
        sync = "" if decision.sync is None else str(decision.sync)
        rows.append((str(g), f"{len(group):,}", where, sync))
    columns = ("group", "operations", "devices (share of the batch)", "gradients")
    return _titled(f"Strategy, batch {strategy.batch:,}", _table(columns, rows))


@html_of.register
def _(solved: Solved) -> str:
    from optpart.study.report.strategy.table import heading, milliseconds, said_bounds

    rows = [
        ("method", solved.method),
        ("time of an iteration", milliseconds(solved.made.makespan, up=True)),
        *(("proven", said) for said in said_bounds(solved.bound, solved.made.makespan)),
        ("remark", solved.made.reason),
    ]
    strategy = solved.made.strategy
    below = "" if strategy is None else html_of(strategy)
    return _titled(heading(solved.question), _facts(rows) + below)


@html_of.register
def _(comparison: StrategyComparison) -> str:
    from optpart.study.report.strategy.table import milliseconds

    rows = [
        (
            name,
            milliseconds(made.makespan, up=True),
            percent(comparison.bound.gap(made.makespan)),
            seconds(made.seconds),
            made.reason,
        )
        for name, made in comparison.rows
    ]
    columns = ("method", "iteration", "gap", "time", "remark")
    return _titled(f"Strategies for {comparison.problem.graph.name}", _table(columns, rows))


def _titled(title: str, body: str) -> str:
    return f"<div><strong>{to_html(brief(title, 120))}</strong>{body}</div>"


def _facts(rows: Iterable[tuple[str, str]]) -> str:
    """Return a table of names and values, without those that are empty."""
    return "<table>" + "".join(_row("th", "td", row) for row in rows if row[1]) + "</table>"


def _table(columns: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    more = ""
    if len(rows) > _MOST_ROWS:
        more = f"<p>{len(rows) - _MOST_ROWS:,} further rows</p>"
    body = "".join(_row("td", "td", row) for row in rows[:_MOST_ROWS])
    return f"<table><thead>{_row('th', 'th', columns)}</thead><tbody>{body}</tbody></table>{more}"


def _row(first: str, others: str, cells: Iterable[str]) -> str:
    inside = []
    for i, cell in enumerate(cells):
        tag = others if i else first
        inside.append(f'<{tag} style="text-align:left">{to_html(cell)}</{tag}>')
    return f"<tr>{''.join(inside)}</tr>"


# --- data frames ----------------------------------------------------------------------------------


def frame_of_instance(instance: Instance) -> DataFrame:
    """Return a row per vertex, with exact numbers as fractions."""
    graph = instance.graph
    inputs, outputs = [0] * len(graph), [0] * len(graph)
    for u, v in graph.pairs():
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
