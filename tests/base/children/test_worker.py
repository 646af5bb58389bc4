"""Workers: what they say arrives, their death has a cause, and they end with their caller."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from processes import PATIENCE, gone, wait_for

from optpart.base.children import worker as module
from optpart.base.children.worker import Worker, WorkerDiedError

#: A caller whose worker has a task; it says who the worker is.
_CALLER = """
import time
from optpart.base.children.worker import Worker
worker = Worker("echo")
worker.send("ready")
worker.receive(1000)
worker.send("sleep")
print(worker.process.pid, flush=True)
try:
    time.sleep(1000)
except KeyboardInterrupt:
    pass
"""


@pytest.fixture(autouse=True)
def _found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let processes find the module ``echo``."""
    root = Path(__file__).parents[3]
    monkeypatch.setenv("PYTHONPATH", f"{Path(__file__).parent}:{root}")


@pytest.fixture
def worker() -> Iterator[Worker]:
    worker = Worker("echo")
    yield worker
    worker.stop()


def test_messages_arrive_in_their_order(worker: Worker) -> None:
    for message in (1, {"two": [2.0]}, bytes(10**6), "print", "four"):
        worker.send(message)
    assert [worker.receive(PATIENCE) for _ in range(4)] == [1, {"two": [2.0]}, bytes(10**6), "four"]


def test_silence_ends_after_the_given_time(worker: Worker) -> None:
    with pytest.raises(TimeoutError):
        worker.receive(0.0)


def test_a_worker_knows_when_it_was_started(worker: Worker) -> None:
    before = time.monotonic()
    worker.send("when")
    started = worker.receive(PATIENCE)
    assert isinstance(started, float)
    assert 0.0 < started < before


def test_a_worker_that_does_not_read_blocks_nobody(worker: Worker) -> None:
    worker.process.send_signal(signal.SIGSTOP)
    for _ in range(10):
        worker.send(bytes(10**6))


@pytest.mark.parametrize(
    ("order", "cause"),
    [(("exit", 3), "exit 3"), (("die", signal.SIGSEGV), "signal 11")],
)
def test_death_comes_after_the_last_message_and_has_a_cause(
    worker: Worker, order: object, cause: str
) -> None:
    worker.send("last words")
    worker.send(order)
    assert worker.receive(PATIENCE) == "last words"
    with pytest.raises(WorkerDiedError, match=cause):
        worker.receive(PATIENCE)
    assert not worker.running
    worker.send("too late")
    with pytest.raises(WorkerDiedError, match=cause):  # and stays so
        worker.receive(0.0)


def test_a_worker_that_says_no_more_counts_as_dead(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_ENDING", 0.0)
    worker.send("close")
    with pytest.raises(WorkerDiedError, match="closed its output"):
        worker.receive(PATIENCE)


def test_stop_ends_a_worker_that_works_or_is_stopped(worker: Worker) -> None:
    worker.send("sleep")
    worker.process.send_signal(signal.SIGSTOP)
    worker.stop()
    assert worker.process.returncode == -signal.SIGKILL
    worker.stop()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_worker_ends_with_its_caller(number: signal.Signals) -> None:
    with subprocess.Popen([sys.executable, "-P", "-c", _CALLER], stdout=subprocess.PIPE) as caller:
        assert caller.stdout is not None
        process = int(caller.stdout.readline())
        caller.send_signal(number)
    wait_for(lambda: gone(process))


def test_a_worker_imports_nothing_from_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("queue", "struct", "threading", "optpart"):
        (tmp_path / f"{name}.py").write_text("raise RuntimeError")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    worker = Worker("echo")
    worker.send("here")
    assert worker.receive(PATIENCE) == "here"
    worker.stop()
