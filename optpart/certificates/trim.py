"""Proofs of unsatisfiability, made strict and short.

A *strict* LRAT step names, in the order of propagation, the clauses that refute the negation of its
clause: each but the last has exactly one literal that is not yet false, and the last has none.
Solvers are laxer: some of their hints are redundant, and most of their steps are not needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

#: A derived clause: id, literals, hints.
Step = tuple[int, tuple[int, ...], tuple[int, ...]]


#: A tautology, in a variable that no clause has.
_TRUE = (2**62, -(2**62))


class ProofError(ValueError):
    """A proof that does not prove its claim."""


@dataclass(frozen=True)
class Proof:
    """Strict steps that end in the empty clause.

    Attributes
    ----------
    given : int
        Number of refuted clauses. Their ids are ``1 … given``; those of the steps follow.
    steps : list of Step
        Ids without gaps. Every step but the last is a hint of a later one.
    """

    given: int
    steps: list[Step]

    def lines(self) -> Iterable[str]:
        """Yield the lines of LRAT; every derived clause is deleted after its last use."""
        last = {hint: step for step, _, hints in self.steps for hint in hints if hint > self.given}
        dead: dict[int, list[int]] = {}
        for hint, step in last.items():
            dead.setdefault(step, []).append(hint)
        for step, clause, hints in self.steps:
            yield " ".join(map(str, (step, *clause, 0, *hints, 0))) + "\n"
            if step in dead:
                yield " ".join(map(str, (step, "d", *sorted(dead[step]), 0))) + "\n"

    def text(self) -> bytes:
        """Return all lines as one text."""
        return "".join(self.lines()).encode()


def trim(clauses: Sequence[Sequence[int]], proof: bytes) -> Proof:
    """Check a proof of unsatisfiability and drop the steps that it does not need.

    Parameters
    ----------
    clauses : sequence of clauses
        Clause ``i`` has the id ``i + 1``.
    proof : bytes
        LRAT text of additions and deletions; hints may be redundant, and in any order. Deletions
        are ignored.

    Returns
    -------
    Proof
        Each of its steps was checked by reverse unit propagation along its hints only.

    Raises
    ------
    ProofError
        If the proof cannot be parsed, has no empty clause, or has a needed step that does not
        follow from its hints.

    Notes
    -----
    The check goes backwards from the empty clause, so it visits only needed steps (Heule, Hunt &
    Wetzler 2013, *Trimming while checking clausal proofs*). A step keeps only the hints on which
    its conflict depends.
    """
    claims = _Claims(clauses, proof)
    needed = {claims.contradiction()}
    kept: list[Step] = []
    for number in reversed(claims.numbers):
        if number not in needed:
            continue
        clause, hints = claims.step(number)
        # Ids ascend, so only earlier clauses may be used.
        used = _used(clause, [hint for hint in hints if 0 < hint < number], claims)
        if used is None:
            raise ProofError(f"step {number} does not follow from its hints")
        needed.update(used)
        kept.append((number, clause, tuple(used)))
    kept.reverse()
    place = {step[0]: len(clauses) + 1 + i for i, step in enumerate(kept)}
    return Proof(
        len(clauses),
        [
            (place[number], clause, tuple(place.get(hint, hint) for hint in hints))
            for number, clause, hints in kept
        ],
    )


class _Claims(dict[int, Sequence[int]]):
    """The given clauses and those that the proof claims, by id.

    Lines of the proof are parsed on demand, since most are never needed. An id without a clause
    gives a tautology, which never takes part in a conflict.
    """

    def __init__(self, clauses: Sequence[Sequence[int]], proof: bytes) -> None:
        super().__init__(enumerate(clauses, 1))
        self._lines: dict[int, bytes] = {}
        self._hints: dict[int, tuple[int, ...]] = {}
        before = len(clauses)
        for line in proof.splitlines():
            if b" d " in line:
                continue
            try:
                number = int(line.split(None, 1)[0])
            except (ValueError, IndexError):
                raise _not_lrat(line) from None
            if number <= before:
                raise ProofError(f"id {number} after id {before}")
            before = number
            self._lines[number] = line
        self.numbers = list(self._lines)

    def contradiction(self) -> int:
        """Return the id of the empty clause."""
        for number, line in self._lines.items():
            if line.split(None, 2)[1:2] == [b"0"]:
                return number
        raise ProofError("the proof does not derive the empty clause")

    def __missing__(self, number: int) -> Sequence[int]:
        if number not in self._lines:
            return _TRUE
        line = self._lines[number]
        try:
            literals = tuple(map(int, line.split()))
            end = literals.index(0, 1)
        except ValueError:
            raise _not_lrat(line) from None
        self[number], self._hints[number] = literals[1:end], literals[end + 1 : -1]
        return self[number]

    def step(self, number: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the clause and the hints of a step."""
        return tuple(self[number]), self._hints[number]


def _not_lrat(line: bytes) -> ProofError:
    return ProofError(f"not a line of LRAT: {line[:60]!r}")


def _used(clause: Sequence[int], hints: list[int], claims: _Claims) -> list[int] | None:
    """Return the hints on which the conflict depends, in the order of propagation.

    ``None`` if the hints lead to no conflict.
    """
    false = set(clause)
    reason: dict[int, int] = {}  # by literal, in the order in which they became false
    waiting = hints
    while waiting:
        unspent: list[int] = []
        for hint in waiting:
            free = [literal for literal in claims[hint] if literal not in false]
            if not free:
                return _rested_on(hint, reason, claims)
            if len(free) > 1 and len(set(free)) > 1:
                unspent.append(hint)
            elif -free[0] not in false:  # if it is true, the hint is redundant
                false.add(-free[0])
                reason[-free[0]] = hint
        if len(unspent) == len(waiting):
            return None
        waiting = unspent
    return None


def _rested_on(conflict: int, reason: dict[int, int], claims: _Claims) -> list[int]:
    needed = set(claims[conflict])
    used = [conflict]
    for literal, hint in reversed(reason.items()):
        if literal in needed:
            used.append(hint)
            needed.update(claims[hint])
    used.reverse()
    return used
