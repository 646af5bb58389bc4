"""AMP's trials of GPT-2 on its mixed cluster, and all plans of their family for it.

Layers were measured forward with one sample. A pass takes no less than that: small kernels wait for
their launch. For b samples it takes no less than b times the *work* of a sample. On the T4, that is
what one GPU measured, divided by the tensor-parallel degree, and two all-reduces of the
activations; the V100 were faster than their launches, and a transformer layer, which mostly moves
memory, has the T4's work times the ratio of their memory bandwidths. The backward pass computes
twice as much, with two all-reduces as well.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bench.reality.cuts import Cuts, Layout
from bench.reality.layouts import Case, Choice, Floats, Plan, of_seconds, ring_allreduce

#: Nodes of the cluster, four GPUs each: profile, and bit/s to other nodes and inside.
NODES = (("P3", 10e9, 170e9),) * 3 + (("G4", 50e9, 50e9),)
_GPUS = 4
#: Rates inside the G4 node, in Gbit/s, of which one may be fitted: T4 exchange over PCI Express.
RATES = (16, 20, 24, 28, 32, 40, 50)
#: Bandwidth of a T4's memory as a part of a V100's, by their datasheets: 320 and 900 GB/s.
_MEMORY = 320 / 900
HIDDEN, LENGTH, VOCABULARY, BATCH = 1024, 1024, 52256, 32
LAYERS = 30
#: Bytes of a number: gradients are summed in float32, all else is float16.
_GRADIENT, _ACTIVATION = 4, 2
#: What the outliers have in common.
_COMMON = "mp > 1, pp > 1, mb ≤ 2"
#: Layers with the embedding, tied, at both ends of the model; the rest between is no transformer.
_EMBEDDINGS, _TRANSFORMERS = (0, 28), range(2, 26)

_TRIAL = re.compile(
    r"Simulating result: None, \[(?P<cuts>[\d, ]+)\], (?P<microbatch>\d+), "
    r"\{'mp_deg': tensor\(\[(?P<mp>\d+)\.\]\), 'dp_deg': tensor\(\[(?P<dp>\d+)\.\]\), "
    r"'pp_deg': tensor\(\[(?P<pp>\d+)\.\]\)\}, "
    r"with p_cost: tensor\(\[(?P<claimed>[\d.]+)\]\), r_cost: (?P<measured>[\d.]+|inf)"
)


class Degrees(NamedTuple):
    """Samples of a microbatch, and degrees of tensor, data and pipeline parallelism."""

    microbatch: int
    mp: int
    dp: int
    pp: int

    def __str__(self) -> str:
        return f"mp{self.mp} dp{self.dp} pp{self.pp} mb{self.microbatch}"


class Trial(NamedTuple):
    """A trial; one that did not run took infinite seconds."""

    degrees: Degrees
    cuts: Cuts
    claimed: float
    measured: float


def trials(folder: Path) -> Iterator[Trial]:
    for line in (folder / "het_cluster_results.txt").read_text(encoding="utf-8").splitlines():
        if (found := _TRIAL.match(line)) is not None:
            cuts = tuple(int(each) for each in found["cuts"].split(","))
            if cuts[0] != 0 or cuts[-1] != LAYERS:
                raise ValueError(f"{cuts} do not cut {LAYERS} layers")
            degrees = Degrees(*(int(found[key]) for key in Degrees._fields))
            yield Trial(degrees, cuts, float(found["claimed"]), float(found["measured"]))


def plans(data: Path) -> Iterator[Plan]:
    """Yield the trials: ``amp/`` in the shared data."""
    folder = data / "amp"
    for degrees, cuts, claimed, measured in trials(folder):
        microbatch, mp, dp, pp = degrees
        yield Plan(
            str(degrees),
            partial(layout, folder, range(len(NODES)), degrees),
            cuts,
            measured,
            claimed,
            {
                "tensor-parallel degree": str(mp),
                "microbatch": str(microbatch),
                "stages": str(pp),
                "pipelines": str(dp),
                _COMMON: "yes" if mp > 1 and pp > 1 and microbatch <= 2 else "no",
            },
            "did not run" if math.isinf(measured) else "",
            RATES,
        )


def cases(data: Path, *, blocking: bool) -> Iterator[Case]:
    """Yield the cluster, with the layouts whose trial ran, and the node of T4 at any place.

    The source tells no memory: a layout (degrees and microbatch) of which a trial did not run is
    left out. No stage may begin with the loss: the logits would have to cross, which the model of
    transfers does not know.
    """
    ran = [trial.degrees for trial in trials(data / "amp") if math.isfinite(trial.measured)]
    choices = []
    for degrees in ran:
        # Places tell nodes apart, and types say how fast they are: those of V100 are alike.
        for place in range(len(NODES)) if degrees.pp > 1 else (len(NODES) - 1,):
            order = [*range(len(NODES) - 1)]
            order.insert(place, len(NODES) - 1)
            found = layout(data / "amp", order, degrees, blocking=blocking)
            choices.append(Choice(found, str(degrees), _where(order, degrees)))
    name = f"3 nodes of 4 V100 (P3), 1 of 4 T4 (G4), batch {BATCH}"
    yield Case(name, tuple(map(str, ran)), tuple(choices))


def _where(order: Sequence[int], degrees: Degrees) -> tuple[str, ...]:
    """Write what each stage runs on."""
    found = []
    for s in range(degrees.pp):
        counts = Counter(NODES[order[_place(s, d, degrees)]][0] for d in range(degrees.dp))
        found.append("+".join(f"{count} {node}" for node, count in sorted(counts.items())))
    return tuple(found)


def layout(
    folder: Path, order: Sequence[int], degrees: Degrees, inside: float = 50, *, blocking: bool
) -> Layout:
    """Return the layout of degrees and microbatch.

    Parameters
    ----------
    order : sequence of int
        A node of :data:`NODES` for each place.
    inside : float
        Gbit/s inside the G4 node.
    """
    microbatch, mp, dp, pp = degrees
    nodes = [[order[_place(s, d, degrees)] for s in range(pp)] for d in range(dp)]
    forward, backward, transfer = (np.zeros((dp, pp, LAYERS)) for _ in range(3))
    finish = np.zeros((pp, LAYERS + 1, LAYERS + 1))
    fits = np.ones(finish.shape, dtype=np.bool_)
    for d, held in enumerate(nodes):
        for s, node in enumerate(held):
            forward[d, s], backward[d, s] = _passes(folder, node, mp, microbatch, inside)
            if s + 1 < pp:
                transfer[d, s] = _transfer(nodes, held, s, microbatch, inside)
    for s in range(pp):
        fits[s, LAYERS - 1, :] = False
        here = [held[s] for held in nodes]
        for i in range(LAYERS):
            for j in range(i + 1, LAYERS + 1):
                finish[s, i, j] = _allreduce(range(i, j), here, mp, inside)
    passes = forward, backward, transfer
    return of_seconds(passes, finish, fits, BATCH // (dp * microbatch), blocking)


def _place(stage: int, pipeline: int, degrees: Degrees) -> int:
    """Return where a tensor-parallel group is: ranks count by stage, pipeline, then GPU."""
    return (stage * degrees.mp * degrees.dp + pipeline * degrees.mp) // _GPUS


def _transfer(
    nodes: Sequence[Sequence[int]], held: Sequence[int], s: int, microbatch: int, inside: float
) -> float:
    """Return the seconds of hidden states from stage ``s`` of a pipeline to the next."""
    here, there = held[s], held[s + 1]
    found = microbatch * LENGTH * HIDDEN * _ACTIVATION / _rate(here, there, inside)
    if there != here:  # the pipelines that leave a node share its link
        found *= sum(other[s] == here != other[s + 1] for other in nodes)
    return found


@cache
def _passes(
    folder: Path, node: int, mp: int, microbatch: int, inside: float
) -> tuple[Floats, Floats]:
    """Return the seconds of the forward and the backward pass of every layer."""
    name = NODES[node][0]
    measured = _profile(folder, name, mp)
    work = _profile(folder, name, 1).copy()
    transformers = list(_TRANSFORMERS)
    if name == "P3":
        work[transformers] = _profile(folder, "G4", 1)[transformers] * _MEMORY
    summed = np.zeros(LAYERS)
    size = microbatch * LENGTH * HIDDEN * _ACTIVATION
    summed[transformers] = 2 * ring_allreduce(mp, size, _rate(node, node, inside))
    return (
        np.maximum(measured, microbatch * work / mp + summed),
        np.maximum(2 * measured, 2 * microbatch * work / mp + summed),
    )


def _rate(one: int, other: int, inside: float) -> float:
    """Return bytes per second from node to node."""
    if one == other:
        return (inside * 1e9 if NODES[one][0] == "G4" else NODES[one][2]) / 8
    return min(NODES[one][1], NODES[other][1]) / 8


def _allreduce(held: range, nodes: Sequence[int], mp: int, inside: float) -> float:
    """Return the seconds of a stage with these layers, whose replicas are on these nodes.

    The rings of its tensor-parallel ranks share the links of its nodes.
    """
    dp = len(nodes)
    parameters = 12 * HIDDEN**2 * len(set(held) & set(_TRANSFORMERS))
    parameters += HIDDEN * VOCABULARY * bool(set(held) & set(_EMBEDDINGS))
    rate = min(_rate(node, nodes[(i + 1) % dp], inside) for i, node in enumerate(nodes))
    shared = mp if len(set(nodes)) > 1 else 1
    return ring_allreduce(dp, parameters / mp * _GRADIENT, rate / shared)


@cache
def _profile(folder: Path, node: str, mp: int) -> Floats:
    found = np.load(folder / f"gpt2_{node}_{mp}.npy", allow_pickle=False)
    if found.shape != (LAYERS,):
        raise ValueError(f"gpt2_{node}_{mp}.npy: shape {found.shape}")
    return np.asarray(found, dtype=np.float64)
