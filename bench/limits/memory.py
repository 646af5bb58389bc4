"""How much memory methods take at most, beside what is estimated before they start.

    python bench/limits/memory.py [--vertices 300,1000,3000] [--methods cpsat,search] [--seconds 8]

Each case runs in a process of its own. The figures are the peaks of resident memory (``VmHWM``) of
that process and, together, of the processes that it starts; pages that they share count twice.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import subprocess
import sys
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

#: Seconds between two looks at the child processes, whose peaks end with them.
_LOOK = 0.05

_MIB = 2**20


def peak(pid: int | str) -> int:
    """Return the peak of resident memory of a process in bytes; 0 if it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM")), 0)


def children(pid: int | str) -> list[str]:
    """Return the processes that a process has started, and theirs."""
    found: list[str] = []
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            found += (task / "children").read_text().split()
    except OSError:
        return found
    return found + [below for child in found for below in children(child)]


class Watch(threading.Thread):
    """Keeps the peaks of all child processes."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peaks: dict[str, int] = {}
        self.ended = threading.Event()

    def run(self) -> None:
        """Look until told to end."""
        while not self.ended.wait(_LOOK):
            for child in children(os.getpid()):
                self.peaks[child] = max(self.peaks.get(child, 0), peak(child))


def measure(vertices: int, devices: int, method: str, seconds: float) -> None:
    """Print the row of one case."""
    from optpart.methods import registry
    from optpart.methods.solve import ask

    path = Path(__file__).with_name("__main__.py")
    spec = importlib.util.spec_from_file_location("limits", path)
    assert spec is not None
    assert spec.loader is not None
    limits = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(limits)
    registry.warm_up([method], large=True)
    instance = limits.drawn(vertices, devices)
    before = peak("self")
    watch = Watch()
    watch.start()
    result = ask(instance, method, seconds=seconds).answer()
    watch.ended.set()
    most = max(watch.peaks.values(), default=0), sum(watch.peaks.values())
    print(
        f"{vertices:>9,}{devices:>8}  {method:10}{before / _MIB:>9.0f}{peak('self') / _MIB:>9.0f}"
        f"{most[0] / _MIB:>9.0f}{most[1] / _MIB:>9.0f}  {result.termination}: {result.reason}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        "memory", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--vertices", default="300,1000,3000")
    parser.add_argument("--devices", type=int, default=10)
    parser.add_argument("--methods", default="cpsat,search")
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        vertices, method = given.one
        measure(int(vertices), given.devices, method, given.seconds)
        return
    print(
        f"{'vertices':>9}{'devices':>8}  {'method':10}{'before':>9}{'after':>9}{'child':>9}"
        f"{'all':>9}  MiB",
        flush=True,
    )
    for method in given.methods.split(","):
        for vertices in given.vertices.split(","):
            rest = ["--devices", str(given.devices), "--seconds", str(given.seconds)]
            command = [sys.executable, __file__, "--one", vertices, method, *rest]
            subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
