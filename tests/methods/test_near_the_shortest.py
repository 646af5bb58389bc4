"""Less traffic among the shortest schedules, or among those that are hardly longer."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from commandline import Run

from optpart import Cluster, GraphBuilder, InputError, Instance, solve
from optpart.methods import solve as solving
from optpart.solution.metrics import traffic
from optpart.solution.result import Status


def ladder() -> Instance:
    """Two paths on two devices; 1/1001 of the time is saved by changing devices once on each."""
    builder = GraphBuilder()
    for path, (first, second) in {"a": (500, 501), "b": (501, 499)}.items():
        builder.vertex(f"{path}0", first, outputs=[8]).vertex(f"{path}1", second)
        builder.edge(f"{path}0", f"{path}1")
    builder.vertex("c", 1)
    return Instance(builder.build(), Cluster.uniform(2), name="ladder")


class TestWithinPercent:
    def test_a_near_tie_goes_to_fewer_transfers(self) -> None:
        instance = ladder()
        shortest = solve(instance, objective="lexicographic", seconds=10)
        near = solve(instance, objective="traffic", within_percent="0.1", seconds=10)
        assert shortest.makespan is not None
        assert near.makespan is not None
        assert shortest.makespan <= near.makespan <= shortest.makespan * Fraction(1001, 1000)
        assert near.traffic == 0
        assert near.status is Status.OPTIMAL
        assert near.lower_bound == shortest.makespan

    @pytest.mark.parametrize("method", ["auto", "cpsat", "enumerate"])
    @pytest.mark.parametrize(("percent", "least"), [(0, 99), (10, 82)])
    def test_bounds_the_makespan_by_the_least(self, method: str, percent: int, least: int) -> None:
        instance: Any = "heft-10"
        if method == "enumerate":
            instance, least = ladder(), 0
        result = solve(instance, method, objective="traffic", within_percent=percent, seconds=20)
        assert (result.traffic, result.status) == (least, Status.OPTIMAL)
        assert "makespan at most" in result.given

    @pytest.mark.parametrize(
        ("asked", "words"),
        [
            ({}, "within_percent: used with objective makespan; minimise the traffic"),
            ({"objective": "traffic", "within": 80}, "within_percent: used with `within`"),
            ({"objective": "traffic", "method": "heft"}, "heft can only minimise the makespan"),
            ({"objective": "traffic", "engine": "dask"}, "within_percent: not supported on a clu"),
        ],
    )
    def test_refuses_what_contradicts_it(self, asked: dict[str, Any], words: str) -> None:
        with pytest.raises(InputError) as error:
            solve("heft-10", within_percent=1, **asked)
        assert words in str(error.value)

    def test_is_an_option_of_the_command(self, run: Run) -> None:
        near = ("--within-percent", 10, "--time-limit", 20)
        assert "traffic 82" in run("solve", "heft-10", "--objective", "traffic", *near).out
        shown = run("solve", "heft-10", *near)
        assert (shown.code, shown.out) == (2, "")
        assert shown.err.startswith("optpart: --within-percent: used with objective makespan")


class TestLexicographic:
    def test_is_never_longer_than_what_auto_finds_alone(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The second step begins from the schedule of the first."""
        asked = []
        run = solving.registry.run

        def noted(name: str, job: Any, *arguments: Any, **options: Any) -> Any:
            if name == "auto":
                asked.append(job)
            return run(name, job, *arguments, **options)

        monkeypatch.setattr(solving.registry, "run", noted)
        result = solve("heft-10", objective="lexicographic", seconds=20)
        first, second = asked
        assert first.goal.objective == "makespan"
        assert second.start.makespan(result.instance) == second.goal.makespan == 73
        assert (result.status, result.makespan, result.traffic) == (Status.OPTIMAL, 73, 99)
        assert result.schedule is not None
        assert traffic(result.instance, result.schedule.placement) == 99
