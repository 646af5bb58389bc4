"""A cache of compiled functions between runs: numba's, hardened against damage and full disks.

numba trusts its files: a damaged one ends the process, at worst inside the code generator, and so
does a failed write. Here every file begins with a digest of its content. A file that does not match
its digest counts as missing, so the function is compiled again; a file that cannot be written is
not kept. Both cases print one line to standard error.
"""

# mypy: allow-untyped-calls

from __future__ import annotations

import hashlib
import pickle
from pathlib import Path
from typing import Any

from numba.core.caching import FunctionCache, IndexDataCacheFile, NullCache

from optpart.terminal import complain

_DIGEST = hashlib.sha256
_LENGTH = _DIGEST().digest_size

_said: set[str] = set()

#: Stands in ``_said`` for every reason why nothing can be kept.
_NOT_KEPT = "not kept"


def keep_compiled(function: Any) -> None:
    """Keep a compiled function (of ``numba.njit``) on disk, if a folder can be written."""
    if not hasattr(function, "py_func"):  # numba's compilation is disabled
        return
    try:
        function._cache = _Kept(function.py_func)
    except (RuntimeError, OSError) as error:  # no writable folder
        function._cache = _NotKept(str(error))


def is_kept(function: Any) -> bool:
    """Return whether there is machine code of a function on disk."""
    kept = getattr(function, "_cache", None)
    return isinstance(kept, _Kept) and kept.is_filled


class _NotKept(NullCache):
    """A cache that stores nothing and warns when asked to store something."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def save_overload(self, sig: Any, cres: Any) -> None:
        _say_not_kept(self._reason)


class _Kept(FunctionCache):
    """numba's cache of a function, with a digest in every file."""

    def __init__(self, py_func: Any) -> None:
        super().__init__(py_func)
        self._cache_file = _SealedFiles(
            cache_path=self._cache_path,
            filename_base=self._impl.filename_base,
            source_stamp=self._impl.locator.get_source_stamp(),
        )

    @property
    def is_filled(self) -> bool:
        """Whether it holds anything that fits this machine and this version of the function."""
        return bool(self._cache_file._load_index())

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except OSError as error:
            _say_not_kept(f"{self._cache_path}: {error.strerror}")


class _SealedFiles(IndexDataCacheFile):
    """The index and the data of one function; names and contents are numba's."""

    def save(self, key: Any, data: Any) -> None:
        # With its key: if processes write concurrently, one's index may name another's data.
        super().save(key, (self._source_stamp, key, data))

    def load(self, key: Any) -> Any:
        stamp, known, data = super().load(key) or (None, None, None)
        return data if (stamp, known) == (self._source_stamp, key) else None

    def _load_index(self) -> dict[Any, str]:
        version, stamp, overloads = self._unsealed(self._index_path) or (None, None, {})
        fresh = (version, stamp) == (self._version, self._source_stamp)
        return overloads if fresh else {}

    def _save_index(self, overloads: dict[Any, str]) -> None:
        self._seal(self._index_path, (self._version, self._source_stamp, overloads))

    def _load_data(self, name: str) -> Any:
        return self._unsealed(self._data_path(name))

    def _save_data(self, name: str, data: Any) -> None:
        self._seal(self._data_path(name), data)

    def _seal(self, path: str, content: Any) -> None:
        dumped = self._dump(content)
        with self._open_for_write(path) as stream:
            stream.write(_DIGEST(dumped).digest() + dumped)

    def _unsealed(self, path: str) -> Any:
        """Return the content of a file, or ``None`` if it is missing or cannot be trusted."""
        try:
            sealed = Path(path).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            _say(f"{path}: cannot be read ({error.strerror}); compiling again")
            return None
        if _DIGEST(sealed[_LENGTH:]).digest() != sealed[:_LENGTH]:
            _say("cached machine code is damaged or from another version; compiling again", path)
            return None
        try:
            return pickle.loads(sealed[_LENGTH:])
        except (ImportError, AttributeError):  # it names what only another version of optpart has
            _say("cached machine code is damaged or from another version; compiling again", path)
            return None


def _say_not_kept(reason: str) -> None:
    """Say it once, although numba's reason names the function."""
    if _NOT_KEPT not in _said:
        _said.add(_NOT_KEPT)
        _say(f"machine code cannot be kept, so the next run compiles again ({reason})")


def _say(text: str, place: str = "") -> None:
    """Print each warning once, regardless of how many functions it concerns."""
    if text not in _said:
        _said.add(text)
        complain(f"{place}{': ' if place else ''}{text}")
