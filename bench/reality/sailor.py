"""Sailor's measured plans of OPT-350, and all plans of their family for the same clusters.

Layers were measured on tensor-parallel groups, which are nodes, and iterations on clusters. A
replica of a stage is a node. Activations cross once a node, at the fitted rate of the slower one
for messages without end; the copies of gradients of a node's GPUs share that rate.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import permutations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench.reality.cuts import Cuts, Layout, Times
from bench.reality.layouts import (
    NANOSECONDS,
    Case,
    Choice,
    Plan,
    between_sums,
    of_seconds,
    ring_allreduce,
)  # fmt: skip
from optpart.interop.formats.sailor import bandwidths, layers, read

_MODEL = "OPT-350"
_LAYERS = 26

#: Plans by whose measured times the model of transfers was chosen.
_CHOSEN_BY = ("mit/N2/N2_D1", "mit/N4/N4_D1")

#: What a stage of a pipeline runs on: GPU type and number of GPUs.
Node = tuple[str, int]
Stages = tuple[tuple[Node, ...], ...]

#: Bytes of a GPU. The data gives memory in the names of some only. The other figures are those of
#: datasheets; RTX-2080 counts as its variant of 11 GB, since plans with it had peaks up to 9.4 GB.
MEMORY = {"GH-96": 96e9, "RTX-2080": 11e9, "RTX-3090": 24e9, "Titan-RTX": 24e9}

#: Tensors as large as the parameters: these, gradients, and two of Adam.
_COPIES = 4


class Measured(NamedTuple):
    """A measured plan; bytes of its fullest GPU, seconds of reducing gradients and of a step."""

    name: str
    stages: Stages
    cuts: Cuts
    microbatch: int
    batch: int
    memory: float
    reduction: float
    seconds: float


def _validation(folder: Path) -> Iterator[Measured]:
    for path in sorted((folder / "validation").rglob("*.json")):
        name = path.relative_to(folder / "validation").with_suffix("").as_posix()
        document = json.loads(path.read_text(encoding="utf-8"))
        (pipeline,) = document["pipeline_list"]
        stages = tuple(tuple(map(_node, stage)) for stage in pipeline["tmp_per_stage"])
        if document["gbs"] % (document["mbs"] * len(stages[0])):
            raise ValueError(f"{name}: {document['gbs']} samples are no whole microbatches")
        yield Measured(
            name.replace("plan_config_", ""), stages,
            (0, *(held[-1] + 1 for held in pipeline["layers_per_stage"])), document["mbs"],
            document["gbs"], document["max_mem"], document["red_grads"], document["real"],
        )  # fmt: skip


def _node(entry: Any) -> Node:
    """Read ``[[[type, number, zone]], degree]``."""
    ((gpu, count, _),), degree = entry
    if count != degree:
        raise ValueError(f"{count} GPUs of degree {degree}")
    return gpu, degree


def plans(data: Path) -> Iterator[Plan]:
    """Yield the measured plans: ``sailor/`` in the shared data."""
    folder = data / "sailor"
    for plan in _validation(folder):
        replicas = len(plan.stages[0])
        doubt = "the model was chosen by it" if plan.name in _CHOSEN_BY else ""
        if replicas == 1 and plan.reduction > 1:
            doubt = f"reduces gradients for {plan.reduction} s without data parallelism"
        types = {gpu for stage in plan.stages for gpu, _ in stage}
        yield Plan(
            plan.name,
            partial(layout, folder, plan.stages, plan.microbatch, plan.batch),
            plan.cuts,
            plan.seconds,
            traits={
                "cluster": "mixed" if len(types) > 1 else "homogeneous",
                "microbatch": str(plan.microbatch),
                "stages": str(len(plan.stages)),
                "pipelines": str(replicas),
            },
            doubt=doubt,
        )


def cases(data: Path, *, blocking: bool) -> Iterator[Case]:
    """Yield the clusters of the plans, with all layouts on all or some of their nodes.

    Memory: parameters, gradients, two tensors of Adam, and what layers keep of the microbatches in
    flight, times the largest ratio of measured to so modelled peaks on the same cluster.
    """
    folder = data / "sailor"
    by_cluster: dict[tuple[tuple[tuple[Node, int], ...], int], list[Measured]] = {}
    for plan in _validation(folder):
        counted = Counter(node for stage in plan.stages for node in stage)
        by_cluster.setdefault((tuple(sorted(counted.items())), plan.batch), []).append(plan)
    for (nodes, batch), measured in by_cluster.items():
        scale = max(plan.memory / _peak(folder, plan) for plan in measured)
        choices = []
        for stages in _arrangements(dict(nodes)):
            for microbatch in _microbatches(folder, nodes):
                if batch % (microbatch * len(stages[0])) == 0:
                    found = layout(
                        folder, stages, microbatch, batch, scale=scale, blocking=blocking
                    )
                    name = f"{len(stages[0])} × {len(stages)} stages, microbatch {microbatch}"
                    choices.append(Choice(found, name, tuple(map(_listed, stages))))
        text = ", ".join(f"{count} × {degree} {gpu}" for (gpu, degree), count in nodes)
        names = tuple(plan.name for plan in measured)
        memory = f" (memory × {scale:.2f})"
        yield Case(f"{text}, batch {batch}", names, tuple(choices), memory)


def _listed(stage: Sequence[Node]) -> str:
    counts = sorted(Counter(stage).items())
    return "+".join(f"{count} {gpu}" for (gpu, _), count in counts)


def _arrangements(nodes: dict[Node, int]) -> Iterator[Stages]:
    """Yield nodes by stage and pipeline, each arrangement once: pipelines may be exchanged."""
    total = sum(nodes.values())
    for stages in range(1, min(total, _LAYERS) + 1):
        rows = list(_rows(nodes, stages))
        for pipelines in range(1, total // stages + 1):
            for chosen in _multisets(rows, pipelines, Counter(nodes)):
                yield tuple(zip(*chosen, strict=True))


def _rows(nodes: dict[Node, int], stages: int) -> Iterator[tuple[Node, ...]]:
    """Yield the nodes of a pipeline, by stage."""
    if len(nodes) == 1:
        yield tuple(nodes) * stages
        return
    listed = [node for node, count in nodes.items() for _ in range(count)]
    yield from sorted(set(permutations(listed, stages)))


def _multisets(
    rows: Sequence[tuple[Node, ...]], pipelines: int, left: Counter[Node]
) -> Iterator[Stages]:
    """Yield choices of as many rows, in their order, that the nodes suffice for."""
    if pipelines == 0:
        yield ()
        return
    for i, row in enumerate(rows):
        used = Counter(row)
        if all(left[node] >= count for node, count in used.items()):
            for others in _multisets(rows[i:], pipelines - 1, left - used):
                yield (row, *others)


def _times(folder: Path, gpu: str) -> dict[str, dict[str, dict[str, list[float]]]]:
    """Read the measured times of a GPU: by microbatch, degree and layer."""
    path = folder / "profiles" / _MODEL / gpu / "profile.json"
    found: dict[str, dict[str, dict[str, list[float]]]] = json.loads(path.read_text("utf-8"))
    return found


def _microbatches(folder: Path, nodes: Sequence[tuple[Node, int]]) -> list[int]:
    """Return the microbatches that were measured on all types of node."""
    found = (
        {int(m) for m, degrees in _times(folder, gpu).items() if str(degree) in degrees}
        for (gpu, degree), _ in nodes
    )
    return sorted(set.intersection(*found))


@cache
def _held(folder: Path, degree: int) -> tuple[Times, Times]:
    """Return sums of bytes that GPUs hold by layer: of parameters, and of a sample in flight."""
    found = layers(folder, _MODEL, degree)
    parameters, kept = (
        np.array([0, *(round(layer[key]) for layer in found)]).cumsum()
        for key in ("params_bytes", "act_mem_bytes")
    )
    return parameters, kept


def _bytes(folder: Path, behind: int, degree: int, microbatch: int, microbatches: int) -> Times:
    """Return what a GPU with so many stages behind its own holds: the layers ``i`` to ``j − 1``."""
    parameters, kept = _held(folder, degree)
    total = _COPIES * parameters + min(behind + 1, microbatches) * microbatch * kept
    return np.asarray(total[None, :] - total[:, None])


def _peak(folder: Path, plan: Measured) -> float:
    """Return the bytes that the fullest GPU of a plan is modelled to hold."""
    microbatches = plan.batch // (plan.microbatch * len(plan.stages[0]))
    last = len(plan.stages) - 1
    return max(
        float(held[plan.cuts[s], plan.cuts[s + 1]])
        for s, stage in enumerate(plan.stages)
        for _, degree in stage
        for held in [_bytes(folder, last - s, degree, plan.microbatch, microbatches)]
    )


class _Profile(NamedTuple):
    """By layer: seconds of a microbatch and of the update, bytes on each GPU."""

    forward: list[float]
    backward: list[float]
    update: list[float]
    parameters: list[float]
    activations: list[float]


@cache
def _profile(folder: Path, gpu: str, microbatch: int, degree: int) -> _Profile:
    given = {"microbatch": microbatch, "tensor_parallel": degree, "gpus": [gpu]}
    passes = []
    for way in ("forward", "backward"):
        workload = read(folder, _MODEL, measured_pass=way, **given)  # type: ignore[arg-type]
        times = (time for time in workload.measured[gpu] if time is not None)
        passes.append([float(time) / NANOSECONDS for time in times])
    measured = _times(folder, gpu)[str(microbatch)][str(degree)]
    graph = workload.graph
    return _Profile(
        *passes,
        [measured[str(i)][2] for i in range(len(graph))],
        graph.memory.floats.tolist(),
        graph.tensor_size.floats.tolist(),
    )


@cache
def _rates(folder: Path) -> Mapping[Node, float]:
    """Return bytes per second between nodes, by the node that sends."""
    rates = bandwidths(folder / "network_coeffs_all_homo.json")["inter"]
    return {key: float(rate) * NANOSECONDS for key, rate in rates.items()}


def layout(
    folder: Path, stages: Stages, microbatch: int, batch: int, *, scale: float = 0.0, blocking: bool
) -> Layout:
    """Return the layout of nodes by stage and pipeline; ``scale`` is that of modelled memory."""
    count, pipelines, rates = len(stages), len(stages[0]), _rates(folder)
    microbatches = batch // (microbatch * pipelines)
    profiles = [[_profile(folder, gpu, microbatch, k) for gpu, k in stage] for stage in stages]
    length = len(profiles[0][0].forward)
    square = (count, length + 1, length + 1)
    transfer = np.zeros((pipelines, count, length))
    finish, fits = np.zeros(square), np.ones(square, dtype=np.bool_)
    for s, stage in enumerate(stages):
        update, held = np.zeros(square[1:]), np.zeros(square[1:])
        for r, (gpu, degree) in enumerate(stage):
            profile = profiles[s][r]
            update = np.maximum(update, between_sums(profile.update))
            held = np.maximum(held, degree * between_sums(profile.parameters))
            if s + 1 < count:
                rate = min(rates[stage[r]], rates[stages[s + 1][r]])
                transfer[r, s] = np.array(profile.activations + [0.0] * length)[:length] / rate
            memory = _bytes(folder, count - 1 - s, degree, microbatch, microbatches)
            fits[s] &= memory * scale <= MEMORY[gpu] * (1 + 1e-9)
        slowest = min(rates[node] for node in stage)
        finish[s] = ring_allreduce(pipelines, 1.0, slowest) * held + update
    forward, backward = (
        np.array([[getattr(profiles[s][r], way) for s in range(count)] for r in range(pipelines)])
        for way in ("forward", "backward")
    )
    passes = forward, backward, transfer
    return of_seconds(passes, np.maximum(finish, 0), fits, microbatches, blocking)
