"""SAGA's schedulers as methods, and optpart as a scheduler of SAGA."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

import optpart as op
from optpart.base.errors import UnsupportedError
from optpart.interop.formats.detect import read_instance
from optpart.problem.cluster import Cluster, Device
from optpart.problem.graph import GraphBuilder
from optpart.problem.instance import Instance
from optpart.solution.result import Status
from optpart.study import library

saga = pytest.importorskip("saga", reason="needs anrg-saga")

DAGBENCH = Path(__file__).resolve().parents[2] / "../shared/data/dagbench/workflows"

#: Not for these: they try everything, or need another program.
SLOW = {"saga-bruteforce", "saga-smt"}


def instance() -> Instance:
    builder = GraphBuilder()
    for name, cost in (("a", 2), ("b", 3), ("c", 5), ("d", 1)):
        builder.vertex(name, cost, outputs=[4])
    for pair in ("ab", "ac", "bd", "cd"):
        builder.edge(*pair)
    devices = [Device("x", 1), Device("y", 2), Device("z", 4)]
    return Instance(builder.build(), Cluster.of(devices, 8), name="diamond")


@pytest.fixture
def names() -> list[str]:
    from optpart.placing.saga_schedulers import register_schedulers

    return [name for name in register_schedulers() if name not in SLOW]


def test_every_scheduler_gives_a_valid_schedule_no_shorter_than_the_optimum(
    names: list[str],
) -> None:
    diamond = instance()
    best = op.solve(diamond)
    assert best.status is Status.OPTIMAL
    for name in names:
        found = op.solve(diamond, name)
        assert found.makespan is not None, name
        assert found.makespan >= best.makespan


def test_an_instance_that_saga_cannot_express_is_refused(names: list[str]) -> None:
    with pytest.raises(UnsupportedError):
        op.solve(library.load("heft-10"), names[0])


def test_optpart_schedules_for_saga() -> None:
    from saga import Network, TaskGraph
    from saga.schedulers import HeftScheduler

    from optpart.placing.saga_schedulers import OptpartScheduler

    network = Network.create([("x", 1.0), ("y", 2.5)], [("x", "y", 0.75)])
    graph = TaskGraph.create(
        [("a", 2.0), ("b", 3.1), ("c", 5.0)], [("a", "b", 1.0), ("a", "c", 0.3)]
    )
    scheduler = OptpartScheduler()
    made = scheduler.schedule(network, graph)
    assert scheduler.result.status is Status.OPTIMAL
    assert scheduler.result.makespan is not None
    assert math.isclose(made.makespan, float(scheduler.result.makespan))
    assert made.makespan <= HeftScheduler().schedule(network, graph).makespan + 1e-9


@pytest.mark.skipif(not DAGBENCH.exists(), reason=f"{DAGBENCH} is not here")
def test_saga_and_optpart_agree_on_the_makespan_of_saga_s_schedule(names: list[str]) -> None:
    """Its floats and our exact times differ by what local transfers take, at most."""
    from saga import Network, TaskGraph
    from saga.schedulers import HeftScheduler

    for graph in ("synthetic/diamond", "classic_benchmarks/fft_8", "smart_city/air_quality"):
        here = read_instance(DAGBENCH / graph / "graph.json")
        rates, across = here.cluster.bandwidth, range(here.devices)
        name = here.cluster.names
        network = Network.create(
            [(name[d], float(here.cluster.speed[d])) for d in across],
            [(name[d], name[e], float(rates[d, e])) for d in across for e in across if d != e],
        )
        tasks = TaskGraph.create(
            [(task, float(here.graph.ops[v])) for v, task in enumerate(here.graph.names)],
            [
                (here.graph.names[u], here.graph.names[v], float(here.graph.tensor_size[t]))
                for u, v, t in here.graph.edges()
            ],
        )
        theirs = HeftScheduler().schedule(network, tasks).makespan
        ours = op.solve(here, "saga-heft").makespan
        assert ours is not None
        assert float(ours) <= theirs * (1 + 1e-6)
        assert op.solve(here).makespan <= ours
