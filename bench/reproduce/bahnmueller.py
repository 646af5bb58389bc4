"""Findings of [B] chapter 5.

[B] measures on GPUs, where TensorFlow runs executable operations first come, first served; so the
scheduler here is FIFO. Transfers share links, so the verdict is based on links that carry one
transfer at a time. The result with links that never queue, the model of [L] and [M], is given as
well.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from bench.reproduce.cases import BAHNMUELLER, Case
from bench.reproduce.data import Data
from bench.reproduce.findings import (
    Finding,
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

FINDINGS: list[Finding] = []


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


Judge: TypeAlias = Callable[[Networks], Judgement]


def found(title: str, source: str, published: str, criterion: str) -> Callable[[Judge], Judge]:
    """Add a finding, judged with links that queue and with links that do not."""

    def add(judge: Judge) -> Judge:
        def both(data: Data) -> Judgement:
            verdict, measured = judge(Networks(data, "link"))
            other, otherwise = judge(Networks(data, ""))
            if (verdict, measured) == (other, otherwise):
                return verdict, measured
            return verdict, f"{measured} — links that never queue: {otherwise} ({other})"

        FINDINGS.append(Finding(title, source, published, criterion, both))
        return judge

    return add


def percent(value: float) -> str:
    """Write a change."""
    return f"{100 * value:+.1f}%" if abs(value) < 1 else f"{100 * value:+.0f}%"


def series(values: list[float], unit: float = 1000) -> str:
    """Write makespans in milliseconds."""
    return " ".join(f"{value / unit:.0f}" for value in values)


@found(
    "Task parallel is best on 2 devices and gets worse with more (RNN)",
    "[B] §5.3.1, fig. 5.3 (a)",
    "best on 2, more devices have a negative effect in general",
    "Of 2 to 8 devices 2 are best, and 8 are worse than 2; partly if one of the two.",
)
def task_best_on_two(on: Networks) -> Judgement:
    values = on.times("rnn", TASK)
    verdict = all_of([values[0] == min(values), values[-1] > values[0]])
    return verdict, f"2 to 8 devices: {series(values)} ms"


@found(
    "Task parallel takes about three times as long as the others on 8 devices (RNN)",
    "[B] §5.7.2, fig. 5.25 (b); ch. 7",
    "about 3 times as long as all others; almost 3 times one device",
    "At least twice the median of the other four algorithms, and twice one device; partly if it is "
    "the slowest, or slower than one device.",
)
def task_three_times(on: Networks) -> Judgement:
    others = [on.time("rnn", 8, name) for name in ALGORITHMS if name != TASK]
    own = on.time("rnn", 8, TASK)
    ratio, single = own / float(np.median(others)), own / on.time("rnn", 8, SINGLE)
    slowest = own > max(others) or single > 1
    verdict = (
        Verdict.HOLDS if min(ratio, single) >= 2 else Verdict.PARTLY if slowest else Verdict.NOT
    )
    return verdict, f"{ratio:.2f} times the median of the others, {single:.2f} times one device"


@found(
    "Task parallel causes almost 20 times the expert's traffic on 2 devices (RNN)",
    "[B] §5.3.1, fig. 5.3 (b)",
    "almost 20 times",
    "10 to 30 times; partly from 1.2 times.",
)
def task_traffic(on: Networks) -> Judgement:
    ratio = on.traffic("rnn", 2, TASK) / on.traffic("rnn", 2, EXPERT)
    return within(ratio, (10, 30), (1.2, 1e9)), f"{ratio:.2f} times"


@found(
    "Task parallel's time goes with its traffic",
    "[B] §5.3.1, §5.3.2, figs. 5.3, 5.5",
    "strongly correlated",
    "Correlation over 2 to 8 devices 0.7 or more for both networks; partly for one.",
)
def task_correlation(on: Networks) -> Judgement:
    values = {
        model: correlation(on.times(model, TASK), on.traffics(model, TASK)) for model in MODELS
    }
    verdict = all_of(value >= 0.7 for value in values.values())
    return verdict, "; ".join(f"{model}: {value:+.2f}" for model, value in values.items())


@found(
    "Task parallel beats the expert on NMT, but does not scale",
    "[B] §5.3.2, §5.3.3, fig. 5.5 (a)",
    "the expert could be beaten; fewer devices are better",
    "On 2 devices faster than the expert, and on 8 slower than on 2; partly if one of the two.",
)
def task_nmt(on: Networks) -> Judgement:
    two, eight = on.time("nmt", 2, TASK), on.time("nmt", 8, TASK)
    excess = on.relative("nmt", 2, TASK, EXPERT)
    verdict = all_of([excess < 0, eight > two])
    return (
        verdict,
        f"{percent(excess)} against the expert on 2; 8 devices {percent(eight / two - 1)}",
    )


@found(
    "Scoring comes near the expert on 2 devices (RNN)",
    "[B] §5.7.1, fig. 5.25 (a); ch. 7",
    "about the time of the expert",
    "Within 10% of the expert; partly within 30%.",
)
def scoring_near(on: Networks) -> Judgement:
    excess = {name: on.relative("rnn", 2, name, EXPERT) for name in (SCORING, TUNED)}
    verdict = within(excess[SCORING], (-0.1, 0.1), (-1.0, 0.3))
    return verdict, f"{percent(excess[SCORING])}; with tuned weights {percent(excess[TUNED])}"


@found(
    "Scoring beats the expert by 12.4% on 2 devices (NMT)",
    "[B] §5.7.1, fig. 5.25 (c)",
    "12.4% better than the expert",
    "At least 5% faster than the expert; partly if faster.",
)
def scoring_nmt(on: Networks) -> Judgement:
    excess = {name: on.relative("nmt", 2, name, EXPERT) for name in (SCORING, TUNED)}
    verdict = within(excess[SCORING], (-1, -0.05), (-1, 0))
    return verdict, f"{percent(excess[SCORING])}; with tuned weights {percent(excess[TUNED])}"


@found(
    "Scoring causes many times the expert's traffic",
    "[B] §5.4.2, figs. 5.8 (b), 5.11 (b)",
    "many times higher",
    "On every number of devices at least twice, for both networks; partly on most.",
)
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


@found(
    "Distributing NMT does not pay",
    "[B] §5.7.1, fig. 5.25 (c)",
    "one device is 28.4% faster than the best algorithm on 2",
    "One device beats every algorithm and the expert on 2 and on 8 devices; partly if most.",
)
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


@found(
    "ClusterLoad is the best algorithm on 2 devices (RNN)",
    "[B] §5.7.1, fig. 5.25 (a)",
    "21% below one device, 4.1% below the expert",
    "Fastest of the five algorithms and faster than both; partly if faster than one device.",
)
def cluster_load_best(on: Networks) -> Judgement:
    single, expert = (on.relative("rnn", 2, LOAD, base) for base in (SINGLE, EXPERT))
    best = min(ALGORITHMS, key=lambda name: on.time("rnn", 2, name))
    verdict = Verdict.HOLDS if best == LOAD and max(single, expert) < 0 else Verdict.NOT
    if verdict is Verdict.NOT and single < -0.01:
        verdict = Verdict.PARTLY
    return verdict, f"{percent(single)} and {percent(expert)}; the best algorithm is {best}"


@found(
    "ClusterComm places much like the expert on 2 devices",
    "[B] §5.6.2, figs. 5.17, 5.19",
    "very similar time and traffic",
    "Time within 15% and traffic within a factor of 2 of the expert's, for both networks; partly "
    "for one, or in one of the two.",
)
def cluster_comm_expert(on: Networks) -> Judgement:
    verdicts, texts = [], []
    for model in MODELS:
        excess = on.relative(model, 2, COMM, EXPERT)
        ratio = on.traffic(model, 2, COMM) / on.traffic(model, 2, EXPERT)
        verdicts += [within(excess, (-0.15, 0.15)), within(ratio, (0.5, 2))]
        texts.append(f"{model}: time {percent(excess)}, traffic {ratio:.2f} times")
    return worst_of(verdicts), "; ".join(texts)


@found(
    "ClusterCap takes about as long as one device whatever their number (RNN)",
    "[B] §5.6.3, fig. 5.21 (a)",
    "similar to one device, whatever the number",
    "Within 20% of one device on 2 to 8 devices; partly on half of these numbers.",
)
def cluster_cap_single(on: Networks) -> Judgement:
    values = [on.relative("rnn", k, CAP, SINGLE) for k in on.devices("rnn")]
    count = sum(abs(value) <= 0.2 for value in values)
    verdict = by_share(count, len(values), holds=1, partly=0.5)
    return verdict, "2 to 8 devices: " + " ".join(map(percent, values))


@found(
    "Clustering leaves most of 8 devices idle, but for ClusterCap",
    "[B] §5.6, figs. 5.14, 5.16, 5.18, 5.20",
    "two devices are really used; ClusterCap spreads more evenly",
    "With ClusterLoad and ClusterComm the busiest of 8 devices has at least 4 times an even share, "
    "with ClusterCap less than with both, for both networks; partly if not all of that.",
)
def clusters_idle(on: Networks) -> Judgement:
    flags, texts = [], []
    for model in MODELS:
        load = {name: on.imbalance(model, 8, name) for name in CLUSTERS}
        flags += [load[LOAD] >= 4, load[COMM] >= 4, load[CAP] < min(load[LOAD], load[COMM])]
        texts.append(f"{model}: " + ", ".join(f"{name} {load[name]:.1f}" for name in CLUSTERS))
    return all_of(flags), "; ".join(texts)


@found(
    "More devices bring nothing: 2 are best for RNN, 1 for NMT",
    "[B] §5.7.1, ch. 7",
    "a use of more GPUs brings no real gain",
    "Of the five algorithms, all are fastest on at most 2 devices for RNN and on 1 for NMT; partly "
    "if half of the ten agree.",
)
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


@found(
    "Scoring scales best: hardly worse on 8 devices than on 2 (RNN)",
    "[B] §5.7.2, fig. 5.25",
    "gets hardly worse",
    "Between −10% and +20% from 2 to 8 devices, and fastest of the five on 8; partly if one of the "
    "two.",
)
def scoring_scales(on: Networks) -> Judgement:
    change = on.time("rnn", 8, SCORING) / on.time("rnn", 2, SCORING) - 1
    best = min(ALGORITHMS, key=lambda name: on.time("rnn", 8, name))
    verdict = all_of([-0.1 <= change <= 0.2, best == SCORING])
    return verdict, f"{percent(change)}; fastest on 8 devices: {best}"


@found(
    "On 8 devices the cluster algorithms are worse than one device (RNN)",
    "[B] §5.7.2, fig. 5.25 (b)",
    "worse than on one device",
    "All three slower than one device; partly if some.",
)
def clusters_worse(on: Networks) -> Judgement:
    values = {name: on.relative("rnn", 8, name, SINGLE) for name in CLUSTERS}
    verdict = all_of(value > 0 for value in values.values())
    return verdict, "; ".join(f"{name} {percent(value)}" for name, value in values.items())


@found(
    "ClusterCap improves from 2 to 8 devices (NMT)",
    "[B] §5.7.2, fig. 5.25 (c, d)",
    "even improves",
    "Faster on 8 than on 2.",
)
def cluster_cap_improves(on: Networks) -> Judgement:
    change = on.time("nmt", 8, CAP) / on.time("nmt", 2, CAP) - 1
    return (Verdict.HOLDS if change < 0 else Verdict.NOT), percent(change)


@found(
    "ClusterCap is the slowest cluster algorithm",
    "[B] §5.6.4, §5.7.1",
    "considerably worse times than ClusterLoad",
    "Slower than ClusterLoad and ClusterComm on 2 devices for both networks; partly for one of "
    "them, or than one of the two.",
)
def cluster_cap_slowest(on: Networks) -> Judgement:
    flags, texts = [], []
    for model in MODELS:
        times = {name: on.time(model, 2, name) for name in CLUSTERS}
        flags += [times[CAP] > times[LOAD], times[CAP] > times[COMM]]
        texts.append(f"{model}: " + ", ".join(f"{n} {t / 1000:.1f} ms" for n, t in times.items()))
    return all_of(flags), "; ".join(texts)


#: Weights of load that [B] tries, that of communication being 1.
RATIOS = (1e-3, 1e-2, 0.1, 0.5, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.5, 2.5, 5.0, 10.0, 1e2, 1e3)


@found(
    "Scoring is best with equal weights",
    "[B] §5.4.1, §5.4.3, figs. 5.7, 5.10",
    "a balance is best: 1.1 for RNN, 0.9 for NMT",
    "On 2 devices the best of 17 weights of load relative to communication, 0.001 to 1000, is 0.5 "
    "to 2 for both networks; partly for one.",
)
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


@found(
    "Scoring places alike with all weights of 0.1 and less for load",
    "[B] §5.4.1, §5.4.3, figs. 5.7 (a), 5.10 (a)",
    "all have a similar time: communication decides alone",
    "Makespans with 0.001, 0.01 and 0.1 within 5%, on 2 devices for both networks; partly for one.",
)
def small_weights(on: Networks) -> Judgement:
    spread = {}
    for model in MODELS:
        times = weighed(on.case(model, 2), RATIOS[:3])
        spread[model] = max(times) / min(times) - 1
    verdict = all_of(value <= 0.05 for value in spread.values())
    return verdict, "; ".join(f"{model}: {percent(value)}" for model, value in spread.items())
