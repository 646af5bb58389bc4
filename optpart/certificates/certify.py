"""Certificates: a schedule and a proof that none is shorter, or a proof of a lower bound.

:mod:`optpart.certificates.check` verifies every certificate before it is written, so nothing here
has to be trusted.
"""

from __future__ import annotations

import hashlib
import lzma
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from pathlib import Path

from optpart.base import clock
from optpart.base.errors import InputError, OptpartError, UnsupportedError
from optpart.base.files import ANY, write_bytes
from optpart.base.folders import check_folder, new_folder
from optpart.base.languages import to_json
from optpart.base.showing import Shown
from optpart.certificates import check
from optpart.certificates.arithmetic import (
    Record,
    load_record,
    multipliers,
    one_machine_record,
    path_record,
)
from optpart.certificates.check import Allowance, Encoding, Problem, RejectedError, Windows
from optpart.certificates.probing import (
    LateError,
    NotRefutedError,
    assignment_record,
    probing_record,
)
from optpart.certificates.sat import refute
from optpart.certificates.series import NotInSeriesError, series_record
from optpart.certificates.trim import trim
from optpart.interop.formats import native
from optpart.interop.formats import result as result_format
from optpart.kernels import ticks
from optpart.problem.instance import Instance
from optpart.solution.result import Result, conclude
from optpart.solution.schedule import Schedule

#: What the manifest of a certificate says.
HOLDS = "a certificate"

#: Limit of the literals in a formula; longer ones are not given to the solver.
_MAX_LITERALS = 26_000_000

#: Widths, in ticks, of the rounded grids to try if the exact one is too fine.
_ROUNDED = (500, 2000, 8000)
_MAX_TICKS = 20_000

#: Largest counts for a memory limit, in order of preference: smaller ones shorten the formula.
_MEMORY_PARTS = (100_000, 3000, 300)

#: Largest share of the time for a grid whose rounding may lose too much.
_SHARE = 0.2

#: Share of the time that is left for a refutation; trimming and checking its proof take the rest.
_REFUTING = 0.7

#: Share of the time for a proof in series, its least number of ticks, and that of a rounded grid.
_SHARE_IN_SERIES = 0.6
_LEAST_IN_SERIES = 2**20
_TICKS_IN_SERIES = 2**40

#: Share of the time left for assignments, and then for the search by probing. What the latter
#: refutes gets all the rest for its proof; what it does not, leaves the rest for a formula.
_SHARE_BY_PROBING = 0.3

#: Share of the time left for a bound that is not the last to be tried. If probing was cut short for
#: the one before, lengths in between are tried at the end, if the two differ by such a share.
_SHARE_OF_BOUND = 2 / 3
_STEP = Fraction(1, 300)


class UncertifiedError(OptpartError):
    """No certificate was found; the message lists the attempts."""


class _CutShortError(UncertifiedError):
    """Probing had too little time; for a smaller bound, it may suffice."""


class _TooLongError(UncertifiedError):
    """The formula is too long."""


@dataclass(frozen=True)
class Refutation(Shown):
    """A proof that no schedule is shorter, and its size.

    Attributes
    ----------
    tier : {"none", "path", "one-machine", "load", "series", "probing", "lrat"}
        ``none`` if the makespan is 0.
    ticks_per_unit : Fraction
    record : dict
    proof : bytes
        Text of the LRAT proof; empty in the other tiers.
    variables, clauses, steps : int
        Size of the formula and of its proof.
    seconds : dict
        Time of each part of the work.
    """

    tier: str
    ticks_per_unit: Fraction
    record: Record
    proof: bytes = b""
    variables: int = 0
    clauses: int = 0
    steps: int = 0
    seconds: dict[str, float] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<Refutation by {self.tier}: {self.clauses:,} clauses, {self.steps:,} lemmas>"


@dataclass(frozen=True)
class CertifiedBound(Shown):
    """A lower bound of the makespan that has a certificate.

    Attributes
    ----------
    bound : Fraction
    missed : dict
        Greater bounds for which no proof was found, and why.
    refutation : Refutation
        The proof, and the time that it took.
    """

    bound: Fraction
    missed: dict[Fraction, str]
    refutation: Refutation

    def __repr__(self) -> str:
        return f"<CertifiedBound {self.bound} by {self.refutation.tier}>"


def check_supported(instance: Instance) -> None:
    """Raise :class:`UnsupportedError` if certificates do not cover the instance's model."""
    model = instance.model
    if model.channels > 1:
        raise UnsupportedError(
            "model.channels", f"certificates do not cover {model.channels}", "certify with 1"
        )
    if model.memory not in check.MEMORY:
        *known, last = check.MEMORY
        raise UnsupportedError(
            "model.memory",
            f"certificates do not cover {model.memory!r}",
            f"certify an instance with memory {', '.join(known)} or {last}",
        )


def problem_of(instance: Instance, source: bytes | None = None) -> tuple[bytes, Problem]:
    """Return the instance's file in the native format, and how the checker reads it.

    Parameters
    ----------
    source : bytes, optional
        The file, if there is one.

    Raises
    ------
    UnsupportedError
        If certificates do not cover the model, or the checker refuses so large an instance.
    """
    check_supported(instance)
    cells = instance.vertices * instance.devices
    if cells > check.MAX_CELLS:
        raise UnsupportedError(
            "",
            f"too large for a certificate ({cells:,} pairs of a vertex and a device, of "
            f"{check.MAX_CELLS:,} at most)",
            "certify a smaller instance",
        )
    text = native.dumps(instance).encode() if source is None else source
    try:
        problem = Problem(check.read_json(text, "instance"), Allowance(len(text)))
    except RejectedError as error:
        raise UnsupportedError("", f"not covered ({error})", "certify a smaller instance") from None
    problem.allowance = Allowance(2**60)  # the searches end by their time limits
    return text, problem


def find_refutation(
    instance: Instance,
    problem: Problem,
    scales: list[Fraction],
    makespan: Fraction,
    seconds: float,
) -> Refutation:
    """Find the cheapest proof that no schedule takes less than ``makespan``.

    Parameters
    ----------
    scales : list of Fraction
        Ticks per time unit of the grids to try, coarsest first.

    Raises
    ------
    UncertifiedError
        If none is found in time, or a shorter schedule exists.
    """
    begin = clock.now()
    if makespan == 0:
        return Refutation("none", Fraction(1), {})
    reasons = []
    grids: list[tuple[Fraction, Windows]] = []
    deadline = begin + seconds
    took = 0.0
    for scale in scales:
        # Windows take about as long on every grid.
        if grids and clock.now() + took > deadline:
            reasons.append("no time left for finer grids")
            break
        before = clock.now()
        try:
            grids.append((scale, Windows(problem, scale, makespan)))
        except RejectedError as error:
            reasons.append(str(error))
        took = clock.now() - before
    for tier, find in (
        ("path", path_record),
        ("one-machine", one_machine_record),
        ("load", partial(load_record, deadline=deadline)),
    ):
        for scale, windows in grids:
            record = find(windows)
            if record is not None:
                spent = clock.now() - begin
                return Refutation(tier, scale, record, seconds={"refute": spent})
    left = deadline - clock.now()
    if left <= 0:
        raise UncertifiedError("; ".join([*reasons, "no proof by arithmetic in the time limit"]))
    try:
        return _in_series(instance, problem, scales[-1], makespan, left * _SHARE_IN_SERIES)
    except (NotInSeriesError, RejectedError) as error:
        reasons.append(f"in series: {error}")
    grids = [grid for grid in grids if grid[1].horizon < _MAX_TICKS]
    failure = UncertifiedError
    try:
        return _by_probing(instance, problem, makespan, deadline)
    except (NotRefutedError, RejectedError) as error:
        reasons.append(f"probing: {error}")
        if isinstance(error, LateError):
            failure = _CutShortError
    for scale, windows in grids:
        left = deadline - clock.now()
        if left <= 0:
            reasons.append("no time left for finer grids")
            break
        limit = left * (_REFUTING if scale == grids[-1][0] else _SHARE)
        for memory_scale in _memory_scales(problem):
            try:
                return _by_proof(windows, scale, memory_scale, limit, deadline)
            except UncertifiedError as error:
                reasons.append(f"{windows.horizon + 1} ticks: {error}")
                if not isinstance(error, _TooLongError):
                    break
    raise failure("; ".join(reasons))


def _in_series(
    instance: Instance, problem: Problem, scale: Fraction, makespan: Fraction, seconds: float
) -> Refutation:
    """Refute the parts of the graph one after another, on a fine grid."""
    begin = clock.now()
    ticks = scale * makespan
    if ticks > check.MAX_TICKS:
        scale = _TICKS_IN_SERIES / makespan
    elif ticks < _LEAST_IN_SERIES:  # what is paid for memory is rounded down as well
        scale *= math.ceil(_LEAST_IN_SERIES / ticks)
    windows = Windows(problem, scale, makespan)
    left = seconds - (clock.now() - begin)
    record = series_record(instance, windows, scale, left)
    return Refutation("series", scale, record, seconds={"refute": clock.now() - begin})


def _by_probing(
    instance: Instance, problem: Problem, makespan: Fraction, deadline: float
) -> Refutation:
    """Refute a length by assignments or by destructive bounds, on the grid of these."""
    begin = clock.now()
    if begin > deadline:
        raise NotRefutedError("no time left")
    grid = ticks.Grid.of(instance)
    if makespan * grid.scale > ticks.MAX_HORIZON:
        raise NotRefutedError("everything one after another takes less")
    windows = Windows(problem, grid.scale, makespan)
    if not windows.feasible:
        return Refutation("path", grid.scale, {}, seconds={"refute": clock.now() - begin})

    def searching() -> float:
        now = clock.now()
        return now + _SHARE_BY_PROBING * (deadline - now)

    try:
        record = assignment_record(instance, windows, grid, searching())
    except NotRefutedError as first:
        try:
            record = probing_record(instance, windows, grid, searching(), deadline)
        except NotRefutedError as error:
            late = isinstance(first, LateError) or isinstance(error, LateError)
            raise (LateError if late else NotRefutedError)(f"{error}; {first}") from None
    return Refutation("probing", grid.scale, record, seconds={"refute": clock.now() - begin})


def _by_proof(
    windows: Windows, scale: Fraction, memory_scale: Fraction, seconds: float, deadline: float
) -> Refutation:
    """Refute the formula of one grid, if it can be written before the deadline."""
    begin = clock.now()
    record = {
        "encoding": "order/1",
        "loads": _loads(windows),
        "multipliers": multipliers(windows, list(range(len(windows.problem.vertices))))[0],
        "memory_scale": str(memory_scale),
    }
    try:
        code = Encoding(windows, record)
        clauses = list(_limited(check.clauses(code), deadline))
    except RejectedError as error:
        raise _TooLongError(str(error)) from None
    encoded = clock.now()
    left = seconds - (encoded - begin)
    if left <= 0:
        raise UncertifiedError("no time left to refute its formula")
    answer = refute(code.variables, clauses, left)
    if answer.status == "sat":
        raise UncertifiedError("nothing rules out a shorter schedule there")
    if answer.status == "unknown":
        raise UncertifiedError(answer.reason)
    solved = clock.now()
    proof = trim(clauses, answer.proof)
    return Refutation(
        "lrat",
        scale,
        record,
        proof.text(),
        code.variables,
        len(clauses),
        len(proof.steps),
        {
            "encode": encoded - begin,
            "refute": solved - encoded,
            "trim": clock.now() - solved,
        },
    )


def _limited(clauses: Iterator[list[int]], deadline: float) -> Iterator[list[int]]:
    literals = 0
    for clause in clauses:
        if clock.now() > deadline:
            raise UncertifiedError("no time left to write its formula")
        literals += len(clause)
        if literals > _MAX_LITERALS:
            raise _TooLongError(f"its formula has more than {_MAX_LITERALS} literals")
        yield clause


def _loads(windows: Windows) -> list[list[int]]:
    """Return one load per device, between the least head and the least tail there."""
    unit = windows.problem.unit
    loads = []
    for d in range(len(windows.problem.devices)):
        there = [v for v in range(len(unit)) if d in windows.possible[unit[v]]]
        if there:
            head = min(windows.head[v][d] for v in there)
            tail = min(windows.tail[v][d] for v in there)
            loads.append([d, head, tail])
    return loads


def _memory_scales(problem: Problem) -> list[Fraction]:
    """Return scales at which to count memory: the exact one if feasible, then coarser ones."""
    limits = [limit for limit in problem.capacity if limit]
    if not limits:
        return [Fraction(1)]
    exact = _exact_scale({x for x in (*problem.need, *limits) if x})
    scales = [parts / max(limits) for parts in _MEMORY_PARTS]
    if exact and exact < scales[0]:
        scales = [exact, *(scale for scale in scales if scale < exact)]
    return scales


def grid_scales(problem: Problem, makespan: Fraction) -> list[Fraction]:
    """Return ticks per time unit of the grids worth trying, coarsest first.

    These are the coarsest exact grid; the coarsest grid exact for run times, if it is coarser,
    since the load of a device is a whole number of its ticks; and rounded grids, if the exact one
    is too fine for a formula.
    """
    if makespan == 0:
        return [Fraction(1)]
    times = {time for row in problem.run for time in row if time}
    every = range(len(problem.devices))
    tensors = {
        (problem.size[t], t if t in problem.measured else -1): t for _, _, t in problem.edges
    }
    delays = {problem.delay(t, d, e) for t in tensors.values() for d in every for e in every}
    scales = {_exact_scale(times), _exact_scale(times | {time for time in delays if time})}
    found = sorted(scale for scale in scales if scale)
    if not found or found[-1] * makespan > _MAX_TICKS:
        found += [ticks / makespan for ticks in _ROUNDED]
    return sorted(found)


def _exact_scale(amounts: set[Fraction]) -> Fraction:
    """Return the least scale that makes all amounts whole; 0 if its number is too long."""
    bottom = 1
    for each in amounts:
        bottom = math.lcm(bottom, each.denominator)
        if bottom.bit_length() > check.MAX_BITS:
            return Fraction(0)
    top = math.gcd(*(each.numerator * (bottom // each.denominator) for each in amounts))
    return Fraction(bottom, top) if top and top.bit_length() <= check.MAX_BITS else Fraction(0)


def certify(
    instance: Instance,
    schedule: Schedule,
    directory: str | Path,
    *,
    source: bytes | None = None,
    method: str = "given",
    seconds: float = 60.0,
) -> Refutation:
    """Write a certificate that a schedule is optimal; write nothing if no proof is found.

    Parameters
    ----------
    source : bytes, optional
        The instance's file in the native format, to be copied byte for byte.
    method : str
        The method that found the schedule.
    seconds : float
        Time limit of the search for a proof, of which a part is kept for trimming and checking it.

    Returns
    -------
    Refutation
        Its ``seconds`` include those of the checker, as ``check``.

    Raises
    ------
    InputError
        If the model is not covered, the schedule is not valid, or the folder is not writable.
    UncertifiedError
        If no proof was found.
    """
    begin = clock.now()
    check_folder(directory, HOLDS)
    text, problem = problem_of(instance, source)
    result = conclude(instance, method, schedule)
    if result.makespan is None:
        raise InputError("schedule", result.reason, "give a valid schedule of the instance")
    scales = grid_scales(problem, result.makespan)
    left = max(0.0, begin + seconds - clock.now())
    found = find_refutation(instance, problem, scales, result.makespan, left)
    proven = conclude(instance, method, schedule, bound=result.makespan)
    files = _files(instance, text, found, {"makespan": str(result.makespan)}, proven)
    return _write(directory, files, found)


def certify_bound(
    instance: Instance,
    bounds: Iterable[Fraction],
    directory: str | Path,
    *,
    schedule: Schedule | None = None,
    source: bytes | None = None,
    method: str = "given",
    seconds: float = 60.0,
) -> CertifiedBound:
    """Write a certificate of the greatest of some lower bounds that can be proven to the checker.

    Parameters
    ----------
    bounds : iterable of Fraction
        Lower bounds of the makespan. They are only proposals: what is written has a proof.
    schedule : Schedule, optional
        A schedule for the upper half, so that the certificate proves a gap.
    source, method
        As in :func:`certify`.
    seconds : float
        Time limit of the search for a proof; each bound gets two thirds of what is left, the last
        all of it. If the one before would have needed more, lengths in between are tried at the
        end.

    Raises
    ------
    InputError
        If the model is not covered, the schedule is not valid, or the folder is not writable.
    UncertifiedError
        If no proof was found for any of them.
    """
    begin = clock.now()
    check_folder(directory, HOLDS)
    text, problem = problem_of(instance, source)
    result = None if schedule is None else conclude(instance, method, schedule)
    if result is not None and result.makespan is None:
        raise InputError("schedule", result.reason, "give a valid schedule of the instance")
    proposed = {bound for bound in bounds if bound >= 0}
    missed: dict[Fraction, str] = {}

    def left() -> float:
        return max(0.0, begin + seconds - clock.now())

    def prove(bound: Fraction, limit: float) -> CertifiedBound:
        scales = grid_scales(problem, bound)
        found = find_refutation(instance, problem, scales, bound, limit)
        claims = {"bound": str(bound)}
        if result is not None:
            claims["makespan"] = str(result.makespan)
        files = _files(instance, text, found, claims, result)
        return CertifiedBound(bound, missed, _write(directory, files, found))

    too_late: Fraction | None = None
    tried = sorted(proposed, reverse=True)
    for i, bound in enumerate(tried):
        try:
            share = _SHARE_OF_BOUND if i + 1 < len(tried) else 1
            certified = prove(bound, share * left())
            break
        except UncertifiedError as error:
            missed[bound] = str(error)
            too_late = bound if isinstance(error, _CutShortError) else None
    else:
        reasons = "; ".join(f"{bound}: {reason}" for bound, reason in missed.items())
        raise UncertifiedError(reasons or "no bound to prove")
    # The time that is left may suffice for a length between the two.
    while too_late is not None and too_late > certified.bound * (1 + _STEP) and left():
        middle = _between(certified.bound, too_late)
        try:
            certified = prove(middle, left())
        except UncertifiedError as error:
            too_late = middle if isinstance(error, _CutShortError) else None
    return certified


def _between(low: Fraction, high: Fraction) -> Fraction:
    """Return a number of few digits near the middle of two."""
    step = Fraction(10) ** (math.floor(math.log10(high - low)) - 1)
    return (low + high) / 2 // step * step


def _write(directory: str | Path, files: dict[str, bytes], found: Refutation) -> Refutation:
    """Write a certificate that the checker accepts, completely or not at all."""
    with new_folder(directory, HOLDS) as draft:
        for name, content in files.items():
            write_bytes(draft / name, content, ANY)
        begin = clock.now()
        try:
            check.check(str(draft))
        except RejectedError as error:
            raise UncertifiedError(f"the checker rejects it: {error}") from None
        took = {**found.seconds, "check": clock.now() - begin}
    return replace(found, seconds=took)


def _files(
    instance: Instance,
    text: bytes,
    found: Refutation,
    claims: dict[str, str],
    result: Result | None,
) -> dict[str, bytes]:
    document = {
        "format": check.BOUND if "bound" in claims else check.FORMAT,
        "instance": instance.name,
        "instance_sha256": hashlib.sha256(text).hexdigest(),
        **claims,
        "tier": found.tier,
        "ticks_per_unit": str(found.ticks_per_unit),
        "record": found.record,
    }
    indent = None if found.tier == "probing" else 1  # many nested numbers
    files = {
        "certificate.json": (to_json(document, indent=indent) + "\n").encode(),
        "instance.json": text,
    }
    if result is not None:
        files["schedule.json"] = result_format.dumps(result).encode()
    if found.proof:
        files["proof.lrat.xz"] = lzma.compress(found.proof, preset=6 | lzma.PRESET_EXTREME)
    return files
