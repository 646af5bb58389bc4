"""Depth first search ([L] §4.8, [M] §3.3.2): neighbours one after another."""

from __future__ import annotations

import numpy as np
import pytest

from optpart import Cluster, Device, GraphBuilder, InputError, Instance
from optpart.strategies.partition.common import Variant
from optpart.strategies.partition.dfs import depth_first

VARIANTS: list[Variant] = ["thesis", "paper"]


def placement(instance: Instance, variant: Variant = "thesis") -> list[int]:
    partition = depth_first(instance, np.random.default_rng(0), variant=variant)
    return [int(device) for device in partition.placement]


def visit(builder: GraphBuilder, variant: Variant = "thesis") -> str:
    """Vertices in the order in which they were placed."""
    instance = Instance(builder.build(), Cluster.uniform(2))
    found = depth_first(instance, np.random.default_rng(0), variant=variant).placed
    assert found is not None
    return "".join(instance.graph.names[v] for v in np.argsort(found, kind="stable"))


def edges(vertices: str, *pairs: str) -> GraphBuilder:
    builder = GraphBuilder()
    for name in vertices:
        builder.vertex(name, 1)
    for u, v in pairs:
        builder.edge(u, v, None)
    return builder


def two() -> Cluster:
    """Speeds 1 and 2, all transfers at 2."""
    return Cluster.of([Device("d0", 1), Device("d1", 2)], 2)


@pytest.mark.parametrize("variant", VARIANTS)
class TestOrder:
    def test_goes_deep_before_it_goes_wide(self, variant: Variant) -> None:
        assert visit(edges("abcde", "ab", "ac", "bd", "be"), variant) == "abdec"

    def test_successors_go_by_number(self, variant: Variant) -> None:
        assert visit(edges("abcd", "ad", "ab", "ac"), variant) == "abcd"

    def test_what_has_been_visited_is_not_visited_again(self, variant: Variant) -> None:
        assert visit(edges("abcd", "ab", "ac", "bd", "cd"), variant) == "abdc"

    def test_a_vertex_need_not_wait_for_its_predecessors(self, variant: Variant) -> None:
        assert visit(edges("abc", "ac", "bc"), variant) == "acb"

    def test_sources_go_by_falling_rank(self, variant: Variant) -> None:
        """Their paths have 2, 3 and 1 vertices."""
        assert visit(edges("abcdef", "ae", "bd", "df"), variant) == "bdfaec"

    def test_units_are_placed_whole(self, variant: Variant) -> None:
        builder = edges("abcd", "ab", "cd").colocate("a", "d")
        assert visit(builder, variant) == "adbc"

    def test_depth_has_no_limit(self, variant: Variant) -> None:
        builder = GraphBuilder()
        for v in range(20_000):
            builder.vertex(str(v), 1)
        for v in range(19_999):
            builder.edge(str(v), str(v + 1), size=1)
        instance = Instance(builder.build(), Cluster.uniform(2, bandwidth=1))
        assert placement(instance, variant) == [0] * 20_000


def test_total_ranks_count_a_source_twice() -> None:
    """Operations ranks 5 and 6, total ranks 5 + 5 and 6 + 1."""
    builder = GraphBuilder().vertex("a", 5).vertex("b", 1).vertex("c", 5).edge("b", "c", None)
    assert visit(builder, "thesis") == "bca"
    assert visit(builder, "paper") == "abc"


class TestThesis:
    @pytest.mark.parametrize(("size", "device"), [(12, 0), (6, 1)])
    def test_takes_the_least_product_of_traffic_and_execution_time(
        self, size: int, device: int
    ) -> None:
        """q on d1 and p on d0 both feed v; loads are 1 and 2.

        Traffic is 4/2 on d0 and size/2 on d1, execution time (2 + 6)/1 and 1 + 6/2. With 12 the
        products are 1/3 · 1 and 1 · 1/2, with 6 they are 2/3 · 1 and 1 · 1/2.
        """
        builder = GraphBuilder().vertex("q", 2, outputs=[4], devices=["d1"])
        builder.vertex("p", 2, outputs=[size], devices=["d0"]).vertex("v", 6)
        builder.edge("q", "p", None).edge("q", "v").edge("p", "v")
        assert placement(Instance(builder.build(), two()))[2] == device

    def test_importance_and_memory_do_not_count(self) -> None:
        """The first is on the fastest device; its 2 + 3/2 there are more than 3 on the other."""
        builder = GraphBuilder().vertex("a", 4).vertex("b", 3)
        assert placement(Instance(builder.build(), two())) == [1, 0]


class TestPaper:
    def test_execution_time_is_that_of_the_vertex_alone(self) -> None:
        """Traffic 4/2 on d0 and 6/2 on d1, time 1 and 1/2, whatever the load of 30 on d1."""
        for size, device in ((6, 1), (10, 0)):
            builder = GraphBuilder().vertex("q", 60, outputs=[4], devices=["d1"])
            builder.vertex("p", 2, outputs=[size], devices=["d0"]).vertex("v", 6)
            builder.edge("q", "p", None).edge("q", "v").edge("p", "v")
            assert placement(Instance(builder.build(), two()), "paper")[2] == device

    def test_without_traffic_the_execution_time_so_far_decides(self) -> None:
        builder = GraphBuilder().vertex("a", 4).vertex("b", 3)
        assert placement(Instance(builder.build(), two()), "paper") == [1, 0]


def test_an_unknown_variant_is_refused() -> None:
    instance = Instance(edges("ab").build(), two())
    with pytest.raises(InputError, match="variant: unknown 'book'; choose one of thesis, paper"):
        depth_first(instance, np.random.default_rng(0), variant="book")  # type: ignore[arg-type]
