"""``optpart methods``."""

from __future__ import annotations

from optpart.commands.options import Json


def methods(json: Json = False) -> None:
    """List the methods for --method."""
    from optpart.methods import registry
    from optpart.study.report.console import plain_console

    if json:
        from optpart.base.terminal import put
        from optpart.interop.formats.json import pretty  # loads numpy

        rows = [
            {"name": entry.name, "kind": entry.kind, "summary": entry.summary}
            for entry in registry.entries()
        ]
        put(pretty({"methods": rows}))
        return
    plain_console().tell_rows(
        [(entry.name, entry.kind, entry.summary) for entry in registry.entries()]
    )
