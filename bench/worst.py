"""How far strategies are from the proven optimum on the worst instances that a search finds.

    python bench/worst.py [-o bench/results/worst] [--tries 500] [--part strategies,growth,lists]

``strategies``: every partitioning strategy with its own order, if it has one, and with PCT and
FIFO, on 8 vertices and 3 devices. ``growth``: HEFT with more vertices and devices. ``lists``: unit
tasks on equal devices, scheduled greedily, with the bounds that are known. A row is the same again,
whatever the machine and its load; it holds the instance, which ``optpart solve`` proves again.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from pathlib import Path

from bench.output import columns, short_machine
from bench.store import RESULTS, Row, Store, Values
from optpart.base.files import ANY, write_text
from optpart.base.rounding import fixed
from optpart.interop.formats import native
from optpart.methods.parts import PARTITIONERS
from optpart.study.worst import worst_case

PARTS = ("strategies", "growth", "lists")


def known(ccr: str, m: int) -> Fraction:
    """Return what no greedy schedule of unit tasks on ``m`` equal devices exceeds.

    Without communication, 2 − 1/m (Graham 1969); with unit delays, 3 − 2/m (Rayward-Smith 1987). A
    schedule is greedy if no device is idle while a task could start there. Those of ETF are, and
    those of HEFT, which would have inserted the task.
    """
    return 3 - Fraction(2, m) if Fraction(ccr) else 2 - Fraction(1, m)


def cases(part: str) -> Iterator[Values]:
    """Yield the parameters of every search of a part."""
    usual: Values = {"family": "general", "vertices": 8, "devices": 3, "ccr": "1"}
    if part == "strategies":
        for name, row in PARTITIONERS.rows.items():
            if row.available and not row.special:
                for method in (*([name] if row.ordered else []), f"{name}+pct", f"{name}+fifo"):
                    yield {"method": method, **usual}
    elif part == "growth":
        for n, m in product((4, 5, 6, 7, 8, 9), (2, 3, 4)):
            yield {"method": "heft", **usual, "vertices": n, "devices": m}
    else:
        for ccr, method, m in product("01", ("etf", "heft"), (2, 3)):
            yield {"method": method, **usual, "family": "unit", "ccr": ccr, "devices": m}


def search(case: Values, tries: int) -> Values:
    """Search, and return what was found."""
    begin = time.perf_counter()
    found = worst_case(**{**case, "ccr": Fraction(case["ccr"])}, tries=tries)
    seconds = round(time.perf_counter() - begin, 1)
    if found is None:
        return {"ratio": None, "seconds": seconds}
    return {
        "makespan": str(found.makespan),
        "optimum": str(found.optimum),
        "ratio": str(found.ratio),
        "proven": found.proven,
        "seconds": seconds,
        "instance": json.loads(native.dumps(found.instance)),
    }


def table(part: str, rows: list[Row]) -> str:
    """Return a line per search, the worst first where methods are compared."""
    found = [row.flat for row in rows if row.result["ratio"] is not None]
    if part == "strategies":
        found.sort(key=lambda row: -Fraction(row["ratio"]))
    head = ["method", "vertices", "devices", "ccr", "makespan", "optimum", "ratio", "≥"]
    lines = []
    for row in found:
        ratio = fixed(Fraction(row["ratio"]), 3, up=False)
        line = [*(str(row[key]) for key in (*head[:-1],)), ratio]
        lines.append([*line, str(known(row["ccr"], row["devices"]))] if part == "lists" else line)
    return columns([*head, "known"] if part == "lists" else head, lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, default=RESULTS / "worst")
    parser.add_argument("--tries", type=int, default=500)
    parser.add_argument("--part", default=",".join(PARTS))
    options = parser.parse_args()
    store = Store(options.output / "runs.jsonl")
    texts = [f"{short_machine()}; {options.tries} instances per search, seed 0\n"]
    for part in options.part.split(","):
        rows = []
        for case in cases(part):
            run = {**case, "tries": options.tries}
            rows.append(store.run(run, lambda case=case: search(case, options.tries)))  # type: ignore[misc]
            print(part, case["method"], rows[-1].result["ratio"], flush=True)
        texts.append(f"{part}\n{table(part, rows)}")
    write_text(options.output / "table.txt", "\n".join(texts), ANY)


if __name__ == "__main__":
    main()
