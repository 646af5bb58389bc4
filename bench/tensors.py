"""Language models by tensor groups, on two cards and a processor and on four cards in two hosts.

    python bench/tensors.py [--time-limit 30] [-o bench/results]

A block is attention and feed-forward, or attention, router with shared experts, and experts: all of
them, or two groups that run beside each other and a sum. The cache of a block belongs to its
attention, or is apart. A step decodes one token of one sequence,
or of eight while it reads 256 tokens of a prompt; 4,096 positions, weights q4_K. Run times are
roofline estimates, and memory is the model ``refcount``. ``auto`` gets the time limit. What has a
row is not run again.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Any

import optpart as op
from bench.output import machine, markdown
from bench.store import Row, Runs, Values, make_page
from optpart.interop.formats.cluster_toml import loads_named

_CPU = '{of = "epyc-9654", name = "cpu", memory = "768 GB"}'
_HOSTS = """default_link = "ethernet-10g"
device = [
    {of = "a100-80gb", name = "a", count = 2}, {of = "rtx-3090", name = "b", count = 2},
    {of = "epyc-9654", name = "cpu-a", memory = "384 GB"},
    {of = "epyc-7763", name = "cpu-b", memory = "256 GB"},
]
link = [
    {from = "a", to = "a", of = "pcie-4-x16"}, {from = "a", to = "cpu-a", of = "pcie-4-x16"},
    {from = "b", to = "b", of = "pcie-4-x16"}, {from = "b", to = "cpu-b", of = "pcie-4-x16"},
]"""
CLUSTERS = {
    "rtx-3090, rtx-3070, cpu": 'default_link = "pcie-4-x16"\n'
    f'device = [{{of = "rtx-3090"}}, {{of = "rtx-3070"}}, {_CPU}]',
    "2 a100-80gb, cpu": 'default_link = "pcie-4-x16"\n'
    f'device = [{{of = "a100-80gb", name = "a", count = 2}}, {_CPU}]',
    "2 a100-80gb, cpu; 2 rtx-3090, cpu": _HOSTS,
}
HALVES, THIRDS = "attention+mlp", "attention+mlp+experts"
MODELS = {
    "gemma-3-27b": HALVES, "llama-3-70b": HALVES, "llama-3.1-405b": HALVES,
    "qwen3-30b-a3b": THIRDS, "qwen3-235b-a22b": THIRDS, "mixtral-8x22b": THIRDS,
    "gpt-oss-120b": THIRDS, "deepseek-v3": THIRDS, "llama-4-scout": THIRDS,
    "llama-4-maverick": THIRDS,
}  # fmt: skip
STEPS: dict[str, dict[str, Any]] = {
    "1 sequence": {},
    "8 sequences, 256 of a prompt": {"batch": 8, "prefill_tokens": 256},
}
IN_GROUPS = {
    f"{step}, 2 groups": {**options, "expert_groups": 2} for step, options in STEPS.items()
}
APART = {f"{step}, cache apart": options for step, options in STEPS.items()}


def measured(cluster: str, model: str, step: str, seconds: float) -> Values:
    """Import a model, and solve it."""
    granularity = MODELS[model]
    if step in APART:
        granularity = granularity.replace("attention", "attention+cache")
    read = op.workload(
        model,
        context=4096,
        weights="q4_K",
        granularity=granularity,
        **(STEPS | IN_GROUPS | APART)[step],
    )
    instance = op.costed(read, loads_named(CLUSTERS[cluster]), "roofline").instance
    found = op.solve(instance, seconds=seconds)
    return {
        "vertices": instance.vertices,
        "status": str(found.status),
        "makespan": str(found.makespan),
        "bound": str(found.lower_bound),
        "gap": found.gap,
        "took": found.seconds,
        "machine": machine(),
    }


def page(rows: list[Row]) -> str:
    """Return the table of all runs."""
    proven = sum(row.result["status"] == "OPTIMAL" for row in rows)
    head = ["cluster", "model", "vertices", "step", "status", "gap", "seconds"]
    lines = [
        [
            row.run["cluster"], row.run["model"], row.result["vertices"], row.run["step"],
            row.result["status"],
            "" if row.result["gap"] is None else f"{row.result['gap']:.3%}",
            f"{row.result['took']:.1f}",
        ]
        for row in rows
    ]  # fmt: skip
    return "\n".join([
        "# Language models by tensor groups", "",
        " ".join((__doc__ or "").split("\n\n")[2].split()), "",
        f"{proven} of {len(rows)} optima are proven in {rows[0].run['seconds']:g} s each. "
        f"{rows[0].result['machine']}", "", markdown(head, lines), "",
    ])  # fmt: skip


def runs(seconds: float) -> Iterator[Runs]:
    """Yield all runs."""
    for cluster, model, step in product(CLUSTERS, MODELS, STEPS | IN_GROUPS | APART):
        if step in IN_GROUPS and MODELS[model] == HALVES:
            continue
        run = {"cluster": cluster, "model": model, "step": step, "seconds": seconds}
        yield run, partial(measured, **run)


if __name__ == "__main__":
    make_page(__doc__, "tensors", 30.0, runs, page)
