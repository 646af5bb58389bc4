"""The measurements, and the file that keeps them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from bench.store import Store, Values


@dataclass(frozen=True)
class Run:
    """One source of a family, answered through TF."""

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
    """One source of a polynomial special case, and the same question through TF."""

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


#: Parameters of a row, by its kind.
PARAMETERS: dict[str, tuple[str, ...]] = {
    "Run": ("family", "size", "yes", "seed", "limit"),
    "Special": ("name", "size", "limit"),
    "Curve": ("bits", "count", "seed", "limit"),
}
_KINDS: dict[str, type[Any]] = {kind.__name__: kind for kind in (Run, Special, Curve)}


def parts(row: Any) -> tuple[Values, Values]:
    """Return the parameters of a row, and what came out."""
    kind, values = type(row).__name__, asdict(row)
    return {"kind": kind, **{name: values.pop(name) for name in PARAMETERS[kind]}}, values


class Kept:
    """The finished runs that count; they are not repeated."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.rows = [
            _KINDS[row.run["kind"]](**{n: v for n, v in row.flat.items() if n != "kind"})
            for row in store.rows()
        ]

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
        self._store.append(*parts(row))
