"""Memory and time of plans that runtimes run on this machine, beside what the plans say.

Every plan is proven for two devices of this machine that are alike, neither of which holds the
model, or for the processor and a disk (accelerate), with times that were measured before. What
runs is measured in processes of its own: one that loads the model by the ``device_map``; one per
stage of the pipeline, which talk by gloo; one per part of the ONNX model.

- weights: bytes of parameters that are loaded on the device, and constants in the part;
- memory: the most that the process had resident while it ran (``VmHWM``), less what is left when
  the model is dropped: the program itself. On a disk, there is none;
- loading: the same while it loaded. A stage is cut out of a whole model that was drawn, so that
  there is none of it;
- time: median of some runs, with one thread per process.

What is off: of a mixture, transformers joins the experts of a layer into one tensor, a copy beside
the pages of the file, which stay mapped and count, though the system may drop them. oneDNN keeps
copies of the weights of convolutions in layouts of its own (without it, ResNet-50 takes 57.5 and
46.0 MB); a few MB more are buffers of gloo and work space of products, in small stages a larger
part. ONNX Runtime maps weights, so that rows of an embedding that nobody reads take no memory; it
holds more than tensors where the matrix of the head is used. Nothing of this is in a plan. Times
are of a machine that was busy: what was measured before for the plan and what was measured of the
run had unlike shares of it.
"""

from __future__ import annotations

import ctypes
import gc
import json
import re
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from fractions import Fraction
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import optpart as op
from bench.output import columns, machine
from bench.store import ROOT, Row, Values
from optpart.interop.formats.cluster_toml import loads_named
from optpart.problem.workload import Workload
from optpart.solution.metrics import busy, peak_memory

sys.path.insert(0, str(ROOT / "tests" / "runtimes"))

from architectures import ARCHITECTURES, Architecture

RUNS = 7
SECONDS = 20.0

#: Sizes at which weights outweigh what varies in a process.
_SIZES = {
    "hidden_size": 768, "intermediate_size": 2304, "num_hidden_layers": 8,
    "num_attention_heads": 12, "num_key_value_heads": 4, "vocab_size": 8000,
    "max_position_embeddings": 64, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0,
}  # fmt: skip
_GPT2 = {
    "vocab_size": 8000, "n_embd": 768, "n_layer": 8, "n_head": 12, "n_positions": 64,
    "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
TRANSFORMERS = {"llama": _SIZES, "mixtral": _SIZES, "gpt2": _GPT2, "bert": _SIZES, "phi3": _SIZES}
MODULES: dict[str, Callable[[], Any]] = {
    "resnet-50": lambda: _small_models().resnet_50(),
    "vit": lambda: _small_models().vit(768, 8),
    "gpt": lambda: _small_models().GPT(768, 8, 8000),
}


def _small_models() -> Any:
    import small_models

    return small_models


def runs() -> Iterator[tuple[Values, Callable[[], Values]]]:
    """Yield all runs, and what makes them."""
    for name in TRANSFORMERS:
        yield {"here": "accelerate", "model": name}, lambda name=name: of_accelerate(name) | on()
    for name in MODULES:
        yield {"here": "torch", "model": name}, lambda name=name: of_torch(name) | on()
    for name in MODULES:
        yield {"here": "onnxruntime", "model": name}, lambda name=name: of_onnx(name) | on()


def on() -> Values:
    return {"machine": machine("torch", "transformers", "accelerate", "onnxruntime")}


# --- what a process holds ------------------------------------------------------------------------


def resident(key: str = "VmRSS") -> int:
    """Return the resident bytes of this process, or with ``VmHWM`` the most since a reset."""
    found = re.search(rf"{key}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return 1024 * int(found[1])


def trim() -> int:
    """Give back what is free, count the most resident bytes from now, and return those of now."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return resident()


def apart(function: Callable[..., Values], *arguments: Any) -> Values:
    """Call a function in a new process."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


class Sums:
    """Sums of times by device, run after run."""

    def __init__(self) -> None:
        self.runs: list[dict[str, float]] = []
        self._began = 0.0

    def begin(self, *_: Any) -> None:
        """Start the clock."""
        self._began = time.perf_counter()

    def end(self, device: str) -> None:
        """Add the time since then to a device."""
        taken = time.perf_counter() - self._began
        self.runs[-1][device] = self.runs[-1].get(device, 0.0) + taken

    def medians(self) -> dict[str, float]:
        """Return the median of each device, without the first run."""
        return {
            device: statistics.median(run[device] for run in self.runs[1:])
            for device in self.runs[-1]
        }


# --- what a plan says ----------------------------------------------------------------------------


def said(result: op.Result, read: Workload) -> dict[str, Values]:
    """Return bytes and seconds of each device that a plan uses."""
    instance, schedule = result.instance, result.schedule
    assert schedule is not None
    peaks = peak_memory(instance, schedule, "refcount", instance.model.release)
    times, placement = busy(instance, schedule), schedule.placement.tolist()
    held = [int(size) for size in read.graph.memory.fractions()]
    cached = read.cached or (0,) * len(held)
    weights = [size - cache for size, cache in zip(held, cached, strict=True)]
    return {
        name: {
            "weights": sum(weights[v] for v, e in enumerate(placement) if e == d),
            "memory": float(peaks[d]),
            "time": float(times[d]) / 1e9,
        }
        for d, name in enumerate(instance.cluster.names)
        if d in placement
    }


def half(read: Workload) -> int:
    """Return a limit of memory that no model fits, and two halves of it do."""
    held = [int(size) for size in read.graph.memory.fractions()]
    tensors = [int(size) for size in read.graph.tensor_size.fractions()]
    return max(int(0.65 * sum(held)), max(held)) + 4 * max(tensors)


def proven(instance: op.Instance, **options: Any) -> op.Result:
    result = op.solve(instance, seconds=SECONDS, **options)
    if result.schedule is None:
        raise RuntimeError(f"no plan: {result.reason}")
    return result


# --- accelerate ----------------------------------------------------------------------------------

_DISK = """
[[device]]
name = "disk"
computes_on = "cpu"
[[link]]
from = "disk"
to = "cpu"
bandwidth = "{rate} B/s"
latency = "10 us"
"""


def of_accelerate(name: str) -> Values:
    architecture = replace(ARCHITECTURES[name], sizes=TRANSFORMERS[name])
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / name
        model = architecture.model()
        model.config.save_pretrained(folder)
        model.save_pretrained(folder)
        class_ = type(model).__name__
        del model
        read = op.workload(folder, reserve=0, mode="prefill", context=12, batch=1)
        rates = apart(measured_rates, folder)
        largest = max(int(size) for size in read.graph.memory.fractions())
        devices = re.sub('memory = ".*"', f"memory = {half(read) + largest}", rates["cluster"])
        made = op.costed(read, loads_named(devices + _DISK.format(**rates)), "roofline")
        result = proven(made.instance)
        found = said(result, read)
        kept = sum(map(int, read.cached or ())) + largest * ("disk" in found)
        found["cpu"]["memory"] += kept
        names = {"cpu": "cpu", "disk": "disk"}
        device_map = json.loads(op.export(result, "device-map", names=names, model=folder).text)
        measured = apart(run_accelerate, architecture, folder, class_, device_map)
    return {"said": found, "found": measured}


def measured_rates(folder: Path) -> Values:
    """Measure the processor, and how fast weights are read."""
    import torch
    from safetensors import safe_open

    from optpart.interop.costs.detection import detect

    torch.set_num_threads(1)
    found, rates = detect(5).text, []
    for _ in range(4):
        begin, read = time.perf_counter(), 0
        with safe_open(folder / "model.safetensors", "pt") as file:
            for key in file.keys():  # noqa: SIM118 - it is no mapping
                each = file.get_tensor(key).clone()
                read += each.numel() * each.element_size()
        rates.append(read / (time.perf_counter() - begin))
    return {"cluster": found, "rate": round(statistics.median(rates[1:]))}


def run_accelerate(
    architecture: Architecture, folder: Path, class_: str, device_map: dict[str, Any]
) -> dict[str, Values]:
    import torch
    import transformers

    torch.set_num_threads(1)
    inputs = architecture.inputs()
    before = trim()
    model = getattr(transformers, class_).from_pretrained(
        folder, device_map=device_map, offload_folder=folder / "off"
    )
    weights = {"cpu": 0, "disk": 0}
    for each in model.parameters():
        weights["disk" if each.is_meta else "cpu"] += each.numel() * each.element_size()
    loading = resident("VmHWM") - before
    sums = Sums()
    for module, device in device_map.items():
        part = model.get_submodule(module)
        part.register_forward_pre_hook(sums.begin)
        part.register_forward_hook(lambda *_, device=device: sums.end(device))
    trim()
    with torch.no_grad():
        for _ in range(1 + RUNS):
            sums.runs.append({})
            model(**inputs)
    running = resident("VmHWM")
    del model, part, each
    times = sums.medians()
    found = {"cpu": {"memory": running - trim(), "loading": loading}, "disk": {}}
    return {
        device: {**found[device], "weights": weights[device], "time": times[device]}
        for device in dict.fromkeys(device_map.values())
    }


# --- PyTorch -------------------------------------------------------------------------------------


def given(name: str, batch: int) -> tuple[Any, ...]:
    return tuple(_small_models().inputs_of(name, batch))


def of_torch(name: str) -> Values:
    with tempfile.TemporaryDirectory() as scratch:
        return apart(run_torch, name, Path(scratch))


def run_torch(name: str, folder: Path) -> Values:
    import torch

    torch.set_num_threads(1)
    module, inputs = MODULES[name]().eval(), given(name, 2)
    held = sum(each.numel() * each.element_size() for each in module.parameters())
    limit = int(0.75 * held) + 2**23
    cluster = op.Cluster.of([op.Device(f"cpu{i}", memory=limit) for i in (0, 1)], bandwidth=1)
    plan = op.place(module, inputs, cluster, measure=True, seconds=SECONDS)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    torch.multiprocessing.spawn(run_stage, (name, plan.stages, inputs, port, folder), nprocs=2)
    found = {
        device: json.loads((folder / f"{rank}.json").read_text(encoding="utf-8"))
        for rank, (device, _) in enumerate(plan.stages)
    }
    return {"said": said(plan.result, Workload(plan.result.instance.graph)), "found": found}


def run_stage(
    rank: int, name: str, stages: Any, inputs: tuple[Any, ...], port: int, folder: Path
) -> None:
    import torch
    import torch.distributed as dist
    from torch.distributed.pipelining import ScheduleGPipe

    from optpart.placing.torch_modules import PlacedModule

    torch.set_num_threads(1)
    module = MODULES[name]().eval()
    pipe = PlacedModule(None, stages, inputs, ()).apply(module, rank)  # type: ignore[arg-type]
    address = f"tcp://127.0.0.1:{port}"
    dist.init_process_group("gloo", init_method=address, rank=rank, world_size=2)
    stage = pipe.build_stage(rank, torch.device("cpu"))
    part = stage.submod
    sums = Sums()
    part.register_forward_pre_hook(sums.begin)
    part.register_forward_hook(lambda *_: sums.end("here"))
    weights = sum(each.numel() * each.element_size() for each in part.parameters())
    del module, pipe
    trim()
    with torch.no_grad():
        schedule = ScheduleGPipe(stage, n_microbatches=1)
        for _ in range(1 + RUNS):
            sums.runs.append({})
            schedule.step(*(inputs if rank == 0 else ()))
    running = resident("VmHWM")
    del stage, part, schedule
    found = {"weights": weights, "memory": running - trim(), "time": sums.medians()["here"]}
    (folder / f"{rank}.json").write_text(json.dumps(found), encoding="utf-8")
    dist.barrier()
    dist.destroy_process_group()


# --- ONNX Runtime --------------------------------------------------------------------------------


def of_onnx(name: str) -> Values:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        apart(write_onnx, name, folder)
        whole = folder / "model.onnx"
        read = op.workload(whole)
        times = apart(profiled, whole, folder)
        column = tuple(
            Fraction(round(1e9 * times[each])) if each in times else Fraction(0)
            for each in read.graph.names
        )
        read = replace(read, measured={"CPU": column})
        limit = half(read)
        cluster = op.Cluster.of(
            [op.Device(f"cpu{i}", type="CPU", memory=limit) for i in (0, 1)], bandwidth=1
        )
        result = proven(op.costed(read, cluster, "file").instance, contiguous=True)
        names = dict.fromkeys(("cpu0", "cpu1"), "CPUExecutionProvider")
        op.export(result, "onnx", folder / "parts", model=whole, names=names)
        plan = json.loads((folder / "parts" / "plan.json").read_text(encoding="utf-8"))
        found: dict[str, Values] = {}
        for part in plan["parts"]:
            here = apart(run_part, folder, part)
            sums = found.setdefault(part["device"], {})
            for key, value in here.items():
                sums[key] = sums.get(key, 0) + value
    return {"said": said(result, read), "found": found}


def write_onnx(name: str, folder: Path) -> Values:
    import numpy as np
    import torch

    inputs = given(name, 2)
    torch.onnx.export(
        MODULES[name]().eval(), inputs, folder / "model.onnx", dynamo=True, external_data=True,
        verbose=False,
    )  # fmt: skip
    np.savez(folder / "values.npz", x=inputs[0].numpy())
    return {}


def profiled(path: Path, folder: Path) -> Values:
    """Return the median seconds of every node of the whole model."""
    import numpy as np
    import onnxruntime

    from bench.reality.runtime import profile

    with np.load(folder / "values.npz") as values:
        x = values["x"]
    first = onnxruntime.InferenceSession(str(path)).get_inputs()[0].name
    np.savez(folder / "values.npz", **{first: x})
    return profile(path, 1, {first: x}, folder, RUNS)


def run_part(folder: Path, part: Mapping[str, Any]) -> Values:
    """Run a part on what the parts before it have left, and leave what it makes."""
    import numpy as np
    import onnx

    from bench.reality.runtime import options, session

    with np.load(folder / "values.npz") as file:
        values = dict(file)
    path = folder / "parts" / part["file"]
    constants = onnx.load(path, load_external_data=False).graph.initializer
    feeds = {name: values[name] for name in part["inputs"]}
    before = trim()
    loaded = session(path, options(1))
    loading = resident("VmHWM") - before
    trim()
    taken = []
    for _ in range(1 + RUNS):
        begin = time.perf_counter()
        outputs = loaded.run(part["outputs"], feeds)
        taken.append(time.perf_counter() - begin)
    running = resident("VmHWM")
    del loaded
    values.update(zip(part["outputs"], outputs, strict=True))
    np.savez(folder / "values.npz", **values)
    del outputs, values
    return {
        "weights": sum(_bytes(each) for each in constants),
        "memory": running - trim(),
        "loading": loading,
        "time": statistics.median(taken[1:]),
    }


def _bytes(tensor: Any) -> int:
    from onnx import helper

    count = 1
    for size in tensor.dims:
        count *= size
    return count * int(helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize)


# --- table ---------------------------------------------------------------------------------------


def table(rows: list[Row]) -> Iterator[str]:
    """Write what was found beside what was said."""
    yield "PLANS THAT RUN HERE"
    yield f"{rows[-1].result['machine']}; other programs ran at the same time."
    yield (__doc__ or "").partition("\n\n")[2]
    head = (
        "runtime, model", "device", "weights", "said", "", "memory", "said", "", "loading",
        "time", "said", "",
    )  # fmt: skip
    lines = []
    for row in rows:
        for device, here in row.result["found"].items():
            plan = row.result["said"][device]
            cells = [f"{row.run['here']} {row.run['model']}", device]
            for key in ("weights", "memory"):
                cells += beside(here.get(key), plan[key], 1e6, "MB")
            cells.append(f"{here['loading'] / 1e6:.1f} MB" if "loading" in here else "")
            lines.append((*cells, *beside(here["time"], plan["time"], 1e-3, "ms")))
    yield columns(head, lines)


def beside(found: float | None, said: float, unit: float, name: str) -> tuple[str, str, str]:
    if found is None:
        return "", "", ""
    error = f"{said / found - 1:+.1%}" if found else ""
    return f"{found / unit:.1f} {name}", f"{said / unit:.1f}", error
