import csv
from pathlib import Path

import pytest
from faults import one_line_fault

from optpart.interop.formats import jsplib
from optpart.methods import registry
from optpart.solution.result import Budget, Status

JSPLIB = Path(__file__).resolve().parents[3] / "../shared/data/jsplib"

DOCUMENT = """\
# instance tiny
2 3
0 4  1 2  2 5
2 1  0 3  1 6
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "tiny"
    path.write_text(text)
    return path


def test_operations_are_vertices_that_one_machine_may_run(tmp_path):
    instance = jsplib.read(write(tmp_path, DOCUMENT))
    graph = instance.graph
    assert instance.name == "tiny"
    assert instance.cluster.names == ("m0", "m1", "m2")
    assert graph.names == ("j0.0", "j0.1", "j0.2", "j1.0", "j1.1", "j1.2")
    assert graph.ops.fractions() == [4, 2, 5, 1, 3, 6]
    assert [row.tolist().index(True) for row in instance.vertex_allowed] == [0, 1, 2, 2, 0, 1]
    assert instance.vertex_allowed.sum() == 6


def test_a_job_is_a_chain_without_transfer_times(tmp_path):
    instance = jsplib.read(write(tmp_path, DOCUMENT))
    graph = instance.graph
    edges = set(zip(graph.edge_source.tolist(), graph.edge_target.tolist(), strict=True))
    assert edges == {(0, 1), (1, 2), (3, 4), (4, 5)}
    assert instance.delay(0, 0, 1) == 0


def test_jobs_wait_for_machines(tmp_path):
    # The second job waits for machine 0, which the first one leaves at 4.
    instance = jsplib.read(write(tmp_path, DOCUMENT))
    assert registry.get("cpsat")(instance, budget=Budget(10)).makespan == 4 + 3 + 6


@pytest.mark.parametrize(
    ("old", "new", "part"),
    [
        (DOCUMENT, "", "is empty"),
        ("2 3\n", "2\n", "line 2: ends before the number of machines"),
        ("2 3\n", "0 3\n", "line 2: the number of jobs is 0"),
        ("2 3\n", "2 3 4\n", "line 2: has 3 fields, 1 too many"),
        ("2 3\n", "2 0\n", "line 2: the number of machines is 0"),
        ("2 3\n", "2 9999\n", "give a whole number from 1 to 1000"),
        ("2 3\n", "3 3\n", "2 lines of jobs; give 3"),
        ("2 3\n", "1 3\n", "2 lines of jobs; give 1"),
        ("2 3\n", "2 2\n", "line 3: has 6 fields, 2 too many"),
        ("2 5\n", "2 5 1\n", "line 3: has 7 fields, 1 too many"),
        ("2 5\n", "2\n", "line 3: ends before the duration"),
        ("1 6\n", "3 6\n", "line 4: the machine is 3; give a whole number from 0 to 2"),
        ("1 6\n", "b 6\n", "line 4: the machine is 'b'"),
        ("1 6\n", "1 b\n", "line 4, duration: 'b' is not a number"),
        ("1 6\n", "1 -6\n", "line 4, duration: -6 is negative"),
        ("1 6\n", "-1 6\n", "line 4: the machine is '-1'"),
    ],
)
def test_a_fault_is_one_line_that_names_file_and_place(tmp_path, old, new, part):
    assert old in DOCUMENT
    path = write(tmp_path, DOCUMENT.replace(old, new))
    with one_line_fault(path, part):
        jsplib.read(path)


@pytest.mark.skipif(not JSPLIB.exists(), reason=f"{JSPLIB} is not here")
def test_published_job_shops_are_read():
    with (JSPLIB / "optimum.csv").open() as table:
        names = [row["instance"] for row in csv.DictReader(table)]
    for name in names:
        instance = jsplib.read(JSPLIB / name)
        assert instance.name == name
        jobs = instance.vertices // instance.devices
        assert len(instance.graph.edge_source) == instance.vertices - jobs


@pytest.mark.skipif(not JSPLIB.exists(), reason=f"{JSPLIB} is not here")
@pytest.mark.parametrize(("name", "optimum"), [("ft06", 55), ("la01", 666)])
def test_published_optima_are_reproduced(name, optimum):
    result = registry.get("cpsat")(jsplib.read(JSPLIB / name), budget=Budget(20))
    assert (result.status, result.makespan) == (Status.OPTIMAL, optimum)
