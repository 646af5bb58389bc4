"""All kernels, compiled ahead: when optpart is set up, or behind its first run."""

from __future__ import annotations

import hashlib
import logging
import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib import import_module
from itertools import chain
from pathlib import Path

from optpart.base.children.worker import python
from optpart.base.errors import FailureError
from optpart.kernels import store
from optpart.kernels.compiled import Kernel

_LOG = logging.getLogger(__name__)

#: The modules that define kernels, in groups that share functions and are compiled by one process;
#: what takes longest comes first.
GROUPS: tuple[tuple[str, ...], ...] = (
    (
        "optpart.search.annealer",
        "optpart.search.balance",
        "optpart.search.evaluator",
        "optpart.search.fill",
        "optpart.search.layout",
        "optpart.search.plan",
        "optpart.search.repair",
    ),
    (
        "optpart.applications.training.evaluator_kernel",
        "optpart.applications.training.makers.search_kernel",
    ),
    (
        "optpart.kernels.longest_paths",
        "optpart.kernels.tasks",
        "optpart.strategies.partition.batch_split",
        "optpart.strategies.partition.cluster",
        "optpart.strategies.partition.common",
        "optpart.strategies.partition.contiguous",
        "optpart.strategies.partition.contiguous_split",
        "optpart.strategies.partition.critical_path",
        "optpart.strategies.partition.dfs",
        "optpart.strategies.partition.etf",
        "optpart.strategies.partition.heft_groups",
        "optpart.strategies.partition.heft_lookahead",
        "optpart.strategies.partition.insertion",
        "optpart.strategies.partition.iterated_critical_path",
        "optpart.strategies.partition.linear_greedy",
        "optpart.strategies.partition.min_cut",
        "optpart.strategies.partition.mite",
        "optpart.strategies.partition.peft",
        "optpart.strategies.partition.random_hashing",
        "optpart.strategies.partition.ready_list",
        "optpart.strategies.partition.scoring",
        "optpart.strategies.partition.sequential_fill",
        "optpart.strategies.partition.task_parallel",
        "optpart.strategies.partition.unit_graph",
        "optpart.strategies.partition.white_paper",
        "optpart.strategies.scheduling.tao",
        "optpart.strategies.scheduling.tio",
        "optpart.strategies.scheduling.transfers",
        "optpart.strategies.simulator",
    ),
    (
        "optpart.exact.series.choices",
        "optpart.exact.series.join",
        "optpart.exact.series.kernel",
    ),
    (
        "optpart.lower_bounds.cases",
        "optpart.lower_bounds.colocation",
        "optpart.lower_bounds.jackson",
        "optpart.lower_bounds.one_machine",
        "optpart.lower_bounds.windows",
    ),
    ("optpart.exact.pipeline.kernel",),
)

MODULES = tuple(module for group in GROUPS for module in group)

#: Folders of the package without modules.
_NO_MODULES = ("__pycache__", "instances", "models", "machine")

_WORKER = "optpart.kernels.compiling"

_LACKING = "search and large bounds are slow or left out"

#: Machine code that every processor of this kind runs: it is shipped, and homes are shared.
_ANY_PROCESSOR = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}


@cache
def stamp() -> str:
    """Return the name of the file that says that all is there, of this state of the package.

    To read all modules would take longer than many commands, so it depends on their sizes only. A
    kernel that is missing nevertheless is compiled when it is called.
    """
    sizes = sorted(_sizes(str(Path(__file__).resolve().parents[1]), ""))
    digest = hashlib.sha256(repr((store.versions(), sizes)).encode())
    return f"complete-{digest.hexdigest()[:20]}"


def _sizes(folder: str, inside: str) -> Iterator[tuple[str, int]]:
    """Yield the modules in a folder, and the size of each."""
    with os.scandir(folder) as opened:
        entries = list(opened)
    for entry in entries:
        if entry.name.endswith(".py"):
            yield f"{inside}{entry.name}", entry.stat().st_size
        elif "." not in entry.name and entry.name not in _NO_MODULES and entry.is_dir():
            yield from _sizes(entry.path, f"{inside}{entry.name}/")


def is_ready() -> bool:
    """Return whether the machine code of all kernels is there."""
    return store.find(stamp()) is not None


def of(module: str) -> list[Kernel]:
    """Return the kernels that a module defines."""
    defined = vars(import_module(module)).values()
    return [each for each in defined if isinstance(each, Kernel) and each.__module__ == module]


def count() -> int:
    """Return the number of kernels."""
    return sum(len(of(module)) for module in MODULES)


def load() -> None:
    """Load all machine code now, so that what is measured afterwards is the work alone."""
    for module in MODULES:
        for each in of(module):
            each.dispatcher  # noqa: B018, which loads it


def make(workers: int, told: Callable[[], None] = lambda: None) -> None:
    """Compile what is missing, in processes of their own.

    Parameters
    ----------
    told : callable
        Called for each kernel when its machine code is there.

    Raises
    ------
    FailureError
        If a process fails.
    """
    if is_ready():
        return
    with ThreadPoolExecutor(max(1, workers)) as pool:
        files = [*chain(*pool.map(lambda group: _made(group, told), GROUPS)), stamp()]
    store.save(stamp(), files)
    store.prune(files)


def _made(group: Sequence[str], told: Callable[[], None]) -> list[str]:
    """Compile the kernels of some modules in one process; return their files."""
    files = []
    with subprocess.Popen(
        python(_WORKER, *group),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | _ANY_PROCESSOR,
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            files.append(line.rstrip())
            told()
        assert process.stderr is not None
        said = process.stderr.read()
    if process.returncode:
        raise FailureError(f"compiling ended with code {process.returncode}: {said.strip()[-300:]}")
    return files


def expect() -> bool:
    """Return whether all machine code is there; otherwise, begin to compile it behind this process.

    What is compiled then is there for this run, if it takes long enough, and for the next one. A
    warning says what is lacking until then.
    """
    if is_ready():
        return True
    if store.others_compile():
        return False
    store.let_others_compile()
    if store.is_writable():
        _LOG.warning("inner loops are compiled behind this run, once; until then, %s", _LACKING)
        subprocess.Popen(
            python(_WORKER, "--all"),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    else:
        _LOG.warning("no folder can keep machine code (XDG_CACHE_HOME names one), so %s", _LACKING)
    return False
