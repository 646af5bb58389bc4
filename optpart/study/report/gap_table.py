"""The tables of ``optpart gap``: for people, as CSV and as JSON."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from optpart.base.escaping import visible
from optpart.base.files import Kind, of_format, of_table
from optpart.base.languages import to_csv_of_records
from optpart.base.rounding import number, percent
from optpart.problem.instance import Instance
from optpart.problem.units import with_unit
from optpart.solution.gap import gap
from optpart.solution.result import Result
from optpart.study.gap import EXACT, Comparison, Reference, Spread, Summary, excess, summarise
from optpart.study.report.console import PlainConsole, plain_table
from optpart.study.report.text import claimed, infeasible, remark, seconds

FORMAT = "optpart-gap/1"
#: By suffix.
KINDS = {
    ".csv": Kind("a table of gaps", of_table("instance", "vertices", "edges", "devices")),
    ".json": Kind("a record of gaps", of_format(FORMAT)),
}

#: Below a table in which a method has runs without a schedule.
_UNSOLVED = "Means are over solved runs only: compare them between methods that solved the same."


def print_comparison(console: PlainConsole, comparison: Comparison) -> None:
    """Print one instance: the reference, and a row per method, best first."""
    reference = comparison.reference
    print_head(console, comparison.instance)
    if reference.infeasible:
        console.tell(f"  {_infeasible(reference)}")
        console.print()
        return
    console.tell("  " + _said(comparison))
    several = _several_seeds([comparison])
    console.show(_seeds_table(comparison) if several else _table(comparison))
    if several and any(len(s.found) < len(s.results) for s in comparison.spreads()):
        console.tell(f"  {_UNSOLVED}")
    console.print()


def print_head(console: PlainConsole, instance: Instance) -> None:
    """Print the name and the size of an instance."""
    size = (
        f"{instance.vertices} vertices, {len(instance.graph.edge_source)} edges, "
        f"{instance.devices} devices"
    )
    console.print(Text.assemble((visible(instance.name), "bold"), f"  {size}"), soft_wrap=False)


def _table(comparison: Comparison) -> Table:
    reference = comparison.reference
    columns = ("makespan", f"over {reference.kind}", _over_bound(reference), "traffic", "time")
    table = _method_table(*columns)
    for result in sorted(comparison.results, key=_by_makespan):
        table.add_row(
            _named(result.method, result.refused),
            number(result.makespan, up=True),
            percent(comparison.over_reference(result)),
            percent(comparison.over_claimed_bound(result)),
            number(result.traffic, up=True),
            seconds(result.seconds),
            remark(remark_on(comparison, result)),
        )
    return table


def _seeds_table(comparison: Comparison) -> Table:
    """Return the table for several seeds: means, best values and standard deviations."""
    reference = comparison.reference
    table = _method_table(
        "solved", "best", "mean", "± std", f"mean over {reference.kind}",
        f"mean {_over_bound(reference)}", "traffic", "time",
    )  # fmt: skip
    for spread in sorted(comparison.spreads(), key=_by_mean_makespan):
        runs = len(spread.results)
        table.add_row(
            _named(spread.method, spread.refused),
            f"{len(spread.found)}/{runs}",
            number(spread.best, up=True),
            number(spread.mean, up=True),
            "–" if spread.deviation is None else number(spread.deviation, up=True, digits=4),
            percent(excess(spread.mean, reference.makespan)),
            percent(excess(spread.mean, reference.claimed_bound)),
            number(spread.traffic, up=True),
            seconds(spread.seconds),
            remark(_remark_of_seeds(spread)),
        )
    return table


def _over_bound(reference: Reference) -> str:
    return "over bound" if reference.claim is None else "over claimed bound"


def _named(method: str, refused: bool) -> Text:
    """Return the name of a method, marked if standard error has its full remark."""
    return Text(("! " if refused else "  ") + method)


def remark_on(comparison: Comparison, result: Result) -> str:
    """Say that a result is optimal, or why it is not known to be."""
    proven = comparison.is_optimal(result) and not result.refused
    if comparison.is_claimed_optimal(result) and not result.refused:
        return "claimed optimal"
    return "optimal" if proven else result.reason


def _remark_of_seeds(spread: Spread) -> str:
    if spread.optimal and not spread.refused:
        return f"optimal {spread.optimal}/{len(spread.results)}"
    if spread.claimed_optimal and not spread.refused:
        return f"claimed optimal {spread.claimed_optimal}/{len(spread.results)}"
    return spread.reason


def _method_table(*columns: str) -> Table:
    """Return an empty table with columns for the method, figures and a remark."""
    return plain_table("  method", *columns, "", padding=(0, 1), header_style="dim")


def print_line(console: PlainConsole, comparison: Comparison) -> None:
    """Print an instance on one line: the reference, and the best other method."""
    reference = comparison.reference
    name = f"{visible(comparison.instance.name):34}"
    if reference.infeasible:
        console.tell(f"{name} {_infeasible(reference)}")
        return
    found = [r for r in comparison.results if r.makespan is not None and r.method != EXACT]
    best = min(found, key=_by_makespan, default=None)
    heuristic = "no heuristic found a schedule"
    if best is not None:
        over = "optimal" if comparison.is_optimal(best) else ""
        over = "claimed optimal" if comparison.is_claimed_optimal(best) else over
        over = over or f"+{percent(comparison.over_reference(best))}"
        heuristic = f"best heuristic {over:8} {best.method}"
    figure = f"{reference.kind} {number(reference.makespan, up=True)}"
    if reference.certified:
        figure += ", certified"
    if reference.kind != "optimum":
        figure += f", bound {number(reference.bound, up=False)}"
    if reference.claim is not None:
        figure += f", {claimed(reference.claim)}"
    line = f"{name} {figure:28} {heuristic}"
    if cell_len(line) <= console.width:
        console.print(line)
        return
    for part in (name.rstrip(), f"  {figure}", f"  {heuristic.strip()}"):
        console.tell(part)


def _by_makespan(result: Result) -> tuple[bool, Any, str]:
    return result.makespan is None, result.makespan or 0, result.method


def _by_mean_makespan(spread: Spread) -> tuple[bool, Any, str]:
    return spread.mean is None, spread.mean or 0, spread.method


def _several_seeds(comparisons: list[Comparison]) -> bool:
    return any(len(spread.results) > 1 for c in comparisons for spread in c.spreads())


def _said(comparison: Comparison) -> str:
    """Describe the reference and its origin."""
    reference, unit = comparison.reference, comparison.instance.time_unit
    bound = "no bound"
    if reference.bound is not None:
        least = with_unit(number(reference.bound, up=False), unit)
        bound = f"bound {least} by {reference.bound_by}"
    if reference.claim is not None:
        bound += f"; {claimed(reference.claim)}, not proven in this run"
    if reference.makespan is None:
        return f"no schedule known; {bound}"
    found = with_unit(number(reference.makespan, up=True), unit)
    makespan = f"{found} by {reference.makespan_by}"
    if reference.kind == "optimum":
        certified = "certified" if reference.certified else "no certificate"
        return f"optimum {makespan}, proven by {reference.bound_by}, {certified}"
    if reference.kind == "claimed optimum":
        certified = "certified" if reference.certified else "no certificate"
        return f"claimed optimum {makespan}, {bound}, {certified}"
    if reference.bound is None:
        return f"best known {makespan}, {bound}"
    distance = percent(comparison_gap(comparison))
    note = f" ({reference.note})" if reference.note else ""
    return f"best known {makespan}, {bound}: gap {distance}{note}"


def _infeasible(reference: Reference) -> str:
    by = f" ({reference.bound_by})" if reference.bound_by else ""
    return f"{infeasible(reference.infeasible)}{by}"


def comparison_gap(comparison: Comparison) -> float | None:
    """Return the relative gap between the reference and the bound, as in a result file."""
    return gap(comparison.reference.makespan, comparison.reference.bound)


def print_summary(console: PlainConsole, comparisons: list[Comparison]) -> None:
    """Print one row per method over all instances."""
    kinds = [comparison.reference.kind for comparison in comparisons]
    certified = sum(comparison.reference.certified for comparison in comparisons)
    counts = ", ".join(
        f"{kinds.count(kind)} {kind}"
        for kind in (
            "optimum", "claimed optimum", "best known", "infeasible", "claimed infeasible",
            "unknown",
        )
        if kind in kinds
    )  # fmt: skip
    console.print()
    found = Text.assemble((f"{len(comparisons)} instances", "bold"), f": {counts}")
    console.print(found, soft_wrap=False)
    if certified:
        console.tell(f"{certified} optima certified (make check-certificates)")
    with_claims = any(comparison.reference.claim is not None for comparison in comparisons)
    over = "mean over claimed bound" if with_claims else "mean over bound"
    optimal = ("optimal", "claimed optimal") if with_claims else ("optimal",)
    figures = ("solved", "mean over reference", "worst", over, *optimal, "time")
    table = plain_table("  method", *figures, padding=(0, 2), header_style="dim")
    rows = sorted(summarise(comparisons), key=_by_mean)
    for row in rows:
        table.add_row(
            "  " + row.method,
            f"{row.solved}/{row.instances}",
            percent(row.mean),
            percent(row.worst),
            percent(row.mean_over_claimed_bound),
            f"{row.optimal}/{row.references}",
            *([f"{row.claimed_optimal}/{row.claimed_references}"] if with_claims else []),
            seconds(row.seconds),
        )
    console.show(table)
    if any(row.solved < row.instances for row in rows):
        console.tell(f"  {_UNSOLVED}")


def _by_mean(row: Summary) -> tuple[bool, float, str]:
    return row.mean is None, row.mean or 0.0, row.method


def to_rows(comparisons: list[Comparison]) -> list[dict[str, Any]]:
    """Return one flat record per instance and method; numbers exact, as strings, and as floats.

    ``gap`` is ``(makespan − bound) / makespan``, as of a result, but with the best bound known.

    With several seeds, a record holds means and standard deviations over the runs with a schedule.
    """
    if _several_seeds(comparisons):
        return [_seeds_row(spread) for c in comparisons for spread in c.spreads()]
    return _run_rows(comparisons)


def _run_rows(comparisons: list[Comparison]) -> list[dict[str, Any]]:
    return [_row(comparison, result) for comparison in comparisons for result in comparison.results]


def _instance_fields(comparison: Comparison) -> dict[str, Any]:
    reference = comparison.reference
    return {
        "instance": comparison.instance.name,
        "vertices": comparison.instance.vertices,
        "edges": len(comparison.instance.graph.edge_source),
        "devices": comparison.instance.devices,
        "time_unit": comparison.instance.time_unit,
        "reference_kind": reference.kind,
        **_figure("reference", reference.makespan),
        "reference_by": reference.makespan_by,
        **_figure("bound", reference.bound),
        "bound_by": reference.bound_by,
        "certified": reference.certified,
        "claimed_bound": None if reference.claim is None else _exact(reference.claim.lower_bound),
        "claimed": "" if reference.claim is None else claimed(reference.claim),
    }


def _row(comparison: Comparison, result: Result) -> dict[str, Any]:
    return {
        **_instance_fields(comparison),
        "method": result.method,
        "status": str(result.status),
        "termination": _ended(result),
        **_figure("makespan", result.makespan),
        "over_reference": comparison.over_reference(result),
        "over_bound": comparison.over_bound(result),
        "gap": gap(result.makespan, comparison.reference.bound),
        "optimal": comparison.is_optimal(result),
        **_figure("traffic", result.traffic),
        "seconds": round(result.seconds, 6),
        "refused": result.refused,
        "reason": result.reason,
    }


def _seeds_row(spread: Spread) -> dict[str, Any]:
    reference = spread.comparison.reference
    return {
        **_instance_fields(spread.comparison),
        "method": spread.method,
        "seeds": len(spread.results),
        "solved": len(spread.found),
        "terminations": "; ".join(
            f"{reason} {times}" for reason, times in Counter(map(_ended, spread.results)).items()
        ),
        **_figure("makespan_best", spread.best),
        **_figure("makespan_mean", spread.mean),
        "makespan_std": spread.deviation,
        "over_reference_best": excess(spread.best, reference.makespan),
        "over_reference_mean": excess(spread.mean, reference.makespan),
        "over_bound_mean": excess(spread.mean, reference.bound),
        "optimal": spread.optimal,
        **_figure("traffic_mean", spread.traffic),
        "seconds_mean": round(spread.seconds, 6),
        "refused": spread.refused,
        "reason": spread.reason,
    }


def _figure(name: str, value: Fraction | None) -> dict[str, Any]:
    """Return an exact number and, beside it, the nearest float; none beyond the range of floats."""
    try:
        nearest = None if value is None else float(value)
    except OverflowError:
        nearest = None
    return {name: _exact(value), f"{name}_float": nearest}


def _ended(result: Result) -> str:
    """Say why the method ended; results of earlier versions may not tell."""
    return "" if result.termination is None else str(result.termination)


def _exact(value: Any) -> str | None:
    return None if value is None else str(value)


def to_csv(comparisons: list[Comparison]) -> str:
    """Return the records as CSV."""
    return to_csv_of_records(to_rows(comparisons))


def to_document(comparisons: list[Comparison]) -> dict[str, Any]:
    """Return everything as a JSON document; with several seeds, every run and the means."""
    results = _run_rows(comparisons)
    means = {}
    if _several_seeds(comparisons):
        runs = [result for comparison in comparisons for result in comparison.results]
        results = [{**row, "seed": run.seed} for row, run in zip(results, runs, strict=True)]
        means = {"seeds": to_rows(comparisons)}
    return {
        "format": FORMAT,
        "instances": [
            {
                "instance": comparison.instance.name,
                "instance_sha256": comparison.instance.sha256,
                "reference": _exact(comparison.reference.makespan),
                "reference_kind": comparison.reference.kind,
                "bound": _exact(comparison.reference.bound),
                "claimed": (
                    None
                    if comparison.reference.claim is None
                    else comparison.reference.claim.to_dict()
                ),
                "infeasible": comparison.reference.infeasible,
                "findings": [
                    {"source": finding.source, "problem": finding.problem}
                    for finding in comparison.findings
                ],
            }
            for comparison in comparisons
        ],
        "results": results,
        **means,
        "summary": [vars(row) for row in summarise(comparisons)],
    }
