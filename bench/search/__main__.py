"""The results of search, compared with its starts and its competitors.

    python bench/search --data ../shared [-o FOLDER]
        [--part networks|held_out|budgets|sets|large|memory|workers|shares|ablation|crowded
            |certified|cluster]

Every run is kept in ``runs.jsonl``, so a stopped command continues where it was. Each part writes
its own table.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from bench.search import (
    ablation,
    budgets,
    certified,
    cluster,
    crowded,
    held_out,
    large,
    memory,
    networks,
    sets,
    shares,
    workers,
)
from bench.store import RESULTS
from optpart.files import ANY, write_text

FOLDER = RESULTS / "search"
PARTS = {
    "networks": networks.run,
    "held_out": held_out.run,
    "budgets": budgets.run,
    "sets": sets.run,
    "large": large.run,
    "memory": memory.run,
    "workers": workers.run,
    "shares": shares.run,
    "ablation": ablation.run,
    "crowded": crowded.run,
    "certified": certified.run,
    "cluster": cluster.run,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--part", choices=tuple(PARTS))
    parser.add_argument("-o", "--output", type=Path, default=FOLDER)
    given = parser.parse_args()
    for part in [given.part] if given.part else PARTS:
        text = PARTS[part](given.data, given.output) + "\n"
        write_text(given.output / f"{part}.md", text, ANY)
        print(text)


if __name__ == "__main__":
    main()
