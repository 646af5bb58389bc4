"""The order of a training pipeline as the CSV that PyTorch's pipelining reads.

``torch.distributed.pipelining`` loads it by ``_PipelineScheduleRuntime._load_csv(file)``, in the
format ``compute_only``: a row per rank, a cell per action, ``0F1`` for the forward pass of
microbatch 1 through stage 0, ``I`` and ``W`` for the gradients of its input and its weights, ``B``
for both. It adds what is sent and received by itself (PyTorch 2.6 and later).

It keeps losses in the order in which microbatches reach the last stage, and looks them up by
number. So microbatches are numbered anew in this order; they differ in nothing but their data.
"""

from __future__ import annotations

from collections import defaultdict

from optpart.base.errors import InputError
from optpart.base.files import Kind, begins
from optpart.exporters.plan import Plan, Text
from optpart.interop.formats.pipeline_parts import FORWARD, REMEDY, STORE, Pass, pass_of

KIND = Kind("an order of pipeline passes", begins(rb"\d+[FIWB]\d+(,\d+[FIWB]\d+)*\r?\n"))

_RENUMBERED = "Microbatches are numbered anew, as they reach the last stage."
_NO_TIMES = "Start times are not kept: each rank runs its actions one after another."


def torch_schedule(plan: Plan) -> Text:
    """Return the order of each rank; ranks are devices in the order of their first stages.

    Raises
    ------
    InputError
        If a vertex is no pass, a stage is on several devices, or activations are offloaded, for
        which there is no action.
    """
    device: dict[int, str] = {}
    passes: dict[str, list[Pass]] = defaultdict(list)
    stores: dict[str, int] = {}
    for name in plan.in_order(plan.device):
        found = pass_of(name)
        if found is None:
            raise InputError(f"vertex {name!r}", "is no pass of a training pipeline", REMEDY)
        if found.kind == STORE:
            stores[name] = found.stage
            continue
        where = device.setdefault(found.stage, plan.device[name])
        if where != plan.device[name]:
            problem = f"is on {where!r} and on {plan.device[name]!r}"
            raise InputError(f"stage {found.stage}", problem, "keep the passes of a stage together")
        passes[where].append(found)
    for name, stage in stores.items():
        if plan.device[name] != device.get(stage):
            problem = f"offloads to {plan.device[name]!r}, for which PyTorch has no action"
            raise InputError(f"vertex {name!r}", problem, "export a plan that keeps all")
    last = [p for p in passes[device[max(device)]] if p.stage == max(device)]
    number = {p.microbatch: i for i, p in enumerate(p for p in last if p.kind == FORWARD)}
    for each in (p for found in passes.values() for p in found):
        if each.microbatch not in number:
            problem = f"has no forward pass through the last stage, {max(device)}"
            raise InputError(f"microbatch {each.microbatch}", problem, REMEDY)
    ranks = dict.fromkeys(device[stage] for stage in sorted(device))
    named = ", ".join(f"{rank} is {name}" for rank, name in enumerate(ranks))
    rows = ""
    for name in ranks:
        renumbered = [p._replace(microbatch=number[p.microbatch]) for p in passes[name]]
        rows += ",".join(map(str, renumbered)) + "\n"
    remarks = [f"Ranks are devices by their first stages: {named}.", _NO_TIMES]
    return Text(rows, remarks + [_RENUMBERED] * any(i != m for m, i in number.items()))
