"""Steps that commands share before they work on an instance."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from optpart.base.errors import InputError
from optpart.base.terminal import note

if TYPE_CHECKING:
    from pathlib import Path

    from optpart.problem.instance import Instance


def open_instance(file: str) -> Instance:
    """Read an instance file or, if there is no such file, the library instance of that name."""
    from optpart.api import load

    return load(file)


def open_instances(
    files: list[str] | None, set_name: str | None, data: Path | None
) -> list[Instance]:
    """Read the instances that are named, or those of a set; by default, the small library."""
    from optpart.study import library
    from optpart.study.dataset import find

    if set_name is None:
        if data is not None:
            raise InputError("--data", "used without --set", "name a set")
        return [open_instance(file) for file in files or library.small()]
    if files:
        raise InputError("--set", "used with instances", "leave one of them out")
    chosen = find(set_name, data)
    note(f"set {chosen}")
    return chosen.instances()


def note_limits(instances: Iterable[Instance]) -> None:
    """Tell the user where limits of memory do not count."""
    for instance in instances:
        limited = any(limit is not None for limit in instance.cluster.memory)
        if limited and instance.model.memory == "none":
            note(
                f"{instance.name}: the memory limits of its devices do not count, since its memory "
                "model is none; 'optpart import --memory' sets another"
            )
