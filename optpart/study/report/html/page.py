"""The report as one HTML file that opens without a network, and all its data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from optpart.base.escaping import visible
from optpart.base.files import Kind, begins, write_text
from optpart.base.languages import to_json_in_html
from optpart.problem.graph import CONTROL
from optpart.problem.instance import Instance
from optpart.problem.units import with_unit
from optpart.solution.claim import Claim
from optpart.solution.goal import BOUND_KEYS
from optpart.solution.result import Result
from optpart.study import library
from optpart.study.report.gantt.colours import colouring_of
from optpart.study.report.html.detail import (
    MOST_STEPS,
    encoded,
    encoded_all,
    encoded_or_none,
    schedule_data,
)
from optpart.study.report.html.groups import groups_of
from optpart.study.report.html.reasons import SECONDS, reasons_of
from optpart.study.report.html.sources import Entry, Subject
from optpart.study.report.text import claimed
from optpart.version import __version__

#: Ends of the names of pages.
PAGES = (".html", ".htm")
KIND = Kind("a report", begins(rb"(?s)<!DOCTYPE html>.{0,999}<title>optpart report</title>"))

#: Up to this many vertices, times the number of schedules, every vertex is in the page.
WHOLE = 10_000

#: Most results of an instance whose schedules are in a page; the best ones.
SCHEDULES = 8

#: Most devices, intervals, and vertices of an interval, that a bound lists.
_LISTED = 12

#: Seconds for the bounds of several instances that take longer, each, over all instances.
_SECONDS_OF_ALL = 20.0

#: Most instances that a page shows more of than a row of its table.
INSTANCES = 100


def write_report(
    subjects: Sequence[Subject], path: str | Path, *, certificate: str | None = None
) -> None:
    """Write the report, completely or not at all.

    Parameters
    ----------
    subjects : sequence of Subject
        One for each instance.
    certificate : str, optional
        What a certificate proves, as its checker says.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    write_text(path, page(pages_data(subjects, certificate)), KIND)


def page(data: dict[str, Any]) -> str:
    """Return the page that shows the data."""
    return filled(
        "page.html",
        {
            "head": head("report", asset("page.css")),
            "data": to_json_in_html(data),
            "library": asset("vendor/echarts.min.js"),
            "script": asset("page.js"),
        },
    )


def head(kind: str, style: str, scripts: str = " script-src 'unsafe-inline';") -> str:
    """Return what every page begins with, by which it loads nothing from anywhere else."""
    return filled("head.html", {"kind": kind, "style": style, "scripts": scripts})


def filled(template: str, parts: Mapping[str, str]) -> str:
    """Return a template of this folder with a part in place of each ``{{name}}``."""
    whole, *rest = asset(template).split("{{")
    for piece in rest:
        name, _, after = piece.partition("}}")
        whole += parts[name] + after
    return whole


def asset(name: str) -> str:
    """Return the text of a file of this folder."""
    return resources.files("optpart.study.report.html").joinpath(name).read_text(encoding="utf-8")


def page_data(
    subject: Subject,
    certificate: str | None = None,
    *,
    whole_up_to: int | None = None,
    seconds: float = SECONDS,
) -> dict[str, Any]:
    """Return everything that the page of a report shows of one instance.

    Parameters
    ----------
    certificate : str, optional
        What a certificate proves, as its checker says.
    whole_up_to : int, optional
        Most vertices, over all schedules, that are shown one by one; by default :data:`WHOLE`.
    seconds : float
        Limit for each bound that takes longer.
    """
    instance = subject.instance
    shown = _shown(subject.entries)
    scheduled = sum(
        i in shown and e.result.schedule is not None for i, e in enumerate(subject.entries)
    )
    whole = instance.vertices * max(1, scheduled) <= (WHOLE if whole_up_to is None else whole_up_to)
    labels = _labels(subject.entries)
    results = [
        _result(entry, label, with_schedule=i in shown, whole=whole)
        for i, (entry, label) in enumerate(zip(subject.entries, labels, strict=True))
    ]
    placements = [
        (i, entry.result.schedule.placement)
        for i, entry in enumerate(subject.entries)
        if i in shown and entry.result.schedule is not None
    ]
    return {
        "optpart": __version__,
        "instance": _instance(instance),
        "whole": whole,
        "graph": _graph(instance, placements, whole=whole),
        "reasons": _reasons(subject, seconds),
        "certificate": _certificate(subject, certificate),
        "results": results,
    }


def pages_data(subjects: Sequence[Subject], certificate: str | None = None) -> dict[str, Any]:
    """Return everything that the page of a report shows: of one instance, or of several.

    Of several, ``instances`` has the rows of a table, and ``reports`` what :func:`page_data`
    returns for the first :data:`INSTANCES` of them.
    """
    if len(subjects) == 1:
        return page_data(subjects[0], certificate)
    drawn = subjects[:INSTANCES]
    reports = [
        page_data(
            subject,
            whole_up_to=max(200, 4 * WHOLE // len(drawn)),
            seconds=min(SECONDS, _SECONDS_OF_ALL / len(drawn)),
        )
        for subject in drawn
    ]
    return {
        "optpart": __version__,
        "instances": [_row(subject) for subject in subjects],
        "reports": reports,
    }


def _row(subject: Subject) -> dict[str, Any]:
    """Return what the table of several instances shows of one."""
    instance, known = subject.instance, library.known(subject.instance)
    results = [entry.result for entry in subject.entries]
    told = [one for one in results if not one.given and not one.refused]
    bounds = [one.lower_bound for one in told]
    bounds += [one.claim.lower_bound for one in told if one.claim is not None]
    if known is not None:
        bounds.append(known.bound)
    return {
        "name": visible(instance.name),
        "time_unit": with_unit("", instance.time_unit),
        "vertices": instance.vertices,
        "devices": instance.devices,
        "bound": encoded_or_none(max((one for one in bounds if one is not None), default=None)),
        "runs": [
            {
                "method": visible(one.method),
                "makespan": encoded_or_none(one.makespan),
                "status": _status(one),
            }
            for one in results
        ],
    }


def _status(result: Result) -> str:
    if result.refused:
        return "refused"
    infeasible = result.claim is not None and result.claim.infeasible
    return "claims INFEASIBLE" if infeasible else str(result.status)


def _claimed(claim: Claim) -> dict[str, Any]:
    return {
        "said": visible(str(claim)),
        "text": visible(claimed(claim)),
        "infeasible": claim.infeasible,
        **{key: encoded_or_none(claim.bounds.get(m)) for m, key in BOUND_KEYS.items()},
    }


def _shown(entries: tuple[Entry, ...]) -> set[int]:
    """Return which schedules are in the page: if there are too many, the best ones."""

    def worth(i: int) -> tuple[bool, Any, int]:
        makespan = entries[i].result.makespan
        return makespan is None, makespan or 0, i

    return set(sorted(range(len(entries)), key=worth)[:SCHEDULES])


def _labels(entries: tuple[Entry, ...]) -> list[str]:
    """Name each result by its method and, where that is ambiguous, its seed and its source."""
    names = [visible(entry.result.method) for entry in entries]
    additions = (
        [f", seed {entry.result.seed}" for entry in entries],
        [f", {visible(Path(entry.source).name)}" for entry in entries],
        [f" ({i + 1})" for i in range(len(entries))],
    )
    for added in additions:
        count = Counter(names)
        names = [
            name + more if count[name] > 1 else name
            for name, more in zip(names, added, strict=True)
        ]
    return names


def _instance(instance: Instance) -> dict[str, Any]:
    cluster, model = instance.cluster, instance.model
    known = library.known(instance)
    return {
        "name": visible(instance.name),
        "sha256": instance.sha256,
        "time_unit": with_unit("", instance.time_unit),
        "vertices": instance.vertices,
        "edges": len(instance.graph.edge_source),
        "communication": model.communication,
        "memory": model.memory,
        "given_durations": instance.given_durations is not None,
        "devices": [
            {
                "name": visible(cluster.names[d]),
                "type": None if cluster.types[d] is None else visible(str(cluster.types[d])),
                "speed": encoded(cluster.speed[d]),
                "memory": encoded_or_none(cluster.memory[d]),
            }
            for d in range(instance.devices)
        ],
        "known": None
        if known is None
        else {"makespan": encoded_or_none(known.makespan), "bound": encoded_or_none(known.bound)},
    }


def _result(entry: Entry, label: str, *, with_schedule: bool, whole: bool) -> dict[str, Any]:
    result = entry.result
    numbers = (
        "makespan", "lower_bound", "traffic", "traffic_bound", "bottleneck", "bottleneck_bound",
    )  # fmt: skip
    return {
        "label": label,
        "source": visible(entry.source),
        "method": visible(result.method),
        "status": str(result.status),
        "termination": None if result.termination is None else str(result.termination),
        "reason": visible(result.reason),
        "given": visible(result.given),
        "objective": result.objective,
        **{name: encoded_or_none(getattr(result, name)) for name in numbers},
        "claimed": None if result.claim is None else _claimed(result.claim),
        "gap": result.gap,
        "seconds": result.seconds,
        "seed": result.seed,
        "workers": result.workers,
        "refused": result.refused,
        "contiguous": result.contiguous,
        "device_order": [visible(result.instance.cluster.names[d]) for d in result.device_order],
        "schedule_by": visible(result.schedule_by),
        "bound_by": visible(result.bound_by),
        "versions": {visible(k): visible(v) for k, v in result.versions.items()},
        "trace": [
            [step.seconds, encoded_or_none(step.objective), encoded_or_none(step.bound)]
            for step in result.trace
        ],
        "has_schedule": result.schedule is not None,
        "schedule": schedule_data(result, whole=whole) if with_schedule else None,
    }


def _reasons(subject: Subject, seconds: float) -> list[dict[str, Any]]:
    instance = subject.instance
    names, devices = instance.graph.names, instance.cluster.names
    found = [entry.result.makespan for entry in subject.entries]
    least = min((one for one in found if one is not None), default=None)

    def shares(rows: Iterable[tuple[int, Fraction]], of: Sequence[str]) -> list[list[Any]]:
        return [[visible(of[i]), encoded(share)] for i, share in rows]

    return [
        {
            "name": reason.name,
            "value": encoded(reason.value),
            "exact": reason.exact,
            "length": len(reason.path),
            "path": [[visible(names[v]), visible(devices[d])] for v, d in reason.path[:MOST_STEPS]],
            "vertex": visible(names[reason.vertex]) if reason.vertex >= 0 else "",
            "devices": shares(reason.devices[:_LISTED], devices),
            "memory": [visible(devices[d]) for d in reason.memory[:_LISTED]],
            "refuted": encoded_or_none(reason.length),
            "required": encoded_or_none(reason.required),
            "room": encoded_or_none(reason.room),
            "more": max(0, len(reason.intervals) - _LISTED),
            "intervals": [
                {
                    "device": one.device,
                    "start": encoded(one.start),
                    "end": encoded(one.end),
                    "weight": encoded(one.weight),
                    "side": one.side,
                    "of": visible(names[one.of]) if one.of >= 0 else "",
                    "rest": encoded(one.rest),
                    "elsewhere": encoded_or_none(one.elsewhere),
                    "count": len(one.vertices),
                    "work": encoded(sum((time for _, time in one.vertices), Fraction(0))),
                    "vertices": shares(one.vertices[:_LISTED], names),
                }
                for one in reason.intervals[:_LISTED]
            ],
        }
        for reason in reasons_of(instance, least, seconds)
    ]


def _certificate(subject: Subject, said: str | None) -> dict[str, str] | None:
    if said is not None:
        return {"kind": "checked", "text": visible(said)}
    known = library.known(subject.instance)
    if known is not None and library.certificate(known.name) is not None:
        return {"kind": "library", "text": visible(known.name)}
    return None


def _graph(instance: Instance, placements: list[tuple[int, Any]], *, whole: bool) -> dict[str, Any]:
    graph = instance.graph
    colouring = colouring_of(instance)
    groups = groups_of(graph) if whole else groups_of(graph, max(40, instance.vertices // 400))
    data: dict[str, Any] = {
        "by": groups.by,
        "names": [visible(name) for name in groups.names],
        "parent": groups.parent,
        "kinds": {
            "labels": [visible(label) for label in colouring.labels],
            "colours": list(colouring.colours),
        },
    }
    if whole:
        data |= {
            "vertex": [visible(name) for name in graph.names],
            "of": groups.of,
            "kind": colouring.of.tolist(),
            "ops": encoded_all(graph.ops),
            "source": graph.edge_source.tolist(),
            "target": graph.edge_target.tolist(),
            "tensor": graph.edge_tensor.tolist(),
            "producer": graph.tensor_vertex.tolist(),
            "output": [None if k == CONTROL else k for k in graph.tensor_output.tolist()],
            "size": encoded_all(graph.tensor_size),
        }
        return data
    of = np.array(groups.of, dtype=np.int64)
    count = len(groups.names)
    data["count"] = np.bincount(of, minlength=count).tolist()
    data["shares"] = {
        str(i): _counts(of, placement, count, instance.devices) for i, placement in placements
    }
    data["edges"] = _group_edges(instance, of, placements)
    return data


def _counts(of: Any, placement: Any, groups: int, devices: int) -> list[list[int]]:
    """Return how many vertices of each group each device runs."""
    counts = np.zeros((groups, devices), dtype=np.int64)
    np.add.at(counts, (of, placement), 1)
    found: list[list[int]] = counts.tolist()
    return found


def _group_edges(instance: Instance, of: Any, placements: list[tuple[int, Any]]) -> list[list[Any]]:
    """Return per pair of groups its edges and, for each schedule, crossings and their size."""
    graph = instance.graph
    source, target = of[graph.edge_source], of[graph.edge_target]
    between = source != target
    edges = Counter(zip(source[between].tolist(), target[between].tolist(), strict=True))
    tensors = graph.edge_tensor.tolist()
    crossing: list[dict[tuple[int, int], set[tuple[int, int]]]] = []
    for _, placement in placements:
        there = placement[graph.edge_target]
        over = np.flatnonzero((placement[graph.edge_source] != there) & between)
        pairs: dict[tuple[int, int], set[tuple[int, int]]] = {}
        for e in over.tolist():
            pair = int(source[e]), int(target[e])
            pairs.setdefault(pair, set()).add((tensors[e], int(there[e])))
        crossing.append(pairs)
    sizes = graph.tensor_size
    rows: list[list[Any]] = []
    for pair, number in edges.items():
        row: list[Any] = [*pair, number]
        for pairs in crossing:
            inside = pairs.get(pair, set())
            size = sum((sizes[tensor] for tensor, _ in inside), Fraction(0))
            row.append([len(inside), encoded(size)])
        rows.append(row)
    return rows
