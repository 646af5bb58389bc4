"""Damage to documents in JSON, beside that to bytes (:mod:`optpart.testing.mutate`)."""

from __future__ import annotations

import json
import random
from copy import deepcopy
from typing import Any

from optpart.testing.mutate import mutated

#: Values that readers stumble over.
_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2, 0.5, -0.0, 1e308, 1e-320, 10**30, 10**400, 2**63, 2**31, "",
    "a", " ", "1/3", "1/0", "-1/2", "1e300", "1e301", "NaN", "Infinity", "0x10", "１", "1_0", "\n",
    "\x00", "\ud800", "\u202e", "Ω" * 300, [], [[]], [None], {}, {"": 0}, {"name": "a"},
    "a" * 5000,
)  # fmt: skip


def other_value(document: Any, draw: random.Random) -> Any:
    """Replace, remove, repeat or move one value somewhere in a document."""
    holders: list[Any] = []
    stack = [document]
    while stack:
        value = stack.pop()
        if isinstance(value, dict | list) and value:
            holders.append(value)
            stack += value.values() if isinstance(value, dict) else value
    if not holders:
        return deepcopy(draw.choice(_VALUES))
    holder = draw.choice(holders)
    key = draw.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
    other = draw.choice(holders)
    match draw.randrange(7):
        case 0 | 1 | 2:
            holder[key] = deepcopy(draw.choice(_VALUES))  # further damage must not change ours
        case 3:
            del holder[key]
        case 4 if isinstance(holder, list):
            holder.append(holder[key])
        case 4:
            holder[draw.choice(("extra", "", "name", f"{key} "))] = holder[key]
        case 5 if isinstance(other, list):
            holder[key] = json.loads(json.dumps(draw.choice(other)))
        case _:
            values = list(holder.values()) if isinstance(holder, dict) else holder
            holder[key] = json.loads(json.dumps(draw.choice(values)))
    return document


def damaged(content: bytes, number: int, draw: random.Random) -> bytes:
    """Damage bytes, or values where the content is JSON."""
    if draw.random() < 0.5:
        try:
            document = json.loads(content)
        except ValueError:
            return mutated(content, number)
        for _ in range(draw.randint(1, 3)):
            document = other_value(document, draw)
        return json.dumps(document, ensure_ascii=draw.random() < 0.5).encode(
            "utf-8", "surrogatepass"
        )
    return mutated(content, number)
