"""The identity of the code behind a method: two runs with the same one ran the same code."""

from __future__ import annotations

import hashlib
import os
import pickle
import platform
import secrets
import shutil
import sys
import sysconfig
from collections.abc import Iterator
from functools import cache, partial
from importlib import metadata
from inspect import unwrap
from pathlib import Path
from types import FunctionType, MethodType
from typing import Any

from optpart.methods import registry
from optpart.methods.parts import METHODS, PARTITIONERS, TABLES

#: What lies above the methods (design §4), so that no method depends on it.
ABOVE = frozenset(
    {
        "__main__.py", "api.py", "applications", "certificates", "cli.py", "commands", "exporters",
        "placing", "study", "testing", "training_api.py",
    }
)  # fmt: skip
_ALWAYS = ("numba", "numpy")
#: What solvers and searches use. A user's own method may call any of them.
_OF_SOLVERS = ("alns", "highspy", "networkx", "ortools", "protobuf", "pulp", "scipy")
#: Commands that solvers start.
_COMMANDS = {"minizinc": ("minizinc",), "milp-cbc": ("cbc",)}
#: Folders of what is installed.
_SITE = {"site-packages", "dist-packages"}


def fingerprint(method: str) -> str:
    """Return the code that a method consists of: digests of sources, versions of packages.

    Built-in methods count as one: the code of all of them and of what they use. For a method, or
    a strategy in a pair, that a user registered or another package provides, this includes its
    version and its own code (:func:`code_of`). Data that it reads is not
    included, except the rules of ``expert:FILE``.

    Returns
    -------
    str
        Such as ``numpy 2.1.0, optpart 3f2a…, python 3.12``. If the code cannot be identified, for
        example because a file was changed after it was loaded, the text is equal to no other.
    """
    found = {"optpart": _built_in(), "python": ".".join(platform.python_version_tuple()[:2])}
    packages = [*_ALWAYS]
    foreign = registry.foreign(method)
    if foreign or method in METHODS.rows:
        packages += _OF_SOLVERS
    if (pair := registry.split(method)) is not None:
        strategy, _, argument = pair[0].partition(":")
        packages += filter(None, [PARTITIONERS[strategy].needs])
        if argument:
            found["rules"] = _content(Path(argument))
    for command in _COMMANDS.get(method, ()):
        found[f"command {command}"] = _program(command)
    if method == "minizinc":
        found["models"] = _models()
    for kind, name in foreign:
        try:
            function = TABLES[kind][name].load()
        except (Exception, SystemExit):  # loading a plug-in may raise anything
            found[f"{kind} {name}"] = "cannot be loaded"
            continue
        part = TABLES[kind][name]  # knows when it was loaded, by now
        packages += filter(None, [part.distribution])
        is_own = part.origin == "own"
        code = code_of(function, part.since or registry.LOADED, folder=is_own)
        found[f"{kind} {name}"] = code
    found |= {name: _version(name) for name in packages}
    return ", ".join(f"{name} {value}" for name, value in sorted(found.items()))


def differing(one: str, other: str) -> str:
    """Return the parts of a second fingerprint that the first one does not have."""
    return ", ".join(sorted({*other.split(", ")} - {*one.split(", ")}))


def code_of(function: object, since: int, *, folder: bool = True) -> str:
    """Return a digest of the file of a function, and of the values that are bound to it.

    Modules of the same package or folder that are loaded count as well; what is installed does not,
    since it counts by its version. Of a function without a file, such as one that was typed, and of
    values that cannot be written, nothing is known: the digest is equal to no other.

    Parameters
    ----------
    since : int
        When the code was loaded, in nanoseconds since the epoch. If a file is newer, the code that
        runs is not what it says, and the digest is equal to no other, too.
    folder : bool
        Whether other modules of the folder count, and not only those of the package.
    """
    values: list[object] = []
    try:
        plain = _plain(function, values)
        file = Path(plain.__code__.co_filename)
        parts = {digest_of(pickle.dumps(values))}
        for near in {file, *_near(plain.__module__, file, folder=folder)}:
            if _is_installed(near):
                continue
            if near.stat().st_mtime_ns > since:
                raise OSError
            # The folder is no part of its name: a plug-in's file may move.
            parts.add(f"{near.name} {digest_of(near.read_bytes())}")
    except Exception:  # objects of somebody else's may refuse in any way
        return secrets.token_hex(8)
    return digest_of("\n".join(sorted(parts)).encode())


def _plain(function: Any, values: list[object]) -> FunctionType:
    """Return the function that a callable runs; add the values that are bound to it."""
    function = unwrap(function)
    if isinstance(function, FunctionType):
        values += [cell.cell_contents for cell in function.__closure__ or ()]
        plain = {name: function.__globals__.get(name) for name in function.__code__.co_names}
        # They may depend on the command line.
        values += [(k, v) for k, v in plain.items() if isinstance(v, bool | int | float | str)]
        return function
    if isinstance(function, partial):
        values += [function.args, sorted(function.keywords.items())]
        return _plain(function.func, values)
    if isinstance(function, MethodType):
        values.append(vars(function.__self__))
        return _plain(function.__func__, values)
    if hasattr(function, "py_func"):  # compiled by numba
        return _plain(function.py_func, values)
    values.append(vars(function))
    return _plain(type(function).__call__, values)


def _near(module: str, file: Path, *, folder: bool) -> list[Path]:
    """Return the files of loaded modules of the same package, or of the same folder."""
    top = module.partition(".")[0]
    return [
        Path(place)
        for name, each in [*sys.modules.items()]
        if name != "__main__"
        and (place := getattr(each, "__file__", None))
        and (name.partition(".")[0] == top or (folder and Path(place).is_relative_to(file.parent)))
    ]


def _is_installed(file: Path) -> bool:
    """Return whether an installer has put a file where it is, or it is one of this package."""
    return bool(_SITE & {*file.parts}) or any(map(file.is_relative_to, _libraries()))


@cache
def _libraries() -> tuple[str, ...]:
    paths = [sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib")]
    return (*paths, str(Path(__file__).parents[1]))


def sources_of_methods() -> Iterator[Path]:
    """Yield the source files of optpart that built-in methods may run, in a fixed order."""
    root = Path(registry.__file__).parents[1]
    for folder, folders, files in os.walk(root):
        top = Path(folder) == root
        hidden = ABOVE if top else frozenset()
        folders[:] = sorted(name for name in {*folders} - hidden if name != "__pycache__")
        for name in sorted({*files} - hidden):
            if name.endswith(".py"):
                yield Path(folder, name)


@cache
def _built_in() -> str:
    """Return a digest of the sources of optpart, unless they are newer than what runs."""
    root = Path(registry.__file__).parents[1]
    files = [*sources_of_methods()]
    lines = [f"{file.relative_to(root)} {digest_of(file.read_bytes())}" for file in files]
    if any(file.stat().st_mtime_ns > registry.LOADED for file in files):
        lines.append(secrets.token_hex(8))
    return digest_of("\n".join(lines).encode())


@cache
def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "missing"


def _content(file: Path) -> str:
    try:
        return digest_of(file.read_bytes())
    except (OSError, ValueError):
        return "missing"


@cache
def _program(command: str) -> str:
    """Identify an installed command without running it."""
    path = shutil.which(command)
    return "missing" if path is None else _content(Path(path))


@cache
def _models() -> str:
    from optpart.exact.minizinc import models

    files = sorted(models().glob("*.mzn"))
    return digest_of(b"".join(file.read_bytes() for file in files))


def digest_of(content: bytes) -> str:
    """Return a short digest."""
    return hashlib.sha256(content).hexdigest()[:16]
