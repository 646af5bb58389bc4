"""What runs before the command line itself is loaded."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from optpart.__main__ import main
from optpart.base.interrupts import guard_interrupts


class Interrupted:
    """A finder that is interrupted as soon as the command line is looked for."""

    def find_spec(self, name: str, *_: Any) -> None:
        if name == "optpart.cli":
            raise KeyboardInterrupt


@pytest.fixture(autouse=True)
def _as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Undo what the program sets up in its process."""
    monkeypatch.setenv("PYTHONSAFEPATH", "")
    numbers = (signal.SIGINT, signal.SIGALRM)
    before = [signal.getsignal(number) for number in numbers]
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    yield
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


class Strict:
    """A finder that turns an interrupt in its midst into another error, as some libraries do."""

    def find_spec(self, name: str, *_: Any) -> None:
        if name == "optpart.cli":
            try:
                signal.raise_signal(signal.SIGINT)
            except KeyboardInterrupt:
                raise ImportError("half loaded") from None


def test_an_interrupt_waits_until_an_import_is_done(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(sys.modules, "optpart.cli", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Strict(), *sys.meta_path])
    monkeypatch.setattr("optpart.base.interrupts._AGAIN", 0.001)
    monkeypatch.setattr(sys, "argv", ["optpart", "solve", "heft-10", "-m", "enumerate"])
    with pytest.raises(SystemExit) as end:
        main()
    assert (end.value.code, capsys.readouterr().err) == (130, "optpart: interrupted\n")


def test_an_interrupt_while_the_program_loads_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(sys.modules, "optpart.cli", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Interrupted(), *sys.meta_path])
    with pytest.raises(SystemExit) as end:
        main()
    assert (end.value.code, capsys.readouterr().err) == (130, "optpart: interrupted\n")


class Finalised:
    """An object whose end is interrupted; Python drops exceptions there."""

    def __del__(self) -> None:
        signal.raise_signal(signal.SIGINT)


def test_an_interrupt_that_python_would_drop_comes_again(
    capsys: pytest.CaptureFixture[str],
) -> None:
    guard_interrupts()
    Finalised()
    with pytest.raises(KeyboardInterrupt):
        time.sleep(10)
    assert capsys.readouterr().err == ""


def test_an_interrupt_just_before_the_end_kills_nothing() -> None:
    code = """
import signal, time
from optpart.base.interrupts import guard_interrupts

class Finalised:
    def __del__(self): signal.raise_signal(signal.SIGINT)

class Slow:
    def __del__(self, sleep=time.sleep): sleep(0.1)

guard_interrupts()
last = Slow()
Finalised()
"""
    run = [sys.executable, "-P", "-c", code]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
