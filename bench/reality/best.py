"""The best plans for the clusters of Sailor's and AMP's measured plans, by our own search.

They are of the same family as the measured ones and are predicted by the same model
(:mod:`bench.reality.plans`): as many replicas of every stage, contiguous layers, any cuts, the
order 1F1B. Free are cuts, stages, replicas, microbatch, and which nodes are which stages; with
AMP's plans, the degree of tensor parallelism, too.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import permutations
from pathlib import Path

import numpy as np

from bench.reality import plans
from bench.reality.cuts import Cuts, Layout, Times, best_cuts, distinct, iteration_time
from bench.reality.training import ring_allreduce
from optpart.formats.sailor import layers

_NANOSECONDS = 10**9
_MODEL = "OPT-350"
_LAYERS = 26

#: What a stage of a pipeline runs on, in Sailor's plans: GPU type and number of GPUs.
Node = tuple[str, int]

#: Bytes of a GPU. The data gives memory in the names of some only. The other figures are those of
#: datasheets; RTX-2080 counts as its variant of 11 GB, since plans with it had peaks up to 9.4 GB.
MEMORY = {"GH-96": 96e9, "RTX-2080": 11e9, "RTX-3090": 24e9, "Titan-RTX": 24e9}

#: Tensors as large as the parameters: these, gradients, and two of Adam.
_COPIES = 4


@dataclass(frozen=True)
class Choice:
    """A layout and what it is.

    Attributes
    ----------
    layout : Layout
    name : str
    where : tuple of str
        The nodes of each stage.
    """

    layout: Layout
    name: str
    where: tuple[str, ...]


@dataclass(frozen=True)
class Case:
    """A cluster and batch, and the plans that were measured on it.

    Attributes
    ----------
    name : str
    source : str
    plans : tuple of str
    choices : tuple of Choice
    memory : str
        By how much memory is scaled; empty if nothing is known of it.
    """

    name: str
    source: str
    plans: tuple[str, ...]
    choices: tuple[Choice, ...]
    memory: str


@dataclass(frozen=True)
class Best:
    """The best plan of a case, in seconds.

    Attributes
    ----------
    seconds, bound : float
        Predicted, and below which no plan of the family is predicted.
    plan : str
    layouts : int
        How many were in question.
    """

    seconds: float
    bound: float
    plan: str
    layouts: int


def best(case: Case) -> Best:
    """Search the best plan of a case."""
    found = best_cuts([choice.layout for choice in case.choices])
    if found.layout is None or found.time is None or found.bound is None:
        raise AssertionError(f"{case.name}: no plan fits, but some were measured")
    choice = case.choices[found.layout]
    stages = " | ".join(
        f"{where} {found.cuts[s + 1] - found.cuts[s]}" for s, where in enumerate(choice.where)
    )
    return Best(
        found.time / _NANOSECONDS,
        found.bound / _NANOSECONDS,
        f"{choice.name}: {stages}",
        len(case.choices),
    )


def _whole(seconds: object) -> Times:
    """Return whole nanoseconds, rounded as predictions of single plans are, but by layer."""
    return np.rint(np.asarray(seconds, dtype=np.float64) * _NANOSECONDS).astype(np.int64)


def _layout(
    forward: object,
    backward: object,
    transfer: object,
    finish: object,
    fits: np.ndarray[tuple[int, ...], np.dtype[np.bool_]],
    microbatches: int,
    blocking: bool,
) -> Layout:
    """Return the layout of these seconds, with pipelines that are alike only once."""
    rows = [_whole(each) for each in (forward, backward, transfer)]
    kept = distinct(np.stack(rows, axis=1))
    return Layout(
        rows[0][kept],
        rows[1][kept],
        rows[2][kept],
        _whole(finish),
        fits,
        microbatches,
        blocking,
    )


# --- Sailor --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Measured:
    """A measured plan of Sailor."""

    name: str
    stages: tuple[tuple[Node, ...], ...]
    cuts: Cuts
    microbatch: int
    batch: int
    memory: float


def _validation(folder: Path) -> Iterator[_Measured]:
    for path in sorted((folder / "validation").rglob("*.json")):
        name = path.relative_to(folder / "validation").with_suffix("").as_posix()
        document = json.loads(path.read_text(encoding="utf-8"))
        (pipeline,) = document["pipeline_list"]
        held = pipeline["layers_per_stage"]
        yield _Measured(
            name.replace("plan_config_", ""),
            tuple(
                tuple(plans.group_of(each) for each in stage) for stage in pipeline["tmp_per_stage"]
            ),
            (0, *(stage[-1] + 1 for stage in held)),
            document["mbs"],
            document["gbs"],
            document["max_mem"],
        )


def sailor(data: Path, *, blocking: bool) -> Iterator[Case]:
    """Yield the clusters of Sailor's plans, with all layouts on all or some of their nodes.

    Memory: parameters, gradients, two tensors of Adam, and what layers keep of the microbatches in
    flight, times the largest ratio of measured to so modelled peaks on the same cluster.
    """
    folder = data / "sailor"
    cases: dict[tuple[tuple[tuple[Node, int], ...], int], list[_Measured]] = {}
    for plan in _validation(folder):
        counted = Counter(node for stage in plan.stages for node in stage)
        cases.setdefault((tuple(sorted(counted.items())), plan.batch), []).append(plan)
    for (nodes, batch), measured in cases.items():
        scale = max(plan.memory / _peak(folder, plan) for plan in measured)
        choices = []
        for stages in _arrangements(dict(nodes)):
            for microbatch in _microbatches(folder, nodes):
                if batch % (microbatch * len(stages[0])) == 0:
                    layout = sailor_layout(
                        folder, stages, microbatch, batch, scale=scale, blocking=blocking
                    )
                    name = f"{len(stages[0])} × {len(stages)} stages, microbatch {microbatch}"
                    where = tuple(
                        "+".join(
                            f"{count} {gpu}" for (gpu, _), count in sorted(Counter(stage).items())
                        )
                        for stage in stages
                    )
                    choices.append(Choice(layout, name, where))
        text = ", ".join(f"{count} × {degree} {gpu}" for (gpu, degree), count in nodes)
        yield Case(
            f"{text}, batch {batch}",
            "Sailor",
            tuple(plan.name for plan in measured),
            tuple(choices),
            f" (memory × {scale:.2f})",
        )


def _arrangements(nodes: dict[Node, int]) -> Iterator[tuple[tuple[Node, ...], ...]]:
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
) -> Iterator[tuple[tuple[Node, ...], ...]]:
    """Yield choices of as many rows, in their order, that the nodes suffice for."""
    if pipelines == 0:
        yield ()
        return
    for i, row in enumerate(rows):
        used = Counter(row)
        if all(left[node] >= count for node, count in used.items()):
            for others in _multisets(rows[i:], pipelines - 1, left - used):
                yield (row, *others)


def _microbatches(folder: Path, nodes: Sequence[tuple[Node, int]]) -> list[int]:
    """Return the microbatches that were measured on all types of node."""
    found: set[int] | None = None
    for (gpu, degree), _ in nodes:
        path = folder / "profiles" / _MODEL / gpu / "profile.json"
        document = json.loads(path.read_text(encoding="utf-8"))
        here = {int(m) for m, degrees in document.items() if str(degree) in degrees}
        found = here if found is None else found & here
    return sorted(found or ())


@cache
def _held(folder: Path, degree: int) -> tuple[Times, Times]:
    """Return sums of bytes that GPUs hold by layer: of parameters, and of a sample in flight."""
    found = layers(folder, _MODEL, degree)
    parameters, kept = (
        np.array([0, *(round(layer[key]) for layer in found)]).cumsum()
        for key in ("params_bytes", "act_mem_bytes")
    )
    return parameters, kept


def _bytes(
    folder: Path, stages: int, s: int, degree: int, microbatch: int, microbatches: int
) -> Times:
    """Return what a GPU of stage ``s`` holds with the layers from ``i`` to ``j − 1``."""
    parameters, kept = _held(folder, degree)
    flying = min(stages - s, microbatches) * microbatch
    total = _COPIES * parameters + flying * kept
    return np.asarray(total[None, :] - total[:, None])


def _peak(folder: Path, plan: _Measured) -> float:
    """Return the bytes that the fullest GPU of a plan is modelled to hold."""
    stages, microbatches = len(plan.stages), _microbatches_of(plan)
    return max(
        float(
            _bytes(folder, stages, s, degree, plan.microbatch, microbatches)[
                plan.cuts[s], plan.cuts[s + 1]
            ]
        )
        for s, stage in enumerate(plan.stages)
        for _, degree in stage
    )


def _microbatches_of(plan: _Measured) -> int:
    return plan.batch // (plan.microbatch * len(plan.stages[0]))


def sailor_layout(
    folder: Path,
    stages: Sequence[Sequence[Node]],
    microbatch: int,
    batch: int,
    *,
    scale: float,
    blocking: bool,
) -> Layout:
    """Return the layout of nodes by stage and pipeline.

    Parameters
    ----------
    scale : float
        Of modelled memory.
    """
    count, pipelines = len(stages), len(stages[0])
    microbatches = batch // (microbatch * pipelines)
    profiles = [
        [plans.profile_of(folder, gpu, microbatch, degree) for gpu, degree in stage]
        for stage in stages
    ]
    length = len(profiles[0][0].forward)
    square = (count, length + 1, length + 1)
    transfer = np.zeros((pipelines, count, length))
    finish, fits = np.zeros(square), np.ones(square, dtype=np.bool_)
    for s, stage in enumerate(stages):
        update = np.zeros((length + 1, length + 1))
        held = np.zeros_like(update)
        for r, (gpu, degree) in enumerate(stage):
            profile = profiles[s][r]
            update = np.maximum(update, _between_sums(profile.update))
            held = np.maximum(held, degree * _between_sums(profile.parameters))
            if s + 1 < count:
                rate = min(
                    plans.rate_of(folder, gpu, degree), plans.rate_of(folder, *stages[s + 1][r])
                )
                transfer[r, s] = np.array(profile.activations + [0.0] * length)[:length] / rate
            memory = _bytes(folder, count, s, degree, microbatch, microbatches)
            fits[s] &= memory * scale <= MEMORY[gpu] * (1 + 1e-9)
        slowest = min(plans.rate_of(folder, *node) for node in stage)
        finish[s] = ring_allreduce(pipelines, 1.0, slowest) * held + update
    forward, backward = (
        [[getattr(profiles[s][r], way) for s in range(count)] for r in range(pipelines)]
        for way in ("forward", "backward")
    )
    return _layout(forward, backward, transfer, np.maximum(finish, 0), fits, microbatches, blocking)


def _between_sums(values: Sequence[float]) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Return the sums of the values from ``i`` to ``j − 1``."""
    sums = np.concatenate(([0.0], np.cumsum(values)))
    return np.asarray(sums[None, :] - sums[:, None])


# --- AMP -----------------------------------------------------------------------------------------


def amp(data: Path, *, blocking: bool) -> Iterator[Case]:
    """Yield AMP's cluster, with the layouts whose trial ran, and the node of T4 at any place.

    The source tells no memory. A layout (degrees and microbatch) of which a trial did not run is
    left out. No stage may begin with the loss: the logits would have to cross, which the model of
    transfers does not know.
    """
    folder = data / "amp"
    choices: list[Choice] = []
    names = []
    for line in (folder / "het_cluster_results.txt").read_text(encoding="utf-8").splitlines():
        found = plans.TRIAL.match(line)
        if found is None or found["measured"] == "inf":
            continue
        microbatch, mp, dp, pp = (int(found[key]) for key in ("microbatch", "mp", "dp", "pp"))
        name = f"mp{mp} dp{dp} pp{pp} mb{microbatch}"
        names.append(name)
        for order in sorted(set(permutations((0, 0, 0, 3)))) if pp > 1 else ((0, 0, 0, 3),):
            layout = amp_layout(folder, order, microbatch, mp, dp, pp, blocking=blocking)
            choices.append(Choice(layout, name, _stages(order, mp, dp, pp)))
    yield Case(
        f"3 nodes of 4 V100 (P3), 1 of 4 T4 (G4), batch {plans.BATCH}",
        "AMP",
        tuple(names),
        tuple(choices),
        "",
    )


def _stages(order: Sequence[int], mp: int, dp: int, pp: int) -> tuple[str, ...]:
    """Write what each stage runs on."""
    found = []
    for s in range(pp):
        places = (plans.node_of(s, d, mp, dp) for d in range(dp))
        counts = Counter(plans.NODES[order[place]][0] for place in places)
        found.append("+".join(f"{count} {node}" for node, count in sorted(counts.items())))
    return tuple(found)


def amp_layout(
    folder: Path,
    order: Sequence[int],
    microbatch: int,
    mp: int,
    dp: int,
    pp: int,
    *,
    blocking: bool,
) -> Layout:
    """Return the layout of degrees and microbatch.

    Parameters
    ----------
    order : sequence of int
        A node of :data:`bench.reality.plans.NODES` for each place.
    """
    rate, length = plans.NODES[-1][2], plans.LAYERS
    # Places tell nodes apart, and types say how fast they are.
    places = [[plans.node_of(s, d, mp, dp) for s in range(pp)] for d in range(dp)]
    square = (pp, length + 1, length + 1)
    forward, backward, transfer = (np.zeros((dp, pp, length)) for _ in range(3))
    finish, fits = np.zeros(square), np.ones(square, dtype=np.bool_)
    nodes = _numbered(order)
    for d, held in enumerate(places):
        at = [[nodes[place] for place in other] for other in places]
        for s, place in enumerate(held):
            forward[d, s], backward[d, s] = plans.passes(folder, nodes[place], mp, microbatch, rate)
            if s + 1 < pp:
                transfer[d, s] = plans.amp_transfer(at, at[d], s, microbatch, rate)
    for s in range(pp):
        fits[s, length - 1, :] = False
        here = [nodes[held[s]] for held in places]
        for i in range(length):
            for j in range(i + 1, length + 1):
                finish[s, i, j] = plans.amp_allreduce(range(i, j), here, mp, rate)
    return _layout(
        forward, backward, transfer, finish, fits, plans.BATCH // (dp * microbatch), blocking
    )


def _numbered(order: Sequence[int]) -> list[int]:
    """Return a different node for each place: those of V100 are alike."""
    left = list(range(len(plans.NODES)))
    found = []
    for node in order:
        kind = plans.NODES[node][0]
        chosen = next(n for n in left if plans.NODES[n][0] == kind)
        left.remove(chosen)
        found.append(chosen)
    return found


# --- the same model ------------------------------------------------------------------------------


def predicted(data: Path, source: str, name: str, *, blocking: bool) -> float:
    """Return what the layouts predict for a measured plan, in seconds."""
    if source == "Sailor":
        folder = data / "sailor"
        plan = next(each for each in _validation(folder) if each.name == name)
        layout = sailor_layout(
            folder, plan.stages, plan.microbatch, plan.batch, scale=0.0, blocking=blocking
        )
        return iteration_time(layout, plan.cuts) / _NANOSECONDS
    folder = data / "amp"
    for line in (folder / "het_cluster_results.txt").read_text(encoding="utf-8").splitlines():
        found = plans.TRIAL.match(line)
        if found is not None:
            microbatch, mp, dp, pp = (int(found[key]) for key in ("microbatch", "mp", "dp", "pp"))
            if f"mp{mp} dp{dp} pp{pp} mb{microbatch}" == name:
                layout = amp_layout(
                    folder, range(len(plans.NODES)), microbatch, mp, dp, pp, blocking=blocking
                )
                cuts = tuple(int(each) for each in found["cuts"].split(","))
                return iteration_time(layout, cuts) / _NANOSECONDS
    raise ValueError(f"no plan {name}")
