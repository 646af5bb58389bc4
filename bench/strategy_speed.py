"""How many strategies a second the evaluator evaluates on one core.

    python bench/strategy_speed.py [-o bench/results/strategy_speed.txt]

Random strategies of the M + 4 actions of [G] for chains of layers on eight devices in four servers:
mixtures of all actions, with conversions everywhere, and data parallelism alone, with long queues
of collectives. Seconds are those of the processor, so that other programs matter less. The goals
are 10,000 a second at 400 vertices of the compiled instance, and 300 at 10,000.
"""

from __future__ import annotations

import argparse
import time
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import numpy as np

from optpart.files import ANY, write_text
from optpart.testing.chains import chain, cluster
from optpart.training.actions import actions
from optpart.training.compiled import by_rank
from optpart.training.compiler import compile_strategy
from optpart.training.evaluator import Evaluator
from optpart.training.graph import Line
from optpart.training.problem import StrategyProblem

KINDS = ("v100", "v100", "1080ti", "1080ti", "1080ti", "1080ti", "p100", "p100")
SERVERS = (0, 0, 1, 1, 2, 2, 3, 3)
SIZES = (400, 10_000)
SECONDS = 3.0


class Row(NamedTuple):
    """One kind of strategies at one size; vertices and tasks are means."""

    what: str
    vertices: float
    tasks: float
    per_second: float
    compiled_per_second: float


def problem(layers: int) -> StrategyProblem:
    """Return a chain on the testbed of [G]: activations of 1 KB a sample, weights of 400 KB."""
    times = [
        [
            Line(Fraction(1000), Fraction(100 + 17 * i % 50)),
            Line(Fraction(1000), Fraction(200 + 29 * i % 70)),
            Line(Fraction(1500), Fraction(150 + 13 * i % 40)),
        ]
        for i in range(layers)
    ]
    graph = chain(layers, ("v100", "1080ti", "p100"), forward=times, activation=1000, weights=4e5)
    rates = [[10 if a == b else Fraction(747, 1000) for b in SERVERS] for a in SERVERS]
    here = cluster(
        KINDS, servers=SERVERS, bandwidth=rates, latency=12_000, copying=500, memory=[2**34] * 8
    )
    return StrategyProblem(graph, here, 192)


def drawn(
    asked: StrategyProblem, evaluator: Evaluator, count: int, *, replicated: bool
) -> np.ndarray:
    """Draw strategies of all actions, or of data parallelism only."""
    rng = np.random.default_rng(0)
    k = len(asked.cluster)
    numbers = np.array(
        [[evaluator.action(action.decision) for action in found] for found in actions(asked)]
    )
    groups, choices = numbers.shape
    data = rng.integers(k, choices, size=(count, groups))
    single = rng.integers(0, k, size=(count, groups))
    chosen = data if replicated else np.where(rng.random((count, groups)) < 0.5, data, single)
    return numbers[np.arange(groups), chosen].astype(np.int32)


def measure(size: int, *, replicated: bool) -> Row:
    """Measure with the number of layers that gives about this many vertices."""
    layers = 20
    for _ in range(2):
        asked = problem(layers)
        evaluator = Evaluator(asked)
        rows = drawn(asked, evaluator, 12, replicated=replicated)
        vertices = []
        for row in rows:
            strategy = asked.strategy([evaluator.decisions[a] for a in row])
            compiled = compile_strategy(asked.graph, asked.cluster, strategy, asked.options)
            vertices.append(len(compiled.vertices))
        mean = float(np.mean(vertices))
        if abs(mean / size - 1) < 0.1:
            break
        layers = round(layers * size / mean)
    began = time.process_time()
    by_rank(compiled)
    slow = time.process_time() - began
    began = time.process_time()
    compile_strategy(asked.graph, asked.cluster, strategy, asked.options)
    slow += time.process_time() - began
    rows = drawn(asked, evaluator, 4_000_000 // size, replicated=replicated)
    tasks = []
    for row in rows[:12]:
        evaluator.many(row[None])
        tasks.append(int(evaluator.work.n[0]))
    evaluator.add_all_pairs()
    evaluator.many(rows[:12])
    done, began = 0, time.process_time()
    while (spent := time.process_time() - began) < SECONDS:
        evaluator.many(rows)
        done += len(rows)
    what = "data parallelism" if replicated else "mixture"
    return Row(what, mean, float(np.mean(tasks)), done / spent, 1 / slow)


def table(rows: list[Row]) -> str:
    """Return a line per measurement."""
    lines = ["strategies        vertices  tasks with transfers  per second  by compiling"]
    lines += [
        f"{row.what:16}  {row.vertices:8,.0f}  {row.tasks:20,.0f}  {row.per_second:10,.0f}  "
        f"{row.compiled_per_second:12,.1f}"
        for row in rows
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    rows = [measure(size, replicated=kind) for size in SIZES for kind in (False, True)]
    text = table(rows)
    print(text, end="")
    if options.output is not None:
        write_text(options.output, text, ANY)


if __name__ == "__main__":
    main()
