from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from optpart.applications.training.cluster_file import read as read_cluster
from optpart.applications.training.cluster_file import specs_of, training_cluster
from optpart.applications.training.graph import Line
from optpart.applications.training.models import network
from optpart.applications.training.profile import (
    Fit,
    FittedCosts,
    dumps,
    fit,
    fit_files,
    linked,
    read,
    timed,
    write,
)
from optpart.base.errors import InputError


def points(*pairs: tuple[int, int]) -> list[tuple[Fraction, Fraction]]:
    return [(Fraction(x), Fraction(y)) for x, y in pairs]


def table(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_an_exact_line_is_found() -> None:
    found = fit(points((1, 105), (2, 110), (8, 140)))
    assert found.line == Line(Fraction(100), Fraction(5))
    assert found.worst < 1e-6
    assert found.determined


def test_neither_part_is_negative() -> None:
    """Plain regression gives α = -50 here, and β = -50 there."""
    found = fit(points((1, 50), (2, 150), (3, 250)))
    assert found.line.alpha == 0
    assert found.line.beta > 0
    found = fit(points((1, 250), (2, 200), (3, 150)))
    assert found.line.beta == 0
    assert found.line.alpha > 0
    assert found.worst > 0.1


def test_it_minimises_relative_errors() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        drawn = points(*((int(b), int(rng.integers(1, 10**6))) for b in (1, 2, 4, 8, 16)))
        line = fit(drawn).line

        def loss(alpha: float, beta: float, drawn: list = drawn) -> float:
            return sum((float(alpha + beta * x) / float(y) - 1) ** 2 for x, y in drawn)

        best = loss(float(line.alpha), float(line.beta))
        for scale in (0.9, 1.1):
            assert best <= loss(float(line.alpha) * scale, float(line.beta)) + 1e-9
            assert best <= loss(float(line.alpha), float(line.beta) * scale) + 1e-9


def test_a_single_batch_tells_no_alpha() -> None:
    found = fit(points((8, 96), (8, 104)))
    assert not found.determined
    assert found.line.alpha == 0
    assert float(found.line.at(8)) == pytest.approx(100, rel=0.01)


def test_transfers_of_nothing_tell_the_latency() -> None:
    assert fit(points((0, 12))).line == Line(Fraction(12))


def test_times_of_zero() -> None:
    assert fit(points((1, 0), (2, 0))) == Fit(Line(), 2, 0.0, 0.0)
    found = fit(points((1, 0), (2, 10), (4, 30)))
    assert found.line.beta > 0


OPERATIONS = """op,kind,batch,time (us)
a,fast,1,105
a,fast,2,110
a,slow,1,300
"""
TRANSFERS = """sender,receiver,bytes,time (ms)
x,y,0,0.012
x,y,1000000,0.112
"""


def test_tables_are_fitted(tmp_path: Path) -> None:
    costs = fit_files([
        table(tmp_path / "times.csv", OPERATIONS), table(tmp_path / "links.csv", TRANSFERS)
    ])  # fmt: skip
    assert costs.operations["a", "fast"].line == Line(Fraction(100_000), Fraction(5000))
    assert costs.operations["a", "slow"].line == Line(beta=Fraction(300_000))
    found = costs.transfers["x", "y"]
    assert found.line == Line(Fraction(12_000), Fraction(1, 10))
    assert (found.rows, found.determined) == (2, True)
    assert costs.source == "times.csv, links.csv"
    assert costs.remarks() == (
        "operation a slow: measured for a single number of samples; α = 0 is assumed, so that "
        "times are proportional to samples.",
    )


def test_without_a_unit_times_are_seconds(tmp_path: Path) -> None:
    costs = fit_files([table(tmp_path / "t.csv", "op,kind,batch,time\na,b,1,2\n")])
    assert costs.operations["a", "b"].line.beta == 2 * 10**9


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("op,kind,time\na,b,1\n", "line 1: the header is 'op,kind,time'; write op,kind,batch"),
        ("op,kind,batch,time (h)\n", "line 1: unknown unit 'h'; write one of ns"),
        ("op,kind,batch,time\n", "has no rows"),
        ("op,kind,batch,time\na,b,1\n", "line 2: 3 fields; give 4"),
        ("op,kind,batch,time\n,b,1,1\n", "line 2, op: is empty"),
        ("op,kind,batch,time\na,b,0,1\n", "line 2, batch: 0; give a number of samples > 0"),
        ("op,kind,batch,time\na,b,1,-1\n", "line 2, time: -1 is negative"),
        ("op,kind,batch,time\na,b,x,1\n", "line 2, batch: 'x' is not a number"),
        ("sender,receiver,bytes,time\na,b,-1,1\n", "line 2, bytes: -1 is negative"),
    ],
)
def test_faults_of_tables(text: str, message: str, tmp_path: Path) -> None:
    path = table(tmp_path / "t.csv", text)
    with pytest.raises(InputError, match=message) as caught:
        fit_files([path])
    assert str(caught.value).startswith(str(path))


def test_what_was_written_is_read_again(tmp_path: Path) -> None:
    costs = fit_files([
        table(tmp_path / "times.csv", OPERATIONS), table(tmp_path / "links.csv", TRANSFERS)
    ])  # fmt: skip
    write(costs, tmp_path / "costs.json")
    assert read(tmp_path / "costs.json") == costs


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("optpart-costs/1", "optpart-costs/2", "format: is 'optpart-costs/2'"),
        ('"alpha": 100000', '"alpha": -1', r"operations\[0\].alpha: -1 is negative"),
        ('"kind": "slow"', '"kind": "fast"', r"operations\[1\]: a fast again; give every line"),
        ('"op": "a", "kind": "fast"', '"kind": "fast"', r"operations\[0\].op: is missing"),
        ('"rows": 2', '"rows": 0', r"operations\[0\].rows: 0; give a whole number"),
        ('"worst": ', '"worst": ' + 400 * "9", r"operations\[0\].worst: .* is too large"),
        ('"determined": false', '"determined": 0', r"operations\[1\].determined: is 0; give true"),
        ('"source"', '"origin"', "unknown key 'origin'"),
    ],
)
def test_faults_of_files(old: str, new: str, message: str, tmp_path: Path) -> None:
    content = dumps(fit_files([table(tmp_path / "times.csv", OPERATIONS)]))
    assert old in content
    path = table(tmp_path / "costs.json", content.replace(old, new, 1))
    with pytest.raises(InputError, match=message):
        read(path)


def of(*operations: tuple[str, str]) -> FittedCosts:
    line = Line(Fraction(1), Fraction(2))
    return FittedCosts({key: Fit(line, 3, 0.0, 0.0) for key in operations}, {}, "t.csv")


def test_a_graph_takes_measured_times() -> None:
    graph = network("vgg19").training_graph(specs_of("v100-16gb"))
    everything = of(*((o.name, "mine") for o in graph.operations))
    found = timed(graph, everything, ["mine"])
    assert found.kinds == ("mine",)
    assert {o.times for o in found.operations} == {(Line(Fraction(1), Fraction(2)),)}
    assert "Times were fitted to t.csv." in found.assumed
    both = of(*((o.name, kind) for o in graph.operations for kind in ("mine", "other")))
    assert "Not used: times measured on other." in timed(graph, both, ["mine"]).assumed


def test_times_that_were_not_measured_are_refused_or_said() -> None:
    graph = network("vgg19").training_graph(specs_of("v100-16gb"))
    one = of(("conv1_1", "v100-16gb"), ("conv9", "v100-16gb"))
    with pytest.raises(InputError, match="operation 'conv1_2': was not measured on 'v100-16gb'"):
        timed(graph, one, ["v100-16gb"])
    found = timed(graph, one, ["v100-16gb"], others=True)
    assert found.operations[0].times == (Line(Fraction(1), Fraction(2)),)
    assert found.operations[1] == graph.operations[1]
    assert f"{len(graph) - 1} times were not measured and are those of the graph." in found.assumed
    assert "Measured, but not in the graph: 1 (conv9)." in found.assumed
    with pytest.raises(InputError, match=r"was not measured on 'other'; measure it$"):
        timed(graph, one, ["other"], others=True)
    with pytest.raises(InputError, match="vgg19: has no operation 'x'"):
        timed(graph, of(("x", "v100-16gb")), ["v100-16gb"], others=True)


def test_a_cluster_takes_measured_links() -> None:
    cluster = training_cluster(read_cluster("heterog-4"))
    fits = {
        ("v100-0", "1080ti-1"): Fit(Line(Fraction(7), Fraction(1, 3)), 3, 0.0, 0.0),
        ("v100-1", "v100-0"): Fit(Line(Fraction(9)), 3, 0.0, 0.0),
    }
    found = linked(cluster, FittedCosts({}, fits))
    assert found.transfer(0, 3, Fraction(30)) == 17
    assert found.transfer(3, 0, Fraction(30)) == cluster.transfer(3, 0, Fraction(30))
    assert found.rate[1][0] is None
    assert found.transfer(1, 0, Fraction(30)) == 9
    with pytest.raises(InputError, match="transfer v100-0 gpu: no device 'gpu'"):
        linked(cluster, FittedCosts({}, {("v100-0", "gpu"): Fit(Line(), 1, 0.0, 0.0)}))
    with pytest.raises(InputError, match="transfer v100-0 v100-0: to itself"):
        linked(cluster, FittedCosts({}, {("v100-0", "v100-0"): Fit(Line(), 1, 0.0, 0.0)}))
