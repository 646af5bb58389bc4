"""The joint optimum of actions and order."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from optpart.applications.training.bounds.exact import joint_optimum
from optpart.applications.training.bounds.program import strategy_bound
from optpart.applications.training.compiled import Options
from optpart.solution.result import Status
from optpart.solution.verifier import verify
from optpart.testing.choices import best_strategy, compiled_strategies, random_choices, tiny_choices


# 16: two groups read one tensor in slices that take no time; each needs a task of its own.
@pytest.mark.parametrize("seed", range(16))
def test_the_joint_optimum_is_that_of_enumeration(seed):
    choices = tiny_choices(seed)
    best = best_strategy(choices)
    found = joint_optimum(choices, seconds=60, workers=1)
    if best is None:
        assert found.status == Status.INFEASIBLE
        return
    assert found.status == Status.OPTIMAL
    assert found.makespan == found.bound == best
    assert found.program is not None
    assert found.program <= best
    assert not verify(found.compiled.instance, found.schedule)


def test_exact_times_are_optimal_only_if_nothing_was_rounded():
    rng = np.random.default_rng(4)
    choices = random_choices(rng, layers=1, groups=2, options=Options(memory="none", tick=None))
    best = best_strategy(choices)
    found = joint_optimum(choices, seconds=60, workers=1)
    assert found.makespan == best
    assert found.bound <= best
    assert (found.status == Status.OPTIMAL) == (found.bound == found.makespan)


def test_memory_that_changes_with_time_is_verified():
    found = Counter()
    for seed in range(12):
        rng = np.random.default_rng(seed)
        choices = random_choices(rng, layers=2, groups=2, memory=int(rng.integers(100, 900)))
        joint = joint_optimum(choices, seconds=30, workers=1)
        found[joint.status] += 1
        if joint.schedule is not None:
            assert not verify(joint.compiled.instance, joint.schedule)
            assert joint.bound <= joint.makespan
        if joint.status == Status.OPTIMAL:
            assert joint.makespan == joint.bound
    assert found[Status.OPTIMAL]
    assert len(found) > 1


def test_a_given_start_is_used():
    choices = tiny_choices(2)
    chosen, _ = next(compiled_strategies(choices))
    found = joint_optimum(choices, seconds=60, workers=1, starts=[chosen])
    assert found.status == Status.OPTIMAL


def test_more_actions_never_worsen_the_optimum():
    for seed in (1, 5, 9):
        choices = tiny_choices(seed)
        fewer = replace(choices, actions=tuple(row[:1] for row in choices.actions))
        best = joint_optimum(fewer, seconds=60, workers=1)
        if best.makespan is not None:
            more = joint_optimum(choices, seconds=60, workers=1)
            assert more.makespan <= best.makespan
            assert strategy_bound(choices).value <= more.makespan
