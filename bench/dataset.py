"""Write the index of instances elsewhere, and the versions of all sets.

    python bench/dataset.py [--dagbench FOLDER --scheduleopt FOLDER]

With copies of ANRGUSC/dagbench and ScheduleOpt/benchmarks, ``instances/elsewhere.csv`` is written
anew: checksums of their instances as optpart reads them, and the best values that optpart has found
and proven (``bench/results/dagbench.csv``, ``bench/results/archive``). Then ``instances/sets.csv``:
the version of a set grows if an instance was added, removed or changed.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

from bench.store import RESULTS
from optpart.base.files import ANY, write_text
from optpart.base.languages import to_csv
from optpart.interop.formats.detect import read_instance
from optpart.problem.instance import Instance
from optpart.study import library
from optpart.study.archive import Archive, read_lists
from optpart.study.dataset import COLUMNS, ORIGINS, SIZES, Dataset, rows_of, versions


def row(
    instance: Instance, name: str, group: str, file: Path, makespan: object, bound: object
) -> tuple[object, ...]:
    sizes = instance.vertices, len(instance.graph.edge_source), instance.devices
    best = ("" if value is None else str(Fraction(str(value))) for value in (makespan, bound))
    return (name, group, file.as_posix(), *sizes, *best, instance.sha256)


def dagbench(folder: Path) -> Iterator[tuple[object, ...]]:
    """Yield the graphs of DAGBench, each on its own network."""
    with open(RESULTS / "dagbench.csv", newline="", encoding="utf-8") as stream:
        known = {each["graph"]: each for each in csv.DictReader(stream)}
    for path in sorted(folder.glob("workflows/*/*/graph.json")):
        instance = read_instance(path)
        best, file = known[instance.name], path.relative_to(folder)
        yield row(instance, instance.name, "dagbench", file, best["makespan"], best["bound"])


def archived(folder: Path) -> Iterator[tuple[object, ...]]:
    """Yield the job shops and flexible job shops of which the archive has a certificate."""
    known = Archive(RESULTS / "archive").rows
    for listed in read_lists(
        folder / kind / "bks.json" for kind in ("jobshop", "flexible-jobshop")
    ):
        best = known[listed.name]
        if best["lb_data"]:
            instance, file = listed.read(), listed.files[0].relative_to(folder.absolute())
            values = best["upper_bound"], best["lower_bound"]
            yield row(instance, listed.name, listed.set.partition("/")[0], file, *values)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--dagbench", type=Path)
    parser.add_argument("--scheduleopt", type=Path)
    given = parser.parse_args()
    if given.dagbench and given.scheduleopt:
        rows = [COLUMNS, *dagbench(given.dagbench), *archived(given.scheduleopt)]
        write_text(library.folder() / "elsewhere.csv", to_csv(rows), ANY)
        library.elsewhere.cache_clear()
    before = versions() if (library.folder() / "sets.csv").exists() else {}
    groups = dict.fromkeys(row.group for row in library.index().values())
    table: list[tuple[object, ...]] = [("name", "version", "instances", "sha256")]
    for name in (*SIZES, *groups, *ORIGINS):
        made = Dataset(name, "", rows_of(name))
        old = before.get(name, {"version": "0", "sha256": ""})
        version = int(old["version"]) + (old["sha256"] != made.sha256)
        table.append((name, version, len(made.rows), made.sha256))
        print(name, f"version {version}, {len(made.rows)} instances")
    write_text(library.folder() / "sets.csv", to_csv(table), ANY)


if __name__ == "__main__":
    main()
