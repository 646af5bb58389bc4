"""Bounds that go on: limits that double, and a file that keeps what is proven."""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import Any

from optpart import clock
from optpart.bounds.best import BOUNDS, Bound, LowerBound, each_bound
from optpart.errors import FaultsOf, InputError
from optpart.files import Kind, of_format, read_text, write_text
from optpart.formats.json import keys, parse_json, version
from optpart.methods.fingerprint import differing, fingerprint
from optpart.problem.instance import Instance
from optpart.search.checkpoint import check_new, resumed

FORMAT = "optpart-bounds/1"
KIND = Kind("a checkpoint of bounds", of_format(FORMAT))

_KEYS = {"format", "instance_sha256", "code", "bounds", "sha256"}

#: Seconds of the first round.
FIRST_ROUND = 30.0


@dataclass(frozen=True)
class Kept:
    """The best value of a bound so far.

    Attributes
    ----------
    bound : LowerBound
        With the time spent on it in all.
    limit : float
        The longest time limit that it had.
    ended : bool
        Whether it ended long before its limit, so that more time is no use.
    """

    bound: LowerBound
    limit: float
    ended: bool


@dataclass
class BoundsFile:
    """The file in which bounds are kept. A failure to write it never ends their computation.

    Attributes
    ----------
    path : Path
    warn : callable, optional
        Called with the first of several consecutive faults.
    kept : dict
        What each bound has proven so far, by name.
    fault : InputError or None
        Reason why the file does not contain the latest bounds, if it does not.
    """

    path: Path
    warn: Callable[[InputError], None] | None = None
    kept: dict[str, Kept] = field(default_factory=dict)
    fault: InputError | None = None

    @property
    def seconds(self) -> float:
        """Time spent so far."""
        return sum(kept.bound.seconds for kept in self.kept.values())

    @property
    def found(self) -> list[LowerBound]:
        """The best value of each bound."""
        return [kept.bound for kept in self.kept.values()]

    @property
    def can_go_on(self) -> list[str]:
        """The bounds that more time may raise, the one that needs the least of it first."""
        if any(bound.value is None for bound in self.found):
            return []
        rest = [kept for kept in self.kept.values() if not kept.ended]
        return [kept.bound.name for kept in sorted(rest, key=lambda kept: kept.limit)]

    def resumed(self, seconds: float) -> str:
        """Say how much of a time limit is spent and left; empty in a new file."""
        return resumed(self.seconds, seconds) if self.kept else ""

    def open(self, instance: Instance, *, resume: bool) -> None:
        """Read what an earlier run has found, or make sure that nothing is overwritten.

        Raises
        ------
        ArgumentError
            If the file exists and is not to be resumed.
        InputError
            If it is not a file of bounds, or of another instance, or was written by other code.
        """
        if not resume:
            check_new(self.path)
            return
        with FaultsOf(self.path):
            self.kept = _read(parse_json(read_text(self.path)), instance)

    def add(self, instance: Instance, bound: LowerBound) -> LowerBound:
        """Keep a bound at once, and return its best value so far."""
        before = self.kept.get(bound.name)
        limit = bound.limit if before is None else max(before.limit, bound.limit)
        ended = bound.ended
        bound = bound.after(None if before is None else before.bound)
        self.kept[bound.name] = Kept(bound, limit, ended)
        self._write(instance)
        return bound

    def _write(self, instance: Instance) -> None:
        fault, self.fault = self.fault, None
        bounds = [
            {
                "bound": name,
                "value": None if kept.bound.value is None else str(kept.bound.value),
                "seconds": round(kept.bound.seconds, 6),
                "limit": round(kept.limit, 6),
                "ended": kept.ended,
            }
            for name, kept in self.kept.items()
        ]
        document = {
            "format": FORMAT,
            "instance_sha256": instance.sha256,
            "code": fingerprint("cpsat"),
            "bounds": bounds,
        }
        try:
            stamped = document | {"sha256": _stamp(instance, self.kept)}
            write_text(self.path, json.dumps(stamped) + "\n", KIND)
        except InputError as error:
            self.fault = error
            if fault is None and self.warn is not None:
                self.warn(error)


def bounds_in_rounds(
    instance: Instance,
    seconds: float,
    state: BoundsFile,
    *,
    besides: Sequence[Bound] = (),
    without: Container[str] = (),
    begins: Callable[[str], None] | None = None,
) -> Iterator[LowerBound]:
    """Compute bounds like :func:`~optpart.bounds.best.each_bound`, and go on while there is time.

    Yields the best value of each bound as soon as it is kept. After the first round, the bound
    that has had the least time gets twice as much, again and again, unless it ended by itself
    before. It begins anew, so all that is spent on a bound is at most twice its last limit. The
    call returns when no bound can go on, or none would get more time than it had.

    Parameters
    ----------
    seconds : float
        Time limit of this call and those before it, together.
    """
    deadline = clock.now() + max(0.0, seconds - state.seconds)
    names = [row.name for row in (*BOUNDS.values(), *besides) if row.name not in without]

    def compute(chosen: list[str], limit: float) -> Iterator[LowerBound]:
        left_out = [name for name in (*BOUNDS, *(row.name for row in besides))
                    if name not in chosen]  # fmt: skip
        for bound in each_bound(instance, limit, besides=besides, without=left_out, begins=begins):
            yield state.add(instance, bound)

    while True:
        missing = [name for name in names if name not in state.kept]
        left = max(0.0, deadline - clock.now())
        if missing and (left or not state.kept):
            yield from compute(missing, min(left, FIRST_ROUND))
            continue
        able = [name for name in state.can_go_on if name in names]
        if not able or left <= state.kept[able[0]].limit:
            return
        yield from compute(able[:1], min(left, 2 * state.kept[able[0]].limit))


def _read(document: Any, instance: Instance) -> dict[str, Kept]:
    version(document, FORMAT)
    fields = keys(document, _KEYS, "")
    if fields.get("instance_sha256") != instance.sha256:
        raise InputError(
            "instance_sha256", "belongs to another instance", "use the instance it was written for"
        )
    code = fingerprint("cpsat")
    if fields.get("code") != code:
        raise InputError(
            "code",
            f"its bounds were proven by other code ({differing(code, str(fields.get('code')))})",
            "name another file, without `resume`",
        )
    kept = {}
    try:
        for row in fields["bounds"]:
            value = None if row["value"] is None else Fraction(row["value"])
            bound = LowerBound(row["bound"], value, float(row["seconds"]))
            kept[bound.name] = Kept(bound, float(row["limit"]), row["ended"] is True)
    except (KeyError, TypeError, ValueError, ArithmeticError):
        raise InputError("bounds", "cannot be read", "use the file as it was written") from None
    if fields.get("sha256") != _stamp(instance, kept):
        raise InputError("sha256", "the bounds were changed", "use the file as it was written")
    return kept


def _stamp(instance: Instance, kept: dict[str, Kept]) -> str:
    """Return a checksum, without which damage to the file could pass for a proof."""
    rows = [
        f"{name} {each.bound.value} {each.bound.seconds:.6f} {each.limit:.6f} {each.ended}"
        for name, each in kept.items()
    ]
    return sha256("\n".join([instance.sha256, *rows]).encode()).hexdigest()
