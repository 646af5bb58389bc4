from contextlib import suppress
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from faults import one_line_fault
from hypothesis import given, settings
from hypothesis import strategies as st

from optpart.base.errors import InputError
from optpart.interop.costs.drawn import drawn, unit
from optpart.interop.costs.from_csv import from_csv
from optpart.problem.graph import Graph, GraphBuilder

TABLE = "name,ops,memory,sizes\nb,0.5,0,\na,30,4,50; 1/3\nc,1/7,2,9\n"


def small() -> Graph:
    """A vertex with two outputs, one with a control signal only, one with an unused output."""
    builder = GraphBuilder().vertex("a", outputs=[0, 0]).vertex("b", 7).vertex("c", outputs=[0])
    builder.edge("a", "b").edge("a", "c", 1).edge("b", "c", None)
    return builder.colocate("a", "b").build()


def big() -> Graph:
    builder = GraphBuilder()
    for v in range(2000):
        builder.vertex(f"v{v}", outputs=[0])
    return builder.build()


def costs(graph: Graph) -> tuple[list[Fraction], list[Fraction], list[Fraction]]:
    return graph.ops.fractions(), graph.memory.fractions(), graph.tensor_size.fractions()


def given_costs(folder: Path, table: str) -> Graph:
    path = folder / "costs.csv"
    path.write_text(table)
    return from_csv(small(), path)


def test_unit_costs():
    assert costs(unit(small())) == ([1, 1, 1], [0, 0, 0], [1, 1, 1, 0])


def test_the_structure_stays(tmp_path):
    for graph in (unit(small()), drawn(small(), 1), given_costs(tmp_path, TABLE)):
        assert graph.names == ("a", "b", "c")
        assert graph.colocation == ((0, 1),)
        assert graph.edge_tensor.tolist() == small().edge_tensor.tolist()
        assert graph.topological_order.tolist() == small().topological_order.tolist()


def test_drawn_costs_are_whole_and_cover_their_ranges_evenly():
    ops, memory, sizes = costs(drawn(big(), 1, memory=(1, 100)))
    for values in (ops, memory, sizes):
        assert set(values) == set(range(1, 101))
        assert np.mean([float(value) for value in values]) == pytest.approx(50.5, abs=2)
    assert ops != memory != sizes


def test_ranges_may_be_chosen_and_memory_is_none_unless_asked_for():
    ops, memory, sizes = costs(drawn(big(), 1, ops=(3, 3), sizes=(10, 11)))
    assert set(ops) == {3}
    assert set(memory) == {0}
    assert set(sizes) == {10, 11}


def test_control_signals_keep_size_zero():
    assert [bool(size) for size in costs(drawn(small(), 1))[2]] == [True, True, True, False]


def test_the_seed_decides_and_memory_changes_neither_operations_nor_sizes():
    ops, _, sizes = costs(drawn(big(), 5))
    again = costs(drawn(big(), np.random.default_rng(5), memory=(1, 100)))
    assert (ops, sizes) == (again[0], again[2])
    assert ops != costs(drawn(big(), 6))[0]


@pytest.mark.parametrize("bounds", [(-1, 5), (5, 4), (0, 2**63)])
def test_an_impossible_range_is_an_error(bounds):
    with pytest.raises(InputError, match="sizes: range"):
        drawn(small(), 1, sizes=bounds)


def test_an_empty_graph_needs_no_costs():
    empty = GraphBuilder().build()
    assert len(unit(empty)) == len(drawn(empty, 1)) == 0


def test_a_table_gives_exact_costs_in_any_order(tmp_path):
    assert costs(given_costs(tmp_path, TABLE)) == (
        [30, Fraction(1, 2), Fraction(1, 7)],
        [4, 0, 2],
        [50, Fraction(1, 3), 9, 0],
    )


@pytest.mark.parametrize(
    ("old", "new", "part"),
    [
        (TABLE, "", "line 1: the header is ''; write name,ops,memory,sizes"),
        ("name,ops", "ops,name", "line 1: the header is"),
        ("b,0.5,0,", "b,0.5,0", "line 2: 3 fields; give 4"),
        ("b,0.5,0,", "b,,0,", "line 2, ops: '' is not a number"),
        ("a,30,4", "a,30,-4", "line 3, memory: -4 is negative"),
        ("50; 1/3", "50; 1/0", "line 3, sizes: '1/0' is not a number"),
        ("50; 1/3", "50", "line 3, sizes: 1 sizes; give 2"),
        ("b,0.5,0,", "b,0.5,0,3", "line 2, sizes: 1 sizes; give 0"),
        ("c,", "d,", "line 4: no vertex 'd'"),
        ("c,1/7,2,9", "a,1,1,1;1", "line 4: a second row for 'a'"),
        ("c,1/7,2,9\n", "", "no row for vertex 'c'"),
        ("b,", '"b,', "not CSV"),
    ],
)
def test_a_faulty_table_is_one_line_that_names_file_and_line(tmp_path, old, new, part):
    assert old in TABLE
    with one_line_fault(tmp_path / "costs.csv", part):
        given_costs(tmp_path, TABLE.replace(old, new))


@settings(derandomize=True, deadline=None, max_examples=50)
@given(data=st.data())
def test_any_mutation_of_a_table_is_read_or_refused(tmp_path_factory, data):
    raw = bytearray(TABLE.encode())
    for _ in range(data.draw(st.integers(1, 2))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.sampled_from([len(raw), len(raw) - 9, 20]))
    path = tmp_path_factory.getbasetemp() / "mutated.csv"
    path.write_bytes(raw[:cut])
    with suppress(InputError):
        from_csv(small(), path)
