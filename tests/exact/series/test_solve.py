"""Series: the dynamic programme agrees with enumeration and CP-SAT, and bounds other models."""

from dataclasses import replace
from fractions import Fraction

import pytest

import optpart as op
from optpart.base.errors import UnsupportedError
from optpart.exact.enumeration import enumerate_all
from optpart.exact.series.solve import solve_series
from optpart.interop.formats.native import from_dict
from optpart.problem.model import Model
from optpart.problem.rational import RationalArray
from optpart.solution.goal import Goal
from optpart.solution.result import Budget, Status
from optpart.solution.termination import Termination
from optpart.testing.draw import draw_instance
from optpart.testing.modules import draw_modules

_BUDGET = Budget(seconds=60)

_TWO_DEVICES = {
    "format": "optpart-instance/1",
    "devices": [{"name": "d0", "speed": 1}, {"name": "d1", "speed": 1}],
    "bandwidth": [[None, 1], [1, None]],
}


@pytest.mark.parametrize("seed", range(20))
def test_it_agrees_with_enumeration_on_modules_in_series(seed):
    instance = draw_modules(seed)
    expected = enumerate_all(instance, budget=_BUDGET)
    result = solve_series(instance, budget=_BUDGET)

    assert (result.status, result.makespan) == (expected.status, expected.makespan)
    assert result.termination is Termination.PROVEN


@pytest.mark.parametrize("seed", range(12))
def test_it_agrees_with_enumeration_on_graphs_of_any_shape(seed):
    instance = draw_instance(seed, memory="estimate" if seed % 2 else "none", vertices=(1, 6))
    expected = enumerate_all(instance, budget=_BUDGET)
    result = solve_series(instance, budget=_BUDGET)

    if result.termination is Termination.ROUNDING:
        assert result.lower_bound <= expected.makespan <= result.makespan
    else:
        assert (result.status, result.makespan) == (expected.status, expected.makespan)


@pytest.mark.parametrize("seed", range(12))
def test_it_agrees_with_cpsat_on_larger_modules(seed):
    instance = draw_modules(1000 + seed, vertices=16)
    expected = op.solve(instance, method="cpsat", seconds=60)
    result = solve_series(instance, budget=_BUDGET)

    assert (result.status, result.makespan) == (expected.status, expected.makespan)


@pytest.mark.parametrize("communication", ["sendrecv", "link", "port"])
@pytest.mark.parametrize("seed", range(10))
def test_where_transfers_take_turns_it_bounds_the_optimum(communication, seed):
    instance = draw_modules(2000 + seed, vertices=6, devices=2)
    model = replace(instance.model, communication=communication, send_ops=Fraction(1))
    instance = replace(instance, model=model)
    expected = enumerate_all(instance, budget=_BUDGET)
    result = solve_series(instance, budget=_BUDGET)

    if expected.status is Status.INFEASIBLE:
        assert result.status in (Status.INFEASIBLE, Status.UNKNOWN)
    else:
        assert result.lower_bound <= expected.makespan
        assert result.makespan is None or result.makespan >= expected.makespan


@pytest.mark.parametrize("memory", ["edges", "refcount"])
@pytest.mark.parametrize("seed", range(10))
def test_where_memory_depends_on_time_it_bounds_the_optimum(memory, seed):
    instance = draw_modules(3000 + seed, vertices=6, devices=2)
    instance = replace(instance, model=Model(memory=memory))
    expected = enumerate_all(instance, budget=_BUDGET)
    result = solve_series(instance, budget=_BUDGET)

    if expected.status is Status.INFEASIBLE:
        assert result.status in (Status.INFEASIBLE, Status.UNKNOWN)
    else:
        assert result.lower_bound <= expected.makespan
        assert result.makespan is None or result.makespan >= expected.makespan


@pytest.mark.parametrize("seed", range(12))
def test_a_given_placement_is_kept(seed):
    instance = draw_modules(4000 + seed, vertices=7)
    allowed = [d for d in range(instance.devices) if instance.vertex_allowed[0, d]]
    goal = Goal(placement={0: allowed[-1]})
    expected = enumerate_all(instance, budget=_BUDGET, goal=goal)
    result = solve_series(instance, budget=_BUDGET, goal=goal)

    assert (result.status, result.makespan) == (expected.status, expected.makespan)
    if result.schedule is not None:
        assert result.schedule.placement[0] == allowed[-1]


@pytest.mark.parametrize(
    ("name", "makespan"),
    [
        ("squeezenet-server-free", 371300),
        ("squeezenet-server-tight", 383541),
        ("llama-3-8b-decode-edge-tight", 559631868),
        ("llama-3-8b-decode-workstation-tight", 137140918),
        ("gpt2-xl-decode-workstation-tight", 59485310),
    ],
)
def test_it_proves_real_models(name, makespan):
    result = op.solve(op.load(name), method="series", seconds=60)

    assert (result.status, result.makespan) == (Status.OPTIMAL, makespan)


def _later(times, delay):
    return RationalArray.from_fractions(time + delay for time in times)


def test_a_start_between_two_ticks_does_not_hide_the_optimum():
    """The start is the optimum, begun half a tick late."""
    instance, half = op.load("heft-10"), Fraction(1, 2)
    best = solve_series(instance, budget=_BUDGET).schedule
    moves = best.transfers
    late = replace(
        best,
        start=_later(best.start, half),
        transfers=replace(moves, start=_later(moves.start, half), end=_later(moves.end, half)),
    )
    result = solve_series(instance, budget=_BUDGET, start=late)

    assert late.makespan(instance) == Fraction(147, 2)
    assert (result.status, result.makespan) == (Status.OPTIMAL, 73)


def test_an_empty_graph_takes_no_time():
    instance = from_dict({**_TWO_DEVICES, "vertices": [], "edges": []})

    assert solve_series(instance, budget=_BUDGET).makespan == 0


def test_a_graph_of_one_wide_part_is_not_supported():
    vertices = [{"name": f"v{i}", "ops": 1} for i in range(20)]
    instance = from_dict({**_TWO_DEVICES, "vertices": vertices, "edges": []})
    result = solve_series(instance, budget=_BUDGET)

    assert result.termination is Termination.UNSUPPORTED


@pytest.mark.parametrize(
    "goal",
    [
        Goal("traffic"),
        Goal("lexicographic"),
        Goal("bottleneck"),
        Goal(contiguous=True),
        Goal(device_order=(0,)),
        Goal(order=((0, 1),)),
        Goal(makespan=Fraction(10)),
        Goal(traffic=Fraction(10)),
    ],
)
def test_it_refuses_what_it_would_have_to_ignore(goal):
    with pytest.raises(UnsupportedError):
        solve_series(draw_modules(1), goal=goal)
