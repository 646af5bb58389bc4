import csv
from pathlib import Path

import pytest
from faults import one_line_fault

from optpart.base.errors import InputError
from optpart.interop.formats import fjs
from optpart.methods import registry
from optpart.solution.result import Budget, Status

FJSP = Path(__file__).resolve().parents[3] / "../shared/data/fjsp"

STANDARD = """\
2 3 1.67
2  1 1 4  2 2 6 3 5
1  2 1 3 3 2
"""

BIRGIN = """\
# a join of two operations
3 2 2
0 2
1 2
1  0 4
2  0 6 1 5
1  1 3
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "tiny.fjs"
    path.write_text(text)
    return path


def durations(instance):
    return [
        [
            instance.duration(v, d) if instance.vertex_allowed[v, d] else None
            for d in range(instance.devices)
        ]
        for v in range(instance.vertices)
    ]


def edges(instance):
    graph = instance.graph
    return set(zip(graph.edge_source.tolist(), graph.edge_target.tolist(), strict=True))


def test_the_standard_format_counts_machines_from_1_and_chains_a_job(tmp_path):
    instance = fjs.read(write(tmp_path, STANDARD))
    assert instance.name == "tiny"
    assert instance.cluster.names == ("m1", "m2", "m3")
    assert instance.graph.names == ("j0.0", "j0.1", "j1.0")
    assert durations(instance) == [[4, None, None], [None, 6, 5], [3, None, 2]]
    assert edges(instance) == {(0, 1)}
    assert instance.delay(0, 0, 1) == 0


@pytest.mark.parametrize("header", ["2 3", "2 3 2", "  2\t3   1.67  "])
def test_the_average_number_of_machines_may_be_anything_or_nothing(tmp_path, header):
    instance = fjs.read(write(tmp_path, STANDARD.replace("2 3 1.67", header)))
    assert durations(instance) == [[4, None, None], [None, 6, 5], [3, None, 2]]


def test_birgins_format_counts_from_0_and_has_any_acyclic_precedence(tmp_path):
    instance = fjs.read(write(tmp_path, BIRGIN))
    assert instance.cluster.names == ("m0", "m1")
    assert instance.graph.names == ("0", "1", "2")
    assert durations(instance) == [[4, None], [6, 5], [None, 3]]
    assert edges(instance) == {(0, 2), (1, 2)}


def test_birgins_format_may_have_no_arcs(tmp_path):
    instance = fjs.read(write(tmp_path, "2 0 2\n1 0 4\n1 1 3\n"))
    assert durations(instance) == [[4, None], [None, 3]]
    assert edges(instance) == set()


@pytest.mark.parametrize(("text", "optimum"), [(STANDARD, 4 + 5), (BIRGIN, 5 + 3)])
def test_the_best_machine_is_chosen(tmp_path, text, optimum):
    instance = fjs.read(write(tmp_path, text))
    assert registry.get("cpsat")(instance, budget=Budget(10)).makespan == optimum


@pytest.mark.parametrize(
    ("text", "old", "new", "part"),
    [
        (STANDARD, STANDARD, "", "is empty"),
        (STANDARD, "2 3 1.67", "0 3 1.67", "line 1: the number of jobs or operations is 0"),
        (STANDARD, "2 3 1.67", "2", "line 1: ends before the number of machines or arcs"),
        (STANDARD, "2 3 1.67", "2 3 x", "line 1, average number of machines: 'x'"),
        (STANDARD, "2 3 1.67", "2 3 1 4", "line 1: has 4 fields, 1 too many"),
        (STANDARD, "2 3 1.67", "2 9999", "line 1: 9999 machines; give at most 1000"),
        (STANDARD, "2 3 1.67", "3 3", "2 lines of jobs; give 3"),
        (STANDARD, "1 1 4 ", "0 ", "line 2: the number of machines of an operation is 0"),
        (STANDARD, "1 1 4 ", "1 0 4 ", "line 2: the machine is 0; give a whole number from 1 to 3"),
        (STANDARD, "3 5\n", "2 5\n", "line 2: duplicate machine 2"),
        (STANDARD, "3 5\n", "3 -5\n", "line 2, duration: -5 is negative"),
        (STANDARD, "3 5\n", "3\n", "line 2: ends before the duration"),
        (STANDARD, "3 2\n", "3 2 1\n", "line 3: has 7 fields, 1 too many"),
        (BIRGIN, "3 2 2", "3 2 0", "line 2: the number of machines is 0"),
        (BIRGIN, "3 2 2", "3 1 2", "5 lines of arcs and operations; give 4"),
        (BIRGIN, "1 2\n", "1 3\n", "line 4: the operation is 3; give a whole number from 0 to 2"),
        (BIRGIN, "1 2\n", "2 0\n", "cycle"),
        (BIRGIN, "1 2\n", "1\n", "line 4: ends before the operation"),
        (BIRGIN, "1  1 3", "1  2 3", "line 7: the machine is 2; give a whole number from 0 to 1"),
        (BIRGIN, "1  1 3", "1  1 x", "line 7, duration: 'x' is not a number"),
    ],
)
def test_a_fault_is_one_line_that_names_file_and_place(tmp_path, text, old, new, part):
    assert old in text
    path = write(tmp_path, text.replace(old, new))
    with one_line_fault(path, part):
        fjs.read(path)


def test_a_matrix_that_outgrows_the_file_is_refused(tmp_path):
    job = "30 " + "1 1 1 " * 30
    path = write(tmp_path, "100 1000 1\n" + (job + "\n") * 100)
    with pytest.raises(InputError, match="3000000 durations"):
        fjs.read(path)


@pytest.mark.skipif(not FJSP.exists(), reason=f"{FJSP} is not here")
def test_published_flexible_job_shops_are_read():
    for path in sorted(FJSP.glob("hurink_edata/*.txt"))[::3]:
        instance = fjs.read(path)
        jobs = int(path.read_text().split()[0])
        assert len(instance.graph.edge_source) == instance.vertices - jobs
    for path in sorted(FJSP.glob("birgin/*.txt")):
        counts = next(line for line in path.read_text().splitlines() if line[0] != "#")
        instance = fjs.read(path)
        found = instance.vertices, len(instance.graph.edge_source), instance.devices
        assert found == tuple(map(int, counts.split()))


@pytest.mark.skipif(not FJSP.exists(), reason=f"{FJSP} is not here")
@pytest.mark.parametrize(
    ("table", "row", "file"),
    [
        ("hurink_edata.csv", "ft06_edata", "hurink_edata/ft06.txt"),
        ("hurink_edata.csv", "la01_edata", "hurink_edata/la01.txt"),
        ("birgin.csv", "YFJS01.txt", "birgin/YFJS01.txt"),
    ],
)
def test_published_optima_are_reproduced(table, row, file):
    with (FJSP / table).open() as rows:
        known = {entry["instance"]: int(entry["upper_bound"]) for entry in csv.DictReader(rows)}
    result = registry.get("cpsat")(fjs.read(FJSP / file), budget=Budget(20))
    assert (result.status, result.makespan) == (Status.OPTIMAL, known[row])
