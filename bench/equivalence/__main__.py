"""Check that the package still behaves as it did when its behaviour was recorded.

    python bench/equivalence record   # before a change of the layout
    python bench/equivalence compare  # after it; ends with 1 if anything differs

``sections.py`` lists what is recorded: one file of JSON lines per section. Everything goes through
the command line or the names that ``optpart`` exports; the few other names are in ``names.py``, the
only file to change when modules move. ``--only SECTION`` (repeatable) runs a part.

A recording is valid for one environment: the same versions of Python, OR-Tools, NumPy and METIS. It
holds exact values, hashes and masked documents, but no times and no versions. The files under
``samples`` are written once and kept by later recordings: every version must be able to read them.

Not recorded, because not stable or not behaviour:

- the lower bounds that a time limit cuts short: ``bounds`` has only instances on which all bounds
  end in a small part of their limit;
- schedules of CP-SAT with several workers, and how many steps a trace has (a step depends on when
  the solver was asked);
- the pixels of pictures, and the text of ``--help``.

Keys that documents have got since the recording (``ADDED``) are passed over where the recorded
document lacks them, and counted; nothing else that is new is.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from bench.equivalence.sections import SECTIONS, Records, run_section
from bench.equivalence.workspace import ROOT

FOLDER = ROOT / "bench" / "results" / "equivalence"

#: Keys of a result's document that the recording is too old to have, and what they may hold.
ADDED = {
    "termination": (
        None, "proven", "completed", "time limit", "move limit", "memory limit", "interrupted",
        "rounding", "unsupported", "failed",
    ),
}  # fmt: skip

#: Largest number of differences to show per section.
SHOWN = 12


def _load(path: Path) -> Records:
    rows = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    return {row["key"]: row["value"] for row in rows}


def _save(path: Path, records: Records) -> None:
    rows = [
        json.dumps({"key": key, "value": records[key]}, ensure_ascii=False, sort_keys=True)
        for key in sorted(records)
    ]
    path.write_text("".join(row + "\n" for row in rows), encoding="utf-8")


def _as_recorded(before: object, after: object, passed: list[str]) -> object:
    """Return a document without what was added to it since, which is noted."""
    if isinstance(before, dict) and isinstance(after, dict):
        added = [k for k in after if k not in before and after[k] in ADDED.get(k, ())]
        passed += added
        return {
            key: _as_recorded(before.get(key), value, passed)
            for key, value in after.items()
            if key not in added
        }
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        return [_as_recorded(*pair, passed) for pair in zip(before, after, strict=True)]
    return after


def _differences(before: Records, after: Records) -> list[str]:
    found = []
    for key in sorted(before.keys() | after.keys()):
        if key not in after:
            found.append(f"{key}: is no more")
        elif key not in before:
            found.append(f"{key}: is new")
        elif before[key] != after[key]:
            found.append(f"{key}: {_change(before[key], after[key])}")
    return found


def _change(before: object, after: object, place: str = "") -> str:
    """Describe the first difference between two documents."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted(before.keys() | after.keys()):
            if before.get(key) != after.get(key):
                return _change(before.get(key), after.get(key), f"{place}.{key}")
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for i, (one, other) in enumerate(zip(before, after, strict=True)):
            if one != other:
                return _change(one, other, f"{place}[{i}]")
    return f"{place} was {json.dumps(before)[:300]}, is {json.dumps(after)[:300]}"


def main() -> int:
    """Record or compare."""
    parser = argparse.ArgumentParser(prog="bench/equivalence", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("do", choices=["record", "compare"])
    parser.add_argument("--directory", type=Path, default=FOLDER)
    parser.add_argument("--only", action="append", choices=list(SECTIONS))
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    directory = given.directory.resolve()
    chosen = given.only or list(SECTIONS)
    if given.do == "compare":
        needed = [*(f"{name}.jsonl" for name in chosen), "samples"]
        if absent := [name for name in needed if not (directory / name).exists()]:
            parser.error(f"{directory} has no {', '.join(absent)}; record first")
    directory.mkdir(parents=True, exist_ok=True)
    begin, differences = time.perf_counter(), 0
    with ProcessPoolExecutor(given.jobs, multiprocessing.get_context("spawn")) as pool:
        running = {pool.submit(run_section, name, directory / "samples"): name for name in chosen}
        for done in as_completed(running):
            if (fault := done.exception()) is not None:
                differences += 1
                print(f"{running[done]:14} FAILED: {type(fault).__name__}: {fault}", flush=True)
                continue
            name, records, seconds = done.result()
            path = directory / f"{name}.jsonl"
            found: list[str] = []
            if given.do == "record":
                _save(path, records)
            else:
                before = _load(path)
                passed: list[str] = []
                after = _as_recorded(before, json.loads(json.dumps(records)), passed)
                assert isinstance(after, dict)
                found = _differences(before, after)
                if passed:
                    print(f"{name:14}{len(passed):6} values of keys added since passed over")
            differences += len(found)
            verdict = f", {len(found)} DIFFER" if found else ""
            print(f"{name:14}{len(records):6} records {seconds:7.1f} s{verdict}", flush=True)
            for line in found[:SHOWN]:
                print(f"    {line}")
            if len(found) > SHOWN:
                print(f"    … and {len(found) - SHOWN} more")
    print(f"{time.perf_counter() - begin:.0f} s")
    if given.do == "compare":
        print("everything is as recorded" if not differences else f"{differences} differences")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
