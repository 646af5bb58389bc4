"""Programs of others as methods: they read an instance file, and write a result file."""

from __future__ import annotations

import os
import shlex
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from optpart.base.children.scratch import Scratch
from optpart.base.errors import InputError, PluginError
from optpart.base.files import read_bytes
from optpart.methods import registry
from optpart.methods.fingerprint import digest_of
from optpart.problem.instance import Instance
from optpart.solution.result import Budget, Result, conclude, refused
from optpart.solution.termination import Termination

#: What a command must name: the files that it reads and writes.
_INSTANCE, _RESULT = "{instance}", "{result}"

_REMEDY = "fix the program"


def register_program(command: str) -> str:
    """Register a program as a method of its own; return the name.

    The program is started in the current folder for every run, with the paths of a native instance
    file and of the result file that it must write (``docs/formats.md``). Of its result only the
    schedule counts, and only if the verifier accepts it. At the time limit the program and what it
    has started are killed; what it has written until then counts.

    Parameters
    ----------
    command : str
        Words as in a shell, which is not involved, with ``{instance}`` and ``{result}``. The name
        of the method consists of the other words.

    Raises
    ------
    InputError
        If the command cannot be divided into words, does not name both files, or its name is taken.
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise InputError("--program", str(error).lower(), "close all quotes") from None
    for file in (_INSTANCE, _RESULT):
        if not any(file in word for word in words):
            raise InputError("--program", f"does not name {file}", f"add {file} to the command")
    name = " ".join(word for word in words if _INSTANCE not in word and _RESULT not in word)
    method = _method(name, words, Path.cwd(), _content(words))
    registry.register(name, f"the program {name}")(method)
    return name


def _content(words: list[str]) -> str:
    """Return a digest of the program and of all files that the command names."""
    found = [shutil.which(words[0]) or words[0], *words[1:]]
    return digest_of(b"".join(read_bytes(file) for file in found if os.path.isfile(file)))


def _method(name: str, words: list[str], folder: Path, content: str) -> Callable[..., Result]:
    def run(instance: Instance, *, budget: Budget, seed: int, **_: Any) -> Result:
        from optpart.interop.formats import native, result

        if _content(words) != content:  # which is part of the fingerprint
            raise PluginError(name, "was changed while it is measured", "start again")
        begin = time.perf_counter()
        with Scratch() as scratch:
            given, made = scratch.folder / "instance.json", scratch.folder / "result.json"
            native.write(instance, given)
            files = [w.replace(_INSTANCE, str(given)).replace(_RESULT, str(made)) for w in words]
            # The watchdog starts commands in the temporary folder.
            there = ["/bin/sh", "-c", 'cd -- "$0" && exec "$@"', str(folder), *files]
            for _line in scratch.start(there, budget.seconds):
                pass  # its standard output is no part of the answer
            code = scratch.wait()
            seconds = time.perf_counter() - begin
            if code:
                said = scratch.complaints().strip().splitlines()
                why = f"exit code {code}" + (f": {said[-1]}" if said else "")
                raise PluginError(name, f"failed ({why})", _REMEDY)
            ended = Termination.TIME_LIMIT if code is None else Termination.COMPLETED
            schedule = None
            if made.exists():
                try:
                    schedule = result.read_schedule(made, instance)
                except InputError as error:
                    problem = f"its result cannot be read ({error.place}: {error.problem})"
                    raise PluginError(name, problem, _REMEDY) from None
            elif code == 0:
                raise PluginError(name, "wrote no result", _REMEDY)
        found = conclude(
            instance, name, schedule, termination=ended, seconds=seconds, seed=seed,
            reason="time limit" if code is None else "",
        )  # fmt: skip
        rejected = schedule is not None and found.schedule is None
        return refused(found, found.reason) if rejected else found

    return run
