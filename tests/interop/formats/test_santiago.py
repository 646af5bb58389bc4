import csv
from fractions import Fraction
from pathlib import Path

import pytest
from faults import one_line_fault

from optpart.interop.formats import santiago
from optpart.methods import registry
from optpart.solution.result import Budget, Status

SANTIAGO = Path(__file__).resolve().parents[3] / "../shared/data/hetero_santiago"

DOCUMENT = """\
#critical
0.0
#tasks
0: 4, 7
1: 6., 2.5
2: 5,1
#edges
0:  0,  1, 3
1: 0, 2,  9
#end
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "three.txt"
    path.write_text(text)
    return path


def test_tasks_have_their_run_time_on_every_machine(tmp_path):
    instance = santiago.read(write(tmp_path, DOCUMENT))
    assert instance.name == "three"
    assert instance.graph.names == ("0", "1", "2")
    times = [[instance.duration(v, d) for d in range(2)] for v in range(3)]
    assert times == [[4, 7], [6, Fraction(5, 2)], [5, 1]]


def test_every_edge_has_a_tensor_that_takes_its_time_to_cross(tmp_path):
    instance = santiago.read(write(tmp_path, DOCUMENT))
    graph = instance.graph
    delays = {
        int(v): instance.delay(int(t), 0, 1)
        for v, t in zip(graph.edge_target, graph.edge_tensor, strict=True)
    }
    assert delays == {1: 3, 2: 9}
    assert instance.delay(0, 1, 1) == 0


def test_the_optimum_weighs_transfers_against_run_times(tmp_path):
    # 0 on d0; 1 crosses to d1 (4 + 3 + 2.5) while 2 stays (4 + 5).
    instance = santiago.read(write(tmp_path, DOCUMENT))
    assert registry.get("cpsat")(instance, budget=Budget(10)).makespan == Fraction(19, 2)


@pytest.mark.parametrize(
    ("old", "new", "part"),
    [
        (DOCUMENT, "", "no line #tasks"),
        ("#end\n", "", "no line #end"),
        ("#edges\n", "", "no line #edges"),
        ("#edges", "#tasks", "line 7: a second #tasks"),
        ("0: 4, 7\n1: 6., 2.5\n2: 5,1\n", "", "#tasks: no tasks"),
        ("0: 4, 7\n", "0 4 7\n", "line 4: the task number is '0 4 7'"),
        ("0: 4, 7\n", "1: 4, 7\n", "line 4: the task number is 1; give 0"),
        ("0: 4, 7\n", "0: 4\n", "line 5: has 3 fields, 1 too many"),
        ("2: 5,1\n", "2: 5\n", "line 6: ends before the run time"),
        ("2: 5,1\n", "2: 5,\n", "line 6, run time: '' is not a number"),
        ("2: 5,1\n", "2: 5,-1\n", "line 6, run time: -1 is negative"),
        ("2: 5,1\n", "2: 5,x\n", "line 6, run time: 'x' is not a number"),
        ("0, 2,  9", "0, 3,  9", "line 9: the task is 3; give a whole number from 0 to 2"),
        ("0, 2,  9", "0, 0,  9", "cycle 0 → 0"),
        ("0, 2,  9", "0, 2", "line 9: ends before the transfer time"),
        ("0, 2,  9", "0, 2, 9, 9", "line 9: has 5 fields, 1 too many"),
        ("1: 0, 2,", "2: 0, 2,", "line 9: the edge number is 2; give 1"),
    ],
)
def test_a_fault_is_one_line_that_names_file_and_place(tmp_path, old, new, part):
    assert old in DOCUMENT
    path = write(tmp_path, DOCUMENT.replace(old, new))
    with one_line_fault(path, part):
        santiago.read(path)


@pytest.mark.skipif(not SANTIAGO.exists(), reason=f"{SANTIAGO} is not here")
def test_published_optima_are_reproduced():
    with (SANTIAGO / "optimum.csv").open() as table:
        rows = list(csv.DictReader(table))
    for row in rows:
        instance = santiago.read(SANTIAGO / row["file"])
        found = instance.vertices, instance.devices, len(instance.graph.edge_source)
        assert found == (int(row["n"]), int(row["m"]), int(row["edges"]))
        result = registry.get("cpsat")(instance, budget=Budget(20))
        assert (result.status, result.makespan) == (Status.OPTIMAL, Fraction(row["optimum"])), row
