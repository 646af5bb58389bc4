"""Reading and writing of files: faults are one clear line, and no file is left half written."""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from optpart.errors import InputError

#: Maximal length of a file; parsed, it takes several times as much memory.
MOST_BYTES = 2**30

#: How to open a file without a name, on Linux.
_UNNAMED: int = getattr(os, "O_TMPFILE", 0)
#: Seconds after which a temporary file is no longer in use.
_OLD = 3600.0


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
        raise InputError(
            "", f"cannot be read ({error.strerror})", "name a readable file", str(path)
        ) from None
    except ValueError:  # a null byte in the path
        raise InputError(
            "", "is not a valid file name", "name a readable file", repr(str(path))
        ) from None


def read_text(path: str | Path) -> str:
    """Read a whole UTF-8 file."""
    try:
        return read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            f"byte {error.start}", "is not UTF-8 text", "give a text file", str(path)
        ) from None


def write_bytes(path: str | Path, content: bytes) -> None:
    """Write a file completely or not at all; an interruption leaves the old one.

    Where the file system permits, the new file has no name until it is complete. A process that is
    killed just then, or anywhere else, may leave ``.NAME.optpart-…``; writing the same file after
    an hour removes it.
    """
    target = Path(path)
    with write_faults(path):
        _check_kind(target)
        _remove_left(target)
        temporary = target.with_name(f"{_prefix(target)}{secrets.token_hex(4)}")
        try:
            if not _write_unnamed(temporary, content):
                with open(temporary, "xb") as stream:
                    _fill(stream, content)
            os.replace(temporary, target)
        except BaseException:
            # It may just have been renamed; an error here would hide the interruption.
            temporary.unlink(missing_ok=True)
            raise


def _prefix(target: Path) -> str:
    """Return how the names of temporary files begin: hidden, and not longer than names may be."""
    return f".{target.name[:50]}.optpart-"


def _fill(stream: BinaryIO, content: bytes) -> None:
    stream.write(content)
    stream.flush()
    os.fsync(stream.fileno())


def _write_unnamed(path: Path, content: bytes) -> bool:
    """Write a file that gets its name when it is complete; return whether this is possible."""
    if not _UNNAMED:
        return False
    try:
        descriptor = os.open(path.parent, os.O_WRONLY | _UNNAMED, 0o666)
    except OSError:  # if nothing else can be written there either, that has the better reason
        return False
    with os.fdopen(descriptor, "wb") as stream:
        _fill(stream, content)
        try:
            # Only with the number of a folder does Python follow the link to the file; as the path
            # is absolute, the number itself does not matter.
            os.link(f"/proc/self/fd/{descriptor}", path.absolute(), src_dir_fd=descriptor)
        except (OSError, NotImplementedError):
            return False
    return True


def _remove_left(target: Path) -> None:
    """Remove old temporary files of a target, whose writers were killed."""
    ours = re.compile(re.escape(_prefix(target)) + "[0-9a-f]{8}")
    with suppress(OSError):
        for name in filter(ours.fullmatch, os.listdir(target.parent)):
            left = target.with_name(name)
            if time.time() - left.stat().st_mtime > _OLD:
                left.unlink()


def write_text(path: str | Path, content: str) -> None:
    """Write a UTF-8 file, completely or not at all."""
    write_bytes(path, content.encode())


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
    lock = Path(path).with_name(f".{Path(path).name}.lock")
    descriptor = _locked(lock, InputError("", f"in use by {what}", "name another file", str(path)))
    try:
        yield
    finally:
        if descriptor is not None:
            with suppress(OSError):
                lock.unlink()  # before the release: whoever comes next makes another
            os.close(descriptor)


def _locked(lock: Path, busy: InputError) -> int | None:
    """Open and lock a file; ``None`` where that is not possible."""
    while True:
        try:
            descriptor = os.open(lock, os.O_WRONLY | os.O_CREAT, 0o666)
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


def check_target(path: str | Path) -> None:
    """Check before any work that a file can be written; the attempt leaves no trace.

    Raises
    ------
    InputError
        If the path is not a regular file, or no file can be created in its folder.
    """
    target = Path(path)
    with write_faults(path):
        _check_kind(target)
        _try(target)


def check_folder(target: str | Path) -> None:
    """Check like :func:`check_target` that a folder can be written, whether or not it exists."""
    with write_faults(target):
        _try(Path(target))


def _check_kind(target: Path) -> None:
    """Refuse what renaming would replace, though it is no regular file."""
    if target.is_dir():
        raise InputError("", "cannot be written (is a folder)", "name a file", str(target))
    if target.exists() and not target.is_file():
        raise InputError(
            "", "cannot be written (is not a regular file)", "name a file", str(target)
        )


def _try(target: Path) -> None:
    with tempfile.TemporaryFile(dir=target.parent) as trial:
        trial.write(b"\n")
        trial.flush()


@contextmanager
def written_first(write: Callable[[], object]) -> Iterator[None]:
    """Write a file before the block, which reports the same result; raise its fault afterwards.

    If one of the two fails, the other still delivers the result.
    """
    fault = None
    try:
        write()
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
