"""``optpart methods``."""

from __future__ import annotations


def methods() -> None:
    """List the methods for --method."""
    from optpart.methods import registry
    from optpart.report.console import plain_console

    plain_console().tell_rows(
        [(entry.name, entry.kind, entry.summary) for entry in registry.entries()]
    )
