import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

from optpart.cli import main
from optpart.errors import InputError
from optpart.formats import native
from optpart.formats.detect import FORMATS, Format, read_instance
from optpart.problem.cluster import Cluster
from optpart.problem.document import FORMAT
from optpart.problem.graph import GraphBuilder
from optpart.problem.instance import Instance

DATA = Path(__file__).resolve().parents[2] / "../shared/data"

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
def test_standard_task_graphs_must_be_told_the_devices(tmp_path, name):
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
        monkeypatch.setitem(sys.modules, "optpart.formats.tiny", module)
        row = Format("tiny", "one vertex", "optpart.formats.tiny", (".tiny",))
        monkeypatch.setitem(FORMATS, "tiny", row)

    @pytest.mark.parametrize("name", ["a.tiny", "a.TINY", "a.txt", "a"])
    def test_suffix_or_content_decides(self, tmp_path, name):
        assert read_instance(write(tmp_path / name, "tiny")).devices == 7

    def test_its_name_decides_against_the_suffix(self, tmp_path):
        assert read_instance(write(tmp_path / "a.jsp", ""), "tiny").devices == 7

    def test_what_another_format_can_read_too_must_be_named(self, tmp_path):
        with pytest.raises(InputError, match="both as jsplib and as tiny"):
            read_instance(write(tmp_path / "a.txt", JOB_SHOP + "# tiny"))

    def test_messages_name_it(self, tmp_path):
        with pytest.raises(InputError, match=r"choose one of native, .*tiny"):
            read_instance(tmp_path / "a.txt", "magic")
        with pytest.raises(InputError, match=r"use \.json, .*\.tiny, \.txt, or name"):
            read_instance(tmp_path / "a.xyz")


def test_the_help_of_import_says_what_every_format_is(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["optpart", "import", "--help"])
    monkeypatch.setenv("COLUMNS", "1000")
    with pytest.raises(SystemExit):
        main()
    shown = capsys.readouterr().out
    for row in FORMATS.values():
        assert f"{row.name} ({row.summary})" in shown
        assert all(suffix in shown for suffix in row.suffixes)


def test_what_can_be_read_in_two_ways_must_be_named(tmp_path):
    # One operation on machine 1 or 2; or three operations on machines 1, 1 and 2.
    path = write(tmp_path / "shop.txt", "1 3\n1 2 1 3 2 4\n")
    with pytest.raises(InputError, match=r"both as jsplib and as fjs.*--format"):
        read_instance(path)
    assert read_instance(path, "fjs").vertices == 1
    assert read_instance(path, "jsplib").vertices == 3


@pytest.mark.parametrize(
    ("name", "content", "part"),
    [
        ("a.txt", "", "is in no known format"),
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
def test_every_published_file_is_told_apart(pattern):
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
        (["--cluster", "c.toml"], "--cluster: only for TensorFlow graphs and thesis tables"),
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
