"""``optpart export`` and ``optpart.export``: the table of targets, options, and what is printed."""

import json
from itertools import pairwise
from pathlib import Path
from typing import get_type_hints

import pytest
from commandline import Run

import optpart as op
from optpart.base.errors import InputError
from optpart.commands.export import export as command
from optpart.exporters.registry import TARGETS

NAMES = ["embedding", *(f"block.{number}" for number in range(4)), "norm", "head"]


@pytest.fixture
def model() -> op.Instance:
    """A chain with room for half of it on each of two devices."""
    builder = op.GraphBuilder()
    for name in NAMES:
        builder.vertex(name, 4, memory=1, outputs=[1])
    for source, target in pairwise(NAMES):
        builder.edge(source, target, 0)
    cluster = op.Cluster.of(
        [op.Device("a", memory=20), op.Device("b", memory=20, speed=2)], bandwidth=1
    )
    return op.Instance(builder.build(), cluster, op.Model(memory="estimate"), name="chain")


@pytest.fixture
def result(model: op.Instance) -> op.Result:
    placement = [0, 0, 0, 1, 1, 1, 1]
    return op.conclude(model, "by hand", op.retime(model, placement, range(7)))


@pytest.fixture
def file(result: op.Result, tmp_path: Path) -> Path:
    op.save(result.instance, tmp_path / "chain.json")
    op.save(result, tmp_path / "result.json")
    return tmp_path / "result.json"


def test_a_result_and_its_file_give_the_same_text(result: op.Result, file: Path) -> None:
    expected = "VLLM_PP_LAYER_PARTITION=2,2\n# vllm serve MODEL --pipeline-parallel-size 2\n"
    assert op.export(result, "vllm").text == expected
    assert op.export(file, "vllm").text == expected
    assert op.export(file, "vllm", instance=file.with_name("chain.json")).text == expected
    assert op.export(result, "vllm", file.with_name("out.env")).text == expected
    assert file.with_name("out.env").read_text() == expected


def test_a_text_is_printed_alone_and_remarks_beside_it(run: Run, file: Path) -> None:
    ran = run("export", file, "--to", "megatron")
    assert ran.code == 0
    assert ran.out == (
        "--pipeline-model-parallel-size 2 --pipeline-model-parallel-layout 'Et*2|t*2L'\n"
    )
    assert "Megatron schedules batches by itself" in ran.err
    output = file.with_name("options")
    written = run("export", file, "--to", "megatron", "-o", output)
    assert written.err == ""
    assert written.out.endswith(f"→ {output}\n")
    assert output.read_text() == ran.out


def test_devices_are_named_by_repeating_the_option(run: Run, file: Path) -> None:
    ran = run(
        "export", file, "--to", "device-map", "--name", "a=0", "--name", "b=cpu",
        "--architecture", "gpt2",
    )  # fmt: skip
    assert json.loads(ran.out)["transformer.h.3"] == "cpu"


def test_a_name_of_a_device_that_the_plan_leaves_empty_means_nothing(
    model: op.Instance, run: Run, tmp_path: Path
) -> None:
    lone = op.conclude(model, "by hand", op.retime(model, [1] * 7, range(7)))
    names = {"a": "0", "b": "1"}
    without = op.export(lone, "vllm", names={"b": "1"})
    assert op.export(lone, "vllm", names=names).text == without.text
    with pytest.raises(InputError, match="name 'c': the cluster has no such device; choose one of"):
        op.export(lone, "vllm", names={"c": "0"})
    # A result alone does not tell which devices there are.
    op.save(lone, tmp_path / "result.json")
    ran = run("export", tmp_path / "result.json", "--to", "vllm", "--name", "b=1", "--name", "c=0")
    assert (ran.code, ran.out) == (0, without.text)
    assert "The plan uses no device 'c', whose name is ignored." in ran.err


def test_programs_take_an_instance(run: Run) -> None:
    ran = run("export", "heft-10", "--to", "lp")
    assert ran.code == 0
    assert "Minimize\nOBJ: makespan" in ran.out
    assert "One unit of time of the program" in ran.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--to", "nowhere"], "to: unknown 'nowhere'; choose one of onnx, onnx-layers"),
        (["--to", "onnx", "-o", "parts"], "model: missing; name the file that the instance was"),
        (["--to", "onnx", "--model", "m.onnx"], "output: missing; name the folder to write"),
        (["--to", "vllm", "--model", "m"], "model: means nothing to the target 'vllm'"),
        (["--to", "vllm", "--shape", "n=1"], "shapes: means nothing to the target 'vllm'"),
        (["--to", "megatron", "--name", "a=0"], "names: means nothing to the target 'megatron'"),
        (["--to", "vllm", "--architecture", "gpt2"], "architecture: means nothing"),
        (["--to", "vllm", "--name", "a"], "--name: 'a'; give KEY=VALUE"),
        (["--to", "vllm", "--name", "a=0", "--name", "a=1"], "--name: 'a' is given twice"),
        (["--to", "onnx", "--shape", "n=x"], "--shape: n=x; give a whole number"),
        (["--to", "mps", "--instance", "heft-10"], "instance: means nothing to the target 'mps'"),
        (["--to", "vllm", "--instance", "heft-10"], "schedule.placement: unknown key 'embedding'"),
        (["--to", "vllm", "-o", "no/where"], "no/where: cannot be written"),
    ],
)
def test_what_means_nothing_or_is_missing_is_one_line(
    arguments: list[str], message: str, run: Run, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(file.parent)
    before = sorted(each.name for each in file.parent.iterdir())
    ran = run("export", file, *arguments)
    assert ran.code == 2
    assert message in ran.err
    assert ran.err.count("\n") == 1
    assert ran.out == ""
    assert sorted(each.name for each in file.parent.iterdir()) == before


def test_results_without_a_plan_are_refused(result: op.Result, file: Path) -> None:
    document = json.loads(file.read_text())
    for schedule, message in (
        (None, "schedule: missing; give a result that holds a schedule"),
        ({"placement": {"a": "x"}, "start": {}}, "'a' is in one of placement and start only"),
        ({"placement": {"a": 1}, "start": {"a": 0}}, r"schedule.placement.a: no text"),
        ({"placement": []}, "no placement or no start"),
        ({"placement": {}, "start": {}}, "has no vertices"),
    ):
        file.write_text(json.dumps({**document, "schedule": schedule}))
        with pytest.raises(InputError, match=message):
            op.export(file, "vllm")
    with pytest.raises(InputError, match="is an instance; give a result for the target 'vllm'"):
        op.export(result.instance, "vllm")
    with pytest.raises(InputError, match="is a result; give an instance for the target 'lp'"):
        op.export(result, "lp")
    with pytest.raises(InputError, match="the result has its own; leave it out"):
        op.export(result, "vllm", instance=result.instance)


def test_a_plan_that_is_not_valid_for_the_instance_is_refused(file: Path) -> None:
    document = json.loads(file.read_text())
    document["schedule"]["start"]["head"] = "0"
    file.write_text(json.dumps(document))
    with pytest.raises(InputError, match=r"result.json: schedule: not valid for chain"):
        op.export(file, "vllm", instance=file.with_name("chain.json"))
    with pytest.raises(InputError, match="vertex 'head': starts before 'norm'"):
        op.export(file, "vllm")


def test_the_help_lists_all_targets() -> None:
    (option,) = get_type_hints(command, include_extras=True)["to"].__metadata__
    assert option.help == f"{', '.join([*TARGETS][:-1])} or {[*TARGETS][-1]}."
