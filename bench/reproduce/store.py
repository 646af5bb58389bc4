"""Finished measurements, one a line, so that a command that was stopped goes on where it was.

A measurement counts as long as the code that it depends on is the same.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import optpart
from optpart import methods

_ROOT = Path(optpart.__file__).parent
#: What instances and executions depend on, and what bounds depend on besides.
_COMMON = (
    "cluster.py", "compiled.py", "costs", "generate", "graph.py", "instance.py", "scheduling",
    "simulate.py", "tasks.py",
)  # fmt: skip
_BOUNDS = ("bounds", "ticks.py")
_BOUND = ""
_IMPORT = re.compile(r"^\s*from optpart\.partition\.(\w+) import", re.MULTILINE)


@dataclass(frozen=True)
class Run:
    """One partitioning strategy, once, and what followed under every scheduling strategy.

    Attributes
    ----------
    case, run, partitioner : str, int, str
    seconds : float
        Processor time of partitioning.
    failed : str
        Why there is no placement; what follows is empty then.
    traffic : float
    used : int
        Devices that run something.
    busy, busiest : float
        Time that devices spend on vertices: sum over all, and the largest.
    makespan : dict of str to float
        By scheduling strategy; ``own`` is the order that the partitioning strategy gives.
    choices : dict of str to list of float
        Executable vertices at each decision: mean, and quantiles 0.05, 0.25, 0.5, 0.75, 0.95.
    exact : dict of str to float
        Makespans of those schedules that were timed exactly and accepted by the verifier.
    cost : float
        Processor time of all that.
    """

    case: str
    run: int
    partitioner: str
    seconds: float = 0.0
    failed: str = ""
    traffic: float = 0.0
    used: int = 0
    busy: float = 0.0
    busiest: float = 0.0
    makespan: dict[str, float] = field(default_factory=dict)
    choices: dict[str, list[float]] = field(default_factory=dict)
    exact: dict[str, float] = field(default_factory=dict)
    cost: float = 0.0


@dataclass(frozen=True)
class Bound:
    """A proven lower bound of the makespan, and the best makespan that the library knows."""

    case: str
    run: int
    value: float
    method: str
    seconds: float
    library: float | None


Record = Run | Bound
_KINDS: dict[str, Callable[..., Record]] = {"run": Run, "bound": Bound}


class Store:
    """A file of JSON lines that processes append to side by side."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.code = {name: _strategy_code(name) for name in methods.PARTITIONERS}
        self.code[_BOUND] = _digest((*_COMMON, *_BOUNDS))

    def repair(self) -> None:
        """Drop a last line that a stop cut short."""
        if self.path.exists():
            data = self.path.read_bytes()
            if not data.endswith(b"\n"):
                self.path.write_bytes(data[: data.rfind(b"\n") + 1])

    def append(self, record: Record) -> None:
        """Add a record in one write, so that those of several processes do not mix."""
        kind = "run" if isinstance(record, Run) else "bound"
        code = self._code_of(record)
        line = json.dumps({"kind": kind, "code": code, **asdict(record)}) + "\n"
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        try:
            os.write(descriptor, line.encode())
        finally:
            os.close(descriptor)

    def records(self) -> Iterator[Record]:
        """Read what was measured with the code as it is now."""
        if not self.path.exists():
            return
        for line in self.path.read_text(encoding="utf-8").splitlines():
            entry: dict[str, Any] = json.loads(line)
            record, code = _KINDS[entry.pop("kind")], entry.pop("code")
            found = record(**entry)
            if self._code_of(found) == code:
                yield found

    def _code_of(self, record: Record) -> str | None:
        return self.code.get(record.partitioner if isinstance(record, Run) else _BOUND)


def _strategy_code(name: str) -> str:
    """Return a digest of the code that decides the runs of a strategy, and its options."""
    strategy = methods.PARTITIONERS[name]
    module = strategy.path.partition(":")[0].rpartition(".")[2]
    return _digest((*_COMMON, *sorted(_needed(module)))) + f"{dict(strategy.options)}"


def _needed(module: str) -> set[str]:
    """Return the files of a strategy and of all modules beside it that it imports."""
    found: set[str] = set()
    left = [module]
    while left:
        name = f"partition/{left.pop()}.py"
        if name not in found:
            found.add(name)
            left += _IMPORT.findall((_ROOT / name).read_text(encoding="utf-8"))
    return found


def _digest(names: Iterable[str]) -> str:
    here = Path(__file__).parent
    digest = hashlib.sha256((here / "cases.py").read_bytes() + (here / "measure.py").read_bytes())
    for name in names:
        place = _ROOT / name
        for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            digest.update(f"{path.relative_to(_ROOT)}\n".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
