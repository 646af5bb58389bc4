"""The results of search, compared with its starts and its competitors.

    python bench/search --data ../shared [-o FOLDER]
        [--part networks|held_out|budgets|large|certified]

Every run is kept in ``runs.jsonl``, so a stopped command continues where it was. Each part writes
its own table.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from bench.search import budgets, certified, held_out, large, networks
from bench.store import RESULTS, Store
from optpart.base.files import ANY, write_text

#: Each yields its runs, as parameters and what makes them, and writes their table.
PARTS = {
    "networks": networks,
    "held_out": held_out,
    "budgets": budgets,
    "large": large,
    "certified": certified,
}


def main() -> None:
    parser = argparse.ArgumentParser("search", description="compare search with its competitors")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--part", choices=tuple(PARTS))
    parser.add_argument("-o", "--output", type=Path, default=RESULTS / "search")
    given = parser.parse_args()
    store = Store(given.output / "runs.jsonl")
    for name in [given.part] if given.part else PARTS:
        part = PARTS[name]
        for run, call in part.runs(given.data / "instances"):
            row = store.run({"part": name, **run}, call)
            print({k: v for k, v in row.flat.items() if not isinstance(v, list)}, flush=True)
        rows = [row.flat for row in store.rows() if row.run["part"] == name]
        text = part.table(rows) + "\n"
        write_text(given.output / f"{name}.md", text, ANY)
        print(text)
        if part is budgets:
            budgets.draw(rows, given.output / "budgets.png")


if __name__ == "__main__":
    main()
