"""Faults carry their file, place and remedy in one line."""

from __future__ import annotations

import pytest

from optpart import methods
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


def test_what_nobody_would_read_to_its_end_is_shortened() -> None:
    error = InputError("a" * 10**6, f"unknown key {'b' * 10**6!r}", "c" * 10**6)
    message = str(error.within("file"))
    assert message.startswith("file: aaa")
    assert len(message) < 3000
    assert error.problem == f"unknown key {'b' * 10**6!r}"


def test_the_list_of_all_methods_is_not_shortened() -> None:
    with pytest.raises(InputError) as caught:
        methods.get("magic")
    assert "…," in str(caught.value)
    assert " … " not in str(caught.value)
