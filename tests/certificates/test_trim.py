"""Proofs made strict and short: what is kept, and that nothing unproven is accepted."""

from __future__ import annotations

import pytest
from pysat.solvers import Cadical195

from optpart.certificates.check import Formula, check_proof
from optpart.certificates.trim import Proof, ProofError, trim

#: No two of the four corners agree with 1 and 2 as they are.
SQUARE = [[1, 2], [-1, 2], [1, -2], [-1, -2]]

#: ``2`` from the first two, ``−2`` from the others.
PROOF = b"5 2 0 1 2 0\n6 -2 0 3 4 0\n7 0 5 6 0\n"


def strict(clauses: list[list[int]], proof: Proof) -> int:
    """Return the steps of a proof, all of which the checker accepts."""
    variables = max(abs(x) for clause in clauses for x in clause)
    return check_proof(Formula(clauses), variables, proof.text().splitlines())


class TestWhatIsKept:
    def test_a_proof_that_needs_everything_is_unchanged_except_for_deletions(self) -> None:
        proof = trim(SQUARE, PROOF)
        assert proof.text() == b"5 2 0 1 2 0\n6 -2 0 3 4 0\n7 0 5 6 0\n7 d 5 6 0\n"
        assert strict(SQUARE, proof) == 3

    def test_unneeded_steps_are_dropped_and_the_rest_is_numbered_without_gaps(self) -> None:
        wordy = b"8 1 2 0 1 0\n12 2 0 1 2 0\n20 -1 2 0 2 0\n30 -2 0 3 4 0\n31 0 12 30 0\n"
        assert trim(SQUARE, wordy) == trim(SQUARE, PROOF)

    def test_steps_after_the_empty_clause_are_dropped(self) -> None:
        assert trim(SQUARE, PROOF + b"8 1 0 1 0\n9 0 5 6 0\n") == trim(SQUARE, PROOF)

    def test_a_clause_is_deleted_after_the_step_that_uses_it_last(self) -> None:
        clauses = [[1], [-1, 2], [-2, 3], [-3]]
        proof = trim(clauses, b"5 2 0 1 2 0\n6 3 0 5 3 0\n7 0 6 4 0\n")
        assert proof.text() == b"5 2 0 1 2 0\n6 3 0 5 3 0\n6 d 5 0\n7 0 6 4 0\n7 d 6 0\n"
        assert strict(clauses, proof) == 3

    def test_deletions_of_the_solver_are_ignored(self) -> None:
        lines = PROOF.splitlines(keepends=True)
        assert trim(SQUARE, lines[0] + b"5 d 1 2 0\n" + b"".join(lines[1:])) == trim(SQUARE, PROOF)

    def test_trimming_again_changes_nothing(self) -> None:
        once = trim(SQUARE, PROOF)
        assert trim(SQUARE, once.text()) == once


class TestHints:
    @pytest.mark.parametrize(
        "hints",
        [b"1 2", b"4 1 2", b"1 1 2", b"1 2 3 4", b"1 99 2", b"1 7 2", b"-3 1 2"],
        ids=["as is", "useless", "twice", "beyond", "of nothing", "of later", "negative"],
    )
    def test_only_those_on_which_the_conflict_depends_remain(self, hints: bytes) -> None:
        proof = trim(SQUARE, PROOF.replace(b"0 1 2 0", b"0 " + hints + b" 0"))
        assert proof == trim(SQUARE, PROOF)

    def test_hints_in_another_order_are_sorted(self) -> None:
        clauses = [[1], [-1, 2], [-2, 3], [-3, 4], [-4]]
        proof = trim(clauses, b"6 0 5 3 2 1 4 0\n")
        assert strict(clauses, proof) == 1

    def test_a_redundant_hint_is_dropped(self) -> None:
        clauses = [[1], [1, 2], [-1, 3], [-3, -1]]
        proof = trim(clauses, b"5 0 1 2 3 4 0\n")
        assert proof.steps == [(5, (), (1, 3, 4))]

    def test_clauses_with_duplicate_literals(self) -> None:
        assert trim([[1, 1], [-1, -1]], b"3 0 1 2 0\n").steps == [(3, (), (1, 2))]


class TestRefused:
    @pytest.mark.parametrize(
        ("proof", "reason"),
        [
            (b"", "does not derive the empty clause"),
            (PROOF.replace(b"7 0 5 6 0\n", b""), "does not derive the empty clause"),
            (PROOF.replace(b"0 1 2 0", b"0 1 0"), "step 5 does not follow"),
            (PROOF.replace(b"0 1 2 0", b"0 3 2 0"), "step 5 does not follow"),
            (PROOF.replace(b"5 2 0", b"5 1 0"), "step 7 does not follow"),
            (PROOF.replace(b"7 0 5 6 0", b"7 0 6 7 0"), "step 7 does not follow"),
            (PROOF.replace(b"6 -2 0", b"5 -2 0"), "id 5 after id 5"),
            (PROOF.replace(b"5 2 0", b"3 2 0"), "id 3 after id 4"),
            (PROOF.replace(b"5 2 0", b"5 x 0"), "not a line of LRAT"),
            (PROOF.replace(b"5 2 0 1 2 0", b"5 2 1 2"), "not a line of LRAT"),
            (b"\n" + PROOF, "not a line of LRAT"),
        ],
    )
    def test_a_proof_that_proves_nothing(self, proof: bytes, reason: str) -> None:
        with pytest.raises(ProofError, match=reason):
            trim(SQUARE, proof)

    def test_no_proof_for_a_satisfiable_formula_is_accepted(self) -> None:
        """Without any one clause, a minimal unsatisfiable set has a solution."""
        for i in range(len(SQUARE)):
            clauses = SQUARE[:i] + SQUARE[i + 1 :]
            with Cadical195(bootstrap_with=clauses) as solver:
                assert solver.solve()
            with pytest.raises(ProofError):
                trim(clauses, PROOF)
