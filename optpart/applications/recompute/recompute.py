"""The shortest plan that keeps, recomputes or offloads, what is proven of it, and its file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from optpart.applications.recompute.exact import solve
from optpart.applications.recompute.plan import Offload, Plan, Problem, Run, makespan, violations
from optpart.applications.recompute.rules import apply
from optpart.base.clock import now
from optpart.base.errors import ContradictionError, FaultsOf, InputError
from optpart.base.files import Kind, of_format, read_text, write_text
from optpart.interop.formats.json import keys, mapping, named, parse_json, pretty, sequence, version
from optpart.problem.rational import rational
from optpart.solution.gap import gap
from optpart.solution.result import Status

FORMAT = "optpart-recompute/1"
KIND = Kind("a plan of recomputation", of_format(FORMAT))

#: The part of the time after which plans that keep everything are given up.
_KEEPING = 0.3
_COPIES = {"first": 0, "second": 1, "back": 2}
_RUN, _OFFLOAD = {"vertex", "start", "reads"}, {"tensor", "out", "back"}


@dataclass(frozen=True)
class Answer:
    """The shortest plan that was found and verified, and the least makespan that is possible.

    Attributes
    ----------
    bound : Fraction or None
        A makespan that no plan is below, as CP-SAT claims; ``None`` if it claims there is no plan.
    """

    plan: Plan | None
    makespan: Fraction | None
    bound: Fraction | None

    @property
    def status(self) -> Status:
        """``OPTIMAL`` if plan and bound agree; ``UNKNOWN`` without a plan and a proof."""
        if self.bound is None:
            return Status.INFEASIBLE
        if self.plan is None:
            return Status.UNKNOWN
        return Status.OPTIMAL if self.makespan == self.bound else Status.FEASIBLE

    @property
    def gap(self) -> float | None:
        """The share of the makespan that may be too much, rounded up."""
        return gap(self.makespan, self.bound)


@dataclass(frozen=True)
class Recomputation:
    """The best plan, beside it the best that keeps everything, and those of published rules.

    Attributes
    ----------
    rules : mapping from name to Plan or None
        With the placement of the best plan; ``None`` if the rule has no plan that fits.
    """

    problem: Problem
    best: Answer
    keep: Answer
    rules: Mapping[str, Plan | None] = field(default_factory=dict)
    seconds: float = 0.0


def find(problem: Problem, seconds: float) -> Recomputation:
    """Look for the shortest plans, and prove how far they are from the optimum."""
    start = now()
    found = solve(problem, start + _KEEPING * seconds, extended=False)
    keep = _answer(problem, [found[0]], found[1])
    plan, bound = solve(problem, start + seconds, extended=True, known=keep.plan)
    rules: Mapping[str, Plan | None] = {}
    if plan or keep.plan:
        rules = apply(problem, _answer(problem, [keep.plan, plan], bound).plan or Plan((), ()))
    best = _answer(problem, [keep.plan, *rules.values(), plan], bound)
    return Recomputation(problem, best, keep, rules, now() - start)


def _answer(problem: Problem, plans: list[Plan | None], bound: Fraction | None) -> Answer:
    """Return the shortest of plans with its bound; all of them must keep the rules."""
    found = {i: makespan(problem, plan) for i, plan in enumerate(plans) if plan is not None}
    if not found:
        return Answer(None, None, bound)
    at = min(found, key=lambda i: found[i])
    plan, broken = plans[at], [*violations(problem, plans[at])]
    if broken or bound is None or found[at] < bound:
        raise ContradictionError(f"the plan and its bound differ: {'; '.join(broken)}")
    return Answer(plan, found[at], bound)


def write(found: Recomputation, path: str | Path) -> None:
    """Write the best plan, completely or not at all."""
    write_text(path, pretty(document(found)), KIND)


def document(found: Recomputation) -> dict[str, Any]:
    """Return the document of the best plan: names, and exact times."""
    problem, best = found.problem, found.best
    graph, devices = problem.instance.graph, problem.instance.cluster.names
    plan = best.plan or Plan((), ())
    copies = dict(zip(_COPIES.values(), _COPIES, strict=True))
    return {
        "format": FORMAT,
        "instance": problem.instance.name,
        "sha256": problem.instance.sha256,
        "offload_to": None if problem.host is None else devices[problem.host],
        **_claims(best),
        "placement": {
            graph.names[v]: devices[d] for v, d in enumerate(plan.placement)
        },
        "executions": [
            {
                "vertex": graph.names[run.vertex],
                "start": str(run.start),
                "reads": {graph.tensor_name(t): copies[copy] for t, copy in run.reads.items()},
            }
            for run in sorted(plan.runs, key=lambda run: run.start)
        ],
        "offloads": [
            {"tensor": graph.tensor_name(each.tensor), "out": str(each.out), "back": str(each.back)}
            for each in plan.offloads
        ],
    }  # fmt: skip


def _claims(answer: Answer) -> dict[str, str | None]:
    exact = {"makespan": answer.makespan, "bound": answer.bound}
    said = {key: None if time is None else str(time) for key, time in exact.items()}
    return {"status": str(answer.status), **said}


def faults(problem: Problem, path: str | Path) -> list[str]:
    """Return what is wrong with a plan file; its bound is only a claim of CP-SAT.

    A file that cannot be read, or is about something else, is an :class:`InputError`.
    """
    known = document(Recomputation(problem, *[Answer(None, None, None)] * 2))
    with FaultsOf(path):
        given = parse_json(read_text(path))
        version(given, FORMAT)
        keys(given, {*known}, "", needed=[*known])
        for key in ("sha256", "offload_to"):
            if given[key] != known[key]:
                raise InputError(key, f"is not {known[key]!r}", "give the instance and options of it")
        plan = _read(problem, given)
        bound = None if given["bound"] is None else rational(given["bound"], "bound")
    return [*_faults(problem, given, plan, bound)]


def _faults(
    problem: Problem, given: Mapping[str, Any], plan: Plan | None, bound: Fraction | None
) -> Iterator[str]:
    """Yield broken rules, and claims that do not hold."""
    broken = [] if plan is None else [*violations(problem, plan)]
    yield from broken
    if broken:
        return
    length = None if plan is None else makespan(problem, plan)
    if length is not None and (bound is None or length < bound):
        yield "the plan refutes the bound"
    for key, true in _claims(Answer(plan, length, bound)).items():
        if given[key] != true:
            yield f"{key} is {true}, not {given[key]}"


def _read(problem: Problem, given: Mapping[str, Any]) -> Plan | None:
    """Read the plan of a file; ``None`` if it has none."""
    graph, devices = problem.instance.graph, problem.instance.cluster.index
    if not given["placement"] and len(graph):
        return None
    tensors = {graph.tensor_name(tensor): tensor for tensor in range(graph.tensors)}
    placed = keys(given["placement"], {*graph.names}, "placement", needed=graph.names)
    runs, offloads = [], []
    for i, entry in enumerate(sequence(given["executions"], "executions")):
        at = f"executions[{i}]"
        row = keys(entry, _RUN, at, needed=[*_RUN])
        reads = {
            named(tensor, tensors, at, "no tensor"): named(copy, _COPIES, at, "no copy")
            for tensor, copy in mapping(row["reads"], f"{at}.reads").items()
        }
        vertex = named(row["vertex"], graph.index, at, "no vertex")
        runs.append(Run(vertex, rational(row["start"], f"{at}.start"), reads))
    for i, entry in enumerate(sequence(given["offloads"], "offloads")):
        at = f"offloads[{i}]"
        row = keys(entry, _OFFLOAD, at, needed=[*_OFFLOAD])
        times = (rational(row[key], f"{at}.{key}") for key in ("out", "back"))
        offloads.append(Offload(named(row["tensor"], tensors, at, "no tensor"), *times))
    placement = (named(placed[v], devices, "placement", "no device") for v in graph.names)
    return Plan(tuple(placement), tuple(runs), tuple(offloads))
