"""The watchdog: a program that runs a command in a temporary folder and finally removes the folder.

It uses only the standard library and is run as a file, so that it starts quickly.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

#: Files that the watchdog writes to the folder: the command's standard error and its exit code.
ERRORS = "watchdog-stderr"
CODE = "watchdog-exit-code"


def main() -> None:
    """Run commands from standard input; when it ends, remove the folder named as an argument."""
    folder = Path(sys.argv[1])
    # A signal to all processes of a job also reaches the watchdog, which must outlive its user.
    # These are handlers instead of SIG_IGN, because the command would inherit that.
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        signal.signal(getattr(signal, name), lambda *_: None)
    process = None
    try:
        for line in sys.stdin.buffer:
            *command, seconds = json.loads(line)
            # What a killed command leaves among its temporary files goes with the folder. It works
            # there, too: some programs read what lies in the folder where they start.
            places = {**os.environ, "TMPDIR": str(folder)}
            with open(folder / ERRORS, "wb") as errors:
                process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stderr=errors,
                    cwd=folder,
                    env=places,
                    start_new_session=True,
                )
            threading.Thread(target=_watch, args=(process, seconds, folder), daemon=True).start()
    finally:
        if process is not None:
            kill(process)
            process.wait()
        # Processes started by the command may need a moment to die.
        for _ in range(100):
            shutil.rmtree(folder, ignore_errors=True)
            if not folder.exists():
                break
            threading.Event().wait(0.01)
        os._exit(0)


def _watch(process: subprocess.Popen[bytes], seconds: float, folder: Path) -> None:
    """Wait for a command, kill it at its limit, write its exit code, and close the output."""
    # To wait with a limit would look only 20 times a second whether the command has ended.
    late = threading.Event()
    limit = threading.Timer(min(seconds, threading.TIMEOUT_MAX), _end, (process, late))
    limit.daemon = True
    limit.start()
    code = process.wait()
    limit.cancel()
    kill(process)
    with suppress(OSError):  # the folder may have been removed
        (folder / CODE).write_text(json.dumps(None if late.is_set() else code))
    os.close(1)


def _end(process: subprocess.Popen[bytes], late: threading.Event) -> None:
    late.set()
    kill(process)


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process that leads a process group, and the rest of the group."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()


if __name__ == "__main__":
    main()
