"""Machine code of kernels, kept on disk between runs and shipped with the package.

A file is named after all that its content depends on: the function, every function and constant
that it refers to, the types of its arguments, and the versions of compiler and processor. So
nothing that is found can be out of date, whatever happens to times of files, and several versions
can share a folder. Every file begins with a digest of its content: a damaged one counts as missing,
and the function is compiled again. A file that cannot be written is not kept. Both cases print one
line to standard error.
"""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import pickle
import re
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from optpart.kernels.struct import Struct, hints

_LOG = logging.getLogger(__name__)

#: Where the package itself keeps machine code.
SHIPPED = Path(__file__).parent / "machine"

#: The only folder, instead of those below: for tests, and for measuring without machine code.
VARIABLE = "OPTPART_MACHINE_CODE"

#: Set where another process compiles what is missing.
_OTHERS = "OPTPART_OTHERS_COMPILE"

#: What all files are called.
_NAME = re.compile(r"[\w.]+-[0-9a-f]{20}")

_LENGTH = hashlib.sha256().digest_size

#: How kernels are compiled: other threads of Python run meanwhile.
OPTIONS: dict[str, Any] = {"error_model": "numpy", "nogil": True}

_said: set[str] = set()


def folders() -> list[Path]:
    """Return the folders to look in; what is compiled goes to the first that can be written."""
    own = os.environ.get(VARIABLE)
    if own:
        return [Path(own)]
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    with suppress(RuntimeError):  # a user without a home
        return [SHIPPED, Path(base).expanduser() / "optpart" / "machine"]
    return [SHIPPED]


def let_others_compile() -> None:
    """Note, also for children, that another process compiles what this one lacks."""
    os.environ[_OTHERS] = "1"


def others_compile() -> bool:
    """Return whether another process compiles what this one lacks."""
    return _OTHERS in os.environ


# --- names ---------------------------------------------------------------------------------------


def name(function: FunctionType, *types: object) -> str:
    """Return the name of the file for a function and what else its machine code depends on."""
    digest = hashlib.sha256(repr((versions(), OPTIONS, *map(str, types))).encode())
    for part in _parts(function, set()):
        digest.update(part)
    return f"{function.__module__}.{function.__name__}-{digest.hexdigest()[:20]}"


def versions() -> tuple[str, str]:
    """Return what all machine code depends on: Python, and the calling conventions of numba."""
    return sys.implementation.cache_tag, ".".join(version("numba").split(".")[:2])


def _parts(value: Any, seen: set[int]) -> Iterator[bytes]:
    """Yield all that a global of a compiled function contributes to its machine code."""
    value = getattr(value, "py_func", value)
    if id(value) in seen:
        return
    if isinstance(value, FunctionType):
        seen.add(id(value))
        inlined = "inlined" in vars(value)
        yield repr((value.__name__, value.__defaults__, inlined)).encode()
        yield from _code_parts(value.__code__)
        for used in sorted(_names(value.__code__) & value.__globals__.keys()):
            yield used.encode()
            yield from _parts(value.__globals__[used], seen)
    elif isinstance(value, type) and issubclass(value, Struct):
        seen.add(id(value))
        for field, hint in hints(value).items():
            yield field.encode()
            yield from _parts(hint, seen)
    elif isinstance(value, ModuleType):
        if value.__name__.split(".")[0] == __name__.split(".")[0]:
            raise TypeError(f"a kernel refers to the module {value.__name__}")
        yield value.__name__.encode()
    elif isinstance(value, np.ndarray):
        yield repr((value.dtype, value.shape)).encode() + value.tobytes()
    elif isinstance(value, type) and hasattr(value, "_fields"):  # a named tuple
        yield repr((value.__name__, value._fields)).encode()
    else:
        yield repr(value).encode()


def _code_parts(code: CodeType) -> Iterator[bytes]:
    """Yield all of a code object but where it stands."""
    yield code.co_code
    yield repr((code.co_names, code.co_varnames, code.co_argcount, code.co_exceptiontable)).encode()
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _code_parts(constant)
        else:
            yield repr(constant).encode()


def _names(code: CodeType) -> set[str]:
    """Return all names that a code object uses, also in the functions inside it."""
    inside = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    return set(code.co_names).union(*map(_names, inside))


# --- files ---------------------------------------------------------------------------------------


def find(file: str) -> Path | None:
    """Return where a file is, if it is anywhere."""
    return next((f / file for f in folders() if (f / file).is_file()), None)


def load(file: str) -> Any:
    """Return the content of a file, or ``None`` if it is missing or cannot be trusted."""
    path = find(file)
    if path is None:
        return None
    try:
        sealed = path.read_bytes()
    except OSError as error:
        _say(f"{path}: cannot be read ({error.strerror}); compiling again")
        return None
    if hashlib.sha256(sealed[_LENGTH:]).digest() != sealed[:_LENGTH]:
        _say(f"{path}: machine code is damaged; compiling again", "damaged")
        return None
    try:
        return pickle.loads(sealed[_LENGTH:])
    except (ImportError, AttributeError):  # it names what only another version has
        return None


def save(file: str, content: Any) -> None:
    """Keep a file in the first folder that can be written."""
    dumped = pickle.dumps(content, protocol=pickle.HIGHEST_PROTOCOL)
    reason = "no folder"
    for folder in folders():
        try:
            folder.mkdir(parents=True, exist_ok=True)
            written = folder / f".{file}.{os.getpid()}"
            try:
                written.write_bytes(hashlib.sha256(dumped).digest() + dumped)
                written.replace(folder / file)
            finally:
                written.unlink(missing_ok=True)
            return
        except OSError as error:
            reason = f"{folder}: {error.strerror}"
    _say(f"machine code cannot be kept, so the next run compiles again ({reason})", "not kept")


def prune(files: Collection[str]) -> None:
    """Remove machine code of other states of the package from the package's own folder."""
    for path in SHIPPED.glob("*"):
        if _NAME.fullmatch(path.name) and path.name not in files:
            with suppress(OSError):
                path.unlink()


@contextmanager
def alone(what: str) -> Iterator[bool]:
    """Tell whether no other process is in a block of this name, as far as can be known."""
    descriptor = _first_opened(what)
    if descriptor is None:
        yield True
        return
    try:
        yield _locked(descriptor)
    finally:
        os.close(descriptor)


def is_writable() -> bool:
    """Return whether there is a folder in which machine code can be kept."""
    descriptor = _first_opened("compiling")
    if descriptor is not None:
        os.close(descriptor)
    return descriptor is not None


def _first_opened(what: str) -> int | None:
    """Open a hidden file in the first folder that can be written."""
    return next(filter(None, (_opened(folder / f".{what}") for folder in folders())), None)


def _opened(path: Path) -> int | None:
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    return None


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _say(text: str, once: str = "") -> None:
    """Log each kind of fault once, regardless of how many functions it concerns."""
    kind = once or text
    if kind not in _said:
        _said.add(kind)
        _LOG.error(text)
