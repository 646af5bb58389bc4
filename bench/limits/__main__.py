"""How far the wall time of every command exceeds its time limit.

    python bench/limits [--vertices 10,1000] [--limits 2,10] [--workers 1,2] [--cache warm,empty]
                        [--methods auto,heft] [--commands solve,bound,gap]

Every row is a command as a user types it, measured from outside: from the start of the process to
its end, with imports, reading, verifying and printing. With an ``empty`` cache there is no machine
code at all, in a folder of its own; what is then compiled behind the command is ended after it. The
instances are layered graphs with two edges a vertex on ten devices.

A limit is kept if the wall exceeds it by at most a tenth or one second, whichever is more; other
rows are marked ``LATE``. ``gap`` has its limit once for the reference and once for every method
that is no heuristic, ``certify`` once for the schedule and once for the proof, ``strategy compare``
once for each of three methods that use all of it. The last lines name the worst row of all and that
of every command. Without options, this takes about two hours.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[2]))

from optpart import Instance
from optpart.interop.formats import native
from optpart.interop.generate.cluster import drawn_cluster
from optpart.interop.generate.layered import layered
from optpart.kernels import store
from optpart.methods import registry

#: Slower than its limit by at most this share, or these seconds.
SHARE, SECONDS = 0.1, 1.0

#: A heuristic of every kind of order, and everything that solves; `--methods all` takes every one.
METHODS = "auto,cpsat,search,hybrid,series,milp,heft,contiguous-split,hash+pct"


class Row(NamedTuple):
    """A command, and how often it spends its limit."""

    arguments: list[str]
    times: int = 1


def drawn(vertices: int, devices: int = 10) -> Instance:
    """Draw the instance of a size."""
    graph = layered(
        1,
        levels=max(5, vertices // 100),
        width=(1, max(200, vertices)),
        vertices=vertices,
        level_edges=3 * vertices // 2,
        level_limit=20,
        random_edges=vertices // 4,
    )
    return Instance(graph, drawn_cluster(1, devices), name=f"layered-{vertices}")


def every_method() -> list[str]:
    """Name all solvers, and a method for every registered strategy."""
    return [
        *(name for name, row in registry.METHODS.items() if row.available),
        *(name for name in registry.ORDERED if not registry.PARTITIONERS[name].special),
        *(
            f"{name}+pct"
            for name, row in registry.PARTITIONERS.items()
            if row.available and name not in registry.ORDERED
        ),
        *(f"hash+{name}" for name in registry.SCHEDULERS),
    ]


def rows(chosen: list[str], methods: list[str], file: str, workers: int) -> Iterator[Row]:
    """Yield the commands of an instance; those that have no workers run with one only."""
    shared = ["--workers", str(workers)]
    if "solve" in chosen:
        for method in methods:
            yield Row(["solve", file, "-m", method, *shared])
    if "certify" in chosen:
        yield Row(["certify", file, "-o", "certificate", *shared], 2)
    if "gap" in chosen:
        yield Row(["gap", file, "-m", "heft", *shared])
        yield Row(["gap", file, "-m", "search", *shared], 2)
    if workers > 1:
        return
    if "bound" in chosen:
        yield Row(["bound", file])
    if "strategy" in chosen:
        for command, times in (("solve", 1), ("bound", 1), ("compare", 3)):
            given = ["vgg19", "--cluster", "heterog-8", "--batch", "96"]
            yield Row(["strategy", command, *given], times)
    if "reduce" in chosen:
        yield Row(["reduce", "three-partition", "--random", "8"])


def measured(row: Row, limit: float, code: str | None) -> tuple[float, str]:
    """Run a command; return its wall time and the first line that it printed."""
    variables = os.environ | ({} if code is None else {store.VARIABLE: code})
    command = [sys.executable, "-P", "-m", "optpart", *row.arguments, "--time-limit", f"{limit:g}"]
    with TemporaryDirectory() as folder:
        begin = time.perf_counter()
        run = subprocess.run(
            command, cwd=folder, env=variables, text=True, capture_output=True, check=False
        )
        seconds = time.perf_counter() - begin
    said = (run.stdout or run.stderr).strip().splitlines() or [f"code {run.returncode}"]
    return seconds, said[0]


def end_compiling(code: str) -> None:
    """End the processes that compile into a folder."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            environment = (process / "environ").read_bytes()
        except OSError:
            continue
        if f"{store.VARIABLE}={code}".encode() in environment and int(process.name) != os.getpid():
            os.kill(int(process.name), signal.SIGKILL)


def main() -> None:
    parser = argparse.ArgumentParser(
        "limits", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--vertices", default="10,100,1000,10000,100000")
    parser.add_argument("--limits", default="2,10")
    parser.add_argument("--workers", default="1,2")
    parser.add_argument("--cache", default="warm,empty")
    parser.add_argument("--methods", default=METHODS)
    parser.add_argument("--commands", default="solve,certify,gap,bound,strategy,reduce")
    given = parser.parse_args()
    methods = every_method() if given.methods == "all" else given.methods.split(",")
    worst: dict[str, tuple[float, str]] = {}
    print(f"{'command':58}{'workers':>8}{'cache':>7}{'limit':>7}{'wall':>8}{'over':>8}", flush=True)
    with TemporaryDirectory() as folder:
        for vertices, workers, cache, limit in product(
            given.vertices.split(","),
            map(int, given.workers.split(",")),
            given.cache.split(","),
            map(float, given.limits.split(",")),
        ):
            file = Path(folder) / f"layered-{vertices}.json"
            if not file.exists():
                native.write(drawn(int(vertices)), file)
            for number, row in enumerate(
                rows(given.commands.split(","), methods, str(file), workers)
            ):
                code = (
                    None if cache == "warm" else f"{folder}/{vertices}-{workers}-{limit}-{number}"
                )
                seconds, said = measured(row, limit, code)
                if code is not None:
                    end_compiling(code)
                over = seconds - row.times * limit
                mark = "LATE" if over > max(SHARE * row.times * limit, SECONDS) else ""
                name = (
                    " ".join(row.arguments)
                    .replace(f"{folder}/", "")
                    .removesuffix(f" --workers {workers}")
                )
                line = f"{name:58}{workers:>8}{cache:>7}{limit:>7g}{seconds:>8.2f}{over:>8.2f}"
                print(f"{line}  {mark:5} {said[:70]}", flush=True)
                kind = row.arguments[0]
                worst[kind] = max(worst.get(kind, (over, line)), (over, line))
    for over, line in sorted(worst.values(), reverse=True):
        print(f"worst: {line}" if over > 0 else f"never late: {line}")


if __name__ == "__main__":
    main()
