"""How much memory the work on an instance takes at most: the figures behind the estimates.

    python bench/limits/memory.py [--parts cpsat,milp] [--seconds 15] [--workers 2]

Each row is a case in a process of its own. Its size is what ``optpart/problem/footprint.py`` knows
before the work begins: terms of CP-SAT's model, rows of a MILP, crossings of a linear program,
vertices of an instance. ``base`` is the peak of resident memory (``VmHWM``) of the process that
does the work before it gets the case, with its libraries and compiled loops; ``peak`` that in the
end; ``each`` the difference per unit of size, in bytes. ``all`` adds the peaks of this process and
of all that it started, which is what ``estimate`` must exceed; pages that they share count twice.

The parts are, with the process that they are about:

- ``process``: this one, before and after linear programs are solved
- ``instance``: this one, with a schedule of 100,000 vertices
- ``cpsat``, ``milp``: the solver's, without a search before it
- ``crossings``: this one
- ``search``, ``hybrid``: a helper of a search, before it has got anything and on 10,000 vertices;
  solvers of parts count in ``all``
- ``compiling``: this one, with an empty cache of machine code; takes minutes, so only if named
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[2]))

from bench.limits.__main__ import drawn
from optpart import Budget, Instance
from optpart.exact import milp, process, solve
from optpart.exact.milp import program_rows
from optpart.exact.solve import model_terms
from optpart.kernels import all as kernels
from optpart.lower_bounds.best import all_bounds
from optpart.lower_bounds.crossings import crossings_bound, program_size
from optpart.methods import cpsat, registry
from optpart.methods.solve import ask
from optpart.problem import footprint
from optpart.solution.goal import Goal
from optpart.solution.job import Method

#: Seconds between two looks at the child processes, whose peaks end with them, and without growth
#: after which a process has loaded its libraries.
_LOOK, _CALM = 0.05, 1.0

_MIB = 2**20

#: The cases: a part, and the vertices and devices of its instance.
_CASES = (
    ("process", 50, 4),
    ("instance", 100_000, 10),
    ("cpsat", 200, 10),
    ("cpsat", 1000, 4),
    ("cpsat", 1750, 10),
    ("milp", 100, 10),
    ("milp", 130, 10),
    ("crossings", 120, 10),
    ("search", 10_000, 10),
    ("hybrid", 10_000, 10),
    ("hybrid", 1000, 10),
    ("compiling", 50, 4),
)
_SLOW = ("compiling",)


class Case(NamedTuple):
    """What a part has measured.

    Attributes
    ----------
    size : int
        In units.
    base, peak : int
        Bytes of the process that the part is about.
    estimate : int
        Bytes of all processes together.
    """

    size: int
    unit: str
    base: int
    peak: int
    estimate: int


def peak(pid: int | str) -> int:
    """Return the peak of resident memory of a process in bytes; 0 if it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM")), 0)


def children(pid: int | str) -> list[str]:
    """Return the processes that a process has started, and theirs."""
    found: list[str] = []
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            found += (task / "children").read_text().split()
    except OSError:
        return found
    return found + [below for child in found for below in children(child)]


def calm(pid: int | str) -> int:
    """Return the peak of a process once it has stopped growing: its libraries are loaded."""
    before = peak(pid)
    while True:
        time.sleep(_CALM)
        now = peak(pid)
        if now == before:
            return now
        before = now


class Watch(threading.Thread):
    """Keeps the peaks of all child processes."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peaks: dict[str, int] = {}
        self.ended = threading.Event()

    def run(self) -> None:
        """Look until told to end."""
        while not self.ended.wait(_LOOK):
            for child in children(os.getpid()):
                self.peaks[child] = max(self.peaks.get(child, 0), peak(child))


class Measurement:
    """One case, in this process.

    Parameters
    ----------
    seconds : float
        Time limit of what is measured.
    """

    def __init__(self, vertices: int, devices: int, seconds: float, workers: int) -> None:
        self.vertices, self.devices = vertices, devices
        self.seconds, self.workers = seconds, workers
        self.watch = Watch()
        self.watch.start()

    @cached_property
    def instance(self) -> Instance:
        """The instance, drawn when it is needed."""
        return drawn(self.vertices, self.devices)

    def process(self) -> Case:
        """Load everything, and solve linear programs."""
        kernels.load()
        base = peak("self")
        all_bounds(self.instance, self.seconds)
        return Case(1, "process", base, peak("self"), footprint.of_process(self.instance))

    def instances(self) -> Case:
        """Draw an instance, and find a schedule of it."""
        kernels.load()
        base = peak("self")
        ask(self.instance, "heft", seconds=0).answer()
        return Case(
            self.vertices, "vertex", base, peak("self"), footprint.of_process(self.instance)
        )

    def cpsat(self) -> Case:
        """Solve with CP-SAT."""
        terms = model_terms(self.instance)
        estimate = footprint.of_cpsat(self.instance, terms, self.workers)
        return self._solved("cpsat", cpsat.alone, solve.WORKER, (terms, "term"), estimate)

    def milp(self) -> Case:
        """Solve as a MILP."""
        rows = program_rows(self.instance, Goal())
        estimate = footprint.of_milp(self.instance, rows)
        return self._solved("milp", registry.get("milp"), milp.WORKER, (rows, "row"), estimate)

    def _solved(
        self, name: str, method: Method, worker: str, size: tuple[int, str], estimate: int
    ) -> Case:
        kernels.load()
        process.expect(worker)
        started = process.shared(worker).worker
        assert started is not None
        pid = str(started.process.pid)
        base = calm(pid)
        method(self.instance, budget=Budget(self.seconds, self.workers))
        most = max(self.watch.peaks.get(pid, 0), peak(pid))
        return Case(*size, base, most, estimate)

    def crossings(self) -> Case:
        """Solve the linear programs of crossings, after those of a small instance."""
        kernels.load()
        all_bounds(drawn(50, 4), self.seconds)
        base, size = peak("self"), program_size(self.instance)
        crossings_bound(self.instance, self.seconds)
        estimate = footprint.of_crossings(self.instance, size)
        return Case(size, "crossing", base, peak("self"), estimate)

    def search(self) -> Case:
        """Search with a helper, first of a tiny instance."""
        return self._searched("search", footprint.of_search(self.instance, 2))

    def hybrid(self) -> Case:
        """Search with a helper, and a solver of parts for each of the two."""
        return self._searched("hybrid", footprint.of_hybrid(self.instance, 2))

    def _searched(self, method: str, estimate: int) -> Case:
        kernels.load()
        ask(drawn(50, 4), method, seconds=5, workers=2).answer()
        base = max(self.watch.peaks.values(), default=0)
        self.watch.peaks.clear()
        ask(self.instance, method, seconds=self.seconds, workers=2).answer()
        most = max(self.watch.peaks.values(), default=0)
        return Case(self.vertices, "vertex", base, most, estimate)


#: ``compiling`` is ``process`` with an empty cache.
_PARTS: dict[str, Callable[[Measurement], Case]] = {
    "process": Measurement.process,
    "instance": Measurement.instances,
    "cpsat": Measurement.cpsat,
    "milp": Measurement.milp,
    "crossings": Measurement.crossings,
    "search": Measurement.search,
    "hybrid": Measurement.hybrid,
    "compiling": Measurement.process,
}


def measure(part: str, vertices: int, devices: int, seconds: float, workers: int) -> None:
    """Print the row of one case."""
    case = Measurement(vertices, devices, seconds, workers)
    found = _PARTS[part](case)
    case.watch.ended.set()
    held = peak("self") + sum(case.watch.peaks.values())
    each = (found.peak - found.base) / found.size
    print(
        f"{part:10}{vertices:>9,}{devices:>8}{found.size:>10,} {found.unit:9}"
        f"{found.base / _MIB:>7.0f}{found.peak / _MIB:>7.0f}{each:>13,.0f}"
        f"{held / _MIB:>7.0f}{found.estimate / _MIB:>9.0f}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        "memory", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    quick = list(dict.fromkeys(part for part, *_ in _CASES if part not in _SLOW))
    parser.add_argument("--parts", default=",".join(quick))
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        part, vertices, devices = given.one
        measure(part, int(vertices), int(devices), given.seconds, given.workers)
        return
    one = [sys.executable, __file__, "--one"]
    # What is not kept from an earlier run is compiled now: it would count as the work's memory.
    for part in ("process", "cpsat", "search"):
        first = [*one, part, "200", "4", "--seconds", "3"]
        subprocess.run(first, check=True, stdout=subprocess.DEVNULL)
    print(
        f"{'part':10}{'vertices':>9}{'devices':>8}{'size':>10} {'unit':9}{'base':>7}{'peak':>7}"
        f"{'each (bytes)':>13}{'all':>7}{'estimate':>9}  MiB",
        flush=True,
    )
    parts = given.parts.split(",")
    rest = ["--seconds", str(given.seconds), "--workers", str(given.workers)]
    for part, vertices, devices in _CASES:
        if part not in parts:
            continue
        command = [*one, part, str(vertices), str(devices), *rest]
        with TemporaryDirectory() as folder:
            cache = {"OPTPART_MACHINE_CODE": folder} if part in _SLOW else {}
            subprocess.run(command, check=True, env={**os.environ, **cache})


if __name__ == "__main__":
    main()
