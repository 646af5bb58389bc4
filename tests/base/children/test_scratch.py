"""Temporary folders and their commands: gone when their user is, however it ends."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from processes import gone, wait_for

from optpart.base.children.scratch import Scratch

#: A command that starts another one, says who both are, and then ends at nothing but a kill.
_STUBBORN = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-P", "-c", "import time; time.sleep(1000)"])
print(os.getpid(), child.pid, flush=True)
time.sleep(1000)
"""

#: A user of a folder with that command in it; it passes on who they are.
_USER = f"""
import sys, time
from optpart.base.children.scratch import Scratch
with Scratch() as scratch:
    (scratch.folder / "large").write_bytes(bytes(1000))
    stream = scratch.start([sys.executable, "-P", "-c", {_STUBBORN!r}], 1000)
    print(scratch._watchdog.pid, stream.readline().decode(), flush=True)
    time.sleep(1000)
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where temporary files go."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    yield tmp_path
    monkeypatch.setattr("tempfile.tempdir", None)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_command_and_folder_end_with_a_user_that_is_killed(
    number: signal.Signals, place: Path
) -> None:
    with subprocess.Popen([sys.executable, "-P", "-c", _USER], stdout=subprocess.PIPE) as user:
        assert user.stdout is not None
        processes = list(map(int, user.stdout.readline().split()))
        large = list(place.glob("*/large"))
        user.send_signal(number)
    assert len(processes) == 3
    assert len(large) == 1
    wait_for(lambda: all(map(gone, processes)))
    assert not list(place.iterdir())


def test_signals_to_everybody_leave_the_watchdog_time_to_clean_up(place: Path) -> None:
    with subprocess.Popen([sys.executable, "-P", "-c", _USER], stdout=subprocess.PIPE) as user:
        assert user.stdout is not None
        watchdog, *others = map(int, user.stdout.readline().split())
        for process in (watchdog, *others, user.pid):
            os.kill(process, signal.SIGTERM)
    wait_for(lambda: all(map(gone, (watchdog, *others))))
    assert not list(place.iterdir())


def test_leaving_ends_the_command_and_removes_the_folder(place: Path) -> None:
    with Scratch() as scratch:
        stream = scratch.start([sys.executable, "-P", "-c", _STUBBORN], 1000)
        processes = list(map(int, stream.readline().split()))
        assert [scratch.folder] == list(place.iterdir())
    wait_for(lambda: all(map(gone, processes)))
    assert not list(place.iterdir())


def test_an_exit_code_an_output_and_complaints() -> None:
    program = "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"
    with Scratch() as scratch:
        assert scratch.start([sys.executable, "-P", "-c", program], 1000).read() == b"out\n"
        assert scratch.wait() == 3
        assert scratch.complaints() == "err\n"


def test_a_command_killed_by_a_signal_says_so() -> None:
    program = "import os; os.kill(os.getpid(), 9)"
    with Scratch() as scratch:
        scratch.start([sys.executable, "-P", "-c", program], 1000)
        assert scratch.wait() == -9


def test_a_command_past_its_limit_is_ended_with_what_it_started() -> None:
    with Scratch() as scratch:
        stream = scratch.start([sys.executable, "-P", "-c", _STUBBORN], 0.5)
        processes = list(map(int, stream.readline().split()))
        assert scratch.wait() is None
        wait_for(lambda: all(map(gone, processes)))


def test_a_command_that_there_is_not_counts_as_killed() -> None:
    with Scratch() as scratch:
        scratch.start(["/nowhere/solver"], 1000)
        assert scratch.wait() == -9


def test_a_folder_is_made_where_it_is_asked_for(tmp_path: Path) -> None:
    with Scratch(tmp_path, ".draft.") as scratch:
        assert scratch.folder.parent == tmp_path
        assert scratch.folder.name.startswith(".draft.")
        assert scratch.folder.stat().st_mode & 0o077 == 0
    with pytest.raises(FileNotFoundError):
        Scratch(tmp_path / "nowhere").__enter__()


def test_a_killed_watchdog_leaves_no_folder(place: Path) -> None:
    with Scratch() as scratch:
        scratch._watchdog.kill()
        scratch._watchdog.wait()
        scratch.start([shutil.which("true") or "true"], 1000)
        assert scratch.wait() == -9
    assert not list(place.iterdir())


def test_temporary_files_of_a_command_lie_in_the_folder() -> None:
    with Scratch() as scratch:
        said = scratch.start(
            [sys.executable, "-P", "-c", "import os; print(os.environ['TMPDIR'])"], 10
        )
        assert said.readline().decode().strip() == str(scratch.folder)
        assert scratch.wait() == 0
