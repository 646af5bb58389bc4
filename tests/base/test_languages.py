"""What the functions of each language write, its own parser reads back as data."""

from __future__ import annotations

import ast
import csv
import io
import json
import re
import shlex
import tomllib
from html.parser import HTMLParser

import pytest
from hostile import NAMES, UNSEEN, meant, names
from hypothesis import example, given
from hypothesis import strategies as st

from optpart.base.languages import (
    from_csv,
    to_comment,
    to_csv,
    to_csv_of_records,
    to_html,
    to_json,
    to_json_in_html,
    to_label,
    to_latex,
    to_python,
    to_shell,
    to_toml,
)

#: What a spreadsheet takes for a formula unless it is a number.
FORMULA = re.compile(r"[=+\-@\t\r\n＝＋－＠]")
NUMBER = re.compile(r"[+-]?\d+(\.\d*)?(e[+-]?\d+)?(/\d+)?", re.ASCII | re.IGNORECASE)


tables = st.lists(st.tuples(names, names), min_size=1, max_size=3)


@given(names)
def test_json(name: str) -> None:
    for text in (to_json({name: [name]}), to_json({name: [name]}, indent=1, compact=True)):
        assert json.loads(text) == {name: [name]}
        assert not UNSEEN.search(text)


class _Page(HTMLParser):
    """The tags and texts of a page, with the texts of adjacent pieces joined."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, object]] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append((tag, attrs))

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)

    handle_decl = unknown_decl = handle_pi = handle_comment


@given(names)
def test_json_in_html_neither_ends_its_element_nor_begins_another(name: str) -> None:
    page = _Page(f"<script>{to_json_in_html([name])}</script>")
    assert page.tags == [("script", [])]
    assert json.loads(page.text) == [name]


@given(names)
def test_html(name: str) -> None:
    page = _Page(f'<p title="{to_html(name)}">{to_html(name)}</p>')
    assert page.tags == [("p", [("title", page.text)])]
    assert not UNSEEN.search(page.text)
    assert page.text == name or UNSEEN.search(name) or set(name) & set("\n\t")


@given(names)
def test_toml(name: str) -> None:
    text = f"[{to_toml(name)}]\nkey = {to_toml(name)}\n"
    assert tomllib.loads(text) == {name: {"key": name}}
    assert not UNSEEN.search(text)


@given(names)
@example("\U0001f600")  # whose two halves in JSON are two characters in Python
def test_python(name: str) -> None:
    text = f"{to_comment('#', name)}\n{to_python(name)}\n{to_comment('#', name)}"
    (statement,) = ast.parse(text).body
    assert isinstance(statement, ast.Expr)
    assert ast.literal_eval(statement.value) == name
    assert not UNSEEN.search(text)


@given(st.lists(names, min_size=1, max_size=3))
def test_words_of_a_shell(words: list[str]) -> None:
    assert shlex.split(to_shell(words)) == words


@given(tables)
def test_csv_has_no_formulas_and_means_the_names(rows: list[tuple[str, str]]) -> None:
    for end in ("\n", "\r\n"):
        text = to_csv(rows, end=end)
        found = [*csv.reader(io.StringIO(text, newline=""), strict=True)]
        assert [tuple(map(from_csv, row)) for row in found] == rows
        for cell in (cell for row in found for cell in row):
            assert not FORMULA.match(cell) or NUMBER.fullmatch(cell)


@given(tables)
def test_records_are_lines_without_formulas_for_any_separator(rows: list[tuple[str, str]]) -> None:
    text = to_csv_of_records([{"a": one, "b": two, "n": -5} for one, two in rows])
    assert text.count("\n") == 1 + len(rows)
    assert not UNSEEN.search(text)
    found = [*csv.DictReader(io.StringIO(text, newline=""), strict=True)]
    assert [(meant(row["a"]), meant(row["b"])) for row in found] == rows
    assert all(row["n"] == "-5" for row in found)
    for separator in ",;\t|":
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator):
            assert not any(FORMULA.match(cell) and not NUMBER.match(cell) for cell in row)


def test_no_records_are_no_text() -> None:
    assert to_csv_of_records([]) == ""


@pytest.mark.parametrize("write", [to_json, to_toml, to_python, lambda name: to_csv([[name]])])
def test_different_names_have_different_texts(write) -> None:
    texts = [write(name) for name in NAMES]
    assert len({*texts}) == len({*NAMES})


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (r"50%_of\$x$", r"50\%\_of\textbackslash{}\$x\$"),
        ("& {y}~#^", r"\& \{y\}\textasciitilde{}\#\textasciicircum{}"),
        ("a\nb<c>", r"a\textbackslash{}nb\textless{}c\textgreater{}"),
        ("[3cm]*", "{[}3cm{]}{*}"),
        ("a--b–c", r"a-{}-b\textendash{}c"),
        ('"', r"{\char34}"),
    ],
)
def test_latex(name: str, text: str) -> None:
    assert to_latex(name) == text


@given(names)
def test_latex_has_no_commands_but_our_own(name: str) -> None:
    text = to_latex(name)
    ours = r"\\text[a-z]+\{\}|\{\\char34\}|\{[\[\]*]\}|\\[{}$&#_%]|-\{\}"
    assert not re.search(r"[\\{}$&#_%~^\[\]*]|--", re.sub(ours, "", text))
    assert len(text.splitlines()) <= 1


@given(names)
def test_labels_of_programs(name: str) -> None:
    assert re.fullmatch("[A-Za-z0-9._]*", to_label(name))
