"""Reading and writing of files: faults are one clear line, and no file is left half written."""

from __future__ import annotations

import errno
import os
import secrets
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from optpart.errors import InputError

#: Maximal length of a file; parsed, it takes several times as much memory.
MOST_BYTES = 2**30

#: How to open a file without a name on Linux, and where it is found to be named.
_UNNAMED: int = getattr(os, "O_TMPFILE", 0)
_DESCRIPTORS = "/proc/self/fd"


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

    Where the file system permits, the new file has no name until it is complete, so that a killed
    process leaves nothing behind. Elsewhere, it may leave ``.NAME.optpart-…``.
    """
    target = Path(path)
    with write_faults(path):
        _check_kind(target)
        # Hidden, and not any longer than names may be.
        temporary = target.with_name(f".{target.name[:50]}.optpart-{secrets.token_hex(4)}")
        unnamed = _unnamed(target.parent)
        try:
            with open(temporary, "xb") if unnamed is None else os.fdopen(unnamed, "wb") as stream:
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
                if unnamed is not None:
                    _name(unnamed, temporary)
            os.replace(temporary, target)
        except BaseException:
            # It may just have been renamed; an error here would hide the interruption.
            temporary.unlink(missing_ok=True)
            raise


def _unnamed(folder: Path) -> int | None:
    """Open a new file without a name; ``None`` where this is not possible."""
    if not _UNNAMED or not os.path.isdir(_DESCRIPTORS):
        return None
    try:
        return os.open(folder, os.O_WRONLY | _UNNAMED, 0o666)
    except OSError as error:
        if error.errno in (errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT, errno.EINVAL):
            return None
        raise


def _name(descriptor: int, path: Path) -> None:
    """Give an open file its first name."""
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        # Only with a folder does Python follow the link to the file.
        os.link(f"{_DESCRIPTORS}/{descriptor}", path.name, dst_dir_fd=folder)
    finally:
        os.close(folder)


def write_text(path: str | Path, content: str) -> None:
    """Write a UTF-8 file, completely or not at all."""
    write_bytes(path, content.encode())


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
