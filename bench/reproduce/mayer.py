"""Findings of [M] §5, with the strategies as [M] §3 defines them."""

from __future__ import annotations

from itertools import product

from bench.reproduce import findings
from bench.reproduce.cases import MAYER, Case
from bench.reproduce.data import Data
from bench.reproduce.findings import (
    HEFT,
    SCHEDULERS,
    Judgement,
    Verdict,
    all_of,
    cases_of,
    falling,
    is_largest,
    is_least,
    listed,
    percent,
    shown,
    within,
)  # fmt: skip

HASH, BATCH, CP, MITE, DFS = MAYER
NAMES = (HASH, HEFT, BATCH, CP, MITE, DFS)


def combinations(data: Data, case: Case) -> dict[str, float]:
    """Mean makespan of every pair of figure 3."""
    return {f"{n}+{r}": data.makespan(case, n, r) for n, r in product(NAMES, SCHEDULERS)}


def cp_pct_best(data: Data) -> Judgement:
    flags, near, texts = [], [], []
    for case in cases_of(data, "tensorflow50"):
        values = combinations(data, case)
        best = min(values, key=lambda pair: values[pair])
        excess = values[f"{CP}+pct"] / values[best] - 1
        flags.append(is_least(values[f"{CP}+pct"], values.values()))
        near.append(excess <= 0.1)
        texts.append(f"{shown(case)}: best {best}, CP+PCT {percent(excess)}")
    verdict = all_of(flags)
    if verdict is Verdict.NOT and all(near):
        verdict = Verdict.PARTLY
    return verdict, listed(texts)


def hash_fifo_worst(data: Data) -> Judgement:
    flags, hashes, texts = [], [], []
    for case in cases_of(data, "tensorflow50"):
        values = combinations(data, case)
        worst = max(values, key=lambda pair: values[pair])
        flags.append(is_largest(values[f"{HASH}+fifo"], values.values()))
        hashes.append(worst.startswith(HASH))
        texts.append(
            f"{shown(case)}: worst {worst}, hash+FIFO "
            f"{percent(values[f'{HASH}+fifo'] / values[worst] - 1)}"
        )
    verdict = all_of(flags)
    if verdict is Verdict.NOT and all(hashes):
        verdict = Verdict.PARTLY
    return verdict, listed(texts)


def four_times(data: Data) -> Judgement:
    cases = cases_of(data, "tensorflow50")

    def ratios(hashing: str, path: str) -> list[float]:
        return [data.makespan(c, hashing, "fifo") / data.makespan(c, path, "pct") for c in cases]

    ours, theses = ratios(HASH, CP), ratios(findings.HASH, findings.CP)
    return within(max(ours), (3, 5), (2, 1e9)), listed(
        f"{shown(c)}: {one:.2f} times (as in [L]: {other:.2f})"
        for c, one, other in zip(cases, ours, theses, strict=True)
    )


def hash_balances(data: Data) -> Judgement:
    flags, texts = [], []
    for case in cases_of(data, "tensorflow50"):
        load = {name: data.imbalance(case, name) for name in NAMES}
        order = falling(load)[::-1]
        flags.append(order.index(HASH) < 3)
        texts.append(
            f"{shown(case)}: {load[HASH]:.1f}, place {order.index(HASH) + 1}, "
            f"best {order[0]} {load[order[0]]:.1f}"
        )
    return all_of(flags), listed(texts)
