"""The identity of code that is not part of this package."""

from __future__ import annotations

import hashlib
import pickle
import secrets
import sys
import sysconfig
from functools import cache, partial
from inspect import unwrap
from pathlib import Path
from types import FunctionType, MethodType
from typing import Any

_SITE = {"site-packages", "dist-packages"}


def digest_of(content: bytes) -> str:
    """Return a short digest."""
    return hashlib.sha256(content).hexdigest()[:16]


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
