"""JSON for all formats: exact decimals, no duplicate keys, faults in one line."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from optpart.base.choices import choice
from optpart.base.errors import InputError
from optpart.base.files import read_text
from optpart.base.languages import to_json
from optpart.problem.rational import decimal, shown

#: The tokens that locate a key in a text that is known to be JSON.
_TOKEN = re.compile(r'(?P<text>"(?:[^"\\]|\\.)*")\s*(?P<colon>:)?|[{}\[\]]', re.DOTALL)


def parse_json(text: str) -> Any:
    """Parse JSON with exact decimals; every JSON file is read through this function.

    Raises
    ------
    InputError
        If it is not JSON, an object has a duplicate key, a number is not finite or has too many
        digits, or a string has a lone surrogate.
    """

    def refuse(constant: str) -> Any:
        raise InputError("", f"{constant} is not a finite number", "give a finite number")

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            key, line, column = _second(text)
            raise InputError(
                f"line {line}, column {column}",
                f"duplicate key {shown(key)}",
                "give every key once",
            )
        return found

    try:
        document = json.loads(
            text, parse_float=decimal, parse_constant=refuse, object_pairs_hook=once
        )
        if "\\ud" in text.lower():  # half a character, which cannot be written again
            json.dumps(document, ensure_ascii=False, default=str).encode()
        return document
    except json.JSONDecodeError as error:
        raise InputError(
            f"line {error.lineno}, column {error.colno}",
            f"is not JSON ({error.msg})",
            "give a JSON document",
        ) from None
    except RecursionError:
        raise InputError("", "is nested too deeply", "give a JSON document") from None
    except UnicodeEncodeError:
        raise InputError("", "has a string with a lone surrogate", "give valid text") from None
    except ValueError as error:  # a number with too many digits
        raise InputError("", f"cannot be read ({error})", "give shorter numbers") from None


def read_json(path: str | Path) -> Any:
    """Read a JSON file, as :func:`parse_json` parses it; the caller adds the file to faults."""
    return parse_json(read_text(path))


def _second(text: str) -> tuple[str, int, int]:
    """Return the first duplicate key, with its line and column."""
    above: list[set[str] | None] = []  # keys so far; None for a list
    for token in _TOKEN.finditer(text):
        match token[0][0]:
            case "{":
                above.append(set())
            case "[":
                above.append(None)
            case "}" | "]":
                above.pop()
            case _:
                had = above[-1] if above else None
                if token["colon"] is None or had is None:
                    continue
                key = json.loads(token["text"])
                if key in had:
                    start = token.start()
                    line_start = text.rfind("\n", 0, start) + 1
                    return key, text.count("\n", 0, start) + 1, start - line_start + 1
                had.add(key)
    raise AssertionError("there is no duplicate key")


def keys(
    value: Any, known: set[str], place: str, needed: Sequence[str] = (), remedy: str = ""
) -> Mapping[str, Any]:
    """Return ``value`` if it is an object with only known keys, and all that are needed."""
    if not isinstance(value, dict):
        raise InputError(place, f"is {_kind(value)}", "give an object")
    if not value.keys() <= known:
        unknown = next(key for key in value if key not in known)
        raise InputError(
            place,
            f"unknown key {shown(unknown)}",
            choice(unknown, sorted(known), lead="known keys are"),
        )
    for key in needed:
        if key not in value:
            at = f"{place}.{key}" if place else key
            raise InputError(at, "is missing", f"give {remedy or ', '.join(needed)}")
    return value


def mapping(value: Any, place: str) -> Mapping[str, Any]:
    """Return ``value`` if it is an object, with any keys."""
    if not isinstance(value, dict):
        raise InputError(place, "is no object", "give an object")
    return value


def sequence(value: Any, place: str) -> list[Any]:
    """Return ``value`` if it is a list."""
    if not isinstance(value, list):
        raise InputError(place, f"is {_kind(value)}", "give a list")
    return value


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a string", type(None): "null"}
    return names.get(type(value), "a boolean" if isinstance(value, bool) else "a number")


def version(document: Any, expected: str) -> None:
    """Check the ``format`` key."""
    if not isinstance(document, dict):
        raise InputError("", f"is {_kind(document)}", f'give an object with "format": "{expected}"')
    if document.get("format") != expected:
        found = f"is {document['format']!r}" if "format" in document else "is missing"
        raise InputError("format", found, f'this version reads "{expected}"')


def text(value: Any, place: str) -> str:
    """Return ``value`` if it is a string."""
    if not isinstance(value, str):
        raise InputError(place, f"is {_kind(value)}", "give a string")
    return value


def texts(value: Any, place: str) -> tuple[str, ...]:
    """Return ``value`` if it is a list of strings."""
    return tuple(text(entry, f"{place}[{i}]") for i, entry in enumerate(sequence(value, place)))


def flag(value: Any, place: str) -> bool:
    """Return ``value`` if it is a boolean."""
    if not isinstance(value, bool):
        raise InputError(place, f"is {shown(value)}", "give true or false")
    return value


def is_whole(value: Any, least: int) -> bool:
    """Return whether ``value`` is an integer of at least so much."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def count(value: Any, place: str) -> int:
    """Return ``value`` if it is a positive integer."""
    if not is_whole(value, 1):
        raise InputError(place, f"is {shown(value)}", "give a whole number from 1")
    number: int = value
    return number


def named(value: Any, index: Mapping[str, int], place: str, unknown: str, remedy: str = "") -> int:
    """Return the number of a name; ``unknown`` says what there is not."""
    name = text(value, place)
    if name not in index:
        raise InputError(place, f"{unknown} {shown(name)}", remedy or choice(name, index))
    return index[name]


def pretty(document: dict[str, Any]) -> str:
    """Write JSON with one line per entry of each top-level list, safe to show on a terminal."""
    lines = []
    for key, value in document.items():
        if isinstance(value, list) and value:
            entries = ",\n  ".join(map(to_json, value))
            lines.append(f"{to_json(key)}: [\n  {entries}]")
        else:
            lines.append(f"{to_json(key)}: {to_json(value)}")
    return "{" + ",\n ".join(lines) + "}\n"
