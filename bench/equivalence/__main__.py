"""Check that the package still behaves as it did when its behaviour was recorded.

    python bench/equivalence record   # before a change of the layout
    python bench/equivalence compare  # after it; ends with 1 if anything differs

One file of JSON lines per section, in ``bench/results/equivalence``:

- ``pairs``: makespan, traffic and a hash of the schedule of every pair of strategies
- ``search``: search and hybrid with one worker and a limit of moves
- ``bounds``: lower bounds, on instances on which all but ``destructive`` end by themselves
- ``fingerprints``: of the library's instances, and of generated and imported ones; bytes of files
- ``commands``: exit code and first line on standard error of good and bad command lines
- ``documents``: what commands print: JSON, CSV and tables
- ``certificates``: the verdict on every certificate of the library
- ``samples``: files of earlier versions are still read, and mean the same

``--only SECTION`` (repeatable) runs a part. Everything goes through the command line or the names
that ``optpart`` exports. A recording is valid for one environment: the same versions of Python,
OR-Tools, NumPy and METIS. It holds exact values, hashes and masked documents, but no times and no
versions. Not recorded, because not stable or not behaviour, are schedules of CP-SAT with several
workers, the steps of traces, the pixels of pictures, and the text of ``--help``.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from bench.equivalence.sections import FOLDER, SECTIONS, section

#: Largest number of differences to show per section.
SHOWN = 12


def main() -> int:
    """Record or compare."""
    parser = argparse.ArgumentParser("equivalence", description="record or compare behaviour")
    parser.add_argument("do", choices=["record", "compare"])
    parser.add_argument("--directory", type=Path, default=FOLDER)
    parser.add_argument("--only", action="append", choices=list(SECTIONS))
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    given.directory.mkdir(parents=True, exist_ok=True)
    begin, differences = time.perf_counter(), 0
    with ProcessPoolExecutor(given.jobs, multiprocessing.get_context("spawn")) as pool:
        running = {pool.submit(section, name): name for name in given.only or SECTIONS}
        for done in as_completed(running):
            name, path = running[done], given.directory / f"{running[done]}.jsonl"
            lines, seconds = done.result()
            found = []
            if given.do == "record":
                path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
            else:
                found = differing(path.read_text(encoding="utf-8").splitlines(), lines)
            differences += len(found)
            verdict = f", {len(found)} DIFFER" if found else ""
            print(f"{name:14}{len(lines):6} records {seconds:7.1f} s{verdict}", flush=True)
            print(*(f"    {line}\n" for line in found[:SHOWN]), sep="", end="")
    print(f"{time.perf_counter() - begin:.0f} s")
    if given.do == "compare":
        print("everything is as recorded" if not differences else f"{differences} differences")
    return 1 if differences else 0


def differing(before: list[str], after: list[str]) -> list[str]:
    """Describe what differs between two recordings, by key."""
    old, new = ({row["key"]: row["value"] for row in map(json.loads, x)} for x in (before, after))
    return [
        f"{key}: is no more" if key not in new
        else f"{key}: is new" if key not in old
        else f"{key}: {change(old[key], new[key])}"
        for key in sorted(old.keys() | new.keys())
        if key not in new or key not in old or old[key] != new[key]
    ]  # fmt: skip


def change(before: Any, after: Any, place: str = "") -> str:
    """Describe the first difference between two documents."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted(before.keys() | after.keys()):
            if before.get(key) != after.get(key):
                return change(before.get(key), after.get(key), f"{place}.{key}")
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for i, (one, other) in enumerate(zip(before, after, strict=True)):
            if one != other:
                return change(one, other, f"{place}[{i}]")
    return f"{place} was {json.dumps(before)[:300]}, is {json.dumps(after)[:300]}"


if __name__ == "__main__":
    sys.exit(main())
