"""Findings of [L] §7.1: six synthetic graphs on 100 devices."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product

import numpy as np

from bench.reproduce.cases import Case
from bench.reproduce.criteria import (
    Verdict,
    alike,
    all_of,
    by_share,
    falling,
    is_largest,
    is_least,
    overlap,
    within,
    worst_of,
)
from bench.reproduce.data import Data
from bench.reproduce.findings import Finding, Judgement, finding
from bench.reproduce.shared import (
    BATCH,
    CP,
    DFS,
    HASH,
    HEFT,
    ICP,
    MEAN,
    MITE,
    NAMES,
    SAME,
    SCHEDULERS,
    cases_of,
    highest,
    listed,
    makespans,
    percent,
    shown,
    thesis,
    traffics,
)

FINDINGS: list[Finding] = []
found = partial(finding, FINDINGS)


def rules(data: Data, cases: list[Case]) -> Iterator[tuple[Case, str, dict[str, float]]]:
    """Yield makespans by scheduling strategy, where these differ at all."""
    for case, name in product(cases, NAMES):
        values = {rule: data.makespan(case, name, rule) for rule in SCHEDULERS}
        if not alike(values.values()):
            yield case, name, values


def share_of(data: Data, rule: str, best: bool) -> tuple[int, int, int]:
    """In how many combinations a rule is best or worst, of how many that differ, of how many."""
    cases = cases_of(data, "laich100")
    differing = list(rules(data, cases))
    test = is_least if best else is_largest
    count = sum(test(values[rule], values.values()) for _, _, values in differing)
    return count, len(differing), len(cases) * len(NAMES)


@found(
    "FIFO is almost always the worst scheduler",
    "[L] §7.1, fig. 7.1",
    "almost always the worst",
    f"Of the combinations of graph and partitioning in which schedulers differ: FIFO worst in 80% "
    f"or more; partly from 50%. {SAME}",
)
def fifo_worst(data: Data) -> Judgement:
    count, differing, total = share_of(data, "fifo", best=False)
    verdict = by_share(count, differing, holds=0.8, partly=0.5)
    return (
        verdict,
        f"worst in {count} of {differing} ({total - differing} of {total} do not differ)",
    )


@found(
    "MSR is in few cases slightly worse than FIFO",
    "[L] §7.1, fig. 7.1",
    "in few cases slightly worse",
    "MSR worse than FIFO in some, but at most 25% of the combinations that differ, and by 5% at "
    "most; partly if only one of the two.",
)
def msr_slightly_worse(data: Data) -> Judgement:
    differing = list(rules(data, cases_of(data, "laich100")))
    worse = [
        v["msr"] / v["fifo"] - 1 for _, _, v in differing if not is_least(v["msr"], [v["fifo"]])
    ]
    if not worse:
        return Verdict.NOT, f"worse in none of {len(differing)}"
    few = within(len(worse) / len(differing), (0.0, 0.25))
    verdict = worst_of([few, within(max(worse), (0.0, 0.05))])
    return verdict, f"worse in {len(worse)} of {len(differing)}, by up to {percent(max(worse))}"


@found(
    "PCT is best in almost all cases",
    "[L] §7.1, fig. 7.1; ch. 10",
    "outperforms the other two in almost all cases",
    f"PCT best, alone or with another, in 80% or more of the combinations that differ; partly from "
    f"50%. {SAME}",
)
def pct_best(data: Data) -> Judgement:
    count, differing, total = share_of(data, "pct", best=True)
    verdict = by_share(count, differing, holds=0.8, partly=0.5)
    return verdict, f"best in {count} of {differing} ({total - differing} of {total} do not differ)"


@found(
    "PCT is better by far",
    "[L] ch. 10",
    "outperformed the other schedulers by far",
    "Median gain of PCT over FIFO, over all combinations: 10% or more; partly from 2%.",
)
def pct_by_far(data: Data) -> Judgement:
    gains = {
        setting: float(
            np.median(
                [
                    1 - data.makespan(case, name, "pct") / data.makespan(case, name, "fifo")
                    for case, name in product(cases_of(data, setting), NAMES)
                ]
            )
        )
        for setting in ("laich100", "tensorflow50")
    }
    verdict = worst_of(within(gain, (0.1, 1.0), (0.02, 1.0)) for gain in gains.values())
    return verdict, (
        f"median gain {100 * gains['laich100']:.1f}% on the synthetic, "
        f"{100 * gains['tensorflow50']:.1f}% on the TensorFlow graphs"
    )


@found(
    "With MITE and hashing, MSR is sometimes minimally better than PCT on graphs 1 and 2",
    "[L] §7.1, fig. 7.1",
    "minimal better results in some runs",
    "MSR better in at least one such run, by 2% at most; partly if by more.",
)
def msr_sometimes_better(data: Data) -> Judgement:
    gains = np.concatenate(
        [
            1 - data.makespans(case, name, "msr") / data.makespans(case, name, "pct")
            for case, name in product([thesis(data, 1), thesis(data, 2)], (MITE, HASH))
        ]
    )
    count, largest = int((gains > 1e-9).sum()), float(gains.max())
    verdict = Verdict.NOT if not count else within(largest, (0.0, 0.02), (0.0, 1.0))
    gain = f", by up to {100 * largest:.2f}%" if count else ""
    return verdict, f"better in {count} of {len(gains)} runs{gain}"


@found(
    "Batch split and hashing are the worst on all synthetic graphs",
    "[L] §7.1, fig. 7.1",
    "in general the worst on all sample graphs",
    f"They are the two worst of the seven under PCT on every graph; partly if one of them is worst "
    f"on half of them or more. {MEAN}",
)
def batch_and_hash_worst(data: Data) -> Judgement:
    order = {c: falling(makespans(data, c, "pct")) for c in cases_of(data, "laich100")}
    both = sum(overlap(names, (BATCH, HASH)) == 2 for names in order.values())
    one = sum(names[0] in (BATCH, HASH) for names in order.values())
    verdict = Verdict.HOLDS if both == len(order) else Verdict.NOT
    if verdict is Verdict.NOT and 2 * one >= len(order):
        verdict = Verdict.PARTLY
    return (
        verdict,
        f"the two worst on {both} of {len(order)}, one of them worst on {one}: "
        + listed(f"{shown(c)}: {names[0]}, {names[1]}" for c, names in order.items()),
    )


def mite_ratio(data: Data, number: int) -> float:
    values = makespans(data, thesis(data, number), "pct")
    return values[MITE] / float(np.mean([values[HEFT], values[CP], values[ICP]]))


@found(
    "MITE takes about twice as long as HEFT, CP and ICP on graphs 1 and 2",
    "[L] §7.1, fig. 7.1",
    "about two times higher",
    "MITE over the mean of the three, under PCT: 1.5 to 2.5 on both graphs; partly from 1.2 to 4.",
)
def mite_twice(data: Data) -> Judgement:
    ratios = {number: mite_ratio(data, number) for number in (1, 2)}
    verdict = worst_of(within(ratio, (1.5, 2.5), (1.2, 4.0)) for ratio in ratios.values())
    return verdict, listed(f"graph {n}: {ratio:.2f} times" for n, ratio in ratios.items())


@found(
    "MITE is about equal on graphs 5 and 6, and better on graph 3",
    "[L] §7.1, fig. 7.1",
    "almost the same on 5 and 6, even smaller on 3",
    "MITE over the mean of HEFT, CP and ICP, under PCT: 0.8 to 1.2 on graphs 5 and 6, below 1 on "
    "graph 3; partly if not all of that.",
)
def mite_equal(data: Data) -> Judgement:
    ratios = {number: mite_ratio(data, number) for number in (5, 6, 3)}
    verdict = worst_of(
        within(ratio, (0.0, 1.0) if number == 3 else (0.8, 1.2)) for number, ratio in ratios.items()
    )
    return verdict, listed(f"graph {n}: {ratio:.2f} times" for n, ratio in ratios.items())


@found(
    "Traffic grows with the number of edges",
    "[L] §7.1, fig. 7.2",
    "graph 1 least, 2 slightly more, 3 to 5 more, 6 most by far",
    "Mean traffic over the seven strategies in that order, graph 6 at least 1.5 times the next; "
    "partly if only the order.",
)
def traffic_by_edges(data: Data) -> Judgement:
    mean = {n: float(np.mean(list(traffics(data, thesis(data, n)).values()))) for n in range(1, 7)}
    middle = [mean[n] for n in (3, 4, 5)]
    ordered = mean[1] < mean[2] < min(middle) and max(middle) < mean[6]
    verdict = Verdict.NOT if not ordered else within(mean[6] / max(middle), (1.5, 1e9), (1, 1e9))
    return verdict, "in millions: " + listed(f"{n}: {v / 1e6:.2f}" for n, v in mean.items())


@found(
    "Hashing, HEFT and CP cause the most traffic",
    "[L] §7.1, fig. 7.2",
    "performed the worst for every graph",
    f"They are the three highest of the seven on every graph; partly if two of the three are on "
    f"every graph. {MEAN}",
)
def most_traffic(data: Data) -> Judgement:
    return highest(data, "laich100", (HASH, HEFT, CP))


@found(
    "Batch split causes less traffic than hashing, HEFT and CP",
    "[L] §7.1, fig. 7.2",
    "leads to lower traffic",
    f"Less than each of the three on every graph; partly on some. {MEAN}",
)
def batch_less_traffic(data: Data) -> Judgement:
    flags, texts = [], []
    for case in cases_of(data, "laich100"):
        values = traffics(data, case)
        least = min(values[name] for name in (HASH, HEFT, CP))
        flags.append(values[BATCH] < least)
        texts.append(f"{shown(case)}: {percent(values[BATCH] / least - 1)}")
    return all_of(flags), "against the lowest of the three: " + listed(texts)


@found(
    "MITE and DFS cause the least traffic",
    "[L] §7.1, fig. 7.2",
    "performed well",
    f"They are the two lowest of the seven on every graph; partly if one of them is the lowest on "
    f"every graph. {MEAN}",
)
def least_traffic(data: Data) -> Judgement:
    order = {c: falling(traffics(data, c))[::-1] for c in cases_of(data, "laich100")}
    both = [overlap(names, (MITE, DFS)) == 2 for names in order.values()]
    one = [names[0] in (MITE, DFS) for names in order.values()]
    verdict = Verdict.HOLDS if all(both) else Verdict.PARTLY if all(one) else Verdict.NOT
    return verdict, listed(f"{shown(c)}: {names[0]}, {names[1]}" for c, names in order.items())


@found(
    "HEFT takes by far the longest to partition",
    "[L] §7.1, fig. 7.3",
    "the longest by far",
    "Longest of the seven on every graph, at least twice the next; partly if the longest on half "
    "of them or more. Medians over the runs.",
    why="ICP follows long paths, which graphs with many levels and edges have; HEFT is compiled",
)
def heft_slowest(data: Data) -> Judgement:
    flags, far, texts = [], [], []
    for case in cases_of(data, "laich100"):
        times = {name: data.seconds(case, name) for name in NAMES}
        first, second = falling(times)[:2]
        flags.append(first == HEFT)
        far.append(first == HEFT and times[first] >= 2 * times[second])
        texts.append(
            f"{shown(case)}: {first} {1000 * times[first]:.0f} ms, HEFT {1000 * times[HEFT]:.0f}"
        )
    verdict = Verdict.HOLDS if all(far) else by_share(sum(flags), len(flags), holds=2, partly=0.5)
    return verdict, f"longest on {sum(flags)} of {len(flags)}: " + listed(texts)


@found(
    "HEFT's time follows the number of vertices",
    "[L] §7.1, fig. 7.3",
    "graph 1, 6, 2, then 5 and 4, then 3",
    "The same order by HEFT's median time; partly if the rank correlation is 0.7 or more.",
)
def heft_by_vertices(data: Data) -> Judgement:
    times = {n: data.seconds(thesis(data, n), HEFT) for n in range(1, 7)}
    order = sorted(times, key=lambda n: -times[n])
    same = order[:3] == [1, 6, 2] and set(order[3:5]) == {4, 5}
    published = {1: 0, 6: 1, 2: 2, 5: 3, 4: 4, 3: 5}
    rank = float(np.corrcoef([published[n] for n in order], range(6))[0, 1])
    verdict = Verdict.HOLDS if same else within(rank, (2, 2), (0.7, 1))
    return verdict, f"order {', '.join(map(str, order))}; rank correlation {rank:.2f}"


@found(
    "MITE and DFS take comparatively long on graph 6, which has most edges",
    "[L] §7.1, fig. 7.3",
    "comparatively long",
    "Both take longer on graph 6 than on graph 1, which has more vertices; partly if one does.",
)
def mite_slow_on_six(data: Data) -> Judgement:
    ratios = {
        name: data.seconds(thesis(data, 6), name) / data.seconds(thesis(data, 1), name)
        for name in (MITE, DFS)
    }
    verdict = all_of(ratio > 1 for ratio in ratios.values())
    return verdict, listed(f"{n}: {ratio:.2f} times graph 1" for n, ratio in ratios.items())
