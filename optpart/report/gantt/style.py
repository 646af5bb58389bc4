"""Sizes, fonts and colours of the chart."""

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
    "borderaxespad": 0,
    "borderpad": 0,
    "frameon": False,
    "handlelength": 1.6,
    "labelcolor": INK,
}
