"""Judge of certificates: is there a schedule this short, and none shorter?

    python -m optpart.certificates.check DIRECTORY... [--instance FILE]

For each directory, it prints one line that begins with ``ACCEPTED`` or ``REJECTED``; it exits with
1 if any is rejected. It is all in this file, needs only Python's standard library, and nothing
outside has to be trusted. The argument for each rule stands beside it; ``docs/certificates.md``
gives the format.
"""

from __future__ import annotations

import argparse
import array
import copy
import hashlib
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
from graphlib import CycleError, TopologicalSorter
from itertools import accumulate, chain, combinations, groupby, pairwise, permutations, product
from operator import add, le
from typing import Any, NamedTuple

FORMAT = "optpart-certificate/1"
BOUND = "optpart-bound/1"

# --- 1. Numbers and files ---------------------------------------------------------------------

MAX_STEPS = 400_000_000  # per MiB of all files; at least as many for smaller ones
MAX_BYTES = 700 * 2**20  # of memory, as estimated
MAX_DIGITS, MAX_EXPONENT = 400, 300  # in the text of a number
MAX_BITS = 4096  # of common denominators and scales
MAX_CERTIFICATE, MAX_JSON = 2**22, 2**23  # bytes; the second of instance and schedule
MAX_PACKED = 2**26  # bytes of a proof; the unpacker keeps a second copy of them
MAX_PROOF = 2**28  # bytes, unpacked
MAX_LINE = 2**22  # bytes of one line of a proof; split into numbers it takes thirty times as much
MAX_UNPACKER = 2**27  # bytes of memory that unpacking may take
JSON, LEMMA = 48, 300  # bytes of memory for a byte of JSON, and for a lemma without its literals
MAX_CELLS, MAX_DEVICES = 300_000, 500  # vertices × devices
MAX_NUMBER = 2**31  # of variables and lemmas; larger ones could be chosen to share one hash
MAX_COUNTED = 2**17  # largest sum that a load or memory limit of the formula may count to
MAX_TICKS = 2**62  # of a horizon, a potential, or a price in tiers ``series`` and ``lrat``
MAX_MULTIPLIER = 2**128  # of a row, and of a price
ROUNDS, MAX_ASSUMPTIONS = 20, 64  # of tightening the windows; and at one time

COMMUNICATION = ("delay", "sendrecv", "link", "port")
MEMORY = ("none", "estimate", "edges")

Rows = list[dict[str, Any]]
Moves = dict[tuple[int, int], tuple[Fraction, Fraction]]  # tensor and device; departure, arrival
Times = list[list[int]]
Links = list[list[tuple[int, int]]]  # by vertex: others, and the tensors between
Label = tuple[int, ...]
Bounded = tuple[int, Label]
Clause = list[int]

_NUMBER = re.compile(r"[+-]?(\d+/0*[1-9]\d*|(\d+\.?\d*|\.\d+)([eE]([+-]?\d+))?)", re.ASCII)


class RejectedError(Exception):
    """Raised if a certificate is not accepted; the message is the reason."""


def demand(condition: object, reason: str) -> None:
    """Reject the certificate unless ``condition`` holds."""
    if not condition:
        raise RejectedError(reason)


class Allowance:
    """The remaining cost of judging: steps of a tenth of a microsecond, and bytes of memory.

    Both are paid for before they are used, by measured estimates (``bench/limits/judge``) that are
    rather too high. Steps grow with the bytes of the files, memory does not.
    """

    def __init__(self, size: int = 0) -> None:
        self.size = size
        self.steps = MAX_STEPS * max(size, 2**20) >> 20
        self.bytes = MAX_BYTES

    def admit(self, size: int) -> None:
        """Allow for one more file, and pay for reading its numbers."""
        before, self.size = max(self.size, 2**20), self.size + size
        self.steps += MAX_STEPS * (max(self.size, 2**20) - before) >> 20
        self.spend(30 * size)

    def spend(self, steps: int, size: int = 0) -> None:
        """Pay for steps, and for bytes; a negative size is given back."""
        self.steps -= steps
        self.bytes -= size
        demand(self.steps >= 0, "takes too long to check for files of this size")
        demand(self.bytes >= 0, "takes too much memory to check")


def multiplying(bits: int) -> int:
    """Return the steps of multiplying or dividing two whole numbers with so many bits together."""
    return 1 + (bits * bits >> 17)


def calculating(bits: int) -> int:
    """Return the steps of an operation on two fractions with so many bits together."""
    return 19 + multiplying(bits)


def number(value: object) -> Fraction:
    """Read an exact number: an integer, or text such as ``1.5e3`` or ``1/3``."""
    if type(value) is int or type(value) is Fraction:
        return Fraction(value)
    text = value.strip() if isinstance(value, str) else ""
    match = _NUMBER.fullmatch(text) if len(text) <= MAX_DIGITS else None
    if match is None:
        raise RejectedError(f"{shown(value)} is not a number")
    demand(abs(int(match[4] or 0)) <= MAX_EXPONENT, f"{shown(value)} has too large an exponent")
    return Fraction(text)


def not_negative(value: object) -> Fraction:
    """Read an exact number ≥ 0."""
    result = number(value)
    if result.numerator < 0:  # a message for each would take longer
        raise RejectedError(f"{shown(value)} is negative")
    return result


def optional(value: object) -> Fraction | None:
    """Read an exact number ≥ 0, or ``null``."""
    return None if value is None else not_negative(value)


def shown(value: object, *, up: bool = False) -> str:
    """Return a short line: a long number is rounded down, or ``up``; a cut text ends with dots."""
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


def common_denominator(amounts: Iterable[Fraction | None], allowance: Allowance) -> int:
    """Return the least common denominator of some numbers."""
    result = 1
    for amount in (x for x in amounts if x is not None):
        allowance.spend(3 * multiplying(result.bit_length() + amount.denominator.bit_length()))
        result = math.lcm(result, amount.denominator)
        # Checked at every step: the product of many large denominators would take hours.
        demand(result.bit_length() <= MAX_BITS, "numbers have too many different denominators")
    return result


def length(amounts: Iterable[Fraction | None]) -> int:
    """Return the number of bits of the longest number."""
    known = (x for x in amounts if x is not None)
    return max((x.numerator.bit_length() + x.denominator.bit_length() for x in known), default=0)


def integer(value: object, least: int, most: int, what: str) -> int:
    """Read a whole number between two bounds, both included."""
    if type(value) is not int:
        raise RejectedError(f"{what}: {shown(value)} is not a whole number")
    demand(least <= value <= most, f"{what}: {shown(value)} is not in {least} … {most}")
    return value


def named(numbers: dict[str, int], name: object) -> int:
    """Return the number of a vertex or a device."""
    if not isinstance(name, str) or name not in numbers:
        raise RejectedError(f"no vertex or device {shown(name)}")
    return numbers[name]


def typed(value: object, kind: str, what: str) -> Any:
    """Return ``value`` if it is ``an object``, ``a list``, or ``text``."""
    expected = {"an object": dict, "a list": list, "text": str}[kind]
    demand(isinstance(value, expected), f"{what} is not {kind}")
    return value


def object_of(value: object, known: str, what: str) -> dict[str, Any]:
    """Return ``value`` if it is an object with no keys other than those in ``known``."""
    result: dict[str, Any] = typed(value, "an object", what)
    for key in result:
        demand(key in known.split(), f"{what} has an unknown key {shown(key)}")
    return result


def list_of(value: object, what: str, size: int | None = None) -> list[Any]:
    """Return ``value`` if it is a list, with ``size`` entries if a size is given."""
    result: list[Any] = typed(value, "a list", what)
    demand(size is None or len(result) == size, f"{what} has {len(result)} entries and not {size}")
    return result


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

    readers: dict[str, Any] = {"parse_int": whole, "parse_float": number, "parse_constant": number}
    try:
        return json.loads(content.decode("utf-8-sig"), object_pairs_hook=once, **readers)
    except RejectedError as error:
        raise RejectedError(f"{name}: {error}") from None
    except (ValueError, RecursionError) as error:
        raise RejectedError(f"{name} is not JSON ({type(error).__name__})") from None


def topological(count: int, edges: Iterable[tuple[int, int]]) -> list[int]:
    """Return the numbers below ``count`` so that every edge leads to a later one."""
    sorter = TopologicalSorter(dict.fromkeys(range(count), ()))
    for u, v in edges:
        sorter.add(v, u)
    try:
        return [*sorter.static_order()]
    except CycleError:
        raise RejectedError("the edges form a cycle") from None


# --- 2. The instance --------------------------------------------------------------------------


class Problem:
    """An instance, read from its document; vertices, devices and tensors are numbers.

    ``run`` has the run time of each vertex on each device, ``None`` if it must not be there.
    ``edges`` have a source, a target, and the consumed tensor; the control dependencies that leave
    a vertex share one tensor of size 0, output ``None``. Colocated vertices have the same ``unit``.
    ``need`` and ``capacity`` are the memory that a unit takes throughout and that a device has; all
    0 and ``None`` if memory is not limited, and ``need`` 0 if it depends on time. ``whole`` times
    either is a whole number. ``sending`` is the run time of a send on each device, 0 unless sends
    are vertices. ``bits_of_memory`` and ``bits_of_delays`` are the most bits of any sum of needs
    and sizes, and of any delay.
    """

    def __init__(self, document: object, allowance: Allowance | None = None) -> None:
        self.allowance = allowance or Allowance()
        keys = "vertices edges colocation separation devices bandwidth latency durations model"
        top = object_of(document, f"format name source time_unit {keys}", "instance")
        demand(top.get("format") == "optpart-instance/1", "instance: not optpart-instance/1")
        self.name = typed(top.get("name", "unnamed"), "text", "name")
        keys = "communication memory send_ops channels release"
        model = object_of(top.get("model", {}), keys, "model")
        self.communication = model.get("communication", "delay")
        self.memory = model.get("memory", "none")
        demand(self.communication in COMMUNICATION, "instance: communication not in scope")
        demand(self.memory in MEMORY, "instance: memory not in scope")
        demand(model.get("channels", 1) == 1, "instance: more than one channel")
        keys = "name ops memory outputs device_type devices"
        items = list_of(top.get("vertices"), "vertices")
        vertices = [object_of(v, keys, "a vertex") for v in items]
        keys = "name type speed memory"
        devices = [object_of(d, keys, "a device") for d in list_of(top.get("devices"), "devices")]
        self.vertices = [typed(v.get("name"), "text", "name of a vertex") for v in vertices]
        self.devices = [typed(d.get("name"), "text", "name of a device") for d in devices]
        self.vertex = {name: v for v, name in enumerate(self.vertices)}
        self.device = {name: d for d, name in enumerate(self.devices)}
        demand(len(self.vertex) == len(vertices), "instance: two vertices have one name")
        demand(len(self.device) == len(devices), "instance: two devices have one name")
        demand(devices, "instance: no devices")
        n, k = len(vertices), len(devices)
        demand(n * k <= MAX_CELLS and k <= MAX_DEVICES, "instance: too many devices and vertices")
        self.allowance.spend(0, 600 * n)
        self.bandwidth = self._matrix(top.get("bandwidth"), "bandwidth")  # None: infinite; 0: none
        self.latency = self._matrix(top.get("latency", 0), "latency")
        self._read_run_times(top.get("durations"), vertices, devices)
        send_ops = model.get("send_ops", 0) if self.communication == "sendrecv" else 0
        self.sending = [not_negative(send_ops) / speed for speed in self._speeds]
        self._read_edges(vertices, list_of(top.get("edges", []), "edges"))
        groups = [list_of(g, "a group") for g in list_of(top.get("colocation", []), "colocation")]
        self._join([[named(self.vertex, v) for v in group] for group in groups])
        pairs = [list_of(p, "a pair", 2) for p in list_of(top.get("separation", []), "separation")]
        self.separated = [(named(self.vertex, a), named(self.vertex, b)) for a, b in pairs]
        self.bits_of_memory, self.whole, self.need = 0, 1, [Fraction(0)] * len(self.members)
        self.capacity: list[Fraction | None] = [None] * k
        if self.memory != "none":
            self.capacity = [optional(device.get("memory")) for device in devices]
            self._count_memory([not_negative(vertex.get("memory", 0)) for vertex in vertices])
        measured = chain(*chain(*self.measured.values()))
        self.bits_of_delays = 2 * length(chain(*self.bandwidth, *self.latency))
        self.bits_of_delays += length(self.size) + length(measured) + length(self.sending)

    def _matrix(self, value: object, what: str) -> list[list[Fraction | None]]:
        """Read a number for every pair of devices, or one for all."""
        k = len(self.devices)
        self.allowance.spend(0, 8 * k * k)
        if not isinstance(value, list):
            return [[optional(value)] * k] * k
        return [[optional(x) for x in list_of(row, what, k)] for row in list_of(value, what, k)]

    def _read_run_times(self, durations: object, vertices: Rows, devices: Rows) -> None:
        n, k = len(vertices), len(devices)
        self._speeds = speeds = [not_negative(d.get("speed", 1)) for d in devices]
        demand(all(speeds), "instance: a speed is 0")
        ops = [not_negative(v.get("ops", 0)) for v in vertices]
        self.run: list[list[Fraction | None]]
        if durations is None:
            bits = length(ops) + length(speeds)
            self.allowance.spend(n * k * (2 + calculating(bits)), n * k * (160 + bits // 7))
            self.run = [[c / s for s in speeds] for c in ops]
        else:
            self.allowance.spend(0, n * k * 8)
            rows = [list_of(row, "durations", k) for row in list_of(durations, "durations", n)]
            self.run = [[optional(p) for p in row] for row in rows]
        # Only text: many whole numbers can share one hash, and lists take long to compare.
        kinds = [device.get("type") for device in devices]
        needed = [vertex.get("device_type") for vertex in vertices]
        for kind in chain(kinds, needed):
            demand(kind is None or type(kind) is str, "a device type is not text")
        for v, vertex in enumerate(vertices):
            kind, names = needed[v], vertex.get("devices")
            allowed = set(self.devices)
            if names is not None:
                allowed = {typed(x, "text", "name of a device") for x in list_of(names, "devices")}
            for d, name in enumerate(self.devices):
                if name not in allowed or kind not in (None, kinds[d]):
                    self.run[v][d] = None

    def _read_edges(self, vertices: Rows, edges: list[Any]) -> None:
        self.producer: list[int] = []
        self.size: list[Fraction] = []
        self.measured: dict[int, list[list[Fraction | None]]] = {}
        self.number_of: dict[tuple[int, int | None], int] = {}

        def tensor(v: int, output: int | None, size: object) -> None:
            self.allowance.spend(0, 300)
            self.number_of[v, output] = len(self.producer)
            self.producer.append(v)
            self.size.append(not_negative(size))

        for v, vertex in enumerate(vertices):
            for i, output in enumerate(list_of(vertex.get("outputs", []), "outputs")):
                size = output
                if isinstance(output, dict):
                    size = object_of(output, "size delay", "an output").get("size", 0)
                    if output.get("delay") is not None:
                        matrix = list_of(output["delay"], "delay", len(self.devices))
                        self.measured[len(self.producer)] = self._matrix(matrix, "delay")
                tensor(v, i, size)
        self.allowance.spend(0, 450 * len(edges))
        distinct: dict[tuple[int, int, int], None] = {}
        for edge in edges:
            source, target, which = list_of(edge, "an edge", 3)
            u, v = named(self.vertex, source), named(self.vertex, target)
            if which is None and (u, None) not in self.number_of:
                tensor(u, None, 0)
            demand(which is None or type(which) is int, "an edge names no output")
            demand((u, which) in self.number_of, f"{shown(source)} has no output {shown(which)}")
            distinct[u, v, self.number_of[u, which]] = None
        self.edges = list(distinct)
        self.order = topological(len(vertices), (edge[:2] for edge in self.edges))
        self.inputs: Links = [[] for _ in vertices]
        self.outputs: Links = [[] for _ in vertices]
        for u, v, consumed in self.edges:
            self.inputs[v].append((u, consumed))
            self.outputs[u].append((v, consumed))

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
        self.members: list[list[int]] = [[] for _ in numbers]
        for v, unit in enumerate(self.unit):
            self.members[unit].append(v)

    def _count_memory(self, need: list[Fraction]) -> None:
        """For ``estimate``, add up each unit's need: own memory, outputs and distinct inputs."""
        # So that sums stay short.
        common = common_denominator((*need, *self.size), self.allowance)
        self.bits_of_memory = 2 * common.bit_length() + length((*need, *self.size)) + 20
        sums = len(self.producer) + len(self.edges)
        self.allowance.spend(sums * calculating(2 * self.bits_of_memory))
        if self.memory == "estimate":
            inputs = {(v, tensor) for _, v, tensor in self.edges}
            for v, tensor in chain(inputs, zip(self.producer, range(len(self.size)), strict=True)):
                need[v] += self.size[tensor]
            self.need = [sum((need[v] for v in group), Fraction(0)) for group in self.members]
            self.whole = common_denominator((*need, *self.capacity), self.allowance)

    def delay(self, tensor: int, d: int, e: int) -> Fraction | None:
        """Return the time from ``d`` to ``e`` with the send; ``None`` if it cannot cross."""
        rate = self.bandwidth[d][e]
        if d == e or rate == 0:
            return Fraction(0) if d == e else None
        if tensor in self.measured:
            time = self.measured[tensor][d][e]
        else:
            time = self.latency[d][e]
            demand(time is not None, "instance: a latency is null")
            if time is not None and rate is not None:
                time += self.size[tensor] / rate
        return None if time is None else self.sending[d] + time


# --- 3. The upper half ------------------------------------------------------------------------


def check_schedule(problem: Problem, document: object) -> Fraction:
    """Check that a schedule satisfies every rule of the instance; return its makespan."""
    schedule = object_of(document, "placement start transfers", "schedule")
    allowance, transfers = problem.allowance, list_of(schedule.get("transfers", []), "transfers")

    def of_vertices(what: str) -> list[Any]:
        value: dict[str, Any] = typed(schedule.get(what), "an object", f"schedule: {what}")
        demand(value.keys() == problem.vertex.keys(), f"schedule: {what} does not name each vertex")
        return [value[name] for name in problem.vertices]

    placement = of_vertices("placement")
    device = [named(problem.device, name) for name in placement]
    start = [number(t) for t in of_vertices("start")]
    # Sums of a start, a run time or a delay, and a send; and comparisons of two of them, in order.
    bits = length(chain(start, *problem.run)) + problem.bits_of_delays + problem.bits_of_memory
    things = 3 * len(start) + len(problem.edges) + 4 * len(transfers)
    steps = things * (things.bit_length() + 6) * calculating(2 * bits)
    allowance.spend(steps + len(start) * len(problem.devices) * 5, things * (400 + bits // 3))
    end, home = [], dict[int, int]()
    for v, d in enumerate(device):
        run, where = problem.run[v][d], f"{shown(problem.vertices[v])} on {shown(placement[v])}"
        if run is None:
            raise RejectedError(f"schedule: {where} is not allowed")
        demand(start[v] >= 0, f"schedule: {where} starts before 0")
        end.append(start[v] + run)
        demand(home.setdefault(problem.unit[v], d) == d, "schedule: a colocation group is split")
    for a, b in problem.separated:
        demand(device[a] != device[b], "schedule: a separated pair shares a device")
    moves = check_transfers(problem, device, end, transfers)
    held: list[list[tuple[Fraction, Fraction]]] = [[] for _ in problem.devices]
    for u, v, tensor in problem.edges:
        here = device[v]
        ready = end[u] if device[u] == here else moves[tensor, here][1]
        where = f"{shown(problem.vertices[v])} starts before its input from"
        demand(start[v] >= ready, f"schedule: {where} {shown(problem.vertices[u])} arrives")
        if ready < start[v]:
            held[here] += [(ready, problem.size[tensor]), (start[v], -problem.size[tensor])]
    check_no_overlap(problem, device, start, end, moves)
    for d, limit in enumerate(problem.capacity):
        if limit is not None:  # if it is, the denominators of the amounts may be too long to add up
            amounts = (amount for _, amount in sorted(held[d]))  # at one moment, ends come first
            if problem.memory == "estimate":
                amounts = (need for unit, need in enumerate(problem.need) if home[unit] == d)
            most = max(accumulate(amounts), default=Fraction(0))
            demand(most <= limit, "schedule: a device exceeds its memory")
    return max(end, default=Fraction(0))


def check_no_overlap(
    problem: Problem, device: list[int], start: list[Fraction], end: list[Fraction], moves: Moves
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
        last, until = what, finish


def check_transfers(
    problem: Problem, device: list[int], end: list[Fraction], transfers: list[Any]
) -> Moves:
    """Check that each tensor crosses where needed, once; return when it departs and arrives."""
    moves: Moves = {}
    for entry in transfers:
        transfer = object_of(entry, "tensor to start end", "a transfer")
        name, output = list_of(transfer.get("tensor"), "a transfer", 2)
        u, target = named(problem.vertex, name), named(problem.device, transfer.get("to"))
        known = (output is None or type(output) is int) and (u, output) in problem.number_of
        demand(known, "schedule: a transfer of no output")
        tensor = problem.number_of[u, output]
        demand((tensor, target) not in moves, "schedule: a tensor crosses twice")
        delay = problem.delay(tensor, device[u], target)
        if delay is None:
            raise RejectedError("schedule: a transfer without a link")
        start, at_once = number(transfer.get("start")), problem.communication == "delay"
        demand(start >= end[u], "schedule: a transfer starts before its tensor exists")
        demand(start == end[u] or not at_once, "schedule: a transfer starts late")
        demand(number(transfer.get("end")) == start + delay, "schedule: a transfer has a wrong end")
        moves[tensor, target] = start, start + delay
    needed = {(tensor, device[v]) for u, v, tensor in problem.edges if device[u] != device[v]}
    demand(needed <= moves.keys(), "schedule: a needed transfer is missing")
    demand(moves.keys() <= needed, "schedule: a transfer is not needed")
    return moves


# --- 4. Windows ---------------------------------------------------------------------------------


class Windows:
    """Times in ticks, rounded down, the horizon to refute, and what holds until then.

    Let ``s`` be any number of ticks per unit of time. If a schedule has makespan ``C < T``, replace
    every start ``σ`` by ``⌊s·σ⌋``. Because ``⌊x⌋ + ⌊y⌋ ≤ ⌊x + y⌋``, all rules still hold with run
    times and delays rounded down, and everything ends by ``⌊s·C⌋ ≤ ⌈s·T⌉ − 1 = H``. So a proof that
    no schedule of the rounded instance ends by ``H`` is a proof that ``T`` is least, whatever ``s``
    is. Times longer than ``H + 1`` are replaced by ``H + 1``: neither fits. The rules that
    transfers or sends take turns, and that memory depends on time, only make schedules longer; they
    are left out.

    In every schedule of at most ``H`` ticks, or those on trial, ``head`` is the earliest start of a
    vertex on a device, and ``tail`` the least time from its end there to the end of the schedule;
    ``H + 1`` if it cannot be there. Rows are replaced, and never changed. Units are ``possible`` on
    devices where head, run time and tail of all members fit.
    """

    def __init__(self, problem: Problem, scale: Fraction, makespan: Fraction) -> None:
        demand(scale > 0, "ticks_per_unit is not positive")
        self.problem, self.allowance = problem, problem.allowance
        self.unit, self.members = problem.unit, problem.members
        self.horizon = horizon = math.ceil(makespan * scale) - 1
        # Up to here, adding two times takes one step.
        demand(horizon.bit_length() < 2048, "more than 2^2048 ticks")
        self.size = 48 + horizon.bit_length() // 7  # bytes of a time in a table of its own
        k = range(len(problem.devices))
        cells = len(problem.vertices) * len(k)
        bits = max((length(row) for row in problem.run), default=0) + length([scale])
        self.allowance.spend(cells * (10 + calculating(bits)), cells * self.size)
        bits = problem.bits_of_delays + length([scale])

        def ticks(time: Fraction | None) -> int | None:
            return None if time is None else min(math.floor(time * scale), horizon + 1)

        self.run = [[ticks(p) for p in row] for row in problem.run]
        #: Ticks of each consumed tensor from device to device, ``None`` where it cannot cross.
        self.delay: dict[int, list[list[int | None]]] = {}
        #: The same, ``H + 1`` where it cannot; of arrivals, by the device where it arrives.
        self.departure: dict[int, Times] = {}
        self.arrival: dict[int, Times] = {}
        # Keyed by text, since many numbers can share one hash.
        shared: dict[str, tuple[list[list[int | None]], Times, Times]] = {}
        for tensor in dict.fromkeys(tensor for _, _, tensor in problem.edges):
            measured = tensor in problem.measured
            text = f"tensor {tensor}" if measured else str(problem.size[tensor])
            self.allowance.spend(10, 200 + len(text))
            if text not in shared:
                pairs = len(k) ** 2
                self.allowance.spend(pairs * 4 * calculating(bits), pairs * (self.size + 16))
                delay = [[ticks(problem.delay(tensor, d, e)) for e in k] for d in k]
                departure = [[horizon + 1 if x is None else x for x in row] for row in delay]
                shared[text] = delay, departure, list(map(list, zip(*departure, strict=True)))
            self.delay[tensor], self.departure[tensor], self.arrival[tensor] = shared[text]
        self.allowance.spend(2 * cells, 4 * cells * self.size + 200 * len(problem.edges))
        can = [[p is not None for p in row] for row in self.run]
        self.possible = [[d for d in k if all(can[v][d] for v in unit)] for unit in self.members]
        # Dropping devices makes other heads and tails larger; each round is valid by itself.
        for _ in range(ROUNDS):
            ends = chain(*(edge[:2] for edge in problem.edges))
            ways = sum(len(self.possible[self.unit[v]]) for v in ends)
            self.allowance.spend(ways * (10 + len(k)) + 10 * len(problem.edges) + 16 * cells)
            self.head = self._longest(problem.order, problem.inputs, self.arrival)
            self.tail = self._longest(problem.order[::-1], problem.outputs, self.departure)
            head, tail, before = self.head, self.tail, self.possible
            self.possible = []
            for unit, row in zip(self.members, before, strict=True):
                to = {d: max(head[v][d] + self.time(v, d) + tail[v][d] for v in unit) for d in row}
                self.possible.append([d for d in row if to[d] <= horizon])
            if self.possible == before:
                break
        self.feasible = all(self.possible)

    def time(self, v: int, d: int) -> int:
        """Return the run time of a vertex on a device that is possible for it."""
        run = self.run[v][d]
        assert run is not None
        return run

    def _longest(self, order: list[int], inputs: Links, crossing: dict[int, Times]) -> Times:
        """Return heads or, with time reversed, tails.

        Every input arrives from the device that is best for it, colocated ones from the device
        itself. By induction along the edges, no schedule is earlier.
        """
        never, k = self.horizon + 1, len(self.problem.devices)
        result = [[never] * k for _ in order]
        passed = [[never] * k for _ in order]  # with the run time of the vertex itself
        for v in order:
            for d in self.possible[self.unit[v]]:
                longest = 0
                for w, tensor in inputs[v]:
                    if self.unit[w] == self.unit[v]:
                        least = passed[w][d]
                    else:
                        least = min(map(add, passed[w], crossing[tensor][d]))
                    longest = max(longest, least)
                result[v][d] = min(longest, never)
                passed[v][d] = result[v][d] + self.time(v, d)
        return result

    def assuming(self, unit: int, d: int) -> Windows:
        """Return a copy in which a unit is on a device, too."""
        self.allowance.spend(10 + 3 * len(self.unit), 1000 + 24 * len(self.unit))
        trial = copy.copy(self)
        trial.head, trial.tail, trial.possible = self.head[:], self.tail[:], self.possible[:]
        trial.possible[unit] = [e for e in self.possible[unit] if e == d]
        trial.feasible = self.feasible and bool(trial.possible[unit])
        return trial

    def exclude(self, unit: int, d: int) -> None:
        """Drop a device from a unit."""
        self.allowance.spend(20, 100 + 8 * len(self.possible[unit]))
        self.possible[unit] = [e for e in self.possible[unit] if e != d]
        self.feasible = self.feasible and bool(self.possible[unit])

    def times(self, backwards: bool) -> Times:
        """Return heads or, backwards, tails."""
        return self.tail if backwards else self.head

    def raise_to(self, backwards: bool, v: int, d: int, t: int) -> None:
        """Raise a head or, backwards, a tail; a vertex that ends too late is not on the device."""
        times = self.times(backwards)
        if t + self.time(v, d) + self.times(not backwards)[v][d] > self.horizon:
            self.exclude(self.unit[v], d)
        elif t > times[v][d]:
            self.allowance.spend(10 + len(times[v]), 100 + len(times[v]) * 8 + self.size)
            times[v] = [*times[v][:d], t, *times[v][d + 1 :]]


# --- 5. Rules that leave nothing possible -------------------------------------------------------


def refute_by_path(windows: Windows, record: dict[str, Any]) -> None:
    """Check that some unit has no device on which its longest path ends in time."""
    object_of(record, "", "record")
    demand(not windows.feasible, "every unit has a device where its paths fit")


def refute_by_one_machine(windows: Windows, record: dict[str, Any]) -> None:
    """Check that some vertices can only be on one device, and take too long there."""
    object_of(record, "device vertices", "record")
    least = end_on_one_machine(windows, record.get("device"), record.get("vertices"))
    demand(least > windows.horizon, f"the record only proves {shown(least)} ticks")


def vertices_of(value: object, windows: Windows) -> list[int]:
    """Return the distinct vertices that a record is about."""
    n = len(windows.unit)
    listed = [integer(v, 0, n - 1, "vertices") for v in list_of(value, "vertices")]
    demand(len(set(listed)) == len(listed), "record: a vertex occurs twice")
    return listed


def end_on_one_machine(windows: Windows, device: object, vertices: object) -> int:
    """Return the least time in which vertices that can only be on one device run there."""
    d = integer(device, 0, len(windows.problem.devices) - 1, "a device")
    listed = vertices_of(vertices, windows)
    for v in listed:
        alone = windows.possible[windows.unit[v]] == [d]
        demand(alone, "record: a vertex can be on another device")
    jobs = [(windows.head[v][d], windows.time(v, d), windows.tail[v][d]) for v in listed]
    return one_machine_bound(jobs, windows.allowance)


def one_machine_bound(jobs: list[tuple[int, int, int]], allowance: Allowance) -> int:
    """Return a least end of jobs that take turns, given head, run time and tail of each.

    Of any of them, the first starts no earlier than their least head, and after the last follows at
    least their least tail. It suffices to look at all that begin no earlier than some job, and
    among these, at all with no shorter tails than another.
    """
    allowance.spend(len(jobs) * (20 + len(jobs)))
    end, falling = 0, sorted(jobs, key=lambda job: -job[2])
    for begin in {head for head, _, _ in jobs}:
        total = begin
        for head, run, tail in falling:
            if head >= begin:
                total += run
                end = max(end, total + tail)
    return end


def refute_by_load(windows: Windows, record: dict[str, Any]) -> None:
    """Check that the devices, weighted by the record's multipliers, do not have enough room.

    Let ``y_d, μ_d ≥ 0``. In a schedule of at most ``H`` ticks, the listed vertices on ``d`` run for
    ``load_d ≤ room_d``, and memory gives ``need_d ≤ M_d``. Adding up, with every unit on the device
    where it weighs least: ``Σ_u min_d (y_d·load_u,d + μ_d·need_u) ≤ Σ_d (y_d·room_d + μ_d·M_d)``.
    """
    object_of(record, "vertices load memory", "record")
    demand(windows.feasible, "the windows refute by themselves; the tier is path")
    problem, k = windows.problem, len(windows.problem.devices)
    y = [not_negative(x) for x in list_of(record.get("load"), "load", k)]
    mu = [not_negative(x) for x in list_of(record.get("memory"), "memory", k)]
    common = common_denominator((*y, *mu, *problem.capacity, *problem.need), windows.allowance)
    bits = 4 * common.bit_length() + windows.horizon.bit_length()
    bits += length(y) + length((*mu, *problem.capacity)) + problem.bits_of_memory
    steps = (k + len(windows.members)) * (k + 1) * 4 * calculating(bits)
    windows.allowance.spend(steps + len(problem.vertices) * (k + calculating(bits)))
    chosen = set(vertices_of(record.get("vertices"), windows))
    total = Fraction(0)
    for d, limit in enumerate(problem.capacity):
        demand(limit is not None or mu[d] == 0, "record: a device without a memory limit")
        total -= y[d] * room(windows, chosen, d) + mu[d] * (limit or 0)
    for unit, members in enumerate(windows.members):
        listed, possible = [v for v in members if v in chosen], windows.possible[unit]
        load = {d: sum(windows.time(v, d) for v in listed) for d in possible}
        total += min(y[d] * load[d] + mu[d] * problem.need[unit] for d in possible)
    demand(total > 0, "the record proves nothing")


def room(windows: Windows, chosen: set[int], d: int) -> int:
    """Return the most ticks for which the chosen vertices can run on a device.

    They take turns between the least head and tail there, and run for a sum over some of the units.
    """
    windows.allowance.spend(len(chosen) * (5 + len(windows.problem.devices) // 8))
    there = [v for v in chosen if d in windows.possible[windows.unit[v]]]
    if not there:
        return 0
    limit = windows.horizon
    limit -= min(windows.head[v][d] for v in there) + min(windows.tail[v][d] for v in there)
    if limit < 0 or limit > MAX_COUNTED:
        return max(0, limit)
    loads: dict[int, int] = defaultdict(int)
    for v in there:
        loads[windows.unit[v]] += windows.time(v, d)
    windows.allowance.spend(len(loads) * (5 + (limit >> 10)))
    return max(sums_of_subsets(loads.values(), limit)).bit_length() - 1


def sums_of_subsets(weights: Iterable[int], limit: int) -> Iterator[int]:
    """Yield, as bits, the sums up to ``limit`` of no weight, of the first, of the first two, …."""
    yield (sums := 1)
    for weight in weights:
        if weight <= limit:  # a larger one adds no sum, and may be too large a shift
            sums = (sums | sums << weight) & ((2 << limit) - 1)
        yield sums


def refute_by_probing(windows: Windows, record: dict[str, Any]) -> None:
    """Check a list of claims, of which the last leaves nothing possible."""
    # Earlier records could raise times by cases of which vertices share a device, first.
    object_of(record, "steps backwards claims", "record")
    demand(not record.get("steps") and not record.get("backwards"), "record: cases are not judged")
    demand(refuted(windows, record.get("claims"), 0), "the claims leave every unit a device")


def refuted(windows: Windows, claims: object, depth: int) -> bool:
    """Check claims, one after another; return whether they leave nothing possible.

    ``["head", v, d, t, …]`` and ``["tail", v, d, t, …]`` raise times, in threes. ``["not", u, d,
    claims]`` excludes a device of a unit: if the unit is there, the claims leave nothing possible.
    ``["full", d, vertices]`` and ``["work", rows, prices]`` say that nothing is possible.
    """
    demand(depth <= MAX_ASSUMPTIONS, f"more than {MAX_ASSUMPTIONS} assumptions at one time")
    last = len(windows.problem.devices) - 1
    for claim in list_of(claims, "claims"):
        if not windows.feasible:
            return True
        kind, *rest = list_of(claim, "a claim") or [None]
        if kind in ("head", "tail"):
            demand(len(rest) % 3 == 0, "a claim of times is not in threes")
            for v, d, t in zip(*[iter(rest)] * 3, strict=True):
                integer(v, 0, len(windows.unit) - 1, "a vertex")
                integer(t, 0, windows.horizon + 1, "a time")
                if integer(d, 0, last, "a device") in windows.possible[windows.unit[v]]:
                    late = waits(windows, kind == "tail", v, d, t)
                    demand(late, "a claim: the vertex can start earlier")
                    windows.raise_to(kind == "tail", v, d, t)
        elif kind == "not":
            unit, d, why = list_of(rest, "a claim", 3)
            integer(unit, 0, len(windows.members) - 1, "a unit")
            integer(d, 0, last, "a device")
            held = windows.allowance.bytes
            trial = windows.assuming(unit, d)
            demand(refuted(trial, why, depth + 1), "a claim: the unit can be there")
            windows.allowance.bytes = held
            windows.exclude(unit, d)
        elif kind == "full":
            return end_on_one_machine(windows, *list_of(rest, "a claim", 2)) > windows.horizon
        else:
            demand(kind == "work", f"unknown claim {shown(kind)}")
            return too_much_work(windows, *list_of(rest, "a claim", 2))
    return not windows.feasible


def waits(windows: Windows, backwards: bool, v: int, d: int, t: int) -> bool:
    """Return whether ``v`` does not start on ``d`` before ``t``.

    Assume that it does. Its ancestors, from the last to the first, then have a least time to the
    start of ``v`` after them, and no other devices than where they still end in time. Those that
    can only be on ``d`` take turns there before ``v``. Backwards, all this is reversed.
    """
    problem, unit, possible = windows.problem, windows.unit, windows.possible
    at, k, never = problem.order.index(v), len(problem.devices), windows.horizon + 1
    order, inputs, crossing = problem.order[at::-1], problem.inputs, windows.departure
    if backwards:
        order, inputs, crossing = problem.order[at:], problem.outputs, windows.arrival
    head = windows.times(backwards)
    left = {unit[v]: [d]}  # by unit, where it can still be
    after: dict[int, list[tuple[int, int]]] = {v: []}  # by vertex, what waits for it
    passed = {v: [0 if e == d else never for e in range(k)]}  # from its start to that of v
    rest: dict[int, int] = {}  # from its end on d to the start of v
    windows.allowance.spend(50 + 2 * len(order))
    for x in order:
        if x not in after:
            continue
        for w, tensor in inputs[x]:
            after.setdefault(w, []).append((x, tensor))
        if x == v:
            continue
        here = left.get(unit[x], possible[unit[x]])
        windows.allowance.spend(50 + 3 * k + len(here) * len(after[x]) * (12 + k))
        passed[x], left[unit[x]] = [never] * k, []
        for e in here:
            least = max(
                passed[y][e]
                if unit[y] == unit[x]
                else min(map(add, passed[y], crossing[tensor][e]))
                for y, tensor in after[x]
            )
            if e == d:
                rest[x] = least
            if head[x][e] + windows.time(x, e) + least < t:
                left[unit[x]].append(e)
                passed[x][e] = windows.time(x, e) + least
        if not left[unit[x]]:
            return True
    forced = [w for w in rest if left[unit[w]] == [d]]
    jobs = [(head[w][d], windows.time(w, d), rest[w]) for w in forced]
    return one_machine_bound(jobs, windows.allowance) >= t


def work_inside(windows: Windows, v: int, d: int, begin: int, end: int) -> int:
    """Return how long a vertex on a device runs inside an interval, at least."""
    run = windows.time(v, d)
    early = windows.head[v][d] + run - begin
    late = end - (windows.horizon - windows.tail[v][d] - run)
    return max(0, min(early, late, run, end - begin))


def too_much_work(windows: Windows, rows: object, prices: object) -> bool:
    """Return whether the devices lack the time, or the memory, for what they must do.

    A row has a device, the begin and end of an interval, and a multiplier ``y``. Of a vertex that
    runs there, at least as much ``work`` is inside as if it ran as early, or as late, as it can; so
    ``Σ work ≤ end − begin``. A price has a device and a multiplier ``μ``; memory, in whole units,
    gives ``Σ need ≤ M`` there. So, with each unit where it weighs least, as in tier ``load``,
    ``Σ_u min_d (Σ y·work_{u,row} + μ_d·need_u) ≤ Σ y·(end − begin) + Σ μ_d·M_d``.
    """
    problem, horizon, possible = windows.problem, windows.horizon, windows.possible
    k, units = len(problem.devices), len(windows.members)
    bits = 2 * problem.bits_of_memory + length(problem.capacity) + problem.whole.bit_length() + 129
    windows.allowance.spend(units * k * 5, 8 * units * k)
    weight, space = [[0] * k for _ in windows.members], 0
    for row in list_of(rows, "rows"):
        d, begin, end, y = list_of(row, "a row", 4)
        integer(d, 0, k - 1, "a device")
        integer(begin, 0, horizon, "a row")
        integer(end, begin, horizon, "a row")
        integer(y, 0, MAX_MULTIPLIER, "a multiplier")
        each = 25 + 2 * multiplying(horizon.bit_length() + 129)
        windows.allowance.spend(len(windows.unit) * each)
        space += y * (end - begin)
        for v, unit in enumerate(windows.unit):
            if d in possible[unit]:
                weight[unit][d] += y * work_inside(windows, v, d, begin, end)
    for price in list_of(prices, "prices"):
        d, mu = list_of(price, "a price", 2)
        limit = problem.capacity[integer(d, 0, k - 1, "a device")]
        if limit is None:
            raise RejectedError("a price: a device without a memory limit")
        windows.allowance.spend(len(windows.unit) * 2 * calculating(bits))
        space += integer(mu, 0, MAX_MULTIPLIER, "a price") * int(problem.whole * limit)
        for unit, need in enumerate(problem.need):
            weight[unit][d] += mu * int(problem.whole * need)
    pairs = zip(weight, possible, strict=True)
    return space < sum(min(row[d] for d in left) for row, left in pairs)


# --- 6. The search in series --------------------------------------------------------------------

NEVER = 2**100  # a time beyond all others, even after adding them up
NOTHING, SAME, APART = range(3)  # what the place of one vertex says about that of another


class Series:
    """The vertices in parts that run one after another, and what connects them.

    A *cut* is a vertex with a path to or from every other vertex. Each of its ancestors has ended
    when it starts, and each of its descendants starts when it has ended. A *part* consists of the
    vertices after one cut, up to and including the next. An artificial vertex ``n`` on device 0
    that takes no time and follows every other vertex is the last cut; it ends with the schedule.

    ``parts`` has the vertices of each in topological order, its cut last. ``anywhere`` are earliest
    starts as far as nothing is placed. ``need`` and ``capacity`` are memory in whole units, rounded
    down. The need of a colocation group counts at its first vertex in topological order only.
    """

    def __init__(self, windows: Windows) -> None:
        problem = windows.problem
        demand(windows.feasible, "the windows refute by themselves; the tier is path")
        n, k = len(problem.vertices), len(problem.devices)
        self.allowance = windows.allowance
        self.allowance.spend((n + 1) * k * 8, (n + 1) * (k * 24 + 2000))
        demand(windows.horizon < MAX_TICKS, f"series: more than {MAX_TICKS} ticks")
        self.horizon, self.k, self.sink = windows.horizon, k, n
        self.devices = [windows.possible[unit] for unit in problem.unit] + [[0]]
        times = ({d: windows.time(v, d) for d in self.devices[v]} for v in range(n))
        self.run = [[time.get(d, NEVER) for d in range(k)] for time in times] + [[0] * k]
        self.anywhere = [[0 if time < NEVER else NEVER for time in row] for row in self.run]
        #: Delays to each successor by both devices, ``NEVER`` where nothing crosses in time.
        self.after: list[dict[int, Times]] = [{} for _ in self.run]
        self.before: list[set[int]] = [set() for _ in self.run]
        #: ``SAME`` for vertices that share a vertex's device, ``APART`` for those that must not.
        self.rule: list[dict[int, int]] = [{} for _ in self.run]
        self._link(windows)
        self._relate(windows)
        self.parts = self._split([*problem.order, n])
        self.part_of = {v: i for i, part in enumerate(self.parts) for v in part}
        self._count_memory(windows)
        #: How much a vertex says about others.
        says = zip(self.after, self.before, self.rule, strict=True)
        self.degree = [3 + len(after) + len(before) + len(rule) for after, before, rule in says]

    def _link(self, windows: Windows) -> None:
        # By identity, since tensors of one size share their delays.
        tables = {id(delay): delay for delay in windows.departure.values()}
        cells, edges = self.k * self.k, windows.problem.edges
        size = 500 * len(edges) + (8 * cells + 100) * len(tables)
        self.allowance.spend(3 * cells * len(tables), size)
        for name, delay in tables.items():
            tables[name] = [[x if x <= self.horizon else NEVER for x in row] for row in delay]
        for u, v, tensor in edges:
            delay = tables[id(windows.departure[tensor])]
            if u in self.before[v]:
                self.allowance.spend(3 * cells, 8 * cells)
                both = zip(self.after[u][v], delay, strict=True)
                delay = [list(map(max, *rows)) for rows in both]
            self.after[u][v] = delay
            self.before[v].add(u)
        for v in range(self.sink):
            if not self.after[v]:
                self.after[v][self.sink] = [[0] * self.k] * self.k
                self.before[self.sink].add(v)

    def _relate(self, windows: Windows) -> None:
        members, unit = windows.members, windows.unit
        pairs = {(unit[a], unit[b]) for a, b in windows.problem.separated}
        size = sum(len(group) ** 2 for group in members)
        size += sum(len(members[a]) * len(members[b]) for a, b in pairs)
        self.allowance.spend(5 * size, 250 * size)
        for a, b in pairs:
            for v, w in product(members[a], members[b]):
                self.rule[v][w] = self.rule[w][v] = APART
        for group in members:
            for v, w in permutations(group, 2):
                self.rule[v][w] = SAME

    def related(self, vertices: Iterable[int]) -> set[int]:
        """Return the vertices about which some vertices say something."""
        return set().union(*(self.after[v] for v in vertices), *(self.rule[v] for v in vertices))

    def _split(self, order: list[int]) -> list[list[int]]:
        """Cut the vertices into parts.

        All vertices up to ``v`` have a path to it if it is the only one of them without a successor
        among them; likewise backwards.
        """

        def gathers(order: list[int], before: Sequence[Iterable[int]]) -> set[int]:
            ends, found = set[int](), set()
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
        problem, position = windows.problem, {v: i for i, v in enumerate(windows.problem.order)}
        self.allowance.spend(3 * (self.sink + self.k) * calculating(2 * problem.bits_of_memory))
        common = common_denominator(problem.need, self.allowance)
        #: One unit of memory.
        self.unit = Fraction(math.gcd(*(int(need * common) for need in problem.need)) or 1, common)
        self.capacity = [None if x is None else x // self.unit for x in problem.capacity]
        self.need = [0] * (self.sink + 1)
        for group, need in zip(windows.members, problem.need, strict=True):
            self.need[min(group, key=position.__getitem__)] = int(need / self.unit)
        totals = accumulate(sum(self.need[v] for v in part) for part in reversed(self.parts))
        self.need_after = [0, *totals][-2::-1]  # memory of all parts after each one

    def undominated(self, labels: list[Bounded], memory: int) -> list[Bounded]:
        """Return labels of which none is nowhere less than another that uses the same memory.

        What follows a label can follow one that is nowhere later just as early.
        """
        kept, length = list[Bounded](), len(labels[0][1])
        self.allowance.spend(len(labels) * len(labels).bit_length() * (3 + length // 4))
        labels.sort(key=lambda entry: (entry[1][:memory], entry))
        for _, alike in groupby(labels, key=lambda entry: entry[1][:memory]):
            front: list[Label] = []
            for bound, label in alike:
                self.allowance.spend(len(front) * (3 + length // 2))
                if not any(all(map(le, other, label)) for other in front):
                    front.append(label)
                    kept.append((bound, label))
        return kept


class Prices:
    """A price of memory on each device, and what it says about the time after each cut.

    A schedule that respects memory pays ``⌊price·need⌋`` ticks for each colocation group, and so no
    more than ``R = ⌊Σ_d price_d·M_d⌋`` in all. So if none, whether it respects memory or not, takes
    and pays ``H + R`` or less, then none that respects memory ends by ``H``. The potential of a cut
    on a device is at most the time from its end to the end of the schedule, plus all that is paid
    for vertices after it; ``start`` is that of the moment 0. Both are what the record claims.
    """

    def __init__(self, series: Series, document: object) -> None:
        record = object_of(document, "prices start potentials", "a set")
        k, allowance, self.capacity = series.k, series.allowance, series.capacity
        prices = [not_negative(x) for x in list_of(record.get("prices"), "prices", k)]
        allowance.spend(k * calculating(length(prices) + length([series.unit])))
        units = [price * series.unit for price in prices]
        self.per = common_denominator(units, allowance)
        allowance.spend(2 * k * calculating(2 * length(units) + 2 * self.per.bit_length()))
        self.numerator = [int(price * self.per) for price in units]
        for price, limit in zip(prices, self.capacity, strict=True):
            demand(limit is not None or price == 0, "prices: a device without a memory limit")
        bits = 2 * max(x.bit_length() for x in (*self.numerator, self.per))
        #: Steps of what is paid for some memory on all devices.
        memory = max(x.bit_length() for x in (*series.need, *(c or 0 for c in series.capacity)))
        self.paying = k * (4 + 2 * multiplying(bits + memory))
        allowance.spend(len(series.need) * self.paying, len(series.need) * (k * 50 + 100))
        #: What is paid for each vertex on each device, and on the cheapest.
        self.cost = [[x * need // self.per for x in self.numerator] for need in series.need]
        large = max(map(max, self.cost)) >= MAX_TICKS
        demand(not large, f"prices: over {MAX_TICKS} ticks for a vertex")
        places = zip(self.cost, series.devices, strict=True)
        self.least = [min(row[d] for d in devices) for row, devices in places]
        rows = list_of(record.get("potentials"), "potentials", len(series.parts) - 1)
        self.potential = []
        for part, row in zip(series.parts, rows, strict=False):
            held = [d for d, x in enumerate(list_of(row, "potentials", k)) if x is not None]
            demand(held == series.devices[part[-1]], "potentials: not one for each possible device")
            for d in held:
                integer(row[d], 0, MAX_TICKS, "potentials")
            self.potential.append([NEVER if x is None else x for x in row])
        self.potential.append([0] * k)
        self.start = integer(record.get("start"), 0, MAX_TICKS, "start")

    def room(self, used: Sequence[int]) -> int:
        """Return the most that can still be paid if some memory is used."""
        free = zip(self.numerator, self.capacity, used, strict=True)
        return sum(x * (limit - taken) for x, limit, taken in free if limit is not None) // self.per


class State:
    """The vertices of a part that are placed, and the labels of that state.

    A label holds the memory used on each device (only forwards), the moment from which each device
    is free, and the earliest start on each device of every vertex with a slot. These can be
    ``next``, or depend on a placed one by an edge, a colocation or a separation; their slots begin
    ``at`` some place. ``rest`` is left of the part, and ``need`` the memory of all that is left.
    """

    def __init__(self, part: Part, placed: frozenset[int]) -> None:
        series = part.series
        # Each vertex is looked at with all that it says about others.
        n, others = len(part.vertices), len(part.known)
        steps = 30 + n + 8 * others + 2 * sum(series.degree[v] for v in part.vertices)
        series.allowance.spend(steps, 1000 + 70 * len(placed) + 150 * (n + others))
        self.placed = placed
        self.rest = [v for v in part.vertices if v not in placed]
        waiting = set(self.rest)
        self.next = [v for v in self.rest if not series.before[v] & waiting]
        last = len(series.parts) if part.memory else part.i
        known = (part.known | series.related(placed)).difference(placed)
        known = {w for w in known if part.i <= series.part_of[w] <= last}
        first, k = part.memory + series.k, series.k
        self.at = {w: first + i * k for i, w in enumerate(sorted(known.union(self.next)))}
        self.need = part.later + sum(series.need[v] for v in self.rest)
        self.steps: list[Step] | None = None


# A vertex to be placed next, where its slot begins, and the state to which it leads. For each slot
# of that: where it was before, if it was; the earliest starts otherwise; and what the vertex says.
Step = tuple[int, int, State, list[tuple[int | None, list[int], Times | None, int]]]


class Part:
    """The ways to place the vertices of a part after a cut.

    Sort the vertices of a schedule by start, then end, then topologically: those on one device
    follow each other. Placed in this order, as early as possible, none starts later. Backwards,
    what connects others than the cut before and the part is ignored, which only makes schedules
    shorter. Forwards, labels hold memory, and all that earlier vertices say about ``known`` ones.
    """

    def __init__(self, series: Series, i: int, known: set[int] | None = None) -> None:
        self.series, self.i, self.vertices = series, i, series.parts[i]
        self.cut = series.parts[i - 1][-1] if i else None
        self.memory = 0 if known is None else series.k  # entries of a label
        if known is None:
            known = series.related(() if self.cut is None else (self.cut,))
        self.known, self.later = known, series.need_after[i]
        self._states: dict[frozenset[int], State] = {}

    def state(self, placed: frozenset[int] = frozenset()) -> State:
        """Return the state in which some vertices are placed."""
        if placed not in self._states:
            self._states[placed] = State(self, placed)
        return self._states[placed]

    def steps(self, state: State) -> list[Step]:
        """Return the ways to place one more vertex."""
        if state.steps is None:
            state.steps, series = [], self.series
            for v in state.next:
                to = self.state(state.placed | {v})
                steps = 20 + len(state.placed) + 10 * len(to.at)
                series.allowance.spend(steps, 300 + 120 * len(to.at))
                moves = []
                for w in to.at:
                    says = series.after[v].get(w), series.rule[v].get(w, NOTHING)
                    moves.append((state.at.get(w), series.anywhere[w], *says))
                state.steps.append((v, state.at[v], to, moves))
        return state.steps

    def start(self, d: int) -> Label:
        """Return the label at the moment 0, at which the cut before ends on a device."""
        series = self.series
        label = [0] * (self.memory + series.k)
        for w in self.state().at:
            row: Sequence[int] = series.anywhere[w]
            if self.cut is not None:
                rule = series.rule[self.cut].get(w, NOTHING)
                row = moved(row, series.after[self.cut].get(w), rule, d, 0)
            label += row
        return tuple(label)

    def extend(self, label: Label, step: Step, d: int, prices: Prices | None) -> Label | None:
        """Place the vertex of a step on a device; return ``None`` if that is not possible.

        Nothing starts before the next vertex, so all times before its earliest start are raised to
        that. If ``prices`` are given, what is paid for the vertex delays everything that follows: a
        label that is later, but has paid less by as much, dominates as well. Otherwise, memory is
        counted; no device is said to have more room than everything else together needs.
        """
        series, memory, k, (v, at, to, moves) = self.series, self.memory, self.series.k, step
        begin = label[at + d]
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
                    used[e] = max(used[e], limit - to.need)
        end = begin + series.run[v][d]
        rows: list[Sequence[int]] = []
        for before, anywhere, delays, rule in moves:
            row: Sequence[int] = anywhere if before is None else label[before : before + k]
            if delays is not None or rule != NOTHING:
                row = moved(row, delays, rule, d, end)
                if min(row) >= NEVER:
                    return None
            rows.append(row)
        free = list(label[memory : memory + k])
        free[d] = end
        following = dict(zip(to.at, rows, strict=True))
        earliest = end  # a cut, after which everything else starts
        if to.next:
            earliest = min(min(map(max, following[w], free)) for w in to.next)
        if earliest >= NEVER:
            return None
        free = [max(time, earliest) for time in free]
        paid = 0 if prices is None else prices.cost[v][d]
        times = chain(free, *(map(max, row, free) for row in rows))
        return (*used, *(time + paid if time < NEVER else NEVER for time in times))

    def walk(
        self, labels: list[Bounded], guides: list[Guide], limit: int, prices: Prices | None = None
    ) -> list[Bounded]:
        """Extend labels through the part; return those left, with their bounds.

        Labels are dropped if they are dominated, or if a guide says that they exceed the limit.
        """
        series, memory, k = self.series, self.memory, self.series.k
        per_guide = sum(20 + memory * guide.prices.paying for guide in guides)
        states, held = {self.state(): labels}, 0
        for _ in self.vertices:
            found: dict[State, list[Bounded]] = defaultdict(list)
            added = 0
            for state, reached in states.items():
                for step, (_, label) in product(self.steps(state), reached):
                    to, length = step[2], memory + k + k * len(step[2].at)
                    steps = 50 + 8 * len(to.at) + length * (6 + len(guides)) + per_guide
                    for d in series.devices[step[0]]:
                        series.allowance.spend(steps)
                        new = self.extend(label, step, d, prices)
                        if new is not None and max(new[memory : memory + k]) <= limit:
                            bound = max(guide.bound(to, new, d) for guide in guides)
                            if bound <= limit:
                                series.allowance.spend(0, 150 + 40 * length)
                                added += 150 + 40 * length
                                found[to].append((bound, new))
            states = {to: series.undominated(labels, memory) for to, labels in found.items()}
            kept = sum(150 + 40 * len(x) for reached in states.values() for _, x in reached)
            series.allowance.spend(0, kept - added - held)
            held = kept
        series.allowance.spend(0, -held)
        return [entry for reached in states.values() for entry in reached]


class Guide:
    """Lower bounds of what the labels of a part can become, at some prices.

    ``remain`` says how much follows the start of each vertex on each device, along a path with the
    best device at each step: time to the end of the part, what is paid for the vertices of the path
    beyond the least, and the potential of the cut.
    """

    def __init__(self, part: Part, prices: Prices) -> None:
        series = part.series
        self.part, self.prices, self.potential = part, prices, prices.potential[part.i]
        series.allowance.spend(0, len(part.vertices) * (series.k * 40 + 200))
        self.remain: dict[int, list[int]] = {}
        for v in reversed(part.vertices):
            longest = self.potential if v == part.vertices[-1] else [0] * series.k
            for w, delays in series.after[v].items():
                if w in self.remain:
                    series.allowance.spend(series.k * (12 + series.k))
                    least = [min(map(add, row, self.remain[w])) for row in delays]
                    longest = list(map(max, longest, least))
            series.allowance.spend(6 * series.k)
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
            for w, at in state.at.items():
                if w in self.remain:
                    ways = map(add, label[at : at + series.k], self.remain[w])
                    longest = max(longest, min(ways))
            if state not in self._paid:
                series.allowance.spend(len(state.rest), 100)
                self._paid[state] = sum(self.prices.least[v] for v in state.rest)
            longest += self._paid[state]
        return longest - self.prices.room(label[:memory]) if memory else longest


def moved(row: Sequence[int], delays: Times | None, rule: int, d: int, end: int) -> Sequence[int]:
    """Return the earliest starts of a vertex once a related one has ended on device ``d``."""
    if delays is not None:
        row = [max(time, end + delay) for time, delay in zip(row, delays[d], strict=True)]
    if rule != NOTHING:
        row = [time if (e == d) == (rule == SAME) else NEVER for e, time in enumerate(row)]
    return row


def refute_in_series(windows: Windows, record: dict[str, Any]) -> None:
    """Check that the parts of the graph, one after another, do not end within the horizon.

    Backwards: the potentials of the record are checked from the last cut to the first. The search
    finds no way through the part that takes and pays less, with the potential of its own cut; so,
    by induction, they are lower bounds of every schedule that ends by ``H``. If the first of all is
    more than ``H`` plus all that can be paid, there is none. Forwards: otherwise, labels with the
    memory used are extended through all parts; none may reach the end by ``H``.
    """
    series = Series(windows)
    object_of(record, "sets", "record")
    documents = list_of(record.get("sets"), "sets")
    demand(documents, "record: no sets")
    sets = [Prices(series, document) for document in documents]
    for prices, i in product(sets, reversed(range(len(series.parts)))):
        held, part = series.allowance.bytes, Part(series, i)
        guide, row = Guide(part, prices), prices.potential[i - 1]
        claims = {d: row[d] for d in series.devices[series.parts[i - 1][-1]]}
        for d, claim in claims.items() if i else [(0, prices.start)]:
            where = f"after part {i} on device {d}" if i else "at the start"
            less = part.walk([(0, part.start(d))], [guide], claim - 1, prices)
            demand(not less, f"record: the potential {where} is too large")
        series.allowance.bytes = held
    if any(prices.start - prices.room([0] * series.k) > series.horizon for prices in sets):
        return
    labels, known = list[Bounded](), set[int]()
    for i, vertices in enumerate(series.parts):
        series.allowance.spend(3 * len(known) + sum(series.degree[v] for v in vertices))
        held, part = series.allowance.bytes, Part(series, i, known)
        labels = labels if i else [(0, part.start(0))]
        labels = part.walk(labels, [Guide(part, prices) for prices in sets], series.horizon)
        series.allowance.bytes = held
        known = (known | series.related(vertices)).difference(vertices)
    demand(not labels, "the record does not exclude a shorter schedule")


# --- 7. A formula and its proof -----------------------------------------------------------------

TRUE, FALSE = 1, -1  # literals of a variable that is in no clause


class Moment(NamedTuple):
    """A whole number between ``low`` and ``high``; one variable per threshold above ``low``."""

    low: int
    high: int
    first: int

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

    ``place(u, d)``: unit ``u`` is on device ``d``. ``start[v]`` and ``end[v]``: when ``v`` starts
    and ends; one set of variables if the run time of ``v`` is the same on all its devices. Some
    families of clauses add variables of their own and explain them.
    """

    def __init__(self, windows: Windows, document: object) -> None:
        record = object_of(document, "encoding loads multipliers memory_scale", "record")
        demand(record.get("encoding") == "order/1", "record: the encoding is not order/1")
        problem, possible = windows.problem, windows.possible
        n, k = len(problem.vertices), len(problem.devices)
        demand(windows.feasible, "the windows refute by themselves; the tier is path")
        self.windows, self.problem = windows, problem
        self.allowance, self.horizon = windows.allowance, windows.horizon
        self.allowance.spend(n * (50 + 10 * k), n * (1000 + 150 * k))
        demand(self.horizon < MAX_TICKS, f"more than {MAX_TICKS} ticks")
        self.loads = []
        for load in list_of(record.get("loads"), "loads"):
            d, *rest = list_of(load, "a load", 3)
            early, late = (integer(x, 0, self.horizon, "a load") for x in rest)
            self.loads.append((integer(d, 0, k - 1, "a load"), early, late))
        multipliers = list_of(record.get("multipliers"), "multipliers")
        self.multipliers = [integer(y, 0, 2**64, "multipliers") for y in multipliers]
        demand(len(self.multipliers) in (0, k), "record: not one multiplier per device")
        self.memory_scale = not_negative(record.get("memory_scale"))
        self.variables = 1
        #: By unit and possible device: the literal, and the time that all its vertices run there.
        self._place: list[dict[int, int]] = []
        self.work: list[dict[int, int]] = []
        for members, devices in zip(problem.members, possible, strict=True):
            self._place.append({d: TRUE if len(devices) == 1 else self.new() for d in devices})
            self.work.append({d: sum(windows.time(v, d) for v in members) for d in devices})
        self.start: list[Moment] = []
        self.end: list[Moment] = []
        for v, unit in enumerate(problem.unit):
            head, tail = windows.head[v], windows.tail[v]
            run = {d: windows.time(v, d) for d in possible[unit]}
            latest = max(self.horizon - tail[d] - time for d, time in run.items())
            start = self._moment(min(head[d] for d in run), latest)
            self.start.append(start)
            if min(run.values()) == max(run.values()):
                same = max(run.values())
                self.end.append(Moment(start.low + same, start.high + same, start.first))
            else:
                latest = max(self.horizon - tail[d] for d in run)
                self.end.append(self._moment(min(head[d] + run[d] for d in run), latest))
        self._among: dict[tuple[int, int, int], int] = {}

    def new(self, count: int = 1) -> int:
        """Allocate new variables; return the first."""
        self.variables += count
        demand(self.variables < MAX_NUMBER, "the formula has too many variables")
        self.allowance.spend(count)
        return self.variables - count + 1

    def _moment(self, low: int, high: int) -> Moment:
        return Moment(low, high, self.new(high - low) if high > low else 0)

    def place(self, unit: int, d: int) -> int:
        """Return the literal for: the unit is on the device."""
        return self._place[unit].get(d, FALSE)

    def among(self, a: int, b: int, pairs: set[tuple[int, int]]) -> tuple[int, list[Clause]]:
        """Return a literal that holds if units ``a`` and ``b`` are on one of the pairs of devices.

        Its clauses come with it, the first time only. ``b`` is on some device; so if ``a`` is on
        ``d``, and ``b`` on none that forms no pair with ``d``, the literal holds; and vice versa.
        """
        k, possible = len(self.problem.devices), self.windows.possible
        cells = len(possible[a]) * len(possible[b])
        steps = 50 + 8 * cells + len(pairs) * (6 + (k * k >> 10))
        self.allowance.spend(steps, 300 + k * k // 7)
        # As bits: the sets themselves could take a gigabyte.
        key = a, b, sum(1 << d * k + e for d, e in pairs)
        if key in self._among:
            return self._among[key], []
        literal = self._among[key] = self.new()
        clauses = []
        for x, y, forwards in ((a, b, True), (b, a, False)):
            for d in possible[x]:
                others = [e for e in possible[y] if ((d, e) if forwards else (e, d)) not in pairs]
                if len(others) < len(possible[y]):
                    elsewhere = (self.place(y, e) for e in others)
                    clauses.append([literal, -self.place(x, d), *elsewhere])
        return literal, clauses

    def longer(
        self, a: int, b: int, lags: dict[tuple[int, int], int], first: Moment, second: Moment
    ) -> Iterator[Clause]:
        """Yield clauses for ``second ≥ first + lag``, with the lag by the devices of two units.

        One implication per distinct lag, for the pairs of devices where it is as long or longer.
        """  # A set would be slow if numbers share one hash.
        for lag in [value for value, _ in groupby(sorted(lags.values()))]:
            self.allowance.spend(20 + 5 * len(lags))
            pairs = {pair for pair, time in lags.items() if time >= lag}
            literal, clauses = self.among(a, b, pairs) if len(pairs) < len(lags) else (TRUE, [])
            yield from clauses
            yield from follows([-literal], first, second, lag)


# Each of the following functions yields one family of clauses, and says why every schedule of at
# most H ticks satisfies them. Those marked "implied" only help the proof.


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
    """A vertex ends no earlier than its run time after its start."""
    for v, unit in enumerate(code.problem.unit):
        times = {(d, d): code.windows.time(v, d) for d in code.windows.possible[unit]}
        code.allowance.spend(20 + 15 * len(times))
        if min(times.values()) < max(times.values()):  # else both are the same variables
            yield from code.longer(unit, unit, times, code.start[v], code.end[v])


def precedence(code: Encoding) -> Iterator[Clause]:
    """A vertex starts no earlier than its inputs arrive; where nothing crosses, it cannot be."""
    possible = code.windows.possible
    for u, v, tensor in code.problem.edges:
        a, b, delay = code.problem.unit[u], code.problem.unit[v], code.windows.delay[tensor]
        code.allowance.spend(20 + 15 * len(possible[a]) * len(possible[b]))
        known: dict[tuple[int, int], int] = {}
        for d in possible[a]:
            for e in [d] if a == b else possible[b]:
                crossing = delay[d][e]
                if crossing is None:
                    yield [-code.place(a, d), -code.place(b, e)]
                else:
                    known[d, e] = crossing
        yield from code.longer(a, b, known, code.end[u], code.start[v])


def no_overlap(code: Encoding) -> Iterator[Clause]:
    """Of two vertices on one device, one ends before the other starts.

    Two literals mean "ends before", one for either order; without a choice of devices, one and its
    negation suffice. If a path of edges or the windows imply the order, there are no clauses.
    """
    problem, start, end = code.problem, code.start, code.end
    n = len(problem.vertices)
    steps = (n + len(problem.edges)) * (5 + (n >> 10)) + n * n // 2 * (6 + (n >> 11))
    code.allowance.spend(steps, n * (100 + n // 7))
    ancestors = [0] * n  # bit sets
    for v in problem.order:
        for u, _ in problem.inputs[v]:
            ancestors[v] |= ancestors[u] | 1 << u
    possible = [frozenset(devices) for devices in code.windows.possible]
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
    calculation = calculating(2 * problem.bits_of_memory + length((scale, *problem.capacity)))
    code.allowance.spend((2 * len(problem.vertices) + len(problem.capacity)) * calculation)
    needs = [math.floor(scale * need) for need in problem.need]
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

    For each ``(device, head, tail)`` of the record: of the vertices with at least these there, the
    first starts no earlier than ``head``, and the last ends at least ``tail`` before the horizon.
    """
    windows, k = code.windows, len(code.problem.devices)
    for d, head, tail in code.loads:
        code.allowance.spend(len(windows.members) * (10 + k // 4) + 8 * len(windows.unit))
        weights = []
        for unit, members in enumerate(windows.members):
            if d in windows.possible[unit]:
                early = (v for v in members if windows.head[v][d] >= head)
                times = [windows.time(v, d) for v in early if windows.tail[v][d] >= tail]
                if times:
                    weights.append((sum(times), code.place(unit, d)))
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
    cells = len(windows.unit) * len(code.problem.devices)
    code.allowance.spend(len(y) * (len(y) + 2 * cells), 150 * cells)
    taken = [y_d * room(windows, set(range(len(windows.unit))), d) for d, y_d in enumerate(y)]
    total = sum(min(y[d] * time for d, time in row.items()) for row in code.work) if y else 0
    for d, y_d in enumerate(y):
        if y_d:
            least = -((sum(taken) - taken[d] - total) // y_d)
            work = enumerate(code.work)
            away = [(row[d], -code.place(unit, d)) for unit, row in work if d in row]
            yield from at_most(code, away, sum(time for time, _ in away) - max(0, least))


def at_most(code: Encoding, weights: list[tuple[int, int]], limit: int) -> Iterator[Clause]:
    """Yield clauses for: the weights of the true literals add up to at most ``limit``.

    The clauses encode a decision diagram. The variable of a node means that the weights from some
    position on add up to at most some ``room``. It implies the node of the next position with the
    same room and, if the next literal is true, the one with its weight less room. Two rooms with no
    possible sum between them share a node.
    """
    code.allowance.spend(len(weights) * (10 + len(weights).bit_length()))
    there = [(weight, literal) for weight, literal in weights if literal != FALSE]
    limit -= sum(weight for weight, literal in there if literal == TRUE)
    items = sorted((-weight, literal) for weight, literal in there if weight and literal != TRUE)
    backwards = [-weight for weight, _ in reversed(items)]
    if limit >= sum(backwards):
        return
    demand(limit <= MAX_COUNTED, "a load or memory limit is too large to count")
    if limit < 0:
        yield []
        return
    bits, held = 2 + (limit >> 11), len(items) * (100 + limit // 7)
    code.allowance.spend(4 * len(items) * bits, held)
    # Of the weights from each position on: the sums of all subsets, and the sum of all.
    sums = [*sums_of_subsets(backwards, limit)][::-1]
    most = [*accumulate(backwards, initial=0)][::-1]
    nodes: dict[int, int] = {limit: TRUE}
    for i, (weight, literal) in enumerate(items):
        following: dict[int, int] = {}
        code.allowance.spend(len(nodes) * (20 + 4 * bits))
        for room, name in nodes.items():
            for left, condition in ((room, []), (room + weight, [-literal])):
                node = TRUE if left >= 0 else FALSE
                if 0 <= left < most[i + 1]:
                    largest = (sums[i + 1] & ((2 << left) - 1)).bit_length() - 1
                    if largest not in following:
                        following[largest] = code.new()
                    node = following[largest]
                yield [-name, *condition, node]
        nodes = following
    code.allowance.spend(0, -held)


def alike_devices(code: Encoding) -> Iterator[Clause]:
    """Symmetry: units take identical devices in turn.

    If exchanging any two devices of a class changes no run time, delay or capacity, they may be
    renumbered in the order of their first units, those with more work first. Then a unit is on the
    next device of a class only if an earlier unit is on the device before it.
    """
    problem = code.problem
    matrices = {id(delay): delay for delay in code.windows.delay.values()}.values()
    n, k = len(problem.vertices), len(problem.devices)
    code.allowance.spend(n * (10 + 3 * k))

    def alike(d: int, e: int) -> bool:
        code.allowance.spend(10 + n + len(matrices) * (10 + 3 * k))
        others = [f for f in range(k) if f not in (d, e)]
        return (
            problem.capacity[d] == problem.capacity[e]
            and all(row[d] == row[e] for row in code.windows.run)
            and all(m[d][e] == m[e][d] for m in matrices)
            and all(m[d][f] == m[e][f] and m[f][d] == m[f][e] for m in matrices for f in others)
        )

    classes: dict[int, list[int]] = defaultdict(list)
    for d in range(k):
        classes[next((first for first in classes if alike(first, d)), d)].append(d)
    units = sorted(range(len(code.work)), key=lambda unit: (-max(code.work[unit].values()), unit))
    for d, e in chain(*map(pairwise, classes.values())):
        for i, unit in enumerate(units):
            if code.place(unit, e) != FALSE:
                yield [-code.place(unit, e), *(code.place(other, d) for other in units[:i])]


def alike_vertices(code: Encoding) -> Iterator[Clause]:
    """Symmetry: interchangeable vertices start in the order of their numbers.

    Vertices are interchangeable if they have the same run times, memory and inputs, outputs with
    the same delays to the same consumers, and no colocation or separation. Sorting such a class by
    start gives a valid schedule again, and does not disturb the order of another class. Devices may
    be renumbered after that, since it moves no start: so some schedule satisfies both symmetries,
    if there is any, and all other families, which every schedule does.
    """
    problem, delay = code.problem, code.windows.delay
    n, k = len(problem.vertices), len(problem.devices)
    steps = n * (50 + 2 * k + calculating(problem.bits_of_memory)) + 40 * len(problem.edges)
    size = n * (500 + 8 * k + problem.bits_of_memory // 3) + 200 * len(problem.edges)
    code.allowance.spend(steps, size)
    bound = {v for pair in problem.separated for v in pair}
    classes: dict[object, list[int]] = defaultdict(list)
    for v in range(n):
        if v not in bound and len(code.windows.members[problem.unit[v]]) == 1:
            need = str(problem.need[problem.unit[v]])  # since many numbers can share one hash
            inputs = tuple(sorted(tensor for _, tensor in problem.inputs[v]))
            outputs = tuple(sorted((w, id(delay[tensor])) for w, tensor in problem.outputs[v]))
            classes[tuple(code.windows.run[v]), need, inputs, outputs].append(v)
    for u, v in chain(*map(pairwise, classes.values())):
        yield from follows([], code.start[u], code.start[v], 0)


Family = Callable[[Encoding], Iterator[Clause]]

FAMILIES: tuple[Family, ...] = (
    *(one_device, thresholds, run_times, precedence, no_overlap, apart, memory),
    *(windows_by_device, loads, least_loads, alike_devices, alike_vertices),
)


def clauses(code: Encoding, families: Sequence[Family] = FAMILIES) -> Iterator[Clause]:
    """Yield the clauses of the formula, without tautologies and duplicate literals."""
    steps = size = 0
    for clause in chain(*(family(code) for family in families)):
        steps += 20 + 4 * len(clause)
        if TRUE not in clause:
            size += 10 + 5 * len(clause)
            yield [literal for literal in dict.fromkeys(clause) if literal != FALSE]
        if steps > 2**14:  # not one by one, which would take longer than many a clause
            code.allowance.spend(steps, size)
            steps = size = 0


class Formula:
    """Clauses by number, from 1: packed clauses of the encoding, and lemmas until deleted."""

    def __init__(self, source: Iterable[Clause], allowance: Allowance | None = None) -> None:
        self.allowance = allowance or Allowance()
        self.literals, self.ends = array.array("i"), array.array("q", [0])
        for clause in source:
            self.literals.extend(clause)
            self.ends.append(len(self.literals))
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
        self.allowance.spend(0, LEMMA + 4 * len(literals))
        self.lemmas[number] = array.array("i", literals)

    def delete(self, number: int) -> None:
        """Delete a clause or a lemma; reject if there is none of this number."""
        size = len(self.clause(number))
        if self.lemmas.pop(number, None) is None:
            self.deleted[number] = 1
        else:
            self.allowance.spend(0, -LEMMA - 4 * size)


def check_proof(formula: Formula, variables: int, lines: Iterable[bytes]) -> int:
    """Check an LRAT proof of unsatisfiability; return its number of lemmas.

    A line is ``id literals 0 hints 0`` or ``id d ids 0``. A lemma holds if, with all its literals
    false, each hint in turn has exactly one literal that is not yet false, which therefore becomes
    true, and the last hint has none. The last lemma must be the empty clause.
    """
    last, steps, done, allowance = len(formula), 0, False, formula.allowance
    for line in lines:
        allowance.spend(30 + 2 * len(line), 64 * len(line))
        fields = line.split()
        allowance.spend(0, -64 * len(line))
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
        demand(0 < zero < len(entries) - 1, "proof: a lemma without hints")
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
    allowance.spend(0, 2 * len(content) + MAX_UNPACKER + 10 * MAX_LINE)
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


def refute_by_proof(windows: Windows, record: object, directory: str) -> str:
    """Check the proof that no schedule ends within the horizon; return its size in words."""
    code = Encoding(windows, record)
    # The size of the proof is part of what the formula may cost.
    content = read_file(os.path.join(directory, "proof.lrat.xz"), MAX_PACKED, code.allowance)
    formula = Formula(clauses(code), code.allowance)
    lemmas = check_proof(formula, code.variables, unpacked_lines(content, code.allowance))
    return f"tier lrat, {code.variables} variables, {len(formula)} clauses, {lemmas} lemmas"


TIERS: dict[str, Callable[[Windows, dict[str, Any]], None]] = {
    "path": refute_by_path,
    "one-machine": refute_by_one_machine,
    "load": refute_by_load,
    "probing": refute_by_probing,
    "series": refute_in_series,
}  # and lrat

Judge = Callable[[str, str | None], str]


# --- 8. The certificate -------------------------------------------------------------------------


def check(directory: str, instance: str | None = None) -> str:
    """Check the certificate in a directory; return what it proves, in words.

    If an instance file is given, the certificate must be about it, byte for byte. If it does not
    prove its claim, a :class:`RejectedError` says why.
    """
    return judged(_check, directory, instance)


def judged(judge: Judge, directory: str, instance: str | None) -> str:
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
    demand(len(content) <= MAX_CERTIFICATE, f"certificate.json is over {MAX_CERTIFICATE} bytes")
    of_bound = form == BOUND
    known = "format instance instance_sha256 makespan tier ticks_per_unit record"
    certificate = object_of(head, known + " bound" * of_bound, "certificate")
    demand(of_bound or form == FORMAT, f"certificate: not {FORMAT}")
    folder, name = os.path.split(instance) if instance else (directory, "instance.json")
    content, document = read_document(folder, name, allowance)
    digest = hashlib.sha256(content).hexdigest()
    demand(certificate.get("instance_sha256") == digest, "certificate: of another instance")
    problem = Problem(document, allowance)
    del document
    allowance.spend(0, -JSON * len(content))
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
        said = f"a schedule takes {shown(makespan, up=True)} and none less than {shown(claim)}, "
        said += f"a gap of at most {math.ceil(gap * 10_000) / 100:g}%"
    how = "no schedule takes less than 0"
    if claim > 0:
        windows = Windows(problem, number(certificate.get("ticks_per_unit")), claim)
        tier = typed(certificate.get("tier"), "text", "tier")
        record = typed(certificate.get("record"), "an object", "record")
        if tier == "lrat":
            how = refute_by_proof(windows, record, directory)
        else:
            demand(tier in TIERS, f"unknown tier {shown(tier)}")
            TIERS[tier](windows, record)
            how = f"tier {tier}"
    return f"{shown(problem.name)}: {said} ({how}; sha256 {digest})"


def read_document(directory: str, name: str, allowance: Allowance) -> tuple[bytes, Any]:
    """Return the content of a JSON file, and what it says."""
    content = read_file(os.path.join(directory, name), MAX_JSON, allowance)
    allowance.spend(0, JSON * len(content))
    return content, read_json(content, name)


def demand_schedule(directory: str, problem: Problem, makespan: Fraction) -> None:
    """Reject unless the schedule in a directory is valid and has exactly this makespan."""
    content, result = read_document(directory, "schedule.json", problem.allowance)
    form = typed(result, "an object", "schedule").get("format")
    demand(form == "optpart-result/1", "schedule: not optpart-result/1")
    reached = check_schedule(problem, result.get("schedule"))
    problem.allowance.spend(0, -JSON * len(content))
    wrong = f"the schedule takes {shown(reached, up=True)}, not {shown(makespan)}"
    demand(reached == makespan, wrong)


def main(arguments: Sequence[str] | None = None, judge: Judge = check) -> int:
    """Check directories, print one line for each, and return the exit code."""
    parser = argparse.ArgumentParser(description="Check certificates of optima and bounds.")
    parser.add_argument("directory", nargs="+", help="holds certificate.json and its other files")
    parser.add_argument("--instance", help="read the instance from this file instead")
    options = parser.parse_args(arguments)
    code = 0
    for directory in options.directory:
        try:
            print(f"ACCEPTED: {judge(directory, options.instance)}", flush=True)
        except RejectedError as error:
            where = f"{shown(directory)}: " if len(options.directory) > 1 else ""
            print(f"REJECTED: {where}{error}", flush=True)
            code = 1
    return code


if __name__ == "__main__":
    sys.exit(main())
