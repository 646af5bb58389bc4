"""Searches in real processes that are killed or interrupted: nothing that was reached is lost."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import pytest

from optpart import Instance
from optpart.interop.formats import native
from optpart.methods.search import search
from optpart.search import checkpoint
from optpart.search.evaluator import Evaluator
from optpart.solution.result import Budget
from optpart.solution.verifier import verify
from optpart.testing.draw import draw_instance

#: The command line, but checkpoints are written all the time, each takes a while, and no bound is
#: computed first.
_BUSY = """
import os, time
import optpart.search.search as run
run._CHECKPOINT = 0.0
run._BOUNDING = 0.0
sync = os.fsync
os.fsync = lambda handle: (time.sleep({pause}), sync(handle))
from optpart.cli import main
main()
"""

#: Seconds until what a process is to do has certainly happened.
_PATIENCE = 600.0


def instance() -> Instance:
    """One that no bound closes, so that a search goes on until it is ended."""
    return draw_instance(49, vertices=25, devices=3)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "instance.json"
    native.write(instance(), path)
    return path


@contextmanager
def started(
    file: Path, state: Path, *more: str, pause: float = 0.0
) -> Iterator[subprocess.Popen[bytes]]:
    command = ["solve", str(file), "--method", "search", "--workers", "1", "--time-limit", "300"]
    process = subprocess.Popen(
        [
            sys.executable,
            "-P",
            "-c",
            _BUSY.format(pause=pause),
            *command,
            "--checkpoint",
            state,
            *more,
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=file.parent,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def wait_for(happened: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not happened():
        assert process.poll() is None, "the process ended by itself"
        assert time.monotonic() < deadline
        time.sleep(0.002)


def kill(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    assert process.wait() == -signal.SIGKILL


def reached(state: Path) -> Fraction:
    """Return the makespan of a checkpoint."""
    layout = checkpoint.read(state, instance()).layout
    return Evaluator(instance(), "makespan").schedule(layout).makespan(instance())


def written(state: Path, times: int) -> Callable[[], bool]:
    """Say whether a file has been replaced so many times."""
    seen: set[int] = set()

    def check() -> bool:
        if state.exists():
            seen.add(state.stat().st_mtime_ns)
        return len(seen) >= times

    return check


def resumed(state: Path) -> Fraction:
    """Go on from a checkpoint for a few moves, and return the makespan of the result."""
    before = checkpoint.read(state, instance())
    budget = Budget(600, 1, deterministic=before.moves / 1000 + 2)
    found = search(instance(), budget=budget, checkpoint=state, resume=True)
    assert found.schedule is not None
    assert found.makespan is not None
    assert verify(instance(), found.schedule) == []
    assert checkpoint.read(state, instance()).moves > before.moves
    return found.makespan


@pytest.mark.parametrize("times", [1, 5])
def test_a_search_that_was_killed_goes_on_from_its_checkpoint(file: Path, times: int) -> None:
    state = file.parent / "state.json"
    with started(file, state) as process:
        wait_for(written(state, times), process)
        kill(process)
    value = reached(state)
    assert resumed(state) <= value
    assert reached(state) <= value


def test_a_kill_within_a_write_leaves_the_checkpoint_before_it(file: Path) -> None:
    state = file.parent / "state.json"
    with started(file, state, pause=0.2) as process:
        wait_for(written(state, 1), process)
        # A write takes nearly all of the time: soon one is under way, and goes on for a while.
        wait_for(lambda: any(file.parent.glob(".state.json.*")), process)
        kill(process)
    assert any(file.parent.glob(".state.json.*"))
    value = reached(state)
    assert resumed(state) <= value


def test_an_interrupt_leaves_a_verified_result_and_a_checkpoint(file: Path) -> None:
    state, output = file.parent / "state.json", file.parent / "result.json"
    with started(file, state, "-o", str(output), "--json") as process:
        wait_for(written(state, 3), process)
        process.send_signal(signal.SIGINT)
        printed, _ = process.communicate(timeout=_PATIENCE)
    assert process.returncode == 0
    document = json.loads(output.read_text())
    assert json.loads(printed) == document
    assert document["termination"] == "interrupted"
    assert Fraction(document["makespan"]) <= reached(state)
    checked = [
        sys.executable,
        "-P",
        "-c",
        "from optpart.cli import main; main()",
        "verify",
        file,
        output,
    ]
    assert subprocess.run(checked, stdout=subprocess.DEVNULL).returncode == 0
