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

    A symbolic link stays, and the file that it leads to is written. A file that is replaced keeps
    its permissions and, where possible, its owner.

    Where the file system permits, the new file has no name until it is complete. A process that is
    killed just then, or anywhere else, may leave ``.NAME.optpart-…``; writing the same file after
    an hour removes it.
    """
    with write_faults(path):
        before = _replaceable(path)
        target = _behind_links(path)
        _remove_left(target)
        temporary = target.with_name(f"{_prefix(target)}{secrets.token_hex(4)}")
        try:
            if not _write_unnamed(temporary, content, before):
                with open(temporary, "xb") as stream:
                    _fill(stream, content, before)
            os.replace(temporary, target)
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
    held_file = _behind_links(path)
    lock = held_file.with_name(f".{held_file.name}.lock")
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
    with write_faults(path):
        _replaceable(path)
        _try(_behind_links(path))


def check_folder(target: str | Path) -> None:
    """Check like :func:`check_target` that a folder can be written, whether or not it exists."""
    with write_faults(target):
        _try(Path(target))


def _replaceable(path: str | Path) -> os.stat_result | None:
    """Describe the file that will be replaced, if there is one; refuse what is no regular file."""
    try:
        about = os.stat(path)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(about.st_mode):
        kind = "a folder" if stat.S_ISDIR(about.st_mode) else "not a regular file"
        raise InputError("", f"cannot be written (is {kind})", "name a file", str(path))
    return about


def _behind_links(path: str | Path) -> Path:
    """Return the place that a symbolic link leads to, whether or not there is a file."""
    return Path(os.path.realpath(path)) if os.path.islink(path) else Path(path)


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
