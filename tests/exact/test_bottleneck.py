"""The least bottleneck: rounding, ports of many channels, limits, and the schedule shown."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from optpart import Cluster, Device, GraphBuilder, Instance, Model, Status, Termination
from optpart.exact.enumeration import enumerate_all
from optpart.methods.cpsat import cpsat
from optpart.methods.milp import milp
from optpart.problem.model import Communication
from optpart.solution.goal import Goal
from optpart.solution.result import Budget
from optpart.testing import brute_force

BUDGET = Budget(20.0, 1)
LEAST = Goal("bottleneck")
SOLVERS = {"cpsat": cpsat, "milp": milp}

#: Times that are multiples of no common tick that a solver could count.
PRIMES = (1000003, 1000033, 1000037, 1000039, 1000081, 1000099)


def fork(times: list[Any], devices: int = 2, model: Model | None = None) -> Instance:
    """One vertex feeds all others."""
    graph = GraphBuilder()
    for v, time in enumerate(times):
        graph.vertex(f"v{v}", time, outputs=[Fraction(v + 1, 3)])
        if v:
            graph.edge("v0", f"v{v}")
    return Instance(graph.build(), Cluster.uniform(devices, bandwidth=2), model or Model())


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("communication", ["delay", "link"])
def test_what_rounding_leaves_is_not_called_optimal(
    name: str, communication: Communication
) -> None:
    instance = fork(
        [Fraction(10**6 + v, p) for v, p in enumerate(PRIMES)], model=Model(communication)
    )
    least = brute_force.least_bottleneck(instance)
    result = SOLVERS[name](instance, budget=BUDGET, goal=LEAST)
    assert result.bottleneck is not None
    assert result.bottleneck_bound is not None
    assert result.bottleneck_bound <= least <= result.bottleneck
    closed = result.bottleneck_bound == result.bottleneck
    assert result.status is (Status.OPTIMAL if closed else Status.FEASIBLE)
    assert closed or result.termination is Termination.ROUNDING
    assert result.gap < (1e-6 if name == "cpsat" else 1e-3)
    assert enumerate_all(instance, budget=BUDGET, goal=LEAST).bottleneck == least


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("channels", [1, 2, 3, 1000, 10**30])
def test_the_load_of_a_port_is_divided_by_its_channels(name: str, channels: int) -> None:
    instance = fork([9, 1, 1, 9, 9], model=Model("port", channels=channels))
    least = brute_force.least_bottleneck(instance)
    result = SOLVERS[name](instance, budget=BUDGET, goal=LEAST)
    assert result.bottleneck_bound <= least <= result.bottleneck
    if channels < 10**30:
        assert (result.status, result.bottleneck) == (Status.OPTIMAL, least)


@pytest.mark.parametrize("method", [cpsat, milp, enumerate_all])
class TestLimits:
    def test_of_the_makespan(self, method: Any) -> None:
        """Apart, two vertices of 4 load 4 each and end at 14; together, they load and end at 8."""
        graph = GraphBuilder().vertex("a", 4, outputs=[6]).vertex("b", 4).edge("a", "b")
        instance = Instance(graph.build(), Cluster.uniform(2, bandwidth=1))
        for makespan, least in ((14, 4), (13, 8), (8, 8), (7, None)):
            goal = Goal("bottleneck", makespan=Fraction(makespan))
            result = method(instance, budget=BUDGET, goal=goal)
            assert result.bottleneck == least
            assert result.status is (Status.OPTIMAL if least else Status.INFEASIBLE)

    def test_of_the_order(self, method: Any) -> None:
        """What must come first and last on a device cannot be there with its consumer."""
        graph = GraphBuilder().vertex("a", 4, outputs=[6]).vertex("b", 4).edge("a", "b")
        instance = Instance(graph.build(), Cluster.of([Device("x", 8), Device("y", 1)], 1))
        for order, least in (((), 1), (((0, 1),), 1), (((1, 0),), 4)):
            result = method(instance, budget=BUDGET, goal=Goal("bottleneck", order=order))
            assert (result.status, result.bottleneck) == (Status.OPTIMAL, least)

    def test_of_the_traffic(self, method: Any) -> None:
        """Without a crossing, all run on one device; one crossing costs a send of 1."""
        instance = fork([3, 3, 3, 3], model=Model("sendrecv", send_ops=Fraction(1)))
        for most, least in ((Fraction(0), 12), (Fraction(1, 3), 7)):
            result = method(instance, budget=BUDGET, goal=Goal("bottleneck", traffic=most))
            assert (result.status, result.bottleneck) == (Status.OPTIMAL, least)


def test_the_schedule_of_the_best_placement_is_short() -> None:
    """Two chains of equal work go to a device each, and run at the same time."""
    graph = GraphBuilder()
    for name in ("a", "b"):
        for v in range(10):
            graph.vertex(f"{name}{v}", 2)
            if v:
                graph.edge(f"{name}{v - 1}", f"{name}{v}", None)
    instance = Instance(graph.build(), Cluster.uniform(2))
    result = cpsat(instance, budget=BUDGET, goal=Goal("bottleneck", contiguous=True))
    assert (result.status, result.bottleneck, result.makespan) == (Status.OPTIMAL, 20, 20)
