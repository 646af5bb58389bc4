"""JSON for all formats: exact decimals, no duplicate keys, faults in one line."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from fractions import Fraction
from typing import Any

from optpart.choices import choice
from optpart.errors import InputError
from optpart.languages import to_json
from optpart.problem.rational import decimal, non_negative, rational, shown

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


class Entry:
    """An object of a document, whose errors name their place; ``known`` are all keys it may have.

    Attributes
    ----------
    content : mapping
    place : str
        As errors name it: ``nodes[3]``; empty for the whole document.
    """

    def __init__(self, value: Any, place: str = "", known: set[str] | None = None) -> None:
        if not isinstance(value, dict):
            raise InputError(place, f"is {_kind(value)}", "give an object")
        self.content = value if known is None else keys(value, known, place)
        self.place = place

    def at(self, key: str) -> str:
        """Return the place of a key."""
        return f"{self.place}.{key}" if self.place else key

    def __contains__(self, key: str) -> bool:
        return key in self.content

    def get(self, key: str) -> Any:
        """Return a value as it is; ``None`` if there is none."""
        return self.content.get(key)

    def __getitem__(self, key: str) -> Any:
        if key not in self.content:
            raise InputError(self.place, f"no {key!r}", "give the key and its value")
        return self.content[key]

    def entry(self, key: str) -> Entry:
        """Return an object within this one."""
        return Entry(self[key], self.at(key))

    def items(self, key: str, *, optional: bool = False) -> list[Any]:
        """Return a list, empty if it may be and is missing."""
        return [] if optional and key not in self.content else sequence(self[key], self.at(key))

    def entries(
        self, key: str, known: set[str] | None = None, *, optional: bool = False
    ) -> list[Entry]:
        """Return a list of objects."""
        values = self.items(key, optional=optional)
        return [Entry(value, f"{self.at(key)}[{i}]", known) for i, value in enumerate(values)]

    def text(self, key: str) -> str:
        """Return a string."""
        return text(self[key], self.at(key))

    def name(self, key: str) -> str:
        """Return a string that is not empty."""
        name = self.text(key)
        if not name:
            raise InputError(self.at(key), "is empty", "give a name")
        return name

    def texts(self, key: str, *, optional: bool = False) -> list[str]:
        """Return a list of strings."""
        values = self.items(key, optional=optional)
        return [text(value, f"{self.at(key)}[{i}]") for i, value in enumerate(values)]

    def number(self, key: str) -> Fraction:
        """Return a number ``≥ 0``."""
        return non_negative(self[key], self.at(key))

    def positive(self, key: str) -> Fraction:
        """Return a number ``> 0``."""
        number = rational(self[key], self.at(key))
        if number <= 0:
            raise InputError(self.at(key), f"{shown(number)} is not positive", "give a number > 0")
        return number

    def numbers(self, key: str, count: int, what: str) -> list[Fraction]:
        """Return as many numbers ``≥ 0`` as ``what`` there are."""
        return numbers(self[key], count, self.at(key), what)

    def whole(self, key: str, least: int, most: int) -> int:
        """Return a whole number from ``least`` to ``most``."""
        return whole(self[key], least, most, self.at(key))

    def identifier(self, key: str, among: Collection[str] | None = None) -> str:
        """Return a whole number or a string as text: one ``among`` some, if these are given."""
        name = identifier(self[key], self.at(key))
        if among is not None and name not in among:
            raise InputError(self.at(key), f"no node {shown(name)}", "give the id of a node")
        return name


def identifier(value: Any, place: str) -> str:
    """Return an identifier, a whole number or a string, as text."""
    if isinstance(value, bool) or not isinstance(value, (int, str)) or value == "":
        raise InputError(place, f"cannot be {shown(value)}", "give a whole number or a string")
    try:
        return str(value)
    except ValueError:  # more digits than Python converts
        raise InputError(place, "a number with very many digits", "give a shorter one") from None


def is_whole(value: object, least: int, most: int) -> bool:
    """Return whether it is a whole number from ``least`` to ``most``."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def whole(value: Any, least: int, most: int, place: str) -> int:
    """Return ``value`` if it is a whole number from ``least`` to ``most``."""
    if not is_whole(value, least, most):
        raise InputError(place, f"cannot be {shown(value)}", range_remedy(least, most))
    return int(value)


def range_remedy(least: int, most: int) -> str:
    """Return what to give in place of a number that is no whole one of a range."""
    return f"give a whole number from {least} to {most}" if least < most else f"give {least}"


def numbers(value: Any, count: int, place: str, what: str) -> list[Fraction]:
    """Return ``count`` numbers ``≥ 0``, one per ``what``."""
    found = sequence(value, place)
    if len(found) != count:
        raise InputError(place, f"{len(found)} entries", f"give {count}, one per {what}")
    return [non_negative(number, f"{place}[{i}]") for i, number in enumerate(found)]


def keys(value: Any, known: set[str], place: str) -> Mapping[str, Any]:
    """Return ``value`` if it is an object with only known keys."""
    if not isinstance(value, dict):
        raise InputError(place, f"is {_kind(value)}", "give an object")
    if not value.keys() <= known:
        unknown = next(key for key in value if key not in known)
        raise InputError(
            place,
            f"unknown key {shown(unknown)}",
            choice(unknown, sorted(known), lead="known keys are"),
        )
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
