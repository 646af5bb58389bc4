"""Tokens per second that llama.cpp reaches on a card and its processor, by plans and by its rule.

    python bench/runtimes/card.py write MODEL FILE [--hollow]
    python bench/runtimes/card.py run BIN FOLDER [PLANS] -o MEASURED
    python bench/runtimes/card.py plan FOLDER MEASURED -o PLANS
    python bench/runtimes/card.py table MEASURED PLANS

``write`` draws a model of a known shape with random weights in q4_K, ``FOLDER/MODEL.gguf``; a
hollow one has the same header and takes no room on disk. ``run`` needs nothing but Python and
llama.cpp's programs in ``BIN``. Without plans, it measures each model whole on the card and whole
on the processor. ``plan`` takes the bandwidth of both from the dense model of these runs, which
alone is fitted; it says how fast the other should be, and proves the best plan of each for less and
less memory of the card. ``run`` with plans then measures, under each limit, the plan and ``--fit``
(told to leave the rest of the card free), and notes how much of the card each takes. A run is 64
tokens after an empty context; each is repeated. What has a row is not measured again.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import threading
from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import Any, NamedTuple


class Shape(NamedTuple):
    """Sizes of a model; without experts, ``ffn`` is the width of its only one."""

    architecture: str
    blocks: int
    hidden: int
    heads: int
    kv_heads: int
    width: int
    ffn: int
    vocab: int
    experts: int = 0
    used: int = 0

    def tensors(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Yield names and shapes of all tensors, rows last."""
        query, key = self.heads * self.width, self.kv_heads * self.width
        each = (self.experts,) if self.experts else ()
        suffix = "_exps" if self.experts else ""
        yield "token_embd", (self.vocab, self.hidden)
        for block in range(self.blocks):
            parts: dict[str, tuple[int, ...]] = {
                "attn_norm": (self.hidden,), "attn_q": (query, self.hidden),
                "attn_k": (key, self.hidden), "attn_v": (key, self.hidden),
                "attn_output": (self.hidden, query), "ffn_norm": (self.hidden,),
            }  # fmt: skip
            if self.architecture.startswith("qwen3"):
                parts |= {"attn_q_norm": (self.width,), "attn_k_norm": (self.width,)}
            if self.experts:
                parts["ffn_gate_inp"] = (self.experts, self.hidden)
            for name in ("gate", "up"):
                parts[f"ffn_{name}{suffix}"] = (*each, self.ffn, self.hidden)
            parts[f"ffn_down{suffix}"] = (*each, self.hidden, self.ffn)
            for name, shape in parts.items():
                yield f"blk.{block}.{name}", shape
        yield "output_norm", (self.hidden,)
        yield "output", (self.vocab, self.hidden)


#: The dense one comes first: the figures of the devices are fitted to it.
MODELS = {
    "llama-2-13b": Shape("llama", 40, 5120, 40, 40, 128, 13824, 32_000),
    "qwen3-30b-a3b": Shape("qwen3moe", 48, 2048, 32, 4, 128, 768, 151_936, 128, 8),
}
#: Memory of the card, in parts of the model's weights.
PARTS = (0.25, 0.5, 0.75)
CONTEXT = 512
TOKENS = 64
REPEATED = 5
SECONDS = 60.0
_MARGIN = 1024  # what --fit leaves by default, and optpart keeps free, in MiB
_BLOCK = 144  # bytes of 256 weights in q4_K
_ATTAINED = 0.8  # of the bandwidth, as optpart assumes of products with a matrix


def write(path: Path, shape: Shape, hollow: bool) -> None:
    """Write a model, of weights that are drawn once and repeated."""
    import gguf
    import numpy as np

    out: Any = gguf.GGUFWriter(path, shape.architecture)
    out.add_name(path.stem)
    out.add_block_count(shape.blocks)
    out.add_context_length(4096)
    out.add_embedding_length(shape.hidden)
    out.add_head_count(shape.heads)
    out.add_head_count_kv(shape.kv_heads)
    out.add_key_length(shape.width)
    out.add_value_length(shape.width)
    out.add_rope_dimension_count(shape.width)
    out.add_layer_norm_rms_eps(1e-5)
    out.add_vocab_size(shape.vocab)
    out.add_tokenizer_model("no_vocab")
    out.add_feed_forward_length(shape.ffn)
    if shape.experts:
        out.add_expert_count(shape.experts)
        out.add_expert_used_count(shape.used)
        out.add_expert_feed_forward_length(shape.ffn)
    kinds = gguf.GGMLQuantizationType
    sizes = []
    for name, dimensions in shape.tensors():
        plain = "norm" in name or "gate_inp" in name
        size = 4 * prod(dimensions) if plain else prod(dimensions) // 256 * _BLOCK
        kept = dimensions if plain else (*dimensions[:-1], dimensions[-1] // 256 * _BLOCK)
        out.add_tensor_info(
            f"{name}.weight", kept, np.dtype(np.float32 if plain else np.uint8), size,
            raw_dtype=kinds.F32 if plain else kinds.Q4_K,
        )  # fmt: skip
        sizes.append((size, plain, "norm" in name))
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_ti_data_to_file()
    out.close()
    rng = np.random.default_rng(0)
    blocks = rng.integers(0, 256, (1 << 16, _BLOCK), np.uint8)
    blocks[:, :4] = np.array([1e-3, 8e-3], np.float16).view(np.uint8)  # scales of what follows
    drawn = blocks.tobytes()
    with path.open("r+b") as file:
        file.seek(0, os.SEEK_END)
        file.write(bytes(-file.tell() % 32))
        for size, plain, norm in sizes:
            room = -(-size // 32) * 32
            if hollow:
                file.seek(room, os.SEEK_CUR)
                continue
            if plain:
                value = np.ones(size // 4) if norm else rng.normal(0, 0.02, size // 4)
                file.write(value.astype(np.float32).tobytes())
            else:
                whole, rest = divmod(size, len(drawn))
                for _ in range(whole):
                    file.write(drawn)
                file.write(drawn[:rest])
            file.write(bytes(room - size))
        file.truncate(file.tell())


# --- what llama.cpp does -------------------------------------------------------------------------


class Watch(threading.Thread):
    """The most of the card's memory that is taken while something runs, in MiB."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.most = 0
        self._ended = threading.Event()

    def run(self) -> None:
        """Ask until the end."""
        while not self._ended.wait(0.2):
            self.most = max(self.most, asked("memory.used"))

    def end(self) -> int:
        """Stop asking, and return the most."""
        self._ended.set()
        self.join()
        return self.most


def asked(what: str) -> int:
    """Ask the driver of the first card for a number."""
    command = ["nvidia-smi", "-i", "0", f"--query-gpu={what}", "--format=csv,noheader,nounits"]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def measured(bench: Path, model: Path, options: list[str]) -> dict[str, Any]:
    """Let llama.cpp write some tokens, and return how fast it was."""
    command = [
        str(bench), "-m", str(model), "-p", "0", "-n", str(TOKENS), "-r", str(REPEATED),
        "-o", "json", "-t", str(THREADS), *options,
    ]  # fmt: skip
    watch = Watch()
    watch.start()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    most = watch.end()
    if done.returncode:
        return {"fault": (done.stdout + done.stderr)[-2000:]}
    [row] = json.loads(done.stdout[done.stdout.index("[") :])
    speeds = row["samples_ts"]
    return {
        "tokens_per_second": statistics.median(speeds),
        "samples": speeds,
        "card_mib": most,
        "on": {"card": row["gpu_info"], "cpu": row["cpu_info"], "threads": THREADS,
               "cores": os.cpu_count(), "llama.cpp": row["build_number"],
               "system": platform.platform()},
    }  # fmt: skip


THREADS = os.cpu_count() or 1


def run(programs: Path, folder: Path, plans: Path | None, output: Path) -> None:
    """Measure what has no row yet."""
    bench = programs / "llama-bench"
    listed = subprocess.run(
        [bench, "--list-devices"], capture_output=True, text=True, check=False
    ).stdout
    found = re.search(r"\((\d+) MiB, (\d+) MiB free\)", listed)
    if found is None:
        sys.exit(f"{bench} sees no card: {listed}")
    free = int(found[2])
    asks: list[dict[str, Any]] = []
    if plans is None:
        for model in MODELS:
            asks.append({"model": model, "by": "card", "options": ["-ngl", "99"]})
            asks.append({"model": model, "by": "processor", "options": ["-ngl", "0", "-nopo", "1"]})
    else:
        for plan in json.loads(plans.read_text(encoding="utf-8")):
            if plan["by"] != "plan":
                continue
            same = {"model": plan["model"], "limit_mib": plan["limit_mib"]}
            margin = str(free - plan["limit_mib"] + _MARGIN)
            fit = ["-fitt", margin, "-fitc", str(CONTEXT)]
            asks.append(same | {"by": "plan", "options": plan["options"]})
            asks.append(same | {"by": "fit", "options": fit})
    known = [json.loads(line) for line in _lines(output)]
    for ask in asks:
        if any(all(row.get(k) == v for k, v in ask.items() if k != "options") for row in known):
            continue
        row = ask | measured(bench, folder / f"{ask['model']}.gguf", ask["options"])
        with output.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        print(json.dumps(row), flush=True)


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


# --- what optpart says ---------------------------------------------------------------------------

_CLUSTER = """
[[device]]
name = "CUDA0"
type = "GPU"
memory = "{limit} MiB"
memory_bandwidth = "{card} GB/s"
overhead = 0
peak = {{float16 = "989 TFLOP/s", float32 = "67 TFLOP/s"}}
[[device]]
name = "CPU"
type = "CPU"
memory = "100 GB"
memory_bandwidth = "{processor} GB/s"
overhead = 0
peak = {{float16 = "2 TFLOP/s", float32 = "2 TFLOP/s"}}
[[link]]
from = "CUDA0"
to = "CPU"
bandwidth = "25 GB/s"
latency = "10 us"
"""


def plan(folder: Path, rows: list[dict[str, Any]], output: Path) -> None:
    """Prove the best plans for a card with less and less memory."""
    import optpart as op
    from optpart.interop.formats.cluster_toml import loads_named

    dense = next(iter(MODELS))
    weights = _bytes(MODELS[dense]) / _ATTAINED
    speeds = {
        row["by"]: weights * row["tokens_per_second"] / 1e9
        for row in rows
        if row["model"] == dense and "limit_mib" not in row
    }
    rates = {by: f"{speed:.1f}" for by, speed in speeds.items()}
    found = []
    for model, shape in MODELS.items():
        path = folder / f"{model}.gguf"
        for by, device in (("card", "CUDA0"), ("processor", "CPU")):
            cluster = loads_named(_CLUSTER.format(limit=100_000, **rates))
            whole = op.costed(op.workload(path, context=CONTEXT), cluster, "roofline").instance
            alone = op.retime(
                whole,
                [whole.cluster.names.index(device)] * whole.vertices,
                whole.graph.topological_order.tolist(),
            )
            speed = 1e9 / float(alone.makespan(whole))
            found.append({"model": model, "by": by, "said": speed})
        for part in PARTS:
            limit = int(part * _bytes(shape)) >> 20
            placed = op.place(
                path, cluster=loads_named(_CLUSTER.format(limit=limit, **rates)),
                runtime="llama.cpp", seconds=SECONDS, context=CONTEXT,
            )  # fmt: skip
            assert isinstance(placed, op.Placed)
            layers = re.search(r"--n-gpu-layers (\d+)", placed.command)
            moved = re.search(r"--override-tensor (?:'([^']*)'|(\S+))", placed.command)
            assert layers is not None
            options = ["-ngl", layers[1]]
            if moved is not None:
                options += ["-ot", (moved[1] or moved[2]).replace(",", ";")]
            told = {"options": options, "status": str(placed.result.status)}
            for by, result, more in (("plan", placed.result, told), ("fit", placed.rule, {})):
                time = None if result is None else result.makespan
                said = None if time is None else 1e9 / float(time)
                found.append({"model": model, "by": by, "limit_mib": limit, "said": said} | more)
    output.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def _bytes(shape: Shape) -> int:
    return sum(
        4 * prod(dimensions) if "norm" in name or "gate_inp" in name
        else prod(dimensions) // 256 * _BLOCK
        for name, dimensions in shape.tensors()
    )  # fmt: skip


def table(rows: list[dict[str, Any]], plans: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the lines of a Markdown table of what was measured, beside what the plans say."""
    on = next(row["on"] for row in rows if "on" in row)
    yield (
        f"{on['card']}; {on['cpu']}, {on['cores']} cores; llama.cpp without flash attention, "
        f"{on['threads']} threads; q4_K, {TOKENS} tokens, median of {REPEATED}"
    )
    yield ""
    yield "| model | card's memory | by | tokens/s | in the cost model | taken of the card |"
    yield "|---|---|---|---|---|---|"
    for row in rows:
        key = [row.get(name) for name in ("model", "by", "limit_mib")]
        said = next(
            p["said"] for p in plans if [p.get(n) for n in ("model", "by", "limit_mib")] == key
        )
        limit = f"{row['limit_mib']} MiB" if "limit_mib" in row else "all"
        got = row.get("tokens_per_second")
        yield (
            f"| {row['model']} | {limit} | {row['by']} | {'-' if got is None else f'{got:.1f}'} | "
            f"{'-' if said is None else f'{said:.1f}'} | {row.get('card_mib', '-')} MiB |"
        )


def main() -> None:
    """Take one of the steps."""
    parser = argparse.ArgumentParser("card", description=__doc__.splitlines()[0])
    steps = parser.add_subparsers(dest="step", required=True)
    step = steps.add_parser("write")
    step.add_argument("model", choices=MODELS)
    step.add_argument("file", type=Path)
    step.add_argument("--hollow", action="store_true")
    step = steps.add_parser("run")
    step.add_argument("programs", type=Path)
    step.add_argument("folder", type=Path)
    step.add_argument("plans", type=Path, nargs="?")
    step.add_argument("-o", "--output", type=Path, required=True)
    step = steps.add_parser("plan")
    step.add_argument("folder", type=Path)
    step.add_argument("measured", type=Path)
    step.add_argument("-o", "--output", type=Path, required=True)
    step = steps.add_parser("table")
    step.add_argument("measured", type=Path)
    step.add_argument("plans", type=Path)
    given = parser.parse_args()
    if given.step == "write":
        write(given.file, MODELS[given.model], given.hollow)
    elif given.step == "run":
        run(given.programs, given.folder, given.plans, given.output)
    else:
        rows = [json.loads(line) for line in _lines(given.measured)]
        if given.step == "plan":
            plan(given.folder, rows, given.output)
        else:
            plans = json.loads(given.plans.read_text(encoding="utf-8"))
            print("\n".join(table(rows, plans)))


if __name__ == "__main__":
    main()
