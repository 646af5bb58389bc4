"""Training graphs from PipeDream's ``graph.txt`` (:mod:`optpart.interop.formats.pipedream`).

Times of forward and backward pass were measured on one GPU for one minibatch, whose size the file
does not say: the user has to. They are taken to be proportional to the samples (``α = 0``), and on
other devices as many times as long as the user says. Activations are proportional as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path

from optpart.applications.training.backward import ForwardOperation, Tensor, batched
from optpart.applications.training.graph import Line, Parameter, TrainingGraph
from optpart.applications.training.layers import measured
from optpart.base.errors import InputError
from optpart.base.rounding import number
from optpart.interop.devices.spec import Spec
from optpart.interop.formats import pipedream
from optpart.problem.rational import Number, rational, shown


def read(
    path: str | Path,
    *,
    minibatch: int,
    slowness: Mapping[str, Number],
    figures: Mapping[str, Spec] | None = None,
    slots: int = 2,
) -> TrainingGraph:
    """Read a profile.

    Parameters
    ----------
    minibatch : int
        Samples that the times and activations of the file are for.
    slowness : mapping from str to number
        Kinds of devices, and how many times as long each takes as the GPU of the profile: 1 for it.
    figures : mapping from str to Spec, optional
        Of each kind, by which updates are timed; without it they take no time.
    slots : int
        Tensors that the optimiser keeps of each trained one.

    Raises
    ------
    InputError
        As :func:`optpart.interop.formats.pipedream.read` does, or if ``minibatch`` or a slowness is
        not positive.
    """
    if minibatch < 1:
        raise InputError("minibatch", shown(minibatch), "give a whole number from 1")
    slow = {kind: rational(value, f"slowness.{kind}") for kind, value in slowness.items()}
    for kind, value in slow.items():
        if value <= 0:
            raise InputError(f"slowness.{kind}", shown(value), "give a number > 0")
    one, both = pipedream.read(path), pipedream.read(path, training=True)
    graph = one.graph
    first, all_ = one.measured[pipedream.GPU], both.measured[pipedream.GPU]
    reads: list[list[Tensor]] = [[] for _ in graph.names]
    place = {v: i for i, v in enumerate(graph.topological_order.tolist())}
    for u, v in zip(graph.edge_source.tolist(), graph.edge_target.tolist(), strict=True):
        reads[place[v]].append(Tensor(place[u]))
    operations = []
    weights = []
    for i, v in enumerate(graph.topological_order.tolist()):
        passed, whole = first[v] or Fraction(0), all_[v] or Fraction(0)
        operations.append(
            ForwardOperation(
                graph.names[v],
                tuple(Line(beta=passed * factor / minibatch) for factor in slow.values()),
                tuple(Line(beta=(whole - passed) * factor / minibatch) for factor in slow.values()),
                tuple(reads[i]),
                (batched(0, graph.tensor_size[v] / minibatch),),
            )
        )
        if graph.memory[v]:
            weights.append(Parameter(f"{graph.names[v]}/weights", graph.memory[v], (i,)))
    factors = ", ".join(f"{number(value, up=True)} ({kind})" for kind, value in slow.items())
    return measured(
        one.name,
        list(slow),
        operations,
        weights,
        figures,
        slots,
        f"profile by PipeDream, minibatch {minibatch}",
        (
            *both.assumed,
            f"Times and activations are proportional to samples, {minibatch} of which were "
            "measured: a single batch does not tell the part that does not grow.",
            f"Kinds take as long as the profile's GPU times {factors}, which was given, not "
            "measured.",
        ),
    )
