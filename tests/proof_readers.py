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


def row_of(text: str) -> Sum:
    terms, _, least = text.partition(" >= ")
    words = terms.split()
    row = dict(zip(words[1::2], map(int, words[::2]), strict=True))
    assert len(row) == len(words) // 2
    return row, int(least)


def opb(text: str) -> list[Sum]:
    lines = [line for line in text.splitlines() if not line.startswith("*")]
    rows = [row_of(line.removesuffix(" ;")) for line in lines]
    header = re.match(r"\* #variable= (\d+) #constraint= (\d+)\n", text)
    assert header is not None
    assert int(header[2]) == len(rows)
    assert int(header[1]) == len({x for row, _ in rows for x in row})
    return rows


def plus(one: Sum, other: Sum) -> Sum:
    few, many = sorted((one[0], other[0]), key=len)
    row = dict(many)
    for x, a in few.items():
        if total := row.pop(x, 0) + a:
            row[x] = total
    return row, one[1] + other[1]


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


def always(total: Sum) -> bool:
    return sum(a for a in total[0].values() if a < 0) >= total[1]


def introduced(line: str, seen: set[str], before: tuple[str, Sum] | None) -> tuple[str, Sum] | None:
    """Return the variable and the row of a line ``red``; nothing unless it may be added.

    Only the row just before may have the variable. With the value of the witness, the new row must
    be true, and that row must follow if the new one is false.
    """
    text, _, witness = line.removeprefix("red ").partition(" ; ")
    row, least = row_of(text)
    name, arrow, value = witness.split()
    assert (arrow, value in "01") == ("->", True)
    older = [before[1]] if before is not None and before[0] == name else []
    if name in seen and not older:
        return None

    def after(total: Sum) -> Sum:
        left = total[0].get(name, 0) * int(value)
        return {x: a for x, a in total[0].items() if x != name}, total[1] - left

    right = after((row, least)), *(plus(after(old), (row, least - 1)) for old in older)
    seen.update(row, [name])
    return (name, (row, least)) if all(map(always, right)) else None


def veripb_refutes(rows: list[Sum], proof: str) -> bool:
    """Check the lines ``pol`` (add, multiply, saturate, divide) and ``red``; the last is 0 ≥ 1."""
    head, number, *lines, output, conclusion, end = proof.splitlines()
    assert (head, number) == ("pseudo-Boolean proof version 2.0", f"f {len(rows)}")
    assert conclusion == f"conclusion UNSAT : {len(rows) + len(lines)}"
    assert (output, end) == ("output NONE", "end pseudo-Boolean proof")
    known, seen = [*rows], {x for row, _ in rows for x in row}
    before = None
    for line in lines:
        if line.startswith("red "):
            before = introduced(line, seen, before)
            if before is None:
                return False
            known.append(before[1])
            continue
        before = None
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
            elif word.startswith(("x", "~x")):
                seen.add(word.removeprefix("~"))
                stack.append(({word: 1}, 0) if word[0] == "x" else ({word[1:]: -1}, -1))
            elif word not in ("*", "d"):
                stack.append(known[int(word) - 1])
        (total,) = stack
        known.append(total)
    row, least = known[-1]
    return not any(row.values()) and least > 0
