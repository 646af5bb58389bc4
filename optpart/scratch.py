"""A temporary folder, and a command that works in it, neither of which outlives its owner.

A killed process cannot clean up. Therefore a second process, the keeper, waits for the end of its
standard input, which comes however the owner ends; then it kills the command and removes the
folder. This file is also the keeper's program, so it imports nothing but the standard library.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO

#: Files that the keeper writes in the folder: the command's standard error and exit code.
_ERRORS = "keeper-stderr"
_CODE = "keeper-exit-code"


class Scratch:
    """Context manager of a temporary folder in which at most one command runs.

    Parameters
    ----------
    parent : Path, optional
        Where to create the folder; by default, where temporary files go.
    prefix : str
        Beginning of its name.

    Attributes
    ----------
    folder : Path

    Raises
    ------
    OSError
        On entering, if the folder cannot be created.
    """

    def __init__(self, parent: Path | None = None, prefix: str = "optpart-") -> None:
        place = Path(tempfile.gettempdir()) if parent is None else parent
        self.folder = (place / f"{prefix}{secrets.token_hex(8)}").absolute()

    def __enter__(self) -> Scratch:
        # The keeper starts first, so that the folder never exists without one to remove it.
        self._keeper = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__, str(self.folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # the caller handles Ctrl-C
        )
        try:
            self.folder.mkdir(mode=0o700)
        except BaseException:
            self._dismiss()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._dismiss()
        # If the keeper was killed, the folder is still here.
        shutil.rmtree(self.folder, ignore_errors=True)

    def _dismiss(self) -> None:
        assert self._keeper.stdin is not None
        assert self._keeper.stdout is not None
        with suppress(BrokenPipeError):
            self._keeper.stdin.close()
        self._keeper.stdout.close()
        self._keeper.wait()

    def start(self, command: Sequence[str], seconds: float) -> IO[bytes]:
        """Start a command without input; return its standard output.

        Parameters
        ----------
        seconds : float
            Time limit, after which the command and everything it started are killed.
        """
        assert self._keeper.stdin is not None
        assert self._keeper.stdout is not None
        with suppress(BrokenPipeError):  # without a keeper the command counts as killed
            self._keeper.stdin.write(json.dumps([*command, seconds]).encode() + b"\n")
            self._keeper.stdin.flush()
        return self._keeper.stdout

    def wait(self) -> int | None:
        """Wait for the command and return its exit code, or ``None`` if it ran out of time.

        As in :mod:`subprocess`, a negative code stands for a signal.
        """
        assert self._keeper.stdout is not None
        while self._keeper.stdout.read(2**16):
            pass
        try:
            code: int | None = json.loads((self.folder / _CODE).read_bytes())
        except FileNotFoundError:
            return -9
        return code

    def complaints(self) -> str:
        """Return what the command wrote to standard error."""
        return (self.folder / _ERRORS).read_text(encoding="utf-8", errors="replace")


def main() -> None:
    """Keep the folder named by the first argument until standard input ends."""
    folder = Path(sys.argv[1])
    # Signals to a whole job reach the keeper, too, but it must not end before its owner.
    # Handlers rather than SIG_IGN, which the command would inherit.
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), lambda *_: None)
    process = None
    try:
        for line in sys.stdin.buffer:
            *command, seconds = json.loads(line)
            with open(folder / _ERRORS, "wb") as errors:
                process = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stderr=errors, start_new_session=True
                )
            threading.Thread(target=_watch, args=(process, seconds, folder), daemon=True).start()
    finally:
        if process is not None:
            _kill(process)
            process.wait()
        # Processes that the command started may need a moment to die.
        for _ in range(100):
            shutil.rmtree(folder, ignore_errors=True)
            if not folder.exists():
                break
            threading.Event().wait(0.01)
        os._exit(0)


def _watch(process: subprocess.Popen[bytes], seconds: float, folder: Path) -> None:
    """Wait for a command, kill it if it is late, write its exit code and close its output."""
    code: int | None = None
    with suppress(subprocess.TimeoutExpired):
        code = process.wait(timeout=seconds)
    _kill(process)
    process.wait()
    with suppress(OSError):  # the folder may be gone by now
        (folder / _CODE).write_text(json.dumps(code))
    os.close(1)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and everything it has started."""
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()


if __name__ == "__main__":
    main()
