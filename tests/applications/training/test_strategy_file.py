from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from optpart.applications.training.compiled import Options, by_rank
from optpart.applications.training.compiler import compile_strategy
from optpart.applications.training.strategy import Decision, Strategy
from optpart.applications.training.strategy_file import (
    Header,
    Reading,
    StrategyFile,
    dumps,
    from_document,
    header_of,
    in_order,
    order_of,
    read,
    sha256,
    write,
)
from optpart.base.errors import InputError
from optpart.interop.formats.json import parse_json
from optpart.testing.chains import chain, cluster

SCHEMA = jsonschema.Draft202012Validator(
    json.loads((files("optpart.interop.formats") / "schema" / "strategy.schema.json").read_text())
)

GRAPH = chain(2, ("a", "b"))
CLUSTER = cluster(("a", "b"))
DOCUMENT: dict[str, Any] = {
    "$schema": "strategy.schema.json",
    "format": "optpart-strategy/1",
    "model": "chain.json",
    "model_sha256": sha256(GRAPH),
    "reading": {
        "samples": 64,
        "slowness": {"a": 1, "b": "3/2"},
        "shapes": {"n": 8},
        "costs": "costs.json",
        "network": "OPT-350",
        "tensor_parallel": 2,
        "gpus": {"a": "GH-96"},
    },
    "cluster": "two.toml",
    "batch": 6,
    "compiler": {
        "replicas": "separate",
        "resharding": "heterog",
        "auxiliary": "free",
        "collectives": "ring",
        "topology": "shared",
        "memory": "none",
        "slots": 1,
        "tick": "1/2",
        "microbatches": 2,
    },
    "method": "by hand",
    "makespan": "361/2",
    "lower_bound": 80.5,
    "groups": [
        {"ops": ["f0", "b0", "a0"], "place": "a0"},
        {"ops": ["f1", "b1", "a1"], "replicas": {"a0": 2, "b1": 1}, "sync": {"ps": "b1"}},
    ],
    "order": ["f0 @a0", ["f0 @a0", 0, "b1"], ["b1 @a0", None, "b1"]],
}


def changed(change: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    document = copy.deepcopy(DOCUMENT)
    change(document)
    return document


def built(document: dict[str, Any]) -> StrategyFile:
    return from_document(parse_json(json.dumps(document)), GRAPH, CLUSTER)


def test_every_key_is_read() -> None:
    assert DOCUMENT.keys() == SCHEMA.schema["properties"].keys()
    SCHEMA.validate(DOCUMENT)
    found = built(DOCUMENT)
    assert found.header.reading == Reading(
        64, {"a": 1, "b": Fraction(3, 2)}, {"n": 8}, "costs.json", "OPT-350", 2, {"a": "GH-96"}
    )
    assert found.header.options.tick == Fraction(1, 2)
    assert (found.makespan, found.lower_bound) == (Fraction(361, 2), Fraction(161, 2))
    assert found.strategy.decisions == (Decision((1, 0)), Decision((2, 1), 1))
    assert found.order[1:] == (("f0 @a0", 0, "b1"), ("b1 @a0", None, "b1"))


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    found = built(DOCUMENT)
    write(found, GRAPH, CLUSTER, path)
    SCHEMA.validate(json.loads(path.read_text()))
    assert read(path, GRAPH, CLUSTER) == found


def test_what_is_not_said_has_defaults() -> None:
    strategy = Strategy(3, GRAPH.tied, (Decision((1, 0)), Decision((1, 1), "allreduce")))
    text = dumps(StrategyFile(strategy), GRAPH, CLUSTER)
    document = json.loads(text)
    assert set(document) == {"format", "model_sha256", "batch", "makespan", "lower_bound", "groups"}
    assert header_of(document) == Header(options=Options())
    assert from_document(document, GRAPH, CLUSTER).strategy == strategy


def test_the_fingerprint_is_that_of_figures_not_of_remarks() -> None:
    assert sha256(replace(GRAPH, name="other", assumed=("This.",))) == sha256(GRAPH)
    assert sha256(chain(2, ("a", "b"), weights=101)) != sha256(GRAPH)


def test_an_order_is_kept() -> None:
    strategy = Strategy(4, GRAPH.tied, (Decision((1, 1), "allreduce"), Decision((0, 1))))
    compiled = compile_strategy(GRAPH, CLUSTER, strategy)
    schedule = by_rank(compiled)
    again = in_order(compiled, order_of(compiled, schedule))
    assert again.start.fractions() == schedule.start.fractions()
    with pytest.raises(InputError, match=r"order\[0\]: no vertex 'f9' in the compiled strategy"):
        in_order(compiled, ("f9",))
    with pytest.raises(InputError, match="no output of a vertex"):
        in_order(compiled, (("f0 @a0", 7, "b1"),))


def put(*path: str | int, value: Any) -> Callable[[dict[str, Any]], object]:
    def change(document: dict[str, Any]) -> None:
        place: Any = document
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (put("model_sha256", value="0"), "model_sha256: the strategy of another model than"),
        (put("batch", value=2), r"groups\[1\]: 3 replicas for a batch of 2"),
        (put("batch", value=True), "batch: is True"),
        (put("groups", 0, "ops", value=["f0", "b0"]), "groups: 'a0' is in none"),
        (
            put("groups", 0, "ops", value=["f0", "b0", "a0", "f1"]),
            r"groups\[1\]: 'f1' is in groups\[0\], too; keep it in one of them",
        ),
        (put("groups", 0, "ops", value=["f9"]), r"groups\[0\].ops\[0\]: the model has no op"),
        (put("groups", 0, "ops", value=[]), r"groups\[0\].ops: is empty"),
        (put("groups", 0, "place", value="c2"), r"groups\[0\].place: no device 'c2'"),
        (put("groups", 0, "replicas", value={"a0": 1}), r"groups\[0\]: place and replicas"),
        (put("groups", 1, "replicas", value={"a0": 2}), r"groups\[1\].sync: given for a single"),
        (put("groups", 1, "replicas", value={}), r"groups\[1\].replicas: negative or none"),
        (put("groups", 1, "replicas", value={"a0": 0}), r"groups\[1\].replicas.a0: is 0"),
        (put("groups", 1, "sync", value=None), r"groups\[1\].sync: missing"),
        (put("groups", 1, "sync", value="ps"), r"groups\[1\].sync: is 'ps'"),
        (put("compiler", "tick", value=0), "compiler.tick: 0 is not positive"),
        (put("compiler", "replicas", value="split"), "compiler.replicas: unknown 'split'"),
        (put("compiler", "slots", value="2"), "compiler.slots: is '2'"),
        (put("makespan", value=-1), "makespan: -1 is negative"),
        (put("order", value=[["f0 @a0", 0]]), r"order\[0\]: 2 entries"),
        (put("reading", value={"batch": 1}), "reading: unknown key 'batch'"),
        (put("reading", "samples", value=0), "reading.samples: is 0"),
    ],
)
def test_faults_are_one_line(change: Callable[[dict[str, Any]], object], said: str) -> None:
    with pytest.raises(InputError, match=said) as caught:
        built(changed(change))
    assert "\n" not in str(caught.value)


def test_a_parameter_server_needs_a_replica() -> None:
    graph, three = chain(1, ("a",)), cluster(("a", "a", "a"))
    document = {
        "batch": 6,
        "groups": [
            {"ops": ["f0", "b0", "a0"], "replicas": {"a0": 2, "a1": 1}, "sync": {"ps": "a2"}}
        ],
    }
    with pytest.raises(InputError, match=r"groups\[0\].sync: a parameter server without a replica"):
        from_document(document, graph, three)
