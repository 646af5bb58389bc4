"""Runs that are kept in a file, so that a command that was stopped goes on where it was."""

from __future__ import annotations

import json
import math
import os
import platform
from collections.abc import Callable
from pathlib import Path

Row = dict[str, str | int | float]

MACHINE = f"{platform.machine()}, {os.cpu_count()} cores"


def up(value: float) -> str:
    """Write a makespan, rounded up."""
    return f"{math.ceil(100 * value - 1e-6) / 100:.2f}"


def down(value: float) -> str:
    """Write a bound, rounded down."""
    return f"{math.floor(100 * value + 1e-6) / 100:.2f}"


class Store:
    """Rows by what was run; ``runs.jsonl`` in a folder."""

    def __init__(self, folder: Path, part: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / "runs.jsonl"
        self._part = part
        lines = self._path.read_text().splitlines() if self._path.exists() else []
        self.rows: list[Row] = [row for row in map(json.loads, lines) if row["part"] == part]

    def known(self, key: Row) -> Row | None:
        """Return the row of a run that was made before."""
        return next((row for row in self.rows if key.items() <= row.items()), None)

    def run(self, key: Row, call: Callable[[], Row]) -> Row:
        """Return the row of a run, made now unless it was made before."""
        if (known := self.known(key)) is not None:
            return known
        row = {"part": self._part, **key} | call()
        self.rows.append(row)
        with self._path.open("a") as stream:
            stream.write(json.dumps(row) + "\n")
        print(row, flush=True)
        return row
