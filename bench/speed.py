"""Measure the speed of the compiled parts, and of the HEFT of another library.

``python bench/speed.py [--peer] [-o FILE]`` prints a table of median and least times. Times are of
one process after compilation unless the row says otherwise. ``--peer`` adds the HEFT of SAGA on the
same graph and cluster in the same run, with both makespans; it needs
``pip install anrg-saga==2.1.0`` (Python 3.12 or newer).
"""

from __future__ import annotations

import argparse
import logging
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from functools import partial
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench.output import machine
from optpart.base.errors import InputError
from optpart.base.files import ANY, write_text
from optpart.interop.formats import native
from optpart.interop.generate import thesis
from optpart.interop.generate.cluster import drawn_cluster
from optpart.interop.generate.layered import layered
from optpart.interop.generate.small import small
from optpart.kernels.tasks import tasks
from optpart.lower_bounds.best import all_bounds
from optpart.methods import registry
from optpart.problem.cluster import Cluster, Device
from optpart.problem.instance import Instance
from optpart.solution.schedule import retime
from optpart.strategies.base import Partition
from optpart.strategies.partition.heft import heft, insertion
from optpart.strategies.scheduling.pct import pct
from optpart.strategies.simulator import execute
from optpart.study import library

PEER = "anrg-saga"
PEER_VERSION = "2.1.0"

ROOT = Path(__file__).resolve().parent.parent
#: Instances of others that a checkout may have beside it.
NEIGHBOURS = ROOT.parent / "shared" / "instances"


class Row(NamedTuple):
    """One line of the table; ``limit`` is the limit for the median."""

    what: str
    seconds: list[float]
    limit: float | None = None


def measured(call: Callable[[], object], repeats: int) -> list[float]:
    """Run once to compile and fill the caches, and then measure."""
    call()
    return [seconds(call) for _ in range(repeats)]


def seconds(call: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    begin = clock()
    call()
    return clock() - begin


# --- simulation --------------------------------------------------------------------------------


def simulation(instance: Instance, limit: float) -> Row:
    """Tasks, priorities and event loop, for placements like those that a local search visits."""
    rng = np.random.default_rng(0)
    partitions = moved(instance, heft(instance, rng), 100, rng)

    def run(partition: Partition) -> None:
        work = tasks(instance, partition.placement)
        execute(work, pct(work, partition, rng))

    run(partitions[0])
    times = [seconds(partial(run, partition)) for _ in range(10) for partition in partitions]
    return Row(f"PCT simulation, {shown(instance)}", times, limit)


def moved(
    instance: Instance, partition: Partition, count: int, rng: np.random.Generator
) -> list[Partition]:
    """Return copies of a partition, with one assignment unit on a random device in each."""
    copies = []
    for _ in range(count):
        unit = int(rng.integers(len(instance.units)))
        placement = partition.placement.copy()
        placement[instance.units[unit]] = rng.choice(np.flatnonzero(instance.allowed[unit]))
        copies.append(Partition(placement))
    return copies


def shown(instance: Instance) -> str:
    return (
        f"{instance.name}: {instance.vertices:,} vertices, {len(instance.graph.edge_source):,} "
        f"edges, {instance.devices} devices"
    )


# --- HEFT --------------------------------------------------------------------------------------


def layered_instance() -> Instance:
    """3,000 vertices on 50 devices, without memory limits, device types and colocation."""
    graph = layered(
        1,
        levels=60,
        width=(20, 80),
        vertices=3000,
        level_edges=6000,
        level_limit=10,
        random_edges=3000,
    )
    return Instance(graph, drawn_cluster(1, 50), name="layered-3000")


def heft_row(instance: Instance, repeats: int, limit: float) -> Row:
    rng = np.random.default_rng(0)
    times = measured(lambda: heft(instance, rng), repeats)
    return Row(f"HEFT with insertion, {shown(instance)}", times, limit)


# --- files and processes --------------------------------------------------------------------


def reading(file: Path, repeats: int, limit: float) -> Row:
    return Row(f"reading {file.name}", measured(lambda: native.read(file), repeats), limit)


def apart(function: Callable[[], None], environment: Mapping[str, str] | None = None) -> list[str]:
    """Run a function of this file in a new process; return the words that it prints."""
    code = f"import speed; speed.{function.__name__}()"
    done = subprocess.run(
        [sys.executable, "-P", "-c", code],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent), **(environment or {})},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return done.stdout.split()


def run_everything() -> None:
    """Print the seconds of one run of all heuristics and bounds on a small instance."""
    instance = small(12, 3, seed=1, ccr=1, types=True, groups=True, memory="loose")

    def run() -> None:
        for name in registry.heuristics():
            registry.get(name)(instance)
        all_bounds(instance)

    print(seconds(run))


def compilation(repeats: int) -> list[Row]:
    empty, full = [], []
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as cache:
            empty += apart(run_everything, {"OPTPART_MACHINE_CODE": cache})
            full += apart(run_everything, {"OPTPART_MACHINE_CODE": cache})
    what = "all heuristics and bounds on 12 vertices, new process, cache of machine code"
    return [
        Row(f"{what} empty", [float(word) for word in empty], 15),
        Row(f"{what} full", [float(word) for word in full]),
    ]


def heft_memory() -> None:
    """Print the peak memory in MiB before and after HEFT on the largest graph."""
    instance = thesis.instance(1, seed=1)
    before = peak_memory()
    heft(instance, np.random.default_rng(0))
    print(before, peak_memory())


def peak_memory() -> int:
    """Return the peak resident memory of this process in MiB.

    Linux counts it from the start of the program; ``ru_maxrss`` would inherit the parent's.
    """
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM:"))


def help_row(repeats: int) -> Row:
    command = [str(Path(sys.executable).with_name("optpart")), "--help"]

    def run() -> None:
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

    return Row("optpart --help, new process", measured(run, repeats))


# --- the peer ----------------------------------------------------------------------------------


def peer(instance: Instance) -> Iterator[str]:
    """Compare with the HEFT of SAGA; yield lines."""
    try:
        found = version(PEER)
    except PackageNotFoundError:
        yield f"SAGA is not installed: pip install {PEER}=={PEER_VERSION} (Python 3.12 or newer)"
        return
    logging.disable(logging.WARNING)  # SAGA says that it adds a source and a sink
    saga, strategy = import_module("saga"), import_module("saga.schedulers.heft")
    network, graph = saga_network(saga, instance.cluster), saga_graph(saga, instance)
    schedules: list[Any] = []
    theirs = seconds(
        lambda: schedules.append(strategy.HeftScheduler().schedule(network, graph)),
        time.process_time,
    )
    rng, repeats = np.random.default_rng(0), 100
    partition = heft(instance, rng)
    ours = seconds(lambda: [heft(instance, rng) for _ in range(repeats)], time.process_time)
    ours /= repeats
    placement, order = from_saga(instance, schedules[0])
    of_saga = retime(instance, placement, order).makespan(instance)
    # In SAGA's order of vertices and of devices what is left to differ is the insertion.
    devices = [instance.cluster.index[node.name] for node in network.nodes]
    rank = saga_rank(instance, strategy.heft_rank_sort(network, graph))
    replayed = insertion(reordered(instance, devices), rank)
    replayed = replayed._replace(placement=np.array(devices, np.int32)[replayed.placement])
    alike = int((replayed.placement == placement).sum())
    yield f"HEFT of SAGA {found} and of optpart, {shown(instance)}"
    yield f"  CPU seconds:                {theirs:.4f} and {ours:.4f}, {theirs / ours:.0f} times"
    yield f"  makespans, timed exactly:   {pair(of_saga, makespan(instance, partition))}"
    yield f"  optpart in SAGA's order:    {pair(of_saga, makespan(instance, replayed))}"
    yield f"                              {alike} of {instance.vertices} vertices placed alike"
    yield "  The orders differ: SAGA ranks by mean times over devices and links (those within a"
    yield "  device included), optpart by mean speed and bandwidth ([L] eq. 4.1, 4.2). Of devices"
    yield "  that finish equally early SAGA takes the first in a hash order that changes by run."


def makespan(instance: Instance, partition: Partition) -> Fraction:
    assert partition.order is not None
    return retime(instance, partition.placement, partition.order).makespan(instance)


def pair(theirs: Fraction, ours: Fraction) -> str:
    return f"{float(theirs):.4f} and {float(ours):.4f}, {float(ours / theirs - 1):+.2%}"


def saga_network(saga: Any, cluster: Cluster) -> Any:
    k = len(cluster)
    return saga.Network.create(
        zip(cluster.names, cluster.speed.floats.tolist(), strict=True),
        [
            (cluster.names[d], cluster.names[e], float(cluster.bandwidth[d, e]))
            for d in range(k)
            for e in range(d + 1, k)
        ],
    )


def saga_graph(saga: Any, instance: Instance) -> Any:
    graph = instance.graph
    size = graph.tensor_size.floats[graph.edge_tensor].tolist()
    edges = zip(graph.edge_source.tolist(), graph.edge_target.tolist(), size, strict=True)
    return saga.TaskGraph.create(
        zip(graph.names, graph.ops.floats.tolist(), strict=True),
        [(graph.names[u], graph.names[v], s) for u, v, s in edges],
    )


def from_saga(instance: Instance, schedule: Any) -> tuple[NDArray[np.int32], list[int]]:
    """Return placement and order of a schedule of SAGA, without the vertices that it added."""
    index = instance.graph.index
    placement, start = np.empty(instance.vertices, np.int32), np.empty(instance.vertices)
    for node, placed in schedule.items():
        for task in placed:
            if task.name in index:
                placement[index[task.name]] = instance.cluster.index[node]
                start[index[task.name]] = task.start
    return placement, np.argsort(start, kind="stable").tolist()


def saga_rank(instance: Instance, names: list[str]) -> NDArray[np.float64]:
    """Return a rank that puts the vertices into the order of their names."""
    index = instance.graph.index
    rank = np.empty(instance.vertices)
    rank[[index[name] for name in names if name in index]] = -np.arange(instance.vertices)
    return rank


def reordered(instance: Instance, devices: list[int]) -> Instance:
    """Return the instance with its devices in another order."""
    cluster = instance.cluster
    return Instance(
        instance.graph,
        Cluster.of(
            [Device(cluster.names[d], cluster.speed[d]) for d in devices],
            [[cluster.bandwidth[d, e] for e in devices] for d in devices],
        ),
    )


# --- the report --------------------------------------------------------------------------------


def line(row: Row) -> str:
    median, least = statistics.median(row.seconds), min(row.seconds)
    limit = "" if row.limit is None else milliseconds(row.limit)
    kept = "" if row.limit is None else "yes" if median <= row.limit else "NO"
    times = f"{milliseconds(median):>10} {milliseconds(least):>10} {len(row.seconds):>8}"
    return f"{times} {limit:>10} {kept:>5}  {row.what}"


def milliseconds(value: float) -> str:
    return f"{value * 1e3:.3f}" if value < 1 else f"{value * 1e3:.0f}"


def report(with_peer: bool) -> Iterator[str]:
    yield machine("optpart", "numba", "numpy")
    yield ""
    yield f"{'median ms':>10} {'least ms':>10} {'repeats':>8} {'limit ms':>10} {'kept':>5}"
    for name, limit in (("convolutional_network-50", 0.06e-3), ("dynamic_rnn-50", 1e-3)):
        for load in (
            partial(library.load, name),
            partial(native.read, NEIGHBOURS / f"{name}-1.json"),
        ):
            try:
                yield line(simulation(load(), limit))
            except InputError as error:
                yield f"skipped: {error}"
    try:
        yield line(reading(NEIGHBOURS / "dynamic_rnn-50-1.json", 10, 0.3))
    except InputError as error:
        yield f"skipped: {error}"
    compared = layered_instance()
    yield line(heft_row(compared, 50, 0.1))
    yield line(heft_row(thesis.instance(1, seed=1), 10, 3))
    try:
        yield line(help_row(5))
    except (OSError, subprocess.CalledProcessError) as error:
        yield f"optpart --help: {error}"
    for row in compilation(3):
        yield line(row)
    yield ""
    try:
        before, after = apart(heft_memory)
        yield f"peak memory of a process with thesis-1: {before} MiB before HEFT, {after} MiB after"
    except subprocess.CalledProcessError as error:
        yield f"peak memory: {error}"
    if with_peer:
        yield ""
        yield from peer(compared)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--peer", action="store_true", help="compare with the HEFT of SAGA")
    parser.add_argument("-o", "--output", type=Path, help="write the table to a file, too")
    options = parser.parse_args()
    lines = []
    for text in report(options.peer):
        print(text, flush=True)
        lines.append(text)
    if options.output is not None:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        write_text(options.output, "\n".join(lines) + "\n", ANY)


if __name__ == "__main__":
    main()
