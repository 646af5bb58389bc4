"""Plug-ins: methods and strategies from a user's file, registered like those of a package."""

from __future__ import annotations

import os
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from traceback import extract_tb

from optpart.base.errors import InputError
from optpart.methods import registry


def load_plugin(path: str | Path) -> list[str]:
    """Run a Python file and return the names of the methods and strategies that it registers.

    Raises
    ------
    InputError
        If the file cannot be run, registers nothing, or registers a name that is in use.
    """
    before = registry.registered()
    # The full path in the name keeps functions of different files apart.
    spec = spec_from_file_location(f"optpart plug-in {Path(path).resolve()}", path)
    if spec is None or spec.loader is None:
        raise InputError("", "not a Python file", "give a file FILE.py", str(path))
    try:
        _run(spec, path)
        added = [row for row in registry.registered() if row not in before]
        if not added:
            raise InputError("", "registers no method", "call optpart.register in it", str(path))
    except InputError:
        for row in registry.registered():
            if row not in before:
                registry.forget(row[1], row[0])
        raise
    return [name for _, name, *_ in added]


def _run(spec: ModuleSpec, path: str | Path) -> None:
    loader = spec.loader
    assert loader is not None
    try:
        loader.exec_module(module_from_spec(spec))
    except FileNotFoundError as error:
        if error.filename != str(Path(path).absolute()) and os.path.exists(path):
            raise _fault(path, error) from error
        raise InputError("", "no such file", "name a file that exists", str(path)) from None
    except InputError as error:  # a name that is in use
        raise error.within(str(path)) from None
    except (Exception, SystemExit) as error:  # a user's file may raise anything
        raise _fault(path, error) from error


def _fault(path: str | Path, error: BaseException) -> InputError:
    """Return the error for a file that could not be run, with the line where it failed."""
    whole = str(Path(path).absolute())
    lines = [step.lineno for step in extract_tb(error.__traceback__) if step.filename == whole]
    line = error.lineno if isinstance(error, SyntaxError) else lines[-1] if lines else None
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    return InputError(
        f"line {line}" if line else "",
        f"cannot be loaded ({type(error).__name__}: {text})",
        "fix the file",
        str(path),
    )
