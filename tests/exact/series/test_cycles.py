"""Paths of cycles: the small model has the optimum of the path, whatever costs and memory."""

from itertools import pairwise, permutations, product

import numpy as np
import pytest

from optpart.exact.enumeration import enumerate_all
from optpart.exact.messages import Limits
from optpart.exact.series import cycles
from optpart.exact.series.cycles import Cycle, Kind, Path, path_of_cycles, repeats, solve
from optpart.exact.series.problem import Series
from optpart.exact.series.solve import solve_series
from optpart.interop.formats.native import from_dict
from optpart.solution.result import Budget
from optpart.testing.cycles import draw_caches, draw_cycles, draw_forks

_BUDGET = Budget(seconds=60)
_LIMITS = Limits(60, 1, 0, None)


def value(path: Path, devices) -> int | None:
    """Time the vertices of a path on some devices; nothing if they cannot run there."""
    row = [
        (cycle.kinds[i % len(cycle.kinds)], cycle.after if i + 1 == cycle.length else None)
        for cycle in path.cycles
        for i in range(cycle.length)
    ]
    held, total = dict.fromkeys(range(9), 0), 0
    for (kind, _), d in zip(row, devices, strict=True):
        if d not in kind.time:
            return None
        held[d] += kind.need
        total += kind.time[d]
    for (kind, after), (d, e) in zip(row, pairwise(devices), strict=False):
        crossing = 0 if d == e else (kind.cross if after is None else after).get((d, e))
        if crossing is None:
            return None
        total += crossing
    for (kind, _), d in zip(row, devices, strict=True):
        if held[d] + kind.beside.get(d, 0) > path.capacity.get(d, np.inf):
            return None
    return total


def solved(path: Path) -> int | None:
    """The last bound, which a placement must reach."""
    bound, devices = None, None
    for found in solve(path, _LIMITS):
        if found.impossible:
            return None
        bound = found.bound if found.bound is not None else bound
        devices = found.devices or devices
    assert value(path, devices) == bound
    return bound


@pytest.mark.parametrize("seed", range(24))
def test_the_model_has_the_optimum_of_all_placements(seed):
    rng = np.random.default_rng(seed)
    k, alike = int(rng.integers(2, 4)), rng.random() < 0.3

    def crossings():
        """Of any length, some missing; equal between devices that are alike."""
        equal = int(rng.integers(9))
        return {
            pair: equal if alike else int(rng.integers(9))
            for pair in permutations(range(k), 2)
            if alike or rng.random() < 0.9
        }

    def times():
        equal = int(rng.integers(6))
        return {d: equal if alike else int(rng.integers(6)) for d in range(k)}

    def beside():
        return {d: 1 if alike else int(rng.integers(3)) for d in range(k)}

    cycles, left = [], 7
    while left:
        length = int(rng.integers(1, left + 1))
        kinds = [
            Kind(times(), int(rng.integers(1, 4)), beside(), crossings())
            for _ in range(int(rng.integers(1, min(length, 3) + 1)))
        ]
        cycles.append(Cycle(length, kinds, crossings()))
        left -= length
    needs = [c.kinds[i % len(c.kinds)].need for c in cycles for i in range(c.length)]
    rooms = {d: int(sum(needs) * rng.uniform(0.2, 0.8)) for d in range(k) if rng.random() < 0.9}
    if alike:
        rooms = dict.fromkeys(range(k), int(sum(needs) * 0.4))
    path = Path(cycles, rooms, [], [])

    values = [value(path, devices) for devices in product(range(k), repeat=7)]
    assert solved(path) == min((v for v in values if v is not None), default=None)


@pytest.mark.parametrize(("cross", "expected"), [({(0, 1): 5}, 5), ({}, None)])
def test_steps_that_do_not_hang_together_are_no_placement(cross, expected):
    kinds = [Kind({0: 0, 1: 0}, 1, {}, {}), Kind({0: 0, 1: 0}, 1, {}, cross)]
    assert solved(Path([Cycle(8, kinds, {})], {0: 4, 1: 4}, [], [])) == expected


def test_devices_that_differ_in_what_is_held_besides_cannot_be_exchanged():
    kind = Kind({0: 0, 1: 0}, 1, {0: 1, 1: 0}, {(0, 1): 1, (1, 0): 1})
    assert solved(Path([Cycle(9, [kind], {})], {0: 5, 1: 5}, [], [])) == 1


@pytest.mark.parametrize("seed", range(16))
def test_series_agrees_with_enumeration_on_paths_that_repeat(seed):
    instance = draw_cycles(seed)
    expected = enumerate_all(instance, budget=_BUDGET)
    result = solve_series(instance, budget=_BUDGET)

    assert (result.status, result.makespan) == (expected.status, expected.makespan)


def test_most_draws_that_repeat_are_solved_as_cycles():
    solved_so = [path_of_cycles(Series(draw_cycles(seed))) is not None for seed in range(200)]
    assert 30 <= sum(solved_so) <= 170


@pytest.mark.parametrize(
    "instance", [*map(draw_forks, range(12)), *map(draw_caches, range(12))], ids=lambda x: x.name
)
def test_series_agrees_with_enumeration_on_paths_with_forks(instance, monkeypatch):
    monkeypatch.setattr(cycles, "_LEAST_LENGTH", 1)
    expected = enumerate_all(instance, budget=_BUDGET)
    result = solve_series(instance, budget=_BUDGET)

    if instance.model.memory != "refcount":
        assert (result.status, result.makespan) == (expected.status, expected.makespan)
    assert result.status in (expected.status, "FEASIBLE", "UNKNOWN")
    assert expected.makespan is None or result.lower_bound <= expected.makespan
    path, last, grid = path_of_cycles(Series(instance)), None, Series(instance).grid
    for found in solve(path, _LIMITS):
        assert not (found.impossible and expected.makespan)
        last = found.bound if found.bound is not None else last
    if expected.makespan is not None:
        assert grid.time(last) <= expected.makespan
    if instance.model.memory != "refcount":  # which the model of forks counts in part
        assert (last is None) == (expected.makespan is None)
        assert last is None or grid.time(last) == expected.makespan


def test_only_choices_of_a_fork_that_none_beats_are_steps():
    # A vertex takes 4 on one device and 5 on the other, and 1 of memory; crossing takes 1.
    vertices = [{"name": f"v{v}", "ops": 1, "memory": 1, "outputs": [1]} for v in range(10)]
    edges = [[f"v{3 * i + u}", f"v{3 * i + v}", 0] for i in range(3)
             for u, v in ((0, 1), (0, 2), (0, 3), (1, 3), (2, 3))]  # fmt: skip
    devices = [{"name": "a", "memory": 6}, {"name": "b"}]
    model = {"memory": "refcount", "release": "start"}
    instance = path(10, vertices=vertices, edges=edges, devices=devices,
                    durations=[[4, 5]] * 10, model=model)  # fmt: skip
    (cycle,) = path_of_cycles(Series(instance)).cycles
    ways = cycle.kinds[0].fork.ways
    # On a alone, on both at once, and on b alone; from b to b, both on b or one beside it.
    assert [(way.ticks, way.devices) for way in ways[0, 0]] == [(7, (0, 1)), (12, (1, 1))]
    assert [(way.ticks, way.devices) for way in ways[1, 1]] == [(6, (0, 1)), (10, (1, 1))]
    assert repeats(instance)


def test_a_cache_without_memory_may_have_no_room_for_what_jumps_over_it(monkeypatch):
    monkeypatch.setattr(cycles, "_LEAST_LENGTH", 1)
    outputs = [[1, 5], [1], []]
    instance = path(
        3,
        vertices=[{"name": f"b{v}", "ops": 1, "outputs": x} for v, x in enumerate(outputs)],
        edges=[["b0", "b1", 0], ["b0", "b2", 1], ["b1", "b2", 0]],
        colocation=[["b0", "b2"]],
        durations=[[1, None, None], [1, 1, None], [1, None, None]],
        devices=[{"name": "a", "memory": 6}, {"name": "b"}, {"name": "c"}],
        model={"memory": "refcount"},
    )
    # On a, the vertex between would hold 1 and 1 beside 5; crossing to b and back takes 2.
    assert solve_series(instance, budget=_BUDGET).makespan == 5
    *_, last = solve(path_of_cycles(Series(instance)), _LIMITS)
    assert (last.bound, last.impossible) == (5, False)


def path(blocks, *, bandwidth=1, **other):
    names = [f"b{i}" for i in range(blocks)]
    return from_dict(
        {
            "format": "optpart-instance/1",
            "vertices": [{"name": name, "ops": 2, "memory": 1, "outputs": [1]} for name in names],
            "edges": [[u, v, 0] for u, v in pairwise(names)],
            "devices": [{"name": "a"}, {"name": "b"}, {"name": "c"}],
            "bandwidth": bandwidth,
            **other,
        }
    )


def cycles_of(instance):
    """Length and number of kinds of each cycle."""
    found = path_of_cycles(Series(instance))
    return found and [(cycle.length, len(cycle.kinds)) for cycle in found.cycles]


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        ("111111", [(6, 1)]),
        ("1212121", [(7, 2)]),
        ("31212121212124", [(1, 1), (12, 2), (1, 1)]),
        ("112112112112", [(12, 3)]),
        ("111111222222", [(6, 1), (6, 1)]),
        ("123456789", None),
    ],
)
def test_vertices_that_take_turns_are_a_cycle(kinds, expected):
    vertices = [{"name": f"b{i}", "ops": int(kind), "outputs": [1]} for i, kind in enumerate(kinds)]
    assert cycles_of(path(len(kinds), vertices=vertices)) == expected


def test_a_graph_that_branches_does_not_repeat():
    instance = path(6)
    assert repeats(instance)
    names = list(instance.graph.names)
    edges = [[u, v, 0] for u, v in pairwise(names)]
    jumps = [["b0", "b2", 0], ["b0", "b3", 0]]  # the first makes a fork of one, with the edge to it
    assert not repeats(path(6, edges=[*edges, *jumps]))


def test_colocated_vertices_are_no_part_of_a_run():
    instance = path(9, colocation=[["b0", "b8"]])
    assert cycles_of(instance) == [(1, 1), (7, 1), (1, 1)]
    assert path_of_cycles(Series(instance)).same == [(0, 2)]
