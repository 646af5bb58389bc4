"""The end of every ``generate`` command: write the instance and print its size."""

from __future__ import annotations

from pathlib import Path

from optpart.formats import native
from optpart.problem.instance import Instance
from optpart.terminal import say


def write_generated(instance: Instance, output: Path) -> None:
    """Write an instance and print its size."""
    native.write(instance, output)
    say(
        f"{instance.name}: {instance.vertices} vertices, {len(instance.graph.edge_source)} edges, "
        f"{instance.devices} devices → {output}"
    )
