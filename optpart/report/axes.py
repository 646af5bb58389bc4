"""Axes of matplotlib for the user's figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def given_or_new(ax: Axes | None, width: float = 9.0, height: float = 4.0) -> Axes:
    """Return the axes that are given, or those of a new figure of pyplot, in inches."""
    if ax is not None:
        return ax
    from matplotlib import pyplot

    _, axes = pyplot.subplots(figsize=(width, height), layout="constrained")
    return axes
