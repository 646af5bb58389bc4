"""The link from objects of lower layers to the layer that draws them.

Tables and pictures belong to ``report``, which instances and results must not import. They call
:func:`notebook` instead; the package itself says, when it is imported, where that leads. Nothing is
loaded until an object is shown.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_loader: list[Callable[[], Any]] = []


def shown_by(load: Callable[[], Any]) -> None:
    """Say how to load the module of tables and pictures."""
    _loader[:] = [load]


def notebook() -> Any:
    """Return the module of tables and pictures."""
    return _loader[0]()


class Shown:
    """Something that notebooks show as HTML."""

    def _repr_html_(self) -> str:
        text: str = notebook().html_of(self)
        return text
