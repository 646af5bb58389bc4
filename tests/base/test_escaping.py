"""Text from files cannot forge a line, steer a terminal or fill it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optpart.base.escaping import fitted, shortened, visible, visible_json, visible_lines


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("größer 頂点 → $x$ [red]", "größer 頂点 → $x$ [red]"),
        ("a\nINJECTED: OPTIMAL", r"a\nINJECTED: OPTIMAL"),
        ("\r\t\0", r"\r\t\x00"),
        ("\x1b[31m\x07\x7f", r"\x1b[31m\x07\x7f"),
        ("\x9b31m\x85", r"\x9b31m\x85"),
        ("\u2028\u2029", r"\u2028\u2029"),
        ("\u202a\u202e\u2066\u2069\u200e\u061c", r"\u202a\u202e\u2066\u2069\u200e\u061c"),
        ("\ud800", r"\ud800"),
    ],
)
def test_control_characters_are_shown_as_escapes(text: str, shown: str) -> None:
    assert visible(text) == shown


@given(st.text())
def test_what_is_visible_is_one_line_and_stays_as_it_is(text: str) -> None:
    shown = visible(text)
    assert len(shown.splitlines()) <= 1
    assert visible(shown) == shown


def test_a_document_keeps_its_lines() -> None:
    assert visible_lines("a,b\n\x1b[31m,c\n") == "a,b\n\\x1b[31m,c\n"


@given(st.text())
def test_escaped_json_means_the_same(text: str) -> None:
    document = visible_json(json.dumps(text, ensure_ascii=False))
    assert json.loads(document) == text
    assert visible(document) == document


def test_the_middle_is_left_out() -> None:
    assert shortened("abcdefghij", 10) == "abcdefghij"
    assert shortened("abcdefghij", 5) == "ab…ij"
    assert shortened("abcdefghij", 6) == "abc…ij"


def test_long_parts_give_way_to_short_ones() -> None:
    assert fitted(["x" * 100, "short", "y" * 100], 45) == [
        shortened("x" * 100, 20),
        "short",
        shortened("y" * 100, 20),
    ]
    assert fitted(["a", "b"], 10) == ["a", "b"]
