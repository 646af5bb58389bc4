"""Three polynomial special cases of TF, close to hard ones.

Each function solves sources of a reduction directly, in time polynomial in their size (or, for
:func:`halves`, in the numbers themselves).
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import networkx as nx

from optpart.applications.reductions.partition import Half, Numbers
from optpart.applications.reductions.single_execution_time import Jobs, Slots
from optpart.base.errors import UnsupportedError


def hu(jobs: Jobs) -> Slots:
    """Schedule forests of unit jobs on any number of processors: highest level first.

    T. C. Hu, Parallel sequencing and assembly line problems, Operations Research 9 (1961).
    Optimal if every job has at most one direct successor (in-forest); out-forests are scheduled
    backwards. The limit of the jobs is ignored: compare it with the latest slot.

    Raises
    ------
    UnsupportedError
        If the order is neither an in-forest nor an out-forest.
    """
    graph = _covers(jobs)
    if all(degree <= 1 for _, degree in graph.out_degree()):
        return _list_schedule(graph, jobs.processors, _levels(graph))
    if all(degree <= 1 for _, degree in graph.in_degree()):
        backwards = graph.reverse()
        slots = _list_schedule(backwards, jobs.processors, _levels(backwards))
        last = max(slots)
        return tuple(last - slot for slot in slots)
    raise UnsupportedError("order", "neither an in-forest nor an out-forest", "give one of these")


def coffman_graham(jobs: Jobs) -> Slots:
    """Schedule unit jobs in any order on two processors: lexicographic labels.

    E. G. Coffman, R. L. Graham, Optimal scheduling for two-processor systems, Acta Informatica 1
    (1972). Jobs get ascending labels, successors first. The next label goes to the job whose direct
    successors' labels, in descending order, are lexicographically least. The highest label then
    runs first.

    Raises
    ------
    UnsupportedError
        If there are more than two processors.
    """
    if jobs.processors > 2:
        raise UnsupportedError(
            "processors", f"{jobs.processors} processors", "give one or two processors"
        )
    graph = _covers(jobs)
    label: dict[int, int] = {}
    waiting = {v: graph.out_degree(v) for v in graph}
    ready: list[tuple[list[int], int]] = [([], v) for v in graph if not waiting[v]]
    heapq.heapify(ready)
    while ready:
        _, v = heapq.heappop(ready)
        label[v] = len(label)
        for u in graph.predecessors(v):
            waiting[u] -= 1
            if not waiting[u]:
                word = sorted((label[w] for w in graph[u]), reverse=True)
                heapq.heappush(ready, (word, u))
    return _list_schedule(graph, jobs.processors, [label[v] for v in range(len(jobs.names))])


def halves(source: Numbers) -> Half | None:
    """Solve PARTITION by a table of all sums up to a half; ``None`` if the answer is no.

    R. Bellman (1957). Time and memory grow with the number of numbers times their sum, which is
    exponential in the number of their digits: *pseudo-polynomial*.
    """
    total = sum(source.numbers)
    if total % 2:
        return None
    half = total // 2
    mask = (1 << (half + 1)) - 1
    reached = [1]  # bit s of entry i: some of the first i numbers sum to s
    for number in source.numbers:
        reached.append((reached[-1] | reached[-1] << number) & mask)
    if not reached[-1] >> half & 1:
        return None
    chosen, left = set(), half
    for i in reversed(range(len(source.numbers))):
        if not reached[i] >> left & 1:
            chosen.add(i)
            left -= source.numbers[i]
    return frozenset(chosen)


def _covers(jobs: Jobs) -> nx.DiGraph[int]:
    """Return the direct pairs of the order: those without a third job between them."""
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(range(len(jobs.names)))
    graph.add_edges_from(jobs.order)
    return nx.transitive_reduction(graph)


def _levels(graph: nx.DiGraph[int]) -> list[int]:
    """Return the length of the longest chain of jobs after each job."""
    level = [0] * len(graph)
    for v in reversed(list(nx.topological_sort(graph))):
        level[v] = max((level[w] + 1 for w in graph[v]), default=0)
    return level


def _list_schedule(graph: nx.DiGraph[int], processors: int, priority: Sequence[int]) -> Slots:
    """Fill one slot after another with the ready jobs of highest priority."""
    waiting = [graph.in_degree(v) for v in range(len(graph))]
    ready = [(-priority[v], v) for v in range(len(graph)) if not waiting[v]]
    heapq.heapify(ready)
    slots = [0] * len(graph)
    slot = 0
    while ready:
        running = [heapq.heappop(ready)[1] for _ in range(min(processors, len(ready)))]
        for u in running:
            slots[u] = slot
            for v in graph[u]:
                waiting[v] -= 1
                if not waiting[v]:
                    heapq.heappush(ready, (-priority[v], v))
        slot += 1
    return tuple(slots)
