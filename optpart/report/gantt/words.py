"""Names and numbers, short enough for the picture, and how wide they are."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction


def number(value: Fraction) -> str:
    """Return a number in few characters, exactly if possible."""
    if value.denominator == 1 and value < 10**9:
        return str(value)
    ratio = Decimal(value.numerator) / Decimal(value.denominator)
    rounded = f"{ratio.normalize():.5g}"
    if Fraction(rounded) == value:
        return rounded
    short = max(value.numerator, value.denominator) < 10**5
    return f"{value} ≈ {rounded}" if short else f"≈ {rounded}"


def short(text: str, most: int) -> str:
    """Return text that is short enough, without characters that a format cannot hold."""
    shown = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text[: most + 1])
    return shown if len(shown) <= most else shown[: most - 1] + "…"


def count(number: int, noun: str) -> str:
    """Say how many things there are."""
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
    """Write an exponent."""
    return str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
