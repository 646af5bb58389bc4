"""``optpart methods``."""

from __future__ import annotations

from optpart.commands.options import Json


def methods(json: Json = False) -> None:
    """List the methods for --method."""
    from optpart.methods import registry
    from optpart.report.console import plain_console

    if json:
        from optpart.formats.json import pretty  # loads numpy
        from optpart.terminal import put

        rows = [
            {"name": entry.name, "kind": entry.kind, "summary": entry.summary}
            for entry in registry.entries()
        ]
        put(pretty({"methods": rows}))
        return
    plain_console().tell_rows(
        [(entry.name, entry.kind, entry.summary) for entry in registry.entries()]
    )
