"""The verifier: valid schedules pass, and each broken rule is reported by its own name, alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from operator import attrgetter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from numpy.typing import NDArray

from optpart import (
    Cluster,
    Device,
    GraphBuilder,
    Instance,
    Model,
    RationalArray,
    Schedule,
    Transfers,
    retime,
)
from optpart.problem.graph import CONTROL
from optpart.problem.model import Communication, Release
from optpart.solution.schedule import crossings
from optpart.solution.verifier import verify
from optpart.testing.draw import random_instance
from optpart.testing.naive_verifier import NaiveVerifier
from optpart.testing.solutions import Step, random_order, random_placement
from optpart.testing.strategies import solutions

Row = tuple[int, int, Fraction, Fraction]
Solution = tuple[Instance, NDArray[np.int32], list[Step]]

COMMUNICATION = [
    Model("delay"),
    Model("sendrecv", send_ops=Fraction(1)),
    Model("link"),
    Model("port"),
    Model("port", channels=2),
]
MEMORY: list[dict[str, Any]] = [
    {"memory": "none"},
    {"memory": "estimate"},
    {"memory": "edges"},
    {"memory": "refcount", "release": "end"},
    {"memory": "refcount", "release": "start"},
]

#: Past the end of every schedule of the scene.
LATE = Fraction(1000)
LITTLE = Fraction(1, 7)


def rules(instance: Instance, schedule: Schedule) -> set[str]:
    return {violation.rule for violation in verify(instance, schedule)}


def rows(schedule: Schedule) -> list[Row]:
    moves = schedule.transfers
    return list(
        zip(
            moves.tensor.tolist(),
            moves.target.tolist(),
            moves.start.fractions(),
            moves.end.fractions(),
            strict=True,
        )
    )


def altered(
    schedule: Schedule,
    *,
    placement: Mapping[int, int] | None = None,
    start: Mapping[int, Fraction] | None = None,
    transfers: Iterable[Row] | None = None,
) -> Schedule:
    """The schedule with some entries replaced; ``transfers`` replaces all rows."""
    devices, starts = schedule.placement.copy(), schedule.start.fractions()
    for v, device in (placement or {}).items():
        devices[v] = device
    for v, time in (start or {}).items():
        starts[v] = time
    return Schedule(
        devices,
        RationalArray.from_fractions(starts),
        schedule.transfers if transfers is None else Transfers.of(transfers),
    )


def with_capacity(instance: Instance, capacity: Mapping[int, Fraction]) -> Instance:
    cluster = instance.cluster
    memory = tuple(capacity.get(d, old) for d, old in enumerate(cluster.memory))
    return replace(instance, cluster=replace(cluster, memory=memory))


# --- a scene in which every rule can be broken by itself ----------------------------------------

A, B, C, E, F, Q, X, TYPED, G, H, NAMED, R, S = range(13)
PLACEMENT = [0, 1, 1, 2, 2, 2, 0, 3, 3, 3, 3, 3, 0]
#: The transfers of the scene: a's outputs 0 and 1, and b's.
BIG_TO_1, SMALL_TO_1, BIG_TO_2, B_TO_2 = (0, 1), (1, 1), (0, 2), (2, 2)


@dataclass(frozen=True)
class Scene:
    """a feeds b, c (together) and e (elsewhere); b feeds f, f signals q; the others stand alone."""

    instance: Instance
    schedule: Schedule

    def row(self, move: tuple[int, int]) -> Row:
        return next(row for row in rows(self.schedule) if row[:2] == move)

    def with_row(self, move: tuple[int, int], start: Fraction, end: Fraction) -> list[Row]:
        return [(*move, start, end) if r[:2] == move else r for r in rows(self.schedule)]

    def start(self, v: int) -> Fraction:
        return self.schedule.start[v]


def scene(model: Model) -> Scene:
    builder = GraphBuilder().vertex("a", 2, outputs=[4, 2], memory=1)
    builder.vertex("b", 3, outputs=[3]).vertex("c", 3, memory=2).vertex("e", 2).vertex("f", 1)
    builder.vertex("q", 1).vertex("x", 5, outputs=[1])
    builder.vertex("typed", 1, device_type="CPU").vertex("g", 1).vertex("h", 1)
    builder.vertex("named", 1, devices=["d3", "d0"]).vertex("r", 1).vertex("s", 1)
    builder.edge("a", "b", 0).edge("a", "c", 0).edge("a", "c", 1).edge("a", "e", 0)
    builder.edge("b", "f", 0).edge("f", "q", None).edge("a", "x", None)
    builder.colocate("g", "h").separate("r", "s")
    kinds = ["CPU", "GPU", "GPU", "CPU"]
    bandwidth = [[1] * 4, [1, 1, 1, 0], [1] * 4, [1] * 4]
    instance = Instance(
        builder.build(),
        Cluster.of([Device(f"d{d}", 1, kind, 100) for d, kind in enumerate(kinds)], bandwidth),
        model,
    )
    order: list[Step] = [A, BIG_TO_1, SMALL_TO_1, BIG_TO_2, X, B, B_TO_2, C, E, F, Q]
    order += [TYPED, G, H, NAMED, R, S]
    return Scene(instance, retime(instance, PLACEMENT, order))


def each_model() -> list[Any]:
    return [
        pytest.param(
            replace(model, **memory),
            id=f"{model.communication}{model.channels}-{'-'.join(memory.values())}",
        )
        for model in COMMUNICATION
        for memory in MEMORY
    ]


every_model = pytest.mark.parametrize("model", each_model())


@every_model
def test_the_scene_is_valid(model: Model) -> None:
    it = scene(model)
    assert verify(it.instance, it.schedule) == []


#: What to break: the one rule that must be reported, and how.
BREAKS: dict[str, tuple[str, Callable[[Scene], Schedule]]] = {
    "a vertex starts before its tensor arrives": (
        "precedence",
        lambda it: altered(it.schedule, start={E: it.row(BIG_TO_2)[3] - LITTLE}),
    ),
    "a vertex starts before a predecessor on its device": (
        "precedence",
        lambda it: altered(it.schedule, start={F: LATE + 10, Q: LATE}),
    ),
    "a vertex starts before 0": ("start", lambda it: altered(it.schedule, start={TYPED: -LITTLE})),
    "two vertices overlap": (
        "device",
        lambda it: altered(it.schedule, start={H: it.start(G) + LITTLE}),
    ),
    "two vertices start together": (
        "device",
        lambda it: altered(it.schedule, start={H: it.start(G)}),
    ),
    "a wrong device type": (
        "device type",
        lambda it: altered(it.schedule, placement={TYPED: 1}, start={TYPED: LATE}),
    ),
    "a device that is not allowed": (
        "allowed devices",
        lambda it: altered(it.schedule, placement={NAMED: 1}, start={NAMED: LATE}),
    ),
    "a colocation group apart": (
        "colocation",
        lambda it: altered(it.schedule, placement={G: 1}, start={G: LATE}),
    ),
    "a separated pair together": (
        "separation",
        lambda it: altered(it.schedule, placement={S: PLACEMENT[R]}, start={S: LATE}),
    ),
    "a transfer is missing": (
        "transfers",
        lambda it: altered(
            it.schedule, transfers=[r for r in rows(it.schedule) if r[:2] != SMALL_TO_1]
        ),
    ),
    "all transfers are missing": ("transfers", lambda it: altered(it.schedule, transfers=[])),
    "a transfer is doubled": (
        "transfers",
        lambda it: altered(
            it.schedule,
            transfers=[(*BIG_TO_1, LATE, LATE + length(it, BIG_TO_1)), *rows(it.schedule)],
        ),
    ),
    "a transfer that nobody needs": (
        "transfers",
        lambda it: altered(
            it.schedule,
            transfers=[*rows(it.schedule), (1, 2, LATE, LATE + length(it, SMALL_TO_1))],
        ),
    ),
    "a transfer to its own device": (
        "transfers",
        lambda it: altered(it.schedule, transfers=[*rows(it.schedule), (0, 0, LATE, LATE)]),
    ),
    "a transfer starts before its tensor is made": (
        "transfers",
        lambda it: altered(
            it.schedule, transfers=it.with_row(B_TO_2, Fraction(0), length(it, B_TO_2))
        ),
    ),
    "a transfer is too short": (
        "transfers",
        lambda it: altered(
            it.schedule,
            transfers=it.with_row(B_TO_2, it.row(B_TO_2)[2], it.row(B_TO_2)[3] - LITTLE),
        ),
    ),
    "a transfer is too long": (
        "transfers",
        lambda it: altered(
            it.schedule,
            start={F: LATE, Q: LATE + 1},
            transfers=it.with_row(B_TO_2, it.row(B_TO_2)[2], it.row(B_TO_2)[3] + LITTLE),
        ),
    ),
    "a transfer over a missing link": (
        "link",
        lambda it: altered(
            it.schedule,
            placement={F: 3, Q: 3},
            start={F: LATE, Q: LATE + 1},
            transfers=[(2, 3, *r[2:]) if r[:2] == B_TO_2 else r for r in rows(it.schedule)],
        ),
    ),
    "a vertex without a device": (
        "complete",
        lambda it: replace(it.schedule, placement=it.schedule.placement[:-1]),
    ),
    "a vertex without a start": (
        "complete",
        lambda it: replace(it.schedule, start=it.schedule.start.take(np.arange(S))),
    ),
    "a vertex on device 4 of 4": ("complete", lambda it: altered(it.schedule, placement={S: 4})),
    "a vertex on device -1": ("complete", lambda it: altered(it.schedule, placement={S: -1})),
    "a transfer of no tensor": (
        "complete",
        lambda it: altered(it.schedule, transfers=[(99, 1, LATE, LATE)]),
    ),
    "a transfer of tensor -1": (
        "complete",
        lambda it: altered(it.schedule, transfers=[(-1, 1, LATE, LATE)]),
    ),
    "a transfer to no device": (
        "complete",
        lambda it: altered(it.schedule, transfers=[(0, 4, LATE, LATE)]),
    ),
    "transfers without tensors": ("complete", lambda it: cut(it.schedule, "tensor")),
    "transfers without targets": ("complete", lambda it: cut(it.schedule, "target")),
    "transfers without starts": ("complete", lambda it: cut(it.schedule, "start")),
    "transfers without ends": ("complete", lambda it: cut(it.schedule, "end")),
}


def length(it: Scene, move: tuple[int, int]) -> Fraction:
    _, _, start, end = it.row(move)
    return end - start


def cut(schedule: Schedule, field: str) -> Schedule:
    column = getattr(schedule.transfers, field)
    shorter = column[:-1] if isinstance(column, np.ndarray) else column.take(np.arange(3))
    entry: dict[str, Any] = {field: shorter}
    return replace(schedule, transfers=replace(schedule.transfers, **entry))


@every_model
@pytest.mark.parametrize("name", BREAKS)
def test_a_broken_rule_is_reported_alone(model: Model, name: str) -> None:
    rule, broken = BREAKS[name]
    it = scene(model)
    assert rules(it.instance, broken(it)) == {rule}


@every_model
def test_an_impossible_duration(model: Model) -> None:
    it = scene(model)
    graph = it.instance.graph
    times: list[list[Any]] = [[graph.ops[v]] * 4 for v in range(len(graph))]
    times[S][1] = None
    timed = replace(it.instance, durations=times)
    assert verify(timed, it.schedule) == []
    moved = altered(it.schedule, placement={S: 1}, start={S: LATE})
    assert rules(timed, moved) == {"durations"}
    assert verify(it.instance, moved) == []


@every_model
def test_a_device_with_a_little_too_little_memory(model: Model) -> None:
    it = scene(model)
    for d, peak in peaks(it.instance, it.schedule).items():
        exact = with_capacity(it.instance, {d: peak})
        assert verify(exact, it.schedule) == []
        if peak > 0:
            below = with_capacity(it.instance, {d: peak - LITTLE})
            assert rules(below, it.schedule) == {"memory"}


@pytest.mark.parametrize("memory", MEMORY)
class TestQueues:
    """Rules of one communication model only."""

    def test_a_send_must_not_overlap_a_vertex(self, memory: dict[str, Any]) -> None:
        it = scene(replace(COMMUNICATION[1], **memory))
        broken = altered(it.schedule, start={X: it.start(X) - LITTLE})
        assert rules(it.instance, broken) == {"device"}

    def test_two_sends_must_not_overlap(self, memory: dict[str, Any]) -> None:
        it = scene(replace(COMMUNICATION[1], **memory))
        early = it.row(SMALL_TO_1)[2] + LITTLE
        transfers = it.with_row(BIG_TO_2, early, early + length(it, BIG_TO_2))
        assert rules(it.instance, altered(it.schedule, transfers=transfers)) == {"device"}

    def test_two_transfers_must_not_overlap_on_a_link(self, memory: dict[str, Any]) -> None:
        it = scene(replace(COMMUNICATION[2], **memory))
        early = it.row(BIG_TO_1)[3] - LITTLE
        transfers = it.with_row(SMALL_TO_1, early, early + length(it, SMALL_TO_1))
        assert list(map(str, verify(it.instance, altered(it.schedule, transfers=transfers)))) == [
            "link: a:0 and a:1 overlap from d0 to d1"
        ]

    @pytest.mark.parametrize("model", COMMUNICATION[3:], ids=["1 channel", "2 channels"])
    def test_a_sending_port_must_not_carry_too_many(
        self, model: Model, memory: dict[str, Any]
    ) -> None:
        it = scene(replace(model, **memory))
        early = it.row(BIG_TO_2)[2] - LITTLE
        transfers = it.with_row(BIG_TO_2, early, early + length(it, BIG_TO_2))
        broken = altered(it.schedule, transfers=transfers)
        assert rules(it.instance, broken) == {"port"}
        assert len(verify(it.instance, broken)) == 1

    def test_a_receiving_port_must_not_carry_too_many(self, memory: dict[str, Any]) -> None:
        it = scene(replace(COMMUNICATION[3], **memory))
        early = it.row(BIG_TO_2)[3] - LITTLE
        transfers = it.with_row(B_TO_2, early, early + length(it, B_TO_2))
        broken = altered(it.schedule, transfers=transfers)
        (violation,) = verify(it.instance, broken)
        assert violation.rule == "port"
        assert "receive port of d2 carries 2 transfers" in violation.message

    @pytest.mark.parametrize("model", COMMUNICATION, ids=lambda m: f"{m.communication}{m.channels}")
    def test_a_transfer_may_take_longer_unless_nothing_queues(
        self, model: Model, memory: dict[str, Any]
    ) -> None:
        it = scene(replace(model, **memory))
        start = it.row(B_TO_2)[2] + 100
        dawdling = altered(
            it.schedule,
            start={F: LATE, Q: LATE + 1},
            transfers=it.with_row(B_TO_2, start, start + length(it, B_TO_2)),
        )
        expected = {"transfers"} if model.communication == "delay" else set()
        assert rules(it.instance, dawdling) == expected


# --- fine points ----------------------------------------------------------------------------------


def scheduled(
    placement: list[int], start: list[int | Fraction], transfers: Iterable[Row] = ()
) -> Schedule:
    return Schedule(
        np.array(placement, dtype=np.int32),
        RationalArray.from_fractions(map(Fraction, start)),
        Transfers.of(transfers),
    )


class TestZeroLength:
    @pytest.mark.parametrize(
        ("start", "expected"), [(0, set()), (3, set()), (2, {"device"}), (5, set())]
    )
    def test_a_vertex_without_length_may_touch_another(
        self, start: int, expected: set[str]
    ) -> None:
        graph = GraphBuilder().vertex("long", 3).vertex("instant", 0).build()
        instance = Instance(graph, Cluster.uniform(1))
        assert rules(instance, scheduled([0, 0], [0, start])) == expected

    def test_many_may_share_a_moment(self) -> None:
        graph = GraphBuilder().vertex("a").vertex("b").vertex("c").edge("a", "b", None).build()
        assert verify(Instance(graph, Cluster.uniform(1)), scheduled([0, 0, 0], [4, 4, 4])) == []

    @pytest.mark.parametrize("communication", ["link", "port"])
    @pytest.mark.parametrize(("at", "valid"), [(1, True), (2, False), (5, True)])
    def test_a_transfer_without_length_waits_for_a_busy_link_or_port(
        self, communication: Communication, at: int, valid: bool
    ) -> None:
        builder = GraphBuilder().vertex("a", 1, outputs=[4, 0]).vertex("b")
        builder.edge("a", "b", 0).edge("a", "b", 1)
        instance = Instance(builder.build(), Cluster.uniform(2, bandwidth=1), Model(communication))
        moves = [(0, 1, Fraction(1), Fraction(5)), (1, 1, Fraction(at), Fraction(at))]
        assert (verify(instance, scheduled([0, 1], [0, 5], moves)) == []) is valid

    @pytest.mark.parametrize(("at", "valid"), [(1, True), (2, False), (4, True)])
    def test_a_send_without_length_waits_for_a_busy_device(self, at: int, valid: bool) -> None:
        builder = GraphBuilder().vertex("a", 1, outputs=[2]).vertex("x", 3).vertex("b")
        instance = Instance(
            builder.edge("a", "b").build(), Cluster.uniform(2, bandwidth=1), Model("sendrecv")
        )
        moves = [(0, 1, Fraction(at), Fraction(at + 2))]
        assert (verify(instance, scheduled([0, 0, 1], [0, 1, 9], moves)) == []) is valid


class TestControl:
    """A control dependency is a tensor of size 0 that crosses like any other."""

    @pytest.mark.parametrize(("arrival", "expected"), [(4, set()), (1, {"transfers"})])
    def test_it_takes_the_latency(self, arrival: int, expected: set[str]) -> None:
        graph = GraphBuilder().vertex("a", 1).vertex("b", 1).edge("a", "b", None).build()
        instance = Instance(graph, Cluster.uniform(2, bandwidth=1, latency=3))
        moves = [(0, 1, Fraction(1), Fraction(arrival))]
        assert rules(instance, scheduled([0, 1], [0, 4], moves)) == expected

    def test_it_needs_a_link(self) -> None:
        graph = GraphBuilder().vertex("a", 1).vertex("b", 1).edge("a", "b", None).build()
        instance = Instance(graph, Cluster.uniform(2, bandwidth=0))
        moves = [(0, 1, Fraction(1), Fraction(1))]
        assert rules(instance, scheduled([0, 1], [0, 1], moves)) == {"link"}
        assert rules(instance, scheduled([0, 1], [0, 1])) == {"transfers"}


class TestMeasuredDelays:
    def instance(self, bandwidth: int = 1) -> Instance:
        builder = GraphBuilder().vertex("a", 1).vertex("b", 1)
        builder.output("a", 4, [[0, 7], [None, 0]])
        graph = builder.edge("a", "b").build()
        return Instance(graph, Cluster.uniform(2, bandwidth=bandwidth, latency=5))

    def test_they_replace_latency_and_bandwidth(self) -> None:
        moves = [(0, 1, Fraction(1), Fraction(8))]
        assert verify(self.instance(), scheduled([0, 1], [0, 8], moves)) == []
        moves = [(0, 1, Fraction(1), Fraction(10))]
        assert rules(self.instance(), scheduled([0, 1], [0, 10], moves)) == {"transfers"}

    def test_null_is_no_link(self) -> None:
        moves = [(0, 0, Fraction(1), Fraction(8))]
        assert rules(self.instance(), scheduled([1, 0], [0, 8], moves)) == {"link"}


def test_a_group_has_any_size() -> None:
    graph = GraphBuilder().vertex("a").vertex("b").vertex("c").colocate("a", "b", "c").build()
    instance = Instance(graph, Cluster.uniform(2))
    assert rules(instance, scheduled([0, 0, 1], [0, 0, 0])) == {"colocation"}


@pytest.mark.parametrize("communication", ["link", "port"])
def test_a_transfer_waits_until_its_tensor_is_made(communication: Communication) -> None:
    graph = GraphBuilder().vertex("a", 3, outputs=[2]).vertex("b").edge("a", "b").build()
    instance = Instance(graph, Cluster.uniform(2, bandwidth=1), Model(communication))
    moves = [(0, 1, Fraction(2), Fraction(4))]
    assert rules(instance, scheduled([0, 1], [0, 5], moves)) == {"transfers"}


def test_groups_that_share_a_vertex_are_one() -> None:
    graph = GraphBuilder().vertex("a").vertex("b").vertex("c").colocate("a", "b")
    instance = Instance(graph.colocate("b", "c").build(), Cluster.uniform(2))
    assert verify(instance, scheduled([1, 1, 1], [0, 0, 0])) == []
    assert rules(instance, scheduled([1, 1, 0], [0, 0, 0])) == {"colocation"}
    assert rules(instance, scheduled([0, 1, 0], [0, 0, 0])) == {"colocation"}


def test_a_vertex_separated_from_itself_fits_nowhere() -> None:
    graph = GraphBuilder().vertex("a").separate("a", "a").build()
    assert rules(Instance(graph, Cluster.uniform(2)), scheduled([1], [0])) == {"separation"}


def test_an_overlap_is_found_behind_a_shorter_vertex() -> None:
    graph = GraphBuilder().vertex("long", 9).vertex("short", 1).vertex("late", 1).build()
    violations = verify(Instance(graph, Cluster.uniform(1)), scheduled([0, 0, 0], [0, 1, 5]))
    assert [violation.message for violation in violations] == [
        "long and short overlap on d0",
        "long and late overlap on d0",
    ]


def test_it_stops_after_the_requested_number() -> None:
    graph = GraphBuilder().vertex("a").vertex("b").vertex("c").build()
    instance = Instance(graph, Cluster.uniform(1))
    schedule = scheduled([0, 0, 0], [-1, -2, -3])
    assert len(verify(instance, schedule)) == 3
    assert [str(violation) for violation in verify(instance, schedule, most=1)] == [
        "start: a starts at -1, before 0"
    ]


def test_an_empty_schedule_of_an_empty_graph_is_valid() -> None:
    instance = Instance(GraphBuilder().build(), Cluster.uniform(1), Model(memory="refcount"))
    assert verify(instance, scheduled([], [])) == []


# --- memory ---------------------------------------------------------------------------------------


def peaks(instance: Instance, schedule: Schedule) -> dict[int, Fraction]:
    """The most that each device ever holds, as an independent verifier counts it."""
    if instance.model.memory == "none":
        return {}
    graph = instance.graph
    tensors = [
        (int(u), None if o == CONTROL else int(o))
        for u, o in zip(graph.tensor_vertex, graph.tensor_output, strict=True)
    ]
    moves = [(tensors[tensor], *rest) for tensor, *rest in rows(schedule)]
    naive = NaiveVerifier(instance.to_dict())
    found = naive.peaks(schedule.placement.tolist(), schedule.start.fractions(), moves)
    return dict(enumerate(found))


@pytest.mark.parametrize("model", COMMUNICATION, ids=lambda m: f"{m.communication}{m.channels}")
@pytest.mark.parametrize("memory", MEMORY[1:], ids=lambda m: "-".join(m.values()))
def test_the_peak_is_the_maximum_over_all_moments(model: Model, memory: dict[str, Any]) -> None:
    rng = np.random.default_rng(5)
    held = 0
    for _ in range(25):
        drawn = random_instance(rng, 6, 3, memory="refcount", no_links=False)
        instance = replace(drawn, model=replace(model, **memory))
        placement = random_placement(rng, instance)
        if placement is None:
            continue
        order = random_order(rng, instance, crossings(instance, placement))
        schedule = retime(instance, placement, order)
        highest = peaks(instance, schedule)
        assert verify(with_capacity(instance, highest), schedule) == []
        for d, peak in highest.items():
            if peak > 0:
                below = with_capacity(instance, {**highest, d: peak * Fraction(6, 7)})
                assert rules(below, schedule) == {"memory"}
                held += 1
    assert held > 10


def holds(graph: GraphBuilder, model: Model, schedule: Schedule, device: int, peak: int) -> None:
    """Assert that ``peak`` on ``device`` is enough and anything less is not."""
    instance = Instance(graph.build(), Cluster.uniform(2, bandwidth=1), model)
    assert verify(instance, schedule) == []
    assert verify(with_capacity(instance, {device: Fraction(peak)}), schedule) == []
    below = with_capacity(instance, {device: peak - Fraction(1, 1000)})
    assert rules(below, schedule) == {"memory"}


class TestPeaksByHand:
    """Exact peaks, each for one reason."""

    def test_estimate_counts_inputs_at_every_consumer(self) -> None:
        """[L] §4.1 (3): b and c both hold the tensor that a hands on."""
        graph = GraphBuilder().vertex("a", 1, memory=1, outputs=[5, 2]).vertex("b", 1, memory=3)
        graph.vertex("c", 1).edge("a", "b", 0).edge("a", "c", 0)
        model = Model(memory="estimate")
        holds(graph, model, scheduled([0, 0, 0], [0, 1, 2]), 0, (1 + 5 + 2) + (3 + 5) + 5)
        moved = scheduled([0, 1, 1], [0, 6, 7], [(0, 1, Fraction(1), Fraction(6))])
        holds(graph, model, moved, 0, 1 + 5 + 2)
        holds(graph, model, moved, 1, (3 + 5) + 5)

    def test_edges_count_each_waiting_edge(self) -> None:
        """[M] eq. 2: while p runs, the tensor of u waits for v and for w."""
        graph = GraphBuilder().vertex("u", 1, memory=9, outputs=[5]).vertex("p", 3, outputs=[2])
        graph.vertex("v", 1).vertex("w", 1)
        graph.edge("u", "v").edge("u", "w").edge("p", "v")
        holds(graph, Model(memory="edges"), scheduled([0, 0, 0, 0], [0, 1, 4, 5]), 0, 5 + 5)

    def test_edges_do_not_count_tensors_used_immediately(self) -> None:
        graph = GraphBuilder().vertex("u", 1, outputs=[5]).vertex("v", 1).edge("u", "v")
        instance = Instance(graph.build(), Cluster.uniform(1, memory=0), Model(memory="edges"))
        assert verify(instance, scheduled([0, 0], [0, 1])) == []
        assert rules(instance, scheduled([0, 0], [0, 2])) == {"memory"}

    def test_edges_wait_where_they_are_used_from_their_arrival(self) -> None:
        graph = GraphBuilder().vertex("u", 1, outputs=[5]).vertex("y", 8, outputs=[3])
        graph.vertex("v", 1).edge("u", "v").edge("y", "v")
        schedule = scheduled([0, 1, 1], [0, 0, 8], [(0, 1, Fraction(1), Fraction(6))])
        holds(graph, Model(memory="edges"), schedule, 1, 5)

    @pytest.mark.parametrize(("release", "peak"), [("end", 1 + 5 + 2 + 3), ("start", 1 + 5 + 2)])
    def test_refcount_frees_inputs_when_the_last_consumer_ends_or_starts(
        self, release: Release, peak: int
    ) -> None:
        """v needs both tensors and makes 3 more; [L] §3.1.6 frees the inputs as it starts."""
        graph = GraphBuilder().vertex("u", 1, memory=1, outputs=[5]).vertex("p", 3, outputs=[2])
        graph.vertex("v", 1, outputs=[3]).edge("u", "v").edge("p", "v")
        model = Model(memory="refcount", release=release)
        holds(graph, model, scheduled([0, 0, 0], [0, 1, 4]), 0, peak)

    @pytest.mark.parametrize("release", ["end", "start"])
    def test_refcount_frees_unused_tensors_immediately(self, release: Release) -> None:
        graph = GraphBuilder().vertex("u", 1, outputs=[5]).vertex("v", 1, outputs=[4])
        model = Model(memory="refcount", release=release)
        holds(graph, model, scheduled([0, 0], [0, 1]), 0, 5)
        holds(graph, model, scheduled([0, 0], [1, 0]), 0, 5)

    def test_refcount_keeps_a_tensor_at_home_until_it_has_gone(self) -> None:
        graph = GraphBuilder().vertex("u", 1, outputs=[4]).vertex("k", 2, outputs=[3])
        graph.vertex("v", 1).edge("u", "v")
        model, moves = Model(memory="refcount"), [(0, 1, Fraction(1), Fraction(5))]
        holds(graph, model, scheduled([0, 0, 1], [0, 4, 5], moves), 0, 4 + 3)
        holds(graph, model, scheduled([0, 0, 1], [0, 5, 5], moves), 0, 4)

    def test_refcount_counts_a_copy_from_the_start_of_its_transfer(self) -> None:
        graph = GraphBuilder().vertex("u", 1, outputs=[4]).vertex("y", 2, outputs=[6])
        graph.vertex("v", 1).edge("u", "v")
        model, moves = Model(memory="refcount"), [(0, 1, Fraction(1), Fraction(5))]
        holds(graph, model, scheduled([0, 1, 1], [0, 0, 5], moves), 1, 4 + 6)
        holds(graph, model, scheduled([0, 1, 1], [0, 6, 5], moves), 1, 6)

    def test_refcount_counts_a_send_as_part_of_its_transfer(self) -> None:
        graph = GraphBuilder().vertex("u", 1, outputs=[4]).vertex("y", 2, outputs=[6])
        graph.vertex("v", 1).edge("u", "v")
        model = Model("sendrecv", "refcount", send_ops=Fraction(1))
        holds(
            graph, model, scheduled([0, 1, 1], [0, 0, 6], [(0, 1, Fraction(1), Fraction(6))]), 1, 10
        )
        holds(
            graph, model, scheduled([0, 1, 1], [0, 0, 7], [(0, 1, Fraction(2), Fraction(7))]), 1, 6
        )

    def test_refcount_holds_a_tensor_once_for_all_consumers(self) -> None:
        graph = GraphBuilder().vertex("u", 1, outputs=[4]).vertex("v", 1).vertex("w", 1)
        graph.edge("u", "v").edge("u", "w")
        model = Model(memory="refcount")
        holds(graph, model, scheduled([0, 0, 0], [0, 1, 2]), 0, 4)
        moves = [(0, 1, Fraction(1), Fraction(5))]
        holds(graph, model, scheduled([0, 1, 1], [0, 5, 6], moves), 1, 4)

    def test_refcount_always_counts_resident_memory(self) -> None:
        graph = GraphBuilder().vertex("u", 1, memory=2, outputs=[4]).vertex("v", 1, memory=3)
        holds(graph, Model(memory="refcount"), scheduled([0, 0], [0, 9]), 0, 2 + 3 + 4)


# --- any instance ---------------------------------------------------------------------------------


@pytest.mark.parametrize("communication", ["delay", "sendrecv", "link", "port"])
class TestRetimed:
    """The verifier accepts what retime() builds, and nothing earlier."""

    def test_any_placement_and_order_passes(self, communication: Communication) -> None:
        @given(solutions(communication=communication))
        def passes(solution: Solution) -> None:
            instance, placement, order = solution
            assert verify(instance, retime(instance, placement, order)) == []

        passes()

    def test_no_vertex_can_start_a_little_earlier(self, communication: Communication) -> None:
        rng = np.random.default_rng(6)
        for _ in range(40):
            instance = random_instance(rng, 6, 3, communication=communication)
            placement = random_placement(rng, instance)
            if placement is None:
                continue
            order = random_order(rng, instance)
            schedule = retime(instance, placement, order)
            for v in range(instance.vertices):
                earlier = altered(schedule, start={v: schedule.start[v] - Fraction(1, 10**6)})
                assert rules(instance, earlier)


class TestVerifiedAgain:
    """What was valid is checked anew each time: arrays may have been changed in place."""

    @pytest.fixture
    def instance(self) -> Instance:
        graph = GraphBuilder().vertex("a", 2, outputs=[1]).vertex("b", 3).edge("a", "b").build()
        return Instance(graph, Cluster.uniform(2, bandwidth=1))

    def test_in_another_instance(self, instance: Instance) -> None:
        schedule = retime(instance, [0, 1], [0, (0, 1), 1])
        assert not verify(instance, schedule)
        slower = replace(instance, cluster=Cluster.uniform(2, bandwidth=Fraction(1, 2)))
        assert verify(slower, schedule)

    def test_in_an_instance_that_has_changed_since(self, instance: Instance) -> None:
        schedule = retime(instance, [0, 1], [0, (0, 1), 1])
        assert not verify(instance, schedule)
        instance.graph.ops.numerators[0] = 3
        assert verify(instance, schedule)

    @pytest.mark.parametrize("part", ["placement", "start", "transfers.start", "transfers.target"])
    def test_a_schedule_that_has_changed_since(self, instance: Instance, part: str) -> None:
        schedule = retime(instance, [0, 1], [0, (0, 1), 1])
        assert not verify(instance, schedule)
        array = attrgetter(part)(schedule)
        getattr(array, "numerators", array)[-1] = 0
        assert verify(instance, schedule)

    def test_times_over_another_denominator(self, instance: Instance) -> None:
        schedule = retime(instance, [0, 1], [0, (0, 1), 1])
        assert not verify(instance, schedule)
        assert verify(instance, replace(schedule, start=replace(schedule.start, denominator=2)))

    def test_numbers_of_any_width(self, instance: Instance) -> None:
        schedule = retime(instance, [0, 1], [0, (0, 1), 1])
        wide = RationalArray(schedule.start.numerators.astype(object))
        assert not verify(instance, replace(schedule, start=wide))
        wide.numerators[-1] = 0
        assert verify(instance, replace(schedule, start=wide))
