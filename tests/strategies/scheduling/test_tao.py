"""TAO by hand, against algorithms 1 and 2 of [H] read line by line, and fast."""

from __future__ import annotations

from typing import NamedTuple, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from optpart import Cluster, Device, GraphBuilder, Instance, Model
from optpart.applications.ordering.efficiency import assigned
from optpart.applications.ordering.models import base_model
from optpart.applications.ordering.replica import replica
from optpart.base import clock
from optpart.base.errors import UnsupportedError
from optpart.kernels.tasks import Tasks, tasks
from optpart.problem.model import Communication
from optpart.solution.verifier import verify
from optpart.strategies.base import Partition
from optpart.strategies.scheduling import transfers as transfers_module
from optpart.strategies.scheduling.as_received import as_received
from optpart.strategies.scheduling.random_order import random_order
from optpart.strategies.scheduling.tao import tao, tao_rank
from optpart.strategies.scheduling.tio import tio
from optpart.strategies.scheduling.transfers import is_transfer
from optpart.strategies.simulator import Scheduler, simulate
from optpart.testing.strategies import solutions


class Worker(NamedTuple):
    """A worker: what it receives (time, channel) and what it computes (time, inputs)."""

    recv: dict[str, tuple[int, int]]
    ops: dict[str, tuple[int, list[str]]]

    def instance(self) -> Instance:
        builder = GraphBuilder()
        for name, (length, channel) in self.recv.items():
            builder.vertex(name, length, devices=[f"channel{channel}"])
        for name, (length, _) in self.ops.items():
            builder.vertex(name, length, devices=["worker"])
        for name, (_, inputs) in self.ops.items():
            for source in inputs:
                builder.edge(source, name, None)
        used = sorted({channel for _, channel in self.recv.values()})
        devices = [Device("worker"), *(Device(f"channel{c}") for c in used)]
        return Instance(builder.build(), Cluster.of(devices))

    def tasks(self) -> Tasks:
        instance = self.instance()
        return tasks(instance, assigned(instance))

    def ordered(self, variant: str = "derived") -> list[str]:
        """Transfers, first to last."""
        work, names = self.tasks(), [*self.recv, *self.ops]
        task, rank = tao_rank(work, len(names), variant=variant)  # type: ignore[arg-type]
        assert sorted(names[t] for t in task) == sorted(self.recv)
        return [names[t] for t in task[np.argsort(rank)]]


def naive(worker: Worker, *, printed: bool = False) -> list[str]:
    """Algorithm 2, with all properties computed anew in every round as algorithm 1 says."""
    dep: dict[str, set[str]] = {name: {name} for name in worker.recv}
    for name, (_, inputs) in worker.ops.items():
        dep[name] = set().union(*(dep[source] for source in inputs))
    outstanding, result = set(worker.recv), []

    def communication_time(names: set[str]) -> int:
        per_channel: dict[int, int] = {}
        for r in names & outstanding:
            length, channel = worker.recv[r]
            per_channel[channel] = per_channel.get(channel, 0) + length
        return max(per_channel.values(), default=0)

    while outstanding:
        directly = dict.fromkeys(outstanding, 0)
        later = dict.fromkeys(outstanding, float("inf"))
        for name, (length, _) in worker.ops.items():
            waits = dep[name] & outstanding
            if len(waits) == 1:
                directly[next(iter(waits))] += length
            if len(waits) > 1:
                for r in waits:
                    later[r] = min(later[r], communication_time(dep[name]))

        def precedes(
            a: str,
            b: str,
            directly: dict[str, int] = directly,
            later: dict[str, float] = later,
        ) -> bool:
            first = min(directly[a], worker.recv[b][0])
            second = min(directly[b], worker.recv[a][0])
            if first != second:
                return first < second if printed else second < first
            return later[a] < later[b]

        best = None
        for r in worker.recv:
            if r in outstanding and (best is None or precedes(r, best)):
                best = r
        assert best is not None
        outstanding.remove(best)
        result.append(best)
    return result


def random_worker(seed: int) -> Worker:
    rng = np.random.default_rng(seed)
    channels, transfers, ops = (int(rng.integers(1, high)) for high in (4, 14, 25))
    recv = {
        f"r{i}": (int(rng.integers(0, 9)), int(rng.integers(channels))) for i in range(transfers)
    }
    made: dict[str, tuple[int, list[str]]] = {}
    for i in range(ops):
        sources = [*recv, *made]
        count = min(len(sources), int(rng.integers(0, 4)))
        chosen = sorted(rng.choice(len(sources), count, replace=False))
        made[f"o{i}"] = int(rng.integers(0, 9)), [sources[j] for j in chosen]
    # An end that waits for all makes one partition of it, whatever its channels.
    made["end"] = 0, [*recv, *made]
    return Worker(recv, made)


FIGURE_2 = Worker({"r1": (3, 0), "r2": (3, 0)}, {"o1": (4, ["r1"]), "o2": (2, ["o1", "r2"])})


class TestByHand:
    def test_figure_2_receives_first_what_the_first_op_needs(self) -> None:
        assert FIGURE_2.ordered() == ["r1", "r2"]

    def test_the_printed_comparator_chooses_the_bad_order_of_figure_2(self) -> None:
        assert FIGURE_2.ordered("printed") == ["r2", "r1"]

    def test_the_orders_of_figure_2_take_what_they_take(self) -> None:
        instance = FIGURE_2.instance()
        schedule = simulate(instance, Partition(assigned(instance)), tao)
        assert schedule.makespan(instance) == 3 + 4 + 2

    def test_case_2_prefers_what_unblocks_an_op_sooner(self) -> None:
        """[H] figure 4b: all P are 0 at first; M⁺ of a and b is least."""
        worker = Worker(
            {"d": (1, 0), "c": (2, 0), "b": (3, 0), "a": (3, 0)},
            {"ab": (5, ["a", "b"]), "abc": (5, ["ab", "c"]), "abcd": (5, ["abc", "d"])},
        )
        # b and a are equal: the lower number first.
        assert worker.ordered() == ["b", "a", "c", "d"]

    def test_several_channels_count_by_their_maximum(self) -> None:
        """Receiving a and b at once takes 4; c and d, on one channel, 6."""
        worker = Worker(
            {"c": (3, 0), "d": (3, 0), "a": (4, 0), "b": (4, 1)},
            {"cd": (1, ["c", "d"]), "ab": (1, ["a", "b"]), "end": (0, ["cd", "ab"])},
        )
        assert worker.ordered()[0] == "a"
        alone = worker._replace(recv={**worker.recv, "b": (4, 0)})
        assert alone.ordered()[0] == "c"

    def test_the_comparator_has_cycles(self) -> None:
        """a before b before c before a, each by itself: [H] §4.2 says that there are none."""
        lengths = {"a": 1, "b": 1, "c": 2}
        enabled = {"a": 1, "b": 2, "c": 1}
        partner = {"a": 4, "b": 5, "c": 2}  # M⁺ is 5, 6 and 4

        def first_of(names: str) -> str:
            recv = {name: (lengths[name], 0) for name in names}
            recv |= {f"with_{name}": (partner[name], 0) for name in names}
            ops = {f"p_{name}": (enabled[name], [name]) for name in names}
            ops |= {f"m_{name}": (0, [name, f"with_{name}"]) for name in names}
            ops |= {"end": (0, list(ops))}
            return Worker(recv, ops).ordered()[0]

        assert (first_of("ab"), first_of("bc"), first_of("ac")) == ("a", "b", "c")


class TestAgainstTheAlgorithms:
    @given(st.integers(0, 2**32))
    def test_the_order_is_that_of_algorithm_2(self, seed: int) -> None:
        worker = random_worker(seed)
        assert worker.ordered() == naive(worker)

    @given(st.integers(0, 2**32))
    def test_also_as_it_is_printed(self, seed: int) -> None:
        worker = random_worker(seed)
        assert worker.ordered("printed") == naive(worker, printed=True)

    @pytest.mark.parametrize("seed", range(5))
    def test_it_is_the_same_with_a_look_at_the_clock_after_each_transfer(
        self, seed: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("optpart.strategies.scheduling.tao._WORK", 1)
        worker = random_worker(seed)
        assert worker.ordered() == naive(worker)

    def test_it_gives_up_when_the_time_is_up(self) -> None:
        with clock.limited(-1.0), pytest.raises(clock.OutOfTimeError):
            FIGURE_2.ordered()

    @given(*(st.integers(1, 9) for _ in range(4)))
    def test_of_two_transfers_it_finds_the_better_order(
        self, m_a: int, m_b: int, p_a: int, p_b: int
    ) -> None:
        """[H] §4.2, case 1."""
        worker = Worker({"a": (m_a, 0), "b": (m_b, 0)}, {"oa": (p_a, ["a"]), "ob": (p_b, ["b"])})
        instance = worker.instance()
        best = min(m_a + max(p_a, m_b) + p_b, m_b + max(p_b, m_a) + p_a)
        schedule = simulate(instance, Partition(assigned(instance)), tao)
        assert schedule.makespan(instance) == best


class TestTransfers:
    def test_uploads_that_nobody_waits_for_do_not_count(self) -> None:
        builder = GraphBuilder().vertex("recv", 1, devices=["down"])
        builder.vertex("op", 1, devices=["worker"]).vertex("send", 1, devices=["up"])
        builder.edge("recv", "op", None).edge("op", "send", None)
        builder.vertex("next", 1, devices=["worker"]).edge("op", "next", None)
        cluster = Cluster.of([Device("worker"), Device("down"), Device("up")])
        instance = Instance(builder.build(), cluster)
        work = tasks(instance, assigned(instance))
        assert is_transfer(work, 4).tolist() == [True, False, False, False]

    def test_where_transfers_take_turns_it_is_they_that_are_ordered(self) -> None:
        """c needs one tensor of a, d that and another; with that of b first it would take 19."""
        builder = GraphBuilder().vertex("a", 1, outputs=[5, 5, 1])
        for name in "bcd":
            builder.vertex(name, 4)
        builder.edge("a", "b", 0).edge("a", "c", 1).edge("a", "d", 1).edge("a", "d", 2)
        cluster = Cluster.uniform(2, bandwidth=1)
        instance = Instance(builder.build(), cluster, Model(communication="link"))
        placement = np.array([0, 1, 1, 1], dtype=np.int32)
        work = tasks(instance, placement)
        task, _ = tao_rank(work, 4)
        assert task.tolist() == [4, 5, 6]
        schedule = simulate(instance, Partition(placement), tao)
        assert schedule.makespan(instance) == 18

    @pytest.mark.parametrize("communication", get_args(Communication))
    @pytest.mark.parametrize("scheduler", [tao, tio, random_order, as_received])
    @settings(max_examples=15)
    @given(data=st.data())
    def test_every_instance_gets_a_valid_schedule(
        self, communication: Communication, scheduler: Scheduler, data: st.DataObject
    ) -> None:
        instance, placement, _ = data.draw(solutions(communication=communication))
        schedule = simulate(instance, Partition(placement), scheduler)
        assert verify(instance, schedule) == []

    @pytest.mark.parametrize("scheduler", [tao, tio, random_order, as_received])
    def test_also_one_without_vertices(self, scheduler: Scheduler) -> None:
        instance = Instance(GraphBuilder().build(), Cluster.uniform(1))
        nothing = Partition(np.zeros(0, dtype=np.int32))
        assert simulate(instance, nothing, scheduler).makespan(instance) == 0

    def test_without_transfers_anything_goes(self) -> None:
        graph = GraphBuilder().vertex("a", 1).vertex("b", 1).build()
        instance = Instance(graph, Cluster.uniform(1))
        placement = np.zeros(2, dtype=np.int32)
        assert simulate(instance, Partition(placement), tao).makespan(instance) == 2

    def test_every_worker_is_ordered_by_itself(self) -> None:
        """[H] §5: the priorities are those of a reference worker."""
        base = base_model("alexnet")
        together = self.ranks(replica(base, workers=3, servers=2, training=True))
        alone = self.ranks(replica(base, servers=2, training=True))
        for w in range(3):
            mine = {
                name.replace(f"worker_{w}", "worker_0"): rank
                for name, rank in together.items()
                if name.startswith(f"worker_{w}/recv/")
            }
            assert mine == {n: r for n, r in alone.items() if n.startswith("worker_0/recv/")}

    @staticmethod
    def ranks(instance: Instance) -> dict[str, int]:
        task, rank = tao_rank(tasks(instance, assigned(instance)), instance.vertices)
        return {instance.graph.names[t]: int(r) for t, r in zip(task, rank, strict=True)}

    def test_too_many_are_refused_and_not_run_out_of_memory(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(transfers_module, "_LIMIT", 8)
        with pytest.raises(UnsupportedError, match="2 transfers among 4 ops"):
            FIGURE_2.ordered()


class TestLarge:
    def test_of_ten_thousand_ops_with_a_thousand_transfers_each_transfer_has_a_rank(self) -> None:
        work = self.large(np.random.default_rng(1))
        task, rank = tao_rank(work, len(work.duration))
        assert sorted(rank.tolist()) == list(range(len(task))) == list(range(1000))

    @staticmethod
    def large(rng: np.random.Generator) -> Tasks:
        """1,000 transfers on two channels; every op waits for two earlier ops and maybe one."""
        recv = {f"r{i}": (int(rng.integers(1, 100)), i % 2) for i in range(1000)}
        ops: dict[str, tuple[int, list[str]]] = {}
        for i in range(9000):
            earlier: NDArray[np.int64] = (
                rng.integers(max(0, i - 50), i, 2) if i else np.zeros(0, int)
            )
            inputs = [f"o{j}" for j in sorted(set(earlier.tolist()))]
            if rng.random() < 0.3:
                inputs.append(f"r{rng.integers(1000)}")
            ops[f"o{i}"] = int(rng.integers(1, 20)), inputs
        ops["end"] = 0, [*recv, "o8999"]
        return Worker(recv, ops).tasks()
