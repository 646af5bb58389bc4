"""Instances on which HeteroG's order is as bad as its bound allows ([G] theorem 2)."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Annotated, NamedTuple

import networkx as nx

from optpart.interop.generate import draw
from optpart.interop.generate.option import Option
from optpart.problem.cluster import Cluster, Device
from optpart.problem.graph import GraphBuilder
from optpart.problem.instance import Instance
from optpart.problem.model import Model

#: The walk visits every link, and with loops every link is a device.
MOST_DEVICES = 50

#: Greatest length of a long task; the ratio converges long before.
LONGEST = 10**9

#: A device, or the link between two.
_Resource = tuple[int, ...]


class _Step(NamedTuple):
    """One resource of the walk, and the length of its long task; ``None`` on a later visit."""

    resource: _Resource
    long: int | None


def heterog_worst(
    devices: Annotated[int, Option(1, MOST_DEVICES, "M.")] = 3,
    length: Annotated[int, Option(1, LONGEST, "Of a long task; a short one takes 1.")] = 1000,
    *,
    loops: Annotated[
        bool,
        Option(help="Also a link from every device to itself; transfers are vertices then."),
    ] = False,
) -> Instance:
    """Return an instance whose order by rank takes about R times as long as the optimal order.

    A walk visits every device and every link. At each step, a short task enables the next step; at
    the first visit of a device or link, a long task becomes ready together with the short one. The
    long task is just long enough to outrank the short one with all its successors. So the order by
    rank runs the long task first, and no two long tasks ever run in parallel. The optimal order
    runs the short tasks first, and then all long ones in parallel.

    Parameters
    ----------
    devices : int
        M ≥ 1.
    length : int
        Length of the shortest long task; a short one takes 1. The ratio approaches R as it grows.
    loops : bool
        Whether to add a link from every device to itself.

    Returns
    -------
    Instance
        With communication ``link`` and R = M² devices and links; every vertex may run on one device
        only. With loops, R = M + M², and transfers are vertices on devices that represent the links
        (see :func:`~optpart.applications.ordering.explicit.explicit`), since a crossing from a
        device to itself takes no time in any communication model.

    Notes
    -----
    [G] states T/T* ≈ M + M² and refers to an appendix for the proof, which its text does not
    include; this family is ours. With links between distinct devices only, M + M² cannot be
    approached: T is at most M² · T* (see
    :func:`~optpart.strategies.scheduling.heterog.heterog`), and this family approaches that.

    Let the walk have S + 1 steps, with long tasks at the first visits of the R resources. The order
    by rank takes the sum of all times, at least R · length. If short tasks run first, each as soon
    as it is ready, they have all ended by S, and every long task by S + length + 2 · S, so
    T* ≤ length + 3 · S.
    """
    draw.count(devices, "devices", least=1, most=MOST_DEVICES)
    draw.count(length, "length", least=1, most=LONGEST)
    steps = _steps(devices, length, loops)
    ratio = "M + M²" if loops else "M²"
    graph, cluster, model = (_with_loops if loops else _with_transfers)(devices, steps)
    return Instance(
        graph.build(),
        cluster,
        model,
        name=f"heterog-worst-{devices}{'-loops' if loops else ''}",
        source=f"order by rank against the best order: about {ratio} [G] theorem 2, "
        f"long tasks of {length}",
    )


def heterog_makespan(devices: int, length: int = 1000, *, loops: bool = False) -> Fraction:
    """Return the makespan of the order by rank: the sum of all times."""
    steps = _steps(devices, length, loops)
    return Fraction(sum(step.long or 0 for step in steps) + len(steps) - 1)


def _steps(devices: int, length: int, loops: bool) -> list[_Step]:
    """Walk along every link once, from a device over a link to the next device, and so on."""
    links: nx.DiGraph[int] = nx.complete_graph(devices, create_using=nx.DiGraph)
    if loops:
        links.add_edges_from((d, d) for d in range(devices))
    walk: list[_Resource] = [(0,)]
    for sender, receiver in nx.eulerian_circuit(links, source=0):
        walk += [(sender, receiver), (receiver,)]
    if len(walk) > 1:
        walk.pop()  # the last device has been visited
    seen: set[_Resource] = set()
    steps = []
    for i, resource in enumerate(walk):
        # Each is shorter by 2 than the one before: by more than the short task in between.
        long = None if resource in seen else length + 2 * (len(walk) - 1 - i)
        steps.append(_Step(resource, long))
        seen.add(resource)
    return steps


def _with_loops(devices: int, steps: list[_Step]) -> tuple[GraphBuilder, Cluster, Model]:
    """Build a vertex for every task, and a device for every link."""
    graph = GraphBuilder()
    for i, (resource, long) in enumerate(steps):
        opened = []
        if long is not None:
            graph.vertex(f"long{i}", long, devices=[_name(resource)])
            opened.append(f"long{i}")
        if i + 1 < len(steps):
            graph.vertex(f"short{i}", 1, devices=[_name(resource)])
            opened.append(f"short{i}")
        for name in opened if i else ():
            graph.edge(f"short{i - 1}", name, None)
    resources = [(d,) for d in range(devices)] + list(product(range(devices), repeat=2))
    return graph, Cluster.of([Device(_name(resource)) for resource in resources]), Model()


def _with_transfers(devices: int, steps: list[_Step]) -> tuple[GraphBuilder, Cluster, Model]:
    """Build transfers for the tasks of links; a long one feeds a vertex that takes no time."""
    visits, links = steps[0::2], steps[1::2]
    graph = GraphBuilder()
    for i, (device, long) in enumerate(visits):
        opened = []
        if long is not None:
            graph.vertex(f"long{i}", long, devices=[_name(device)])
            opened.append(f"long{i}")
        if i < len(links):
            sizes = [links[i].long or 0, *([1] if i + 1 < len(visits) else [])]
            graph.vertex(f"short{i}", 1, outputs=sizes, devices=[_name(device)])
            opened.append(f"short{i}")
        for name in opened if i else ():
            graph.edge(f"short{i - 1}", name, 1)
    for i, ((_, receiver), _) in enumerate(links):
        graph.vertex(f"end{i}", 0, devices=[_name((receiver,))])
        graph.edge(f"short{i}", f"end{i}", 0)
    cluster = Cluster.of([Device(_name((d,))) for d in range(devices)], bandwidth=1)
    return graph, cluster, Model("link")


def _name(resource: _Resource) -> str:
    return " to ".join(f"d{d}" for d in resource)
