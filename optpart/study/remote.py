"""A run on another machine: text in, text out."""

from __future__ import annotations

import json
import pickle
import signal
from functools import cache, lru_cache

from optpart.errors import InputError
from optpart.formats import native
from optpart.formats import result as result_format
from optpart.formats.json import parse_json
from optpart.methods import registry
from optpart.methods.fingerprint import differing, fingerprint
from optpart.problem.instance import Instance
from optpart.solution.result import Budget
from optpart.study.run import Run, execute
from optpart.surroundings import ignore_settings_here
from optpart.version import __version__

#: What was taken over from sweeps, by kind and name, and the bytes that it came in.
_taken: dict[tuple[registry.Kind, str], bytes] = {}


def execute_text(
    instance: str,
    method: str,
    seed: int,
    budget: Budget,
    version: str,
    code: str,
    registered: bytes = b"",
) -> str:
    """Execute a run on an instance in native JSON, and return its result document.

    Parameters
    ----------
    code : str
        The :func:`~optpart.methods.fingerprint.fingerprint` of the method where the sweep runs.
    registered : bytes
        What was registered where the sweep runs, pickled; empty for nothing.

    Raises
    ------
    InputError
        If this machine has another version of optpart, lacks the method, or has other code of it.
    """
    if version != __version__:
        raise InputError("", f"a worker has optpart {__version__}", f"install {version} there")
    _take_over(registered)
    registry.check(method)  # A method that some machines lack is an error, not a result of a run.
    sent = any((part.kind, part.name) in _taken for part in registry.foreign(method))
    if not sent and (other := differing(code, fingerprint(method))):
        raise InputError("", f"a worker has other code of {method} ({other})", "install the same")
    _warm_up()
    result = execute(Run(_parsed(instance), method, seed, budget))
    return json.dumps(result_format.to_dict(result))


def _take_over(packed: bytes) -> None:
    """Register what the sweep has registered, in place of what an earlier one had."""
    if set(_taken.values()) <= {packed} and (_taken or not packed):
        return
    for kind, name in _taken:
        registry.forget(name, kind)
    _taken.clear()
    if not packed:
        return
    here = {(kind, name) for kind, name, *_ in registry.registered()}
    for kind, name, function, summary in pickle.loads(packed):
        if (kind, name) not in here:  # a worker in the process of the sweep has it already
            registry.register(name, summary, kind=kind)(function)
            _taken[kind, name] = packed


def dask_setup(_worker: object) -> None:
    """Leave Ctrl-C to the sweep: a terminal also sends it to workers on the same machine.

    Settings in the folder where they start count as little as for the sweep.
    """
    ignore_settings_here()
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@cache
def _warm_up() -> None:
    """Keep the time to load and compile out of the first run of a process."""
    registry.warm_up()


@lru_cache(maxsize=2)
def _parsed(instance: str) -> Instance:
    return native.from_dict(parse_json(instance))
