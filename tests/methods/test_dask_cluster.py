"""Solves over a Dask cluster: what is asked of it, and what a worker that dies costs."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from processes import PATIENCE, gone, wait_for

import optpart
from optpart import Budget, InputError, Status, verify
from optpart.base.children.worker import Channel, WorkerDiedError
from optpart.cli import main
from optpart.methods import cluster as module
from optpart.methods.cluster import Cluster, address, connected
from optpart.methods.fingerprint import fingerprint
from optpart.methods.search import search
from optpart.search.searcher_process import SearcherProcess
from optpart.solution.goal import Goal
from optpart.solution.result import Progress
from optpart.solution.termination import Termination
from optpart.testing.draw import draw_instance

CODES = {"search": fingerprint("search")}


class Workers:
    """A scheduler in this process, and worker processes."""

    def __init__(self, scheduler: Any, stack: ExitStack) -> None:
        self.address: str = scheduler.scheduler_address
        self._scheduler, self._stack = scheduler, stack

    def start(self, *folders: Path | None) -> list[subprocess.Popen[bytes]]:
        """Start a worker for each folder, in which it finds modules first."""
        here = Path(__file__).parents[1] / "base" / "children"
        command = [sys.executable, "-P", "-m", "distributed.cli.dask_worker", self.address]
        command += ["--no-nanny", "--nthreads", "1", "--no-dashboard", "--host", "127.0.0.1"]
        started = []
        for folder in folders:
            path = os.pathsep.join(str(place) for place in (folder, here) if place is not None)
            process = subprocess.Popen(
                command,
                env={**os.environ, "PYTHONPATH": path},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            self._stack.callback(process.wait)
            self._stack.callback(process.kill)
            started.append(process)
        wait_for(lambda: len(self._scheduler.scheduler.workers) == len(folders))
        return started


@pytest.fixture
def workers() -> Iterator[Workers]:
    distributed = pytest.importorskip("distributed", reason="needs optpart[dask]")
    options = {"n_workers": 0, "dashboard_address": None, "silence_logs": 50}
    with distributed.LocalCluster(**options) as scheduler, ExitStack() as stack:
        yield Workers(scheduler, stack)


@contextmanager
def in_process(**options: Any) -> Iterator[str]:
    """Start a scheduler and a worker in this process; yield the address."""
    distributed = pytest.importorskip("distributed", reason="needs optpart[dask]")
    given = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "protocol": "tcp"}
    quiet = {"dashboard_address": None, "silence_logs": 50}
    with distributed.LocalCluster(**{**given, **quiet, **options}) as cluster:
        yield cluster.scheduler_address


def refused(engine: str) -> str:
    """Return the one line of an engine that cannot be used."""
    with pytest.raises(InputError) as fault, connected(address(engine) or "", 1, CODES) as cluster:
        cluster.take(1)
    assert "\n" not in str(fault.value)
    return str(fault.value)


# --- processes there -----------------------------------------------------------------------------


def hired(cluster: Cluster, count: int) -> list[Channel]:
    cluster.take(count)
    return [cluster.hire("echo") for _ in range(count)]


def test_messages_pass_and_who_dies_is_named(workers: Workers) -> None:
    processes = workers.start(None, None)
    with connected(workers.address, 0, CODES) as cluster:
        one, other = hired(cluster, 2)
        for number in range(3):
            one.send(number)
        assert [one.receive(PATIENCE) for _ in range(3)] == [0, 1, 2]
        one.send(("die", 9))
        with pytest.raises(WorkerDiedError, match=r"at tcp://127.0.0.1:\d+ died \(signal 9\)"):
            one.receive(PATIENCE)
        for process in processes:
            process.kill()
        with pytest.raises(WorkerDiedError, match=r"at tcp://127.0.0.1:\d+ was lost"):
            other.receive(PATIENCE)


def test_a_process_ends_when_it_is_stopped_and_with_the_client(workers: Workers) -> None:
    workers.start(None)
    pids = []
    with connected(workers.address, 0, CODES) as cluster:
        for stop in (True, False):
            (worker,) = hired(cluster, 1)
            worker.send("pid")
            pids.append(int(str(worker.receive(PATIENCE))))
            if stop:
                worker.stop()
                wait_for(lambda: gone(pids[0]))
    wait_for(lambda: gone(pids[1]))


def test_who_finds_no_place_is_dead_at_once(workers: Workers) -> None:
    workers.start(None)
    with connected(workers.address, 0, CODES) as cluster:
        (worker,) = hired(cluster, 1)
        with pytest.raises(WorkerDiedError, match="found no place"):
            cluster.hire("echo").receive(PATIENCE)
        worker.stop()
        assert cluster.hire("echo", threads=2).threads == 1


# --- one search ----------------------------------------------------------------------------------


def test_workers_killed_at_random_cost_their_share_only(
    workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    instance = draw_instance(5, "link", "none", vertices=80, devices=4)
    goal = Goal(objective="lexicographic")  # which nobody can prove here
    processes = workers.start(None, None, None)
    helpers: list[SearcherProcess] = []
    born = SearcherProcess.__init__

    def noted(self: SearcherProcess, *given: Any) -> None:
        helpers.append(self)
        born(self, *given)

    monkeypatch.setattr(SearcherProcess, "__init__", noted)
    rng = np.random.default_rng(0)
    steps = sorted(rng.integers(0, 20, 3).tolist())
    doomed = rng.permutation(3).tolist()

    def watch(step: Progress) -> None:
        """Kill the next one after some steps, and stop when all deaths are known."""
        nonlocal seen
        seen += 1
        while steps and seen > steps[0]:
            steps.pop(0)
            processes[doomed.pop()].kill()
        if not steps and all(helper.lost for helper in helpers):
            raise KeyboardInterrupt

    seen = 0
    with connected(workers.address, 0, CODES) as cluster:
        cluster.take(3)
        result = search(instance, budget=Budget(60, 4), goal=goal, pool=cluster, watch=watch)
    assert len(helpers) == 3
    assert result.termination is Termination.INTERRUPTED
    assert result.schedule is not None
    assert verify(instance, result.schedule) == []
    assert result.status is Status.FEASIBLE
    lost = r"searcher \d failed: its process at tcp://127.0.0.1:\d+ was lost"
    assert len(re.findall(lost, result.reason)) == 3


def test_a_solve_uses_all_workers_and_names_those_that_cannot_be_used(
    workers: Workers, tmp_path: Path
) -> None:
    old, without = tmp_path / "old", tmp_path / "without"
    for folder, text in ((old, "__version__ = '0.1'"), (without, "import optpart.missing")):
        (folder / "optpart").mkdir(parents=True)
        (folder / "optpart" / "__init__.py").write_text(text)
    workers.start(None, old, without)
    result = optpart.solve("heft-10", "search", engine=workers.address, seconds=1)
    assert result.schedule is not None
    assert result.makespan is not None
    assert result.makespan <= 80
    assert result.workers == 2
    for fault in (f"has optpart 0.1, not {optpart.__version__}", "has no optpart.missing"):
        assert re.search(rf"not used: tcp://127.0.0.1:\d+ {fault}", result.reason)


def test_the_command_starts_a_cluster_of_its_own(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("distributed", reason="needs optpart[dask]")
    argv = "optpart solve heft-10 --engine dask --workers 2 -m search --time-limit 1 --json"
    monkeypatch.setattr(sys, "argv", argv.split())
    with pytest.raises(SystemExit) as end:
        main()
    assert not end.value.code
    result = json.loads(capsys.readouterr().out)
    assert result["workers"] == 2
    assert "1 searchers elsewhere began" in result["reason"]


# --- one line ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "engine",
    [
        "spark", "dask:", "dask://", "local://here", "", "foo://127.0.0.1:1", "tls://", "dask://a",
        "tcp://127.0.0.1", "ucx://127.0.0.1:1", "dask://[::1", "dask://a:b:c", "tcp://a:1/b",
        "dask://tls://127.0.0.1:1", "inproc://127.0.0.1/1/2",
    ],
)  # fmt: skip
def test_an_address_that_does_not_fit(engine: str) -> None:
    with pytest.raises(InputError, match=r"no engine .*; use local, dask, dask://HOST:PORT, tcp"):
        address(engine)


def test_no_scheduler(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed", reason="needs optpart[dask]")
    for place in ("127.0.0.1:1", "nowhere.invalid:8786", "127.0.0.1:99999"):
        assert f"no Dask scheduler answers at {place} (" in refused(f"dask://{place}")
    monkeypatch.setattr(module, "_PATIENCE", 0.2)
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        place = f"127.0.0.1:{silent.getsockname()[1]}"
        assert "no Dask scheduler, or one that uses tls://" in refused(f"tcp://{place}")


def test_no_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PATIENCE", 0.5)
    with in_process(n_workers=0) as at:
        assert "has no workers; start some with 'dask worker" in refused(at)


def test_workers_of_another_version_only(monkeypatch: pytest.MonkeyPatch) -> None:
    with in_process() as at:
        monkeypatch.setattr(module, "__version__", "9.9")
        message = refused(at)
    assert re.search(rf"{at} can be used: tcp://.* has optpart {optpart.__version__}, ", message)
    assert "; start workers that have optpart 9.9" in message


def test_workers_of_other_code_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CODES, "search", "optpart 123")
    with in_process() as at:
        assert "has other code of search (" in refused(at)


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"method": "cpsat"}, "cpsat does not run on several machines; use it with `method` auto"),
        ({"method": "heft"}, "heft does not run on several machines"),
        ({"workers": 1}, "1 is this process alone; give 2 or more"),
        ({"audit": True}, "runs on this machine; leave out `engine`"),
    ],
)
def test_what_a_cluster_cannot_do(options: dict[str, Any], fault: str) -> None:
    pytest.importorskip("distributed", reason="needs optpart[dask]")
    with pytest.raises(InputError, match=re.escape(fault)):
        optpart.solve("heft-10", engine="dask", **options)


@pytest.mark.parametrize("command", ["solve heft-10", "gap heft-10"])
def test_without_the_package(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    monkeypatch.setattr(sys, "argv", ["optpart", *command.split(), "--engine", "dask"])
    with pytest.raises(SystemExit, match="2"):
        main()
    assert capsys.readouterr().err == (
        "optpart: --engine: needs the package distributed; install optpart[dask]\n"
    )


# --- certificates --------------------------------------------------------------------------------


def certified(folder: Path, name: str) -> dict[str, str]:
    """Make a certificate that vouches for itself; return the settings of Dask that use it."""
    cert, key = str(folder / f"{name}.crt"), str(folder / f"{name}.key")
    made = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost"
    try:
        subprocess.run(
            [*made.split(), "-out", cert, "-keyout", key], check=True, capture_output=True
        )
    except FileNotFoundError:
        pytest.skip("needs the command openssl")
    settings = {"ca-file": cert}
    for role in ("scheduler", "worker", "client"):
        settings |= {f"{role}.cert": cert, f"{role}.key": key}
    return {f"distributed.comm.tls.{name}": value for name, value in settings.items()}


class TestEncrypted:
    """Connections by ``tls://``, with the certificates of Dask's own configuration."""

    @pytest.fixture
    def configured(self, tmp_path: Path) -> Iterator[Any]:
        dask = pytest.importorskip("dask", reason="needs optpart[dask]")
        with dask.config.set(certified(tmp_path, "one")):
            yield dask.config

    def test_it_works(self, configured: Any) -> None:
        with in_process(protocol="tls") as at:
            assert at.startswith("tls://")
            with connected(address(at) or "", 0, CODES) as cluster:
                cluster.take(1)
                assert cluster.workers == 2
                worker = cluster.hire("optpart.search.worker")
                worker.stop()
                assert list(cluster.faults) == [*cluster.client.nthreads()]

    def test_the_schemes_must_agree(self, configured: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        with in_process() as at:
            message = refused(at.replace("tcp", "tls"))
            assert "no encrypted connection to tls://" in message
        with in_process(protocol="tls") as at:
            monkeypatch.setattr(module, "_PATIENCE", 0.2)
            message = refused(at.replace("tls", "tcp"))
            assert "is no Dask scheduler, or one that uses tls://" in message

    def test_both_must_have_certificates_of_the_same_authority(
        self, configured: Any, tmp_path: Path
    ) -> None:
        with in_process(protocol="tls") as at:
            with configured.set(certified(tmp_path, "two")):
                assert "no encrypted connection to tls://" in refused(at)
            with configured.set({"distributed.comm.tls.client.cert": str(tmp_path / "none")}):
                assert "certificates for tls:// cannot be read (" in refused(at)
            with configured.set({"distributed.comm.tls.client.cert": None}):
                assert "certificates for tls:// are not configured; set ca-file" in refused(at)
