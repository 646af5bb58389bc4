"""Blocks without limits of memory: the shortest path over them is the optimum of the graph."""

from dataclasses import replace
from fractions import Fraction
from time import perf_counter

import numpy as np
import pytest

from optpart.exact.enumeration import enumerate_all
from optpart.exact.series import block_path
from optpart.exact.series.dual import Pricing
from optpart.exact.series.problem import Series
from optpart.exact.series.solve import solve_series
from optpart.interop.formats.native import from_dict
from optpart.problem.model import Model
from optpart.solution.result import Budget, Status
from optpart.solution.verifier import verify
from optpart.testing.modules import draw_modules

_BUDGET = Budget(seconds=60)


def drawn(seed, communication):
    instance = draw_modules(seed, vertices=8, devices=3, memory=False)
    return replace(instance, model=Model(communication=communication, send_ops=Fraction(seed % 3)))


@pytest.mark.parametrize("communication", ["sendrecv", "link", "port"])
@pytest.mark.parametrize("seed", range(12))
def test_it_agrees_with_enumeration(communication, seed):
    instance = drawn(seed, communication)
    expected = enumerate_all(instance, budget=_BUDGET)
    result = solve_series(instance, budget=_BUDGET)

    if block_path.applies(Series(instance)):
        assert (result.status, result.makespan) == (expected.status, expected.makespan)
        if result.schedule is not None:
            assert not verify(instance, result.schedule)
    elif expected.status is not Status.INFEASIBLE:
        assert result.lower_bound <= expected.makespan


@pytest.mark.parametrize("seed", range(12))
def test_blocks_close_what_a_poor_relaxation_leaves_open(seed):
    instance = drawn(seed, "delay")
    expected = enumerate_all(instance, budget=_BUDGET)
    series = Series(instance)
    if expected.makespan is None or not block_path.applies(series):
        pytest.skip("another part of the method solves it")
    poor = replace(Pricing(series, 10**6).relax(np.zeros(series.devices), 1, 0.0), bound=0)
    poor.after[:] = 0
    deadline = perf_counter() + 60
    *_, last = block_path.BlockPath(series, poor).run(deadline, _BUDGET, 0)
    assert last.bound == expected.makespan


def test_many_draws_fall_into_blocks():
    fitting = [block_path.applies(Series(drawn(seed, "port"))) for seed in range(30)]
    assert sum(fitting) >= 10


def module(**other):
    """A fork of two vertices between cut vertices, on three devices of which two are alike."""
    return from_dict(
        {
            "format": "optpart-instance/1",
            "vertices": [{"name": name, "ops": 6, "outputs": [2]} for name in "abcdef"],
            "edges": [[*pair, 0] for pair in ("ab", "bc", "bd", "ce", "de", "ef")],
            "devices": [{"name": "x"}, {"name": "y", "speed": 3}, {"name": "z", "speed": 3}],
            "bandwidth": 1,
            "model": {"communication": "port"},
            **other,
        }
    )


def test_limits_of_memory_are_left_to_others():
    assert block_path.applies(Series(module()))
    assert block_path.applies(Series(module(model={"communication": "delay"})))
    limited = [{"name": name, "memory": 20} for name in "xyz"]
    estimate = {"communication": "port", "memory": "estimate"}
    assert not block_path.applies(Series(module(devices=limited, model=estimate)))
    refcount = {"communication": "port", "memory": "refcount"}
    assert not block_path.applies(Series(module(devices=limited, model=refcount)))


def test_a_group_across_a_cut_vertex_joins_blocks():
    spans = [vertices for _, vertices in block_path._spans(Series(module()))]
    assert spans == [(0,), (1,), (2, 3, 4), (5,)]
    spans = [vertices for _, vertices in block_path._spans(Series(module(colocation=[["c", "f"]])))]
    assert spans == [(0,), (1,), (2, 3, 4, 5)]


def test_a_group_that_the_ends_of_its_block_tear_apart_rules_them_out():
    instance = module(colocation=[["b", "c"]])
    result = solve_series(instance, budget=_BUDGET)
    assert result.makespan == enumerate_all(instance, budget=_BUDGET).makespan == result.lower_bound
