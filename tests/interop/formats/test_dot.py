import json
from pathlib import Path

import pytest
from faults import one_line_fault

from optpart.interop.formats import dot, native
from optpart.problem.cluster import Cluster, Device
from optpart.problem.graph import CONTROL, Graph
from optpart.problem.instance import Instance
from optpart.problem.workload import Workload
from optpart.testing.mutate import refusals

SMALL = """
# a comment of the preprocessor
DiGraph two {
  colocation = "a;b"; separation="a;c|b;d"
  graph []  node []  /* nothing to
  set */
  a [ops=30, outputs="50;20", memory=".5"] // as in the tests
  b [ops="1/3" device_type=GPU; devices="g0" + ";g1"]
  a -> b [output=1]
  a -> c -> d [size=-0]
  a -> "c" [weight=10.25]
  "b" -> c; b -> d [output=""]
}
"""


def read(folder: Path, text: str) -> Workload:
    path = folder / "graph.dot"
    path.write_text(text)
    return dot.read(path)


def edges(graph: Graph) -> list[tuple[str, str, int, str]]:
    return sorted(
        (graph.names[u], graph.names[v], k, str(graph.tensor_size[t]))
        for u, v, t in zip(graph.edge_source, graph.edge_target, graph.edge_tensor, strict=True)
        for k in [int(graph.tensor_output[t])]
    )


def test_attributes_are_those_of_a_networkx_graph(tmp_path: Path) -> None:
    workload = read(tmp_path, SMALL)
    graph = workload.graph
    assert workload.name == "two"
    assert graph.names == ("a", "b", "c", "d")
    assert [str(ops) for ops in graph.ops.fractions()] == ["30", "1/3", "0", "0"]
    assert [str(held) for held in graph.memory.fractions()] == ["1/2", "0", "0", "0"]
    assert graph.device_types == (None, "GPU", None, None)
    assert graph.allowed_devices == {1: ("g0", "g1")}
    assert graph.colocation == ((0, 1),)
    assert graph.separation == ((0, 2), (1, 3))
    assert edges(graph) == [
        ("a", "b", 1, "20"),
        ("a", "c", 2, "0"),
        ("a", "c", 3, "41/4"),
        ("b", "c", CONTROL, "0"),
        ("b", "d", CONTROL, "0"),
        ("c", "d", 0, "0"),
    ]
    assert (workload.work, workload.measured) == (None, {})


def test_names_may_be_numbers_quoted_or_not_latin(tmp_path: Path) -> None:
    text = 'strict digraph { 1 -> -2.5 -> "two words\\"" -> größe }'
    assert read(tmp_path, text).graph.names == ("1", "-2.5", 'two words"', "größe")


def test_a_graph_without_name_takes_that_of_its_file(tmp_path: Path) -> None:
    assert read(tmp_path, "digraph { a }").name == "graph"


def test_an_instance_of_it_survives_native_json(tmp_path: Path) -> None:
    devices = [Device("g0", 2, "GPU"), Device("g1", 1, "GPU"), Device("c", 1, "CPU")]
    instance = Instance(read(tmp_path, SMALL).graph, Cluster.of(devices, bandwidth=5))
    assert native.from_dict(json.loads(native.dumps(instance))).sha256 == instance.sha256


def test_its_beginning_tells_it_from_other_texts() -> None:
    assert dot.sniff("digraph {")
    assert dot.sniff("\nstrict digraph x{ a }")
    assert not dot.sniff("digraph of a function\n")


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "line 1: not DOT; give a digraph"),
        ("graph { a }", "line 1: an undirected graph"),
        ("digraph {\n a -- b }", "line 2: an edge without direction; write ->"),
        ("digraph { a\n b:n -> c }", "line 2: a port; leave out ports"),
        ("digraph { a -> { b c } }", "line 1: a subgraph; give one flat graph"),
        ("digraph { subgraph x { a } }", "line 1: a subgraph"),
        ("digraph { a [ops=<b>] }", "line 1: HTML"),
        ("digraph {\n node [ops=1] a }", "line 2: sets defaults; write attributes at every node"),
        ("digraph { a", "line 1: the end is unexpected; give a name"),
        ("digraph { a } b", "line 1: more after the graph"),
        ("digraph { a [ops] }", "line 1: ] is unexpected; give ="),
        ('digraph { a [ops="1] }', "line 1: '\"' is not DOT"),
        ("digraph { a [ops=1/3] }", "line 1: '/' is not DOT"),
        ("digraph { a [ops=1 ops=2] }", "line 1: another value of 'ops'; give it once"),
        ("digraph { a [ops=1]\n a [ops=2] }", "line 2: another value of 'ops'"),
        ("digraph { x=1 }", "graph: unknown attribute 'x'; known ones are colocation, separation"),
        ("strict digraph { a -> b a -> b }", "is strict, but has an edge twice"),
        ("digraph { a -> b -> a }", "cycle a → b → a"),
        ("digraph { a [label=x] }", "line 1, node 'a': unknown attribute 'label'; known ones are"),
        ("digraph { a [ops=1 weight=2] }", "node 'a': both ops and weight; give one of them"),
        ("digraph { a [ops=many] }", "node 'a', ops: 'many' is not a number"),
        ("digraph { a [memory=-1] }", "node 'a', memory: -1 is negative"),
        ('digraph { a [outputs="1;;2"] }', "node 'a', outputs: '' is not a number"),
        ('digraph { a [devices="x;"] }', "node 'a', devices: an empty name"),
        ('digraph { a [device_type=""] }', "node 'a', device_type: is empty"),
        ("digraph { a -> b [color=red] }", "edge 'a' to 'b': unknown attribute 'color'"),
        ("digraph { a -> b [output=0] }", "'a' has no output 0"),
        ("digraph { a -> b [output=x] }", "edge 'a' to 'b', output: 'x'; give the number"),
        ("digraph { a -> b [output=0 size=1] }", "edge 'a' to 'b': both output and size"),
        ('digraph { colocation="a;b" a }', "graph, colocation: no vertex 'b'"),
        ('digraph { separation="a;b;c" a b c }', "graph, separation: a group of 3"),
    ],
)
def test_a_fault_is_one_line_that_names_file_and_place(
    tmp_path: Path, text: str, part: str
) -> None:
    with one_line_fault(tmp_path / "graph.dot", part):
        read(tmp_path, text)


def test_damaged_files_are_read_or_refused_on_one_line(tmp_path: Path) -> None:
    path = tmp_path / "graph.dot"

    def damaged(content: bytes, _: int) -> None:
        path.write_bytes(content)
        dot.read(path)

    faults = refusals(SMALL.encode(), range(300), damaged)
    assert len(faults) > 100
    assert not any("\n" in fault for fault in faults)
