"""Escaping of text from files, so that it can neither forge a line nor steer a terminal."""

from __future__ import annotations

import re
from collections.abc import Collection
from itertools import islice

#: DEL and the C1 controls, marks and overrides of the text direction, line and paragraph
#: separators, byte order marks, at which PDF of matplotlib breaks down, and lone surrogates.
_UNSEEN = r"\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff"

_CONTROLS = re.compile(rf"[\x00-\x1f{_UNSEEN}]")
_CONTROLS_IN_LINES = re.compile(rf"[\x00-\x09\x0b-\x1f{_UNSEEN}]")
_SURROGATES = re.compile(r"[\ud800-\udfff]")
_UNSEEN_IN_JSON = re.compile(rf"[{_UNSEEN}]")


def visible(text: str) -> str:
    r"""Return text on one line, with control characters escaped, as in ``\n`` or ``\x1b``."""
    return _CONTROLS.sub(_escape, text)


def visible_lines(text: str) -> str:
    """Escape control characters like :func:`visible`, but keep line feeds."""
    return _CONTROLS_IN_LINES.sub(_escape, text)


def visible_json(document: str) -> str:
    """Escape what JSON allows in strings but no terminal should see; the meaning stays the same."""
    return _UNSEEN_IN_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", document)


def is_text(text: str) -> bool:
    """Return whether text can be written: whether it is free of lone surrogates."""
    return text.isascii() or _SURROGATES.search(text) is None


def writable(text: str) -> str:
    """Escape lone surrogates, which stand for the bytes of file names that are not text."""
    return text if is_text(text) else _SURROGATES.sub(_escape, text)


def shortened(text: str, most: int) -> str:
    """Return text of at most ``most`` characters, leaving out the middle if it is longer."""
    if len(text) <= most:
        return text
    end = (most - 1) // 2
    return f"{text[: most - 1 - end]}…{text[len(text) - end :]}"


def brief(text: str, most: int = 40) -> str:
    """Return text for a ``repr``: visible, on one line, and short."""
    return shortened(visible(text), most)


def listed(names: Collection[str], most: int = 4) -> str:
    """Return the first names, and the number of further ones."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(islice(names, most)) + more


def fitted(parts: list[str], room: int) -> list[str]:
    """Shorten the longest parts, all to the same length, until together they fit."""
    most = room
    while sum(min(len(part), most) for part in parts) > room:
        most -= 1
    return [shortened(part, most) for part in parts]


def _escape(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")
