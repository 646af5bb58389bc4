"""Faults carry their file, place and remedy in one line."""

from __future__ import annotations

import pytest

from optpart.base.errors import FaultsOf, InputError, UnsupportedError


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


def test_a_long_fault_keeps_its_ends() -> None:
    fault = str(InputError("place" * 100, "problem " * 100, "say 'this'", "folder/" * 100))
    assert len(fault) <= 290
    assert fault.startswith("folder/")
    assert fault.endswith("; say 'this'")


def test_a_fault_is_one_line_whatever_the_names_in_it() -> None:
    fault = str(InputError("a\u2028b", "\x1b[31mred", "write\nblue\u202e", "f\x07"))
    assert fault == r"f\x07: a b: \x1b[31mred; write blue\u202e"
