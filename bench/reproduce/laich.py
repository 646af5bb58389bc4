"""Findings of [L]: §7.1, synthetic graphs; §7.2, TensorFlow graphs; §7.3, seven devices."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from bench.reproduce.cases import Case
from bench.reproduce.data import Data
from bench.reproduce.findings import (
    BATCH,
    CP,
    DFS,
    HASH,
    HEFT,
    ICP,
    MITE,
    NAMES,
    SCHEDULERS,
    Judgement,
    Verdict,
    alike,
    all_of,
    by_share,
    cases_of,
    falling,
    highest,
    is_largest,
    is_least,
    listed,
    makespans,
    overlap,
    percent,
    shown,
    thesis,
    traffics,
    within,
    worst_of,
)  # fmt: skip

# --- six synthetic graphs on 100 devices ----------------------------------------------------------


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


def fifo_worst(data: Data) -> Judgement:
    count, differing, total = share_of(data, "fifo", best=False)
    verdict = by_share(count, differing, holds=0.8, partly=0.5)
    return (
        verdict,
        f"worst in {count} of {differing} ({total - differing} of {total} do not differ)",
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


def pct_best(data: Data) -> Judgement:
    count, differing, total = share_of(data, "pct", best=True)
    verdict = by_share(count, differing, holds=0.8, partly=0.5)
    return verdict, f"best in {count} of {differing} ({total - differing} of {total} do not differ)"


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


def mite_twice(data: Data) -> Judgement:
    ratios = {number: mite_ratio(data, number) for number in (1, 2)}
    verdict = worst_of(within(ratio, (1.5, 2.5), (1.2, 4.0)) for ratio in ratios.values())
    return verdict, listed(f"graph {n}: {ratio:.2f} times" for n, ratio in ratios.items())


def mite_equal(data: Data) -> Judgement:
    ratios = {number: mite_ratio(data, number) for number in (5, 6, 3)}
    verdict = worst_of(
        within(ratio, (0.0, 1.0) if number == 3 else (0.8, 1.2)) for number, ratio in ratios.items()
    )
    return verdict, listed(f"graph {n}: {ratio:.2f} times" for n, ratio in ratios.items())


def traffic_by_edges(data: Data) -> Judgement:
    mean = {n: float(np.mean(list(traffics(data, thesis(data, n)).values()))) for n in range(1, 7)}
    middle = [mean[n] for n in (3, 4, 5)]
    ordered = mean[1] < mean[2] < min(middle) and max(middle) < mean[6]
    verdict = Verdict.NOT if not ordered else within(mean[6] / max(middle), (1.5, 1e9), (1, 1e9))
    return verdict, "in millions: " + listed(f"{n}: {v / 1e6:.2f}" for n, v in mean.items())


def most_traffic(data: Data) -> Judgement:
    return highest(data, "laich100", (HASH, HEFT, CP))


def batch_less_traffic(data: Data) -> Judgement:
    flags, texts = [], []
    for case in cases_of(data, "laich100"):
        values = traffics(data, case)
        least = min(values[name] for name in (HASH, HEFT, CP))
        flags.append(values[BATCH] < least)
        texts.append(f"{shown(case)}: {percent(values[BATCH] / least - 1)}")
    return all_of(flags), "against the lowest of the three: " + listed(texts)


def least_traffic(data: Data) -> Judgement:
    order = {c: falling(traffics(data, c))[::-1] for c in cases_of(data, "laich100")}
    both = [overlap(names, (MITE, DFS)) == 2 for names in order.values()]
    one = [names[0] in (MITE, DFS) for names in order.values()]
    verdict = Verdict.HOLDS if all(both) else Verdict.PARTLY if all(one) else Verdict.NOT
    return verdict, listed(f"{shown(c)}: {names[0]}, {names[1]}" for c, names in order.items())


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


def heft_by_vertices(data: Data) -> Judgement:
    times = {n: data.seconds(thesis(data, n), HEFT) for n in range(1, 7)}
    order = sorted(times, key=lambda n: -times[n])
    same = order[:3] == [1, 6, 2] and set(order[3:5]) == {4, 5}
    published = {1: 0, 6: 1, 2: 2, 5: 3, 4: 4, 3: 5}
    rank = float(np.corrcoef([published[n] for n in order], range(6))[0, 1])
    verdict = Verdict.HOLDS if same else within(rank, (2, 2), (0.7, 1))
    return verdict, f"order {', '.join(map(str, order))}; rank correlation {rank:.2f}"


def mite_slow_on_six(data: Data) -> Judgement:
    ratios = {
        name: data.seconds(thesis(data, 6), name) / data.seconds(thesis(data, 1), name)
        for name in (MITE, DFS)
    }
    verdict = all_of(ratio > 1 for ratio in ratios.values())
    return verdict, listed(f"{n}: {ratio:.2f} times graph 1" for n, ratio in ratios.items())


# --- three TensorFlow graphs on 50 devices, and chapter 10 ----------------------------------------


def pct_best_tensorflow(data: Data) -> Judgement:
    combinations = list(product(cases_of(data, "tensorflow50"), NAMES))
    count = sum(
        is_least(data.makespan(c, n, "pct"), [data.makespan(c, n, r) for r in SCHEDULERS])
        for c, n in combinations
    )
    verdict = by_share(count, len(combinations), holds=1, partly=0.8)
    return verdict, f"best in {count} of {len(combinations)}"


def hash_worst(data: Data) -> Judgement:
    order = {c: falling(makespans(data, c, "pct")) for c in cases_of(data, "tensorflow50")}
    verdict = all_of(names[0] == HASH for names in order.values())
    return verdict, "worst: " + listed(f"{shown(c)}: {n[0]}, {n[1]}" for c, n in order.items())


def mite_and_cp_best(data: Data) -> Judgement:
    values = {c: makespans(data, c, "pct") for c in cases_of(data, "tensorflow50")}
    order = {c: falling(v)[::-1] for c, v in values.items()}
    both = [overlap(names, (MITE, CP)) == 2 for names in order.values()]
    one = [names[0] in (MITE, CP) for names in order.values()]
    verdict = Verdict.HOLDS if all(both) else Verdict.NOT
    if verdict is Verdict.NOT and (all(one) or any(both)):
        verdict = Verdict.PARTLY
    return verdict, listed(
        f"{shown(c)}: {', '.join(f'{n} {values[c][n]:.0f}' for n in names[:3])}"
        for c, names in order.items()
    )


def dfs_third(data: Data) -> Judgement:
    flags, texts = [], []
    for case in cases_of(data, "tensorflow50"):
        values = makespans(data, case, "pct")
        order = falling(values)[::-1]
        excess = values[DFS] / values[order[1]] - 1
        flags.append(order[2] == DFS and excess <= 0.25)
        best = min(values[MITE], values[CP])
        texts.append(
            f"{shown(case)}: place {order.index(DFS) + 1}, {percent(values[DFS] / best - 1)} "
            "against the better of MITE and CP"
        )
    return all_of(flags), listed(texts)


def icp_worse(data: Data) -> Judgement:
    flags, texts = [], []
    for case in cases_of(data, "tensorflow50"):
        icp, cp = data.makespans(case, ICP, "pct"), data.makespans(case, CP, "pct")
        flags.append(bool(icp.mean() > cp.mean()))
        texts.append(
            f"{shown(case)}: {percent(icp.mean() / cp.mean() - 1)}, "
            f"worse in {(icp > cp).sum()} of {len(cp)} runs"
        )
    return all_of(flags), listed(texts)


def heft_worse(data: Data) -> Judgement:
    excess = {c: over_mite(data, c) for c in cases_of(data, "tensorflow50")}
    verdict = all_of(0.4 <= value <= 0.8 for value in excess.values())
    if verdict is Verdict.NOT and all(value > 0 for value in excess.values()):
        verdict = Verdict.PARTLY
    text = listed(f"{shown(c)}: {percent(value)}" for c, value in excess.items())
    for variant, what in (("memory", "memory limits"), ("sends", "sends that occupy the sender")):
        others = [percent(over_mite(data, c)) for c in data.of(variant)]
        text += f"; with {what}: {', '.join(others)}"
    return verdict, text


def over_mite(data: Data, case: Case) -> float:
    """HEFT+PCT over MITE+PCT, minus 1."""
    return data.makespan(case, HEFT, "pct") / data.makespan(case, MITE, "pct") - 1


def less_than_heft(data: Data) -> Judgement:
    flags, texts = [], []
    for case in cases_of(data, "tensorflow50"):
        values = makespans(data, case, "pct")
        flags += [values[name] <= 0.8 * values[HEFT] for name in (CP, MITE, DFS)]
        parts = (f"{name} {percent(values[name] / values[HEFT] - 1)}" for name in (CP, MITE, DFS))
        texts.append(f"{shown(case)}: {', '.join(parts)}")
    return all_of(flags), listed(texts)


def most_traffic_tensorflow(data: Data) -> Judgement:
    return highest(data, "tensorflow50", (HASH, HEFT))


def icp_less_traffic(data: Data) -> Judgement:
    change = {
        c: data.traffic(c, ICP) / data.traffic(c, CP) - 1 for c in cases_of(data, "tensorflow50")
    }
    verdict = all_of(value < 0 for value in change.values())
    return verdict, listed(f"{shown(c)}: {percent(value)}" for c, value in change.items())


def least_traffic_tensorflow(data: Data) -> Judgement:
    expected = (MITE, BATCH, DFS)
    order = {c: falling(traffics(data, c))[::-1] for c in cases_of(data, "tensorflow50")}
    hits = [overlap(names, expected) for names in order.values()]
    verdict = Verdict.HOLDS if min(hits) == 3 else Verdict.PARTLY if min(hits) == 2 else Verdict.NOT
    return verdict, listed(f"{shown(c)}: {', '.join(names[:3])}" for c, names in order.items())


def batch_traffic_structure(data: Data) -> Judgement:
    share = {
        setting: [data.traffic(c, BATCH) / data.traffic(c, HASH) for c in cases_of(data, setting)]
        for setting in ("tensorflow50", "laich100")
    }
    networks, drawn = share["tensorflow50"], share["laich100"]
    verdict = Verdict.HOLDS if max(networks) < min(drawn) else Verdict.NOT
    if verdict is Verdict.NOT and np.mean(networks) < np.mean(drawn):
        verdict = Verdict.PARTLY
    return verdict, (
        f"{min(networks):.2f} to {max(networks):.2f} of hashing's on TensorFlow graphs, "
        f"{min(drawn):.2f} to {max(drawn):.2f} on synthetic ones"
    )


def icp_slowest(data: Data) -> Judgement:
    order, texts = [], []
    for case in cases_of(data, "tensorflow50"):
        times = {name: data.seconds(case, name) for name in NAMES}
        order.append(falling(times))
        top = (f"{name} {1000 * times[name]:.1f} ms" for name in order[-1][:3])
        texts.append(f"{shown(case)}: {', '.join(top)}")
    exact = all(names[:2] == [ICP, HEFT] for names in order)
    some = any(names[0] == ICP or overlap(names, (ICP, HEFT)) == 2 for names in order)
    verdict = Verdict.HOLDS if exact else Verdict.PARTLY if some else Verdict.NOT
    return verdict, listed(texts)


def batch_fast(data: Data) -> Judgement:
    batch, fastest, texts = [], [], []
    for case in cases_of(data, "tensorflow50"):
        times = {name: data.seconds(case, name) for name in NAMES}
        batch.append(times[BATCH] < min(times[MITE], times[DFS]))
        fastest.append(times[HASH] == min(times.values()))
        parts = (f"{name} {1000 * times[name]:.1f}" for name in (HASH, BATCH, MITE, DFS))
        texts.append(f"{shown(case)}: {', '.join(parts)} ms")
    return worst_of([all_of(batch), all_of(fastest)]), listed(texts)


def scheduler_undoes(data: Data) -> Judgement:
    lost, texts = [], []
    for case in cases_of(data, "tensorflow50"):
        values = makespans(data, case, "pct")
        best, *others = falling(values)[::-1]
        rule = max(SCHEDULERS, key=lambda r: data.makespan(case, best, r))
        worst = data.makespan(case, best, rule)
        lost.append(worst > values[others[0]])
        texts.append(
            f"{shown(case)}: {best}+{rule} {worst:.0f}, {others[0]}+pct {values[others[0]]:.0f}"
        )
    return (Verdict.HOLDS if any(lost) else Verdict.NOT), listed(texts)


# --- seven devices --------------------------------------------------------------------------------


def batch_worse_on_seven(data: Data) -> Judgement:
    relative = {}
    for devices in (7, 50):
        values = makespans(data, data.case("dynamic_rnn", devices), "pct")
        relative[devices] = values.pop(BATCH) / float(np.median(list(values.values())))
    verdict = Verdict.HOLDS if relative[7] > relative[50] else Verdict.NOT
    return verdict, f"{relative[7]:.2f} times the others' median on 7, {relative[50]:.2f} on 50"


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


def graph_three_traffic(data: Data) -> Judgement:
    ratios = {
        n: data.traffic(thesis(data, 3, 7), n) / data.traffic(thesis(data, 2, 7), n) for n in NAMES
    }
    verdict = all_of(ratio > 1 for ratio in ratios.values())
    return verdict, listed(f"{n} {ratio:.2f} times" for n, ratio in ratios.items())


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
