from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from optpart.applications.training.compiled import Compiled, by_rank
from optpart.applications.training.compiler import compile_strategy
from optpart.applications.training.strategy import Decision, Strategy
from optpart.base.errors import InputError
from optpart.study.report.strategy import shares, timeline
from optpart.testing.chains import chain, cluster

GRAPH = chain(3)
TWO = cluster(("a", "a"), bandwidth=10)
STRATEGY = Strategy(
    6, GRAPH.tied, (Decision((2, 1), "allreduce"), Decision.on(1, 2), Decision((1, 1), 0))
)


@pytest.fixture
def compiled() -> Compiled:
    return compile_strategy(GRAPH, TWO, STRATEGY)


def test_devices_collectives_and_links_have_rows(compiled: Compiled) -> None:
    schedule = by_rank(compiled)
    bars = timeline.bars_of(compiled, schedule)
    assert bars.rows == ("a0", "a1", "nccl", "a0 → a1", "a1 → a0")
    assert bars.omitted == 0
    assert set(bars.look) >= {"forward", "backward", "AllReduce", "transfer"}
    # The bars of a row do not overlap, since it does one thing at a time.
    for row in range(len(bars.rows)):
        own = np.flatnonzero(bars.row == row)
        own = own[np.lexsort((bars.end[own], bars.start[own]))]
        assert (bars.start[own][1:] >= bars.end[own][:-1] - 1e-12).all()
    assert bars.end.max() == float(schedule.makespan(compiled.instance)) / 1e6


def test_the_iteration_as_a_picture(compiled: Compiled, tmp_path: Path) -> None:
    path = tmp_path / "t.svg"
    timeline.draw(compiled, by_rank(compiled), path, title="by hand", bound=Fraction(10))
    text = path.read_text()
    for said in ("by hand", "nccl", "a1 → a0", "lower bound", "gap "):
        assert said in text
    again = tmp_path / "again.svg"
    timeline.draw(compiled, by_rank(compiled), again, title="by hand", bound=Fraction(10))
    assert again.read_bytes() == path.read_bytes()


def test_the_shares_as_a_picture(tmp_path: Path) -> None:
    path = tmp_path / "s.svg"
    shares.draw(GRAPH, TWO, STRATEGY, path)
    text = path.read_text()
    for said in ("f0", "66.6%", "100%", "AllReduce", "PS a0", "6 samples"):
        assert said in text


def test_only_two_formats(compiled: Compiled, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no picture format '\.gif'; use \.png or \.svg"):
        timeline.draw(compiled, by_rank(compiled), tmp_path / "t.gif")
