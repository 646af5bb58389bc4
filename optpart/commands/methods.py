"""``optpart methods``."""

from __future__ import annotations

from optpart.terminal import say


def methods() -> None:
    """List the methods for --method."""
    from optpart.methods import registry as registry

    for entry in registry.entries():
        say(f"{entry.name:26} {entry.kind:13} {entry.summary}")
