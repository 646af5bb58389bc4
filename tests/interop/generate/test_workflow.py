from pathlib import Path
from typing import Any, get_args

import networkx as nx
import pytest

from optpart.base.errors import InputError
from optpart.interop.formats import wfformat
from optpart.interop.generate import workflow
from optpart.problem.graph import Graph

SHAPES = get_args(workflow.Shape)


def links(graph: Graph) -> set[tuple[str, str]]:
    pairs = zip(graph.edge_source.tolist(), graph.edge_target.tolist(), strict=True)
    return {(graph.names[u], graph.names[v]) for u, v in pairs}


@pytest.mark.parametrize(
    ("shape", "vertices", "edges"),
    [
        ("chain", 4, 3),
        ("fork-join", 6, 8),
        # 4 projections, 5 comparisons, fit, model, 4 corrections, table, add, shrink, show
        ("montage", 19, 2 * 5 + 5 + 1 + 4 + 4 + 4 + 4 + 1 + 1 + 1),
        ("epigenomics", 20, 4 + 3 * 4 + 4 + 3),
        ("blast", 7, 4 + 2 * 4),
    ],
)
def test_a_shape_has_its_tasks(shape: Any, vertices: int, edges: int) -> None:
    graph = workflow.workflow(shape, 4).workload.graph
    assert (len(graph), len(links(graph))) == (vertices, edges)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("width", [1, 2, 7])
def test_every_workflow_is_connected(shape: Any, width: int) -> None:
    drawn = workflow.workflow(shape, width)
    graph: nx.Graph[str] = nx.Graph(links(drawn.workload.graph))
    graph.add_nodes_from(drawn.workload.graph.names)
    assert nx.is_connected(graph)


@pytest.mark.parametrize("shape", SHAPES)
def test_what_is_written_is_read_again(tmp_path: Path, shape: Any) -> None:
    drawn = workflow.workflow(shape, 5, machines=2, seed=3)
    path = tmp_path / "w.json"
    wfformat.write(path, drawn)
    again = wfformat.read_workflow(path)
    assert again.workload.assumed == ()
    assert again.instance(1).sha256 == drawn.instance(1).sha256


def test_a_seed_decides_everything() -> None:
    first, same, other = (workflow.instance("montage", 4, seed=seed).sha256 for seed in (1, 1, 2))
    assert first == same != other


def test_times_and_sizes_stay_within_half_of_those_of_their_step() -> None:
    drawn = workflow.workflow("blast", 50, seed=1).workload
    times = [drawn.measured["machine0"][drawn.graph.index[f"search_{i}"]] for i in range(50)]
    assert all(time is not None and 15 * 10**9 <= time <= 45 * 10**9 for time in times)
    assert len(set(times)) > 40


@pytest.mark.parametrize(
    ("given", "part"),
    [
        ({"shape": "star"}, "shape: no shape 'star'; choose one of chain, fork-join, montage"),
        ({"width": 0}, "width: 0 is too few"),
        ({"width": 10**6}, "width: 1000000 is too many"),
        ({"machines": 0}, "machines: 0 is out of range"),
        ({"seed": -1}, "seed: -1 is negative"),
    ],
)
def test_a_number_out_of_range_is_refused(given: Any, part: str) -> None:
    with pytest.raises(InputError) as error:
        workflow.workflow(**({"shape": "chain"} | given))
    assert part in str(error.value)
