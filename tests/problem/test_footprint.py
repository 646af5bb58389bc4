"""Memory: amounts are read and written, and estimates grow with what is built."""

import os

import numpy as np
import pytest

from optpart import Instance
from optpart.base.errors import InputError
from optpart.problem import footprint
from optpart.testing.draw import random_instance


@pytest.fixture
def instance() -> Instance:
    return random_instance(np.random.default_rng(0), 8, 3)


@pytest.mark.parametrize(
    ("text", "amount"),
    [("4GiB", 4 * 2**30), ("1.5 GB", 1_500_000_000), ("2097152", 2**21), (2**21, 2**21)],
)
def test_amounts_have_a_unit_or_are_bytes(text, amount) -> None:
    assert footprint.read_memory(text) == amount


@pytest.mark.parametrize("text", ["4G", "many", "-1GiB", "100", "nan", "inf", 0])
def test_other_amounts_are_refused(text) -> None:
    with pytest.raises(InputError, match="give an amount such as 4GiB"):
        footprint.read_memory(text)


@pytest.mark.parametrize(
    ("amount", "text"),
    [(6.1 * 2**30, "6.1 GiB"), (4 * 2**30, "4 GiB"), (300 * 2**20, "300 MiB"), (5, "5 bytes")],
)
def test_amounts_are_written_in_binary_units(amount, text) -> None:
    assert footprint.said(amount) == text


def test_what_fits_is_not_refused_and_what_does_not_is_refused_in_words() -> None:
    assert footprint.excess(2**30, 2**30) == ""
    words = footprint.excess(6 * 2**30, 4 * 2**30)
    assert words == "would need about 6 GiB of memory, of 4 GiB allowed"


def test_without_a_ceiling_what_is_available_counts(monkeypatch) -> None:
    monkeypatch.setattr(footprint, "available_memory", lambda: 2**30)
    assert footprint.excess(2**30, None) == ""
    assert footprint.excess(2**31, None).endswith("of 1 GiB available")


def test_some_memory_is_available_and_in_use() -> None:
    assert footprint.available_memory() > 0
    assert 0 < footprint.resident(os.getpid()) == pytest.approx(footprint.resident("self"), rel=0.5)
    assert footprint.resident(2**30) == 0  # no such process


def test_estimates_grow_with_what_is_built(instance) -> None:
    own = footprint.of_process(instance)
    assert own < footprint.of_cpsat(instance, 10) < footprint.of_cpsat(instance, 10_000)
    assert footprint.of_cpsat(instance, 10_000, 2) < footprint.of_cpsat(instance, 10_000, 8)
    assert own < footprint.of_milp(instance, 10) < footprint.of_milp(instance, 10_000)
    assert own < footprint.of_search(instance, 1) < footprint.of_search(instance, 2)
    assert own == footprint.of_crossings(instance, 0) < footprint.of_crossings(instance, 1000)
