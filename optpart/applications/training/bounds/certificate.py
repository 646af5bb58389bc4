"""Certificates of strategy bounds, which ``certificates/check_strategies.py`` verifies.

The file states the graph, the cluster, the actions, and which rows are combined with which whole
multipliers. The checker computes all coefficients itself.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from optpart.applications.training.bounds.program import StrategyBound
from optpart.applications.training.bounds.rows import Row
from optpart.applications.training.graph import Line
from optpart.applications.training.problem import Choices
from optpart.base.errors import InputError
from optpart.base.files import ANY, write_text
from optpart.base.folders import new_folder
from optpart.base.languages import to_json

FORMAT = "optpart-strategy-bound/1"
#: The content that the manifest of a certificate states.
HOLDS = "a certificate"


def certificate(choices: Choices, bound: StrategyBound) -> dict[str, Any]:
    """Return the document that proves a bound.

    Raises
    ------
    InputError
        If the bound says that there is no strategy at all, which certificates do not cover.
    """
    if bound.value is None:
        raise InputError("bound", "no strategy exists", "certificates are for finite bounds only")
    problem = choices.problem
    graph, cluster, options = problem.graph, problem.cluster, problem.options
    distinct = list(dict.fromkeys(action for row in choices.actions for action in row))
    number = {action: i for i, action in enumerate(distinct)}
    return {
        "format": FORMAT,
        "name": graph.name,
        "bound": str(bound.value),
        "batch": problem.batch,
        "options": {
            "tick": None if options.tick is None else str(options.tick),
            "auxiliary": options.auxiliary,
            "memory": options.memory,
            "slots": options.slots,
        },
        "cluster": {
            "kinds": list(problem.kind),
            "servers": list(cluster.servers),
            "memory": [None if m is None else str(m) for m in cluster.cluster.memory],
            "copying": [None if m is None else str(m) for m in cluster.memory_bandwidth],
            "latency": [[str(x) for x in row] for row in cluster.latency],
            "rate": [[None if x is None else str(x) for x in row] for row in cluster.rate],
        },
        "operations": [
            {
                "name": operation.name,
                "role": str(operation.role),
                "times": [_line(line) for line in operation.times],
                "outputs": [[str(out.layout), *_line(out.size)] for out in operation.outputs],
                "splittable": operation.splittable,
            }
            for operation in graph.operations
        ],
        "edges": [[e.producer, e.output, e.consumer] for e in graph.edges],
        "parameters": [{"size": str(p.size), "users": list(p.users)} for p in graph.parameters],
        "groups": [list(group) for group in problem.groups],
        "decisions": [{"replicas": list(a.replicas), "sync": a.sync} for a in distinct],
        "actions": [[number[action] for action in row] for row in choices.actions],
        "rows": [[multiplier, _row(row)] for row, multiplier in bound.multipliers.rows],
        "messages": [
            [g, h, list(one), list(two)]
            for (g, h), (one, two) in bound.multipliers.messages.items()
        ],
    }


def write_certificate(choices: Choices, bound: StrategyBound, folder: str | Path) -> Path:
    """Write a folder with ``certificate.json``; return the path of that.

    Raises
    ------
    InputError
        If the folder cannot be written, or holds anything but a certificate of optpart's.
    """
    text = to_json(certificate(choices, bound)) + "\n"
    with new_folder(folder, HOLDS) as draft:
        write_text(draft / "certificate.json", text, ANY)
    return Path(folder) / "certificate.json"


def _line(line: Line) -> list[str]:
    return [str(line.alpha), str(line.beta)]


def _row(row: Row) -> dict[str, Any]:
    found: dict[str, Any] = {"kind": row.kind}
    if row.resource is not None:
        found["resource"] = list(row.resource)
    if row.kind in ("path", "head", "tail"):
        found |= {"start": row.start, "edges": list(row.edges)}
        found["sample"] = None if row.sample is None else str(row.sample)
    if row.kind in ("load", "head", "tail"):
        found["consumer"] = row.consumer
    return found
