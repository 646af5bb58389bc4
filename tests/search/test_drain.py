"""Searching only the drain phase: what is before it stays, and times remain exact."""

from __future__ import annotations

import numpy as np
import pytest
from layouts import copied, random_layout

from optpart.kernels.compiled import arrays
from optpart.kernels.rng import source
from optpart.problem.cluster import Cluster
from optpart.problem.graph import GraphBuilder
from optpart.problem.instance import Instance
from optpart.search import climb
from optpart.search.climb import Climb, before_drain
from optpart.search.evaluator import Evaluator
from optpart.search.incremental import OUTSIDE, forget, keep, notes, settle, take_back
from optpart.search.moves import MOVES, change
from optpart.search.plan import Layout, empty_plan, links, load, rebuild
from optpart.search.units import release
from optpart.solution.verifier import verify
from optpart.testing.draw import draw_instance

pytestmark = pytest.mark.filterwarnings("ignore:overflow")  # random numbers wrap around


def independent(count: int, devices: int) -> Instance:
    builder = GraphBuilder()
    for v in range(count):
        builder.vertex(str(v), 1)
    return Instance(builder.build(), Cluster.uniform(devices))


def lopsided(instance: Instance, ones: int) -> Layout:
    """Two devices take turns, except that the last ``ones`` vertices are all on the first."""
    device = np.arange(instance.vertices, dtype=np.int32) % 2
    device[instance.vertices - ones :] = 0
    return Layout(device, np.arange(instance.vertices, dtype=np.int32), np.zeros(0, dtype=np.bool_))


@pytest.fixture
def all_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(climb, "_DRAINED", 0)
    monkeypatch.setattr(climb, "_FEWEST", 1)


@pytest.mark.usefixtures("all_are_large")
def test_the_drain_phase_is_twice_what_comes_after_the_devices_begin_to_idle() -> None:
    at = Evaluator(independent(100, 2), "makespan")
    # Vertex 89 is the last on the second device, which idles while the first runs the last 10.
    at.enter(lopsided(at.instance, 10))
    assert before_drain(at.plan) == 100 - 2 * 11


@pytest.mark.usefixtures("all_are_large")
@pytest.mark.parametrize("devices", [1, 2])
def test_without_idle_time_everything_changes(devices: int) -> None:
    at = Evaluator(independent(10, devices), "makespan")
    layout = lopsided(at.instance, 0)
    at.enter(layout._replace(device=layout.device % devices))
    assert before_drain(at.plan) == 0


def test_of_a_small_graph_everything_changes() -> None:
    at = Evaluator(independent(100, 2), "makespan")
    at.enter(lopsided(at.instance, 10))
    assert before_drain(at.plan) == 0


@pytest.mark.parametrize("name", MOVES)
def test_a_move_leaves_the_beginning_or_says_so_and_times_behind_it_are_exact(name: str) -> None:
    tried = 0
    for seed in range(16):
        rng = np.random.default_rng(seed)
        instance = draw_instance(seed, vertices=12, devices=3)
        layout = random_layout(instance, rng)
        if layout is None:
            continue
        a, g, p = arrays(instance), links(instance), empty_plan(instance)
        load(p, layout)
        rebuild(a, g, p)
        s = notes(instance.vertices, len(a.in_source))
        fixed = int(rng.integers(1, instance.vertices))
        s.frame[0] = fixed
        forget(p, s)
        state = source(rng)
        beginning = p.order[:fixed].copy()
        there = p.device[beginning].copy()
        for v in p.order[fixed:].tolist():
            before = copied(p)
            if not change(a, g, p, s, state, MOVES.index(name), v, np.inf):
                continue
            tried += 1
            if s.counts[OUTSIDE]:
                release(a, p, s)
                take_back(p, s)
                assert all(np.array_equal(x, y) for x, y in zip(p, before, strict=True))
                continue
            assert settle(a, g, p, s, np.inf)
            keep(a, g, p, s)
            assert np.array_equal(p.order[:fixed], beginning)
            assert np.array_equal(p.device[beginning], there)
            anew = copied(p)
            rebuild(a, g, anew)
            rest = p.order[fixed:]
            assert np.allclose(p.start, anew.start)
            assert np.allclose(p.tail[rest], anew.tail[rest])
    assert tried or name in ("transfer", "part")


@pytest.mark.usefixtures("all_are_large")
def test_the_drain_phase_is_balanced_and_the_verifier_agrees_on_its_length() -> None:
    instance = independent(100, 2)
    start = lopsided(instance, 10)
    climb = Climb(Evaluator(instance, "makespan"), start, np.random.default_rng(0), timed=False)
    climb.step(0.0)
    schedule = climb.evaluator.schedule(climb.best)
    assert not verify(instance, schedule)
    assert schedule.makespan(instance) == 50
    assert np.array_equal(climb.best.device[:70], start.device[:70])
    assert climb.evaluator.notes.frame[0] == 100 - 2 * 11


@pytest.mark.usefixtures("all_are_large")
def test_for_traffic_everything_changes() -> None:
    instance = independent(100, 2)
    start = lopsided(instance, 10)
    climb = Climb(Evaluator(instance, "traffic"), start, np.random.default_rng(0), timed=False)
    climb.step(0.0)
    assert climb.evaluator.notes.frame[0] == 0
