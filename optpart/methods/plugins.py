"""Methods from a user's file, registered like those of a package."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from traceback import extract_tb

from optpart.errors import InputError
from optpart.methods import registry


def load_plugin(path: str | Path) -> list[str]:
    """Run a Python file and return the names of the methods that it registers.

    Raises
    ------
    InputError
        If the file cannot be run, registers nothing, or takes the name of a built-in method.
    """
    before = registry.own()
    spec = spec_from_file_location(f"optpart_plugin_{Path(path).stem}", path)
    if spec is None or spec.loader is None:
        raise InputError("", "not a Python file", "give a file FILE.py", str(path))
    try:
        spec.loader.exec_module(module_from_spec(spec))
    except FileNotFoundError as error:
        if error.filename != str(Path(path).absolute()) and Path(path).exists():
            raise _fault(path, error) from error
        raise InputError("", "no such file", "name a file that exists", str(path)) from None
    except (Exception, SystemExit) as error:  # a user's file may raise anything
        raise _fault(path, error) from error
    added = [name for name, method in registry.own().items() if before.get(name) is not method]
    if not added:
        raise InputError("", "registers no method", "call optpart.register in it", str(path))
    for name in added:
        if name in registry.SOLVERS or registry.split(name) is not None:
            registry.forget(name)
            raise InputError(
                name, "the name of a built-in method", "register it under another", str(path)
            )
    return added


def _fault(path: str | Path, error: BaseException) -> InputError:
    """Return the error of a file that could not be run, with the line where it failed."""
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
