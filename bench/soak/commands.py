"""Random command lines: does each end with a documented code, and errors on one short line?

Commands and their options are those that the program lists, with any values: sound ones, those of
other options, numbers at and beyond limits, and files that are sound, damaged, of another format,
missing or folders. They run in this process.
"""

from __future__ import annotations

import contextlib
import json
import random
import shutil
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import typer
from typer.main import get_command

from bench import commandline
from bench.soak.damage import damaged
from bench.soak.runs import FailedError
from optpart.cli import app
from optpart.methods import registry

_SAMPLES = Path(__file__).parent / "samples"
_CERTIFICATES = Path(__file__).parents[2] / "instances" / "certificates"

#: Codes that the program may end with.
_CODES = (0, 1, 2, 3, 4, 130)

#: The longest line of errors.
_MOST = 400

#: What is never given: it changes the user's shell, or starts servers.
_NEVER = ("install_completion", "show_completion", "plugin", "engine", "help")

_INSTANCES = ("heft-10", "graham-1969-4", "laich-2.5", "kwok-ahmad-9-2", "lpt-2", "no-such")
_FILES = tuple(sorted(path.name for path in _SAMPLES.iterdir() if path.is_file()))
_OUTPUTS = ("out.json", "out.png", "out.svg", "out.csv", "out.html", "out.lp", "out.toml", "out",
            "out.pdf", ".", "no/such/out.json", "instance.json", "out.JSON", "-", "")  # fmt: skip
_NUMBERS = ("0", "1", "2", "3", "5", "10", "-1", "0.5", "1/3", "1e3", "nan", "inf", "", "x",
            "1e400", "9" * 30, "+1", " 2", "١")  # fmt: skip
_WORDS = ("", "a", "gpu", "gpu=GPU", "a=1", "a=", "=", "n=8", "Ω", "[red]", "\n", "--", "*", "a,b",
          "cpu,gpu", "cpu", "gpu,cpu", "all", "none", "\x1b[31m", "a" * 500, "drawn",
          "unit")  # fmt: skip

#: Values by the name of a parameter, besides any others.
_VALUES: dict[str, tuple[str, ...]] = {
    "time_limit": ("0", "0.01", "0.1", "0.3"),
    "workers": ("1", "2"),
    "objective": ("makespan", "traffic", "lexicographic", "bottleneck"),
    "fix": ("placement", "order", "both"),
    "device_order": ("cpu,gpu", "gpu,cpu", "P1,P2,P3"),
    "within": ("5", "80", "1/3", "1000"),
    "traffic_limit": ("0", "50", "100"),
    "sensitivity": ("memory", "speed", "bandwidth", "5"),
    "to": ("trace", "lp", "mps", "onnx", "accelerate", "vllm", "tensorflow", "pytorch", "dot"),
    "cluster": ("cluster.toml", "devices.csv", "training-cluster.toml", "heterog-4"),
    "costs": ("costs.csv", "drawn", "unit", "roofline", "times.csv", "training-costs.json"),
    "memory": ("none", "estimate", "edges", "refcount"),
    "communication": ("delay", "sendrecv", "link", "port"),
    "devices": ("2", "devices.csv", "out-devices.csv"),
    "model": ("training.json", "net.onnx", "pipedream.txt"),
    "strategy": ("strategy.json",),
    "store": ("store.db",),
    "checkpoint": ("state.json",),
    "check": ("plan.json", "result.json"),
    "times": ("times.csv",),
    "format_": ("native", "gxl", "stg", "onnx", "dot", "thesis", "wfformat", "sailor"),
    "grouping": ("layers", "single", "heterog"),
    "compiler": ("memory=none", "microbatches=2", "tick=1/2", "replicas=separate"),
    "order": ("rank", "best"),
    "seed": ("0", "1", "7", "-1"),
    "seeds": ("1", "2", "0"),
    "runs": ("1", "3"),
    "replicas": ("1", "2"),
    "groups": ("1", "4", "60"),
    "samples": ("1", "4", "64"),
    "slowness": ("a=1", "GPU=2"),
    "random": ("1", "3", "6"),
    "batch": ("1", "2", "8"),
    "name": ("partition", "clique", "job-shop", "gpu=cuda:0", "three-partition"),
}


def case(number: int, folder: Path) -> str:
    """Run a command line in this folder."""
    draw = random.Random(number)
    words = _line(draw, folder, number)
    with contextlib.chdir(folder), warnings.catch_warnings():
        warnings.simplefilter("always")
        code, out, err = commandline.run(*words)
    told = f"{' '.join(map(repr, words))[:200]} ends with {code}"
    lines = err.splitlines()
    if code not in _CODES:
        raise FailedError(told)
    if "Traceback" in err or "Warning:" in err or "Traceback" in out:
        raise FailedError(f"{told}: {err[-300:]}")
    if code == 2:
        faults = [line for line in lines if line.startswith("optpart: ")]
        if len(faults) != 1 and not (not faults and "Usage: " in out):
            raise FailedError(f"{told}: {len(faults)} lines of errors: {err[-200:]}")
    if any(len(line) > _MOST for line in lines):
        raise FailedError(f"{told}: a line of {max(map(len, lines))} characters")
    if "--json" in words and code in (0, 1, 3, 4) and "--help" not in words and out:
        try:
            json.loads(out)
        except ValueError:
            raise FailedError(f"{told}: what it prints is not JSON: {out[:100]!r}") from None
    return "refused" if code == 2 else "accepted"


@cache
def _commands() -> list[tuple[tuple[str, ...], list[Any]]]:
    """Return every command with its parameters."""
    found: list[tuple[tuple[str, ...], list[Any]]] = []

    def walk(command: Any, path: tuple[str, ...]) -> None:
        context = typer.Context(command)
        if hasattr(command, "list_commands"):
            for name in command.list_commands(context):
                walk(command.get_command(context, name), (*path, name))
        else:
            found.append((path, [p for p in command.params if p.name not in _NEVER]))

    walk(get_command(app), ())
    return found


@cache
def _methods() -> list[str]:
    return [*registry.pairs(), *sorted(registry.METHODS) * 20]


def _line(draw: random.Random, folder: Path, number: int) -> list[str]:
    """Draw a command, its arguments and some of its options."""
    if not draw.randrange(100):  # nothing that the program knows
        return [draw.choice((*_WORDS, "solve", "--version")) for _ in range(draw.randint(0, 4))]
    first = draw.choice(sorted({path[0] for path, _ in _commands()}))
    path, parameters = draw.choice([each for each in _commands() if each[0][0] == first])
    words = [*path]
    for parameter in parameters:
        option = parameter.param_type_name == "option"
        limit = parameter.name in ("time_limit", "workers")
        if option and not limit:
            often = 2 if parameter.required else max(4, len(parameters) * draw.randint(1, 4) // 3)
            if draw.randrange(often) > int(parameter.required) * draw.choice((0, 1, 1, 1, 1)):
                continue
        if not option and not draw.randrange(30):
            continue
        repeated = parameter.multiple or parameter.nargs == -1
        for _ in range(draw.randint(1, 2) if repeated else 1):
            if option:
                words.append(draw.choice([*parameter.opts, *parameter.secondary_opts]))
                if getattr(parameter, "is_flag", False):
                    continue
            words.append(_value(parameter.name, path, draw, folder, number))
    if not draw.randrange(40):
        draw.shuffle(words)
    if not draw.randrange(40):
        words.insert(draw.randrange(len(words) + 1), draw.choice((*_WORDS, "--help", "--no")))
    if path[0] == "gap" and not set(words) & {*_INSTANCES, *_FILES}:
        words.append("heft-10")  # not the whole library
    return words


def _value(name: str, path: tuple[str, ...], draw: random.Random, folder: Path, number: int) -> str:
    """Draw a value of a parameter."""
    if name == "time_limit" or (name == "workers" and draw.randrange(20)):
        return draw.choice(_VALUES[name])  # others would last
    if not draw.randrange(25):
        return draw.choice((*_WORDS, *_NUMBERS))
    if name == "output":
        return draw.choice(_OUTPUTS if draw.randrange(3) else _OUTPUTS[:6])
    if name == "method":
        return draw.choice(_methods())
    if name in ("file", "files", "instance", "what") and draw.randrange(3) == 0:
        return draw.choice(_INSTANCES)
    if name == "directories" or name == "certificate":
        shutil.copytree(_CERTIFICATES / "heft-10", folder / "heft", dirs_exist_ok=True)
        if draw.randrange(2):
            each = draw.choice(sorted((folder / "heft").iterdir()))
            each.write_bytes(damaged(each.read_bytes(), number, draw))
        return "heft"
    if name in ("file", "files", "what") and draw.randrange(2):
        wanted = "instance.json"
    elif name in ("result", "start"):
        wanted = "result.json"
    elif name in _VALUES:
        wanted = draw.choice(_VALUES[name])
    elif name in ("file", "files", "what", "instance", "tables", "efficiencies", "node_memory"):
        wanted = draw.choice(_FILES)
    else:
        wanted = draw.choice((*_NUMBERS, *_NUMBERS, *_WORDS))
    if wanted in _FILES and not (folder / wanted).exists():
        shutil.copy(_SAMPLES / wanted, folder / wanted)
        if not draw.randrange(4):
            content = (folder / wanted).read_bytes()
            (folder / wanted).write_bytes(damaged(content, number, draw))
    return wanted
