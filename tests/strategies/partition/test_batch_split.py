"""Batch split ([L] §4.4, [M] §3.2.1): important vertices on fast devices."""

from __future__ import annotations

import numpy as np
import pytest

from optpart import Cluster, Device, GraphBuilder, InputError, Instance, Model
from optpart.strategies.partition.batch_split import batch_split
from optpart.strategies.partition.common import Variant

VARIANTS: list[Variant] = ["thesis", "paper"]


def placement(instance: Instance, variant: Variant = "thesis") -> list[int]:
    partition = batch_split(instance, np.random.default_rng(0), variant=variant)
    return [int(device) for device in partition.placement]


def diamond() -> GraphBuilder:
    """a (2) → b (5) → d (1), a → c (3) → d, c → e (4).

    Operations ranks 9, 8, 9, 8 and 9, total ranks 11, 13, 12, 9 and 13.
    """
    builder = GraphBuilder()
    for name, ops in zip("abcde", (2, 5, 3, 1, 4), strict=True):
        builder.vertex(name, ops, memory=1)
    for u, v in ("ab", "bd", "ac", "cd", "ce"):
        builder.edge(u, v, None)
    return builder


def cluster(memory: int | None = None) -> Cluster:
    """Speeds 1, 4 and 2; ``memory`` is that of the fastest."""
    return Cluster.of([Device("d0", 1), Device("d1", 4, memory=memory), Device("d2", 2)])


class TestThesis:
    def test_ranges_of_falling_operations_rank_go_to_ever_slower_devices(self) -> None:
        """a and c, e and b, d."""
        assert placement(Instance(diamond().build(), cluster())) == [1, 2, 1, 0, 2]

    def test_more_devices_than_vertices(self) -> None:
        """Vertices 0 and 1 of the order begin ranges 0 and 2 of 5."""
        graph = GraphBuilder().vertex("a", 1).vertex("b", 2).build()
        assert placement(Instance(graph, Cluster.uniform(5))) == [2, 0]

    def test_a_full_device_is_followed_by_the_next_slower(self) -> None:
        instance = Instance(diamond().build(), cluster(1), Model(memory="estimate"))
        assert placement(instance) == [1, 2, 2, 0, 2]

    def test_the_slowest_device_is_followed_by_the_fastest(self) -> None:
        """x is in the last range, that of d0."""
        graph = diamond().vertex("x", 1, devices=["d1", "d2"]).build()
        assert placement(Instance(graph, cluster()))[5] == 1

    def test_the_first_of_a_group_takes_the_others_along(self) -> None:
        """b and d are in later ranges than a; e is second, c third, in one order with all."""
        graph = diamond().colocate("d", "a").colocate("b", "e").build()
        assert placement(Instance(graph, cluster())) == [1, 2, 1, 1, 2]


class TestPaper:
    def test_all_on_the_fastest_device(self) -> None:
        assert placement(Instance(diamond().build(), cluster()), "paper") == [1] * 5

    def test_the_highest_total_ranks_where_memory_ends(self) -> None:
        """b and e."""
        instance = Instance(diamond().build(), cluster(2), Model(memory="estimate"))
        assert placement(instance, "paper") == [2, 1, 2, 2, 1]

    def test_a_heavy_vertex_by_itself_ranks_by_twice_its_operations(self) -> None:
        """Before b and e with 7, after them with 6."""
        for ops, devices in ((7, [2, 2, 1]), (6, [1, 2, 2])):
            graph = diamond().vertex("x", ops, memory=1).build()
            instance = Instance(graph, cluster(1), Model(memory="estimate"))
            device = placement(instance, "paper")
            assert [device[1], device[4], device[5]] == devices


@pytest.mark.parametrize("variant", VARIANTS)
class TestBoth:
    def test_given_run_times_count_by_their_mean(self, variant: Variant) -> None:
        """4 and 5; d1 is the faster, and has room for one."""
        graph = GraphBuilder().vertex("a", memory=1).vertex("b", memory=1).build()
        instance = Instance(
            graph,
            Cluster.of([Device("d0"), Device("d1", memory=1)]),
            Model(memory="estimate"),
            durations=[[5, 3], [6, 4]],
        )
        assert placement(instance, variant) == [0, 1]


def test_an_unknown_variant_is_refused() -> None:
    instance = Instance(diamond().build(), cluster())
    with pytest.raises(InputError, match="variant: unknown 'book'; choose one of thesis, paper"):
        batch_split(instance, np.random.default_rng(0), variant="book")  # type: ignore[arg-type]
