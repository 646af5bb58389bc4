"""Searching in frames: outside nothing changes, and lengths remain exact."""

from __future__ import annotations

import numpy as np
import pytest
from layouts import copied, differing, random_layout

from optpart.kernels.compiled import Arrays, arrays
from optpart.kernels.rng import source
from optpart.search import climb as climbing
from optpart.search.annealer import critical_path, longest_around, on_longest
from optpart.search.climb import Climb
from optpart.search.evaluator import Evaluator
from optpart.search.incremental import OUTSIDE, Notes, forget, keep, notes, settle, take_back
from optpart.search.moves import MOVES, change
from optpart.search.plan import Links, Plan, empty_plan, links, load, rebuild
from optpart.search.units import release
from optpart.solution.goal import Objective
from optpart.solution.verifier import verify
from optpart.testing.draw import draw_instance

VERTICES = 12

pytestmark = pytest.mark.filterwarnings("ignore:overflow")  # random numbers wrap around


def framed(seed: int) -> tuple[Arrays, Links, Plan, Notes, np.random.Generator] | None:
    """A random plan and a random frame that ends before it does."""
    rng = np.random.default_rng(seed)
    instance = draw_instance(seed, vertices=VERTICES, devices=3)
    layout = random_layout(instance, rng)
    if layout is None:
        return None
    a, g, p = arrays(instance), links(instance), empty_plan(instance)
    load(p, layout)
    rebuild(a, g, p)
    s = notes(instance.vertices, len(a.in_source))
    low, high = sorted(rng.choice(len(p.order), size=2, replace=False).tolist())
    s.frame[:] = low, high
    forget(p, s)
    return a, g, p, s, rng


def length(a: Arrays, g: Links, p: Plan, s: Notes) -> float:
    """The length of the schedule, seen from within the frame."""
    v = on_longest(p, s)
    around = longest_around(a, g, p, s, np.zeros(len(p.last)))
    return max(around, float(p.end[v] + p.tail[v]))


def anew(a: Arrays, g: Links, p: Plan) -> Plan:
    built = copied(p)
    rebuild(a, g, built)
    return built


@pytest.mark.parametrize("name", MOVES)
def test_kept_moves_lead_to_the_length_and_times_of_the_plan_built_anew(name: str) -> None:
    made = 0
    for seed in range(25):
        case = framed(seed)
        if case is None:
            continue
        a, g, p, s, rng = case
        state = source(rng)
        low, high = s.frame.tolist()
        assert length(a, g, p, s) == pytest.approx(anew(a, g, p).end.max())
        around = longest_around(a, g, p, s, np.zeros(len(p.last)))
        for v in p.order[low:high].tolist():
            if not change(a, g, p, s, state, MOVES.index(name), v, np.inf):
                continue
            if s.counts[OUTSIDE]:
                release(a, p, s)
                take_back(p, s)
                continue
            made += 1
            assert settle(a, g, p, s, np.inf)
            keep(a, g, p, s)
            built = anew(a, g, p)
            # What avoids the frame stays as long as it was.
            assert longest_around(a, g, p, s, np.zeros(len(p.last))) == pytest.approx(around)
            assert length(a, g, p, s) == pytest.approx(built.end.max())
            assert np.allclose(p.end[p.order[:high]], built.end[p.order[:high]])
            assert np.allclose(p.tail[p.order[low:]], built.tail[p.order[low:]])
    assert made or name in ("transfer", "part")


def test_a_move_is_refused_only_if_the_schedule_becomes_too_long() -> None:
    refused = accepted = 0
    for seed in range(150):
        case = framed(seed)
        if case is None:
            continue
        a, g, p, s, rng = case
        state = source(rng)
        for _ in range(20):
            before = copied(p)
            v = int(rng.choice(p.order[s.frame[0] : s.frame[1]]))
            kind = int(rng.integers(len(MOVES)))
            if not change(a, g, p, s, state, kind, v, np.inf):
                continue
            if not s.counts[OUTSIDE]:
                # The annealer accepts every schedule that is no longer than the last one.
                limit = float(before.end.max()) * (1.0 + 0.3 * rng.random())
                fits = settle(a, g, p, s, limit)
                assert fits == (anew(a, g, p).end.max() <= limit)
                accepted += fits
                refused += not fits
            release(a, p, s)
            take_back(p, s)
            assert not differing(p, before)
    assert refused > 50
    assert accepted > 50


def test_a_move_that_touches_anything_outside_the_frame_says_so() -> None:
    seen = 0
    for seed in range(60):
        case = framed(seed)
        if case is None:
            continue
        a, g, p, s, rng = case
        state = source(rng)
        outside = np.r_[: s.frame[0], s.frame[1] : len(p.order)]
        for kind in range(len(MOVES)):
            for v in p.order.tolist():
                before = copied(p)
                if change(a, g, p, s, state, kind, v, np.inf):
                    moved = (p.order != before.order) | (
                        p.device[before.order] != before.device[before.order]
                    )
                    assert s.counts[OUTSIDE] or not moved[outside].any()
                    seen += int(s.counts[OUTSIDE])
                    release(a, p, s)
                    take_back(p, s)
                assert not differing(p, before)
    assert seen > 20


def test_a_critical_path_of_a_frame_is_a_stretch_of_a_longest_path() -> None:
    for seed in range(60):
        case = framed(seed)
        if case is None:
            continue
        a, g, p, s, rng = case
        path = np.empty(len(p.order), np.int32)
        found = path[: critical_path(a, g, p, s, path, source(rng))]
        places = np.sort(p.position[found])
        assert len(set(found.tolist())) == len(found)
        assert s.frame[0] <= places[0]
        assert places[-1] < s.frame[1]
        through = (p.end + p.tail)[found]
        assert through == pytest.approx(through[0])


@pytest.fixture
def all_are_framed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(climbing, "_FRAMED", 0)
    monkeypatch.setattr(climbing, "_NARROWEST", 5)
    monkeypatch.setattr(climbing, "_WIDEST", 15)


def climb(objective: Objective = "makespan", seed: int = 0) -> Climb:
    instance = draw_instance(45, vertices=25, devices=3)
    layout = random_layout(instance, np.random.default_rng(seed))
    assert layout is not None
    return Climb(Evaluator(instance, objective), layout, np.random.default_rng(seed), timed=False)


@pytest.mark.usefixtures("all_are_framed")
def test_annealing_in_frames_improves_and_the_verifier_agrees_on_every_best() -> None:
    for seed in range(5):
        at = climb(seed=seed)
        first, better, frames = at.value, 0, set()
        for step in range(30):
            if at.step(step / 30):
                better += 1
                schedule = at.evaluator.schedule(at.best)
                assert not verify(at.evaluator.instance, schedule)
                makespan = float(schedule.makespan(at.evaluator.instance))
                assert at.value[1] / at.evaluator.arrays.scale == pytest.approx(makespan)
            frames.add(tuple(at.evaluator.notes.frame.tolist()))
            # No step ends with a plan worse than the best.
            assert at.evaluator.value()[1] <= at.value[1] * (1.0 + 1e-12)
        assert better > 1
        assert at.value < first
        assert len(frames) > 10
        assert all(0 <= low < high <= 25 and high - low <= 15 for low, high in frames)


@pytest.mark.usefixtures("all_are_framed")
def test_after_a_frame_the_search_goes_on_from_what_others_have_found() -> None:
    at, other = climb(seed=0), climb(seed=1)
    for step in range(30):
        other.step(step / 30)
    at.step(0.0)
    assert other.value < at.value
    at.offer(other.best, other.value)
    at.step(0.5)
    assert at.evaluator.value()[1] <= other.value[1] * (1.0 + 1e-12)


@pytest.mark.usefixtures("all_are_framed")
def test_traffic_is_not_searched_in_frames() -> None:
    at = climb("traffic")
    at.step(0.0)
    assert at.evaluator.notes.frame.tolist() == [0, 25]
