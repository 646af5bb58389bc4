"""The method ``hybrid``: verified, never worse than its start, repeatable, outlives its solver."""

from __future__ import annotations

import signal
from itertools import product
from typing import get_args

import numpy as np
import pytest
from layouts import random_layout
from signalling import signal_with_the_job

from optpart import Instance
from optpart.methods import registry
from optpart.methods.search import hybrid
from optpart.problem.model import Communication, Memory
from optpart.search.evaluator import Evaluator
from optpart.search.neighbourhood import Exact
from optpart.solution.result import Budget
from optpart.solution.verifier import verify
from optpart.testing.draw import draw_instance

#: One worker and moves enough for annealing, a part for the solver and greedy repair.
COUNTED = Budget(seconds=60, workers=1, deterministic=20)


def medium(communication: Communication = "delay", memory: Memory = "none") -> Instance:
    return draw_instance(11, communication, memory, vertices=12, devices=3)


@pytest.mark.parametrize(
    ("communication", "memory"), list(product(get_args(Communication), get_args(Memory)))
)
def test_every_model_gives_a_valid_schedule_no_worse_than_its_start(
    communication: Communication, memory: Memory
) -> None:
    instance = medium(communication, memory)
    start = registry.get("etf")(instance)
    found = hybrid(instance, budget=COUNTED, start=start.schedule)
    if found.schedule is None:
        assert start.schedule is None
        return
    assert found.method == "hybrid"
    assert verify(instance, found.schedule) == []
    assert found.makespan is not None
    assert found.lower_bound is not None
    assert found.lower_bound <= found.makespan
    assert start.makespan is None or found.makespan <= start.makespan


@pytest.mark.parametrize("communication", get_args(Communication))
def test_same_seed_and_moves_give_the_same_schedule(communication: Communication) -> None:
    instance = medium(communication)
    one, other = (hybrid(instance, budget=COUNTED, seed=7).schedule for _ in range(2))
    assert one is not None
    assert other is not None
    assert one.placement.tolist() == other.placement.tolist()
    assert one.start.fractions() == other.start.fractions()


def exact(instance: Instance) -> Exact:
    rng = np.random.default_rng(3)
    layout = random_layout(instance, rng)
    assert layout is not None
    return Exact(Evaluator(instance, "makespan"), layout, rng, seconds=None)


def test_a_solver_that_is_killed_costs_one_neighbourhood(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    killed = signal_with_the_job(monkeypatch, signal.SIGKILL, times=2)
    searcher = exact(medium())
    best, value = searcher.best, searcher.value
    for _ in range(2):
        assert not searcher.step(0.0)
    assert len(set(killed)) == 2
    assert searcher.best is best
    assert searcher.value == value
    better = [searcher.step(0.0) for _ in range(5)]
    assert any(better)
    assert searcher.moves == 7


def test_the_value_of_the_solvers_layout_is_correct() -> None:
    searcher = exact(medium())
    for _ in range(5):
        searcher.step(0.0)
    anew = Evaluator(searcher.evaluator.instance, "makespan")
    anew.enter(searcher.best)
    assert anew.value() == searcher.value


def test_two_workers_give_a_valid_schedule() -> None:
    instance = medium()
    found = hybrid(instance, budget=Budget(1.5, 2))
    assert found.schedule is not None
    assert found.workers == 2
    assert verify(instance, found.schedule) == []
