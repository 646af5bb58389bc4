"""The comparison of strategies as a table, and one strategy in words."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

from optpart.applications.training.cluster import TrainingCluster
from optpart.applications.training.comparison import Bounded, Comparison
from optpart.applications.training.makers.base import Made
from optpart.applications.training.problem import StrategyProblem
from optpart.applications.training.question import Checked, Question, Solved
from optpart.applications.training.strategy import Decision
from optpart.base.rounding import number, percent
from optpart.problem.document import number as exact
from optpart.study.report.console import PlainConsole, plain_table
from optpart.study.report.text import remark

_MILLISECOND = 10**6


def milliseconds(time: Fraction | None, *, up: bool) -> str:
    """Return nanoseconds as milliseconds, up for what was found and down for bounds."""
    return "–" if time is None else f"{number(time / _MILLISECOND, up=up)} ms"


def heading(question: Question) -> str:
    """Say what is asked, in one line."""
    problem, header = question.problem, question.header
    where = f" on {header.cluster}" if header.cluster else ""
    return (
        f"{problem.graph.name}{where}, batch {problem.batch}: {len(problem.graph)} operations in "
        f"{len(problem.groups)} groups, {len(problem.cluster)} devices"
    )


def said_bounds(bound: Bounded, makespan: Fraction | None = None) -> list[str]:
    """Say what is proven, about which strategies, and the gaps of a makespan."""
    if bound.value is None:
        return [f"lower bound: none; {bound.reason}"]

    def said(value: Fraction | None, gap: float | None) -> str:
        return milliseconds(value, up=False) + ("" if gap is None else f", gap {percent(gap)}")

    lines = []
    if bound.reason:
        lines.append(f"lower bound: nothing more is known of these groups: {bound.reason}")
    else:
        lines.append(
            f"lower bound, these {bound.actions} actions of groups: "
            f"{said(bound.value, bound.gap(makespan))}"
        )
    if bound.whatever is not None:
        lines.append(
            f"lower bound, any groups and shares: "
            f"{said(bound.whatever, bound.widest_gap(makespan))}"
        )
    return lines


def print_comparison(console: PlainConsole, question: Question, found: Comparison) -> None:
    """Print a row per maker, its distance to the best, its gap to the bound, and what failed."""
    console.tell(heading(question))
    failed = any(not made.feasible for _, made in found.rows)
    table = plain_table("strategy", "time", "over best", "gap")
    if failed:
        table.add_column("remark", no_wrap=True)
    best = found.best
    least = None if best is None else best[1].makespan
    for name, made in found.rows:
        over = None
        if made.makespan is not None and least:
            over = made.makespan / least - 1
        table.add_row(
            name,
            milliseconds(made.makespan, up=True),
            percent(over),
            percent(found.bound.gap(made.makespan)),
            *([remark(_short(made))] if failed else []),
        )
    console.show(table)
    for name, made in found.rows:
        if made.reason:
            console.tell(f"{name}: {made.reason}")
    if best is None:
        console.tell("best: none is feasible")
    else:
        console.tell(f"best: {best[0]}, {milliseconds(least, up=True)}")
    for line in said_bounds(found.bound, least):
        console.tell(line)


def _short(made: Made) -> str:
    if made.makespan is not None:
        return ""
    # There is a schedule only where nothing but memory is lacking.
    return "not feasible" if made.schedule is None else "out of memory"


def said_solution(solved: Solved) -> list[str]:
    """Describe a strategy: its time, what is proven, and how many groups do what."""
    made = solved.made
    lines = [heading(solved.question)]
    if made.makespan is None:
        lines.append(f"{solved.method}: no feasible strategy: {made.reason}")
        return lines + said_bounds(solved.bound)
    lines.append(f"{solved.method}: {milliseconds(made.makespan, up=True)}")
    if made.reason:
        lines.append(f"{solved.method}: {made.reason}")
    lines += said_bounds(solved.bound, made.makespan)
    assert made.strategy is not None
    problem = solved.question.problem
    counts = Counter(in_words(decision, problem.cluster) for decision in made.strategy.decisions)
    lines += [f"  {count} × {words}" for words, count in counts.most_common()]
    return lines


def in_words(decision: Decision, cluster: TrainingCluster) -> str:
    """Return where a group runs, and how its gradients are summed."""
    names = cluster.names
    if len(decision.devices) == 1:
        return f"on {names[decision.devices[0]]}"
    if len(set(decision.replicas)) == 1:
        shares = "even replicas on all devices"
    else:
        counts = (f"{names[d]} {decision.replicas[d]}" for d in decision.devices)
        shares = f"replicas {', '.join(counts)}"
    if decision.sync is None or decision.sync == "allreduce":
        return f"{shares}; AllReduce"
    return f"{shares}; server {names[decision.sync]}"


def said_check(found: Checked) -> str:
    """Describe a strategy that has no faults."""
    file, compiled = found.file, found.compiled
    makespan = found.schedule.makespan(compiled.instance)
    limited = compiled.instance.model.memory != "none"
    words = [
        f"the strategy keeps links{' and memory' if limited else ''}, and an iteration takes "
        f"{milliseconds(makespan, up=True)}"
    ]
    if not limited:
        words.append("memory is not limited")
    if file.makespan is not None:
        words[0] += ", as stated"
    if file.lower_bound is not None:
        bound = milliseconds(file.lower_bound, up=False)
        words.append(f"its lower bound of {bound} is not above that, but was not proven again")
    return "; ".join(words)


def check_document(found: Checked) -> dict[str, Any]:
    """Return what was found of a strategy's file as a JSON document."""
    return {
        "model": found.compiled.graph.name,
        "valid": not found.faults,
        "faults": list(found.faults),
        "makespan": exact(found.schedule.makespan(found.compiled.instance)),
        "assumed": list(found.remarks),
    }


def comparison_document(question: Question, found: Comparison) -> dict[str, Any]:
    """Return a comparison as a JSON document; times are nanoseconds and exact."""
    best = found.best
    return {
        **_question_document(question),
        "lower_bound": _exact(found.bound.value),
        "lower_bound_of_all": _exact(found.bound.whatever),
        "bound": found.bound.reason,
        "best": None if best is None else best[0],
        "strategies": [
            {
                "method": name,
                "feasible": made.feasible,
                "makespan": _exact(made.makespan),
                "gap": found.bound.gap(made.makespan),
                "reason": made.reason,
                "moves": made.moves,
                "seconds": round(made.seconds, 6),
            }
            for name, made in found.rows
        ],
    }


def failure_document(solved: Solved) -> dict[str, Any]:
    """Return what is known where no strategy was found, as a JSON document."""
    return {
        **bound_document(solved.question, solved.bound),
        "method": solved.method,
        "makespan": None,
        "reason": solved.made.reason,
    }


def bound_document(question: Question, bound: Bounded) -> dict[str, Any]:
    """Return a bound as a JSON document."""
    return {
        **_question_document(question),
        "lower_bound": _exact(bound.value),
        "lower_bound_of_all": _exact(bound.whatever),
        "bound": bound.reason,
        "infeasible": bound.infeasible,
        "actions": bound.actions,
        "seconds": round(bound.seconds, 6),
    }


def _question_document(question: Question) -> dict[str, Any]:
    problem: StrategyProblem = question.problem
    return {
        "model": problem.graph.name,
        "cluster": question.header.cluster,
        "batch": problem.batch,
        "operations": len(problem.graph),
        "groups": len(problem.groups),
        "devices": len(problem.cluster),
        "assumed": list(question.remarks),
    }


def _exact(value: Fraction | None) -> int | str | None:
    return None if value is None else exact(value)
