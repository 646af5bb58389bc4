"""Plans of least time per token, what is proven of them, and their file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from optpart.applications.serving.apart.bound import refuted, shortest
from optpart.applications.serving.apart.exact import solve
from optpart.applications.serving.apart.plan import Plan, Times, times, violations
from optpart.applications.serving.apart.request import Request
from optpart.base.clock import now
from optpart.base.errors import ContradictionError, FaultsOf, InputError
from optpart.base.files import Kind, of_format, read_text, write_text
from optpart.interop.formats.json import keys, named, parse_json, pretty, texts, version
from optpart.problem.rational import rational
from optpart.solution.gap import gap
from optpart.solution.result import Status

FORMAT = "optpart-apart/1"
KIND = Kind("a plan of prefilling and decoding apart", of_format(FORMAT))

#: The part of the time after which the plan with one placement is given up.
_TOGETHER = 0.4
#: Both questions of a file.
_BOTH = ("apart", "same")
_NONE = Plan((), ())


@dataclass(frozen=True)
class Answer:
    """The best plan that was found and verified, and what is proven.

    Attributes
    ----------
    bound : Fraction or None
        Nanoseconds per token that no plan is below; ``None`` if there is none, for a ``reason``.
    proof : {"path", "memory", "solver"}
        What proves that: :mod:`.bound`, or the claim of CP-SAT on the model of :mod:`.exact`.
    """

    plan: Plan | None
    times: Times
    bound: Fraction | None
    proof: str
    reason: str = ""

    @property
    def status(self) -> Status:
        """``OPTIMAL`` if plan and bound agree; ``UNKNOWN`` without a plan and a proof."""
        return Status.of(self.times.token if self.plan else None, self.bound)

    @property
    def gap(self) -> float | None:
        """The share of the time per token that may be too much, rounded up."""
        return gap(self.times.token, self.bound)


@dataclass(frozen=True)
class Apart:
    """The best plan, and beside it the best one with the same placement in both phases."""

    request: Request
    apart: Answer
    same: Answer
    seconds: float


def find(request: Request, seconds: float) -> Apart:
    """Look for the plans of least time per token, and prove how far they are from the best."""
    start, no = now(), refuted(request)
    if no is not None:
        none = Answer(None, Times(), None, *no)
        return Apart(request, none, none, now() - start)
    same = _answer(request, start + _TOGETHER * seconds, None)
    best = same.status is Status.OPTIMAL and same.proof == "path"
    apart = same if best else _answer(request, start + seconds, same)
    return Apart(request, apart, same, now() - start)


def _answer(request: Request, deadline: float, same: Answer | None) -> Answer:
    """Answer one of both questions; given the answer for one placement, for two."""
    plan, bound = solve(request, deadline, together=same is None)
    found = {each: times(request, each) for each in (plan, same and same.plan) if each}
    if bound is None and not found:
        reason = "CP-SAT claims it, and no simpler proof was found"
        return Answer(None, Times(), None, "solver", reason)
    path = shortest(request, 1) or Fraction(0)
    least, proof = (path, "path") if path >= (bound or 0) else (Fraction(bound or 0), "solver")
    if not found:
        return Answer(None, Times(), least, proof)
    best = min(found, key=lambda each: found[each].token or 0)
    broken = [*violations(request, best)]
    if broken or bound is None or (found[best].token or 0) < least:
        raise ContradictionError(f"the plan and its bound differ: {'; '.join(broken)}")
    return Answer(best, found[best], least, proof)


def write(found: Apart, path: str | Path) -> None:
    """Write both plans, completely or not at all."""
    write_text(path, pretty(document(found)), KIND)


def document(found: Apart) -> dict[str, Any]:
    """Return the document of both plans: exact nanoseconds, and the devices of the vertices."""
    request = found.request
    return {
        "format": FORMAT,
        "request": dict(request.asked),
        "seconds": round(found.seconds, 6),
        "vertices": list(request.phases[0].graph.names),
        "apart": _entry(request, found.apart),
        "same": _entry(request, found.same),
    }


def _entry(request: Request, answer: Answer) -> dict[str, Any]:
    exact = {**answer.times._asdict(), "bound": answer.bound}
    names = request.moves.cluster.names
    return {
        "status": str(answer.status),
        **{key: None if time is None else str(time) for key, time in exact.items()},
        "proof": answer.proof,
        **{phase: [names[d] for d in on] for phase, on in (answer.plan or _NONE)._asdict().items()},
    }


def faults(request: Request, path: str | Path) -> tuple[list[str], list[str]]:
    """Return what is wrong with a file of plans, and which bounds are only claimed by CP-SAT.

    A file that cannot be read, or is about something else, is an :class:`InputError`.
    """
    none = Answer(None, Times(), None, "")
    known = document(Apart(request, none, none, 0))
    with FaultsOf(path):
        given = parse_json(read_text(path))
        version(given, FORMAT)
        keys(given, {*known}, "", needed=[*known])
        for key in ("request", "vertices"):
            if given[key] != known[key]:
                remedy = f"give the options that it was made with, not {known['request']}"
                raise InputError(key, "is of another request", remedy)
        for which in _BOTH:
            keys(given[which], {*known[which]}, which, needed=[*known[which]])
        answers = {which: _read(request, given[which], which) for which in _BOTH}
    wrong = [
        f"{which}: {fault}"
        for which, answer in answers.items()
        for fault in _faults(request, given[which], answer)
    ]
    same, bound = answers["same"], answers["apart"].bound
    if same.plan and same.plan.prefill != same.plan.decode:
        wrong.append("same: the placements of both phases differ")
    if same.times.token is not None and (bound is None or same.times.token < bound):
        wrong.append("apart: the plan with one placement refutes the bound")
    return wrong, [which for which, answer in answers.items() if answer.proof == "solver"]


def _read(request: Request, entry: Mapping[str, Any], place: str) -> Answer:
    """Read what a file says of one question, with the times that the plan really has."""
    index, n = request.moves.cluster.index, len(request.weights)
    on = [texts(entry[phase], f"{place}.{phase}") for phase in Plan._fields]
    plan = Plan(*(tuple(named(d, index, place, "there is no") for d in each) for each in on))
    if {*map(len, plan)} not in ({0}, {n}):
        raise InputError(place, "has too many or too few devices", f"give {n} twice, or none")
    bound = None if entry["bound"] is None else rational(entry["bound"], f"{place}.bound")
    if plan == _NONE:
        return Answer(None, Times(), bound, str(entry["proof"]))
    return Answer(plan, times(request, plan), bound, str(entry["proof"]))


def _faults(request: Request, entry: Mapping[str, Any], answer: Answer) -> Iterator[str]:
    """Yield broken rules, and claims that do not hold."""
    if answer.plan is not None:
        yield from violations(request, answer.plan)
        if answer.bound is None or (answer.times.token or 0) < answer.bound:
            yield "the plan refutes the bound"
    true = _entry(request, answer)
    for key in ("status", *Times._fields):
        if entry[key] != true[key]:
            yield f"{key} is {true[key]}, not {entry[key]}"
    proves = (refuted(request) or ("",))[0]
    if answer.bound is not None:
        proves = "path" if (shortest(request, 1) or 0) >= answer.bound else ""
    if answer.proof not in ("solver", proves or "solver"):
        yield f"the proof {answer.proof!r} does not prove the bound"
