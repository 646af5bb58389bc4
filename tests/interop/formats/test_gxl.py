import csv
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from faults import one_line_fault
from hypothesis import given, settings
from hypothesis import strategies as st

from optpart.base.errors import InputError
from optpart.interop.formats import gxl
from optpart.problem.instance import Instance
from optpart.problem.rational import RationalArray
from optpart.solution.schedule import Schedule, Transfers, crossings
from optpart.solution.verifier import verify

AUCKLAND = Path(__file__).resolve().parents[3] / "../shared/data/auckland_gxl"


def attr(name: str, value: object) -> str:
    return f'<attr name="{name}"><int>{value}</int></attr>'


DOCUMENT = (
    '<?xml version="1.0" encoding="UTF-8"?>\n'
    '<!DOCTYPE gxl SYSTEM "http://www.gupro.de/GXL/gxl-1.0.dtd">\n'
    '<gxl><graph id="three">'
    + attr("Total schedule length", 9)
    + attr("Number of processors", 2)
    + "".join(f'<node id="{v}">{attr("Weight", w)}</node>' for v, w in ((1, 2), (2, 3), (3, 4)))
    + f'<edge from="1" to="2">{attr("Weight", 7)}</edge>'
    + f'<edge from="1" to="3">{attr("Weight", 1)}</edge>'
    + "</graph></gxl>"
)


def write(folder: Path, text: str) -> Path:
    path = folder / "three.gxl"
    path.write_text(text)
    return path


def test_weights_are_operations_and_every_edge_has_its_own_tensor(tmp_path):
    instance = gxl.read(write(tmp_path, DOCUMENT))
    graph = instance.graph
    assert instance.name == "three"
    assert graph.names == ("1", "2", "3")
    assert graph.ops.fractions() == [2, 3, 4]
    sizes = {
        int(v): graph.tensor_size[int(t)]
        for v, t in zip(graph.edge_target, graph.edge_tensor, strict=True)
    }
    assert sizes == {1: 7, 2: 1}
    assert graph.tensors == 2


def test_processors_are_alike_and_an_edge_takes_its_weight_between_two_of_them(tmp_path):
    instance = gxl.read(write(tmp_path, DOCUMENT))
    assert instance.devices == 2
    assert [instance.duration(2, d) for d in range(2)] == [4, 4]
    assert instance.delay(0, 0, 1) == instance.delay(0, 1, 0) == 7
    assert instance.delay(0, 0, 0) == 0
    assert instance.model.communication == "delay"


@pytest.mark.parametrize(
    ("old", "new", "part"),
    [
        ("</gxl>", "", "line 3, column"),
        (DOCUMENT, "", "not XML"),
        ("gxl>", "xml>", "has no <gxl><graph>"),
        ("<gxl>", '<!DOCTYPE a [<!ENTITY b "c">]><gxl>', "declares entities"),
        ("Number of", "Count of", "graph: no attribute 'Number of processors'"),
        (
            "<int>2</int></attr><node",
            "<int>0</int></attr><node",
            "graph: Number of processors: cannot be 0",
        ),
        (
            "<int>2</int></attr><node",
            "<int>1e9</int></attr><node",
            "Number of processors: cannot be 1000000000",
        ),
        (
            "<int>2</int></attr><node",
            "<int>1.5</int></attr><node",
            "Number of processors: cannot be 3/2",
        ),
        ("<int>4</int>", "<int>-4</int>", "node[2]: Weight: -4 is negative"),
        ("<int>4</int>", "<int/>", "node[2]: Weight: '' is not a number"),
        ("<int>7</int>", "", "edge[0]: no attribute 'Weight'"),
        (
            "</attr></node>",
            '</attr><attr name="Memory"><int>1</int></attr></node>',
            "node[0]: unknown attribute 'Memory'",
        ),
        (
            "</attr></edge>",
            '</attr><attr name="Size"/></edge>',
            "edge[0]: unknown attribute 'Size'",
        ),
        ('id="3"', 'id="2"', "node[2].name: '2' is already"),
        ('to="3"', 'to="4"', "edge[1]: no vertex '4'"),
        ('to="3"', 'to="1"', "cycle 1 → 1"),
        ('from="1"', "", "edge[0]: no vertex ''"),
    ],
)
def test_a_fault_is_one_line_that_names_file_and_place(tmp_path, old, new, part):
    assert old in DOCUMENT
    path = write(tmp_path, DOCUMENT.replace(old, new))
    with one_line_fault(path, part):
        gxl.read(path)


def test_deep_nesting_is_harmless(tmp_path):
    with pytest.raises(InputError):
        gxl.read(write(tmp_path, "<gxl>" * 100_000))


@settings(derandomize=True, deadline=None, max_examples=50)
@given(data=st.data())
def test_any_mutation_is_read_or_refused(tmp_path_factory, data):
    raw = bytearray(DOCUMENT.encode())
    for _ in range(data.draw(st.integers(1, 2))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.sampled_from([len(raw), len(raw) // 2, 5]))
    path = tmp_path_factory.getbasetemp() / "mutated.gxl"
    path.write_bytes(raw[:cut])
    with suppress(InputError):
        gxl.read(path)


def published(path: Path, instance: Instance) -> Schedule:
    """The schedule in the file's own attributes, with every transfer as early as possible."""
    nodes = ElementTree.parse(path).getroot().findall("graph/node")

    def attribute(name: str) -> list[int]:
        found = [node.find(f"attr[@name='{name}']/int") for node in nodes]
        return [int(value.text) for value in found if value is not None and value.text]

    # Some files count processors from 0, some from 1; all processors are alike.
    placement = np.unique(attribute("Processor"), return_inverse=True)[1].astype(np.int32)
    start = [Fraction(time) for time in attribute("Start time")]
    transfers = []
    for tensor, target in crossings(instance, placement):
        u = int(instance.graph.tensor_vertex[tensor])
        begin = start[u] + instance.graph.ops[u]
        delay = instance.delay(tensor, int(placement[u]), target)
        assert delay is not None
        transfers.append((tensor, target, begin, begin + delay))
    return Schedule(placement, RationalArray.from_fractions(start), Transfers.of(transfers))


def test_published_schedules_are_valid_and_as_long_as_published():
    if not AUCKLAND.exists():
        pytest.skip(f"{AUCKLAND} is not here")
    with (AUCKLAND / "optimum.csv").open() as table:
        rows = list(csv.DictReader(table))
    for row in rows[::6]:
        instance = gxl.read(AUCKLAND / row["file"])
        schedule = published(AUCKLAND / row["file"], instance)
        found = instance.vertices, len(instance.graph.edge_source), instance.devices
        assert found == (int(row["n"]), int(row["edges"]), int(row["procs"]))
        assert verify(instance, schedule) == []
        assert schedule.makespan(instance) == int(row["optimum"])
