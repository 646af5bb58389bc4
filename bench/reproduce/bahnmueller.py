"""Findings of [B] chapter 5.

[B] measures on GPUs, where TensorFlow runs executable operations first come, first served; so the
scheduler here is FIFO. Transfers share links, so the verdict is based on links that carry one
transfer at a time. The result with links that never queue, the model of [L] and [M], is given as
well.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bench.reproduce.cases import BAHNMUELLER, Case
from bench.reproduce.data import Data
from bench.reproduce.findings import (
    Judgement,
    Verdict,
    all_of,
    by_share,
    correlation,
    within,
    worst_of,
)  # fmt: skip
from bench.reproduce.measure import weighed

SINGLE, EXPERT, TASK, SCORING, TUNED, LOAD, COMM, CAP = BAHNMUELLER
CLUSTERS = (LOAD, COMM, CAP)
ALGORITHMS = (TASK, SCORING, *CLUSTERS)
SCHEDULER = "fifo"
MODELS = ("rnn", "nmt")


class Networks:
    """The measurements of both networks under one model of communication."""

    def __init__(self, data: Data, variant: str) -> None:
        self.data, self.variant = data, variant

    def case(self, model: str, devices: int) -> Case:
        """Return a network on a number of devices."""
        return self.data.case(model, devices, self.variant)

    def devices(self, model: str) -> list[int]:
        """Return the numbers of devices, from 2, that there are measurements for."""
        mine = [c for c in self.data.cases if (c.graph, c.variant) == (model, self.variant)]
        return [case.devices for case in mine if case.devices > 1]

    def time(self, model: str, devices: int, name: str) -> float:
        """Mean makespan under FIFO."""
        return self.data.makespan(self.case(model, devices), name, SCHEDULER)

    def traffic(self, model: str, devices: int, name: str) -> float:
        """Mean traffic."""
        return self.data.traffic(self.case(model, devices), name)

    def relative(self, model: str, devices: int, name: str, base: str) -> float:
        """Makespan relative to that of another strategy, minus 1."""
        return self.time(model, devices, name) / self.time(model, devices, base) - 1

    def imbalance(self, model: str, devices: int, name: str) -> float:
        """Time of the busiest device over an even share."""
        return self.data.imbalance(self.case(model, devices), name)

    def times(self, model: str, name: str) -> list[float]:
        """Mean makespans on 2 and more devices."""
        return [self.time(model, devices, name) for devices in self.devices(model)]

    def traffics(self, model: str, name: str) -> list[float]:
        """Mean traffic on 2 and more devices."""
        return [self.traffic(model, devices, name) for devices in self.devices(model)]


def on_both(judge: Callable[[Networks], Judgement]) -> Callable[[Data], Judgement]:
    """Judge with links that queue; say what comes out with links that do not if it differs."""

    def both(data: Data) -> Judgement:
        verdict, measured = judge(Networks(data, "link"))
        other, otherwise = judge(Networks(data, ""))
        if (verdict, measured) == (other, otherwise):
            return verdict, measured
        return verdict, f"{measured} — links that never queue: {otherwise} ({other})"

    return both


def percent(value: float) -> str:
    """Write a change."""
    return f"{100 * value:+.1f}%" if abs(value) < 1 else f"{100 * value:+.0f}%"


def series(values: list[float], unit: float = 1000) -> str:
    """Write makespans in milliseconds."""
    return " ".join(f"{value / unit:.0f}" for value in values)


def task_best_on_two(on: Networks) -> Judgement:
    values = on.times("rnn", TASK)
    verdict = all_of([values[0] == min(values), values[-1] > values[0]])
    return verdict, f"2 to 8 devices: {series(values)} ms"


def task_three_times(on: Networks) -> Judgement:
    others = [on.time("rnn", 8, name) for name in ALGORITHMS if name != TASK]
    own = on.time("rnn", 8, TASK)
    ratio, single = own / float(np.median(others)), own / on.time("rnn", 8, SINGLE)
    slowest = own > max(others) or single > 1
    verdict = (
        Verdict.HOLDS if min(ratio, single) >= 2 else Verdict.PARTLY if slowest else Verdict.NOT
    )
    return verdict, f"{ratio:.2f} times the median of the others, {single:.2f} times one device"


def task_traffic(on: Networks) -> Judgement:
    ratio = on.traffic("rnn", 2, TASK) / on.traffic("rnn", 2, EXPERT)
    return within(ratio, (10, 30), (1.2, 1e9)), f"{ratio:.2f} times"


def task_correlation(on: Networks) -> Judgement:
    values = {
        model: correlation(on.times(model, TASK), on.traffics(model, TASK)) for model in MODELS
    }
    verdict = all_of(value >= 0.7 for value in values.values())
    return verdict, "; ".join(f"{model}: {value:+.2f}" for model, value in values.items())


def task_nmt(on: Networks) -> Judgement:
    two, eight = on.time("nmt", 2, TASK), on.time("nmt", 8, TASK)
    excess = on.relative("nmt", 2, TASK, EXPERT)
    verdict = all_of([excess < 0, eight > two])
    return (
        verdict,
        f"{percent(excess)} against the expert on 2; 8 devices {percent(eight / two - 1)}",
    )


def scoring_near(on: Networks) -> Judgement:
    excess = {name: on.relative("rnn", 2, name, EXPERT) for name in (SCORING, TUNED)}
    verdict = within(excess[SCORING], (-0.1, 0.1), (-1.0, 0.3))
    return verdict, f"{percent(excess[SCORING])}; with tuned weights {percent(excess[TUNED])}"


def scoring_nmt(on: Networks) -> Judgement:
    excess = {name: on.relative("nmt", 2, name, EXPERT) for name in (SCORING, TUNED)}
    verdict = within(excess[SCORING], (-1, -0.05), (-1, 0))
    return verdict, f"{percent(excess[SCORING])}; with tuned weights {percent(excess[TUNED])}"


def scoring_traffic(on: Networks) -> Judgement:
    ratios = {
        model: [
            on.traffic(model, k, SCORING) / on.traffic(model, k, EXPERT) for k in on.devices(model)
        ]
        for model in MODELS
    }
    flat = [ratio for values in ratios.values() for ratio in values]
    verdict = by_share(sum(ratio >= 2 for ratio in flat), len(flat), holds=1, partly=0.5)
    text = "; ".join(f"{m}: {min(v):.1f} to {max(v):.1f} times" for m, v in ratios.items())
    return verdict, text


def nmt_single(on: Networks) -> Judgement:
    values = {
        (k, name): on.relative("nmt", k, name, SINGLE)
        for k in (2, 8)
        for name in (*ALGORITHMS, EXPERT)
    }
    count = sum(value > 0 for value in values.values())
    verdict = by_share(count, len(values), holds=1, partly=0.5)
    best = min(values, key=lambda key: values[key])
    return verdict, (
        f"one device is faster in {count} of {len(values)}; best {best[1]} on {best[0]} devices, "
        f"{percent(values[best])}"
    )


def cluster_load_best(on: Networks) -> Judgement:
    single, expert = (on.relative("rnn", 2, LOAD, base) for base in (SINGLE, EXPERT))
    best = min(ALGORITHMS, key=lambda name: on.time("rnn", 2, name))
    verdict = Verdict.HOLDS if best == LOAD and max(single, expert) < 0 else Verdict.NOT
    if verdict is Verdict.NOT and single < -0.01:
        verdict = Verdict.PARTLY
    return verdict, f"{percent(single)} and {percent(expert)}; the best algorithm is {best}"


def cluster_comm_expert(on: Networks) -> Judgement:
    verdicts, texts = [], []
    for model in MODELS:
        excess = on.relative(model, 2, COMM, EXPERT)
        ratio = on.traffic(model, 2, COMM) / on.traffic(model, 2, EXPERT)
        verdicts += [within(excess, (-0.15, 0.15)), within(ratio, (0.5, 2))]
        texts.append(f"{model}: time {percent(excess)}, traffic {ratio:.2f} times")
    return worst_of(verdicts), "; ".join(texts)


def cluster_cap_single(on: Networks) -> Judgement:
    values = [on.relative("rnn", k, CAP, SINGLE) for k in on.devices("rnn")]
    count = sum(abs(value) <= 0.2 for value in values)
    verdict = by_share(count, len(values), holds=1, partly=0.5)
    return verdict, "2 to 8 devices: " + " ".join(map(percent, values))


def clusters_idle(on: Networks) -> Judgement:
    flags, texts = [], []
    for model in MODELS:
        load = {name: on.imbalance(model, 8, name) for name in CLUSTERS}
        flags += [load[LOAD] >= 4, load[COMM] >= 4, load[CAP] < min(load[LOAD], load[COMM])]
        texts.append(f"{model}: " + ", ".join(f"{name} {load[name]:.1f}" for name in CLUSTERS))
    return all_of(flags), "; ".join(texts)


def more_devices(on: Networks) -> Judgement:
    count, texts = 0, []
    for model, most in (("rnn", 2), ("nmt", 1)):
        best = {}
        for name in ALGORITHMS:
            times = {k: on.time(model, k, name) for k in (1, *on.devices(model))}
            best[name] = min(times, key=lambda k: times[k])
        count += sum(k <= most for k in best.values())
        texts.append(f"{model}: " + ", ".join(f"{name} {k}" for name, k in best.items()))
    verdict = by_share(count, 2 * len(ALGORITHMS), holds=1, partly=0.5)
    return verdict, "fastest on so many devices: " + "; ".join(texts)


def scoring_scales(on: Networks) -> Judgement:
    change = on.time("rnn", 8, SCORING) / on.time("rnn", 2, SCORING) - 1
    best = min(ALGORITHMS, key=lambda name: on.time("rnn", 8, name))
    verdict = all_of([-0.1 <= change <= 0.2, best == SCORING])
    return verdict, f"{percent(change)}; fastest on 8 devices: {best}"


def clusters_worse(on: Networks) -> Judgement:
    values = {name: on.relative("rnn", 8, name, SINGLE) for name in CLUSTERS}
    verdict = all_of(value > 0 for value in values.values())
    return verdict, "; ".join(f"{name} {percent(value)}" for name, value in values.items())


def cluster_cap_improves(on: Networks) -> Judgement:
    change = on.time("nmt", 8, CAP) / on.time("nmt", 2, CAP) - 1
    return (Verdict.HOLDS if change < 0 else Verdict.NOT), percent(change)


def cluster_cap_slowest(on: Networks) -> Judgement:
    flags, texts = [], []
    for model in MODELS:
        times = {name: on.time(model, 2, name) for name in CLUSTERS}
        flags += [times[CAP] > times[LOAD], times[CAP] > times[COMM]]
        texts.append(f"{model}: " + ", ".join(f"{n} {t / 1000:.1f} ms" for n, t in times.items()))
    return all_of(flags), "; ".join(texts)


#: Weights of load that [B] tries, that of communication being 1.
RATIOS = (1e-3, 1e-2, 0.1, 0.5, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.5, 2.5, 5.0, 10.0, 1e2, 1e3)


def equal_weights(on: Networks) -> Judgement:
    best, texts = [], []
    for model in MODELS:
        times = dict(zip(RATIOS, weighed(on.case(model, 2), RATIOS), strict=True))
        best.append(min(times, key=lambda ratio: times[ratio]))
        texts.append(
            f"{model}: best {best[-1]:g} with {times[best[-1]] / 1000:.0f} ms; "
            f"1: {times[1.0] / 1000:.0f}, 0.001: {times[1e-3] / 1000:.0f}, "
            f"1000: {times[1e3] / 1000:.0f}"
        )
    return all_of(0.5 <= ratio <= 2 for ratio in best), "; ".join(texts)


def small_weights(on: Networks) -> Judgement:
    spread = {}
    for model in MODELS:
        times = weighed(on.case(model, 2), RATIOS[:3])
        spread[model] = max(times) / min(times) - 1
    verdict = all_of(value <= 0.05 for value in spread.values())
    return verdict, "; ".join(f"{model}: {percent(value)}" for model, value in spread.items())
