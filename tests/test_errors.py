"""Faults carry their file, place and remedy in one line."""

from __future__ import annotations

import pytest

from optpart.errors import FaultsOf, InputError, UnsupportedError


def test_a_fault_names_the_file_that_is_being_read() -> None:
    with (
        pytest.raises(InputError, match=r"^a\.json: vertices: empty; name one$"),
        FaultsOf("a.json"),
    ):
        raise InputError("vertices", "empty", "name one")


def test_its_kind_stays() -> None:
    with pytest.raises(UnsupportedError), FaultsOf("a.json"):
        raise UnsupportedError("model", "unknown", "use delay")


def test_other_errors_pass_as_they_are() -> None:
    with pytest.raises(KeyError), FaultsOf("a.json"):
        raise KeyError("x")
