"""Tables for a terminal."""

from __future__ import annotations

import sys
from typing import Any

from rich.console import Console
from rich.text import Text

from optpart.escaping import visible


class PlainConsole(Console):
    """Shows strings as they are: no markup, no emoji codes, control characters as escapes."""

    def render_str(self, text: str, **options: Any) -> Text:
        """Return the text that stands for a string, also for one in a table."""
        return super().render_str(visible(text), **options)


def plain_console() -> PlainConsole:
    """Return a console that cuts tables to fit a terminal only, never a file or a pipe."""
    width = None if sys.stdout.isatty() else 200
    return PlainConsole(markup=False, emoji=False, highlight=False, soft_wrap=True, width=width)
