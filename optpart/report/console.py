"""Tables for a terminal."""

from __future__ import annotations

import sys
from typing import Any

from rich.console import Console
from rich.text import Text

from optpart.escaping import visible


class PlainConsole(Console):
    """A console that shows strings literally: no markup or emoji, control characters escaped."""

    def render_str(self, text: str, **options: Any) -> Text:
        """Return the literal text of a string, also in tables."""
        return super().render_str(visible(text), **options)


def plain_console() -> PlainConsole:
    """Return a console that cuts tables to a terminal's width, but never for files or pipes."""
    width = None if sys.stdout.isatty() else 200
    return PlainConsole(markup=False, emoji=False, highlight=False, soft_wrap=True, width=width)
