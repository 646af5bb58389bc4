"""How long the first commands take that somebody tries, and what they load.

    python bench/start [--repeats 5]

Wall and processor times, the latter with those of child processes, of whole processes: warm, the
least of several runs, and once with an empty cache of machine code. The last columns tell what a
command loads, of the libraries that load slowly.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import NamedTuple

_ROOT = Path(__file__).parents[2]

_NO_BYTECODE = "PYTHONDONTWRITEBYTECODE"
_BYTECODE = Path(gettempdir()) / "optpart-bench-start"

#: What loads slowly.
_SLOW = ("numpy", "networkx", "scipy", "pandas", "ortools", "numba")

#: The command lines, with the file of the result in place of ``RESULT``.
_COMMANDS = (
    "",
    "--help",
    "methods",
    "gap --list",
    "verify heft-10 RESULT",
    "bound heft-10 --time-limit 5",
    "solve heft-10 --time-limit 5",
    "solve heft-10 -m heft",
)


class Cost(NamedTuple):
    """Seconds of a process and its children, and the first line of its output."""

    wall: float
    cpu: float
    said: str


def surroundings(**more: str) -> dict[str, str]:
    """Return the environment of a command; Python keeps its bytecode, as it does for users."""
    kept = {name: value for name, value in os.environ.items() if name != _NO_BYTECODE}
    return {**kept, "PYTHONPATH": str(_ROOT), "PYTHONPYCACHEPREFIX": str(_BYTECODE), **more}


def cost(command: list[str], cache: str | None = None) -> Cost:
    """Run a command to its end."""
    environment = surroundings() if cache is None else surroundings(OPTPART_MACHINE_CODE=cache)
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    wall, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(wall, cpu, (done.stdout.splitlines() or [""])[0])


def program(line: str) -> list[str]:
    """Return the command of a command line; of an empty one, the import of the package."""
    if not line:
        return [sys.executable, "-P", "-c", "import optpart"]
    return [sys.executable, "-P", "-m", "optpart", *line.split()]


def loaded(line: str) -> str:
    """Return what a command line loads, of the libraries that load slowly."""
    call = "import optpart" if not line else "import optpart.cli; optpart.cli.main()"
    script = (
        "import atexit, sys\n"
        f"sys.argv = ['optpart', *{line.split()}]\n"
        f"atexit.register(lambda: print(*({_SLOW} & sys.modules.keys()), file=sys.stderr))\n"
        f"{call}\n"
    ).replace(str(_SLOW), str(set(_SLOW)))
    done = subprocess.run(
        [sys.executable, "-P", "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env=surroundings(),
    )
    found = done.stderr.splitlines()[-1].split()
    return ", ".join(name for name in _SLOW if name in found) or "–"


def report(lines: Iterable[str], repeats: int, folder: Path) -> None:
    """Print the table."""
    result = folder / "result.json"
    cost(program(f"solve heft-10 -m heft -o {result}"))
    print("| command | warm, s | CPU | empty cache, s | CPU | loads | says |")
    print("|---|--:|--:|--:|--:|---|---|")
    for number, row in enumerate(lines):
        line = row.replace("RESULT", str(result))
        warm = min((cost(program(line)) for _ in range(repeats)), key=lambda each: each.wall)
        cold = cost(program(line), str(folder / f"cache-{number}"))
        said = cold.said[:50] if row.startswith(("solve", "verify")) else ""
        name = f"`optpart {row}`" if row else "`import optpart`"
        times = f"{warm.wall:.2f} | {warm.cpu:.2f} | {cold.wall:.2f} | {cold.cpu:.2f}"
        print(f"| {name} | {times} | {loaded(line)} | {said} |", flush=True)


def main() -> None:
    """Measure all commands."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--repeats", type=int, default=5, help="warm runs, of which the least is")
    repeats = parser.parse_args().repeats
    with TemporaryDirectory() as folder:
        report(_COMMANDS, repeats, Path(folder))


if __name__ == "__main__":
    main()
