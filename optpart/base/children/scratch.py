"""A temporary folder with a command that works in it; neither outlives the process that owns them.

A process that is killed cannot clean up. Therefore a second process, the watchdog, waits for the
end of its standard input, which comes when the owner ends for any reason. It then kills the command
and removes the folder.
"""

from __future__ import annotations

import json
import secrets
import shutil
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO

from optpart.base.children import watchdog
from optpart.base.children.worker import spawn


class Scratch:
    """Context manager for a temporary folder in which at most one command runs.

    Parameters
    ----------
    parent : Path, optional
        Where to create the folder; by default, the system's folder for temporary files.
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
        # The watchdog starts first, so that the folder is removed whatever happens.
        self._watchdog = spawn([sys.executable, "-I", "-S", watchdog.__file__, str(self.folder)])
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
        # If the watchdog was killed, the folder still exists.
        shutil.rmtree(self.folder, ignore_errors=True)

    def _dismiss(self) -> None:
        assert self._watchdog.stdin is not None
        assert self._watchdog.stdout is not None
        with suppress(BrokenPipeError):
            self._watchdog.stdin.close()
        self._watchdog.stdout.close()
        self._watchdog.wait()

    def start(self, command: Sequence[str], seconds: float) -> IO[bytes]:
        """Start a command without input; return its standard output.

        Parameters
        ----------
        seconds : float
            Time limit, after which the command and everything it started are killed.
        """
        assert self._watchdog.stdin is not None
        assert self._watchdog.stdout is not None
        with suppress(BrokenPipeError):  # if the watchdog is dead, the command counts as killed
            self._watchdog.stdin.write(json.dumps([*command, seconds]).encode() + b"\n")
            self._watchdog.stdin.flush()
        return self._watchdog.stdout

    def wait(self) -> int | None:
        """Wait for the command and return its exit code, or ``None`` if it ran out of time.

        As in :mod:`subprocess`, a negative code stands for a signal.
        """
        assert self._watchdog.stdout is not None
        while self._watchdog.stdout.read(2**16):
            pass
        try:
            code: int | None = json.loads((self.folder / watchdog.CODE).read_bytes())
        except FileNotFoundError:
            return -9
        return code

    def complaints(self) -> str:
        """Return the command's standard error."""
        return (self.folder / watchdog.ERRORS).read_text(encoding="utf-8", errors="replace")
