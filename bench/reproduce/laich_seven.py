"""Findings of [L] §7.3: seven devices."""

from __future__ import annotations

from functools import partial

import numpy as np

from bench.reproduce.criteria import Verdict, all_of, by_share
from bench.reproduce.data import Data
from bench.reproduce.findings import Finding, Judgement, finding
from bench.reproduce.shared import (
    BATCH,
    CP,
    HEFT,
    ICP,
    MEAN,
    MITE,
    NAMES,
    listed,
    makespans,
    thesis,
)

FINDINGS: list[Finding] = []
found = partial(finding, FINDINGS)


@found(
    "Batch split is comparatively worse on dynamic_rnn on 7 devices than on 50",
    "[L] §7.3, fig. 7.7",
    "comparatively worse",
    "Its makespan relative to the median of the other six, under PCT, is higher on 7 devices.",
)
def batch_worse_on_seven(data: Data) -> Judgement:
    relative = {}
    for devices in (7, 50):
        values = makespans(data, data.case("dynamic_rnn", devices), "pct")
        relative[devices] = values.pop(BATCH) / float(np.median(list(values.values())))
    verdict = Verdict.HOLDS if relative[7] > relative[50] else Verdict.NOT
    return verdict, f"{relative[7]:.2f} times the others' median on 7, {relative[50]:.2f} on 50"


@found(
    "Graph 3 takes much less time than graph 2 on 7 devices, and more on 100",
    "[L] §7.3, fig. 7.7",
    "much lower; the other way round on 100",
    "Under PCT, for each of the seven: graph 3 at most 80% of graph 2 on 7 devices, above it on "
    "100; partly if the medians are.",
)
def graph_three(data: Data) -> Judgement:
    ratios = {
        k: [
            data.makespan(thesis(data, 3, k), n, "pct")
            / data.makespan(thesis(data, 2, k), n, "pct")
            for n in NAMES
        ]
        for k in (7, 100)
    }
    few, many = ratios[7], ratios[100]
    verdict = Verdict.HOLDS if max(few) <= 0.8 and min(many) > 1 else Verdict.NOT
    if verdict is Verdict.NOT and np.median(few) <= 0.8 and np.median(many) > 1:
        verdict = Verdict.PARTLY
    return verdict, (
        f"graph 3 / graph 2: {min(few):.2f} to {max(few):.2f}, median {np.median(few):.2f}, on 7; "
        f"{min(many):.2f} to {max(many):.2f}, median {np.median(many):.2f}, on 100"
    )


@found(
    "Graph 3 causes more traffic than graph 2 on 7 devices",
    "[L] §7.3, fig. 7.8",
    "higher",
    f"For each of the seven; partly for some. {MEAN}",
)
def graph_three_traffic(data: Data) -> Judgement:
    ratios = {
        n: data.traffic(thesis(data, 3, 7), n) / data.traffic(thesis(data, 2, 7), n) for n in NAMES
    }
    verdict = all_of(ratio > 1 for ratio in ratios.values())
    return verdict, listed(f"{n} {ratio:.2f} times" for n, ratio in ratios.items())


@found(
    "Devices are idle more on graph 3 than on graph 2",
    "[L] §7.3, fig. 7.9",
    "much more gaps",
    "Mean utilisation of the 7 devices under PCT is lower on graph 3 for each of the seven; partly "
    "for most.",
)
def more_gaps(data: Data) -> Judgement:
    use = {
        n: (
            data.utilisation(thesis(data, 2, 7), n, "pct"),
            data.utilisation(thesis(data, 3, 7), n, "pct"),
        )
        for n in NAMES
    }
    count = sum(three < two for two, three in use.values())
    verdict = by_share(count, len(use), holds=1, partly=0.51)
    return verdict, listed(f"{n} {two:.0%} → {three:.0%}" for n, (two, three) in use.items())


@found(
    "There are far more executable vertices on graph 2 than on graph 3",
    "[L] §7.3, fig. 7.10",
    "far more for every strategy",
    "Mean number at a decision, under PCT, at least twice for every strategy; partly if more for "
    "most.",
)
def more_executable(data: Data) -> Judgement:
    ratios = {
        n: float(
            data.choices(thesis(data, 2, 7), n, "pct")[0]
            / data.choices(thesis(data, 3, 7), n, "pct")[0]
        )
        for n in NAMES
    }
    verdict = all_of(ratio >= 2 for ratio in ratios.values())
    if verdict is not Verdict.HOLDS:
        more = sum(ratio > 1 for ratio in ratios.values())
        verdict = by_share(more, len(ratios), holds=2, partly=0.51)
    return verdict, listed(f"{n} {ratio:.1f} times" for n, ratio in ratios.items())


@found(
    "MITE spreads the load badly on graph 2 on 7 devices",
    "[L] §7.3, fig. 7.9 (a)",
    "not distributed well; bad performance",
    "Its busiest device has more, relative to an even share, than with HEFT, CP and ICP, and its "
    "makespan is higher than theirs under PCT; partly if one of the two.",
)
def mite_imbalance(data: Data) -> Judgement:
    case = thesis(data, 2, 7)
    load = {name: data.imbalance(case, name) for name in (MITE, HEFT, CP, ICP)}
    time = makespans(data, case, "pct")
    verdict = all_of(
        [
            load[MITE] > max(load[name] for name in (HEFT, CP, ICP)),
            time[MITE] > max(time[name] for name in (HEFT, CP, ICP)),
        ]
    )
    return verdict, "busiest device over an even share, makespan: " + listed(
        f"{name} {load[name]:.2f}, {time[name]:.0f}" for name in load
    )
