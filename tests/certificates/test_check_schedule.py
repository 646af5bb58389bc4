"""The upper half: the checker and the verifier, independent code, agree on schedules."""

from __future__ import annotations

import copy
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from optpart import Cluster, GraphBuilder, Instance, retime
from optpart.base.errors import InputError
from optpart.certificates.check import Problem, RejectedError, check_schedule, read_json
from optpart.interop.formats import native
from optpart.interop.formats.result import schedule_from_dict, schedule_to_dict
from optpart.problem.model import Communication, Memory
from optpart.solution.schedule import crossings
from optpart.solution.verifier import verify
from optpart.testing.draw import random_instance
from optpart.testing.solutions import random_order, random_placement


def problem_of(instance: Instance) -> Problem:
    return Problem(read_json(native.dumps(instance).encode(), "instance.json"))


def checker_accepts(instance: Instance, document: Any) -> bool:
    try:
        check_schedule(problem_of(instance), document)
    except RejectedError:
        return False
    return True


def verifier_accepts(instance: Instance, document: Any) -> bool:
    try:
        return not verify(instance, schedule_from_dict(document, instance))
    except InputError:
        return False


def random_schedule(
    rng: np.random.Generator, memory: Memory, communication: Communication = "delay"
) -> tuple[Instance, Any] | None:
    """Return a random schedule that may exceed the memory but is otherwise valid."""
    instance = random_instance(rng, 6, 3, memory=memory, communication=communication)
    if instance.model.channels > 1:
        return None
    placement = random_placement(rng, instance)
    if placement is None:
        return None
    order = random_order(rng, instance, crossings(instance, placement))
    return instance, schedule_to_dict(instance, retime(instance, placement, order))


def mutated(rng: np.random.Generator, instance: Instance, document: Any) -> Any:
    """Change one thing: a start, a device, a transfer."""
    document = copy.deepcopy(document)
    names, devices = instance.graph.names, instance.cluster.names
    vertex = names[int(rng.integers(len(names)))]
    shift = Fraction(int(rng.integers(-6, 7)), int(rng.integers(1, 4)))
    transfers = document["transfers"]
    what = int(rng.integers(5 if transfers else 2))
    if what == 0:
        document["start"][vertex] = str(Fraction(document["start"][vertex]) + shift)
    elif what == 1:
        document["placement"][vertex] = devices[int(rng.integers(len(devices)))]
    else:
        i = int(rng.integers(len(transfers)))
        if what == 2:
            key = ("start", "end")[int(rng.integers(2))]
            transfers[i][key] = str(Fraction(transfers[i][key]) + shift)
        elif what == 3:
            transfers[i]["to"] = devices[int(rng.integers(len(devices)))]
        elif rng.integers(2):
            del transfers[i]
        else:
            transfers.append(transfers[i])
    return document


MODELS: list[tuple[Memory, Communication]] = [
    ("none", "delay"),
    ("estimate", "delay"),
    ("edges", "delay"),
    ("none", "sendrecv"),
    ("edges", "link"),
    ("estimate", "port"),
]


@pytest.mark.parametrize(("memory", "communication"), MODELS)
def test_the_checker_and_the_verifier_agree(memory: Memory, communication: Communication) -> None:
    rng = np.random.default_rng(7)
    judged = {True: 0, False: 0}
    for _ in range(20):
        drawn = random_schedule(rng, memory, communication)
        if drawn is None:
            continue
        instance, document = drawn
        for candidate in (document, *(mutated(rng, instance, document) for _ in range(6))):
            expected = verifier_accepts(instance, candidate)
            assert checker_accepts(instance, candidate) == expected, candidate
            judged[expected] += 1
    assert min(judged.values()) > 2


def test_they_agree_on_the_makespan() -> None:
    rng = np.random.default_rng(8)
    for _ in range(60):
        drawn = random_schedule(rng, "none")
        if drawn is not None:
            instance, document = drawn
            makespan = schedule_from_dict(document, instance).makespan(instance)
            assert check_schedule(problem_of(instance), document) == makespan


def test_a_tensor_frees_its_memory_before_another_takes_it() -> None:
    """``a`` is held until 2, when ``b`` starts and ``c`` ends; ``c`` is held from then on."""
    vertices = [{"name": name, "ops": 1, "outputs": [1]} for name in "acbd"]
    problem = Problem(
        {
            "format": "optpart-instance/1",
            "vertices": vertices,
            "edges": [["a", "b", 0], ["c", "d", 0]],
            "devices": [{"name": "d", "memory": 1}],
            "model": {"memory": "edges"},
        }
    )
    place, start = dict.fromkeys("abcd", "d"), {"a": 0, "c": 1, "b": 2, "d": 3}
    assert check_schedule(problem, {"placement": place, "start": start}) == 4
    with pytest.raises(RejectedError, match="exceeds its memory"):
        check_schedule(problem, {"placement": place, "start": start | {"b": 3, "d": 4}})


def test_a_transfer_begins_when_its_tensor_exists() -> None:
    builder = GraphBuilder().vertex("a", 2, outputs=[1]).vertex("b", 3).edge("a", "b")
    instance = Instance(builder.build(), Cluster.uniform(2, bandwidth=1))
    document = schedule_to_dict(instance, retime(instance, [0, 1], [0, (0, 1), 1]))
    assert check_schedule(problem_of(instance), document) == 6
    document["start"]["b"] = 4
    document["transfers"][0] |= {"start": 3, "end": 4}
    with pytest.raises(RejectedError, match="starts late"):
        check_schedule(problem_of(instance), document)


def test_they_read_the_same_instance() -> None:
    rng = np.random.default_rng(9)
    for i in range(80):
        instance = random_instance(rng, 7, 3, memory=("none", "estimate")[i % 2])
        problem, graph = problem_of(instance), instance.graph
        n, k = instance.vertices, instance.devices
        assert problem.unit == instance.unit_of.tolist()
        for v in range(n):
            for d in range(k):
                allowed = bool(instance.vertex_allowed[v, d])
                assert problem.run[v][d] == (instance.duration(v, d) if allowed else None)
        edges = zip(graph.edge_source, graph.edge_target, graph.edge_tensor, strict=True)
        for (u, v, tensor), (u2, v2, tensor2) in zip(problem.edges, edges, strict=True):
            assert (u, v) == (u2, v2)
            for d in range(k):
                for e in range(k):
                    assert problem.delay(tensor, d, e) == instance.delay(int(tensor2), d, e)
        if instance.model.memory == "estimate":
            assert problem.members == [members.tolist() for members in instance.units]
            assert problem.need == instance.static_memory.fractions()
            assert problem.capacity == list(instance.cluster.memory)


NUMBERS = {
    "7": Fraction(7),
    '"1/3"': Fraction(1, 3),
    "0.1": Fraction(1, 10),
    "1.5e3": Fraction(1500),
    '" +.5 "': Fraction(1, 2),
    '"5."': Fraction(5),
    "2E-2": Fraction(1, 50),
}


@pytest.mark.parametrize(("text", "value"), NUMBERS.items())
def test_numbers_are_exact(text: str, value: Fraction) -> None:
    document = f"""{{"format": "optpart-instance/1", "vertices": [{{"name": "a", "ops": {text}}}],
        "devices": [{{"name": "d"}}]}}"""
    assert Problem(read_json(document.encode(), "instance.json")).run == [[value]]


NO_NUMBERS = ["true", '"x"', "NaN", "-1", "1e999", '"1/0"', '"1_000"', "9" * 2000, "[1]", "{}"]


@pytest.mark.parametrize("text", [*NO_NUMBERS, '"' + "9" * 2000 + '"'])
def test_anything_but_a_number_is_rejected(text: str) -> None:
    document = f"""{{"format": "optpart-instance/1", "vertices": [{{"name": "a", "ops": {text}}}],
        "devices": [{{"name": "d"}}]}}"""
    with pytest.raises(RejectedError):
        Problem(read_json(document.encode(), "instance.json"))


FAULTS: dict[str, dict[str, Any]] = {
    "unknown key": {"vertexes": []},
    "communication not in scope": {"model": {"communication": "pigeon"}},
    "more than one channel": {"model": {"communication": "port", "channels": 2}},
    "memory not in scope": {"model": {"memory": "refcount"}},
    "one name": {"vertices": [{"name": "a"}, {"name": "a"}]},
    "no devices": {"devices": []},
    "cycle": {
        "vertices": [{"name": "a"}, {"name": "b"}],
        "edges": [["a", "b", None], ["b", "a", None]],
    },
    "no vertex": {"edges": [["a", "z", None]]},
    "has no output": {"vertices": [{"name": "a"}, {"name": "b"}], "edges": [["a", "b", 0]]},
    "names no output": {"edges": [["a", "a", True]]},
    "a speed is 0": {"devices": [{"name": "d", "speed": 0}]},
    "not a list": {"devices": "d"},
    "entries": {"bandwidth": [[1, 2]]},
    "too many devices": {"devices": [{"name": str(d)} for d in range(501)]},
}


@pytest.mark.parametrize(("reason", "change"), FAULTS.items(), ids=list(FAULTS))
def test_an_invalid_instance_is_rejected_with_the_reason(
    reason: str, change: dict[str, Any]
) -> None:
    plain = {
        "format": "optpart-instance/1",
        "vertices": [{"name": "a", "ops": 1}],
        "devices": [{"name": "d"}],
    }
    Problem(plain)
    with pytest.raises(RejectedError, match=reason):
        Problem(plain | change)
