"""The JSON Schemas say of every document what the readers and writers say of it.

Every document that is written is valid. A document that a schema refuses, the reader refuses too.
The converse does not hold: a schema cannot express the checks that ``SEMANTIC_*`` list.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optpart import InputError, Instance, retime
from optpart.interop.formats import native
from optpart.interop.formats import result as results
from optpart.interop.formats.json import parse_json
from optpart.problem.model import Communication, Memory
from optpart.solution.result import Progress, conclude
from optpart.solution.termination import Termination
from optpart.study import library
from optpart.study.report.verification import check_result
from optpart.testing.draw import draw_instance
from optpart.testing.strategies import instances

Document = dict[str, Any]


def validator(name: str) -> jsonschema.Draft202012Validator:
    schema = json.loads(
        (files("optpart.interop.formats") / "schema" / f"{name}.schema.json").read_text()
    )
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


INSTANCE = validator("instance")
RESULT = validator("result")

#: Every key of the instance format, once.
FULL: Document = {
    "$schema": "instance.schema.json",
    "format": "optpart-instance/1",
    "name": "tiny",
    "source": "by hand",
    "time_unit": "ms",
    "vertices": [
        {"name": "a", "ops": 30, "memory": 4, "outputs": [50, "1/3"]},
        {"name": "b", "ops": "20/3", "device_type": "GPU", "devices": ["d1"]},
        {"name": "c", "outputs": [{"size": 5, "delay": [[0, 3], [None, 0]]}, 7]},
        {"name": "e", "ops": 0.25},
    ],
    "edges": [["a", "b", 0], ["a", "c", 1], ["b", "e", None], ["c", "e", 0]],
    "colocation": [["a", "c"]],
    "separation": [["a", "b"]],
    "devices": [
        {"name": "d0", "type": "CPU", "speed": 10},
        {"name": "d1", "type": "GPU", "speed": "3/7", "memory": 900},
    ],
    "bandwidth": [[None, 25], [5, None]],
    "latency": [[0, 1], ["1/2", 0]],
    "durations": [[1, 2], [None, "3/2"], [1, 2], [3, None]],
    "model": {
        "communication": "port",
        "memory": "refcount",
        "send_ops": 1,
        "channels": 2,
        "release": "start",
    },
}


def solved() -> tuple[Instance, Document]:
    """A small instance and the document of a result of it, with every key."""
    instance = native.from_dict({**FULL, "model": {}})
    schedule = retime(instance, [0, 1, 0, 0], [0, 2, 1, 3])
    trace = (Progress(0.5, None, None), Progress(1.0, schedule.makespan(instance), None))
    result = conclude(instance, "by hand", schedule, trace=trace, seconds=1.5)
    document = json.loads(results.dumps(result))
    document |= {"objective": "makespan", "traffic_bound": None, "given": ""}
    document |= {"bottleneck": None, "bottleneck_bound": None}
    document |= {"contiguous": False, "device_order": []}
    document |= {"schedule_by": "hybrid", "bound_by": "cpsat"}
    document |= {"claimed": {"by": "state.json", "lower_bound": "1"}}
    return instance, {"$schema": "result.schema.json", **document}


TINY, SOLVED = solved()


def reads(document: Any) -> bool:
    try:
        native.from_dict(parse_json(json.dumps(document)))
    except InputError:
        return False
    return True


def verifies(document: Any, path: Path) -> bool:
    """Whether ``optpart verify`` accepts a result of ``TINY``."""
    path.write_text(json.dumps(document))
    try:
        return not check_result(TINY, path).violations
    except InputError:
        return False


def edited(document: Document, *path: Any) -> Document:
    """Return the document with the last of ``path`` at the place that the others name."""
    document = copy.deepcopy(document)
    node: Any = document
    *outer, key, value = path
    for step in outer:
        node = node[step]
    node[key] = value
    return document


def test_the_examples_have_every_key() -> None:
    assert FULL.keys() == INSTANCE.schema["properties"].keys()
    assert SOLVED.keys() == RESULT.schema["properties"].keys()
    assert reads(FULL)
    assert INSTANCE.is_valid(FULL)
    assert RESULT.is_valid(SOLVED)


def test_terminations_are_those_of_the_code() -> None:
    assert RESULT.schema["properties"]["termination"]["enum"] == [*Termination, None]


@pytest.mark.parametrize("ended", [*Termination, None])
def test_every_termination_is_written_as_the_schema_has_it(ended: Termination | None) -> None:
    result = conclude(TINY, "by hand", None, termination=ended)
    RESULT.validate(json.loads(results.dumps(result)))


def test_the_reader_ignores_the_key_that_names_the_schema(tmp_path: Path) -> None:
    plain = {key: value for key, value in FULL.items() if key != "$schema"}
    assert native.from_dict(FULL).sha256 == native.from_dict(plain).sha256
    assert verifies(SOLVED, tmp_path / "result.json")


class TestWhatIsWritten:
    @pytest.mark.parametrize("name", [n for n, e in library.index().items() if e.vertices <= 60])
    def test_library_instances(self, name: str) -> None:
        INSTANCE.validate(library.load(name).to_dict())

    @pytest.mark.parametrize("memory", ["none", "estimate", "edges", "refcount"])
    @pytest.mark.parametrize("communication", ["delay", "sendrecv", "link", "port"])
    def test_drawn_instances(self, communication: Communication, memory: Memory) -> None:
        for seed in range(5):
            drawn = draw_instance(seed, communication, memory)
            INSTANCE.validate(parse_json(native.dumps(drawn)))

    @settings(max_examples=30)
    @given(instances(communication="port", memory="refcount"))
    def test_instances_of_every_feature(self, instance: Instance) -> None:
        INSTANCE.validate(instance.to_dict())

    def test_results(self) -> None:
        for name in ("heft-10", "kwok-ahmad-9-2", "lpt-3"):
            instance = library.load(name)
            order = instance.graph.topological_order.tolist()
            schedule = retime(instance, [0] * instance.vertices, order)
            for result in (
                conclude(instance, "by hand", schedule),
                conclude(instance, "by hand", schedule, objective="lexicographic", given="order"),
                conclude(instance, "by hand", None, infeasible="no device"),
                conclude(instance, "by hand", None, reason="time limit"),
            ):
                RESULT.validate(json.loads(results.dumps(result)))


#: Documents that the schema refuses: where, and what is put there.
WRONG: list[tuple[Any, ...]] = [
    ("colour", "red"),
    ("$schema", 1),
    ("format", "optpart-instance/2"),
    ("name", None),
    ("vertices", None),
    ("vertices", 0, "a"),
    ("vertices", 0, "name", ""),
    ("vertices", 0, {"ops": 3}),
    ("vertices", 0, "ops", -1),
    ("vertices", 0, "ops", "-1/2"),
    ("vertices", 0, "ops", "1/0"),
    ("vertices", 0, "ops", "1/-2"),
    ("vertices", 0, "ops", "0x10"),
    ("vertices", 0, "ops", "inf"),
    ("vertices", 0, "ops", ""),
    ("vertices", 0, "ops", True),
    ("vertices", 0, "ops", None),
    ("vertices", 0, "speed", 1),
    ("vertices", 0, "outputs", 50),
    ("vertices", 0, "outputs", 0, None),
    ("vertices", 2, "outputs", 0, "weight", 5),
    ("vertices", 2, "outputs", 0, "delay", [0, 1]),
    ("vertices", 1, "device_type", 3),
    ("vertices", 1, "devices", "d1"),
    ("vertices", 1, "devices", 0, 1),
    ("edges", 0, ["a", "b"]),
    ("edges", 0, ["a", "b", 0, 1]),
    ("edges", 0, 2, -1),
    ("edges", 0, 2, "0"),
    ("edges", 0, 2, 0.5),
    ("edges", 0, 2, True),
    ("colocation", ["a", "c"]),
    ("separation", 0, ["a"]),
    ("separation", 0, ["a", "b", "c"]),
    ("devices", []),
    ("devices", 0, "speed", 0),
    ("devices", 0, "speed", "0/5"),
    ("devices", 0, "speed", "-0.0"),
    ("devices", 0, "speed", None),
    ("devices", 0, "memory", -1),
    ("devices", 0, "count", 2),
    ("bandwidth", "fast"),
    ("bandwidth", 0, 1, -1),
    ("bandwidth", 0, 3),
    ("latency", 0, 1, "x"),
    ("durations", 0, 0, -1),
    ("durations", {}),
    ("model", None),
    ("model", "memory", "all"),
    ("model", "communication", None),
    ("model", "send_ops", -1),
    ("model", "channels", 0),
    ("model", "channels", True),
    ("model", "release", "never"),
    ("model", "ports", 2),
]

#: What only the reader can check: the schema accepts these, and the reader does not.
SEMANTIC: dict[str, tuple[Any, ...]] = {
    "two vertices of one name": ("vertices", 1, "name", "a"),
    "two devices of one name": ("devices", 1, "name", "d0"),
    "an edge from an unknown vertex": ("edges", 0, 0, "z"),
    "an edge to an unknown vertex": ("edges", 0, 1, "z"),
    "an output that its vertex does not have": ("edges", 0, 2, 2),
    "an output index that is written as a decimal": ("edges", 0, 2, 0.0),
    "a cycle": ("edges", 0, ["e", "a", None]),
    "an unknown vertex in a group": ("colocation", 0, 0, "z"),
    "an unknown vertex in a pair": ("separation", 0, 0, "z"),
    "a group without a common device": ("colocation", 0, ["b", "e"]),
    "an unknown device": ("vertices", 1, "devices", ["z"]),
    "a type that no device has": ("vertices", 1, "device_type", "TPU"),
    "a matrix of the wrong size": ("bandwidth", [[None, 25]]),
    "measured times of the wrong size": ("vertices", 2, "outputs", 0, "delay", [[0]]),
    "durations of the wrong size": ("durations", [[1, 2]]),
    "a latency of null between two devices": ("latency", 0, 1, None),
    "a number of too many digits": ("vertices", 0, "ops", "9" * 5000),
    "an exponent that is too large": ("vertices", 0, "ops", "1e400"),
    "a channel number that is written as a decimal": ("model", "channels", 2.0),
}

#: The same for a result of ``TINY``.
WRONG_RESULT: list[tuple[Any, ...]] = [
    ("colour", "red"),
    ("$schema", None),
    ("format", "optpart-result/2"),
    ("instance", 3),
    ("instance_sha256", 3),
    ("method", None),
    ("status", "GOOD"),
    ("status", None),
    ("makespan", "long"),
    ("makespan", True),
    ("lower_bound", []),
    ("gap", "0.5"),
    ("traffic", "1/0"),
    ("traffic_bound", "x"),
    ("bottleneck", "x"),
    ("bottleneck_bound", []),
    ("contiguous", "yes"),
    ("device_order", "d0,d1"),
    ("device_order", [0]),
    ("seconds", "1"),
    ("seconds", None),
    ("seed", 0.5),
    ("workers", "2"),
    ("termination", "bored"),
    ("termination", []),
    ("reason", None),
    ("given", None),
    ("objective", "beauty"),
    ("versions", []),
    ("versions", {"optpart": 1}),
    ("trace", None),
    ("trace", 0, [1, 2]),
    ("trace", 0, [None, None, None]),
    ("trace", 0, [1, "x", None]),
    ("schedule", []),
    ("schedule", "end", {}),
    ("schedule", "placement", None),
    ("schedule", "placement", "a", 0),
    ("schedule", "start", "a", None),
    ("schedule", "start", "a", "soon"),
    ("schedule", "transfers", None),
    ("schedule", "transfers", 0, "tensor", ["a"]),
    ("schedule", "transfers", 0, "tensor", ["a", -1]),
    ("schedule", "transfers", 0, "to", 1),
    ("schedule", "transfers", 0, "start", None),
    ("schedule", "transfers", 0, "size", 5),
]

SEMANTIC_RESULT: dict[str, tuple[Any, ...]] = {
    "no schedule": ("schedule", None),
    "a result of another instance": ("instance_sha256", "0" * 64),
    "a vertex without a device": ("schedule", "placement", {"a": "d0"}),
    "an unknown device": ("schedule", "placement", "a", "z"),
    "an unknown vertex": ("schedule", "start", "z", "0"),
    "a schedule that is not valid": ("schedule", "start", "a", "-1"),
    "a transfer that is missing": ("schedule", "transfers", []),
    "a claim that does not hold": ("makespan", "1"),
    "a bottleneck that is another": ("bottleneck", "1/7"),
    "an order of unknown devices": ("device_order", ["d0", "z"]),
    "an order that repeats a device": ("device_order", ["d0", "d0"]),
    "an order that leaves out a device in use": ("device_order", ["d0"]),
    "a status that is not proven": ("status", "OPTIMAL"),
    "an end by proof without one": ("termination", "proven"),
}


def identity(case: tuple[Any, ...]) -> str:
    return "-".join(map(str, case))[:50]


class TestInstance:
    @pytest.mark.parametrize("case", WRONG, ids=identity)
    def test_what_the_schema_refuses_the_reader_refuses(self, case: tuple[Any, ...]) -> None:
        document = edited(FULL, *case)
        assert not INSTANCE.is_valid(document)
        assert not reads(document)

    @pytest.mark.parametrize("key", ["format", "vertices", "devices"])
    def test_required_keys(self, key: str) -> None:
        document = {name: value for name, value in FULL.items() if name != key}
        assert not INSTANCE.is_valid(document)
        assert not reads(document)

    @pytest.mark.parametrize("case", SEMANTIC.values(), ids=SEMANTIC)
    def test_what_only_the_reader_refuses(self, case: tuple[Any, ...]) -> None:
        document = edited(FULL, *case)
        assert INSTANCE.is_valid(document)
        assert not reads(document)

    @pytest.mark.parametrize(
        "number",
        [0, 0.5, 1e-3, "7", " 7 ", "+7", "-0", "-0.0e5", "1/3", "01/03", ".5", "5.", "1E+2"],
    )
    def test_every_notation_of_a_number(self, number: Any) -> None:
        document = edited(FULL, "vertices", 0, "ops", number)
        assert reads(document)
        assert INSTANCE.is_valid(document)


class TestResult:
    @pytest.mark.parametrize("case", WRONG_RESULT, ids=identity)
    def test_what_the_schema_refuses_verify_refuses(
        self, case: tuple[Any, ...], tmp_path: Path
    ) -> None:
        document = edited(SOLVED, *case)
        assert not RESULT.is_valid(document)
        assert not verifies(document, tmp_path / "result.json")

    @pytest.mark.parametrize("key", ["format", "status", "schedule"])
    def test_required_keys(self, key: str, tmp_path: Path) -> None:
        document = {name: value for name, value in SOLVED.items() if name != key}
        assert not RESULT.is_valid(document)
        assert not verifies(document, tmp_path / "result.json")

    def test_no_other_key_is_required(self, tmp_path: Path) -> None:
        least = {key: SOLVED[key] for key in ("format", "status", "schedule")}
        assert RESULT.is_valid(least)
        assert verifies(least, tmp_path / "result.json")

    @pytest.mark.parametrize("case", SEMANTIC_RESULT.values(), ids=SEMANTIC_RESULT)
    def test_what_only_verify_refuses(self, case: tuple[Any, ...], tmp_path: Path) -> None:
        document = edited(SOLVED, *case)
        assert RESULT.is_valid(document)
        assert not verifies(document, tmp_path / "result.json")


# --- drawn changes ---------------------------------------------------------------------------

VALUES = st.sampled_from(
    [
        None,
        True,
        0,
        1,
        -1,
        0.5,
        2.0,
        "",
        "a",
        "d0",
        "1/3",
        "-1",
        "1/0",
        " 2\n",
        "٣",
        [],
        {},
        [[]],
        [0],
    ]
)


def places(node: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    children: list[tuple[Any, Any]] = []
    if isinstance(node, dict):
        children = list(node.items())
    elif isinstance(node, list):
        children = list(enumerate(node))
    return [p for key, child in children for p in [(*path, key), *places(child, (*path, key))]]


def changed(document: Document) -> st.SearchStrategy[Document]:
    """Strategy of the document with one or two places replaced or removed."""

    def remove(node: Any, key: Any) -> None:
        del node[key]

    @st.composite
    def draw_change(draw: st.DrawFn) -> Document:
        mutant = copy.deepcopy(document)
        for _ in range(draw(st.integers(1, 2))):
            *outer, key = draw(st.sampled_from(places(mutant)))
            node: Any = mutant
            for step in outer:
                node = node[step]
            value = draw(VALUES)
            action: Callable[[Any, Any], None] = draw(
                st.sampled_from(
                    [remove, lambda node, key, value=value: node.__setitem__(key, value)]
                )
            )
            action(node, key)
        return mutant

    return draw_change()


@settings(max_examples=100)
@given(changed(FULL))
def test_an_instance_that_is_read_is_valid(mutant: Document) -> None:
    assert INSTANCE.is_valid(mutant) or not reads(mutant)


@settings(max_examples=50)
@given(mutant=changed(SOLVED))
def test_a_result_that_verify_accepts_is_valid(
    tmp_path_factory: pytest.TempPathFactory, mutant: Document
) -> None:
    path = tmp_path_factory.getbasetemp() / "mutant.json"
    assert RESULT.is_valid(mutant) or not verifies(mutant, path)
