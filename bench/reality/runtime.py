"""Times of models and of their parts in ONNX Runtime on the processor."""

from __future__ import annotations

import json
import re
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from onnxruntime import GraphOptimizationLevel, InferenceSession, SessionOptions

WARM_UP = 3
_NODE = re.compile(r"(.*)_kernel_time")


def options(threads: int) -> SessionOptions:
    """Return options under which every node is executed as it stands, one after the other.

    Threads do not spin between runs, or those of one part would take the cores of the next.
    """
    found = SessionOptions()
    found.intra_op_num_threads = threads
    found.inter_op_num_threads = 1
    found.graph_optimization_level = GraphOptimizationLevel.ORT_DISABLE_ALL
    found.add_session_config_entry("session.force_spinning_stop", "1")
    found.log_severity_level = 3
    return found


def session(path: Path, settings: SessionOptions) -> InferenceSession:
    return InferenceSession(str(path), settings, providers=["CPUExecutionProvider"])


def whole(run: Callable[[], object], runs: int) -> list[float]:
    """Return the seconds of each run after a warm-up."""
    for _ in range(WARM_UP):
        run()
    found = []
    for _ in range(runs):
        start = time.perf_counter()
        run()
        found.append(time.perf_counter() - start)
    return found


def profile(
    path: Path, threads: int, feeds: Mapping[str, Any], folder: Path, runs: int
) -> dict[str, float]:
    """Return the median seconds of every node, of runs after a warm-up."""
    settings = options(threads)
    settings.enable_profiling = True
    settings.profile_file_prefix = str(folder / "profile")
    profiled = session(path, settings)
    for _ in range(WARM_UP + runs):
        profiled.run(None, dict(feeds))
    with open(profiled.end_profiling(), encoding="utf-8") as file:
        return medians(json.load(file), WARM_UP)


def medians(events: Iterable[Mapping[str, Any]], skipped: int) -> dict[str, float]:
    """Return the median seconds of every node in a profile of ONNX Runtime.

    Parameters
    ----------
    events : iterable of mapping
        Of the profile, in microseconds.
    skipped : int
        Runs at the beginning that do not count.

    Raises
    ------
    ValueError
        If nodes were executed a different number of times, or not often enough.
    """
    found: dict[str, list[int]] = {}
    for event in events:
        match = _NODE.fullmatch(event["name"]) if event.get("cat") == "Node" else None
        if match is not None:
            found.setdefault(match[1], []).append(event["dur"])
    counts = Counter(map(len, found.values()))
    if len(counts) != 1 or min(counts) <= skipped:
        raise ValueError(f"nodes by number of executions: {dict(counts)}")
    return {name: statistics.median(times[skipped:]) / 1e6 for name, times in found.items()}


class Parts:
    """The parts of a cut model, each with the threads of its device.

    :class:`optpart.exporters.onnx_runner.Parts` runs all parts with the same options.

    Parameters
    ----------
    folder : Path
        As :mod:`optpart.exporters.onnx_parts` writes it.
    threads : mapping from str to int
        By device.
    """

    def __init__(self, folder: Path, threads: Mapping[str, int]) -> None:
        plan = json.loads((folder / "plan.json").read_text(encoding="utf-8"))
        self.outputs: list[str] = plan["outputs"]
        self.parts = [
            (part, session(folder / part["file"], options(threads[part["device"]])))
            for part in plan["parts"]
        ]

    def run(self, feeds: Mapping[str, Any]) -> list[Any]:
        """Return the outputs of the model; the parts run one after the other."""
        values = dict(feeds)
        for part, loaded in self.parts:
            given = {name: values[name] for name in part["inputs"]}
            values.update(zip(part["outputs"], loaded.run(part["outputs"], given), strict=True))
        return [values[name] for name in self.outputs]
