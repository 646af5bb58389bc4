"""``optpart import``: what needs costs gets them, and whatever is given counts or is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from commandline import Run

import optpart as op
from optpart.base.errors import InputError
from optpart.interop.costs.registry import SOURCES
from optpart.interop.formats import native

GRAPH = "digraph g { a [ops=30, memory=3]; b [ops=6]; a -> b [size=10] }"
PROFILE = """\
node1 -- Conv -- forward_compute_time=2.5, backward_compute_time=4.25, activation_size=8, parameter_size=70
node2 -- Relu -- forward_compute_time=1, backward_compute_time=2, activation_size=8, parameter_size=0
\tnode1 -- node2
"""  # noqa: E501
CLUSTER = (
    'bandwidth = 2\n[[device]]\nname = "gpu"\nspeed = 3\n[[device]]\nname = "cpu"\ntype = "gpu"\n'
)
LIMITED = CLUSTER.replace("speed = 3", "speed = 3\nmemory = 100")
NAMED = """\
default_link = "pcie-4-x16"
[[device]]
of = "rtx-3090"
name = "gpu"
[[device]]
of = "epyc-7763"
name = "cpu"
memory = "64 GB"
"""
SHOP = "1 2\n1 3 0 4\n"


def workflow(*speeds: int) -> str:
    machines = [
        {"nodeName": f"m{i}", "cpu": {"coreCount": 2, "speedInMHz": speed}, "memoryInBytes": 64}
        for i, speed in enumerate(speeds)
    ]
    tasks = [
        {"id": "a", "parents": [], "children": ["b"], "inputFiles": [], "outputFiles": ["f"]},
        {"id": "b", "parents": ["a"], "children": [], "inputFiles": ["f"], "outputFiles": []},
    ]
    times: list[dict[str, Any]] = [
        {"id": name, "runtimeInSeconds": 2, "machines": ["m0"]} for name in "ab"
    ]
    return json.dumps(
        {
            "name": "two",
            "schemaVersion": "1.5",
            "workflow": {
                "specification": {"tasks": tasks, "files": [{"id": "f", "sizeInBytes": 50}]},
                "execution": {"tasks": times, "machines": machines},
            },
        }
    )


FILES = {
    "g.dot": GRAPH,
    "profile.txt": PROFILE,
    "c.toml": CLUSTER,
    "limited.toml": LIMITED,
    "named.toml": NAMED,
    "shop.jsp": SHOP,
    "w.json": workflow(1000, 2000),
    "one.json": workflow(1000),
    "costs.csv": "name,ops,memory,sizes\na,30,4,50\nb,1/3,0,\n",
    "times.csv": "name,gpu (us)\na,3\nb,4\n",
}


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, content in FILES.items():
        Path(name).write_text(content)


def imported(run: Run, arguments: str) -> tuple[op.Instance, str]:
    shown = run("import", *arguments.split(), "-o", "made.json")
    assert (shown.code, shown.err) == (0, "")
    return native.read("made.json"), shown.out


def test_a_workload_without_costs_is_refused_with_the_choices(run: Run) -> None:
    for file in ("g.dot", "profile.txt", "llama-3-8b"):
        shown = run("import", file, "--cluster", "c.toml", "-o", "made.json")
        assert shown.code == 2
        assert shown.err.startswith(f"optpart: {file}: --costs: missing; ")
        for source in SOURCES:
            assert source in shown.err or source == "table"
        assert shown.err.count("\n") == 1
    assert not Path("made.json").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("g.dot --costs unit", "--cluster: no devices; give either --cluster FILE or --devices N"),
        ("g.dot --costs unit --cluster c.toml --devices 2", "--cluster: no devices"),
        ("g.dot --costs magic --devices 2", "--costs: unknown 'magic'; give roofline, file"),
        ("g.dot --costs table --devices 2", "--costs: unknown 'table'; give roofline, file"),
        ("g.dot --costs no.csv --devices 2", "no.csv: cannot be read"),
        ("g.dot --costs roofline --devices 2", "g: says neither operations nor bytes"),
        ("g.dot --costs unit --cluster c.toml --seed 3", "--seed: nothing is drawn"),
        ("g.dot --costs unit --devices 2 --tokens 3", "--tokens: means nothing to the format dot"),
        ("g.dot --costs unit --devices 2 --shape n=3", "--shape: means nothing to the format dot"),
        ("g.dot --costs unit --devices 2 --cores", "--cores: means nothing to the format dot"),
        ("g.dot --costs unit --devices 2 --break-cycles", "--break-cycles: means nothing to the"),
        ("g.dot --costs unit --devices 2 --fill roofline", "--fill: means nothing to the costs"),
        ("g.dot --costs unit --devices 2 --measured gpu=t.csv", "--measured: means nothing to"),
        ("g.dot --costs measured --devices 2 --measured gpu", "'gpu' is no DEVICE=FILE; give"),
        ("g.dot --costs measured --devices 2", "measured: missing"),
        ("g.dot --costs unit --devices 2 --format onnx", "g.dot: "),
        ("w.json --bandwidth 3 --costs unit", "--costs: means nothing to the machines of the file"),
        ("w.json", "--bandwidth: missing; the file does not tell how its machines are linked"),
        ("w.json --bandwidth fast", "bandwidth: 'fast' is not a number"),
        ("w.json --devices 2 --costs unit --bandwidth 3", "--bandwidth: means nothing to the form"),
        ("shop.jsp --costs unit", "--costs: means nothing to an instance"),
        ("shop.jsp --measured gpu=times.csv", "--measured: means nothing to an instance"),
        ("shop.jsp --seed 0", "--seed: means nothing to an instance"),
        ("shop.jsp --colocate a", "--colocate: means nothing to an instance"),
        ("shop.jsp --mode decode", "--mode: means nothing to the format jsplib"),
        ("costs.csv --devices 2", "--devices: cannot be drawn; give the CSV of the devices"),
        ("llama-3-8b --devices 2 --costs unit --tokens 0", "Invalid value for '--tokens'"),
        ("llama-3-8b --devices 2 --costs unit --weights q9", "weights: no type 'q9'"),
        ("llama3-8b --devices 2 --costs unit", "neither a file nor a model; is it llama-3-8b"),
    ],
)  # fmt: skip
def test_whatever_does_not_count_is_refused_by_name(run: Run, arguments: str, said: str) -> None:
    shown = run("import", *arguments.split(), "-o", "made.json")
    assert (shown.code, shown.out) == (2, "")
    assert said in shown.err
    assert shown.err.count("\n") == 1
    assert not Path("made.json").exists()


def test_what_was_drawn_or_assumed_is_printed_and_stays_in_the_source(run: Run) -> None:
    instance, out = imported(run, "g.dot --devices 3 --costs drawn --seed 4")
    *remarks, last = out.splitlines()
    assert last == "g: 2 vertices, 1 edges, 3 devices → made.json"
    assert remarks == [
        "Speeds and bandwidths of 3 devices were drawn, seed 4.",
        "Operations and sizes were drawn from 1 to 100, with seed 4; they say nothing of the model "
        "but its structure.",
        "Not used: the operations, memory, sizes of the file.",
    ]
    for remark in remarks:
        assert remark in instance.source


def test_operations_of_the_file_count_if_asked_for(run: Run) -> None:
    instance, _ = imported(run, "g.dot --cluster c.toml --costs file")
    assert [instance.duration(0, d) for d in range(2)] == [10, 30]
    assert instance.delay(0, 0, 1) == 5


def test_measured_times_of_the_file_count_if_asked_for(run: Run) -> None:
    instance, _ = imported(run, "profile.txt --cluster c.toml --costs file")
    assert instance.duration(0, 0) == instance.duration(0, 1) == 2_500_000
    instance, _ = imported(run, "profile.txt --cluster c.toml --costs file --training")
    assert instance.duration(0, 0) == 6_750_000


def test_measured_files_are_bound_to_devices(run: Run) -> None:
    Path("cpu.csv").write_text("name,CPU (us)\na,30\nb,40\n")
    files = "--measured gpu=times.csv --measured CPU=cpu.csv"
    instance, out = imported(run, f"g.dot --cluster named.toml --costs measured {files}")
    assert [instance.duration(0, d) for d in range(2)] == [3000, 30_000]
    assert "gpu: 2 of 2 operations measured, once each." in out


def test_a_table_gives_operations_and_sizes(run: Run) -> None:
    Path("h.dot").write_text("digraph h { a; b; a -> b [size=1] }")
    instance, _ = imported(run, "h.dot --cluster c.toml --costs costs.csv")
    assert instance.duration(0, 1) == 30
    assert instance.graph.memory[0] == 4


@pytest.mark.parametrize("costs", ["unit", "drawn", "file", "costs.csv"])
def test_limits_of_memory_count_by_default_whatever_the_costs(run: Run, costs: str) -> None:
    instance, out = imported(run, f"g.dot --cluster limited.toml --costs {costs}")
    assert instance.model.memory in ("estimate", "refcount")
    assert "Memory: model " in out
    instance, out = imported(run, f"g.dot --cluster limited.toml --costs {costs} --memory none")
    assert instance.model.memory == "none"
    assert "Memory: the limits of the devices do not count" in out


def test_a_limit_that_nothing_fits_is_proven_infeasible(run: Run) -> None:
    Path("tiny.toml").write_text('[[device]]\nname = "d"\nmemory = 1\n')
    imported(run, "g.dot --cluster tiny.toml --costs file")
    assert run("solve", "made.json").code == 3


def test_models_can_be_chosen_for_instances_too(run: Run) -> None:
    for arguments in ("shop.jsp", "g.dot --cluster c.toml --costs unit"):
        instance, _ = imported(run, f"{arguments} --memory refcount --communication link")
        assert (instance.model.memory, instance.model.communication) == ("refcount", "link")


@pytest.mark.parametrize("command", ["solve -m heft", "gap -m heft", "bound", "simulate"])
def test_commands_say_that_limits_do_not_count(run: Run, command: str) -> None:
    imported(run, "g.dot --cluster limited.toml --costs unit --memory none")
    name, *options = command.split()
    said = "g: the memory limits of its devices do not count, since its memory model is none"
    assert said in run(name, "made.json", *options).err
    imported(run, "g.dot --cluster limited.toml --costs unit")
    assert "do not count" not in run(name, "made.json", *options).err


def test_verify_says_so_too(run: Run) -> None:
    imported(run, "g.dot --cluster limited.toml --costs unit --memory none")
    assert run("solve", "made.json", "-m", "heft", "-o", "result.json").code == 0
    shown = run("verify", "made.json", "result.json", "--json")
    assert "memory limits of its devices do not count" in shown.err
    assert json.loads(shown.out)["valid"]


def test_a_workflow_runs_on_its_own_machines(run: Run) -> None:
    instance, out = imported(run, "w.json --bandwidth 2.5GB/s --latency 1us")
    assert instance.cluster.names == ("m0", "m1")
    assert [instance.duration(0, d) for d in range(2)] == [2 * 10**9, 10**9]
    assert instance.delay(0, 0, 1) == 1020
    assert instance.model.memory != "none"
    for said in ("are scaled by their clock rates.", "one task at a time.", "Memory: model"):
        assert said in out
    assert "one task at a time." in instance.source
    instance, _ = imported(run, "one.json --cores")
    assert instance.devices == 2


def test_a_workflow_runs_on_other_devices(run: Run) -> None:
    text = CLUSTER.replace('"gpu"\nspeed', '"x"\ntype = "m0"\nspeed').replace('"gpu"', '"m0"')
    Path("like.toml").write_text(text)
    instance, _ = imported(run, "w.json --cluster like.toml --costs file")
    assert instance.duration(1, 1) == 2 * 10**9


def test_a_named_model_is_estimated_on_named_devices(run: Run) -> None:
    options = "--cluster named.toml --costs roofline --weights q4_K --context 1024"
    instance, out = imported(run, f"llama-3-8b {options}")
    assert instance.name == "llama-3-8b-decode"
    assert instance.vertices == 35
    assert "Run times are estimates from datasheets" in out
    instance, _ = imported(run, f"llama-3-8b {options} --granularity attention+mlp --mode prefill")
    assert instance.vertices == 67


def test_the_reserve_of_a_model_is_an_option(run: Run) -> None:
    options = "llama-3-8b --cluster named.toml --costs roofline --weights q4_K"
    whole, out = imported(run, f"{options} --reserve 0")
    assert "kept free" not in out
    kept, out = imported(run, f"{options} --reserve 2GiB")
    assert "Of the memory of every device, 2.00 GiB are kept free for the runtime; " in out
    default, out = imported(run, options)
    assert "1.36 GiB are kept free for the runtime (1 GiB) and intermediate results; " in out
    for d in range(2):
        assert whole.cluster.memory[d] - kept.cluster.memory[d] == 2**31
        assert 2**30 < whole.cluster.memory[d] - default.cluster.memory[d] < 2**31
    words = [
        "import",
        "g.dot",
        "-o",
        "x.json",
        "--costs",
        "unit",
        "--devices",
        "2",
        "--reserve",
        "0",
    ]
    assert run(*words).code == 2


def test_colocate_holds_for_every_workload(run: Run) -> None:
    instance, _ = imported(run, "profile.txt --devices 2 --costs unit --colocate node")
    assert len(instance.graph.colocation) == 1


def test_a_name_can_be_given(run: Run) -> None:
    assert imported(run, "shop.jsp --name mine")[0].name == "mine"


class TestPython:
    def test_a_workload_becomes_an_instance(self) -> None:
        found = op.workload("g.dot")
        assert isinstance(found, op.Workload)
        made = op.costed(found, "limited.toml", "unit", communication="link")
        assert made.instance.model.communication == "link"
        assert made.remarks[0].startswith("Every vertex has 1 operation")
        assert made.remarks[0] in made.instance.source

    def test_clusters_are_taken_as_objects(self) -> None:
        cluster = op.Cluster.of([op.Device("d", 2)])
        assert op.costed(op.workload("g.dot"), cluster, "file").instance.duration(0, 0) == 15

    def test_a_language_model_goes_by_name(self) -> None:
        made = op.costed(op.workload("gpt2", tokens=2), "named.toml", "roofline")
        assert made.instance.name == "gpt2-decode"

    def test_options_that_mean_nothing_are_refused(self) -> None:
        with pytest.raises(InputError, match="tokens: means nothing to the format dot"):
            op.workload("g.dot", tokens=2)
        with pytest.raises(InputError, match="colour: is no option of any source of costs"):
            op.costed(op.workload("g.dot"), "c.toml", "unit", colour=3)
        with pytest.raises(InputError, match="seed: means nothing to the costs 'unit'"):
            op.costed(op.workload("g.dot"), "c.toml", "unit", seed=3)
