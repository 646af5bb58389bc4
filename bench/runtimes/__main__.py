"""Plans for accelerate beside those of its own rule, under the same limits of memory.

    python bench/runtimes [--here | --rules] [-o bench/results/runtimes]

With ``--here``, plans are run instead: :mod:`bench.runtimes.here`. With ``--rules``, those of many
runtimes' own rules are compared: :mod:`bench.runtimes.rules`.

Models of many architectures have the default sizes of their configurations in transformers; their
weights are drawn nowhere. A card holds a part of each, the processor half of the rest, and a disk
all. Both ``infer_auto_device_map`` and optpart get the memory of the devices. accelerate counts
weights only, and keeps room for its largest block where it offloads, so it is asked a second time
with the rest of what optpart keeps free already taken off: keys, values, the runtime.

Every map is costed in the same model: what lies on the processor or on disk is copied to the card
for each token (``computes_on``). It needs transformers, accelerate and PyTorch (``make
test-runtimes`` installs them), and takes half an hour.
"""

from __future__ import annotations

import argparse
import logging
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import optpart as op
from bench.output import columns, machine
from bench.runtimes import here, rules
from bench.store import RESULTS, Row, Store, Values
from optpart.base.files import ANY, write_text
from optpart.interop.costs.costed import Costed
from optpart.interop.formats import hugging_face
from optpart.interop.formats.cluster_toml import loads_named
from optpart.problem.workload import Workload

#: Types of models, and the class that makes each.
MODELS = {
    **dict.fromkeys(
        (
            "llama", "mistral", "mixtral", "qwen2", "qwen3", "gemma2", "phi", "phi3", "gpt2",
            "gpt_neox", "opt", "bloom", "falcon", "gpt_oss",
        ),
        "AutoModelForCausalLM",
    ),
    "bert": "AutoModelForMaskedLM",
    "t5": "AutoModelForSeq2SeqLM",
    "vit": "AutoModelForImageClassification",
}  # fmt: skip
#: Parts of a model's weights that the card has memory for, beside what it keeps free.
PARTS = (0.35, 0.7)
SECONDS = 30.0
PACKAGES = ("torch", "transformers", "accelerate")

CLUSTER = """
default_link = "pcie-4-x16"
[[device]]
of = "rtx-4090"
name = "card"
memory = {card}
[[device]]
name = "host"
type = "CPU"
memory = {host}
computes_on = "card"
[[device]]
name = "disk"
computes_on = "card"
[[link]]
from = "disk"
to = "card"
bandwidth = "3 GB/s"
latency = "100 us"
"""
CALLED = {0: "card", "cpu": "host", "disk": "disk"}


def measure(store: Store, name: str, part: float) -> None:
    """Plan one model under one limit, by both, as far as there is no row."""
    run: Values = {"model": name, "part": part, "seconds": SECONDS}
    if store.known(run):
        return
    with tempfile.TemporaryDirectory() as scratch:
        row = store.run(run, lambda: planned(name, part, Path(scratch) / name))
    print(name, part, row.result, flush=True)


def planned(name: str, part: float, folder: Path) -> Values:
    """Plan one model by both."""
    import torch
    import transformers
    from accelerate import infer_auto_device_map

    config = transformers.CONFIG_MAPPING[name](dtype="bfloat16")
    with torch.device("meta"):
        model = getattr(transformers, MODELS[name]).from_config(config)
    config.architectures = [type(model).__name__]
    config.save_pretrained(folder)
    model.tie_weights()
    read = hugging_face.read(folder)
    weights = sum(int(size) for size in read.graph.memory.fractions()) - sum(read.cached)
    told = read.reserve + sum(read.cached)
    free = told + largest(read)
    on_card = int(part * weights)
    limits = {"card": on_card + free, "host": (weights - on_card) // 2 + read.reserve}
    made = costed(read, limits)
    ours = op.solve(made.instance, seconds=SECONDS)
    found: Values = {
        "weights": weights,
        "kept": free,
        "limits": limits,
        "vertices": made.instance.vertices,
        "ours": None if ours.makespan is None else float(ours.makespan),
        "bound": float(ours.lower_bound),
        "status": str(ours.status),
        "machine": machine(*PACKAGES),
    }
    modules = hugging_face.modules(folder).vertices
    for column, taken in (("theirs", 0), ("theirs, told", told)):
        host = limits["host"] - (read.reserve if taken else 0)
        memory = {0: limits["card"] - taken, "cpu": host, "disk": 2**62}
        given = infer_auto_device_map(
            model, max_memory=memory, no_split_module_classes=model._no_split_modules
        )
        found[column] = judged(made, modules, given)
    return found


def largest(read: Workload) -> int:
    """Return the bytes of the largest weights of a vertex."""
    held = [int(size) for size in read.graph.memory.fractions()]
    cached = read.cached or (0,) * len(held)
    return max(a - b for a, b in zip(held, cached, strict=True))


def costed(read: Workload, limits: dict[str, int]) -> Costed:
    return op.costed(read, loads_named(CLUSTER.format(**limits)), "roofline")


def judged(made: Costed, modules: Any, given: dict[str, Any]) -> Values:
    """Cost a device map, and say why it does not fit if it does not."""
    placed: dict[str, str] = {}
    for module, vertex in modules.items():
        device = next(
            (
                device
                for prefix, device in given.items()
                if prefix == "" or module == prefix or module.startswith(f"{prefix}.")
            ),
            None,
        )
        if device is None:  # the map splits what is one vertex for optpart
            device = next(d for prefix, d in given.items() if prefix.startswith(f"{module}."))
        placed.setdefault(vertex, CALLED[device])
    instance = made.instance
    names, devices = instance.graph.names, instance.cluster.names
    schedule = op.retime(
        instance,
        [devices.index(placed[name]) for name in names],
        instance.graph.topological_order.tolist(),
    )
    result = op.conclude(instance, "infer_auto_device_map", schedule)
    free = replace(instance, model=replace(instance.model, memory="none"))
    time = op.conclude(free, "infer_auto_device_map", schedule).makespan
    return {"time": float(time or 0), "fault": "" if result.schedule is not None else result.reason}


# --- table ---------------------------------------------------------------------------------------


def table(rows: list[Row]) -> Iterator[str]:
    """Write what was found."""
    yield "PLANS FOR ACCELERATE"
    yield f"{rows[0].result['machine']}; {SECONDS:g} s for each plan of optpart"
    yield __doc__.split("\n\n")[3].replace("\n", " ")
    yield "time: milliseconds per token or forward pass, in the model; told: with less memory."
    yield ""
    head = (
        "model",
        "weights",
        "card",
        "optpart",
        "bound",
        "accelerate",
        "slower",
        "told",
        "slower",
    )
    lines = []
    for row in rows:
        r = row.result
        told, asked = r["theirs, told"], r["theirs"]
        lines.append(
            (
                row.run["model"],
                f"{r['weights'] / 1e9:.2f} GB",
                f"{row.run['part']:.0%}",
                "-" if r["ours"] is None else f"{r['ours'] / 1e6:.2f}",
                f"{r['bound'] / 1e6:.2f}" + ("" if r["status"] == "OPTIMAL" else "?"),
                *written(asked, r["ours"]),
                *written(told, r["ours"]),
            )
        )
    yield columns(head, lines)
    yield ""
    for column, name in (("theirs", "accelerate"), ("theirs, told", "told")):
        found = [row.result for row in rows if row.result["ours"] is not None]
        bad = sum(bool(r[column]["fault"]) for r in found)
        ratios = [r[column]["time"] / r["ours"] for r in found if not r[column]["fault"]]
        said = f"{name}: {bad} of {len(found)} maps exceed the memory"
        if ratios:
            said += f"; the others take {median(ratios):.2f} times as long in the median, "
            said += f"at most {max(ratios):.2f}"
        yield said


def written(found: Values, ours: float | None) -> tuple[str, str]:
    if found["fault"]:
        return "no memory", "-"
    return f"{found['time'] / 1e6:.2f}", "-" if ours is None else f"{found['time'] / ours:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser("runtimes", description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", type=Path, default=RESULTS / "runtimes")
    parser.add_argument("--only", choices=MODELS, help="no more than this model")
    parser.add_argument("--here", action="store_true", help="run plans on this machine")
    parser.add_argument("--rules", action="store_true", help="compare rules of runtimes")
    given = parser.parse_args()
    logging.getLogger("accelerate").setLevel(logging.ERROR)
    if given.rules:
        store = Store(given.output / "rules.jsonl")
        for run, call in rules.runs():
            print(*run.values(), store.run(run, call).result["status"], flush=True)
        for suffix, write in ((".csv", rules.as_csv), (".md", rules.as_markdown)):
            write_text(given.output / f"rules{suffix}", write(store.rows()), ANY)
        return
    store = Store(given.output / ("here.jsonl" if given.here else "runs.jsonl"))
    if given.here:
        for run, call in here.runs():
            print(*run.values(), store.run(run, call).result, flush=True)
    else:
        for name in MODELS if given.only is None else (given.only,):
            for part in PARTS:
                measure(store, name, part)
    text = "\n".join((here.table if given.here else table)(store.rows()))
    write_text(given.output / ("here.txt" if given.here else "table.txt"), text + "\n", ANY)
    print(text)


if __name__ == "__main__":
    main()
