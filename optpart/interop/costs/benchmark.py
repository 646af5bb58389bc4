"""A program that measures the processor and the accelerators of this machine.

It runs in a process of its own (:mod:`optpart.interop.costs.detection`), with all threads, and
needs NumPy; with PyTorch it also measures accelerators, and the processor's data types of half
width. It prints a JSON object, ``{"by": …, "devices": […], "links": […]}``, in nanoseconds and
bytes.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

#: Bytes of an array whose copying shows the bandwidth of memory, beyond what caches hold.
_LARGE = 2**28
#: Bytes of the messages whose times show bandwidth and latency of a link.
_MESSAGES = (2**26, 4)
#: Rows of square matrices, the least and the greatest.
_ROWS = (512, 16384)
_PRECISIONS = ("float64", "float32", "bfloat16", "float16")


def best(run: Callable[[], object], seconds: float, wait: Callable[[], object]) -> float:
    """Return the least nanoseconds of runs that last so long together, after one that warms up."""
    run()
    wait()
    least, end = float("inf"), time.perf_counter() + seconds
    while True:
        start = time.perf_counter()
        run()
        wait()
        now = time.perf_counter()
        least = min(least, now - start)
        if now > end:
            return least * 1e9


def rate(
    product: Callable[[int], Callable[[], object]], seconds: float, wait: Callable[[], object]
) -> float:
    """Return the FLOPs per nanosecond of a product of matrices, the best of growing ones."""
    found, rows, end = 0.0, _ROWS[0], time.perf_counter() + seconds
    while rows <= _ROWS[1]:
        took = best(product(rows), seconds / 8, wait)
        found = max(found, 2 * rows**3 / took)
        # The next has eight times the work, and is run at least twice.
        if time.perf_counter() + 16 * took / 1e9 > end:
            break
        rows *= 2
    return found


def with_numpy(seconds: float) -> dict[str, Any]:
    """Measure the processor."""
    import numpy as np

    def product(type_: Any, rows: int) -> Callable[[], object]:
        one = np.random.default_rng(0).random((rows, rows)).astype(type_)
        out = np.empty_like(one)
        return lambda: np.matmul(one, one, out=out)

    source = np.ones(_LARGE // 8)
    target = np.empty_like(source)
    small = np.ones(1)
    return {
        "name": "cpu",
        "type": "CPU",
        "peak": {
            type_.__name__: rate(partial(product, type_), seconds / 4, _nothing)
            for type_ in (np.float64, np.float32)
        },
        "bandwidth": 2 * _LARGE / best(lambda: np.copyto(target, source), seconds / 4, _nothing),
        "overhead": best(lambda: np.multiply(small, small, out=small), seconds / 20, _nothing),
    }


def with_torch(
    torch: Any, place: str, seconds: float, wait: Callable[[], object]
) -> dict[str, Any]:
    """Measure a device of PyTorch."""

    def product(type_: Any, rows: int) -> Callable[[], object]:
        one = torch.rand((rows, rows), device=place).to(type_)
        out = torch.empty_like(one)
        return lambda: torch.mm(one, one, out=out)

    peak = {}
    for name in _PRECISIONS:
        with suppress(RuntimeError, TypeError):  # a type that the device does not multiply
            type_ = getattr(torch, name)
            peak[name] = rate(partial(product, type_), seconds / 6, wait)
    source = torch.ones(_LARGE // 4, device=place)
    target = torch.empty_like(source)
    small = torch.ones(1, device=place)

    def several() -> None:
        for _ in range(100):
            small.add_(1)

    return {
        "name": place.replace(":", ""),
        "type": "CPU" if place == "cpu" else "GPU",
        "peak": peak,
        "bandwidth": 2 * _LARGE / best(lambda: target.copy_(source), seconds / 6, wait),
        "overhead": best(several, seconds / 20, wait) / 100,
    }


def link(torch: Any, source: str, target: str, seconds: float, wait: Callable[[], object]) -> Any:
    """Measure the transfer from one device of PyTorch to another."""
    took = []
    for size in _MESSAGES:
        # Pages that are pinned are read by the device itself, as runtimes have them.
        sent, kept = (
            torch.ones(size // 4, device=place, pin_memory=place == "cpu" and "cuda" in other)
            for place, other in ((source, target), (target, source))
        )
        took.append(best(partial(kept.copy_, sent, non_blocking=True), seconds / 4, wait))
    large, small = took
    return {
        "from": source.replace(":", ""),
        "to": target.replace(":", ""),
        "bandwidth": _MESSAGES[0] / max(large - small, 1.0),
        "latency": small,
    }


def accelerators(torch: Any) -> Iterator[tuple[str, str, int]]:
    """Yield place, model and free bytes of each."""
    if not torch.accelerator.is_available():
        return
    kind = torch.accelerator.current_accelerator().type
    module = torch.get_device_module(kind)
    for number in range(torch.accelerator.device_count()):
        if hasattr(module, "mem_get_info"):
            free, model = module.mem_get_info(number)[0], module.get_device_name(number)
        else:
            free, model = getattr(module, "recommended_max_memory", int)(), kind.upper()
        yield f"{kind}:{number}", model, free


def main(seconds: float) -> None:
    """Measure for about so long, and print."""
    try:
        import torch
    except ImportError:
        found: dict[str, Any] = {"by": "NumPy", "devices": [with_numpy(seconds)], "links": []}
    else:
        others = list(accelerators(torch))
        wait = torch.accelerator.synchronize if others else _nothing
        places = ["cpu", *(place for place, _, _ in others)]
        pairs = [(a, b) for a in places for b in places if a != b]
        part = seconds / (len(places) + len(pairs) / 4)
        devices = [with_torch(torch, place, part, wait) for place in places]
        for device, (_, model, free) in zip(devices[1:], others, strict=True):
            device |= {"model": model, "memory": free}
        links = [link(torch, a, b, part / 4, wait) for a, b in pairs]
        found = {"by": f"PyTorch {torch.__version__}", "devices": devices, "links": links}
    json.dump(found, sys.stdout)


def _nothing() -> None:
    """Wait for nothing: the processor returns when it is done."""


if __name__ == "__main__":
    main(float(sys.argv[1]))
