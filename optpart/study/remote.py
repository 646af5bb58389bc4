"""A run on another machine: text in, text out."""

from __future__ import annotations

import json
import signal
from functools import cache, lru_cache

from optpart.errors import InputError
from optpart.formats import native
from optpart.formats import result as result_format
from optpart.formats.json import parse_json
from optpart.methods import registry
from optpart.problem.instance import Instance
from optpart.solution.result import Budget
from optpart.study.run import Run, execute
from optpart.version import __version__


def execute_text(instance: str, method: str, seed: int, budget: Budget, version: str) -> str:
    """Execute a run on an instance in native JSON, and return its result document.

    Raises
    ------
    InputError
        If this machine has another version of optpart, or lacks the method.
    """
    if version != __version__:
        raise InputError("", f"a worker has optpart {__version__}", f"install {version} there")
    registry.check(method)  # A method that some machines lack is an error, not a result of a run.
    _warm_up()
    result = execute(Run(_parsed(instance), method, seed, budget))
    return json.dumps(result_format.to_dict(result))


def dask_setup(_worker: object) -> None:
    """Leave Ctrl-C to the sweep: a terminal also sends it to workers on the same machine."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@cache
def _warm_up() -> None:
    """Keep the time to load and compile out of the first run of a process."""
    registry.warm_up()


@lru_cache(maxsize=2)
def _parsed(instance: str) -> Instance:
    return native.from_dict(parse_json(instance))
