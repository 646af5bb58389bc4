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
    "phi-3-mini": None,
    "qwen3-8b": None,
    "gemma-2-9b": None,
    "llama-2-13b": None,
    "qwen2.5-32b": "q4_K",
    "qwen3-30b-a3b": "q8_0",
    "mixtral-8x7b": "q4_K",
    "llama-3-70b": "q4_K",
}
MIXTURES = ("qwen3-30b-a3b", "mixtral-8x7b")

_CPU = '[[device]]\nof = "ryzen-9-7950x"\nname = "CPU"\nmemory = "64 GB"\n'
MACHINES = {
    "one card": f'default_link = "pcie-4-x16"\n[[device]]\nof = "rtx-4090"\n{_CPU}',
    "two unlike cards": (
        'default_link = "pcie-4-x16"\n[[device]]\nof = "rtx-3090"\n[[device]]\nof = "rtx-3070"\n'
        f"{_CPU}"
    ),
    "four cards": (
        'default_link = "pcie-3-x16"\n[[device]]\nof = "t4"\ncount = 4\n'
        '[[device]]\nof = "epyc-7763"\nname = "CPU"\nmemory = "256 GB"\n'
    ),
    "laptop": (
        'default_link = "pcie-4-x16"\n[[device]]\nname = "integrated"\ntype = "GPU"\n'
        'peak = {float32 = "4 TFLOP/s", float16 = "8 TFLOP/s"}\nmemory_bandwidth = "100 GB/s"\n'
        'overhead = "10 us"\nmemory = "24 GB"\n'
        '[[device]]\nof = "core-i9-13900k"\nname = "CPU"\nmemory = "40 GB"\n'
    ),
    "two hosts": (
        'default_link = "ethernet-10g"\n[[device]]\nof = "apple-m2"\nmemory = "24 GB"\n'
        '[[device]]\nof = "jetson-agx-orin"\nmemory = "64 GB"\n'
    ),
}
#: Rules by the plans among which they are judged.
RULES = {
    "any": (
        "llama-fit", "llama-tensor-split", "llama-cpu-moe", "ollama", "halda", "exo-ring",
        "exo-ring-bandwidth",
    ),
    "copied": ("accelerate",),
    "stages": ("vllm",),
}  # fmt: skip
MODES = {"decode": tuple(RULES), "prefill": ("any",)}


def runs() -> Iterator[Runs]:
    """Yield every question, and what answers it."""
    for mode, rules in MODES.items():
        for plans, machines, model in product(rules, MACHINES, MODELS):
            run = {"mode": mode, "plans": plans, "machines": machines, "model": model}
            yield run | {"seconds": SECONDS}, partial(judged, **run)


def judged(mode: str, plans: str, machines: str, model: str) -> Values:
    """Solve, and cost the plan of every rule."""
    options: dict[str, Any] = {"mode": mode, "context": 4096}
    if MODELS[model]:
        options["weights"] = MODELS[model]
    if plans == "any" and model in MIXTURES:
        options["granularity"] = "attention+mlp+experts"
    read, devices = op.workload(model, **options), loads_named(MACHINES[machines])
    if plans == "stages":
        if read.graph.colocation:
            read = op.workload(model, tied="copy", **options)
        read, devices = for_stages(read, devices)
    if plans == "copied":
        if "CPU" not in devices.cluster.types:
            return {"status": "", "rules": {}}
        devices = offloading(devices)
    instance = op.costed(read, devices, "roofline").instance
    found: dict[str, op.Result] = {}
    rules: dict[str, Values] = {}
    for name in RULES[plans]:
        if fault := registry.supports(name, instance):
            rules[name] = {"fault": fault}
            continue
        found[name] = registry.run(name, Job(instance))
        time = found[name].makespan
        rules[name] = {"fault": found[name].reason} if time is None else {"time": float(time)}
    placed = [result for result in found.values() if result.makespan is not None]
    start = min(placed, key=lambda result: result.makespan or 0, default=None)
    ours = op.solve(instance, seconds=SECONDS, start=start, contiguous=plans == "stages")
    return {
        "status": str(ours.status),
        "best": None if ours.makespan is None else float(ours.makespan),
        "bound": None if ours.makespan is None else float(ours.lower_bound),
        "vertices": instance.vertices,
        "rules": rules,
        "machine": machine(),
    }


# --- tables --------------------------------------------------------------------------------------


def entries(rows: list[Row]) -> Iterator[Values]:
    """Yield a row for every rule of every question that it answers or refuses for memory."""
    for row in rows:
        for rule, said in row.result["rules"].items():
            time, best = said.get("time"), row.result["best"]
            if time is None and "memory" not in said["fault"]:
                continue  # it is for other models or devices
            yield {
                **{key: row.run[key] for key in ("mode", "machines", "model")},
                "weights": MODELS[row.run["model"]] or "as released",
                "rule": rule,
                "status": row.result["status"],
                "ns": time,
                "best_ns": best,
                "bound_ns": row.result["bound"],
                "over_best": time and math.ceil(1e6 * time / best) / 1e6,
                "at_most_over_optimum": time and math.ceil(1e6 * time / row.result["bound"]) / 1e6,
                "fault": said.get("fault", ""),
            }


def as_csv(rows: list[Row]) -> str:
    """Write all entries."""
    found, text = list(entries(rows)), io.StringIO()
    writer = csv.DictWriter(text, found[0], lineterminator="\n")
    writer.writeheader()
    writer.writerows(found)
    return text.getvalue()


def as_markdown(rows: list[Row]) -> str:
    """Write a summary, and a table of all pairs for each mode."""
    found = list(entries(rows))
    solved = [row for row in rows if row.result["status"]]
    proven = sum(row.result["status"] in ("OPTIMAL", "INFEASIBLE") for row in solved)
    parts = [
        "# Rules of runtimes beside proven optima",
        (__doc__ or "").partition("\n\n")[2].strip(),
        f"{machine()}, shared with other work; {SECONDS:g} s for each of {len(solved)} questions, "
        f"of which {proven} are proven.",
        "A ratio is the time of the rule's plan over the optimum, rounded up; with `≤`, over the "
        "proven bound, where the optimum is not proven. `memory`: the plan exceeds it.",
    ]
    for mode in MODES:
        here = [each for each in found if each["mode"] == mode]
        if here:
            parts += [f"## {mode.capitalize()}", _summary(here), _pairs(here)]
    return "\n\n".join(parts) + "\n"


def _summary(found: list[Values]) -> str:
    """Say how far each rule is from the optimum, and how often it is the fastest."""
    wins = [rule for pair in _by_pair(found) for rule in _fastest(pair)]
    lines = []
    for rule in _rules(found):
        own = [each for each in found if each["rule"] == rule and each["status"] != "INFEASIBLE"]
        ratios = [each["at_most_over_optimum"] for each in own if each["ns"]]
        lines.append((
            f"`{rule}`", len(own), len(own) - len(ratios),
            *(map(_up, (median(ratios), max(ratios))) if ratios else ("", "")),
            sum(ratio <= 1.001 for ratio in ratios), wins.count(rule),
        ))  # fmt: skip
    head = ("rule", "asked", "memory", "median", "worst", "within 0.1%", "fastest")
    return markdown(head, lines)


def _pairs(found: list[Values]) -> str:
    rules, lines = _rules(found), []
    for pair in _by_pair(found):
        cells = {each["rule"]: _cell(each) for each in pair}
        first = pair[0]
        lines.append((
            first["machines"], first["model"], *(cells.get(rule, "") for rule in rules),
            ", ".join(_fastest(pair)),
        ))  # fmt: skip
    return markdown(("machines", "model", *(f"`{rule}`" for rule in rules), "fastest"), lines)


def _rules(found: list[Values]) -> list[str]:
    return list(dict.fromkeys(each["rule"] for each in sorted(found, key=_place)))


def _place(each: Values) -> int:
    return [rule for rules in RULES.values() for rule in rules].index(each["rule"])


def _by_pair(found: list[Values]) -> list[list[Values]]:
    pairs: dict[tuple[str, str], list[Values]] = {}
    for each in found:
        pairs.setdefault((each["machines"], each["model"]), []).append(each)
    return list(pairs.values())


def _fastest(pair: list[Values]) -> list[str]:
    least = min((each["ns"] for each in pair if each["ns"]), default=None)
    return [each["rule"] for each in pair if each["ns"] and each["ns"] == least]


def _cell(each: Values) -> str:
    if each["status"] == "INFEASIBLE":
        return "no plan"
    if not each["ns"]:
        return "memory"
    sign = "" if each["status"] == "OPTIMAL" else "≤ "
    return f"{sign}{_up(each['at_most_over_optimum'])}"


def _up(ratio: float) -> str:
    return f"{math.ceil(1000 * ratio - 1e-6) / 1000:.3f}"
