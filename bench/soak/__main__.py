"""Hours of random input: does anything break, hang, or give a wrong answer?

    python bench/soak [--part files,schedules] [--count N] [--seed S] [-o FOLDER]
    python bench/soak --minute
    python bench/soak --part files --case 123

``files`` fails if a reader raises anything but an error of one short line that names the file, or
reads something else the second time; ``commands``, if a random command line ends with a traceback,
a code that is not documented, or more than a short line of errors; ``schedules``, if the verifier,
its reference and a naive verifier disagree; ``instances``, if a method, a bound or a schedule
contradicts brute force; ``plans``, if a pipeline with replicas or its verifier contradicts an
enumeration of all plans; ``certificates``, if the judge accepts what is not true, or breaks down;
``kills``, if a long command that is killed at a random moment leaves a half-written file, a
process, or a store that cannot go on.

A case depends on its part and its number alone, and ``--case`` runs one of them with its traceback.
Every part keeps finished blocks in ``FOLDER/PART.jsonl``, and goes on after them when it is started
again; blocks with failures are repeated then. ``FOLDER/table.txt`` is written at the end, and at an
interrupt. Several processes can run different parts at the same time.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import platform
import signal
import sys
import tempfile
import time
from pathlib import Path
from types import FrameType

sys.path.insert(0, str(Path(__file__).parents[2]))

from bench.soak.runs import PARTS, Kept, Part, blocks_of, run
from bench.store import MACHINE
from optpart.base.files import ANY, write_text


def main() -> None:
    parser = argparse.ArgumentParser(
        "soak", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--part", default=",".join(PARTS), help="one part or several")
    parser.add_argument("--count", type=int, help="cases of each part")
    parser.add_argument("--seed", type=int, default=0, help="number of the first case")
    parser.add_argument("--case", type=int, help="run the case of this number alone")
    parser.add_argument("--minute", action="store_true", help="about a minute of all parts")
    parser.add_argument("-o", "--output", type=Path, default=Path("bench/results/soak"))
    given = parser.parse_args()
    names = given.part.split(",")
    for name in names:
        if name not in PARTS:
            parser.error(f"no part {name!r}; choose of {', '.join(PARTS)}")
    parts = [PARTS[name] for name in names]
    if given.case is not None:
        alone(parts[0], given.case)
        return
    signal.signal(signal.SIGTERM, _interrupt)
    with contextlib.ExitStack() as stack:
        folder: Path = given.output
        if given.minute:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="soak-")))
        folder.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(KeyboardInterrupt):
            for part in parts:
                whole = part.minute if given.minute else part.count
                soak(part, folder, given.seed, whole if given.count is None else given.count)
        text, failed = table(folder)
        print(text, end="")
        if not given.minute:
            write_text(folder / "table.txt", text, ANY)
    sys.exit(failed)


def alone(part: Part, number: int) -> None:
    """Run one case here, with its traceback, and keep its folder."""
    folder = Path(tempfile.mkdtemp(prefix=f"soak-{part.name}-{number}-"))
    print(f"in {folder}", flush=True)
    case = part.load()
    os.chdir(folder)
    print(case(number, folder))


def soak(part: Part, folder: Path, seed: int, count: int) -> None:
    """Run all blocks of a part that are not finished."""
    kept = Kept(folder, part)
    done = {key for key, block in kept.blocks().items() if not block.failed}
    for block in blocks_of(part, seed, count):
        if block.key in done:
            continue
        begin = shown = time.monotonic()
        for number, outcome, message in run(part, block):
            if outcome == "failed":
                print(f"\r{part.name} {number}: {message}", file=sys.stderr)
            if sys.stderr.isatty() and time.monotonic() > shown + 1:
                shown = time.monotonic()
                print(f"\r{part.name} {number:,} of {count:,}", end="", file=sys.stderr)
        kept.append(block)
        if not sys.stderr.isatty():
            print(
                f"{part.name} {block.first + block.count - seed:,} of {count:,}, "
                f"{time.monotonic() - begin:.0f} s",
                file=sys.stderr,
            )


def table(folder: Path) -> tuple[str, bool]:
    """Return what came of all finished blocks, and whether anything failed."""
    heads = ("tried", "accepted", "refused", "failed", "CPU s")
    lines = [
        f"{MACHINE}, Python {platform.python_version()}",
        "",
        f"{'':22}" + "".join(f"{head:>11}" for head in heads),
    ]
    faults = []
    for part in PARTS.values():
        found = sorted(
            Kept(folder, part).blocks().values(), key=lambda block: (block.first, -block.count)
        )
        blocks, end = [], -1  # a shorter run may have left the beginning of a block
        for block in found:
            if block.first + block.count > end:
                blocks.append(block)
                end = block.first + block.count
        if not blocks:
            continue
        counts = [sum(block.outcomes[head] for block in blocks) for head in heads[1:4]]
        row = [sum(counts), *counts, round(sum(block.seconds for block in blocks))]
        lines.append(f"{part.what:22}" + "".join(f"{number:>11,}" for number in row))
        faults += [f"{part.name} {n}: {text}" for block in blocks for n, text in block.failed]
    text = "\n".join([*lines, *([""] if faults else []), *faults])
    return f"{text}\n", bool(faults)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()
