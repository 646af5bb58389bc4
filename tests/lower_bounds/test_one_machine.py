"""Heads and tails by what must share a device; times are read back from ticks."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from optpart import Cluster, Device, GraphBuilder, Instance, Model
from optpart.interop.formats.detect import read_instance
from optpart.interop.generate.cluster import drawn_cluster
from optpart.interop.generate.layered import layered
from optpart.kernels import ticks
from optpart.kernels.ticks import Grid
from optpart.lower_bounds.one_machine import Sharpening, must_run_on, one_machine_bound, sharpened
from optpart.lower_bounds.windows import NEVER, Windows, windows
from optpart.problem.model import Communication
from optpart.solution.schedule import retime
from optpart.testing.brute_force import optimum
from optpart.testing.draw import random_instance

SHARED = Path(__file__).parents[3] / "shared" / "instances"


def sharp(instance: Instance, limit: int | None = None) -> tuple[Grid, Windows]:
    grid = Grid.of(instance)
    return grid, sharpened(instance, grid, windows(instance, grid, limit), limit)


def head(instance: Instance, name: str, device: int = 0) -> Fraction | None:
    grid, window = sharp(instance)
    value = int(window.head[instance.graph.names.index(name), device])
    return None if value >= NEVER else grid.time(value)


def tail(instance: Instance, name: str, device: int = 0) -> Fraction | None:
    grid, window = sharp(instance)
    value = int(window.tail[instance.graph.names.index(name), device])
    return None if value >= NEVER else grid.time(value)


def fan(size: int = 10, *, inwards: bool = True, model: Model | None = None) -> Instance:
    """Three vertices of 2 before, or after, one of 1; bandwidth 1, two equal devices."""
    builder = GraphBuilder().vertex("v", 1)
    for name in "abc":
        builder.vertex(name, 2)
        source, target = (name, "v") if inwards else ("v", name)
        builder.edge(source, target, size=size)
    return Instance(builder.build(), Cluster.uniform(2, bandwidth=1), model or Model())


class TestHeads:
    def test_what_cannot_arrive_in_time_takes_turns(self) -> None:
        """From elsewhere one arrives at 12; on one device all three end at 6."""
        assert head(fan(), "v") == 6

    def test_what_can_arrive_in_time_may_run_elsewhere(self) -> None:
        """From elsewhere one arrives at 5: two here and one there."""
        assert head(fan(3), "v") == 5

    @pytest.mark.parametrize("communication", ["delay", "sendrecv", "link", "port"])
    def test_whatever_queues_besides(self, communication: Communication) -> None:
        assert head(fan(model=Model(communication)), "v") == 6

    def test_a_send_makes_elsewhere_farther(self) -> None:
        """2 + 1 + 2."""
        assert head(fan(2), "v") == 4
        assert head(fan(2, model=Model("sendrecv", send_ops=Fraction(1))), "v") == 5

    def test_ancestors_take_turns_too(self) -> None:
        """Two chains of two: the direct predecessors alone would make 3."""
        builder = GraphBuilder().vertex("v", 1)
        for i in "ab":
            builder.vertex(f"{i}0", 1).vertex(f"{i}1", 1)
            builder.edge(f"{i}0", f"{i}1", size=10).edge(f"{i}1", "v", size=10)
        assert head(Instance(builder.build(), Cluster.uniform(2, bandwidth=1)), "v") == 4

    def test_a_path_home_over_another_device_is_seen(self) -> None:
        """a is fast elsewhere, but is brought back only over b, which is slow there."""
        builder = GraphBuilder().vertex("a").vertex("b").vertex("v")
        builder.edge("a", "b", size=9).edge("b", "v", size=9)
        rows = [[5, 1], [1, 20], [1, 1]]
        instance = Instance(builder.build(), Cluster.uniform(2, bandwidth=3), durations=rows)
        assert head(instance, "v") == 5

    def test_colocated_ancestors_are_here(self) -> None:
        builder = GraphBuilder().vertex("a", 5).vertex("b", 5).vertex("v", 1)
        builder.edge("a", "v", None).edge("b", "v", None)
        assert head(Instance(builder.build(), Cluster.uniform(2)), "v") == 5
        builder.colocate("a", "b", "v")
        assert head(Instance(builder.build(), Cluster.uniform(2)), "v") == 10

    def test_unlike_devices_count_by_themselves(self) -> None:
        """The slow device alone takes 6; to the fast one nothing comes in time."""
        instance = Instance(fan().graph, Cluster.of([Device("d0"), Device("d1", 2)], bandwidth=1))
        assert [head(instance, "v", d) for d in (0, 1)] == [6, 3]


class TestTails:
    def test_what_must_follow_takes_turns(self) -> None:
        assert tail(fan(inwards=False), "v") == 6

    def test_what_can_be_sent_away_does_not(self) -> None:
        assert tail(fan(3, inwards=False), "v") == 5

    def test_a_send_counts_on_the_sender(self) -> None:
        model = Model("sendrecv", send_ops=Fraction(1))
        assert tail(fan(2, inwards=False, model=model), "v") == 5

    def test_latencies_have_a_direction(self) -> None:
        """v is on d0; leaving it costs nothing, coming back would."""
        graph = fan(0, inwards=False).graph
        out = Cluster.of([Device("d0"), Device("d1")], latency=[[0, 0], [9, 0]])
        assert tail(Instance(graph, out), "v", 0) == 2
        assert tail(Instance(graph, out), "v", 1) == 6


class TestBound:
    def test_a_unit_takes_turns_with_itself(self) -> None:
        graph = GraphBuilder().vertex("a", 5).vertex("b", 4).colocate("a", "b").build()
        assert one_machine_bound(Instance(graph, Cluster.uniform(2))) == 9

    def test_no_device_left_is_infeasible(self) -> None:
        graph = GraphBuilder().vertex("a", 6, devices=["d0"]).vertex("b", 4, devices=["d1"])
        instance = Instance(graph.edge("a", "b", None).build(), Cluster.uniform(2, bandwidth=0))
        assert one_machine_bound(instance) is None

    @pytest.mark.parametrize(
        ("name", "least"),
        [("convolutional_network-7-1", Fraction("53.92")), ("convolutional_network-50-1", 45)],
    )
    def test_of_networks(self, name: str, least: Fraction) -> None:
        """The device-aware critical path is 43.9 and 42.6."""
        path = SHARED / f"{name}.json"
        if not path.exists():
            pytest.skip(f"{path} is absent")
        bound = one_machine_bound(read_instance(path))
        assert bound is not None
        assert bound >= least

    def test_without_time_windows_stay(self) -> None:
        instance = fan()
        grid = Grid.of(instance)
        window = windows(instance, grid)
        same = sharpened(instance, grid, window, seconds=-1.0)
        assert (same.head == window.head).all()
        assert (same.tail == window.tail).all()


class TestLimit:
    def test_below_the_bound_nothing_is_left(self) -> None:
        """Ticks are of length 1."""
        assert sharp(fan(), 7)[1].bound == 7
        assert sharp(fan(), 6)[1].bound is None

    def test_what_can_no_longer_be_apart_is_one_unit(self) -> None:
        instance = fan()
        grid = Grid.of(instance)
        work = Sharpening(instance, grid, windows(instance, grid, 12), 12)
        assert work.run()
        assert len(set(work.unit.tolist())) == 1
        work = Sharpening(instance, grid, windows(instance, grid, 13), 13)
        assert work.run()
        assert len(set(work.unit.tolist())) == 4

    def test_what_has_one_device_left_takes_turns_there(self) -> None:
        builder = GraphBuilder()
        for v in range(3):
            builder.vertex(f"v{v}", 4, devices=["d1"])
        instance = Instance(builder.vertex("w", 3).build(), Cluster.uniform(2))
        grid = Grid.of(instance)
        work = Sharpening(instance, grid, windows(instance, grid, 9), 9)
        assert work.run()
        assert must_run_on(work).tolist() == [0, 12]

    def test_a_trial_leaves_the_rest_alone(self) -> None:
        instance = fan()
        grid = Grid.of(instance)
        work = Sharpening(instance, grid, windows(instance, grid, 7), 7)
        trial = work.only(0, 1)
        assert trial.run()
        assert trial.possible.tolist() == [[False, True]] * 4
        assert work.possible.all()

    def test_a_trial_finds_what_a_fresh_start_finds(self) -> None:
        """It goes on from what is known, and looks only at what may have changed."""
        rng = np.random.default_rng(4)
        feasible = 0
        for _ in range(60):
            instance = random_instance(rng, 10, 3)
            grid = Grid.of(instance)
            limit = 3 * (windows(instance, grid).bound or 0) // 2
            work = Sharpening(instance, grid, windows(instance, grid, limit), limit)
            if not work.run(rounds=100):
                continue
            unit = int(rng.choice(np.unique(work.unit)))
            device = int(rng.choice(np.flatnonzero(work.possible[unit])))
            allowed = instance.allowed.copy()
            allowed[instance.unit_of[work.unit == unit]] &= np.arange(instance.devices) == device
            trial, brief = work.only(unit, device), work.only(unit, device)
            fresh = Sharpening(instance, grid, windows(instance, grid, limit, allowed), limit)
            if trial.run(rounds=100):
                assert fresh.run(rounds=100)
                assert (trial.head == fresh.head).all()
                assert (trial.tail == fresh.tail).all()
                assert brief.run(rounds=1, brief=True)
                assert (brief.head <= trial.head).all()
                assert (brief.tail <= trial.tail).all()
                feasible += 1
            else:
                assert not fresh.run(rounds=100)
        assert feasible > 30


class TestNothingIsLost:
    """Over random instances, against the schedule that brute force proves optimal."""

    @pytest.mark.parametrize("slack", [0, 1, None])
    def test_an_optimal_schedule_keeps_every_window(self, slack: int | None) -> None:
        rng = np.random.default_rng(1)
        for draw in range(40):
            instance = random_instance(rng, 6, 3, memory="estimate" if draw % 2 else "none")
            check_optimal_schedule(instance, slack)

    def test_on_a_rounded_grid_too(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(ticks, "MAX_HORIZON", 16)
        rng = np.random.default_rng(2)
        rounded = 0
        for _ in range(100):
            instance = random_instance(rng, 6, 3, exact=False, longest=9)
            rounded += check_optimal_schedule(instance, 0, most=int(rng.integers(8, 2000)))
        assert rounded > 25

    def test_it_only_sharpens(self) -> None:
        rng = np.random.default_rng(3)
        for _ in range(50):
            instance = random_instance(rng, 8, 4)
            grid = Grid.of(instance)
            window = windows(instance, grid)
            better = sharpened(instance, grid, window)
            assert (better.head >= window.head).all()
            assert (better.tail >= window.tail).all()
            assert (better.through >= window.through)[better.possible].all()


class TestQueue:
    """The vertices that delay the start of another one on its device."""

    def test_every_optimal_schedule_keeps_it(self) -> None:
        rng = np.random.default_rng(8)
        found = 0
        for _ in range(60):
            instance = random_instance(rng, 7, 3)
            best = optimum(instance)
            if best is None:
                continue
            schedule = retime(instance, best.placement, best.order)
            grid = Grid.of(instance, best.makespan)
            work = Sharpening(instance, grid, windows(instance, grid))
            work.run()
            for v, d in enumerate(best.placement):
                start = grid.floor(schedule.start[v])
                left = best.makespan - schedule.end(instance, v)
                for queue, room in (
                    (work.queue(v, d), start),
                    (work.queue(v, d, backwards=True), grid.floor(left) + (not grid.exact) * 2),
                ):
                    if queue is None:
                        continue
                    found += 1
                    assert queue.value <= room
                    # Its cases hold one by one, too.
                    others = [best.placement[u] == d for u in queue.vertices]
                    case = queue.begin + queue.work + queue.after
                    assert (case if all(others) else queue.elsewhere) <= room
        assert found > 50

    def test_it_explains_the_head_of_a_vertex(self) -> None:
        # Either all three run before the sink on its device, or one of them sends to it.
        builder = GraphBuilder().vertex("sink", 1)
        for name in "abc":
            builder.vertex(name, 10, outputs=[1]).edge(name, "sink")
        instance = Instance(builder.build(), Cluster.uniform(2, 1, Fraction(1, 15)))
        grid = Grid.of(instance)
        work = Sharpening(instance, grid, windows(instance, grid))
        work.run()
        queue = work.queue(0, 0)
        assert queue is not None
        assert sorted(queue.vertices.tolist()) == [1, 2, 3]
        assert [grid.time(x) for x in (queue.begin, queue.work, queue.elsewhere)] == [0, 30, 25]
        assert grid.time(queue.value) == grid.time(int(work.head[0, 0])) == 25

    def test_members_of_a_unit_queue_on_their_device(self) -> None:
        builder = GraphBuilder().vertex("a", 3).vertex("b", 4).vertex("c", 5)
        instance = Instance(builder.colocate("a", "b").build(), Cluster.uniform(2, 1))
        grid = Grid.of(instance)
        work = Sharpening(instance, grid, windows(instance, grid))
        queue = work.queue_of_unit(0, 0)
        assert (sorted(queue.vertices.tolist()), grid.time(queue.work)) == ([0, 1], 7)


def check_optimal_schedule(instance: Instance, slack: int | None, most: int = 2**40) -> bool:
    """Assert that windows hold an optimal schedule; say whether times are rounded."""
    best = optimum(instance)
    if best is None:
        return False
    schedule = retime(instance, best.placement, best.order)
    grid = Grid.of(instance, best.makespan, most)
    limit = None if slack is None else grid.floor(best.makespan) + slack
    window = sharpened(instance, grid, windows(instance, grid, limit), limit)
    assert window.bound is not None
    assert window.bound <= grid.floor(best.makespan) + (slack or 0)
    for v, d in enumerate(best.placement):
        assert window.possible[instance.unit_of[v], d]
        assert window.head[v, d] <= grid.floor(schedule.start[v])
        left = best.makespan - schedule.end(instance, v)
        assert grid.time(int(window.tail[v, d])) <= left
    return not grid.exact


@pytest.mark.parametrize(
    ("seed", "colocated", "bound"),
    [(2, 0, Fraction(3168001, 52288)), (4, 12, Fraction(1805987783, 26984100))],
)
def test_ancestors_far_away_need_not_be_looked_at(
    seed: int, colocated: int, bound: Fraction
) -> None:
    """The bounds are those of looking at every ancestor."""
    graph = layered(
        seed, levels=40, width=(3, 6), edge_probability=0.5, level_limit=2,
        cpu_probability=0.1, colocated=colocated,
    )  # fmt: skip
    assert one_machine_bound(Instance(graph, drawn_cluster(seed, 4))) == bound
