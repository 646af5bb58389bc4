"""Forward passes: bounds stay below the optimum where most labels are given up."""

import numpy as np
import pytest

import optpart as op
from optpart.base import clock
from optpart.exact.series import join, solve
from optpart.exact.series.dual import Pricing
from optpart.exact.series.forward import Forward
from optpart.exact.series.kernel import memory_cost
from optpart.exact.series.problem import Series
from optpart.exact.series.solve import solve_series
from optpart.interop.formats.native import from_dict
from optpart.solution.result import Budget


def crowded(seed):
    """Draw four modules on two pairs of identical devices, or on a pair and one more, all full."""
    rng = np.random.default_rng(seed)
    vertices, edges = [], []

    def add(name, before):
        ops, memory, size = rng.integers(1, [30, 12, 10]).tolist()
        vertices.append({"name": name, "ops": ops, "memory": memory, "outputs": [size]})
        edges.extend([u, name, 0] for u in before)
        return [name]

    last = []
    for i in range(4):
        last = add(f"a{i}", last)
        if rng.random() < 0.7:
            branches = [add(f"b{i}.{b}", last)[0] for b in range(rng.integers(2, 4))]
            last = add(f"c{i}", branches)
    size = {v["name"]: v["outputs"][0] for v in vertices}
    need = sum(v["memory"] + size[v["name"]] for v in vertices) + sum(size[u] for u, _, _ in edges)
    number = int(rng.integers(3, 5))
    limits = [int(need * rng.uniform(1, 1.5) / number) for _ in range(2)]
    return from_dict(
        {
            "format": "optpart-instance/1",
            "vertices": vertices,
            "edges": edges,
            "devices": [
                {"name": f"d{d}", "speed": 2 - d // 2, "memory": limits[d // 2]}
                for d in range(number)
            ],
            "bandwidth": int(rng.integers(1, 4)),
            "model": {"communication": "delay", "memory": "estimate"},
        }
    )


@pytest.fixture
def narrow(monkeypatch):
    """Let passes keep few labels; return how many relaxations were added where they crowd."""
    for module, name, value in (
        (solve, "_BEAM", 1),
        (solve, "_NEAR", 0.0),
        (solve, "_MORE", 2),
        (solve, "_POOLED", 1),
        (solve, "_MOST_POOLED", 1),
        (join, "_MADE_PER_LABEL", 4),
        (join, "_LEAST_MADE", 4),
    ):
        monkeypatch.setattr(module, name, value)
    added = []
    sharpen = Forward.sharpen

    def listening(self, deadline):
        before = len(self.duals)
        sharpen(self, deadline)
        added.extend(self.duals[before:])

    monkeypatch.setattr(Forward, "sharpen", listening)
    return added


@pytest.mark.parametrize("seed", range(6))
def test_passes_that_merge_labels_prove_bounds_up_to_the_optimum(seed):
    instance = crowded(seed)
    optimum = op.solve(instance, method="cpsat", seconds=60).makespan
    series = Series(instance, 2 * optimum)
    most, deadline = series.grid.floor(optimum), clock.now() + 60
    pricing = Pricing(series, 2 * most)
    forward = Forward(pricing, list(pricing.run(deadline)))
    bounds = []
    for beam, upper in ((1, 2 * most), (3, 2 * most), (10, most + 9), (10_000, most + 1)):
        found = forward.run(upper, beam, deadline, merging=True)
        bounds.append(found.bound)
        if found.sequence:
            used = np.zeros(series.devices, dtype=np.int64)
            for v, d in found.sequence:
                used[d] += series.charge[v]
            assert (used <= series.capacity).all()

    assert max(bounds) == bounds[-1] == most
    assert bounds[0] < most


@pytest.mark.parametrize("seed", range(4))
def test_threads_change_nothing(seed):
    instance = crowded(seed)
    one, two = (solve_series(instance, budget=Budget(60, workers)) for workers in (1, 2))

    assert one.schedule.placement.tolist() == two.schedule.placement.tolist()
    assert list(one.schedule.start) == list(two.schedule.start)


def completion(dual, instance, result):
    """Return the bounds that a relaxation gives along a schedule, at each cut that it has."""
    series, schedule = dual.series, result.schedule
    device = np.asarray(schedule.placement)
    taken = np.zeros(series.devices, dtype=np.int64)
    for i, part in enumerate(series.parts):
        if i > dual.begin or i == dual.begin > 0:
            v = series.cut(i)
            end = schedule.start[v] + instance.duration(v, device[v])
            paid = memory_cost(dual.price, dual.shift, series.capacity, taken)
            yield series.grid.floor(end) + int(dual.after[i, device[v]]) + int(paid)
        np.add.at(taken, device[list(part.vertices)], series.charge[list(part.vertices)])


def test_prices_for_crowded_cuts_give_bounds_below_the_optimum(narrow):
    for seed in range(6):
        instance = crowded(seed)
        expected = op.solve(instance, method="cpsat", seconds=60)
        narrow.clear()
        found = solve_series(instance, budget=Budget(seconds=60))
        assert (found.status, found.makespan) == (expected.status, expected.makespan), seed
        assert any(dual.begin for dual in narrow)
        assert any(dual.price[0] != dual.price[1] for dual in narrow)
        for dual in narrow:
            most = dual.series.grid.floor(expected.makespan)
            assert max(completion(dual, instance, expected)) <= most
