"""The brute-force solver against optima computed by hand and by plainer enumeration."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest

from optpart import Cluster, Device, GraphBuilder, InputError, Instance, Model, retime
from optpart.problem.cluster import Matrix
from optpart.problem.model import Memory
from optpart.solution.verifier import verify
from optpart.testing.brute_force import optimum
from optpart.testing.draw import random_instance
from optpart.testing.solutions import allowed_placements


def fork() -> GraphBuilder:
    """a → b, a → c, each 6 operations, one tensor of size 4 for both."""
    builder = GraphBuilder().vertex("a", 6, outputs=[4]).vertex("b", 6).vertex("c", 6)
    return builder.edge("a", "b").edge("a", "c")


def makespan(instance: Instance) -> Fraction | None:
    best = optimum(instance)
    return None if best is None else best.makespan


def two(bandwidth: Matrix = None, latency: Matrix = 0, speeds: tuple[int, int] = (1, 1)) -> Cluster:
    devices = [Device("d0", speeds[0], "CPU"), Device("d1", speeds[1], "GPU")]
    return Cluster.of(devices, bandwidth, latency)


class TestByHand:
    def test_an_empty_graph_takes_no_time(self) -> None:
        assert makespan(Instance(GraphBuilder().build(), two())) == 0

    def test_one_vertex_runs_on_the_fastest_device(self) -> None:
        graph = GraphBuilder().vertex("a", 6).build()
        assert makespan(Instance(graph, two(speeds=(1, 4)))) == Fraction(3, 2)

    @pytest.mark.parametrize(
        ("bandwidth", "best"),
        [(None, 12), (4, 13), (Fraction(4, 5), 17), (Fraction(2, 3), 18), (0, 18)],
    )
    def test_a_fork_spreads_while_the_crossing_pays(self, bandwidth: Matrix, best: int) -> None:
        assert makespan(Instance(fork().build(), two(bandwidth))) == best

    def test_latency_adds_to_the_crossing(self) -> None:
        assert makespan(Instance(fork().build(), two(4, latency="1/2"))) == Fraction(27, 2)

    def test_links_have_a_direction(self) -> None:
        graph = GraphBuilder().vertex("a", 6, outputs=[4], device_type="CPU")
        graph.vertex("b", 6, device_type="GPU").edge("a", "b")
        assert makespan(Instance(graph.build(), two([[0, 2], [0, 0]]))) == 14
        assert makespan(Instance(graph.build(), two([[0, 0], [2, 0]]))) is None

    def test_a_measured_delay_replaces_latency_and_bandwidth(self) -> None:
        graph = GraphBuilder().vertex("a", 6, device_type="CPU")
        graph.vertex("b", 6, device_type="GPU")
        graph.output("a", 4, [[0, "7/3"], [None, 0]])
        graph.edge("a", "b")
        assert makespan(Instance(graph.build(), two(1, latency=9))) == Fraction(43, 3)

    def test_a_control_edge_crosses_with_latency_only(self) -> None:
        graph = GraphBuilder().vertex("a", 6, device_type="CPU")
        graph.vertex("b", 6, device_type="GPU").edge("a", "b", None)
        assert makespan(Instance(graph.build(), two(1, latency=2))) == 14

    def test_colocated_vertices_share_a_device_transitively(self) -> None:
        graph = GraphBuilder().vertex("a", 6).vertex("b", 6).vertex("c", 6)
        assert makespan(Instance(graph.build(), two())) == 12
        graph.colocate("a", "b").colocate("b", "c")
        assert makespan(Instance(graph.build(), two())) == 18

    def test_separated_vertices_do_not(self) -> None:
        graph = GraphBuilder().vertex("a", 6).vertex("b", 6).separate("a", "b")
        assert makespan(Instance(graph.build(), two(speeds=(3, 1)))) == 6
        graph.colocate("a", "b")
        assert makespan(Instance(graph.build(), two(speeds=(3, 1)))) is None

    def test_a_vertex_keeps_to_its_allowed_devices(self) -> None:
        graph = GraphBuilder().vertex("a", 6, devices=["d0"]).build()
        assert makespan(Instance(graph, two(speeds=(1, 4)))) == 6

    def test_given_durations_replace_operations(self) -> None:
        graph = GraphBuilder().vertex("a", 6).vertex("b", 6).build()
        assert makespan(Instance(graph, two(), durations=[[5, None], [4, 7]])) == 7
        assert makespan(Instance(graph, two(), durations=[[5, None], [4, None]])) == 9

    def test_an_estimate_of_memory_fills_up_a_device(self) -> None:
        def best(capacity: int) -> Fraction | None:
            cluster = Cluster.of(
                [Device("d0", 2, memory=capacity), Device("d1", 1, memory=9)], bandwidth=1
            )
            return makespan(Instance(fork().build(), cluster, Model(memory="estimate")))

        # a, b and c hold 4 each: an output, an input and an input.
        assert best(12) == 9
        assert best(11) == 3 + 4 + 6
        assert best(3) is None

    def test_waiting_may_be_best(self) -> None:
        """The device waits for the long vertex although another one could run immediately."""
        graph = GraphBuilder().vertex("a", 1).vertex("long", 5).vertex("end", 5, device_type="GPU")
        graph.vertex("other", 4, device_type="CPU").edge("a", "long", None).edge(
            "long", "end", None
        )
        graph.colocate("long", "other").separate("a", "long")
        assert makespan(Instance(graph.build(), two())) == 11


@pytest.mark.parametrize("memory", ["none", "estimate"])
def test_agrees_with_every_placement_and_every_permutation(memory: Memory) -> None:
    rng = np.random.default_rng(1)
    infeasible = 0
    for _ in range(25):
        instance = random_instance(rng, 4, 2, memory=memory)
        plain = plain_optimum(instance)
        assert makespan(instance) == plain
        infeasible += plain is None
    assert infeasible < 13


def plain_optimum(instance: Instance) -> Fraction | None:
    spans = []
    for placement in allowed_placements(instance):
        for order in permutations(range(instance.vertices)):
            try:
                schedule = retime(instance, placement, order)
            except InputError:  # not topological
                continue
            if not verify(instance, schedule):
                spans.append(schedule.makespan(instance))
    return min(spans, default=None)


def test_its_schedule_has_its_makespan() -> None:
    rng = np.random.default_rng(2)
    for _ in range(100):
        instance = random_instance(rng, 6, 3, memory="estimate")
        best = optimum(instance)
        if best is not None:
            schedule = retime(instance, best.placement, best.order)
            assert verify(instance, schedule) == []
            assert schedule.makespan(instance) == best.makespan
