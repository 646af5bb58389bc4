"""Mutated files over all readers: is each read, or refused in one short line that names it?"""

from __future__ import annotations

import dataclasses
import json
import random
import shutil
import warnings
import zipfile
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cache
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from bench.soak.damage import damaged
from bench.soak.runs import FailedError
from optpart.api import sweep
from optpart.applications.ordering import oracle
from optpart.applications.reductions.base import read_source
from optpart.applications.reductions.catalogue import REDUCTIONS
from optpart.applications.training import cluster_file, graph_file, profile, strategy_file
from optpart.applications.training.opening import open_model
from optpart.applications.training.readers import amp
from optpart.applications.training.strategy_file import Reading
from optpart.base.errors import FaultsOf, OptpartError
from optpart.exact.enumeration import enumerate_all
from optpart.exact.pipeline.throughput import read_throughput
from optpart.interop.costs import calibration, efficiency
from optpart.interop.costs.from_csv import from_csv
from optpart.interop.formats import (
    calibration_toml,
    cluster_toml,
    native,
    nsys,
    ort_memory,
    ort_profile,
    result,
    thesis_csv,
    times_csv,
    torch_profile,
    wfformat,
)
from optpart.interop.formats.detect import read_instance, read_workload
from optpart.problem.graph import Graph, GraphBuilder
from optpart.problem.instance import Instance
from optpart.problem.workload import Workload
from optpart.search import checkpoint
from optpart.search.layout import layout_of
from optpart.study.stored import read_runs
from optpart.testing.chains import cluster as training_cluster

SAMPLES = Path(__file__).parent / "samples"

#: Reads a file or a folder.
Read = Callable[[Path], object]

#: The longest message, the name of the file included.
MOST = 400


def case(number: int, folder: Path) -> str:
    """Damage a sample, and read it twice."""
    readers = all_readers()
    name, read = readers[number % len(readers)]
    path = _damaged(name, number, folder)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nobody should see those of a library
        first = _outcome(read, path)
        again = _outcome(read, path)
    if first != again:
        raise FailedError(f"{name}: not the same twice: {first[:150]} and {again[:150]}")
    return "refused" if first.startswith("refused: ") else "accepted"


def _training_cluster(path: Path) -> object:
    with FaultsOf(path):  # as commands do
        return cluster_file.training_cluster(cluster_file.read(path))


def _outcome(read: Read, path: Path) -> str:
    """Return everything that was read, or the message of the refusal."""
    try:
        found = read(path)
    except OptpartError as error:
        message = str(error)
        if "\n" in message or len(message) > MOST or not _names(message, path):
            raise FailedError(f"a message of {len(message)} characters: {message}") from error
        return f"refused: {message}"
    if isinstance(found, Instance):
        again = path.parent / "again.json"
        native.write(found, again)
        if native.read(again) != found:
            raise FailedError("an instance that its own file does not give back")
    return everything(found)


def _names(message: str, path: Path) -> bool:
    """Return whether a message names the file, one beside it or in it, or one read with it."""
    there = (path, *path.parent.rglob("*"), SAMPLES / "graph.csv")
    return str(path.parent) in message or any(each.name in message for each in there)


def everything(value: object, depth: int = 12) -> str:
    """Return a text that differs if anything in a value does."""
    if depth == 0:
        return "…"
    if isinstance(value, Workload | Instance) or dataclasses.is_dataclass(value):
        named = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}  # type: ignore[arg-type]
        return f"{type(value).__name__}{everything(named, depth - 1)}"
    if isinstance(value, np.ndarray):
        return f"{value.shape}{value.tolist()!r}"
    if isinstance(value, Mapping):
        return f"{[(repr(k), everything(v, depth - 1)) for k, v in value.items()]}"
    if isinstance(value, list | tuple):
        return f"{[everything(each, depth - 1) for each in value]}"
    return repr(value)


# --- damage ------------------------------------------------------------------------------------


def _damaged(name: str, number: int, folder: Path) -> Path:
    """Copy a sample into a folder, and damage it or one of its files."""
    source = SAMPLES / name
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if name in _MADE:
        path.write_bytes(_MADE[name]())
    elif source.is_dir():
        shutil.copytree(source, path)
    elif source.parent != SAMPLES:  # a file that needs those beside it
        shutil.copytree(source.parent, path.parent, dirs_exist_ok=True)
    else:
        shutil.copy(source, path)
    draw = random.Random(number)
    if path.is_dir():
        files = sorted(each for each in path.rglob("*") if each.is_file())
        target = draw.choice(files)
    else:
        target = path
        beside = [each for each in path.parent.iterdir() if each != path]
        if beside and draw.random() < 0.3:
            target = draw.choice(sorted(beside))
    content = target.read_bytes()
    if not draw.randrange(50):
        target.write_bytes(content)  # sound
    elif target.suffix == ".pt2" and draw.random() < 0.7:
        target.write_bytes(_in_archive(content, number, draw))
    elif target.suffix == ".safetensors" and draw.random() < 0.7:
        header = damaged(content[8:], number, draw)
        target.write_bytes(len(header).to_bytes(8, "little") + header)
    else:
        target.write_bytes(damaged(content, number, draw))
    return path


def _in_archive(content: bytes, number: int, draw: random.Random) -> bytes:
    out = BytesIO()
    with zipfile.ZipFile(BytesIO(content)) as old, zipfile.ZipFile(out, "w") as new:
        names = old.namelist()
        chosen = draw.choice([*(name for name in names if name.endswith(".json")), *names])
        for name in names:
            part = old.read(name)
            new.writestr(name, damaged(part, number, draw) if name == chosen else part)
    return out.getvalue()


# --- samples that are made, as their formats change ----------------------------------------------


@cache
def _tiny() -> Instance:
    return native.read(SAMPLES / "instance.json")


@cache
def _two() -> Graph:
    """Return the graph of the table of costs."""
    builder = GraphBuilder().vertex("a", 1, outputs=[1]).vertex("b", 1, outputs=[1])
    return builder.edge("a", "b").build()


@cache
def _store() -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder, "store.db")
        for _ in sweep([_tiny()], ["fastest+fifo", "enumerate"], store=path, seconds=5):
            pass
        return path.read_bytes()


@cache
def _checkpoint() -> bytes:
    best = enumerate_all(_tiny()).schedule
    assert best is not None
    with TemporaryDirectory() as folder:
        path = Path(folder, "state.json")
        checkpoint.write(path, _tiny(), checkpoint.Checkpoint(layout_of(_tiny(), best), 1.0, 10))
        return path.read_bytes()


def _source(name: str) -> Callable[[], bytes]:
    def make() -> bytes:
        reduction = REDUCTIONS[name]
        source = reduction.random(5, np.random.default_rng(1))
        return json.dumps({"problem": name, **reduction.document(source)}).encode()

    return cache(make)


_MADE = {
    "store.db": _store,
    "state.json": _checkpoint,
    **{f"{name}.source.json": _source(name) for name in REDUCTIONS},
}


# --- readers -----------------------------------------------------------------------------------


@cache
def all_readers() -> list[tuple[str, Read]]:
    """Return the samples with what reads them; several may read one."""
    instances = ("instance.json", "graph.gxl", "shop.jsp", "shop.fjs", "birgin.fjs",
                 "santiago.txt", "moirai.json", "dnn-partitioning.json")  # fmt: skip
    workloads = ("net.onnx", "net.pt2", "graph.pb", "graph.pbtxt", "llama.gguf", "workflow.json",
                 "safetensors/model.safetensors", "safetensors/model.safetensors.index.json",
                 "pipedream.txt", "graph.dot", "graph.graphml")  # fmt: skip
    names = ["conv1", "relu1", "view1"]
    graph = graph_file.read(SAMPLES / "training.json")
    devices = training_cluster(("a", "b"))
    two = SAMPLES / "training-cluster.toml"
    found: list[tuple[str, Read]] = [
        *((name, read_instance) for name in instances),
        *((name, read_workload) for name in workloads),
        ("tasks.stg", lambda path: read_instance(path, devices=2)),
        ("graph.csv", lambda path: thesis_csv.read(path, SAMPLES / "devices.csv")),
        ("devices.csv", lambda path: thesis_csv.read(SAMPLES / "graph.csv", path)),
        ("sailor", lambda path: read_workload(path, model="tiny", tensor_parallel=2)),
        ("workflow.json", lambda path: wfformat.read_instance(path, bandwidth="10 Gbit/s")[0]),
        ("pipedream.txt", lambda path: read_workload(path, training=True)),
        ("dnn-partitioning.json", read_throughput),
        ("result.json", lambda path: result.read_schedule(path, _tiny())),
        ("cluster.toml", cluster_toml.read_named),
        ("calibration.toml", calibration_toml.read),
        ("efficiencies.toml", efficiency.read),
        ("measurements.csv", calibration.read_measurements),
        ("costs.csv", lambda path: from_csv(_two(), path)),
        ("times.csv", lambda path: times_csv.read(path, "gpu")),
        ("measured.csv", oracle.read_times),
        ("ort-profile.json", ort_profile.read),
        ("ort-memory.csv", ort_memory.read),
        ("torch-profile.json", lambda path: torch_profile.read(path, names)),
        ("torch-profile.json", oracle.read_times),
        ("nsys.sqlite", lambda path: nsys.read(path, names)),
        ("training.json", graph_file.read),
        ("training-costs.json", profile.read),
        ("training-cluster.toml", _training_cluster),
        ("strategy.json", lambda path: strategy_file.read(path, graph, devices)),
        ("amp/gpt2_P3_2.npy", lambda path: amp.read({"a": path}, amp.SIZES["gpt2"])),
        ("net.onnx", lambda path: open_model(path, "heterog-4", Reading(samples=2))),
        ("pipedream.txt", lambda path: open_model(
            path, two, Reading(samples=4, slowness={"a": Fraction(1), "b": Fraction(3, 2)}))),
        ("store.db", read_runs),
        ("state.json", lambda path: checkpoint.read(path, _tiny())),
        *((f"{name}.source.json", lambda path, r=REDUCTIONS[name]: read_source(r, path))
          for name in REDUCTIONS),
    ]  # fmt: skip
    return found
