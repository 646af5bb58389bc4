"""The prover for :mod:`optpart.certify.precedence`, which finds the lemmas and the proof."""

from __future__ import annotations

import hashlib
import json
import lzma
import os
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
from scipy.optimize import linprog

from optpart.certify.certify import HOLDS
from optpart.certify.check import Allowance, Problem, RejectedError, read_json
from optpart.certify.precedence import (
    FORMAT,
    TRUE,
    Clause,
    Consequences,
    Precedence,
    check,
    clauses,
)
from optpart.certify.sat import refute
from optpart.certify.trim import Proof, trim
from optpart.errors import ArgumentError, InputError
from optpart.files import ANY, write_bytes
from optpart.folders import new_folder

#: Multipliers of the devices are rounded to multiples of ``1 / _PARTS``.
_PARTS = 1000

#: Number of lemmas to derive from one schedule that takes too long.
_REASONS = 3


@dataclass(frozen=True)
class Shorter:
    """A schedule shorter than the makespan: the device of each vertex, and an order of all."""

    placement: list[int]
    order: list[int]


@dataclass(frozen=True)
class Second:
    """A refutation of all schedules shorter than a makespan.

    Attributes
    ----------
    weights : list of list of int
    lemmas : list of clauses
    proof : Proof
        Of the formula's clauses and the lemmas.
    variables : int
    seconds : dict
        Time of each part of the work.
    """

    weights: list[list[int]]
    lemmas: list[Clause]
    proof: Proof
    variables: int
    seconds: dict[str, float]


def prove(problem: Problem, makespan: Fraction, seconds: float) -> Second | Shorter | None:
    """Search for a refutation of all schedules shorter than a makespan.

    Returns
    -------
    Second
    Shorter
        If there is such a schedule.
    ``None``
        If time ran out.
    """
    begin = time.perf_counter()
    weights = _weights(problem)
    code = Precedence(problem, makespan, weights)
    found = find_lemmas(code, seconds)
    if found is None or isinstance(found, Shorter):
        return found
    middle = time.perf_counter()
    base = list(clauses(code))
    refutation = refute(code.variables, base + found, max(1.0, seconds - (middle - begin)))
    if refutation.status != "unsat":
        return None
    proof = trim(base + found, refutation.proof)
    lemmas, proof = _without_idle(len(base), found, proof)
    times = {"lemmas": middle - begin, "proof": time.perf_counter() - middle}
    return Second(weights, lemmas, proof, code.variables, times)


def find_lemmas(code: Precedence, seconds: float) -> list[Clause] | Shorter | None:
    """Find lemmas: clauses that every shorter schedule satisfies, and that together leave none.

    Every solution of the formula and the lemmas so far is a placement and an order. If it takes too
    long, a few of its literals are the reason, and their negation is the next lemma.
    """
    from pysat.solvers import Cadical195

    deadline = time.monotonic() + seconds
    rng = np.random.default_rng(0)
    found: list[Clause] = []
    anyway = Consequences(code, [])
    if anyway.contradict():
        return [[]]
    with Cadical195(bootstrap_with=list(clauses(code))) as solver:
        while solver.solve():
            if time.monotonic() > deadline:
                return None
            model = set(solver.get_model())
            said = _said(code, model)
            if not Consequences(code, said, anyway).contradict():
                return _schedule(code, model)
            for blamed in sorted({_blamed(said, anyway, rng) for _ in range(_REASONS)}):
                lemma = [-literal for literal in blamed]
                found.append(lemma)
                solver.add_clause(lemma)
    return found


def _devices(code: Precedence, model: set[int]) -> list[int]:
    """Return the device of each unit in a solution."""
    placed = dict(code.placing[x] for x in model & code.placing.keys())
    return [placed[unit] for unit in range(len(code.members))]


def _said(code: Precedence, model: set[int]) -> list[int]:
    """Return the placement of a solution, and the order of vertices that share a device."""
    device, unit_of = _devices(code, model), code.problem.unit
    orders = [
        variable if variable in model else -variable
        for variable, (a, b) in code.ordering.items()
        if device[unit_of[a]] == device[unit_of[b]]
    ]
    return [x for x in code.placing if x in model] + orders


def _blamed(
    literals: Sequence[int], known: Consequences, rng: np.random.Generator
) -> tuple[int, ...]:
    """Return a minimal contradictory part of some contradictory literals.

    It has few literals about order, since placements alone contradict more schedules. Each round
    finds, by bisection, the first remaining literal that completes a contradiction.
    """
    code = known.code
    placing = [x for x in literals if x in code.placing]
    ordering = [x for x in literals if x not in code.placing]
    rest = rng.permutation(placing).tolist() + rng.permutation(ordering).tolist()
    kept: list[int] = []
    while True:
        low, high = 1, len(rest)
        while low < high:
            middle = (low + high) // 2
            if Consequences(code, rest[:middle], known).contradict():
                high = middle
            else:
                low = middle + 1
        kept.append(rest[low - 1])
        known = Consequences(code, kept[-1:], known)
        if known.contradict():
            break
        rest = rest[: low - 1]
    return tuple(sorted(kept))


def _schedule(code: Precedence, model: set[int]) -> Shorter:
    device, n = _devices(code, model), len(code.run)
    rank = [0] * n
    for a in range(n):
        for b in range(a + 1, n):
            literal = code.before(a, b)
            first = literal == TRUE if abs(literal) == TRUE else literal in model
            rank[b if first else a] += 1
    return Shorter(
        [device[unit] for unit in code.problem.unit], sorted(range(n), key=rank.__getitem__)
    )


def _weights(problem: Problem) -> list[list[int]]:
    """Propose multipliers of the devices: those that prove most if work can be split at will."""
    k = len(problem.devices)
    members: list[list[int]] = [[] for _ in range(problem.units)]
    for v, unit in enumerate(problem.unit):
        members[unit].append(v)
    columns: list[tuple[int, int, float]] = []
    for unit, vertices in enumerate(members):
        for d in range(k):
            times = [time for v in vertices if (time := problem.run[v][d]) is not None]
            if len(times) == len(vertices):
                columns.append((unit, d, float(sum(times))))
    size = len(columns) + 1
    load, once = np.zeros((k, size)), np.zeros((problem.units, size))
    for i, (unit, d, time_there) in enumerate(columns):
        load[d, i], once[unit, i] = time_there, 1
    load[:, -1] = -1
    cost = np.zeros(size)
    cost[-1] = 1
    solved = linprog(cost, A_ub=load, b_ub=np.zeros(k), A_eq=once, b_eq=np.ones(problem.units))
    if solved.status != 0:
        return []
    weight = np.round(-solved.ineqlin.marginals * _PARTS).astype(int)
    return [weight.tolist()] if weight.any() else []


def _without_idle(base: int, lemmas: list[Clause], proof: Proof) -> tuple[list[Clause], Proof]:
    """Remove the lemmas that the proof does not use."""
    used = sorted({h for _, _, hints in proof.steps for h in hints if base < h <= proof.given})
    place = {hint: base + 1 + i for i, hint in enumerate(used)}
    shift = proof.given - base - len(used)

    def renamed(hint: int) -> int:
        return hint - shift if hint > proof.given else place.get(hint, hint)

    steps = [(n - shift, clause, tuple(map(renamed, hints))) for n, clause, hints in proof.steps]
    return [lemmas[hint - base - 1] for hint in used], Proof(base + len(used), steps)


def add_second(directory: str | Path, seconds: float) -> Second | None:
    """Add a second refutation to a certificate: ``precedence.json`` and ``precedence.lrat.xz``.

    Returns
    -------
    Second or None
        ``None`` if time ran out.

    Raises
    ------
    InputError
        If the certificate is wrong: there is a shorter schedule.
    """
    place = Path(directory)
    content = (place / "instance.json").read_bytes()
    claim = json.loads((place / "certificate.json").read_bytes())["makespan"]
    # The search has all the steps that its time limit permits.
    problem = Problem(read_json(content, "instance.json"), Allowance(2**60))
    try:
        second = prove(problem, Fraction(claim), seconds)
    except RejectedError as error:
        raise ArgumentError(
            "second", f"not covered ({error})", "certify without it", str(place)
        ) from None
    if isinstance(second, Shorter):
        raise InputError("makespan", f"{claim} is not optimal", "certify it again", str(place))
    if second is None:
        return None
    record = {
        "format": FORMAT,
        "instance_sha256": hashlib.sha256(content).hexdigest(),
        "makespan": claim,
        "weights": second.weights,
        "lemmas": second.lemmas,
    }
    with new_folder(place, HOLDS) as draft:
        for name in os.listdir(place):
            shutil.copyfile(place / name, draft / name)
        write_bytes(draft / "precedence.lrat.xz", lzma.compress(second.proof.text()), ANY)
        write_bytes(draft / "precedence.json", json.dumps(record).encode() + b"\n", ANY)
        check(str(draft))
    return second
