"""Statistics of papers, by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from optpart.study.statistics import bootstrap_mean, holm, integral, profile, signed_rank

INF = math.inf


class TestBootstrap:
    def test_equal_values_have_no_spread(self) -> None:
        assert bootstrap_mean([2.5] * 4) == (2.5, 2.5)

    def test_the_interval_is_that_of_the_normal_approximation(self) -> None:
        data = np.random.default_rng(1).normal(10, 2, 400)
        low, high = bootstrap_mean(data.tolist())
        error = data.std() / math.sqrt(400)
        assert low == pytest.approx(data.mean() - 1.96 * error, abs=0.02)
        assert high == pytest.approx(data.mean() + 1.96 * error, abs=0.02)

    def test_one_seed_gives_one_interval(self) -> None:
        values = [1.0, 2.0, 5.0]
        assert bootstrap_mean(values, 3) == bootstrap_mean(values, 3)


class TestSignedRank:
    def test_all_of_six_pairs_on_one_side(self) -> None:
        """Of the 2^6 signs, two are as extreme."""
        assert signed_rank([1, 2, 3, 4, 5, 6], [2, 4, 6, 8, 10, 12]) == pytest.approx(2 / 64)

    def test_equal_pairs_do_not_count(self) -> None:
        few = signed_rank([1, 2, 3], [2, 4, 6])
        assert signed_rank([1, 2, 3, 7, 7], [2, 4, 6, 7, 7]) == pytest.approx(few, abs=1e-12)
        assert signed_rank([3, 3], [3, 3]) == 1

    def test_unsolved_is_worse_than_anything(self) -> None:
        """As if the difference were larger than all others."""
        solved, other = [1.0, 2, 3, 4, 5, 6], [2.0, 4, 6, 8, 10, INF]
        assert signed_rank(solved, other) == signed_rank([*solved[:5], 0], [*other[:5], 99])
        assert signed_rank([1, INF], [2, INF]) == signed_rank([1], [2])


class TestHolm:
    def test_the_example_of_holm(self) -> None:
        """0.01 · 4, then 0.02 · 3, then 0.04 · 2 and 0.05 · 1, which may not fall."""
        assert holm([0.04, 0.01, 0.05, 0.02]) == pytest.approx([0.08, 0.04, 0.08, 0.06])

    def test_no_probability_exceeds_one(self) -> None:
        assert holm([0.9, 0.8]) == [1, 1]
        assert holm([]) == []


def test_a_profile_counts_what_is_within_a_factor() -> None:
    factors, shares = profile([1, 2, 2, INF])
    assert factors.tolist() == [1, 2]
    assert shares.tolist() == [0.25, 0.75]


class TestIntegral:
    def test_before_the_first_step_the_gap_is_one(self) -> None:
        assert integral([(2, 0.5), (6, 0)], 10) == 2 * 1 + 4 * 0.5

    def test_without_a_step_it_is_the_limit(self) -> None:
        assert integral([], 10) == 10

    def test_what_comes_after_the_limit_does_not_count(self) -> None:
        assert integral([(2, 0.5), (12, 0)], 10) == 2 + 8 * 0.5
        assert integral([(12, 0)], 10) == 10
