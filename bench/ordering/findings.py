"""The findings of [H]: what was published, what was measured, and whether they hold."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bench.ordering.cases import MODELS, PUBLISHED, REAL, Case, work
from bench.ordering.measure import BASELINE, BEST, TAO, TIO, WORST, Measured, gap
from optpart.applications.ordering.models.toy import LAYERS
from optpart.strategies.base import Partition
from optpart.strategies.scheduling.tao import tao
from optpart.strategies.simulator import execute

HOLDS, PARTLY, NOT = "holds", "partly", "does not"


class Finding(NamedTuple):
    """A claim: where it is in [H], what was published, what was measured, and the verdict."""

    where: str
    published: str
    measured: str
    verdict: str


#: What was measured, and the verdict.
Judgement = tuple[str, str]


def verdict(holds: bool, partly: bool = False) -> str:
    if holds:
        return HOLDS
    return PARTLY if partly else NOT


def findings(found: Measured) -> list[Finding]:
    """Judge all claims, each by the function of its name in ``findings.toml``."""
    text = Path(__file__).with_name("findings.toml").read_text(encoding="utf-8")
    judges: dict[str, Callable[[Measured], Judgement]] = globals()
    return [
        Finding(row["where"], row["published"], *judges[row["judge"]](found))
        for row in tomllib.loads(text)["finding"]
    ]


def as_text(rows: Sequence[Finding]) -> str:
    """Write all claims as text."""
    return "".join(
        f"{number:2}. {row.where}: {row.verdict}\n"
        f"    published: {row.published}\n"
        f"    measured:  {row.measured}\n"
        for number, row in enumerate(rows, 1)
    )


def _forward(names: tuple[str, ...] = PUBLISHED) -> list[Case]:
    return [Case(name, training=False) for name in names]


def _training(names: tuple[str, ...] = PUBLISHED) -> list[Case]:
    return [Case(name, training=True) for name in names]


_PUBLISHED_REAL = tuple(name for name in PUBLISHED if name in REAL)


def fit(found: Measured) -> Judgement:
    both, alone = found.r_squared(BASELINE, TAO), found.r_squared(BASELINE)
    return (
        f"{both:.3f} with and without TAO; {alone:.3f} over the random orders alone",
        verdict(min(both, alone) >= 0.97, both >= 0.9),
    )


def variance(found: Measured) -> Judgement:
    spread = {
        m: (found.sample[m].time.std(), found.sample[m].efficiency.std()) for m in (BASELINE, TAO)
    }
    ratios = [spread[BASELINE][i] / spread[TAO][i] for i in range(2)]
    return (
        f"standard deviations {ratios[0]:.0f} (step time) and {ratios[1]:.0f} (E) times as large",
        verdict(min(ratios) > 5, min(ratios) > 1),
    )


def near_one(found: Measured) -> Judgement:
    efficiency = found.sample[TAO].efficiency
    share = float((efficiency > 0.99).mean())
    return (f"E > 0.99 in {share:.0%} of the runs", verdict(share > 0.5))


def percentiles(found: Measured) -> Judgement:
    published = {BASELINE: 0.634, TIO: 0.998, TAO: 0.998}
    high, low = ({m: found.percentile(m, q) for m in published} for q in (95, 5))
    off = [abs(high[m] - value) for m, value in published.items()]
    listed = (", ".join(f"{m} {v:.3f}" for m, v in values.items()) for values in (high, low))
    return (
        "{}; the 5th percentiles are {}".format(*listed),
        verdict(max(off) < 0.05, max(off) < 0.2),
    )


def marginally(found: Measured) -> Judgement:
    worse = [
        found.step_time(case, TIO) / found.step_time(case, TAO) - 1
        for case in (*_forward(), *_training())
    ]
    named = [
        f"{case.name} {value:+.1%}"
        for case, value in zip((*_forward(), *_training()), worse, strict=True)
        if abs(value) > 0.005
    ]
    return (
        f"step time {min(worse):+.1%} to {max(worse):+.1%}; more than 0.5%: "
        + (", ".join(named) or "none"),
        verdict(max(worse) < 0.01, float(np.median(worse)) < 0.01),
    )


def _most(found: Measured, cases: list[Case]) -> tuple[str, float]:
    case = max(cases, key=lambda one: found.speedup(one, TAO))
    return case.model, found.speedup(case, TAO)


def forward(found: Measured) -> Judgement:
    model, value = _most(found, _forward())
    listed = ", ".join(f"{c.model} {found.speedup(c, TAO):.0%}" for c in _forward())
    return (
        f"up to {value:.0%} ({model}): {listed}",
        verdict(0.72 <= value <= 0.92, 0.4 <= value <= 1.2),
    )


def training(found: Measured) -> Judgement:
    model, value = _most(found, _training())
    listed = ", ".join(f"{c.model} {found.speedup(c, TAO):.0%}" for c in _training())
    return (
        f"up to {value:.0%} ({model}): {listed}",
        verdict(0.15 <= value <= 0.25, 0.05 <= value <= 0.4),
    )


def more_in_forward(found: Measured) -> Judgement:
    pairs = [
        (found.speedup(a, TAO), found.speedup(b, TAO))
        for a, b in zip(_forward(), _training(), strict=True)
        if a.model != "par-32"
    ]
    return (
        f"in {sum(a > b for a, b in pairs)} of {len(pairs)} models (all but par-32)",
        verdict(all(a > b for a, b in pairs), any(a > b for a, b in pairs)),
    )


def near_best(found: Measured) -> Judgement:
    def near(cases: list[Case]) -> list[float]:
        return [found.step_time(c, TAO) / found.step_time(c, BEST) - 1 for c in cases]

    ahead, both = near(_forward()), near(_training())
    close = sum(value < 0.05 for value in (*ahead, *both))
    return (
        f"TAO takes {min(ahead):.1%} to {max(ahead):.1%} longer forward, {min(both):.0%} to "
        f"{max(both):.0%} in training, where eq. 2 is out of reach",
        verdict(close == len(ahead) + len(both), close >= len(ahead)),
    )


def efficiency(found: Measured) -> Judgement:
    baseline = [found.efficiency(c, BASELINE) for c in _forward() if c.model != "par-32"]
    near = {m: found.efficiency(Case(m, False), TAO) for m in ("inception-v2", "vgg16")}
    return (
        f"baseline {min(baseline):.2f} to {max(baseline):.2f} (without par-32); TAO "
        + ", ".join(f"{m} {value:.3f}" for m, value in near.items()),
        verdict(max(baseline) < 0.8 and min(near.values()) > 0.98, max(baseline) < 0.95),
    )


def straggling(found: Measured) -> Judgement:
    values = {c.name: found.straggler(c, BASELINE) for c in (*_forward(), *_training())}
    most = max(values, key=lambda name: values[name])
    return (
        f"at most {values[most]:.0%} ({most})",
        verdict(values[most] > 0.3, values[most] > 0.15),
    )


def less_straggling(found: Measured) -> Judgement:
    ratio = {
        c.name: found.straggler(c, BASELINE) / found.straggler(c, TAO)
        for c in (*_forward(), *_training())
    }
    most = max(ratio, key=lambda name: ratio[name])
    return (
        f"up to {ratio[most]:.1f}× ({most}); less noise than here makes it more",
        verdict(2.3 <= ratio[most] <= 3.3, ratio[most] > 1.5),
    )


def alike(found: Measured) -> Judgement:
    apart = [
        max(values) - min(values)
        for c in _forward()
        for values in [[found.straggler(c, m) for m in (TIO, TAO, BEST, WORST)]]
    ]
    return (
        f"by at most {max(apart):.1%} of the step",
        verdict(max(apart) < 0.02, max(apart) < 0.05),
    )


def toys(found: Measured) -> Judgement:
    values = {m: found.straggler(Case(m, False), BASELINE) for m in ("par-32", "seq-32")}
    real = min(found.straggler(c, BASELINE) for c in _forward(_PUBLISHED_REAL))
    return (
        ", ".join(f"{m} {value:.1%}" for m, value in values.items())
        + f"; least of the real models {real:.1%}",
        verdict(max(values.values()) < 0.05, min(values.values()) < 0.05),
    )


def scaling(found: Measured) -> Judgement:
    pairs = {
        c.name: (found.speedup_alone(c, TAO), found.speedup(c, TAO))
        for c in (*_forward(), *_training())
        if c.model != "par-32"
    }
    more = sum(b > a for a, b in pairs.values())
    return (
        f"in {more} of {len(pairs)} cases (all but par-32), by "
        f"{np.mean([b - a for a, b in pairs.values()]):.1%} of throughput on average",
        verdict(more == len(pairs), more > len(pairs) / 2),
    )


def disorder(found: Measured) -> Judgement:
    slower = {
        c.name: found.disordered[c].time.mean() / found.step_time(c, TAO) - 1
        for c in (*_forward(MODELS), *_training(MODELS))
    }
    most = max(slower, key=lambda name: slower[name])
    real = max(slower[c.name] for c in (*_forward(REAL), *_training(REAL)))
    return (
        f"steps take up to {slower[most]:.2%} longer ({most}), those of real models up to "
        f"{real:.3%}",
        verdict(real > 0.001, slower[most] > 0.001),
    )


def par_orders(found: Measured) -> Judgement:
    case = Case("par-32", training=False)
    values = {result.makespan for result in found.orders[case, "random-order"]}
    best = found.attainable[case].makespan
    return (
        f"{len(values)} makespan in {len(found.orders[case, 'random-order'])} random orders, "
        + ("the optimum" if values == {best} else "not the optimum"),
        verdict(values == {best}),
    )


def seq_orders(found: Measured) -> Judgement:
    """Exchange any two transfers that follow one another in the best order."""
    case = Case("seq-32", training=False)
    tasks = work(case)
    priority = tao(tasks, Partition(tasks.resource), np.random.default_rng(0))
    best = execute(tasks, priority)
    assert priority.value is not None
    transfers = np.argsort(-priority.value[:LAYERS], kind="stable")
    worse = 0
    for i in range(LAYERS - 1):
        value = priority.value.copy()
        a, b = transfers[i], transfers[i + 1]
        value[a], value[b] = value[b], value[a]
        other = execute(tasks, priority._replace(value=value))
        worse += (other.start + tasks.duration).max() > (best.start + tasks.duration).max()
    return (
        f"each of the {LAYERS - 1} exchanges of neighbours makes it longer: {worse} do",
        verdict(worse == LAYERS - 1, worse > LAYERS / 2),
    )


def near_optimal(found: Measured) -> Judgement:
    """The claim that [H] could not check."""
    cases = (*_forward(MODELS), *_training(MODELS))
    proven = [case for case in cases if found.attainable[case].optimal]
    text, means = [f"optimum proven in {len(proven)} of {len(cases)} cases"], []
    for name in ("tao", "tio"):
        over = {case.name: gap(found, case, name) for case in proven}
        on_average = max(over, key=lambda one: over[one][0])
        at_worst = max(over, key=lambda one: over[one][1])
        means += [values[0] for values in over.values()]
        text.append(
            f"{name} reaches it with every seed in "
            f"{sum(values[1] == 0 for values in over.values())}, is on average at most "
            f"{over[on_average][0]:.2%} longer ({on_average}), with its worst seed "
            f"{over[at_worst][1]:.1%} ({at_worst})"
        )
    text.append("[H] leaves open in which order gradients are computed and sent")
    return (
        "; ".join(text),
        verdict(len(proven) == len(cases) and max(means) < 0.01, max(means) < 0.05),
    )


def loose(found: Measured) -> Judgement:
    """Eq. 2 against proven optima."""

    def off(cases: list[Case]) -> list[float]:
        known = [found.attainable[c] for c in cases]
        return [float(each.looseness[1]) for each in known if each.optimal]

    ahead, both = off(_forward(MODELS)), off(_training(MODELS))
    return (
        f"the proven optimum lies {min(ahead):.2%} to {max(ahead):.2%} above eq. 2 forward, "
        f"{min(both):.0%} to {max(both):.0%} in training, where E* is about a half: the loss "
        "parts all transfers to the worker from all gradients",
        verdict(max((*ahead, *both)) > 0),
    )


def comparator(found: Measured) -> Judgement:
    """Run TAO with the comparator as it is printed."""
    gaps = []
    for case in _forward(_PUBLISHED_REAL):
        tasks = work(case)
        times = []
        for variant in ("derived", "printed"):
            rng = np.random.default_rng(1)
            priority = tao(tasks, Partition(tasks.resource), rng, variant=variant)
            times.append((execute(tasks, priority).start + tasks.duration).max())
        gaps.append(times[1] / times[0] - 1)
    return (
        f"as printed it tests the opposite: forward passes take {min(gaps):.0%} to "
        f"{max(gaps):.0%} longer; optpart follows eq. 5",
        verdict(max(gaps) <= 0),
    )


def transitive(found: Measured) -> Judgement:
    """Search the smallest whole-number properties for a cycle of the comparator."""

    def precedes(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
        gain_a, gain_b = min(a[0], b[1]), min(b[0], a[1])
        return gain_b < gain_a if gain_a != gain_b else a[2] < b[2]

    options = [(p, m, later) for p, m, later in product(range(3), (1, 2, 3), (4, 5, 6))]
    cycle = next(
        (
            (a, b, c)
            for a, b in product(options, repeat=2)
            if precedes(a, b)
            for c in options
            if precedes(b, c) and precedes(c, a)
        ),
        None,
    )
    shown = (
        "no cycle" if cycle is None else "A < B < C < A with (P, M, M⁺) = {}, {}, {}".format(*cycle)
    )
    return (shown, verdict(cycle is None))
