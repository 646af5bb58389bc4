"""Plans of most tokens per second, what is proven of them, and their file."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from optpart.applications.serving import helix
from optpart.applications.serving.bound import area_bound
from optpart.applications.serving.exact import is_small, solve
from optpart.applications.serving.plan import Interval, Plan, route, violations
from optpart.applications.serving.problem import Serving, read
from optpart.applications.serving.search import improved, in_blocks
from optpart.applications.serving.sweep import OutOfTimeError, Sweep
from optpart.base.clock import now
from optpart.base.errors import ArgumentError, ContradictionError, FaultsOf, InputError
from optpart.base.files import Kind, of_format, read_text, write_text
from optpart.interop.formats.json import keys, named, parse_json, pretty, sequence, version
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
#: What a file says, and a check does not need.
_SAID = {"problem", "gap", "seconds"}


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
        if not self.throughput:
            return Status.UNKNOWN if self.bound else Status.INFEASIBLE
        return Status.OPTIMAL if self.throughput == self.bound else Status.FEASIBLE

    @property
    def gap(self) -> float | None:
        """The share of the bound that the plan misses, rounded up: the gap of times per token."""
        return gap(1 / self.throughput, 1 / self.bound) if self.throughput else None


def opened(cluster: Serving | str | Path, model: str | Path | None) -> Serving:
    """Read a cluster in TOML, or one of Helix with the profiles of a model, unless it is read."""
    if isinstance(cluster, Serving):
        return cluster
    if (Path(cluster).suffix == ".ini") != (model is not None):
        remedy = "name the folder of a model with a cluster of Helix (.ini), and only then"
        raise ArgumentError("model", f"does not fit {Path(cluster).name}", remedy)
    return read(cluster) if model is None else helix.read(cluster, model)


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
    solved = solve(serving, value, bound, start + seconds) if small and value < bound else None
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


def write(served: Served, path: str | Path) -> None:
    """Write a plan, completely or not at all."""
    write_text(path, pretty(document(served)), KIND)


def document(served: Served) -> dict[str, Any]:
    """Return the document of a plan; numbers are exact, as strings."""
    serving, plan = served.serving, served.plan
    names = serving.names
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

    A bound by ``area`` or ``sweep`` is proven again, which may take as long as it took. A file that
    cannot be read, or names unknown machines, is an :class:`InputError`.
    """
    with FaultsOf(path):
        given = parse_json(read_text(path))
        version(given, FORMAT)
        known = {*document(Served(serving, Plan((), {}), Fraction(1), "area", 0.0))}
        return list(_faults(serving, keys(given, known, "", needed=sorted(known - _SAID))))


def _faults(serving: Serving, given: Any) -> Iterator[str]:
    number = {name: i for i, name in enumerate(serving.names)}
    layers = keys(given["layers"], set(serving.names[:-2]), "layers")
    intervals: list[Interval] = [None] * serving.source
    for name, held in layers.items():
        if held is not None:
            if [type(end) for end in sequence(held, f"layers.{name}")] != [int, int]:
                raise InputError(f"layers.{name}", "is no range", "give first and end, or null")
            intervals[number[name]] = held[0], held[1]
    flows = {}
    for i, entry in enumerate(sequence(given["flows"], "flows")):
        if len(sequence(entry, f"flows[{i}]")) != 3:
            raise InputError(f"flows[{i}]", "is no flow", "give two names and tokens/s")
        u, v = (named(name, number, f"flows[{i}]", "there is no machine") for name in entry[:2])
        flows[u, v] = rational(entry[2], f"flows[{i}]")
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
    elif given["proof"] == "sweep":
        above = int(bound * serving.unit) + 1
        if Sweep(serving, above, math.inf).passes():
            yield f"bound {bound} is not proven by the sweep"
    if given["status"] == "OPTIMAL" and value != bound:
        yield "status is OPTIMAL, but throughput and bound differ"
