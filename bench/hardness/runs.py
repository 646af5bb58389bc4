"""What is measured, and where it is kept."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Run:
    """One source of a family, answered by way of TF."""

    family: str
    size: int
    yes: bool
    seed: int
    limit: float
    answer: bool | None
    seconds: float
    vertices: int
    devices: int
    by: str


@dataclass(frozen=True)
class Special:
    """One source of a polynomial special case, and the same question by way of TF."""

    name: str
    size: int
    limit: float
    seconds: float
    by_tf: float | None
    agree: bool | None


@dataclass(frozen=True)
class Curve:
    """One source of PARTITION with numbers of a fixed number of bits."""

    bits: int
    count: int
    seed: int
    limit: float
    answer: bool | None
    seconds: float
    nodes: int
    agree: bool | None


class Kept:
    """Finished runs, one a line; what is there is not repeated."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows = list(_stored(path))

    def of(self, kind: type[Any]) -> list[Any]:
        """Return all rows of a kind."""
        return [row for row in self.rows if isinstance(row, kind)]

    def find(self, kind: type[Any], **key: object) -> Any | None:
        """Return the row of a kind with these values."""
        for row in self.of(kind):
            if all(getattr(row, name) == value for name, value in key.items()):
                return row
        return None

    def add(self, row: Any) -> None:
        """Keep a row at once."""
        self.rows.append(row)
        with self.path.open("a") as stream:
            stream.write(json.dumps({"kind": type(row).__name__, **asdict(row)}) + "\n")


def _stored(path: Path) -> Iterator[Any]:
    kinds = {kind.__name__: kind for kind in (Run, Special, Curve)}
    if path.exists():
        for line in path.read_text().splitlines():
            values = json.loads(line)
            yield kinds[values.pop("kind")](**values)
