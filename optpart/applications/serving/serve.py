"""Plans of most tokens per second, what is proven of them, and their file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from optpart.applications.serving.bound import area_bound
from optpart.applications.serving.exact import is_small, solve
from optpart.applications.serving.plan import Interval, Plan, route, violations
from optpart.applications.serving.problem import Serving
from optpart.applications.serving.search import improved, in_blocks
from optpart.applications.serving.sweep import OutOfTimeError, Sweep
from optpart.base.clock import now
from optpart.base.errors import ContradictionError, FaultsOf, InputError
from optpart.base.files import Kind, of_format, read_text, write_text
from optpart.interop.formats.json import is_whole, keys, parse_json, pretty, sequence, version
from optpart.problem.rational import rational
from optpart.solution.gap import gap
from optpart.solution.result import Status

FORMAT = "optpart-serving/1"
KIND = Kind("a serving plan", of_format(FORMAT))

#: The parts of the time by whose end blocks, sweeps and, before CP-SAT, the local search are done.
_BLOCKS, _SWEEP, _SEARCH = 0.4, 0.9, 0.92
#: What the first sweep, and every other one, gets of the remaining time.
_FIRST, _SHARE = 0.2, 0.4
#: Bisection ends where less than one in so many is open.
_CLOSE = 1000
#: The proofs of a bound; the last one is CP-SAT's, and not repeated by a check.
_PROOFS = ("area", "sweep", "solver")


@dataclass(frozen=True)
class Served:
    """A verified plan, and a proven bound.

    Attributes
    ----------
    bound : Fraction
        Tokens per second that no plan exceeds.
    proof : {"area", "sweep", "solver"}
        What proves it: :mod:`.bound`, :mod:`.sweep` or the model of :mod:`.exact`.
    """

    serving: Serving
    plan: Plan
    bound: Fraction
    proof: str
    seconds: float

    @property
    def throughput(self) -> Fraction:
        """Tokens per second."""
        return self.plan.through(self.serving.sink)

    @property
    def status(self) -> Status:
        """``INFEASIBLE`` if no token can pass, ``UNKNOWN`` if none does."""
        if self.bound == 0:
            return Status.INFEASIBLE
        if self.throughput == 0:
            return Status.UNKNOWN
        return Status.OPTIMAL if self.throughput == self.bound else Status.FEASIBLE

    @property
    def gap(self) -> float | None:
        """The share of the bound that the plan misses, rounded up: the gap of times per token."""
        return gap(1 / self.throughput, 1 / self.bound) if self.throughput else None


def serve(serving: Serving, seconds: float, seed: int = 0) -> Served:
    """Look for the plan of most tokens per second, and prove how far it is from the best."""
    start = now()
    bound, proof = area_bound(serving), "area"
    plan = in_blocks(serving, bound, start + _BLOCKS * seconds)
    swept = _swept(serving, plan.through(serving.sink), bound, start + _SWEEP * seconds)
    if swept < bound:
        bound, proof = swept, "sweep"
    small = is_small(serving)
    plan = improved(serving, plan, bound, start + (_SEARCH if small else 1) * seconds, seed)
    value = plan.through(serving.sink)
    if small and value < bound:
        solved = solve(serving, value, bound, start + seconds)
        if solved is not None:
            plan = max(plan, route(serving, solved[0]), key=lambda p: p.through(serving.sink))
            if solved[1] < bound:
                bound, proof = solved[1], "solver"
    broken = list(violations(serving, plan))
    if broken or plan.through(serving.sink) > bound:
        problem = broken[0] if broken else "passes more than the proven bound"
        raise ContradictionError(f"serve: the plan {problem}")
    return Served(serving, plan, bound, proof, now() - start)


def _swept(serving: Serving, value: Fraction, bound: Fraction, deadline: float) -> Fraction:
    """Return a bound that sweeps prove: first that of the plan, then by bisection."""
    low, high = (int(x * serving.unit) for x in (value, bound))
    aim, share = low + 1, _FIRST
    while (high - low) * _CLOSE > high and now() < deadline:
        try:
            passes = Sweep(serving, aim, now() + share * (deadline - now())).passes()
        except OutOfTimeError:
            passes = True
        if passes:
            low = aim
        else:
            high, bound = aim - 1, Fraction(aim - 1, serving.unit)
        aim, share = (low + high) // 2 + 1, _SHARE
    return bound


def _passes(serving: Serving, bound: Fraction) -> bool:
    """Sweep again above a bound, for as long as it takes."""
    return Sweep(serving, int(bound * serving.unit) + 1, float("inf")).passes()


def write(served: Served, path: str | Path) -> None:
    """Write a plan, completely or not at all."""
    write_text(path, pretty(document(served)), KIND)


def document(served: Served) -> dict[str, Any]:
    """Return the document of a plan; numbers are exact, as strings."""
    serving, plan = served.serving, served.plan
    names = [*(machine.name for machine in serving.machines), "source", "sink"]
    return {
        "format": FORMAT,
        "problem": serving.name,
        "status": str(served.status),
        "throughput": str(served.throughput),
        "bound": str(served.bound),
        "proof": served.proof,
        "gap": served.gap,
        "seconds": round(served.seconds, 6),
        "layers": dict(zip(names, plan.intervals, strict=False)),
        "flows": [[names[u], names[v], str(flow)] for (u, v), flow in plan.flows.items()],
    }


def faults(serving: Serving, path: str | Path) -> list[str]:
    """Return what is wrong with a plan file: broken rules, and claims that do not hold.

    A bound by ``area`` or ``sweep`` is proven again, which may take as long as it took.

    Raises
    ------
    InputError
        If the file cannot be read, or names unknown machines.
    """
    with FaultsOf(path):
        given = parse_json(read_text(path))
        version(given, FORMAT)
        known = {*document(Served(serving, Plan((), {}), Fraction(1), "area", 0.0))}
        entries = keys(given, known, "", needed=("layers", "flows", "throughput", "bound", "proof"))
        return list(_faults(serving, entries))


def _faults(serving: Serving, given: Any) -> Iterator[str]:
    names = [*(machine.name for machine in serving.machines), "source", "sink"]
    number = {name: i for i, name in enumerate(names)}
    keys(given["layers"], set(names[:-2]), "layers")
    intervals: list[Interval] = []
    for name in names[:-2]:
        held = given["layers"].get(name)
        if held is not None:
            ends = sequence(held, f"layers.{name}")
            if len(ends) != 2 or not all(is_whole(end, 0) for end in ends):
                raise InputError(f"layers.{name}", f"is {held!r}", "give first and end, or null")
            held = ends[0], ends[1]
        intervals.append(held)
    flows = {}
    for i, entry in enumerate(sequence(given["flows"], "flows")):
        row = sequence(entry, f"flows[{i}]")
        if len(row) != 3 or row[0] not in names or row[1] not in names:
            raise InputError(f"flows[{i}]", f"is {row!r}", "give two names and a flow")
        flows[number[row[0]], number[row[1]]] = rational(row[2], f"flows[{i}]")
    plan = Plan(tuple(intervals), flows)
    yield from violations(serving, plan)
    value, bound = (rational(given[key], key) for key in ("throughput", "bound"))
    if plan.through(serving.sink) != value:
        yield f"throughput is {plan.through(serving.sink)}, not {value}"
    if value > bound:
        yield f"bound {bound} is below the throughput"
    elif given["proof"] not in _PROOFS:
        yield f"proof {given['proof']!r} is unknown"
    elif given["proof"] == "area" and area_bound(serving) > bound:
        yield f"bound {bound} is not proven by the area"
    elif given["proof"] == "sweep" and _passes(serving, bound):
        yield f"bound {bound} is not proven by the sweep"
    if given.get("status") == "OPTIMAL" and value != bound:
        yield "status is OPTIMAL, but throughput and bound differ"
