from __future__ import annotations

import copy
import json
from collections.abc import Callable
from fractions import Fraction
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from optpart.applications.training.cluster_file import specs_of
from optpart.applications.training.graph import TrainingGraph
from optpart.applications.training.graph_file import dumps, from_dict, read, to_dict, write
from optpart.applications.training.models import network
from optpart.base.errors import InputError
from optpart.interop.formats.json import parse_json

SCHEMA = jsonschema.Draft202012Validator(
    json.loads((files("optpart.interop.formats") / "schema" / "training.schema.json").read_text())
)

TINY: dict[str, Any] = {
    "$schema": "training.schema.json",
    "format": "optpart-training/1",
    "name": "tiny",
    "source": "by hand",
    "assumed": ["Nothing."],
    "kinds": ["fast", "slow"],
    "operations": [
        {
            "name": "a",
            "role": "forward",
            "times": [[5, "1/3"], [9, 1]],
            "outputs": [
                {"layout": "batched", "size": [0, 4096]},
                {"layout": "whole", "size": [8, 0]},
            ],
        },
        {
            "name": "a/backward",
            "role": "backward",
            "times": [[10, "2/3"], [18, 2.5]],
            "outputs": [{"layout": "summed", "size": [100, 0]}],
            "splittable": False,
        },
        {"name": "a/apply", "role": "apply", "times": [[1, 0], [2, 0]]},
    ],
    "edges": [["a", "a/backward", 0], ["a", "a/apply", None], ["a/backward", "a/apply", 0]],
    "parameters": [{"name": "w", "size": 100, "users": ["a", "a/backward", "a/apply"]}],
}


def parts(graph: TrainingGraph) -> tuple[object, ...]:
    return (
        graph.name,
        graph.kinds,
        graph.operations,
        graph.edges,
        graph.parameters,
        graph.source,
        graph.assumed,
    )


def test_every_key_is_read() -> None:
    graph = from_dict(parse_json(json.dumps(TINY)))
    assert graph.operations[0].times[0].beta == Fraction(1, 3)
    assert graph.operations[1].times[1].beta == Fraction(5, 2)
    assert not graph.operations[1].splittable
    assert [edge.output for edge in graph.edges] == [0, -1, 0]
    assert (graph.source, graph.assumed) == ("by hand", ("Nothing.",))
    assert graph.resident == (0, 0, 100)


@pytest.mark.parametrize("name", ["vgg19", "transformer", "mobilenet_v2"])
def test_what_was_written_is_read_again(name: str, tmp_path: Path) -> None:
    graph = network(name).training_graph(specs_of("v100-16gb", "gtx-1080ti"))
    write(graph, tmp_path / "g.json")
    assert parts(read(tmp_path / "g.json")) == parts(graph)


def test_what_is_written_is_valid() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA.schema)
    SCHEMA.validate(TINY)
    SCHEMA.validate(json.loads(dumps(from_dict(TINY))))
    SCHEMA.validate(to_dict(network("vgg19").training_graph(specs_of("v100-16gb"))))


def change(*path: str | int, to: object) -> Callable[[dict[str, Any]], None]:
    def apply(document: dict[str, Any]) -> None:
        at: Any = document
        for key in path[:-1]:
            at = at[key]
        if to is ...:
            del at[path[-1]]
        else:
            at[path[-1]] = to

    return apply


#: Faults that the schema can tell.
FAULTS = [
    (change("format", to="optpart-training/2"), r"format: is 'optpart-training/2'"),
    (change("kinds", to=...), "kinds: is missing; give name, kinds"),
    (change("kinds", to=[]), "kinds: empty"),
    (change("kinds", 1, to="fast"), "kinds: missing or repeated"),
    (change("operations", to=[]), "operations: empty"),
    (change("more", to=1), "unknown key 'more'"),
    (change("operations", 0, "role", to="loss"), r"operations\[0\].role: is 'loss'; choose one of"),
    (change("operations", 0, "times", 0, 0, to=-1), r"operations\[0\].times\[0\]\[0\]: -1 is neg"),
    (change("operations", 0, "times", 0, 1, to="x"), r"operations\[0\].times\[0\]\[1\]: 'x' is no"),
    (change("operations", 0, "times", 0, to=[1]), r"times\[0\]: 1 numbers; give \[α, β\]"),
    (change("operations", 0, "splittable", to=1), r"operations\[0\].splittable: is 1; give true"),
    (change("operations", 0, "outputs", 0, "layout", to="cut"), r"outputs\[0\].layout: is 'cut'"),
    (
        change("operations", 1, "outputs", 0, "size", 1, to=1),
        r"operations\[1\].outputs\[0\]: summed, but grows with the batch",
    ),
    (change("operations", 0, "outputs", 0, "size", to=...), r"outputs\[0\].size: is missing"),
    (change("edges", 0, to=["a", "a/backward"]), r"edges\[0\]: is not a triple"),
    (change("edges", 0, 2, to=-1), r"edges\[0\]: no output -1; give its index, or null"),
    (change("edges", 0, 2, to=True), r"edges\[0\]: no output True"),
    (change("edges", 1, to=TINY["edges"][0]), "edges: repeated"),
    (change("parameters", 0, "users", to=[]), r"parameters\[0\].*: used by no operation"),
    (change("parameters", 0, "size", to="-1"), r"parameters\[0\].size: -1 is negative"),
    (change("source", to=3), "source: is a number; give a string"),
]

#: Faults that only the reader can tell.
SEMANTIC = [
    (change("kinds", to=["fast"]), r"operations\[0\].times: 2 lines; give 1, one per kind"),
    (change("operations", 1, "name", to="a"), "no operation 'a/backward'"),
    (change("edges", 0, 0, to="b"), r"edges\[0\]\[0\]: no operation 'b'"),
    (change("edges", 0, 2, to=7), r"edges\[0\]: reads output 7 of 2"),
    (change("edges", 0, to=["a/backward", "a", 0]), r"edges\[0\]: 'a' reads a sum over samples"),
    (change("edges", 0, to=["a/apply", "a", None]), "edges: a cycle: "),
    (change("parameters", 0, "users", 0, to="b"), r"parameters\[0\].users\[0\]: no operation 'b'"),
]


@pytest.mark.parametrize(("fault", "message"), [*FAULTS, *SEMANTIC])
def test_faults_are_refused_in_one_line(
    fault: Callable[[dict[str, Any]], None], message: str, tmp_path: Path
) -> None:
    document = copy.deepcopy(TINY)
    fault(document)
    path = tmp_path / "g.json"
    path.write_text(json.dumps(document))
    with pytest.raises(InputError, match=message) as caught:
        read(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("fault", [fault for fault, _ in FAULTS])
def test_the_schema_refuses_the_same(fault: Callable[[dict[str, Any]], None]) -> None:
    document = copy.deepcopy(TINY)
    fault(document)
    assert not SCHEMA.is_valid(document)
