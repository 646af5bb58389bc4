"""A step of training on the stages of a pipeline, with its backward passes in two parts."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, Literal

import numpy as np

from optpart.base.errors import InputError
from optpart.base.limits import MOST_DEVICES, check_devices, check_size
from optpart.interop.formats.pipeline_parts import BOTH, FORWARD, INPUT, STORE, WEIGHT, Pass
from optpart.interop.generate import draw
from optpart.interop.generate.draw import Range, Seed
from optpart.interop.generate.option import Option
from optpart.problem.cluster import Cluster, Device
from optpart.problem.graph import GraphBuilder
from optpart.problem.instance import Instance
from optpart.problem.model import Model

_LONGEST = 10**9


def training_pipeline(
    seed: Seed = 0,
    *,
    devices: Annotated[int, Option(1, MOST_DEVICES)] = 4,
    microbatches: Annotated[int, Option(1, 10_000)] = 8,
    chunks: Annotated[int, Option(1, 1000, "Stages per device.")] = 1,
    shape: Annotated[
        Literal["loop", "v"],
        Option(help="Several stages per device: from the last device on to the first, or back."),
    ] = "loop",
    forward: Annotated[Range, Option(0, _LONGEST, "Time of a forward pass.")] = (10, 10),
    backward: Annotated[Range, Option(0, _LONGEST, "Of a gradient of the input.")] = (10, 10),
    weight: Annotated[Range, Option(0, _LONGEST, "Of a gradient of the weights.")] = (10, 10),
    joined: Annotated[bool, Option(help="Both gradients of a pass in one task.")] = False,
    transfer: Annotated[int, Option(0, _LONGEST, "Time between two devices.")] = 0,
    activations: Annotated[
        int, Option(0, _LONGEST, "What a forward pass leaves for the gradient of the weights.")
    ] = 1,
    released: Annotated[
        int, Option(0, _LONGEST, "What it leaves for the gradient of the input alone.")
    ] = 0,
    memory: Annotated[
        int | None, Option(0, _LONGEST, "Of each device; by default without limit.")
    ] = None,
    offload: Annotated[
        int | None,
        Option(0, _LONGEST, "Time to move what a forward pass leaves to a host, or back."),
    ] = None,
    host_memory: Annotated[
        int | None, Option(0, _LONGEST, "Of the host of each device; by default without limit.")
    ] = None,
) -> Instance:
    """Build a training step: forward passes, and gradients of inputs and of weights.

    Every microbatch passes forward through all stages, and back through all. Microbatches are alike
    and enter by number; which one overtakes another later is open. A backward pass is two
    tasks, as in zero-bubble schedules (Qi et al. 2023): the gradient of the stage's input (``I``),
    for which the stage before waits, and that of its weights (``W``), for which nothing waits.
    Passes of a stage take the same time for each microbatch, drawn from the given ranges once per
    stage. What a forward pass leaves is held from its start until the gradients that need it have
    ended (memory model ``refcount``); what is sent between devices takes time, but no memory.

    With ``joined``, both gradients are one task (``B``), as without zero-bubble schedules.

    With ``offload``, every device has a host. What a forward pass leaves is stored (``S``) on the
    device or on its host. To a host it takes ``offload``, and as long back, where what a gradient
    needs comes back once, before it; tensors share this time by their sizes. A link carries one
    transfer at a time in each direction. The device is free of what leaves it when that has
    arrived, and holds what comes back from the start of the transfer.

    Parameters
    ----------
    chunks : int
        Stages per device. Stage ``s`` is on device ``s mod devices`` (``loop``), or, with 2 chunks,
        on the device that it meets on the way there and back (``v``).

    Returns
    -------
    Instance
        With communication ``delay``, or ``link`` with ``offload``; its makespan is the time of a
        step, without the update of weights.
    """
    draw.count(devices, "devices", least=1, most=MOST_DEVICES)
    draw.count(microbatches, "microbatches", least=1)
    draw.count(chunks, "chunks", least=1)
    if shape == "v" and chunks != 2:
        raise InputError("chunks", f"{chunks}, where a V has two", "give chunks 2, or shape loop")
    stages = devices * chunks
    size = activations + released
    _check_offload(offload, host_memory, memory, size)
    if offload is not None:
        check_devices(2 * devices, "devices and their hosts")
    kinds = (2 if joined else 3) + (offload is not None)
    check_size(kinds * stages * microbatches, place="microbatches")
    rng = draw.generator(seed)
    ranges = {FORWARD: forward, INPUT: backward, WEIGHT: weight}
    names = ("forward", "backward", "weight")
    times = {
        kind: draw.integers(rng, draw.bounds(within, name), stages).tolist()
        for name, (kind, within) in zip(names, ranges.items(), strict=True)
    }
    turn = np.arange(stages) % devices
    if shape == "v":
        turn[devices:] = turn[devices:][::-1]
    graph = GraphBuilder()
    for m in range(microbatches):
        for s in range(stages):
            tasks = {FORWARD: times[FORWARD][s], INPUT: times[INPUT][s], WEIGHT: times[WEIGHT][s]}
            if joined:
                tasks = {FORWARD: tasks[FORWARD], BOTH: tasks[INPUT] + tasks[WEIGHT]}
            for kind, time in tasks.items():
                left = [0] * (kind != WEIGHT)
                if kind == FORWARD:
                    left += [activations, released] if offload is None else [size]
                graph.vertex(str(Pass(s, kind, m)), time, outputs=left, devices=[f"d{turn[s]}"])
            if offload is not None:
                where, left = [f"d{turn[s]}", f"host{turn[s]}"], [activations, released]
                graph.vertex(str(Pass(s, STORE, m)), 0, outputs=left, devices=where)
        if m:  # microbatches are alike, so that this order is as good as any
            graph.edge(str(Pass(0, FORWARD, m - 1)), str(Pass(0, FORWARD, m)), None)
        back = BOTH if joined else INPUT
        for s in range(stages):
            ahead, first, last = (str(Pass(s, k, m)) for k in (FORWARD, back, WEIGHT))
            if s + 1 < stages:
                graph.edge(ahead, str(Pass(s + 1, FORWARD, m)))
                graph.edge(str(Pass(s + 1, back, m)), first)
            kept, output = ahead, 1
            if offload is not None:
                kept, output = str(Pass(s, STORE, m)), 0
                graph.edge(ahead, kept, 1)
                graph.edge(ahead, first, None)
            # What is nothing must not wait for a link.
            if offload is None or released:
                graph.edge(kept, first, output + 1)
            if offload is None or activations:
                graph.edge(kept, first if joined else last, output)
            if not joined:
                graph.edge(first, last, None)
    places = [Device(f"d{d}", memory=memory) for d in range(devices)]
    if offload is None:
        cluster = Cluster.of(places, latency=transfer)
    else:
        hosts = [Device(f"host{d}", memory=host_memory) for d in range(devices)]
        cluster = _with_hosts(places, hosts, transfer, Fraction(size, offload) if offload else None)
    way = "" if chunks == 1 else f"-{chunks}{shape}"
    away = "" if offload is None else "-offload"
    return Instance(
        graph.build(),
        cluster,
        Model("delay" if offload is None else "link", "none" if memory is None else "refcount"),
        name=f"training-pipeline-{devices}-{microbatches}{way}{'-joined' * joined}{away}",
        source="a training step on the stages of a pipeline",
    )


def _check_offload(
    offload: int | None, host_memory: int | None, memory: int | None, size: int
) -> None:
    """Refuse hosts that nobody asked for, and offloading that is of no use."""
    if offload is None:
        if host_memory is not None:
            raise InputError("host_memory", "there are no hosts", "give offload, or leave it out")
    elif memory is None:
        raise InputError("offload", "memory has no limit, so all can be kept", "give memory, too")
    elif not size:
        raise InputError("offload", "a forward pass leaves nothing", "give activations, too")


def _with_hosts(
    devices: list[Device], hosts: list[Device], transfer: int, rate: Fraction | None
) -> Cluster:
    """Link each device with the others, and with its host, which has no other link."""
    k = len(devices)
    bandwidth: list[list[Fraction | None]] = [[Fraction(0)] * (2 * k) for _ in range(2 * k)]
    latency = [[0] * (2 * k) for _ in range(2 * k)]
    for d in range(k):
        bandwidth[d][:k], latency[d][:k] = [None] * k, [transfer] * k
        bandwidth[d][k + d] = bandwidth[k + d][d] = rate
    return Cluster.of([*devices, *hosts], bandwidth, latency)
