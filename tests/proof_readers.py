"""A reader of OPB and of VeriPB's proofs by cutting planes that knows nothing of optpart."""

from __future__ import annotations

import re
from pathlib import Path

from optpart.study import library

#: Coefficients of variables, and what the sum is at least.
Sum = tuple[dict[str, int], int]


def certificates_of(tier: str) -> list[Path]:
    """Return the library's certificates of a tier, by size."""
    return sorted(
        (
            path
            for path in (library.folder() / library.CERTIFICATES).iterdir()
            if f'"tier": "{tier}"' in (path / "certificate.json").read_text()
        ),
        key=lambda path: (sum(file.stat().st_size for file in path.iterdir()), path.name),
    )


def opb(text: str) -> list[Sum]:
    rows = []
    for line in text.splitlines():
        if not line.startswith("*"):
            terms, _, least = line.removesuffix(" ;").partition(" >= ")
            words = terms.split()
            rows.append((dict(zip(words[1::2], map(int, words[::2]), strict=True)), int(least)))
    header = re.match(r"\* #variable= (\d+) #constraint= (\d+)\n", text)
    assert header is not None
    assert int(header[2]) == len(rows)
    assert int(header[1]) == len({x for row, _ in rows for x in row})
    return rows


def plus(one: Sum, other: Sum) -> Sum:
    left = {x: one[0].get(x, 0) + other[0].get(x, 0) for x in one[0] | other[0]}
    return {x: a for x, a in left.items() if a}, one[1] + other[1]


def over_literals(row: dict[str, int], least: int) -> int:
    """Return the right side when every negative coefficient is one of the negated variable."""
    return least - sum(a for a in row.values() if a < 0)


def saturated(total: Sum) -> Sum:
    """Cut coefficients of literals to the right side."""
    row, most = total[0], over_literals(*total)
    if most <= 0:
        return {}, 0
    row = {x: max(-most, min(most, a)) for x, a in row.items()}
    return row, most + sum(a for a in row.values() if a < 0)


def divided(total: Sum, divisor: int) -> Sum:
    """Divide coefficients of literals and the right side, rounding up."""
    assert divisor > 0

    def up(number: int) -> int:
        return -(-number // divisor)

    row, least = total[0], up(over_literals(*total))
    row = {x: up(a) if a > 0 else -up(-a) for x, a in row.items()}
    return row, least + sum(a for a in row.values() if a < 0)


def veripb_refutes(rows: list[Sum], proof: str) -> bool:
    """Add, multiply, saturate and divide as the lines ``pol`` say; the last must be 0 ≥ 1."""
    head, number, *sums, output, conclusion, end = proof.splitlines()
    assert (head, number) == ("pseudo-Boolean proof version 2.0", f"f {len(rows)}")
    assert conclusion == f"conclusion UNSAT : {len(rows) + len(sums)}"
    assert (output, end) == ("output NONE", "end pseudo-Boolean proof")
    known = [*rows]
    for line in sums:
        words = line.split()
        assert words[0] == "pol"
        stack: list[Sum] = []
        for word, following in zip(words[1:], [*words[2:], ""], strict=True):
            if word == "+":
                stack.append(plus(stack.pop(), stack.pop()))
            elif word == "s":
                stack.append(saturated(stack.pop()))
            elif following == "d":
                stack.append(divided(stack.pop(), int(word)))
            elif following == "*":
                assert int(word) >= 0
                row, least = stack.pop()
                stack.append(({x: int(word) * a for x, a in row.items()}, int(word) * least))
            elif word.startswith("x"):
                stack.append(({word: 1}, 0))
            elif word not in ("*", "d"):
                stack.append(known[int(word) - 1])
        (total,) = stack
        known.append(total)
    row, least = known[-1]
    return not any(row.values()) and least > 0
