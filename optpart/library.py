"""The project's own instance library: instances by name, with what is known about each."""

from __future__ import annotations

import csv
import hashlib
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path

from optpart.errors import InputError
from optpart.files import read_text
from optpart.formats import native
from optpart.formats.result import read_schedule
from optpart.instance import Instance
from optpart.rational import rational
from optpart.schedule import Schedule

#: Folder of the certificates, one folder an instance.
CERTIFICATES = "certificates"


@dataclass(frozen=True)
class Known:
    """One row of the index.

    Attributes
    ----------
    group : str
        ``classic``, ``random``, ``tensorflow`` or ``thesis``.
    small : bool
        Whether it belongs to what runs without a file being named.
    makespan, bound : Fraction or None
        Best known makespan and best proven bound.
    command : str
        What found both.
    """

    name: str
    group: str
    small: bool
    vertices: int
    edges: int
    devices: int
    makespan: Fraction | None
    bound: Fraction | None
    status: str
    sha256: str
    command: str


@cache
def folder() -> Path:
    """Return where the library lies: inside the installed package, or beside it in a checkout."""
    package = Path(__file__).parent
    installed = package / "instances"
    return installed if installed.is_dir() else package.parent / "instances"


@cache
def index() -> dict[str, Known]:
    """Read the index, by name."""
    with open(folder() / "index.csv", newline="", encoding="utf-8") as stream:
        return {row["name"]: _known(row) for row in csv.DictReader(stream)}


def _known(row: dict[str, str]) -> Known:
    return Known(
        name=row["name"],
        group=row["group"],
        small=row["small"] == "yes",
        vertices=int(row["vertices"]),
        edges=int(row["edges"]),
        devices=int(row["devices"]),
        makespan=rational(row["makespan"]) if row["makespan"] else None,
        bound=rational(row["bound"]) if row["bound"] else None,
        status=row["status"],
        sha256=row["sha256"],
        command=row["command"],
    )


def load(name: str) -> Instance:
    """Return an instance of the library.

    Raises
    ------
    InputError
        If the library has no instance of that name.
    """
    if name not in index():
        raise InputError(
            "", f"no file and no instance of the library {name!r}", "see 'optpart gap --list'"
        )
    known = index()[name]
    if known.group == "thesis":
        from optpart.generate import thesis

        return thesis.instance(int(name.removeprefix("thesis-")), seed=1)
    return native.read(folder() / known.group / f"{name}.json")


def known(instance: Instance) -> Known | None:
    """Return what the library knows about this very instance: equal name and equal hash."""
    row = index().get(instance.name)
    return row if row is not None and row.sha256 == instance.sha256 else None


def certificate(name: str) -> Path | None:
    """Return the folder of an instance's certificate; ``None`` if it has none of its optimum.

    It is not judged here, only compared: same content of the instance, and the makespan of the
    index (``make check-certificates`` judges all).
    """
    row = index().get(name)
    path = folder() / CERTIFICATES / name
    if row is None or row.makespan is None or not (path / "certificate.json").is_file():
        return None
    document = native.parse_json(read_text(path / "certificate.json"))
    content = folder() / row.group / f"{name}.json"
    if not content.is_file():
        content = path / "instance.json"
    same = document["instance_sha256"] == hashlib.sha256(content.read_bytes()).hexdigest()
    return path if same and rational(document["makespan"]) == row.makespan else None


def best_schedule(instance: Instance) -> Schedule | None:
    """Return the library's best schedule of an instance, not yet verified; ``None`` without one."""
    path = folder() / "best" / f"{instance.name}.json"
    if known(instance) is None or not path.is_file():
        return None
    return read_schedule(path, instance)
