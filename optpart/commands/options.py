"""Options shared by several commands, with their ranges.

If a file to write cannot be written, the option fails before the command does any work.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from optpart.errors import InputError
from optpart.files import check_target
from optpart.limits import LARGEST_SEED, MOST_SECONDS, MOST_WORKERS, check_seconds


def _seconds(text: str) -> float:
    """Read a time limit."""
    try:
        value = float(text)
    except ValueError:
        from optpart.problem.rational import shown

        raise InputError(
            "--time-limit",
            f"{shown(text)} is not a number of seconds",
            f"give a number from 0 to {MOST_SECONDS}, without a unit",
        ) from None
    return check_seconds(value, "--time-limit")


def _memory(text: str) -> int:
    """Read a memory limit."""
    from optpart.problem.footprint import read_memory

    return read_memory(text, "--memory-limit")


def time_limit(help: str) -> typer.models.OptionInfo:
    """Return the option ``--time-limit`` with its own help."""
    option: typer.models.OptionInfo = typer.Option(help=help, parser=_seconds, metavar="SECONDS")
    return option


#: The option ``--time-limit``, given a default.
TimeLimit = Annotated[float, time_limit("Seconds.")]
MemoryLimit = Annotated[
    int | None,
    typer.Option(
        parser=_memory,
        metavar="SIZE",
        help="Memory that optpart and its solvers may take together, such as 4GiB; by default, "
        "what is available. What would take more is refused before it begins.",
    ),
]
EngineName = Annotated[
    str,
    typer.Option(
        "--engine",
        help="Where to run: local, dask (processes on this machine), or the address of the "
        "scheduler of a Dask cluster, such as dask://HOST:PORT or tls://HOST:PORT.",
    ),
]
Workers = Annotated[int, typer.Option(help="Threads of the solver.", min=1, max=MOST_WORKERS)]
Seed = Annotated[int, typer.Option(help="Seed of all random choices.", min=0, max=LARGEST_SEED)]


#: The options of parameters with a different name.
_OPTIONS = {
    "seconds": "--time-limit",
    "memory": "--memory-limit",
    "directory": "--output",
    "shapes": "--shape",
    "gpus": "--gpu",
}


def option_of(parameter: str) -> str:
    """Return the option that sets a parameter of a command's Python function."""
    return _OPTIONS.get(parameter, f"--{parameter.replace('_', '-')}")


def listed_devices(names: str | None) -> list[str] | None:
    """Return the devices that ``--device-order`` names."""
    return None if names is None else [name.strip() for name in names.split(",") if name.strip()]


def _tried(path: Path | None) -> Path | None:
    if path is not None:
        check_target(path)
    return path


def file_to_write(*names: str, help: str) -> typer.models.OptionInfo:
    """Return an option for the path of a file to write."""
    option: typer.models.OptionInfo = typer.Option(*names, help=help, callback=_tried)
    return option


Output = Annotated[Path | None, file_to_write("-o", "--output", help="Where to write.")]
Needed = Annotated[Path, file_to_write("-o", "--output", help="Where to write.")]
File = Annotated[str, typer.Argument(help="An instance file, or the name of a library instance.")]
MethodName = Annotated[str, typer.Option("--method", "-m", help="See 'optpart methods'.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON to standard output.")]
DeviceOrder = Annotated[
    str | None,
    typer.Option(
        metavar="DEVICES",
        help="Use only these devices, separated by commas, each for one block, with no edge from a "
        "later one to an earlier one; any may stay empty.",
    ),
]
Start = Annotated[
    str | None,
    typer.Option(help="A result file to start from, or a strategy such as heft or mite+pct."),
]
