"""An archive of bounds with certificates: what others published, and what anyone can check of it.

A *list of best known values* is a JSON file in the form of ScheduleOpt's ``bks.json``: objects with
``instance``, ``family``, ``type``, ``size``, ``lower_bound``, ``upper_bound`` and more. The files
of its instances are anywhere below the folder that it is in. The archive is a folder with an index
of the same form, ``bks.json``, and a packed certificate per instance. An entry of the index has the
bounds that its certificate proves; ``published`` are those of the list.
"""

from __future__ import annotations

import hashlib
import io
import math
import os
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any, BinaryIO

from optpart.base import clock
from optpart.base.children.scratch import Scratch
from optpart.base.errors import FaultsOf, InputError, OptpartError
from optpart.base.files import (
    ANY,
    Kind,
    begins,
    check_target,
    held,
    read_bytes,
    read_text,
    write_bytes,
    write_faults,
)
from optpart.base.languages import to_json
from optpart.certificates import check
from optpart.certificates.certify import certify_bound, problem_of
from optpart.interop.formats.detect import read_instance
from optpart.interop.formats.json import parse_json
from optpart.lower_bounds.best import each_bound
from optpart.methods import registry
from optpart.problem.instance import Instance
from optpart.problem.rational import rational, shown
from optpart.solution.result import Budget
from optpart.version import __version__

#: The index of an archive, and the folder of its certificates.
INDEX, CERTIFICATES = "bks.json", "certificates"

#: The method that finds the schedules, and its share of the time; proofs have as much, and bounds
#: half of it. Slow bounds are left out: they would take from the proofs.
METHOD = "cpsat"
_SHARE = 0.4
_SLOW = {"cases", "crossings", "destructive", "branching"}

#: The files of a certificate, in the order in which they are packed, and most bytes of each.
_MEMBERS = ("certificate.json", "instance.json", "schedule.json", "proof.lrat.xz")
_MOST = 2**28

#: Names of instances that can be names of files everywhere.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,99}")

#: What failed if a list has names only.
_NO_FILE = "no file of this instance"

#: What an entry takes over from a list.
_KEPT = ("size", "type", "family", "family_long")

PACKED = Kind("a packed certificate", begins(rb"(?s)PK\x03\x04.{26}certificate\.json"))


def _is_index(stream: BinaryIO) -> bool:
    try:
        rows = parse_json(stream.read().decode())
    except (InputError, ValueError):
        return False
    if not isinstance(rows, list):
        return False
    return bool(rows) and all(isinstance(row, dict) and "optpart" in row for row in rows)


KIND = Kind("the index of an archive", _is_index)

#: An entry of an index.
Row = dict[str, Any]


@dataclass(frozen=True)
class Listed:
    """An instance that a list names, or whose file is beside it.

    Attributes
    ----------
    name : str
    set : str
        The folder of the list and the family, or the folder of the file.
    files : tuple of Path
        Files that may hold it; the first that can be read counts.
    about : dict
        What the list says about its size and origin.
    lower, upper : Fraction or None
        The published bounds.
    """

    name: str
    set: str
    files: tuple[Path, ...]
    about: Mapping[str, Any]
    lower: Fraction | None = None
    upper: Fraction | None = None

    @property
    def published(self) -> dict[str, Any]:
        """The published bounds, for JSON."""
        return {"lower_bound": _plain(self.lower), "upper_bound": _plain(self.upper)}

    def read(self) -> Instance:
        """Read the instance.

        Raises
        ------
        InputError
            That of the last file, if none can be read.
        """
        fault = InputError(self.name, _NO_FILE, "put it beside the list")
        for file in self.files:
            try:
                return read_instance(file)
            except InputError as error:  # an index may go elsewhere, and knows no folders
                fault = InputError(error.place, error.problem, error.remedy, file.name)
        raise fault


def read_lists(paths: Iterable[str | Path]) -> list[Listed]:
    """Read lists of best known values, and find the files of their instances.

    The file of an instance has its name before the suffix; or its name is that of the file and of
    the folder (``la01_edata`` in ``edata/la01.txt``), or of family and file (``dpp01a`` in
    ``01a.txt``). Files that no name stands for are instances about which nothing is published.

    Raises
    ------
    InputError
        If a list is not of this form, or a name occurs twice.
    """
    found: dict[str, Listed] = {}
    for path in map(Path, paths):
        with FaultsOf(path):
            for each in _list(path):
                if not _NAME.fullmatch(each.name):
                    remedy = "use letters, digits, '_', '.', '+' and '-'"
                    raise InputError(each.name, "cannot be the name of a file", remedy)
                if each.name in found:
                    raise InputError(each.name, "named twice", "give every name once")
                found[each.name] = each
    return list(found.values())


def _list(path: Path) -> Iterator[Listed]:
    rows = parse_json(read_text(path))
    if not isinstance(rows, list):
        raise InputError("", "is no list of instances", "give one in the form of bks.json")
    place = path.absolute().parent
    files = sorted(f for f in place.rglob("*.txt") if f.is_file())
    unnamed = set(files)
    for i, row in enumerate(rows):
        if not isinstance(row, dict) or not isinstance(row.get("instance"), str):
            raise InputError(f"[{i}]", "names no instance", 'give an object with "instance"')
        name, family = row["instance"], str(row.get("family", ""))
        own = tuple(
            file
            for file in files
            if name in (file.stem, f"{file.stem}_{file.parent.name}", f"{family}{file.stem}")
        )
        unnamed -= {*own}
        yield Listed(
            name,
            f"{place.name}/{family}",
            own,
            {key: row[key] for key in _KEPT if key in row},
            *(_bound(row.get(key), f"[{i}].{key}") for key in ("lower_bound", "upper_bound")),
        )
    for file in sorted(unnamed):
        yield Listed(file.stem, f"{place.name}/{file.parent.name}", (file,), {})


def _bound(value: object, place: str) -> Fraction | None:
    return None if value is None else rational(value, place)


def _plain(value: Fraction | None) -> int | str | None:
    """Return a bound for JSON: exact, and whole where it can be, as in the lists."""
    if value is None:
        return None
    return value.numerator if value.denominator == 1 else str(value)


class Archive:
    """An archive in a folder, new or to be continued.

    Raises
    ------
    InputError
        If the index is of another kind, or the folder cannot be written.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.index = self.folder / INDEX
        self.rows: dict[str, Row] = {}
        with write_faults(folder):
            if os.path.lexists(folder) and not os.path.isdir(folder):
                raise InputError("", "is not a folder", "name a folder", str(folder))
            names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
        # What a run leaves that was killed before its first entry.
        foreign = [name for name in names if name not in (CERTIFICATES, f".{INDEX}.lock")]
        if not self._read() and foreign:
            problem = f"is there, and no {INDEX}: this is no archive"
            raise InputError(foreign[0], problem, "name another folder", str(folder))

    def _read(self) -> bool:
        """Read the index, and return whether there is one."""
        if not os.path.lexists(self.index):
            return False
        check_target(self.index, KIND, forcible=False)
        with FaultsOf(self.index):
            for row in parse_json(read_text(self.index)):
                _check_row(row)
                row["time_limit"] = float(rational(row["time_limit"]))
                self.rows[row["instance"]] = row
        return True

    @contextmanager
    def held(self) -> Iterator[None]:
        """Make the folder, and hold it against other processes.

        Raises
        ------
        InputError
            If it cannot be made, or another process holds it.
        """
        with write_faults(self.folder):
            self.path("").parent.mkdir(parents=True, exist_ok=True)
        with held(self.index, "another 'optpart archive'"):
            self._read()  # another process may have added to it meanwhile
            yield

    def path(self, name: str) -> Path:
        """Return where the certificate of an instance is; no file says so."""
        return self.folder / CERTIFICATES / f"{name}.zip"

    def is_done(self, name: str, seconds: float) -> bool:
        """Return whether its optimum is certified, or this version has given it that time."""
        row = self.rows.get(name)
        if row is None or (row["lb_data"] and not self._is_whole(row)):
            return False
        had = row["optpart"] == __version__ and row["time_limit"] >= seconds
        return had or bool(row["status"] == "closed")

    def _is_whole(self, row: Row) -> bool:
        """Return whether the certificate is that of the index: a run may have been killed."""
        try:
            content = read_bytes(self.path(row["instance"]))
        except InputError:
            return False
        return bool(_digest(content) == row["lb_data"][0]["certificate"]["sha256"])

    def add(self, listed: Listed, seconds: float, memory: int | None = None) -> Row:
        """Solve, bound and certify an instance, and enter it into the index, which must be held.

        An earlier certificate stays unless the new one proves more.

        Parameters
        ----------
        seconds : float
            Time limit: two fifths for the schedule, one for bounds, and the rest for proofs.
        """
        row: Row = {"instance": listed.name, **listed.about, "set": listed.set}
        before = self.rows.get(listed.name, {})
        if before.get("lb_data") and not self._is_whole(before):
            before = {}
        failed = ""
        found: Row = {}
        try:
            content, found = _certified(listed, seconds, memory)
            if _proves_more(found, before):
                write_bytes(self.path(listed.name), content, PACKED)
        except OptpartError as error:
            failed = str(error)
        if not _proves_more(found, before):
            found = {key: before[key] for key in _OURS if key in before}
        closed = found.get("lower_bound") is not None
        closed = closed and found["lower_bound"] == found["upper_bound"]
        self.rows[listed.name] = {
            **row,
            "status": "closed" if closed else "open",
            "lower_bound": None,
            "upper_bound": None,
            "lb_data": [],
            "ub_data": [],
            **found,
            "published": listed.published,
            "optpart": __version__,
            "time_limit": seconds,
            "failed": failed,
        }
        write_bytes(self.index, self._text().encode(), KIND)
        return self.rows[listed.name]

    def _text(self) -> str:
        """Return the index, with an entry per line."""
        return "[\n" + ",\n".join(map(to_json, self.rows.values())) + "\n]\n"


#: What a certificate gives an entry.
_OURS = ("lower_bound", "upper_bound", "lb_data", "ub_data")


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _check_row(row: Row) -> None:
    """Refuse an entry that no archive has; what it claims is for the judge."""
    name = row.get("instance")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InputError(shown(name), "cannot be the name of an instance", "write the index anew")
    try:
        for place in (row, row["published"]):
            for key in ("lower_bound", "upper_bound"):
                _bound(place[key], key)
        texts = [row[key] for key in ("set", "status", "optpart", "failed")]
        rational(row["time_limit"], "time_limit")
        for entry in row["lb_data"]:
            texts += [entry["certificate"]["tier"], entry["certificate"]["sha256"]]
            if not isinstance(entry["certificate"]["size"], int):
                raise TypeError("size")
    except (KeyError, TypeError) as error:
        problem = f"is no entry of an archive ({shown(str(error))})"
        raise InputError(name, problem, "write the index anew") from None
    if not all(isinstance(text, str) for text in texts):
        raise InputError(name, "is no entry of an archive", "write the index anew")


def _proves_more(found: Row, before: Row) -> bool:
    """Return whether a certificate has a greater bound, or the same and a shorter schedule."""

    def rank(row: Row) -> tuple[Fraction, bool, Fraction]:
        lower = _bound(row.get("lower_bound"), "")
        upper = _bound(row.get("upper_bound"), "")
        return Fraction(-1) if lower is None else lower, upper is not None, -(upper or Fraction(0))

    return rank(found) > rank(before)


def _certified(listed: Listed, seconds: float, memory: int | None) -> tuple[bytes, Row]:
    """Return a packed certificate of the best bound of an instance, and what it proves."""
    begin = clock.now()
    instance = listed.read()
    problem_of(instance)  # refuses what certificates do not cover before any work
    budget = Budget(_SHARE * seconds, 1, memory=memory)
    result = registry.get(METHOD)(instance, budget=budget)
    proposed = {
        bound.value
        for bound in each_bound(
            instance, _SHARE / 2 * seconds, makespan=result.makespan, without=_SLOW
        )
        if bound.value is not None
    }
    # What solver and list claim is worth a try: only what has a proof is written.
    for claim in (result.lower_bound, listed.lower):
        if claim is not None and (result.makespan is None or claim <= result.makespan):
            proposed.add(claim)
    with Scratch() as scratch:
        folder = scratch.folder / "certificate"
        proven = certify_bound(
            instance,
            proposed,
            folder,
            schedule=result.schedule,
            method=result.method,
            seconds=max(_SHARE * seconds, begin + seconds - clock.now()),
        )
        content = pack(folder)
    took = math.ceil(clock.now() - begin)
    entry = {
        "date": datetime.now(UTC).date().isoformat(),
        "solver": f"optpart {__version__}",
        "time": took,
        "certificate": {
            "path": f"{CERTIFICATES}/{listed.name}.zip",
            "tier": proven.refutation.tier,
            "size": len(content),
            "sha256": _digest(content),
        },
    }
    upper = _plain(result.makespan)
    return content, {
        "lower_bound": _plain(proven.bound),
        "upper_bound": upper,
        "lb_data": [{"value": _plain(proven.bound), **entry}],
        "ub_data": [] if upper is None else [{"value": upper, **entry}],
    }


# --- packed certificates -------------------------------------------------------------------------


def pack(folder: Path) -> bytes:
    """Return the files of a certificate as a ZIP file, the same for the same files."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as packed:
        for name in _MEMBERS:
            if (folder / name).exists():
                member = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
                member.compress_type = zipfile.ZIP_DEFLATED
                packed.writestr(member, read_bytes(folder / name))
    return stream.getvalue()


def unpack(content: bytes, folder: Path) -> None:
    """Write the files of a packed certificate to a folder, in the place of those of another.

    Raises
    ------
    InputError
        If it is not what :func:`pack` returns.
    """
    wrong = InputError("", "is no packed certificate", "archive the instance again")
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as packed:
            members = packed.infolist()
            names = [member.filename for member in members]
            if len({*names}) < len(names) or not {*names} <= {*_MEMBERS}:
                raise wrong
            if any(member.file_size > _MOST for member in members):
                raise wrong
            for name in _MEMBERS:
                (folder / name).unlink(missing_ok=True)
                if name in names:
                    write_bytes(folder / name, packed.read(name), ANY)
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError):
        raise wrong from None


# --- judging -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Verdict:
    """What became of an entry.

    Attributes
    ----------
    name : str
    proven : bool
        Whether the judge accepts the certificate, and it proves what the entry says.
    said : str
        What it proves, or why it does not.
    contradictions : tuple of str
        Published values that the certificate proves wrong.
    """

    name: str
    proven: bool
    said: str
    contradictions: tuple[str, ...] = ()


def judged(archive: Archive, listed: Sequence[Listed] = ()) -> Iterator[Verdict]:
    """Judge every certificate of an archive, and compare what it proves with what is published.

    Entries without a certificate are left out. With lists, each certificate must also be about the
    instance of that name, as optpart reads its file.
    """
    known = {each.name: each for each in listed}
    with Scratch() as scratch:
        for name, row in archive.rows.items():
            if not row["lb_data"]:
                continue
            try:
                said = _judge(archive.path(name), row, known.get(name), scratch.folder)
            except (check.RejectedError, OptpartError) as error:
                yield Verdict(name, False, str(error))
                continue
            yield Verdict(name, True, said, tuple(contradictions(row)))


def _judge(path: Path, row: Row, listed: Listed | None, folder: Path) -> str:
    """Return what a certificate proves, if that is what its entry says."""
    content = read_bytes(path)
    if row["lb_data"][0]["certificate"]["sha256"] != _digest(content):
        raise InputError("", "is not the certificate of the index", "archive it again", str(path))
    with FaultsOf(path):
        unpack(content, folder)
        said = check.check(str(folder))
        claimed = parse_json(read_text(folder / _MEMBERS[0]))
        for key, value in (("bound", row["lower_bound"]), ("makespan", row["upper_bound"])):
            proven = _bound(claimed.get(key), key)
            if proven != _bound(value, key):
                problem = f"says {_plain(proven)}, and the index {value}"
                raise InputError(key, problem, "archive it again")
        if listed is not None and problem_of(listed.read())[0] != read_bytes(folder / _MEMBERS[1]):
            raise InputError("", "is about another instance", "archive it again")
    return said


def contradictions(row: Row) -> Iterator[str]:
    """Yield each published value that a proven bound or schedule of an entry contradicts."""
    published = row["published"]
    ours = {key: _bound(row[key], key) for key in ("lower_bound", "upper_bound")}
    theirs = {key: _bound(published.get(key), key) for key in ours}
    lower, upper = ours["lower_bound"], ours["upper_bound"]
    if lower is not None and (best := theirs["upper_bound"]) is not None and lower > best:
        yield f"no schedule takes less than {lower}, but one of {best} is published"
    if upper is not None and (least := theirs["lower_bound"]) is not None and upper < least:
        yield f"a schedule takes {upper}, but {least} is published as a lower bound"


# --- the summary ---------------------------------------------------------------------------------

#: The heads of the columns of :func:`summary`.
HEADS = (
    "set", "instances", "certificates", "optimal", "published", "certified", "missed", "no file",
    "kB",
)  # fmt: skip


def summary(rows: Iterable[Row]) -> list[tuple[str, ...]]:
    """Return a row per set, and one for all, with the columns of :data:`HEADS`.

    ``optimal`` are entries whose bounds meet; ``published`` have a published lower bound, which
    ``certified`` ones reach with a certificate and ``missed`` ones with a file do not; ``kB`` is
    what the certificates take.
    """
    counts: dict[str, list[int]] = {}
    for row in rows:
        lower = _bound(row["lower_bound"], "")
        least = _bound(row["published"].get("lower_bound"), "")
        has = bool(row["lb_data"])
        reached = least is not None and lower is not None and lower >= least
        absent = not has and _NO_FILE in row["failed"]
        size = row["lb_data"][0]["certificate"]["size"] if has else 0
        figures = (
            1, has, lower is not None and row["lower_bound"] == row["upper_bound"],
            least is not None, reached, least is not None and not reached and not absent, absent,
            size,
        )  # fmt: skip
        for name in (row["set"], "all"):
            kept = counts.setdefault(name, [0] * len(figures))
            counts[name] = [a + int(b) for a, b in zip(kept, figures, strict=True)]
    total = counts.pop("all", [0] * (len(HEADS) - 1))
    lines = [*sorted(counts.items()), ("all", total)]
    return [(name, *map(str, row[:-1]), str(-(-row[-1] // 1000))) for name, row in lines]
