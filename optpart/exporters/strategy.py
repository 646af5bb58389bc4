"""Training strategies in the words of runtimes.

The rules are those of TensorFlow's device strings and of PyTorch (``torch.distributed.pipelining``,
``DistributedDataParallel`` and ``torch.distributed.tensor``), as their sources were in 2026.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

from optpart.applications.training.cluster import TrainingCluster
from optpart.applications.training.compiled import Compiled
from optpart.applications.training.graph import Role
from optpart.applications.training.strategy import Decision
from optpart.base.errors import InputError
from optpart.base.files import Kind, begins, of_document
from optpart.base.languages import to_comment, to_json
from optpart.base.registry import Registry
from optpart.exporters.plan import Text
from optpart.exporters.torch import SPLIT, split_spec
from optpart.problem.document import number


def export(compiled: Compiled, to: str) -> Text:
    """Hand a strategy to a target; see :data:`TARGETS`.

    Raises
    ------
    InputError
        If there is no such target, or it cannot express the strategy.
    """
    return target(to).write(compiled)


def target(name: str) -> Target:
    """Return a target by its name."""
    return TARGETS.find(name)


def device_strings(compiled: Compiled) -> Text:
    """Return the device of every operation of the distributed graph, as JSON.

    A server is a task of the job ``worker``, and its devices are its GPUs in their order.
    """
    cluster, instance = compiled.cluster, compiled.instance
    strings = _strings(cluster)
    found, left = {}, 0
    for name, vertex in zip(instance.graph.names, compiled.vertices, strict=True):
        if vertex.device < len(cluster):
            found[name] = strings[vertex.device]
        else:
            left += 1
    remarks = [
        "Names are those of the distributed graph, as `optpart strategy compile` writes it: a "
        "replica is called after its operation and its device.",
        "TensorFlow executes whatever is ready: the order of the strategy is not kept.",
    ]
    if left:
        remarks.append(
            f"{left} operations have no device of their own (AllReduces and shared links): they "
            "are left out."
        )
    return Text(to_json(found, indent=1) + "\n", remarks)


def _strings(cluster: TrainingCluster) -> list[str]:
    count: dict[int, int] = {}
    found = []
    for server in cluster.servers:
        found.append(f"/job:worker/task:{server}/device:GPU:{count.get(server, 0)}")
        count[server] = count.get(server, 0) + 1
    return found


def torch_stages(compiled: Compiled) -> Text:
    """Return the ``split_spec`` of a pipeline of PyTorch, as Python.

    Raises
    ------
    InputError
        If a group has replicas, or the stages are not contiguous.
    """
    graph, names = compiled.graph, compiled.cluster.names
    device: dict[int, int] = {}
    for group, decision in zip(compiled.strategy.groups, compiled.strategy.decisions, strict=True):
        if len(decision.devices) > 1:
            raise InputError(
                f"operation {graph.operations[group[0]].name}",
                f"runs on {', '.join(names[d] for d in decision.devices)}",
                "the stages of torch-stages have one device each; use --to devices",
            )
        device.update(dict.fromkeys(group, decision.devices[0]))
    forward = [o for o in graph.topological_order if graph.operations[o].role is Role.FORWARD]
    stages = [*dict.fromkeys(device[o] for o in forward)]
    stage = {d: s for s, d in enumerate(stages)}
    reads = {
        (edge.producer, edge.output, device[edge.consumer])
        for edge in graph.edges
        if graph.operations[edge.consumer].role is Role.FORWARD
    }
    for edge in graph.edges:
        producer, consumer = (graph.operations[o] for o in (edge.producer, edge.consumer))
        one, two = (stage.get(device[o], -1) for o in (edge.producer, edge.consumer))
        if producer.role is consumer.role is Role.FORWARD:
            wrong = one > two
        elif producer.role is Role.FORWARD:  # a stage has what its forward pass has read
            wrong = one != two and (edge.producer, edge.output, device[edge.consumer]) not in reads
        else:
            wrong = one < two
        if wrong:
            raise InputError(
                f"{producer.name} → {consumer.name}",
                f"goes from {names[device[edge.producer]]} to {names[device[edge.consumer]]}, "
                "against the order of stages",
                "the stages of torch-stages are contiguous; use --to devices",
            )
    order = [names[d] for d in stages]
    first = {device[o]: graph.operations[o].name for o in reversed(forward)}
    remarks = [
        "Names are those of the model's operations; put the names of your modules in their place.",
        "PyTorch schedules microbatches by itself: the order of the strategy is not kept.",
        f"Rank 0 must be {order[0]}: nothing is split."
        if len(stages) == 1
        else f"Ranks 0 and after must be {', '.join(order)}, in this order.",
    ]
    return Text(split_spec(order, [first[d] for d in stages[1:]]), remarks)


def ranks(compiled: Compiled) -> Text:
    """Return the batch size of every rank and the weight of its gradients, as JSON.

    Raises
    ------
    InputError
        If groups have different shares, or all are on one device.
    """
    decision, batch = _uniform(compiled, "ranks"), compiled.strategy.batch
    names, used = compiled.cluster.names, decision.devices
    samples = _whole([decision.shares[d] * batch for d in used])
    rows = [
        {
            "rank": r,
            "device": names[d],
            "samples": samples[r],
            "gradient_weight": number(Fraction(samples[r], batch)),
        }
        for r, d in enumerate(used)
    ]
    remarks = [
        "Gradients have to be summed with these weights, n_d/Σn: a plain average, as that of "
        "DistributedDataParallel, is wrong for uneven shares. There, multiply the mean loss of a "
        f"rank by gradient_weight × {len(used)}.",
    ]
    parts = [decision.shares[d] * batch for d in used]
    if any(part.denominator > 1 for part in parts):
        listed = ", ".join(
            f"{names[d]} {part} → {samples[r]}"
            for r, (d, part) in enumerate(zip(used, parts, strict=True))
        )
        remarks.append(
            f"Shares are no whole numbers of samples and were rounded: {listed}; an iteration "
            "takes other times than the strategy's. A batch that is a multiple of "
            f"{math.lcm(*(decision.shares[d].denominator for d in used))} has whole shares."
        )
    if any(sample == 0 for sample in samples):
        raise InputError("batch", f"{batch} leaves a rank without samples", "give a larger batch")
    if any(d != "allreduce" for d in _syncs(compiled)):
        remarks.append("Parameter servers are not kept: ranks sum their gradients.")
    return Text(to_json({"batch": batch, "ranks": rows}, indent=1) + "\n", remarks)


def dtensor(compiled: Compiled) -> Text:
    """Return the placement of a batch on a mesh of PyTorch, as Python.

    Raises
    ------
    InputError
        If shares are uneven: DTensor has no proportional split.
    """
    decision, names = _uniform(compiled, "dtensor"), compiled.cluster.names
    used, batch = decision.devices, compiled.strategy.batch
    if len({decision.replicas[d] for d in used}) > 1 or batch % len(used):
        listed = ", ".join(f"{names[d]} {decision.shares[d]}" for d in used)
        raise InputError(
            "shares",
            f"are uneven ({listed} of {batch} samples), and DTensor has no proportional split: "
            "Shard cuts into equal chunks",
            "use --to ranks, a batch size for each rank",
        )
    lines = [
        "from torch.distributed.device_mesh import init_device_mesh",
        "from torch.distributed.tensor import Shard, distribute_tensor",
        "",
        to_comment("#", f"ranks 0 to {len(used) - 1}: {', '.join(names[d] for d in used)}"),
        f'mesh = init_device_mesh("cuda", ({len(used)},))',
        "batch = distribute_tensor(batch, mesh, [Shard(0)])",
    ]
    return Text(
        "\n".join(lines) + "\n",
        [f"The batch has {batch} samples; the order of the strategy is not kept."],
    )


def _syncs(compiled: Compiled) -> set[object]:
    return {decision.sync for decision in compiled.strategy.decisions}


def _uniform(compiled: Compiled, target: str) -> Decision:
    """Return the one decision of a strategy that only replicates the whole model."""
    decisions = compiled.strategy.decisions
    shares = {decision.shares for decision in decisions}
    if len(shares) > 1:
        raise InputError(
            "groups",
            f"have {len(shares)} different placements or shares, and ranks have one",
            f"{target} takes replicas of the whole model; use --to devices",
        )
    if len(decisions[0].devices) == 1:
        name = compiled.cluster.names[decisions[0].devices[0]]
        raise InputError("groups", f"are all on {name}", "there is nothing to distribute")
    return decisions[0]


def _whole(parts: list[Fraction]) -> list[int]:
    """Round to whole numbers of the same sum: up where the remainder is largest."""
    found = [math.floor(part) for part in parts]
    left = int(sum(parts)) - sum(found)
    for i in sorted(range(len(parts)), key=lambda i: (found[i] - parts[i], i))[:left]:
        found[i] += 1
    return found


class Target(NamedTuple):
    """A target of strategies: what makes its text, and how files of it are known."""

    write: Callable[[Compiled], Text]
    kind: Kind


def _are_strings(document: dict[str, object]) -> bool:
    return bool(document) and all(str(each).startswith("/job:") for each in document.values())


_ROWS = {
    "devices": Target(device_strings, Kind("devices of operations", of_document(_are_strings))),
    "torch-stages": Target(torch_stages, SPLIT),
    "ranks": Target(
        ranks,
        Kind("batch sizes of ranks", of_document(lambda found: found.keys() == {"batch", "ranks"})),
    ),
    "dtensor": Target(
        dtensor,
        Kind(
            "a placement of a batch",
            begins(
                rb"from torch\.distributed\.device_mesh import init_device_mesh\n"
                rb"from torch\.distributed\.tensor import Shard, distribute_tensor\n"
                rb"(?:\n|#.*\n)*mesh = .*\nbatch = distribute_tensor\(.*\)\n\Z"
            ),
        ),
    ),
}

#: By name.
TARGETS = Registry("to", _ROWS, Target)
