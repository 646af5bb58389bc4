"""Tables for papers: CSV with floats and exact numbers, and LaTeX with booktabs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from optpart.base.languages import to_csv_of_records, to_latex
from optpart.base.rounding import fixed
from optpart.study.paper import Comparison, Row


def runs_csv(comparison: Comparison) -> str:
    """Return a record per run that counts."""
    rows: list[dict[str, Any]] = []
    for run in comparison.runs:
        best, bound, ratio = comparison.best(run), comparison.bound(run), comparison.ratio(run)
        primal, dual = comparison.integrals(run)
        rows.append(
            {
                "instance": run.instance,
                **_group(comparison, comparison.group(run)),
                "method": run.method,
                "seed": run.seed,
                "limit": run.limit,
                "workers": run.workers,
                "version": run.optpart,
                "status": f"claimed {run.status}" if run.status.proven else str(run.status),
                "verified": run.is_verified,
                "time_unit": run.time_unit,
                **_both("makespan", run.makespan),
                **_both("lower_bound", run.lower_bound),
                **_both("best_makespan", best),
                **_both("best_bound", bound),
                **_both("ratio", ratio),
                "claimed_optimal": comparison.is_optimal(run),
                "seconds": run.seconds,
                "primal_integral": primal,
                "dual_integral": dual,
            }
        )
    return to_csv_of_records(rows)


def summary_csv(comparison: Comparison, rows: Sequence[Row]) -> str:
    """Return a record per group and method."""
    return to_csv_of_records(
        [
            {
                **_group(comparison, row.group),
                "method": row.method,
                "instances": row.instances,
                "not_run": row.missing,
                "runs": row.runs,
                "unsolved": row.unsolved,
                "claimed_optimal": row.optimal,
                **_both("mean_ratio", row.mean),
                "mean_low": row.low,
                "mean_high": row.high,
                "median_ratio": row.median,
                **_both("mean_ratio_of_solved_only", row.mean_of_solved),
                "mean_seconds": row.seconds,
                "mean_primal_integral": row.primal,
                "mean_dual_integral": row.dual,
            }
            for row in rows
        ]
    )


def summary_latex(comparison: Comparison, rows: Sequence[Row]) -> str:
    """Return a table with a row per group and method."""
    header = [
        *comparison.by, "method", "solved", "claimed optimal", "mean ratio", "95\\% interval",
        "median", "time (s)", "primal (s)", "dual (s)",
    ]  # fmt: skip
    lines, last = [], None
    for row in rows:
        same = row.group == last
        if last is not None and not same:
            lines.append(r"\midrule")
        last = row.group
        lines.append(
            _line(
                *([""] * len(row.group) if same else map(to_latex, row.group)),
                to_latex(row.method),
                f"{row.runs - row.unsolved}/{row.runs}",
                f"{row.optimal}",
                _mean(row),
                "--" if row.low is None else f"[{_down(row.low)}, {_up(row.high)}]",
                "--" if row.median is None else _up(row.median),
                *(_seconds(value) for value in (row.seconds, row.primal, row.dual)),
            )
        )
    names = [to_latex(name) if name in comparison.by else name for name in header]
    return _tabular("l" * (len(comparison.by) + 1) + "r" * 8, names, lines)


def pairs_csv(comparison: Comparison) -> str:
    """Return a record per pair of methods."""
    return to_csv_of_records(
        [
            {
                "first": pair.first,
                "second": pair.second,
                "first_better": pair.first_better,
                "second_better": pair.second_better,
                "equal": pair.equal,
                "p": pair.p,
                "p_holm": pair.adjusted,
            }
            for pair in comparison.pairs()
        ]
    )


def pairs_latex(comparison: Comparison) -> str:
    """Return a table with a row per pair of methods."""
    lines = [
        _line(
            to_latex(pair.first), to_latex(pair.second), f"{pair.first_better}",
            f"{pair.second_better}", f"{pair.equal}", _chance(pair.p), _chance(pair.adjusted),
        )
        for pair in comparison.pairs()
    ]  # fmt: skip
    header = ["first", "second", "first better", "second better", "equal", "$p$", "$p$ (Holm)"]
    return _tabular("llrrrrr", header, lines)


def _group(comparison: Comparison, values: Sequence[str]) -> dict[str, str]:
    """Return the columns of the factors."""
    return dict(zip(comparison.by, values, strict=True))


def _both(name: str, value: Fraction | None) -> dict[str, Any]:
    """Return the columns of a number: as a float, and exactly."""
    if value is None:
        return {name: None, f"{name}_exact": None}
    try:
        return {name: float(value), f"{name}_exact": str(value)}
    except OverflowError:  # beyond doubles
        return {name: None, f"{name}_exact": str(value)}


def _tabular(columns: str, header: Sequence[str], lines: Sequence[str]) -> str:
    return "\n".join(
        [
            "% Needs \\usepackage{booktabs}.",
            f"\\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            _line(*header),
            r"\midrule",
            *lines,
            r"\bottomrule",
            r"\end{tabular}",
            "",
        ]
    )


def _line(*cells: str) -> str:
    return " & ".join(cells) + r" \\"


def _mean(row: Row) -> str:
    if row.mean is not None:
        return _up(row.mean)
    why = []
    if row.unsolved:
        why.append(f"{row.unsolved} unsolved")
    if row.missing:
        why.append(f"{row.missing} not run")
    return f"-- ({', '.join(why)})"


def _up(value: Fraction | float | None) -> str:
    """Round a ratio up, so that only an exact 1 is shown as 1."""
    if value is None or math.isinf(value):
        return r"$\infty$"
    return fixed(value, 3, up=True)


def _down(value: float) -> str:
    return fixed(value, 3, up=False)


def _seconds(value: float) -> str:
    return "$<$0.01" if 0 < value < 0.01 else fixed(value, 2, up=True)


def _chance(value: float) -> str:
    return "$<$0.001" if value < 0.001 else fixed(value, 3, up=True)
