"""The project's own instance library: instances by name, with the best known values of each."""

from __future__ import annotations

import csv
import hashlib
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from optpart.base.errors import InputError
from optpart.base.files import read_text

# Instances and schedules, and numpy with them, are loaded by those who need more than the index.
if TYPE_CHECKING:
    from optpart.problem.instance import Instance
    from optpart.solution.result import Result
    from optpart.solution.schedule import Schedule

#: Folder of the certificates, with one folder per instance.
CERTIFICATES = "certificates"


@dataclass(frozen=True)
class Known:
    """One row of the index.

    Attributes
    ----------
    group : str
        ``classic``, ``random``, ``tensorflow``, ``models``, ``workflows``, ``thesis`` or ``worst``;
        of instances elsewhere, the collection.
    small : bool
        Whether the instance is part of the small library, the default of ``optpart gap``.
    makespan, bound : Fraction or None
        Best known makespan and best proven bound.
    command : str
        The command that found both.
    file : str
        Of an instance elsewhere: its file below the folder of the collection.
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
    file: str = ""


@cache
def folder() -> Path:
    """Return the library's folder: inside the installed package, or beside it in a checkout."""
    package = Path(__file__).parents[1]
    installed = package / "instances"
    return installed if installed.is_dir() else package.parent / "instances"


def index() -> dict[str, Known]:
    """Return the rows of the index by name, without those that cannot be read."""
    return _index()[0]


def small() -> list[str]:
    """Return the names of the instances that ``optpart gap`` measures by default."""
    return [row.name for row in index().values() if row.small]


def unreadable() -> dict[str, str]:
    """Return the errors of the rows of the index that cannot be read, by name."""
    return _index()[1]


@cache
def elsewhere() -> dict[str, Known]:
    """Return what is known about instances whose files are not part of optpart, by sha256."""
    return {row.sha256: row for row in read_index(folder() / "elsewhere.csv")[0].values()}


@cache
def _index() -> tuple[dict[str, Known], dict[str, str]]:
    return read_index(folder() / "index.csv")


def read_index(path: Path) -> tuple[dict[str, Known], dict[str, str]]:
    """Read an index: its rows by name, and the errors of those that cannot be read."""
    rows: dict[str, Known] = {}
    faults: dict[str, str] = {}
    with open(path, newline="", encoding="utf-8") as stream:
        reader = csv.DictReader(stream)
        for row in reader:
            name = row.get("name") or f"line {reader.line_num}"
            if name in rows:
                faults[name] = "the index has two rows with that name"
                continue
            try:
                rows[name] = _known(row)
            except (ArithmeticError, KeyError, TypeError, ValueError) as error:
                faults[name] = f"its row of the index cannot be read ({error})"
    return rows, faults


def _known(row: dict[str, str]) -> Known:
    return Known(
        name=row["name"],
        group=row["group"],
        small=row.get("small") == "yes",
        vertices=int(row["vertices"]),
        edges=int(row["edges"]),
        devices=int(row["devices"]),
        makespan=Fraction(row["makespan"]) if row["makespan"] else None,
        bound=Fraction(row["bound"]) if row["bound"] else None,
        status=row.get("status", ""),
        sha256=row["sha256"],
        command=row.get("command", ""),
        file=row.get("file", ""),
    )


def load(name: str) -> Instance:
    """Return an instance of the library.

    Raises
    ------
    InputError
        If the library has no instance of that name, or the instance cannot be read.
    """
    if name not in index() and name in unreadable():
        raise InputError(name, unreadable()[name], "fix the row", str(folder() / "index.csv"))
    if name not in index():
        raise InputError(
            "", f"neither a file nor a library instance: {name!r}", "see 'optpart gap --list'"
        )
    known = index()[name]
    if known.group == "thesis":
        from optpart.interop.generate import thesis

        return thesis.instance(int(name.removeprefix("thesis-")), seed=1)
    from optpart.interop.formats import native

    return native.read(folder() / known.group / f"{name}.json")


def known(instance: Instance) -> Known | None:
    """Return the library's row for exactly this instance: equal name and equal hash."""
    row = index().get(instance.name)
    return row if row is not None and row.sha256 == instance.sha256 else None


def certificate(name: str) -> Path | None:
    """Return the folder of the certificate of an instance's optimum; ``None`` if it has none.

    The certificate is only compared here, not verified: it must be of the same instance and of the
    makespan in the index (``make check-certificates`` verifies all certificates).
    """
    row = index().get(name)
    return None if row is None or _certificate_fault(row) else _certificate(row)


def _certificate(row: Known) -> Path | None:
    path = folder() / CERTIFICATES / row.name
    return path if row.makespan is not None and (path / "certificate.json").is_file() else None


def _certificate_fault(row: Known) -> str:
    """Return why a certificate is not of the instance's optimum; empty if it is, or if none."""
    from optpart.interop.formats.json import parse_json
    from optpart.problem.rational import rational

    path = _certificate(row)
    if path is None:
        return ""
    content = folder() / row.group / f"{row.name}.json"
    if not content.is_file():
        content = path / "instance.json"
    try:
        document = parse_json(read_text(path / "certificate.json"))
        same = document["instance_sha256"] == hashlib.sha256(content.read_bytes()).hexdigest()
        makespan = rational(document["makespan"])
    except (InputError, OSError, KeyError, TypeError, ValueError, RecursionError):
        return "its certificate cannot be read"
    if not same:
        return "its certificate belongs to another instance"
    if makespan != row.makespan:
        return f"its certificate is of {makespan}, the index says {row.makespan}"
    return ""


def best_schedule(instance: Instance) -> Schedule | None:
    """Return the library's best schedule of an instance, not yet verified; ``None`` without one."""
    from optpart.interop.formats.result import read_schedule

    path = folder() / "best" / f"{instance.name}.json"
    if known(instance) is None or not path.is_file():
        return None
    return read_schedule(path, instance)


@dataclass(frozen=True)
class Evidence:
    """The library's knowledge about an instance, as far as it is consistent.

    Attributes
    ----------
    best : Result or None
        The library's best schedule, if the verifier accepts it.
    claimed : Fraction or None
        The best known makespan according to the index; ``None`` if anything in the row is wrong.
    bound : Fraction or None
        The proven bound according to the index; ``None`` if anything in the row is wrong.
    certified : bool
        Whether there is a certificate of the makespan.
    faults : tuple of str
        The errors of the row, its schedule and its certificate.
    """

    best: Result | None = None
    claimed: Fraction | None = None
    bound: Fraction | None = None
    certified: bool = False
    faults: tuple[str, ...] = ()

    @property
    def makespan(self) -> Fraction | None:
        """The makespan of the best schedule."""
        return None if self.best is None else self.best.makespan


def evidence(instance: Instance) -> Evidence:
    """Return what the library knows about exactly this instance, as far as it is consistent.

    The best schedule is verified. Bound and certificate count only if nothing in the row is wrong.
    Of instances elsewhere, only the values of the index are known.
    """
    row = index().get(instance.name)
    faults = [unreadable()[instance.name]] if instance.name in unreadable() else []
    if row is None:
        other = None if faults else elsewhere().get(instance.sha256)
        if other is not None:
            return Evidence(claimed=other.makespan, bound=other.bound)
        return Evidence(faults=tuple(faults))
    if row.sha256 != instance.sha256:
        if _is_ours(instance):
            faults.append("the sha256 in its row of the index is not that of the instance")
        return Evidence(faults=tuple(faults))
    if row.makespan is not None and row.bound is not None and row.bound > row.makespan:
        faults.append(f"best known {row.makespan} is below its bound {row.bound}")
    elif (row.status == "OPTIMAL") != (row.makespan is not None and row.makespan == row.bound):
        known = f"best known {row.makespan} and bound {row.bound}"
        faults.append(f"{row.status} does not follow from {known}")
    best, fault = _verified(instance, row)
    faults += filter(None, [fault, _certificate_fault(row)])
    if faults:
        return Evidence(best, faults=tuple(faults))
    certified = best is not None and _certificate(row) is not None
    return Evidence(best, row.makespan, row.bound, certified)


def _is_ours(instance: Instance) -> bool:
    """Return whether an instance is that of the library, and does not merely share its name."""
    try:
        return load(instance.name).sha256 == instance.sha256
    except (InputError, OSError):
        return False


def _verified(instance: Instance, row: Known) -> tuple[Result | None, str]:
    """Return the best schedule if it is valid, and its error otherwise."""
    from optpart.solution.result import conclude

    try:
        schedule = best_schedule(instance)
    except InputError as error:
        return None, f"its best schedule cannot be read ({error.place}: {error.problem})"
    if schedule is None:
        return None, ""
    result = conclude(instance, "library", schedule)
    if result.makespan is None:
        return None, f"its best schedule is refused: {result.reason}"
    if result.makespan != row.makespan:
        said = f"best known {row.makespan} is not that of its schedule, which is {result.makespan}"
        return result, said
    return result, ""
