"""Is any random strategy of a model faster than the bounds?

    python bench/training/bounds.py [--strategies 10000] [--groups 20] [--cluster heterog-8]

For every layer-built model, random strategies are drawn: each group in a row of random length takes
one of its actions. They are evaluated in [G]'s order, and none may be faster than the bound of the
program, of the load or of the average path; all three, and the fastest strategy, are printed in
milliseconds. The certificate of the program is checked, too.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time

import numpy as np

from optpart.applications.training.actions import actions
from optpart.applications.training.bounds.certificate import write_certificate
from optpart.applications.training.bounds.program import strategy_bound
from optpart.applications.training.bounds.shares import average_path, load
from optpart.applications.training.cluster_file import figures, read, training_cluster
from optpart.applications.training.evaluator import Evaluator
from optpart.applications.training.groups import contiguous_groups
from optpart.applications.training.models import MODELS, network
from optpart.applications.training.problem import Choices, StrategyProblem
from optpart.certificates.check_strategies import check

_BATCH = {"transformer": 576, "bert_large": 48, "xlnet_large": 48}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--strategies", type=int, default=10_000)
    parser.add_argument("--groups", type=int, default=20)
    parser.add_argument("--cluster", default="heterog-8")
    options = parser.parse_args()
    named = read(options.cluster)
    cluster, rng = training_cluster(named), np.random.default_rng(1)
    each = -(-options.strategies // len(MODELS))
    print("model            load  average  program  fastest  seconds of the program")
    for name in MODELS:
        graph = network(name).training_graph(figures(named))
        batch = _BATCH.get(name, 192)
        groups = contiguous_groups(graph, batch, options.groups)
        problem = StrategyProblem(graph, cluster, batch, groups)
        lists = [[action.decision for action in row] for row in actions(problem)]
        choices = Choices(problem, lists)
        begin = time.process_time()
        bound = strategy_bound(choices)
        seconds = time.process_time() - begin
        with tempfile.TemporaryDirectory() as folder:
            write_certificate(choices, bound, folder)
            check(str(folder))
        evaluator = Evaluator(problem)
        numbers = [evaluator.actions(row) for row in lists]
        drawn = []
        for _ in range(each):
            row: list[int] = []
            while len(row) < len(numbers):
                length, share = int(rng.integers(1, len(numbers) + 1)), rng.random()
                row += [int(n[int(share * len(n))]) for n in numbers[len(row) : len(row) + length]]
            drawn.append(row)
        outcomes = map(evaluator.outcome, evaluator.many(np.array(drawn, dtype=np.int32)))
        times = [outcome.makespan for outcome in outcomes if outcome.makespan is not None]
        bounds = [load(problem), average_path(problem), bound.value]
        shown = [float(x or 0) / 1e6 for x in (*bounds, min(times))]
        print(f"{name:14}" + "".join(f"{x:9.1f}" for x in shown) + f"{seconds:9.1f}", flush=True)
        if any(x is None or x > min(times) for x in bounds):
            print(f"{name}: a strategy is faster than a bound")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
