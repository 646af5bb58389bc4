"""The parts of the soak, and their blocks of cases, each in a process of its own."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import resource
import signal
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from types import FrameType
from typing import Any

#: Address space of a process, beyond which a file or a command takes too much memory.
_MEMORY = 8 * 2**30

#: Characters that are kept of the message of a failure.
_MESSAGE = 300


#: Runs the case of a number in an empty folder, and says what came of it: ``accepted`` or
#: ``refused``. Anything that it raises is a failure.
Case = Callable[[int, Path], str]


class FailedError(Exception):
    """What must hold does not."""


class HangsError(BaseException):
    """A case has taken more processor time than any should; no ``except Exception`` hides it."""


@dataclass(frozen=True)
class Part:
    """A kind of case: the function ``case`` of the module ``name`` of this folder.

    Attributes
    ----------
    what : str
        What is tried.
    count, minute : int
        Cases of the whole soak, and of the short run that precedes every change.
    block : int
        Cases that one process runs, and after which progress is kept.
    seconds : float
        Processor time after which a case hangs.
    """

    name: str
    what: str
    count: int
    minute: int
    block: int
    seconds: float

    def load(self) -> Case:
        """Return the function that runs a case."""
        case: Case = import_module(f"bench.soak.{self.name}").case
        return case


#: By name, in the order of the table.
PARTS = {
    part.name: part
    for part in (
        Part("files", "mutated files", 100_000, 4000, 2000, 30.0),
        Part("commands", "random command lines", 10_000, 120, 100, 120.0),
        Part("schedules", "random schedules", 1_000_000, 4000, 20_000, 10.0),
        Part("instances", "random instances", 100_000, 80, 200, 300.0),
        Part("plans", "random pipeline plans", 10_000, 300, 500, 60.0),
        Part("certificates", "forged certificates", 10_000, 400, 500, 60.0),
        Part("kills", "killed commands", 1_000, 8, 20, 300.0),
    )
}


@dataclass
class Block:
    """Cases from ``first`` on, and what came of them."""

    first: int
    count: int
    outcomes: Counter[str] = field(default_factory=Counter)
    failed: list[tuple[int, str]] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def key(self) -> tuple[int, int]:
        """What a block is found by."""
        return self.first, self.count


class Kept:
    """The finished blocks of a part: JSON lines, to which a stopped run appends when it goes on."""

    def __init__(self, folder: Path, part: Part) -> None:
        self.path = folder / f"{part.name}.jsonl"

    def blocks(self) -> dict[tuple[int, int], Block]:
        """Return the newest row of every block; a line that a stop cut short is skipped."""
        found = {}
        for line in self.path.read_text().splitlines() if self.path.exists() else []:
            with contextlib.suppress(json.JSONDecodeError):
                row: dict[str, Any] = json.loads(line)
                row["outcomes"] = Counter(row["outcomes"])
                block = Block(**row)
                found[block.key] = block
        return found

    def append(self, block: Block) -> None:
        """Add a finished block."""
        before = self.path.read_bytes() if self.path.exists() else b""
        cut = before[-1:] not in (b"", b"\n")
        with self.path.open("a") as out:
            out.write("\n" * cut + json.dumps(vars(block)) + "\n")


def blocks_of(part: Part, seed: int, count: int) -> Iterator[Block]:
    """Yield the blocks of ``count`` cases from number ``seed`` on."""
    for first in range(seed, seed + count, part.block):
        yield Block(first, min(part.block, seed + count - first))


def run(part: Part, block: Block) -> Iterator[tuple[int, str, str]]:
    """Run a block; fill it, and yield number, outcome and message of every case.

    A case that ends the process fails, and another process goes on after it.
    """
    before = _seconds()
    number, last = block.first, block.first + block.count
    context = multiprocessing.get_context("spawn")
    while number < last:
        here, there = context.Pipe(duplex=False)
        # Here, so that it goes even if the process is killed.
        place = tempfile.TemporaryDirectory(prefix="soak-", ignore_cleanup_errors=True)
        arguments = part.name, number, last, place.name, there
        process = context.Process(target=_serve, args=arguments)
        process.start()
        there.close()
        try:
            while number < last:
                # The process itself notices the time, unless compiled code keeps it from that.
                if not here.poll(10 * part.seconds):
                    raise EOFError
                outcome, message = here.recv()
                if outcome == "failed":
                    block.failed.append((number, message))
                block.outcomes[outcome] += 1
                yield number, outcome, message
                number += 1
        except EOFError:
            process.join(1)
            code = process.exitcode
            message = "hangs" if code is None else f"ends the process ({code})"
            block.failed.append((number, message))
            block.outcomes["failed"] += 1
            yield number, "failed", message
            number += 1
        finally:
            if process.is_alive() and number < last:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid or 0, signal.SIGKILL)
            process.join()
            here.close()
            place.cleanup()
    block.seconds = round(_seconds() - before, 2)


def _seconds() -> float:
    """Return the processor time of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _serve(name: str, number: int, last: int, place: str, out: Connection) -> None:
    """Run cases one after another, and send what came of each."""
    os.setsid()  # an interrupt of the terminal is for the main process alone
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    signal.signal(signal.SIGPROF, _hang)
    part = PARTS[name]
    case = part.load()
    os.chdir(place)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    for each in range(number, last):
        folder = Path(place, str(each))
        folder.mkdir()
        signal.setitimer(signal.ITIMER_PROF, part.seconds)
        try:
            with warnings.catch_warnings():
                outcome, message = case(each, folder), ""
        except BaseException as error:
            outcome = "failed"
            said = " ".join(f"{type(error).__name__}: {error}".split())
            message = f"{said[:_MESSAGE]}{_where(error)}"
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        out.send((outcome, message))
        os.chdir(place)
        _remove(folder)
    sys.stdout.flush()


def _where(error: BaseException) -> str:
    """Return the last line of the package that an error has passed."""
    found, trace = "", error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if "/optpart/" in file or "/bench/soak/" in file:
            found = f" ({'/'.join(Path(file).parts[-2:])}:{trace.tb_lineno})"
        trace = trace.tb_next
    return found


def _hang(number: int, frame: FrameType | None) -> None:
    raise HangsError("more processor time than any case should take")


def _remove(folder: Path) -> None:
    for each in sorted(folder.rglob("*"), reverse=True):
        with contextlib.suppress(OSError):
            each.rmdir() if each.is_dir() and not each.is_symlink() else each.unlink()
    with contextlib.suppress(OSError):
        folder.rmdir()
