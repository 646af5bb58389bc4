"""Random instances and goals: does any method, bound or schedule contradict brute force?

The draws and the comparison are those of ``bench/agreement.py``, whose judge is enumeration; it
shares nothing with other methods, and a second brute force agrees with it where it can. Here,
every instance has other names, every fourth is solved in other units, too, every schedule passes a
naive verifier, random schedules are no better than the optimum, and methods take turns.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import get_args

from bench.agreement import SIZES, Case, Outcome
from bench.soak.runs import FailedError
from bench.soak.schedules import MODELS, Judged
from optpart.base.errors import InputError
from optpart.exact.enumeration import enumerate_all
from optpart.interop.formats import native
from optpart.lower_bounds.best import BOUNDS
from optpart.methods import registry
from optpart.problem.instance import Instance
from optpart.solution.goal import Goal
from optpart.solution.result import Budget, Result, Status
from optpart.solution.schedule import crossings, retime
from optpart.testing import brute_force
from optpart.testing.disguise import renamed, scaled
from optpart.testing.draw import draw_instance
from optpart.testing.goals import GoalKind
from optpart.testing.pick import Draw, seeded
from optpart.testing.solutions import allowed_placements, picked_order

#: Solvers besides ``cpsat``, which solves every instance.
_SOLVERS = sorted({*registry.METHODS} - {"cpsat", "enumerate"})

#: Solvers that use the whole limit unless they prove an optimum get this one.
_SHORT = Budget(0.3, workers=1)

#: Fewest and most vertices and devices: those of the agreement, and more than eight devices, since
#: what is added up over devices may fit 64 bits only up to there.
_SIZES = (*SIZES, ((2, 3), (9, 11)))

#: Random schedules that are compared with the optimum.
_SCHEDULES = 8


def case(number: int, folder: Path) -> str:
    """Draw an instance and a goal of a kind, and let everything solve it that can."""
    kinds = get_args(GoalKind)
    communication, memory = MODELS[number % len(MODELS)]
    kind = kinds[number // len(MODELS) % len(kinds)]
    vertices, devices = _SIZES[number % len(_SIZES)]
    drawn = draw_instance(
        number, communication, memory, vertices=vertices, devices=devices, exact=number % 8 > 0
    )
    instance = renamed(drawn, number)
    _round_trip(instance, folder)
    outcome = Outcome()
    _Case(instance, kind, number, outcome).run()
    return "refused" if outcome.judge["INFEASIBLE"] else "accepted"


def _round_trip(instance: Instance, folder: Path) -> None:
    path = folder / "instance.json"
    native.write(instance, path)
    if native.read(path) != instance:
        raise FailedError("reading gives something else than what was written")


class _Case(Case):
    """A case of the agreement, compared with more."""

    def run(self) -> None:
        self.judged = Judged(self.instance)
        super().run()
        self._by_random_schedules()
        self._by_placements()
        if self.seed % 4 == 0:
            self._in_other_units()
        name = _SOLVERS[self.seed // 7 % len(_SOLVERS)]
        self._briefly(name)

    def _valid(self, found: Result) -> None:
        super()._valid(found)
        if found.schedule is not None and (faults := self.judged.faults(found.schedule)):
            raise FailedError(f"{found.method}: naive verifier: {faults}")

    def _briefly(self, name: str) -> None:
        """Run a solver for a moment: what it has by then must be valid, and its bounds true."""
        method = registry.get(name)
        try:
            if registry.takes_goal(name):
                found = method(self.instance, budget=_SHORT, seed=self.seed, goal=self.goal)
            elif self.goal == Goal():
                found = method(self.instance, budget=_SHORT, seed=self.seed)
            else:
                return
        except InputError as error:
            if len(str(error)) > 400 or "\n" in str(error):
                raise FailedError(f"{name}: {error}") from None
            return
        self._valid(found)
        self._same(found)

    def _by_random_schedules(self) -> None:
        """No valid schedule is better than the optimum, and there is none where none can be."""
        instance, best = self.instance, self.free
        placements = allowed_placements(instance)
        if not placements or best.status not in (Status.OPTIMAL, Status.INFEASIBLE):
            return
        draw = Draw(seeded(self.seed, "any schedule"))
        for _ in range(_SCHEDULES):
            where = draw.one_of(placements)
            order = picked_order(draw.between, instance, crossings(instance, where))
            schedule = retime(instance, where, order)
            if self.judged.faults(schedule):
                continue
            if best.makespan is None or schedule.makespan(instance) < best.makespan:
                raise FailedError(
                    f"a schedule of {schedule.makespan(instance)}, judge {best.status}, "
                    f"{best.makespan}"
                )

    def _by_placements(self) -> None:
        """Traffic and bottleneck depend on the placement alone unless memory depends on time."""
        instance, goal = self.instance, self.goal
        if goal not in (Goal("traffic"), Goal("bottleneck")):
            return
        if instance.model.memory not in ("none", "estimate"):
            return
        if goal.objective == "bottleneck":
            least = brute_force.least_bottleneck(instance)
            found = self.judge.bottleneck
        else:
            naive = self.judged.naive
            valid = (
                where
                for where in product(range(instance.devices), repeat=instance.vertices)
                if brute_force.bottleneck(instance, where) is not None
            )
            least = min((naive.traffic(where) for where in valid), default=None)
            found = self.judge.traffic
        if self.judge.status in (Status.OPTIMAL, Status.INFEASIBLE) and least != found:
            raise FailedError(f"{goal.objective} by brute force {least}, judge {found}")

    def _in_other_units(self) -> None:
        """Other units change times and sizes by their factor, and nothing else."""
        if self.free.status not in (Status.OPTIMAL, Status.INFEASIBLE):
            return
        other, time, _ = scaled(self.instance, self.seed)
        best = None if self.free.makespan is None else self.free.makespan * time
        again = enumerate_all(other, budget=Budget(20.0, workers=1))
        if again.status.proven and again.makespan != best:
            raise FailedError(f"judge in other units {again.makespan}, not {best}")
        for name, bound in BOUNDS.items():
            if bound.cost == "cheap" and best is not None:
                value = bound.compute(other, seconds=5.0, makespan=None)
                if value is None or value > best:
                    raise FailedError(f"bound {name} in other units {value}, the least {best}")
        found = registry.get("cpsat")(other, budget=Budget(20.0, workers=1), seed=self.seed)
        if found.schedule is not None and (faults := Judged(other).faults(found.schedule)):
            raise FailedError(f"cpsat in other units: naive verifier: {faults}")
        value, low = found.makespan, found.lower_bound
        wrong = (
            (found.status is Status.INFEASIBLE and best is not None)
            or (value is not None and (best is None or value < best))
            or (found.status is Status.OPTIMAL and value != best)
            or (low is not None and best is not None and low > best)
        )
        if wrong:
            raise FailedError(f"cpsat in other units {found.status} {value} {low}, not {best}")
