"""The status of the committed results: which still count, their code, and how to renew them.

    python bench/status
    python bench/status restamp reproduce [--sample 40] [--seed 0] [--data ../shared]

A row counts if the code that it ran, its parameters and the packages are the same as today. If only
the code has changed, ``restamp`` measures a sample of the rows again, some of every kind. If none
of them contradicts the stored result, all rows count as measured on today's code as well, and keep
the stamp of the code that measured them. If one does, nothing is written. Only deterministic values
are compared; times remain those of the code in the stamp. No bench may run at the same time.
"""

from __future__ import annotations

import argparse
from importlib import import_module
from pathlib import Path

from bench.status.restamp import restamp
from bench.status.results import KEPT, lines
from bench.store import Bench


def main() -> None:
    parser = argparse.ArgumentParser(
        "status", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command")
    again = commands.add_parser("restamp", help="let rows count once a replayed sample agrees")
    again.add_argument("name", choices=KEPT)
    again.add_argument("--sample", type=int, default=40, help="rows to be measured again")
    again.add_argument("--seed", type=int, default=0, help="of the sample")
    again.add_argument("--data", type=Path, default=Path("../shared"), help="shared data")
    given = parser.parse_args()
    if given.command == "restamp":
        bench: Bench = import_module(KEPT[given.name]).BENCH
        raise SystemExit(restamp(bench, given.sample, given.seed, given.data))
    for line in lines():
        print(line, flush=True)


if __name__ == "__main__":
    main()
