"""The draws vary every field of an instance and of a goal, together with every other.

A field that is added to the format and not drawn fails here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import fields
from functools import cache
from itertools import combinations, product
from typing import Any, get_args

import numpy as np
import pytest
from features import FEATURES, IMPOSSIBLE, interchangeable

from optpart import Schedule
from optpart.exact.enumeration import enumerate_all
from optpart.exact.identical import identical
from optpart.interop.formats import native
from optpart.problem.cluster import Cluster, Device
from optpart.problem.graph import Graph
from optpart.problem.instance import Instance
from optpart.problem.model import Communication, Memory, Model
from optpart.solution.goal import Goal
from optpart.solution.result import Budget
from optpart.solution.verifier import verify
from optpart.testing.draw import draw_instance
from optpart.testing.goals import GoalKind, draw_goal
from optpart.testing.solutions import random_schedule

MODELS: list[tuple[Communication, Memory]] = list(
    product(get_args(Communication), get_args(Memory))
)

#: What says nothing about a problem, or is the same for all that is drawn.
FREE_TEXT = {"Instance.source", "Instance.time_unit", "format", "source", "time_unit"}


@cache
def draws(count: int = 480) -> list[Instance]:
    return [
        draw_instance(
            seed, *MODELS[seed % len(MODELS)], vertices=(0, 7), devices=(1, 4), exact=False
        )
        for seed in range(count)
    ]


def shown(value: Any) -> str:
    """Return a text that distinguishes values."""
    if hasattr(value, "fractions"):
        value = value.fractions()
    if isinstance(value, np.ndarray):
        value = value.tolist()
    return repr(dict(value) if isinstance(value, Mapping) else value)


def values_of_fields() -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for instance in draws():
        for part in (instance, instance.graph, instance.cluster, instance.model):
            for each in fields(part):
                if each.name not in ("graph", "cluster", "model"):
                    name = f"{type(part).__name__}.{each.name}"
                    found[name].add(shown(getattr(part, each.name)))
    return found


def test_every_field_of_an_instance_is_varied() -> None:
    found = values_of_fields()
    for part in (Instance, Graph, Cluster, Model):
        names = {f"{part.__name__}.{each.name}" for each in fields(part)}
        assert names <= found.keys() | {"Instance.graph", "Instance.cluster", "Instance.model"}
    assert {name for name, values in found.items() if len(values) < 2} <= FREE_TEXT


def test_every_field_of_a_device_is_varied() -> None:
    """A cluster holds its devices as arrays, of nearly the same names."""
    found = values_of_fields()
    arrays = {"name": "names", "type": "types"}
    for each in fields(Device):
        assert len(found[f"Cluster.{arrays.get(each.name, each.name)}"]) > 1


def entries(value: Any, known: dict[str, set[str]]) -> Iterator[tuple[str, str]]:
    """Yield every key of a document with its value; ``absent`` stands for a missing one."""
    document = value
    groups = [("", native._TOP, [document]), ("device.", native._DEVICE, document["devices"])]
    groups.append(("model.", native._MODEL, [document["model"]]))
    groups.append(("vertex.", native._VERTEX, document["vertices"]))
    outputs = [o for vertex in document["vertices"] for o in vertex.get("outputs", ())]
    as_object = [o if isinstance(o, dict) else {"size": o} for o in outputs]
    groups.append(("output.", native._OUTPUT, as_object))
    for prefix, keys, objects in groups:
        for key, each in product(sorted(set(keys) - {"$schema"}), objects):  # says nothing
            yield prefix + key, repr(each.get(key, "absent"))


def test_every_key_of_the_format_is_varied() -> None:
    found: dict[str, set[str]] = defaultdict(set)
    for instance in draws():
        for key, value in entries(instance.to_dict(), {}):
            found[key].add(value)
    assert {key for key, values in found.items() if len(values) < 2} <= FREE_TEXT
    assert len(found) == len(set(native._TOP) - {"$schema"}) + len(native._VERTEX) + len(
        native._OUTPUT
    ) + len(native._DEVICE) + len(native._MODEL)
    optional = {
        "colocation", "separation", "latency", "durations", "vertex.memory", "vertex.outputs",
        "vertex.device_type", "vertex.devices", "output.delay", "device.type", "device.memory",
        "model.send_ops", "model.channels", "model.release",
    }  # fmt: skip
    for key in optional:
        assert "'absent'" in found[key], key


# --- features together ----------------------------------------------------------------------


def test_every_feature_occurs_with_every_other() -> None:
    wanted = {frozenset(pair) for pair in combinations(FEATURES, 2)}
    wanted -= {frozenset(pair) for pair in IMPOSSIBLE}
    for instance in draws(4800):
        here = [name for name, holds in FEATURES.items() if holds(instance)]
        wanted -= {frozenset(pair) for pair in combinations(here, 2)}
        if not wanted:
            break
    assert sorted(map(sorted, wanted)) == []


@pytest.mark.parametrize(
    "together",
    [
        ("durations", "sendrecv", "unlike speeds"),
        ("tensor delay", "missing link", "infinite link"),
        ("refcount", "several outputs", "unconsumed tensor", "limited memory"),
        ("channels", "refcount", "limited memory", "latency"),
    ],
)
def test_several_features_together(together: tuple[str, ...]) -> None:
    assert any(all(FEATURES[name](i) for name in together) for i in draws(4800))


class TestPremises:
    """The premises of solvers hold in some draws, and fail by a single number in others."""

    def test_interchangeable_devices(self) -> None:
        alike = sum(map(interchangeable, draws()))
        assert 0.1 < alike / len(draws()) < 0.5

    def test_run_times_alike_on_devices_whose_sends_are_not(self) -> None:
        """Given run times hide the difference between the devices."""

        def holds(i: Instance) -> bool:
            return (
                i.durations is not None
                and i.vertices > 0
                and FEATURES["sendrecv"](i)
                and interchangeable(i, but_speed=True)
            )

        assert sum(map(holds, draws(4800))) > 3

    def test_identical_machines(self) -> None:
        assert sum(identical(i, Goal()) for i in draws(4800)) > 20

    def test_fixed_units(self) -> None:
        fixed = [i for i in draws() if i.vertices and i.devices > 1]
        assert 10 < sum(bool((i.allowed.sum(axis=1) == 1).all()) for i in fixed) < len(fixed) / 2

    def test_independent_tasks(self) -> None:
        assert sum(len(i.graph.edge_source) == 0 and i.vertices > 1 for i in draws()) > 10

    @pytest.mark.parametrize("count", range(8))
    def test_every_number_of_vertices(self, count: int) -> None:
        assert any(i.vertices == count for i in draws(4800))

    @pytest.mark.parametrize("count", range(1, 5))
    def test_every_number_of_devices(self, count: int) -> None:
        assert any(i.devices == count for i in draws())


def test_same_arguments_give_the_same_instance() -> None:
    for communication, memory in MODELS:
        one, other = (draw_instance(5, communication, memory) for _ in range(2))
        assert one.sha256 == other.sha256
    assert draw_instance(1).sha256 != draw_instance(2).sha256


def test_sizes_are_kept() -> None:
    for seed in range(20):
        instance = draw_instance(seed, vertices=3, devices=(2, 4))
        assert instance.vertices == 3
        assert 2 <= instance.devices <= 4


# --- goals ----------------------------------------------------------------------------------


@cache
def scheduled(count: int = 192) -> list[tuple[Instance, Schedule | None]]:
    """Yield instances, alternately with an optimal and with a random schedule."""
    found: list[tuple[Instance, Schedule | None]] = []
    for seed in range(count):
        instance = draw_instance(
            seed, *MODELS[seed // 2 % len(MODELS)], vertices=(1, 5), devices=(2, 3)
        )
        schedule = (
            random_schedule(np.random.default_rng(seed), instance)
            if seed % 2
            else enumerate_all(instance, budget=Budget(5.0)).schedule
        )
        found.append((instance, schedule))
    return found


@cache
def goals() -> list[tuple[Instance, Schedule | None, GoalKind, Goal]]:
    return [
        (instance, schedule, kind, draw_goal(instance, schedule, seed, kind))
        for seed, (instance, schedule) in enumerate(scheduled())
        for kind in get_args(GoalKind)
    ]


def test_every_field_of_a_goal_is_varied() -> None:
    for each in fields(Goal):
        assert len({shown(getattr(goal, each.name)) for *_, goal in goals()}) > 1, each.name


def test_every_field_of_a_goal_is_given_with_every_other() -> None:
    usual = Goal()
    wanted = {frozenset(pair) for pair in combinations((f.name for f in fields(Goal)), 2)}
    for *_, goal in goals():
        given = [f.name for f in fields(Goal) if getattr(goal, f.name) != getattr(usual, f.name)]
        wanted -= {frozenset(pair) for pair in combinations(given, 2)}
    assert wanted == set()


def test_every_field_of_a_goal_is_given_with_every_feature_of_an_instance() -> None:
    usual = Goal()
    names = [each.name for each in fields(Goal)]
    wanted = set(product(names, FEATURES))
    for seed, instance in enumerate(draws(4800)):
        goal = draw_goal(instance, None, seed)
        given = [name for name in names if getattr(goal, name) != getattr(usual, name)]
        wanted -= set(product(given, [name for name, holds in FEATURES.items() if holds(instance)]))
        if not wanted:
            break
    assert wanted == set()


def test_a_goal_fits_its_instance() -> None:
    for instance, *_, goal in goals():
        goal.check(instance)


def test_a_schedule_satisfies_the_goals_taken_from_it() -> None:
    for instance, schedule, kind, goal in goals():
        if schedule is not None and kind in ("placement", "order", "both"):
            assert verify(instance, schedule) == []
            assert goal.broken(instance, schedule) == ""


def test_limits_are_at_and_just_beside_the_values_of_a_schedule() -> None:
    beside = [
        (goal.makespan > makespan) - (goal.makespan < makespan)
        for instance, schedule, kind, goal in goals()
        if kind == "decision" and schedule is not None and goal.makespan is not None
        if (makespan := schedule.makespan(instance)) > 0
    ]
    assert {-1, 0, 1} <= set(beside)


def test_orders_name_transfers_that_share_a_port_of_several_channels() -> None:
    assert any(
        instance.model.channels > 1
        and schedule is not None
        and len(schedule.transfers.tensor) > 1
        and any(isinstance(task, tuple) for pair in goal.order for task in pair)
        for instance, schedule, _, goal in goals()
    )


def test_some_given_placements_contradict() -> None:
    assert any(goal.contradiction(instance) for instance, *_, goal in goals())


def test_a_goal_without_a_schedule() -> None:
    instance = draw_instance(3, "link", "none")
    for seed, kind in product(range(5), get_args(GoalKind)):
        draw_goal(instance, None, seed, kind).check(instance)


def test_same_arguments_give_the_same_goal() -> None:
    for seed, (instance, schedule) in enumerate(scheduled()[:16]):
        assert draw_goal(instance, schedule, seed) == draw_goal(instance, schedule, seed)
