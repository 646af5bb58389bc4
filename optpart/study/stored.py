"""The finished runs of a store, read without their instances."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

from optpart.base.errors import FaultsOf, InputError
from optpart.base.escaping import visible
from optpart.interop.formats.json import parse_json, version
from optpart.interop.formats.result import FORMAT
from optpart.problem.instance import Instance
from optpart.problem.rational import rational
from optpart.solution.result import INVALID, Result, Status
from optpart.study import library
from optpart.study.arrival import rebuild
from optpart.study.store import Row, read_rows

#: What mends a damaged row.
_AGAIN = "delete the row, and run 'optpart gap' again"

#: Factors that every run has, besides ``n`` and those in the names of instances.
_KEYS = ("instance", "seconds", "workers", "memory", "deterministic", "optpart")


@dataclass(frozen=True)
class StoredRun:
    """A run as it is stored: its bounds, and without its instance its makespan, are claims.

    Attributes
    ----------
    is_verified : bool
        Whether its schedule, if it has one, was verified again when it was read.
    instance, sha256 : str
        Name and identity of the instance.
    vertices : int or None
        Their number, if the run has a schedule.
    limit : float
        The time limit in seconds.
    deterministic : float
        Limit in deterministic time; 0 for none.
    memory : int
        The memory limit in bytes; 0 for what was available.
    seconds : float
        How long the run took.
    trace : tuple of (float, Fraction or None, Fraction or None)
        Seconds, makespan and lower bound of each step.
    code : str
        The :func:`~optpart.methods.fingerprint.fingerprint` of the method; empty if not known.
    is_latest : bool
        Whether it was made by the code of the last sweep with this method.
    reason : str
        Why it has no schedule or no proof.
    time_unit : str
        Of makespan and bound; empty if the instance states none, or is not known.
    """

    instance: str
    sha256: str
    method: str
    seed: int
    limit: float
    workers: int
    deterministic: float
    optpart: str
    status: Status
    makespan: Fraction | None
    lower_bound: Fraction | None
    seconds: float
    vertices: int | None
    refused: bool
    trace: tuple[tuple[float, Fraction | None, Fraction | None], ...]
    code: str = ""
    is_latest: bool = True
    memory: int = 0
    is_verified: bool = False
    time_unit: str = ""
    reason: str = ""

    @property
    def is_rejected(self) -> bool:
        """Whether the verifier rejected its schedule."""
        return self.makespan is None and self.reason.startswith(INVALID)

    def factor(self, name: str) -> str | None:
        """Return the value of a factor; ``None`` if the run does not state it.

        ``n`` is the number of vertices. Other factors are marks in the name of the instance, a
        prefix and a number, as in ``fft-m8-d4-ccr0.5-s1``.
        """
        if name == "n" and self.vertices is not None:
            return str(self.vertices)
        if name in _KEYS:
            value = {"seconds": self.limit, "deterministic": self.deterministic}
            return str(value.get(name, getattr(self, name, ""))).removesuffix(".0")
        found = re.search(
            rf"(?:^|-){re.escape(name)}(\d+(?:\.\d+)?(?:e[+-]?\d+)?)(?=-|$)", self.instance
        )
        return found[1] if found else None


Bounded = TypeVar("Bounded", Result, StoredRun)


def strongest(found: Iterable[Bounded]) -> Bounded | None:
    """Return the first of those with the largest lower bound; ``None`` if none has a bound.

    No placement and no order may have been given for them. ``gap`` takes its bound from it, and so
    does whoever reads a store.
    """
    bounded = (each for each in found if each.lower_bound is not None)
    return max(bounded, key=lambda each: each.lower_bound or 0, default=None)


def read_runs(path: str | Path, instances: Iterable[Instance] = ()) -> list[StoredRun]:
    """Read all runs of a store, which is not changed.

    Parameters
    ----------
    instances : iterable of Instance
        Schedules of these, and of the instances of the library, are verified again.

    Raises
    ------
    InputError
        If the file is not a store, or a row is damaged, false or not about the makespan.
    """
    if not os.path.isfile(path):
        raise InputError("", "no such file", "name a store of 'optpart gap --store'", str(path))
    with FaultsOf(path):
        known: dict[str, Instance | None] = {one.sha256: one for one in instances}
        runs = [(row.key, _run(row, known)) for row in read_rows(path)]
        return [run for _, run in sorted(runs, key=lambda pair: (pair[0].method, pair[0]))]


def _run(row: Row, known: dict[str, Instance | None]) -> StoredRun:
    kinds = (str, str, int, int | float, int, int | float, int, str, str)
    if not all(isinstance(part, kind) for part, kind in zip(row.key, kinds, strict=True)):
        raise InputError("", "has a row with a damaged key", _AGAIN)
    sha256, method, seed, limit, workers, deterministic, memory, optpart, code = row.key
    place = f"row of {visible(str(method))}, seed {seed}"
    try:
        found = parse_json(row.document.decode())
        version(found, FORMAT)
        if (found["instance_sha256"], found["method"], found["seed"]) != (sha256, method, seed):
            raise InputError("", "belongs to another row", _AGAIN)
        if found.get("objective", "makespan") != "makespan" or found.get("given"):
            raise InputError("", "is not about the least makespan", _AGAIN)
        schedule = found["schedule"]
        instance = _instance(sha256, str(found["instance"]), known)
        if instance is not None:
            rebuild(found, instance)
        return StoredRun(
            instance=str(found["instance"]),
            sha256=sha256,
            method=method,
            seed=seed,
            limit=limit,
            workers=workers,
            deterministic=deterministic,
            memory=memory,
            optpart=optpart,
            code=code,
            is_latest=row.is_latest,
            is_verified=instance is not None,
            time_unit="" if instance is None else instance.time_unit,
            status=Status(found["status"]),
            makespan=_number(found["makespan"]),
            lower_bound=_number(found["lower_bound"]),
            seconds=float(found["seconds"]),
            vertices=None if schedule is None else len(schedule["placement"]),
            refused=bool(found.get("refused", False)),
            reason=str(found.get("reason", "")),
            trace=tuple(
                (float(seconds), _number(value), _number(bound))
                for seconds, value, bound in found["trace"]
            ),
        )
    except InputError as error:
        raise InputError(place, error.problem, error.remedy or _AGAIN) from None
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError(place, f"is damaged ({type(error).__name__})", _AGAIN) from None


def _instance(sha256: str, name: str, known: dict[str, Instance | None]) -> Instance | None:
    """Return the instance of a run if it is at hand."""
    if sha256 not in known:
        row = library.index().get(name)
        known[sha256] = library.load(name) if row is not None and row.sha256 == sha256 else None
    return known[sha256]


def _number(value: Any) -> Fraction | None:
    return None if value is None else rational(value)
