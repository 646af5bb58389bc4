"""The benchmark sets: each case is an instance and, if known, its published optimum."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from pathlib import Path

from bench.output import read_csv
from optpart.interop.formats.detect import read_instance
from optpart.interop.generate.small import small
from optpart.problem.instance import Instance
from optpart.study import library

#: Other exact methods to compare with.
MODELS = ("plain", "milp")


@dataclass(frozen=True)
class Case:
    """One instance of a set.

    Attributes
    ----------
    name : str
    read : callable
        Makes the instance.
    optimum : Fraction or None
        As published; ``None`` if no optimum is published.
    rivals : tuple of str
        Methods that are run on it besides ``cpsat``.
    """

    name: str
    read: Callable[[], Instance]
    optimum: Fraction | None = None
    rivals: tuple[str, ...] = ()


def auckland(shared: Path) -> Iterator[Case]:
    """359 task graphs of 10 and 21 vertices on 2 to 16 equal processors."""
    folder = shared / "data" / "auckland_gxl"
    for row in read_csv(folder / "optimum.csv"):
        path = folder / row["file"]
        yield Case(row["file"], lambda path=path: read_instance(path), Fraction(row["optimum"]))


def stg(shared: Path) -> Iterator[Case]:
    """Standard Task Graph Set, 50 and 100 tasks, at every listed number of processors."""
    folder = shared / "data" / "stg"
    for row in read_csv(folder / "optimum.csv"):
        path, devices = folder / row["file"], int(row["procs"])
        yield Case(
            f"{row['file']} on {devices}",
            lambda path=path, devices=devices: read_instance(path, devices=devices),
            Fraction(row["optimum"]),
        )


def jsplib(shared: Path) -> Iterator[Case]:
    """ft06, ft10, la01 to la20 and orb01 to orb10."""
    folder = shared / "data" / "jsplib"
    wanted = {"ft06", "ft10", *(f"la{i:02}" for i in range(1, 21))}
    wanted |= {f"orb{i:02}" for i in range(1, 11)}
    for row in read_csv(folder / "optimum.csv"):
        if row["instance"] in wanted:
            path = folder / row["instance"]
            yield Case(
                row["instance"], lambda path=path: read_instance(path), _closed(row), rivals=MODELS
            )


def _closed(row: dict[str, str]) -> Fraction | None:
    upper = row["upper_bound"]
    return Fraction(upper) if row["lower_bound"] == upper else None


def hurink(shared: Path) -> Iterator[Case]:
    """Hurink's flexible job shops, edata."""
    folder = shared / "data" / "fjsp"
    yield from _flexible(folder / "hurink_edata", folder / "hurink_edata.csv")


def birgin(shared: Path) -> Iterator[Case]:
    """Birgin's YFJS01 to YFJS05: operations ordered by a graph."""
    folder = shared / "data" / "fjsp"
    yield from _flexible(folder / "birgin", folder / "birgin.csv")


def _flexible(folder: Path, table: Path) -> Iterator[Case]:
    files = {path.stem: path for path in folder.iterdir()}
    for row in read_csv(table):
        stem = Path(row["instance"]).stem
        path = files.get(stem) or files[stem.removesuffix("_edata")]
        yield Case(stem, lambda path=path: read_instance(path, "fjs"), _closed(row))


def santiago(shared: Path) -> Iterator[Case]:
    """14 small heterogeneous cases with communication."""
    folder = shared / "data" / "hetero_santiago"
    for row in read_csv(folder / "optimum.csv"):
        path = folder / row["file"]
        optimum = Fraction(row["optimum"])
        yield Case(row["file"], lambda path=path: read_instance(path), optimum, rivals=MODELS)


def moirai(shared: Path) -> Iterator[Case]:
    """Moirai's example, with free links and with one port a device."""
    path = shared / "data" / "moirai" / "example-1.json"
    yield Case("example-1", lambda: read_instance(path), Fraction(30))
    yield Case("example-1, port", lambda: _with_ports(read_instance(path)), Fraction(30))


def _with_ports(instance: Instance) -> Instance:
    return replace(instance, model=replace(instance.model, communication="port"))


def classics(_: Path) -> Iterator[Case]:
    """HEFT's ten tasks, and Kwok and Ahmad's nine nodes, from the library."""
    for name, optimum in (("heft-10", 73), ("kwok-ahmad-9-2", 17), ("kwok-ahmad-9-3", 16)):
        yield Case(name, lambda name=name: library.load(name), Fraction(optimum), rivals=MODELS)


def drawn(shared: Path) -> Iterator[Case]:
    """Random instances of 8 to 60 vertices whose optimum an independent model gave."""
    folder = shared / "instances"
    for row in read_csv(folder / "optimum.csv"):
        path = folder / f"{row['instance']}.json"
        optimum = Fraction(row["optimum"])
        yield Case(row["instance"], lambda path=path: read_instance(path), optimum, rivals=MODELS)


def networks(shared: Path) -> Iterator[Case]:
    """The convolutional network on 7 and on 50 devices."""
    for name in ("convolutional_network-7-1", "convolutional_network-50-1"):
        path = shared / "instances" / f"{name}.json"
        yield Case(name, lambda path=path: read_instance(path), rivals=("search",))


def grid(_: Path) -> Iterator[Case]:
    """Our own: vertices × devices × communication to computation × memory × types and groups."""
    sizes = product((10, 20, 30, 40, 50, 60), (2, 4, 8), (0.1, 1.0, 10.0))
    for number, ((n, k, ccr), memory, mixed) in enumerate(
        product(sizes, ("tight", "loose"), (False, True)), 1
    ):
        make = _Small(n, k, number, ccr, memory, mixed)
        marks = f"{memory}{', types and groups' if mixed else ''}"
        yield Case(f"{n} on {k}, ccr {ccr:g}, {marks}", make, rivals=MODELS)


@dataclass(frozen=True)
class _Small:
    vertices: int
    devices: int
    seed: int
    ccr: float
    memory: str
    mixed: bool

    def __call__(self) -> Instance:
        return small(
            self.vertices,
            self.devices,
            seed=self.seed,
            ccr=self.ccr,
            types=self.mixed,
            groups=self.mixed,
            memory="tight" if self.memory == "tight" else "loose",
        )


SETS: dict[str, Callable[[Path], Iterator[Case]]] = {
    "classics": classics,
    "santiago": santiago,
    "moirai": moirai,
    "random": drawn,
    "jsplib": jsplib,
    "grid": grid,
    "auckland": auckland,
    "stg": stg,
    "hurink": hurink,
    "birgin": birgin,
    "networks": networks,
}
