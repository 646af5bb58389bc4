"""Bounds that go on: limits that double, and a file that keeps what was proven.

What an earlier run has written there is a claim, until this run has proven as much.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

from optpart.base import clock
from optpart.base.errors import ArgumentError, FaultsOf, InputError
from optpart.base.files import Kind, of_format, read_text, write_text
from optpart.exact.series.bound import SERIES
from optpart.interop.formats.json import keys, parse_json, sequence, text, version
from optpart.kernels.all import expect
from optpart.lower_bounds.best import BOUNDS, Bound, LowerBound, each_bound, largest
from optpart.methods.fingerprint import differing, fingerprint
from optpart.methods.fitting import unfit_bounds
from optpart.methods.solver_bound import solver_rows
from optpart.problem.instance import Instance
from optpart.problem.rational import non_negative
from optpart.search.checkpoint import check_new, resumed
from optpart.solution.claim import Claim
from optpart.solution.result import Budget

_LOG = logging.getLogger(__name__)

FORMAT = "optpart-bounds/1"
KIND = Kind("a checkpoint of bounds", of_format(FORMAT))

_KEYS = {"format", "instance_sha256", "code", "bounds"}
#: A digest that earlier versions wrote; it proves nothing, since anybody can compute it.
_FORMER = {"sha256"}

#: What the code of bounds counts as: some use solvers.
_METHOD = "cpsat"

#: Seconds of the first round.
FIRST_ROUND = 30.0


@dataclass(frozen=True)
class Kept:
    """The best value of a bound so far, by this run and earlier ones.

    Attributes
    ----------
    bound : LowerBound
        With the time spent on it in all.
    limit : float
        The longest time limit that it had.
    ended : bool
        Whether it ended long before its limit, so that more time is no use.
    code : str
        The fingerprint of the code that proved it.
    """

    bound: LowerBound
    limit: float
    ended: bool
    code: str


@dataclass
class BoundsFile:
    """The file in which bounds are kept. A failure to write it never ends their computation.

    Attributes
    ----------
    path : Path
    warn : callable, optional
        Called with the first of several consecutive faults.
    kept : dict
        What the file holds of each bound, by name.
    proven : dict
        What this run has proven.
    fault : InputError or None
        Reason why the file does not contain the latest bounds, if it does not.
    """

    path: Path
    warn: Callable[[InputError], None] | None = None
    kept: dict[str, Kept] = field(default_factory=dict)
    proven: dict[str, LowerBound] = field(default_factory=dict)
    fault: InputError | None = None

    @property
    def seconds(self) -> float:
        """Time spent so far."""
        return sum(kept.bound.seconds for kept in self.kept.values())

    @property
    def found(self) -> list[LowerBound]:
        """The best value of each bound that this run has proven."""
        return list(self.proven.values())

    @property
    def claims(self) -> list[Claim]:
        """Bounds that earlier runs have written into the file and this one has not proven."""
        best = largest(self.found) if self.proven else None
        if best is not None and best.value is None:
            return []
        return [
            Claim(
                str(self.path),
                {} if kept.bound.value is None else {"makespan": kept.bound.value},
                infeasible=kept.bound.value is None,
                method=name,
                code=kept.code,
            )
            for name, kept in self.kept.items()
            if best is None or kept.bound.value is None or kept.bound.value > (best.value or 0)
        ]

    @property
    def can_go_on(self) -> list[str]:
        """The bounds that more time may raise, the one that needs the least of it first."""
        if any(bound.value is None for bound in self.found):
            return []
        rest = [kept for kept in self.kept.values() if not kept.ended]
        return [kept.bound.name for kept in sorted(rest, key=lambda kept: kept.limit)]

    def resumed(self, seconds: float) -> str:
        """Say how much of a time limit is spent and left, and by what code; empty in a new file."""
        here = fingerprint(_METHOD)
        others = {kept.code or "which is not named" for kept in self.kept.values()} - {here}
        said = [resumed(self.seconds, seconds)] if self.kept else []
        said += [f"bounds in it are by other code, {differing(here, code)}" for code in others]
        return "; ".join(said)

    def open(self, instance: Instance, *, resume: bool) -> None:
        """Read what an earlier run has found, or make sure that nothing is overwritten.

        Raises
        ------
        ArgumentError
            If the file exists and is not to be resumed.
        InputError
            If it is not a file of bounds, or of another instance.
        """
        if not resume:
            check_new(self.path)
            return
        with FaultsOf(self.path):
            self.kept = _read(parse_json(read_text(self.path)), instance)

    def add(self, instance: Instance, bound: LowerBound) -> LowerBound:
        """Keep a bound at once, and return the best value that this run has proven."""
        limit, ended, best, code = bound.limit, bound.ended, bound, fingerprint(_METHOD)
        before = self.kept.get(bound.name)
        if before is not None:
            ended |= before.ended and limit < before.limit
            limit = max(before.limit, limit)
            best = bound.after(before.bound)
            code = before.code if best.value != bound.value else code
        self.kept[bound.name] = Kept(best, limit, ended, code)
        self.proven[bound.name] = bound.after(self.proven.get(bound.name))
        self._write(instance)
        return self.proven[bound.name]

    def _write(self, instance: Instance) -> None:
        fault, self.fault = self.fault, None
        bounds = [
            {
                "bound": name,
                "value": None if kept.bound.value is None else str(kept.bound.value),
                "seconds": round(kept.bound.seconds, 6),
                "limit": round(kept.limit, 6),
                "ended": kept.ended,
                "code": kept.code,
            }
            for name, kept in self.kept.items()
        ]
        document = {
            "format": FORMAT,
            "instance_sha256": instance.sha256,
            "code": fingerprint(_METHOD),
            "bounds": bounds,
        }
        try:
            write_text(self.path, json.dumps(document) + "\n", KIND)
        except InputError as error:
            self.fault = error
            if fault is None and self.warn is not None:
                self.warn(error)


def opened(
    path: str | Path | None,
    instance: Instance,
    *,
    resume: bool,
    warn: Callable[[InputError], None] | None = None,
) -> BoundsFile | None:
    """Open the checkpoint of an instance; return ``None`` if there is none to keep.

    Raises
    ------
    InputError
        See :meth:`BoundsFile.open`; and if there is nothing to resume from.
    """
    if path is None:
        if resume:
            remedy = "name the file with `checkpoint`"
            raise ArgumentError("resume", "no checkpoint to resume from", remedy)
        return None
    state = BoundsFile(Path(path), warn)
    state.open(instance, resume=resume)
    return state


def every_bound(
    instance: Instance,
    seconds: float,
    budget: Budget,
    state: BoundsFile | None = None,
    *,
    seed: int = 0,
    begins: Callable[[str], None] | None = None,
) -> Iterator[LowerBound]:
    """Compute the bounds of a user's question, solvers' last, but not what the memory lacks.

    Parameters
    ----------
    seconds : float
        What is left for them; without ``state``, those of its budget.
    budget : Budget
        Workers and memory of the solvers.
    state : BoundsFile, optional
        Where to keep them; then they go on as long as there is time.
    """
    expect()
    unfit = unfit_bounds(instance, budget)
    for name, why in unfit.items():
        _LOG.warning("%s is left out: it %s", name, why)
    besides = (SERIES, *solver_rows(budget.workers, seed, budget.memory))
    compute = each_bound if state is None else partial(bounds_in_rounds, state=state)
    return compute(instance, seconds, besides=besides, without=unfit, begins=begins)


def bounds_in_rounds(
    instance: Instance,
    seconds: float,
    state: BoundsFile,
    *,
    besides: Sequence[Bound] = (),
    without: Container[str] = (),
    begins: Callable[[str], None] | None = None,
) -> Iterator[LowerBound]:
    """Compute bounds as :func:`~optpart.lower_bounds.best.each_bound` does, while there is time.

    Yields the best value of each bound as soon as it is kept. After the first round, the bound
    that has had the least time gets twice as much, again and again, unless it ended by itself
    before. It begins anew, so all that is spent on a bound is at most twice its last limit. What
    is cheap, or had ended by itself in an earlier run, is proven again first. The call returns when
    no bound can go on, or none would get more time than it had.

    Parameters
    ----------
    seconds : float
        Time limit of this call and those before it, together.
    """
    deadline = clock.now() + max(0.0, seconds - state.seconds)
    rows = {row.name: row for row in (*BOUNDS.values(), *besides) if row.name not in without}

    def compute(chosen: list[str], limit: float) -> Iterator[LowerBound]:
        left_out = [name for name in (*BOUNDS, *(row.name for row in besides))
                    if name not in chosen]  # fmt: skip
        for bound in each_bound(instance, limit, besides=besides, without=left_out, begins=begins):
            yield state.add(instance, bound)

    while True:
        left = max(0.0, deadline - clock.now())
        again = [
            name
            for name, row in rows.items()
            if name not in state.proven
            and name in state.kept
            and (row.cost == "cheap" or (left and state.kept[name].ended))
        ]
        if again:
            limit = max(FIRST_ROUND, state.kept[again[0]].limit)
            yield from compute(again[:1], min(left, limit))
            continue
        missing = [name for name in rows if name not in state.kept]
        if missing and (left or not state.proven):
            yield from compute(missing, min(left, FIRST_ROUND))
            continue
        able = [name for name in state.can_go_on if name in rows]
        if not able or left <= state.kept[able[0]].limit:
            return
        yield from compute(able[:1], min(left, 2 * state.kept[able[0]].limit))


def _read(document: Any, instance: Instance) -> dict[str, Kept]:
    version(document, FORMAT)
    fields = keys(document, _KEYS | _FORMER, "")
    if fields.get("instance_sha256") != instance.sha256:
        raise InputError(
            "instance_sha256", "belongs to another instance", "use the instance it was written for"
        )
    of_all = text(fields.get("code", ""), "code")
    kept = {}
    try:
        for row in sequence(fields["bounds"], "bounds"):
            value = None if row["value"] is None else non_negative(row["value"], "value")
            bound = LowerBound(row["bound"], value, float(row["seconds"]))
            times = float(row["seconds"]), float(row["limit"])
            if not all(0 <= time < inf for time in times):
                raise ValueError
            code = text(row.get("code", of_all), "code")
            kept[text(bound.name, "bound")] = Kept(bound, times[1], row["ended"] is True, code)
    except (AttributeError, KeyError, TypeError, ValueError, ArithmeticError):
        raise InputError("bounds", "cannot be read", "use the file as it was written") from None
    return kept
