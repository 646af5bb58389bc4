"""What multipliers prove holds whatever they are; the solver only proposes good ones."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from optpart.lower_bounds import proof
from optpart.lower_bounds.proof import Proof, Rows, minimise


def program(
    rows: list[tuple[list[int], int, bool]], columns: int
) -> tuple[Rows, NDArray[np.int64], NDArray[np.float64]]:
    """Rows of coefficients, right-hand side, and whether they are equations; all columns to 1."""
    built = Rows()
    for coefficients, right, equal in rows:
        built.add(np.array([right]), (0, np.arange(columns), np.array(coefficients)), equal=equal)
    return built, np.ones(columns, dtype=np.int64), np.ones(columns)


def proven(rows: list[tuple[list[int], int, bool]], columns: int) -> Proof:
    found = minimise(*program(rows, columns), columns - 1, 10.0)
    assert found is not None
    return found


class TestByHand:
    def test_the_least_value_is_proven_and_only_on_request_the_least_whole_one(self) -> None:
        """Shares of 3 and 4 on the two devices that take turns: 12/7."""
        rows = [([1, 1, 0], 1, True), ([-3, 0, 1], 0, False), ([0, -4, 1], 0, False)]
        found = proven(rows, 3)
        assert found.value is not None
        assert Fraction(12, 7) - Fraction(1, 10**9) < found.value <= Fraction(12, 7)
        assert found.whole == 2

    def test_upper_limits_of_columns_count(self) -> None:
        assert proven([([5, 1], 9, False)], 2).value == 4

    def test_rows_without_a_solution_are_refuted(self) -> None:
        rows = [([1, 1, 0], 1, True), ([-2, -2, 0], -1, False), ([1, 0, 1], 0, False)]
        assert proven(rows, 3).value is None

    def test_a_column_that_costs_too_much_is_excluded(self) -> None:
        rows = [([1, 1, 0], 1, True), ([-3, -8, 1], 0, False)]
        found = proven(rows, 3)
        assert found.value == 3
        assert found.excluded(7)[:2].tolist() == [False, True]
        assert not found.excluded(8)[:2].any()

    def test_a_term_of_no_column_is_left_out(self) -> None:
        rows = Rows()
        rows.add(np.array([2, 3]), (np.arange(2), np.array([-1, 0]), 7), (np.arange(2), 1, 1))
        found = minimise(rows, np.ones(2, dtype=np.int64), np.ones(2), 1, 10.0)
        assert found is not None
        assert found.value == 2

    def test_without_an_answer_in_time_nothing_is_proven(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(proof, "_propose", lambda *arguments: None)
        assert minimise(*program([([1, 1], 1, False)], 2), 1, 10.0) is None


@pytest.mark.parametrize("claim", ["of the solver", "feasible", "infeasible"])
def test_any_multipliers_are_valid(monkeypatch: pytest.MonkeyPatch, claim: str) -> None:
    """The solver's multipliers or random ones, against all whole solutions."""
    rng = np.random.default_rng(1)

    def propose(matrix: Any, right: NDArray[np.float64], *_: Any) -> Any:
        return rng.normal(size=len(right)), np.zeros(matrix.shape[1]), claim == "feasible"

    if claim != "of the solver":
        monkeypatch.setattr(proof, "_propose", propose)
    informative = 0
    for _ in range(100):
        rows = drawn(rng)
        columns = len(rows[0][0])
        found = minimise(*program(rows, columns), columns - 1, 10.0)
        if found is None:
            continue
        solutions = itertools.product((0, 1), repeat=columns - 1)
        least = {z: completed(rows, z) for z in solutions}
        best = min(least.values())
        assert best == np.inf if found.value is None else found.value <= best
        informative += found.value is None or found.value > 0
        for limit in range(4):
            for j in np.flatnonzero(found.excluded(limit)[:-1]).tolist():
                assert all(value > limit for z, value in least.items() if z[j] == 1)
    assert informative > 5


def drawn(rng: np.random.Generator) -> list[tuple[list[int], int, bool]]:
    """A few rows, with the objective in inequalities only."""
    rows = []
    columns = int(rng.integers(2, 5))
    for _ in range(int(rng.integers(1, 5))):
        equal = bool(rng.random() < 0.3)
        coefficients = rng.integers(-4, 5, columns).tolist()
        coefficients[-1] = 0 if equal else int(rng.integers(0, 3))
        rows.append((coefficients, int(rng.integers(-4, 5)), equal))
    return rows


def completed(rows: list[tuple[list[int], int, bool]], z: tuple[int, ...]) -> float:
    """The least whole value of the last column that completes a solution."""
    least = 0.0
    for coefficients, right, equal in rows:
        missing = right - sum(a * value for a, value in zip(coefficients, z, strict=False))
        if equal and missing:
            return np.inf
        if missing > 0:
            least = max(
                least, math.ceil(missing / coefficients[-1]) if coefficients[-1] else np.inf
            )
    return least
