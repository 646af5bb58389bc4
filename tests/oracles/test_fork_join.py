"""A source and its children, or children and their sink, with as many devices as vertices.

Ph. Chrétienne, C. Picouleau, Scheduling with communication delays: a survey, in: Scheduling Theory
and its Applications (1995), treat forks and joins on unlimited equal devices without duplication.

**Fork.** Child ``i`` takes ``p_i`` and its tensor ``c_i`` to cross; the source takes ``p``. The
children ``L`` on the source's device run one after the other, so the last of them ends no earlier
than ``p`` plus the sum of their times, and without idle time just then. Any other ends no earlier
than ``p + c_i + p_i``, and on a device of its own just then. So the optimum is the least
``p + max(Σ_{i ∈ L} p_i, max_{i ∉ L} (c_i + p_i))``. If ``i`` leaves, every ``j`` with
``c_j + p_j ≤ c_i + p_i`` may leave as well: the sum falls, the largest term stays. So only the
``n + 1`` sets of those with the least ``c_i + p_i`` have to be compared.

**Join.** The fork with time turned round: each child has a tensor of its own.

A child alone on its device has the link to itself, sends without length take no time, and a port of
``n`` channels never makes anything wait. So the same holds under every communication model.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest
from oracles.proving import prove

from optpart import Cluster, GraphBuilder, Instance, Model
from optpart.problem.model import Communication

SPEED, BANDWIDTH, LATENCY = 2, 3, Fraction(1, 2)


class Child(NamedTuple):
    time: Fraction
    crossing: Fraction


def optimum(root: Fraction, children: Sequence[Child]) -> Fraction:
    by_distance = sorted(children, key=lambda child: child.crossing + child.time)
    lengths = []
    for leaving in range(len(children) + 1):
        stay = sum((child.time for child in by_distance[leaving:]), Fraction(0))
        last = by_distance[leaving - 1] if leaving else Child(Fraction(0), Fraction(0))
        lengths.append(max(stay, last.crossing + last.time))
    return root + min(lengths)


def star(root: Fraction, children: Sequence[Child], join: bool, model: Model) -> Instance:
    builder = GraphBuilder().vertex("root", root * SPEED)
    for i, child in enumerate(children):
        builder.vertex(f"v{i}", child.time * SPEED)
        ends = (f"v{i}", "root") if join else ("root", f"v{i}")
        builder.edge(*ends, size=(child.crossing - LATENCY) * BANDWIDTH)
    cluster = Cluster.uniform(len(children) + 1, SPEED, BANDWIDTH, LATENCY)
    name = f"{'join' if join else 'fork'}-{model.communication}-{len(children)}"
    return Instance(builder.build(), cluster, model, name=name)


def draw(rng: np.random.Generator, count: int) -> tuple[Fraction, list[Child]]:
    def time(high: int) -> Fraction:
        return Fraction(int(rng.integers(1, high)), 2)

    return time(10), [Child(time(20), LATENCY + time(40)) for _ in range(count)]


def model(communication: Communication, count: int) -> Model:
    return Model(communication, channels=count if communication == "port" else 1)


@pytest.mark.parametrize("join", [False, True], ids=["fork", "join"])
@pytest.mark.parametrize("count", [2, 3, 5, 9, 12])
def test_links_that_never_queue(join: bool, count: int) -> None:
    root, children = draw(np.random.default_rng([count, join]), count)
    prove(star(root, children, join, Model()), optimum(root, children), "enumerate", "milp")


@pytest.mark.parametrize("join", [False, True], ids=["fork", "join"])
@pytest.mark.parametrize("communication", ["sendrecv", "link", "port"])
@pytest.mark.parametrize("count", [2, 5, 9])
def test_links_that_need_not_queue(join: bool, communication: Communication, count: int) -> None:
    root, children = draw(np.random.default_rng([count, join, 1]), count)
    instance = star(root, children, join, model(communication, count))
    prove(instance, optimum(root, children), "enumerate")
