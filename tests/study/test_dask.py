"""Sweeps over the processes of a Dask cluster, some of which die."""

from __future__ import annotations

import csv
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from optpart import Budget, InputError, Instance
from optpart.cli import main
from optpart.methods import cluster as clusters
from optpart.methods import cluster as module
from optpart.methods import registry
from optpart.methods.parts import TABLES
from optpart.study import engine, library
from optpart.study.engine import DaskEngine, choose
from optpart.study.gap import Comparison, sweep
from optpart.study.run import Run
from optpart.study.store import Store

BUDGET = Budget(seconds=5, workers=1)

#: Methods of a user's own, installed as a plug-in, so that worker processes know them as well.
METHODS = """
import os, signal, time
from pathlib import Path
from optpart.methods import registry

here = Path(__file__).parent

def log(seed, method):
    with open(here / "log", "a") as stream:
        stream.write(f"{seed} {os.getpid()} {method}\\n")

def steady(instance, *, seed=0, **_):
    log(seed, "steady")
    time.sleep(0.1)
    return registry.get("heft")(instance, seed=seed)

def waits(instance, *, seed=0, **_):
    "Seed 2 does not end before the test says so."
    log(seed, "waits")
    for _ in range(600):
        if seed != 2 or (here / "go").exists():
            break
        time.sleep(0.05)
    return registry.get("heft")(instance, seed=seed)

def deadly(instance, *, seed=0, **_):
    log(seed, "deadly")
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def plug_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "plug-in"
    info = folder / "plug_in_of_a_test-1.0.dist-info"
    info.mkdir(parents=True)
    (folder / "plug_in_of_a_test.py").write_text(METHODS)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plug-in-of-a-test\nVersion: 1.0\n")
    points = "".join(f"{m} = plug_in_of_a_test:{m}\n" for m in ("steady", "waits", "deadly"))
    (info / "entry_points.txt").write_text(f"[optpart.methods]\n{points}")
    (folder / "log").touch()
    paths = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    monkeypatch.syspath_prepend(str(folder))
    return folder


def logged(plug_in: Path, method: str = "") -> list[tuple[int, int]]:
    """Return seed and process of each run that was started, of one method or of all."""
    lines = [line.split() for line in (plug_in / "log").read_text().split("\n")[:-1]]
    return [(int(seed), int(pid)) for seed, pid, name in lines if name.startswith(method)]


@pytest.fixture
def instance() -> Instance:
    return library.load("laich-2.5")


Cluster = Callable[..., AbstractContextManager[Any]]


@pytest.fixture
def cluster() -> Cluster:
    distributed = pytest.importorskip("distributed", reason="needs optpart[dask]")
    return lambda **options: distributed.LocalCluster(
        **{"threads_per_worker": 1, "dashboard_address": None, "silence_logs": 50, **options}
    )


def address(cluster: Any) -> str:
    return f"dask://{cluster.scheduler_address.removeprefix('tcp://')}"


@pytest.fixture
def killer(plug_in: Path) -> Iterator[list[int]]:
    """Kill the process that first starts seed 2, then let seed 2 finish wherever it is repeated."""
    killed: list[int] = []

    def kill() -> None:
        while not killed and not over.is_set():
            killed.extend(pid for seed, pid in logged(plug_in) if seed == 2)
            time.sleep(0.02)
        for pid in killed:
            os.kill(pid, signal.SIGKILL)
        (plug_in / "go").touch()

    over = threading.Event()
    thread = threading.Thread(target=kill)
    thread.start()
    yield killed
    over.set()
    thread.join()


def test_a_sweep_survives_a_killed_worker(
    cluster: Cluster, plug_in: Path, killer: list[int], instance: Instance
) -> None:
    with cluster(n_workers=2) as two:
        engine = choose(address(two), 1)
        (comparison,) = sweep(
            [instance], ["waits", "heft"], budget=BUDGET, seeds=range(6), engine=engine
        )
    assert [(r.method, r.seed, r.makespan) for r in comparison.results] == [
        (method, seed, Fraction(14)) for method in ("waits", "heft") for seed in range(6)
    ]
    tried = [pid for seed, pid in logged(plug_in) if seed == 2]
    assert len(tried) == 2
    assert tried[0] == killer[0] != tried[1]
    assert comparison.reference.kind == "optimum"


def test_a_run_that_kills_its_workers_fails_after_a_few_attempts(
    cluster: Cluster, plug_in: Path, instance: Instance, tmp_path: Path
) -> None:
    def swept() -> Comparison:
        with Store(tmp_path / "runs.db") as store:
            engine = choose("dask", 1)
            names = ["deadly", "steady"]
            (comparison,) = sweep([instance], names, budget=BUDGET, engine=engine, store=store)
        return comparison

    deadly, steady = swept().results
    assert (deadly.makespan, deadly.reason) == (None, "failed: 3 workers died while executing it")
    assert steady.makespan == 14
    begun = logged(plug_in)
    assert len(logged(plug_in, "deadly")) == 3
    assert [result.makespan for result in swept().results] == [None, 14]
    assert logged(plug_in) == begun


def test_a_run_blamed_for_the_deaths_of_another_is_retried_alone(
    monkeypatch: pytest.MonkeyPatch, cluster: Cluster, instance: Instance
) -> None:
    given_up = iter([5, 0])  # how many workers died before Dask gave up: first, then alone
    document = DaskEngine._document
    monkeypatch.setattr(
        DaskEngine, "_document", lambda self, future: next(given_up) or document(self, future)
    )
    with cluster(n_workers=1, processes=False, protocol="tcp") as one:
        run = Run(instance, "heft", 0, BUDGET)
        ((_, result),) = choose(address(one), 1)([run], None)
    assert result.makespan == 14


@pytest.mark.parametrize("sent", ["{", "{}", "null"])
def test_an_invalid_result_of_a_worker_fails_its_run_only(
    monkeypatch: pytest.MonkeyPatch, cluster: Cluster, instance: Instance, sent: str
) -> None:
    monkeypatch.setattr(DaskEngine, "_document", lambda *_: sent)
    with cluster(n_workers=1, processes=False, protocol="tcp") as one:
        run = Run(instance, "heft", 0, BUDGET)
        ((_, result),) = choose(address(one), 1)([run], None)
    assert (result.makespan, result.refused) == (None, True)
    assert result.reason.startswith("failed: a worker sent an invalid result")


def test_a_killed_sweep_resumes_and_repeats_nothing(
    cluster: Cluster, plug_in: Path, tmp_path: Path
) -> None:
    arguments = ["gap", "laich-2.5", "-m", "steady", "--seeds", "8", "--workers", "1"]
    arguments += ["--engine", "dask", "--store", str(tmp_path / "runs.db"), "--csv"]
    command = [sys.executable, "-P", "-c", "from optpart.cli import main; main()", *arguments]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as begun:
        while len(kept(tmp_path)) < 3 and begun.poll() is None:
            time.sleep(0.02)
        begun.kill()
    time.sleep(0.5)  # the workers of the killed one end what they are at, or do not
    first, done = logged(plug_in), kept(tmp_path)
    finished = subprocess.run(command, capture_output=True, text=True, check=True)
    second = [seed for seed, _ in logged(plug_in)[len(first) :]]
    assert 3 <= len(done) < 8
    assert sorted([*done, *second]) == list(range(8))
    (row,) = csv.DictReader(finished.stdout.splitlines())
    assert (row["method"], row["seeds"], row["solved"]) == ("steady", "8", "8")
    assert row["makespan_best"] == row["makespan_mean"] == "14"


def kept(folder: Path) -> list[int]:
    """Return the seeds of the method "steady" in the store of a sweep."""
    with suppress(sqlite3.OperationalError), closing(sqlite3.connect(folder / "runs.db")) as rows:
        return [seed for (seed,) in rows.execute("SELECT seed FROM run WHERE method = 'steady'")]
    return []


def refused(engine: str, instance: Instance, method: str = "heft") -> str:
    with pytest.raises(InputError) as fault:
        list(sweep([instance], [method], budget=BUDGET, engine=choose(engine, 1)))
    assert "\n" not in str(fault.value)
    return str(fault.value)


class TestOneLine:
    """Errors that the user can fix; tests/methods/test_dask_cluster.py has those of connecting."""

    def test_workers_with_several_runs_per_process(
        self, cluster: Cluster, instance: Instance
    ) -> None:
        with cluster(n_workers=1, threads_per_worker=2, processes=False, protocol="tcp") as one:
            message = refused(address(one), instance)
        assert "would slow each other; start them with" in message

    def test_a_method_that_no_worker_has(self, cluster: Cluster, instance: Instance) -> None:
        with cluster(n_workers=1, processes=False, protocol="tcp") as one:
            message = refused(address(one), instance, "unknown")
        assert "lacks a method: no method 'unknown'" in message


def test_a_worker_that_cannot_be_used_is_named_and_gets_no_runs(
    cluster: Cluster, instance: Instance, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    asked: list[str] = []
    fault = module.Cluster._fault

    async def first_is_old(self: module.Cluster, worker: str) -> str:
        asked.append(worker)
        return "has optpart 0.1" if worker == asked[0] else await fault(self, worker)

    monkeypatch.setattr(module.Cluster, "_fault", first_is_old)
    with cluster(n_workers=2, processes=False, protocol="tcp") as two:
        engine = choose(address(two), 1)
        (comparison,) = sweep([instance], ["heft"], budget=BUDGET, seeds=range(4), engine=engine)
        busy = [
            worker.address for worker in two.workers.values() if worker.state.transition_counter
        ]
    assert [result.makespan for result in comparison.results] == [14] * 4
    assert busy == [asked[1]]
    assert f"not used: {asked[0]} has optpart 0.1" in caplog.text


OWN = """
from optpart import conclude, register, retime

BASE = 0

@register("mine", kind="partitioner")
def mine(instance, rng):
    return [BASE] * instance.vertices

@register("all-on-first")
def all_on_first(instance, *, budget=None, seed=0, start=None, watch=None):
    order = instance.graph.topological_order.tolist()
    return conclude(instance, "all-on-first", retime(instance, mine(instance, None), order))
"""


def test_workers_know_what_a_file_has_registered(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    (tmp_path / "mine.py").write_text(OWN)
    found = []
    for name in ("local", "dask"):
        for table in TABLES.values():
            table.added.clear()
        argv = f"optpart --plugin {tmp_path}/mine.py gap heft-10 -m mine+pct -m all-on-first --csv"
        monkeypatch.setattr(sys, "argv", [*argv.split(), "--engine", name, "--time-limit", "5"])
        with pytest.raises(SystemExit) as end:
            main()
        assert not end.value.code
        rows = csv.DictReader(capsys.readouterr().out.splitlines())
        found.append([(row["method"], row["status"], row["makespan"]) for row in rows])
    assert found[0] == found[1]
    assert [makespan for _, _, makespan in found[1]] == ["127", "127"]


def test_a_worker_takes_over_what_the_latest_sweep_has_registered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cloudpickle = pytest.importorskip("cloudpickle", reason="needs optpart[dask]")
    monkeypatch.setattr(clusters, "_taken", {})
    placed = []
    for device in (0, 1):
        rows = [("partitioner", "mine", lambda i, rng, d=device: [d] * i.vertices, "")]
        clusters._take_over(cloudpickle.dumps(rows))
        clusters._take_over(cloudpickle.dumps(rows))
        instance = library.load("laich-2.5")
        placed.append(registry.partitioner("mine")(instance, None).placement.tolist()[0])
    assert placed == [0, 1]
    clusters._take_over(b"")
    assert registry.registered() == []


def test_what_cannot_be_sent_is_one_line(instance: Instance) -> None:
    pytest.importorskip("cloudpickle", reason="needs optpart[dask]")
    lock = threading.Lock()
    registry.register("locked")(lambda *_, **__: lock)
    with pytest.raises(InputError, match="cannot be sent to workers"):
        engine._packed()
