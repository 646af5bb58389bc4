"""Do all formulations agree, on every kind of question?

    python bench/agreement.py [--rounds 1] [--goals makespan,both] [--directory DIR]

The questions are random instances (``optpart/testing``) of every communication and memory model,
each with a random goal of every kind. Enumeration is the reference: CP-SAT must prove the same
optimum, infeasibility or decision, with a schedule that the verifier accepts and that satisfies the
goal. No lower bound and no heuristic may contradict it, and a brute-force solver for the simplest
models must agree with it. Every 25th instance also goes to the other installed solvers. A solve
that does not finish within its limit counts as open, never as wrong.

A round is one block of instances per combination of communication, memory and goal, so that every
prefix covers all combinations equally. Finished blocks are kept in ``DIR/runs.jsonl`` and not
repeated. At a disagreement, the instance is written to ``DIR/NAME.json``, the goal and the
contradiction to ``DIR/NAME.txt``, and the bench stops.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter, defaultdict
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from itertools import product
from pathlib import Path
from shutil import which
from typing import Any, get_args

import numpy as np

from bench.output import short_machine
from bench.store import RESULTS, Row, Store, Values
from optpart.base.errors import UnsupportedError
from optpart.base.files import ANY, write_text
from optpart.exact.enumeration import enumerate_all
from optpart.interop.formats import native
from optpart.lower_bounds.best import BOUNDS
from optpart.methods import registry
from optpart.methods.fitting import require_memory
from optpart.problem.instance import Instance
from optpart.problem.model import Communication, Memory
from optpart.solution.goal import Goal
from optpart.solution.result import Budget, Result, Status
from optpart.solution.schedule import Schedule
from optpart.solution.verifier import verify
from optpart.testing import brute_force
from optpart.testing.draw import draw_instance
from optpart.testing.goals import GoalKind, draw_goal
from optpart.testing.solutions import random_schedule

LIMIT = Budget(20.0, workers=1)
WORKERS = 2

#: Every communication and memory model.
MODELS = list(product(get_args(Communication), get_args(Memory)))

#: Instances of a block.
BLOCK = 25

#: Fewest and most vertices and devices; they take turns. The larger of two draws counts.
SIZES = (((1, 4), (1, 3)), ((1, 5), (1, 3)), ((0, 4), (1, 4)), ((2, 4), (2, 3)), ((2, 6), (2, 3)))

#: Bounds that take longer than a solve run on one in this many instances.
SLOW_BOUNDS = {"energy": 4, "crossings": 4, "destructive": 8, "branching": 8}

#: The slowest solvers run on one in this many instances.
SAMPLED = {"milp": 25, "milp-cbc": 25, **({"minizinc": 25} if which("minizinc") else {})}


@dataclass
class Outcome:
    """The outcome of some instances: reference statuses, proofs per method, and seconds."""

    judge: Counter[str] = field(default_factory=Counter)
    proven: Counter[str] = field(default_factory=Counter)
    asked: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    def add(self, other: Values) -> None:
        """Add another outcome."""
        self.judge += Counter(other["judge"])
        self.proven += Counter(other["proven"])
        self.asked += Counter(other["asked"])
        self.seconds += other["seconds"]


class DisagreementError(Exception):
    """Two methods contradict each other."""


def main() -> None:
    parser = argparse.ArgumentParser("agreement", description="compare all formulations")
    parser.add_argument("--rounds", type=int, default=1, help=f"blocks of {BLOCK} a combination")
    parser.add_argument("--goals", default=",".join(get_args(GoalKind)))
    parser.add_argument("--directory", type=Path, default=RESULTS / "agreement")
    options = parser.parse_args()
    goals = options.goals.split(",")
    if unknown := [goal for goal in goals if goal not in get_args(GoalKind)]:
        parser.error(f"no goal {unknown[0]!r}; choose of {', '.join(get_args(GoalKind))}")
    store = Store(options.directory / "runs.jsonl")
    every: list[Values] = [
        {"communication": communication, "memory": memory, "goal": goal, "first": first}
        for first in range(0, options.rounds * BLOCK, BLOCK)
        for goal, (communication, memory) in product(goals, MODELS)
    ]
    done = [row.run for row in store.rows()]
    blocks = [block for block in every if block not in done]
    with ProcessPoolExecutor(WORKERS) as pool:
        work = partial(judged, directory=options.directory)
        for number, (block, result) in enumerate(zip(blocks, pool.map(work, blocks)), 1):  # noqa: B905
            if isinstance(result, str):
                pool.shutdown(cancel_futures=True)
                raise SystemExit(f"\n{result}")
            store.append(block, result)
            print(f"\r{number} of {len(blocks)} blocks", end="", file=sys.stderr)
    text = table(store.rows())
    print(f"\n{text}")
    write_text(options.directory / "table.txt", text, ANY)


def judged(block: Values, directory: Path) -> Values | str:
    """Check one block; stop at the first contradiction, and write the case that shows it."""
    begin, outcome = time.perf_counter(), Outcome()
    communication, memory = block["communication"], block["memory"]
    for seed in range(block["first"], block["first"] + BLOCK):
        vertices, devices = SIZES[seed % len(SIZES)]
        instance = draw_instance(
            seed, communication, memory, vertices=vertices, devices=devices, exact=seed % 8 > 0
        )
        case = Case(instance, block["goal"], seed, outcome)
        try:
            case.run()
        except Exception as error:
            name = f"{communication}-{memory}-{block['goal']}-{seed}"
            native.write(instance, directory / f"{name}.json")
            what = f"{type(error).__name__}: {error}"
            write_text(directory / f"{name}.txt", f"{what}\n{case.goal!r}\n", ANY)
            return f"{name}: {what}; it is in {directory / name}.json and .txt"
    return {name: dict(counts) for name, counts in vars(outcome).items() if name != "seconds"} | {
        "seconds": round(time.perf_counter() - begin, 2)
    }


class Case:
    """One instance and one goal."""

    def __init__(self, instance: Instance, kind: GoalKind, seed: int, outcome: Outcome) -> None:
        self.instance, self.kind, self.seed, self.outcome = instance, kind, seed, outcome
        self.goal = Goal()

    def run(self) -> None:
        """Run the reference and all other methods; raise at the first contradiction."""
        instance = self.instance
        self.free = enumerate_all(instance, budget=LIMIT)
        self._by_brute_force()
        schedule = self._schedule()
        self.goal = draw_goal(instance, schedule, self.seed, self.kind)
        self.judge = self.free
        if self.goal != Goal():
            self.judge = enumerate_all(instance, budget=LIMIT, goal=self.goal)
        self.outcome.judge[str(self.judge.status)] += 1
        self._valid(self.judge)
        if schedule is not None and self.kind in ("placement", "order", "both"):
            self._given(schedule)
        if self.judge.status is Status.OPTIMAL and self.free.status is Status.INFEASIBLE:
            raise DisagreementError("the judge reaches a goal where it says there is no schedule")
        self._bounds()
        self._heuristic()
        self._solver("cpsat")
        for name, every in SAMPLED.items():
            if self.seed % every == sum(map(ord, self.kind)) % every:
                self._solver(name)

    def _given(self, schedule: Schedule) -> None:
        """Check that a schedule satisfies the goals taken from it, and that no optimum is worse."""
        if broken := self.goal.broken(self.instance, schedule):
            raise DisagreementError(f"a schedule does not keep what it gives: {broken}")
        if self.judge.status is Status.INFEASIBLE or (
            self.goal.objective in ("makespan", "lexicographic")
            and self.judge.status is Status.OPTIMAL
            and self.judge.makespan > schedule.makespan(self.instance)
        ):
            raise DisagreementError(
                f"given a schedule of {schedule.makespan(self.instance)}, "
                f"judge {_shown(self.judge)}"
            )

    def _schedule(self) -> Schedule | None:
        """Return the schedule that the goal is drawn from: optimal, of least traffic, or any."""
        match self.seed % 3:
            case 1:
                rng = np.random.default_rng(self.seed)
                return random_schedule(rng, self.instance) or self.free.schedule
            case 2 if "traffic" in self.kind or "limit" in self.kind:
                return enumerate_all(self.instance, budget=LIMIT, goal=Goal("traffic")).schedule
            case _:
                return self.free.schedule

    def _by_brute_force(self) -> None:
        model = self.instance.model
        if (
            self.kind == "makespan"
            and model.communication == "delay"
            and model.memory in ("none", "estimate")
            and self.free.status in (Status.OPTIMAL, Status.INFEASIBLE)
        ):
            best = brute_force.optimum(self.instance)
            makespan = None if best is None else best.makespan
            self._count("brute-force", True)
            if makespan != self.free.makespan:
                raise DisagreementError(f"brute force {makespan}, judge {self.free.makespan}")

    def _bounds(self) -> None:
        """Check that no bound exceeds the least makespan, or excludes an existing schedule."""
        best = self.free
        for name, bound in BOUNDS.items():
            if self.seed % SLOW_BOUNDS.get(name, 1) == 0 and best.status is Status.OPTIMAL:
                value = bound.compute(self.instance, seconds=5.0, makespan=None)
                self._count(name, value == best.makespan)
                if value is None or value > (best.makespan or 0):
                    raise DisagreementError(f"bound {name} is {value}, the least {best.makespan}")

    def _heuristic(self) -> None:
        """Check that a heuristic, each in turn, finds no impossible schedule."""
        names = registry.pairs()
        name = names[self.seed % len(names)]
        found = registry.get(name)(self.instance, seed=self.seed)
        self._count("heuristics", found.makespan == self.free.makespan)
        if found.schedule is None:
            return
        if violations := verify(self.instance, found.schedule):
            raise DisagreementError(f"{name}: {violations[0]}")
        if self.free.status is Status.INFEASIBLE or _less(found.makespan, self.free):
            raise DisagreementError(
                f"{name} finds {found.makespan}, judge {self.free.status} {self.free.makespan}"
            )

    def _solver(self, name: str) -> None:
        method: Any = registry.get(name)
        require_memory(self.instance, name, self.goal, LIMIT)
        try:
            if registry.takes_goal(name):
                found = method(self.instance, budget=LIMIT, goal=self.goal)
            elif self.goal == Goal():
                found = method(self.instance, budget=LIMIT)
            else:
                return
        except UnsupportedError:
            return
        closed = found.status in (Status.OPTIMAL, Status.INFEASIBLE)
        self._count(name, closed or (self.goal.decides and found.schedule is not None))
        self._valid(found)
        self._same(found)

    def _valid(self, found: Result) -> None:
        if found.schedule is None:
            return
        if violations := verify(self.instance, found.schedule):
            raise DisagreementError(f"{found.method}: {violations[0]}")
        if broken := self.goal.broken(self.instance, found.schedule):
            raise DisagreementError(f"{found.method}: {broken}")

    def _same(self, found: Result) -> None:
        judge, goal = self.judge, self.goal
        both = f"{found.method} {_shown(found)}, judge {_shown(judge)}"
        if found.status is Status.INFEASIBLE and judge.schedule is not None:
            raise DisagreementError(both)
        if found.schedule is not None and judge.status is Status.INFEASIBLE:
            raise DisagreementError(both)
        if judge.status is not Status.OPTIMAL or found.status is Status.INFEASIBLE:
            return
        if goal.decides:
            # Both may have any schedule that keeps the goal; what is least keeps the limit too.
            free = not (goal.placement or goal.order or goal.blocks or goal.traffic is not None)
            least = self.free.makespan if free else judge.makespan
            if found.lower_bound is not None and found.lower_bound > least:
                raise DisagreementError(f"bound {found.lower_bound} of {both}")
            return
        least, _ = _minimised(judge)
        value, bound = _minimised(found)
        if value is not None and value < least:
            raise DisagreementError(f"better than the judge: {both}")
        if bound is not None and bound > least:
            raise DisagreementError(f"bound {bound} of {both}")
        if found.status is Status.OPTIMAL:
            lexicographic = goal.objective == "lexicographic"
            if value != least or (lexicographic and found.traffic != judge.traffic):
                raise DisagreementError(both)

    def _count(self, name: str, proven: bool) -> None:
        self.outcome.asked[name] += 1
        self.outcome.proven[name] += proven


def _minimised(result: Result) -> tuple[Fraction | None, Fraction | None]:
    """Return the value and the bound of what comes first in the objective."""
    match result.objective:
        case "traffic":
            return result.traffic, result.traffic_bound
        case "bottleneck":
            return result.bottleneck, result.bottleneck_bound
        case _:
            return result.makespan, result.lower_bound


def _less(makespan: Fraction | None, judge: Result) -> bool:
    return (
        judge.status is Status.OPTIMAL
        and makespan is not None
        and judge.makespan is not None
        and makespan < judge.makespan
    )


def _shown(result: Result) -> str:
    return (
        f"{result.status} (makespan {result.makespan}, traffic {result.traffic}, "
        f"bottleneck {result.bottleneck})"
    )


def table(blocks: list[Row]) -> str:
    """Return the table of instances and reference statuses per model and goal."""
    total, rows = Outcome(), defaultdict[str, Outcome](Outcome)
    for block in blocks:
        for name in (f"{block.run['communication']} {block.run['memory']}", block.run["goal"]):
            rows[name].add(block.result)
        total.add(block.result)
    lines = [
        f"{sum(total.judge.values())} instances, no disagreement; {total.seconds:.0f} s of "
        f"{WORKERS} processes, {short_machine()}",
        "",
        f"{'':20}{'instances':>10}{'optimum':>9}{'none':>8}{'open':>6}{'cpsat':>9}",
    ]
    for name in (*(f"{c} {m}" for c, m in MODELS), *get_args(GoalKind)):
        if name in rows:
            row, count = rows[name], sum(rows[name].judge.values())
            optimal, none = row.judge["OPTIMAL"], row.judge["INFEASIBLE"]
            lines.append(
                f"{name:20}{count:>10}{optimal:>9}{none:>8}{count - optimal - none:>6}"
                f"{row.proven['cpsat']:>9}"
            )
    lines += ["", f"{'':20}{'asked':>10}{'proven or optimal':>19}"]
    lines += [
        f"{name:20}{asked:>10}{total.proven[name]:>19}" for name, asked in total.asked.items()
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
