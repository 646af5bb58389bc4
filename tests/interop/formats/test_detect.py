import inspect
import json
import sys
from dataclasses import fields
from pathlib import Path
from types import ModuleType

import pytest

from optpart.base.errors import InputError
from optpart.cli import main
from optpart.interop.formats import native
from optpart.interop.formats.detect import (
    FORMATS,
    STEP,
    Format,
    format_of,
    read_instance,
    read_workload,
)
from optpart.interop.formats.llm import Step
from optpart.problem.cluster import Cluster
from optpart.problem.document import FORMAT
from optpart.problem.graph import GraphBuilder
from optpart.problem.instance import Instance
from optpart.problem.workload import Workload

DATA = Path(__file__).resolve().parents[3] / "../shared/data"

GXL = '<gxl><graph id="g"><attr name="Number of processors"><int>3</int></attr></graph></gxl>'
JOB_SHOP = "# tiny\n1 2\n1 3 0 4\n"
FLEXIBLE = "1 2\n2 1 1 3 2 1 4 2 5\n"
BIRGIN = "2 1 3\n0 1\n1 0 4\n1 2 3\n"
SANTIAGO = "#critical\n0\n#tasks\n0: 1, 2\n#edges\n#end\n"
TASKS = "1\n0 0 0\n1 5 1 0\n2 0 1 1\n"
MOIRAI = {"devices": 1, "capacity": [1], "nodes": [], "edges": []}
DNN = {"maxFPGAs": 1, "maxCPUs": 1, "maxSizePerFPGA": 9, "nodes": [], "edges": []}
NATIVE = {"format": FORMAT, "vertices": [], "devices": [{"name": "d"}]}


def write(path: Path, content: object) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_native_files_are_read(tmp_path):
    graph = GraphBuilder().vertex("a", 1).build()
    native.write(Instance(graph, Cluster.uniform(1), name="one"), tmp_path / "one.JSON")
    assert read_instance(tmp_path / "one.JSON").name == "one"


@pytest.mark.parametrize(
    ("name", "content", "vertices", "devices"),
    [
        ("none.gxl", GXL, 0, 3),
        ("shop.jsp", JOB_SHOP, 2, 2),
        ("shop.txt", JOB_SHOP, 2, 2),
        ("shop", JOB_SHOP, 2, 2),
        ("shop.FJS", FLEXIBLE, 2, 2),
        ("shop.txt", FLEXIBLE, 2, 2),
        ("shop.fjs", BIRGIN, 2, 3),
        ("shop.txt", BIRGIN, 2, 3),
        ("graph.txt", SANTIAGO, 1, 2),
        ("graph", SANTIAGO, 1, 2),
        ("model.json", MOIRAI, 0, 1),
        ("model.json", DNN, 0, 2),
        ("model.json", NATIVE, 0, 1),
    ],
)
def test_suffix_or_content_decides(tmp_path, name, content, vertices, devices):
    instance = read_instance(str(write(tmp_path / name, content)))
    assert (instance.vertices, instance.devices) == (vertices, devices)


@pytest.mark.parametrize("name", ["tasks.stg", "tasks.txt", "tasks"])
def test_standard_task_graphs_need_a_number_of_devices(tmp_path, name):
    path = write(tmp_path / name, TASKS)
    assert read_instance(path, devices=4).devices == 4
    with pytest.raises(InputError, match="give their number with 'optpart import --devices'"):
        read_instance(path)


@pytest.mark.parametrize(
    ("format", "content"),
    [
        ("native", NATIVE),
        ("gxl", GXL),
        ("jsplib", JOB_SHOP),
        ("fjs", BIRGIN),
        ("santiago", SANTIAGO),
        ("moirai", MOIRAI),
        ("dnn-partitioning", DNN),
        ("stg", TASKS),
    ],
)
def test_a_named_format_overrides_the_suffix(tmp_path, format, content):
    assert format in FORMATS
    path = write(tmp_path / "file.dat", content)
    devices = 2 if format == "stg" else None
    assert read_instance(path, format, devices).devices in (1, 2, 3)


class TestAFormatAddedToTheTable:
    """One row is enough for its name, its suffix and its content."""

    @pytest.fixture(autouse=True)
    def _added(self, monkeypatch):
        def read(path):
            return Instance(GraphBuilder().vertex("a", 1).build(), Cluster.uniform(7))

        module = ModuleType("tiny")
        module.read, module.sniff = read, lambda text: "tiny" in text
        monkeypatch.setitem(sys.modules, "optpart.interop.formats.tiny", module)
        row = Format("tiny", "one vertex", "optpart.interop.formats.tiny", (".tiny",))
        monkeypatch.setitem(FORMATS.rows, "tiny", row)

    @pytest.mark.parametrize("name", ["a.tiny", "a.TINY", "a.txt", "a"])
    def test_suffix_or_content_decides(self, tmp_path, name):
        assert read_instance(write(tmp_path / name, "tiny")).devices == 7

    def test_its_name_decides_against_the_suffix(self, tmp_path):
        assert read_instance(write(tmp_path / "a.jsp", ""), "tiny").devices == 7

    def test_content_that_another_format_accepts_must_be_named(self, tmp_path):
        with pytest.raises(InputError, match="both as jsplib and as tiny"):
            read_instance(write(tmp_path / "a.txt", JOB_SHOP + "# tiny"))

    def test_messages_name_it(self, tmp_path):
        with pytest.raises(InputError, match=r"did you mean tiny\?"):
            read_instance(tmp_path / "a.txt", "tinny")
        with pytest.raises(InputError, match=r"use \.json, .*\.tiny, \.txt, or name"):
            read_instance(tmp_path / "a.xyz")


def test_the_help_of_import_describes_every_format(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["optpart", "import", "--help"])
    with pytest.raises(SystemExit):
        main()
    shown = "".join(capsys.readouterr().out.split())  # lines also break at hyphens
    for row in FORMATS.values():
        assert "".join(f"{row.name} ({row.summary})".split()) in shown
        assert all(suffix in shown for suffix in row.suffixes)


def test_ambiguous_files_need_a_named_format(tmp_path):
    # One operation on machine 1 or 2; or three operations on machines 1, 1 and 2.
    path = write(tmp_path / "shop.txt", "1 3\n1 2 1 3 2 4\n")
    with pytest.raises(InputError, match=r"both as jsplib and as fjs.*--format"):
        read_instance(path)
    assert read_instance(path, "fjs").vertices == 1
    assert read_instance(path, "jsplib").vertices == 3


@pytest.mark.parametrize(
    ("name", "content", "part"),
    [
        ("a.txt", "", "is empty; give a whole file"),
        ("pytorch_model.bin", "x", "holds weights, but no graph; give what torch.export"),
        ("a.ckpt", "x", "holds weights, but no graph"),
        ("a.keras", "x", "is a file of Keras; give a frozen GraphDef (.pb)"),
        ("a.tflite", "x", "is a model of TensorFlow Lite"),
        ("a.mlmodel", "x", "is a model of Core ML; give the model that it was made of"),
        ("a.engine", "x", "is an engine of TensorRT"),
        ("a.safetensor", "x", "unknown suffix '.safetensor'; did you mean .safetensors"),
        ("a.txt", "1 2 3 4 5\n", "is in no known format"),
        ("LICENSE", "Anybody may\nread this\n", "is in no known format"),
        ("a", "1 2\n1 x 0 4\n", "line 2, duration: 'x' is not a number"),
        ("a.json", "[]", 'give an object with "format"'),
        ("a.json", "{}", "format: is missing"),
        ("a.json", "{", "not JSON"),
    ],
)
def test_faults_name_the_file(tmp_path, name, content, part):
    path = write(tmp_path / name, content)
    with pytest.raises(InputError) as error:
        read_instance(path)
    assert str(error.value).startswith(f"{path}: ")
    assert part in str(error.value)


def test_devices_are_for_files_without_any(tmp_path):
    path = write(tmp_path / "shop.jsp", JOB_SHOP)
    with pytest.raises(InputError, match="devices: given, but the file has its own"):
        read_instance(path, devices=2)


def test_an_unknown_format_is_refused(tmp_path):
    with pytest.raises(InputError, match="format: unknown 'magic'; choose one of native, gxl"):
        read_instance(tmp_path / "a.txt", "magic")


GRAPH = "digraph g { a [ops=30]; a -> b [size=10] }"
XML = '<graphml><graph id="g" edgedefault="directed"><node id="a"/></graph></graphml>'
PROFILE = (
    "node1 -- Conv -- forward_compute_time=2.5, backward_compute_time=4.25, "
    "activation_size=800.0, parameter_size=70.0\n"
)
WORKFLOW = {
    "schemaVersion": "1.5",
    "workflow": {
        "specification": {"tasks": [{"id": "a", "parents": [], "children": []}]},
        "execution": {"tasks": [{"id": "a", "runtimeInSeconds": 2}]},
    },
}


@pytest.mark.parametrize(
    ("name", "content", "format"),
    [
        ("g.dot", GRAPH, "dot"),
        ("g.GV", GRAPH, "dot"),
        ("g", GRAPH, "dot"),
        ("g.graphml", XML, "graphml"),
        ("g.txt", XML, "graphml"),
        ("graph.txt", PROFILE, "pipedream"),
        ("w.json", WORKFLOW, "wfformat"),
    ],
)
def test_suffix_or_content_decides_for_workloads_too(tmp_path, name, content, format):
    path = write(tmp_path / name, content)
    assert format_of(path).name == format
    assert len(read_workload(path).graph) >= 1
    with pytest.raises(InputError, match=r"make an instance of it with 'optpart import …") as fault:
        read_instance(path)
    assert str(fault.value).startswith(f"{path}: ")


@pytest.mark.parametrize(
    ("name", "content", "format"),
    [
        ("m.onnx", b"", "onnx"),
        ("m", b"\x08\x07\x12\x00", "onnx"),
        ("m", b"GGUF\x03\x00\x00\x00", "gguf"),
        ("m.txt", b"\x08\x00\x00\x00\x00\x00\x00\x00{}      ", "safetensors"),
        ("m.safetensors.index.json", b"{}", "safetensors"),
        ("m", b"PK\x03\x04", "pytorch"),
        ("m.pt2", b"", "pytorch"),
        ("m.PB", b"", "tensorflow"),
        ("m.pbtxt", b"", "tensorflow"),
    ],
)
def test_suffix_or_first_bytes_decide_for_binary_files(tmp_path, name, content, format):
    path = tmp_path / name
    path.write_bytes(content)
    assert format_of(path).name == format


def test_a_folder_is_recognised_by_what_lies_in_it(tmp_path):
    with pytest.raises(
        InputError, match=r"is a folder without config\.json, and no profile of Sailor; name "
    ):
        format_of(tmp_path)
    (tmp_path / "llm_info.json").write_text("{}")
    (tmp_path / "profiles").mkdir()
    assert format_of(tmp_path).name == "sailor"


def test_a_language_model_goes_by_its_name_where_there_is_no_such_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert read_workload("llama-3-8b", tokens=1).name == "llama-3-8b-decode"
    with pytest.raises(InputError, match=r"neither a file nor a model; is it llama-3-8b"):
        read_workload("llama3-8b")
    write(tmp_path / "llama-3-8b", GRAPH)
    assert read_workload("llama-3-8b").name == "g"


def test_an_option_that_means_nothing_to_a_format_is_refused(tmp_path):
    path = write(tmp_path / "g.dot", GRAPH)
    with pytest.raises(InputError, match="tokens: means nothing to the format dot; leave it out"):
        read_workload(path, tokens=3)
    assert read_workload(path, tokens=None).name == "g"


def test_an_instance_is_no_workload(tmp_path):
    with pytest.raises(InputError, match=r"holds an instance already \(jsplib\)"):
        read_workload(write(tmp_path / "shop.jsp", JOB_SHOP))


def test_rows_name_parameters_of_their_readers():
    assert [each.name for each in fields(Step)] == [*STEP]
    for row in FORMATS.values():
        known = inspect.signature(row.load().read).parameters
        assert {*row.takes} <= {*known}, row.name
        if row.of_machines:
            assert {*row.of_machines} <= {*inspect.signature(row.load().read_instance).parameters}


class TestAFormatOfWorkloadsAddedToTheTable:
    """One row is enough here, too."""

    def test_it_is_read_with_what_it_takes(self, tmp_path, monkeypatch):
        def read(path, *, width=1):
            builder = GraphBuilder()
            for i in range(width):
                builder.vertex(str(i))
            return Workload(builder.build(), name="wide")

        module = ModuleType("wide")
        module.read, module.sniff = read, lambda content: content.startswith(b"\x00wide")
        monkeypatch.setitem(sys.modules, "optpart.interop.formats.wide", module)
        row = Format(
            "wide", "any width", "optpart.interop.formats.wide", (".wide",),
            gives="workload", content="bytes", takes=("width",),
        )  # fmt: skip
        monkeypatch.setitem(FORMATS.rows, "wide", row)
        for name in ("a.wide", "a"):
            (tmp_path / name).write_bytes(b"\x00wide")
            assert len(read_workload(tmp_path / name, width=3).graph) == 3


@pytest.mark.parametrize("name", ["net.pb", "net.PBTXT", "graph.csv", "cluster.toml", "a.xyz"])
def test_other_files_need_an_import(tmp_path, name):
    with pytest.raises(InputError, match="optpart import") as error:
        read_instance(tmp_path / name)
    assert error.value.file == str(tmp_path / name)


@pytest.mark.parametrize("name", ["a.txt", "a", "a.json", "a.stg", "a.fjs", "a.jsp"])
def test_missing_files_cannot_be_read(tmp_path, name):
    with pytest.raises(InputError, match="cannot be read"):
        read_instance(tmp_path / name, devices=1 if name == "a.stg" else None)


@pytest.mark.skipif(not DATA.exists(), reason=f"{DATA} is not here")
@pytest.mark.parametrize(
    "pattern",
    [
        "jsplib/*[0-9]",
        "fjsp/*/*.txt",
        "hetero_santiago/*.txt",
        "moirai/*.json",
        "dnn-partitioning/latency/LayerGraphs/*.json",
    ],
)
def test_every_published_file_is_recognised(pattern):
    paths = sorted(DATA.glob(pattern))
    assert paths
    for path in paths:
        assert read_instance(path).vertices > 0


def imported(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    """Exit code of ``optpart import`` with these arguments."""
    monkeypatch.setattr("sys.argv", ["optpart", "import", *map(str, arguments)])
    with pytest.raises(SystemExit) as stop:
        main()
    return int(stop.value.code or 0)


@pytest.mark.parametrize(
    ("name", "content", "options"),
    [
        ("shop", JOB_SHOP, []),
        ("shop.dat", FLEXIBLE, ["--format", "fjs"]),
        ("tasks.stg", TASKS, ["--devices", 2]),
        ("none.gxl", GXL, []),
        ("model.json", DNN, []),
    ],
)
def test_import_writes_what_was_read(tmp_path, monkeypatch, name, content, options):
    path, output = write(tmp_path / name, content), tmp_path / "out.json"
    assert imported(monkeypatch, path, *options, "-o", output) == 0
    format = options[1] if options[:1] == ["--format"] else None
    devices = options[1] if options[:1] == ["--devices"] else None
    assert read_instance(output).sha256 == read_instance(path, format, devices).sha256


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (["--devices", 2], "devices: given, but the file has its own"),
        (["--cluster", "c.toml"], "--cluster: means nothing to an instance, which has devices"),
        (["--format", "magic"], "format: unknown 'magic'"),
        (["--format", "stg"], "give their number with 'optpart import --devices'"),
    ],
)
def test_options_that_do_not_fit_are_one_line(tmp_path, monkeypatch, capsys, options, part):
    path = write(tmp_path / "shop", JOB_SHOP)
    assert imported(monkeypatch, path, *options, "-o", tmp_path / "out.json") == 2
    shown = capsys.readouterr().err
    assert part in shown
    assert shown.count("\n") == 1
    assert not (tmp_path / "out.json").exists()
