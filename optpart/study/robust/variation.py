"""How the run times of an instance vary: within intervals, or as samples.

Transfer times, memory and the sends of ``sendrecv`` stay as they are.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import numpy as np

from optpart.base.choices import choice
from optpart.base.errors import ArgumentError, FaultsOf, InputError
from optpart.base.limits import check_seed
from optpart.base.rounding import number
from optpart.interop.formats.tables import read_rows
from optpart.problem.instance import Instance
from optpart.problem.rational import non_negative, shown
from optpart.study.sensitivity import share

#: Samples, and run times of all of them together.
MOST_SAMPLES = 1000
_MOST_TIMES = 2_000_000

#: Drawn factors are whole multiples of a hundredth: few digits keep times on a coarse grid.
_HUNDREDTH = 100

#: Run times by vertex and device; ``None`` where a vertex may not run.
Times = list[list[Fraction | None]]


@dataclass(frozen=True, eq=False)
class Variation:
    """An instance, and the run times that may come in place of its own.

    Attributes
    ----------
    instance : Instance
        With its own run times.
    samples : tuple of Instance
        Equally likely; empty for intervals.
    low, high : Instance, optional
        With all times at the lower, and at the upper end of their intervals.
    words : str
        What varies and how, for people.
    """

    instance: Instance
    samples: tuple[Instance, ...] = ()
    low: Instance | None = None
    high: Instance | None = None
    words: str = ""

    def deviated(self, vertices: Collection[int]) -> Instance:
        """Return the instance with these vertices at the upper ends of their intervals."""
        assert self.high is not None
        rows = _times(self.instance), _times(self.high)
        return _at(self.instance, [rows[v in vertices][v] for v in range(self.instance.vertices)])


def variation(
    instance: Instance,
    *,
    samples: str | Path | None = None,
    intervals: str | Path | None = None,
    spread: str | float | Fraction | None = None,
    draws: int | None = None,
    seed: int = 0,
) -> Variation:
    """Read or draw the run times of an instance.

    Parameters
    ----------
    samples : path, optional
        A CSV ``name,device,time`` with a row per measurement. The k-th measurements of all vertices
        and devices belong to sample k, so all need equally many. A row without a device is for
        every device that the vertex may use; what has no row keeps its time.
    intervals : path, optional
        A CSV ``name,device,low,high`` with at most one row per vertex and device.
    spread : share such as "20%", optional
        Alone: every run time lies within ± this share. With ``draws``: every vertex has a factor
        ``exp(spread · z)`` in each sample, the same on all devices, with ``z`` standard normal,
        rounded to hundredths, and at least one of them.
    draws : int, optional
        The number of samples.

    Raises
    ------
    InputError
        If not exactly one of ``samples``, ``intervals`` and ``spread`` is given, or one is faulty.
    """
    given = [name for name, value in
             (("samples", samples), ("intervals", intervals), ("spread", spread))
             if value is not None]  # fmt: skip
    if len(given) != 1:
        problem = f"given with {given[1]}" if given else "missing"
        remedy = "give one of samples, intervals and spread"
        raise ArgumentError(given[0] if given else "spread", problem, remedy)
    if draws is not None and spread is None:
        raise ArgumentError("draws", f"given with {given[0]}", "give a spread to draw with")
    check_seed(seed)
    count = 1 if draws is None else draws
    if not 1 <= count <= MOST_SAMPLES:
        raise ArgumentError("draws", f"{draws} is out of range", f"give 1 to {MOST_SAMPLES}")
    _check_size(instance, count)
    times = _times(instance)
    if samples is not None:
        found = _read_samples(instance, times, samples)
        words = f"{len(found)} samples of {Path(samples).name}"
        return Variation(instance, tuple(_at(instance, each) for each in found), words=words)
    if intervals is not None:
        low, high = _read_intervals(instance, times, intervals)
        words = f"the intervals of {Path(intervals).name}"
        return Variation(instance, (), _at(instance, low), _at(instance, high), words)
    assert spread is not None
    width = share(spread, "spread")
    percent = f"{number(100 * width, up=True)}%"
    if draws is not None:
        rng = np.random.default_rng(seed)
        drawn = tuple(_at(instance, _drawn(times, width, rng)) for _ in range(draws))
        words = f"{draws} samples, log-normal, spread {percent}, seed {seed}"
        return Variation(instance, drawn, words=words)
    ends = [_at(instance, _scaled(times, [1 + x] * len(times))) for x in (-width, width)]
    return Variation(instance, (), ends[0], ends[1], f"run times within ±{percent}")


def _times(instance: Instance) -> Times:
    allowed = instance.vertex_allowed
    return [
        [instance.duration(v, d) if allowed[v, d] else None for d in range(instance.devices)]
        for v in range(instance.vertices)
    ]


def _at(instance: Instance, times: Times) -> Instance:
    return replace(instance, durations=times)


def mixed(samples: Sequence[Instance], *, longest: bool) -> Instance:
    """Return the instance at the longest or the mean times of several."""
    rows = [_times(each) for each in samples]

    def one(v: int, d: int) -> Fraction | None:
        known = [time for row in rows if (time := row[v][d]) is not None]
        if not known:
            return None
        return max(known) if longest else sum(known, Fraction(0)) / len(known)

    first = samples[0]
    return _at(first, [[one(v, d) for d in range(first.devices)] for v in range(first.vertices)])


def _drawn(times: Times, width: Fraction, rng: np.random.Generator) -> Times:
    drawn = np.exp(float(width) * rng.standard_normal(len(times)))
    factors = [Fraction(max(1, round(_HUNDREDTH * x)), _HUNDREDTH) for x in drawn.tolist()]
    return _scaled(times, factors)


def _scaled(times: Times, factors: Sequence[Fraction]) -> Times:
    return [
        [None if time is None else factor * time for time in row]
        for factor, row in zip(factors, times, strict=True)
    ]


def _read_samples(instance: Instance, times: Times, path: str | Path) -> list[Times]:
    with FaultsOf(path):
        rows = read_rows(path, ("name", "device", "time"))
        found: dict[tuple[int, int], list[Fraction]] = {}
        for place, row in rows:
            for key in _keys(instance, row, place):
                found.setdefault(key, []).append(non_negative(row["time"], f"{place}, time"))
        if not found:
            raise InputError("", "has no measurement", "give a row per measurement")
        first, count = next((key, len(value)) for key, value in found.items())
        for key, value in found.items():
            if len(value) != count:
                problem = f"{len(value)} times of {_name(instance, key)}, {count} of "
                raise InputError("", problem + _name(instance, first), "give equally many")
        if count > MOST_SAMPLES:
            raise InputError("", f"{count} samples", f"give at most {MOST_SAMPLES}")
        _check_size(instance, count)
    samples = [[list(row) for row in times] for _ in range(count)]
    for (v, d), value in found.items():
        for sample, time in zip(samples, value, strict=True):
            sample[v][d] = time
    return samples


def _read_intervals(instance: Instance, times: Times, path: str | Path) -> tuple[Times, Times]:
    low, high = ([list(row) for row in times] for _ in range(2))
    with FaultsOf(path):
        seen: set[tuple[int, int]] = set()
        for place, row in read_rows(path, ("name", "device", "low", "high")):
            ends = [non_negative(row[end], f"{place}, {end}") for end in ("low", "high")]
            for v, d in _keys(instance, row, place):
                own = times[v][d]
                assert own is not None
                if (v, d) in seen:
                    where = _name(instance, (v, d))
                    raise InputError(place, f"a second interval for {where}", "give one")
                if not ends[0] <= own <= ends[1]:
                    problem = f"{_name(instance, (v, d))} takes {shown(own)}, which is not within"
                    raise InputError(place, problem, "give an interval around its time")
                seen.add((v, d))
                low[v][d], high[v][d] = ends
    return low, high


def _keys(instance: Instance, row: dict[str, str], place: str) -> list[tuple[int, int]]:
    """Return the vertex of a row, with its device or each that it may use."""
    names, devices = instance.graph.index, instance.cluster.index
    name, device = row["name"], row["device"]
    if name not in names:
        problem = f"no vertex {shown(name)}"
        raise InputError(place, problem, choice(name, [*names], lead="name one of"))
    if device and device not in devices:
        problem = f"no device {shown(device)}"
        raise InputError(place, problem, choice(device, [*devices], lead="name one of"))
    v = names[name]
    allowed = instance.vertex_allowed[v]
    if device and not allowed[devices[device]]:
        problem = f"{shown(name)} may not run on {shown(device)}"
        raise InputError(place, problem, "leave the row out")
    return [(v, d) for d in np.flatnonzero(allowed).tolist() if not device or d == devices[device]]


def _name(instance: Instance, key: tuple[int, int]) -> str:
    return f"{shown(instance.graph.names[key[0]])} on {shown(instance.cluster.names[key[1]])}"


def _check_size(instance: Instance, count: int) -> None:
    times = count * instance.vertices * instance.devices
    tables = instance.graph.tensors * instance.devices**2
    if max(times, tables) > _MOST_TIMES:
        problem = f"{max(times, tables):,} times"
        raise InputError("samples", problem, f"ask for at most {_MOST_TIMES:,}")
