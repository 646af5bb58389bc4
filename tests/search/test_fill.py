"""Devices filled one after another under the memory model of the instance."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from optpart import Cluster, Device, GraphBuilder, Instance, Model, solve
from optpart.lower_bounds.best import LowerBound
from optpart.methods import registry
from optpart.methods.portfolio import auto
from optpart.methods.starts import heuristic_schedules
from optpart.search.fill import filled
from optpart.solution.contiguity import first_violation
from optpart.solution.job import Job
from optpart.solution.result import Progress
from optpart.solution.schedule import Schedule
from optpart.solution.verifier import verify
from optpart.testing.draw import draw_instance


def transformer(blocks: int = 12) -> Instance:
    """A vision transformer: weights that need three unlike devices, and large activations.

    Memory in kilobytes, times in microseconds.
    """
    builder = GraphBuilder().vertex("embed", 200, memory=3000, outputs=[600])
    last = "embed"
    for b in range(blocks):
        for name, ops, memory, size, inputs in (
            ("query", 232, 2360, 600, [last]),
            ("key", 232, 2360, 600, [last]),
            ("value", 232, 2360, 600, [last]),
            ("scores", 60, 0, 1860, [f"query{b}", f"key{b}"]),
            ("softmax", 1, 0, 1860, [f"scores{b}"]),
            ("mix", 60, 0, 600, [f"softmax{b}", f"value{b}"]),
            ("out", 232, 2360, 600, [f"mix{b}", last]),
            ("up", 930, 9440, 2400, [f"out{b}"]),
            ("gelu", 1, 0, 2400, [f"up{b}"]),
            ("down", 930, 9440, 600, [f"gelu{b}", f"out{b}"]),
        ):
            builder.vertex(f"{name}{b}", ops, memory=memory, outputs=[size])
            for source in inputs:
                builder.edge(source, f"{name}{b}")
        last = f"down{b}"
    builder.vertex("head", 2, memory=3000).edge(last, "head")
    devices = [
        Device("large-gpu", 82, memory=180_000),
        Device("small-gpu", 20, memory=120_000),
        Device("host", 3, memory=8_000_000),
    ]
    cluster = Cluster.of(devices, bandwidth=24, latency=10)
    return Instance(builder.build(), cluster, Model(memory="refcount"), name="transformer")


def path(memory: Model, *rooms: int | None, size: int = 1) -> Instance:
    """Six vertices in a row, each with memory 2 and an output, on devices that slow down."""
    builder = GraphBuilder()
    for v in range(6):
        builder.vertex(f"v{v}", 12, memory=2, outputs=[size] if v < 5 else [])
        if v:
            builder.edge(f"v{v - 1}", f"v{v}")
    devices = [Device(f"d{d}", 6 // (d + 1), memory=room) for d, room in enumerate(rooms)]
    return Instance(builder.build(), Cluster.of(devices), memory)


def places(schedule: Schedule | None) -> list[int]:
    assert schedule is not None
    return schedule.placement.tolist()


class TestAFill:
    def test_is_valid_where_no_other_start_is(self) -> None:
        instance = transformer()
        others = [registry.run(name, Job(instance)) for name in registry.starts()]
        assert {result.schedule for result in others} == {None}
        assert all("memory" in result.reason for result in others)
        schedule = filled(instance)
        assert schedule is not None
        assert verify(instance, schedule) == []
        assert np.unique(schedule.placement).tolist() == [0, 1, 2]

    def test_counts_static_memory(self) -> None:
        """A vertex needs 2 for itself, and 1 for each of its tensors."""
        assert places(filled(path(Model(memory="estimate"), 10, 100))) == [0, 0, 1, 1, 1, 1]

    def test_counts_copies_of_tensors(self) -> None:
        """The tensor that leaves d0 needs 1 beside that which was consumed."""
        assert places(filled(path(Model(memory="refcount"), 8, 100))) == [0, 0, 0, 1, 1, 1]

    def test_leaves_room_for_the_tensor_that_leaves(self) -> None:
        """d1 cannot hold a vertex with its input and its output."""
        found = filled(path(Model(memory="refcount"), 8, 5, 100, size=2), [0, 1, 2])
        assert places(found) == [0, 0, 2, 2, 2, 2]

    def test_is_one_device_where_all_fit(self) -> None:
        assert places(filled(path(Model(), None, None))) == [0] * 6

    def test_follows_an_order_of_devices(self) -> None:
        instance = path(Model(memory="refcount"), 100, 8)
        assert places(filled(instance, [1, 0])) == [1, 1, 1, 0, 0, 0]

    def test_is_none_where_nothing_fits(self) -> None:
        assert filled(path(Model(memory="estimate"), 5, 5)) is None

    @pytest.mark.parametrize("memory", ["estimate", "edges", "refcount"])
    @pytest.mark.parametrize("communication", ["delay", "sendrecv", "link", "port"])
    def test_is_valid_under_every_model(self, communication: Any, memory: Any) -> None:
        found = 0
        for seed in range(12):
            instance = draw_instance(seed, communication, memory)
            schedule = filled(instance)
            assert schedule is None or verify(instance, schedule) == []
            found += schedule is not None
        assert found

    def test_comes_first_among_the_starts(self) -> None:
        instance = transformer()
        schedule, fill = next(iter(heuristic_schedules(instance))), filled(instance)
        assert fill is not None
        assert schedule.makespan(instance) == fill.makespan(instance)


def stop(step: Progress) -> None:
    """End a solve with its first schedule."""
    if step.objective is not None:
        raise KeyboardInterrupt


class TestNoMethodIsWorse:
    @pytest.mark.parametrize("method", ["auto", "search", "hybrid", "cpsat"])
    def test_from_its_first_schedule_on(self, method: str) -> None:
        instance = transformer()
        fill = filled(instance)
        assert fill is not None
        result = solve(instance, method=method, seconds=60, workers=1, watch=stop)
        assert result.makespan is not None
        assert result.makespan <= fill.makespan(instance)

    @pytest.mark.parametrize("order", [None, ["host", "small-gpu", "large-gpu"]])
    def test_with_contiguous_blocks(self, order: list[str] | None) -> None:
        instance = transformer()
        fill = filled(instance, [] if order is None else [2, 1, 0])
        assert fill is not None
        assert first_violation(instance, fill.placement, ()) == ""
        result = solve(
            instance, contiguous=True, device_order=order, seconds=60, workers=1, watch=stop
        )
        assert result.makespan is not None
        assert result.makespan <= fill.makespan(instance)

    def test_nor_is_its_bound_below_those_of_the_command_bound(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Improvement by another layer, it counts for the result of all members."""
        proven = Fraction(1700)

        def each(*_: object, **__: object) -> list[LowerBound]:
            return [LowerBound("series", proven, 0.0)]

        monkeypatch.setattr(auto, "each_bound", each)
        monkeypatch.setattr(auto, "is_ready", lambda: True)
        result = solve(transformer(), seconds=2, workers=1)
        assert result.lower_bound is not None
        assert result.lower_bound >= proven
