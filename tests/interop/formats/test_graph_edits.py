"""Edits of graphs from elsewhere: colocate cells, break cycles ([B] §4.1)."""

from __future__ import annotations

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optpart import Graph, GraphBuilder, InputError
from optpart.interop.formats.graph_edits import NamedEdge, break_cycles, colocate_cells


def graph(*names: str, groups: tuple[tuple[str, ...], ...] = ()) -> Graph:
    builder = GraphBuilder()
    for name in names:
        builder.vertex(name, 3, outputs=[2])
    for group in groups:
        builder.colocate(*group)
    return builder.build()


CELLS = (
    "layer_0/step_0/MatMul",
    "layer_0/step_0/Tanh",
    "layer_0/step_1/MatMul",
    "layer_1/step_0/MatMul",
    "gradients/layer_0/step_0/MatMul",
    "layer_0/kernel",
)


class TestCells:
    def test_names_that_begin_alike_are_a_group(self) -> None:
        assert colocate_cells(graph(*CELLS), r"layer_\d+/step_\d+/").colocation == ((0, 1),)

    def test_captured_groups_of_the_pattern_distinguish_cells(self) -> None:
        pattern = r"(?:gradients/)?(layer_\d+/step_\d+)/"
        assert colocate_cells(graph(*CELLS), pattern).colocation == ((0, 1, 4),)
        assert colocate_cells(graph(*CELLS), r"(layer_\d+)/").colocation == ((0, 1, 2, 5),)

    def test_existing_groups_remain(self) -> None:
        grouped = graph(*CELLS, groups=((CELLS[3], CELLS[5]),))
        edited = colocate_cells(grouped, r"layer_\d+/step_\d+/")
        assert edited.colocation == ((3, 5), (0, 1))

    def test_nothing_else_changes(self) -> None:
        edited = colocate_cells(graph(*CELLS), r"layer_0/")
        assert edited.names == CELLS
        assert edited.ops.sum() == 3 * len(CELLS)
        assert edited.tensors == len(CELLS)

    @pytest.mark.parametrize("pattern", ["(", "*", "x{99999999999}", "layer_9/", "step_0"])
    def test_a_pattern_that_is_invalid_or_matches_nothing_is_an_error(self, pattern: str) -> None:
        with pytest.raises(InputError, match=r"^pattern: "):
            colocate_cells(graph(*CELLS), pattern)


def edges(*pairs: str) -> list[NamedEdge]:
    return [(pair[0], 0, pair[1]) for pair in pairs]


def removed(vertices: str, *pairs: str, closing: str = "") -> list[str]:
    kept, gone = break_cycles(list(vertices), edges(*pairs), set(closing))
    assert sorted([*kept, *gone]) == sorted(edges(*pairs))
    return [source + target for source, _, target in gone]


class TestCycles:
    def test_without_one_nothing_is_removed(self) -> None:
        assert removed("abc", "ab", "bc", "ac") == []

    def test_the_edge_with_which_a_traversal_closes_one_is_removed(self) -> None:
        """From s the traversal enters at b, so a → b closes the cycle, whatever is listed first."""
        assert removed("abcs", "ab", "bc", "ca", "sb") == ["ab"]

    def test_a_traversal_without_entry_starts_at_the_first_vertex(self) -> None:
        assert removed("abc", "ab", "bc", "ca") == ["ca"]
        assert removed("cab", "ab", "bc", "ca") == ["bc"]

    def test_every_cycle_is_broken(self) -> None:
        assert removed("abcd", "ab", "ba", "cd", "dc", "bc") == ["ba", "dc"]

    def test_a_loop_of_one_is_a_cycle(self) -> None:
        assert removed("ab", "aa", "ab") == ["aa"]

    def test_vertices_that_close_loops_go_first(self) -> None:
        """m → s → n → m, entered at s as well: without n's name, m → s would be removed."""
        assert removed("imsn", "is", "ms", "sn", "nm") == ["ms"]
        assert removed("imsn", "is", "ms", "sn", "nm", closing="n") == ["nm"]

    def test_but_only_edges_on_a_cycle(self) -> None:
        assert removed("msnx", "ms", "sn", "nm", "nx", closing="n") == ["nm"]
        assert removed("snx", "sn", "nx", closing="n") == []

    def test_all_edges_between_the_same_vertices_go_together(self) -> None:
        loop: list[NamedEdge] = [("a", 0, "b"), ("b", 0, "a"), ("b", None, "a"), ("b", 0, "a")]
        assert break_cycles(["a", "b"], loop) == (loop[:1], loop[1:])

    def test_vertices_that_only_edges_name_are_kept(self) -> None:
        assert break_cycles(["a"], [("gone", 0, "a")]) == ([("gone", 0, "a")], [])

    def test_long_cycles_cause_no_recursion(self) -> None:
        names = [str(v) for v in range(5000)]
        ring: list[NamedEdge] = [
            (u, 0, v) for u, v in zip(names, names[1:] + names[:1], strict=True)
        ]
        assert break_cycles(names, ring)[1] == ring[-1:]

    @given(
        st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from("abcdef")), max_size=20),
        st.sets(st.sampled_from("abcdef"), max_size=2),
    )
    def test_what_remains_is_acyclic_and_every_removed_edge_was_on_a_cycle(
        self, pairs: list[tuple[str, str]], closing: set[str]
    ) -> None:
        named: list[NamedEdge] = [(u, 0, v) for u, v in pairs]
        kept, gone = break_cycles(list("abcdef"), named, closing)
        remaining, whole = nx.DiGraph([(u, v) for u, _, v in kept]), nx.DiGraph(pairs)
        assert nx.is_directed_acyclic_graph(remaining)
        assert sorted([*kept, *gone]) == sorted(named)
        assert all(nx.has_path(whole, v, u) for u, _, v in gone)
