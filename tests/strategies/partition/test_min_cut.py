"""Minimum cut: least traffic under balanced load, and then whatever else must hold."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest

from optpart import Cluster, Device, GraphBuilder, InputError, Instance, Model, retime
from optpart.solution.verifier import verify
from optpart.strategies.partition import min_cut as module
from optpart.strategies.partition.min_cut import Tensors, min_cut


@pytest.fixture
def partitioner() -> None:
    pytest.importorskip("pymetis", reason="pymetis is not installed")


def placement(instance: Instance, seed: int = 0) -> list[int]:
    partition = min_cut(instance, np.random.default_rng(seed))
    order = instance.graph.topological_order.tolist()
    assert verify(instance, retime(instance, partition.placement, order)) == []
    return partition.placement.tolist()


def parts(instance: Instance) -> set[frozenset[str]]:
    """Names of the vertices on each device that is used."""
    devices = np.array(placement(instance))
    return {
        frozenset(instance.graph.names[v] for v in np.flatnonzero(devices == d)) for d in devices
    }


def vertices(names: str, ops: int = 1, memory: int = 1) -> GraphBuilder:
    builder = GraphBuilder()
    for name in names:
        builder.vertex(name, ops, memory=memory)
    return builder


def ladder(rungs: int) -> GraphBuilder:
    """Two chains a0 → a1 → … and b0 → b1 → …, with a small tensor from each a to its b."""
    builder = GraphBuilder()
    for i in range(rungs):
        builder.vertex(f"a{i}", 1).vertex(f"b{i}", 1).edge(f"a{i}", f"b{i}", size=1)
        if i:
            builder.edge(f"a{i - 1}", f"a{i}", size=9).edge(f"b{i - 1}", f"b{i}", size=9)
    return builder


class TestTensors:
    def test_has_a_hyperedge_for_every_tensor_that_has_a_size(self) -> None:
        builder = vertices("abcd").colocate("b", "d")
        builder.output("a", 5)
        builder.edge("a", "b").edge("a", "c").edge("a", "d").edge("b", "c", None)
        graph = Tensors.of(Instance(builder.build(), Cluster.uniform(2, bandwidth=1)))
        assert graph.weight.tolist() == [1, 2, 1]
        assert (graph.tensor.tolist(), graph.unit.tolist()) == ([0, 0, 0], [0, 1, 2])
        assert graph.size.tolist() == [5]

    def test_part_of_it_has_only_what_connects_units_there(self) -> None:
        builder = vertices("abc").edge("a", "b", size=5).edge("b", "c", size=6)
        whole = Tensors.of(Instance(builder.build(), Cluster.uniform(2, bandwidth=1)))
        part = whole.merged(np.array([-1, 0, 1]), 2)
        assert part.weight.tolist() == [1, 1]
        assert part.size.tolist() == [6]
        assert (part.tensor.tolist(), part.unit.tolist()) == ([0, 0], [0, 1])

    def test_units_merged_into_one_no_longer_pay_for_what_connects_them(self) -> None:
        builder = vertices("abc").edge("a", "b", size=5).edge("b", "c", size=6)
        whole = Tensors.of(Instance(builder.build(), Cluster.uniform(2, bandwidth=1)))
        merged = whole.merged(np.array([0, 0, 1]), 2)
        assert (merged.weight.tolist(), merged.size.tolist()) == ([2, 1], [6])

    def test_of_an_empty_graph(self) -> None:
        assert len(Tensors.of(Instance(GraphBuilder().build(), Cluster.uniform(2))).weight) == 0


@pytest.mark.usefixtures("partitioner")
class TestCut:
    def test_is_where_least_crosses(self) -> None:
        instance = Instance(ladder(4).build(), Cluster.uniform(2, bandwidth=1))
        assert parts(instance) == {
            frozenset({"a0", "a1", "a2", "a3"}),
            frozenset({"b0", "b1", "b2", "b3"}),
        } or parts(instance) == {
            frozenset({"a0", "b0", "a1", "b1"}),
            frozenset({"a2", "b2", "a3", "b3"}),
        }

    def test_counts_a_tensor_once_a_part(self) -> None:
        """a with b leaves 3 to cross, though to two consumers; a with c or d leaves 3 + 2."""
        builder = vertices("abcd")
        builder.output("a", 3)
        graph = builder.edge("a", "c").edge("a", "d").edge("a", "b", size=2).build()
        assert parts(Instance(graph, Cluster.uniform(2, bandwidth=1))) == {
            frozenset("ab"),
            frozenset("cd"),
        }

    def test_control_dependencies_are_free(self) -> None:
        builder = vertices("abcd").edge("a", "b", size=1)
        for name in "cd":
            builder.edge("a", name, None).edge("b", name, None)
        assert parts(Instance(builder.build(), Cluster.uniform(2, bandwidth=1))) == {
            frozenset("ab"),
            frozenset("cd"),
        }

    def test_loads_are_in_proportion_to_speeds(self) -> None:
        cluster = Cluster.of([Device("slow", 1), Device("fast", 2)])
        graph = vertices("abcdefghijkl").build()
        assert sorted(placement(Instance(graph, cluster))) == [0] * 4 + [1] * 8

    def test_run_times_count_where_they_are_given(self) -> None:
        """b and c take as long as a, on average."""
        graph = vertices("abc").build()
        instance = Instance(graph, Cluster.uniform(2), durations=[[6, 6], [2, 4], [4, 2]])
        assert parts(instance) == {frozenset("a"), frozenset("bc")}


@pytest.mark.usefixtures("partitioner")
class TestConstraints:
    def test_groups_stay_together(self) -> None:
        graph = ladder(2).colocate("a0", "b1").build()
        devices = placement(Instance(graph, Cluster.uniform(2, bandwidth=1)))
        assert devices[0] == devices[3]

    def test_units_are_divided_among_types_first(self) -> None:
        """CPUs get the chain whose first vertex must be there, GPUs the other."""
        builder = GraphBuilder()
        for chain, kind in (("a", "GPU"), ("b", "CPU")):
            for i in range(4):
                builder.vertex(f"{chain}{i}", 1, device_type=None if i else kind)
                if i:
                    builder.edge(f"{chain}{i - 1}", f"{chain}{i}", size=9)
        types = ["CPU", "GPU", "CPU", "GPU"]
        cluster = Cluster.of([Device(f"d{d}", 1, t) for d, t in enumerate(types)], bandwidth=1)
        devices = placement(Instance(builder.build(), cluster))
        assert sorted(devices[:4]) == [1, 1, 3, 3]
        assert sorted(devices[4:]) == [0, 0, 2, 2]

    def test_what_finds_no_room_goes_elsewhere(self) -> None:
        """d0 would get two of four."""
        cluster = Cluster.of([Device("d0", memory=1), Device("d1", memory=9)])
        instance = Instance(vertices("abcd").build(), cluster, Model(memory="estimate"))
        assert sorted(placement(instance)) == [0, 1, 1, 1]

    def test_the_largest_stay(self) -> None:
        """b and c are cut off together, and only one of them has room there."""
        builder = GraphBuilder().vertex("a", 2, devices=["d0"])
        builder.vertex("b", 1, memory=3).vertex("c", 1, memory=1).edge("b", "c", size="1/100")
        cluster = Cluster.of([Device("d0"), Device("d1", memory="7/2")], bandwidth=1)
        instance = Instance(builder.build(), cluster, Model(memory="estimate"))
        assert placement(instance) == [0, 1, 0]

    def test_separated_units_are_kept_apart(self) -> None:
        builder = vertices("abcd").edge("a", "b", size=9).edge("c", "d", size=9)
        graph = builder.separate("a", "b").build()
        devices = placement(Instance(graph, Cluster.uniform(2, bandwidth=1)))
        assert devices[0] != devices[1]


@pytest.mark.usefixtures("partitioner")
class TestDegenerate:
    @pytest.mark.parametrize("names", ["", "a", "ab"])
    def test_fewer_units_than_devices(self, names: str) -> None:
        assert len(placement(Instance(vertices(names).build(), Cluster.uniform(5)))) == len(names)

    def test_a_single_device(self) -> None:
        assert placement(Instance(ladder(3).build(), Cluster.uniform(1))) == [0] * 6

    def test_nothing_to_do(self) -> None:
        placement(Instance(vertices("abc", ops=0).build(), Cluster.uniform(2)))

    def test_numbers_beyond_32_bits(self) -> None:
        builder = vertices("abcd", ops=10**15)
        graph = builder.edge("a", "b", size=10**15).edge("c", "d", size=10**15).build()
        assert parts(Instance(graph, Cluster.uniform(2, bandwidth=1))) == {
            frozenset("ab"),
            frozenset("cd"),
        }

    def test_a_type_that_nothing_may_use(self) -> None:
        graph = GraphBuilder().vertex("a", 1, device_type="CPU").vertex("b", 1, device_type="CPU")
        devices = [Device("d0", 1, "CPU"), Device("d1", 1, "GPU"), Device("d2", 1, "GPU")]
        assert placement(Instance(graph.build(), Cluster.of(devices))) == [0, 0]


def test_a_missing_package_is_an_error_that_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing(name: str) -> ModuleType:
        raise ImportError(name)

    monkeypatch.setattr(module, "import_module", missing)
    instance = Instance(ladder(2).build(), Cluster.uniform(2))
    message = r"min-cut: needs the package pymetis; install optpart\[metis\]"
    with pytest.raises(InputError, match=message):
        placement(instance)
