"""Damaged copies of files, for tests that any of them is read or refused."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from optpart.base.errors import InputError

Content = TypeVar("Content")


def mutated(content: bytes, seed: int) -> bytes:
    """Change some bytes, or copy, move or drop parts; texts stay mostly readable."""
    rng = random.Random(seed)
    data = bytearray(content)
    for _ in range(rng.randint(1, 6)):
        at, length = rng.randrange(len(data) + 1), rng.choice((1, 1, 2, 8, 40))
        part = bytes(data[at : at + length])
        match rng.randrange(6):
            case 0:
                data[at : at + length] = bytes(rng.randrange(256) for _ in part)
            case 1:
                data[at : at + length] = b""
            case 2:
                data[at:at] = part * rng.randint(1, 3)
            case 3:
                words = b'-1,0,1e999,null,"",[],{},nan,\n,9999999999999999999999,"a",-,.,:'
                data[at : at + length] = rng.choice([*words.split(b","), b","])
            case 4:
                to = rng.randrange(len(data) + 1)
                data[to : to + len(part)] = part
            case _:
                if at < len(data):
                    data[at] ^= 1 << rng.randrange(8)
    return bytes(data)


def read_mutated(
    read: Callable[[Path], Content], path: Path, content: bytes, seeds: Iterable[int] = range(300)
) -> list[Content]:
    """Read damaged copies, each written to the path; those refused are left out.

    Anything but an :class:`InputError` of one line goes through to the test.
    """
    found = []
    for seed in seeds:
        path.write_bytes(mutated(content, seed))
        fault = None
        try:
            found.append(read(path))
        except InputError as error:
            fault = error
        assert fault is None or "\n" not in str(fault), seed
    return found
