"""Checker of certified optima and bounds: is there a schedule this short, and none shorter?

    python -m optpart.certify.check DIRECTORY... [--instance FILE]

The whole checker is this file, and it needs only Python's standard library. For each directory, it
prints one line that begins with ``ACCEPTED`` or ``REJECTED``; it exits with 1 if any is rejected.
Nothing outside this file has to be trusted. From top to bottom:

1. numbers and files, and what they may cost, so that no file can exhaust time or memory;
2. the instance, read from its JSON into exact fractions;
3. the upper half: the schedule satisfies every rule and ends at the claimed makespan ``T``; a
   certificate of a bound ``T`` needs no schedule, and one that it has may be longer;
4. the grid: every schedule shorter than ``T`` gives a schedule of at most ``H`` ticks on a grid of
   times rounded down, so it is enough to refute the latter;
5. windows: earliest starts and least remaining times of every vertex on every device;
6. three refutations by arithmetic: path, one machine, load;
7. the refutation in series: parts between cut vertices, searched backwards with prices of memory,
   and then forwards with the memory used;
8. the refutation by intervals: cases of which vertices share a device raise earliest starts, and
   then, with time reversed, least remaining times;
9. the refutation by probing: starts and ends that follow one from another, and what follows if a
   unit is on a device, until nothing is possible;
10. the refutation by proof: a formula, built here from the instance, that every schedule of at most
    ``H`` ticks satisfies, and an LRAT proof that nothing satisfies it;
11. lower bounds of training strategies: rows that every strategy satisfies, and their multipliers;
12. the certificate, which says which of these to check.

``docs/certificates.md`` gives the format and the arguments in full.
"""

from __future__ import annotations

import argparse
import array
import hashlib
import heapq
import json
import lzma
import math
import os
import re
import stat
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import accumulate, chain, combinations, groupby, pairwise, permutations, product
from operator import add, le
from typing import Any, Self

FORMAT = "optpart-certificate/1"
BOUND = "optpart-bound/1"

# --- 1. Numbers and files ---------------------------------------------------------------------

MAX_STEPS = 400_000_000  # per MiB of all files; at least as many for smaller ones
MAX_BYTES = 700 * 2**20  # of memory, as estimated
MAX_DIGITS = 400  # in the text of a number
MAX_EXPONENT = 300
MAX_BITS = 4096  # of common denominators and scales
MAX_CERTIFICATE = 2**20  # bytes
MAX_JSON = 2**23  # bytes of instance and schedule
MAX_PACKED = 2**26  # bytes of a proof; the unpacker keeps a second copy of them
MAX_PROOF = 2**28  # bytes, unpacked
MAX_LINE = 2**22  # bytes of one line of a proof; split into numbers it takes thirty times as much
MAX_UNPACKER = 2**27  # bytes of memory that unpacking may take
JSON = 48  # bytes of memory for a byte of JSON
MAX_CELLS = 300_000  # vertices × devices
MAX_DEVICES = 500
MAX_VARIABLES = 2**31 - 1
LEMMA = 300  # bytes of a lemma without its literals
MAX_NUMBER = 2**31  # number of a lemma; larger numbers could be chosen to share one hash
MAX_COUNTED = 2**17  # largest sum that a load or memory limit of the formula may count to
MAX_TICKS = 2**62  # of a horizon, a potential, or a price in tier ``series``
ROUNDS = 20  # of tightening the windows
MAX_ASSUMPTIONS = 20  # at one time
MAX_MULTIPLIER = 2**128  # of a row, and of a message

COMMUNICATION = ("delay", "sendrecv", "link", "port")
MEMORY = ("none", "estimate", "edges")

_NUMBER = re.compile(r"[+-]?(\d+/\d+|(\d+\.?\d*|\.\d+)([eE]([+-]?\d+))?)", re.ASCII)


class RejectedError(Exception):
    """Raised if a certificate is not accepted; the message is the reason."""


def demand(condition: object, reason: str) -> None:
    """Reject the certificate unless ``condition`` holds."""
    if not condition:
        raise RejectedError(reason)


class Allowance:
    """The remaining cost of judging: steps of a tenth of a microsecond, and bytes of memory.

    Both are paid for before they are used, by estimates that were measured (``bench/limits/judge``)
    and are rather too high. Steps grow with the size of the files, memory does not.

    Parameters
    ----------
    size : int
        Bytes of the files.
    """

    def __init__(self, size: int = 0) -> None:
        self.size = size
        self.steps = MAX_STEPS * max(size, 2**20) >> 20
        self.bytes = MAX_BYTES

    def admit(self, size: int) -> None:
        """Allow for one more file, and pay for reading its numbers."""
        before = max(self.size, 2**20)
        self.size += size
        self.steps += MAX_STEPS * (max(self.size, 2**20) - before) >> 20
        self.spend(30 * size)

    def spend(self, steps: int) -> None:
        """Pay for some steps."""
        self.steps -= steps
        if self.steps < 0:
            raise RejectedError("takes too long to check for files of this size")

    def hold(self, size: int) -> None:
        """Pay for memory; negative if it is given back."""
        self.bytes -= size
        if self.bytes < 0:
            raise RejectedError("takes too much memory to check")


def adding(bits: int) -> int:
    """Return the steps of adding or comparing two whole numbers of so many bits."""
    return 1 + (bits >> 11)


def multiplying(bits: int) -> int:
    """Return the steps of multiplying or dividing two whole numbers with so many bits together."""
    return 1 + (bits * bits >> 17)


def calculating(bits: int) -> int:
    """Return the steps of an operation on two fractions with so many bits together."""
    return 20 + (bits * bits >> 17)


def number(value: object) -> Fraction:
    """Read an exact number: an integer, or text such as ``1.5e3`` or ``1/3``."""
    if type(value) is int or type(value) is Fraction:
        return Fraction(value)
    text = value.strip() if isinstance(value, str) else ""
    match = _NUMBER.fullmatch(text) if len(text) <= MAX_DIGITS else None
    demand(match, f"{shown(value)} is not a number")
    assert match is not None
    demand(abs(int(match[4] or 0)) <= MAX_EXPONENT, f"{shown(value)} has too large an exponent")
    try:
        return Fraction(text)
    except ZeroDivisionError:
        raise RejectedError(f"{shown(value)} divides by zero") from None


def not_negative(value: object) -> Fraction:
    """Read an exact number ≥ 0."""
    result = number(value)
    demand(result >= 0, f"{shown(value)} is negative")
    return result


def shown(value: object, *, up: bool = False) -> str:
    """Return anything as one short line of plain characters.

    A number is whole; or if it is long, it is rounded down, or ``up``, and says so. Other texts end
    with dots if they are cut.
    """
    if isinstance(value, Fraction) or type(value) is int:
        top, bottom = value.numerator, value.denominator
        if top.bit_length() + bottom.bit_length() <= 256:
            return str(value)
        # As a whole number of at least 16 digits, times a power of ten.
        power = (top.bit_length() - bottom.bit_length()) * 30103 // 100_000 - 16
        digits = Fraction(value) / Fraction(10) ** power
        rounded = math.ceil(digits) if up else math.floor(digits)
        return f"{rounded}e{power} (rounded {'up' if up else 'down'})"
    # A name can have millions of characters, and could be shown for every vertex.
    text = ascii(value[:81]) if isinstance(value, str) else ascii(str(value)[:81])[1:-1]
    return text if len(text) <= 80 else text[:77] + "..."


def common_denominator(amounts: Iterable[Fraction], allowance: Allowance) -> int:
    """Return the least common denominator of some numbers."""
    result = 1
    for amount in amounts:
        allowance.spend(3 * multiplying(result.bit_length() + amount.denominator.bit_length()))
        result = math.lcm(result, amount.denominator)
        # Checked at every step: the product of many large denominators would take hours.
        demand(result.bit_length() <= MAX_BITS, "numbers have too many different denominators")
    return result


def length(amounts: Iterable[Fraction | None]) -> int:
    """Return the number of bits of the longest number."""
    return max(
        (x.numerator.bit_length() + x.denominator.bit_length() for x in amounts if x is not None),
        default=0,
    )


def integer(value: object, least: int, most: int, what: str) -> int:
    """Read a whole number between two bounds, both included."""
    demand(type(value) is int, f"{what}: {shown(value)} is not a whole number")
    assert isinstance(value, int)
    demand(least <= value <= most, f"{what}: {shown(value)} is not in {least} … {most}")
    return value


def object_of(value: object, known: str, what: str) -> dict[str, Any]:
    """Return ``value`` if it is an object with no keys other than those in ``known``."""
    demand(isinstance(value, dict), f"{what} is not an object")
    assert isinstance(value, dict)
    for key in value:
        demand(key in known.split(), f"{what} has an unknown key {shown(key)}")
    return value


def list_of(value: object, what: str, size: int | None = None) -> list[Any]:
    """Return ``value`` if it is a list, with ``size`` entries if a size is given."""
    demand(isinstance(value, list), f"{what} is not a list")
    assert isinstance(value, list)
    demand(size is None or len(value) == size, f"{what} has {len(value)} entries and not {size}")
    return value


def text_of(value: object, what: str) -> str:
    """Return ``value`` if it is text."""
    demand(isinstance(value, str), f"{what} is not text")
    assert isinstance(value, str)
    return value


def read_file(path: str, most: int, allowance: Allowance) -> bytes:
    """Read a regular file of limited size."""
    name = os.path.basename(path)
    try:
        demand(stat.S_ISREG(os.lstat(path).st_mode), f"{name} is not a regular file")
        with open(path, "rb") as stream:
            content = stream.read(most + 1)
    except OSError as error:
        raise RejectedError(f"{name} cannot be read ({error.strerror})") from None
    demand(len(content) <= most, f"{name} is longer than {most} bytes")
    allowance.admit(len(content))
    return content


def read_json(content: bytes, name: str) -> Any:
    """Parse JSON with exact numbers; reject duplicate keys."""

    def whole(text: str) -> int:
        demand(len(text) <= MAX_DIGITS, "a number has too many digits")
        return int(text)

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        demand(len(result) == len(pairs), "a key occurs twice")
        return result

    try:
        text = content.decode("utf-8-sig")
        return json.loads(
            text, parse_int=whole, parse_float=number, parse_constant=number, object_pairs_hook=once
        )
    except RejectedError as error:
        raise RejectedError(f"{name}: {error}") from None
    except (ValueError, RecursionError) as error:
        raise RejectedError(f"{name} is not JSON ({type(error).__name__})") from None


# --- 2. The instance --------------------------------------------------------------------------


class Problem:
    """An instance, read from its document.

    Attributes
    ----------
    vertices, devices : list of str
        Names; everywhere else, vertices and devices are numbers.
    run : list of lists of (Fraction or None)
        Run time of each vertex on each device; ``None`` if it must not run there.
    edges : list of (int, int, int)
        Source, target, and the consumed tensor.
    producer, size : list
        The vertex that produces each tensor, and its size. The control dependencies that leave a
        vertex share one tensor of size 0.
    number_of : dict
        Number of the tensor by vertex and output; output ``None`` is the control dependency.
    unit : list of int
        Colocated vertices have the same unit.
    separated : list of (int, int)
    need : list of Fraction, capacity : list of (Fraction or None)
        Memory that a vertex takes throughout, and that a device has; all 0 and ``None`` if memory
        is not limited, and ``need`` 0 if it depends on time.
    sending : list of Fraction
        Run time of a send on each device; 0 unless sends are vertices.
    order : list of int
        The vertices in topological order.
    bits_of_memory : int
        Most bits of any sum of needs and sizes; 0 if memory is not limited.
    allowance : Allowance
        What reading the instance, and checking a schedule of it, may cost.
    """

    def __init__(self, document: object, allowance: Allowance | None = None) -> None:
        self.allowance = Allowance() if allowance is None else allowance
        top = object_of(
            document,
            "format name source vertices edges colocation separation devices bandwidth latency "
            "durations model",
            "instance",
        )
        demand(top.get("format") == "optpart-instance/1", "instance: not optpart-instance/1")
        self.name = text_of(top.get("name", "unnamed"), "name")
        model = object_of(
            top.get("model", {}), "communication memory send_ops channels release", "model"
        )
        self.communication = model.get("communication", "delay")
        self.memory = model.get("memory", "none")
        demand(self.communication in COMMUNICATION, "instance: communication not in scope")
        demand(self.memory in MEMORY, "instance: memory not in scope")
        demand(model.get("channels", 1) == 1, "instance: more than one channel")
        vertices = [
            object_of(v, "name ops memory outputs device_type devices", "a vertex")
            for v in list_of(top.get("vertices"), "vertices")
        ]
        devices = [
            object_of(d, "name type speed memory", "a device")
            for d in list_of(top.get("devices"), "devices")
        ]
        self.vertices = [text_of(v.get("name"), "name of a vertex") for v in vertices]
        self.devices = [text_of(d.get("name"), "name of a device") for d in devices]
        self.vertex = {name: v for v, name in enumerate(self.vertices)}
        self.device = {name: d for d, name in enumerate(self.devices)}
        demand(len(self.vertex) == len(vertices), "instance: two vertices have one name")
        demand(len(self.device) == len(devices), "instance: two devices have one name")
        demand(devices, "instance: no devices")
        n, k = len(vertices), len(devices)
        demand(n * k <= MAX_CELLS and k <= MAX_DEVICES, "instance: too many devices and vertices")
        self.allowance.hold(600 * n)
        self._read_links(top, k)
        self._read_run_times(top.get("durations"), vertices, devices)
        send_ops = model.get("send_ops", 0) if self.communication == "sendrecv" else 0
        self.sending = [not_negative(send_ops) / speed for speed in self._speeds]
        self._read_tensors(vertices, list_of(top.get("edges", []), "edges"))
        self._sort()
        groups = list_of(top.get("colocation", []), "colocation")
        self._join([[self._vertex(v) for v in list_of(g, "a group")] for g in groups])
        pairs = [list_of(p, "a pair", 2) for p in list_of(top.get("separation", []), "separation")]
        self.separated = [(self._vertex(a), self._vertex(b)) for a, b in pairs]
        self.bits_of_memory = 0
        self.need = [Fraction(0)] * n
        self.capacity: list[Fraction | None] = [None] * k
        if self.memory != "none":
            limits = [device.get("memory") for device in devices]
            self.capacity = [None if limit is None else not_negative(limit) for limit in limits]
            self._count_memory(vertices)

    def _vertex(self, name: object) -> int:
        demand(isinstance(name, str) and name in self.vertex, f"no vertex {shown(name)}")
        return self.vertex[str(name)]

    def _read_links(self, top: dict[str, Any], k: int) -> None:
        def matrix(value: object, what: str) -> list[list[Fraction | None]]:
            self.allowance.hold(8 * k * k)
            if not isinstance(value, list):
                everywhere = None if value is None else not_negative(value)
                return [[everywhere] * k for _ in range(k)]
            return [
                [None if x is None else not_negative(x) for x in list_of(row, what, k)]
                for row in list_of(value, what, k)
            ]

        self.bandwidth = matrix(top.get("bandwidth"), "bandwidth")  # None: infinite; 0: no link
        self.latency = matrix(top.get("latency", 0), "latency")
        self._matrix = matrix

    def _read_run_times(
        self, durations: object, vertices: list[dict[str, Any]], devices: list[dict[str, Any]]
    ) -> None:
        n, k = len(vertices), len(devices)
        self._speeds = speeds = [not_negative(d.get("speed", 1)) for d in devices]
        demand(all(speeds), "instance: a speed is 0")
        ops = [not_negative(v.get("ops", 0)) for v in vertices]
        self.run: list[list[Fraction | None]]
        if durations is None:
            bits = length(ops) + length(speeds)
            self.allowance.spend(n * k * (2 + calculating(bits)))
            self.allowance.hold(n * k * (160 + bits // 7))
            self.run = [[c / s for s in speeds] for c in ops]
        else:
            self.allowance.hold(n * k * 8)
            self.run = [
                [None if p is None else not_negative(p) for p in list_of(row, "durations", k)]
                for row in list_of(durations, "durations", n)
            ]
        # Only text: many whole numbers can share one hash, and lists take long to compare.
        kinds = [device.get("type") for device in devices]
        demand(all(kind is None or type(kind) is str for kind in kinds), "a type is not text")
        for v, vertex in enumerate(vertices):
            kind, names = vertex.get("device_type"), vertex.get("devices")
            demand(kind is None or type(kind) is str, "a device type is not text")
            allowed = set(self.devices)
            if names is not None:
                allowed = {text_of(name, "name of a device") for name in list_of(names, "devices")}
            for d, name in enumerate(self.devices):
                if name not in allowed or kind not in (None, kinds[d]):
                    self.run[v][d] = None

    def _read_tensors(self, vertices: list[dict[str, Any]], edges: list[Any]) -> None:
        self.producer: list[int] = []
        self.size: list[Fraction] = []
        self.measured: dict[int, list[list[Fraction | None]]] = {}
        self.number_of: dict[tuple[int, int | None], int] = {}
        k = len(self.devices)

        def tensor(v: int, output: int | None, size: object) -> None:
            self.allowance.hold(300)
            self.number_of[v, output] = len(self.producer)
            self.producer.append(v)
            self.size.append(not_negative(size))

        for v, vertex in enumerate(vertices):
            for i, output in enumerate(list_of(vertex.get("outputs", []), "outputs")):
                if isinstance(output, dict):
                    object_of(output, "size delay", "an output")
                    if output.get("delay") is not None:
                        matrix = list_of(output["delay"], "delay", k)
                        self.measured[len(self.producer)] = self._matrix(matrix, "delay")
                    tensor(v, i, output.get("size", 0))
                else:
                    tensor(v, i, output)
        self.allowance.hold(250 * len(edges))
        distinct: dict[tuple[int, int, int], None] = {}
        for edge in edges:
            source, target, which = list_of(edge, "an edge", 3)
            u, v = self._vertex(source), self._vertex(target)
            if which is None and (u, None) not in self.number_of:
                tensor(u, None, 0)
            demand(which is None or type(which) is int, "an edge names no output")
            demand((u, which) in self.number_of, f"{shown(source)} has no output {shown(which)}")
            distinct[u, v, self.number_of[u, which]] = None
        self.edges = list(distinct)

    def _sort(self) -> None:
        missing = [0] * len(self.vertices)
        after = defaultdict(list)
        for u, v, _ in self.edges:
            missing[v] += 1
            after[u].append(v)
        self.order = [v for v, count in enumerate(missing) if not count]
        for u in self.order:
            for v in after[u]:
                missing[v] -= 1
                if not missing[v]:
                    self.order.append(v)
        demand(len(self.order) == len(missing), "instance: the edges form a cycle")

    def _join(self, groups: list[list[int]]) -> None:
        """Number the units in the order of their first vertices."""
        members = {v: [v] for v in range(len(self.vertices))}
        for group in groups:
            for v in group[1:]:
                if members[v] is not members[group[0]]:
                    small, large = sorted((members[v], members[group[0]]), key=len)
                    large += small
                    members.update(dict.fromkeys(small, large))
        numbers: dict[int, int] = {}
        self.unit = [numbers.setdefault(id(x), len(numbers)) for x in members.values()]
        self.units = len(numbers)

    def _count_memory(self, vertices: list[dict[str, Any]]) -> None:
        """For ``estimate``, set each vertex's need: own memory, outputs and distinct inputs."""
        need = [not_negative(vertex.get("memory", 0)) for vertex in vertices]
        # So that sums stay short.
        common = common_denominator((*need, *self.size), self.allowance)
        self.bits_of_memory = 2 * common.bit_length() + length((*need, *self.size)) + 20
        sums = len(self.producer) + len(self.edges)
        self.allowance.spend(sums * calculating(2 * self.bits_of_memory))
        if self.memory == "estimate":
            for tensor, v in enumerate(self.producer):
                need[v] += self.size[tensor]
            for v, tensor in {(v, tensor) for _, v, tensor in self.edges}:
                need[v] += self.size[tensor]
            self.need = need

    def length_of_delays(self) -> int:
        """Return the most bits of any delay, of numbers as they were read."""
        measured = chain(*(row for matrix in self.measured.values() for row in matrix))
        links = length(chain(*self.bandwidth, *self.latency))
        return 2 * links + length(self.size) + length(measured) + length(self.sending)

    def delay(self, tensor: int, d: int, e: int) -> Fraction | None:
        """Return the time for a tensor to get from ``d`` to ``e``, including the send.

        ``None`` if it cannot cross.
        """
        if d == e:
            return Fraction(0)
        rate = self.bandwidth[d][e]
        if rate == 0:
            return None
        if tensor in self.measured:
            time = self.measured[tensor][d][e]
        else:
            time = self.latency[d][e]
            demand(time is not None, "instance: a latency is null")
            if time is not None and rate is not None:
                time += self.size[tensor] / rate
        return None if time is None else self.sending[d] + time


# --- 3. The upper half ------------------------------------------------------------------------

Interval = tuple[Fraction, Fraction, Fraction]  # from, to, amount


def check_schedule(problem: Problem, document: object) -> Fraction:
    """Check that a schedule satisfies every rule of the instance; return its makespan."""
    schedule = object_of(document, "placement start transfers", "schedule")
    allowance, transfers = problem.allowance, list_of(schedule.get("transfers", []), "transfers")
    placement = object_of_vertices(problem, schedule.get("placement"), "placement")
    for name in placement:
        demand(isinstance(name, str) and name in problem.device, f"no device {shown(name)}")
    device = [problem.device[name] for name in placement]
    start = [number(t) for t in object_of_vertices(problem, schedule.get("start"), "start")]
    # Sums of a start, a run time or a delay, and a send; and comparisons of two of them, in order.
    times = list(chain(start, *problem.run))
    bits = length(times) + problem.length_of_delays() + problem.bits_of_memory
    things = 3 * len(start) + len(problem.edges) + 4 * len(transfers)
    allowance.spend(len(times) * 5 + things * (things.bit_length() + 6) * calculating(2 * bits))
    allowance.hold(things * (400 + bits // 3))
    end = []
    for v, d in enumerate(device):
        run = problem.run[v][d]
        where = f"{shown(problem.vertices[v])} on {shown(problem.devices[d])}"
        demand(run is not None, f"schedule: {where} is not allowed")
        demand(start[v] >= 0, f"schedule: {where} starts before 0")
        assert run is not None
        end.append(start[v] + run)
    home: dict[int, int] = {}
    for v, unit in enumerate(problem.unit):
        demand(
            home.setdefault(unit, device[v]) == device[v], "schedule: a colocation group is split"
        )
    for a, b in problem.separated:
        demand(device[a] != device[b], "schedule: a separated pair shares a device")
    moves = check_transfers(problem, device, end, transfers)
    waiting: dict[int, list[Interval]] = defaultdict(list)
    for u, v, tensor in problem.edges:
        here = device[v]
        ready = end[u] if device[u] == here else moves[tensor, here][1]
        demand(
            start[v] >= ready,
            f"schedule: {shown(problem.vertices[v])} starts before its input from "
            f"{shown(problem.vertices[u])} arrives",
        )
        waiting[here].append((ready, start[v], problem.size[tensor]))
    check_turns(problem, device, start, end, moves)
    used = [Fraction(0)] * len(problem.devices)
    for v, d in enumerate(device):
        used[d] += problem.need[v]
    for d, limit in enumerate(problem.capacity):
        if limit is not None:  # if it is, the denominators of the amounts may be too long to add up
            most = used[d] if problem.memory == "estimate" else peak(waiting[d])
            demand(most <= limit, "schedule: a device exceeds its memory")
    return max(end, default=Fraction(0))


def check_turns(
    problem: Problem,
    device: list[int],
    start: list[Fraction],
    end: list[Fraction],
    moves: dict[tuple[int, int], tuple[Fraction, Fraction]],
) -> None:
    """Check that each device, link and port does one thing at a time."""
    busy = [((d, 0, 0), start[v], end[v]) for v, d in enumerate(device)]
    for (tensor, target), (begin, finish) in moves.items():
        sender = device[problem.producer[tensor]]
        if problem.communication == "sendrecv":
            busy.append(((sender, 0, 0), begin, begin + problem.sending[sender]))
        elif problem.communication == "link":
            busy.append(((sender, 1, target), begin, finish))
        elif problem.communication == "port":
            busy += [((sender, 2, 0), begin, finish), ((target, 3, 0), begin, finish)]
    last, until = None, Fraction(0)
    for what, begin, finish in sorted(busy):
        where = shown(problem.devices[what[0]])
        demand(what != last or begin >= until, f"schedule: two things at a time on {where}")
        until = finish if what != last else max(until, finish)
        last = what


def peak(intervals: Iterable[Interval]) -> Fraction:
    """Return the largest sum of the amounts of half-open intervals at any moment."""
    changes: list[tuple[Fraction, Fraction]] = []
    for begin, finish, amount in intervals:
        if begin < finish:
            changes += [(begin, amount), (finish, -amount)]
    now = most = Fraction(0)
    for _, amount in sorted(changes):  # at the same moment, ends come first
        now += amount
        most = max(most, now)
    return most


def object_of_vertices(problem: Problem, value: object, what: str) -> list[Any]:
    """Return the entries of an object with one entry per vertex, by vertex number."""
    demand(isinstance(value, dict), f"schedule: {what} is not an object")
    assert isinstance(value, dict)
    demand(value.keys() == problem.vertex.keys(), f"schedule: {what} does not name each vertex")
    return [value[name] for name in problem.vertices]


def check_transfers(
    problem: Problem, device: list[int], end: list[Fraction], transfers: list[Any]
) -> dict[tuple[int, int], tuple[Fraction, Fraction]]:
    """Check that each tensor crosses where needed, once; return when it departs and arrives."""
    moves: dict[tuple[int, int], tuple[Fraction, Fraction]] = {}
    for entry in transfers:
        transfer = object_of(entry, "tensor to start end", "a transfer")
        name, output = list_of(transfer.get("tensor"), "a transfer", 2)
        u, to = problem._vertex(name), transfer.get("to")
        demand(output is None or type(output) is int, "schedule: a transfer of no output")
        demand((u, output) in problem.number_of, "schedule: a transfer of no output")
        demand(isinstance(to, str) and to in problem.device, "schedule: a transfer to no device")
        tensor, target = problem.number_of[u, output], problem.device[str(to)]
        demand((tensor, target) not in moves, "schedule: a tensor crosses twice")
        delay = problem.delay(tensor, device[u], target)
        demand(delay is not None, "schedule: a transfer without a link")
        assert delay is not None
        start, at_once = number(transfer.get("start")), problem.communication == "delay"
        demand(start >= end[u], "schedule: a transfer starts before its tensor exists")
        demand(start == end[u] or not at_once, "schedule: a transfer starts late")
        demand(number(transfer.get("end")) == start + delay, "schedule: a transfer has a wrong end")
        moves[tensor, target] = start, start + delay
    needed = {(tensor, device[v]) for u, v, tensor in problem.edges if device[u] != device[v]}
    demand(needed <= moves.keys(), "schedule: a needed transfer is missing")
    demand(moves.keys() <= needed, "schedule: a transfer is not needed")
    return moves


# --- 4. The grid ------------------------------------------------------------------------------


class Grid:
    """Times in ticks, rounded down, and the horizon to refute.

    Let ``s`` be any number of ticks per unit of time. If a schedule has makespan ``C < T``, replace
    every start ``σ`` by ``⌊s·σ⌋``. Because ``⌊x⌋ + ⌊y⌋ ≤ ⌊x + y⌋``, all rules still hold with run
    times and delays rounded down, and everything ends by ``⌊s·C⌋ ≤ ⌈s·T⌉ − 1 = H``. So a proof that
    no schedule of the rounded instance ends by ``H`` is a proof that ``T`` is least, whatever ``s``
    is. Times longer than ``H + 1`` are replaced by ``H + 1``: neither fits. The rules that
    transfers or sends take turns, and that memory depends on time, only make schedules longer; they
    are left out.
    """

    def __init__(
        self,
        problem: Problem,
        scale: Fraction,
        makespan: Fraction,
        allowance: Allowance | None = None,
    ) -> None:
        demand(scale > 0, "ticks_per_unit is not positive")
        self.problem = problem
        self.allowance = allowance = Allowance() if allowance is None else allowance
        self.horizon = horizon = math.ceil(makespan * scale) - 1
        #: Steps of adding two times, and bytes of a time in a table of its own.
        self.adding = adding(horizon.bit_length())
        self.size = 48 + horizon.bit_length() // 7
        consumed = dict.fromkeys(tensor for _, _, tensor in problem.edges)
        k = range(len(problem.devices))
        cells = len(problem.vertices) * len(k)
        bits = max((length(row) for row in problem.run), default=0) + length([scale])
        allowance.spend(cells * (10 + calculating(bits)))
        allowance.hold(cells * self.size)
        allowance.hold(len(consumed) * (200 + length(problem.size) // 3))
        bits = problem.length_of_delays() + length([scale])

        def ticks(time: Fraction | None) -> int | None:
            return None if time is None else min(math.floor(time * scale), horizon + 1)

        self.run = [[ticks(p) for p in row] for row in problem.run]
        # Keyed by text, since many numbers can share one hash.
        shared: dict[str, int] = {}
        #: Delay in ticks of each consumed tensor from device to device.
        self.delay: dict[int, list[list[int | None]]] = {}
        #: The same, ``H + 1`` where it cannot cross; of arrivals, by the device where it arrives.
        self.departure: dict[int, list[list[int]]] = {}
        self.arrival: dict[int, list[list[int]]] = {}
        for tensor in consumed:
            measured = tensor in problem.measured
            like = shared.setdefault(
                f"tensor {tensor}" if measured else str(problem.size[tensor]), tensor
            )
            if like == tensor:
                allowance.spend(len(k) ** 2 * 4 * calculating(bits))
                allowance.hold(len(k) ** 2 * (self.size + 16))
                delay = [[ticks(problem.delay(tensor, d, e)) for e in k] for d in k]
                never = horizon + 1
                self.delay[tensor] = delay
                self.departure[tensor] = [[never if x is None else x for x in row] for row in delay]
                self.arrival[tensor] = list(map(list, zip(*self.departure[tensor], strict=True)))
            else:
                self.delay[tensor] = self.delay[like]
                self.departure[tensor] = self.departure[like]
                self.arrival[tensor] = self.arrival[like]


# --- 5. Windows -------------------------------------------------------------------------------


class Windows:
    """Heads, tails, and the devices that they leave possible.

    Attributes
    ----------
    head : list of list of int
        Earliest start of a vertex on a device in any schedule of at most ``H`` ticks: every input
        arrives from some possible device, and colocated inputs are made on the device itself.
        ``H + 1`` if the vertex cannot be there.
    tail : list of list of int
        Least time from the end of a vertex on a device to the end of the schedule, for the same
        reason.
    possible : list of list of int
        The devices on which each unit can be: head, run time and tail of all its members fit.
    """

    def __init__(self, grid: Grid) -> None:
        problem = grid.problem
        self.grid, self.allowance = grid, grid.allowance
        cells = len(problem.vertices) * len(problem.devices)
        self.allowance.spend(2 * cells)
        self.allowance.hold(4 * cells * grid.size + 200 * (len(problem.edges) + problem.units))
        members: list[list[int]] = [[] for _ in range(problem.units)]
        for v, unit in enumerate(problem.unit):
            members[unit].append(v)
        self.members = members
        every = range(len(problem.devices))
        self.possible = [
            [d for d in every if all(grid.run[v][d] is not None for v in unit)] for unit in members
        ]
        # Dropping devices makes other heads and tails larger; each round is valid by itself.
        for _ in range(ROUNDS):
            ways = sum(
                len(self.possible[problem.unit[v]]) for edge in problem.edges for v in edge[:2]
            )
            self.allowance.spend(ways * (10 + grid.adding * len(problem.devices)))
            self.allowance.spend(10 * len(problem.edges) + 16 * grid.adding * cells)
            self.head = self._longest(forwards=True)
            self.tail = self._longest(forwards=False)
            left = [[d for d in self.possible[u] if self._fits(u, d)] for u in range(len(members))]
            if left == self.possible:
                break
            self.possible = left
        self.feasible = all(self.possible)

    def time(self, v: int, d: int) -> int:
        """Return the run time of a vertex on a device that is possible for it."""
        run = self.grid.run[v][d]
        assert run is not None
        return run

    def _fits(self, unit: int, d: int) -> bool:
        return all(
            self.head[v][d] + self.time(v, d) + self.tail[v][d] <= self.grid.horizon
            for v in self.members[unit]
        )

    def _longest(self, forwards: bool) -> list[list[int]]:
        problem, grid = self.grid.problem, self.grid
        never, k = grid.horizon + 1, len(problem.devices)
        result = [[never] * k for _ in problem.vertices]
        passed = [[never] * k for _ in problem.vertices]  # with the run time of the vertex itself
        crossing = grid.arrival if forwards else grid.departure
        edges: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for u, v, tensor in problem.edges:
            if forwards:
                edges[v].append((u, tensor))
            else:
                edges[u].append((v, tensor))
        for v in problem.order if forwards else reversed(problem.order):
            unit = problem.unit[v]
            for d in self.possible[unit]:
                longest = 0
                for w, tensor in edges[v]:
                    if problem.unit[w] == unit:
                        least = passed[w][d]
                    else:
                        least = min(map(add, passed[w], crossing[tensor][d]))
                    longest = max(longest, least)
                result[v][d] = min(longest, never)
                passed[v][d] = result[v][d] + self.time(v, d)
        return result


# --- 6. Refutations by arithmetic -------------------------------------------------------------


def refute_by_path(windows: Windows, record: dict[str, Any]) -> None:
    """Check that some unit has no device on which its longest path ends in time."""
    object_of(record, "", "record")
    demand(not windows.feasible, "every unit has a device where its paths fit")


def vertices_of(record: dict[str, Any], problem: Problem) -> list[int]:
    """Return the distinct vertices that a record is about."""
    n = len(problem.vertices)
    listed = [integer(v, 0, n - 1, "vertices") for v in list_of(record.get("vertices"), "vertices")]
    demand(len(set(listed)) == len(listed), "record: a vertex occurs twice")
    return listed


def refute_by_one_machine(windows: Windows, record: dict[str, Any]) -> None:
    """Check that some vertices must share a device and take too long one after another.

    The first of them starts no earlier than the least head, and after the last at least the least
    tail follows.
    """
    object_of(record, "device vertices", "record")
    problem = windows.grid.problem
    d = integer(record.get("device"), 0, len(problem.devices) - 1, "device")
    chosen = vertices_of(record, problem)
    demand(chosen, "record: no vertices")
    for v in chosen:
        demand(
            windows.possible[problem.unit[v]] == [d], "record: a vertex can be on another device"
        )
    total = min(windows.head[v][d] for v in chosen) + min(windows.tail[v][d] for v in chosen)
    total += sum(windows.time(v, d) for v in chosen)
    demand(total > windows.grid.horizon, f"the record only proves {shown(total)} ticks")


def refute_by_load(windows: Windows, record: dict[str, Any]) -> None:
    """Check that the devices, weighted by the record's multipliers, do not have enough room.

    Let ``y_d, μ_d ≥ 0``. In a schedule of at most ``H`` ticks, the listed vertices on ``d`` run for
    ``load_d ≤ room_d``, and memory gives ``need_d ≤ M_d``. Adding up, with every unit on the device
    where it weighs least: ``Σ_u min_d (y_d·load_u,d + μ_d·need_u) ≤ Σ_d (y_d·room_d + μ_d·M_d)``.
    """
    object_of(record, "vertices load memory", "record")
    demand(windows.feasible, "the windows refute by themselves; the tier is path")
    problem, k = windows.grid.problem, len(windows.grid.problem.devices)
    y = [not_negative(x) for x in list_of(record.get("load"), "load", k)]
    mu = [not_negative(x) for x in list_of(record.get("memory"), "memory", k)]
    limits = [limit for limit in problem.capacity if limit is not None]
    common = common_denominator((*y, *mu, *limits, *problem.need), windows.allowance)
    bits = 4 * common.bit_length() + windows.grid.horizon.bit_length()
    bits += length(y) + length((*mu, *limits)) + problem.bits_of_memory
    windows.allowance.spend((k + problem.units) * (k + 1) * 4 * calculating(bits))
    windows.allowance.spend(len(problem.vertices) * (k + calculating(bits)))
    chosen = set(vertices_of(record, problem))
    total = Fraction(0)
    for d, limit in enumerate(problem.capacity):
        demand(limit is not None or mu[d] == 0, "record: a device without a memory limit")
        total -= y[d] * room(windows, chosen, d) + mu[d] * (limit or 0)
    for unit, members in enumerate(windows.members):
        need = sum(problem.need[v] for v in members)
        total += min(
            y[d] * sum(windows.time(v, d) for v in members if v in chosen) + mu[d] * need
            for d in windows.possible[unit]
        )
    demand(total > 0, "the record proves nothing")


def room(windows: Windows, chosen: set[int], d: int) -> int:
    """Return the most ticks for which the chosen vertices can run on a device.

    They take turns between the least head and the least tail of those that can be there, and their
    total run time is a sum over some of their units.
    """
    windows.allowance.spend(len(chosen) * (5 + len(windows.grid.problem.devices) // 8))
    there = [v for v in chosen if d in windows.possible[windows.grid.problem.unit[v]]]
    if not there:
        return 0
    limit = windows.grid.horizon
    limit -= min(windows.head[v][d] for v in there) + min(windows.tail[v][d] for v in there)
    if limit < 0 or limit > MAX_COUNTED:
        return max(0, limit)
    loads: dict[int, int] = defaultdict(int)
    for v in there:
        loads[windows.grid.problem.unit[v]] += windows.time(v, d)
    windows.allowance.spend(len(loads) * (5 + (limit >> 10)))
    sums = 1  # the sums of all subsets, as bits
    for load in loads.values():
        if load <= limit:
            sums = (sums | sums << load) & ((2 << limit) - 1)
    return sums.bit_length() - 1


# --- 7. Refutation in series ------------------------------------------------------------------

NEVER = 2**100  # a time beyond all others, even after adding them up
NOTHING, SAME, APART = range(3)  # what the place of one vertex says about that of another

Label = tuple[int, ...]
Bounded = tuple[int, Label]


class Series:
    """The vertices in parts that run one after another, and what connects them.

    A *cut* is a vertex with a path to or from every other vertex. Each of its ancestors has ended
    when it starts, and each of its descendants starts when it has ended. A *part* consists of the
    vertices after one cut, up to and including the next. An artificial vertex ``n`` that takes no
    time and follows every other vertex is the last cut; it ends when the schedule does.

    Attributes
    ----------
    parts : list of list of int
        The vertices of each part in topological order, its cut last.
    devices : list of list of int
        Where each vertex can be; the artificial one is always on device 0.
    run : list of list of int
        Run times, ``NEVER`` where a vertex cannot be.
    after : list of dict
        For each vertex, its successors, each with the delays between their devices, ``NEVER`` where
        nothing crosses in time.
    before : list of set
        Predecessors of each vertex.
    rule : list of dict
        For each vertex, ``SAME`` for those that share its device, and ``APART`` for those that must
        not.
    part_of : list of int
        The part of each vertex.
    anywhere : list of list of int
        Earliest starts of each vertex, as far as nothing is placed.
    need : list of int, capacity : list of (int or None)
        Memory in whole units. The need of a colocation group counts at its first vertex in
        topological order, and nowhere else.
    need_after : list of int
        Memory of all parts after each one.
    """

    def __init__(self, windows: Windows) -> None:
        grid, problem = windows.grid, windows.grid.problem
        demand(windows.feasible, "the windows refute by themselves; the tier is path")
        n, k = len(problem.vertices), len(problem.devices)
        self.allowance = windows.allowance
        self.allowance.spend((n + 1) * k * 8)
        self.allowance.hold((n + 1) * (k * 24 + 2000))
        demand(grid.horizon < MAX_TICKS, f"series: more than {MAX_TICKS} ticks")
        self.horizon, self.k, self.sink = grid.horizon, k, n
        self.devices = [windows.possible[unit] for unit in problem.unit] + [[0]]
        self.run = [[NEVER] * k for _ in range(n)] + [[0] * k]
        for v in range(n):
            for d in self.devices[v]:
                self.run[v][d] = windows.time(v, d)
        self.anywhere = [[0 if time < NEVER else NEVER for time in row] for row in self.run]
        self._link(grid)
        self._relate(windows)
        self.parts = self._split([*problem.order, n])
        self.part_of = [0] * (n + 1)
        for i, part in enumerate(self.parts):
            for v in part:
                self.part_of[v] = i
        self._count_memory(windows)
        #: How much a vertex says about others.
        self.degree = [
            3 + len(self.after[v]) + len(self.before[v]) + len(self.rule[v]) for v in range(n + 1)
        ]

    def _link(self, grid: Grid) -> None:
        def late(delay: int | None) -> int:
            return NEVER if delay is None or delay > grid.horizon else delay

        tensors: dict[tuple[int, int], list[int]] = defaultdict(list)
        for u, v, tensor in grid.problem.edges:
            tensors[u, v].append(tensor)
        # By identity, since tensors of one size share their delays.
        parallel = sum(len(several) for several in tensors.values() if len(several) > 1)
        self.allowance.hold(500 * len(tensors))
        tables = {id(delay): delay for delay in grid.delay.values()}
        self.allowance.spend((2 * len(tables) + 3 * parallel) * self.k * self.k)
        self.allowance.hold((len(tables) + parallel) * (8 * self.k * self.k + 100))
        known = {name: [[late(x) for x in row] for row in delay] for name, delay in tables.items()}
        self.after: list[dict[int, list[list[int]]]] = [{} for _ in self.run]
        self.before: list[set[int]] = [set() for _ in self.run]
        for (u, v), several in tensors.items():
            first, *others = (known[id(grid.delay[tensor])] for tensor in several)
            for other in others:
                first = [list(map(max, *rows)) for rows in zip(first, other, strict=True)]
            self.after[u][v] = first
            self.before[v].add(u)
        at_once = [[0] * self.k for _ in range(self.k)]
        for v in range(self.sink):
            if not self.after[v]:
                self.after[v][self.sink] = at_once
                self.before[self.sink].add(v)

    def _relate(self, windows: Windows) -> None:
        members, unit = windows.members, windows.grid.problem.unit
        pairs = {(unit[a], unit[b]) for a, b in windows.grid.problem.separated}
        size = sum(len(group) ** 2 for group in members)
        size += sum(len(members[a]) * len(members[b]) for a, b in pairs)
        self.allowance.spend(5 * size)
        self.allowance.hold(250 * size)
        self.rule: list[dict[int, int]] = [{} for _ in self.run]
        for a, b in pairs:
            for v, w in product(members[a], members[b]):
                self.rule[v][w] = self.rule[w][v] = APART
        for group in members:
            for v, w in permutations(group, 2):
                self.rule[v][w] = SAME

    def relation(self, v: int, w: int) -> tuple[list[list[int]] | None, int]:
        """Return what one vertex says about another: delays, if any, and a rule."""
        return self.after[v].get(w), self.rule[v].get(w, NOTHING)

    def related(self, vertices: Iterable[int]) -> set[int]:
        """Return the vertices about which some vertices say something."""
        return set().union(*(self.after[v] for v in vertices), *(self.rule[v] for v in vertices))

    def _split(self, order: list[int]) -> list[list[int]]:
        """Cut the vertices into parts.

        All vertices up to ``v`` have a path to it if it is the only one of them without a successor
        among them; likewise backwards.
        """

        def gathers(order: list[int], before: Sequence[Iterable[int]]) -> set[int]:
            ends: set[int] = set()
            found = set()
            for v in order:
                ends.difference_update(before[v])
                ends.add(v)
                if len(ends) == 1:
                    found.add(v)
            return found

        # The artificial vertex follows all others, even if not by an edge.
        cuts = gathers(order[:-1], self.before) & gathers(order[-2::-1], self.after) | {self.sink}
        parts: list[list[int]] = [[]]
        for v in order:
            parts[-1].append(v)
            if v in cuts:
                parts.append([])
        return parts[:-1]

    def _count_memory(self, windows: Windows) -> None:
        problem = windows.grid.problem
        position = {v: i for i, v in enumerate(problem.order)}
        calculation = calculating(2 * problem.bits_of_memory)
        self.allowance.spend(3 * (len(position) + self.k) * calculation)
        needs = [sum((problem.need[v] for v in group), Fraction(0)) for group in windows.members]
        common = common_denominator(needs, self.allowance)
        #: One unit of memory; capacities are rounded down to whole units.
        self.unit = Fraction(math.gcd(*(int(need * common) for need in needs)) or 1, common)
        self.capacity = [None if x is None else x // self.unit for x in problem.capacity]
        self.need = [0] * (self.sink + 1)
        for group, need in zip(windows.members, needs, strict=True):
            self.need[min(group, key=lambda v: position[v])] = int(need / self.unit)
        totals = accumulate(sum(self.need[v] for v in part) for part in reversed(self.parts))
        self.need_after = [0, *totals][-2::-1]

    def spend(self, steps: int) -> None:
        """Pay for some steps of the search."""
        self.allowance.spend(steps)

    def undominated(self, labels: list[Bounded], memory: int) -> list[Bounded]:
        """Return labels of which none is nowhere less than another that uses the same memory.

        All labels of a state use as much memory in all, but for rounding. So it would help little
        to compare those that use it on different devices.
        """
        kept: list[Bounded] = []
        same: list[Label] = []
        last: Label | None = None
        length = len(labels[0][1])
        self.allowance.spend(len(labels) * len(labels).bit_length() * (3 + length // 4))
        for bound, label in sorted(labels, key=lambda entry: (entry[1][:memory], entry)):
            if label[:memory] != last:
                same, last = [], label[:memory]
            self.allowance.spend(len(same) * (3 + length // 2))
            if not any(all(map(le, other, label)) for other in same):
                same.append(label)
                kept.append((bound, label))
        return kept


class Prices:
    """A price of memory on each device, and what it says about the time after each cut.

    A schedule pays ``⌊price·need⌋`` ticks for each colocation group, and so no more than
    ``Σ_d price_d·M_d`` in all. The potential of a cut on a device is at most the time from its end
    to the end of the schedule plus all that is paid for vertices after it.

    Attributes
    ----------
    cost : list of list of int
        What is paid for each vertex on each device.
    least : list of int
        The same on the cheapest device.
    potential : list of list of int
        For each part, the potential of its cut on each device; what is claimed in the record.
    start : int
        The potential of the moment 0.
    """

    def __init__(self, series: Series, document: object) -> None:
        record = object_of(document, "prices start potentials", "a set")
        k = series.k
        self.prices = [not_negative(x) for x in list_of(record.get("prices"), "prices", k)]
        allowance = series.allowance
        allowance.spend(k * calculating(length(self.prices) + length([series.unit])))
        units = [price * series.unit for price in self.prices]
        self.per = common_denominator(units, allowance)
        allowance.spend(2 * k * calculating(2 * length(units) + 2 * self.per.bit_length()))
        self.numerator = [int(price * self.per) for price in units]
        self.capacity = series.capacity
        for price, limit in zip(self.prices, self.capacity, strict=True):
            demand(limit is not None or price == 0, "prices: a device without a memory limit")
        bits = 2 * max(x.bit_length() for x in (*self.numerator, self.per))
        #: Steps of what is paid for some memory on all devices.
        memory = max(x.bit_length() for x in (*series.need, *(c or 0 for c in series.capacity)))
        self.paying = k * (4 + 2 * multiplying(bits + memory))
        allowance.spend(len(series.need) * self.paying)
        allowance.hold(len(series.need) * (k * 50 + 100))
        self.cost = []
        for need in series.need:
            self.cost.append([x * need // self.per for x in self.numerator])
            demand(max(self.cost[-1]) < MAX_TICKS, f"prices: over {MAX_TICKS} ticks for a vertex")
        self.least = [
            min(row[d] for d in devices)
            for row, devices in zip(self.cost, series.devices, strict=True)
        ]
        rows = list_of(record.get("potentials"), "potentials", len(series.parts) - 1)
        self.potential = [
            [
                integer(x, 0, MAX_TICKS, "potentials") if x is not None else NEVER
                for d, x in enumerate(list_of(row, "potentials", k))
            ]
            for part, row in zip(series.parts, rows, strict=False)
        ]
        for part, row in zip(series.parts, self.potential, strict=False):
            for d, x in enumerate(row):
                allowed = d in series.devices[part[-1]]
                demand(allowed == (x < NEVER), "potentials: not one for each possible device")
        self.potential.append([0] * k)
        self.start = integer(record.get("start"), 0, MAX_TICKS, "start")

    def room(self, used: Sequence[int]) -> int:
        """Return the most that can still be paid if some memory is used."""
        free = zip(self.numerator, self.capacity, used, strict=True)
        return sum(x * (limit - taken) for x, limit, taken in free if limit is not None) // self.per


class State:
    """The vertices of a part that are placed, and the labels of that state.

    A label holds the memory used on each device (in the forward pass only), the moment from which
    each device is free, and the earliest start of each vertex with a *slot* on each device. A
    vertex has a slot if it is not placed, and either can be next or depends on a placed one by an
    edge, a colocation or a separation.

    Attributes
    ----------
    rest, next, slots : list of int
        The vertices of the part that are not placed; those that can be next; those with a slot.
    at : dict
        Where the earliest starts of each vertex with a slot begin in a label.
    need : int
        Memory of everything that is not placed, here and in the parts that follow.
    """

    def __init__(self, part: Part, placed: frozenset[int]) -> None:
        series = part.series
        series.allowance.spend(part.steps_of_state)
        part.hold(1000 + 70 * len(placed) + 150 * (len(part.vertices) + len(part.known)))
        self.placed = placed
        self.rest = [v for v in part.vertices if v not in placed]
        waiting = set(self.rest)
        self.next = [v for v in self.rest if not series.before[v] & waiting]
        known = {w for w in part.known | series.related(placed) if part.has(w) and w not in placed}
        self.slots = sorted(known.union(self.next))
        first = part.memory + series.k
        self.at = {w: first + i * series.k for i, w in enumerate(self.slots)}
        self.need = part.later + sum(series.need[v] for v in self.rest)
        self.steps: list[Step] | None = None


class Step:
    """Placing one more vertex ``v``, which leads to the state ``to``.

    ``moves`` says for each slot of ``to`` where it was before, if it was; the earliest starts
    otherwise; and what ``v`` says about its vertex: delays, and ``SAME``, ``APART`` or ``NOTHING``.
    """

    def __init__(self, series: Series, state: State, v: int, to: State) -> None:
        series.allowance.spend(20 + 10 * len(to.slots))
        self.v, self.to, self.at = v, to, state.at[v]
        self.moves = [
            (state.at.get(w), series.anywhere[w], *series.relation(v, w)) for w in to.slots
        ]


class Part:
    """The ways to place the vertices of a part after a cut.

    Backwards, only the cut before and the part itself matter. Forwards, labels hold memory, and
    all that earlier vertices say about later ones.

    Attributes
    ----------
    known : set of int
        Vertices about which earlier ones say something.
    memory : int
        Number of entries for memory in a label.
    later : int
        Memory of all parts that follow.
    """

    def __init__(self, series: Series, i: int, known: set[int] | None = None) -> None:
        self.series, self.i, self.vertices = series, i, series.parts[i]
        self.cut = series.parts[i - 1][-1] if i else None
        self.memory = 0 if known is None else series.k
        if known is None:
            known = series.related(() if self.cut is None else (self.cut,))
        self.known, self.later = known, series.need_after[i]
        self._states: dict[frozenset[int], State] = {}
        self._held = 0
        # Each vertex is looked at with all that it says about others.
        self.steps_of_state = 30 + 8 * len(known) + 2 * sum(series.degree[v] for v in self.vertices)

    def hold(self, size: int) -> None:
        """Pay for memory that is given back with the part."""
        self.series.allowance.hold(size)
        self._held += size

    def close(self) -> None:
        """Give back the memory of all states."""
        self.series.allowance.hold(-self._held)
        self._held = 0
        self._states.clear()

    def has(self, w: int) -> bool:
        """Return whether a vertex can have a slot."""
        at = self.series.part_of[w]
        return at == self.i or (at > self.i and self.memory > 0)

    def state(self, placed: frozenset[int] = frozenset()) -> State:
        """Return the state in which some vertices are placed."""
        if placed not in self._states:
            self._states[placed] = State(self, placed)
        return self._states[placed]

    def steps(self, state: State) -> list[Step]:
        """Return the ways to place one more vertex."""
        if state.steps is None:
            state.steps = []
            for v in state.next:
                self.series.allowance.spend(len(state.placed))
                to = self.state(state.placed | {v})
                self.hold(300 + 120 * len(to.slots))
                state.steps.append(Step(self.series, state, v, to))
        return state.steps

    def start(self, d: int) -> Label:
        """Return the label at the moment 0, at which the cut before ends on a device."""
        series = self.series
        label = [0] * (self.memory + series.k)
        for w in self.state().slots:
            row: Sequence[int] = series.anywhere[w]
            if self.cut is not None:
                row = moved(row, *series.relation(self.cut, w), d, 0)
            label += row
        return tuple(label)

    def extend(self, label: Label, step: Step, d: int, prices: Prices | None) -> Label | None:
        """Place the vertex of a step on a device; return ``None`` if that is not possible.

        Vertices are placed in the order of their starts. So nothing starts before the next one,
        whichever that is, and all times before its earliest start are raised to that. If ``prices``
        are given, what is paid for the vertex delays everything that follows; otherwise, its memory
        is counted, and no device is said to have more room than everything else together needs.
        """
        series, memory, k, v = self.series, self.memory, self.series.k, step.v
        begin = label[step.at + d]
        if begin >= NEVER:
            return None
        used = list(label[:memory])
        if memory:
            used[d] += series.need[v]
            for e, limit in enumerate(series.capacity):
                if limit is None:
                    used[e] = 0
                elif used[e] > limit:
                    return None
                else:
                    used[e] = max(used[e], limit - step.to.need)
        end = begin + series.run[v][d]
        rows = []
        for at, anywhere, delays, rule in step.moves:
            row: Sequence[int] = anywhere if at is None else label[at : at + k]
            if delays is not None or rule != NOTHING:
                row = moved(row, delays, rule, d, end)
                if min(row) >= NEVER:
                    return None
            rows.append(row)
        free = list(label[memory : memory + k])
        free[d] = end
        following = dict(zip(step.to.slots, rows, strict=True))
        earliest = end  # a cut, after which everything else starts
        if step.to.next:
            earliest = min(min(map(max, following[w], free)) for w in step.to.next)
        if earliest >= NEVER:
            return None
        free = [max(time, earliest) for time in free]
        paid = 0 if prices is None else prices.cost[v][d]
        times = chain(free, *(map(max, row, free) for row in rows))
        return (*used, *(time + paid if time < NEVER else NEVER for time in times))

    def walk(
        self,
        labels: list[Bounded],
        guides: list[Guide],
        limit: int,
        prices: Prices | None = None,
    ) -> list[Bounded]:
        """Extend labels through the part; return those left, with their bounds.

        Labels are dropped if they are dominated, or if a guide says that they exceed the limit.
        """
        series, memory, k = self.series, self.memory, self.series.k
        per_guide = sum(20 + memory * guide.prices.paying for guide in guides)
        states = {self.state(): labels}
        held = 0  # bytes of the labels reached
        for _ in self.vertices:
            found: dict[State, list[Bounded]] = defaultdict(list)
            new_held = 0
            for state, reached in states.items():
                for step, (_, label) in product(self.steps(state), reached):
                    length = memory + k + k * len(step.to.slots)
                    steps = 50 + 8 * len(step.to.slots) + length * (6 + len(guides)) + per_guide
                    size = 150 + 40 * length
                    for d in series.devices[step.v]:
                        series.spend(steps)
                        new = self.extend(label, step, d, prices)
                        if new is not None and max(new[memory : memory + k]) <= limit:
                            bound = max(guide.bound(step.to, new, d) for guide in guides)
                            if bound <= limit:
                                series.allowance.hold(size)
                                new_held += size
                                found[step.to].append((bound, new))
            states = {
                state: series.undominated(reached, memory) for state, reached in found.items()
            }
            kept = sum(150 + 40 * len(x) for reached in states.values() for _, x in reached)
            series.allowance.hold(kept - new_held - held)
            held = kept
        series.allowance.hold(-held)
        return [entry for reached in states.values() for entry in reached]


class Guide:
    """Lower bounds of what the labels of a part can become, at some prices.

    Attributes
    ----------
    remain : dict
        How much follows the start of each vertex on each device, along the longest path: time to
        the end of the part, what is paid for the vertices of the path beyond the least, and the
        potential of the cut. At each vertex, the path goes on with the successor that makes it
        longest, on the device that makes it shortest.
    """

    def __init__(self, part: Part, prices: Prices) -> None:
        series = part.series
        self.part, self.prices, self.potential = part, prices, prices.potential[part.i]
        part.hold(len(part.vertices) * (series.k * 40 + 200))
        self.remain: dict[int, list[int]] = {}
        for v in reversed(part.vertices):
            longest = self.potential if v == part.vertices[-1] else [0] * series.k
            for w, delays in series.after[v].items():
                if w in self.remain:
                    series.spend(series.k * (12 + series.k))
                    least = [min(map(add, row, self.remain[w])) for row in delays]
                    longest = list(map(max, longest, least))
            series.spend(6 * series.k)
            self.remain[v] = [NEVER] * series.k
            for d in series.devices[v]:
                extra = prices.cost[v][d] - prices.least[v]
                self.remain[v][d] = min(NEVER, series.run[v][d] + extra + longest[d])
        self._paid: dict[State, int] = {}

    def bound(self, state: State, label: Label, d: int) -> int:
        """Return a lower bound of everything that a label can become, in a state just reached.

        Everything else is paid for at least at its least price; and forwards, what is paid for the
        memory that is still free need not be more than that memory is worth.
        """
        series, memory = self.part.series, self.part.memory
        if not state.rest:
            longest = label[memory] + self.potential[d]
        else:
            longest = 0
            for w in state.slots:
                if w in self.remain:
                    at = state.at[w]
                    ways = map(add, label[at : at + series.k], self.remain[w])
                    longest = max(longest, min(ways))
            if state not in self._paid:
                self.part.hold(100)
                series.spend(len(state.rest))
                self._paid[state] = sum(self.prices.least[v] for v in state.rest)
            longest += self._paid[state]
        return longest - self.prices.room(label[:memory]) if memory else longest


def moved(
    row: Sequence[int], delays: list[list[int]] | None, rule: int, d: int, end: int
) -> Sequence[int]:
    """Return the earliest starts of a vertex once a related one has ended on device ``d``."""
    if delays is not None:
        row = [max(time, end + delay) for time, delay in zip(row, delays[d], strict=True)]
    if rule == SAME:
        row = [time if e == d else NEVER for e, time in enumerate(row)]
    elif rule == APART:
        row = [NEVER if e == d else time for e, time in enumerate(row)]
    return row


def refute_in_series(windows: Windows, record: dict[str, Any]) -> None:
    """Check that the parts of the graph, one after another, do not end within the horizon.

    Backwards: the potentials of the record are checked from the last cut to the first. If the first
    of all is more than ``H`` plus all that can be paid, nothing ends by ``H``. Forwards: otherwise,
    labels with the memory used are extended through all parts; none may reach the end by ``H``.
    """
    check_in_series(Series(windows), record)


def check_in_series(series: Series, record: dict[str, Any]) -> None:
    """Check the record of a graph in parts."""
    object_of(record, "sets", "record")
    documents = list_of(record.get("sets"), "sets")
    demand(documents, "record: no sets")
    sets = [Prices(series, document) for document in documents]
    for prices in sets:
        check_potentials(series, prices)
    if any(prices.start - prices.room([0] * series.k) > series.horizon for prices in sets):
        return
    first, known = Part(series, 0, set()), set[int]()
    labels = [(0, first.start(0))]
    first.close()
    for i, vertices in enumerate(series.parts):
        series.spend(3 * len(known) + sum(series.degree[v] for v in vertices))
        part = Part(series, i, known)
        labels = part.walk(labels, [Guide(part, prices) for prices in sets], series.horizon)
        part.close()
        known = (known | series.related(vertices)).difference(vertices)
    demand(not labels, "the record does not exclude a shorter schedule")


def check_potentials(series: Series, prices: Prices) -> None:
    """Check that no schedule of what follows a cut takes and pays less than its potential."""
    for i in reversed(range(len(series.parts))):
        part = Part(series, i)
        guide = Guide(part, prices)
        claims = {d: prices.potential[i - 1][d] for d in series.devices[series.parts[i - 1][-1]]}
        if i == 0:
            claims = {0: prices.start}
        for d, claim in claims.items():
            where = f"after part {i} on device {d}" if i else "at the start"
            less = part.walk([(0, part.start(d))], [guide], claim - 1, prices)
            demand(not less, f"record: the potential {where} is too large")
        part.close()


# --- 8. Refutation by intervals ----------------------------------------------------------------

Times = list[list[int]]


def changed(row: list[int], d: int, value: int) -> list[int]:
    """Return a copy of a row with another value in one place."""
    return [*row[:d], value, *row[d + 1 :]]


def elsewhere(times: Times, never: int) -> Times:
    """Return the times of a tensor between devices, but never from a device to itself."""
    return [changed(row, d, never) for d, row in enumerate(times)]


def ends(starts: list[int], run: list[int], never: int) -> list[int]:
    """Return the ends of a vertex on each device for its starts."""
    return [min(never, start + time) for start, time in zip(starts, run, strict=True)]


class Intervals:
    """Heads that rise interval by interval, in topological order.

    An *interval* is any set of vertices. A *case* says of some pairs of its units that they share a
    device, and of others that they do not. In every case, vertices start no earlier than computed
    here; every schedule is one of the cases that the record distinguishes, so the least over these
    cases is a head in every schedule.

    A schedule read from its end to its start is a schedule of the instance with all edges reversed,
    whose tensors take as long in the opposite direction; its heads are the tails. So *backwards*,
    everything below is about tails: edges, their transfers and the order are those reversed.

    Attributes
    ----------
    order : list of int
        The vertices in topological order.
    inputs : list of list of (int, int)
        The inputs of each vertex and their tensors.
    crossing : dict
        Time that a tensor takes, by the device of the vertex that waits and that of its input.
    head, end : list of list of int
        Earliest starts and ends of each vertex on each device, ``H + 1`` where it cannot be.
    """

    def __init__(self, windows: Windows, *, backwards: bool = False) -> None:
        grid, problem = windows.grid, windows.grid.problem
        self.allowance, self.adding, self.size = grid.allowance, grid.adding, grid.size
        cells = len(problem.vertices) * len(problem.devices)
        self.allowance.hold(cells * (2 * grid.size + 24))
        self.allowance.hold(100 * len(problem.edges) + 400 * len(problem.separated))
        self.problem, self.never = problem, grid.horizon + 1
        self.order = problem.order[::-1] if backwards else problem.order
        self.crossing = grid.departure if backwards else grid.arrival
        self.unit = problem.unit
        self.devices = [windows.possible[unit] for unit in problem.unit]
        self.run = [[0 if p is None else p for p in row] for row in grid.run]
        self.head = [row[:] for row in (windows.tail if backwards else windows.head)]
        self.end = [[self.never] * len(problem.devices) for _ in problem.vertices]
        self.inputs: list[list[tuple[int, int]]] = [[] for _ in problem.vertices]
        for u, v, tensor in problem.edges:
            before, after = (v, u) if backwards else (u, v)
            self.inputs[after].append((before, tensor))
        #: The units from which a unit is separated.
        self.separated: dict[int, set[int]] = defaultdict(set)
        for a, b in problem.separated:
            self.separated[problem.unit[a]].add(problem.unit[b])
            self.separated[problem.unit[b]].add(problem.unit[a])
        #: Times from other devices, by the identity of all times: many tensors share them.
        self._elsewhere: dict[int, list[list[int]]] = {}

    def replay(self, steps: object) -> None:
        """Raise heads as the steps of a record say.

        The vertices are visited in topological order. Each passes on the heads of its inputs; then
        come the intervals of which it is the last vertex.
        """
        position = {v: i for i, v in enumerate(self.order)}
        ending: dict[int, list[tuple[list[int], list[Any]]]] = defaultdict(list)
        for item in list_of(steps, "steps"):
            step = object_of(item, "vertices cases", "a step")
            vertices = vertices_of(step, self.problem)
            demand(vertices, "a step: no vertices")
            places = [position[v] for v in vertices]
            demand(places == sorted(places), "a step: not in topological order")
            ending[vertices[-1]].append((vertices, list_of(step.get("cases"), "cases")))
        for v in self.order:
            self.pass_on(v)
            for vertices, cases in ending[v]:
                self.raise_heads(vertices, cases)

    def elsewhere(self, tensor: int) -> list[list[int]]:
        """Return the times of a tensor to each device from each *other* device."""
        times = self.crossing[tensor]
        if id(times) not in self._elsewhere:
            self.allowance.spend(len(times) * (5 + len(times) // 8))
            self.allowance.hold(len(times) * (8 * len(times) + 100))
            self._elsewhere[id(times)] = elsewhere(times, self.never)
        return self._elsewhere[id(times)]

    def wait(self, v: int, row: list[int], end: list[int], tensor: int, rule: int) -> None:
        """Raise the starts of a vertex to when an input arrives, made on its device or not."""
        each = 3 if rule == SAME else 10 + len(end) * self.adding
        self.allowance.spend(10 + len(self.devices[v]) * (each + self.adding))
        crossing = self.elsewhere(tensor) if rule == APART else self.crossing[tensor]
        for d in self.devices[v]:
            arrived = end[d] if rule == SAME else min(map(add, end, crossing[d]))
            row[d] = min(self.never, max(row[d], arrived))

    def ended(self, v: int, row: list[int]) -> list[int]:
        """Return the ends of a vertex for its starts."""
        return ends(row, self.run[v], self.never)

    def pass_on(self, v: int) -> None:
        """Raise the head of a vertex to when its inputs arrive from wherever is best."""
        self.allowance.spend(10 + 3 * len(self.run[v]) * self.adding)
        for u, tensor in self.inputs[v]:
            rule = SAME if self.unit[u] == self.unit[v] else NOTHING
            self.wait(v, self.head[v], self.end[u], tensor, rule)
        self.end[v] = self.ended(v, self.head[v])

    def raise_heads(self, vertices: list[int], cases: list[Any]) -> None:
        """Raise the heads of an interval to the least of its cases.

        Parameters
        ----------
        cases : list of int
            A tree. Two numbers of vertices split a case, first into what holds if they share a
            device, then into what holds if they do not; −1 leaves it as it is.
        """
        inside, earlier = self._within(vertices)
        known = {self.unit[v] for v in vertices}
        self.allowance.spend(sum(5 + 2 * len(self.separated.get(a, ())) for a in known))
        apart = {(a, b) for a in known for b in self.separated.get(a, ()) if b in known}
        stack = [([self.unit[v] for v in vertices], apart)]
        self.allowance.hold(_waiting(*stack[0]))
        cells = len(vertices) * len(self.run[0])
        self.allowance.hold(3 * cells * self.size)
        least: list[list[int]] | None = None
        case = _Case(len(vertices))
        left = iter(cases)
        last = len(vertices) - 1
        while stack:
            label, apart = stack.pop()
            self.allowance.spend(20 + 2 * len(label) + 8 * len(apart))
            self.allowance.hold(-_waiting(label, apart))
            i = integer(next(left, None), -1, last, "cases")
            if i < 0:
                self._enter(case, vertices, inside, earlier, label, apart)
                self.allowance.spend(10 * len(vertices) + 2 * cells * self.adding)
                rows = least or case.head
                least = [list(map(min, *pair)) for pair in zip(rows, case.head, strict=True)]
                continue
            a, b = label[i], label[integer(next(left, None), 0, last, "cases")]
            demand(a != b and (a, b) not in apart, "cases: a pair that is decided already")
            joined = {b: a}
            moved = {(joined.get(x, x), joined.get(y, y)) for x, y in apart}
            stack.append((label, apart | {(a, b), (b, a)}))
            stack.append(([joined.get(x, x) for x in label], moved))
            for waiting in stack[-2:]:
                self.allowance.hold(_waiting(*waiting))
        demand(next(left, None) is None, "cases: more than one tree")
        assert least is not None
        for v, row in zip(vertices, least, strict=True):
            self.head[v], self.end[v] = row, self.ended(v, row)
        self.allowance.hold(-3 * cells * self.size)

    def _within(self, vertices: list[int]) -> tuple[list[list[tuple[int, int]]], list[list[int]]]:
        """Return, for each vertex of an interval, its inputs in there and all that precede it."""
        number = {v: i for i, v in enumerate(vertices)}
        inside = [[(number[u], t) for u, t in self.inputs[v] if u in number] for v in vertices]
        earlier: list[set[int]] = []
        for row in inside:
            self.allowance.spend(5 + len(vertices) * (1 + len(row)))
            earlier.append({j for j, _ in row}.union(*(earlier[j] for j, _ in row)))
        return inside, [sorted(row) for row in earlier]

    def _enter(
        self,
        case: _Case,
        vertices: list[int],
        inside: list[list[tuple[int, int]]],
        earlier: list[list[int]],
        label: list[int],
        apart: set[tuple[int, int]],
    ) -> None:
        """Compute starts in a case; vertices of one label share a device.

        Those that precede a vertex on its device have all ended when it starts: in the order of
        their heads, each takes its turn.
        """
        changed = [False] * len(vertices)
        for i, v in enumerate(vertices):
            here = label[i]
            mates = [j for j in earlier[i] if label[j] == here]
            rules = [
                SAME if label[j] == here else APART if (label[j], here) in apart else NOTHING
                for j, _ in inside[i]
            ]
            self.allowance.spend(20 + 3 * len(rules) + 2 * len(earlier[i]))
            if case.rules[i] == (mates, rules) and not any(changed[j] for j in earlier[i]):
                continue  # as in the case before
            case.rules[i] = (mates, rules)
            row = self.head[v][:]
            for (j, tensor), rule in zip(inside[i], rules, strict=True):
                self.wait(v, row, case.end[j], tensor, rule)
            turn = 4 + len(mates).bit_length() + 2 * self.adding
            self.allowance.spend(len(row) + len(self.devices[v]) * (10 + len(mates) * turn))
            self.allowance.spend(3 * len(row) * self.adding)
            for d in self.devices[v]:
                free = 0
                for start, run in sorted(
                    (case.head[j][d], self.run[vertices[j]][d]) for j in mates
                ):
                    free = max(free, start) + run
                row[d] = min(self.never, max(row[d], free))
            if row != case.head[i]:
                changed[i] = True
                case.head[i], case.end[i] = row, self.ended(v, row)


def _waiting(label: list[int], apart: set[tuple[int, int]]) -> int:
    """Return the bytes of a case that waits for another."""
    return 400 + 8 * len(label) + 150 * len(apart)


class _Case:
    """Starts and ends in the case entered last, and what they follow from."""

    def __init__(self, size: int) -> None:
        self.head: list[list[int]] = [[] for _ in range(size)]
        self.end: list[list[int]] = [[] for _ in range(size)]
        self.rules: list[tuple[list[int], list[int]] | None] = [None] * size


def refute_by_intervals(windows: Windows, record: dict[str, Any]) -> None:
    """Check that heads and tails, raised interval by interval, leave some unit no device.

    Both hold in every schedule of at most ``H`` ticks, so they also do together.
    """
    object_of(record, "steps backwards", "record")
    demand(windows.feasible, "the windows refute by themselves; the tier is path")
    forwards = Intervals(windows)
    forwards.replay(record.get("steps"))
    head, tail = forwards.head, windows.tail
    if "backwards" in record:
        backwards = Intervals(windows, backwards=True)
        backwards.replay(record["backwards"])
        tail = backwards.head

    def late(v: int, d: int) -> bool:
        return head[v][d] + forwards.run[v][d] + tail[v][d] > windows.grid.horizon

    demand(
        any(
            all(any(late(v, d) for v in members) for d in windows.possible[unit])
            for unit, members in enumerate(windows.members)
        ),
        "every unit has a device where its raised heads and tails fit",
    )


# --- 9. Refutation by probing -----------------------------------------------------------------


class Side:
    """The edges in one direction of time; backwards, they and their transfers are reversed.

    Attributes
    ----------
    order, position : list of int
        The vertices in topological order, and the place of each in it.
    inputs : list of list of (int, Times, Times)
        The inputs of each vertex, with the times of their tensors to a device from each *other*
        one, and from a device to each other one.
    """

    def __init__(self, grid: Grid, *, backwards: bool) -> None:
        problem = grid.problem
        self.order = problem.order[::-1] if backwards else problem.order
        self.position = [0] * len(self.order)
        for place, v in enumerate(self.order):
            self.position[v] = place
        tables = [grid.arrival, grid.departure]
        if backwards:
            tables.reverse()
        k = len(problem.devices)
        shared = 2 * len({id(times) for times in grid.arrival.values()})
        grid.allowance.spend(shared * k * (5 + k // 8) + 10 * len(problem.edges))
        grid.allowance.hold(shared * k * (8 * k + 100) + 150 * len(problem.edges))
        other: dict[int, Times] = {}  # by identity: many tensors share their times
        for times in chain(*(table.values() for table in tables)):
            if id(times) not in other:
                other[id(times)] = elsewhere(times, grid.horizon + 1)
        self.inputs: list[list[tuple[int, Times, Times]]] = [[] for _ in self.order]
        for u, v, tensor in problem.edges:
            before, after = (v, u) if backwards else (u, v)
            arriving, leaving = (other[id(table[tensor])] for table in tables)
            self.inputs[after].append((before, arriving, leaving))


class Facts:
    """Facts about every schedule of at most ``H`` ticks that satisfies some assumptions.

    An assumption is that a unit is on a given device.

    Attributes
    ----------
    known : [list, list]
        Heads, and tails, of each vertex on each device; ``H + 1`` where it cannot be. Rows are
        replaced, and never changed.
    ended : [list, list]
        The same with the run time of the vertex added.
    possible : list of list of int
        The devices on which each unit can be.
    free : list of list of int
        Per unit and device, 0 if it can be there, else ``H + 1``.
    need : list of int, capacity : list of (int or None)
        Memory that a unit takes throughout, and that a device has, as whole numbers.
    refuted : bool
        Whether some unit has no device left.
    """

    def __init__(self, windows: Windows, head: list[list[int]], tail: list[list[int]]) -> None:
        self.allowance, self.adding = windows.allowance, windows.grid.adding
        self.size = windows.grid.size
        self.horizon = windows.grid.horizon
        self.never = self.horizon + 1
        problem = windows.grid.problem
        self.unit, self.members = problem.unit, windows.members
        limits = problem.capacity
        k = len(limits)
        self.spend(len(head) * (10 + k * (5 + 12 * self.adding)))
        self.hold(len(head) * (24 * k + 1200))  # and what one ancestry takes
        known = (*problem.need, *(x for x in limits if x is not None))
        whole = common_denominator(known, self.allowance)
        bits = 2 * problem.bits_of_memory + length(known) + whole.bit_length()
        self.spend(2 * len(known) * calculating(bits))
        self.bits_of_memory = bits
        self.need = [int(whole * sum(problem.need[v] for v in m)) for m in self.members]
        self.capacity = [None if limit is None else int(whole * limit) for limit in limits]
        self.run = [[0 if p is None else p for p in row] for row in windows.grid.run]
        self.sides = [Side(windows.grid, backwards=backwards) for backwards in (False, True)]
        every = range(k)
        self.known = [head[:], tail[:]]
        #: Rows that no other facts share.
        self.own: set[tuple[bool, int]] = set()
        self.possible = windows.possible[:]
        self.refuted = not all(self.possible)
        self.ended: list[list[list[int]]] = [[[]] * len(head), [[]] * len(head)]
        self.free = [[0 if d in row else self.never for d in every] for row in self.possible]
        for v in range(len(head)):
            for backwards in (False, True):
                self._set(backwards, v, self.known[backwards][v])
        for v, unit in enumerate(self.unit):
            for d in windows.possible[unit]:
                if head[v][d] + self.run[v][d] + tail[v][d] > self.horizon:
                    self.exclude(unit, d)

    @classmethod
    def after_intervals(cls, windows: Windows, record: dict[str, Any]) -> Self:
        """Return what holds after the intervals of a record, forwards and backwards."""
        forwards = Intervals(windows)
        forwards.replay(record.get("steps"))
        backwards = Intervals(windows, backwards=True)
        backwards.replay(record.get("backwards"))
        return cls(windows, forwards.head, backwards.head)

    def copy(self) -> Self:
        """Return a copy that can change by itself."""
        self.spend(10 + len(self.unit))
        self.hold(1000 + 48 * len(self.unit))
        facts = object.__new__(type(self))
        facts.__dict__.update(self.__dict__)
        facts.known, facts.ended = list(map(list, self.known)), list(map(list, self.ended))
        facts.possible, facts.free = self.possible[:], self.free[:]
        facts.own = set()
        return facts

    def assume(self, unit: int, d: int) -> Self:
        """Return the facts if a unit is on a device, too."""
        facts = self.copy()
        facts.keep(unit, [e for e in self.possible[unit] if e == d])
        return facts

    def exclude(self, unit: int, d: int) -> None:
        """Drop a device from a unit."""
        self.keep(unit, [e for e in self.possible[unit] if e != d])

    def keep(self, unit: int, devices: list[int]) -> None:
        """Drop all but some devices from a unit."""
        possible = self.possible[unit]
        if devices == possible:
            return
        k, members = len(self.free[unit]), len(self.members[unit])
        self.spend(10 + 3 * k + 2 * members * (10 + k * (3 + 3 * self.adding)))
        self.possible[unit], self.refuted = devices, self.refuted or not devices
        left = [self.never] * k
        for d in devices:
            left[d] = 0
        self.free[unit] = left
        for v in self.members[unit]:
            for backwards in (False, True):
                row = self.known[backwards][v]
                self._set(backwards, v, [max(*pair) for pair in zip(row, left, strict=True)])

    def raise_to(self, backwards: bool, v: int, d: int, t: int) -> None:
        """Raise a head or, backwards, a tail; a vertex that ends too late is not on the device."""
        if t + self.run[v][d] + self.known[not backwards][v][d] > self.horizon:
            self.exclude(self.unit[v], d)
        elif t > self.known[backwards][v][d]:
            self.spend(10 + len(self.run[v]) * (1 + self.adding))
            self._set(backwards, v, changed(self.known[backwards][v], d, t))

    def _set(self, backwards: bool, v: int, row: list[int]) -> None:
        if (backwards, v) not in self.own:
            self.hold(300 + 2 * len(row) * self.size)
            self.own.add((backwards, v))
        self.known[backwards][v] = row
        self.ended[backwards][v] = ends(row, self.run[v], self.never)

    def spend(self, steps: int) -> None:
        """Pay for some steps."""
        self.allowance.spend(steps)

    def hold(self, size: int) -> None:
        """Pay for memory."""
        self.allowance.hold(size)


class Ancestry:
    """The ancestors of a vertex ``v`` on a device ``d``; backwards, its descendants.

    An ancestor is *here* if it is on ``d``, else *away*. Colocated vertices are here.

    Attributes
    ----------
    if_here, if_away : dict
        The least time from the end of an ancestor to the start of ``v``, if it is here, or away: on
        every path, each vertex is here or away, and what is between them crosses or does not.
    here, there : dict
        The same from the start of the ancestor.
    bound : dict
        The earliest start of ``v`` if the ancestor is away. Either all vertices of a path from it
        to ``v`` are away up to one whose tensor crosses to ``d``; or the path ends earlier.
    """

    def __init__(self, facts: Facts, backwards: bool, v: int, d: int) -> None:
        self.facts, self.backwards, self.v, self.d = facts, backwards, v, d
        self.side = side = facts.sides[backwards]
        never, unit, head = facts.never, facts.unit, facts.known[backwards]
        free, ended = facts.free, facts.ended[backwards]
        self.if_here, self.if_away, self.bound = {v: 0}, {v: never}, {v: never}
        self.here, self.there = {v: 0}, {v: never}
        per_edge = 40 + 4 * facts.adding * len(head[v])
        facts.spend(50 + side.position[v])
        for place in range(side.position[v], -1, -1):
            x = side.order[place]
            if x not in self.if_here:
                continue
            facts.spend(per_edge * (1 + len(side.inputs[x])))
            if x != v:
                self._enter(x)
            here, there, bound = self.here[x], self.there[x], self.bound[x]
            for w, arriving, leaving in side.inputs[x]:
                if unit[w] == unit[x]:
                    self._reach(w, here, there, bound)
                    continue
                arrived = min(map(add, ended[w], arriving[d]))
                near = min(map(add, free[unit[w]], arriving[d]))
                far = min(map(add, free[unit[x]], leaving[d]))
                self._reach(
                    w,
                    min(here, far + there),
                    min(near + here, there),
                    min(max(arrived, head[x][d]) + here, bound),
                )

    def _enter(self, x: int) -> None:
        facts, d, never = self.facts, self.d, self.facts.never
        away = self.if_away[x]
        if facts.unit[x] == facts.unit[self.v]:
            self.bound[x] = never
        else:
            self.bound[x] = min(never, max(self.bound[x], self.ended(x) + away))
        self.here[x] = min(never, facts.free[facts.unit[x]][d] + facts.run[x][d] + self.if_here[x])
        self.there[x] = never if self.bound[x] >= never else min(never, self.fastest(x) + away)

    def _reach(self, w: int, here: int, there: int, bound: int) -> None:
        if w in self.if_here:
            here, there = max(here, self.if_here[w]), max(there, self.if_away[w])
            bound = max(bound, self.bound[w])
        self.if_here[w], self.if_away[w], self.bound[w] = here, there, bound

    def ended(self, x: int) -> int:
        """Return the earliest end of ``x``, if it is away."""
        return min(changed(self.facts.ended[self.backwards][x], self.d, self.facts.never))

    def fastest(self, x: int) -> int:
        """Return the least run time of ``x``, if it is away."""
        free = changed(self.facts.free[self.facts.unit[x]], self.d, self.facts.never)
        least: int = min(map(add, free, self.facts.run[x]))
        return least

    def forced(self, t: int) -> list[int]:
        """Return the ancestors that are on ``d`` if ``v`` starts there before ``t``."""
        unit = self.facts.unit
        units = {unit[w] for w, bound in self.bound.items() if bound >= t}
        return [w for w in self.bound if unit[w] in units and w != self.v]

    def proves(self, t: int) -> bool:
        """Return whether ``v`` does not start on ``d`` before ``t``.

        If it did, all ancestors that are forced there would take turns before it.
        """
        facts, d = self.facts, self.d
        facts.spend(5 * len(self.bound) * facts.adding)
        jobs = self.forced(t)
        if any(facts.free[facts.unit[w]][d] for w in jobs):
            return True
        head, run = facts.known[self.backwards], facts.run
        facts.spend(turning(len(jobs)) * facts.adding)
        return in_turns([(head[w][d], run[w][d], self.if_here[w]) for w in jobs]) >= t


def turning(jobs: int) -> int:
    """Return the steps in which so many jobs take turns."""
    return jobs * (20 + 4 * jobs.bit_length())


def in_turns(jobs: list[tuple[int, int, int]]) -> int:
    """Return the least end of jobs that take turns, given head, run time and tail of each.

    Of the jobs that can run, the one with the longest tail does, and may be interrupted.
    """
    jobs = sorted(jobs)
    waiting: list[tuple[int, int]] = []  # tail, negative, and what is left to run
    now = end = i = 0
    while waiting or i < len(jobs):
        if not waiting:
            now = max(now, jobs[i][0])
        while i < len(jobs) and jobs[i][0] <= now:
            heapq.heappush(waiting, (-jobs[i][2], jobs[i][1]))
            i += 1
        tail, left = waiting[0]
        if i < len(jobs) and now + left > jobs[i][0]:
            heapq.heapreplace(waiting, (tail, now + left - jobs[i][0]))
            now = jobs[i][0]
        else:
            heapq.heappop(waiting)
            now += left
            end = max(end, now - tail)
    return end


def refute_by_probing(windows: Windows, record: dict[str, Any]) -> None:
    """Check a list of claims, of which the last leaves nothing possible.

    Intervals raise heads and tails first, as in tier ``intervals``.
    """
    object_of(record, "steps backwards claims", "record")
    demand(windows.feasible, "the windows refute by themselves; the tier is path")
    facts = Facts.after_intervals(windows, record)
    demand(refuted(facts, record.get("claims"), 0), "the claims leave every unit a device")


def refuted(facts: Facts, claims: object, depth: int) -> bool:
    """Check claims, one after another; return whether they leave nothing possible."""
    demand(depth <= MAX_ASSUMPTIONS, f"more than {MAX_ASSUMPTIONS} assumptions at one time")
    k = len(facts.free[0])
    for claim in list_of(claims, "claims"):
        if facts.refuted:
            return True
        kind, *rest = list_of(claim, "a claim") or [None]
        if kind in ("head", "tail"):
            check_times(facts, kind == "tail", rest)
        elif kind == "not":
            unit, d, why = list_of(rest, "a claim", 3)
            integer(unit, 0, len(facts.members) - 1, "a unit")
            integer(d, 0, k - 1, "a device")
            left = facts.allowance.bytes
            demand(refuted(facts.assume(unit, d), why, depth + 1), "a claim: the unit can be there")
            facts.allowance.bytes = left
            facts.exclude(unit, d)
        elif kind == "full":
            d, vertices = list_of(rest, "a claim", 2)
            integer(d, 0, k - 1, "a device")
            jobs = alone(facts, d, vertices)
            facts.spend(turning(len(jobs)) * facts.adding)
            return in_turns(jobs) > facts.horizon
        else:
            demand(kind == "work", f"unknown claim {shown(kind)}")
            return too_much_work(facts, *list_of(rest, "a claim", 2))
    return facts.refuted


def check_times(facts: Facts, backwards: bool, numbers: list[Any]) -> None:
    """Check heads or tails: vertex, device and time, and so on."""
    n, k = len(facts.unit), len(facts.run[0])
    demand(len(numbers) % 3 == 0, "a claim of times is not in threes")
    for v, d, t in zip(*[iter(numbers)] * 3, strict=True):
        integer(v, 0, n - 1, "a vertex")
        integer(d, 0, k - 1, "a device")
        integer(t, 0, facts.never, "a time")
        facts.spend(10 + k // 4)
        if d in facts.possible[facts.unit[v]]:
            demand(
                Ancestry(facts, backwards, v, d).proves(t), "a claim: the vertex can start earlier"
            )
            facts.raise_to(backwards, v, d, t)


def alone(facts: Facts, d: int, vertices: object) -> list[tuple[int, int, int]]:
    """Return head, run time and tail of vertices that can be on one device only."""
    listed = [integer(v, 0, len(facts.unit) - 1, "a vertex") for v in list_of(vertices, "vertices")]
    demand(len(set(listed)) == len(listed), "a claim: a vertex occurs twice")
    for v in listed:
        left = facts.possible[facts.unit[v]]
        demand(left in ([d], []), "a claim: a vertex can be elsewhere")
    head, tail = facts.known
    return [(head[v][d], facts.run[v][d], tail[v][d]) for v in listed]


def too_much_work(facts: Facts, rows: object, prices: object) -> bool:
    """Return whether the devices lack the time, or the memory, for what they must do.

    A row has a device, the begin and end of an interval, and a multiplier ``y``. Of a vertex that
    runs there, at least as much is inside the interval as if it ran as early, or as late, as it
    can. With ``work`` the sum of these, ``Σ work ≤ end − begin`` in every row. A price has a device
    and a multiplier ``μ``; memory gives ``Σ need ≤ M`` there. So, with each unit on the device
    where it weighs least,
    ``Σ_u min_d (Σ y·work_{u,row} + μ_d·need_u) ≤ Σ y·(end − begin) + Σ μ_d·M_d``.
    """
    k, units = len(facts.free[0]), len(facts.members)
    by_time = facts.horizon.bit_length() + MAX_MULTIPLIER.bit_length()
    by_memory = facts.bits_of_memory + MAX_MULTIPLIER.bit_length()
    facts.spend(units * k * (1 + 2 * adding(by_time + by_memory)))
    room = 0
    for row in list_of(rows, "rows"):
        d, begin, end, y = list_of(row, "a row", 4)
        integer(d, 0, k - 1, "a device")
        integer(begin, 0, facts.horizon, "a row")
        integer(end, begin, facts.horizon, "a row")
        integer(y, 0, MAX_MULTIPLIER, "a multiplier")
        facts.spend(len(facts.unit) * (15 + 8 * facts.adding + 2 * multiplying(by_time)))
        room += y * (end - begin)
    for price in list_of(prices, "prices"):
        d, mu = list_of(price, "a price", 2)
        limit = facts.capacity[integer(d, 0, k - 1, "a device")]
        demand(limit is not None, "a price: a device without a memory limit")
        facts.spend(len(facts.need) * (3 + 2 * multiplying(by_memory)))
        room += integer(mu, 0, MAX_MULTIPLIER, "a price") * (limit or 0)
    return room < sum(
        min(row[d] for d in left)
        for row, left in zip(weights(facts, rows, prices), facts.possible, strict=True)
    )


def weights(facts: Facts, rows: Any, prices: Any) -> list[list[int]]:
    """Return what each unit weighs on each device, as far as it can be there."""
    result = [[0] * len(facts.run[0]) for _ in facts.members]
    for d, begin, end, y in rows:
        for v, unit in enumerate(facts.unit):
            if not facts.free[unit][d]:
                result[unit][d] += y * inside(facts, v, d, begin, end)
    for d, mu in prices:
        for row, need in zip(result, facts.need, strict=True):
            row[d] += mu * need
    return result


def inside(facts: Facts, v: int, d: int, begin: int, end: int) -> int:
    """Return for how long a vertex at least runs inside an interval, if it is on a device."""
    run = facts.run[v][d]
    early = facts.known[False][v][d] + run - begin
    late = end - (facts.horizon - facts.known[True][v][d] - run)
    return max(0, min(early, late, run, end - begin))


# --- 10. Refutation by proof ------------------------------------------------------------------

Clause = list[int]

TRUE, FALSE = 1, -1  # literals of a variable that is in no clause
NONE: list[Clause] = []


class Moment:
    """A whole number between ``low`` and ``high``; one variable per threshold above ``low``."""

    def __init__(self, low: int, high: int, first: int) -> None:
        self.low, self.high, self.first = low, high, first

    def at_least(self, t: int) -> int:
        """Return the literal for: the number is ``t`` or more."""
        if t <= self.low:
            return TRUE
        return FALSE if t > self.high else self.first + t - self.low - 1


def follows(conditions: Clause, first: Moment, second: Moment, lag: int) -> Iterator[Clause]:
    """Yield clauses for ``second ≥ first + lag``, unless a literal of ``conditions`` holds."""
    if TRUE in conditions:
        return
    begin = max(first.low, second.low - lag + 1)
    finish = min(first.high, max(first.low, second.high - lag + 1))
    for t in range(begin, finish + 1):
        yield [*conditions, -first.at_least(t), second.at_least(t + lag)]


class Encoding:
    """The variables of the formula ``order/1``, and their meaning in a schedule of ``≤ H`` ticks.

    * ``place(u, d)``: unit ``u`` is on device ``d``.
    * ``start[v]``, ``end[v]``: when ``v`` starts and ends. They are one set of variables if the run
      time of ``v`` is the same on all its devices.
    * Some families of clauses add variables of their own and explain them.
    """

    def __init__(self, windows: Windows, document: object) -> None:
        record = object_of(document, "encoding loads multipliers memory_scale", "record")
        demand(record.get("encoding") == "order/1", "record: the encoding is not order/1")
        problem = windows.grid.problem
        n, k = len(problem.vertices), len(problem.devices)
        demand(windows.feasible, "the windows refute by themselves; the tier is path")
        self.windows, self.grid, self.problem = windows, windows.grid, problem
        self.allowance = windows.allowance
        self.allowance.spend(n * (50 + 10 * k * windows.grid.adding))
        self.allowance.hold(n * (1000 + 150 * k))
        self.horizon = windows.grid.horizon
        demand(self.horizon < MAX_TICKS, f"more than {MAX_TICKS} ticks")
        loads = list_of(record.get("loads"), "loads")
        self.loads = []
        for load in loads:
            d, head, tail = list_of(load, "a load", 3)
            limits = (0, self.horizon, "a load")
            self.loads.append(
                (integer(d, 0, k - 1, "a load"), integer(head, *limits), integer(tail, *limits))
            )
        self.multipliers = [
            integer(y, 0, 2**64, "multipliers") for y in list_of(record.get("multipliers"), "")
        ]
        demand(len(self.multipliers) in (0, k), "record: not one multiplier per device")
        self.memory_scale = not_negative(record.get("memory_scale"))
        self.variables = 1
        self._place: list[dict[int, int]] = []
        for devices in windows.possible:
            single = len(devices) == 1
            self._place.append({d: TRUE if single else self.new() for d in devices})
        self.start: list[Moment] = []
        self.end: list[Moment] = []
        for v in range(n):
            self._add_moments(v)
        self._among: dict[tuple[int, int, int], int] = {}

    def new(self, count: int = 1) -> int:
        """Allocate new variables; return the first."""
        self.variables += count
        demand(self.variables <= MAX_VARIABLES, "the formula has too many variables")
        self.allowance.spend(count)
        return self.variables - count + 1

    def _add_moments(self, v: int) -> None:
        windows = self.windows
        devices = windows.possible[self.problem.unit[v]]
        head, tail = windows.head[v], windows.tail[v]
        run = {d: windows.time(v, d) for d in devices}
        low = min(head[d] for d in devices)
        high = max(self.horizon - tail[d] - run[d] for d in devices)
        start = Moment(low, high, self.new(high - low) if high > low else 0)
        self.start.append(start)
        if min(run.values()) == max(run.values()):
            length = run[devices[0]]
            self.end.append(Moment(low + length, high + length, start.first))
        else:
            low = min(head[d] + run[d] for d in devices)
            high = max(self.horizon - tail[d] for d in devices)
            self.end.append(Moment(low, high, self.new(high - low) if high > low else 0))

    def place(self, unit: int, d: int) -> int:
        """Return the literal for: the unit is on the device."""
        return self._place[unit].get(d, FALSE)

    def among(self, a: int, b: int, pairs: frozenset[tuple[int, int]]) -> tuple[int, list[Clause]]:
        """Return a literal that holds if units ``a`` and ``b`` are on one of the pairs of devices.

        Its clauses are returned with it, the first time only. ``b`` is on some device; so if ``a``
        is on ``d``, and ``b`` is on no device that forms no pair with ``d``, the literal holds. The
        same holds with ``a`` and ``b`` exchanged.
        """
        # As bits: the sets themselves could take a gigabyte.
        k = len(self.problem.devices)
        cells = len(self.windows.possible[a]) * len(self.windows.possible[b])
        self.allowance.spend(50 + 8 * cells + len(pairs) * (6 + (k * k >> 10)))
        self.allowance.hold(300 + k * k // 7)
        key = a, b, sum(1 << d * k + e for d, e in pairs)
        if key in self._among:
            return self._among[key], []
        literal = self._among[key] = self.new()
        clauses = []
        for x, y, forwards in ((a, b, True), (b, a, False)):
            every = self.windows.possible[y]
            for d in self.windows.possible[x]:
                others = [e for e in every if ((d, e) if forwards else (e, d)) not in pairs]
                if len(others) < len(every):
                    clauses.append(
                        [literal, -self.place(x, d), *(self.place(y, e) for e in others)]
                    )
        return literal, clauses


def distinct(values: Iterable[int]) -> list[int]:
    """Return numbers in order, each once; a set is slow if numbers share one hash."""
    return [value for value, _ in groupby(sorted(values))]


# Each of the following functions yields one family of clauses, and its docstring says why every
# schedule of at most H ticks satisfies them, given the meaning of the variables. Families marked
# "implied" only help the proof: without them, the formula would have the same answer.


def one_device(code: Encoding) -> Iterator[Clause]:
    """Every unit is on one device."""
    for unit, devices in enumerate(code.windows.possible):
        yield [code.place(unit, d) for d in devices]
        for d, e in combinations(devices, 2):
            yield [-code.place(unit, d), -code.place(unit, e)]


def thresholds(code: Encoding) -> Iterator[Clause]:
    """A value of at least ``t + 1`` is at least ``t``."""
    for start, end in zip(code.start, code.end, strict=True):
        for moment in [start] if start.first == end.first else [start, end]:
            for t in range(moment.low + 1, moment.high):
                yield [-moment.at_least(t + 1), moment.at_least(t)]


def run_times(code: Encoding) -> Iterator[Clause]:
    """A vertex ends no earlier than its run time after its start.

    One implication per distinct run time, for the devices where it is as long or longer.
    """
    for v, (start, end) in enumerate(zip(code.start, code.end, strict=True)):
        unit = code.problem.unit[v]
        devices = code.windows.possible[unit]
        code.allowance.spend(20 + 15 * len(devices) * code.grid.adding)
        lengths = distinct(code.windows.time(v, d) for d in devices)
        if len(lengths) == 1:
            continue  # start and end are the same variables
        for length in lengths:
            code.allowance.spend(20 + 5 * len(devices) * code.grid.adding)
            pairs = frozenset((d, d) for d in devices if code.windows.time(v, d) >= length)
            literal, clauses = TRUE, NONE
            if len(pairs) < len(devices):
                literal, clauses = code.among(unit, unit, pairs)
            yield from clauses
            yield from follows([-literal], start, end, length)


def precedence(code: Encoding) -> Iterator[Clause]:
    """A vertex starts no earlier than its inputs arrive.

    One implication per distinct delay of an edge, for the pairs of devices where it is as long or
    longer.
    """
    for u, v, tensor in code.problem.edges:
        a, b, delay = code.problem.unit[u], code.problem.unit[v], code.grid.delay[tensor]
        cells = len(code.windows.possible[a]) * len(code.windows.possible[b])
        code.allowance.spend(20 + 15 * cells * code.grid.adding)
        known: dict[tuple[int, int], int] = {}
        for d in code.windows.possible[a]:
            for e in [d] if a == b else code.windows.possible[b]:
                crossing = delay[d][e]
                if crossing is None:
                    yield [-code.place(a, d), -code.place(b, e)]
                else:
                    known[d, e] = crossing
        for lag in distinct(known.values()):
            code.allowance.spend(3 * len(known) * code.grid.adding)
            pairs = frozenset(pair for pair, crossing in known.items() if crossing >= lag)
            literal, clauses = TRUE, NONE
            if len(pairs) < len(known):
                literal, clauses = code.among(a, b, pairs)
            yield from clauses
            yield from follows([-literal], code.end[u], code.start[v], lag)


def turns(code: Encoding) -> Iterator[Clause]:
    """Of two vertices on one device, one ends before the other starts.

    Two literals mean "ends before", one for either order. If there is no choice of devices, one
    literal and its negation suffice. If a path of edges or the windows imply the order, there are
    no clauses.
    """
    problem, start, end = code.problem, code.start, code.end
    n = len(problem.vertices)
    code.allowance.spend((n + len(problem.edges)) * (5 + (n >> 10)))
    code.allowance.hold(n * (100 + n // 7))
    ancestors = [0] * n  # bit sets
    sources = defaultdict(list)
    for u, v, _ in problem.edges:
        sources[v].append(u)
    for v in problem.order:
        for u in sources[v]:
            ancestors[v] |= ancestors[u] | 1 << u
    possible = [frozenset(devices) for devices in code.windows.possible]
    code.allowance.spend(n * n // 2 * (4 + (n >> 11) + 2 * code.grid.adding))
    for u, v in combinations(range(n), 2):
        if ancestors[u] >> v & 1 or ancestors[v] >> u & 1:
            continue
        if end[u].high <= start[v].low or end[v].high <= start[u].low:
            continue
        a, b = problem.unit[u], problem.unit[v]
        code.allowance.spend(5 + len(possible[a]))
        shared = [d for d in code.windows.possible[a] if d in possible[b]]
        if not shared:
            continue
        together = a == b or code.place(a, shared[0]) == code.place(b, shared[0]) == TRUE
        first = FALSE if end[u].low > start[v].high else code.new()
        second = FALSE if end[v].low > start[u].high else -first if together else code.new()
        if together:
            yield [first, second]
        else:
            for d in shared:
                yield [-code.place(a, d), -code.place(b, d), first, second]
        yield from follows([-first], end[u], start[v], 0)
        yield from follows([-second], end[v], start[u], 0)


def apart(code: Encoding) -> Iterator[Clause]:
    """Separated vertices are on different devices."""
    for u, v in code.problem.separated:
        a, b = code.problem.unit[u], code.problem.unit[v]
        for d in code.windows.possible[a]:
            yield [-code.place(a, d), -code.place(b, d)]


def memory(code: Encoding) -> Iterator[Clause]:
    """The memory of the units on a device is at most its capacity.

    Memory is counted in units of ``1 / memory_scale`` and rounded down, which only weakens this.
    """
    scale, problem = code.memory_scale, code.problem
    bits = length((scale, *(limit for limit in problem.capacity if limit is not None)))
    calculation = calculating(2 * problem.bits_of_memory + bits)
    code.allowance.spend((2 * len(problem.vertices) + len(problem.capacity)) * calculation)
    needs = [
        math.floor(scale * sum(problem.need[v] for v in members))
        for members in code.windows.members
    ]
    for d, limit in enumerate(problem.capacity):
        if limit is not None and scale:
            weights = [(need, code.place(unit, d)) for unit, need in enumerate(needs)]
            yield from at_most(code, weights, math.floor(scale * limit))


def windows_by_device(code: Encoding) -> Iterator[Clause]:
    """Implied: a vertex keeps its head and tail on the device where it is."""
    for v, (start, end) in enumerate(zip(code.start, code.end, strict=True)):
        unit = code.problem.unit[v]
        for d in code.windows.possible[unit]:
            yield [-code.place(unit, d), start.at_least(code.windows.head[v][d])]
            latest = code.horizon - code.windows.tail[v][d]
            yield [-code.place(unit, d), -end.at_least(latest + 1)]


def loads(code: Encoding) -> Iterator[Clause]:
    """Implied: vertices on a device take turns between the least head and the least tail.

    For each ``(device, head, tail)`` of the record: of the vertices with at least this head and
    tail there, the first starts no earlier than ``head``, and the last ends at least ``tail``
    before the horizon.
    """
    windows = code.windows
    for d, head, tail in code.loads:
        k = len(code.problem.devices)
        code.allowance.spend(len(windows.members) * (10 + k // 4))
        code.allowance.spend(len(code.problem.vertices) * (5 + 3 * code.grid.adding))
        weights = []
        for unit, members in enumerate(windows.members):
            if d in windows.possible[unit]:
                counted = [
                    v for v in members if windows.head[v][d] >= head and windows.tail[v][d] >= tail
                ]
                if counted:
                    load = sum(windows.time(v, d) for v in counted)
                    weights.append((load, code.place(unit, d)))
        limit = code.horizon - head - tail
        if limit < 0:
            yield from ([-literal] for _, literal in weights)
        else:
            yield from at_most(code, weights, limit)


def least_loads(code: Encoding) -> Iterator[Clause]:
    """Implied: a device takes the load for which the others have no room.

    With the multipliers ``y`` of the record, and every unit where it weighs least,
    ``Σ_e y_e·load_e ≥ W``; and ``load_e ≤ room_e``. So ``y_d·load_d ≥ W − Σ_{e≠d} y_e·room_e``:
    the units that could be on ``d`` but are not add up to no more than the rest.
    """
    windows, y = code.windows, code.multipliers
    every = set(range(len(code.problem.vertices)))
    cells = len(every) * len(code.problem.devices)
    code.allowance.spend(len(y) * (len(y) + 2 * cells))
    code.allowance.hold(150 * cells)
    taken = [y_d * room(windows, every, d) for d, y_d in enumerate(y)]
    work = [
        {d: sum(windows.time(v, d) for v in members) for d in windows.possible[unit]}
        for unit, members in enumerate(windows.members)
    ]
    total = sum(min(y[d] * time for d, time in row.items()) for row in work) if y else 0
    for d, y_d in enumerate(y):
        if y_d:
            least = -((sum(taken) - taken[d] - total) // y_d)
            away = [(row[d], -code.place(unit, d)) for unit, row in enumerate(work) if d in row]
            yield from at_most(code, away, sum(time for time, _ in away) - max(0, least))


def at_most(code: Encoding, weights: Iterable[tuple[int, int]], limit: int) -> Iterator[Clause]:
    """Yield clauses for: the weights of the true literals add up to at most ``limit``.

    The clauses encode a decision diagram. The variable of a node means that the weights from some
    position on add up to at most some ``room``. It implies the node of the next position with the
    same room and, if the next literal is true, the one with its weight less room. Two rooms with no
    possible sum between them share a node.
    """
    weights = list(weights)
    code.allowance.spend(len(weights) * (10 + len(weights).bit_length()))
    there = [(weight, literal) for weight, literal in weights if literal != FALSE]
    limit -= sum(weight for weight, literal in there if literal == TRUE)
    items = sorted((-weight, literal) for weight, literal in there if weight and literal != TRUE)
    if limit >= -sum(weight for weight, _ in items):
        return
    demand(limit <= MAX_COUNTED, "a load or memory limit is too large to count")
    if limit < 0:
        yield []
        return
    bits = 2 + (limit >> 11)
    code.allowance.spend(4 * len(items) * bits)
    room_for_sums = len(items) * (100 + limit // 7)
    code.allowance.hold(room_for_sums)
    sums = [1]  # per position from the end: the sums of all subsets, as bits
    most = [0]  # per position from the end: the sum of all weights
    for weight, _ in reversed(items):
        # A weight above the limit adds no sum that matters, and may be too large a shift.
        more = sums[-1] << -weight if -weight <= limit else 0
        sums.append((sums[-1] | more) & ((2 << limit) - 1))
        most.append(most[-1] - weight)
    sums.reverse()
    most.reverse()
    nodes: dict[int, int] = {limit: TRUE}
    for i, (weight, literal) in enumerate(items):
        following: dict[int, int] = {}

        def node(room: int, i: int = i, following: dict[int, int] = following) -> int:
            if room < 0:
                return FALSE
            if room >= most[i + 1]:
                return TRUE
            largest = (sums[i + 1] & ((2 << room) - 1)).bit_length() - 1
            if largest not in following:
                following[largest] = code.new()
            return following[largest]

        code.allowance.spend(len(nodes) * (20 + 4 * bits))
        for room, name in nodes.items():
            yield [-name, node(room)]
            yield [-name, -literal, node(room + weight)]
        nodes = following
    code.allowance.hold(-room_for_sums)


def alike_devices(code: Encoding) -> Iterator[Clause]:
    """Symmetry: units take identical devices in turn.

    If exchanging any two devices of a class changes nothing, a schedule remains valid when they are
    renumbered in the order of their first units. Then a unit is on the next device of a class only
    if an earlier unit is on the device before it. Units with more work come earlier.
    """
    problem, windows = code.problem, code.windows
    matrices = list({id(matrix): matrix for matrix in code.grid.delay.values()}.values())
    k, adding = len(problem.devices), code.grid.adding
    code.allowance.spend(len(problem.vertices) * (10 + 3 * k) * adding)

    def exchanged(m: list[list[int | None]], d: int, e: int) -> bool:
        code.allowance.spend(10 + 3 * k * adding)
        return m[d][e] == m[e][d] and all(
            m[d][f] == m[e][f] and m[f][d] == m[f][e] for f in range(k) if f not in (d, e)
        )

    def alike(d: int, e: int) -> bool:
        code.allowance.spend(10 + len(problem.vertices) * adding)
        return (
            problem.capacity[d] == problem.capacity[e]
            and all(row[d] == row[e] for row in code.grid.run)
            and all(exchanged(m, d, e) for m in matrices)
        )

    classes: list[list[int]] = []
    for d in range(len(problem.devices)):
        for known in classes:
            if alike(known[0], d):
                known.append(d)
                break
        else:
            classes.append([d])
    work = [
        max((sum(windows.time(v, d) for v in members) for d in windows.possible[unit]), default=0)
        for unit, members in enumerate(windows.members)
    ]
    units = sorted(range(problem.units), key=lambda unit: (-work[unit], unit))
    for known in classes:
        for d, e in pairwise(known):
            for i, unit in enumerate(units):
                if code.place(unit, e) != FALSE:
                    yield [-code.place(unit, e), *(code.place(other, d) for other in units[:i])]


def alike_vertices(code: Encoding) -> Iterator[Clause]:
    """Symmetry: interchangeable vertices start in the order of their numbers.

    Vertices are interchangeable if they have the same run times, memory and inputs, outputs with
    the same delays to the same consumers, and no colocation or separation. Sorting such a class by
    start gives a valid schedule again. Devices may be renumbered after that, since it moves no
    start.
    """
    problem = code.problem
    n, k = len(problem.vertices), len(problem.devices)
    code.allowance.spend(n * (50 + 2 * k + calculating(problem.bits_of_memory)))
    code.allowance.spend(40 * len(problem.edges))
    code.allowance.hold(n * (500 + 8 * k + problem.bits_of_memory // 3) + 200 * len(problem.edges))
    inputs, outputs = defaultdict(list), defaultdict(list)
    for u, v, tensor in problem.edges:
        inputs[v].append(tensor)
        outputs[u].append((v, id(code.grid.delay[tensor])))
    bound = {v for pair in problem.separated for v in pair}
    classes: dict[object, list[int]] = defaultdict(list)
    for v in range(len(problem.vertices)):
        if v not in bound and len(code.windows.members[problem.unit[v]]) == 1:
            key = (
                tuple(code.grid.run[v]),
                str(problem.need[v]),  # since many numbers can share one hash
                tuple(sorted(inputs[v])),
                tuple(sorted(outputs[v])),
            )
            classes[key].append(v)
    for known in classes.values():
        for u, v in pairwise(known):
            yield from follows([], code.start[u], code.start[v], 0)


Family = Callable[[Encoding], Iterator[Clause]]

FAMILIES: tuple[Family, ...] = (
    one_device,
    thresholds,
    run_times,
    precedence,
    turns,
    apart,
    memory,
    windows_by_device,
    loads,
    least_loads,
    alike_devices,
    alike_vertices,
)


def clauses(code: Encoding, families: Sequence[Family] = FAMILIES) -> Iterator[Clause]:
    """Yield the clauses of the formula, without tautologies and duplicate literals."""
    owed = 0
    for family in families:
        for clause in family(code):
            owed += 20 + 4 * len(clause)
            if owed > 2**14:  # not one by one, which would take longer than many a clause
                code.allowance.spend(owed)
                owed = 0
            if TRUE not in clause:
                yield [literal for literal in dict.fromkeys(clause) if literal != FALSE]


class Formula:
    """Clauses by number, from 1: packed clauses of the encoding, and lemmas until deleted."""

    def __init__(self, source: Iterable[Clause], allowance: Allowance | None = None) -> None:
        self.allowance = Allowance() if allowance is None else allowance
        self.literals = array.array("i")
        self.ends = array.array("q", [0])
        owed = 0
        for clause in source:
            self.literals.extend(clause)
            self.ends.append(len(self.literals))
            owed += 10 + 5 * len(clause)
            if owed > 2**14:
                self.allowance.hold(owed)
                owed = 0
        self.deleted = bytearray(len(self.ends))
        self.lemmas: dict[int, array.array[int]] = {}

    def __len__(self) -> int:
        return len(self.ends) - 1

    def clause(self, number: int) -> Sequence[int]:
        """Return a clause; reject if there is none of this number."""
        if number in self.lemmas:
            return self.lemmas[number]
        demand(0 < number <= len(self), f"proof: there is no clause {number}")
        demand(not self.deleted[number], f"proof: clause {number} was deleted")
        return self.literals[self.ends[number - 1] : self.ends[number]]

    def add(self, number: int, literals: Sequence[int]) -> None:
        """Store a lemma, packed."""
        self.allowance.hold(LEMMA + 4 * len(literals))
        self.lemmas[number] = array.array("i", literals)

    def delete(self, number: int) -> None:
        """Delete a clause or a lemma; reject if there is none of this number."""
        size = len(self.clause(number))
        if number in self.lemmas:
            del self.lemmas[number]
            self.allowance.hold(-LEMMA - 4 * size)
        else:
            self.deleted[number] = 1


def check_proof(formula: Formula, variables: int, lines: Iterable[bytes]) -> int:
    """Check an LRAT proof of unsatisfiability; return its number of lemmas.

    A line is ``id literals 0 hints 0`` or ``id d ids 0``. A lemma holds if, with all its literals
    false, each hint in turn has exactly one literal that is not yet false, which therefore becomes
    true, and the last hint has none. The last lemma must be the empty clause.
    """
    last, steps, done, allowance = len(formula), 0, False, formula.allowance
    for line in lines:
        allowance.spend(30 + 2 * len(line))
        allowance.hold(64 * len(line))
        fields = line.split()
        allowance.hold(-64 * len(line))
        demand(max(map(len, fields), default=0) < MAX_DIGITS, "proof: a number is too long")
        if len(fields) > 1 and fields[1] == b"d":
            demand(fields[-1] == b"0" and len(fields) > 2, "proof: a line is cut short")
            for field in fields[2:-1]:
                formula.delete(int(field))
            continue
        demand(not done, "proof: goes on after the empty clause")
        entries = [int(field) for field in fields]
        demand(entries and entries[-1] == 0, "proof: a line is cut short")
        name, zero = entries[0], entries.index(0)
        demand(zero > 0 and zero < len(entries) - 1, "proof: a lemma without hints")
        lemma, hints = entries[1:zero], entries[zero + 1 : -1]
        demand(name > last, f"proof: number {shown(name)} is not larger than those before")
        demand(name <= MAX_NUMBER, f"proof: number {shown(name)} is larger than {MAX_NUMBER}")
        for literal in lemma:
            demand(abs(literal) <= variables, f"proof: no variable {shown(abs(literal))}")
        false = set(lemma)
        where, conflict = f"proof: lemma {name}", False
        for hint in hints:
            demand(not conflict, f"{where}: hints after the conflict")
            clause = formula.clause(hint)
            allowance.spend(10 + len(clause))
            left = [literal for literal in clause if literal not in false]
            demand(len(left) <= 1, f"{where}: hint {hint} leaves more than one literal")
            if left:
                demand(-left[0] not in false, f"{where}: hint {hint} says nothing new")
                false.add(-left[0])
            else:
                conflict = True
        demand(conflict, f"{where}: the hints reach no conflict")
        formula.add(name, lemma)
        last, steps, done = name, steps + 1, not lemma
    demand(done, "proof: the empty clause is missing")
    return steps


def unpacked_lines(content: bytes, allowance: Allowance) -> Iterator[bytes]:
    """Yield the lines of an xz file, unpacked in pieces."""
    allowance.hold(2 * len(content) + MAX_UNPACKER + 10 * MAX_LINE)
    unpacker = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MAX_UNPACKER)
    rest, total = b"", 0
    while not unpacker.eof:
        try:
            piece = unpacker.decompress(content, 2**20)
        except lzma.LZMAError as error:
            raise RejectedError(f"proof cannot be unpacked ({error})") from None
        content = b""
        demand(piece or not unpacker.needs_input or unpacker.eof, "proof is cut short")
        allowance.spend(len(piece) >> 3)
        total += len(piece)
        demand(total <= MAX_PROOF, f"proof is longer than {MAX_PROOF} bytes when unpacked")
        *lines, rest = (rest + piece).split(b"\n")
        demand(len(rest) <= MAX_LINE, "proof: a line is too long")
        yield from lines
    demand(not unpacker.unused_data, "proof: something follows the packed file")
    demand(not rest, "proof: the last line has no end")


# --- 11. Bounds of training strategies ---------------------------------------------------------

STRATEGIES = "optpart-strategy-bound/1"

Span = tuple[Fraction, Fraction]  # samples as a half-open part of [0, 1)
WHOLE: Span = (Fraction(0), Fraction(1))


class Strategies:
    """All strategies that choose one of the listed decisions for every group of operations.

    Times are on a grid of ticks: rounded up to ``tick`` as the rules say, or, if there is no tick,
    down to thousandths of a nanosecond, which only makes strategies faster.

    Attributes
    ----------
    operations : list of dict
        With ``times`` and ``outputs`` as fractions.
    edges : list of (int, int, int)
        Producer, output (−1: it only waits), consumer.
    home : list of int
        Group of each operation.
    spans : list of dict
        The distinct layouts: the samples of each device.
    actions : list of list of (int, sync)
        The layout and the synchronisation of each action of each group.
    """

    def __init__(self, document: dict[str, Any], allowance: Allowance) -> None:
        self.allowance = allowance
        options = object_of(document.get("options"), "tick auxiliary memory slots", "options")
        tick = options.get("tick")
        self.tick = None if tick is None else number(tick)
        demand(self.tick is None or self.tick > 0, "tick is not positive")
        self.scale = Fraction(1000) if self.tick is None else 1 / self.tick
        demand(options.get("auxiliary") in ("memory", "free"), "unknown auxiliary")
        demand(options.get("memory") in ("refcount", "none"), "unknown memory")
        self.free = options["auxiliary"] == "free"
        self.slots = integer(options.get("slots"), 0, 1000, "slots")
        self.batch = integer(document.get("batch"), 1, 2**40, "batch")
        self._read_cluster(document.get("cluster"), options["memory"] == "none")
        self._read_graph(document)
        self._read_actions(document)
        self._read_memory(document.get("parameters"))
        self._estimate()
        self._known: dict[object, Any] = {}
        self._exclude()

    # What the file says.

    def _read_cluster(self, value: object, unlimited: bool) -> None:
        cluster = object_of(value, "kinds servers memory copying latency rate", "cluster")
        self.kinds = [integer(x, 0, 10**6, "kind") for x in list_of(cluster.get("kinds"), "kinds")]
        self.k = k = len(self.kinds)
        demand(k, "no devices")
        servers = list_of(cluster.get("servers"), "servers", k)
        self.servers = [integer(x, 0, 10**6, "server") for x in servers]

        def optional(value: object) -> Fraction | None:
            return None if value is None else not_negative(value)

        self.memory = [optional(x) for x in list_of(cluster.get("memory"), "memory", k)]
        if unlimited:
            self.memory = [None] * k
        self.copying = [optional(x) for x in list_of(cluster.get("copying"), "copying", k)]
        demand(all(x is None or x > 0 for x in self.copying), "a copying rate is 0")
        self.latency = [
            [not_negative(x) for x in list_of(row, "latency", k)]
            for row in list_of(cluster.get("latency"), "latency", k)
        ]
        self.rate = [
            [optional(x) for x in list_of(row, "rate", k)]
            for row in list_of(cluster.get("rate"), "rate", k)
        ]

    def _read_graph(self, document: dict[str, Any]) -> None:
        self.operations: list[dict[str, Any]] = []
        # By text, since many fractions can share one hash.
        kinds: dict[str, int] = {}
        for item in list_of(document.get("operations"), "operations"):
            operation = object_of(item, "name role times outputs splittable", "an operation")
            times = [
                [not_negative(x) for x in list_of(line, "a time", 2)]
                for line in list_of(operation.get("times"), "times")
            ]
            demand(all(kind < len(times) for kind in self.kinds), "a kind has no times")
            outputs = []
            for output in list_of(operation.get("outputs"), "outputs"):
                layout, alpha, beta = list_of(output, "an output", 3)
                demand(layout in ("batched", "summed", "whole"), "unknown layout")
                sizes = not_negative(alpha), not_negative(beta)
                demand(layout == "batched" or not sizes[1], "a size grows with the batch")
                kind = kinds.setdefault(f"{layout} {sizes[0]} {sizes[1]}", len(kinds))
                outputs.append((layout, *sizes, kind))
            role, splittable = operation.get("role"), operation.get("splittable")
            demand(role in ("forward", "backward", "apply"), "unknown role")
            demand(type(splittable) is bool, "splittable is not true or false")
            self.operations.append(
                {"role": role, "times": times, "outputs": outputs, "splittable": splittable}
            )
        n = len(self.operations)
        demand(n, "no operations")
        self.edges = []
        self.out: list[list[int]] = [[] for _ in range(n)]
        self.into: list[list[int]] = [[] for _ in range(n)]
        self.allowance.hold(300 * len(list_of(document.get("edges"), "edges")) + 500 * n)
        for e, item in enumerate(document["edges"]):
            producer, output, consumer = list_of(item, "an edge", 3)
            p = integer(producer, 0, n - 1, "producer")
            i = integer(output, -1, len(self.operations[p]["outputs"]) - 1, "output")
            c = integer(consumer, 0, n - 1, "consumer")
            self.edges.append((p, i, c))
            self.out[p].append(e)
            self.into[c].append(e)
        missing = [len(row) for row in self.into]
        order = [o for o in range(n) if not missing[o]]
        for o in order:
            for e in self.out[o]:
                c = self.edges[e][2]
                missing[c] -= 1
                if not missing[c]:
                    order.append(c)
        demand(len(order) == n, "the edges form a cycle")

    def _read_actions(self, document: dict[str, Any]) -> None:
        decisions = []
        self.spans: list[dict[int, Span]] = []
        layouts: dict[str, int] = {}
        for item in list_of(document.get("decisions"), "decisions"):
            decision = object_of(item, "replicas sync", "a decision")
            counts = list_of(decision.get("replicas"), "replicas", self.k)
            counts = [integer(x, 0, self.batch, "replicas") for x in counts]
            total, sync = sum(counts), decision.get("sync")
            used = [d for d, count in enumerate(counts) if count]
            demand(0 < total <= self.batch, "more replicas than samples, or none")
            if len(used) == 1:
                demand(sync is None, "a single device synchronises")
            elif sync != "allreduce":
                demand(integer(sync, 0, self.k - 1, "sync") in used, "a server without a replica")
            common = math.gcd(*counts)
            key = " ".join(str(count // common) for count in counts)
            if key not in layouts:
                self.allowance.spend(30 * len(used))
                self.allowance.hold(400 * len(used))
                ends = [Fraction(end, total) for end in accumulate(counts, initial=0)]
                layouts[key] = len(self.spans)
                self.spans.append({d: (ends[d], ends[d + 1]) for d in used})
            decisions.append((layouts[key], sync))
        groups = [list_of(group, "a group") for group in list_of(document.get("groups"), "groups")]
        home: dict[int, int] = {}
        for g, group in enumerate(groups):
            for o in group:
                demand(
                    integer(o, 0, len(self.operations) - 1, "member") not in home,
                    "an operation is in two groups",
                )
                home[o] = g
        demand(len(home) == len(self.operations), "an operation is in no group")
        self.home = [home[o] for o in range(len(home))]
        self.actions = []
        for row in list_of(document.get("actions"), "actions", len(groups)):
            numbers = [integer(x, 0, len(decisions) - 1, "action") for x in list_of(row, "actions")]
            demand(numbers, "a group has no action")
            self.actions.append([decisions[x] for x in numbers])
        self.layouts = [sorted({layout for layout, _ in row}) for row in self.actions]
        for p, i, c in self.edges:
            summed = i >= 0 and self.operations[p]["outputs"][i][0] == "summed"
            demand(
                not summed or self.home[p] == self.home[c], "a gradient is read in another group"
            )

    def _read_memory(self, value: object) -> None:
        """Count what a replica holds throughout: parameters, and the optimiser's at an apply."""
        held: list[tuple[int, Fraction]] = []
        for item in list_of(value, "parameters"):
            parameter = object_of(item, "size users", "a parameter")
            users = [
                integer(o, 0, len(self.operations) - 1, "user")
                for o in list_of(parameter.get("users"), "users")
            ]
            demand(users, "a parameter is used by nothing")
            applies = [o for o in users if self.operations[o]["role"] == "apply"]
            size = not_negative(parameter.get("size"))
            held.append((applies[0], size * (1 + self.slots)) if applies else (users[0], size))
        sizes = [size for _, size in held]
        common = common_denominator(sizes, self.allowance)  # so that sums stay short
        bits = 2 * common.bit_length() + length(sizes) + 20
        self.allowance.spend((len(held) + len(self.operations)) * calculating(2 * bits))
        self.resident = [Fraction(0)] * len(self.operations)
        for o, size in held:
            self.resident[o] += size

    def _estimate(self) -> None:
        """Estimate the steps of computing a time, and of going through layouts."""
        times = chain(*(chain(*operation["times"]) for operation in self.operations))
        sizes = (x for each in self.operations for output in each["outputs"] for x in output[1:3])
        links = length(chain(*self.rate, *self.latency, self.copying))
        bits = length(times) + length(sizes) + 2 * links + length([self.scale]) + 400
        #: Steps of one of the operations that compute a time.
        self.calculation = calculating(bits)
        #: Steps of adding two times in ticks, and of multiplying one.
        self.adding = adding(bits)
        self.multiplying = multiplying(bits + MAX_MULTIPLIER.bit_length())
        #: Per group, the devices of all its layouts; by actions; and their squares by actions.
        self.devices = [sum(len(self.spans[a]) for a in row) for row in self.layouts]
        self.replicas = [sum(len(self.spans[a]) for a, _ in row) for row in self.actions]
        self.squares = [sum(len(self.spans[a]) ** 2 for a, _ in row) for row in self.actions]

    def going(self, e: int, each: int = 3) -> int:
        """Return the steps of going through all that an edge can take.

        Parameters
        ----------
        each : int
            Steps for one device of a layout.
        """
        p, _, c = self.edges[e]
        g, h = self.home[p], self.home[c]
        if g != h:
            i, j = len(self.layouts[g]), len(self.layouts[h])
            m, n = self.devices[g], self.devices[h]
            return (50 * i * j + each * (m * j + n * i) + 4 * m * n) * self.adding
        count = len(self.actions[g])
        steps = 12 * count + 2 * each * self.replicas[g] + 4 * self.squares[g]
        if self.sums(e):
            steps += count * (50 + self.k * self.k + 12 * self.k * self.calculation)
        return steps * self.adding

    # Times in ticks.

    def ticks(self, time: Fraction) -> int:
        """Return a time in ticks: rounded up to the tick, or down if there is none."""
        return math.floor(time * self.scale) if self.tick is None else math.ceil(time * self.scale)

    def moving(self, d: int, e: int, size: Fraction) -> int | None:
        """Return the ticks of a transfer; ``None`` without a link."""
        if d == e:
            return 0
        rate = self.rate[d][e]
        if rate == 0:
            return None
        return self.ticks(self.latency[d][e] + (size / rate if rate is not None else 0))

    def copied(self, d: int, size: Fraction) -> int:
        """Return the ticks in which a device reads and writes some bytes."""
        rate = self.copying[d]
        return 0 if self.free or rate is None else self.ticks(2 * size / rate)

    def run(self, o: int, layout: int, d: int) -> int:
        """Return the ticks of an operation on a device of a layout; 0 without a replica."""
        key = "run", o, layout, d
        if key not in self._known:
            self.allowance.spend(8 * self.calculation)
            self.allowance.hold(400)
            span = self.spans[layout].get(d)
            time = Fraction(0)
            if span is not None:
                if not self.operations[o]["splittable"]:
                    span = WHOLE
                alpha, beta = self.operations[o]["times"][self.kinds[d]]
                time = alpha + beta * (span[1] - span[0]) * self.batch
            self._known[key] = self.ticks(time)
        return self._known[key]  # type: ignore[no-any-return]

    def allreduce(self, devices: list[int], size: Fraction) -> int | None:
        """Return the ticks of the better of two AllReduces; ``None`` if links are missing.

        One ring over all devices, those of a server side by side; or a ring in every server, and
        one over the first devices of the servers.
        """

        def ring(members: list[int]) -> Fraction | None:
            n = len(members)
            if n < 2:
                return Fraction(0)
            pairs = [*pairwise(members), (members[-1], members[0])]
            rates = [self.rate[d][e] for d, e in pairs]
            if 0 in rates:
                return None
            finite = [rate for rate in rates if rate is not None]
            slowest = max(self.latency[d][e] for d, e in pairs)
            return 2 * (n - 1) * (slowest + (size / (n * min(finite)) if finite else 0))

        first = {server: self.servers.index(server) for server in self.servers}
        order = sorted(devices, key=lambda d: (first[self.servers[d]], d))
        inside: dict[int, list[int]] = {}
        for d in order:
            inside.setdefault(self.servers[d], []).append(d)
        flat, between = ring(order), ring([members[0] for members in inside.values()])
        local = [ring(members) for members in inside.values()]
        known = [] if flat is None else [flat]
        if between is not None and None not in local:
            known.append(between + max(time for time in local if time is not None))
        return self.ticks(min(known)) if known else None

    # What an edge takes: ``reads`` by layouts of both ends, ``sums`` by action of the group.

    def reads(self, e: int, a: int, b: int) -> dict[tuple[int, int], tuple[int, int, int]] | None:
        """Return Split, transfer and Concat by device of the producer and of the consumer.

        A batched tensor is read in slices, where samples overlap. Of copies, a consumer reads its
        own, or the one that would arrive first. Waiting is for all replicas. ``None`` if a link is
        missing.
        """
        p, i, c = self.edges[e]
        producer, consumer = self.operations[p], self.operations[c]
        output = None if i < 0 else producer["outputs"][i]
        kind = None if output is None else output[3]
        key = "reads", kind, producer["splittable"], consumer["splittable"], a, b
        if key not in self._known:
            m, n = len(self.spans[a]), len(self.spans[b])
            pieces = m + n  # slices, or one copy for each
            if output is None or (output[0] == "batched" and not consumer["splittable"]):
                pieces = m * n
            self.allowance.spend(50 + (3 * m * n + 12 * pieces) * self.calculation)
            self.allowance.hold(600 + 400 * pieces)
            self._known[key] = self._read(producer, consumer, output, a, b)
        return self._known[key]  # type: ignore[no-any-return]

    def _read(
        self, producer: dict[str, Any], consumer: dict[str, Any], output: Any, a: int, b: int
    ) -> dict[tuple[int, int], tuple[int, int, int]] | None:
        holders, readers = self.spans[a], self.spans[b]

        def size(span: Span) -> Fraction:
            return Fraction(output[1] + output[2] * (span[1] - span[0]) * self.batch)

        found: dict[tuple[int, int], tuple[int, int, int]] = {}
        for e, span in readers.items():
            pieces: list[tuple[int, Span, Span]] = []  # from, what is held there, what is read
            if output is None:
                pieces = [(f, WHOLE, WHOLE) for f in holders]
            elif output[0] == "batched" and producer["splittable"]:
                wanted = span if consumer["splittable"] else WHOLE
                for f, held in holders.items():
                    part = max(held[0], wanted[0]), min(held[1], wanted[1])
                    if part[0] < part[1]:
                        pieces.append((f, held, part))
            else:
                wanted = span if output[0] == "batched" and consumer["splittable"] else WHOLE
                nearest = e
                if e not in holders:
                    linked = [f for f in holders if self.rate[f][e] != 0]
                    if not linked:
                        return None
                    nearest = min(linked, key=lambda f: (self._arrival(f, e, size(wanted)), f))
                pieces = [(nearest, WHOLE, wanted)]
            joined = 0
            if output is not None and len(pieces) > 1:
                joined = self.copied(e, size(span if consumer["splittable"] else WHOLE))
            for f, held, part in pieces:
                bytes_read = Fraction(0) if output is None else size(part)
                time = self.moving(f, e, bytes_read)
                if time is None:
                    return None
                found[f, e] = (self.copied(f, size(held)) if part != held else 0, time, joined)
        return found

    def _arrival(self, f: int, e: int, size: Fraction) -> Fraction:
        rate = self.rate[f][e]
        return self.latency[f][e] + (size / rate if rate else 0)

    def sums(self, e: int) -> bool:
        """Return whether an edge carries a gradient."""
        p, i, _ = self.edges[e]
        return i >= 0 and self.operations[p]["outputs"][i][0] == "summed"

    def synchronised(self, e: int, action: tuple[int, Any]) -> dict[str, Any] | None:
        """Return how a gradient reaches the applies; ``None`` if a link is missing.

        ``delay`` by both devices, ``link`` by both devices, ``device`` and ``nccl`` in ticks.
        """
        p, i, _ = self.edges[e]
        layout, sync = action
        devices, size = list(self.spans[layout]), self.operations[p]["outputs"][i][1]
        nothing: dict[str, Any] = {"link": {}, "device": {}, "nccl": 0}
        if len(devices) == 1 or not self.operations[p]["splittable"]:
            return {**nothing, "delay": {(d, d): 0 for d in devices}}
        if sync == "allreduce":
            time = self.allreduce(devices, size)
            if time is None:
                return None
            return {
                **nothing,
                "delay": {(f, d): time for f in devices for d in devices},
                "nccl": time,
            }
        adding = self.copied(sync, size)
        links: dict[tuple[int, int], int] = {}
        for d in devices:
            if d != sync:
                for f, t in ((d, sync), (sync, d)):
                    time = self.moving(f, t, size)
                    if time is None:
                        return None
                    links[f, t] = time
        delay = {
            (f, d): links.get((f, sync), 0) + adding + links.get((sync, d), 0)
            for f in devices
            for d in devices
        }
        return {**nothing, "delay": delay, "link": links, "device": {sync: adding}}

    # Sums of functions of one action, and of two layouts.

    def _exclude(self) -> None:
        """Note what lacks a link, and actions whose parameters alone exceed a device's memory."""
        self.allowance.spend(sum(20 + 20 * square for square in self.squares))
        self.fine = [[True] * len(row) for row in self.actions]
        self.bad: dict[tuple[int, int], set[tuple[int, int]]] = {}
        held = [Fraction(0)] * len(self.actions)
        for o, size in enumerate(self.resident):
            held[self.home[o]] += math.floor(size)
        for g, row in enumerate(self.actions):
            for j, (layout, _) in enumerate(row):
                for d in self.spans[layout]:
                    limit = self.memory[d]
                    self.fine[g][j] &= limit is None or held[g] <= limit
        for e, (p, _, c) in enumerate(self.edges):
            g, h = self.home[p], self.home[c]
            self.allowance.spend(self.going(e))
            if g != h:
                if (min(g, h), max(g, h)) not in self.bad:
                    self.allowance.hold(150 * len(self.layouts[g]) * len(self.layouts[h]) + 400)
                bad = self.bad.setdefault((min(g, h), max(g, h)), set())
                for a, b in product(self.layouts[g], self.layouts[h]):
                    if self.reads(e, a, b) is None:
                        bad.add((a, b) if g < h else (b, a))
                continue
            for j, action in enumerate(self.actions[g]):
                if self.sums(e):
                    self.fine[g][j] &= self.synchronised(e, action) is not None
                else:
                    self.fine[g][j] &= self.reads(e, action[0], action[0]) is not None

    def per_edge(
        self, total: Sums, e: int, value: Callable[[Any, int, int], int], each: int = 3
    ) -> None:
        """Add a function of what an edge takes, and of the layouts of both ends."""
        self.allowance.spend(self.going(e, each))
        p, _, c = self.edges[e]
        g, h = self.home[p], self.home[c]
        if g != h:
            for a, b in product(self.layouts[g], self.layouts[h]):
                what = self.reads(e, a, b)
                if what is not None:
                    total.pair(g, h, a, b, value(what, a, b))
            return
        for j, action in enumerate(self.actions[g]):
            a = action[0]
            taken: Any = self.synchronised(e, action) if self.sums(e) else self.reads(e, a, a)
            if taken is not None:
                total.one[g][j] += value(taken, a, a)

    def device_of(self, layout: int, sample: Fraction) -> int:
        """Return the device of a sample."""
        return next(d for d, (a, b) in self.spans[layout].items() if a <= sample < b)

    def follows(self, o: int, sample: Fraction | None) -> bool:
        """Return whether a path follows the replica of the sample, not the one that ends first."""
        return sample is not None and bool(self.operations[o]["splittable"])

    def step(self, total: Sums, e: int, sample: Fraction | None, backwards: bool) -> None:
        """Add the ticks from the end of an edge's producer to the end of its consumer.

        Forwards: between the replicas of a sample, or, where there is none, from the replica that
        ends first to the replica that ends first. Backwards: from any replica to one that reads it.
        """
        p, _, c = self.edges[e]
        demand(
            self.returns(e) if backwards else self.usable(e, sample), "a path takes a wrong edge"
        )

        def value(what: Any, a: int, b: int) -> int:
            delay: dict[tuple[int, int], int]
            delay = what["delay"] if self.sums(e) else {x: sum(y) for x, y in what.items()}
            ends = {(f, d): time + self.run(c, b, d) for (f, d), time in delay.items()}
            sources, targets = [*self.spans[a]], [*self.spans[b]]
            if backwards:
                return min(max(ends[f, d] for d in targets if (f, d) in ends) for f in sources)
            if sample is not None and self.follows(p, sample):
                sources = [self.device_of(a, sample)]
            if sample is not None and self.follows(c, sample):
                targets = [self.device_of(b, sample)]
            return min(max(ends[f, d] for f in sources if (f, d) in ends) for d in targets)

        # A sample is compared with the samples of a device.
        each = 3 if sample is None else 2 * calculating(length([sample]) + 200)
        self.per_edge(total, e, value, each)

    def usable(self, e: int, sample: Fraction | None) -> bool:
        """Return whether the replica of a sample is surely read by that of the same sample."""
        p, i, _ = self.edges[e]
        copies = i >= 0 and self.operations[p]["outputs"][i][0] == "whole"
        return not (copies and self.follows(p, sample))

    def returns(self, e: int) -> bool:
        """Return whether every replica of the producer is surely read."""
        p, i, _ = self.edges[e]
        producer = self.operations[p]
        return i < 0 or bool(producer["splittable"] and producer["outputs"][i][0] != "whole")

    def after(self, o: int, sample: Fraction | None) -> list[int]:
        """Return an operation and everything that waits for its end."""
        self.allowance.spend(10 * (len(self.operations) + len(self.edges)))
        seen, stack = {o}, [o]
        while stack:
            for e in self.out[stack.pop()]:
                c = self.edges[e][2]
                if c not in seen and self.usable(e, sample):
                    seen.add(c)
                    stack.append(c)
        return sorted(seen)

    def before(self, o: int) -> list[int]:
        """Return an operation and everything whose replicas are all read on the way to it."""
        self.allowance.spend(10 * (len(self.operations) + len(self.edges)))
        seen, stack = {o}, [o]
        while stack:
            for e in self.into[stack.pop()]:
                p = self.edges[e][0]
                if p not in seen and self.returns(e):
                    seen.add(p)
                    stack.append(p)
        return sorted(seen)

    def on(self, total: Sums, o: int, resource: tuple[str, int, int]) -> None:
        """Add the ticks of an operation on a device."""
        if resource[0] == "device":
            g = self.home[o]
            self.allowance.spend(4 * len(self.actions[g]) * self.adding)
            for j, (layout, _) in enumerate(self.actions[g]):
                total.one[g][j] += self.run(o, layout, resource[1])

    def moved(self, total: Sums, e: int, resource: tuple[str, int, int]) -> None:
        """Add the ticks that reading an edge takes on a resource."""
        kind, d, target = resource

        def value(what: Any, a: int, b: int) -> int:
            if self.sums(e):
                where = {"link": (d, target), "device": d}.get(kind)
                return int(what["nccl"] if kind == "nccl" else what[kind].get(where, 0))
            if kind == "link":
                return int(what[d, target][1]) if (d, target) in what else 0
            if kind == "nccl":
                return 0
            # One Split serves all slices, and one Concat takes all of them.
            splits = max((x[0] for (f, _), x in what.items() if f == d), default=0)
            return splits + max((x[2] for (_, t), x in what.items() if t == d), default=0)

        self.per_edge(total, e, value)

    def ways(self, o: int) -> list[list[int]]:
        """Return, by output, one edge for every way in which it is read.

        Consumers of one group read the same, unless only some of them can split. Of several ways,
        only one is counted at a time: two groups may share what they read. Ways that never take
        any time are left out where there are others.
        """
        self.allowance.spend(10 + 15 * len(self.out[o]))
        found: dict[int, dict[tuple[int, bool], int]] = {}
        for e in self.out[o]:
            _, i, c = self.edges[e]
            key = self.home[c], self.operations[c]["splittable"]
            found.setdefault(i, {}).setdefault(key, e)
        rows = [list(row.values()) for row in found.values()]
        return [[e for e in row if self.costly(e)] or row[:1] for row in rows]

    def costly(self, e: int) -> bool:
        """Return whether reading an edge takes time in any layouts."""
        p, i, c = self.edges[e]
        if self.sums(e):
            return True
        g, h = self.home[p], self.home[c]
        key = (
            "costly",
            self.operations[p]["outputs"][i][3] if i >= 0 else None,
            self.operations[p]["splittable"],
            self.operations[c]["splittable"],
            g,
            h,
        )
        if key not in self._known:
            self.allowance.spend(self.going(e))
            self.allowance.hold(400)
            pairs = product(self.layouts[g], self.layouts[h])
            what = (self.reads(e, a, b) for a, b in pairs if g != h or a == b)
            self._known[key] = any(any(map(any, x.values())) for x in what if x is not None)
        return bool(self._known[key])


class Sums:
    """A number for every action of every group, and for two layouts of two groups."""

    def __init__(self, strategies: Strategies) -> None:
        self.strategies, self.allowance, self._held = strategies, strategies.allowance, 0
        actions = sum(len(row) for row in strategies.actions)
        self.allowance.spend(2 * len(strategies.actions) + actions)
        self._hold(100 * len(strategies.actions) + 40 * actions)
        self.one = [[0] * len(row) for row in strategies.actions]
        self.two: dict[tuple[int, int], dict[tuple[int, int], int]] = {}

    def _hold(self, size: int) -> None:
        self.allowance.hold(size)
        self._held += size

    def close(self) -> None:
        """Give back the memory."""
        self.allowance.hold(-self._held)

    def cells(self, g: int, h: int) -> dict[tuple[int, int], int]:
        """Return the numbers of two groups by their layouts."""
        if (g, h) not in self.two:
            layouts = self.strategies.layouts
            self._hold(400 + 200 * len(layouts[g]) * len(layouts[h]))
            self.two[g, h] = {}
        return self.two[g, h]

    def pair(self, g: int, h: int, a: int, b: int, value: int) -> None:
        """Add a value for two layouts; the order of the groups does not matter."""
        if g > h:
            g, h, a, b = h, g, b, a
        cells = self.cells(g, h)
        cells[a, b] = cells.get((a, b), 0) + value

    def add(self, other: Sums, factor: int) -> None:
        """Add a multiple of other numbers."""
        each = 10 + 2 * self.strategies.multiplying
        for mine, row in zip(self.one, other.one, strict=True):
            self.allowance.spend(each * len(row))
            for j, value in enumerate(row):
                mine[j] += factor * value
        for (g, h), cells in other.two.items():
            self.allowance.spend(each * len(cells))
            for (a, b), value in cells.items():
                self.pair(g, h, a, b, factor * value)


def check_row(strategies: Strategies, value: object) -> tuple[Sums, int | None]:
    """Return what a row says; the second is the limit of a memory row, otherwise ``None``.

    Every strategy, in every order, has a makespan of at least the sum of its actions:

    - ``load``: everything on one device, link, or the queue of collectives takes turns;
    - ``path``: an edge's consumer ends at least a step after its producer;
    - ``head``: a path, and then everything on a resource that waits for its end. If the path
      follows a sample, other samples need not wait; but a collective waits for all replicas;
    - ``tail``: everything on a resource that is read on the way to an operation, whatever its
      replica, and then a path from any replica.

    ``memory`` says that the sum is at most what the device has.
    """
    row = object_of(value, "kind resource start edges sample consumer", "a row")
    kind, total = row.get("kind"), Sums(strategies)
    demand(kind in ("load", "path", "head", "tail", "memory"), f"unknown row {shown(kind)}")
    resource = ("", 0, 0)
    if kind != "path":
        name, d, e = list_of(row.get("resource"), "resource", 3)
        demand(name in ("device", "link", "nccl"), "unknown resource")
        last = strategies.k - 1
        resource = (name, integer(d, 0, last, "device"), integer(e, 0, last, "device"))
        demand(name != "link" or d != e, "a link from a device to itself")
    if kind == "memory":
        demand(resource[0] == "device", "memory of what is no device")
        limit = strategies.memory[resource[1]]
        demand(limit is not None, "memory of a device without a limit")
        assert limit is not None
        for o, size in enumerate(strategies.resident):
            g = strategies.home[o]
            strategies.allowance.spend(10 + 5 * len(strategies.actions[g]))
            for j, (layout, _) in enumerate(strategies.actions[g]):
                if resource[1] in strategies.spans[layout]:
                    total.one[g][j] += math.floor(size)
        return total, math.floor(limit)
    strategies.allowance.spend(5 * len(strategies.operations))
    counted: Iterable[int] = range(len(strategies.operations))
    skipped, readers = None, None
    if kind != "load":
        sample = None if row.get("sample") is None else number(row["sample"])
        demand(sample is None or 0 <= sample < 1, "no such sample")
        demand(kind != "tail" or sample is None, "a tail follows no sample")
        demand(
            kind != "head" or sample is None or resource[0] == "nccl",
            "a head that follows a sample is for collectives only",
        )
        start = integer(row.get("start"), 0, len(strategies.operations) - 1, "start")
        g, end = strategies.home[start], start
        comparing = 10 if sample is None else 2 * calculating(length([sample]) + 200)
        strategies.allowance.spend(
            sum(20 + len(strategies.spans[a]) * comparing for a, _ in strategies.actions[g])
        )
        for j, (layout, _) in enumerate(strategies.actions[g]):
            devices: Iterable[int] = strategies.spans[layout]
            if sample is not None and strategies.follows(start, sample):
                devices = [strategies.device_of(layout, sample)]
            total.one[g][j] += min(strategies.run(start, layout, d) for d in devices)
        for item in list_of(row.get("edges"), "edges"):
            e = integer(item, 0, len(strategies.edges) - 1, "edge")
            demand(strategies.edges[e][0] == end, "a path is not connected")
            strategies.step(total, e, sample, kind == "tail")
            end = strategies.edges[e][2]
        if kind == "path":
            return total, None
        counted = strategies.after(end, sample) if kind == "head" else strategies.before(start)
        skipped = end if kind == "head" else start
        readers = set(counted) if kind == "tail" else None
    consumer = integer(row.get("consumer"), 0, 10**6, "consumer")
    for o in counted:
        if o != skipped:
            strategies.on(total, o, resource)
        for ways in strategies.ways(o):
            e = ways[consumer % len(ways)]
            if readers is None or strategies.edges[e][2] in readers:
                strategies.moved(total, e, resource)
    return total, None


def check_strategies(content: bytes, head: dict[str, Any], allowance: Allowance) -> str:
    """Check a lower bound on the time of all strategies; return what it proves, in words.

    A multiple of every row gives ``makespan · Σ multipliers ≥ Σ multiples``, where what memory rows
    say beyond their limits is at most 0. The right side is a sum of functions of one action and of
    two layouts. A *message* adds a number to a layout of one group, and takes it from all pairs
    with that layout, which changes nothing. So it is at least the sum of the least values.
    """
    document = object_of(
        head,
        "format name bound batch options cluster operations edges parameters groups decisions "
        "actions rows messages",
        "certificate",
    )
    strategies = Strategies(document, allowance)
    claimed = not_negative(document.get("bound"))
    total, parts, constant = Sums(strategies), 0, 0
    rows = list_of(document.get("rows"), "rows")
    for item in rows:
        multiplier, row = list_of(item, "a row", 2)
        factor = integer(multiplier, 1, MAX_MULTIPLIER, "multiplier")
        sums, limit = check_row(strategies, row)
        total.add(sums, factor)
        sums.close()
        if limit is None:
            parts += factor
        else:
            constant -= factor * limit
    demand(parts > 0, "no row bounds the makespan")
    for item in list_of(document.get("messages"), "messages"):
        g, h, one, two = list_of(item, "a message", 4)
        groups = [integer(x, 0, len(strategies.actions) - 1, "group") for x in (g, h)]
        demand(g < h, "a message between groups in the wrong order")
        given = []
        allowance.spend(
            sum(10 * len(strategies.actions[x]) for x in groups)
            + 15 * len(strategies.layouts[g]) * len(strategies.layouts[h])
        )
        for group, side in zip(groups, (one, two), strict=True):
            known = strategies.layouts[group]
            values = list_of(side, "a message", len(known))
            values = [integer(x, -MAX_MULTIPLIER, MAX_MULTIPLIER, "message") for x in values]
            given.append(dict(zip(known, values, strict=True)))
            for j, (layout, _) in enumerate(strategies.actions[group]):
                total.one[group][j] += given[-1][layout]
        for a, b in product(given[0], given[1]):
            total.pair(g, h, a, b, -given[0][a] - given[1][b])
    for row, fine in zip(total.one, strategies.fine, strict=True):
        possible = [value for value, good in zip(row, fine, strict=True) if good]
        demand(possible, "a group has no possible action, and a certificate is not for that")
        constant += min(possible)
    for (g, h), cells in total.two.items():
        bad = strategies.bad.get((g, h), set())
        allowance.spend(10 * len(strategies.layouts[g]) * len(strategies.layouts[h]))
        values = [
            cells.get(cell, 0)
            for cell in product(strategies.layouts[g], strategies.layouts[h])
            if cell not in bad
        ]
        demand(values, "two groups have no possible layouts, and a certificate is not for that")
        constant += min(values)
    proven = max(0, -(-constant // parts)) / strategies.scale
    demand(claimed <= proven, f"the rows prove {shown(proven)} ns, not {shown(claimed)}")
    name = shown(text_of(document.get("name"), "name"))
    digest = hashlib.sha256(content).hexdigest()
    counts = [len(row) for row in strategies.actions]
    return (
        f"{name}: no strategy takes less than {shown(claimed)} ns if {len(counts)} groups choose "
        f"among {min(counts)} to {max(counts)} actions ({len(rows)} rows; sha256 {digest})"
    )


# --- 12. The certificate -----------------------------------------------------------------------


def check(directory: str, instance: str | None = None) -> str:
    """Check the certificate in a directory; return what it proves, in words.

    Parameters
    ----------
    instance : str, optional
        The instance file that the certificate must be about, byte for byte.

    Raises
    ------
    RejectedError
        If the certificate does not prove its claim; the message is the reason.
    """
    return judged(_check, directory, instance)


def judged(judge: Callable[[str, str | None], str], directory: str, instance: str | None) -> str:
    """Return the verdict of ``judge``; any error in it is a rejection."""
    try:
        return judge(directory, instance)
    except RejectedError:
        raise
    except Exception as error:
        # Malicious files can fail in more ways than are worth naming; none is accepted.
        raise RejectedError(f"malformed ({type(error).__name__}: {shown(str(error))})") from None


def _check(directory: str, instance: str | None) -> str:
    allowance = Allowance()
    content, head = read_document(directory, "certificate.json", allowance)
    form = head.get("format") if isinstance(head, dict) else None
    if form == STRATEGIES:
        demand(instance is None, "a bound of strategies is about no instance")
        return check_strategies(content, head, allowance)
    demand(len(content) <= MAX_CERTIFICATE, f"certificate.json is over {MAX_CERTIFICATE} bytes")
    of_bound = form == BOUND
    known = "format instance instance_sha256 makespan tier ticks_per_unit record"
    certificate = object_of(head, known + " bound" * of_bound, "certificate")
    demand(of_bound or form == FORMAT, f"certificate: not {FORMAT}")
    problem, digest = problem_of(certificate, directory, instance, allowance)
    demand(certificate.get("instance") == problem.name, "certificate: names another instance")
    claim = not_negative(certificate.get("bound" if of_bound else "makespan"))
    said = f"optimal makespan {shown(claim, up=True)}"
    if not of_bound:
        demand_schedule(directory, problem, claim)
    elif certificate.get("makespan") is None:
        said = f"no schedule takes less than {shown(claim)}"
    else:
        makespan = not_negative(certificate["makespan"])
        demand_schedule(directory, problem, makespan)
        demand(claim <= makespan, "the schedule takes less than the bound")
        gap = (makespan - claim) / makespan if makespan else Fraction(0)
        said = (
            f"a schedule takes {shown(makespan, up=True)} and none less than {shown(claim)}, "
            f"a gap of at most {math.ceil(gap * 10_000) / 100:g}%"
        )
    how = "no schedule takes less than 0"
    if claim > 0:
        grid = Grid(problem, number(certificate.get("ticks_per_unit")), claim, allowance)
        windows, tier, record = Windows(grid), certificate.get("tier"), certificate.get("record")
        if tier == "lrat":
            how = refute_by_proof(windows, record, directory)
        else:
            refute_by_arithmetic(windows, tier, record)
            how = ""
        how = f"tier {tier}{how}"
    return f"{shown(problem.name)}: {said} ({how}; sha256 {digest})"


def read_document(directory: str, name: str, allowance: Allowance) -> tuple[bytes, Any]:
    """Return the content of a JSON file, and what it says."""
    content = read_file(os.path.join(directory, name), MAX_JSON, allowance)
    allowance.hold(JSON * len(content))
    return content, read_json(content, os.path.basename(name))


def problem_of(
    document: dict[str, Any], directory: str, instance: str | None, allowance: Allowance
) -> tuple[Problem, str]:
    """Return the instance that a document is about, and its digest."""
    file = instance or os.path.join(directory, "instance.json")
    content = read_file(file, MAX_JSON, allowance)
    digest = hashlib.sha256(content).hexdigest()
    demand(document.get("instance_sha256") == digest, "certificate: of another instance")
    allowance.hold(JSON * len(content))
    problem = Problem(read_json(content, "instance.json"), allowance)
    allowance.hold(-JSON * len(content))
    return problem, digest


def demand_schedule(directory: str, problem: Problem, makespan: Fraction) -> None:
    """Reject unless the schedule in a directory is valid and has exactly this makespan."""
    content, result = read_document(directory, "schedule.json", problem.allowance)
    demand(isinstance(result, dict), "schedule is not an object")
    demand(result.get("format") == "optpart-result/1", "schedule: not optpart-result/1")
    reached = check_schedule(problem, result.get("schedule"))
    problem.allowance.hold(-JSON * len(content))
    demand(
        reached == makespan, f"the schedule takes {shown(reached, up=True)}, not {shown(makespan)}"
    )


def refute_by_arithmetic(windows: Windows, tier: object, record: object) -> None:
    """Check by arithmetic that no schedule ends within the horizon of the grid."""
    demand(isinstance(record, dict), "record is not an object")
    assert isinstance(record, dict)
    tiers: dict[object, Callable[[Windows, dict[str, Any]], None]] = {
        "path": refute_by_path,
        "one-machine": refute_by_one_machine,
        "load": refute_by_load,
        "series": refute_in_series,
        "intervals": refute_by_intervals,
        "probing": refute_by_probing,
    }
    demand(isinstance(tier, str) and tier in tiers, f"unknown tier {shown(tier)}")
    tiers[tier](windows, record)


def refute_by_proof(windows: Windows, record: object, directory: str) -> str:
    """Check the proof that no schedule ends within the horizon; return its size in words."""
    code = Encoding(windows, record)
    # The size of the proof is part of what the formula may cost.
    content = read_file(os.path.join(directory, "proof.lrat.xz"), MAX_PACKED, code.allowance)
    formula = Formula(clauses(code), code.allowance)
    lemmas = check_proof(formula, code.variables, unpacked_lines(content, code.allowance))
    return f", {code.variables} variables, {len(formula)} clauses, {lemmas} lemmas"


def main(arguments: Sequence[str] | None = None) -> int:
    """Check directories, print one line for each, and return the exit code."""
    parser = argparse.ArgumentParser(description="Check certificates of optima and bounds.")
    parser.add_argument("directory", nargs="+", help="holds certificate.json and its other files")
    parser.add_argument("--instance", help="read the instance from this file instead")
    options = parser.parse_args(arguments)
    code = 0
    for directory in options.directory:
        try:
            print(f"ACCEPTED: {check(directory, options.instance)}", flush=True)
        except RejectedError as error:
            where = f"{shown(directory)}: " if len(options.directory) > 1 else ""
            print(f"REJECTED: {where}{error}", flush=True)
            code = 1
    return code


if __name__ == "__main__":
    sys.exit(main())
