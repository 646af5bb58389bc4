"""The reach of exact methods: proofs within a minute, compared with simpler models.

    python bench/exact --data ../shared [--only SET] [--every N] [-o bench/results/exact]

The table has one row per set: cases proven (at the listed optimum, if there is one), mean gap of
the rest, and time to proof as a shifted geometric mean (shift 1 s; unproven cases count with the
limit). On some sets, the textbook CP-SAT model and the MILP run on the same cases. Each solve is
kept in ``runs.jsonl``, so a stopped command continues where it was. ``--every N`` takes every N-th
case of the sets with more than fifty; the table says so.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path

from bench.exact.plain import plain
from bench.exact.sets import SETS, Case
from bench.output import short_machine
from bench.store import RESULTS, Store, Values
from optpart.base.errors import OptpartError
from optpart.base.files import ANY, write_text
from optpart.kernels import all as kernels
from optpart.lower_bounds.best import best_bound
from optpart.methods import registry
from optpart.problem.instance import Instance
from optpart.solution.result import Budget, Result, Status, with_bound

MANY = 50
SHIFT = 1.0


@dataclass(frozen=True)
class Run:
    """One solve; exact numbers as text."""

    set: str
    case: str
    method: str
    limit: float
    status: str
    makespan: str | None
    bound: str | None
    seconds: float
    listed: str | None

    @property
    def proven(self) -> bool:
        """Whether the case is solved, at the listed value if there is one."""
        if self.status == Status.INFEASIBLE:
            return self.listed is None
        right = self.listed is None or self.makespan == self.listed
        return self.status == Status.OPTIMAL and right

    @property
    def wrong(self) -> bool:
        """Whether the claim contradicts the listed optimum."""
        if self.listed is None:
            return False
        low = self.makespan is not None and Fraction(self.makespan) < Fraction(self.listed)
        high = self.bound is not None and Fraction(self.bound) > Fraction(self.listed)
        return low or high or self.status == Status.INFEASIBLE

    @property
    def gap(self) -> float | None:
        """Relative, to its own bound."""
        if self.makespan is None or self.bound is None:
            return None
        return float(1 - Fraction(self.bound) / Fraction(self.makespan))


def cpsat(instance: Instance, budget: Budget) -> Result:
    return registry.get("cpsat")(instance, budget=budget)


def milp(instance: Instance, budget: Budget) -> Result:
    return registry.get("milp")(instance, budget=budget)


def search(instance: Instance, budget: Budget) -> Result:
    """Return what search finds, with the best bound that half of the time more proves."""
    result = registry.get("search")(instance, budget=budget)
    best = best_bound(instance, budget.seconds / 2, result.makespan)
    return result if best.value is None else with_bound(result, best.value)


SOLVERS: dict[str, Callable[[Instance, Budget], Result]] = {
    "cpsat": cpsat,
    "plain": plain,
    "milp": milp,
    "search": search,
}


def solve(set_: str, case: Case, method: str, limit: float) -> Run:
    return solve_by(SOLVERS[method], set_, case, method, limit)


def solve_by(
    solver: Callable[[Instance, Budget], Result], set_: str, case: Case, method: str, limit: float
) -> Run:
    instance = case.read()
    try:
        result = solver(instance, Budget(limit, 2))
    except OptpartError as error:
        print(f"{set_}, {case.name}, {method}: {error}", file=sys.stderr)
        return Run(set_, case.name, method, limit, "REFUSED", None, None, 0.0, None)
    text = [None if x is None else str(x) for x in (result.makespan, result.lower_bound)]
    listed = None if case.optimum is None else str(case.optimum)
    return Run(set_, case.name, method, limit, str(result.status), *text, result.seconds, listed)


def parts(run: Run) -> tuple[Values, Values]:
    """Return the parameters and the result of a run."""
    values = asdict(run)
    return {name: values.pop(name) for name in ("set", "case", "method", "limit")}, values


def main() -> None:
    parser = argparse.ArgumentParser(
        "exact", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder with instances/ and data/")
    parser.add_argument("--only", choices=SETS, action="append", help="no more than that set")
    parser.add_argument("--methods", nargs="+", choices=SOLVERS, default=list(SOLVERS))
    parser.add_argument("--every", type=int, default=1, help="of large sets, each N-th case")
    parser.add_argument("--time-limit", type=float, default=60.0)
    parser.add_argument("-o", "--output", type=Path, default=RESULTS / "exact")
    options = parser.parse_args()
    kernels.load()
    options.output.mkdir(parents=True, exist_ok=True)
    store = Store(options.output / "runs.jsonl")
    done = [Run(**row.flat) for row in store.rows()]
    keys = {(run.set, run.case, run.method, run.limit) for run in done}
    sizes: dict[str, int] = {}
    for name, cases in SETS.items():
        every = list(cases(options.data))
        sizes[name] = len(every)
        if name not in (options.only or SETS):
            continue
        for case in every[:: options.every if len(every) > MANY else 1]:
            for method in [m for m in options.methods if m in ("cpsat", *case.rivals)]:
                if (name, case.name, method, options.time_limit) in keys:
                    continue
                run = solve(name, case, method, options.time_limit)
                store.append(*parts(run))
                done.append(run)
                print(f"{name}, {case.name}, {method}: {run.status}, {run.seconds:.2f} s",
                      file=sys.stderr, flush=True)  # fmt: skip
    text = "\n".join(report([run for run in done if run.limit == options.time_limit], sizes))
    write_text(options.output / "table.txt", text + "\n", ANY)
    print(text)


def report(runs: list[Run], sizes: dict[str, int]) -> Iterator[str]:
    limits = {run.limit for run in runs}
    yield (f"{short_machine('ortools')}; two workers, {max(limits, default=0):g} s a case")
    yield (
        "proven: solved, at the listed optimum where one is listed; time: shifted geometric mean "
        "(1 s), the limit where not proven"
    )
    yield ""
    yield f"{'set':12}{'method':8}{'proven':>12}{'of':>6}{'gap of rest':>13}{'time':>9}{'wrong':>7}"
    for name in SETS:
        for method in SOLVERS:
            chosen = [run for run in runs if (run.set, run.method) == (name, method)]
            if chosen:
                yield row(name, method, chosen, sizes[name])
    for name in SETS:
        yield from against(name, [run for run in runs if run.set == name])
    open_ = [run for run in runs if run.method == "cpsat" and not run.proven]
    if open_:
        yield ""
        yield "not proven by cpsat:"
    for run in open_:
        listed = "" if run.listed is None else f", listed {run.listed}"
        yield f"  {run.set}, {run.case}: {shown(run.makespan)}, bound {shown(run.bound)}{listed}"


def shown(value: str | None) -> str:
    return "none" if value is None else f"{float(Fraction(value)):.6g}"


def row(name: str, method: str, runs: list[Run], size: int) -> str:
    rest = [run.gap for run in runs if not run.proven and run.gap is not None]
    gap = f"{100 * sum(rest) / len(rest):.2f}%" if rest else "–"
    proven = sum(run.proven for run in runs)
    wrong = sum(run.wrong for run in runs)
    return (
        f"{name:12}{method:8}{f'{proven}/{len(runs)}':>12}{size:>6}{gap:>13}"
        f"{mean(runs):>8.2f}s{wrong:>7}"
    )


def mean(runs: list[Run]) -> float:
    times = [run.seconds if run.proven else max(run.seconds, run.limit) for run in runs]
    return math.exp(sum(math.log(t + SHIFT) for t in times) / len(times)) - SHIFT


def against(name: str, runs: list[Run]) -> Iterator[str]:
    """Compare with each rival on the cases that both ran, and on those that both proved."""
    for rival in list(SOLVERS)[1:]:
        theirs = {run.case: run for run in runs if run.method == rival}
        pairs = [(r, theirs[r.case]) for r in runs if r.method == "cpsat" and r.case in theirs]
        if not pairs:
            continue
        both = [(ours, other) for ours, other in pairs if ours.proven and other.proven]
        first, second = (sum(pair[i].proven for pair in pairs) for i in (0, 1))
        text = f"{name}: cpsat against {rival}: {first} and {second} of {len(pairs)} proven"
        if both:
            times = mean([pair[0] for pair in both]), mean([pair[1] for pair in both])
            text += f"; on the {len(both)} of both {times[0]:.2f} s and {times[1]:.2f} s"
            text += f", {times[1] / times[0]:.1f} times"
        yield text


if __name__ == "__main__":
    main()
