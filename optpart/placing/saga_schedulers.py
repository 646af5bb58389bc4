"""SAGA's schedulers as methods of optpart, and optpart as a scheduler of SAGA.

SAGA (the package ``anrg-saga``, which is not for commercial use) must be installed; nothing here is
of it. A plug-in of two lines makes its schedulers known to every command::

    from optpart.placing.saga_schedulers import register_schedulers
    register_schedulers()

Source: [SAGA] J. Coleman, B. Krishnamachari: PISA: an adversarial approach to comparing task graph
scheduling algorithms, 2024.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from saga import Network, ScheduledTask, Scheduler, TaskGraph
from saga import Schedule as SagaSchedule
from saga import schedulers as saga_schedulers

from optpart.api import solve
from optpart.base.errors import InputError
from optpart.interop.formats import saga
from optpart.methods.registry import register
from optpart.problem.instance import Instance
from optpart.solution.result import Result, conclude
from optpart.solution.schedule import retime

#: The end of the names of SAGA's classes.
_CLASS = "Scheduler"

#: Those that need to be told which others they consist of.
_NOT_ALONE = {"HybridScheduler"}


def register_schedulers() -> list[str]:
    """Register the schedulers of SAGA as methods, such as ``saga-heft``.

    A method takes the device and the order of every vertex from SAGA, which computes in floats, and
    times the schedule anew, exactly. Instances that SAGA cannot express are refused, as by
    :func:`optpart.interop.formats.saga.dumps`.

    Returns
    -------
    list of str
        The names of the methods.
    """
    names = []
    for kind in sorted({*saga_schedulers.__all__} - _NOT_ALONE):
        name = f"saga-{kind.removesuffix(_CLASS).lower()}"
        summary = f"SAGA's {kind}, timed exactly"
        register(name, summary)(partial(_method, name, getattr(saga_schedulers, kind)))
        names.append(name)
    return names


def _method(name: str, kind: type[Scheduler], instance: Instance, **given: Any) -> Result:
    """Solve with a scheduler of SAGA."""
    document = json.loads(saga.dumps(instance))
    graph, network = document["task_graph"], document["network"]
    speeds = {(edge["source"], edge["target"]): edge["speed"] for edge in network["edges"]}
    if any(speeds[e, d] != speed for (d, e), speed in speeds.items()):
        raise InputError("bandwidth", "SAGA's links are alike in both directions", "make them so")
    with _quiet():
        made = kind().schedule(
            Network.create(
                [(node["name"], node["speed"]) for node in network["nodes"]],
                [(*pair, speed) for pair, speed in speeds.items()],
            ),
            TaskGraph.create(
                [(task["name"], task["cost"]) for task in graph["tasks"]],
                [tuple(edge.values()) for edge in graph["dependencies"]],
            ),
        )
    device = instance.cluster.index
    at = {task.name: task for tasks in made.mapping.values() for task in tasks}
    tasks = [at[vertex] for vertex in instance.graph.names]
    position = instance.graph.position
    order = sorted(range(len(tasks)), key=lambda v: (tasks[v].start, tasks[v].end, position[v]))
    schedule = retime(instance, [device[task.node] for task in tasks], order)
    return conclude(instance, name, schedule, seed=given.get("seed", 0))


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep SAGA from warning of the sources and sinks that it adds to every other graph."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)


class OptpartScheduler(Scheduler):  # type: ignore[misc]
    """A method of optpart as a scheduler of SAGA.

    Parameters
    ----------
    method : str
        ``auto`` proves the optimum of small instances.
    seconds : float
        The time limit.

    Attributes
    ----------
    result : Result
        That of the last call, with the proven bound; its times are exact, but transfers within a
        node take no time.
    """

    result: Result

    def __init__(self, method: str = "auto", seconds: float = 60.0) -> None:
        self.method, self.seconds = method, seconds

    def schedule(self, network: Network, task_graph: TaskGraph) -> SagaSchedule:
        """Schedule the tasks; the times of the schedule are those of SAGA's own arithmetic."""
        nodes, edges = sorted(network.nodes), sorted(network.edges)
        document = {
            "task_graph": {
                "tasks": [{"name": t.name, "cost": t.cost} for t in sorted(task_graph.tasks)],
                "dependencies": [edge.model_dump() for edge in sorted(task_graph.dependencies)],
            },
            "network": {
                "nodes": [node.model_dump() for node in nodes],
                "edges": [e.model_dump() for e in edges if e.source != e.target],
            },
        }
        exact = json.loads(json.dumps(document), parse_float=str)
        instance = saga.from_dict(exact, "saga")
        self.result = solve(instance, self.method, seconds=self.seconds)
        if self.result.schedule is None:
            raise ValueError(f"no schedule: {self.result.reason}")
        names, start = instance.graph.names, self.result.schedule.start.fractions()
        position = instance.graph.position
        made = SagaSchedule(task_graph, network)
        for v in sorted(range(len(names)), key=lambda v: (start[v], position[v])):
            node = instance.cluster.names[int(self.result.schedule.placement[v])]
            begin = made.get_earliest_start_time(names[v], node, append_only=True)
            end = begin + task_graph.get_task(names[v]).cost / network.get_node(node).speed
            made.add_task(ScheduledTask(node=node, name=names[v], start=begin, end=end))
        return made
