"""The code that a function consists of, as a digest: its files, what they import, its values.

Only code that is loaded already, or lies in the same package or folder, is read; nothing is run.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import os
import pickle
import secrets
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import suppress
from fractions import Fraction
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

#: Values of a module that a function of a file may read, for they may depend on the command line.
_PLAIN = (bool, int, float, str, bytes, Fraction)
#: Where class methods and properties hold their functions.
_HELD = ("__func__", "fget", "fset")
_SITE = {"site-packages", "dist-packages"}


class Sources:
    """The source files and values that functions consist of.

    Source files are followed by their imports, within the package or folder of a function and in
    all other code that no installer has put there. Of installed packages, the version counts.

    Parameters
    ----------
    since : int
        When the code was loaded, in nanoseconds since the epoch. If a file is newer, the code that
        runs is not what it says, and :attr:`digest` is equal to no other.

    Attributes
    ----------
    versions : dict of str to str
        Versions of the installed packages that the functions import.
    """

    def __init__(self, since: int) -> None:
        self.versions: dict[str, str] = {}
        self._since = since
        self._parts: set[str] = set()
        self._files: set[Path] = set()
        self._seen: dict[int, object] = {}  # holds the objects, lest an id be given again
        self._own = ""

    @property
    def digest(self) -> str:
        """A digest of everything that was added."""
        return digest_of("\n".join(sorted(self._parts)).encode())

    def add(self, function: object) -> None:
        """Add a function, or any other callable, with all that it refers to."""
        self._own = str(getattr(function, "__module__", "") or "").partition(".")[0]
        self._object(function)

    def is_unknown(self) -> None:
        """Note that something cannot be identified."""
        self._parts.add(secrets.token_hex(8))

    def _object(self, found: Any) -> None:
        if id(found) in self._seen:
            return
        self._seen[id(found)] = found
        if isinstance(found, functools.partial):
            self._object(found.func)
            for value in (*found.args, *sorted(found.keywords.items())):
                self._object(value)
        elif isinstance(found, MethodType):
            self._object(found.__func__)
            self._object(found.__self__)
        elif isinstance(found, FunctionType):
            self._function(found)
        elif isinstance(found, ModuleType):
            self._absolute(found.__name__, None)
        elif isinstance(found, type):
            self._class(found)
        elif isinstance(getattr(found, "py_func", None), FunctionType):  # compiled by numba
            self._function(found.py_func)
        else:
            self._value(found)

    def _function(self, function: FunctionType) -> None:
        code = function.__code__
        file = Path(code.co_filename)
        is_filed = file.is_file()
        if is_filed:
            self._module(function.__module__, file)
        elif not _is_standard(function.__module__):
            self._parts.add(_digest_of_code(code))
        if isinstance(wrapped := getattr(function, "__wrapped__", None), FunctionType):
            self._object(wrapped)
        for cell in function.__closure__ or ():
            with suppress(ValueError):  # an empty cell
                self._object(cell.cell_contents)
        for name in _names(code):
            if name in function.__globals__:
                value = function.__globals__[name]
                if not is_filed:
                    self._object(value)
                elif isinstance(value, _PLAIN):
                    self._parts.add(f"{name} = {value!r}")

    def _class(self, found: type) -> None:
        if _is_standard(found.__module__):
            return
        file = getattr(sys.modules.get(found.__module__), "__file__", None)
        if file is not None:
            self._module(found.__module__, Path(file))
        for base in found.__bases__:
            self._object(base)
        # Those of a notebook have no file.
        for name, value in vars(found).items():
            for part in (value, *(getattr(value, of, None) for of in _HELD)):
                if isinstance(part, FunctionType):
                    self._object(part)
                elif isinstance(part, _PLAIN) and not name.startswith("__"):
                    self._parts.add(f"{name} = {part!r}")

    def _value(self, value: object) -> None:
        self._class(type(value))
        try:
            self._parts.add(digest_of(pickle.dumps(value)))
        except Exception:  # objects of somebody else's may refuse in any way
            self.is_unknown()

    def _module(self, name: str, file: Path) -> None:
        """Add the module of a function, or the version of the package that it belongs to."""
        top = name.partition(".")[0]
        if top == self._own or not _is_installed(file):
            self._file(file, name if top != "__main__" else file.stem)
        else:
            self._package(top)

    def _package(self, top: str) -> None:
        if top not in ("optpart", *sys.stdlib_module_names):
            for name in _distributions(top):
                with suppress(metadata.PackageNotFoundError):
                    self.versions[name] = metadata.version(name)

    def _file(self, file: Path, name: str) -> None:
        """Add a file under the name of its module, and what it imports."""
        file = file.absolute()
        if file in self._files:
            return
        self._files.add(file)
        try:
            about = file.stat()
            digest, imports = _read(file, about.st_mtime_ns, about.st_size)
        except OSError:
            self.is_unknown()
            return
        if about.st_mtime_ns > self._since:
            self.is_unknown()
        # The path of a plug-in's file is no part of its name: it may move.
        self._parts.add(f"{file.stem if os.sep in name else name} {digest}")
        for level, module, names in imports:
            if level:
                folder = file.parents[level - 1]
                self._below(folder, module.split(".") if module else [], names)
            else:
                self._absolute(module, file, names)

    def _absolute(self, module: str, file: Path | None, names: tuple[str, ...] = ()) -> None:
        """Add an imported module."""
        top, *rest = module.split(".")
        if top == "optpart" or top in sys.stdlib_module_names:
            return
        spec = getattr(sys.modules.get(top), "__spec__", None)
        if spec is None:
            with suppress(ImportError, ValueError, AttributeError):
                spec = find_spec(top)
        if spec is None:
            if file is not None:
                self._below(file.parent, [top, *rest], names)
            return
        folders = [Path(place) for place in spec.submodule_search_locations or ()]
        places = folders or ([Path(spec.origin)] if spec.has_location and spec.origin else [])
        if top != self._own and all(map(_is_installed, places)):
            self._package(top)
        elif folders:
            for folder in folders:
                self._below(folder, rest, names)
        else:
            self._file(places[0], top)

    def _below(self, folder: Path, parts: list[str], names: tuple[str, ...]) -> None:
        """Add the files that an import of ``parts``, and ``names`` from it, runs in a folder."""
        for place in (folder, *(folder.joinpath(*parts[: i + 1]) for i in range(len(parts)))):
            for file in _modules_at(place):
                self._file(file, ".".join(file.with_suffix("").parts[-2:]))
        inside = folder.joinpath(*parts)
        for name in names:
            for file in _modules_at(inside / name):
                self._file(file, ".".join(file.with_suffix("").parts[-2:]))


def digest_of(content: bytes) -> str:
    """Return a short digest."""
    return hashlib.sha256(content).hexdigest()[:16]


def _modules_at(place: Path) -> Iterator[Path]:
    """Yield the files of a module or package by its path without a suffix."""
    if (package := place / "__init__.py").is_file():
        yield package
    elif (file := place.with_name(f"{place.name}.py")).is_file():
        yield file
    elif place.parent.is_dir():
        yield from place.parent.glob(f"{place.name}.*.so")


@functools.lru_cache(maxsize=4096)
def _read(
    file: Path, _changed: int, _size: int
) -> tuple[str, list[tuple[int, str, tuple[str, ...]]]]:
    """Return a digest of a file, and its imports: level, module and names."""
    content = file.read_bytes()
    found: list[tuple[int, str, tuple[str, ...]]] = []
    if file.suffix == ".py":
        with suppress(SyntaxError, ValueError, RecursionError):
            for node in ast.walk(ast.parse(content)):
                if isinstance(node, ast.Import):
                    found += [(0, alias.name, ()) for alias in node.names]
                elif isinstance(node, ast.ImportFrom):
                    names = tuple(alias.name for alias in node.names)
                    found.append((node.level, node.module or "", names))
    return digest_of(content), found


def _is_installed(file: Path) -> bool:
    """Return whether an installer has put a file where it is."""
    return bool(_SITE & {*file.parts}) or any(map(file.is_relative_to, _libraries()))


@functools.cache
def _libraries() -> tuple[str, ...]:
    return tuple(sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib"))


def _is_standard(module: str | None) -> bool:
    return (module or "").partition(".")[0] in sys.stdlib_module_names


def _distributions(top: str) -> list[str]:
    """Return the installed distributions that provide a package."""
    try:
        metadata.version(top)
    except metadata.PackageNotFoundError:
        return _providers().get(top, [])
    return [top]


@functools.cache
def _providers() -> dict[str, list[str]]:
    return {name: sorted({*found}) for name, found in metadata.packages_distributions().items()}


def _names(code: CodeType) -> Iterator[str]:
    """Yield the names of all globals and attributes that code may read."""
    yield from code.co_names
    for value in code.co_consts:
        if isinstance(value, CodeType):
            yield from _names(value)


def _digest_of_code(code: CodeType) -> str:
    """Return a digest of compiled code without a file, wherever it stands."""
    return digest_of(repr(_content(code)).encode())


def _content(value: Any) -> object:
    if isinstance(value, CodeType):
        return value.co_code, value.co_names, [_content(part) for part in value.co_consts]
    return sorted(map(repr, value)) if isinstance(value, frozenset) else value
