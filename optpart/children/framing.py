"""Messages on a byte stream: each is pickled and preceded by its length."""

from __future__ import annotations

import pickle
import struct
from typing import IO, Any

_LENGTH = struct.Struct("<Q")


def pack(message: object) -> bytes:
    """Return a message as bytes for a stream."""
    content = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    return _LENGTH.pack(len(content)) + content


def receive(stream: IO[bytes]) -> Any:
    """Read one message; return ``None`` if the stream ends before its end."""
    header = stream.read(_LENGTH.size)
    if len(header) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(header)
    content = stream.read(length)
    return pickle.loads(content) if len(content) == length else None
