"""Steps that commands share before they work on an instance."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from optpart.base.terminal import note

if TYPE_CHECKING:
    from optpart.problem.instance import Instance


def open_instance(file: str) -> Instance:
    """Read an instance file or, if there is no such file, the library instance of that name."""
    from optpart.api import load

    return load(file)


def note_limits(instances: Iterable[Instance]) -> None:
    """Tell the user where limits of memory do not count."""
    for instance in instances:
        limited = any(limit is not None for limit in instance.cluster.memory)
        if limited and instance.model.memory == "none":
            note(
                f"{instance.name}: the memory limits of its devices do not count, since its memory "
                "model is none; 'optpart import --memory' sets another"
            )
