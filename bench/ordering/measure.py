"""All measurements, in a form for findings."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from bench.ordering.cases import Case, cases, instance, work
from optpart.applications.ordering.compare import best_order, order
from optpart.applications.ordering.efficiency import Attainable, attainable
from optpart.applications.ordering.stragglers import Steps, offline, simulate_steps
from optpart.solution.result import Budget, Result
from optpart.strategies.scheduling.random_order import random_order
from optpart.strategies.scheduling.tao import tao
from optpart.strategies.scheduling.tio import tio
from optpart.strategies.simulator import Scheduler

#: Standard deviation of the logarithm of an op's time, unless said otherwise.
NOISE = 0.02

#: What orders transfers, in the order of [H] figure 9.
BASELINE, TIO, TAO, BEST, WORST = MECHANISMS = ("baseline", "TIO", "TAO", "best", "worst")

#: One in this many transfers is sent out of order ([H] §5.1).
ERROR = 1 / 200

WORKERS = 4

#: Steps of the sample model and, of several workers, of every model; seconds of the solver for a
#: model; seeds of every order without noise.
RUNS, STEPS, SECONDS, SEEDS = 1000, 250, 30.0, 20

#: The model of [H] figures 7 and 8.
SAMPLE = Case("inception-v2", training=False)


@dataclass
class Measured:
    """All measurements.

    Attributes
    ----------
    steps : dict of (Case, mechanism) to Steps
        Of :data:`WORKERS` workers.
    disordered : dict of Case to Steps
        TAO, with transfers out of order.
    sample : dict of mechanism to Steps
        Of one worker with the model of figures 7 and 8.
    attainable : dict of Case to Attainable
    orders : dict of (Case, name) to list of Result
        By seed.
    """

    steps: dict[tuple[Case, str], Steps] = field(default_factory=dict)
    disordered: dict[Case, Steps] = field(default_factory=dict)
    sample: dict[str, Steps] = field(default_factory=dict)
    attainable: dict[Case, Attainable] = field(default_factory=dict)
    orders: dict[tuple[Case, str], list[Result]] = field(default_factory=dict)

    def step_time(self, case: Case, mechanism: str) -> float:
        """Mean time of a step of all workers."""
        return float(self.steps[case, mechanism].time.mean())

    def speedup(self, case: Case, mechanism: str) -> float:
        """Gain in throughput over the baseline."""
        return self.step_time(case, BASELINE) / self.step_time(case, mechanism) - 1

    def speedup_alone(self, case: Case, mechanism: str) -> float:
        """The same for a single worker: each of the workers by itself."""
        alone = [self.steps[case, name].makespan.mean() for name in (BASELINE, mechanism)]
        return float(alone[0] / alone[1] - 1)

    def efficiency(self, case: Case, mechanism: str) -> float:
        """Mean ordering efficiency."""
        return float(self.steps[case, mechanism].efficiency.mean())

    def straggler(self, case: Case, mechanism: str) -> float:
        """Mean straggler effect."""
        return float(self.steps[case, mechanism].straggler.mean())

    @property
    def normalised(self) -> dict[str, NDArray[np.float64]]:
        """Time of the fastest step of all by the time of every step: 1 is best."""
        times = {m: self.sample[m].time for m in (BASELINE, TIO, TAO)}
        fastest = min(float(values.min()) for values in times.values())
        return {m: fastest / values for m, values in times.items()}

    def r_squared(self, *names: str) -> float:
        """Coefficient of determination of the normalised step time by E."""
        times = self.normalised
        x = np.concatenate([self.sample[m].efficiency[:, 0] for m in names])
        y = np.concatenate([times[m] for m in names])
        return float(np.corrcoef(x, y)[0, 1] ** 2)

    def percentile(self, mechanism: str, q: float) -> float:
        """Percentile of the normalised step time."""
        return float(np.percentile(self.normalised[mechanism], q))


def mechanisms(case: Case) -> dict[str, Scheduler]:
    return {BASELINE: random_order, TIO: offline(work(case), tio), TAO: offline(work(case), tao)}


def measure() -> Measured:
    found = Measured()
    begin = time.perf_counter()
    for mechanism, scheduler in mechanisms(SAMPLE).items():
        found.sample[mechanism] = simulate_steps(
            work(SAMPLE), scheduler, steps=RUNS, noise=NOISE, seed=1
        )
    say("figures 7 and 8", begin)
    for case in cases():
        one = partial(simulate_steps, work(case), steps=STEPS, workers=WORKERS, noise=NOISE, seed=1)
        for mechanism, scheduler in mechanisms(case).items():
            found.steps[case, mechanism] = one(scheduler)
        ideal = found.steps[case, BASELINE]
        found.steps[case, BEST] = ideal._replace(makespan=ideal.lower)
        found.steps[case, WORST] = ideal._replace(makespan=ideal.upper)
        found.disordered[case] = one(mechanisms(case)[TAO], out_of_order=ERROR)
    say("figures 9 and 10", begin)
    for case in cases():
        for name in ("tao", "tio", "random-order", "as-received", "pct"):
            found.orders[case, name] = [
                order(instance(case), name, seed) for seed in range(1, SEEDS + 1)
            ]
        every = [result for (c, _), some in found.orders.items() if c == case for result in some]
        result = best_order(every, Budget(SECONDS, 1), seed=1)
        found.attainable[case] = attainable(result)
        say(f"{case.name}: {result.status}", begin)
    return found


def say(what: str, begin: float) -> None:
    print(f"{time.perf_counter() - begin:6.0f} s  {what}", file=sys.stderr, flush=True)


def gap(found: Measured, case: Case, name: str) -> tuple[float, float]:
    """Mean and worst makespan of an order over the best known one, less 1."""
    best = found.attainable[case].makespan
    assert best is not None
    values = [result.makespan for result in found.orders[case, name] if result.makespan]
    over = [float(value / best) - 1 for value in values]
    return float(np.mean(over)), max(over)
