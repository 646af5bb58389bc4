"""Do enumeration, the joint model and the strategy program agree on tiny questions?

    python bench/training/agreement.py [--cases 500]

Every case is a random training graph on two devices, with random groups and actions. All
strategies are compiled and each is ordered optimally by a model of its own; the best is the
reference. The joint model must prove the same optimum, or that there is no strategy, and the linear
program must not exceed it. The bench stops at the first case where they differ, and names its seed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from fractions import Fraction

import numpy as np

from optpart.solution.result import Status
from optpart.testing.choices import best_strategy, random_choices
from optpart.training.bounds.choices import Choices
from optpart.training.bounds.exact import joint_optimum
from optpart.training.compiler import Options


def drawn(seed: int) -> Choices:
    rng = np.random.default_rng(seed)
    return random_choices(
        rng,
        layers=int(rng.integers(1, 3)),
        groups=int(rng.integers(1, 5)),
        actions=int(rng.integers(2, 4)),
        options=Options(
            memory="none",
            tick=(Fraction(1), Fraction(1, 3))[int(rng.integers(2))],
            auxiliary=("memory", "free")[int(rng.random() < 0.3)],
        ),
        missing=0.1 if rng.random() < 0.2 else 0,
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=500)
    cases = parser.parse_args().cases
    found: Counter[str] = Counter()
    tight = 0
    begin = time.perf_counter()
    for seed in range(cases):
        choices = drawn(seed)
        best = best_strategy(choices)
        joint = joint_optimum(choices, seconds=60, workers=1)
        found[joint.status] += 1
        wrong = (
            joint.status != Status.INFEASIBLE
            if best is None
            else joint.makespan != best or joint.bound != best or joint.program > best
        )
        if wrong:
            print(f"seed {seed}: enumeration {best}, joint model {joint}")
            return 1
        tight += best is not None and joint.program == best
    listed = ", ".join(f"{count} {status}" for status, count in sorted(found.items()))
    seconds = time.perf_counter() - begin
    print(f"{cases} cases agree: {listed}; the program is tight in {tight}; {seconds:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
