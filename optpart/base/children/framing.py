"""Messages on a byte stream: each is pickled and preceded by its length."""

from __future__ import annotations

import pickle
import struct
from typing import IO, Any

_LENGTH = struct.Struct("<Q")


def pack(message: object) -> bytes:
    """Return a message as bytes."""
    return pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)


def unpack(content: bytes) -> Any:
    """Return the message that was packed."""
    return pickle.loads(content)


def write(stream: IO[bytes], content: bytes) -> None:
    """Write a packed message at once."""
    stream.write(_LENGTH.pack(len(content)) + content)
    stream.flush()


def read(stream: IO[bytes]) -> bytes | None:
    """Read a packed message; return ``None`` if the stream ends before its end."""
    header = stream.read(_LENGTH.size)
    if len(header) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(header)
    content = stream.read(length)
    return content if len(content) == length else None
