"""Plans of large language models as chains of blocks, whatever their vertices are called."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from optpart.base.errors import InputError
from optpart.exporters.plan import Plan
from optpart.interop.formats.llm_parts import BLOCK, PLACES, REMEDY, VISION, part_of


@dataclass(frozen=True)
class Link:
    """A part of a model that one device computes.

    Attributes
    ----------
    place : {"vision", "embedding", "block", "norm", "head"}
    number : int
        Of a block; 0 for others.
    half : str
        What of a block, such as ``"attention"``; empty for the whole.
    vertex : str
        Its name in the plan.
    device : str
    """

    place: str
    number: int
    half: str
    vertex: str
    device: str


@dataclass(frozen=True)
class Chain:
    """The parts of a model, in the order in which data flow through them.

    Attributes
    ----------
    links : tuple of Link
    own_names : bool
        Whether vertices are called as optpart's reader calls them, and not as modules.
    """

    links: tuple[Link, ...]
    own_names: bool

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return 1 + max((each.number for each in self.links if each.place == BLOCK), default=-1)

    @property
    def devices(self) -> tuple[str, ...]:
        """Devices in the order in which the chain reaches them."""
        return tuple(dict.fromkeys(each.device for each in self.links))

    def devices_of(self, place: str, number: int = 0) -> tuple[str, ...]:
        """Return the devices of a part, several if its halves are on different ones."""
        here = [each for each in self.links if (each.place, each.number) == (place, number)]
        return tuple(dict.fromkeys(each.device for each in here))

    def whole_blocks(self, target: str, remedy: str) -> list[str]:
        """Return the device of every block, none of which may be split.

        Parameters
        ----------
        target, remedy : str
            Who needs whole blocks, and what to do else.
        """
        found: list[str] = []
        for number in range(self.blocks):
            devices = self.devices_of(BLOCK, number)
            if len(devices) > 1:
                problem = f"is split between {' and '.join(devices)}, and {target} keeps it whole"
                raise InputError(f"block {number}", problem, remedy)
            found += devices
        return found

    def stages(self, target: str, remedy: str) -> list[tuple[str, list[Link]]]:
        """Return the runs of links on one device, of whole blocks."""
        self.whole_blocks(target, remedy)
        return [
            (device, list(links))
            for device, links in groupby(self.links, key=lambda each: each.device)
        ]

    def contiguous(self, target: str, remedy: str) -> list[tuple[str, list[Link]]]:
        """Return the stages, one per device."""
        stages = self.stages(target, remedy)
        seen: set[str] = set()
        for device, links in stages:
            if device in seen:
                first = links[0]
                problem = f"has {first.vertex!r} after other devices took over from it"
                why = f"{target} gives each device one run of adjacent blocks"
                raise InputError(f"device {device!r}", f"{problem}; {why}", remedy)
            seen.add(device)
        return stages


def chain_of(plan: Plan) -> Chain:
    """Find the parts of a model in the names of the vertices.

    Raises
    ------
    InputError
        If a vertex is no part of a model, a block is missing, or they are not executed in order.
    """
    links = [Link(*part_of(name), name, device) for name, device in plan.device.items()]
    position = {each.vertex: p for p, each in enumerate(links)}
    start = plan.start
    # Halves of a block have no order of their own but that in which they are executed.
    links.sort(key=lambda e: (PLACES.index(e.place), e.number, start[e.vertex], position[e.vertex]))
    for before, after in pairwise(links):
        # A vision tower comes first, unless it has no images; then its time tells nothing.
        if before.place != VISION and start[before.vertex] > start[after.vertex]:
            problem = f"starts before {before.vertex!r}, which is before it in the model"
            raise InputError(f"vertex {after.vertex!r}", problem, REMEDY)
    numbers = {each.number for each in links if each.place == BLOCK}
    for number in range(max(numbers, default=0) + 1):
        if number not in numbers:
            raise InputError(f"block {number}", "is not in the plan", REMEDY)
    own = not any("." in each.vertex for each in links if each.place != BLOCK) and all(
        each.vertex.startswith("block.") for each in links if each.place == BLOCK
    )
    return Chain(tuple(links), own)


def ends(chain: Chain, stages: Sequence[tuple[str, list[Link]]], target: str, remedy: str) -> None:
    """Refuse stages without a block: the ends of the model go with its first and last block."""
    for device, links in stages:
        if not any(each.place == BLOCK for each in links):
            names = " and ".join(repr(each.vertex) for each in links)
            problem = f"has {names} only, and {target} computes that with the nearest block"
            raise InputError(f"device {device!r}", problem, remedy)
