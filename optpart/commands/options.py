"""Options shared by several commands, with their ranges.

If a file to write cannot be written, the option fails before the command does any work.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, is_dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from optpart.base.errors import InputError
from optpart.base.files import Kind, check_target, force
from optpart.base.limits import (
    LARGEST_SEED,
    MOST_SECONDS,
    MOST_TOKENS,
    MOST_WORKERS,
    check_seconds,
)
from optpart.base.registry import load
from optpart.base.terminal import say

if TYPE_CHECKING:
    from optpart.problem.instance import Instance


def _seconds(text: str, option: str = "--time-limit") -> float:
    """Read a number of seconds."""
    try:
        value = float(text)
    except ValueError:
        from optpart.problem.rational import shown

        raise InputError(
            option,
            f"{shown(text)} is not a number of seconds",
            f"give a number from 0 to {MOST_SECONDS}, without a unit",
        ) from None
    return check_seconds(value, option)


def _positions(text: str, option: str) -> int:
    """Read a number of positions; ``k`` stands for 1024 of them."""
    thousands = text.lower().endswith("k")
    count = whole(text[:-1] if thousands else text, option) * (1024 if thousands else 1)
    if not 1 <= count <= MOST_TOKENS:
        raise InputError(option, text, f"give 1 to {MOST_TOKENS}")
    return count


def _memory(text: str) -> int:
    """Read a memory limit."""
    from optpart.problem.footprint import read_memory

    return read_memory(text, "--memory-limit")


def time_limit(help: str, name: str = "--time-limit") -> typer.models.OptionInfo:
    """Return the option ``--time-limit``, or another of seconds, with its own help."""
    option: typer.models.OptionInfo = typer.Option(
        help=help, parser=lambda text: _seconds(text, name), metavar="SECONDS"
    )
    return option


def positions(help: str, name: str) -> typer.models.OptionInfo:
    """Return an option of a number of positions, such as ``8k``."""
    option: typer.models.OptionInfo = typer.Option(
        help=help, parser=lambda text: _positions(text, name), metavar="POSITIONS"
    )
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
    "runtime": "--for",
    "set_name": "--set",
}


def option_of(parameter: str) -> str:
    """Return the option that sets a parameter of a command's Python function.

    One in capitals is an argument, which has no option.
    """
    if parameter.isupper():
        return parameter
    return _OPTIONS.get(parameter, f"--{parameter.replace('_', '-')}")


def listed_devices(names: str | None) -> list[str] | None:
    """Return the devices that ``--device-order`` names."""
    return None if names is None else [name.strip() for name in names.split(",") if name.strip()]


def file_to_write(
    *names: str, help: str = "Where to write.", kind: str | None = None, updated: bool = False
) -> typer.models.OptionInfo:
    """Return an option for the path of a file to write.

    Parameters
    ----------
    kind : str, optional
        Where to find the :class:`~optpart.base.files.Kind` of the file, or a function that returns
        it for a path: ``module:name``. Without it, the command has to check the path.
    updated : bool
        Whether an existing file is updated rather than replaced, so that it cannot be forced.
    """

    def tried(path: Path | None) -> Path | None:
        if path is not None and kind is not None:
            found = load(kind)
            known = found if isinstance(found, Kind) else found(path)
            check_target(path, known, forcible=not updated)
        return path

    tried.__dict__["replaces"] = not updated
    option: typer.models.OptionInfo = typer.Option(*names, help=help, callback=tried)
    return option


def output(kind: str | None) -> typer.models.OptionInfo:
    """Return the option ``--output`` for a file of a kind; see :func:`file_to_write`."""
    return file_to_write("-o", "--output", kind=kind)


def _forced(context: typer.Context, asked: bool) -> bool:
    if asked:
        context.with_resource(force())
    return asked


#: Of all commands that write files; evaluated first, so that it counts for all paths.
_FORCE = typer.Option(
    "--force",
    callback=_forced,
    is_eager=True,
    help="Replace a file of another kind, too, or a read-only one; folders are never forced.",
)


def forcible(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the option ``--force`` if it has an option for a file to write."""
    signature = inspect.signature(command, eval_str=True)
    files = [
        name
        for name, parameter in signature.parameters.items()
        for option in getattr(parameter.annotation, "__metadata__", ())
        if getattr(getattr(option, "callback", None), "replaces", False)
    ]
    if not files:
        return command

    @wraps(command)
    def run(force: bool, **given: Any) -> None:
        if force and all(given[name] is None for name in files):
            raise InputError("--force", "used without a file to write", "name one with --output")
        command(**given)

    own = inspect.Parameter(
        "force", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Annotated[bool, _FORCE]
    )
    parameters = [
        one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in signature.parameters.values()
    ]
    place = [one.name for one in parameters].index(files[0]) + 1
    parameters.insert(place, own)
    run.__dict__["__signature__"] = inspect.Signature(parameters)
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    return run


def spread(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command an option for each field of the parameters that are dataclasses.

    The fields of one whose type is a dataclass are options, too.
    """

    @wraps(command)
    def run(**given: Any) -> None:
        command(**_gathered(command, given))

    parameters = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in _fields(command)]
    run.__dict__["__signature__"] = inspect.Signature(parameters)
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    return run


def _fields(asked: Any) -> Iterator[inspect.Parameter]:
    for one in inspect.signature(asked, eval_str=True).parameters.values():
        if is_dataclass(one.annotation):
            yield from _fields(one.annotation)
        else:
            yield one


def _gathered(asked: Any, given: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a function or a dataclass, with dataclasses made of what is given."""
    found = {}
    for name, one in inspect.signature(asked, eval_str=True).parameters.items():
        found[name] = _made(one.annotation, given) if is_dataclass(one.annotation) else given[name]
    return found


def _made(kind: Any, given: dict[str, Any]) -> Any:
    return kind(**_gathered(kind, given))


@dataclass(frozen=True)
class LanguageModel:
    """Options of readers of language models."""

    mode: Annotated[
        str | None, typer.Option(help="Of a language model: decode (default) or prefill.")
    ] = None
    context: Annotated[
        int | None,
        positions(
            "Of a language model: positions that the cache has room for, such as 8192 or 8k.",
            "--context",
        ),
    ] = None
    batch: Annotated[
        int | None,
        typer.Option(help="Of a language model: sequences at once.", min=1, max=MOST_TOKENS),
    ] = None
    granularity: Annotated[
        str | None,
        typer.Option(
            help="Of a language model: block (default), attention+mlp or attention+mlp+experts "
            "(default of GGUF files with experts, and of place for llama.cpp), or these with "
            "attention+cache for attention; of PyTorch operation (default) or module."
        ),
    ] = None
    expert_use: Annotated[
        Path | None,
        typer.Option(
            help="Of a language model: counts of the uses of experts, .json or .csv, or 'uniform'; "
            "by default, tokens use as many different ones as they can."
        ),
    ] = None
    images: Annotated[
        int | None,
        typer.Option(
            help="Of a language model with a vision tower: images in the prompt of each sequence.",
            min=0,
            max=MOST_TOKENS,
        ),
    ] = None
    image_size: Annotated[
        int | None,
        typer.Option(
            help="Pixels of a side of an image; by default as the model says.",
            min=1,
            max=MOST_TOKENS,
        ),
    ] = None
    words_only: Annotated[
        bool, typer.Option("--words-only", help="Leave out the vision tower of a language model.")
    ] = False
    mmproj: Annotated[
        Path | None, typer.Option(help="Of a GGUF model: the file of its vision tower.")
    ] = None
    weights: Annotated[
        str | None, typer.Option(help="Of a model by name: type of its weights, such as q4_K.")
    ] = None
    reserve: Annotated[
        str | None,
        typer.Option(
            help="Of a language model: memory of every device that is kept free, such as '2 GiB' "
            "or 0; by default 1 GiB for the runtime, and room for intermediate results."
        ),
    ] = None


ResultFile = Annotated[Path | None, output("optpart.interop.formats.result:KIND")]
NewInstance = Annotated[Path, output("optpart.interop.formats.native:KIND")]
Picture = Annotated[Path, output("optpart.study.report.picture:kind_of")]
SetName = Annotated[
    str | None,
    typer.Option(
        "--set",
        metavar="NAME",
        help="A set of instances, such as small, random, worst or dagbench, or a folder of "
        "'optpart generate set'; 'optpart gap --list --json' lists all.",
    ),
]
DataFolder = Annotated[
    Path | None,
    typer.Option(
        "--data", metavar="FOLDER", help="Where the files of a set are that optpart has not."
    ),
]
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


def pairs(texts: Sequence[str] | None, option: str) -> dict[str, str]:
    """Read an option that is given as ``KEY=VALUE``, once per key."""
    found: dict[str, str] = {}
    for text in texts or ():
        key, equals, value = text.partition("=")
        if not (key and equals and value):
            raise InputError(option, f"{text!r}", "give KEY=VALUE")
        if key in found:
            raise InputError(option, f"{key!r} is given twice", "give it once")
        found[key] = value
    return found


def whole(text: str, place: str) -> int:
    """Read a whole number."""
    if not (text.isascii() and text.isdecimal()) or len(text) > 18:
        raise InputError(place, f"{text!r}", "give a whole number ≥ 0")
    return int(text)


def sizes(texts: Sequence[str] | None) -> dict[str, int]:
    """Read ``--shape``, given as ``SYMBOL=SIZE``."""
    found = pairs(texts, "--shape")
    for key, text in found.items():
        if not (text.isascii() and text.isdecimal()) or len(text) > 18:
            raise InputError("--shape", f"{key}={text}", "give a whole number ≥ 0")
    return {key: int(text) for key, text in found.items()}


def say_size(instance: Instance, output: Path) -> None:
    """Print the size of an instance, and the file that it was written to."""
    say(
        f"{instance.name}: {instance.vertices} vertices, {len(instance.graph.edge_source)} edges, "
        f"{instance.devices} devices → {output}"
    )
