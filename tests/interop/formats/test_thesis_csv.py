from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from faults import one_line_fault
from hypothesis import given, settings
from hypothesis import strategies as st

from optpart.base.errors import InputError, UnsupportedError
from optpart.interop.formats import thesis_csv
from optpart.problem.cluster import Cluster, Device
from optpart.problem.graph import CONTROL, Graph, GraphBuilder
from optpart.problem.instance import Instance
from optpart.problem.model import Model

GRAPH = """id,name,ops,memory,size,device,successors,colocated
0,load,30,4,50,CPU,1; 2,
1,,20.5,4,50,ALL,,2
2,norm,1/3,4,,ALL,3,
3,last,1,0,,GPU,,
"""
DEVICES = """id,memory,speed,type,rates
d0,900,10,CPU,25;50
d1,,30,GPU,40
d2,700,40,GPU,
"""


def read(folder: Path, graph: str = GRAPH, devices: str = DEVICES) -> Instance:
    (folder / "graph.csv").write_text(graph)
    (folder / "devices.csv").write_text(devices)
    return thesis_csv.read(folder / "graph.csv", folder / "devices.csv")


def edges(graph: Graph) -> set[tuple[int, int, int]]:
    output = graph.tensor_output[graph.edge_tensor]
    return set(
        zip(graph.edge_source.tolist(), graph.edge_target.tolist(), output.tolist(), strict=True)
    )


def same(first: Instance, second: Instance) -> bool:
    g, h, c, d = first.graph, second.graph, first.cluster, second.cluster
    apart = ~np.eye(len(c), dtype=np.bool_)
    return (
        (g.names, g.device_types, c.names, c.types) == (h.names, h.device_types, d.names, d.types)
        and (g.ops.fractions(), g.memory.fractions()) == (h.ops.fractions(), h.memory.fractions())
        and g.tensor_size.fractions() == h.tensor_size.fractions()
        and edges(g) == edges(h)
        and np.array_equal(first.unit_of, second.unit_of)
        and (c.speed.fractions(), c.memory) == (d.speed.fractions(), d.memory)
        and c.bandwidth.take(apart).fractions() == d.bandwidth.take(apart).fractions()
        and first.model == second.model
    )


def test_vertices_are_read(tmp_path):
    instance = read(tmp_path)
    graph = instance.graph
    assert instance.name == "graph"
    assert graph.names == ("load", "1", "norm", "last")
    assert graph.ops.fractions() == [30, Fraction(41, 2), Fraction(1, 3), 1]
    assert graph.memory.fractions() == [4, 4, 4, 0]
    assert graph.device_types == ("CPU", None, None, "GPU")
    assert instance.units[1].tolist() == [1, 2]


def test_all_outgoing_edges_carry_the_one_tensor_of_their_vertex(tmp_path):
    graph = read(tmp_path).graph
    assert edges(graph) == {(0, 1, 0), (0, 2, 0), (2, 3, CONTROL)}
    assert graph.tensor_size.fractions() == [50, 50, 0]


def test_transfer_rates_hold_in_both_directions(tmp_path):
    cluster = read(tmp_path).cluster
    assert [cluster.bandwidth[0, 1], cluster.bandwidth[0, 2], cluster.bandwidth[1, 2]] == [
        25,
        50,
        40,
    ]
    assert [cluster.bandwidth[1, 0], cluster.bandwidth[2, 0], cluster.bandwidth[2, 1]] == [
        25,
        50,
        40,
    ]
    assert cluster.types == ("CPU", "GPU", "GPU")
    assert cluster.memory == (900, None, 700)


def test_memory_is_estimated_if_any_device_has_a_memory(tmp_path):
    assert read(tmp_path).model == Model(communication="delay", memory="estimate")
    unlimited = DEVICES.replace("900", "").replace("700", "")
    assert read(tmp_path, devices=unlimited).model == Model(communication="delay", memory="none")


def test_the_tables_of_the_documentation_are_valid(tmp_path):
    assert thesis_csv.__doc__ is not None
    graph, devices = (
        "\n".join(line.strip() for line in block.strip().split("\n\n")[0].splitlines())
        for block in thesis_csv.__doc__.split("::\n")[1:]
    )
    assert read(tmp_path, graph, devices).vertices == 3


@pytest.mark.parametrize(
    ("old", "new", "file", "part"),
    [
        (GRAPH, "", "graph", "line 1: the header is ''; write id,name"),
        ("ops,memory", "memory,ops", "graph", "line 1: the header is"),
        ("20.5,4,50", "20.5,4", "graph", "line 3: 7 fields; give 8"),
        ("20.5", "x", "graph", "line 3, ops: 'x' is not a number"),
        ("20.5", "-1", "graph", "line 3, ops: -1 is negative"),
        ("1/3,4", "1/3,", "graph", "line 4, memory: '' is not a number"),
        ("50,CPU", "big,CPU", "graph", "line 2, size: 'big' is not a number"),
        ("CPU", "cpu", "graph", "line 2, device: unknown device type 'cpu'; choose one of CPU"),
        ("1,,20", "0,,20", "graph", "line 3, id: cannot be '0'"),
        ("1,,20", ",,20", "graph", "line 3, id: cannot be ''"),
        ("1,,20", "1;1,,20", "graph", "line 3, id: cannot be '1;1'"),
        ("norm", "load", "graph", "line 4.name: 'load' is already"),
        ("1; 2", "1; 7", "graph", "line 2, successors: no vertex '7'"),
        ("ALL,,2", "ALL,,9", "graph", "line 3, colocated: no vertex '9'"),
        ("GPU,,", "GPU,0,", "graph", "cycle"),
        ("CPU", "TPU", "graph", "no device is of type 'TPU'"),
        ("load", '"load', "graph", "not CSV"),
        ("25;50", "25", "devices", "line 2, rates: 1 rates; give 2"),
        ("25;50", "25;x", "devices", "line 2, rates: 'x' is not a number"),
        ("10,CPU", "0,CPU", "devices", "line 2, speed: 0 is not positive"),
        ("10,CPU", "10,NPU", "devices", "line 2, type: unknown device type 'NPU'"),
        ("900", "-9", "devices", "line 2, memory: -9 is negative"),
        ("d1", "d0", "devices", "'d0' is already"),
        ("d1", "", "devices", "missing name"),
        (DEVICES, "id,memory,speed,type,rates\n", "devices", "no devices"),
    ],
)
def test_a_fault_is_one_line_that_names_file_and_line(tmp_path, old, new, file, part):
    assert old in GRAPH + DEVICES
    texts = {"graph": GRAPH, "devices": DEVICES}
    texts[file] = texts[file].replace(old, new, 1)
    with one_line_fault(f"{tmp_path / file}.csv", part):
        read(tmp_path, **texts)


def test_files_survive_the_round_trip(tmp_path):
    instance = read(tmp_path)
    thesis_csv.write(instance, tmp_path / "g.csv", tmp_path / "d.csv")
    assert same(thesis_csv.read(tmp_path / "g.csv", tmp_path / "d.csv"), instance)


NUMBERS = st.fractions(min_value=0, max_value=50, max_denominator=12)
NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5)


@st.composite
def instances(draw: st.DrawFn) -> Instance:
    builder = GraphBuilder()
    names = draw(st.lists(NAMES, max_size=5, unique=True))
    sized = []
    for name in names:
        sizes = draw(st.lists(NUMBERS, max_size=1))
        kind = draw(st.sampled_from([None, "CPU", "GPU"]))
        builder.vertex(name, draw(NUMBERS), memory=draw(NUMBERS), outputs=sizes, device_type=kind)
        sized.append(bool(sizes))
    for u in range(len(names)):
        for v in range(u + 1, len(names)):
            if draw(st.booleans()):
                builder.edge(names[u], names[v], 0 if sized[u] else None)
    graph = builder.build()
    free = [v for v, kind in enumerate(graph.device_types) if kind != "CPU"]
    groups = draw(st.lists(st.lists(st.sampled_from(free), min_size=1), max_size=2)) if free else []
    graph = replace(graph, colocation=tuple(map(tuple, groups)))
    memory = draw(st.lists(st.none() | NUMBERS, min_size=3, max_size=3))
    kinds = ["CPU", "GPU", draw(st.sampled_from([None, "TPU"]))]
    devices = [
        Device(name, draw(NUMBERS) + 1, kind, m)
        for name, kind, m in zip(
            draw(st.permutations(["a", " b", "c\n"])), kinds, memory, strict=True
        )
    ]
    rates = np.array(draw(st.lists(st.integers(0, 9), min_size=9, max_size=9))).reshape(3, 3)
    symmetric = (rates + rates.T).tolist()
    limited = any(m is not None for m in memory)
    model = Model(memory="estimate" if limited else "none")
    return Instance(graph, Cluster.of(devices, symmetric), model)


@settings(derandomize=True, deadline=None, max_examples=100)
@given(instance=instances())
def test_any_instance_that_fits_survives_the_round_trip(tmp_path_factory, instance):
    folder = tmp_path_factory.getbasetemp()
    thesis_csv.write(instance, folder / "trip.csv", folder / "trip-devices.csv")
    assert same(thesis_csv.read(folder / "trip.csv", folder / "trip-devices.csv"), instance)


def plain(
    graph: Callable[[GraphBuilder], object] = lambda builder: None,
    bandwidth: object = 5,
    latency: int = 0,
    kind: str = "CPU",
    **instance: object,
) -> Instance:
    builder = GraphBuilder().vertex("a", 1, outputs=[1]).vertex("b", 1).edge("a", "b")
    graph(builder)
    devices = [Device("d0", 1, kind), Device("d1", 1, "GPU")]
    return Instance(builder.build(), Cluster.of(devices, bandwidth, latency), **instance)


@pytest.mark.parametrize(
    ("instance", "place"),
    [
        (plain(model=Model(communication="link")), "model"),
        (plain(model=Model(memory="estimate")), "model"),
        (plain(durations=[[1, 2], [1, 2]]), "durations"),
        (plain(latency=1), "latency"),
        (plain(bandwidth=None), "bandwidth"),
        (plain(bandwidth=[[0, 1], [2, 0]]), "bandwidth"),
        (plain(kind="NPU"), "device types"),
        (plain(lambda b: b.vertex("c", devices=["d0"])), "devices of vertices"),
        (plain(lambda b: b.separate("a", "b")), "separation"),
        (plain(lambda b: b.output("b", 1, [[0, 1], [1, 0]])), "outputs"),
        (plain(lambda b: b.output("a", 1)), "outputs"),
        (plain(lambda b: b.edge("a", "b", None)), "edges"),
        (plain(lambda b: b.vertex("n" * 200_000)), "name"),
    ],
)
def test_unsupported_instances_are_refused_and_nothing_is_written(tmp_path, instance, place):
    with pytest.raises(UnsupportedError) as error:
        thesis_csv.write(instance, tmp_path / "g.csv", tmp_path / "d.csv")
    assert error.value.place == place
    assert not list(tmp_path.iterdir())


@settings(derandomize=True, deadline=None, max_examples=50)
@given(data=st.data(), file=st.sampled_from(["graph", "devices"]))
def test_any_mutation_is_read_or_refused(tmp_path_factory, data, file):
    raw = bytearray((GRAPH if file == "graph" else DEVICES).encode())
    for _ in range(data.draw(st.integers(1, 2))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.sampled_from([len(raw), len(raw) - 9, 20]))
    folder = tmp_path_factory.getbasetemp()
    (folder / "graph.csv").write_text(GRAPH)
    (folder / "devices.csv").write_text(DEVICES)
    (folder / f"{file}.csv").write_bytes(raw[:cut])
    with suppress(InputError):
        thesis_csv.read(folder / "graph.csv", folder / "devices.csv")
