"""Memory that the work on an instance may take, estimated before any of it begins.

A ceiling counts what this process and the processes that it starts hold at once. Estimates are
products of a size that is known beforehand and of a factor that was measured, rounded up: that of
``python bench/limits/memory.py``, whose rows have these sizes and factors. They are peaks of
resident memory (``VmHWM``) of layered graphs, with two workers, on Linux with Python 3.11 and
OR-Tools 9.15; the last columns of a row compare all processes with the estimate.

- ``process``: this process takes 230 MiB once its libraries and compiled loops are loaded, and 250
  MiB with those of linear programs. With bounds and schedules of larger graphs it took up to 340.
  Compiling the loops, once after an installation, takes up to 640 MiB (``compiling``), which no
  estimate includes.
- ``instance``: 100,000 vertices on ten devices take 180 MiB more.
- ``cpsat``: its process takes 90 MiB, and 0.7 to 1.4 KiB per term of its model (35,000 and 28,000
  terms).
- ``milp``: its process takes 40 MiB, and 1.2 to 1.7 KiB per row (86,000 and 51,000 rows); up to 3.1
  KiB with more time.
- ``search``: each helper takes 210 to 240 MiB, and what this process takes for the instance. With
  ``hybrid``, each worker has a process of CP-SAT, which takes 90 MiB for a part.
- ``crossings``: the linear programs take 1.9 KiB per crossing (21,000 crossings).
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from optpart.base.errors import InputError
from optpart.problem.instance import Instance
from optpart.problem.units import quantity

_MIB = 2**20

#: Bytes of this process, and per vertex, per vertex and device, and per edge of an instance.
_PROCESS = 340 * _MIB
_VERTEX, _CELL, _EDGE = 2048, 160, 512

#: Up to this many vertices nothing is compiled except for a search, and this process takes less.
_SMALL, _PROCESS_SMALL = 12, 60 * _MIB

#: Bytes of the processes of solvers, and per term and row of their models.
_CPSAT, _TERM = 120 * _MIB, 1500
_MILP, _ROW = 120 * _MIB, 5 * 1024

#: Bytes of a helper of a search, and of the programs that bound it.
_HELPER = 300 * _MIB

#: Bytes of the linear program of crossings, per crossing.
_CROSSING = 4 * 1024

#: The least that can be allowed.
_LEAST = 2**20

_EXAMPLE = "give an amount such as 4GiB"


def read_memory(value: str | float, place: str = "memory") -> int:
    """Return an amount of memory, a number of bytes or a text such as ``"4 GiB"``, in bytes.

    Raises
    ------
    InputError
        If it is no amount of memory, or less than a MiB.
    """
    try:
        amount = quantity(value, "size", place)
    except InputError as error:
        raise InputError(place, error.problem, _EXAMPLE) from None
    if amount < _LEAST:
        raise InputError(place, f"{value} is too little", _EXAMPLE)
    return int(amount)


def available_memory() -> int:
    """Return how many bytes this process may still take, with its own: that is the default ceiling.

    The least of the machine's available memory and of what the control group of the process leaves
    (versions 1 and 2); where neither is known, all memory of the machine.
    """
    own = resident("self")
    free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/meminfo").read_text().splitlines()
        line = next(line for line in lines if line.startswith("MemAvailable"))
        free = own + 1024 * int(line.split()[1])
    for limit, used in (
        ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
        (
            "/sys/fs/cgroup/memory/memory.limit_in_bytes",
            "/sys/fs/cgroup/memory/memory.usage_in_bytes",
        ),
    ):
        with suppress(OSError, ValueError):  # a limit may also be the word "max"
            most, now = (int(Path(path).read_text()) for path in (limit, used))
            free = min(free, own + max(0, most - now))
    return free


def resident(pid: int | str) -> int:
    """Return the resident bytes of a process; 0 if it has ended, or the system does not tell."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def said(amount: float) -> str:
    """Write an amount of memory for people, such as ``6.1 GiB``."""
    for factor, unit in ((2**30, "GiB"), (2**20, "MiB")):
        if amount >= factor:
            value = amount / factor
            return (
                f"{value:.1f} {unit}"
                if value < 10 and value != int(value)
                else f"{value:.0f} {unit}"
            )
    return f"{amount:.0f} bytes"


def of_process(instance: Instance) -> int:
    """Estimate the bytes of this process with an instance, its schedules and its bounds."""
    own = _PROCESS_SMALL if instance.vertices <= _SMALL else _PROCESS
    return own + _of_instance(instance)


def _of_instance(instance: Instance) -> int:
    n, k = instance.vertices, instance.devices
    return _VERTEX * n + _CELL * n * k + _EDGE * len(instance.graph.edge_source)


def of_cpsat(instance: Instance, terms: int, workers: int = 2) -> int:
    """Estimate the bytes of this process and CP-SAT's.

    Parameters
    ----------
    terms : int
        Pairs of devices over all edges.
    workers : int
        Each holds a copy of a part of the model.
    """
    n, k = instance.vertices, instance.devices
    return of_process(instance) + _CPSAT + _TERM * (terms + n * k) * max(2, workers) // 2


def of_milp(instance: Instance, rows: int) -> int:
    """Estimate the bytes of this process and the one of a MILP solver.

    Parameters
    ----------
    rows : int
        Of the program: those for pairs of vertices, and for edges.
    """
    return of_process(instance) + _MILP + _ROW * rows


def of_search(instance: Instance, workers: int) -> int:
    """Estimate the bytes of this process and of the helpers of a search."""
    return _PROCESS + (workers - 1) * _HELPER + workers * _of_instance(instance)


def of_hybrid(instance: Instance, workers: int) -> int:
    """Estimate the bytes of a search of which each worker has a solver for small parts."""
    return of_search(instance, workers) + workers * _CPSAT


def of_crossings(instance: Instance, crossings: int) -> int:
    """Estimate the bytes of this process with the linear program of crossings."""
    return of_process(instance) + _CROSSING * crossings


def excess(needed: int, allowed: int | None) -> str:
    """Return in words that more memory is needed than allowed; empty if it suffices.

    Parameters
    ----------
    allowed : int or None
        Bytes; ``None`` stands for :func:`available_memory`.
    """
    ceiling = available_memory() if allowed is None else allowed
    if needed <= ceiling:
        return ""
    whose = "available" if allowed is None else "allowed"
    return f"would need about {said(needed)} of memory, of {said(ceiling)} {whose}"
