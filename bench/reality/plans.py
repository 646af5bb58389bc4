"""Plans of training with measured times: Sailor's validation and AMP's trials.

Both sources measured their layers on one GPU (or tensor-parallel group), and whole iterations on
clusters. Only figures are read from them.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from bench.reality.training import Iteration, Replica, ring_allreduce
from optpart.formats.sailor import bandwidths, read

#: A number for each layer.
Row = np.ndarray[Any, np.dtype[np.float64]]

_NANOSECONDS = 10**9
#: Plans of Sailor by whose measured times the model of transfers was chosen.
_CHOSEN_BY = ("mit/N2/N2_D1", "mit/N4/N4_D1")
#: Bytes of a number in AMP's trials: gradients are summed in float32, all else is float16.
_GRADIENT, ACTIVATION = 4, 2


@dataclass(frozen=True)
class Plan:
    """A plan that was measured.

    Attributes
    ----------
    name : str
    iteration : Iteration
    measured : float
        Seconds of one iteration.
    claimed : float or None
        Seconds that the source itself predicted.
    traits : mapping from str to str
        By which plans are grouped.
    doubt : str
        Why the measured time does not count.
    variants : mapping from str to Iteration
        The plan under other values of a constant that may be fitted.
    """

    name: str
    iteration: Iteration
    measured: float
    claimed: float | None = None
    traits: Mapping[str, str] = field(default_factory=dict)
    doubt: str = ""
    variants: Mapping[str, Iteration] = field(default_factory=dict)


def sailor(data: Path) -> Iterator[Plan]:
    """Yield Sailor's plans for OPT-350: ``sailor/`` in the shared data.

    A replica of a stage is a tensor-parallel group, which is a node. Activations cross once a
    group, at the fitted rate of the slower node for messages without end; the copies of gradients
    of a node's GPUs share that rate.
    """
    folder = data / "sailor"
    for path in sorted((folder / "validation").rglob("*.json")):
        name = path.relative_to(folder / "validation").with_suffix("").as_posix()
        document = json.loads(path.read_text(encoding="utf-8"))
        (pipeline,) = document["pipeline_list"]
        groups = [[group_of(each) for each in stage] for stage in pipeline["tmp_per_stage"]]
        replicas = len(groups[0])
        microbatch = document["mbs"]
        microbatches, rest = divmod(document["gbs"], microbatch * replicas)
        if rest:
            raise ValueError(f"{name}: {document['gbs']} samples are no whole microbatches")
        types = {gpu for stage in groups for gpu, _ in stage}
        name = name.replace("plan_config_", "")
        doubt = "the model was chosen by it" if name in _CHOSEN_BY else ""
        if replicas == 1 and document["red_grads"] > 1:
            doubt = f"reduces gradients for {document['red_grads']} s without data parallelism"
        yield Plan(
            name,
            _sailor_iteration(
                folder, pipeline["layers_per_stage"], groups, microbatch, microbatches
            ),
            document["real"],
            traits={
                "cluster": "mixed" if len(types) > 1 else "homogeneous",
                "microbatch": str(microbatch),
                "stages": str(len(groups)),
                "pipelines": str(replicas),
            },
            doubt=doubt,
        )


def group_of(entry: Any) -> tuple[str, int]:
    """Return GPU type and number of GPUs of ``[[[type, number, zone]], degree]``."""
    ((gpu, count, _),), degree = entry
    if count != degree:
        raise ValueError(f"{count} GPUs of degree {degree}")
    return gpu, degree


def _sailor_iteration(
    folder: Path,
    layers: list[list[int]],
    groups: list[list[tuple[str, int]]],
    microbatch: int,
    microbatches: int,
) -> Iteration:
    pipelines: list[list[Replica]] = [[] for _ in groups[0]]
    allreduce = []
    for s, stage in enumerate(groups):
        held = 0.0
        for r, (gpu, degree) in enumerate(stage):
            profile = profile_of(folder, gpu, microbatch, degree)
            transfer = 0.0
            if s + 1 < len(groups):
                rate = min(rate_of(folder, *stage[r]), rate_of(folder, *groups[s + 1][r]))
                transfer = profile.activations[layers[s][-1]] / rate
            pipelines[r].append(
                Replica(
                    sum(profile.forward[i] for i in layers[s]),
                    sum(profile.backward[i] for i in layers[s]),
                    sum(profile.update[i] for i in layers[s]),
                    transfer,
                )
            )
            held = max(held, degree * sum(profile.parameters[i] for i in layers[s]))
        slowest = min(rate_of(folder, *group) for group in stage)
        allreduce.append(ring_allreduce(len(stage), held, slowest))
    return Iteration(tuple(map(tuple, pipelines)), microbatches, tuple(allreduce))


@dataclass(frozen=True)
class _Profile:
    """By layer: seconds of a microbatch and of the update, bytes on each GPU."""

    forward: list[float]
    backward: list[float]
    update: list[float]
    parameters: list[float]
    activations: list[float]


@cache
def profile_of(folder: Path, gpu: str, microbatch: int, degree: int) -> _Profile:
    model = "OPT-350"
    passes = {}
    for measured_pass in ("forward", "backward"):
        workload = read(
            folder,
            model,
            microbatch=microbatch,
            tensor_parallel=degree,
            measured_pass=measured_pass,
            gpus=[gpu],
        )
        passes[measured_pass] = [
            float(time) / _NANOSECONDS for time in workload.measured[gpu] if time is not None
        ]
    path = folder / "profiles" / model / gpu / "profile.json"
    layers = json.loads(path.read_text(encoding="utf-8"))[str(microbatch)][str(degree)]
    graph = workload.graph
    return _Profile(
        passes["forward"],
        passes["backward"],
        [layers[str(i)][2] for i in range(len(graph))],
        [float(graph.memory[v]) for v in range(len(graph))],
        [float(graph.tensor_size[t]) for t in range(graph.tensors)],
    )


@cache
def _links(folder: Path) -> Mapping[tuple[str, int], float]:
    rates = bandwidths(folder / "network_coeffs_all_homo.json")["inter"]
    return {key: float(rate) * _NANOSECONDS for key, rate in rates.items()}


def rate_of(folder: Path, gpu: str, degree: int) -> float:
    """Return bytes per second between nodes when so many GPUs of a node send."""
    return _links(folder)[gpu, degree]


# --- AMP -----------------------------------------------------------------------------------------

#: Nodes of AMP's mixed cluster, four GPUs each: profile, and bit/s to other nodes and inside.
NODES = (("P3", 10e9, 170e9),) * 3 + (("G4", 50e9, 50e9),)
_GPUS = 4
#: Rates inside the G4 node, in Gbit/s, of which one may be fitted: T4 exchange over PCI Express.
RATES = (16, 20, 24, 28, 32, 40, 50)
#: Bandwidth of a T4's memory as a part of a V100's, by their datasheets: 320 and 900 GB/s.
_MEMORY = 320 / 900
HIDDEN, LENGTH, VOCABULARY, BATCH = 1024, 1024, 52256, 32
LAYERS = 30
#: What the outliers have in common.
_COMMON = "mp > 1, pp > 1, mb ≤ 2"
#: Layers with the embedding, tied, at both ends of the model; the rest between is no transformer.
_EMBEDDINGS, _TRANSFORMERS = (0, 28), range(2, 26)

TRIAL = re.compile(
    r"Simulating result: None, \[(?P<cuts>[\d, ]+)\], (?P<microbatch>\d+), "
    r"\{'mp_deg': tensor\(\[(?P<mp>\d+)\.\]\), 'dp_deg': tensor\(\[(?P<dp>\d+)\.\]\), "
    r"'pp_deg': tensor\(\[(?P<pp>\d+)\.\]\)\}, "
    r"with p_cost: tensor\(\[(?P<claimed>[\d.]+)\]\), r_cost: (?P<measured>[\d.]+|inf)"
)


def amp(data: Path) -> Iterator[Plan]:
    """Yield AMP's trials of GPT-2 on its mixed cluster: ``amp/`` in the shared data.

    Layers were measured forward with one sample. A pass takes no less than that: small kernels wait
    for their launch. For b samples it takes no less than b times the *work* of a sample. On the T4,
    that is what one GPU measured, divided by the tensor-parallel degree, and two all-reduces of the
    activations; the V100 were faster than their launches, and a transformer layer, which mostly
    moves memory, has the T4's work times the ratio of their memory bandwidths. The backward pass
    computes twice as much, with two all-reduces as well. Trials that did not run have an infinite
    time.
    """
    folder = data / "amp"
    for line in (folder / "het_cluster_results.txt").read_text(encoding="utf-8").splitlines():
        found = TRIAL.match(line)
        if found is None:
            continue
        cuts = [int(each) for each in found["cuts"].split(",")]
        microbatch, mp, dp, pp = (int(found[key]) for key in ("microbatch", "mp", "dp", "pp"))
        yield Plan(
            f"mp{mp} dp{dp} pp{pp} mb{microbatch}",
            _amp_iteration(folder, cuts, microbatch, mp, dp, NODES[-1][2]),
            float(found["measured"]),
            float(found["claimed"]),
            {
                "tensor-parallel degree": str(mp),
                "microbatch": str(microbatch),
                "stages": str(pp),
                "pipelines": str(dp),
                _COMMON: "yes" if mp > 1 and pp > 1 and microbatch <= 2 else "no",
            },
            "did not run" if math.isinf(float(found["measured"])) else "",
            {
                f"{rate} Gbit/s": _amp_iteration(folder, cuts, microbatch, mp, dp, rate * 1e9)
                for rate in RATES
            },
        )


def _amp_iteration(
    folder: Path, cuts: list[int], microbatch: int, mp: int, dp: int, rate: float
) -> Iteration:
    """Return the iteration of a trial; ``rate``: bit/s inside the G4 node."""
    if cuts[0] != 0 or cuts[-1] != LAYERS:
        raise ValueError(f"{cuts} do not cut {LAYERS} layers")
    stages = len(cuts) - 1
    nodes = [[node_of(s, d, mp, dp) for s in range(stages)] for d in range(dp)]
    pipelines: list[tuple[Replica, ...]] = []
    for held in nodes:
        pipeline = []
        for s, node in enumerate(held):
            forward, backward = passes(folder, node, mp, microbatch, rate)
            layers = slice(cuts[s], cuts[s + 1])
            transfer = amp_transfer(nodes, held, s, microbatch, rate) if s + 1 < stages else 0.0
            pipeline.append(
                Replica(
                    float(forward[layers].sum()), float(backward[layers].sum()), transfer=transfer
                )
            )
        pipelines.append(tuple(pipeline))
    allreduce = tuple(
        amp_allreduce(range(cuts[s], cuts[s + 1]), [held[s] for held in nodes], mp, rate)
        for s in range(stages)
    )
    return Iteration(tuple(pipelines), BATCH // (dp * microbatch), allreduce)


def amp_transfer(
    nodes: Sequence[Sequence[int]], held: Sequence[int], s: int, microbatch: int, rate: float
) -> float:
    """Return the seconds of hidden states from stage ``s`` of a pipeline to the next.

    Parameters
    ----------
    nodes : sequence of sequence of int
        Of all pipelines, by stage.
    held : sequence of int
        Of this one.
    """
    here, there = held[s], held[s + 1]
    found = microbatch * LENGTH * HIDDEN * ACTIVATION / between(here, there, rate)
    if there != here:  # the pipelines that leave a node share its link
        found *= sum(other[s] == here != other[s + 1] for other in nodes)
    return found


@cache
def passes(folder: Path, node: int, mp: int, microbatch: int, rate: float) -> tuple[Row, Row]:
    """Return the seconds of the forward and the backward pass of every layer."""
    name = NODES[node][0]
    measured = _forward(folder, name, mp)
    work = _forward(folder, name, 1).copy()
    transformers = list(_TRANSFORMERS)
    if name == "P3":
        work[transformers] = _forward(folder, "G4", 1)[transformers] * _MEMORY
    summed = np.zeros(LAYERS)
    size = microbatch * LENGTH * HIDDEN * ACTIVATION
    summed[transformers] = 2 * ring_allreduce(mp, size, between(node, node, rate))
    return (
        np.maximum(measured, microbatch * work / mp + summed),
        np.maximum(2 * measured, 2 * microbatch * work / mp + summed),
    )


def node_of(stage: int, pipeline: int, mp: int, dp: int) -> int:
    """Return where a tensor-parallel group is: ranks count by stage, pipeline, then GPU."""
    return (stage * mp * dp + pipeline * mp) // _GPUS


def between(one: int, other: int, inside: float) -> float:
    """Return bytes per second from node to node; ``inside``: bit/s inside the G4 node."""
    if one == other:
        return (inside if NODES[one][0] == "G4" else NODES[one][2]) / 8
    return min(NODES[one][1], NODES[other][1]) / 8


def amp_allreduce(held: range, nodes: Sequence[int], mp: int, inside: float) -> float:
    """Return the seconds of a stage with these layers, whose replicas are on these nodes.

    The rings of its tensor-parallel ranks share the links of its nodes.
    """
    dp = len(nodes)
    parameters = 12 * HIDDEN**2 * len(set(held) & set(_TRANSFORMERS))
    parameters += HIDDEN * VOCABULARY * bool(set(held) & set(_EMBEDDINGS))
    rate = min(between(node, nodes[(i + 1) % dp], inside) for i, node in enumerate(nodes))
    shared = mp if len(set(nodes)) > 1 else 1
    return ring_allreduce(dp, parameters / mp * _GRADIENT, rate / shared)


@cache
def _forward(folder: Path, node: str, mp: int) -> Row:
    found = np.load(folder / f"gpt2_{node}_{mp}.npy", allow_pickle=False)
    if found.shape != (LAYERS,):
        raise ValueError(f"gpt2_{node}_{mp}.npy: shape {found.shape}")
    return np.asarray(found, dtype=np.float64)
