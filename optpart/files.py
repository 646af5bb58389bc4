"""Reading and writing files so that a fault is one clear line and never half a file."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from optpart.errors import InputError

#: A parsed file takes several times its length in memory.
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
            "", "cannot be the name of a file", "name a readable file", repr(str(path))
        ) from None


def read_text(path: str | Path) -> str:
    """Read a whole UTF-8 file."""
    try:
        return read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            f"byte {error.start}", "not UTF-8 text", "give a text file", str(path)
        ) from None


def write_bytes(path: str | Path, content: bytes) -> None:
    """Write a file under a temporary name and rename it: an interruption leaves the old file."""
    target = Path(path)
    with write_faults(path):
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
            # mkstemp makes files private; a result is as readable as any file the user creates.
            mask = os.umask(0)
            os.umask(mask)
            os.chmod(temporary, 0o666 & ~mask)
            os.replace(temporary, target)
        except BaseException:
            # It may just have been renamed; an error here would hide the interruption.
            Path(temporary).unlink(missing_ok=True)
            raise


def write_text(path: str | Path, content: str) -> None:
    """Write a UTF-8 file, whole or not at all."""
    write_bytes(path, content.encode())


def check_target(path: str | Path) -> None:
    """Try whether a file can be written, before any work; nothing of the attempt remains.

    Raises
    ------
    InputError
        If the path is a folder, a device or the like, or if its folder takes no new file.
    """
    target = Path(path)
    with write_faults(path):
        if target.is_dir():
            raise InputError("", "cannot be written (is a folder)", "name a file", str(path))
        if target.exists() and not target.is_file():  # renaming would put a file in its place
            raise InputError("", "cannot be written (is no file)", "name a file", str(path))
        _try(target)


def check_folder(target: str | Path) -> None:
    """Do as :func:`check_target` for what becomes a folder, or is one already."""
    with write_faults(target):
        _try(Path(target))


def _try(target: Path) -> None:
    with tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}.") as trial:
        trial.write(b"\n")
        trial.flush()


@contextmanager
def written_first(write: Callable[[], object]) -> Iterator[None]:
    """Write a file before the block, which says what was found, and raise its fault after it.

    Whatever happens to one of the two, what was found is not lost in the other.
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
    """Turn the system's error of a failed write into an :class:`InputError`."""
    try:
        yield
    except OSError as error:
        raise InputError(
            "", f"cannot be written ({error.strerror})", "name a writable place", str(path)
        ) from None
