"""The identity of code that is not part of this package.

Nothing is imported or run for it.
"""

from __future__ import annotations

import hashlib
import pickle
import secrets
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import suppress
from fractions import Fraction
from functools import cache, partial
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

#: Values of a module that a function of a file may read, for they may depend on the command line.
_PLAIN = (bool, int, float, str, bytes, Fraction)
#: Where class methods and properties hold their functions.
_HELD = ("__func__", "fget", "fset")
_SITE = {"site-packages", "dist-packages"}


def digest_of(content: bytes) -> str:
    """Return a short digest."""
    return hashlib.sha256(content).hexdigest()[:16]


def code_of(function: object, since: int, *, folder: bool = True) -> str:
    """Return a digest of the code that a function consists of.

    This is the text of its file and of the modules of the same package or folder that are loaded,
    and the values that it closes over or reads. Of a function that was typed, as in a notebook, it
    is the compiled code, with that of all functions and classes that it refers to.

    Parameters
    ----------
    since : int
        When the code was loaded, in nanoseconds since the epoch. If a file is newer, the code that
        runs is not what it says, and the digest is equal to no other.
    folder : bool
        Whether other modules of the folder count, too, and not only those of the package.
    """
    return _Code(since, folder=folder).of(function)


class _Code:
    def __init__(self, since: int, *, folder: bool) -> None:
        self._since, self._folder = since, folder
        self._parts: set[str] = set()
        self._files: set[Path] = set()
        self._seen: dict[int, object] = {}  # holds the objects, lest an id be given again

    def of(self, function: object) -> str:
        self._add(function)
        return digest_of("\n".join(sorted(self._parts)).encode())

    def _add(self, found: Any) -> None:
        if id(found) in self._seen:
            return
        self._seen[id(found)] = found
        if isinstance(found, partial):
            for part in (found.func, *found.args, *sorted(found.keywords.items())):
                self._add(part)
        elif isinstance(found, MethodType):
            self._add(found.__func__)
            self._add(found.__self__)
        elif isinstance(found, FunctionType):
            self._add_function(found)
        elif isinstance(found, ModuleType):
            self._add_module(found.__name__)
        elif isinstance(found, type):
            self._add_class(found)
        elif isinstance(getattr(found, "py_func", None), FunctionType):  # compiled by numba
            self._add(found.py_func)
        else:
            self._add(type(found))
            try:
                self._parts.add(digest_of(pickle.dumps(found)))
            except Exception:  # objects of somebody else's may refuse in any way
                self._parts.add(secrets.token_hex(8))

    def _add_function(self, function: FunctionType) -> None:
        code = function.__code__
        file = Path(code.co_filename)
        typed = not file.is_file()
        if typed:
            self._parts.add(digest_of(repr(_content(code)).encode()))
        else:
            self._add_file(function.__module__, file)
        if isinstance(wrapped := getattr(function, "__wrapped__", None), FunctionType):
            self._add(wrapped)
        for cell in function.__closure__ or ():
            with suppress(ValueError):  # an empty cell
                self._add(cell.cell_contents)
        for name in _names(code):
            if name in function.__globals__:
                value = function.__globals__[name]
                if typed:
                    self._add(value)
                elif isinstance(value, _PLAIN):
                    self._parts.add(f"{name} = {value!r}")

    def _add_class(self, found: type) -> None:
        if found.__module__.partition(".")[0] in sys.stdlib_module_names:
            return
        self._add_module(found.__module__)
        for base in found.__bases__:
            self._add(base)
        # Those of a notebook have no file.
        for name, value in vars(found).items():
            for part in (value, *(getattr(value, of, None) for of in _HELD)):
                if isinstance(part, FunctionType):
                    self._add(part)
                elif isinstance(part, _PLAIN) and not name.startswith("__"):
                    self._parts.add(f"{name} = {part!r}")

    def _add_module(self, name: str) -> None:
        file = getattr(sys.modules.get(name), "__file__", None)
        if file is not None:
            self._add_file(name, Path(file))

    def _add_file(self, module: str, file: Path) -> None:
        """Add a file and those near it, unless they are installed."""
        if file in self._files:
            return
        self._add_text(file)
        top = module.partition(".")[0]
        for name, near in [*sys.modules.items()]:
            place = getattr(near, "__file__", None)
            if place is None or name == "__main__":
                continue
            inside = self._folder and Path(place).is_relative_to(file.parent)
            if inside or name.partition(".")[0] == top:
                self._add_text(Path(place))

    def _add_text(self, file: Path) -> None:
        if file in self._files or _is_installed(file):
            return
        self._files.add(file)
        try:
            # The folder is no part of its name: a plug-in's file may move.
            self._parts.add(f"{file.name} {digest_of(file.read_bytes())}")
            changed = file.stat().st_mtime_ns > self._since
        except OSError:
            changed = True
        if changed:
            self._parts.add(secrets.token_hex(8))


def _is_installed(file: Path) -> bool:
    """Return whether an installer has put a file where it is, or it is one of this package."""
    return bool(_SITE & {*file.parts}) or any(map(file.is_relative_to, _libraries()))


@cache
def _libraries() -> tuple[str, ...]:
    paths = [sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib")]
    return (*paths, str(Path(__file__).parents[1]))


def _names(code: CodeType) -> Iterator[str]:
    """Yield the names of all globals and attributes that code may read."""
    yield from code.co_names
    for value in code.co_consts:
        if isinstance(value, CodeType):
            yield from _names(value)


def _content(value: Any) -> object:
    """Return what compiled code does, wherever it stands."""
    if isinstance(value, CodeType):
        return value.co_code, value.co_names, [_content(part) for part in value.co_consts]
    return sorted(map(repr, value)) if isinstance(value, frozenset) else value
