"""Flow shops of two machines, and of three where the middle one is a link (Johnson 1954).

Where a job's tensor has to cross from the first device to the second, the link between them is a
machine as well under ``link`` and ``port``. If the middle machine is *dominated* (its longest time
is no longer than the shortest on the first, or on the last), Johnson's rule for the sums of the
first two and of the last two times is optimal.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from oracles.proving import prove
from oracles.shops import job_shop
from oracles.two_machines import johnson_order

from optpart import Cluster, Device, GraphBuilder, Instance, Model
from optpart.problem.model import Communication

#: Times of one job, machine by machine.
Times = tuple[Fraction, ...]


def flow_length(jobs: Sequence[Times], order: Sequence[int]) -> Fraction:
    """Makespan if every machine takes the jobs in this order."""
    free = [Fraction(0)] * len(jobs[0])
    for j in order:
        at = Fraction(0)
        for machine, time in enumerate(jobs[j]):
            at = free[machine] = max(at, free[machine]) + time
    return free[-1]


def johnson(jobs: Sequence[Times]) -> Fraction:
    """Optimum for two machines, and for three with a dominated one in the middle."""
    pairs = [(job[0] + sum(job[1:-1]), sum(job[1:-1]) + job[-1]) for job in jobs]
    return flow_length(jobs, johnson_order(pairs))


def times(rng: np.random.Generator, low: int, high: int) -> Fraction:
    return Fraction(int(rng.integers(low, high)), 2)


def shipped(jobs: Sequence[Times], model: Model, name: str) -> Instance:
    """Build jobs whose middle time is that of a transfer from the first device to the second."""
    builder = GraphBuilder()
    for j, (first, transfer, second) in enumerate(jobs):
        builder.vertex(f"a{j}", first * 3, outputs=[transfer * 4], devices=["d0"])
        builder.vertex(f"b{j}", second * 2, devices=["d1"])
        builder.edge(f"a{j}", f"b{j}")
    cluster = Cluster.of([Device("d0", 3), Device("d1", 2)], bandwidth=4)
    return Instance(builder.build(), cluster, model, name=name)


JOBS = [2, 3, 6, 12, 25, 50]


@pytest.mark.parametrize("count", JOBS)
def test_two_machines(count: int) -> None:
    rng = np.random.default_rng([count, 0])
    jobs = [(times(rng, 1, 30), times(rng, 1, 30)) for _ in range(count)]
    instance = job_shop(
        [[(0, first), (1, second)] for first, second in jobs], 2, f"flow-shop-{count}"
    )
    prove(instance, johnson(jobs), "enumerate", "milp")


@pytest.mark.parametrize("count", JOBS)
def test_equal_delays_only_put_the_second_machine_off(count: int) -> None:
    """Links that never queue add one and the same lag to every job."""
    rng = np.random.default_rng([count, 1])
    lag = times(rng, 1, 30)
    jobs = [(times(rng, 1, 30), lag, times(rng, 1, 30)) for _ in range(count)]
    optimum = lag + johnson([(first, second) for first, _, second in jobs])
    prove(shipped(jobs, Model(), f"lag-{count}"), optimum, "enumerate", "milp")


@pytest.mark.parametrize("communication", ["link", "port"])
@pytest.mark.parametrize("dominant", ["first", "second"])
@pytest.mark.parametrize("count", [2, 3, 6, 12])
def test_link_in_the_middle(communication: Communication, dominant: str, count: int) -> None:
    rng = np.random.default_rng([count, ord(dominant[0]), ord(communication[0])])
    jobs = [(times(rng, 8, 24), times(rng, 1, 9), times(rng, 2, 30)) for _ in range(count)]
    if dominant == "second":
        jobs = [(last, middle, first) for first, middle, last in jobs]
    instance = shipped(jobs, Model(communication), f"flow-shop-{communication}-{count}")
    prove(instance, johnson(jobs), "enumerate")
