"""An instance fits together when it is built, and tells exact times."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from optpart import (
    Cluster,
    Device,
    Durations,
    GraphBuilder,
    InputError,
    Instance,
    Model,
    RationalArray,
    load,
    save,
)
from optpart.problem.model import Memory
from optpart.testing.draw import random_instance
from optpart.testing.strategies import instances

CPU, GPU = Device("d0", 10, "CPU"), Device("d1", 30, "GPU")
CLUSTER = Cluster.of(
    [CPU, GPU, Device("d2", 40, "GPU")],
    [[None, 25, 50], [25, None, 0], [50, None, None]],
    [[0, 1, 0], ["1/2", 0, 0], [0, 0, 0]],
)


def build(edit: Callable[[GraphBuilder], Any] = lambda _: None, **options: Any) -> Instance:
    builder = GraphBuilder().vertex("a", 30, outputs=[50, 5]).vertex("b", 20, device_type="GPU")
    builder.vertex("c", devices=["d0", "d1"]).vertex("e")
    builder.edge("a", "b").edge("a", "c", None)
    edit(builder)
    return Instance(builder.build(), CLUSTER, **options)


class TestWhereVerticesMayRun:
    def test_types_and_lists_restrict(self) -> None:
        assert build().vertex_allowed.tolist() == [
            [True, True, True],
            [False, True, True],
            [True, True, False],
            [True, True, True],
        ]

    def test_so_do_durations(self) -> None:
        times = [[1, None, 1], [1, 1, None], [1, 1, 1], [1, 1, 1]]
        assert build(durations=times).vertex_allowed.tolist() == [
            [True, False, True],
            [False, True, False],
            [True, True, False],
            [True, True, True],
        ]

    def test_a_unit_may_run_where_all_its_members_may(self) -> None:
        instance = build(lambda b: b.colocate("b", "c"))
        assert instance.allowed.tolist() == [[True] * 3, [False, True, False], [True] * 3]

    def test_a_vertex_without_a_device_is_no_error(self) -> None:
        """It makes the instance infeasible, which is an answer."""
        instance = build(lambda b: b.vertex("f", devices=[]))
        assert not instance.allowed[4].any()


class TestUnits:
    def test_single_vertices_without_groups(self) -> None:
        assert [unit.tolist() for unit in build().units] == [[0], [1], [2], [3]]

    def test_groups_close_transitively_and_are_numbered_by_their_first_vertex(self) -> None:
        instance = build(lambda b: b.colocate("e", "c").colocate("c", "a"))
        assert instance.unit_of.tolist() == [0, 1, 0, 0]
        assert [unit.tolist() for unit in instance.units] == [[0, 2, 3], [1]]
        assert instance.unit_name(0) == "the group of a (3 vertices)"
        assert instance.unit_name(1) == "b"

    def test_groups_of_one_or_none_change_nothing(self) -> None:
        instance = build(lambda b: b.colocate("e").colocate())
        assert instance.unit_of.tolist() == [0, 1, 2, 3]

    def test_separated_pairs_are_pairs_of_units(self) -> None:
        instance = build(
            lambda b: b.colocate("a", "b").separate("e", "b").separate("a", "e").separate("a", "b")
        )
        assert instance.separated_units == [(0, 0), (0, 2)]

    def test_of_an_empty_graph(self) -> None:
        instance = Instance(GraphBuilder().build(), CLUSTER)
        assert instance.units == []
        assert instance.allowed.shape == (0, 3)
        assert instance.static_memory.fractions() == []

    @given(instances())
    def test_they_partition_the_vertices(self, instance: Instance) -> None:
        members = [v for unit in instance.units for v in unit.tolist()]
        assert sorted(members) == list(range(instance.vertices))
        for u, unit in enumerate(instance.units):
            assert instance.unit_of[unit].tolist() == [u] * len(unit)
            assert instance.allowed[u].tolist() == instance.vertex_allowed[unit].all(0).tolist()


class TestTimes:
    def test_duration_is_operations_by_speed(self) -> None:
        assert build().duration(1, 1) == Fraction(2, 3)

    def test_unless_it_is_given(self) -> None:
        instance = build(durations=[["1/7", 2, 3], [4, 5, None], [0, 0, 0], [1, 1, 1]])
        assert instance.duration(0, 0) == Fraction(1, 7)
        assert instance.duration(1, 1) == 5

    @pytest.mark.parametrize(
        ("tensor", "sender", "receiver", "delay"),
        [
            (0, 0, 1, Fraction(3)),
            (0, 1, 0, Fraction(5, 2)),
            (0, 0, 2, Fraction(1)),
            (0, 2, 1, Fraction(0)),
            (0, 1, 2, None),
            (0, 1, 1, Fraction(0)),
            (2, 0, 1, Fraction(1)),
        ],
        ids=["latency", "other way", "no latency", "infinite", "no link", "same device", "control"],
    )
    def test_delay(self, tensor: int, sender: int, receiver: int, delay: Fraction | None) -> None:
        assert build().delay(tensor, sender, receiver) == delay

    def test_a_measured_delay_replaces_latency_and_bandwidth_where_a_link_is(self) -> None:
        instance = build(lambda b: b.output("e", 4, [[9, 7, None], [2, 9, 3], [0, "1/3", 9]]))
        assert instance.delay(2, 0, 1) == 7
        assert instance.delay(2, 0, 2) is None
        assert instance.delay(2, 1, 2) is None
        assert instance.delay(2, 2, 1) == Fraction(1, 3)
        assert instance.delay(2, 0, 0) == 0

    @given(instances())
    def test_totals_are_sums(self, instance: Instance) -> None:
        everyone, tensors = np.arange(instance.vertices), range(instance.graph.tensors)
        for d in range(instance.devices):
            total = sum(instance.duration(v, d) for v in range(instance.vertices))
            assert instance.total_duration(everyone, d) == total
            for e in set(range(instance.devices)) - {d}:
                each = [instance.delay(tensor, d, e) for tensor in tensors]
                known = [delay for delay in each if delay is not None]
                if each:
                    expected = sum(known) if len(known) == len(each) else None
                    assert instance.total_delay(tensors, d, e) == expected

    def test_a_send_takes_its_operations(self) -> None:
        instance = build(model=Model("sendrecv", send_ops=Fraction(5)))
        assert instance.send_duration(2) == Fraction(1, 8)


class TestStaticMemory:
    """Per assignment unit, [L] §4.1 (3)."""

    @pytest.mark.parametrize(
        ("memory", "expected"),
        [
            ("none", [0, 0]),
            ("edges", [0, 0]),
            ("refcount", [Fraction(7, 2), 1]),
            ("estimate", [Fraction(7, 2) + (4 + 6) + (4 + 6), 1 + 4]),
        ],
    )
    def test_by_model(self, memory: Memory, expected: list[Fraction]) -> None:
        builder = GraphBuilder().vertex("a", memory="1/2", outputs=[4, 6]).vertex("b", memory=1)
        builder.vertex("c", memory=3).colocate("a", "c")
        builder.edge("a", "b", 0).edge("a", "c", 0).edge("a", "c", 1).edge("a", "c", None)
        instance = Instance(builder.build(), CLUSTER, Model(memory=memory))
        assert instance.static_memory.fractions() == expected


class TestErrors:
    @pytest.mark.parametrize(
        ("edit", "options", "message"),
        [
            (
                lambda b: b.vertex("f", device_type="TPU"),
                {},
                "vertices[4].device_type: no device is of type 'TPU'; "
                "add such a device or use a type that exists (CPU, GPU)",
            ),
            (
                lambda b: b.vertex("f", devices=["d0", "d7"]),
                {},
                "vertices[4].devices[1]: no device 'd7'; name one of d0, d1, d2",
            ),
            (
                lambda b: b.vertex("f", devices=[["d0"]]),
                {},
                "vertices[4].devices[0]: no device ['d0']; name one of d0, d1, d2",
            ),
            (
                lambda b: b.output("a", 1, [[0, 1], [1, 0]]),
                {},
                "vertices[0].outputs[2].delay: has the wrong size; give 3 rows of 3",
            ),
            (
                lambda b: b.output("a", 1, [[0, 1, 1], [1, 0, 1], [1, 0]]),
                {},
                "vertices[0].outputs[2].delay: has the wrong size; give 3 rows of 3",
            ),
            (
                lambda b: b.vertex("f", devices=["d0"]).colocate("b", "f"),
                {},
                "colocation: group b, f has no device that all its members may use; "
                "relax a device_type or devices entry, or split the group",
            ),
            (
                lambda b: b.vertex("f", devices=[]).colocate("b", "f"),
                {},
                "colocation: group b, f has no device that all its members may use (f has none "
                "at all); relax a device_type or devices entry, or split the group",
            ),
            (
                lambda b: None,
                {"durations": [[1, 1, 1]] * 3},
                "durations: 3 rows; give 4 rows, one per vertex",
            ),
            (
                lambda b: None,
                {"durations": [[1, 1, 1]] * 3 + [[1, 1]]},
                "durations[3]: 2 entries; give 3 entries, one per device",
            ),
            (
                lambda b: None,
                {"durations": [[1, 1, 1]] * 3 + [7]},
                "durations[3]: no entries; give 3 entries, one per device",
            ),
            (
                lambda b: None,
                {"durations": [[1, 1, 1]] * 3 + [[1, -1, 1]]},
                "durations[3][1]: -1 is negative; give a number ≥ 0",
            ),
        ],
        ids=lambda value: value.partition(";")[0] if isinstance(value, str) else "",
    )
    def test_inconsistent_parts_are_an_error_when_built(
        self, edit: Callable[[GraphBuilder], Any], options: dict[str, Any], message: str
    ) -> None:
        with pytest.raises(InputError) as caught:
            build(edit, **options)
        assert str(caught.value) == message

    @pytest.mark.parametrize(
        ("options", "place"),
        [
            ({"communication": "teleport"}, "model.communication"),
            ({"communication": []}, "model.communication"),
            ({"memory": None}, "model.memory"),
            ({"release": "never"}, "model.release"),
            ({"send_ops": -1}, "model.send_ops"),
            ({"send_ops": "x"}, "model.send_ops"),
            ({"channels": 0}, "model.channels"),
            ({"channels": 1.0}, "model.channels"),
            ({"channels": True}, "model.channels"),
        ],
    )
    def test_a_model_that_does_not_exist(self, options: dict[str, Any], place: str) -> None:
        with pytest.raises(InputError) as caught:
            Model(**options)
        assert caught.value.place == place

    def test_an_error_can_be_pickled(self) -> None:
        error = InputError("place", "problem", "remedy", "file")
        again = pickle.loads(pickle.dumps(error))
        assert str(again) == str(error) == "file: place: problem; remedy"
        assert again.remedy == "remedy"


class TestIdentity:
    def test_names_and_units_do_not_count(self) -> None:
        assert build(name="x", source="y", time_unit="ns").sha256 == build().sha256

    def test_a_unit_of_time_is_in_the_document_only_if_it_is_known(self) -> None:
        assert "time_unit" not in build().to_dict()
        assert build(time_unit="us").to_dict()["time_unit"] == "us"
        assert build(time_unit="us") != build(time_unit="ms")

    @pytest.mark.parametrize(
        "other",
        [
            lambda: build(lambda b: b.vertex("f")),
            lambda: build(lambda b: b.edge("a", "e")),
            lambda: build(lambda b: b.colocate("a", "e")),
            lambda: build(lambda b: b.separate("a", "e")),
            lambda: build(lambda b: b.output("e", 1)),
            lambda: build(model=Model("link")),
            lambda: build(model=Model("port", channels=2)),
            lambda: build(durations=[[1, 1, 1]] * 4),
            lambda: replace(build(), cluster=Cluster.of([CPU, GPU, Device("d2", 40, "GPU")])),
        ],
    )
    def test_everything_else_does(self, other: Callable[[], Instance]) -> None:
        assert other().sha256 != build().sha256

    def test_durations_may_be_built_before(self) -> None:
        times: list[list[int | None]] = [[1, None, 1], [1, 1, None], [1, 1, 1], [1, 1, 1]]
        given = Durations.of(times, 4, 3)
        assert given.possible.tolist() == [[t is not None for t in row] for row in times]
        assert build(durations=given).sha256 == build(durations=times).sha256

    def test_is_the_same_for_equal_numbers(self) -> None:
        assert build(durations=[["1/2"] * 3] * 4).sha256 == build(durations=[[0.5] * 3] * 4).sha256

    @given(instances())
    def test_is_stable(self, instance: Instance) -> None:
        again = Instance(
            instance.graph, instance.cluster, instance.model, instance.durations, "other"
        )
        assert again.sha256 == instance.sha256
        assert len(instance.sha256) == 64
        assert np.array_equal(again.allowed, instance.allowed)


# --- equality -----------------------------------------------------------------------------------


def test_instances_with_equal_content_are_equal() -> None:
    one, two = load("heft-10"), load("heft-10")
    assert one == two
    assert hash(one) == hash(two)
    assert {one: 1}[two] == 1
    assert one != replace(two, name="another")
    assert one != replace(two, model=Model(memory="estimate"))
    assert one != load("graham-1969-4")
    assert one != "heft-10"


@pytest.mark.parametrize("seed", range(20))
def test_an_instance_equals_itself_after_a_round_trip(seed: int, tmp_path: Path) -> None:
    instance = random_instance(np.random.default_rng(seed), 8, 3)
    save(instance, tmp_path / "copy.json")
    copy = load(tmp_path / "copy.json")
    assert copy == instance
    assert hash(copy) == hash(instance)


def test_a_pickled_instance_is_equal() -> None:
    instance = load("small-30-4-ccr1-t-g-tight-s23")
    copy = pickle.loads(pickle.dumps(instance))
    assert copy == instance
    assert copy.sha256 == instance.sha256


@pytest.mark.parametrize("part", ["ops", "memory"])
def test_one_different_number_makes_instances_unequal(part: str) -> None:
    instance = load("heft-10")
    other = replace(
        instance.graph, **{part: RationalArray.of([Fraction(1, 3)] * len(instance.graph))}
    )
    assert replace(instance, graph=other) != instance


def test_times_on_impossible_devices_are_ignored() -> None:
    possible = np.array([[True, False]])
    one, two = (Durations(RationalArray.of([3, x]).reshape(1, 2), possible) for x in (0, 9))
    assert one == two
