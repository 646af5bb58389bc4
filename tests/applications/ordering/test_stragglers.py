"""Noisy steps, stragglers, and orders that are enforced and broken ([H] §5.1, §6.3)."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from optpart import Cluster, Device, GraphBuilder, InputError, Instance
from optpart.applications.ordering.efficiency import assigned
from optpart.applications.ordering.models import base_model
from optpart.applications.ordering.replica import platform, worker_partition
from optpart.applications.ordering.stragglers import (
    Steps,
    counters,
    enforced,
    offline,
    overtaken,
    simulate_steps,
)
from optpart.kernels.tasks import Tasks, tasks
from optpart.strategies.base import Partition
from optpart.strategies.scheduling.fifo import fifo
from optpart.strategies.scheduling.random_order import random_order
from optpart.strategies.scheduling.tao import tao
from optpart.strategies.scheduling.tio import tio
from optpart.strategies.simulator import Priority, execute


def partition_of(model: str, batch: int, *, training: bool = False) -> Tasks:
    instance = worker_partition(base_model(model), training=training, on=platform(batch))
    return tasks(instance, assigned(instance))


SEQUENCE = partition_of("seq-32", 8000)


def makespan(work: Tasks, priority: Priority) -> float:
    return float((execute(work, priority).start + work.duration).max())


def priority_of(work: Tasks, seed: int = 0) -> Priority:
    return tao(work, Partition(work.resource), np.random.default_rng(seed))


class TestSteps:
    def test_the_straggler_effect_is_the_longest_wait_over_the_step_time(self) -> None:
        """[H] §6.3: of two steps of three workers."""
        times = np.array([[8.0, 10, 9], [6, 6, 6]])
        steps = Steps(times, times + 10, times - 5)
        assert steps.time.tolist() == [10, 6]
        assert steps.straggler.tolist() == [0.2, 0]
        assert steps.efficiency == pytest.approx(10 / 15)

    def test_without_noise_an_enforced_order_takes_the_same_in_every_step(self) -> None:
        steps = simulate_steps(SEQUENCE, offline(SEQUENCE, tao), steps=3, workers=2)
        assert np.unique(steps.makespan).tolist() == [makespan(SEQUENCE, priority_of(SEQUENCE))]
        assert steps.straggler.max() == 0
        assert np.unique(steps.upper).tolist() == [SEQUENCE.duration.sum()]

    def test_random_orders_make_stragglers(self) -> None:
        one = partial(simulate_steps, SEQUENCE, steps=30, workers=4, noise=0.02, seed=3)
        random, ordered = one(random_order), one(offline(SEQUENCE, tao))
        assert random.straggler.mean() > 3 * ordered.straggler.mean()
        assert random.time.mean() > 1.5 * ordered.time.mean()

    def test_the_same_seed_gives_the_same_noise_under_every_scheduler(self) -> None:
        one = partial(simulate_steps, SEQUENCE, steps=5, workers=2, noise=0.1, seed=5)
        first, second = one(random_order), one(offline(SEQUENCE, tio))
        assert np.array_equal(first.upper, second.upper)
        assert np.array_equal(first.makespan, one(random_order).makespan)
        assert not np.array_equal(first.upper, one(random_order, seed=6).upper)

    def test_a_slow_worker_is_slow_in_all_its_ops(self) -> None:
        steps = simulate_steps(SEQUENCE, offline(SEQUENCE, tao), steps=5, workers=3, slowness=0.3)
        ratio = steps.makespan / makespan(SEQUENCE, priority_of(SEQUENCE))
        assert ratio == pytest.approx(steps.upper / SEQUENCE.duration.sum())
        assert np.ptp(ratio) > 0.1

    @pytest.mark.parametrize(
        ("wrong", "message"),
        [
            ({"noise": -1.0}, "noise: -1.0 is negative"),
            ({"slowness": float("nan")}, "slowness: nan is negative"),
            ({"out_of_order": 2.0}, "out_of_order: 2.0 is not a probability"),
        ],
    )
    def test_refusals(self, wrong: dict[str, float], message: str) -> None:
        with pytest.raises(InputError, match=message):
            simulate_steps(SEQUENCE, tao, steps=1, **wrong)  # type: ignore[arg-type]


class TestCounters:
    def test_numbers_are_those_of_the_order(self) -> None:
        numbers = counters(SEQUENCE, priority_of(SEQUENCE))
        assert [one.tolist() for one in numbers] == [list(range(32))]

    @pytest.mark.parametrize("training", [False, True])
    def test_counters_equal_priorities_if_all_can_be_sent_at_once(self, training: bool) -> None:
        work = partition_of("inception-v2", 15, training=training)
        for seed in range(3):
            priority = priority_of(work, seed)
            held = enforced(work, counters(work, priority))
            assert np.array_equal(execute(held, priority).start, execute(work, priority).start)

    def test_a_transfer_waits_for_the_counter_even_if_the_channel_is_free(self) -> None:
        """The first transfer can be sent only after an op of length 5."""
        builder = GraphBuilder().vertex("read", 0, devices=["server"])
        builder.vertex("op", 5, devices=["server"]).edge("read", "op", None)
        builder.vertex("r0", 1, devices=["channel"]).vertex("r1", 1, devices=["channel"])
        for name in ("end", "after"):
            builder.vertex(name, 1, devices=["worker"])
        builder.edge("op", "r0", None).edge("r0", "end", None).edge("r1", "end", None)
        builder.edge("end", "after", None)
        cluster = Cluster.of([Device("worker"), Device("channel"), Device("server")])
        instance = Instance(builder.build(), cluster)
        work = tasks(instance, assigned(instance))
        priority = Priority(np.array([0.0, 0, -1, -2, 0, 0]), np.arange(6))
        assert [one.tolist() for one in counters(work, priority)] == [[2, 3]]
        assert execute(work, priority).start.tolist() == [0, 0, 5, 0, 6, 7]
        held = enforced(work, counters(work, priority))
        assert execute(held, priority).start.tolist() == [0, 0, 5, 6, 7, 8]

    def test_counters_that_would_wait_forever_are_refused(self) -> None:
        """r1 must be sent first, but needs an op that needs r0."""
        builder = GraphBuilder().vertex("r0", 1, devices=["down"]).vertex("r1", 1, devices=["down"])
        builder.vertex("op", 1, devices=["worker"]).vertex("end", 1, devices=["worker"])
        builder.edge("r0", "op", None).edge("op", "r1", None).edge("r1", "end", None)
        builder.edge("op", "end", None)
        cluster = Cluster.of([Device("worker"), Device("down")])
        instance = Instance(builder.build(), cluster)
        work = tasks(instance, assigned(instance))
        with pytest.raises(InputError, match="waits for one that depends on it"):
            enforced(work, [np.array([1, 0])])

    def test_without_priorities_there_is_nothing_to_enforce(self) -> None:
        none = fifo(SEQUENCE, Partition(SEQUENCE.resource), np.random.default_rng(0))
        with pytest.raises(InputError, match="none to enforce"):
            counters(SEQUENCE, none)


class TestOutOfOrder:
    def test_never_leaves_the_order_as_it_is(self) -> None:
        priority = priority_of(SEQUENCE)
        same = overtaken(SEQUENCE, priority, 0.0, np.random.default_rng(0))
        assert makespan(SEQUENCE, same) == makespan(SEQUENCE, priority)

    def test_always_lets_the_first_go_last(self) -> None:
        changed = overtaken(SEQUENCE, priority_of(SEQUENCE), 1.0, np.random.default_rng(0))
        assert counters(SEQUENCE, changed)[0].tolist() == [*range(1, 32), 0]

    def test_the_requested_share_of_transfers_is_overtaken(self) -> None:
        rng = np.random.default_rng(1)
        priority = priority_of(SEQUENCE)
        moved = 0
        for _ in range(2000):
            sent = counters(SEQUENCE, overtaken(SEQUENCE, priority, 1 / 200, rng))[0]
            moved += int((np.diff(sent) < 0).sum())
        assert moved / (2000 * 31) == pytest.approx(1 / 200, rel=0.2)

    def test_one_in_two_hundred_costs_little(self) -> None:
        """For seq-32, where every exchange costs time, it is less than 1% of the step."""
        one = partial(simulate_steps, SEQUENCE, offline(SEQUENCE, tao), steps=200, seed=2)
        slower = one(out_of_order=1 / 200).time.mean() / one().time.mean() - 1
        assert 0 < slower < 0.01
