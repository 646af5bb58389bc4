"""Seeded damage to files, to see that readers refuse them on one line."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable

from optpart.base.errors import InputError

#: Pieces that readers stumble over.
_PIECES = (
    b"", b"0", b"-1", b"1e999", b"9" * 400, b"1/0", b"NaN", b"null", b"true", b"[]", b"{}", b'""',
    b'"', b"[", b"]", b"{", b"}", b"<", b">", b"&", b";", b"|", b"\\", b"\n", b"\t", b"\x00",
    b"\xff", b"\xed\xa0\x80", "Ω".encode(), b" -- ", b"->", b"<!DOCTYPE a>", b"<a>", b"=", b",",
)  # fmt: skip


def mutated(content: bytes, seed: int) -> bytes:
    """Return ``content`` with one to four pieces replaced, repeated, moved or cut off."""
    draw = random.Random(seed)
    damaged = bytearray(content)
    for _ in range(draw.randint(1, 4)):
        at = draw.randrange(len(damaged) + 1)
        end = min(len(damaged), at + draw.choice((0, 1, 1, 4, 20, 200)))
        match draw.randrange(6):
            case 0:
                damaged[at:end] = draw.choice(_PIECES)
            case 1:
                damaged[at:end] = damaged[at:end] * draw.randint(2, 5)
            case 2:
                other = draw.randrange(len(damaged) + 1)
                damaged[at:end] = damaged[other : other + end - at]
            case 3:
                del damaged[at:end]
            case 4 if at < len(damaged):
                damaged[at] = draw.randrange(256)
            case _ if draw.random() < 0.3:
                del damaged[at:]
    return bytes(damaged)


def refusals(
    content: bytes, seeds: Iterable[int], read: Callable[[bytes, int], object]
) -> list[str]:
    """Return the messages of those damaged copies that ``read(copy, seed)`` refuses.

    Any other error passes through.
    """
    found = []
    for seed in seeds:
        try:
            read(mutated(content, seed), seed)
        except InputError as error:
            found.append(str(error))
    return found
