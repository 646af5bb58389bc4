"""The contiguous split of least bottleneck, against all splits."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations, pairwise

import numpy as np
import pytest

from optpart import Cluster, Device, GraphBuilder, Instance, Model
from optpart.kernels.compiled import arrays
from optpart.strategies.partition.contiguous import line
from optpart.strategies.partition.pipedream import best_stages, pipedream
from optpart.testing.draw import draw_instance


def placement(instance: Instance) -> list[int]:
    partition = pipedream(instance, np.random.default_rng(0))
    assert partition.order is None
    return partition.placement.tolist()


def path(*ops: int, sizes: tuple[int, ...] = ()) -> GraphBuilder:
    """v0 → v1 → v2 → …, with tensors of the given sizes between them."""
    builder = GraphBuilder()
    for v, amount in enumerate(ops):
        outputs = [sizes[v]] if v < len(sizes) else [0]
        builder.vertex(f"v{v}", amount, memory=1, outputs=outputs)
        if v:
            builder.edge(f"v{v - 1}", f"v{v}")
    return builder


class TestBottleneck:
    def test_is_the_longest_stage(self) -> None:
        """Of 4 + 3, 6 and 2 + 4; all other three stages have one of 8 or more."""
        instance = Instance(path(4, 3, 6, 2, 4).build(), Cluster.uniform(3))
        assert placement(instance) == [0, 0, 1, 2, 2]

    def test_or_the_longest_transfer(self) -> None:
        """Stages of 5 and 5 would send 9 in between; 4 and 6 send 1."""
        graph = path(4, 1, 5, sizes=(1, 9)).build()
        assert placement(Instance(graph, Cluster.uniform(2, bandwidth=1))) == [0, 1, 1]

    def test_in_which_all_tensors_queue(self) -> None:
        """After a, two cross in 4 or in 8; after b, one crosses, but a and b take 5."""
        builder = GraphBuilder().vertex("a", 3, outputs=[4, 4]).vertex("b", 2).vertex("c", 2)
        graph = builder.edge("a", "b", 0).edge("a", "c", 1).build()
        assert placement(Instance(graph, Cluster.uniform(2, bandwidth=2))) == [0, 1, 1]
        assert placement(Instance(graph, Cluster.uniform(2, bandwidth=1))) == [0, 0, 1]

    def test_on_unlike_devices(self) -> None:
        cluster = Cluster.of([Device("slow", 1), Device("fast", 3)])
        assert placement(Instance(path(1, 1, 1, 1).build(), cluster)) == [0, 1, 1, 1]

    def test_a_device_that_helps_nothing_is_left_out(self) -> None:
        cluster = Cluster.of([Device("a", 9), Device("slow", "1/9"), Device("c", 9)])
        assert placement(Instance(path(9, 9).build(), cluster)) == [0, 2]

    @pytest.mark.parametrize("seed", range(20))
    def test_is_the_least_of_all_splits(self, seed: int) -> None:
        instance = draw_instance(seed, "delay", "estimate", vertices=(1, 6), devices=(1, 4))
        row = line(instance, arrays(instance).order, add=True)
        units = row.units.tolist()
        values = [bottleneck(instance, units, segments) for segments in every(units, instance)]
        least = min((value for value in values if value is not None), default=None)
        found = best_stages(row, instance.devices)
        assert (found is None) == (least is None)
        if found is not None:
            assert bottleneck(instance, units, found.segments) == least


def every(units: list[int], instance: Instance) -> list[list[tuple[int, int, int]]]:
    """All splits whose devices ascend: begin, end and device of each segment."""
    return [
        [(i, j, d) for (i, j), d in zip(pairwise((0, *cuts, len(units))), devices, strict=True)]
        for count in range(1, min(len(units), instance.devices) + 1)
        for cuts in combinations(range(1, len(units)), count - 1)
        for devices in combinations(range(instance.devices), count)
    ]


def bottleneck(
    instance: Instance, units: list[int], segments: Sequence[tuple[int, int, int]]
) -> Fraction | None:
    """The longest stage or transfer; ``None`` if a limit or a missing link forbids the split."""
    graph, longest = instance.graph, Fraction(0)
    apart = {frozenset(pair) for pair in instance.separated_units}
    for i, j, d in segments:
        here, room = units[i:j], instance.cluster.memory[d]
        need = sum((instance.static_memory[unit] for unit in here), Fraction(0))
        if not all(instance.allowed[unit, d] for unit in here):
            return None
        if (room is not None and need > room) or any(pair <= set(here) for pair in apart):
            return None
        members = [int(v) for unit in here for v in instance.units[unit]]
        longest = max(longest, sum((instance.duration(v, d) for v in members), Fraction(0)))
    for (_, cut, s), (_, _, d) in pairwise(segments):
        before, transfer = set(units[:cut]), Fraction(0)
        for tensor in range(graph.tensors):
            ends = {int(instance.unit_of[graph.tensor_vertex[tensor]])}
            ends |= {
                int(instance.unit_of[v]) for v in graph.edge_target[graph.edge_tensor == tensor]
            }
            if ends & before and ends - before:
                delay = instance.delay(tensor, s, d)
                if delay is None:
                    return None
                transfer += delay
        longest = max(longest, transfer)
    return longest


class TestConstraints:
    def test_what_may_not_run_there_runs_elsewhere(self) -> None:
        """Stages would have to go from d0 to d1 and back."""
        builder = GraphBuilder()
        for v, device in enumerate(("d0", "d1", "d0")):
            builder.vertex(f"v{v}", 1, devices=[device])
            if v:
                builder.edge(f"v{v - 1}", f"v{v}", None)
        assert placement(Instance(builder.build(), Cluster.uniform(2))) == [0, 1, 0]

    def test_without_any_split_one_device_is_filled_after_the_other(self) -> None:
        """Of 3, 2 and 3, contiguous stages need 5 on one device, or three devices."""
        builder = GraphBuilder()
        for v, memory in enumerate((3, 2, 1, 2)):
            builder.vertex(f"v{v}", 1, memory=memory)
            if v:
                builder.edge(f"v{v - 1}", f"v{v}", None)
        instance = Instance(builder.build(), Cluster.uniform(2, memory=4), Model(memory="estimate"))
        assert placement(instance) == [0, 1, 0, 1]
