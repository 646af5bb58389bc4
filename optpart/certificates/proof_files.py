"""The proof of a certificate in the formats of other checkers.

A proof of clauses becomes a formula in DIMACS and a proof in LRAT; a proof that adds up linear
constraints, or goes from part to part, becomes a formula in OPB and a proof for VeriPB. In both,
the formula says what every schedule shorter than the claim would satisfy, and the proof that
nothing does.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

from optpart.base.errors import InputError
from optpart.base.files import ANY, write_bytes
from optpart.base.folders import new_folder
from optpart.certificates import assignment_proof, check
from optpart.certificates.check import (
    MAX_PACKED,
    Allowance,
    Encoding,
    Formula,
    Problem,
    Windows,
    clauses,
    number,
    read_document,
    read_file,
    room,
    unpacked_lines,
)
from optpart.certificates.cutting_planes import Row, TooLargeError, text
from optpart.certificates.path_rows import PathProof
from optpart.certificates.series_proof import refutation

#: What the manifest of a folder with these files says.
HOLDS = "a proof in the formats of other checkers"


def write(certificate: str | Path, target: str | Path) -> list[str]:
    """Write the proof of a certificate for other checkers.

    Parameters
    ----------
    certificate : path
        The folder of an accepted certificate of a makespan or a bound.
    target : path
        The folder to write.

    Returns
    -------
    list of str
        The names of the files: ``formula.cnf`` and ``proof.lrat`` for tier ``lrat``,
        ``formula.opb`` and ``proof.pbp`` for the others.

    Raises
    ------
    InputError
        If the proof is about times by tier ``probing``, if it would be too large or needs more than
        rows say (tier ``series``), or if the folder cannot be written.
    check.RejectedError
        If the certificate is not accepted.
    """
    folder = str(certificate)
    check.check(folder)
    windows, tier, record = _claim(folder)
    if tier == "lrat":
        files = _clauses(windows, record, folder)
    elif tier == "path":
        files = _paths(windows)
    elif tier in ("load", "one-machine"):
        files = _sums(windows, tier, record)
    elif tier == "series":
        files = _series(windows, record, folder)
    else:
        files = _assignments(windows, record, folder)
    with new_folder(target, HOLDS) as draft:
        for name, content in files.items():
            write_bytes(draft / name, content, ANY)
    return [*files]


def _claim(folder: str) -> tuple[Windows, str, dict[str, Any]]:
    """Return the horizon and windows of an accepted certificate, its tier and its record."""
    allowance = Allowance()
    _, certificate = read_document(folder, "certificate.json", allowance)
    _, instance = read_document(folder, "instance.json", allowance)
    claim = number(certificate["bound" if "bound" in certificate else "makespan"])
    if not claim:
        raise InputError(folder, "claims nothing that needs a proof", "export another one")
    problem = Problem(instance, allowance)
    windows = Windows(problem, number(certificate["ticks_per_unit"]), claim)
    return windows, certificate["tier"], certificate["record"]


def _clauses(windows: Windows, record: dict[str, Any], folder: str) -> dict[str, bytes]:
    """Return the formula of ``order/1`` with the meaning of its variables, and its proof."""
    code = Encoding(windows, record)
    formula = Formula(clauses(code), code.allowance)
    said = [
        f"c no schedule ends by tick {windows.horizon}; docs/certificates.md explains the clauses",
        "c place U D X: unit U is on device D if X",
        "c start V A B X: vertex V starts between the ticks A and B, at T or later if X+T-A-1",
        "c end V A B X: likewise of its end",
    ]
    for unit, devices in enumerate(windows.possible):
        if len(devices) > 1:
            said += [f"c place {unit} {d} {code.place(unit, d)}" for d in devices]
    for what, moments in (("start", code.start), ("end", code.end)):
        said += [f"c {what} {v} {m.low} {m.high} {m.first}" for v, m in enumerate(moments)]
    said.append(f"p cnf {code.variables} {len(formula)}")
    said += [" ".join(map(str, (*formula.clause(i), 0))) for i in range(1, len(formula) + 1)]
    content = read_file(f"{folder}/proof.lrat.xz", MAX_PACKED, code.allowance)
    lines = list(unpacked_lines(content, code.allowance))
    return {"formula.cnf": _text(said), "proof.lrat": b"\n".join([*lines, b""])}


def _sums(windows: Windows, tier: str, record: dict[str, Any]) -> dict[str, bytes]:
    """Return a formula of loads and needs, and the sum of its rows that contradicts itself."""
    name: dict[tuple[int, int], int] = {}
    for unit, devices in enumerate(windows.possible):
        for d in devices:
            name[unit, d] = len(name) + 1
    rows: list[Row] = [({name[u, d]: 1 for d in on}, 1) for u, on in enumerate(windows.possible)]
    limits = (_limits if tier == "load" else _one_machine)(windows, record)
    weight = dict.fromkeys(name, Fraction(0))
    for amount, _, price in limits:
        for at, x in amount.items():
            weight[at] += price * x
    factors = [min(weight[u, d] for d in on) for u, on in enumerate(windows.possible)]
    for amount, most, price in limits:
        scale = math.lcm(most.denominator, *(x.denominator for x in amount.values()))
        rows.append(({name[at]: -int(x * scale) for at, x in amount.items()}, -int(most * scale)))
        factors.append(price / scale)
    said = [f"place {u} {d} x{x}" for (u, d), x in name.items()]
    proof = _pbp(len(rows), [f"pol {_total(rows, factors)}"])
    return {"formula.opb": _opb(windows, said, rows), "proof.pbp": proof}


def _paths(windows: Windows) -> dict[str, bytes]:
    """Return the clauses that the longest paths need, and the sums from which they follow."""
    proof = PathProof(windows)
    said = [f"{what} {i} {j} x{x}" for (what, i, j), x in proof.variables.items()]
    formula = _opb(windows, said, proof.rows)
    lines = [f"pol {each}" for each in proof.sums]
    return {"formula.opb": formula, "proof.pbp": _pbp(len(proof.rows), lines)}


def _assignments(windows: Windows, record: dict[str, Any], folder: str) -> dict[str, bytes]:
    """Return places as rows, and a proof case by case."""
    remedy = "export the certificate of another instance"
    try:
        proof = assignment_proof.refutation(windows, record["claims"])
    except TooLargeError as error:
        raise InputError(folder, f"the proof would be too large: {error}", remedy) from None
    except assignment_proof.UnlikeAssignmentsError:
        problem = (
            "a proof of tier probing about more than places has no form that other checkers read"
        )
        raise InputError(folder, problem, remedy) from None
    script = proof.script
    formula = _opb(windows, proof.said, script.rows)
    return {"formula.opb": formula, "proof.pbp": _pbp(len(script.rows), script.lines)}


def _series(windows: Windows, record: dict[str, Any], folder: str) -> dict[str, bytes]:
    """Return places, starts and orders as rows, and a proof from part to part."""
    try:
        proof = refutation(windows, record)
    except TooLargeError as error:
        problem = f"the proof would be too large: {error}"
        raise InputError(folder, problem, "export the certificate of a smaller instance") from None
    if proof is None:
        remedy = "export the certificate of another instance"
        raise InputError(folder, "its proof needs more than the rows of parts say", remedy)
    script = proof.rows.script
    formula = _opb(windows, proof.rows.said, script.rows)
    return {"formula.opb": formula, "proof.pbp": _pbp(len(script.rows), script.lines)}


#: What units on devices take of something, how much of it there is, and the row's multiplier.
Limit = tuple[dict[tuple[int, int], Fraction], Fraction, Fraction]


def _limits(windows: Windows, record: dict[str, Any]) -> list[Limit]:
    """Return the load of each device and its memory, with the multipliers of the record."""
    problem, chosen = windows.problem, set(record["vertices"])
    limits: list[Limit] = []
    for d, capacity in enumerate(problem.capacity):
        there = [u for u, on in enumerate(windows.possible) if d in on]
        if y := number(record["load"][d]):
            load = {
                (u, d): Fraction(sum(windows.time(v, d) for v in windows.members[u] if v in chosen))
                for u in there
            }
            limits.append((load, Fraction(room(windows, chosen, d)), y))
        if (mu := number(record["memory"][d])) and capacity is not None:
            needs = {(u, d): problem.need[u] for u in there}
            limits.append((needs, Fraction(capacity), mu))
    return limits


def _one_machine(windows: Windows, record: dict[str, Any]) -> list[Limit]:
    """Return the vertices that take too long between their least head and their least tail."""
    d, listed = record["device"], record["vertices"]
    head, tail = ({v: side[v][d] for v in listed} for side in (windows.head, windows.tail))
    for least, last in product(sorted({*head.values()}), sorted({*tail.values()})):
        jobs = [v for v in listed if head[v] >= least and tail[v] >= last]
        if least + sum(windows.time(v, d) for v in jobs) + last > windows.horizon:
            load: dict[tuple[int, int], Fraction] = {}
            for v in jobs:
                at = windows.unit[v], d
                load[at] = load.get(at, Fraction(0)) + windows.time(v, d)
            return [(load, Fraction(windows.horizon - least - last), Fraction(1))]
    raise AssertionError("the judge accepts no other record")


def _opb(windows: Windows, said: list[str], rows: list[Row]) -> bytes:
    """Write rows, and what each variable says in a comment."""
    lines = [
        f"* #variable= {len(said)} #constraint= {len(rows)}",
        f"* no schedule ends by tick {windows.horizon}; docs/certificates.md explains the rows",
        *(f"* {each}" for each in said),
    ]
    return _text([*lines, *map(text, rows)])


def _total(rows: list[Row], factors: list[Fraction]) -> str:
    """Add the rows up, and what each variable lacks to cancel: the sum says that 0 is positive."""
    scale = math.lcm(*(factor.denominator for factor in factors))
    whole = [int(factor * scale) for factor in factors]
    common = math.gcd(*whole)
    whole = [factor // common for factor in whole]
    left: dict[int, int] = {}
    steps: list[tuple[object, int]] = []
    for i, ((row, _), factor) in enumerate(zip(rows, whole, strict=True), 1):
        if factor:
            steps.append((i, factor))
            for x, a in row.items():
                left[x] = left.get(x, 0) + factor * a
    steps += [(f"x{x}", -a) for x, a in left.items() if a]
    words = [f"{what} {factor} *" + " +" * (i > 0) for i, (what, factor) in enumerate(steps)]
    return " ".join(words)


def _pbp(rows: int, lines: list[str]) -> bytes:
    """Write a proof whose last line is the contradiction."""
    return _text([
        "pseudo-Boolean proof version 2.0",
        f"f {rows}",
        *lines,
        "output NONE",
        f"conclusion UNSAT : {rows + len(lines)}",
        "end pseudo-Boolean proof",
    ])  # fmt: skip


def _text(lines: Iterable[str]) -> bytes:
    return ("\n".join(lines) + "\n").encode("ascii")
