"""Sets of instances to measure methods on, each with a version and a checksum.

A set is part of the library, a collection whose files are elsewhere and of which the library knows
names, checksums and best values, or a folder that :func:`write_drawn` made from a secret.
"""

from __future__ import annotations

import csv
import hashlib
import re
from dataclasses import dataclass, replace
from pathlib import Path

from optpart.base.choices import choice
from optpart.base.errors import ArgumentError, InputError
from optpart.base.files import ANY, read_text, write_text
from optpart.base.folders import check_folder, new_folder
from optpart.base.languages import to_csv
from optpart.interop.formats import native
from optpart.interop.formats.detect import read_instance
from optpart.interop.generate.sets import SETS, seeds_of
from optpart.problem.instance import Instance
from optpart.study import library
from optpart.study.library import Known

#: Most vertices of each class of sizes but the last.
_SIZES = {"small": 30, "middle": 200}
_LARGEST = "large"
SIZES = (*_SIZES, _LARGEST)

#: Not in the sets by size, since its instances were chosen against methods.
_CHOSEN = "worst"

#: The index of a folder, and its columns, which those of instances elsewhere have, too.
INDEX = "set.csv"
COLUMNS = ("name", "group", "file", "vertices", "edges", "devices", "makespan", "bound", "sha256")

#: Where collections come from.
ORIGINS = {
    "dagbench": "ANRGUSC/dagbench",
    "jobshop": "ScheduleOpt/benchmarks",
    "flexible-jobshop": "ScheduleOpt/benchmarks",
}

#: What a folder of :func:`write_drawn` holds.
HOLDS = "a set of instances"

#: Least characters of a secret; an exhaustive search would find shorter ones.
_LEAST = 32


def size_of(vertices: int) -> str:
    """Return the class of a size: ``small``, ``middle`` or ``large``."""
    return next((name for name, most in _SIZES.items() if vertices <= most), _LARGEST)


@dataclass(frozen=True)
class Dataset:
    """A named list of instances.

    Attributes
    ----------
    version : str
        It grows when an instance is added, removed or changed; empty for a folder.
    rows : tuple of Known
        What is known about each instance.
    data : Path or None
        The folder with the files of a collection.
    """

    name: str
    version: str
    rows: tuple[Known, ...]
    data: Path | None = None

    @property
    def sha256(self) -> str:
        """The checksum of names and instances; best values are no part of it."""
        return _digest("".join(sorted(f"{row.name} {row.sha256}\n" for row in self.rows)))

    def __str__(self) -> str:
        version = f", version {self.version}" if self.version else ""
        return f"{self.name}{version}: {len(self.rows)} instances, sha256 {self.sha256[:16]}"

    def load(self, row: Known) -> Instance:
        """Read an instance of the set.

        Raises
        ------
        InputError
            If its file is missing, or is another instance.
        """
        if self.data is None:
            instance, path = library.load(row.name), row.name
        else:
            path = str(self.data / row.file)
            if not Path(path).is_file():
                problem = f"no such file of the set {self.name}"
                raise InputError("", problem, f"give the folder {self._origin}", path)
            instance = read_instance(path)
        if instance.sha256 != row.sha256:
            read, right = instance.sha256[:16], row.sha256[:16]
            problem = f"is not {row.name} of the set {self.name} (sha256 {read} instead of {right})"
            raise InputError("", problem, f"take the file {self._origin}", path)
        return replace(instance, name=row.name)

    def instances(self) -> list[Instance]:
        """Read all instances."""
        return [self.load(row) for row in self.rows]

    @property
    def _origin(self) -> str:
        if self.data is None:
            return "that comes with optpart"
        return f"of a copy of {ORIGINS[self.name]}" if self.version else "as it was drawn"


def versions() -> dict[str, dict[str, str]]:
    """Return version, number of instances and checksum of each set that the library knows."""
    with open(library.folder() / "sets.csv", newline="", encoding="utf-8") as stream:
        return {row["name"]: row for row in csv.DictReader(stream)}


def rows_of(name: str) -> tuple[Known, ...]:
    """Return the rows of the library and of collections that a set consists of."""
    rows = [*library.index().values()]
    if name in SIZES:
        return tuple(r for r in rows if size_of(r.vertices) == name and r.group != _CHOSEN)
    return tuple(r for r in [*rows, *library.elsewhere().values()] if r.group == name)


def find(name: str, data: str | Path | None = None) -> Dataset:
    """Return a set by name, or that of a folder.

    Parameters
    ----------
    data : str or Path, optional
        The folder with the files of a collection, which are read when they are needed.

    Raises
    ------
    InputError
        If there is no such set, the folder is missing or has no use, or an index was changed.
    """
    known = versions()
    if name not in known:
        if not (Path(name) / INDEX).is_file():
            remedy = f"{choice(name, known)}; or name a folder with {INDEX}"
            raise ArgumentError("set_name", f"no set {name!r}", remedy)
        found = _read_folder(Path(name))
    else:
        found = Dataset(name, known[name]["version"], rows_of(name))
        if found.sha256 != known[name]["sha256"]:
            problem = f"the index of the library is not that of version {found.version}"
            raise InputError(f"set {name}", problem, "install optpart again")
        if name in ORIGINS:
            if data is None:
                problem = f"the files of {name} are not part of optpart"
                raise ArgumentError("data", problem, f"give a copy of {ORIGINS[name]}")
            if not Path(data).is_dir():
                raise InputError("", "no such folder", f"give a copy of {ORIGINS[name]}",
                                 str(data))  # fmt: skip
            return replace(found, data=Path(data))
    if data is not None:
        raise ArgumentError("data", f"{found.name} needs no other files", "leave it out")
    return found


def _read_folder(folder: Path) -> Dataset:
    rows, faults = library.read_index(folder / INDEX)
    if faults or not rows:
        name, fault = next(iter(faults.items()), ("", "has no instances"))
        raise InputError(name, fault, "draw the set again", str(folder / INDEX))
    return Dataset(next(iter(rows.values())).group, "", tuple(rows.values()), folder)


# --- hidden seeds --------------------------------------------------------------------------------


def read_secret(path: str | Path) -> str:
    """Return the secret in a file.

    Raises
    ------
    InputError
        If there is none, or it is so short that it could be found by trying.
    """
    if not Path(path).is_file():
        remedy = f"make one, such as with: openssl rand -hex 32 > {path}"
        raise InputError("", "no such file", remedy, str(path))
    secret = read_text(path).strip()
    if len(secret) < _LEAST:
        problem = f"has {len(secret)} characters, which could be found by trying"
        raise InputError("", problem, f"give {_LEAST} or more that nobody can guess", str(path))
    return secret


def commitment(secret: str) -> str:
    """Return what can be published before the secret, and fits no other: its SHA-256."""
    return _digest(secret)


def check_commitment(secret: str, published: str) -> None:
    """Refuse a secret that is not the one of a commitment.

    Raises
    ------
    InputError
        If it is another one, or the commitment is none.
    """
    if not re.fullmatch(r"[0-9a-f]{64}", published):
        raise ArgumentError("commitment", "is no SHA-256", "give its 64 digits from 0 to f")
    if commitment(secret) != published:
        problem = f"is not of this secret, which has {commitment(secret)}"
        raise ArgumentError("commitment", problem, "give the secret that was committed to")


def write_drawn(like: str, secret: str, folder: str | Path) -> Dataset:
    """Draw the instances of a group of the library anew, and write them as a set.

    Parameters
    ----------
    like : {"random", "workflows", "thesis"}
        The group. Sizes and parameters remain; graphs, costs and clusters are new.
    folder : str or Path
        A new folder, an empty one, or an earlier one of this function, which is replaced.

    Raises
    ------
    InputError
        If the group cannot be drawn, or the folder cannot be written.
    """
    if like not in SETS:
        raise ArgumentError("LIKE", f"cannot draw {like!r}", choice(like, SETS))
    check_folder(folder, HOLDS)
    name = f"{like}-{commitment(secret)[:12]}"
    table: list[tuple[object, ...]] = [COLUMNS]
    with new_folder(folder, HOLDS) as draft:
        for instance in SETS[like](seeds_of(secret)):
            file = f"{instance.name}.json"
            native.write(instance, draft / file)
            sizes = instance.vertices, len(instance.graph.edge_source), instance.devices
            table.append((instance.name, name, file, *sizes, "", "", instance.sha256))
        write_text(draft / INDEX, to_csv(table), ANY)
    return _read_folder(Path(folder))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
