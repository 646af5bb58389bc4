"""Short texts for names and counts, and the width of texts."""

from __future__ import annotations


def short(text: str, most: int) -> str:
    """Shorten text to at most ``most`` characters, and replace those that cannot be printed."""
    shown = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text[: most + 1])
    return shown if len(shown) <= most else shown[: most - 1] + "…"


def count(number: int, noun: str) -> str:
    """Return a number with its noun, as in ``3 vertices``."""
    plural = {"vertex": "vertices"}.get(noun, noun + "s")
    return f"{number:,} {noun if number == 1 else plural}"


def text_width(text: str, size: float) -> float:
    """Return the width of a text in points."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=size)
    width: float = text_to_path.get_text_width_height_descent(text, font, ismath=False)[0]
    return width


def superscript(exponent: int) -> str:
    """Return an integer in superscript digits."""
    return str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
