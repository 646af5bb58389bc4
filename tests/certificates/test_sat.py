"""The SAT solver in its process: its answers, and that it keeps the numbers of given clauses."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

from optpart.base.errors import InputError
from optpart.certificates import sat
from optpart.certificates.check import Formula, check_proof
from optpart.certificates.sat import Refutation, refute
from optpart.certificates.trim import trim


def accepted(variables: int, clauses: list[list[int]], refutation: Refutation) -> int:
    """Return the number of steps of the trimmed proof, which the checker accepts."""
    lines = trim(clauses, refutation.proof).text().splitlines()
    return check_proof(Formula(clauses), variables, lines)


def pigeons(holes: int) -> tuple[int, list[list[int]]]:
    """Return the pigeonhole formula: one pigeon more than holes; no solution, long proofs."""

    def inside(pigeon: int, hole: int) -> int:
        return pigeon * holes + hole + 1

    clauses = [[inside(p, h) for h in range(holes)] for p in range(holes + 1)]
    clauses += [
        [-inside(p, h), -inside(q, h)]
        for h in range(holes)
        for p in range(holes + 1)
        for q in range(p)
    ]
    return holes * (holes + 1), clauses


def random_clauses(seed: int) -> tuple[int, list[list[int]]]:
    """Draw clauses of one to three literals, with some tautologies and duplicate literals."""
    rng = np.random.default_rng(seed)
    variables = int(rng.integers(3, 12))
    return variables, [
        (rng.integers(1, variables + 1, size) * rng.choice([-1, 1], size)).tolist()
        for size in rng.choice([1, 2, 3, 3, 3, 3, 3], int(rng.integers(3, 5 * variables)))
    ]


def satisfiable(variables: int, clauses: list[list[int]]) -> bool:
    values = np.arange(2**variables)[:, None] >> np.arange(variables) & 1
    holds = np.ones(len(values), dtype=bool)
    for clause in clauses:
        holds &= np.any([values[:, abs(x) - 1] == (x > 0) for x in clause], axis=0)
    return bool(holds.any())


class TestAnswer:
    def test_a_model_gives_every_variable_a_value_and_satisfies_every_clause(self) -> None:
        clauses = [[1, 2], [-1, 3], [-3, -2], [5, 5], [4, -4]]
        answer = refute(6, clauses, 60)
        assert answer.status == "sat"
        assert [abs(x) for x in answer.model] == [1, 2, 3, 4, 5, 6]
        assert all(set(clause) & set(answer.model) for clause in clauses)

    def test_a_proof_is_of_the_clauses_given(self) -> None:
        variables, clauses = pigeons(5)
        answer = refute(variables, clauses, 60)
        assert answer.status == "unsat"
        assert accepted(variables, clauses, answer) > 1

    def test_nothing_is_satisfiable(self) -> None:
        assert refute(0, [], 60).status == "sat"

    def test_an_empty_clause_is_its_own_proof(self) -> None:
        clauses = [[1], [], [-1]]
        answer = refute(1, clauses, 60)
        assert answer.proof == b"4 0 2 0\n"
        assert accepted(1, clauses, answer) == 1

    @pytest.mark.parametrize(
        "clauses",
        [
            [[1], [-1]],
            [[1, 1], [-1, -1, -1]],
            [[2, -2], [1, 2], [-2], [-1, 2]],
            [[1], [1], [-1, 2], [-2, 3], [-3, -1]],
        ],
        ids=["units", "repeated literals", "a tautology in front", "one after the other"],
    )
    def test_units_keep_the_numbers_of_the_clauses(self, clauses: list[list[int]]) -> None:
        answer = refute(3, clauses, 60)
        assert answer.status == "unsat"
        accepted(3, clauses, answer)

    def test_random_clauses_against_all_assignments(self) -> None:
        seen = set()
        for seed in range(13):
            variables, clauses = random_clauses(seed)
            answer = refute(variables, clauses, 60)
            assert (answer.status == "sat") == satisfiable(variables, clauses)
            if answer.status == "unsat":
                accepted(variables, clauses, answer)
            else:
                assert all(set(clause) & set(answer.model) for clause in clauses)
            seen.add(answer.status)
        assert seen == {"sat", "unsat"}

    def test_the_same_clauses_give_the_same_proof(self) -> None:
        variables, clauses = pigeons(5)
        assert refute(variables, clauses, 60).proof == refute(variables, clauses, 60).proof


class TestLimits:
    def test_no_answer_in_time_is_unknown(self) -> None:
        answer = refute(*pigeons(12), 0.5)
        assert (answer.status, answer.reason) == ("unknown", "no answer within 0.5 s")

    def test_a_solver_that_dies_gives_no_answer(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sat, "_flat", lambda *_: sat.array("b", [7]))  # half a number
        answer = refute(1, [[1]], 60)
        assert (answer.status, answer.reason) == ("unknown", "the SAT solver died (exit 1)")

    def test_without_the_solver_the_error_says_what_to_install(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sat, "find_spec", lambda _: None)
        assert importlib.util.find_spec("pysat") is not None
        with pytest.raises(InputError, match=r"pip install optpart\[certify\]"):
            refute(1, [[1]], 60)
