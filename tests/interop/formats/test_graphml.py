import io
import json
from pathlib import Path

import networkx as nx
import pytest
from faults import one_line_fault

from optpart.base.errors import InputError
from optpart.interop.formats import graphml, native
from optpart.problem.cluster import Cluster
from optpart.problem.graph import CONTROL
from optpart.problem.instance import Instance
from optpart.problem.workload import Workload
from optpart.testing.mutate import refusals

SMALL = """<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <desc>three tasks</desc>
  <key id="k0" for="node" attr.name="ops" attr.type="double"><default>7</default></key>
  <key id="k1" for="edge" attr.name="size" attr.type="long"/>
  <key id="memory" for="all"/>
  <key id="k3" for="node" attr.name="outputs" attr.type="string"/>
  <key id="k4" for="edge" attr.name="output" attr.type="int"/>
  <key id="k5" for="graph" attr.name="colocation" attr.type="string"/>
  <graph id="three" edgedefault="directed">
    <data key="k5">a;b</data>
    <node id="a"><data key="k0">0.12345678901234567890123</data><data key="k3">5;6</data></node>
    <node id="b"><data key="memory"> 4 </data></node>
    <node id="c"/>
    <edge source="a" target="b"><data key="k1">50</data></edge>
    <edge id="e" source="a" target="c"><data key="k4">1</data></edge>
    <edge source="b" target="c"/>
  </graph>
</graphml>
"""


def read(folder: Path, text: str) -> Workload:
    path = folder / "graph.graphml"
    path.write_text(text)
    return graphml.read(path)


def test_attributes_are_those_of_a_networkx_graph_and_exact(tmp_path: Path) -> None:
    workload = read(tmp_path, SMALL)
    graph = workload.graph
    assert workload.name == "three"
    assert graph.names == ("a", "b", "c")
    assert str(graph.ops[0]) == "12345678901234567890123/" + "1" + 23 * "0"
    assert graph.ops.fractions()[1:] == [7, 7]  # the default
    assert graph.memory.fractions() == [0, 4, 0]
    assert graph.tensor_size.fractions() == [5, 6, 50, 0]
    assert graph.tensor_output[graph.edge_tensor].tolist() == [2, 1, CONTROL]
    assert graph.colocation == ((0, 1),)
    assert (workload.work, workload.measured) == (None, {})


def test_what_networkx_writes_is_read(tmp_path: Path) -> None:
    drawn = nx.DiGraph()
    drawn.add_node("x", ops=3, memory=0.5)
    drawn.add_edge("x", "y", size=10)
    stream = io.BytesIO()
    nx.write_graphml(drawn, stream)
    graph = read(tmp_path, stream.getvalue().decode()).graph
    assert (graph.names, graph.ops.fractions(), str(graph.memory[0])) == (("x", "y"), [3, 0], "1/2")
    assert graph.tensor_size.fractions() == [10]


def test_an_instance_of_it_survives_native_json(tmp_path: Path) -> None:
    instance = Instance(read(tmp_path, SMALL).graph, Cluster.uniform(2, bandwidth=5))
    assert native.from_dict(json.loads(native.dumps(instance))).sha256 == instance.sha256


def test_its_beginning_tells_it_from_other_texts() -> None:
    assert graphml.sniff(SMALL)
    assert not graphml.sniff("<gxl/>")


BOMB = "".join(
    ['<?xml version="1.0"?><!DOCTYPE b [<!ENTITY a "ha">']
    + [f'<!ENTITY {"a" * (i + 2)} "{10 * ("&" + "a" * (i + 1) + ";")}">' for i in range(12)]
    + ["]><graphml>&aaaaaaaaaaaaa;</graphml>"]
)


@pytest.mark.parametrize(
    "text", [BOMB, SMALL.replace("<graphml", '<!DOCTYPE g SYSTEM "/etc/passwd"><graphml', 1)]
)
def test_document_types_are_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError, match="has a document type; give a GraphML file without any"):
        read(tmp_path, text)


@pytest.mark.parametrize(
    ("old", "new", "part"),
    [
        ("</graphml>", "", "not XML (no element found)"),
        ("<graphml", "<gxl", "line 19, column 2: not XML (mismatched tag)"),
        ('edgedefault="directed"', "", 'graph: is not directed; write edgedefault="directed"'),
        ('<edge id="e"', '<edge directed="false"', "edge 'a' to 'c': is not directed"),
        ('<edge id="e"', '<edge sourceport="n"', "edge 'a' to 'c': has a sourceport"),
        ('<node id="c"/>', '<node id="c"><graph/></node>', "node 'c': <graph> is not read"),
        ('<node id="c"/>', "<node/>", "node '': no name"),
        ('<node id="c"/>', '<node id="b"/>', "node 'b': a second vertex 'b'"),
        ('<node id="c"/>', "", "edge 'a' to 'c': no vertex 'c'"),
        ('<node id="c"/>', "<hyperedge/>", "graph: <hyperedge> is not read"),
        ('target="b"', 'target="a"', "cycle a → a"),
        (
            '<node id="c"',
            '<node id="c" ops="3"',
            "node 'c': attribute 'ops' is not read; give it as",
        ),
        ('target="b"', 'target="b" size="3"', "edge 'a' to 'b': attribute 'size' is not read"),
        ('key="k1">50', 'key="k9">50', "edge 'a' to 'b': no key 'k9' for edges"),
        ('key="k1">50', 'key="k0">50', "edge 'a' to 'b': no key 'k0' for edges"),
        ('key="k1">50', 'key="k1">-50', "edge 'a' to 'b', size: -50 is negative"),
        ('key="k1">50', 'key="k1">50<b/>', "edge 'a' to 'b': <b> is not read; give text"),
        ('attr.name="size"', 'attr.name="colour"', "edge 'a' to 'b': unknown attribute 'colour'"),
        ('id="k1" for', 'id="k0" for', "key[2]: the id is 'k0'"),
        ('for="all"', 'for="port"', "key[3]: is for 'port'"),
        ("<desc>three tasks</desc>", "<x/>", "<x>: is not read"),
        ("</graphml>", '<graph edgedefault="directed"/></graphml>', "2 graphs; give exactly one"),
    ],
)
def test_a_fault_is_one_line_that_names_file_and_place(
    tmp_path: Path, old: str, new: str, part: str
) -> None:
    assert old in SMALL
    with one_line_fault(tmp_path / "graph.graphml", part):
        read(tmp_path, SMALL.replace(old, new, 1))


def test_damaged_files_are_read_or_refused_on_one_line(tmp_path: Path) -> None:
    path = tmp_path / "graph.graphml"

    def damaged(content: bytes, _: int) -> None:
        path.write_bytes(content)
        graphml.read(path)

    faults = refusals(SMALL.encode(), range(300), damaged)
    assert len(faults) > 100
    assert not any("\n" in fault for fault in faults)
