"""Valid schedules are accepted in whole numbers exactly if the reference finds no violation."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from optpart import (
    Cluster,
    GraphBuilder,
    Instance,
    Model,
    RationalArray,
    Schedule,
    Transfers,
)
from optpart.solution import verifier
from optpart.solution.schedule import crossings, retime
from optpart.solution.verifier import reference, verify
from optpart.solution.whole_numbers import accepts
from optpart.testing.draw import random_instance
from optpart.testing.solutions import random_order, random_placement

MODELS = [
    Model(communication, memory=memory, release=release, **more)
    for communication, more in (
        ("delay", {}),
        ("sendrecv", {"send_ops": Fraction(1, 3)}),
        ("link", {}),
        ("port", {}),
        ("port", {"channels": 2}),
    )
    for memory, release in (
        ("none", "end"),
        ("estimate", "end"),
        ("edges", "end"),
        ("refcount", "end"),
        ("refcount", "start"),
    )
]


def drawn(seed: int) -> tuple[np.random.Generator, Instance, Schedule | None]:
    """Draw an instance of any model, with a schedule that may exceed its memory."""
    rng = np.random.default_rng(seed)
    instance = replace(random_instance(rng), model=MODELS[seed % len(MODELS)])
    placement = random_placement(rng, instance)
    if placement is None:
        return rng, instance, None
    order = random_order(rng, instance, crossings(instance, placement))
    return rng, instance, retime(instance, placement, order)


def disturbed(rng: np.random.Generator, schedule: Schedule, devices: int) -> Schedule:
    """Change one thing at random: a device, a start, or a row of the transfers."""
    placement, moves = schedule.placement.copy(), schedule.transfers
    start = schedule.start.fractions()
    rows = list(
        zip(
            moves.tensor.tolist(),
            moves.target.tolist(),
            moves.start.fractions(),
            moves.end.fractions(),
            strict=True,
        )
    )
    shift = Fraction(int(rng.integers(-6, 7)), int(rng.integers(1, 8)))
    what = int(rng.integers(5 if rows else 2))
    if what == 0:
        placement[rng.integers(len(placement))] = rng.integers(devices)
    elif what == 1:
        start[rng.integers(len(start))] += shift
    else:
        row = int(rng.integers(len(rows)))
        tensor, target, begin, end = rows.pop(row)
        if what == 2:
            rows.append((tensor, target, begin + shift, end + shift))
        elif what == 3:
            rows += [(tensor, target, begin, end + shift)] * 2
    return Schedule(placement, RationalArray.from_fractions(start), Transfers.of(rows))


@pytest.mark.parametrize("seed", range(60))
def test_both_agree_on_valid_and_on_disturbed_schedules(seed: int) -> None:
    rng, instance, schedule = drawn(seed)
    if schedule is None:
        return
    for _ in range(4):
        assert accepts(instance, schedule) == (not reference(instance, schedule))
        schedule = disturbed(rng, schedule, instance.devices)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("factor", [Fraction(2**70), Fraction(1, 3**50), Fraction(10**400)])
def test_numbers_beyond_64_bits_change_nothing(seed: int, factor: Fraction) -> None:
    _, instance, _ = drawn(seed)
    graph = instance.graph
    enlarged = RationalArray.from_fractions(x * factor for x in graph.ops.fractions())
    instance = replace(instance, graph=replace(graph, ops=enlarged), durations=None)
    rng = np.random.default_rng(seed)
    placement = random_placement(rng, instance)
    if placement is None:
        return
    order = random_order(rng, instance, crossings(instance, placement))
    schedule = retime(instance, placement, order)
    for _ in range(4):
        assert accepts(instance, schedule) == (not reference(instance, schedule))
        schedule = disturbed(rng, schedule, instance.devices)


def test_arrays_of_the_wrong_size_are_left_to_the_reference() -> None:
    _, instance, schedule = drawn(0)
    assert schedule is not None
    shorter = replace(schedule, placement=schedule.placement[:-1])
    assert not accepts(instance, shorter)
    assert verify(instance, shorter)[0].rule == "complete"


def test_the_reference_judges_what_whole_numbers_accept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault of the fast check alone lets nothing wrong pass."""
    monkeypatch.setattr(verifier, "accepts", lambda *_: True)
    noticed = 0
    for seed in range(40):
        rng, instance, schedule = drawn(seed)
        if schedule is not None:
            disordered = disturbed(rng, schedule, instance.devices)
            assert verify(instance, disordered) == reference(instance, disordered)
            noticed += bool(verify(instance, disordered))
    assert noticed > 10


@pytest.mark.parametrize("seed", range(20))
def test_a_part_of_a_valid_schedule_is_valid(seed: int) -> None:
    rng, instance, schedule = drawn(seed)
    if schedule is not None and not reference(instance, schedule):
        chosen = np.flatnonzero(rng.integers(2, size=instance.vertices))
        assert reference(instance, schedule, among=chosen) == []


def test_of_a_large_schedule_a_sample_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chains of which every vertex starts as the one before it does."""
    monkeypatch.setattr(verifier, "accepts", lambda *_: True)
    builder = GraphBuilder()
    for v in range(5000):
        builder.vertex(f"v{v}", 1)
    for v in range(4990):
        builder.edge(f"v{v}", f"v{v + 10}", None)
    instance = Instance(builder.build(), Cluster.uniform(10))
    valid = retime(instance, np.arange(5000, dtype=np.int32) % 10, [*range(5000)])
    assert verify(instance, valid) == []
    early = RationalArray.from_fractions(start / 2 for start in valid.start.fractions())
    rules = {each.rule for each in verify(instance, replace(valid, start=early), most=5000)}
    assert rules == {"precedence", "device"}


def test_a_consumer_before_a_far_arrival_is_refused() -> None:
    """The arrival takes more than 64 bits, and no start or end does."""
    builder = GraphBuilder().vertex("a", 1, outputs=[2**70]).vertex("b", 1).edge("a", "b")
    instance = Instance(builder.build(), Cluster.uniform(2, bandwidth=1))
    late = Transfers.of([(0, 1, Fraction(1), Fraction(1 + 2**70))])
    start = RationalArray.from_fractions([Fraction(0), Fraction(1)])
    schedule = Schedule(np.array([0, 1], dtype=np.int32), start, late)
    assert [violation.rule for violation in verify(instance, schedule)] == ["precedence"]
