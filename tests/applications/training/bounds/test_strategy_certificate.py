"""Certificates of strategy bounds: the checker accepts them, and nothing that is false."""

import copy
import json
from fractions import Fraction

import numpy as np
import pytest

from optpart.applications.training.bounds.certificate import certificate, write_certificate
from optpart.applications.training.bounds.program import strategy_bound
from optpart.applications.training.cluster import TrainingCluster
from optpart.applications.training.compiled import Options
from optpart.applications.training.graph import Line
from optpart.applications.training.problem import Choices, StrategyProblem
from optpart.applications.training.strategy import Decision
from optpart.base.errors import InputError
from optpart.certificates import check_strategies as check
from optpart.certificates.check import RejectedError
from optpart.problem.cluster import Cluster, Device
from optpart.testing.chains import chain
from optpart.testing.choices import best_strategy, random_choices


def verdict(document, folder):
    (folder / "certificate.json").write_text(json.dumps(document))
    return check.check(str(folder))


def rejected(document, folder):
    with pytest.raises(RejectedError) as caught:
        verdict(document, folder)
    return str(caught.value)


def drawn(seed, memory="none"):
    rng = np.random.default_rng(seed)
    tick = (Fraction(1), None, Fraction(1, 3))[int(rng.integers(3))]
    return random_choices(
        rng,
        layers=int(rng.integers(1, 4)),
        devices=int(rng.integers(1, 4)),
        groups=int(rng.integers(1, 4)),
        options=Options(memory=memory, tick=tick),
        missing=0.1 if seed % 5 == 0 else 0,
    )


@pytest.fixture(scope="module")
def tight():
    """Two layers that memory forces apart; every part of the bound matters."""
    graph = chain(2, ("a", "b"), forward=((Line.of(1, 10), Line.of(2, 15)),) * 2, weights=100)
    cluster = TrainingCluster(
        Cluster.of([Device("d0", memory=700), Device("d1", memory=450)], 2, 3),
        ("a", "b"),
        (0, 1),
        (Fraction(20), None),
    )
    actions = (
        Decision.on(0, 2),
        Decision.on(1, 2),
        Decision((1, 1), "allreduce"),
        Decision((2, 1), 1),
    )
    groups = tuple(tuple(sorted(group)) for group in graph.tied)
    choices = Choices(StrategyProblem(graph, cluster, 12, groups), (actions,) * 2)
    return choices, certificate(choices, strategy_bound(choices))


@pytest.mark.parametrize("seed", range(30))
def test_every_bound_is_accepted_and_no_more(seed, tmp_path):
    choices = drawn(seed)
    bound = strategy_bound(choices)
    if bound.value is None:
        pytest.skip("no strategy has all links")
    write_certificate(choices, bound, tmp_path)
    assert "no strategy takes less than" in check.check(str(tmp_path))
    document = certificate(choices, bound)
    tick = choices.problem.options.tick or Fraction(1, 1000)
    document["bound"] = str(bound.value + tick)
    assert "prove" in rejected(document, tmp_path)


def test_it_has_no_form_that_other_checkers_read(tight, run, tmp_path):
    choices, _ = tight
    write_certificate(choices, strategy_bound(choices), tmp_path / "bound")
    refused = run("check", tmp_path / "bound", "--export", tmp_path / "proof")
    assert refused.code == 2
    assert "about training strategies" in refused.err
    assert refused.err.count("\n") == 1
    assert not (tmp_path / "proof").exists()


@pytest.mark.parametrize("seed", range(6))
def test_whatever_rows_and_multipliers_say_nothing_false_is_accepted(seed, tmp_path):
    rng = np.random.default_rng(seed)
    choices = random_choices(rng, layers=2, groups=3, options=Options(memory="none"))
    best, bound = best_strategy(choices), strategy_bound(choices)
    assert best is not None
    original = certificate(choices, bound)
    original["bound"] = str(best + 1)
    for _ in range(60):
        document = copy.deepcopy(original)
        for _ in range(int(rng.integers(1, 4))):
            tampered(document, rng)
        rejected(document, tmp_path)


def tampered(document, rng):
    """Change a row, a multiplier or a message."""
    at = int(rng.integers(len(document["rows"])))
    multiplier, row = document["rows"][at]
    kinds = ("load", "path", "head", "tail", "memory")
    match int(rng.integers(8)):
        case 0:
            document["rows"][at][0] = multiplier * int(rng.integers(1, 9))
        case 1:
            row["kind"] = kinds[int(rng.integers(5))]
        case 2:
            resources = (["device", 0, 0], ["device", 1, 1], ["link", 0, 1], ["nccl", 0, 0])
            row["resource"] = resources[int(rng.integers(4))]
        case 3:
            row["edges"] = [*row.get("edges", []), int(rng.integers(len(document["edges"])))]
        case 4:
            row["sample"] = [None, "0", "1/2", "2/3"][int(rng.integers(4))]
        case 5:
            row["start"] = int(rng.integers(len(document["operations"])))
        case 6:
            row["consumer"] = int(rng.integers(3))
        case _ if document["messages"]:
            message = document["messages"][int(rng.integers(len(document["messages"])))]
            side = message[2 + int(rng.integers(2))]
            side[int(rng.integers(len(side)))] *= int(rng.integers(-2, 5))
        case _:
            del document["rows"][at]


def test_the_tight_bound_needs_memory_and_all_rows(tight, tmp_path):
    choices, document = tight
    assert best_strategy(choices) is not None
    verdict(document, tmp_path)
    assert any(row["kind"] == "memory" for _, row in document["rows"])


@pytest.mark.parametrize("change", range(6))
def test_a_changed_proof_is_rejected(tight, tmp_path, change):
    _, document = tight
    document = copy.deepcopy(document)
    match change:
        case 0:
            document["bound"] = str(Fraction(document["bound"]) + 1)
        case 1:
            document["rows"][0][0] *= 2
        case 2:
            del document["rows"][0]
        case 3:
            document["messages"] = []
        case 4:
            document["rows"][0][0] *= -1
        case _:
            document["rows"] = []
    rejected(document, tmp_path)


@pytest.mark.parametrize(
    ("where", "value"),
    [
        (("operations", 0, "times", 0), ["1", "1"]),
        (("operations", 2, "times", 0), ["0", "-1"]),
        (("cluster", "memory"), ["100000", "100000"]),
        (("cluster", "memory"), [None]),
        (("cluster", "rate", 0, 1), None),
        (("batch",), 6),
        (("batch",), 0),
        (("options", "tick"), "0"),
        (("options", "memory"), "none"),
        (("options", "slots"), 0),
        (("groups",), [[0, 1]]),
        (("decisions", 3, "replicas"), [0, 0]),
        (("decisions", 3, "sync"), None),
        (("decisions", 0, "sync"), 1),
        (("edges", 0), [0, 0, 0]),
        (("edges", 0), [0, 7, 1]),
        (("parameters", 0, "size"), "0"),
        (("actions", 0), []),
        (("actions", 0), [9]),
        (("messages", 0, 0), 1),
        (("messages", 0, 2), [0]),
        (("rows", 0, 1, "kind"), "guess"),
        (("rows", 0, 0), 1.5),
        (("surprise",), 1),
    ],
)
def test_a_changed_problem_is_rejected(tight, tmp_path, where, value):
    _, document = tight
    document = copy.deepcopy(document)
    at = document
    for key in where[:-1]:
        at = at[key]
    at[where[-1]] = value
    assert "malformed" not in rejected(document, tmp_path)


def test_another_instance_is_refused(tight, tmp_path):
    _, document = tight
    (tmp_path / "certificate.json").write_text(json.dumps(document))
    with pytest.raises(RejectedError, match="about no instance"):
        check.check(str(tmp_path), "instance.json")


def test_a_bound_that_no_strategy_exists_has_no_certificate(tight):
    choices, _ = tight
    bound = strategy_bound(choices)._replace(value=None)
    with pytest.raises(InputError, match="no strategy exists"):
        certificate(choices, bound)
