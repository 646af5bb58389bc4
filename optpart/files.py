"""Reading and writing files so that a fault is one clear line and never half a file."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

from optpart.errors import InputError

#: What is read takes several times its length in memory.
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
    try:
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    except OSError as error:
        raise InputError(
            "", f"cannot be written ({error.strerror})", "name a writable place", str(path)
        ) from None
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
    except BaseException as error:
        os.unlink(temporary)
        if isinstance(error, OSError):
            raise InputError(
                "", f"cannot be written ({error.strerror})", "name a writable place", str(path)
            ) from None
        raise


def write_text(path: str | Path, content: str) -> None:
    """Write a UTF-8 file, whole or not at all."""
    write_bytes(path, content.encode())
