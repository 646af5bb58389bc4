import copy
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from faults import one_line_fault

from optpart.base.errors import InputError, UnsupportedError
from optpart.interop.formats import native, wfformat
from optpart.interop.formats.wfformat import Machine, Workflow
from optpart.problem.graph import CONTROL, Graph, GraphBuilder
from optpart.problem.workload import Workload
from optpart.testing.mutate import refusals

DATA = Path(__file__).resolve().parents[3] / "../shared/data/wfcommons"


def spec(name: str, parents: list[str], children: list[str], reads: list[str], writes: list[str]):
    return {
        "name": name.split("_")[0],
        "id": name,
        "parents": parents,
        "children": children,
        "inputFiles": reads,
        "outputFiles": writes,
    }


#: split writes two chunks; align reads one; clean waits for split only; report reads what is left.
NEW: dict[str, Any] = {
    "name": "small",
    "schemaVersion": "1.5",
    "workflow": {
        "specification": {
            "tasks": [
                spec("split_1", [], ["align_2", "clean_3"], ["genome"], ["chunk", "rest"]),
                spec("align_2", ["split_1"], ["report_4"], ["chunk", "index"], ["found"]),
                spec("clean_3", ["split_1"], [], [], []),
                spec("report_4", ["align_2"], [], ["found", "rest"], ["text"]),
            ],
            "files": [
                {"id": file, "sizeInBytes": size}
                for file, size in (
                    ("genome", 3000), ("index", 70), ("chunk", 800), ("rest", 90), ("found", 5),
                    ("text", 6),
                )
            ],
        },
        "execution": {
            "makespanInSeconds": 9,
            "executedAt": "2024-01-01T00:00:00Z",
            "tasks": [
                {"id": "split_1", "runtimeInSeconds": 1.5, "machines": ["a"], "avgCPU": 60},
                {"id": "align_2", "runtimeInSeconds": 2, "machines": ["b"], "avgCPU": 250.0},
                {"id": "clean_3", "runtimeInSeconds": 0, "machines": ["a"], "coreCount": 2},
                {"id": "report_4", "runtimeInSeconds": 0.25, "machines": ["a"]},
            ],
            "machines": [
                {"nodeName": "a", "cpu": {"coreCount": 2, "speedInMHz": 1000}},
                {
                    "nodeName": "b",
                    "memoryInBytes": 64000,
                    "cpu": {"coreCount": 1, "speedInMHz": 2000},
                },
            ],
        },
    },
}  # fmt: skip


def old_task(name: str, time: float, machine: str, parents: list[str], *files: tuple[str, str]):
    sizes = {file["id"]: file["sizeInBytes"] for file in NEW["workflow"]["specification"]["files"]}
    return {
        "name": name,
        "type": "compute",
        "runtimeInSeconds": time,
        "machine": machine,
        "parents": parents,
        "files": [{"name": f, "sizeInBytes": sizes[f], "link": link} for f, link in files],
    }


OLD = {
    "name": "small",
    "schemaVersion": "1.4",
    "workflow": {
        "makespanInSeconds": 9,
        "executedAt": "2020",
        "tasks": [
            old_task(
                "split_1", 1.5, "a", [],
                ("genome", "input"), ("chunk", "output"), ("rest", "output"),
            )
            | {"avgCPU": 60},
            old_task(
                "align_2", 2, "b", ["split_1"],
                ("chunk", "input"), ("index", "input"), ("found", "output"),
            ) | {"avgCPU": 250.0},
            old_task("clean_3", 0, "a", ["split_1"]) | {"cores": 2},
            old_task(
                "report_4", 0.25, "a", ["align_2"],
                ("found", "input"), ("rest", "input"), ("text", "output"),
            ),
        ],
        "machines": [
            {"nodeName": "a", "cpu": {"count": 2, "speed": 1000}},
            {"nodeName": "b", "memoryInBytes": 64000, "cpu": {"count": 1, "speed": 2000}},
        ],
    },
}  # fmt: skip


def edges(graph: Graph) -> list[tuple[str, str, int]]:
    return sorted(
        (graph.names[u], graph.names[v], -1 if k == CONTROL else int(graph.tensor_size[t]))
        for u, v, t in zip(graph.edge_source, graph.edge_target, graph.edge_tensor, strict=True)
        for k in [graph.tensor_output[t]]
    )


def changed(path: str, value: object, document: dict[str, Any] = NEW) -> dict[str, Any]:
    """Return the document with another value at a path such as ``tasks.0.id``."""
    found = copy.deepcopy(document)
    *way, last = path.split(".")
    at: Any = found
    for step in way:
        at = at[int(step)] if isinstance(at, list) else at[step]
    at[int(last) if isinstance(at, list) else last] = value
    return found


@pytest.mark.parametrize("document", [NEW, NEW | {"schemaVersion": "1.6"}, OLD])
class TestAllVersions:
    def test_files_are_tensors_and_the_rest_is_control(self, document: dict[str, Any]) -> None:
        graph = wfformat.from_dict(document, "x").workload.graph
        assert graph.names == ("split_1", "align_2", "clean_3", "report_4")
        assert edges(graph) == [
            ("align_2", "report_4", 5),
            ("split_1", "align_2", 800),
            ("split_1", "clean_3", -1),
            ("split_1", "report_4", 90),
        ]

    def test_run_times_are_nanoseconds_by_machine(self, document: dict[str, Any]) -> None:
        workload = wfformat.from_dict(document, "x").workload
        assert workload.measured == {
            "a": (1_500_000_000, None, 0, 250_000_000),
            "b": (None, 2_000_000_000, None, None),
        }
        assert workload.name == "small"
        assert workload.assumed == (
            "2 input files (3070 bytes in all) counted as at hand on every device.",
        )

    def test_machines_are_devices_whose_clocks_convert_run_times(
        self, document: dict[str, Any]
    ) -> None:
        instance = wfformat.from_dict(document, "x").instance("1/8", latency=10)
        assert instance.cluster.names == ("a", "b")
        assert instance.cluster.speed.fractions() == [1, 2]
        assert instance.cluster.memory == (None, 64000)
        times = [[int(instance.duration(v, d)) for d in range(2)] for v in range(4)]
        second = 10**9
        assert times == [
            [3 * second // 2, 3 * second // 4],
            [4 * second, 2 * second],
            [0, 0],
            [second // 4, second // 8],
        ]
        assert instance.delay(0, 0, 1) == 10 + 8 * 800

    def test_cores_are_devices_on_request(self, document: dict[str, Any]) -> None:
        instance = wfformat.from_dict(document, "x").instance("1/8", 10, cores=True)
        assert instance.cluster.names == ("a#0", "a#1", "b#0")
        assert instance.delay(0, 0, 1) == 0  # one machine
        assert instance.delay(0, 1, 2) == 10 + 8 * 800
        # align kept two and a half cores busy; split less than one.
        assert [int(instance.duration(1, d)) for d in range(3)] == [10**10, 10**10, 5 * 10**9]
        assert instance.duration(0, 0) == 1_500_000_000
        assert "Every core is a device." in instance.source

    def test_the_instance_survives_native_json(self, document: dict[str, Any]) -> None:
        for cores in (False, True):
            instance = wfformat.from_dict(document, "x").instance(1, cores=cores)
            assert native.from_dict(json.loads(native.dumps(instance))).sha256 == instance.sha256

    def test_writing_and_reading_makes_the_same(
        self, document: dict[str, Any], tmp_path: Path
    ) -> None:
        workflow = wfformat.from_dict(document, "x")
        path = tmp_path / "w.json"
        wfformat.write(path, workflow)
        again = wfformat.read_workflow(path)
        assert again.machines == workflow.machines
        assert again.cores_used == workflow.cores_used
        assert again.workload.measured == workflow.workload.measured
        assert again.instance(1).sha256 == workflow.instance(1).sha256


def test_input_files_come_from_a_vertex_on_request() -> None:
    workflow = wfformat.from_dict(NEW, "x", inputs=True)
    found = edges(workflow.workload.graph)
    assert ("inputs", "split_1", 3000) in found
    assert ("inputs", "align_2", 70) in found
    assert workflow.workload.assumed == ()
    assert [times[0] for times in workflow.workload.measured.values()] == [0, 0]
    assert workflow.instance(1).duration(0, 1) == 0


def test_either_end_may_list_a_dependency() -> None:
    document = changed("workflow.specification.tasks.0.children", [])
    document["workflow"]["specification"]["tasks"][2]["parents"] = []
    assert ("split_1", "clean_3", -1) not in edges(wfformat.from_dict(document, "x").workload.graph)
    document["workflow"]["specification"]["tasks"][0]["children"] = ["clean_3"]
    assert ("split_1", "clean_3", -1) in edges(wfformat.from_dict(document, "x").workload.graph)


def test_a_task_that_reads_what_it_writes_depends_on_nobody_for_it() -> None:
    document = changed("workflow.specification.tasks.0.inputFiles", ["genome", "chunk"])
    assert len(edges(wfformat.from_dict(document, "x").workload.graph)) == 4


def test_a_structure_without_execution_has_no_times() -> None:
    document = copy.deepcopy(NEW)
    del document["workflow"]["execution"]
    workflow = wfformat.from_dict(document, "x")
    assert workflow.workload.measured == {}
    with pytest.raises(InputError, match="lists no machines"):
        workflow.instance(1)


def test_a_task_without_machine_ran_on_the_only_one() -> None:
    document = changed("workflow.execution.machines", [{"nodeName": "a"}])
    for task in document["workflow"]["execution"]["tasks"]:
        task["machines"] = []
    workflow = wfformat.from_dict(document, "x")
    assert list(workflow.workload.measured) == ["a"]
    assert "4 tasks without a machine counted as run on 'a'." in workflow.workload.assumed
    assert workflow.instance(1).duration(1, 0) == 2 * 10**9
    document["workflow"]["execution"]["machines"] = []
    assert list(wfformat.from_dict(document, "x").workload.measured) == [wfformat.UNNAMED]


def test_memory_of_processes_is_left_out_aloud() -> None:
    document = changed("workflow.execution.tasks.0.memoryInBytes", 500)
    workload = wfformat.from_dict(document, "x").workload
    assert any(each.startswith("The memory of 1 task is not used") for each in workload.assumed)


def test_times_are_rounded_to_whole_nanoseconds_aloud() -> None:
    document = changed("workflow.execution.tasks.0.runtimeInSeconds", "0.0000000014")
    workload = wfformat.from_dict(document, "x").workload
    assert workload.measured["a"][0] == 1
    assert workload.assumed[0] == "One time was rounded to whole nanoseconds."


def test_old_tasks_may_name_their_parents_by_id() -> None:
    document = changed("workflow.tasks.0.id", "ID1", OLD)
    document["workflow"]["tasks"][2]["parents"] = ["ID1"]
    graph = wfformat.from_dict(document, "x").workload.graph
    assert ("split_1", "clean_3", -1) in edges(graph)


SPEC, RUN = "workflow.specification", "workflow.execution"


@pytest.mark.parametrize(
    ("path", "value", "part"),
    [
        ("schemaVersion", "1.3", "schemaVersion: '1.3' is unknown; give a workflow of WfFormat"),
        ("schemaVersion", 1.5, "schemaVersion: 1.5 is unknown"),
        ("workflow", [], "workflow: is not an object"),
        (f"{SPEC}.tasks", {}, "workflow.specification.tasks: is an object; give a list"),
        (f"{SPEC}.tasks.1.id", "split_1", "tasks[1].id: a second task 'split_1'"),
        (f"{SPEC}.tasks.1.id", "", "tasks[1].id: is empty"),
        (f"{SPEC}.tasks.1.parents", ["x"], "tasks[1].parents: no task 'x'"),
        (f"{SPEC}.tasks.1.children", [1], "tasks[1].children[0]: is a number; give a string"),
        (f"{SPEC}.tasks.0.parents", ["report_4"], "cycle split_1 → align_2 → report_4 → split_1"),
        (f"{SPEC}.tasks.1.inputFiles", ["y"], "tasks[1]: the size of file 'y' is not given"),
        (f"{SPEC}.tasks.1.outputFiles", ["rest"], "tasks[1]: writes 'rest', which 'split_1'"),
        (f"{SPEC}.files.1.id", "genome", "files[1].id: a second file 'genome'"),
        (f"{SPEC}.files.1.sizeInBytes", -1, "files[1].sizeInBytes: -1 is negative"),
        (f"{RUN}.tasks.1.id", "x", "tasks[1].id: no task 'x'"),
        (f"{RUN}.tasks.1.id", "split_1", "tasks[1].id: 'split_1' ran before"),
        (f"{RUN}.tasks.1.runtimeInSeconds", -2, "tasks[1].runtimeInSeconds: -2 is negative"),
        (f"{RUN}.tasks.1.machines", ["c"], "tasks[1]: ran on 'c', which is no machine"),
        (f"{RUN}.tasks.1.coreCount", 0, "tasks[1].coreCount: 0 is not positive"),
        (f"{RUN}.machines.1.nodeName", "a", "machines[1].nodeName: a second machine 'a'"),
        (f"{RUN}.machines.1.cpu.coreCount", 1.5, "machines[1].cpu.coreCount: 3/2; give a whole"),
        (f"{RUN}.machines.1.cpu.speedInMHz", 0, "machines[1].cpu.speedInMHz: 0 is not positive"),
        (f"{RUN}.machines.1.cpu", 3, "machines[1].cpu: not an object"),
    ],
)  # fmt: skip
def test_a_fault_is_one_line_that_names_file_and_place(
    tmp_path: Path, path: str, value: object, part: str
) -> None:
    file = tmp_path / "w.json"
    file.write_text(json.dumps(changed(path, value)))
    with one_line_fault(file, part):
        wfformat.read(file)


@pytest.mark.parametrize(
    ("path", "value", "part"),
    [
        ("workflow.tasks.0.files.0.link", "inout", "files[0].link: 'inout'; give input or output"),
        ("workflow.tasks.3.files.0.sizeInBytes", 4, "'found' has 4 bytes here and 5 before"),
    ],
)
def test_a_fault_of_an_old_file_names_the_place(path: str, value: object, part: str) -> None:
    with pytest.raises(InputError) as error:
        wfformat.from_dict(changed(path, value, OLD), "x")
    assert part in str(error.value)


@pytest.mark.parametrize(
    ("path", "value", "cores", "part"),
    [
        (f"{RUN}.machines.1.cpu", {}, False, "machine 'b': has no speed"),
        (f"{RUN}.machines.1.cpu", {"speedInMHz": 5}, True, "machine 'b': has no number of cores"),
        (f"{RUN}.machines.1.cpu.coreCount", 9999, True, "machines: 10001 is out of range"),
    ],
)
def test_machines_that_tell_too_little_make_no_cluster(
    path: str, value: object, cores: bool, part: str
) -> None:
    workflow = wfformat.from_dict(changed(path, value), "x")
    with pytest.raises(InputError) as error:
        workflow.instance(1, cores=cores)
    assert part in str(error.value)


def test_a_task_without_run_time_makes_no_instance() -> None:
    document = copy.deepcopy(NEW)
    del document["workflow"]["execution"]["tasks"][2]
    with pytest.raises(InputError, match="task 'clean_3': has no run time"):
        wfformat.from_dict(document, "x").instance(1)


def test_matrices_that_outgrow_the_file_are_refused() -> None:
    document = changed(f"{RUN}.machines.0.cpu.coreCount", 999)
    tasks = [spec(f"t{i}", [], [], [], []) for i in range(2100)]
    document["workflow"]["specification"]["tasks"] += tasks
    with pytest.raises(InputError, match="run times, tasks times devices"):
        wfformat.from_dict(document, "x").instance(1, cores=True)


@pytest.mark.parametrize(
    ("builder", "part"),
    [
        (GraphBuilder().vertex("a b"), "task 'a b': the id has other characters"),
        (GraphBuilder().vertex("a", 1), "has operations"),
        (GraphBuilder().vertex("a", memory=1), "has resident memory"),
        (GraphBuilder().vertex("a", device_type="GPU"), "has device types"),
        (GraphBuilder().vertex("a", outputs=["1/2"]), "has sizes that are no whole bytes"),
        (GraphBuilder().vertex("a").vertex("b").colocate("a", "b"), "has colocation"),
    ],
)
def test_what_the_format_cannot_hold_is_not_written(builder: GraphBuilder, part: str) -> None:
    with pytest.raises(UnsupportedError) as error:
        wfformat.dumps(Workflow(Workload(builder.build())))
    assert part in str(error.value)


def test_several_run_times_or_endless_decimals_are_not_written() -> None:
    graph = GraphBuilder().vertex("a").build()
    two = Workload(graph, measured={"x": (Fraction(1),), "y": (Fraction(2),)})
    with pytest.raises(UnsupportedError, match="has several run times"):
        wfformat.dumps(Workflow(two))
    odd = Workload(graph, measured={"x": (Fraction(1, 3),)})
    with pytest.raises(UnsupportedError, match="is no short decimal"):
        wfformat.dumps(Workflow(odd, (Machine("x"),)))


@pytest.mark.parametrize("document", [NEW, OLD])
def test_damaged_files_are_read_or_refused_on_one_line(
    tmp_path: Path, document: dict[str, Any]
) -> None:
    path = tmp_path / "w.json"

    def read(content: bytes, seed: int) -> None:
        path.write_bytes(content)
        wfformat.read_workflow(path, inputs=seed % 2 == 0).instance(1, cores=seed % 3 == 0)

    faults = refusals(json.dumps(document, indent=1).encode(), range(150), read)
    assert len(faults) > 100
    assert not any("\n" in fault for fault in faults)


@pytest.mark.skipif(not DATA.exists(), reason=f"{DATA} is not here")
def test_published_workflows_are_read() -> None:
    read = {path.stem: wfformat.read_workflow(path) for path in sorted(DATA.glob("*.json"))}
    assert len(read) == 14
    for name, workflow in read.items():
        listed = json.loads((DATA / f"{name}.json").read_text())["workflow"]["specification"]
        graph = workflow.workload.graph
        assert {pair[:2] for pair in edges(graph)} == {
            (parent, task["id"]) for task in listed["tasks"] for parent in task["parents"]
        }
        assert all(any(column) for column in workflow.workload.measured.values())
        again = wfformat.from_dict(json.loads(wfformat.dumps(workflow)), "x")
        assert again.workload.measured == workflow.workload.measured
    montage = read["montage-chameleon-2mass-005d-001"].workload
    assert (len(montage.graph), len(montage.graph.edge_source)) == (58, 174)
    assert montage.measured["mem"][0] == 16_712_000_000
    seismology = read["seismology-chameleon-100p-001"]
    assert seismology.instance(1).devices == 3
    assert seismology.instance(1, cores=True).devices == 144
    with pytest.raises(InputError, match=r"'worker-1.novalocal': has no speed"):
        read["blast-chameleon-small-001"].instance(1)
