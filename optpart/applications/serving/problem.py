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
from itertools import product
from pathlib import Path
from typing import Any

from optpart.base.choices import choice
from optpart.base.errors import FaultsOf, InputError
from optpart.base.files import read_text
from optpart.interop.formats.json import count, flag, keys, sequence, text
from optpart.interop.formats.toml import parse_toml
from optpart.problem.rational import non_negative, shown

#: Most layers and machines of a problem: plans and bounds look at pairs of each.
MOST_LAYERS, MOST_MACHINES = 1000, 200

_TOP = {"layers", "activation", "token", "bandwidth", "device", "link"}
_DEVICE = {"name", "count", "rates"}
_LINK = {"from", "to", "bandwidth", "both"}


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

    @property
    def names(self) -> list[str]:
        """The names of all nodes."""
        return [*(machine.name for machine in self.machines), "source", "sink"]

    @cached_property
    def unit(self) -> int:
        """The least common denominator of all rates and links.

        In so many parts of a token per second, all capacities are whole, and so is a maximal flow.
        """
        capacities = [*self.links.values(), *(rate for m in self.machines for rate in m.rates)]
        return math.lcm(*(each.denominator for each in capacities if each is not None))


def read(path: str | Path) -> Serving:
    """Read a problem; every fault is an :class:`InputError` that names file and place."""
    with FaultsOf(path):
        document = keys(parse_toml(read_text(path)), _TOP, "", needed=("layers", "device"))
        layers = count(document["layers"], "layers")
        if layers > MOST_LAYERS:
            raise InputError("layers", f"{layers} are too many", f"give 1 to {MOST_LAYERS}")
        machines, ends = _machines(sequence(document["device"], "device"), layers)
        return Serving(Path(path).stem, layers, tuple(machines), _links(document, ends))


def _machines(entries: list[Any], layers: int) -> tuple[list[Machine], dict[str, list[int]]]:
    """Return the machines, and the nodes of every name, the ends of all tokens included."""
    machines: list[Machine] = []
    ends: dict[str, list[int]] = {"source": [], "sink": []}
    for i, given in enumerate(entries):
        entry = keys(given, _DEVICE, f"device[{i}]", ("name", "rates"))
        name, place = text(entry["name"], f"device[{i}].name"), f"device[{i}].rates"
        rates = [non_negative(rate, place) for rate in sequence(entry["rates"], place)]
        if not rates or 0 in rates:
            raise InputError(place, "has no number or a 0", "give tokens/s with 1, 2, … layers")
        copies = [name]
        if "count" in entry:
            number = min(count(entry["count"], f"device[{i}].count"), MOST_MACHINES + 1)
            copies = [f"{name}{c}" for c in range(number)]
        for copy in {*copies, name}:
            if not copy or copy in ends:
                raise InputError(f"device[{i}].name", f"{shown(copy)} is taken or empty", "rename")
        first = len(machines)
        ends[name] = [*range(first, first + len(copies))]
        ends |= {copy: [first + c] for c, copy in enumerate(copies)}
        machines += [Machine(copy, tuple(rates[:layers])) for copy in copies]
    if not 1 <= len(machines) <= MOST_MACHINES:
        raise InputError("device", f"{len(machines)} machines", f"give 1 to {MOST_MACHINES}")
    ends |= {"source": [len(machines)], "sink": [len(machines) + 1]}
    return machines, ends


def _links(
    document: Mapping[str, Any], ends: Mapping[str, list[int]]
) -> dict[tuple[int, int], Fraction | None]:
    """Return tokens per second of all links."""
    (source,), (sink,) = ends["source"], ends["sink"]
    sizes = [non_negative(document.get(key, 1), key) for key in ("activation", "token")]
    if 0 in sizes:
        raise InputError("activation", "or token is 0", "give bytes of a token")
    links: dict[tuple[int, int], Fraction | None] = {}

    def link(u: int, v: int, bandwidth: Fraction | None) -> None:
        if u not in (v, sink) and v != source and (u, v) != (source, sink):
            links[u, v] = bandwidth and bandwidth / sizes[max(u, v) >= source]

    usual = _bandwidth(document.get("bandwidth", "infinite"), "bandwidth")
    for u, v in product(range(sink + 1), repeat=2):
        link(u, v, usual)
    for i, given in enumerate(sequence(document.get("link", []), "link")):
        place = f"link[{i}]"
        entry = keys(given, _LINK, place, ("from", "to", "bandwidth"))
        bandwidth = _bandwidth(entry["bandwidth"], f"{place}.bandwidth")
        for key in ("from", "to"):
            if text(entry[key], f"{place}.{key}") not in ends:
                raise InputError(f"{place}.{key}", "names no machine", choice(entry[key], ends))
        for u, v in product(ends[entry["from"]], ends[entry["to"]]):
            link(u, v, bandwidth)
            if flag(entry.get("both", True), f"{place}.both"):
                link(v, u, bandwidth)
    return {pair: rate for pair, rate in links.items() if rate != 0}


def _bandwidth(value: Any, place: str) -> Fraction | None:
    return None if value == "infinite" else non_negative(value, place)
