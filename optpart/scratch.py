"""A temporary folder that does not outlive its user, and neither does a command run on it.

A process that is killed cleans nothing up. So a second one, the keeper, waits until its standard
input ends, which it does whenever and however the user ends; then it kills the command and removes
the folder. This file is also the program of the keeper, and needs nothing but the standard library.
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

#: What the keeper notes in the folder: the command's standard error and its exit code.
_ERRORS = "keeper-stderr"
_CODE = "keeper-exit-code"


class Scratch:
    """A temporary folder, as a context, with at most one command.

    Parameters
    ----------
    parent : Path, optional
        Where to make it; where temporary files go by default.
    prefix : str
        How its name begins.

    Attributes
    ----------
    folder : Path

    Raises
    ------
    OSError
        On entering, if the folder cannot be made.
    """

    def __init__(self, parent: Path | None = None, prefix: str = "optpart-") -> None:
        place = Path(tempfile.gettempdir()) if parent is None else parent
        self.folder = (place / f"{prefix}{secrets.token_hex(8)}").absolute()

    def __enter__(self) -> Scratch:
        # The keeper comes first: there is no moment in which nobody would remove the folder.
        self._keeper = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__, str(self.folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is the caller's to handle
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
        # Were the keeper killed, the folder would still be here.
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
            After so long the command is killed, and with it what it has started.
        """
        assert self._keeper.stdin is not None
        assert self._keeper.stdout is not None
        with suppress(BrokenPipeError):  # without a keeper the command counts as killed
            self._keeper.stdin.write(json.dumps([*command, seconds]).encode() + b"\n")
            self._keeper.stdin.flush()
        return self._keeper.stdout

    def wait(self) -> int | None:
        """Wait for the end of the command and return its exit code, or ``None`` if it was late.

        As in :mod:`subprocess`, a negative code is that of a signal.
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
        """Return what the command has written to standard error."""
        return (self.folder / _ERRORS).read_text(encoding="utf-8", errors="replace")


def main() -> None:
    """Keep the folder that the first argument names, until standard input ends."""
    folder = Path(sys.argv[1])
    # Signals to all processes of a job reach the keeper, too; it ends after its user, not before.
    # Handlers and not SIG_IGN, which the command would inherit.
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
        # What the command had started may need a moment to die.
        for _ in range(100):
            shutil.rmtree(folder, ignore_errors=True)
            if not folder.exists():
                break
            threading.Event().wait(0.01)
        os._exit(0)


def _watch(process: subprocess.Popen[bytes], seconds: float, folder: Path) -> None:
    """Wait for a command or end it, note its exit code, and let its output end."""
    code: int | None = None
    with suppress(subprocess.TimeoutExpired):
        code = process.wait(timeout=seconds)
    _kill(process)
    process.wait()
    with suppress(OSError):  # the folder may be gone by now
        (folder / _CODE).write_text(json.dumps(code))
    os.close(1)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and what it has started."""
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()


if __name__ == "__main__":
    main()
