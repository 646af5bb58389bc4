"""The shortest plan that keeps, recomputes or offloads, what is proven of it, and its file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from optpart.applications.recompute.exact import solve
from optpart.applications.recompute.plan import Offload, Plan, Problem, Run, makespan, violations
from optpart.applications.recompute.rules import apply, contiguous
from optpart.base.clock import now
from optpart.base.errors import ContradictionError, FaultsOf, InputError
from optpart.base.files import Kind, of_format, read_text, write_text
from optpart.interop.formats.json import keys, mapping, named, parse_json, pretty, sequence, version
from optpart.lower_bounds.best import best_bound
from optpart.problem.rational import rational
from optpart.solution.result import Status

FORMAT = "optpart-recompute/1"
KIND = Kind("a plan of recomputation", of_format(FORMAT))

#: The part of the time after which plans that keep everything are given up.
_KEEPING = 0.3
#: The part for bounds of the makespan without limits of memory.
_BOUNDING = 0.05
_COPIES = {"first": 0, "second": 1, "back": 2}


@dataclass(frozen=True)
class Answer:
    """The shortest plan that was found and verified, its makespan, and one that none is below.

    CP-SAT claims the ``bound``; without one, it claims that there is no plan.
    """

    plan: Plan | None = None
    makespan: Fraction | None = None
    bound: Fraction | None = None

    @property
    def status(self) -> Status:
        """``OPTIMAL`` if plan and bound agree; ``UNKNOWN`` without a plan and a proof."""
        return Status.of(self.makespan, self.bound)


@dataclass(frozen=True)
class Recomputation:
    """The best plan, the best one that keeps everything, and those of rules on its placement.

    A rule without a plan that fits has ``None``.
    """

    problem: Problem
    best: Answer
    keep: Answer
    rules: Mapping[str, Plan | None]
    seconds: float


def find(problem: Problem, seconds: float) -> Recomputation:
    """Look for the shortest plans, and prove how far they are from the optimum."""
    start = now()
    free = replace(problem.instance, model=replace(problem.instance.model, memory="none"))
    least = best_bound(free, _BOUNDING * seconds).value or Fraction(0)
    until = start + _KEEPING * seconds
    keep = _answer(problem, *solve(problem, until, extended=False, least=least))
    known = [each for each in (keep.plan, contiguous(problem)) if each is not None]
    within = min((makespan(problem, each) for each in known), default=None)
    plan, bound = solve(problem, start + seconds, extended=True, least=least, within=within)
    best = _answer(problem, plan, bound, *known)
    rules = {} if best.plan is None else apply(problem, best.plan)
    return Recomputation(
        problem, _answer(problem, best.plan, bound, *rules.values()), keep, rules, now() - start
    )


def _answer(
    problem: Problem, plan: Plan | None, bound: Fraction | None, *others: Plan | None
) -> Answer:
    """Return the shortest of plans; all of them must keep the rules, and the bound."""
    plans = [each for each in (*others, plan) if each is not None]
    if not plans:
        return Answer(None, None, bound)
    best = min(plans, key=lambda each: makespan(problem, each))
    broken, length = violations(problem, best), makespan(problem, best)
    if broken or bound is None or length < bound:
        raise ContradictionError(f"the plan and its bound differ: {'; '.join(broken)}")
    return Answer(best, length, bound)


def write(found: Recomputation, path: str | Path) -> None:
    """Write the best plan, completely or not at all."""
    write_text(path, pretty(document(found.problem, found.best)), KIND)


def document(problem: Problem, answer: Answer) -> dict[str, Any]:
    """Return the document of a plan: names, and exact times."""
    graph, devices = problem.instance.graph, problem.instance.cluster.names
    plan, copies = answer.plan or Plan((), ()), [*_COPIES]
    return {
        "format": FORMAT,
        "sha256": problem.instance.sha256,
        "offload_to": None if problem.host is None else devices[problem.host],
        **_claims(answer),
        "placement": {graph.names[v]: devices[d] for v, d in enumerate(plan.placement)},
        "executions": [
            [graph.names[v], str(at), {graph.tensor_name(t): copies[k] for t, k in reads.items()}]
            for v, at, reads in sorted(plan.runs, key=lambda run: run.start)
        ],
        "offloads": [[graph.tensor_name(t), str(out), str(back)] for t, out, back in plan.offloads],
    }


def _claims(answer: Answer) -> dict[str, str | None]:
    exact = {"makespan": answer.makespan, "bound": answer.bound}
    said = {key: None if time is None else str(time) for key, time in exact.items()}
    return {"status": str(answer.status), **said}


def faults(problem: Problem, path: str | Path) -> list[str]:
    """Return what is wrong with a plan file; its bound is only a claim of CP-SAT.

    A file that cannot be read, or is about something else, is an :class:`InputError`.
    """
    known = document(problem, Answer())
    with FaultsOf(path):
        given = parse_json(read_text(path))
        version(given, FORMAT)
        keys(given, {*known}, "", needed=[*known])
        for key in ("sha256", "offload_to"):
            if given[key] != known[key]:
                remedy = "give the instance and the options that it was made with"
                raise InputError(key, f"is not {known[key]!r}", remedy)
        plan = (
            _read(problem, given) if given["placement"] or not problem.instance.vertices else None
        )
        bound = None if given["bound"] is None else rational(given["bound"], "bound")
    if plan is None:
        answer = Answer(None, None, bound)
    elif broken := violations(problem, plan):
        return broken
    else:
        answer = Answer(plan, makespan(problem, plan), bound)
        if bound is None or makespan(problem, plan) < bound:
            return ["the plan refutes the bound"]
    return [f"{key} is {true}" for key, true in _claims(answer).items() if given[key] != true]


def _read(problem: Problem, given: Mapping[str, Any]) -> Plan:
    """Read the plan of a file."""
    graph, devices = problem.instance.graph, problem.instance.cluster.index
    tensors = {graph.tensor_name(tensor): tensor for tensor in range(graph.tensors)}

    def triples(key: str) -> Iterator[tuple[str, Any, Any, Any]]:
        for i, entry in enumerate(sequence(given[key], key)):
            if len(sequence(entry, f"{key}[{i}]")) != 3:
                raise InputError(f"{key}[{i}]", f"has {len(entry)} entries", "give three")
            yield f"{key}[{i}]", *entry

    placed = keys(given["placement"], {*graph.names}, "placement", needed=graph.names)
    return Plan(
        tuple(named(placed[v], devices, "placement", "no device") for v in graph.names),
        tuple(
            Run(named(v, graph.index, at, "no vertex"), rational(start, at), {
                named(tensor, tensors, at, "no tensor"): named(copy, _COPIES, at, "no copy")
                for tensor, copy in mapping(reads, at).items()
            })
            for at, v, start, reads in triples("executions")
        ),
        tuple(
            Offload(named(tensor, tensors, at, "no"), rational(out, at), rational(back, at))
            for at, tensor, out, back in triples("offloads")
        ),
    )  # fmt: skip
