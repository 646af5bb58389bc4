"""Loops are compiled before the clock of a time limit runs."""

from __future__ import annotations

import subprocess
import sys

import pytest

from optpart.testing.chains import chain, cluster
from optpart.training.comparison import compare
from optpart.training.makers import MAKERS
from optpart.training.makers.base import Budget, Made
from optpart.training.makers.compilation import compile_loops
from optpart.training.problem import StrategyProblem

CALLED = """
from optpart.training.makers.compilation import compile_loops
from optpart.training.makers import search_kernel
from optpart.kernels.compiled import Kernel
compile_loops(["search"])
kernels = [each for each in vars(search_kernel).values() if isinstance(each, Kernel)]
print(len(kernels), sum(bool(each.dispatcher.signatures) for each in kernels))
"""


def test_all_loops_of_the_search_run() -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-c", CALLED], capture_output=True, text=True, check=True
    )
    count, compiled = done.stdout.split()
    assert int(count) > 0
    assert compiled == count


def test_a_comparison_compiles_first(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[tuple[str, int | None]] = []

    def maker(problem: StrategyProblem, *, budget: Budget, seed: int = 0) -> Made:
        said.append((problem.graph.name, budget.moves))
        return Made(None, None, "none")

    monkeypatch.setitem(MAKERS, "recorded", maker)
    compare(StrategyProblem(chain(2), cluster(["a"]), 4), ["recorded"], budget=Budget(1.0))
    assert said == [("tiny", 1000), ("chain", None)]
    compile_loops(["recorded"])  # only once
    assert len(said) == 2
