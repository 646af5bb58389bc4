"""MiniZinc with Gecode: a plain model of everything, which agrees with enumeration."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from shutil import which
from typing import IO, get_args

import numpy as np
import pytest

from optpart import Cluster, Device, GraphBuilder, Instance, Model, UnsupportedError
from optpart.base.children.scratch import Scratch
from optpart.base.errors import InputError
from optpart.exact import minizinc as module
from optpart.exact.enumeration import enumerate_all
from optpart.exact.minizinc import minizinc
from optpart.problem.model import Communication, Memory
from optpart.solution.goal import Goal, Objective
from optpart.solution.result import Budget, Progress, Result, Status
from optpart.solution.termination import Termination
from optpart.study import library
from optpart.testing.brute_force import optimum
from optpart.testing.draw import draw_instance, random_instance

needs_minizinc = pytest.mark.skipif(
    which("minizinc") is None, reason="the command minizinc is not installed"
)


def same(one: Result, other: Result) -> None:
    """Assert that two methods have proven the same."""
    proven = [(r.status, r.makespan, r.traffic_bound) for r in (one, other)]
    assert proven[0] == proven[1], (one.reason, other.reason)
    assert one.status in (Status.OPTIMAL, Status.INFEASIBLE)


def two_devices(ops: list[int | str], model: Model | None = None) -> Instance:
    """Independent vertices on two equal devices."""
    builder = GraphBuilder()
    for v, amount in enumerate(ops):
        builder.vertex(f"v{v}", amount)
    return Instance(builder.build(), Cluster.uniform(2), model or Model())


#: Nothing that Gecode proves within seconds.
HARD = two_devices([97 + 2 * v for v in range(21)])


@needs_minizinc
class TestAgreement:
    @pytest.mark.parametrize("communication", get_args(Communication))
    def test_of_both_objectives(self, communication: Communication) -> None:
        goal = Goal("lexicographic")
        instance = draw_instance(11, communication, "none", vertices=4, far=False)
        one, other = minizinc(instance, goal=goal), enumerate_all(instance, goal=goal)
        same(one, other)
        assert one.traffic == other.traffic

    def test_of_least_traffic(self) -> None:
        goal = Goal("traffic", makespan=Fraction(14))
        instance = library.load("laich-2.5")
        one, other = minizinc(instance, goal=goal), enumerate_all(instance, goal=goal)
        assert one.status is other.status is Status.OPTIMAL
        assert one.traffic == one.traffic_bound == other.traffic

    def test_with_brute_force(self) -> None:
        rng = np.random.default_rng(7)
        for _ in range(4):
            instance = random_instance(rng, 5, 3, memory="estimate")
            best, result = optimum(instance), minizinc(instance)
            assert result.makespan == (None if best is None else best.makespan)
            assert result.status is (Status.INFEASIBLE if best is None else Status.OPTIMAL)


@needs_minizinc
class TestGoldenValues:
    @pytest.mark.parametrize(
        ("name", "makespan"), [("laich-2.5", 14), ("kwok-ahmad-9-2", 17), ("graham-1969-3", 12)]
    )
    def test_of_the_library(self, name: str, makespan: int) -> None:
        result = minizinc(library.load(name))
        assert result.status is Status.OPTIMAL
        assert result.makespan == makespan

    def test_one_crossing_serves_all_consumers(self) -> None:
        builder = GraphBuilder().vertex("a", 1, outputs=[4], devices=["d0"])
        for name in "bc":
            builder.vertex(name, 1, devices=["d1"]).edge("a", name)
        instance = Instance(
            builder.build(), Cluster.uniform(2, bandwidth=2), Model(communication="link")
        )
        result = minizinc(instance, goal=Goal("lexicographic"))
        assert (result.makespan, result.traffic) == (1 + 2 + 2, 4)

    def test_waiting_on_purpose_keeps_memory(self) -> None:
        """A tensor that arrived while the other is read would have to be held ([M] eq. 2)."""
        builder = GraphBuilder()
        for name in "ab":
            builder.vertex(name, 1, outputs=[1], devices=["d0"])
            builder.vertex(f"{name}-reader", 2, devices=["d1"]).edge(name, f"{name}-reader")
        cluster = Cluster.of([Device("d0"), Device("d1", memory=0)])
        result = minizinc(Instance(builder.build(), cluster, Model(memory="edges")))
        assert result.makespan == 1 + 2 + 2
        assert result.schedule is not None
        assert sorted(result.schedule.start.fractions()) == [0, 1, 2, 3]


@needs_minizinc
class TestGoal:
    def test_decides_whether_a_makespan_is_possible(self) -> None:
        instance = two_devices([3, 3, 2, 2, 2])
        assert minizinc(instance, goal=Goal(makespan=Fraction(6))).makespan == 6
        refused = minizinc(instance, goal=Goal(makespan=Fraction(11, 2)))
        assert refused.status is Status.INFEASIBLE
        assert "makespan at most 11/2" in refused.reason

    def test_keeps_a_placement_and_an_order(self) -> None:
        instance = two_devices([3, 3, 2, 2, 2])
        given = Goal(placement={0: 0, 2: 0, 3: 0}, order=((0, 3), (3, 2)))
        result = minizinc(instance, goal=given)
        assert result.makespan == 7
        assert result.schedule is not None
        assert given.broken(instance, result.schedule) == ""

    @pytest.mark.parametrize(
        ("given", "what"),
        [
            (Goal("bottleneck"), "the bottleneck"),
            (Goal(contiguous=True), "contiguous blocks"),
            (Goal(device_order=(1, 0)), "contiguous blocks"),
        ],
    )
    def test_blocks_and_bottlenecks_are_refused(self, given: Goal, what: str) -> None:
        with pytest.raises(UnsupportedError, match=f"minizinc does not support {what}"):
            minizinc(two_devices([1]), goal=given)

    def test_names_what_does_not_exist(self) -> None:
        with pytest.raises(InputError, match="no vertex 9"):
            minizinc(two_devices([1]), goal=Goal(placement={9: 0}))

    @pytest.mark.parametrize("objective", ["makespan", "traffic", "lexicographic"])
    def test_is_not_worse_than_its_start(self, objective: Objective) -> None:
        instance = draw_instance(11, "delay", "none", vertices=4, far=False)
        goal = Goal(objective)
        best = minizinc(instance, goal=goal)
        same(minizinc(instance, goal=goal, start=best.schedule), best)

    def test_says_why_a_start_is_not_used(self) -> None:
        instance = two_devices([1, 2])
        other = minizinc(two_devices([2, 2])).schedule
        result = minizinc(instance, start=other, goal=Goal(placement={0: 0, 1: 0}))
        assert (result.status, result.makespan) == (Status.OPTIMAL, 3)
        assert "the given start was not used" in result.reason


@needs_minizinc
class TestExactness:
    def test_fractions(self) -> None:
        result = minizinc(two_devices(["1/3", "1/7", "1/21"]))
        assert (result.status, result.makespan) == (Status.OPTIMAL, Fraction(1, 3))

    def test_no_vertices(self) -> None:
        result = minizinc(two_devices([]))
        assert (result.status, result.makespan) == (Status.OPTIMAL, 0)

    def test_times_that_are_too_fine_are_refused(self) -> None:
        with pytest.raises(UnsupportedError, match="too fine"):
            minizinc(two_devices([10**9, 10**9 + 1]))

    def test_sizes_that_are_too_fine_are_refused(self) -> None:
        builder = GraphBuilder().vertex("a", memory=10**9).vertex("b", memory="1/3")
        instance = Instance(builder.build(), Cluster.uniform(2), Model(memory="refcount"))
        with pytest.raises(UnsupportedError, match="too fine"):
            minizinc(instance)

    def test_tasks_of_zero_length_interrupt_nothing(self) -> None:
        builder = GraphBuilder().vertex("long", 4).vertex("first", 1).vertex("zero", 0)
        builder.vertex("last", 4).edge("first", "zero", None).edge("zero", "last", None)
        instance = Instance(
            builder.build(), Cluster.of([Device("d0"), Device("d1")], bandwidth=0, latency=1)
        )
        goal = Goal(placement={0: 0, 2: 0})
        same(minizinc(instance, goal=goal), enumerate_all(instance, goal=goal))


def command_of(scratch: Scratch) -> int:
    """The process that works in a folder."""
    watchdog = str(scratch._watchdog.pid)
    return int(subprocess.run(["pgrep", "-P", watchdog], capture_output=True, check=True).stdout)


@needs_minizinc
class TestEnding:
    def test_a_limit_leaves_the_best_so_far(self, monkeypatch: pytest.MonkeyPatch) -> None:
        limits: list[tuple[int, float]] = []
        start = Scratch.start

        def cut_off(self: Scratch, command: Sequence[str], seconds: float) -> IO[bytes]:
            """Let the watchdog end the command once it has said its first solution."""
            limits.append((int(command[list(command).index("--time-limit") + 1]), seconds))
            script = f"{shlex.join(command)} | sed -u '/^{module._SOLUTION}$/q'; exec sleep 1000"
            return start(self, ["sh", "-c", script], 1.5)

        monkeypatch.setattr(Scratch, "start", cut_off)
        steps: list[Progress] = []
        result = minizinc(HARD, budget=Budget(100.0), watch=steps.append)
        ((told, enforced),) = limits
        assert 0 < told <= 100_000
        assert told / 1000 < enforced <= 100.0 + module._GRACE
        assert result.status is Status.FEASIBLE
        assert result.termination is Termination.TIME_LIMIT
        assert result.lower_bound is None
        values = [step.objective for step in steps]
        assert values == sorted(values, reverse=True, key=lambda value: value or 0)
        assert values[-1] == result.makespan

    def test_no_time_at_all(self) -> None:
        result = minizinc(HARD, budget=Budget(0.0))
        assert (result.status, result.termination) == (
            Status.UNKNOWN,
            Termination.TIME_LIMIT,
        )

    @pytest.mark.parametrize("ended", [Termination.FAILED, Termination.INTERRUPTED])
    def test_sudden_ends_keep_the_best(
        self, ended: Termination, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Once a schedule is found, the solver is killed, or Ctrl-C comes."""
        started: list[Scratch] = []
        struck: list[bool] = []
        start = Scratch.start

        def remember(self: Scratch, command: Sequence[str], seconds: float) -> IO[bytes]:
            started.append(self)
            return start(self, command, seconds)

        def strike(_: Progress) -> None:
            if ended is Termination.INTERRUPTED:
                raise KeyboardInterrupt
            if not struck:  # schedules printed before the end are still reported after it
                struck.append(True)
                os.killpg(command_of(started[0]), signal.SIGKILL)

        monkeypatch.setattr(Scratch, "start", remember)
        result = minizinc(HARD, budget=Budget(20), watch=strike)
        assert result.status is Status.FEASIBLE
        assert result.termination is ended
        assert not started[0].folder.exists()

    def test_an_unknown_solver(self) -> None:
        result = minizinc(two_devices([1]), solver="nosuch")
        assert result.status is Status.UNKNOWN
        assert "no solver with tag nosuch" in result.reason
        assert result.termination is Termination.FAILED


def test_a_missing_command_is_an_error_that_explains_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(InputError, match="not installed; install MiniZinc"):
        minizinc(two_devices([1]))


def test_every_model_has_its_file() -> None:
    names = {"tf", *get_args(Communication), *get_args(Memory)}
    assert {path.stem for path in Path(module.models()).glob("*.mzn")} == names


#: Says a solution, and then nothing more until it is killed.
_ENDLESS = """#!/bin/sh
echo '{"makespan": 1}'
echo ----------
exec sleep 1000
"""


def test_the_command_ends_with_a_caller_that_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = tmp_path / "minizinc"
    command.write_text(_ENDLESS)
    command.chmod(0o755)
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    program = (
        "from optpart.exact.minizinc import _answers\n"
        f"for solution in _answers([{str(command)!r}], 'content', 1000):\n"
        "    print(solution, flush=True)"
    )
    with subprocess.Popen([sys.executable, "-P", "-c", program], stdout=subprocess.PIPE) as caller:
        assert caller.stdout is not None
        said = caller.stdout.readline()
        (folder,) = place.iterdir()
        caller.kill()
    assert said == b'{"makespan": 1}\n'
    while folder.exists():  # the watchdog removes it after it has killed the command
        time.sleep(0.01)
