"""The algorithms that Tarnawski et al. (2020) compare, after their description, in doubles.

They share nothing with ``optpart.exact.pipeline``: a file is read here as plain JSON, and devices
are numbers, accelerators first.
"""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np

#: More downsets than this take too long here.
MOST_DOWNSETS = 3000


class Network:
    """A throughput file: classes of nodes, their costs, and the order of forward nodes."""

    def __init__(self, path: Path, factor: float = 1.0) -> None:
        file: dict[str, Any] = json.loads(path.read_text())
        nodes = {node["id"]: node for node in file["nodes"]}
        self.accelerators, self.cpus = file["maxFPGAs"], file["maxCPUs"]
        self.capacity = file["maxSizePerFPGA"]
        number: dict[object, int] = {}
        self.of = {
            i: number.setdefault(node.get("colorClass", f"node {i}"), len(number))
            for i, node in nodes.items()
        }
        forward = {self.of[i] for i, node in nodes.items() if not node["isBackwardNode"]}
        order: nx.DiGraph[int] = nx.DiGraph()
        order.add_nodes_from(number.values())
        self.cost: dict[int, float] = {}
        self.consumers: dict[int, set[int]] = defaultdict(set)
        for edge in file["edges"]:
            u, v = edge["sourceId"], edge["destId"]
            self.cost[u] = factor * edge["cost"]
            self.consumers[u].add(self.of[v])
            back = [bool(nodes[i]["isBackwardNode"]) for i in (u, v)]
            one, other = self.of[u], self.of[v]
            if not any(back):
                order.add_edge(one, other)
            elif all(back) and not {one, other} <= forward:
                order.add_edge(other, one)  # mirrors a class that has no forward node
        self._contract(nodes, order)

    def _contract(self, nodes: dict[int, Any], order: nx.DiGraph[int]) -> None:
        """Join classes on cycles, and idle ones with a single neighbour to it."""
        condensed = nx.condensation(order)
        into = {c: condensed.graph["mapping"][c] for c in order}
        idle = dict.fromkeys(condensed, True)
        for i, node in nodes.items():
            if node["cpuLatency"] or node["fpgaLatency"]:
                idle[into[self.of[i]]] = False
        graph = nx.Graph(condensed.to_undirected())
        for u, users in self.consumers.items():
            graph.add_edges_from((into[self.of[u]], into[c]) for c in users)
        graph.remove_edges_from(nx.selfloop_edges(graph))
        waiting = [c for c in graph if idle[c]]
        joined = {c: c for c in graph}
        while waiting:
            c = waiting.pop()
            if graph.degree(c) == 1:
                (other,) = graph[c]
                joined[c] = other
                graph.remove_node(c)
                if idle[other]:
                    waiting.append(other)

        def root(c: int) -> int:
            return c if joined[c] == c else root(joined[c])

        roots = sorted({root(c) for c in joined})
        place = {c: i for i, c in enumerate(roots)}
        self.item = {i: place[root(into[c])] for i, c in self.of.items()}
        small: nx.DiGraph[int] = nx.DiGraph()
        small.add_nodes_from(range(len(roots)))
        pairs = ((place[root(a)], place[root(b)]) for a, b in condensed.edges)
        small.add_edges_from((a, b) for a, b in pairs if a != b)
        self.order = small
        n = len(roots)
        self.fast, self.slow, self.size = np.zeros(n), np.zeros(n), np.zeros(n)
        self.barred = np.zeros(n)
        for i, node in nodes.items():
            self.fast[self.item[i]] += node["fpgaLatency"]
            self.slow[self.item[i]] += node["cpuLatency"]
            self.size[self.item[i]] += node["size"]
            self.barred[self.item[i]] += not node["supportedOnFpga"]
        by_class = {c: self.item[i] for i, c in self.of.items()}
        self.tensors = []
        for u, users in self.consumers.items():
            to = {by_class[c] for c in users} - {self.item[u]}
            if to and self.cost[u]:
                self.tensors.append((self.item[u], sorted(to), self.cost[u]))

        self.touch = np.zeros((len(self.tensors), n))
        for t, (producer, to, _) in enumerate(self.tensors):
            self.touch[t, [producer, *to]] = 1
        self.price = np.array([cost for _, _, cost in self.tensors])

    def bottleneck(self, device: np.ndarray) -> float:
        """The largest load of a placement of items; infinite if memory does not suffice."""
        k = self.accelerators + self.cpus
        on = device < self.accelerators
        load = np.bincount(device, np.where(on, self.fast, self.slow), k)
        there = (self.touch @ np.eye(k)[device]) > 0
        crossing = there & (there.sum(axis=1) > 1)[:, None]
        load[: self.accelerators] += (self.price @ crossing)[: self.accelerators]
        held = np.bincount(device, self.size, k)[: self.accelerators]
        if (held > self.capacity).any() or self.barred[on].any():
            return np.inf
        return float(load.max())


def one_accelerator(net: Network) -> float:
    """Everything on one accelerator."""
    return net.bottleneck(np.zeros(len(net.fast), np.int64))


def greedy(net: Network) -> float:
    """Fill one accelerator after another up to its memory, in topological order; rest on a CPU."""
    device, at, held = np.zeros(len(net.fast), np.int64), 0, 0.0
    for c in nx.topological_sort(net.order):
        while at < net.accelerators and held + net.size[c] > net.capacity:
            at, held = at + 1, 0.0
        device[c], held = at, held + net.size[c]
    return net.bottleneck(device)


def local_search(net: Network, restarts: int = 10) -> float:
    """The best move of one item at a time from random placements, as often as it helps."""
    rng = np.random.default_rng(0)
    best = np.inf
    for _ in range(restarts):
        device = rng.integers(0, net.accelerators, len(net.fast))
        value = net.bottleneck(device)
        while True:
            found, move = value - 1e-5, None
            for c in range(len(device)):
                for d in range(net.accelerators):
                    if d != device[c]:
                        changed = device.copy()
                        changed[c] = d
                        if (now := net.bottleneck(changed)) < found:
                            found, move = now, (c, d)
            if move is None:
                break
            value, device[move[0]] = found, move[1]
        best = min(best, value)
    return best


def downsets(net: Network) -> list[int]:
    """All downsets as sets of bits, by size; as many as are allowed, and one more."""
    before = [sum(1 << p for p in net.order.predecessors(c)) for c in range(len(net.fast))]
    layer, found = {0}, [0]
    while layer:
        layer = {
            s | 1 << c
            for s in layer
            for c, need in enumerate(before)
            if not s >> c & 1 and need & ~s == 0
        }
        found += sorted(layer)
        if len(found) > MOST_DOWNSETS:
            return found[: MOST_DOWNSETS + 1]
    return found


def prefixes(net: Network) -> list[int]:
    """The downsets along one topological order, depth first."""
    found = [0]
    for c in nx.dfs_postorder_nodes(net.order.reverse()):
        found.append(found[-1] | 1 << c)
    return found


def dynamic_programme(net: Network, sets: list[int]) -> float:
    """The least bottleneck of stages between these downsets."""
    n = len(net.fast)
    held = np.array([[s >> c & 1 for c in range(n)] for s in sets], bool)
    sums = {key: held @ getattr(net, key) for key in ("fast", "slow", "size", "barred")}
    k, cpus = net.accelerators, net.cpus
    best = np.full((k + 1, cpus + 1, len(sets)), np.inf)
    best[:, :, 0] = 0
    for large in range(1, len(sets)):
        small = np.flatnonzero(~(held[:large] & ~held[large]).any(axis=1))
        block = held[large] & ~held[small]
        slow = sums["slow"][large] - sums["slow"][small]
        fast = sums["fast"][large] - sums["fast"][small]
        for producer, users, cost in net.tensors:
            ends = block[:, [producer, *users]]
            fast = fast + cost * (ends.any(axis=1) & ~ends.all(axis=1))
        over = sums["size"][large] - sums["size"][small] > net.capacity
        fast[over | (sums["barred"][large] > sums["barred"][small])] = np.inf
        for a in range(k + 1):
            for c in range(cpus + 1):
                options = [np.inf]
                if a:
                    options += [best[a - 1, c, large]]
                    options += [np.maximum(best[a - 1, c, small], fast).min()]
                if c:
                    options += [best[a, c - 1, large]]
                    options += [np.maximum(best[a, c - 1, small], slow).min()]
                best[a, c, large] = min(options)
    return float(best[k, cpus, -1])
