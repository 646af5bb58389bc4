"""Reading and writing of files: faults are one clear line, and no file is left half written."""

from __future__ import annotations

import fcntl
import json
import os
import re
import secrets
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from optpart.base.errors import ArgumentError, InputError

#: Maximal length of a file; parsed, it takes several times as much memory.
MOST_BYTES = 2**30

#: How to open a file without a name, on Linux.
_UNNAMED: int = getattr(os, "O_TMPFILE", 0)
#: Bytes of a file that :func:`begins` looks at.
_BEGINNING = 2**20
#: The content of lock files, by which they are known.
_LOCK = b"a lock of optpart's\n"

_forced: ContextVar[bool] = ContextVar("forced", default=False)


@dataclass(frozen=True)
class Kind:
    """A kind of file, which each writer states: only a file of its kind is replaced.

    Attributes
    ----------
    name : str
        With its article, such as ``an instance``.
    holds : callable
        Returns whether the content of a stream is of this kind.
    """

    name: str
    holds: Callable[[BinaryIO], bool]


#: For files that nobody could have put there, and for scripts of developers.
ANY = Kind("a file", lambda _: True)


def of_document(
    test: Callable[[dict[str, Any]], bool], load: Callable[[BinaryIO], Any] = json.load
) -> Callable[[BinaryIO], bool]:
    """Return a test of JSON, or of what else ``load`` reads, by the top-level object."""

    def holds(stream: BinaryIO) -> bool:
        try:
            document = load(stream)
        except (ValueError, RecursionError):
            return False
        return isinstance(document, dict) and test(document)

    return holds


def of_format(name: str, load: Callable[[BinaryIO], Any] = json.load) -> Callable[[BinaryIO], bool]:
    """Return a test of a document by its key ``format``, in whatever version."""
    start = name.rpartition("/")[0] + "/"
    return of_document(lambda document: str(document.get("format")).startswith(start), load)


def begins(pattern: bytes) -> Callable[[BinaryIO], bool]:
    """Return a test of how a file begins, by a regular expression."""
    compiled = re.compile(pattern)
    return lambda stream: compiled.match(stream.read(_BEGINNING)) is not None


def of_table(*columns: str) -> Callable[[BinaryIO], bool]:
    """Return a test of CSV by the first columns of its header."""
    return begins(rb"(\xef\xbb\xbf)?" + b",".join(b'"?%b"?' % name.encode() for name in columns))


#: By suffix.
PICTURES = {
    ".png": Kind("a PNG picture", begins(rb"\x89PNG\r\n\x1a\n")),
    ".svg": Kind("an SVG picture", begins(rb"(?s)(<\?xml.{0,999})?(<!DOCTYPE svg.{0,999})?<svg\b")),
}


@contextmanager
def force() -> Iterator[None]:
    """Let writers in the block replace files of any kind, and read-only ones (``--force``).

    Folders are never forced, nor are files that are updated in place, such as stores.
    """
    before = _forced.set(True)
    try:
        yield
    finally:
        _forced.reset(before)


def read_bytes(path: str | Path) -> bytes:
    """Read a whole file, or a pipe to its end."""
    try:
        about = os.stat(path)
        if stat.S_ISCHR(about.st_mode) or stat.S_ISBLK(about.st_mode):
            raise InputError("", "is a device", "name a readable file", str(path))
        if about.st_size > MOST_BYTES:
            raise InputError("", "is longer than 1 GiB", "give a shorter file", str(path))
        return Path(path).read_bytes()
    except OSError as error:
        raise _unreadable(path, error) from None
    except ValueError:  # a null byte in the path
        raise InputError(
            "", "is not a valid file name", "name a readable file", repr(str(path))
        ) from None


@contextmanager
def opened(path: str | Path) -> Iterator[BinaryIO]:
    """Open a regular file, of which only a part may be read, since a pipe would block."""
    try:
        about = os.stat(path)
    except OSError as error:
        raise _unreadable(path, error) from None
    except ValueError:  # a null byte in the path
        problem = "cannot be the name of a file"
        raise InputError("", problem, "name a readable file", str(path)) from None
    if not stat.S_ISREG(about.st_mode):
        raise InputError("", "is no file", "name a readable file", str(path))
    try:
        with open(path, "rb") as stream:
            yield stream
    except OSError as error:
        raise _unreadable(path, error) from None


def _unreadable(path: str | Path, error: OSError) -> InputError:
    problem = f"cannot be read ({error.strerror or error})"
    return InputError("", problem, "name a readable file", str(path))


def read_text(path: str | Path) -> str:
    """Read a whole UTF-8 file."""
    try:
        return read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            f"byte {error.start}", "is not UTF-8 text", "give a text file", str(path)
        ) from None


def write_bytes(path: str | Path, content: bytes, kind: Kind) -> None:
    """Write a file completely or not at all; an interruption leaves the old one.

    A symbolic link stays, and the file that it leads to is written. A file that is replaced keeps
    its permissions and, where possible, its owner.

    Where the file system permits, the new file has no name until it is complete. A process that is
    killed just then, or anywhere else, may leave ``.NAME.optpart-…``, which may be deleted.

    Raises
    ------
    InputError
        If it cannot be written, or what is there must not be replaced; see :func:`check_target`.
    """
    with write_faults(path):
        before = _replaceable(path, kind)
        target = _behind_links(path)
        temporary = target.with_name(f"{_prefix(target)}{secrets.token_hex(4)}")
        try:
            if not _write_unnamed(temporary, content, before):
                with open(temporary, "xb") as stream:
                    _fill(stream, content, before)
            os.replace(temporary, target)
        except FileExistsError:  # not ours
            raise
        except BaseException:
            # It may just have been renamed; an error here would hide the interruption.
            temporary.unlink(missing_ok=True)
            raise


def _prefix(target: Path) -> str:
    """Return how the names of temporary files begin: hidden, and not longer than names may be."""
    return f".{target.name[:50]}.optpart-"


def _fill(stream: BinaryIO, content: bytes, before: os.stat_result | None) -> None:
    """Write the content of a file; it gets owner and permissions of the one before it."""
    if before is not None:
        with suppress(PermissionError):  # only the owner's own groups, and root's whatever
            os.fchown(stream.fileno(), before.st_uid, before.st_gid)
        os.fchmod(stream.fileno(), stat.S_IMODE(before.st_mode))
    stream.write(content)
    stream.flush()
    os.fsync(stream.fileno())


def _write_unnamed(path: Path, content: bytes, before: os.stat_result | None) -> bool:
    """Write a file that gets its name when it is complete; return whether this is possible."""
    if not _UNNAMED:
        return False
    try:
        descriptor = os.open(path.parent, os.O_WRONLY | _UNNAMED, 0o666)
    except OSError:  # if nothing else can be written there either, that has the better reason
        return False
    with os.fdopen(descriptor, "wb") as stream:
        _fill(stream, content, before)
        try:
            # Only with the number of a folder does Python follow the link to the file; as the path
            # is absolute, the number itself does not matter.
            os.link(f"/proc/self/fd/{descriptor}", path.absolute(), src_dir_fd=descriptor)
        except (OSError, NotImplementedError):
            return False
    return True


def write_text(path: str | Path, content: str, kind: Kind) -> None:
    """Write a UTF-8 file, completely or not at all; see :func:`write_bytes`."""
    write_bytes(path, content.encode(), kind)


@contextmanager
def held(path: str | Path, what: str) -> Iterator[None]:
    """Hold a file that no two processes may write, by a lock on ``.NAME.lock`` beside it.

    The lock ends with the process, however that ends. Where there are no locks, or the folder
    cannot be written, nothing is held.

    Raises
    ------
    InputError
        If another process, or another thread, holds it; ``what`` says what that does.
    """
    held_file = _behind_links(path)
    lock = held_file.with_name(f".{held_file.name}.lock")
    descriptor = _locked(lock, InputError("", f"in use by {what}", "name another file", str(path)))
    try:
        yield
    finally:
        if descriptor is not None:
            with suppress(OSError):
                if os.pread(descriptor, len(_LOCK) + 1, 0) == _LOCK:
                    lock.unlink()  # before the release: whoever comes next makes another
            os.close(descriptor)


def _locked(lock: Path, busy: InputError) -> int | None:
    """Open and lock a file; ``None`` where that is not possible."""
    while True:
        try:
            with suppress(FileExistsError):  # only what we made has our content
                made = os.open(lock, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
                os.write(made, _LOCK)
                os.close(made)
            descriptor = os.open(lock, os.O_RDWR)
        except FileNotFoundError:
            if lock.parent.is_dir() and not lock.is_symlink():
                continue  # its last holder has just removed it
            return None
        except OSError:
            return None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with suppress(FileNotFoundError):  # its last holder may have removed it in between
                if os.path.samestat(os.stat(lock), os.fstat(descriptor)):
                    return descriptor
        except BlockingIOError:
            os.close(descriptor)
            raise busy from None
        except OSError:
            os.close(descriptor)
            return None
        os.close(descriptor)


def check_target(path: str | Path, kind: Kind, *, forcible: bool = True) -> None:
    """Check before any work that a file can be written; the attempt leaves no trace.

    Parameters
    ----------
    forcible : bool
        Whether :func:`force` counts; it does not for files that are updated in place.

    Raises
    ------
    InputError
        If the path is not a regular file, no file can be created in its folder, or there is a file
        of another kind, or a read-only one; an empty file may be replaced by any other.
    """
    with write_faults(path):
        _replaceable(path, kind, forcible=forcible)
        try_beside(_behind_links(path))


def _replaceable(path: str | Path, kind: Kind, *, forcible: bool = True) -> os.stat_result | None:
    """Describe the file that will be replaced, if there is one; refuse what must stay."""
    try:
        about = os.stat(path)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(about.st_mode):
        what = "a folder" if stat.S_ISDIR(about.st_mode) else "not a regular file"
        raise InputError("", f"cannot be written (is {what})", "name a file", str(path))
    if forcible and _forced.get():
        return about
    problem = ""
    # By its mode, too: root may write everything.
    if not (about.st_mode & 0o222 and os.access(path, os.W_OK)):
        problem = "is read-only"
    elif about.st_size:
        with open(path, "rb") as stream:
            if not kind.holds(stream):
                problem = f"exists and is not {kind.name}"
    if problem:
        remedy = "name another file" + (", or give `force`" if forcible else "")
        raise ArgumentError("", problem, remedy, str(path))
    return about


def _behind_links(path: str | Path) -> Path:
    """Return the place that a symbolic link leads to, whether or not there is a file."""
    return Path(os.path.realpath(path)) if os.path.islink(path) else Path(path)


def try_beside(target: Path) -> None:
    """Create a file without a name in the folder of a target, and write to it."""
    with tempfile.TemporaryFile(dir=target.parent) as trial:
        trial.write(b"\n")
        trial.flush()


@contextmanager
def written_first(write: Callable[[Path], object], path: Path | None) -> Iterator[None]:
    """Write a file before the block, which reports the same result; raise its fault afterwards.

    If one of the two fails, the other still delivers the result. Without a path, only the block
    does.
    """
    fault = None
    try:
        if path is not None:
            write(path)
    except InputError as error:
        fault = error
    try:
        yield
    finally:
        if fault is not None:
            raise fault


@contextmanager
def write_faults(path: str | Path) -> Iterator[None]:
    """Turn an :class:`OSError` of a failed write into an :class:`InputError`."""
    try:
        yield
    except OSError as error:
        raise InputError(
            "", f"cannot be written ({error.strerror})", "name a writable place", str(path)
        ) from None
