"""Real models on unlike devices: what methods find and prove, with free and with scarce memory.

    python bench/real --data ../shared [--seconds 60] [--workers 2]
        [--only networks,llm-32-*] [--methods auto,cpsat] [--quick] [-o bench/results/real]
    python bench/real --write FOLDER

The nine networks of the library run on its three clusters, chains of transformer blocks on two to
eight GPUs; ``instances.py`` says more. ``--write`` writes all of them, and solves nothing.

Every solve is kept in ``runs.jsonl``, so a stopped command continues where it was. Once a solver
has proven an instance within a tenth of the limit, those named after it are not run on it, unless
``--all`` is given. ``--quick`` takes a part of the instances, 10 s each, and only ``auto`` and the
contiguous split.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from bench.real.instances import Case, cases
from bench.real.runs import GOALS, METHODS, SPLIT, Run, outcome, parameters, unsupported
from bench.real.tables import contradictions, csv, index, report
from bench.store import RESULTS, Store
from optpart.errors import InputError, UnsupportedError
from optpart.files import ANY, write_text
from optpart.formats import native
from optpart.kernels import all as kernels
from optpart.methods import registry
from optpart.solution.goal import Goal

SECONDS, QUICK_SECONDS = 60.0, 10.0
QUICK_METHODS = (SPLIT, "auto")
#: Patterns of names, besides networks under ``delay``.
QUICK_CHAINS = ("llm-32-4-decode-*", "llm-128-8-prefill-*")
#: A proof within this part of the limit is quick.
QUICKLY = 0.1


def main() -> int:
    """Exit with 0 when done, 1 if results contradict each other, 2 on bad usage."""
    parser = argparse.ArgumentParser(
        "real", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--data", type=Path, help="as for the other benches; all instances are in this repository")
    add("--seconds", type=float, help=f"limit of a solve; default {SECONDS:g}")
    add("--workers", type=int, default=2)
    add("--only", type=listed, help="groups (networks, chains) or names, with wildcards")
    add("--methods", type=listed, help=f"default {','.join(METHODS)}")
    add("--goals", type=listed, help=f"default {','.join(GOALS)}; of networks only the makespan")
    add("--quick", action="store_true", help="a part, in less than 20 minutes")
    add("--all", action="store_true", help="all methods, although an instance is proven")
    add("--write", type=Path, metavar="FOLDER", help="write the instances, and solve nothing")
    add("-o", "--output", type=Path, default=RESULTS / "real")
    given = parser.parse_args()
    try:
        chosen = list(selected(given.only or [], given.quick))
        if given.write is not None:
            write(chosen, given.write)
            return 0
        return measure(given, chosen)
    except InputError as error:
        print(error, file=sys.stderr)
        return 2


def listed(text: str) -> list[str]:
    """Split at commas."""
    return text.split(",")


def selected(only: list[str], quick: bool) -> Iterator[Case]:
    """Yield the chosen cases."""
    every = list(cases())
    for pattern in only:
        if not any(matches(case, pattern) for case in every):
            raise InputError("--only", f"no instance {pattern!r}", "see --write for all names")
    for case in every:
        if quick and not is_quick(case):
            continue
        if not only or any(matches(case, pattern) for pattern in only):
            yield case


def matches(case: Case, pattern: str) -> bool:
    """Whether a case is of a group, or its name fits a pattern."""
    return case.group == pattern or fnmatchcase(case.name, pattern)


def is_quick(case: Case) -> bool:
    """Whether a case is part of the quick run."""
    if case.group == "networks":
        return case.communication == "delay"
    return any(fnmatchcase(case.name, pattern) for pattern in QUICK_CHAINS)


def write(chosen: list[Case], folder: Path) -> None:
    """Write instance files."""
    folder.mkdir(parents=True, exist_ok=True)
    for case in chosen:
        native.write(case.instance(), folder / f"{case.name}.json")
    write_text(folder / "instances.csv", index(chosen), ANY)
    print(f"{len(chosen)} instances in {folder}", file=sys.stderr)


def measure(given: argparse.Namespace, chosen: list[Case]) -> int:
    """Solve what is missing, and write the tables."""
    seconds = given.seconds
    if seconds is None:
        seconds = QUICK_SECONDS if given.quick else SECONDS
    methods = given.methods or list(QUICK_METHODS if given.quick else METHODS)
    goals = given.goals or list(GOALS)
    for method in methods:
        registry.check(method)
    for goal in goals:
        if goal not in GOALS:
            raise InputError("--goals", f"no goal {goal!r}", f"choose of {', '.join(GOALS)}")
    given.output.mkdir(parents=True, exist_ok=True)
    write_text(given.output / "instances.csv", index(cases()), ANY)
    kernels.load()
    store = Store(given.output / "runs.jsonl")
    questions = [(case, goal) for case in chosen for goal in goals if is_asked(case, goal)]
    solvers = sum(registry.split(method) is None for method in methods)
    hours = len(questions) * solvers * seconds / 3600
    print(f"{len(questions)} questions, at most {hours:.2g} hours", file=sys.stderr)
    for number, (case, goal) in enumerate(questions, 1):
        for run in solves(store, case, goal, methods, seconds, given.workers, given.all):
            print(
                f"[{number}/{len(questions)}] {case.name}, {goal}, {run.method}: {run.status}, "
                f"{run.value or 'nothing'}, bound {run.bound or 'none'}, {run.took:.1f} s",
                file=sys.stderr,
                flush=True,
            )
    today = {case.name: case.instance().sha256 for case in cases()}
    runs = [Run(**row.flat) for row in store.rows()]
    runs = [run for run in runs if today.get(run.instance) == run.sha256]
    write_text(given.output / "runs.csv", csv(runs), ANY)
    text = report(runs)
    write_text(given.output / "summary.md", text, ANY)
    print(text)
    return 1 if contradictions(runs) else 0


def is_asked(case: Case, goal: str) -> bool:
    """Whether a case is solved for a goal; networks run once, for the makespan."""
    return case.group == "chains" or GOALS[goal] == Goal()


def solves(
    store: Store,
    case: Case,
    goal: str,
    methods: list[str],
    seconds: float,
    workers: int,
    every: bool,
) -> Iterator[Run]:
    """Yield the rows of an instance, made now where they are missing."""
    instance, quickly = case.instance(), False
    for method in methods:
        heuristic = registry.split(method) is not None
        if (quickly and not heuristic and not every) or unsupported(method, instance, goal):
            continue
        run = parameters(case, instance, goal, method, seconds, workers)
        try:
            found = Run(**store.run(run, lambda: outcome(instance, run)).flat)  # noqa: B023
        except UnsupportedError as error:  # found out only by running it
            print(f"{case.name}, {goal}, {method}: {error}", file=sys.stderr, flush=True)
            continue
        quickly |= found.proven and not heuristic and found.took <= QUICKLY * seconds
        yield found


if __name__ == "__main__":
    sys.exit(main())
