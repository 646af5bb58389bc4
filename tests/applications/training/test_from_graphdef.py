"""Training graphs from GraphDefs, whose times come from measurements."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from optpart.applications.training.from_model import from_graphdef
from optpart.applications.training.graph import Layout, Line
from optpart.applications.training.profile import Fit, FittedCosts, timed
from optpart.base.errors import InputError


def shape(*dims: int) -> str:
    return " ".join(f"dim {{ size: {n} }}" for n in dims)


def node(name: str, op: str, *inputs: str, dims: tuple[int, ...] = ()) -> str:
    read = " ".join(f'input: "{each}"' for each in inputs)
    sizes = f'attr {{ key: "_output_shapes" value {{ list {{ shape {{ {shape(*dims)} }} }} }} }}'
    kind = (
        'attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "T" value { type: DT_FLOAT } }'
    )
    held = f'attr {{ key: "shape" value {{ shape {{ {shape(*dims)} }} }} }}'
    return f'node {{ name: "{name}" op: "{op}" {read} {kind} {sizes} {held} }}\n'


GRAPH = (
    node("x", "Placeholder", dims=(8, 40))
    + node("w", "VariableV2", dims=(40, 30))
    + node("w/read", "Identity", "w", dims=(40, 30))
    + node("h", "MatMul", "x", "w/read", dims=(8, 30))
    + node("r", "Relu", "h", dims=(8, 30))
    + node("v", "VariableV2", dims=(30, 20))
    + node("y", "MatMul", "r", "v", dims=(8, 20))
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "net.pbtxt").write_text(GRAPH)
    return tmp_path / "net.pbtxt"


def test_variables_are_weights_of_those_who_read_them(path: Path) -> None:
    graph = from_graphdef(path, ["gpu"], samples=8)
    assert [o.name for o in graph.operations] == [
        "x", "h", "r", "y", "y/backward", "r/backward", "h/backward", "h/apply", "y/apply",
    ]  # fmt: skip
    users = {p.name: [graph.operations[u].name for u in p.users] for p in graph.parameters}
    assert users == {
        "w/weights": ["h", "h/backward", "h/apply"],
        "v/weights": ["y", "y/backward", "y/apply"],
    }
    assert [p.size for p in graph.parameters] == [4 * 40 * 30, 4 * 30 * 20]
    h = graph.operations[graph.index["h"]]
    assert [(o.layout, o.size) for o in h.outputs] == [
        (Layout.BATCHED, Line(beta=Fraction(4 * 30)))
    ]


def test_what_was_dropped_and_is_unknown_is_said(path: Path) -> None:
    said = " ".join(from_graphdef(path, ["gpu"], samples=8).assumed)
    assert "Dropped, since they depend on no sample: 3 operations" in said
    assert "No times are known: all are 0." in said


def test_times_are_measured(path: Path) -> None:
    graph = from_graphdef(path, ["gpu"], samples=8)
    fits = {
        (o.name, "gpu"): Fit(Line(Fraction(1), Fraction(2)), 2, 0.0, 0.0) for o in graph.operations
    }
    found = timed(graph, FittedCosts(fits, {}), ["gpu"])
    assert {o.times for o in found.operations} == {(Line(Fraction(1), Fraction(2)),)}


def test_variables_that_several_read_are_shared(path: Path) -> None:
    path.write_text(GRAPH + node("z", "MatMul", "x", "w/read", dims=(8, 30)))
    graph = from_graphdef(path, ["gpu"], samples=8)
    (shared,) = (p for p in graph.parameters if p.name == "w/weights")
    assert [graph.operations[u].name for u in shared.users] == [
        "h", "z", "h/backward", "z/backward", "h/apply",
    ]  # fmt: skip


def test_a_graph_with_a_backward_pass_is_refused(path: Path) -> None:
    path.write_text(GRAPH + node("step", "ApplyAdam", "w", dims=(40, 30)))
    with pytest.raises(InputError, match="node 'step': ApplyAdam updates a variable: the graph"):
        from_graphdef(path, ["gpu"], samples=8)


def test_a_graph_needs_samples(path: Path) -> None:
    path.write_text(GRAPH.replace('op: "Placeholder"', 'op: "Const"'))
    with pytest.raises(InputError, match=r"net\.pbtxt: has no input"):
        from_graphdef(path, ["gpu"], samples=8)


def test_kinds_must_be_named(path: Path) -> None:
    with pytest.raises(InputError, match="kinds: none; name the kinds of devices"):
        from_graphdef(path, [], samples=8)
