"""TIO by hand, and against algorithm 3 of [H]."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from optpart import Cluster, Device, GraphBuilder, Instance
from optpart.applications.ordering.efficiency import assigned
from optpart.kernels.tasks import Tasks, tasks
from optpart.strategies.base import Partition
from optpart.strategies.scheduling.as_received import as_received
from optpart.strategies.scheduling.random_order import random_order
from optpart.strategies.scheduling.tio import tio, tio_load
from optpart.strategies.simulator import Scheduler, execute


def worker(inputs: list[list[str]], channels: list[int]) -> Tasks:
    """Transfers ``r0``, … on these channels and ops ``o0``, … with these inputs, of length 1."""
    builder = GraphBuilder()
    for r, channel in enumerate(channels):
        builder.vertex(f"r{r}", 1, devices=[f"channel{channel}"])
    for i, sources in enumerate(inputs):
        builder.vertex(f"o{i}", 1, devices=["worker"])
        for source in sources:
            builder.edge(source, f"o{i}", None)
    devices = [Device("worker"), *(Device(f"channel{c}") for c in sorted(set(channels)))]
    instance = Instance(builder.build(), Cluster.of(devices))
    return tasks(instance, assigned(instance))


def naive(inputs: list[list[str]], channels: list[int]) -> list[float]:
    """M⁺ of algorithm 1 where transfers take 1 and ops 0."""
    dep = {f"r{r}": {r} for r in range(len(channels))}
    for i, sources in enumerate(inputs):
        dep[f"o{i}"] = set().union(*(dep[source] for source in sources))
    load = [float("inf")] * len(channels)
    for i in range(len(inputs)):
        waits = dep[f"o{i}"]
        if len(waits) > 1:
            most = max(sum(channels[r] == c for r in waits) for c in set(channels))
            for r in waits:
                load[r] = min(load[r], most)
    return load


CHAIN = [["r0"], ["o0", "r1"], ["o1", "r2"], ["o2", "r3"]]


def begun(work: Tasks, scheduler: Scheduler, seed: int) -> list[float]:
    start = execute(work, scheduler(work, Partition(work.resource), np.random.default_rng(seed)))
    found: list[float] = start.start[:4].tolist()
    return found


class TestLoad:
    def test_a_chain_counts_up(self) -> None:
        """The first two are equal: nothing that waits for others as well comes before o1."""
        assert tio_load(worker(CHAIN, [0] * 4), 8)[1].tolist() == [2, 2, 3, 4]

    def test_of_several_channels_the_most_count(self) -> None:
        assert tio_load(worker(CHAIN, [0, 1, 0, 1]), 8)[1].tolist() == [1, 1, 2, 2]

    def test_what_alone_enables_something_comes_last(self) -> None:
        """To the letter of algorithm 3: M⁺ of r0 is infinite."""
        work = worker([["r0"], ["r1", "r2"], ["o1"]], [0] * 3)
        assert tio_load(work, 6)[1].tolist() == [float("inf"), 2, 2]
        assert (
            execute(work, tio(work, Partition(work.resource), np.random.default_rng(0))).start[0]
            == 2
        )

    @given(st.integers(0, 2**32))
    def test_it_is_that_of_algorithm_3(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        channels = rng.integers(rng.integers(1, 4), size=rng.integers(1, 14)).tolist()
        inputs: list[list[str]] = []
        for i in range(int(rng.integers(1, 25))):
            sources = [*(f"r{r}" for r in range(len(channels))), *(f"o{j}" for j in range(i))]
            count = min(len(sources), int(rng.integers(0, 4)))
            inputs.append([sources[j] for j in rng.choice(len(sources), count, replace=False)])
        # An op that waits for all: every channel then has a transfer that is waited for.
        inputs.append([*(f"r{r}" for r in range(len(channels))), f"o{len(inputs) - 1}"])
        work = worker(inputs, channels)
        assert tio_load(work, len(work.duration))[1].tolist() == naive(inputs, channels)


class TestOrder:
    def test_equal_priorities_mean_free_order(self) -> None:
        work = worker(CHAIN, [0] * 4)
        orders = {tuple(begun(work, tio, seed)) for seed in range(20)}
        assert orders == {(0, 1, 2, 3), (1, 0, 2, 3)}

    def test_random_order_draws_one_of_all(self) -> None:
        work = worker(CHAIN, [0] * 4)
        orders = {tuple(begun(work, random_order, seed)) for seed in range(200)}
        assert len(orders) == 24
        assert begun(work, random_order, 7) == begun(work, random_order, 7)

    def test_as_received_takes_what_comes_together_in_the_order_of_the_graph(self) -> None:
        work = worker(CHAIN, [0] * 4)
        assert {tuple(begun(work, as_received, seed)) for seed in range(5)} == {(0, 1, 2, 3)}
