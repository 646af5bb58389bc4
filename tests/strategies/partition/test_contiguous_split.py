"""The contiguous split of least latency, against all splits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations, pairwise, permutations
from typing import get_args

import numpy as np
import pytest

from optpart import Cluster, Device, GraphBuilder, Instance, Model, load
from optpart.base.errors import InputError
from optpart.kernels.compiled import arrays
from optpart.methods import registry
from optpart.problem.model import Communication, Memory
from optpart.solution.schedule import retime
from optpart.solution.verifier import verify
from optpart.strategies.base import Partition
from optpart.strategies.partition import contiguous_split as module
from optpart.strategies.partition.contiguous import Line, line
from optpart.strategies.partition.contiguous_split import contiguous_split, orders, splits
from optpart.strategies.partition.ranks import devices_by_speed
from optpart.strategies.partition.sequential_fill import sequential_fill
from optpart.testing.draw import draw_instance

COMMUNICATION = get_args(Communication)


def partition(instance: Instance) -> Partition:
    return contiguous_split(instance, np.random.default_rng(0))


def placement(instance: Instance) -> list[int]:
    return partition(instance).placement.tolist()


def makespan(instance: Instance, found: Partition) -> Fraction:
    assert found.order is not None
    return retime(instance, found.placement, found.order).makespan(instance)


def path(*ops: int, sizes: tuple[int, ...] = ()) -> GraphBuilder:
    """v0 → v1 → v2 → …, with tensors of the given sizes between them."""
    builder = GraphBuilder()
    for v, amount in enumerate(ops):
        outputs = [sizes[v]] if v < len(sizes) else [1]
        builder.vertex(f"v{v}", amount, memory=1, outputs=outputs)
        if v:
            builder.edge(f"v{v - 1}", f"v{v}")
    return builder


def all_splits(instance: Instance, units: list[int]) -> Iterator[list[tuple[int, int, int]]]:
    """Yield the segments of every split that keeps to all limits: begin, end and device."""
    m, cluster = len(units), instance.cluster
    apart = {frozenset(pair) for pair in instance.separated_units}
    for count in range(1, min(instance.devices, m) + 1):
        for cuts in combinations(range(1, m), count - 1):
            for devices in permutations(range(instance.devices), count):
                segments = [
                    (i, j, d) for (i, j), d in zip(pairwise((0, *cuts, m)), devices, strict=True)
                ]
                for i, j, d in segments:
                    here, room = units[i:j], cluster.memory[d]
                    if not all(instance.allowed[unit, d] for unit in here):
                        break
                    need = sum((instance.static_memory[unit] for unit in here), Fraction(0))
                    if room is not None and need > room:
                        break
                    if any(pair <= set(here) for pair in apart):
                        break
                else:
                    yield segments


def estimated(
    instance: Instance, units: list[int], segments: Sequence[tuple[int, int, int]]
) -> Fraction | None:
    """The run times, and at every cut the transfer times of the tensors on both of its sides."""
    graph = instance.graph
    position = {unit: i for i, unit in enumerate(units)}
    touched = [{position[int(instance.unit_of[v])]} for v in graph.tensor_vertex.tolist()]
    for target, tensor in zip(graph.edge_target.tolist(), graph.edge_tensor.tolist(), strict=True):
        touched[tensor].add(position[int(instance.unit_of[target])])
    total = Fraction(0)
    for i, j, d in segments:
        for unit in units[i:j]:
            total += sum(instance.duration(int(v), d) for v in instance.units[unit])
    for (_, cut, s), (_, _, d) in pairwise(segments):
        live = [t for t, at in enumerate(touched) if min(at) < cut <= max(at)]
        times = [instance.delay(tensor, s, d) for tensor in live]
        known = [time for time in times if time is not None]
        if len(known) < len(times):
            return None
        queue = instance.model.communication in ("link", "port")
        total += sum(known, Fraction(0)) if queue else max(known, default=Fraction(0))
    return total


class TestEstimate:
    @pytest.mark.parametrize("communication", COMMUNICATION)
    @pytest.mark.parametrize("memory", ["none", "estimate"])
    @pytest.mark.parametrize("seed", range(8))
    def test_is_the_least_of_all_splits(
        self, seed: int, memory: Memory, communication: Communication
    ) -> None:
        instance = draw_instance(seed, communication, memory, vertices=(1, 6), devices=(1, 4))
        add = communication in ("link", "port")
        for vertices in orders(instance):
            row = line(instance, vertices, add=add)
            units = row.units.tolist()
            values = [estimated(instance, units, each) for each in all_splits(instance, units)]
            known = [value for value in values if value is not None]
            found = splits(instance, row)
            assert bool(found) == bool(known)
            if found:
                least = float(min(known)) * arrays(instance).scale
                assert found[0].value == pytest.approx(least)

    @pytest.mark.parametrize("seed", range(8))
    def test_is_that_of_its_segments(self, seed: int) -> None:
        instance = draw_instance(seed, "delay", "estimate", vertices=(2, 6), devices=(2, 4))
        row = line(instance, arrays(instance).order, add=False)
        units = row.units.tolist()
        valid = list(all_splits(instance, units))
        for split in splits(instance, row):
            assert split.segments in valid
            value = estimated(instance, units, split.segments)
            assert value is not None
            assert split.value == pytest.approx(float(value) * arrays(instance).scale)

    @pytest.mark.parametrize("seed", range(12))
    def test_of_many_devices_is_the_least_in_three_orders_of_them(
        self, seed: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """With no room for a table of all sets: by speed, by memory, and as listed."""
        instance = draw_instance(seed, "delay", "estimate", vertices=(3, 6), devices=(3, 4))
        row = line(instance, arrays(instance).order, add=False)
        units, cuts = row.units.tolist(), len(row.units) + 1
        usable = [d for d in devices_by_speed(instance).tolist() if _is_usable(row, d)]
        by_memory = sorted(usable, key=lambda d: -arrays(instance).capacity[d])
        lists = [usable, by_memory, sorted(usable)]
        values = [
            estimated(instance, units, segments)
            for segments in all_splits(instance, units)
            if any(_is_part([d for _, _, d in segments], devices) for devices in lists)
        ]
        known = [value for value in values if value is not None]
        monkeypatch.setattr(module, "_TABLE", instance.devices * cuts)
        found = splits(instance, row)
        assert bool(found) == bool(known)
        if found and len(usable) > 1:
            least = float(min(known)) * arrays(instance).scale
            assert min(split.value for split in found) == pytest.approx(least)


def _is_usable(row: Line, d: int) -> bool:
    return bool((row.first[d] < np.arange(len(row.units) + 1)).any())


def _is_part(devices: list[int], of: list[int]) -> bool:
    """Whether all devices come in the given order."""
    rest = iter(of)
    return all(d in rest for d in devices)


class TestChoice:
    def test_one_device_where_the_network_is_slow(self) -> None:
        instance = Instance(path(4, 4, 4).build(), Cluster.uniform(2, bandwidth="1/100"))
        assert len(set(placement(instance))) == 1

    def test_cuts_where_little_crosses(self) -> None:
        """Two devices have room for 3 of 5 units each: 3 and 2, or 2 and 3 with less to send."""
        graph = path(1, 1, 1, 1, 1, sizes=(9, 2, 5, 9)).build()
        instance = Instance(
            graph, Cluster.uniform(2, bandwidth=1, memory=40), Model("delay", "estimate")
        )
        assert placement(instance) in ([0, 0, 1, 1, 1], [1, 1, 0, 0, 0])

    def test_devices_in_whatever_order(self) -> None:
        """The long vertex comes first, and the fast device is listed last and takes one vertex."""
        cluster = Cluster.of([Device("slow", 1, memory=9), Device("fast", 9, memory=3)], 10)
        instance = Instance(path(90, 1, 1).build(), cluster, Model(memory="estimate"))
        assert placement(instance) == [1, 0, 0]

    def test_what_skips_a_segment_is_handed_on(self) -> None:
        """The estimate counts a's tensor of 6 at both cuts, since c reads it, at 1 and at 2."""
        builder = GraphBuilder().vertex("a", 1, outputs=[6], devices=["d0"])
        builder.vertex("b", 1, outputs=[1], devices=["d1"]).vertex("c", 1, devices=["d2"])
        builder.edge("a", "b").edge("a", "c").edge("b", "c")
        bandwidth = [[None, 6, 1], [1, None, 3], [1, 1, None]]
        instance = Instance(
            builder.build(), Cluster.of([Device(f"d{i}") for i in range(3)], bandwidth)
        )
        row = line(instance, arrays(instance).order, add=False)
        (split,) = splits(instance, row)
        assert split.segments == [(0, 1, 0), (1, 2, 1), (2, 3, 2)]
        assert split.value / arrays(instance).scale == 3 + 1 + 2

    def test_follows_a_branch_where_that_keeps_more_together(self) -> None:
        """Two chains from a to z, listed in turn; each device takes one, and z the last tensor."""
        builder = GraphBuilder().vertex("a", 0, outputs=[1])
        for i in range(4):
            for side in "xy":
                builder.vertex(f"{side}{i}", 5, outputs=[1])
                builder.edge("a" if i == 0 else f"{side}{i - 1}", f"{side}{i}")
        builder.vertex("z", 0).edge("x3", "z").edge("y3", "z")
        instance = Instance(builder.build(), Cluster.uniform(2, bandwidth=1))
        assert makespan(instance, partition(instance)) == 21


class TestAgainstTwoDevices:
    @pytest.mark.parametrize("seed", range(12))
    def test_no_split_between_two_devices_is_better(self, seed: int) -> None:
        instance = draw_instance(seed, "delay", "estimate", vertices=(2, 9), devices=(2, 4))
        _no_pair_is_better(instance)

    @pytest.mark.parametrize("name", ["shufflenet-edge-tight", "shufflenet-edge-free"])
    def test_nor_of_a_network_on_boards(self, name: str) -> None:
        _no_pair_is_better(load(name), step=20)

    def test_which_beats_list_scheduling_where_the_network_is_slow(self) -> None:
        for name in ("densenet-121-edge-tight", "inception-v2-edge-tight", "shufflenet-edge-tight"):
            instance = load(name)
            ours, heft = (registry.get(m)(instance) for m in ("contiguous-split", "heft"))
            assert ours.makespan is not None
            assert heft.makespan is not None
            assert ours.makespan < heft.makespan

    @pytest.mark.parametrize("seed", range(8))
    def test_of_many_splits_those_of_least_estimate_are_timed(
        self, seed: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        instance = draw_instance(seed, "delay", "estimate", vertices=(5, 9), devices=(2, 3))
        row = line(instance, arrays(instance).order, add=False)
        units = row.units.tolist()
        expected: dict[tuple[int, int], list[Fraction]] = {}
        for (_, _, s), (_, _, d), value in (
            (*segments, estimated(instance, units, segments))
            for segments in all_splits(instance, units)
            if len(segments) == 2
        ):
            expected.setdefault((s, d), []).append(Fraction(10**30) if value is None else value)
        most, couples = 2, instance.devices * (instance.devices - 1)
        monkeypatch.setattr(module, "_WORK", most * instance.vertices * couples)
        found: dict[tuple[int, int], list[Fraction]] = {}
        for s, d, cut in module._pairs(instance, row).tolist():
            segments = [(0, cut, s), (cut, len(units), d)]
            assert segments in list(all_splits(instance, units))
            value = estimated(instance, units, segments)
            found.setdefault((s, d), []).append(Fraction(10**30) if value is None else value)
        for pair, values in expected.items():
            least = [float(value) for value in sorted(values)[:most]]
            assert sorted(map(float, found[pair])) == pytest.approx(least)


def _no_pair_is_better(instance: Instance, step: int = 1) -> None:
    """Compare with the splits of the instance's own order between every two devices."""
    order = instance.graph.topological_order
    units = line(instance, arrays(instance).order, add=False).units.tolist()
    best = None
    for segments in _pairs(instance, units, step):
        device = np.empty(len(units), dtype=np.int32)
        for i, j, d in segments:
            device[units[i:j]] = d
        try:
            time = retime(instance, device[instance.unit_of], order.tolist()).makespan(instance)
        except InputError:  # a link is missing
            continue
        best = time if best is None else min(best, time)
    if best is not None:
        assert makespan(instance, partition(instance)) <= best


def _pairs(instance: Instance, units: list[int], step: int) -> Iterator[list[tuple[int, int, int]]]:
    if step == 1:
        yield from (split for split in all_splits(instance, units) if len(split) <= 2)
        return
    need = np.array([float(need) for need in instance.static_memory])[units]
    room = [float("inf") if m is None else float(m) for m in instance.cluster.memory]
    for s, d in permutations(range(instance.devices), 2):
        for cut in range(0, len(units) + 1, step):
            if need[:cut].sum() <= room[s] and need[cut:].sum() <= room[d]:
                yield [(0, cut, s), (cut, len(units), d)]


class TestRepair:
    def test_what_may_not_run_there_runs_elsewhere(self) -> None:
        """v0 and v4 must run on d0, and v1 and v3 on d1, so there is no contiguous split."""
        builder, pinned = GraphBuilder(), {0: "d0", 1: "d1", 3: "d1", 4: "d0"}
        for v, ops in enumerate((6, 1, 6, 1, 6)):
            devices = [pinned[v]] if v in pinned else None
            builder.vertex(f"v{v}", ops, outputs=[1], devices=devices)
            if v:
                builder.edge(f"v{v - 1}", f"v{v}")
        cluster = Cluster.of([Device("d0", 6), Device("d1", 1)], 1)
        assert placement(Instance(builder.build(), cluster)) == [0, 1, 0, 1, 0]

    def test_separated_units_part(self) -> None:
        """On two devices, a and c must be apart, and so must b and c, and c and d."""
        builder = path(1, 1, 1, 1).separate("v0", "v2").separate("v1", "v2").separate("v2", "v3")
        instance = Instance(builder.build(), Cluster.uniform(2))
        found = placement(instance)
        assert found[0] == found[1] == found[3] != found[2]


def test_where_no_split_nor_its_repair_fits_devices_are_filled_in_turn() -> None:
    instance = draw_instance(27, "sendrecv", "estimate", vertices=(1, 9), devices=(1, 4))
    found = partition(instance)
    filled = sequential_fill(instance, np.random.default_rng(0))
    assert found.placement.tolist() == filled.placement.tolist()
    assert found.order is not None
    assert not verify(instance, retime(instance, found.placement, found.order))
