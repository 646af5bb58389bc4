"""``optpart strategy``."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from commandline import Run

from optpart.applications.training import graph_file
from optpart.interop.formats import native
from optpart.testing.chains import chain

CLUSTER = """
bandwidth = 10
[[device]]
name = "a"
type = "a"
speed = 1
count = 2
server = "s"
"""
QUICK = ("--batch", 12, "--groups", 3, "--time-limit", 1)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a model of three layers and a cluster of two devices."""
    monkeypatch.chdir(tmp_path)
    graph_file.write(chain(3), "chain.json")
    Path("two.toml").write_text(CLUSTER)
    Path("tight.toml").write_text(CLUSTER + "memory = 1000\n")
    return tmp_path


@pytest.fixture
def strategy(here: Path, run: Run) -> Path:
    done = run("strategy", "solve", "chain.json", "--cluster", "two.toml", "-m", "ev-ar", *QUICK,
               "-o", "s.json")  # fmt: skip
    assert done.code == 0, done.err
    return here / "s.json"


class TestCompare:
    def test_a_row_per_method_within_80_columns(self, here: Path, run: Run) -> None:
        done = run("strategy", "compare", "chain.json", "--cluster", "tight.toml", *QUICK,
                   "-m", "ev-ar", "-m", "single", "-m", "blocks")  # fmt: skip
        assert done.code == 0
        remark, heading, columns, *rows = done.out.splitlines()
        assert remark.startswith("Cluster: its numbers count as nanoseconds and bytes.")
        while not heading.startswith("chain on tight.toml, batch 12: 9 operations in 3 groups"):
            heading, columns, *rows = columns, *rows
        assert columns.split() == ["strategy", "time", "over", "best", "gap", "remark"]
        table = {row.split()[0]: row for row in rows[:3]}
        assert table["single"].split() == ["single", "–", "–", "–", "out", "of", "memory"]
        assert max(len(row.rstrip()) for row in rows[:3]) <= 80
        assert any(row.startswith("lower bound, these ") for row in rows)
        assert any(row.startswith("best: ") for row in rows)

    def test_json(self, here: Path, run: Run) -> None:
        done = run("strategy", "compare", "chain.json", "--cluster", "tight.toml", *QUICK,
                   "-m", "single", "--json")  # fmt: skip
        assert done.code == 4
        document = json.loads(done.out)
        assert document["best"] is None
        assert document["strategies"][0]["feasible"] is False
        assert document["assumed"]


class TestSolve:
    def test_a_strategy_its_gap_and_its_file(self, here: Path, run: Run) -> None:
        done = run("strategy", "solve", "chain.json", "--cluster", "two.toml", "-m", "exact",
                   "--batch", 12, "--groups", 2, "-o", "s.json")  # fmt: skip
        assert done.code == 0
        assert re.search("lower bound, these .* ms, gap 0\n", done.out)
        assert done.out.endswith("→ s.json\n")
        document = json.loads(Path("s.json").read_text())
        assert (document["model"], document["cluster"]) == ("chain.json", "two.toml")
        assert document["makespan"] == document["lower_bound"]

    def test_nothing_feasible_leaves_no_file(self, here: Path, run: Run) -> None:
        done = run("strategy", "solve", "chain.json", "--cluster", "tight.toml", "-m", "single",
                   *QUICK, "-o", "s.json")  # fmt: skip
        assert done.code == 4
        assert "no feasible strategy: out of memory" in done.out
        assert not Path("s.json").exists()

    def test_options_of_the_compiler(self, here: Path, run: Run) -> None:
        done = run("strategy", "solve", "chain.json", "--cluster", "two.toml", "-m", "ev-ar",
                   *QUICK, "--compiler", "collectives=ring", "--compiler", "tick=none",
                   "--json")  # fmt: skip
        document = json.loads(done.out)
        assert document["compiler"] == {"collectives": "ring", "tick": None}
        assert 0 < document["lower_bound"] < document["makespan"]


@pytest.mark.parametrize("command", ["compare", "solve", "bound"])
def test_a_folder_of_profiles_is_told_network_degree_and_types_of_gpu(
    here: Path, run: Run, command: str
) -> None:
    (here / "amp").mkdir()
    np.save(here / "amp" / "gpt2_P3_2.npy", np.full(30, 1e-3))
    only = () if command == "bound" else ("-m", "single")
    asked = ("strategy", command, "amp", "--cluster", "two.toml", *QUICK, *only)
    done = run(*asked, "--network", "gpt2", "--tensor-parallel", 2, "--gpu", "a=P3")
    assert done.code == 0
    assert "gpt2 on two.toml, batch 12: 85 operations in 3 groups" in done.out
    done = run(*asked, "--tensor-parallel", 2)
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "--gpu: no times of gpt2 on 'a', the type of 'a'" in done.err


def test_a_bound_says_what_it_bounds(here: Path, run: Run) -> None:
    done = run("strategy", "bound", "chain.json", "--cluster", "two.toml", *QUICK)
    assert done.code == 0
    assert "lower bound, these 12 actions of groups: " in done.out
    assert "lower bound, any groups and shares: " in done.out


def test_a_bound_that_memory_does_not_allow_is_left_out_and_never_certified(
    here: Path, run: Run
) -> None:
    asked = ("strategy", "bound", "chain.json", "--cluster", "two.toml", *QUICK)
    done = run(*asked, "--memory-limit", "1MiB")
    assert done.code == 0
    assert "the linear program would need about" in done.out
    assert "lower bound, these 12 actions of groups" not in done.out
    done = run(*asked, "--memory-limit", "1MiB", "-o", "proof")
    assert (done.code, done.err.count("\n")) == (2, 1)
    done = run(*asked, "--memory-limit", "4G")
    assert (done.code, done.err.count("\n")) == (2, 1)


@pytest.mark.parametrize("command", ["solve", "compare"])
def test_other_commands_keep_the_same_limit_of_memory(here: Path, run: Run, command: str) -> None:
    asked = ("strategy", command, "chain.json", "--cluster", "two.toml", *QUICK, "-m", "single")
    done = run(*asked, "--memory-limit", "1MiB")
    assert done.code == 0
    assert "the linear program would need about" in " ".join(done.out.split())
    done = run(*asked, "--memory-limit", "4G")
    assert (done.code, done.err.count("\n")) == (2, 1)


@pytest.mark.parametrize("asked", [("-m", "exact"), ("-m", "single", "--order", "cpsat")])
def test_a_method_that_memory_does_not_allow_is_refused(
    here: Path, run: Run, asked: tuple[str, ...]
) -> None:
    strategy = ("strategy", "solve", "chain.json", "--cluster", "two.toml", *QUICK)
    done = run(*strategy, *asked, "--memory-limit", "1MiB")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "would need about" in done.err


def test_a_certificate_of_a_bound_is_checked(here: Path, run: Run) -> None:
    done = run("strategy", "bound", "chain.json", "--cluster", "two.toml", *QUICK, "-o", "proof")
    assert done.code == 0
    done = run("check", "proof")
    assert done.code == 0
    assert "no strategy takes less than" in done.out


def test_a_file_is_verified(strategy: Path, run: Run) -> None:
    done = run("strategy", "verify", "s.json")
    assert done.code == 0
    assert "an iteration takes" in done.out
    document = json.loads(strategy.read_text())
    strategy.write_text(json.dumps(document | {"makespan": 1, "lower_bound": None}))
    done = run("strategy", "verify", "s.json")
    assert done.code == 1
    assert ", not 1" in done.out
    done = run("strategy", "verify", "s.json", "--cluster", "tight.toml", "--json")
    assert json.loads(done.out)["valid"] is False


def test_a_compiled_strategy_is_an_instance_for_every_other_command(
    strategy: Path, run: Run
) -> None:
    done = run("strategy", "compile", "s.json", "-o", "i.json")
    assert done.code == 0
    instance = native.read("i.json")
    assert instance.cluster.names == ("a0", "a1", "nccl")
    makespan = json.loads(strategy.read_text())["makespan"]
    solved = run("solve", "i.json", "-m", "heft", "-o", "r.json")
    assert solved.code == 0
    assert json.loads(Path("r.json").read_text())["makespan"] == str(makespan)
    assert run("verify", "i.json", "r.json").code == 0


@pytest.mark.parametrize("options", [(), ("--shares",)])
def test_a_picture(strategy: Path, run: Run, options: tuple[str, ...]) -> None:
    assert run("strategy", "plot", "s.json", "-o", "p.png", *options).code == 0
    assert Path("p.png").read_bytes().startswith(b"\x89PNG")


def test_an_export(strategy: Path, run: Run) -> None:
    done = run("strategy", "export", "s.json", "--to", "ranks")
    assert json.loads(done.out)["ranks"][1]["gradient_weight"] == "1/2"
    assert "plain average" in done.err
    done = run("strategy", "export", "s.json", "--to", "torch-stages")
    assert done.code == 2
    assert len(done.err.splitlines()) == 1


def model(**changes: object) -> None:
    graph_file.write(chain(3), "chain.json")
    document = json.loads(Path("chain.json").read_text())
    for path, value in changes.items():
        first, *rest = path.split("__")
        place = document
        for key in [first, *rest][:-1]:
            place = place[int(key) if key.isdigit() else key]
        last = [first, *rest][-1]
        place[int(last) if last.isdigit() else last] = value
    Path("chain.json").write_text(json.dumps(document))


@pytest.mark.parametrize(
    ("change", "cluster", "options", "said"),
    [
        ({"operations__0__times__0": [-5, 1]}, CLUSTER, (), "operations[0].times[0]"),
        ({"operations__0__times__0": [5, "-1/3"]}, CLUSTER, (), "is negative; give a number ≥ 0"),
        ({"edges__1": ["f1", "f0", 0]}, CLUSTER, (), "a cycle: "),
        ({"kinds": ["b"]}, CLUSTER, (), "no times are known for its kind 'a'; the graph has b"),
        ({}, CLUSTER + "memory = 400\n", (), "parameters w2, w1, w0: need 900 bytes"),
        (
            {},
            CLUSTER,
            ("--compiler", "ring=1"),
            "--compiler: no option 'ring'; choose one of",
        ),
        ({}, CLUSTER, ("--compiler", "slots=x"), "--compiler slots: 'x'; give a whole number"),
        ({}, CLUSTER, ("--grouping", "random"), "--grouping: unknown 'random'; choose one of"),
        ({}, CLUSTER, ("-m", "best"), "--method: unknown 'best'; choose one of ev-ps"),
        ({}, CLUSTER, ("--samples", 3), "--samples: means nothing to a .json file"),
        ({}, CLUSTER, ("--slowness", "a"), "--slowness: 'a'; give KEY=VALUE"),
    ],
)
def test_faults_are_one_line(
    here: Path,
    run: Run,
    change: dict[str, object],
    cluster: str,
    options: tuple[object, ...],
    said: str,
) -> None:
    model(**change)
    Path("two.toml").write_text(cluster)
    done = run("strategy", "compare", "chain.json", "--cluster", "two.toml", *QUICK, "-m", "ev-ar",
               *options)  # fmt: skip
    assert done.code == 2
    assert len(done.err.splitlines()) == 1
    assert said in done.err
    assert done.err.startswith("optpart: ")


def test_more_replicas_than_samples(here: Path, run: Run) -> None:
    done = run("strategy", "compare", "chain.json", "--cluster", "two.toml", "--batch", 1,
               "-m", "ev-ar")  # fmt: skip
    assert done.code == 4
    assert "ev-ar: more replicas than samples" in done.out


def test_a_strategy_of_another_model(strategy: Path, run: Run) -> None:
    model(parameters__0__size=7)
    done = run("strategy", "verify", "s.json")
    assert done.code == 2
    assert "s.json: model_sha256: the strategy of another model than 'chain'" in done.err
