"""Do enumeration, the joint model and the strategy programs agree on tiny questions?

    python bench/training/agreement.py [--cases 500]

Every case is a random training graph on two devices, with random groups and actions. All
strategies are compiled and each is ordered optimally by a model of its own; the best is the
reference. The joint model must prove the same optimum, or that there is no strategy. The integer
program must not exceed it, nor the linear program the integer one. The bench stops at the first
case where they differ, and names its seed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from optpart.applications.training.bounds.exact import joint_optimum
from optpart.applications.training.bounds.milp import integer_bound
from optpart.applications.training.bounds.program import strategy_bound
from optpart.solution.result import Status
from optpart.testing.choices import best_strategy, tiny_choices


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=500)
    cases = parser.parse_args().cases
    found: Counter[str] = Counter()
    tight: Counter[str] = Counter()
    begin = time.perf_counter()
    for seed in range(cases):
        choices = tiny_choices(seed)
        best = best_strategy(choices)
        joint = joint_optimum(choices, seconds=60, workers=1)
        found[joint.status] += 1
        linear = strategy_bound(choices)
        integer = integer_bound(choices, linear)
        if best is None:
            wrong = joint.status != Status.INFEASIBLE
        elif linear.value is None or integer.value is None:
            wrong = True
        else:
            wrong = joint.makespan != best or joint.bound != best
            wrong |= not linear.value <= integer.value <= best
        if wrong:
            print(f"seed {seed}: enumeration {best}, joint model {joint}, {integer}, {linear}")
            return 1
        if best is not None:
            tight["linear"] += linear.value == best
            tight["integer"] += integer.value == best
    listed = ", ".join(f"{count} {status}" for status, count in sorted(found.items()))
    seconds = time.perf_counter() - begin
    print(f"{cases} cases agree: {listed}; {seconds:.0f} s")
    print(f"equal to the optimum: linear program {tight['linear']}, integer {tight['integer']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
