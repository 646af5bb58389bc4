"""What serves a model: machines whose rate depends on the layers that they hold, and links.

A file is TOML, with the keys of cluster files where they mean the same::

    layers = 80
    activation = 16384           # bytes of a token between layers; default 1
    token = 2                    # bytes of a token from the source and to the sink; default 1
    bandwidth = 125e6            # bytes per second of every link, or "infinite" (default)

    [[device]]
    name = "a100"
    count = 4                    # a1000 to a1003
    rates = [23833.9, 11384.3]   # tokens per second with 1, 2, … layers; no more layers fit

    [[link]]                     # "source" and "sink" are ends, too
    from = "a100"
    to = "sink"
    bandwidth = 0                # no link
    both = true                  # default
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

from optpart.base.errors import FaultsOf, InputError
from optpart.base.files import read_text
from optpart.interop.formats.json import count, flag, keys, sequence, text
from optpart.interop.formats.toml import parse_toml
from optpart.problem.rational import non_negative

#: Most layers and machines of a problem: plans and bounds look at pairs of each.
MOST_LAYERS, MOST_MACHINES = 1000, 200

_TOP = {"layers", "activation", "token", "bandwidth", "device", "link"}
_DEVICE = {"name", "count", "rates"}
_LINK = {"from", "to", "bandwidth", "both"}
_ENDS = ("source", "sink")


@dataclass(frozen=True)
class Machine:
    """A machine, with its rate (tokens/s) for every number of layers from 1 on that it can hold."""

    name: str
    rates: tuple[Fraction, ...]


@dataclass(frozen=True)
class Serving:
    """Machines, their links, and a model of so many layers.

    Attributes
    ----------
    links : mapping from (int, int) to Fraction or None
        Tokens per second from one node to another; ``None`` is unlimited, and a pair that is
        missing is not linked. Machines have their number as node; :attr:`source` and :attr:`sink`
        follow.
    """

    name: str
    layers: int
    machines: tuple[Machine, ...]
    links: Mapping[tuple[int, int], Fraction | None]

    @property
    def source(self) -> int:
        """The node where tokens enter."""
        return len(self.machines)

    @property
    def sink(self) -> int:
        """The node where tokens leave."""
        return len(self.machines) + 1

    @cached_property
    def unit(self) -> int:
        """The least common denominator of all rates and links.

        In so many parts of a token per second, all capacities are whole, and so is a maximal flow.
        """
        capacities = [*self.links.values(), *(rate for m in self.machines for rate in m.rates)]
        return math.lcm(*(each.denominator for each in capacities if each is not None))

    def whole(self, value: Fraction | None) -> int | None:
        """Return a capacity in :attr:`unit`."""
        return None if value is None else int(value * self.unit)


def read(path: str | Path) -> Serving:
    """Read a problem.

    Raises
    ------
    InputError
        If the file cannot be read, or is not as this module describes.
    """
    with FaultsOf(path):
        return _loads(read_text(path), Path(path).stem)


def _loads(content: str, name: str) -> Serving:
    document = keys(parse_toml(content), _TOP, "", needed=("layers", "device"))
    layers = count(document["layers"], "layers")
    if layers > MOST_LAYERS:
        raise InputError("layers", f"{layers} are too many", f"give 1 to {MOST_LAYERS}")
    machines: list[Machine] = []
    named: dict[str, list[int]] = {}
    for i, entry in enumerate(sequence(document["device"], "device")):
        _add(machines, named, keys(entry, _DEVICE, f"device[{i}]", ("name", "rates")), i, layers)
    if not machines:
        raise InputError("device", "there is none", "give at least one")
    n = len(machines)
    named |= {end: [n + e] for e, end in enumerate(_ENDS)}
    sizes = [_positive(document.get(key, 1), key) for key in ("activation", "token")]
    links: dict[tuple[int, int], Fraction | None] = {}

    def link(u: int, v: int, bandwidth: Fraction | None) -> None:
        if u == v or u == n + 1 or v == n or (u, v) == (n, n + 1):
            return
        size = sizes[max(u, v) >= n]
        links[u, v] = None if bandwidth is None else bandwidth / size
        if links[u, v] == 0:
            del links[u, v]

    usual = _bandwidth(document.get("bandwidth", "infinite"), "bandwidth")
    for u in range(n + 2):
        for v in range(n + 2):
            link(u, v, usual)
    for i, given in enumerate(sequence(document.get("link", []), "link")):
        place = f"link[{i}]"
        entry = keys(given, _LINK, place, ("from", "to", "bandwidth"))
        ends = [_nodes(named, entry[key], f"{place}.{key}") for key in ("from", "to")]
        bandwidth = _bandwidth(entry["bandwidth"], f"{place}.bandwidth")
        both = flag(entry.get("both", True), f"{place}.both")
        for u in ends[0]:
            for v in ends[1]:
                link(u, v, bandwidth)
                if both:
                    link(v, u, bandwidth)
    return Serving(name, layers, tuple(machines), links)


def _add(
    machines: list[Machine],
    named: dict[str, list[int]],
    entry: Mapping[str, Any],
    i: int,
    layers: int,
) -> None:
    name, place = text(entry["name"], f"device[{i}].name"), f"device[{i}].rates"
    rates = tuple(
        _positive(r, f"{place}[{k}]") for k, r in enumerate(sequence(entry["rates"], place))
    )
    if not rates:
        raise InputError(place, "is empty", "give tokens per second with 1, 2, … layers")
    copies = count(entry["count"], f"device[{i}].count") if "count" in entry else None
    if len(machines) + (copies or 1) > MOST_MACHINES:
        raise InputError("device", "too many machines", f"give at most {MOST_MACHINES}")
    numbers = []
    for copy in [name] if copies is None else [f"{name}{c}" for c in range(copies)]:
        numbers.append(len(machines))
        if not copy or copy in named or copy in _ENDS:
            raise InputError(
                f"device[{i}].name", f"{copy!r} is taken or empty", "give another name"
            )
        named[copy] = [len(machines)]
        machines.append(Machine(copy, rates[:layers]))
    if named.setdefault(name, numbers) != numbers:
        raise InputError(f"device[{i}].name", f"{name!r} is taken", "give another name")


def _nodes(named: Mapping[str, list[int]], name: Any, place: str) -> list[int]:
    if text(name, place) not in named:
        raise InputError(place, f"there is no device {name!r}", "use names of devices or the ends")
    return named[name]


def _positive(value: Any, place: str) -> Fraction:
    number = non_negative(value, place)
    if number == 0:
        raise InputError(place, "is 0", "give a number > 0")
    return number


def _bandwidth(value: Any, place: str) -> Fraction | None:
    return None if value == "infinite" else non_negative(value, place)
