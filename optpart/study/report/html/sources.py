"""The subject of a report: one instance, and results of it from files and stores."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from optpart.base.errors import FaultsOf, InputError
from optpart.base.escaping import listed
from optpart.base.files import read_bytes
from optpart.interop.formats.json import parse_json
from optpart.interop.formats.result import FORMAT, read_document
from optpart.interop.formats.sqlite import is_database
from optpart.problem.instance import Instance
from optpart.solution.claim import LIBRARY, Claim
from optpart.solution.result import Result, only_claimed, with_claim
from optpart.study import library
from optpart.study.arrival import rebuild
from optpart.study.store import has_more_than, instances_of, read_rows

#: Most runs of stores on a page, of which every schedule is verified.
MOST_RUNS = 10_000

_ALONE = "report on one instance at a time"

#: Files that are neither instances nor results: what they are, and what to do with them.
_OTHERS = {
    "optpart-strategy/1": (
        "a strategy of training",
        "draw it with 'optpart strategy plot', or make an instance of it with 'optpart strategy "
        "compile' and solve that",
    ),
    "optpart-pipeline/1": (
        "a plan of a pipeline",
        "solve its instance with --objective bottleneck --contiguous, and report on the result",
    ),
}


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
    code: str = ""


def read_subjects(
    what: Iterable[Result | str | Path], load: Callable[[str], Instance]
) -> list[Subject]:
    """Read results, instances and stores.

    Parameters
    ----------
    what : iterable of Result, str or Path
        Results; files of results, instances and stores; names of library instances. Results of
        library instances need no instance.
    load : callable
        Opens an instance by path or name.

    Returns
    -------
    list of Subject
        Several only of stores: one for each instance that is named, or for all that have runs. A
        library instance alone comes with the best schedule and bound that the library knows.

    Raises
    ------
    InputError
        If something cannot be read, result files belong to several instances, or an instance is
        unknown.
    """
    instances: list[Instance] = []
    results: list[_Found] = []
    stores: list[str] = []
    given: list[Entry] = []
    for one in what:
        if isinstance(one, Result):
            given.append(Entry(one, ""))
            instances = _with(instances, one.instance)
            continue
        path = str(one)
        match kind(path):
            case "store":
                stores.append(path)
            case "result":
                document = read_document(path)
                name = document.get("instance") or ""
                sha = document.get("instance_sha256")
                results.append(_Found(path, "", sha, name, document))
            case _:
                instances = _with(instances, load(path))
    alone = bool(results or given) or not stores
    if alone and len(instances) > 1:
        problem = f"is another instance than {instances[0].name}"
        raise InputError("", problem, _ALONE, instances[1].name)
    if not (results or stores or given or instances):
        raise InputError("", "nothing to report on", "give results, instances or stores")
    if not results and not stores and not given:
        return [Subject(instances[0], _known(instances[0]))]
    if not instances:
        instances = [_instance_of(results)] if results else _instances_of(stores)
    _check_length(stores, instances)
    return [_subject(instance, given, results, stores) for instance in instances]


def _with(instances: list[Instance], another: Instance) -> list[Instance]:
    known = any(one.sha256 == another.sha256 for one in instances)
    return instances if known else [*instances, another]


def _subject(
    instance: Instance, given: list[Entry], results: list[_Found], stores: list[str]
) -> Subject:
    rows = [row for path in stores for row in _stored(path, instance.sha256)]
    if stores and not rows:
        problem = f"has no run on {instance.name}"
        raise InputError("", problem, "name the instance of one of its runs", stores[0])
    entries = (_entry(found, instance) for found in [*results, *rows])
    return Subject(instance, (*given, *entries))


def kind(path: str) -> str:
    """Return ``"result"``, ``"store"`` or, of other files and of names, ``"instance"``."""
    if not os.path.isfile(path):
        return "instance"
    if is_database(path):
        return "store"
    content = read_bytes(path)
    if not any(name.encode() in content for name in (FORMAT, *_OTHERS)):
        return "instance"
    with FaultsOf(path):
        document = parse_json(content.decode("utf-8-sig", errors="replace"))
    name = document.get("format") if isinstance(document, dict) else None
    if name in _OTHERS:
        other, remedy = _OTHERS[name]
        raise InputError("", f"is {other}, of which there is no report", remedy, path)
    return "result" if name == FORMAT else "instance"


def _stored(path: str, instance: str) -> Iterator[_Found]:
    """Yield the runs of a store on an instance."""
    for key, document, is_latest in read_rows(path, instance):
        row = f"{key.method}, seed {key.seed}"
        parsed = _parsed(path, row, document)
        file = path if is_latest else f"{path}, earlier code"
        name = parsed.get("instance") if isinstance(parsed, dict) else None
        yield _Found(file, row, key.instance_sha256, str(name or ""), parsed, key.code)


def _parsed(path: str, row: str, document: bytes) -> Any:
    with FaultsOf(path):
        try:
            return parse_json(document.decode())
        except UnicodeError:
            raise InputError(row, "not text", "run it again") from None


def _check_length(stores: Iterable[str], instances: Iterable[Instance]) -> None:
    """Refuse what would take too long to verify and to show."""
    for path in stores:
        for instance in instances:
            if has_more_than(path, MOST_RUNS, instance.sha256):
                raise InputError(
                    "",
                    f"has more than {MOST_RUNS:,} runs on {instance.name}",
                    "make tables of it: name a folder with --output",
                    path,
                )


def _instance_of(found: list[_Found]) -> Instance:
    """Return the library instance that all results belong to."""
    first = found[0]
    for other in found:
        if other.sha256 != first.sha256:
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


def _instances_of(stores: list[str]) -> list[Instance]:
    """Return the library instances of all runs, in the order of their names."""
    names: dict[str, str] = {}
    for path in stores:
        if has_more_than(path, MOST_RUNS):
            remedy = "name the instances to report on, or a folder with --output for tables"
            raise InputError("", f"has more than {MOST_RUNS:,} runs", remedy, path)
        for sha, document in instances_of(path):
            parsed = _parsed(path, "", document)
            name = parsed.get("instance") if isinstance(parsed, dict) else None
            names.setdefault(sha, str(name or ""))
    if not names:
        raise InputError("", "holds no runs", "give a store with results", stores[0])
    known = {name: library.load(name) for name in {*names.values()} & {*library.index()}}
    missing = sorted(
        name or "a run without a name"
        for sha, name in names.items()
        if name not in known or known[name].sha256 != sha
    )
    if missing:
        raise InputError(
            "",
            f"has runs on instances that are not in the library ({listed(missing, 3)})",
            "give the files of the instances to report on as well",
            stores[0],
        )
    return [known[name] for name in sorted(names.values())]


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
    return Entry(only_claimed(result, found.file, found.code), found.file)


def _known(instance: Instance) -> tuple[Entry, ...]:
    known = library.evidence(instance)
    if known.best is None:
        return ()
    claim = None if known.bound is None else Claim(LIBRARY, {"makespan": known.bound})
    return (Entry(with_claim(known.best, claim), LIBRARY),)
