import csv
from pathlib import Path

import pytest
from faults import one_line_fault

from optpart.base.errors import InputError
from optpart.interop.formats import stg
from optpart.methods import registry
from optpart.problem.graph import CONTROL
from optpart.solution.result import Budget, Status

STG = Path(__file__).resolve().parents[3] / "../shared/data/stg"

DOCUMENT = """\
  3
  0  0  0
  1  7  1  0
  2  4  1  0
  3  2  2  1  2
  4  0  1  3
# Standard Task Graph Set Project
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "three.stg"
    path.write_text(text)
    return path


def test_tasks_are_vertices_and_predecessors_control_dependencies(tmp_path):
    instance = stg.read(write(tmp_path, DOCUMENT), 2)
    graph = instance.graph
    assert instance.name == "three"
    assert graph.names == ("0", "1", "2", "3", "4")
    assert graph.ops.fractions() == [0, 7, 4, 2, 0]
    edges = set(zip(graph.edge_source.tolist(), graph.edge_target.tolist(), strict=True))
    assert edges == {(0, 1), (0, 2), (1, 3), (2, 3), (3, 4)}
    assert set(graph.tensor_output.tolist()) == {CONTROL}


def test_devices_are_identical_and_as_many_as_requested(tmp_path):
    instance = stg.read(write(tmp_path, DOCUMENT), 3)
    assert instance.devices == 3
    assert [instance.duration(1, d) for d in range(3)] == [7, 7, 7]
    assert instance.delay(0, 0, 2) == 0


def test_two_devices_run_the_middle_side_by_side(tmp_path):
    instance = stg.read(write(tmp_path, DOCUMENT), 2)
    assert registry.get("cpsat")(instance, budget=Budget(10)).makespan == 7 + 2


@pytest.mark.parametrize(
    ("old", "new", "part"),
    [
        (DOCUMENT, "", "is empty"),
        (DOCUMENT, "# 3\n", "is empty"),
        ("  3\n", "  x\n", "line 1: the number of tasks is 'x'"),
        ("  3\n", "  -3\n", "line 1: the number of tasks is '-3'"),
        ("  3\n", "  3  2\n", "line 1: has 2 fields, 1 too many"),
        ("  3\n", "  4\n", "5 lines of tasks, the two dummies included; give 6"),
        ("  3\n", "  " + "9" * 5000 + "\n", "line 1: the number of tasks is '999"),
        ("  3\n", "  9999999999\n", "give a whole number from 0 to 1000000000"),
        ("  2  4  1", "  7  4  1", "line 4: the task number is 7; give 2"),
        ("  2  4  1", "  2 -4  1", "line 4, processing time: -4 is negative"),
        ("  2  4  1", "  2  z  1", "line 4, processing time: 'z' is not a number"),
        ("  2  4  1", "  2  4  2", "line 4: ends before the predecessor"),
        ("  2  4  1", "  2  4  0", "line 4: has 4 fields, 1 too many"),
        ("2  1  2\n", "2  1  9\n", "line 5: the predecessor is 9; give a whole number from 0 to 4"),
        ("  1  7  1  0", "  1  7  1  3", "cycle"),
        ("  4  0  1  3\n", "  4  0", "line 6: ends before the number of predecessors"),
    ],
)
def test_a_fault_is_one_line_that_names_file_and_place(tmp_path, old, new, part):
    assert old in DOCUMENT
    path = write(tmp_path, DOCUMENT.replace(old, new))
    with one_line_fault(path, part):
        stg.read(path, 2)


@pytest.mark.parametrize("devices", [0, -1, 1001])
def test_a_wrong_number_of_devices_is_refused(tmp_path, devices):
    with pytest.raises(InputError, match="give a whole number from 1 to 1000"):
        stg.read(write(tmp_path, DOCUMENT), devices)


@pytest.mark.skipif(not STG.exists(), reason=f"{STG} is not here")
def test_published_graphs_have_the_stated_number_of_tasks():
    for path in sorted(STG.glob("*/*.stg"))[::6]:
        instance = stg.read(path, 2)
        assert instance.vertices == int(path.parent.name) + 2


@pytest.mark.skipif(not STG.exists(), reason=f"{STG} is not here")
def test_published_optima_are_reproduced():
    with (STG / "optimum.csv").open() as table:
        rows = [row for row in csv.DictReader(table) if row["file"] == "50/rand0000.stg"]
    assert rows
    for row in rows:
        instance = stg.read(STG / row["file"], int(row["procs"]))
        result = registry.get("cpsat")(instance, budget=Budget(20))
        assert (result.status, result.makespan) == (Status.OPTIMAL, int(row["optimum"])), row
