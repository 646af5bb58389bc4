"""The instances of the library's drawn groups, from any seeds."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import get_args

from optpart.interop.generate import thesis, workflow
from optpart.interop.generate.small import Tightness, small
from optpart.problem.instance import Instance

#: The grid of ``random``.
_VERTICES, _DEVICES, _RATIOS = (10, 20, 30, 40, 60), (2, 4, 8), (0.1, 1, 10)

#: Shape and width of each workflow, and the number of its machines.
WORKFLOWS: tuple[tuple[workflow.Shape, int], ...] = (
    ("chain", 20), ("fork-join", 30), ("montage", 12), ("epigenomics", 20), ("blast", 40),
)  # fmt: skip
WORKFLOW_MACHINES = 4

#: Gigabit Ethernet, in bytes per nanosecond (every byte takes 8 whole ones), and its latency.
WORKFLOW_LINK = (Fraction(1, 8), 50_000)


def random_set(seeds: Iterable[int]) -> Iterator[Instance]:
    """Yield a grid of sizes and ratios; the further properties take turns through it.

    Every instance has a graph and a cluster of its own. Memory changes slowest, since a property
    that came round every three instances would go with one ratio.
    """
    turns = list(product(get_args(Tightness), (False, True), (False, True)))
    grid = product(_VERTICES, _DEVICES, _RATIOS)
    for number, ((vertices, devices, ccr), seed) in enumerate(zip(grid, seeds, strict=False), 1):
        memory, types, groups = turns[number % len(turns)]
        yield small(
            vertices, devices, seed=seed, ccr=ccr, types=types, groups=groups, memory=memory
        )


def workflow_set(seeds: Iterable[int]) -> Iterator[Instance]:
    """Yield a workflow of every shape."""
    for (shape, width), seed in zip(WORKFLOWS, seeds, strict=False):
        drawn = workflow.workflow(shape, width, WORKFLOW_MACHINES, seed)
        yield replace(drawn.instance(*WORKFLOW_LINK), name=f"{shape}-{width}-s{seed}")


def thesis_set(seeds: Iterable[int]) -> Iterator[Instance]:
    """Yield the six graphs of [L] table 7.1, each with its cluster."""
    for number, seed in zip(thesis.TABLE, seeds, strict=False):
        yield thesis.instance(number, seed=seed)


#: The groups that can be drawn again.
SETS: dict[str, Callable[[Iterable[int]], Iterator[Instance]]] = {
    "random": random_set, "workflows": workflow_set, "thesis": thesis_set,
}  # fmt: skip


def seeds_of(secret: str) -> Iterator[int]:
    """Yield seeds that nobody can guess without the secret: from SHA-256 of it and a number."""
    for number in range(2**31):
        digest = hashlib.sha256(f"{secret} {number}".encode()).digest()
        yield int.from_bytes(digest[:4]) >> 1
