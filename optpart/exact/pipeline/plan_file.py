"""The file of a pipeline plan, ``optpart-pipeline/1``."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

from optpart.base.errors import FaultsOf, InputError
from optpart.base.files import Kind, of_format, read_text, write_text
from optpart.exact.pipeline.plan import PipelinePlan
from optpart.exact.pipeline.problem import Pipeline
from optpart.exact.pipeline.splits import Stage
from optpart.exact.pipeline.verifier import loads, violations
from optpart.interop.formats.json import keys, parse_json, pretty, sequence, text, version
from optpart.problem.rational import rational

FORMAT = "optpart-pipeline/1"
KIND = Kind("a pipeline plan", of_format(FORMAT))

_TOP = {
    "format", "pipeline", "sha256", "order", "replicas", "status", "bottleneck", "lower_bound",
    "gap", "reason", "seconds", "versions", "stages",
}  # fmt: skip
_STAGE = {"devices", "load", "memory", "vertices"}


def write_plan(plan: PipelinePlan, path: str | Path) -> None:
    """Write a plan, completely or not at all."""
    write_text(path, dumps_plan(plan), KIND)


def dumps_plan(plan: PipelinePlan) -> str:
    """Return the document as text; times and sizes are exact, as strings."""
    return pretty(_document(plan))


def _document(plan: PipelinePlan) -> dict[str, Any]:
    pipeline = plan.pipeline
    stages = [
        {
            "devices": [pipeline.devices[d] for d in stage.devices],
            "load": str(load),
            "memory": str(memory),
            "vertices": [pipeline.vertices[v] for v in stage.vertices],
        }
        for stage, load, memory in zip(plan.stages, plan.loads, plan.memory, strict=True)
    ]
    value = plan.bottleneck
    return {
        "format": FORMAT,
        "pipeline": pipeline.name,
        "sha256": pipeline.sha256,
        "order": [pipeline.devices[d] for d in plan.order] or None,
        "replicas": plan.replicas,
        "status": str(plan.status),
        "bottleneck": None if value is None else str(value),
        "lower_bound": None if plan.bound is None else str(plan.bound),
        "gap": plan.gap,
        "reason": plan.reason,
        "seconds": round(plan.seconds, 6),
        "versions": plan.versions,
        "stages": stages,
    }


def check_plan(pipeline: Pipeline, path: str | Path) -> list[str]:
    """Return what is wrong with a plan file: broken rules, and claims that do not hold.

    A bound is checked only for not exceeding the bottleneck.

    Raises
    ------
    InputError
        If the file cannot be read, or names unknown vertices or devices.
    """
    with FaultsOf(path):
        return list(_faults(pipeline, parse_json(read_text(path))))


def _faults(pipeline: Pipeline, document: Any) -> Iterator[str]:
    version(document, FORMAT)
    keys(document, _TOP, "")
    if document.get("sha256") != pipeline.sha256:
        yield "sha256: the plan was made for another problem"
    stages, claimed = _stages(pipeline, document)
    order = [_number(pipeline.devices, name, "order") for name in document.get("order") or []]
    replicas = document.get("replicas", 1)
    if not isinstance(replicas, int) or isinstance(replicas, bool) or replicas < 1:
        raise InputError("replicas", f"cannot be {replicas!r}", "give a whole number ≥ 1")
    if not stages and document.get("bottleneck") is None:
        return
    broken = list(violations(pipeline, stages, order, replicas))
    yield from broken
    if broken:
        return
    found = loads(pipeline, stages)
    for i, (load, claim) in enumerate(zip(found, claimed, strict=True)):
        if claim is not None and claim != load:
            yield f"stages[{i}].load is {load}, not {claim}"
    value, said = max(found, default=Fraction(0)), document.get("bottleneck")
    if said is not None and rational(said, "bottleneck") != value:
        yield f"bottleneck is {value}, not {said}"
    bound = document.get("lower_bound")
    if bound is not None and rational(bound, "lower_bound") > value:
        yield f"lower_bound {bound} is above the bottleneck {value}"
    closed = bound is not None and rational(bound, "lower_bound") == value
    if document.get("status") == "OPTIMAL" and not closed:
        yield "status is OPTIMAL, but bottleneck and lower_bound differ"


def _stages(pipeline: Pipeline, document: Any) -> tuple[list[Stage], list[Fraction | None]]:
    stages, claimed = [], []
    for i, entry in enumerate(sequence(document.get("stages"), "stages")):
        place = f"stages[{i}]"
        row = keys(entry, _STAGE, place)
        vertices, devices = (
            tuple(
                _number(known, name, f"{place}.{key}")
                for name in sequence(row.get(key), f"{place}.{key}")
            )
            for key, known in (("vertices", pipeline.vertices), ("devices", pipeline.devices))
        )
        stages.append(Stage(vertices, devices))
        load = row.get("load")
        claimed.append(None if load is None else rational(load, f"{place}.load"))
    return stages, claimed


def _number(known: tuple[str, ...], name: Any, place: str) -> int:
    if text(name, place) not in known:
        raise InputError(place, f"no {name!r} in the problem", "use its names")
    return known.index(name)
