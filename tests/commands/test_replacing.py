"""No command loses a file of a user: only files of the same kind are replaced, or with --force.

A new option for a path fails here until it is known what it writes.
"""

from __future__ import annotations

import inspect
import shutil
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest
from commandline import Run

import optpart as op
from optpart.applications.training import graph_file
from optpart.commands.generate import command_of
from optpart.commands.registry import COMMANDS, command
from optpart.exporters import registry, strategy
from optpart.interop.generate.registry import GENERATORS
from optpart.search.checkpoint import FORMAT as CHECKPOINT
from optpart.study import library
from optpart.study.store import Store
from optpart.testing.chains import chain

#: Options for paths that are only read.
READ = {
    "certificate", "check", "cluster", "costs", "data", "directories", "efficiencies", "expert_use",
    "file", "instance", "intervals", "lists", "mmproj", "model", "node_memory", "operators",
    "result", "samples", "secret", "start", "strategy", "tables", "times",
}  # fmt: skip

HEFT = "laich-2.5 -m heft"
ASKED = "chain.json --cluster two.toml --batch 12 --groups 3 --time-limit 1"
CLUSTER = """
bandwidth = 10
[[device]]
name = "a"
type = "a"
speed = 1
count = 2
server = "s"
"""


class Case(NamedTuple):
    """A command line up to the place to write.

    Attributes
    ----------
    command : str
    suffix : str
        Of the file.
    kind : {"file", "folder", "updated"}
        ``updated`` are files that go on, and are never forced.
    same : str
        The name of the file of :func:`foreign` that is of the same kind.
    after : str
        What follows the place.
    """

    command: str
    suffix: str = ".json"
    kind: str = "file"
    same: str = ""
    after: str = ""


#: By command and option; several for options whose kind depends on others.
CASES: dict[tuple[str, str], list[Case]] = {
    ("solve", "output"): [Case(f"solve {HEFT} -o")],
    ("place", "output"): [Case("place llama-2-7b --cluster desk.toml --time-limit 5 -o")],
    ("solve", "checkpoint"): [Case("solve heft-10 -m search --time-limit 1 --checkpoint",
                                   kind="updated", same="checkpoint", after="--resume")],
    ("gap", "output"): [Case(f"gap {HEFT} -o"), Case(f"gap {HEFT} -o", ".csv"),
                        Case("gap laich-2.5 -m heft+pct --axis --time-limit 1 -o")],
    ("gap", "store"): [Case(f"gap {HEFT} --store", ".db", "updated", "store")],
    ("worst", "output"): [Case("worst heft --vertices 3 --tries 5 -o", same="instance")],
    ("robust", "output"): [Case("robust laich-2.5 --spread 1% --time-limit 9 -o")],
    ("robust", "picture"): [Case("robust laich-2.5 --spread 1% --time-limit 9 --picture", ".png"),
                            Case("robust laich-2.5 --spread 1% --time-limit 9 --picture", ".svg")],
    ("bound", "checkpoint"): [Case("bound heft-10 --time-limit 1 --checkpoint", kind="updated",
                                   after="--resume")],
    ("check", "export"): [Case(f"check {library.folder() / 'certificates' / 'lpt-2'} --export", "",
                               "folder")],
    ("certify", "output"): [Case("certify laich-2.5 -o", "", "folder")],
    ("archive", "folder"): [Case("archive", "", "updated", after="known/bks.json --time-limit 1")],
    ("plot", "output"): [Case("plot result -o", ".png"), Case("plot result -o", ".svg")],
    ("report", "output"): [Case("report laich-2.5 -o", ".html"),
                           Case("report some.db -o", "", "folder")],
    ("lesson", "output"): [Case("lesson kwok-ahmad-9-2 -o", ".html")],
    ("simulate", "output"): [Case("simulate heft-10 -o")],
    ("pipeline", "output"): [Case("pipeline chain-20 -o")],
    ("serve", "output"): [Case("serve serving.toml -o")],
    ("apart", "output"): [Case("apart llama-2-7b --cluster desk.toml --prompt 64 --context 128 "
                               "--first 9s -o")],
    ("recompute", "output"): [Case("recompute step.json -o")],
    ("import", "output"): [Case("import graph.pb --devices 2 --costs drawn -o", same="instance")],
    ("convert", "output"): [Case("convert heft-10 -o", same="instance"),
                            Case("convert thesis.json -o", ".csv", after="--devices more.csv")],
    ("convert", "devices"): [Case("convert thesis.json -o copy.csv --devices", ".csv")],
    ("devices", "output"): [Case("devices --detect --seconds 0.1 -o", ".toml")],
    ("export", "output"): [
        Case("export ab --to onnx --model model.onnx -o", "", "folder"),
        Case("export ab --to onnx-layers --name x=cpu --name y=cuda --model model.onnx -o",
             ".onnx"),
        Case("export ab --to tensorflow --name x=/CPU:0 --name y=/GPU:0 --model graph.pb -o",
             ".pb"),
        Case("export blocks --to device-map --architecture llama --name a=0 --name b=cpu -o"),
        Case("export blocks --to llama.cpp --name a=CUDA0 --name b=CUDA1 -o", ".txt"),
        Case("export blocks --to llama.cpp-ot --name a=CPU --name b=CUDA0 -o", ".txt"),
        Case("export blocks --to vllm -o", ".env"),
        Case("export blocks --to megatron -o", ".txt"),
        Case("export blocks --to torch --architecture llama -o", ".py"),
        Case("export passes --to torch-schedule -o", ".csv"),
        Case("export result --to trace -o"),
        Case("export kwok-ahmad-9-2 --to lp -o", ".lp"),
        Case("export kwok-ahmad-9-2 --to mps -o", ".mps"),
    ],
    ("reduce", "output"): [Case("reduce partition --random 4 -o", "", same="instance",
                                 after="--time-limit 5")],
    ("generate set", "output"): [Case("generate set workflows --secret secret -o", "", "folder")],
    ("strategy solve", "output"): [Case(f"strategy solve {ASKED} -m ev-ar -o")],
    ("strategy bound", "output"): [Case(f"strategy bound {ASKED} -o", "", "folder")],
    ("strategy compile", "output"): [Case("strategy compile replicas -o", same="instance")],
    ("strategy plot", "output"): [Case("strategy plot replicas -o", ".png")],
    ("strategy export", "output"): [
        Case("strategy export replicas --to devices -o"),
        Case("strategy export single --to torch-stages -o", ".py"),
        Case("strategy export replicas --to ranks -o"),
        Case("strategy export replicas --to dtensor -o", ".py"),
    ],
    ("profile fit", "output"): [Case("profile fit times.csv -o")],
    **{
        (f"generate {name}", "output"): [
            Case(f"generate {name} {given} -o", *((".toml",) if name == "cluster" else (".json",)),
                 same="" if name == "cluster" else "instance")
        ]
        for name, given in {**dict.fromkeys(GENERATORS, ""), "thesis": "3", "lstm": "rnn",
                            "workflow": "montage",
                            "replica": "--model alexnet"}.items()
    },
}  # fmt: skip


def options() -> Iterator[tuple[str, str]]:
    """Yield command and name of every parameter that takes a path."""
    commands = {name: command(name) for name in COMMANDS}
    commands |= {f"generate {name}": command_of(row) for name, row in GENERATORS.items()}
    for name, function in commands.items():
        for parameter in inspect.signature(function, eval_str=True).parameters.values():
            if "Path" in str(parameter.annotation) or parameter.name == "output":
                yield name, parameter.name


def test_every_option_for_a_path_is_known() -> None:
    written = {(command, name) for command, name in options() if name not in READ}
    assert written == CASES.keys()
    for known, name in ((registry.TARGETS, "export"), (strategy.TARGETS, "strategy export")):
        cases = [case.command.split() for case in CASES[name, "output"]]
        assert {words[words.index("--to") + 1] for words in cases} == known.keys()


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All files that the command lines read."""
    onnx = pytest.importorskip("onnx", reason="needs optpart[onnx]")
    from onnx import TensorProto, helper

    folder = tmp_path_factory.mktemp("inputs")
    x, z = (helper.make_tensor_value_info(each, TensorProto.FLOAT, [2]) for each in "xz")
    nodes = [helper.make_node("Relu", ["x"], ["y"], name="a"),
             helper.make_node("Exp", ["y"], ["z"], name="b")]  # fmt: skip
    model = helper.make_model(
        helper.make_graph(nodes, "g", [x], [z]),
        opset_imports=[helper.make_opsetid("", 17)], ir_version=10,
    )  # fmt: skip
    onnx.save(model, folder / "model.onnx")
    #: Two nodes, "a" and "b", which reads "a".
    (folder / "graph.pb").write_bytes(b"\n\x07\n\x01a\x12\x02Op\n\x0a\n\x01b\x12\x02Op\x1a\x01a")
    _save(["a", "b"], ["x", "y"], [0, 1], folder / "ab")
    blocks = ["embedding", "block.0", "block.1", "block.2", "block.3", "norm", "head"]
    _save(blocks, ["a", "b"], [0, 0, 0, 1, 1, 1, 1], folder / "blocks")
    op.save(op.solve("laich-2.5", "heft"), folder / "result")
    op.save(op.solve(GENERATORS["training-pipeline"].load()(), "1f1b"), folder / "passes")
    op.save(GENERATORS["thesis"].load()(3, 10), folder / "thesis.json")
    step = GENERATORS["training-pipeline"].load()(devices=1, microbatches=1, memory=9)
    op.save(step, folder / "step.json")
    (folder / "two.toml").write_text(CLUSTER)
    (folder / "desk.toml").write_text('[[device]]\nof = "rtx-3090"\nname = "cuda0"\n')
    (folder / "serving.toml").write_text('layers = 1\n[[device]]\nname = "a"\nrates = [1]\n')
    (folder / "times.csv").write_text("op,kind,batch,time (us)\nc,f,1,105\nc,f,2,110\n")
    graph_file.write(chain(3), folder / "chain.json")
    question = op.strategy_question(
        str(folder / "chain.json"), str(folder / "two.toml"), 12, groups=3
    )
    for name, method in (("replicas", "ev-ar"), ("single", "single")):
        op.solve_strategy(question, method, seconds=1).save(folder / name)
    (folder / "secret").write_text("0" * 32)
    (folder / "known").mkdir()
    (folder / "known" / "bks.json").write_text("[]")
    (folder / "known" / "two.txt").write_text("1 2\n0 4  1 2\n")
    assert [*op.sweep(["laich-2.5"], ["heft"], seconds=1, store=folder / "some.db")]
    return folder


def _save(vertices: list[str], devices: list[str], placement: list[int], path: Path) -> None:
    """Save a chain that was placed by hand."""
    builder = op.GraphBuilder()
    for name in vertices:
        builder.vertex(name, 4, memory=1, outputs=[1])
    for source, target in pairwise(vertices):
        builder.edge(source, target, 0)
    cluster = op.Cluster.of([op.Device(name, speed=k + 1) for k, name in enumerate(devices)],
                            bandwidth=1)  # fmt: skip
    instance = op.Instance(builder.build(), cluster, name=path.name)
    schedule = op.retime(instance, placement, range(len(vertices)))
    op.save(op.conclude(instance, "by hand", schedule), path)


@pytest.fixture
def here(inputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(inputs, tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


def instance(place: Path) -> None:
    op.save(op.load("heft-10"), place)


def store(place: Path) -> None:
    Store(place).__exit__()


def read_only(place: Path) -> None:
    place.write_text("kept")
    place.chmod(0o444)


def linked(place: Path) -> None:
    place.with_name("script.py").write_text("print('mine')")
    place.symlink_to("script.py")


def folder(place: Path) -> None:
    place.mkdir()
    (place / "plan.json").write_text('{"format": "optpart-pipeline/1"}')
    (place / "certificate.json").write_text("{}")
    (place / "notes.txt").write_text("mine")
    (place / "sub").mkdir()


#: What may be at the place, by what makes it.
FOREIGN: list[Callable[[Path], object]] = [
    instance,
    store,
    read_only,
    linked,
    folder,
    lambda place: shutil.copy("model.onnx", place),
    lambda place: place.write_text(f'{{"format": "{CHECKPOINT}"}}'),
    lambda place: place.write_text("print('mine')\n"),
    lambda place: place.write_text('{"instance": "mine"}'),
]
NAMES = [
    "instance",
    "store",
    "read-only",
    "link",
    "folder",
    "model",
    "checkpoint",
    "python",
    "json",
]

EACH = [
    pytest.param(case, id=f"{case.command} {case.suffix}")
    for cases in CASES.values()
    for case in cases
]


def state(folder: Path) -> dict[str, tuple[object, ...]]:
    """All below a folder, byte for byte, with permissions."""
    return {
        str(path.relative_to(folder)): (
            path.lstat().st_mode,
            path.readlink() if path.is_symlink() else path.read_bytes() if path.is_file() else None,
        )
        for path in folder.rglob("*")
    }


def words(case: Case, place: str, *more: str) -> list[str]:
    return [*case.command.split(), place, *case.after.split(), *more]


@pytest.mark.parametrize("case", EACH)
def test_what_is_of_another_kind_stays(here: Path, run: Run, case: Case) -> None:
    # All commands ask the same function: three kinds each, and every kind meets every way to write.
    first = [each.values[0] for each in EACH].index(case) % 3
    for name, make in [*zip(NAMES, FOREIGN, strict=True)][first::3]:
        if name == case.same:
            continue
        stem = f"at-{name}"
        place = here / (stem + (".json" if "reduce" in case.command else case.suffix))
        make(place)
        before = state(here)
        ran = run(*words(case, stem if "reduce" in case.command else place.name))
        assert (ran.code, ran.out) == (2, ""), name
        assert ran.err.startswith(f"optpart: {place.name}: ")
        assert ran.err.count("\n") == 1
        assert state(here) == before


@pytest.mark.parametrize("case", EACH)
def test_what_is_of_the_same_kind_is_replaced_and_the_rest_if_forced(
    here: Path, run: Run, case: Case
) -> None:
    place = here / f"out{case.suffix}"
    written = here / "out.json" if "reduce" in case.command else place
    first, force = words(case._replace(after=case.after.replace("--resume", "")), place.name), []
    if case.kind == "file":
        written.write_text("print('mine')\n")
        written.chmod(0o444)
        assert run(*first).code == 2
        assert written.read_text() == "print('mine')\n"
        force = ["--force"]
    ran = run(*first, *force)
    assert ran.code == 0, ran.err
    if case.kind == "file":
        assert written.read_bytes() != b"print('mine')\n"
        written.chmod(0o644)
    before = written.stat()
    again = run(*words(case, place.name))
    assert again.code == 0, again.err
    if case.kind != "updated":
        assert written.stat().st_ino != before.st_ino


def test_an_empty_file_is_replaced(here: Path, run: Run) -> None:
    (here / "out.json").touch()
    assert run("convert", "heft-10", "-o", "out.json").code == 0
    assert op.load(here / "out.json") == op.load("heft-10")


def test_force_without_a_file_to_write_is_refused(run: Run) -> None:
    ran = run("solve", "heft-10", "--force")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == ("optpart: --force: used without a file to write; name one with --output\n")


def test_folders_are_never_forced(here: Path, run: Run) -> None:
    folder(here / "mine")
    before = state(here)
    for line in ("export ab --to onnx --model model.onnx", "report some.db"):
        ran = run(*line.split(), "-o", "mine", "--force")
        assert ran.code == 2
        assert "mine: certificate.json: is there, and no manifest.json" in ran.err
        assert state(here) == before
