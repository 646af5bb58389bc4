"""The devices of this machine as a cluster, with figures that are measured here.

The processor is always measured; accelerators, and links to and between them, by PyTorch where it
is installed. Without it, GPUs of NVIDIA that ``nvidia-smi`` lists have the figures of the library's
device of the same model, and the link that they state.

Measured are products of matrices, copies in memory, the launch of a small operation, and messages
over links. A cluster states peaks of which operations attain a part
(:mod:`optpart.interop.costs.efficiency`): they are what was measured divided by that part.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

from optpart.base.errors import InputError
from optpart.interop.costs import benchmark
from optpart.interop.costs.efficiency import defaults
from optpart.interop.devices import library
from optpart.problem.footprint import available_memory

#: The class of operations whose attained parts count: products are what most of the time goes into.
_CLASS = "contraction"
#: Seconds beyond those asked for until the program that measures is given up: it loads PyTorch.
_PATIENCE = 120.0
#: Words that say nothing about which model a GPU is.
_MAKERS = re.compile(r"nvidia|geforce|tesla|quadro|graphics|gpu|pcie|sxm\d?|hbm\d\w?|\d+gb")
_ASKED = "name,memory.free,pcie.link.gen.max,pcie.link.width.max"


@dataclass
class Detected:
    """What was found.

    Attributes
    ----------
    text : str
        A cluster file (:mod:`optpart.interop.formats.cluster_toml`).
    remarks : list of str
        What was measured, a line per device and link, and what was taken from elsewhere.
    """

    text: str
    remarks: list[str] = field(default_factory=list)


def detect(seconds: float = 10.0) -> Detected:
    """Measure the devices of this machine.

    Parameters
    ----------
    seconds : float
        How long to measure, without the time that programs take to start.

    Raises
    ------
    InputError
        If the program that measures fails.
    """
    found = _measured(seconds)
    devices, links = found["devices"], found["links"]
    devices[0] |= {"model": _processor(), "memory": available_memory()}
    remarks = [_said(each, found["by"]) for each in devices]
    remarks += [
        f"{each['from']} to {each['to']}: {each['bandwidth']:.3g} GB/s, "
        f"{each['latency'] / 1000:.3g} us per message, measured by {found['by']}"
        for each in links
    ]
    written = [_device(each) for each in devices] + [_link(each) for each in links]
    if len(devices) == 1 and found["by"] == "NumPy":
        for number, row in enumerate(_listed()):
            text, remark = _from_library(number, row)
            written += text
            remarks.append(remark)
    today = date.today().isoformat()
    head = f"# The devices of this machine, measured on {today} by {found['by']}.\n"
    return Detected("\n".join([head, *written]), remarks)


def _measured(seconds: float) -> dict[str, Any]:
    """Run the program that measures, with as many threads as it likes."""
    free = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    command = [sys.executable, "-P", benchmark.__file__, str(seconds)]
    remedy = "write a cluster file by hand: optpart generate cluster draws one"
    try:
        ended = subprocess.run(
            command, env=free, capture_output=True, text=True, timeout=seconds + _PATIENCE
        )
        found: dict[str, Any] = json.loads(ended.stdout)
    except subprocess.TimeoutExpired:
        raise InputError("devices", "measuring them does not end", remedy) from None
    except ValueError:
        said = (ended.stderr.strip().splitlines() or ["nothing"])[-1]
        raise InputError("devices", f"measuring them failed ({said})", remedy) from None
    return found


def _said(device: Mapping[str, Any], by: str) -> str:
    rates = ", ".join(f"{name} {rate:.4g}" for name, rate in device["peak"].items())
    return (
        f"{device['name']}: {device['model']}, {device['memory'] / 2**30:.3g} GiB free; "
        f"measured by {by}: GFLOP/s in {rates}; {device['bandwidth']:.4g} GB/s; "
        f"{device['overhead'] / 1000:.2g} us per operation"
    )


def _device(device: Mapping[str, Any]) -> str:
    attained = defaults().classes[_CLASS]
    peak = ", ".join(
        f'{name} = "{rate / float(attained.compute):.4g} GFLOP/s"'
        for name, rate in device["peak"].items()
    )
    bandwidth = device["bandwidth"] / float(attained.bandwidth)
    measured = ", ".join(f"{name} {rate:.4g}" for name, rate in device["peak"].items())
    parts = f"{_percent(attained.compute)}, and of the bandwidth {_percent(attained.bandwidth)}"
    return f"""[[device]]
name = "{device["name"]}" # {device["model"]}
type = "{device["type"]}"
memory = "{int(device["memory"] // 2**20)} MiB" # free when it was measured
# Measured: {measured} GFLOP/s; {device["bandwidth"]:.4g} GB/s.
# A peak is this divided by the part of it that products attain: {parts}.
peak = {{ {peak} }}
memory_bandwidth = "{bandwidth:.4g} GB/s"
overhead = "{device["overhead"] / 1000:.3g} us"
"""


def _link(link: Mapping[str, Any]) -> str:
    return f"""[[link]]
from = "{link["from"]}"
to = "{link["to"]}"
bandwidth = "{link["bandwidth"]:.4g} GB/s"
latency = "{link["latency"] / 1000:.3g} us"
both = false
"""


def _percent(part: Fraction) -> str:
    return f"{float(100 * part):g}%"


def _processor() -> str:
    with suppress(OSError, StopIteration):
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
        line = next(line for line in lines if line.startswith("model name"))
        return line.partition(":")[2].strip() or platform.machine()
    return platform.processor() or platform.machine()


def _listed() -> Iterator[list[str]]:
    """Yield what ``nvidia-smi`` lists."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return
    command = [program, f"--query-gpu={_ASKED}", "--format=csv,noheader,nounits"]
    with suppress(OSError, subprocess.TimeoutExpired):
        ended = subprocess.run(command, capture_output=True, text=True, timeout=30)
        rows = ([word.strip() for word in row.split(",")] for row in ended.stdout.splitlines())
        yield from (row for row in rows if len(row) == len(_ASKED.split(",")))


def _from_library(number: int, row: list[str]) -> tuple[list[str], str]:
    """Return the parts of a cluster file for a GPU that nobody could measure, and a remark."""
    model, free, generation, lanes = row
    name, link = f"cuda{number}", f"pcie-{generation}-x{lanes}"
    known = same_model(model)
    install = "pip install torch, which measures it"
    if known is None:
        return [], f"{model}: left out, the library has no such device; {install}"
    if link not in library.links():
        return [], f"{model}: left out, the library has no link {link!r}; {install}"
    memory = f'memory = "{free} MiB" # free when it was read\n' if free.isdecimal() else ""
    device = f'[[device]]\nname = "{name}"\nof = "{known}" # {model}, not measured\n{memory}'
    of = f"the library's {known} over {link}"
    return [
        device,
        f'[[link]]\nfrom = "cpu"\nto = "{name}"\nof = "{link}" # as it is stated, not measured\n',
        *(
            f'[[link]]\nfrom = "cuda{other}"\nto = "{name}"\nof = "{link}" # not measured\n'
            for other in range(number)
        ),
    ], f"{name}: {model}, not measured: {of}, as it is stated; {install}"


def same_model(model: str) -> str | None:
    """Return the library's device of a model as its maker calls it, such as ``rtx-3090``."""
    joined = re.sub(r"(\d) (ti|super)\b", r"\1\2", model.lower())
    words = {word for word in re.split(r"[^a-z0-9]+", joined) if word}
    if any(word.startswith(("sxm", "hbm")) for word in words):
        words |= {"sxm", "sxm2"}
    named = {name: {*name.split("-")} for name in library.devices()}
    for name in sorted(named, key=lambda name: -len(named[name])):
        if named[name] <= words and all(map(_MAKERS.fullmatch, words - named[name])):
            return name
    return None
