"""Long commands, killed at random moments: what do they leave behind?

Files are old or complete; stores and checkpoints can be read, and the command goes on with them; no
process, temporary folder or shared memory remains. A case whose command has ended before the
signal counts as refused. Only SIGKILL may leave the unfinished
``.NAME.…`` beside an output, as nothing can remove it then.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from bench.soak.runs import FailedError
from optpart.base.errors import OptpartError
from optpart.certificates import check
from optpart.certificates.check import RejectedError
from optpart.interop.formats import native, result
from optpart.search import checkpoint
from optpart.study.stored import read_runs

_ROOT = Path(__file__).parents[2]
_SAMPLES = Path(__file__).parent / "samples"
_LIBRARY = _ROOT / "instances"

#: Seconds until everything that was started has certainly ended.
_PATIENCE = 30.0


@dataclass(frozen=True)
class _Command:
    """A long command in a folder of its own, and how many seconds it takes at least."""

    words: tuple[str, ...]
    seconds: float


_COMMANDS = (
    _Command(("solve", "a.json", "-m", "search", "--time-limit", "2", "--checkpoint", "state.json",
              "-o", "out.json"), 3),
    _Command(("solve", "a.json", "-m", "hybrid", "--time-limit", "2", "--checkpoint", "state.json",
              "-o", "out.json"), 4),
    _Command(("solve", "a.json", "-m", "cpsat", "--time-limit", "2", "-o", "out.json"), 4),
    _Command(("solve", "a.json", "-m", "milp", "--time-limit", "2", "-o", "out.json"), 4),
    _Command(("solve", "a.json", "-m", "minizinc", "--time-limit", "2", "-o", "out.json"), 4),
    _Command(("solve", "a.json", "--time-limit", "2", "-o", "out.json"), 4),
    _Command(("solve", "b.json", "-m", "cpsat", "--time-limit", "2", "-o", "out.json"), 2),
    _Command(("gap", "a.json", "b.json", "-m", "heft", "-m", "hash+fifo", "-m", "cpsat", "--seeds",
              "2", "--time-limit", "1", "--store", "runs.db"), 8),
    _Command(("gap", "b.json", "-m", "all", "--time-limit", "1", "--store", "runs.db"), 6),
    _Command(("certify", "b.json", "--time-limit", "5", "-o", "proof"), 4),
    _Command(("bound", "a.json", "--time-limit", "2", "--json"), 3),
    _Command(("pipeline", "b.json", "-o", "plan.json"), 2),
    _Command(("reduce", "partition", "--random", "8", "-o", "reduced"), 3),
    _Command(("plot", "result.json", "--instance", "instance.json", "-o", "out.png"), 3),
    _Command(("strategy", "solve", "training.json", "--cluster", "training-cluster.toml", "--batch",
              "4", "--time-limit", "2", "-o", "strategy-out.json"), 4),
)  # fmt: skip


def case(number: int, folder: Path) -> str:
    """Kill a command, and look at what is there."""
    draw = random.Random(number)
    command = _COMMANDS[number % len(_COMMANDS)]
    sent = draw.choice((signal.SIGINT, signal.SIGTERM, signal.SIGKILL))
    moment = draw.uniform(0, command.seconds)
    to_all = draw.random() < 0.3
    shutil.copy(_LIBRARY / "random" / "small-30-4-ccr1-t-g-tight-s23.json", folder / "a.json")
    shutil.copy(_LIBRARY / "classic" / "heft-10.json", folder / "b.json")
    for name in ("result.json", "instance.json", "training.json", "training-cluster.toml"):
        shutil.copy(_SAMPLES / name, folder)
    old = b"what was there before\n" if draw.random() < 0.5 else None
    words = command.words
    if old is not None and "-o" in words and "proof" not in words:
        words = (*words, "--force")
        for name in _outputs(command):
            (folder / name).write_bytes(old)
    place = folder / "tmp"
    place.mkdir()
    shared = set(os.listdir("/dev/shm"))
    token = f"soak-{os.getpid()}-{number}"
    environment = {**os.environ, "TMPDIR": str(place), "SOAK": token, "PYTHONPATH": str(_ROOT)}
    with open(folder / "said", "wb") as said:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "optpart", *words],
            cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=said, stderr=said,
            start_new_session=True,
        )  # fmt: skip
        with suppress(subprocess.TimeoutExpired):
            process.wait(moment)
        ended = process.poll() is not None
        with suppress(ProcessLookupError):
            (os.killpg if to_all else os.kill)(process.pid, sent)
        try:
            code = process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise FailedError(f"{_told(command, sent, moment)}: goes on") from None
    told = f"{_told(command, sent, moment)} {'(to all) ' if to_all else ''}ends with {code}"
    text = (folder / "said").read_text(errors="replace")
    # Before the first line of the program runs, an interrupt is Python's own affair.
    if "Traceback" in text and str(_ROOT / "optpart") in text:
        raise FailedError(f"{told}: {text[-200:]}")
    if not ended and code not in (0, 1, 3, 4, 130, -sent):
        raise FailedError(f"{told}: {text[-200:]}")
    _wait_for_the_rest(token, place, shared, told)
    _files(command, folder, old, told, sent)
    _state(command, folder, told, environment, again=draw.random() < 0.3)
    return "refused" if ended else "accepted"


def _told(command: _Command, sent: signal.Signals, moment: float) -> str:
    return f"{' '.join(command.words[:4])} {sent.name} after {moment:.2f} s"


def _outputs(command: _Command) -> list[str]:
    """Return the files that a command writes."""
    name = command.words[command.words.index("-o") + 1]
    return (
        [f"{name}{end}" for end in (".json", ".source.json", ".png")]
        if name == "reduced"
        else [name]
    )


def _wait_for_the_rest(token: str, place: Path, shared: set[str], told: str) -> None:
    """Wait until processes, temporary files and shared memory are gone."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        left = [*_processes(token), *(path.name for path in place.iterdir())]
        left += sorted(set(os.listdir("/dev/shm")) - shared)
        if not left:
            return
        if time.monotonic() > deadline:
            raise FailedError(f"{told}: leaves {', '.join(left)[:200]}")
        time.sleep(0.05)


def _processes(token: str) -> list[str]:
    """Return the commands of all processes that a case has started."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                if f"SOAK={token}\0".encode() in (entry / "environ").read_bytes():
                    said = (entry / "cmdline").read_bytes().replace(b"\0", b" ")
                    state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
                    if state != "Z":
                        found.append(said.decode(errors="replace")[:80])
    return found


def _files(
    command: _Command, folder: Path, old: bytes | None, told: str, sent: signal.Signals
) -> None:
    """Every output is as before, absent, or complete; nothing unfinished lies beside it."""
    beside = [path.name for path in folder.iterdir() if path.name.startswith(".")]
    # The file of a lock may stay behind a process that was ended from outside: it locks nothing.
    if sent == signal.SIGTERM:
        beside = [name for name in beside if not name.endswith(".lock")]
    if beside and sent != signal.SIGKILL:
        raise FailedError(f"{told}: leaves {', '.join(beside)}")
    if "-o" not in command.words:
        return
    for name in _outputs(command):
        path = folder / name
        if path.is_dir():
            try:
                check.check(str(path))
            except RejectedError as error:
                raise FailedError(f"{told}: {name}: {error}") from None
        elif path.exists() and path.read_bytes() != old:
            content = path.read_bytes()
            if path.suffix == ".png":
                if not content.endswith(b"IEND\xaeB`\x82"):
                    raise FailedError(f"{told}: half of {name}")
                continue
            try:
                json.loads(content)
                if name == "out.json":
                    instance = folder / next(w for w in command.words if w in ("a.json", "b.json"))
                    if json.loads(content).get("schedule") is not None:
                        result.read_schedule(path, native.read(instance))
            except (ValueError, OptpartError) as error:
                raise FailedError(f"{told}: {name}: {error}") from None


def _state(
    command: _Command, folder: Path, told: str, environment: dict[str, str], *, again: bool
) -> None:
    """Stores and checkpoints can be read, and used again."""
    state, store = folder / "state.json", folder / "runs.db"
    rows = None
    try:
        if state.exists():
            checkpoint.read(state, native.read(folder / "a.json"))
        if store.exists() and store.stat().st_size:
            with closing(sqlite3.connect(store)) as database:
                sound = database.execute("PRAGMA integrity_check").fetchone()[0]
            if sound != "ok":
                raise FailedError(f"{told}: the store: {sound}")
            rows = len(read_runs(store))
    except OptpartError as error:
        raise FailedError(f"{told}: {error}") from None
    if not again or not (state.exists() or store.exists()):
        return
    words = [*command.words, *(["--resume"] if state.exists() else [])]
    done = subprocess.run(
        [sys.executable, "-P", "-m", "optpart", *words],
        cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    if done.returncode not in (0, 4) or "Traceback" in done.stderr:
        raise FailedError(f"{told}; again {done.returncode}: {done.stderr[-200:]}")
    if rows is not None and len(read_runs(store)) < rows:
        raise FailedError(f"{told}: fewer rows than before")
