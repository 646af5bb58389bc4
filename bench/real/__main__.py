"""Real models on unlike devices: what methods find and prove, with free and with scarce memory.

    python bench/real [--seconds 60] [--workers 2] [--only networks,llm-32-*]
        [--methods auto,cpsat] [-o bench/results/real]
    python bench/real --write FOLDER

The nine networks of the library run on its three clusters, chains of transformer blocks on two to
eight GPUs; ``instances.py`` says more. ``--write`` writes all of them, and solves nothing.

Every solve is kept in ``runs.jsonl``, so a stopped command continues where it was. Once a solver
has proven an instance within a tenth of the limit, those named after it are not run on it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path

from bench.real.instances import Case, cases
from bench.real.runs import GOALS, METHODS, Run, outcome, parameters, unsupported
from bench.real.tables import contradictions, index, report
from bench.store import RESULTS, Store, Values
from optpart.base.errors import InputError, UnsupportedError
from optpart.base.files import ANY, write_text
from optpart.interop.formats import native
from optpart.kernels import all as kernels
from optpart.methods import registry
from optpart.solution.goal import Goal

#: A proof within this part of the limit is quick.
QUICKLY = 0.1


def main() -> int:
    """Exit with 0 when done, 1 if results contradict each other, 2 on bad usage."""
    parser = argparse.ArgumentParser("real", description="solve real models on unlike devices")
    add = parser.add_argument
    add("--seconds", type=float, default=60.0, help="limit of a solve")
    add("--workers", type=int, default=2)
    add("--only", type=listed, default=[], help="groups (networks, chains) or names, wildcards too")
    add("--methods", type=listed, default=METHODS, help=f"default {','.join(METHODS)}")
    add("--goals", type=listed, default=GOALS, help="of networks only the makespan")
    add("--write", type=Path, metavar="FOLDER", help="write the instances, and solve nothing")
    add("-o", "--output", type=Path, default=RESULTS / "real")
    given = parser.parse_args()
    try:
        chosen = list(selected(given.only))
        if given.write is None:
            return measure(given, chosen)
        given.write.mkdir(parents=True, exist_ok=True)
        for case in chosen:
            native.write(case.instance(), given.write / f"{case.name}.json")
        write_text(given.write / "instances.csv", index(chosen), ANY)
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def listed(text: str) -> list[str]:
    """Split at commas."""
    return text.split(",")


def selected(only: list[str]) -> Iterator[Case]:
    """Yield the cases of the named groups or whose names fit a pattern; all without any."""
    every = list(cases())
    for pattern in only:
        if not any(matches(case, pattern) for case in every):
            raise InputError("--only", f"no instance {pattern!r}", "see --write for all names")
    for case in every:
        if not only or any(matches(case, pattern) for pattern in only):
            yield case


def matches(case: Case, pattern: str) -> bool:
    return case.group == pattern or fnmatchcase(case.name, pattern)


def measure(given: argparse.Namespace, chosen: list[Case]) -> int:
    """Solve what is missing, and write the tables."""
    for method in given.methods:
        registry.check(method)
    if unknown := [goal for goal in given.goals if goal not in GOALS]:
        raise InputError("--goals", f"no goal {unknown[0]!r}", f"choose of {', '.join(GOALS)}")
    kernels.load()
    store = Store(given.output / "runs.jsonl")
    write_text(given.output / "instances.csv", index(cases()), ANY)
    # Networks run once, for the makespan.
    questions = [
        (case, goal)
        for case in chosen
        for goal in given.goals
        if case.group == "chains" or GOALS[goal] == Goal()
    ]
    for number, (case, goal) in enumerate(questions, 1):
        for run in solves(store, case, goal, given):
            print(
                f"[{number}/{len(questions)}] {case.name}, {goal}, {run.method}: {run.status}, "
                f"{run.value or 'nothing'}, bound {run.bound or 'none'}, {run.took:.1f} s",
                file=sys.stderr,
                flush=True,
            )
    today = {case.name: case.instance().sha256 for case in cases()}
    runs = [Run(**row.flat) for row in store.rows()]
    runs = [run for run in runs if today.get(run.instance) == run.sha256]
    text = report(runs)
    write_text(given.output / "summary.md", text, ANY)
    print(text)
    return 1 if contradictions(runs) else 0


def solves(store: Store, case: Case, goal: str, given: argparse.Namespace) -> Iterator[Run]:
    """Yield the rows of an instance, made now where they are missing."""
    instance, quickly = case.instance(), False
    for method in given.methods:
        heuristic = registry.split(method) is not None
        if (quickly and not heuristic) or unsupported(method, instance, goal):
            continue
        run: Values = parameters(case, instance, goal, method) | {
            "seconds": given.seconds,
            "workers": given.workers,
        }
        try:
            found = Run(**store.run(run, partial(outcome, instance, run)).flat)
        except UnsupportedError as error:  # found out only by running it
            print(f"{case.name}, {goal}, {method}: {error}", file=sys.stderr, flush=True)
            continue
        quickly |= found.proven and not heuristic and found.took <= QUICKLY * given.seconds
        yield found


if __name__ == "__main__":
    sys.exit(main())
