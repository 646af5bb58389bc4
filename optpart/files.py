"""Reading and writing of files: faults are one clear line, and no file is left half written."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from optpart.errors import InputError

#: Maximal length of a file; parsed, it takes several times as much memory.
MOST_BYTES = 2**30


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
    """Write a file under a temporary name and rename it; an interruption leaves the old file."""
    target = Path(path)
    with write_faults(path):
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
            # mkstemp makes files private; a result should be as readable as any other new file.
            mask = os.umask(0)
            os.umask(mask)
            os.chmod(temporary, 0o666 & ~mask)
            os.replace(temporary, target)
        except BaseException:
            # It may just have been renamed; an error here would hide the interruption.
            Path(temporary).unlink(missing_ok=True)
            raise


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
        if target.is_dir():
            raise InputError("", "cannot be written (is a folder)", "name a file", str(path))
        if target.exists() and not target.is_file():  # renaming would replace it
            raise InputError(
                "", "cannot be written (is not a regular file)", "name a file", str(path)
            )
        _try(target)


def check_folder(target: str | Path) -> None:
    """Check like :func:`check_target` that a folder can be written, whether or not it exists."""
    with write_faults(target):
        _try(Path(target))


def _try(target: Path) -> None:
    with tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}.") as trial:
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
