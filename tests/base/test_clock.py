"""The clock begins with the process; strategies look at it."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
import pytest

from optpart import Budget
from optpart.base import clock
from optpart.base.clock import OutOfTimeError, check_time, is_time_up, limited, seconds_left
from optpart.interop.generate.small import small
from optpart.methods import registry
from optpart.methods.starts import UNTIMED
from optpart.solution.result import Status
from optpart.solution.termination import Termination
from optpart.strategies.partition import heft_lookahead, ready_list
from optpart.strategies.partition.cluster import best_clusters
from optpart.strategies.partition.unit_graph import unit_graph

INSTANCE = small(12, 3, seed=1, ccr=1.0, types=False, groups=False, memory="none")


class Hand:
    """A clock that moves only when a test says so."""

    def __init__(self) -> None:
        self.time = 100.0

    def pass_by(self, seconds: float) -> None:
        self.time += seconds


@pytest.fixture
def hand(monkeypatch: pytest.MonkeyPatch) -> Hand:
    hand = Hand()
    monkeypatch.setattr("optpart.base.clock.time.perf_counter", lambda: hand.time)
    return hand


def test_a_process_begins_before_its_first_line() -> None:
    asked = time.perf_counter()
    lines = "import time; time.sleep(0.3); from optpart.base.clock import *; print(now() - start())"
    age = float(subprocess.check_output([sys.executable, "-P", "-c", lines]))
    assert 0.28 <= age <= time.perf_counter() - asked + 0.02  # starts are known to a hundredth


class TestLimited:
    def test_time_is_up_only_after_the_grace_period(self, hand: Hand) -> None:
        with limited(2) as limit:
            hand.pass_by(2 + clock.GRACE)
            assert not is_time_up()
            assert not limit.reached
            hand.pass_by(0.5)
            assert is_time_up()
            assert limit.reached
            with pytest.raises(OutOfTimeError):
                check_time()
        check_time()

    def test_the_tighter_of_two_limits_holds(self, hand: Hand) -> None:
        assert seconds_left() == np.inf
        with limited(2), limited(5):
            assert seconds_left() == 2
        with limited(5), limited(2):
            assert seconds_left() == 2


def ticking(monkeypatch: pytest.MonkeyPatch, seconds: float) -> Callable[[], int]:
    """Let the clock advance at every look; return a function that counts the looks."""
    looks = 0

    def now() -> float:
        nonlocal looks
        looks += 1
        return looks * seconds

    monkeypatch.setattr(clock, "now", now)
    return lambda: looks


class TestSlowHeuristics:
    @pytest.mark.parametrize("name", ["min-min", "max-min", "sufferage", "dls", "heft-lookahead"])
    def test_work_in_pieces_gives_the_same_schedule(
        self, monkeypatch: pytest.MonkeyPatch, name: str
    ) -> None:
        whole = registry.get(name)(INSTANCE)
        monkeypatch.setattr(ready_list, "_WORK", 1)
        monkeypatch.setattr(heft_lookahead, "_WORK", 1)
        pieces = registry.get(name)(INSTANCE)
        assert whole.schedule is not None
        assert pieces.schedule is not None
        assert pieces.schedule.placement.tolist() == whole.schedule.placement.tolist()
        assert pieces.makespan == whole.makespan

    @pytest.mark.parametrize("name", ["min-min", "dls", "heft-lookahead+pct"])
    def test_stop_at_their_limit_without_a_schedule(
        self, monkeypatch: pytest.MonkeyPatch, name: str
    ) -> None:
        monkeypatch.setattr(ready_list, "_WORK", 1)
        monkeypatch.setattr(heft_lookahead, "_WORK", 1)
        looks = ticking(monkeypatch, 1.0)
        result = registry.get(name)(INSTANCE, budget=Budget(3))
        assert (result.status, result.termination) == (Status.UNKNOWN, Termination.TIME_LIMIT)
        assert result.reason == "time limit"
        assert looks() < INSTANCE.vertices

    @pytest.mark.parametrize("name", ["contiguous-split", "scoring-tuned+pct", "cluster-load+pct"])
    def test_those_that_improve_keep_the_best_so_far(
        self, monkeypatch: pytest.MonkeyPatch, name: str
    ) -> None:
        ticking(monkeypatch, 1.0)
        result = registry.get(name)(INSTANCE, budget=Budget(0))
        assert result.schedule is not None
        assert (result.termination, result.reason) == (Termination.TIME_LIMIT, "time limit")

    def test_without_a_limit_they_do_all_their_work(self, monkeypatch: pytest.MonkeyPatch) -> None:
        ticking(monkeypatch, 1000.0)
        for budget in (UNTIMED, Budget(0, deterministic=1.0)):
            result = registry.get("min-min")(INSTANCE, budget=budget)
            assert result.termination is Termination.COMPLETED

    def test_a_limit_ends_the_tries_of_clusters(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("optpart.strategies.partition.cluster._BATCH", 1)
        looks = ticking(monkeypatch, 1.0)
        with limited(2):
            best_clusters(unit_graph(INSTANCE), 3, np.random.default_rng(0), "load", 1000)
        assert looks() < 10


class TestMethodsWithoutTime:
    @pytest.mark.parametrize("name", ["cpsat", "milp", "series", "search", "hybrid", "auto"])
    def test_give_the_schedule_of_the_first_heuristic_and_start_no_process(
        self, monkeypatch: pytest.MonkeyPatch, name: str
    ) -> None:
        ran: list[str] = []
        get = registry.get

        def counted(heuristic: str) -> object:
            ran.append(heuristic)
            return get(heuristic)

        def none(*_: object, **__: object) -> None:
            raise AssertionError("a process was started")

        method = get(name)
        monkeypatch.setattr(registry, "get", counted)
        monkeypatch.setattr("optpart.base.children.worker.spawn", none)
        result = method(INSTANCE, budget=Budget(0))
        assert result.schedule is not None
        assert result.termination is Termination.TIME_LIMIT
        assert [heuristic for heuristic in ran if registry.split(heuristic)] == ["heft"]
