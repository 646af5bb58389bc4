"""What a report is about: one instance, and results of it from files and stores."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from optpart.errors import FaultsOf, InputError
from optpart.files import read_bytes
from optpart.formats.json import parse_json
from optpart.formats.result import FORMAT, read_document
from optpart.problem.instance import Instance
from optpart.solution.result import Result, with_bound
from optpart.study import library
from optpart.study.arrival import rebuild
from optpart.study.store import Store

_ALONE = "report on one instance at a time"


@dataclass(frozen=True)
class Entry:
    """A result, and where it comes from."""

    result: Result
    source: str


@dataclass(frozen=True)
class Subject:
    """An instance and its results, in the order given."""

    instance: Instance
    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class _Found:
    """The document of a result, not yet interpreted."""

    file: str
    row: str
    sha256: str | None
    name: str
    document: Any


def read_subject(what: Iterable[Result | str | Path], load: Callable[[str], Instance]) -> Subject:
    """Read results, instances and stores.

    Parameters
    ----------
    what : iterable of Result, str or Path
        Results; files of results, instances and stores; names of library instances. Result files
        of library instances need no instance; of a store, only the rows of the instance count.
    load : callable
        Opens an instance by path or name.

    Returns
    -------
    Subject
        A library instance alone comes with the best schedule and bound that the library knows.

    Raises
    ------
    InputError
        If something cannot be read, results belong to several instances, or theirs is unknown.
    """
    instance: Instance | None = None
    results: list[_Found] = []
    stores: list[_Found] = []
    given: list[Entry] = []
    for one in what:
        if isinstance(one, Result):
            given.append(Entry(one, ""))
            instance = _same(one.instance, instance, f"the result of {one.method}")
            continue
        path = str(one)
        match _kind(path):
            case "store":
                stores += _stored(path)
            case "result":
                document = read_document(path)
                name = document.get("instance") or ""
                sha = document.get("instance_sha256")
                results.append(_Found(path, "", sha, name, document))
            case _:
                instance = _same(load(path), instance, path)
    if not results and not stores and not given and instance is not None:
        return Subject(instance, _known(instance))
    if instance is None:
        instance = _instance_of([*results, *stores])
    rows = [row for row in stores if row.sha256 == instance.sha256]
    if stores and not rows:
        problem = f"has no run on {instance.name}"
        raise InputError("", problem, "name the instance of one of its runs", stores[0].file)
    entries = (_entry(found, instance) for found in [*results, *rows])
    return Subject(instance, (*given, *entries))


def _same(instance: Instance, before: Instance | None, file: str) -> Instance:
    if before is not None and before.sha256 != instance.sha256:
        problem = f"is of {instance.name}, another instance than {before.name}"
        raise InputError("", problem, _ALONE, file)
    return instance


def _kind(path: str) -> str:
    if not Path(path).is_file():
        return "instance"
    content = read_bytes(path)
    if content.startswith(b"SQLite format 3\0"):
        return "store"
    if FORMAT.encode() not in content:
        return "instance"
    with FaultsOf(path):
        document = parse_json(content.decode("utf-8-sig", errors="replace"))
    found = isinstance(document, dict) and document.get("format") == FORMAT
    return "result" if found else "instance"


def _stored(path: str) -> list[_Found]:
    found = []
    with Store(path) as store:
        for key, text in store.documents():
            row = f"{key.method}, seed {key.seed}"
            with FaultsOf(path):
                document = parse_json(text)
            name = document.get("instance") if isinstance(document, dict) else None
            found.append(_Found(path, row, key.instance_sha256, str(name or ""), document))
    if not found:
        raise InputError("", "holds no runs", "give a store with results", path)
    return found


def _instance_of(found: list[_Found]) -> Instance:
    """Return the library instance that all results belong to."""
    first = found[0]
    for other in found:
        if other.sha256 != first.sha256:
            names = list(dict.fromkeys(one.name for one in found))
            listed = ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
            if other.file == first.file:
                raise InputError(
                    "",
                    f"holds runs on several instances ({listed})",
                    "name one as well",
                    other.file,
                )
            problem = f"is a result of {other.name}, unlike {first.file} of {first.name}"
            raise InputError("", problem, _ALONE, other.file)
    if first.name not in library.index():
        raise InputError(
            "instance",
            f"{first.name!r} is not in the library" if first.name else "missing",
            "give the file of the instance as well",
            first.file,
        )
    return library.load(first.name)


def _entry(found: _Found, instance: Instance) -> Entry:
    with FaultsOf(found.file):
        if found.sha256 != instance.sha256:
            raise InputError("", f"is a result of {found.name}, not of {instance.name}", _ALONE)
        try:
            result = rebuild(found.document, instance)
        except InputError as error:
            place = ": ".join(part for part in (found.row, error.place) if part)
            raise InputError(place, error.problem, error.remedy) from None
    document = found.document
    result = replace(
        result,
        schedule_by=str(document.get("schedule_by", "")),
        bound_by=str(document.get("bound_by", "")),
    )
    return Entry(result, found.file)


def _known(instance: Instance) -> tuple[Entry, ...]:
    known = library.evidence(instance)
    if known.best is None:
        return ()
    best = known.best if known.bound is None else with_bound(known.best, known.bound)
    return (Entry(best, "the instance library"),)
