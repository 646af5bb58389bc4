"""The identity of the code behind a method: two runs with the same one ran the same code."""

from __future__ import annotations

import os
import platform
import secrets
import shutil
from collections.abc import Iterator
from functools import cache
from importlib import metadata
from pathlib import Path

from optpart.methods import registry
from optpart.methods.parts import METHODS, PARTITIONERS, TABLES
from optpart.methods.sources import code_of, digest_of

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


def fingerprint(method: str) -> str:
    """Return the code that a method consists of: digests of sources, versions of packages.

    Built-in methods count as one: the code of all of them and of what they use. For a method, or
    a strategy in a pair, that a user registered or another package provides, this includes its
    version and its own code (:func:`~optpart.methods.sources.code_of`). Data that it reads is not
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
