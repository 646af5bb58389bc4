"""A function for every language that is written: a name in its text is data, whatever it contains.

Names come from files of others. Each goes through the function of the language of the text that it
becomes part of, and no text holds what could steer a terminal that shows it. In languages that
programs read (JSON, TOML, CSV, Python, words of a shell), different names have different texts.
"""

from __future__ import annotations

import csv
import html
import io
import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from optpart.base.escaping import visible, visible_json

# --- JSON and TOML -------------------------------------------------------------------------------

#: Escapes by which no text can end the element of a page that holds it, or begin another.
_IN_HTML = {ord(character): f"\\u{ord(character):04x}" for character in "<>&"}


def to_json(value: Any, *, indent: int | None = None, compact: bool = False) -> str:
    """Return JSON that keeps letters of all alphabets and shows nothing else to a terminal."""
    separators = (",", ":") if compact else None
    text = json.dumps(value, ensure_ascii=False, indent=indent, separators=separators)
    return visible_json(text)


def to_json_in_html(value: Any) -> str:
    """Return JSON for a ``script`` element of a page."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text.translate(_IN_HTML)


def to_toml(text: str) -> str:
    """Return a string of TOML."""
    return to_json(text)  # both have the same escapes, and neither has others


# --- CSV -----------------------------------------------------------------------------------------

#: What spreadsheets take for the begin of a formula, also in full width, and the mark against it.
_FORMULA = re.compile(r"['=+\-@\t\r\n＝＋－＠]")
_MARKED = re.compile(f"'{_FORMULA.pattern}")
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?(/[0-9]+)?")

#: Where readers that split at other characters would let a formula begin.
_SEPARATOR = re.compile(rf'[;|\t](?=[ "]*{_FORMULA.pattern})')


def to_csv(rows: Iterable[Sequence[Any]], *, end: str = "\n") -> str:
    """Return a table (RFC 4180) none of whose texts a spreadsheet takes for a formula.

    After OWASP ("CSV injection"), a text that begins as a formula does is marked with an apostrophe
    before it; so is one that begins with an apostrophe, which :func:`from_csv` relies on. Numbers
    are never marked.
    """
    marked = [[_marked(cell) for cell in row] for row in rows]
    texts = [cell for row in marked for cell in row if isinstance(cell, str)]
    # A carriage return of a text is not quoted by itself if lines end otherwise.
    split = any("\r" in cell or _SEPARATOR.search(cell) for cell in texts)
    text = io.StringIO(newline="")
    csv.writer(
        text, lineterminator=end, quoting=csv.QUOTE_ALL if split else csv.QUOTE_MINIMAL
    ).writerows(marked)
    return text.getvalue()


def to_csv_of_records(records: Sequence[Mapping[str, Any]]) -> str:
    r"""Return records with the same keys as a table that is safe to print, a line for each.

    In texts, control characters are escaped as in Python, for example as ``\n`` or ``\x1b``, and so
    are backslashes, and other separators where a formula would begin after them. No records give no
    text.
    """
    if not records:
        return ""
    rows = [[*records[0]], *([*record.values()] for record in records)]
    return to_csv([[_escaped(cell) for cell in row] for row in rows])


def from_csv(cell: str) -> str:
    """Return the text of a cell without the mark of :func:`to_csv`."""
    return cell[1:] if _MARKED.match(cell) else cell


def _escaped(cell: Any) -> Any:
    if not isinstance(cell, str):
        return cell
    text = visible(cell.replace("\\", "\\\\"))
    return _SEPARATOR.sub(lambda match: f"\\x{ord(match[0]):02x}", text)


def _marked(cell: Any) -> Any:
    if isinstance(cell, str) and _FORMULA.match(cell) and not _NUMBER.fullmatch(cell):
        return f"'{cell}"
    return cell


# --- programs ------------------------------------------------------------------------------------


def to_python(text: str) -> str:
    """Return a string of Python."""
    return repr(text)  # which escapes all that cannot be seen


def to_shell(words: Iterable[str]) -> str:
    """Return words of a command line."""
    return shlex.join(words)


def to_comment(mark: str, text: str) -> str:
    """Return the comment that begins with a mark and ends with its line."""
    return f"{mark} {visible(text)}"


def to_label(text: str) -> str:
    """Return a part of a name in LP and MPS files; different texts may give the same."""
    return re.sub(r"[^A-Za-z0-9.]+", "_", text)


# --- documents -----------------------------------------------------------------------------------


def to_html(text: str) -> str:
    """Return the content of an HTML element or attribute."""
    return html.escape(visible(text))


_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"{\char34}",  # \textquotedbl is not in every font encoding
    "–": r"\textendash{}",  # two hyphens are not one dash
    # At the begin of a row, they would belong to the command before it: \\[...], \\*.
    **{character: f"{{{character}}}" for character in "[]*"},
    **{character: f"\\{character}" for character in "{}$&#_%"},
}
_TO_ESCAPE = re.compile("[" + re.escape("".join(_LATEX)) + "]|-(?=-)")


def to_latex(text: str) -> str:
    """Return text so that LaTeX sets it as it is."""
    return _TO_ESCAPE.sub(lambda match: _LATEX.get(match[0], "-{}"), visible(text))
