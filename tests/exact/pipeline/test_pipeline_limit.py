"""Preparing the dynamic programme looks at the clock between its steps."""

from __future__ import annotations

import pytest

from optpart import Cluster, GraphBuilder, Instance
from optpart.exact.pipeline import path, solve
from optpart.exact.pipeline.clock import TimeUpError
from optpart.exact.pipeline.solve import best_contiguous

LENGTH = 6


@pytest.fixture
def chain() -> Instance:
    builder = GraphBuilder()
    for v in range(LENGTH):
        builder.vertex(f"v{v}", v + 1, outputs=[1])
    for v in range(LENGTH - 1):
        builder.edge(f"v{v}", f"v{v + 1}")
    return Instance(builder.build(), Cluster.uniform(2, bandwidth=1), name="chain")


@pytest.mark.parametrize("measure", ["makespan", "bottleneck"])
@pytest.mark.parametrize("looks", [0, 1])
def test_no_further_step_begins_beyond_the_limit(
    chain: Instance, measure: solve.Measure, looks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = 0

    def check(deadline: float) -> None:
        nonlocal done
        if done == looks:
            raise TimeUpError
        done += 1

    monkeypatch.setattr(solve, "check", check)
    contracted = 0
    items_of = solve.items_of

    def counted(*arguments: object, **named: object) -> object:
        nonlocal contracted
        contracted += 1
        return items_of(*arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(solve, "items_of", counted)
    monkeypatch.setattr(solve, "best_path", None)
    monkeypatch.setattr(solve, "best_split", None)
    found = best_contiguous(chain, measure)
    assert found.time_up
    assert (found.bound is None) == (measure == "makespan")
    assert contracted == looks


def test_run_times_are_read_in_time(chain: Instance, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[float] = []
    monkeypatch.setattr(path, "check", looks.append)
    best_contiguous(chain, "makespan")
    assert len(looks) >= 2 * LENGTH - 1
