"""retime() gives the earliest exact starts of an order, and says what is wrong with a bad one."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest

from optpart import Cluster, Device, GraphBuilder, InputError, Instance, Model, Schedule, retime
from optpart.interop.formats import native
from optpart.problem.model import Communication
from optpart.solution.schedule import crossings
from optpart.testing.draw import random_instance
from optpart.testing.solutions import Step, random_order, random_placement


def thesis_example() -> Instance:
    """[L] §2.5, figure 2.3: two chains that leave device 0 by one tensor to each other device."""
    builder = GraphBuilder()
    for v, ops in enumerate([30, 50, 60, 30, 40, 80]):
        builder.vertex(str(v), ops, outputs=[50])
    for source, target in ("01", "12", "23", "14", "45"):
        builder.edge(source, target)
    devices = [Device("d0", 10), Device("d1", 30), Device("d2", 40)]
    bandwidth = [[0, 25, 50], [25, 0, 25], [50, 25, 0]]
    return Instance(
        builder.build(), Cluster.of(devices, bandwidth), Model("sendrecv", send_ops=Fraction(10))
    )


THESIS_PLACEMENT = [0, 0, 1, 1, 2, 2]


class TestThesisExample:
    """[L] §2.5, table 2.1 and figure 2.4."""

    @pytest.mark.parametrize(("first", "second", "makespan"), [(1, 2, 14), (2, 1, 15)])
    def test_the_order_of_the_sends_matters(self, first: int, second: int, makespan: int) -> None:
        instance = thesis_example()
        order: list[Step] = [0, 1, (1, first), (1, second), 2, 3, 4, 5]
        assert retime(instance, THESIS_PLACEMENT, order).makespan(instance) == makespan

    def test_every_start(self) -> None:
        schedule = retime(thesis_example(), THESIS_PLACEMENT, [0, 1, (1, 1), (1, 2), 2, 3, 4, 5])
        assert schedule.start.fractions() == [0, 3, 11, 13, 11, 12]
        assert schedule.transfers.tensor.tolist() == [1, 1]
        assert schedule.transfers.target.tolist() == [1, 2]
        assert schedule.transfers.start.fractions() == [8, 9]  # with the send vertex
        assert schedule.transfers.end.fractions() == [11, 11]

    def test_unnamed_sends_go_by_device_as_soon_as_the_tensor_is_made(self) -> None:
        instance = thesis_example()
        assert retime(instance, THESIS_PLACEMENT, range(6)).makespan(instance) == 14


def two_tensors(model: Model, devices: int = 2) -> Instance:
    """a (1) makes x (4) and y (6), b (1) eats x, c (1) eats y; a second vertex z (1) beside a."""
    builder = GraphBuilder().vertex("a", 1, outputs=[4, 6]).vertex("b", 1).vertex("c", 1)
    builder.vertex("z", 1).edge("a", "b", 0).edge("a", "c", 1)
    return Instance(builder.build(), Cluster.uniform(devices, bandwidth=2), model)


class TestCommunication:
    def ends(
        self, instance: Instance, placement: Sequence[int], order: Sequence[Step]
    ) -> list[int]:
        schedule = retime(instance, placement, order)
        return [int(schedule.end(instance, v)) for v in range(instance.vertices)]

    def test_delay_lets_transfers_pass_each_other(self) -> None:
        assert self.ends(two_tensors(Model()), [0, 1, 1, 0], [0, 1, 2, 3]) == [1, 4, 5, 2]

    def test_sendrecv_occupies_the_sender(self) -> None:
        model = Model("sendrecv", send_ops=Fraction(2))
        order: list[Step] = [0, (1, 1), (0, 1), 3, 1, 2]
        assert self.ends(two_tensors(model), [0, 1, 1, 0], order) == [1, 8, 9, 6]
        order = [0, 3, (0, 1), (1, 1), 1, 2]
        assert self.ends(two_tensors(model), [0, 1, 1, 0], order) == [1, 7, 10, 2]

    def test_a_link_carries_one_transfer_at_a_time(self) -> None:
        model = Model("link")
        order: list[Step] = [0, (0, 1), (1, 1), 1, 2, 3]
        assert self.ends(two_tensors(model), [0, 1, 1, 0], order) == [1, 4, 7, 2]
        order = [0, (1, 1), (0, 1), 2, 1, 3]
        assert self.ends(two_tensors(model), [0, 1, 1, 0], order) == [1, 7, 5, 2]

    def test_links_to_different_devices_do_not_queue(self) -> None:
        assert self.ends(two_tensors(Model("link"), 3), [0, 1, 2, 0], range(4)) == [1, 4, 5, 2]

    def test_a_port_does(self) -> None:
        assert self.ends(two_tensors(Model("port"), 3), [0, 1, 2, 0], range(4)) == [1, 4, 7, 2]

    @pytest.mark.parametrize("channels", [2, 10**30])
    def test_a_port_of_more_channels_does_not(self, channels: int) -> None:
        instance = two_tensors(Model("port", channels=channels), 3)
        assert self.ends(instance, [0, 1, 2, 0], range(4)) == [1, 4, 5, 2]

    def test_a_receiving_port_queues_too(self) -> None:
        builder = GraphBuilder().vertex("a", 1, outputs=[4]).vertex("b", 1, outputs=[4])
        builder.vertex("c", 1).edge("a", "c").edge("b", "c")
        instance = Instance(builder.build(), Cluster.uniform(3, bandwidth=2), Model("port"))
        assert self.ends(instance, [0, 1, 2], range(3)) == [1, 1, 6]


class TestCrossings:
    def test_a_tensor_crosses_once_per_device(self) -> None:
        """[L] §2.4: two consumers on one device share a transfer."""
        builder = GraphBuilder().vertex("a", outputs=[1])
        for name in "bcde":
            builder.vertex(name).edge("a", name)
        instance = Instance(builder.build(), Cluster.uniform(3))
        placement = np.array([0, 1, 1, 2, 0], dtype=np.int32)
        assert crossings(instance, placement) == [(0, 1), (0, 2)]

    def test_every_output_crosses_for_itself(self) -> None:
        builder = GraphBuilder().vertex("a", outputs=[1, 1]).vertex("b")
        builder.edge("a", "b", 0).edge("a", "b", 1).edge("a", "b", None)
        instance = Instance(builder.build(), Cluster.uniform(2))
        assert crossings(instance, np.array([0, 1], dtype=np.int32)) == [(0, 1), (1, 1), (2, 1)]
        assert crossings(instance, np.array([1, 1], dtype=np.int32)) == []


class TestErrors:
    INSTANCE = two_tensors(Model("link"))
    PLACEMENT = (0, 1, 1, 0)

    @pytest.mark.parametrize(
        ("order", "problem"),
        [
            ([0, 1, 2], "name every vertex once"),
            ([0, 1, 2, 3, 3], "name every vertex once"),
            ([0, 1, 2, 4], "name every vertex once"),
            ([], "name every vertex once"),
            ([0, (0, 0), 1, 2, 3], "only transfers that cross"),
            ([0, (7, 1), 1, 2, 3], "only transfers that cross"),
            ([0, (0, 1), (0, 1), 1, 2, 3], "only transfers that cross"),
            ([0, (0, 1), 1, (0, 1), 2, 3], "only transfers that cross"),
            ([1, 0, 2, 3], "b comes before a:0 is available"),
            ([(0, 1), 0, 1, 2, 3], "a transfer comes before a:0 is available"),
            ([0, 1, (0, 1), 2, 3], "b comes before a:0 is available"),
        ],
    )
    def test_an_order_that_does_not_fit(self, order: list[Step], problem: str) -> None:
        with pytest.raises(InputError, match=problem) as caught:
            retime(self.INSTANCE, self.PLACEMENT, order)
        assert caught.value.place == "order"

    def test_a_missing_link(self) -> None:
        graph = GraphBuilder().vertex("a", outputs=[1]).vertex("b").edge("a", "b").build()
        instance = Instance(graph, Cluster.uniform(2, bandwidth=0))
        with pytest.raises(
            InputError, match="a:0 has to cross from d0 to d1, which are not linked"
        ):
            retime(instance, [0, 1], [0, 1])

    def test_a_local_order_against_the_edges(self) -> None:
        graph = GraphBuilder().vertex("a", 1).vertex("b", 1).edge("a", "b", None).build()
        with pytest.raises(InputError, match=r"b comes before a \(control\) is available"):
            retime(Instance(graph, Cluster.uniform(1)), [0, 0], [1, 0])


class TestSchedule:
    def test_of_nothing(self) -> None:
        instance = Instance(GraphBuilder().build(), Cluster.uniform(1))
        schedule = retime(instance, [], [])
        assert schedule.makespan(instance) == 0
        assert schedule.sequence == []

    def test_sequence_is_by_start(self) -> None:
        instance = two_tensors(Model())
        assert retime(instance, [0, 1, 1, 0], [0, 2, 1, 3]).sequence == [0, 3, 2, 1]

    def test_numbers_of_any_size_stay_exact(self) -> None:
        builder = GraphBuilder().vertex("a", 10**30 + 1, outputs=[1]).vertex("b", "1/3")
        instance = Instance(
            builder.edge("a", "b").build(), Cluster.uniform(2, speed=7, bandwidth=10**40)
        )
        makespan = retime(instance, [0, 1], [0, 1]).makespan(instance)
        assert makespan == Fraction(10**30 + 1, 7) + Fraction(1, 10**40) + Fraction(1, 21)


@pytest.mark.parametrize("communication", ["delay", "sendrecv", "link", "port"])
def test_scaling_operations_and_sizes_scales_the_makespan(communication: Communication) -> None:
    rng = np.random.default_rng(3)
    factor = Fraction(3, 7)
    for _ in range(40):
        instance = random_instance(
            rng, 6, 3, communication=communication, durations=False, measured=False, latency=False
        )
        placement = random_placement(rng, instance)
        if placement is None:
            continue
        order = random_order(rng, instance, crossings(instance, placement))
        before = retime(instance, placement, order)
        smaller = scaled(instance, factor)
        after = retime(smaller, placement, order)
        assert after.makespan(smaller) == before.makespan(instance) * factor


def scaled(instance: Instance, factor: Fraction) -> Instance:
    document = instance.to_dict()
    for vertex in document["vertices"]:
        vertex["ops"] = Fraction(vertex["ops"]) * factor
        vertex["outputs"] = [Fraction(size) * factor for size in vertex.get("outputs", [])]
    document["model"]["send_ops"] = Fraction(document["model"].get("send_ops", 0)) * factor
    return native.from_dict(document)


@pytest.mark.parametrize("communication", ["sendrecv", "link"])
def test_a_queue_never_beats_free_links(communication: Communication) -> None:
    rng = np.random.default_rng(4)
    for _ in range(40):
        instance = random_instance(rng, 6, 3, communication=communication)
        free = Instance(instance.graph, instance.cluster, Model(), instance.durations)
        placement = random_placement(rng, instance)
        if placement is None:
            continue
        order = random_order(rng, instance, crossings(instance, placement))
        queued: Schedule = retime(instance, placement, order)
        assert queued.makespan(instance) >= retime(free, placement, order).makespan(free)
