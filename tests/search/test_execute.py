"""Carrying out a plan in doubles agrees with exact timing and exact peaks of memory."""

from __future__ import annotations

from itertools import product
from typing import get_args

import numpy as np
import pytest

from optpart.problem.model import Communication, Memory
from optpart.search.climb import Climb
from optpart.search.evaluator import Evaluator
from optpart.search.plan import Layout
from optpart.solution.metrics import peak_memory, traffic
from optpart.testing.draw import draw_instance
from optpart.testing.solutions import random_order, random_placement


@pytest.mark.parametrize(
    ("communication", "memory"), list(product(get_args(Communication), get_args(Memory)))
)
@pytest.mark.parametrize("seed", range(8))
def test_value_is_that_of_the_exact_schedule(
    communication: Communication, memory: Memory, seed: int
) -> None:
    instance = draw_instance(seed, communication, memory)
    rng = np.random.default_rng(seed)
    placement = random_placement(rng, instance)
    if placement is None:
        return
    order = np.array(random_order(rng, instance), dtype=np.int32)
    eager = rng.random(instance.graph.tensors) < 0.5
    layout = Layout(placement, order, eager)
    evaluator = Evaluator(instance, "lexicographic")
    evaluator.enter(layout)
    over, makespan, crossing = evaluator.value()
    schedule = evaluator.schedule(layout)
    scale = evaluator.arrays.scale
    assert makespan / scale == pytest.approx(float(schedule.makespan(instance)))
    assert crossing == pytest.approx(float(traffic(instance, placement)))
    if memory == "edges" or memory == "refcount":
        peaks = peak_memory(instance, schedule, memory, instance.model.release)
        limits = instance.cluster.memory
        fits = all(m is None or p <= m for p, m in zip(peaks, limits, strict=True))
        assert (over == 0.0) == fits


@pytest.mark.parametrize("seed", [*range(6), 34, 64, 149])
def test_traffic_stays_counted(seed: int) -> None:
    instance = draw_instance(seed, vertices=8, devices=3)
    rng = np.random.default_rng(seed)
    placement = random_placement(rng, instance)
    if placement is None:
        return
    order = np.array(random_order(rng, instance), dtype=np.int32)
    layout = Layout(placement, order, np.ones(instance.graph.tensors, dtype=np.bool_))
    climb = Climb(Evaluator(instance, "traffic"), layout, rng, timed=False)
    for share in (0.0, 0.4, 0.8):
        climb.step(share)
    anew = Evaluator(instance, "traffic")
    anew.enter(climb.best)
    assert anew.value() == pytest.approx(climb.value, abs=1e-9)
