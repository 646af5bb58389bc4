"""Workflows of five common shapes, drawn with run times, file sizes and machines.

Each has a width ``w``:

- ``chain``: ``w`` tasks, one after another;
- ``fork-join``: one task splits a file in ``w``, ``w`` tasks work on a part each, one joins;
- ``montage``: ``w`` images are projected, neighbours (up to two apart) are compared, all
  differences are fitted into one model, by which every projection is corrected; the results are
  tabulated, added up, shrunk and shown;
- ``epigenomics``: ``w`` parts of a sequence pass four steps each, and are merged, indexed and piled
  up;
- ``blast``: one task splits a query in ``w``, each part is searched for, and two tasks collect what
  the searches found and what they said.

The last three follow the published structure of the applications that they are named after, not
their measured times: the run time of a task is drawn from 0.5 to 1.5 times that of its step, in
whole microseconds, and likewise the bytes of a file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Annotated, Literal, get_args

import numpy as np

from optpart.base.choices import choice
from optpart.base.errors import InputError
from optpart.base.limits import MOST_DEVICES, check_devices, check_size
from optpart.interop.formats.wfformat import Machine, Workflow
from optpart.interop.generate import draw
from optpart.interop.generate.option import Option
from optpart.problem.graph import GraphBuilder
from optpart.problem.instance import Instance
from optpart.problem.workload import Workload

Shape = Literal["chain", "fork-join", "montage", "epigenomics", "blast"]

#: Bytes per nanosecond between two machines: 10 Gbit/s.
BANDWIDTH = Fraction(5, 4)

_MOST_WIDTH = 100_000
_MICROSECOND = 1000

#: Clock rates in MHz, and cores, that machines are drawn from.
_SPEEDS, _CORES = (1200, 1800, 2400, 3000, 3600), (8, 16, 32, 64)


class _Drawing:
    """Collects tasks and the files that they hand on."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.builder = GraphBuilder()
        self.times: list[Fraction] = []
        self._rng = rng

    def task(
        self, name: str, milliseconds: int, kilobytes: Iterable[int], *reads: tuple[str, int]
    ) -> str:
        """Add a task with its outputs; it reads outputs of earlier ones."""
        sizes = [self._about(1000 * size) for size in kilobytes]
        self.builder.vertex(name, outputs=sizes)
        self.times.append(Fraction(self._about(milliseconds * 1000) * _MICROSECOND))
        for source, output in reads:
            self.builder.edge(source, name, output)
        return name

    def _about(self, value: int) -> int:
        return int(self._rng.integers(value // 2, value + value // 2, endpoint=True))


def _chain(add: _Drawing, width: int) -> None:
    before: list[tuple[str, int]] = []
    for i in range(width):
        before = [(add.task(f"step_{i}", 2000, [5000], *before), 0)]


def _fork_join(add: _Drawing, width: int) -> None:
    split = add.task("split", 500, [2000] * width)
    workers = [add.task(f"work_{i}", 4000, [1000], (split, i)) for i in range(width)]
    add.task("join", 800, [1000], *((worker, 0) for worker in workers))


def _montage(add: _Drawing, width: int) -> None:
    images = [add.task(f"project_{i}", 6000, [4000, 4000]) for i in range(width)]
    differences = [
        add.task(
            f"difference_{i}_{j}",
            300,
            [10],
            *((images[end], output) for end in (i, j) for output in (0, 1)),
        )
        for i in range(width)
        for j in (i + 1, i + 2)
        if j < width
    ]
    fit = add.task("concatenate", 200, [50], *((name, 0) for name in differences))
    model = add.task("model", 1500, [5], (fit, 0))
    corrected = [
        add.task(f"correct_{i}", 400, [4000], (image, 0), (image, 1), (model, 0))
        for i, image in enumerate(images)
    ]
    files = [(name, 0) for name in corrected]
    table = add.task("table", 300, [20], *files)
    added = add.task("add", 3000, [30_000], (table, 0), *files)
    shrunk = add.task("shrink", 600, [2000], (added, 0))
    add.task("show", 200, [500], (shrunk, 0))


def _epigenomics(add: _Drawing, width: int) -> None:
    split = add.task("split", 3000, [8000] * width)
    mapped = []
    for i in range(width):
        part = (split, i)
        for step, time, size in (
            ("filter", 1500, 7000),
            ("convert", 500, 6000),
            ("encode", 300, 2000),
            ("map", 20_000, 1000),
        ):
            part = (add.task(f"{step}_{i}", time, [size], part), 0)
        mapped.append(part)
    merged = add.task("merge", 2500, [1000 * width], *mapped)
    index = add.task("index", 1500, [200 * width], (merged, 0))
    add.task("pileup", 4000, [500 * width], (merged, 0), (index, 0))


def _blast(add: _Drawing, width: int) -> None:
    split = add.task("split", 100, [300] * width)
    searches = [add.task(f"search_{i}", 30_000, [600, 2], (split, i)) for i in range(width)]
    add.task("collect_hits", 500, [600 * width], *((name, 0) for name in searches))
    add.task("collect_messages", 200, [2 * width], *((name, 1) for name in searches))


_SHAPES: dict[str, Callable[[_Drawing, int], None]] = {
    "chain": _chain,
    "fork-join": _fork_join,
    "montage": _montage,
    "epigenomics": _epigenomics,
    "blast": _blast,
}


def workflow(shape: Shape, width: int = 10, machines: int = 3, seed: int = 0) -> Workflow:
    """Draw a workflow that ran on the first of its machines.

    Parameters
    ----------
    shape : {"chain", "fork-join", "montage", "epigenomics", "blast"}
    width : int
        At least 1.
    machines : int
        At least 1; their clock rates and numbers of cores are drawn.
    seed : int

    Returns
    -------
    Workflow
        Run times in nanoseconds, file sizes in bytes, to be written by
        :func:`optpart.interop.formats.wfformat.write`.

    Raises
    ------
    InputError
        If the shape is unknown, or a number is out of range.
    """
    if shape not in _SHAPES:
        raise InputError("shape", f"no shape {shape!r}", choice(shape, get_args(Shape)))
    draw.count(width, "width", least=1, most=_MOST_WIDTH)
    check_devices(machines, "machines")
    check_size(4 * width, 8 * width, devices=machines, place="width")
    rng = draw.generator(seed)
    drawing = _Drawing(rng)
    _SHAPES[shape](drawing, width)
    found = tuple(
        Machine(f"machine{m}", int(rng.choice(_CORES)), Fraction(int(rng.choice(_SPEEDS))))
        for m in range(machines)
    )
    workload = Workload(
        drawing.builder.build(),
        measured={found[0].name: tuple(drawing.times)},
        name=f"{shape}-{width}",
        source=f"{shape} workflow drawn with width {width}, seed {seed}",
    )
    return Workflow(workload, found)


def instance(
    shape: Annotated[Shape, Option(help="chain, fork-join, montage, epigenomics or blast.")],
    width: Annotated[int, Option(1, _MOST_WIDTH, "Tasks side by side; length of a chain.")] = 10,
    devices: Annotated[int, Option(1, MOST_DEVICES)] = 3,
    seed: int = 0,
) -> Instance:
    """Draw a workflow and its machines, linked by 10 Gbit/s.

    Parameters
    ----------
    shape, width, seed
        As of :func:`workflow`.
    devices : int
        Machines; each runs one task at a time, faster or slower by its clock rate.

    Returns
    -------
    Instance
        Times in nanoseconds, sizes in bytes.
    """
    return workflow(shape, width, devices, seed).instance(BANDWIDTH)
