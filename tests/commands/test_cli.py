"""The command line: outputs, exit codes, and a one-line message for every error."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from commandline import Run

from optpart import Cluster, Device, GraphBuilder, Instance, Model
from optpart.interop.formats import native
from optpart.interop.formats.detect import read_instance
from optpart.methods import registry


def document(**changes: Any) -> dict[str, Any]:
    base: dict[str, Any] = {
        "format": "optpart-instance/1",
        "name": "mine",
        "vertices": [
            {"name": "a", "ops": 4, "memory": 1, "outputs": [6]},
            {"name": "b", "ops": 2},
            {"name": "c", "ops": 3},
        ],
        "edges": [["a", "b", 0], ["a", "c", 0]],
        "devices": [{"name": "x", "speed": 1, "type": "CPU"}, {"name": "y", "speed": 2}],
        "bandwidth": [[None, 3], [3, None]],
    }
    return {**base, **changes}


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(document()))
    return path


# --- what works ----------------------------------------------------------------------------


def test_solve_proves_and_writes_a_result_that_verify_accepts(
    run: Run, mine: Path, tmp_path: Path
) -> None:
    result = tmp_path / "result.json"
    solved = run("solve", mine, "-o", result)
    assert solved.code == 0
    assert solved.out.startswith("mine: OPTIMAL, makespan 4.5, lower bound 4.5")
    content = json.loads(result.read_text())
    assert content["status"] == "OPTIMAL"
    assert content["makespan"] == content["lower_bound"] == "9/2"
    assert set(content) >= {
        "format", "instance", "instance_sha256", "method", "status", "makespan", "lower_bound",
        "gap", "traffic", "seconds", "seed", "workers", "termination", "versions", "schedule",
        "trace",
    }  # fmt: skip
    checked = run("verify", mine, result)
    assert checked.code == 0
    assert checked.out.startswith("valid: makespan 4.5")


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"makespan": "4"}, "makespan"),
        ({"traffic": "1"}, "traffic"),
        ({"lower_bound": "5"}, "lower_bound"),
        ({"lower_bound": "4"}, "status"),
        ({"instance_sha256": "0" * 64}, "instance"),
        ({"status": "SPLENDID"}, "status"),
        ({"status": ["OPTIMAL"]}, "status"),
        ({"status": None}, "status"),
        ({"status": "INFEASIBLE"}, "status"),
        ({"status": "UNKNOWN"}, "status"),
        ({"objective": "fame"}, "objective"),
        ({"gap": 0.5}, "gap"),
        ({"gap": 1e-9}, "gap"),
        ({"status": "FEASIBLE"}, "termination"),
        ({"status": "FEASIBLE", "lower_bound": None}, "gap"),
        ({"status": "FEASIBLE", "lower_bound": "4", "gap": 0.0}, "gap"),
        ({"trace": [[2, None, None], [1, None, None]]}, "trace[1]"),
        ({"trace": [[0, "4", None]]}, "trace[0]"),
        ({"trace": [[0, None, "5"]]}, "trace[0]"),
        ({"seconds": 1, "trace": [[5, None, None]]}, "trace"),
        ({"schedule": None}, "status"),
        ({"schedule": None, "status": "FEASIBLE"}, "status"),
        ({"schedule": None, "status": "INFEASIBLE"}, "makespan"),
        ({"schedule": None, "status": "UNKNOWN", "makespan": None}, "traffic"),
    ],
)
def test_verify_rejects_a_claim_that_contradicts_the_schedule(
    run: Run, mine: Path, tmp_path: Path, change: dict[str, Any], rule: str
) -> None:
    result = tmp_path / "result.json"
    run("solve", mine, "-o", result)
    result.write_text(json.dumps({**json.loads(result.read_text()), **change}))
    checked = run("verify", mine, result)
    assert checked.code == 1
    assert checked.out.startswith(f"{rule}: ")


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"gap": "wide"}, "gap: not a number"),
        ({"lower_bound": -1}, "lower_bound: -1 is negative"),
        ({"seconds": -1}, "seconds: -1 is negative"),
        ({"trace": [[0, 1]]}, "trace[0]: not a triple"),
        ({"trace": [[-1, None, None]]}, "trace[0]: -1 is negative"),
        ({"trace": "long"}, "trace: is a string"),
        (
            {"status": "INFEASIBLE", "schedule": None, "makespan": None, "traffic": None},
            "schedule: missing",
        ),
    ],
)
def test_verify_needs_numbers_and_a_schedule(
    run: Run, mine: Path, tmp_path: Path, change: dict[str, Any], fault: str
) -> None:
    result = tmp_path / "result.json"
    run("solve", mine, "-o", result)
    result.write_text(json.dumps({**json.loads(result.read_text()), **change}))
    checked = run("verify", mine, result)
    assert (checked.code, checked.out) == (2, "")
    assert fault in checked.err
    assert checked.err.count("\n") == 1


def test_verify_names_the_violation_of_a_broken_schedule(
    run: Run, mine: Path, tmp_path: Path
) -> None:
    result = tmp_path / "result.json"
    run("solve", mine, "-o", result)
    content = json.loads(result.read_text())
    content["schedule"]["start"]["b"] = "0"
    result.write_text(json.dumps(content))
    checked = run("verify", mine, result)
    assert checked.code == 1
    assert "precedence: b starts at 0" in checked.out


def test_standard_output_holds_nothing_but_the_json(run: Run, mine: Path) -> None:
    assert json.loads(run("solve", mine, "--json").out)["format"] == "optpart-result/1"
    assert json.loads(run("gap", mine, "-m", "heft", "--json").out)["format"] == "optpart-gap/1"
    assert len(json.loads(run("bound", mine, "--json").out)["bounds"]) >= 2
    assert json.loads(run("simulate", mine, "--json").out)["schedule"] is not None


def test_gap_measures_against_the_proven_optimum(run: Run, mine: Path, tmp_path: Path) -> None:
    out = tmp_path / "gap.csv"
    shown = run("gap", mine, "heft-10", "-m", "heft", "-m", "hash+pct", "-o", out)
    assert shown.code == 0
    assert "optimum 73 by cpsat, proven by cpsat" in shown.out
    rows = list(csv.DictReader(io.StringIO(out.read_text())))
    assert [(row["instance"], row["method"]) for row in rows] == [
        ("mine", "heft"), ("mine", "hash+pct"), ("heft-10", "heft"), ("heft-10", "hash+pct"),
    ]  # fmt: skip
    heft = rows[2]
    assert (heft["makespan"], heft["reference"], heft["bound"]) == ("80", "73", "73")
    assert float(heft["over_reference"]) == pytest.approx(80 / 73 - 1)
    assert run("gap", mine, "-m", "heft", "--csv").out.startswith("instance,vertices,")


class TestSearch:
    """``--method search``: checkpoints, and starts that need repair."""

    def test_continues_from_a_checkpoint(self, run: Run, tmp_path: Path) -> None:
        state = tmp_path / "state.json"
        options = ("-m", "search", "--workers", 1, "--checkpoint", state)
        mine = "small-60-8-ccr1-tight-s44"
        assert run("solve", mine, *options, "--time-limit", 1).code == 0
        assert state.exists()
        assert run("solve", mine, *options, "--time-limit", 2, "--resume").code == 0
        state.write_text("{}")
        spoilt = run("solve", mine, *options, "--resume")
        assert (spoilt.code, spoilt.out) == (2, "")
        assert spoilt.err.count("\n") == 1

    def test_starts_from_a_schedule_of_other_devices(self, run: Run, tmp_path: Path) -> None:
        start, other = tmp_path / "start.json", tmp_path / "other.json"
        run("solve", "kwok-ahmad-9-3", "-m", "heft", "-o", start)
        shown = run(
            "solve", "kwok-ahmad-9-2", "-m", "search", "--start", start, "--time-limit", 0,
            "--workers", 1, "-o", other,
        )  # fmt: skip
        assert shown.code == 0
        assert "the given start is not valid here and was repaired" in shown.out
        assert run("verify", "kwok-ahmad-9-2", other).code == 0

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ("--checkpoint x.json", "--checkpoint: auto does not save its state"),
            ("-m search --resume", "--resume: no checkpoint to resume from"),
            ("-m search --within 80", "goal: an order or a limit is not supported"),
        ],
    )
    def test_invalid_options_are_refused(self, run: Run, options: str, message: str) -> None:
        shown = run("solve", "heft-10", *options.split())
        assert (shown.code, shown.out) == (2, "")
        assert message in shown.err


class TestGoals:
    """The goals of ``solve`` besides the least makespan."""

    def test_the_decision_problem(self, run: Run) -> None:
        assert run("solve", "heft-10", "--within", 73).code == 0
        shown = run("solve", "heft-10", "--within", "145/2")
        assert shown.code == 3
        assert "INFEASIBLE: no schedule satisfies makespan at most 145/2" in shown.out

    def test_least_traffic_after_least_makespan(self, run: Run) -> None:
        shown = run("solve", "heft-10", "--objective", "lexicographic")
        assert "OPTIMAL, makespan 73, lower bound 73, traffic 99 (lower bound 99)" in shown.out

    def test_least_traffic(self, run: Run) -> None:
        shown = run("solve", "kwok-ahmad-9-2", "--objective", "traffic", "-m", "enumerate")
        assert "traffic 0 (lower bound 0)" in shown.out

    def test_the_pareto_front(self, run: Run) -> None:
        shown = run("solve", "kwok-ahmad-9-2", "--pareto")
        assert shown.out.startswith("kwok-ahmad-9-2: the whole front\n")
        points = [line.partition("makespan ")[2] for line in shown.out.splitlines()[1:]]
        assert points[0].startswith("17, traffic ")
        assert points[-1].endswith("traffic 0")
        document = json.loads(run("solve", "kwok-ahmad-9-2", "--pareto", "--json").out)
        assert len(document["front"]) == len(points)

    def test_a_given_placement_and_order(self, run: Run, tmp_path: Path) -> None:
        start = tmp_path / "heft.json"
        run("solve", "heft-10", "-m", "heft", "-o", start)
        placed = run("solve", "heft-10", "--fix", "placement", "--start", start)
        assert "OPTIMAL given the placement of 10 vertices, makespan" in placed.out
        both = run("solve", "heft-10", "--fix", "both", "--start", start)
        assert "makespan 80, lower bound 80" in both.out
        assert run("solve", "heft-10", "--fix", "order", "--start", start).code == 0

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (
                "--pareto --start heft",
                "--pareto: does not use --start without --fix; leave --start out",
            ),
            ("--within soon", "--within: 'soon'"),
            ("--fix placement", "--fix: no schedule to take it from; give a result with --start"),
            ("--within 80 -m heft", "--method: heft can only minimise the makespan"),
            ("--pareto -m enumerate", "--pareto: used with another method"),
            ("--pareto --objective traffic", "--pareto: finds the front of makespan and traffic"),
            ("--pareto --objective lexicographic", "leave --objective out"),
        ],
    )
    def test_invalid_options_are_refused(self, run: Run, arguments: str, message: str) -> None:
        shown = run("solve", "heft-10", *arguments.split())
        assert (shown.code, shown.out) == (2, "")
        assert message in shown.err


def test_simulate_shows_devices_and_the_spread_of_several_seeds(run: Run, mine: Path) -> None:
    shown = run("simulate", mine, "-m", "hash+fifo", "--runs", 3)
    assert shown.code == 0
    assert "mean of 3 runs" in shown.out
    assert "executable vertices at a decision: mean" in shown.out
    assert "peak memory by" in shown.out


def test_simulating_a_strategy_with_its_own_order_has_no_decisions(run: Run, mine: Path) -> None:
    shown = run("simulate", mine, "-m", "heft")
    assert shown.code == 0
    assert "executable" not in shown.out


def test_simulate_reports_the_activity_of_every_device(run: Run, tmp_path: Path) -> None:
    """a runs 2, then b and c wait for the tensor of 5; d1 has nothing to do."""
    builder = GraphBuilder().vertex("a", 2, memory=3, outputs=[5]).vertex("b", 1).vertex("c", 1)
    graph = builder.edge("a", "b").edge("a", "c").build()
    path = tmp_path / "chain.json"
    native.write(Instance(graph, Cluster.uniform(2, bandwidth="1/100"), name="chain"), path)
    document = json.loads(run("simulate", path, "-m", "fastest+pct", "--json").out)
    assert document["makespan"] == "4"
    assert document["simulation"] == {
        "executable": [1, 2, 1],
        "devices": [
            {"device": "d0", "vertices": 3, "busy": "4", "idle": "0",
             "peak_memory": {"edges": "5", "refcount": "8"}},
            {"device": "d1", "vertices": 0, "busy": "0", "idle": "4",
             "peak_memory": {"edges": "0", "refcount": "0"}},
        ],
    }  # fmt: skip


def test_simulate_says_where_the_schedule_breaks_the_memory_model(run: Run, tmp_path: Path) -> None:
    builder = GraphBuilder().vertex("a", 1, outputs=[9]).vertex("b", 1).vertex("c", 1)
    graph = builder.edge("a", "b", None).edge("b", "c", None).edge("a", "c").build()
    path = tmp_path / "full.json"
    model = Model(memory="edges")
    native.write(Instance(graph, Cluster.uniform(1, memory=8), model, name="full"), path)
    shown = run("simulate", path, "-m", "hash+pct")
    assert shown.code == 4
    assert "full: hash+pct, makespan 3, but not a valid schedule:" in shown.out
    assert "memory" in shown.out
    assert " 9 " in shown.out
    shown = run("solve", path, "-m", "hash+pct")
    assert shown.code == 4
    assert "full: no schedule found: the schedule of hash+pct is not valid: memory" in shown.out


def test_simulate_needs_a_pair(run: Run, mine: Path) -> None:
    shown = run("simulate", mine, "-m", "cpsat")
    assert (shown.code, shown.out) == (2, "")
    assert "'cpsat' is not a pair of strategies; give PARTITIONING+SCHEDULER" in shown.err


def test_expert_rules_come_from_a_file_named_after_a_colon(run: Run, tmp_path: Path) -> None:
    rules = tmp_path / "rules.csv"
    rules.write_text("pattern,device\n*,d2\n")
    result = tmp_path / "result.json"
    shown = run("solve", "heft-10", "-m", f"expert:{rules}+pct", "-o", result)
    assert shown.code == 0
    assert set(json.loads(result.read_text())["schedule"]["placement"].values()) == {"d2"}
    missing = run("solve", "heft-10", "-m", "expert:nowhere.csv+pct")
    assert (missing.code, missing.out) == (2, "")
    assert "nowhere.csv: cannot be read" in missing.err
    assert run("solve", "heft-10", "-m", "hash:rules.csv+pct").code == 2


def test_generate_lstm_builds_an_unrolled_network(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "rnn.json"
    assert run("generate", "lstm", "rnn", "-o", path, "--costs", "unit", "--no-training").code == 0
    assert read_instance(path).devices == 2
    wrong = run("generate", "lstm", "gru", "-o", path)
    assert (wrong.code, wrong.out) == (2, "")
    assert "no network 'gru'; choose one of rnn, nmt" in wrong.err


def test_simulate_can_use_the_placement_of_a_result(run: Run, mine: Path, tmp_path: Path) -> None:
    result = tmp_path / "result.json"
    run("solve", mine, "-o", result)
    shown = run("simulate", mine, "--start", result, "-m", "fifo")
    assert "given+fifo, makespan 4.5" in shown.out


def test_methods_lists_every_part(run: Run) -> None:
    shown = run("methods").out
    for name in ("hash+", "heft", "critical-path+", "fastest+", "+pct", "+fifo", "cpsat"):
        assert name in shown


def test_methods_are_listed_as_json(run: Run) -> None:
    rows = json.loads(run("methods", "--json").out)["methods"]
    assert {"name", "kind", "summary"} == set(rows[0])
    assert [row["name"] for row in rows if row["kind"] == "solver"][:2] == ["auto", "cpsat"]


@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_plot_draws_a_library_result_without_naming_its_instance(
    run: Run, tmp_path: Path, suffix: str
) -> None:
    result, picture = tmp_path / "result.json", tmp_path / f"picture{suffix}"
    run("solve", "heft-10", "--method", "heft", "-o", result)
    assert run("plot", result, "-o", picture).code == 0
    assert picture.stat().st_size > 1000


@pytest.mark.parametrize("kind", ["small", "layered", "thesis"])
def test_generate_writes_an_instance_that_can_be_read(run: Run, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "drawn.json"
    number = ["3", "--devices", "5"] if kind == "thesis" else []
    assert run("generate", kind, *number, "-o", path, "--seed", 5).code == 0
    assert native.read(path).vertices > 0


def test_import_reads_a_graphdef_with_a_generated_cluster(run: Run, tmp_path: Path) -> None:
    graph, cluster, made = tmp_path / "g.pbtxt", tmp_path / "c.toml", tmp_path / "made.json"
    graph.write_text(
        'node { name: "a" op: "Const" } node { name: "b" op: "Neg" input: "a" }'
        'node { name: "c" op: "Neg" input: "a" input: "^b" device: "/device:GPU:0" }'
    )
    assert run("generate", "cluster", "--devices", 4, "-o", cluster).code == 0
    shown = run("import", graph, "--cluster", cluster, "--costs", "unit", "-o", made)
    assert "3 vertices, 3 inputs" in shown.out
    instance = native.read(made)
    assert instance.vertices == 3
    assert instance.graph.device_types[2] == "GPU"


def test_convert_writes_the_same_instance(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "copy.json"
    assert run("convert", "heft-10", "-o", path).code == 0
    assert run("solve", path, "-m", "heft").out.startswith("heft-10: FEASIBLE, makespan 80")


def test_an_empty_graph_and_a_single_vertex_are_solved(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "tiny.json"
    for vertices, makespan in (([], "0"), ([{"name": "a", "ops": 3}], "1.5")):
        path.write_text(json.dumps(document(vertices=vertices, edges=[])))
        assert run("solve", path).out.startswith(f"mine: OPTIMAL, makespan {makespan}")
        assert run("gap", path, "-m", "heft").code == 0


# --- what is infeasible, or not found -------------------------------------------------------


def test_infeasible_instances_exit_3_with_the_reason(run: Run, tmp_path: Path) -> None:
    graph = GraphBuilder().vertex("a", 1, memory=5).vertex("b", 1, memory=5).build()
    cluster = Cluster.of([Device("x", memory=4), Device("y", memory=9)], 1)
    tight = Instance(graph, cluster, Model(memory="estimate"), name="tight")
    path = tmp_path / "tight.json"
    native.write(tight, path)
    for command in ("solve", "gap"):
        shown = run(command, path)
        assert shown.code == 3
        assert (
            "units a, b may go to x, y only, and cannot all be placed: "
            "x, y memory (they need 5, 5 of 4, 9)"
        ) in shown.out
    native.write(replace(tight, cluster=Cluster.uniform(2, memory=4)), path)
    for command in ("solve", "bound", "gap"):
        shown = run(command, path)
        assert shown.code == 3
        assert "a needs memory 5, but the largest device that it may use has 4" in shown.out


def test_a_link_of_bandwidth_0_forbids_the_crossing(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "apart.json"
    vertices = [{"name": "a", "ops": 1, "outputs": [1], "devices": ["x"]},
                {"name": "b", "ops": 1, "devices": ["y"]}]  # fmt: skip
    broken = document(vertices=vertices, edges=[["a", "b", 0]], bandwidth=[[None, 0], [3, None]])
    path.write_text(json.dumps(broken))
    shown = run("solve", path)
    assert shown.code == 3
    assert "INFEASIBLE" in shown.out


def test_every_command_says_the_same_of_an_instance_without_a_schedule(
    run: Run, tmp_path: Path
) -> None:
    """a and b cannot run where they must, since nothing crosses from x to y."""
    path = tmp_path / "apart.json"
    vertices = [{"name": "a", "ops": 1, "outputs": [1], "devices": ["x"]},
                {"name": "b", "ops": 1, "devices": ["y"]}]  # fmt: skip
    path.write_text(
        json.dumps(
            document(vertices=vertices, edges=[["a", "b", 0]], bandwidth=[[None, 0], [3, None]])
        )
    )
    said = "INFEASIBLE: no schedule satisfies allowed devices and missing links (proven by bounds)"
    commands = [
        ("solve", path),
        ("solve", path, "-m", "milp"),
        ("solve", path, "-m", "search"),
        ("solve", path, "-m", "heft"),
        ("gap", path, "-m", "heft"),
        ("bound", path),
        ("certify", path, "-o", tmp_path / "proof"),
    ]
    for command in commands:
        shown = run(*command)
        assert shown.code == 3
        assert said in shown.out + shown.err, command


def test_nothing_found_exits_4(run: Run, tmp_path: Path) -> None:
    # The first unit takes the device that the second one needs.
    graph = GraphBuilder().vertex("a", 1, memory=3).vertex("b", 1, memory=4, devices=["x"]).build()
    cluster = Cluster.of([Device("x", memory=4), Device("y", memory=4)], 1)
    path = tmp_path / "greedy.json"
    native.write(Instance(graph, cluster, Model(memory="estimate"), name="greedy"), path)
    shown = run("solve", path, "-m", "hash+pct")
    assert shown.code == 4
    assert "no device was left for b" in shown.out
    assert run("solve", path).code == 0


# --- bad input ------------------------------------------------------------------------------

BAD: dict[str, tuple[Any, str]] = {
    "not JSON": ("{", "not JSON"),
    "version": (document(format="optpart-instance/9"), "format"),
    "unknown key": (document(colour="red"), "unknown key 'colour'"),
    "missing name": (document(vertices=[{"ops": 1}], edges=[]), "missing name"),
    "duplicate name": (
        document(vertices=[{"name": "a"}, {"name": "a"}], edges=[]),
        "vertices[1].name: 'a' is already vertices[0]",
    ),
    "edge to nowhere": (document(edges=[["a", "z", 0]]), "edges[0]: no vertex 'z'"),
    "cycle": (
        document(edges=[["a", "b", 0], ["b", "c", None], ["c", "a", None]]),
        "cycle a → b → c → a",
    ),
    "negative": (document(vertices=[{"name": "a", "ops": -1}], edges=[]), "-1 is negative"),
    "NaN": ('{"format": "optpart-instance/1", "vertices": [{"name": "a", "ops": NaN}]}', "NaN"),
    "infinite": (
        '{"format": "optpart-instance/1", "vertices": [{"name": "a", "ops": Infinity}]}',
        "Infinity",
    ),
    "zero speed": (document(devices=[{"name": "x", "speed": 0}]), "devices[0].speed: 0 is not"),
    "matrix size": (document(bandwidth=[[None, 3]]), "bandwidth: 1 rows; give 2 rows"),
    "group without device": (
        document(
            vertices=[{"name": "a", "devices": ["x"]}, {"name": "b", "devices": ["y"]}],
            edges=[],
            colocation=[["a", "b"]],
        ),
        "colocation: group a, b has no device",
    ),
    "device type": (
        document(vertices=[{"name": "a", "device_type": "TPU"}], edges=[]),
        "vertices[0].device_type: no device is of type 'TPU'",
    ),
}


@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize("command", ["solve", "gap", "convert"])
def test_bad_input_is_one_line_and_exit_2_and_writes_nothing(
    run: Run, tmp_path: Path, kind: str, command: str
) -> None:
    content, expected = BAD[kind]
    path, output = tmp_path / "bad.json", tmp_path / "out.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    shown = run(command, path, "-o", output)
    assert shown.code == 2
    assert shown.out == ""
    assert shown.err.startswith(f"optpart: {path}: ")
    assert expected in shown.err
    assert "; " in shown.err
    assert shown.err.count("\n") == 1
    assert os.listdir(tmp_path) == ["bad.json"]


def test_a_truncated_graphdef_is_reported_in_one_line(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "cut.pb"
    path.write_bytes(b"\x0a\x20\x0a\x01a\x12\x05Const")
    shown = run("import", path, "--devices", 2, "-o", tmp_path / "out.json")
    assert (shown.code, shown.err.count("\n")) == (2, 1)
    assert os.listdir(tmp_path) == ["cut.pb"]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ("solve no-such-instance", "no-such-instance: no such file"),
        ("solve heft-10 --traffic-limit -1", "--traffic-limit: -1 is negative"),
        ("solve heft-10 -m heft --sensitivity 20", "--sensitivity: '20' is out of range"),
        ("export no-such.json --to tracce", "--to: unknown 'tracce'; did you mean trace?"),
        ("solve heft-10 --method magic", "no method 'magic'; 'optpart methods' lists the names"),
        ("solve laich-2.5 --method milp", "milp does not support sendrecv"),
        ("gap heft-10 -o table.xml", "table.xml: unknown suffix '.xml'"),
        ("gap heft-10 --json --csv", "--json: used together with --csv"),
        ("simulate heft-10 --start no-such.json", "no-such.json: cannot be read"),
        ("simulate heft-10 -m magic+pct", "no method 'magic+pct'"),
        ("plot no-such.json -o p.png", "no-such.json: cannot be read"),
        ("import no-such.pb --devices 3 -o x.json", "no-such.pb: cannot be read"),
        ("import heft-10 -o x.json", "heft-10: cannot be read"),
        ("import graph.xyz -o x.json", "graph.xyz: unknown suffix '.xyz'"),
        ("convert heft-10 -o copy.xml", "copy.xml: unknown suffix '.xml'"),
        ("convert heft-10 -o no-such-folder/copy.json", "copy.json: cannot be written"),
        ("generate small --vertices 5 --ccr -1 -o x.json", "'--ccr': "),
        ("generate small -o x.json --vertices", "--vertices"),
        ("solve", "Missing argument"),
        ("solve heft-10 --colour", "--colour"),
        ("frobnicate", "frobnicate"),
    ],
)
def test_wrong_usage_is_one_line_that_says_what_would_be_right(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: str, problem: str
) -> None:
    monkeypatch.chdir(tmp_path)
    shown = run(*arguments.split())
    assert shown.code == 2
    assert problem in shown.err
    assert (shown.err.count("\n"), shown.out) == (1, "")
    assert "; " in shown.err
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("command", ["", "generate", "strategy", "profile"])
def test_without_arguments_help_is_printed(run: Run, command: str) -> None:
    shown = run(*command.split())
    assert shown.code == 2
    assert (shown.out, shown.err) == (run(*command.split(), "--help").out, "")


def test_a_close_command_is_a_question_of_its_own(run: Run) -> None:
    shown = run("sovle", "heft-10")
    assert shown.err.endswith("'sovle'. Did you mean 'solve'? See 'optpart --help'\n")


@pytest.mark.parametrize("command", ["plot", "export"])
def test_a_result_of_no_library_instance_asks_for_its_file(
    run: Run, mine: Path, tmp_path: Path, command: str
) -> None:
    result = tmp_path / "result.json"
    run("solve", mine, "-m", "heft", "-o", result)
    shown = run(command, result, *(["--to", "trace"] if command == "export" else []),
                "-o", tmp_path / "out.svg")  # fmt: skip
    assert shown.code == 2
    assert "is not in the library; give the instance's file with --instance" in shown.err


def test_a_result_of_another_instance_says_so(run: Run, mine: Path, tmp_path: Path) -> None:
    result = tmp_path / "result.json"
    run("solve", "heft-10", "-m", "heft", "-o", result)
    shown = run("verify", mine, result)
    assert shown.code == 2
    assert "is of another instance ('heft-10'); give a result of this one" in shown.err


# --- a solver that fails --------------------------------------------------------------------


class TestASolverThatFails:
    """Its failure is reported, and never taken for a result."""

    @pytest.fixture(params=["it dies", "it refuses"])
    def failure(self, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
        from optpart.exact import run as solver_run
        from optpart.exact.solve import _Solve

        if request.param == "it dies":
            monkeypatch.setattr(_Solve, "worker", "optpart")  # a module without a main
            return "the solver died (exit 1)"
        limits = solver_run.Limits
        monkeypatch.setattr(
            solver_run, "Limits", lambda seconds, workers, *rest: limits(seconds, 100_000, *rest)
        )
        return "the solver answered MODEL_INVALID"

    def test_keeps_the_schedule_of_a_heuristic_as_feasible(self, run: Run, failure: str) -> None:
        shown = run("solve", "heft-10", "--method", "cpsat")
        assert shown.code == 5
        assert shown.err == f"optpart: cpsat failed: {failure}\n"
        assert f"heft-10: FEASIBLE ({failure}), makespan " in shown.out

    def test_finds_nothing_without_one(
        self, run: Run, failure: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:

        monkeypatch.setattr(registry, "starts", lambda **_: [])
        monkeypatch.setattr("optpart.methods.starts._packed", lambda *_: iter(()))
        shown = run("solve", "heft-10", "--method", "cpsat")
        assert shown.code == 5
        assert f"heft-10: no schedule found: {failure}" in shown.out


# --- a process of its own -------------------------------------------------------------------


def test_interrupting_a_solve_returns_the_best_so_far(tmp_path: Path) -> None:
    """The interrupt comes half a second after the solver has started."""
    result = tmp_path / "result.json"
    program = (
        "import os, signal, threading\n"
        "from optpart.cli import main\n"
        "from optpart.exact.solve import _Solve\n"
        "solve = _Solve._solve_on\n"
        "def struck(*arguments):\n"
        "    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
        "    return solve(*arguments)\n"
        "_Solve._solve_on = struck\n"
        "main()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", program,
         "solve", "convolutional_network-7", "--time-limit", "20", "-o", str(result)],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert out.startswith("convolutional_network-7: FEASIBLE (interrupted)")
    assert json.loads(result.read_text())["status"] == "FEASIBLE"


# --- names and options that do not fit -----------------------------------------------------

TOO_LONG = "a" * 300


@pytest.mark.parametrize(
    "line",
    [
        ("solve", TOO_LONG),
        ("solve", "heft-10", "--start", TOO_LONG),
        ("gap", TOO_LONG),
        ("certify", TOO_LONG, "-o", "certificate"),
        ("ordering", TOO_LONG),
        ("import", TOO_LONG, "-o", "instance.json"),
        ("strategy", "compare", TOO_LONG, "--cluster", TOO_LONG),
        ("report", TOO_LONG, "-o", "report.html"),
        ("check", TOO_LONG),
    ],
    ids=" ".join,
)
def test_a_name_that_no_file_can_have_is_an_error_of_one_line(
    line: tuple[str, ...], run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    asked = run(*line)
    assert asked.code in (1, 2)
    assert (asked.out + asked.err).count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_the_library_is_listed_as_json_with_exact_numbers(run: Run) -> None:
    rows = json.loads(run("gap", "--list", "--json").out)["instances"]
    heft = next(row for row in rows if row["name"] == "heft-10")
    assert (heft["vertices"], heft["makespan"], heft["status"]) == (10, "73", "OPTIMAL")


@pytest.mark.parametrize("other", ["heft-10", "--csv", "--axis", "--store=x.db", "-o=x.csv"])
def test_a_list_takes_nothing_that_belongs_to_runs(other: str, run: Run) -> None:
    asked = run("gap", "--list", other)
    assert asked.code == 2
    assert "leave out all but --json" in asked.err
