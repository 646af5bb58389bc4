"""Unsatisfiability with a proof: CaDiCaL, in a process of its own, writing LRAT.

Nothing here is trusted. The proof is a claim, which :mod:`optpart.certificates.trim` checks and
shortens and the checker checks again.
"""

from __future__ import annotations

import os
import sys
import time
from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from optpart.base.children.failures import record_failure
from optpart.base.children.scratch import Scratch
from optpart.base.children.worker import python
from optpart.base.errors import InputError

Status = Literal["unsat", "sat", "unknown"]

#: Largest proof, in bytes, that the solver may write.
_MAX_PROOF = 2**31


@dataclass(frozen=True)
class Refutation:
    """The solver's answer for a set of clauses.

    Attributes
    ----------
    status : {"unsat", "sat", "unknown"}
    model : tuple of int
        The true literal of every variable, if satisfiable.
    proof : bytes
        If unsatisfiable: LRAT text of additions only. Clause ``i`` of the given list has the id
        ``i + 1``; derived clauses have greater, ascending ids, possibly with gaps.
    reason : str
        The reason why the answer is unknown.
    seconds : float
    """

    status: Status
    model: tuple[int, ...] = ()
    proof: bytes = b""
    reason: str = ""
    seconds: float = 0.0


def refute(variables: int, clauses: Sequence[Sequence[int]], seconds: float) -> Refutation:
    """Find a model of the clauses, or a proof that there is none.

    Parameters
    ----------
    variables : int
        Literals are ``±1 … ±variables``.
    clauses : sequence of clauses
    seconds : float
        Wall-clock limit.

    Raises
    ------
    InputError
        If python-sat is not installed.

    Notes
    -----
    CaDiCaL 1.9.5 writes LRAT itself ([CaDiCaL] option ``lrat``), using only reverse unit
    propagation. It numbers given and derived clauses in one sequence, and starts to derive clauses
    as soon as it is given a unit. To keep the numbers of the given clauses, each unit ``x`` is
    given as ``x ∨ g`` with a fresh ``g``, and ``¬g`` comes last. Hints that name ``¬g`` are dropped
    afterwards, and ``x ∨ g`` is read as ``x``.
    """
    if find_spec("pysat") is None:
        raise InputError("", "python-sat is not installed", "pip install optpart[certify]")
    begin = time.perf_counter()
    for i, clause in enumerate(clauses):
        if not clause:  # the solver would not tell which clause it was
            return Refutation("unsat", proof=b"%d 0 %d 0\n" % (len(clauses) + 1, i + 1))
    with ExitStack() as stack:
        try:
            scratch = stack.enter_context(Scratch())
        except OSError as error:
            return Refutation("unknown", reason=_failed(f"could not be started ({error.strerror})"))
        place = scratch.folder
        (place / "cnf").write_bytes(_flat(variables, clauses).tobytes())
        failure = _run(scratch, seconds)
        took = time.perf_counter() - begin
        if failure:
            return Refutation("unknown", reason=failure, seconds=took)
        answer = array("q", (place / "answer").read_bytes())
        if answer[0]:
            return Refutation("sat", model=tuple(answer[1 : variables + 1]), seconds=took)
        with open(place / "proof", "rb") as stream:
            proof = b"".join(_additions(stream, len(clauses) + 1))
    return Refutation("unsat", proof=proof, seconds=time.perf_counter() - begin)


def _flat(variables: int, clauses: Sequence[Sequence[int]]) -> array[int]:
    """Return all clauses, each ended by 0, so that none fixes a literal before the last one."""
    guard = variables + 1
    flat = array("q")
    for clause in clauses:
        literals = dict.fromkeys(clause)
        if any(-x in literals for x in literals):  # a tautology, but it keeps its number
            literals = dict.fromkeys((clause[0], -guard))
        elif len(literals) == 1:
            literals[guard] = None
        flat.extend(literals)
        flat.append(0)
    flat.extend((-guard, 0))
    return flat


def _run(scratch: Scratch, seconds: float) -> str:
    """Run the process from ``cnf`` to ``answer`` and ``proof``; return its error."""
    scratch.start(python(__name__, str(scratch.folder)), seconds)
    code = scratch.wait()
    if code is None:
        return f"no answer within {seconds:g} s"
    if code:
        return _failed(f"died ({f'signal {-code}' if code < 0 else f'exit {code}'})")
    return ""


def _failed(why: str) -> str:
    """Record the failure of the process, and return it as a reason."""
    record_failure("the SAT solver", why)
    return f"the SAT solver {why}"


def _additions(lines: Iterable[bytes], guard: int) -> Iterator[bytes]:
    """Yield the lines of a proof without deletions and without hints that name the guard."""
    named = b" %d " % guard
    for line in lines:
        if b" d " in line:
            continue
        if named in line:
            clause, _, hints = line.partition(b" 0 ")
            line = clause + b" 0" + (b" " + hints).replace(named, b" ")
        yield line


def main() -> None:
    """Solve the problem in the folder that the first argument names."""
    from pysat.solvers import Cadical195, pysolvers

    with suppress(ImportError):
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (_MAX_PROOF, _MAX_PROOF))
    place = Path(sys.argv[1])
    flat = array("q", (place / "cnf").read_bytes()).tolist()
    solver = Cadical195()
    solver.configure({"lrat": 1, "binary": 0})
    solver.prfile = open(place / "proof", "w+b")  # noqa: SIM115  (the solver closes it)
    solver.prfp = pysolvers.cadical195_tracepr(solver.cadical, solver.prfile)
    clause: list[int] = []
    for literal in flat:
        if literal:
            clause.append(literal)
        else:
            solver.add_clause(clause)
            clause = []
    satisfiable = solver.solve()
    answer = array("q", [int(satisfiable), *(solver.get_model() or [])])
    solver.delete()
    (place / "answer").write_bytes(answer.tobytes())
    os._exit(0)
