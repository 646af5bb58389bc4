"""The rules by which runtimes split language models, beside proven optima.

Every rule is judged among the plans that its runtime can run: those of llama.cpp, ollama, exo and
prima.cpp on all devices, with the experts of a mixture apart; accelerate's with the processor's
weights copied to the first card for every step; vLLM's as stages of a pipeline on the cards. A step
makes one token after 4,095 others (decode), or reads a prompt of 4,096 (prefill). Rules get the
memory that is left beside what the runtime needs itself, and keys and values count.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator
from functools import partial
from itertools import product
from statistics import median
from typing import Any

import optpart as op
from bench.output import machine, markdown
from bench.store import Row, Runs, Values
from optpart.interop.formats.cluster_toml import loads_named
from optpart.methods import registry
from optpart.placing.runtimes import for_stages, offloading
from optpart.solution.job import Job

SECONDS = 30.0
MODELS = {
    "phi-3-mini": "bfloat16", "qwen3-8b": "bfloat16", "gemma-2-9b": "bfloat16",
    "llama-2-13b": "float16", "qwen2.5-32b": "q4_K", "qwen3-30b-a3b": "q8_0",
    "mixtral-8x7b": "q4_K", "llama-3-70b": "q4_K",
}  # fmt: skip
MIXTURES = ("qwen3-30b-a3b", "mixtral-8x7b")
_CPU = '{of = "ryzen-9-7950x", memory = "64 GB"}'
_INTEGRATED = """{
    name = "integrated", type = "GPU", memory = "24 GB", memory_bandwidth = "100 GB/s",
    overhead = "10 us", peak = {float32 = "4 TFLOP/s", float16 = "8 TFLOP/s"},
}""".replace("\n", "").replace(",}", "}")
#: Links and devices.
MACHINES = {
    "one card": ("pcie-4-x16", '{of = "rtx-4090"}', _CPU),
    "two unlike cards": ("pcie-4-x16", '{of = "rtx-3090"}', '{of = "rtx-3070"}', _CPU),
    "four cards": (
        "pcie-3-x16", '{of = "t4", count = 4}', '{of = "epyc-7763", memory = "256 GB"}',
    ),
    "laptop": ("pcie-4-x16", _INTEGRATED, '{of = "core-i9-13900k", memory = "40 GB"}'),
    "two hosts": (
        "ethernet-10g", '{of = "apple-m2", memory = "24 GB"}',
        '{of = "jetson-agx-orin", memory = "64 GB"}',
    ),
}  # fmt: skip
#: Rules by the plans among which they are judged.
RULES = {
    "any": (
        "llama-fit", "llama-tensor-split", "llama-cpu-moe", "ollama", "halda", "exo-ring",
        "exo-ring-bandwidth",
    ),
    "copied": ("accelerate",),
    "stages": ("vllm",),
}  # fmt: skip
ORDER = [rule for rules in RULES.values() for rule in rules]
MODES = {"decode": tuple(RULES), "prefill": ("any",)}


def runs() -> Iterator[Runs]:
    """Yield every question, and what answers it."""
    for mode, rules in MODES.items():
        for plans, machines, model in product(rules, MACHINES, MODELS):
            run = {"mode": mode, "plans": plans, "machines": machines, "model": model}
            if (plans, machines) != ("copied", "two hosts"):  # accelerate runs on one
                yield run | {"seconds": SECONDS}, partial(judged, **run)


def judged(mode: str, plans: str, machines: str, model: str) -> Values:
    """Solve, and cost the plan of every rule."""
    options: dict[str, Any] = {"mode": mode, "context": 4096, "weights": MODELS[model]}
    if plans == "any" and model in MIXTURES:
        options["granularity"] = "attention+mlp+experts"
    link, *listed = MACHINES[machines]
    read = op.workload(model, **options)
    devices = loads_named(f'default_link = "{link}"\ndevice = [{", ".join(listed)}]')
    if plans == "stages":
        if read.graph.colocation:
            read = op.workload(model, tied="copy", **options)
        read, devices = for_stages(read, devices)
    instance = op.costed(
        read, offloading(devices) if plans == "copied" else devices, "roofline"
    ).instance
    rules: dict[str, Values] = {}
    start = None
    for name in RULES[plans]:
        if registry.supports(name, instance):
            continue
        found = registry.run(name, Job(instance))
        rules[name] = {"fault": found.reason}
        if found.makespan is not None:
            rules[name] = {"time": float(found.makespan)}
            start = found if start is None else min(start, found, key=lambda each: each.makespan)
    ours = op.solve(instance, seconds=SECONDS, start=start, contiguous=plans == "stages")
    known = ours.makespan is not None
    return {
        "status": str(ours.status),
        "best": float(ours.makespan) if known else None,
        "bound": float(ours.lower_bound) if known else None,
        "vertices": instance.vertices,
        "rules": rules,
        "machine": machine(),
    }


# --- tables --------------------------------------------------------------------------------------


def entries(rows: list[Row]) -> list[Values]:
    """Return what every rule made of every question; ratios are rounded up."""
    found = [
        row.run | row.result | {"rule": rule, "ns": said.get("time"), "fault": said.get("fault")}
        for row in rows
        for rule, said in row.result["rules"].items()
        if "time" in said or "memory" in said["fault"]
    ]
    for each in found:
        each["ratio"] = each["ns"] and math.ceil(1e6 * each["ns"] / each["bound"]) / 1e6
    return found


def as_csv(rows: list[Row]) -> str:
    """Write all entries."""
    head = ("mode", "machines", "model", "rule", "status", "ns", "bound", "best", "ratio", "fault")
    text = io.StringIO()
    writer = csv.DictWriter(text, head, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(entries(rows))
    return text.getvalue()


def as_markdown(rows: list[Row]) -> str:
    """Write a summary, and a table of all pairs for each mode."""
    proven = sum(row.result["status"] in ("OPTIMAL", "INFEASIBLE") for row in rows)
    parts = [
        "# Rules of runtimes beside proven optima",
        (__doc__ or "").partition("\n\n")[2].strip(),
        f"{machine()}, shared with other work; {SECONDS:g} s for each of {len(rows)} questions, "
        f"of which {proven} are proven.",
        "A ratio is the time of the rule's plan over the optimum, rounded up; with `≤`, over the "
        "proven bound, where the optimum is not proven. `memory`: the plan exceeds it.",
    ]
    for mode, plans in MODES.items():
        here = [each for each in entries(rows) if each["mode"] == mode]
        rules = [rule for rule in ORDER if any(rule in RULES[each] for each in plans)]
        parts += [f"## {mode.capitalize()}", *_tables(here, rules)]
    return "\n\n".join(parts) + "\n"


def _tables(found: list[Values], rules: list[str]) -> tuple[str, str]:
    pairs: dict[tuple[str, str], list[Values]] = {}
    for each in found:
        pairs.setdefault((each["machines"], each["model"]), []).append(each)
    least = {pair: min(each["ns"] or math.inf for each in of) for pair, of in pairs.items()}
    wins = {
        pair: [each["rule"] for each in of if each["ns"] == least[pair]]
        for pair, of in pairs.items()
    }
    total, lines = [], []
    for rule in rules:
        own = [each for each in found if each["rule"] == rule and each["status"] != "INFEASIBLE"]
        ratios = [each["ratio"] for each in own if each["ns"]]
        fastest = sum(rule in names for names in wins.values())
        most = (_up(median(ratios)), _up(max(ratios)), sum(each <= 1.001 for each in ratios))
        total.append((f"`{rule}`", len(own), len(own) - len(ratios), *most, fastest))
    for pair, asked in pairs.items():
        cells = {each["rule"]: _cell(each) for each in asked}
        lines.append((*pair, *(cells.get(rule, "") for rule in rules), ", ".join(wins[pair])))
    head = ("rule", "asked", "memory", "median", "worst", "within 0.1%", "fastest")
    columns = ("machines", "model", *(f"`{rule}`" for rule in rules), "fastest")
    return markdown(head, total), markdown(columns, lines)


def _cell(each: Values) -> str:
    if each["status"] == "INFEASIBLE":
        return "no plan"
    if not each["ns"]:
        return "memory"
    return ("" if each["status"] == "OPTIMAL" else "≤ ") + _up(each["ratio"])


def _up(ratio: float) -> str:
    return f"{math.ceil(1000 * ratio - 1e-6) / 1000:.3f}"
