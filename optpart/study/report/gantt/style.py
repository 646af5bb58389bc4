"""Sizes, fonts, colours and short texts of charts."""

from __future__ import annotations

from typing import Any

#: Maximum number of transfers drawn as arrows.
MOST_ARROWS = 100

WIDTH, MARGIN, RIGHT, HEADER, PANEL = 12.0, 0.2, 0.75, 0.95, 0.75  # inches
TALLEST_ROW, TALLEST_CHART = 0.6, 9.0  # inches
TITLE, NORMAL, SMALL, SMALLEST = 12.0, 9.0, 8.0, 4.5  # font sizes in points
INK, FAINT, TRACK, SEND = "#222222", "#767676", "#f2f2f2", "#8c8c8c"
BOUND, ARROW = "#d55e00", "#3a3a3a"
PLAIN: dict[str, Any] = {  # legends without a frame
    "borderaxespad": 0, "borderpad": 0, "frameon": False, "handlelength": 1.6, "labelcolor": INK,
}  # fmt: skip


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
