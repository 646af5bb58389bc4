"""The graph: built by name, checked, frozen, and read from networkx."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given

from optpart import Cluster, Graph, GraphBuilder, InputError, Instance
from optpart.problem.graph import CONTROL
from optpart.testing.strategies import instances


def diamond() -> GraphBuilder:
    builder = GraphBuilder().vertex("a", 1, outputs=[2, 3]).vertex("b", outputs=[5]).vertex("c")
    return (
        builder.vertex("d").edge("a", "b", 0).edge("a", "c", 1).edge("b", "d").edge("c", "d", None)
    )


class TestBuilding:
    def test_tensors_are_numbered_by_vertex_and_control_signals_follow(self) -> None:
        graph = diamond().build()
        assert len(graph) == 4
        assert graph.tensors == 4
        assert graph.tensor_vertex.tolist() == [0, 0, 1, 2]
        assert graph.tensor_output.tolist() == [0, 1, 0, CONTROL]
        assert graph.tensor_size.fractions() == [2, 3, 5, 0]
        assert [graph.tensor_name(t) for t in range(4)] == ["a:0", "a:1", "b:0", "c (control)"]

    def test_edges_consume_tensors(self) -> None:
        graph = diamond().build()
        edges = zip(
            graph.edge_source.tolist(),
            graph.edge_target.tolist(),
            graph.edge_tensor.tolist(),
            strict=True,
        )
        assert list(edges) == [(0, 1, 0), (0, 2, 1), (1, 3, 2), (2, 3, 3)]

    def test_consumers_share_a_tensor_and_control_edges_a_signal(self) -> None:
        builder = GraphBuilder().vertex("a", outputs=[1]).vertex("b").vertex("c")
        builder.edge("a", "b").edge("a", "c").edge("a", "b", None).edge("a", "c", None)
        graph = builder.build()
        assert graph.edge_tensor.tolist() == [0, 0, 1, 1]
        assert graph.tensors == 2

    def test_an_edge_given_twice_is_one(self) -> None:
        graph = GraphBuilder().vertex("a", outputs=[1]).vertex("b").edge("a", "b").edge("a", "b")
        assert len(graph.build().edge_source) == 1

    def test_an_edge_may_bring_its_own_tensor(self) -> None:
        builder = GraphBuilder().vertex("a", outputs=[1]).vertex("b")
        graph = builder.edge("a", "b", size="1/2").edge("a", "b", size=4).build()
        assert graph.tensor_size.fractions() == [1, Fraction(1, 2), 4]
        assert graph.edge_tensor.tolist() == [1, 2]

    def test_neighbours(self) -> None:
        graph = diamond().build()
        start, order = graph.in_edges
        assert order[start[3] : start[4]].tolist() == [2, 3]
        start, order = graph.out_edges
        assert order[start[0] : start[1]].tolist() == [0, 1]
        start, order = graph.tensor_edges
        assert order[start[1] : start[2]].tolist() == [1]

    def test_fractional_sizes_beside_a_control_edge(self) -> None:
        builder = GraphBuilder().vertex("a", outputs=["1/2"]).vertex("b")
        graph = builder.edge("a", "b").edge("a", "b", None).build()
        assert graph.tensor_size.fractions() == [Fraction(1, 2), 0]

    def test_a_bad_size_beside_a_control_edge_is_named(self) -> None:
        builder = GraphBuilder().vertex("a", outputs=[1, -1]).vertex("b").edge("a", "b", None)
        with pytest.raises(InputError, match=r"^vertices\[0\]\.outputs\[1\]: -1 is negative"):
            builder.build()

    def test_nothing(self) -> None:
        graph = GraphBuilder().build()
        assert len(graph) == 0
        assert graph.tensors == 0
        assert graph.topological_order.tolist() == []

    @given(instances())
    def test_the_topological_order_is_one(self, instance: Instance) -> None:
        graph = instance.graph
        assert sorted(graph.topological_order.tolist()) == list(range(len(graph)))
        position = np.argsort(graph.topological_order)
        assert np.all(position[graph.edge_source] < position[graph.edge_target])


class TestFrozen:
    @pytest.mark.parametrize(
        "array", ["edge_source", "edge_target", "edge_tensor", "tensor_vertex", "topological_order"]
    )
    def test_arrays_cannot_be_written(self, array: str) -> None:
        with pytest.raises(ValueError, match="read-only"):
            getattr(diamond().build(), array)[0] = 1

    def test_further_building_leaves_built_graphs_unchanged(self) -> None:
        builder = GraphBuilder().vertex("a")
        graph = builder.build()
        builder.vertex("b", devices=["d0"]).colocate("a", "b").separate("a", "b")
        assert dict(graph.allowed_devices) == {}
        assert graph.colocation == graph.separation == ()
        assert Instance(graph, Cluster.uniform(1)).vertex_allowed.shape == (1, 1)


class TestErrors:
    @pytest.mark.parametrize(
        ("build", "message"),
        [
            (
                lambda b: b.vertex("a"),
                "vertices[4].name: 'a' is already vertices[0]; give every vertex a unique name",
            ),
            (
                lambda b: b.vertex(""),
                "vertices[4].name: missing name; give every vertex a unique name",
            ),
            (
                lambda b: b.vertex(7),
                "vertices[4].name: missing name; give every vertex a unique name",
            ),
            (
                lambda b: b.edge("a", "x"),
                "edges[4]: no vertex 'x'; name a vertex from the list of vertices",
            ),
            (
                lambda b: b.vertex("left").edge("a", "lfet"),
                "edges[4]: no vertex 'lfet'; did you mean left?",
            ),
            (
                lambda b: b.edge([], "a"),
                "edges[4]: no vertex []; name a vertex from the list of vertices",
            ),
            (
                lambda b: b.edge("a", "b", 2),
                "edges[4]: 'a' has no output 2 (it has 2); "
                "name an existing output, or null for a control dependency",
            ),
            (
                lambda b: b.edge("a", "b", -1),
                "edges[4]: 'a' has no output -1 (it has 2); "
                "name an existing output, or null for a control dependency",
            ),
            (
                lambda b: b.edge("a", "b", True),
                "edges[4]: no output True; give its index, or null for a control dependency",
            ),
            (
                lambda b: b.colocate("a", "x"),
                "colocation[0]: no vertex 'x'; name a vertex from the list of vertices",
            ),
            (
                lambda b: b.separate("x", "a"),
                "separation[0]: no vertex 'x'; name a vertex from the list of vertices",
            ),
            (
                lambda b: b.output("x", 1),
                "outputs: no vertex 'x'; name a vertex from the list of vertices",
            ),
            (
                lambda b: b.output("a", 1, [[0, -3], [0, 0]]),
                "vertices[0].outputs[2].delay[0][1]: -3 is negative; give a number ≥ 0",
            ),
            (
                lambda b: b.vertex("e", -1).build(),
                "vertices[4].ops: -1 is negative; give a number ≥ 0",
            ),
            (
                lambda b: b.vertex("e", memory="-1/2").build(),
                "vertices[4].memory: -1/2 is negative; give a number ≥ 0",
            ),
        ],
    )
    def test_a_wrong_entry(self, build: Callable[[Any], Any], message: str) -> None:
        with pytest.raises(InputError) as caught:
            build(diamond())
        assert str(caught.value) == message

    @pytest.mark.parametrize(
        ("extra", "cycle"),
        [
            ([("a", "a")], "cycle a → a;"),
            ([("d", "b")], "cycle b → d → b;"),
            ([("d", "a")], "cycle a → b → d → a;"),
        ],
    )
    def test_a_cycle_is_spelled_out(self, extra: list[tuple[str, str]], cycle: str) -> None:
        builder = diamond()
        for source, target in extra:
            builder.edge(source, target, None)
        with pytest.raises(InputError, match=cycle):
            builder.build()

    def test_a_long_cycle_is_reported_by_its_own_vertices(self) -> None:
        builder = GraphBuilder()
        for v in range(6):
            builder.vertex(f"v{v}")
        for u, v in [(0, 1), (1, 2), (2, 3), (3, 1), (3, 4), (4, 5)]:
            builder.edge(f"v{u}", f"v{v}", None)
        with pytest.raises(InputError, match="cycle v1 → v2 → v3 → v1;"):
            builder.build()


class TestNetworkx:
    def test_reads_every_attribute(self) -> None:
        source: nx.DiGraph[Any] = nx.DiGraph(colocation=[[1, 2]], separation=[(1, 3)])
        source.add_node(1, ops=3, memory=2, device_type="GPU", devices=["d1"], outputs=[4])
        source.add_node(2, weight="1/2")
        source.add_node(3)
        source.add_edge(1, 2, output=0)
        source.add_edge(1, 3, size=7)
        source.add_edge(2, 3)
        graph = Graph.from_networkx(source)
        assert graph.names == ("1", "2", "3")
        assert graph.ops.fractions() == [3, Fraction(1, 2), 0]
        assert graph.memory.fractions() == [2, 0, 0]
        assert graph.device_types == ("GPU", None, None)
        assert dict(graph.allowed_devices) == {0: ("d1",)}
        assert graph.tensor_size.fractions() == [4, 7, 0]
        assert graph.tensor_output[graph.edge_tensor].tolist() == [0, 1, CONTROL]
        assert graph.colocation == ((0, 1),)
        assert graph.separation == ((0, 2),)

    def test_weights_of_edges_are_sizes(self) -> None:
        source: nx.DiGraph[Any] = nx.DiGraph()
        source.add_weighted_edges_from([("a", "b", 3), ("a", "c", 4)])
        assert Graph.from_networkx(source).tensor_size.fractions() == [3, 4]

    def test_attributes_may_have_other_names(self) -> None:
        source: nx.DiGraph[Any] = nx.DiGraph()
        source.add_node("a", cost=3, weights=4)
        source.add_node("b", cost=5, weights=0)
        source.add_edge("a", "b", bytes=7)
        names = {"ops": "cost", "memory": "weights", "size": "bytes"}
        graph = Graph.from_networkx(source, attributes=names)
        assert graph.ops.fractions() == [3, 5]
        assert graph.memory.fractions() == [4, 0]
        assert graph.tensor_size.fractions() == [7]
        assert source.nodes["a"] == {"cost": 3, "weights": 4}  # the user's graph stays as it is

    @pytest.mark.parametrize(
        ("attributes", "said"),
        [
            (
                {"ops": "costs"},
                "node 'a': no attribute 'costs'; give it, or leave 'ops' out of the option "
                "attributes",
            ),
            ({"size": "bytes"}, "edge 'a' → 'b': no attribute 'bytes'; give it, or leave 'size'"),
            ({"sizes": "bytes"}, "attributes: no attribute 'sizes' is read; did you mean size"),
        ],
    )
    def test_a_missing_attribute_is_named(self, attributes: dict[str, str], said: str) -> None:
        source: nx.DiGraph[Any] = nx.DiGraph([("a", "b")])
        with pytest.raises(InputError, match=said):
            Graph.from_networkx(source, attributes=attributes)

    @pytest.mark.parametrize(
        ("where", "attributes", "said"),
        [
            ("node", {"op": 3}, "node 'a': unknown attribute 'op'; did you mean ops"),
            ("node", {"ops": 3, "weight": 4}, "node 'a': both ops and weight"),
            ("node", {"outputs": "50"}, "node 'a', outputs: '50' is not a list"),
            ("node", {"devices": "d0"}, r"\.devices: 'd0' is not a list"),
            ("node", {"device_type": 3}, r"\.device_type: 3 is not a name"),
            ("node", {"delays": {0: [[0]]}}, "node 'a', delays: no output 0 "),
            ("node", {"delays": [[[0]]]}, "node 'a', delays: is "),
            ("edge", {"sizes": 3}, "edge 'a' → 'b': unknown attribute 'sizes'; did you mean size"),
            ("edge", {"size": None, "weight": 3}, "both size and weight"),
            ("edge", {"output": 0, "size": 3}, "both output and size"),
            ("graph", {"name": "x"}, "graph: unknown attribute 'name'; give the name to Instance"),
            ("graph", {"colocations": []}, "did you mean colocation"),
            ("graph", {"colocation": ["ab"]}, r"graph, colocation\[0\]: 'ab' is not a list"),
            ("graph", {"colocation": [["a", "x"]]}, "no node 'x'"),
            ("graph", {"separation": [["a", "b", "b"]]}, "3 nodes; separate pairs"),
        ],
    )
    def test_nothing_given_is_lost(self, where: str, attributes: dict[str, Any], said: str) -> None:
        source: nx.DiGraph[Any] = nx.DiGraph([("a", "b")])
        {"node": source.nodes["a"], "edge": source.edges["a", "b"], "graph": source.graph}[
            where
        ].update(attributes)
        with pytest.raises(InputError, match=said):
            Graph.from_networkx(source)

    def test_parallel_edges_are_edges_of_their_own(self) -> None:
        source: nx.MultiDiGraph[Any] = nx.MultiDiGraph()
        source.add_node("a", outputs=[5])
        source.add_edge("a", "b", key="weights", size=3)
        source.add_edge("a", "b", key="signal")
        source.add_edge("a", "b", key=7, output=0)
        source.add_edge("a", "b", size=4)
        graph = Graph.from_networkx(source)
        read = zip(
            graph.tensor_output[graph.edge_tensor].tolist(),
            [graph.tensor_size[t] for t in graph.edge_tensor.tolist()],
            strict=True,
        )
        assert sorted(size for output, size in read if output != CONTROL) == [3, 4, 5]
        assert graph.edge_source.tolist() == [0] * 4

    @pytest.mark.parametrize("key", [5, 2.5, Fraction(1, 2), 1])
    def test_a_key_that_may_be_meant_as_a_size_is_refused(self, key: object) -> None:
        """``add_edge("a", "b", 5)`` of a ``MultiDiGraph`` takes 5 for a key."""
        source: nx.MultiDiGraph[Any] = nx.MultiDiGraph()
        source.add_edge("a", "b", key)
        with pytest.raises(InputError, match=r"edge 'a' → 'b': key .*, but no attributes; give a"):
            Graph.from_networkx(source)

    def test_an_undirected_graph_is_refused(self) -> None:
        with pytest.raises(InputError, match="undirected"):
            Graph.from_networkx(nx.Graph([("a", "b")]))  # type: ignore[arg-type]

    def test_a_cycle_is_an_input_error(self) -> None:
        with pytest.raises(InputError, match="cycle a → b → a"):
            Graph.from_networkx(nx.DiGraph([("a", "b"), ("b", "a")]))

    def test_names_that_collide_are_an_input_error(self) -> None:
        source: nx.DiGraph[Any] = nx.DiGraph()
        source.add_nodes_from([1, "1"])
        with pytest.raises(InputError, match="'1' is already"):
            Graph.from_networkx(source)


def test_positions_are_those_in_the_topological_order() -> None:
    builder = GraphBuilder().vertex("v0").vertex("v1").vertex("v2")
    graph = builder.edge("v2", "v0", None).edge("v0", "v1", None).build()
    assert graph.position.tolist() == [1, 2, 0]
    assert graph.pairs() == [(2, 0), (0, 1)]
    assert [edge[:2] for edge in graph.edges()] == graph.pairs()
