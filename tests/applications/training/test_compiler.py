"""What a strategy compiles to."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from optpart.applications.training.cluster import TrainingCluster
from optpart.applications.training.collectives import allreduce
from optpart.applications.training.compiled import Compiled, Options, VertexKind
from optpart.applications.training.compiler import check_parameters_fit, compile_strategy
from optpart.applications.training.graph import (
    CONTROL,
    Edge,
    Layout,
    Line,
    Operation,
    Output,
    Parameter,
    Role,
    TrainingGraph,
)
from optpart.applications.training.strategy import Decision, Strategy
from optpart.base.errors import InputError
from optpart.lower_bounds.load import load_bound
from optpart.problem.cluster import Cluster, Device
from optpart.problem.feasibility import contradiction
from optpart.solution.metrics import loads, peak_memory
from optpart.solution.schedule import Schedule
from optpart.solution.verifier import verify
from optpart.strategies.base import Partition
from optpart.strategies.scheduling.heterog import heterog
from optpart.strategies.simulator import simulate
from optpart.testing.training import (
    layer_chain,
    random_strategy,
    random_training_cluster,
    random_training_graph,
)

EXACT = Options(tick=None)
FREE = Options(tick=None, auxiliary="free")


def cluster(
    kinds: str = "ff",
    rate: Any = 2,
    latency: Any = 3,
    *,
    memory: int | None = None,
    copying: int | None = None,
    servers: str = "",
) -> TrainingCluster:
    k = len(kinds)
    devices = [Device(f"g{d}", memory=memory) for d in range(k)]
    speeds = None if copying is None else Fraction(copying)
    return TrainingCluster(
        Cluster.of(devices, rate, latency),
        tuple({"f": "fast", "s": "slow"}[kind] for kind in kinds),
        tuple(map(int, servers or "0" * k)),
        (speeds,) * k,
    )


def line(alpha: Fraction | int = 0, beta: Fraction | int = 0) -> Line:
    return Line(Fraction(alpha), Fraction(beta))


def operation(
    name: str, *outputs: Output, time: Line | None = None, splittable: bool = True
) -> Operation:
    times = (time or line(0, 1), time or line(0, 2))
    return Operation(name, Role.FORWARD, times, outputs, splittable)


def batched(beta: int = 1, alpha: int = 0) -> Output:
    return Output(Layout.BATCHED, line(alpha, beta))


def graph_of(operations: list[Operation], edges: list[tuple[int, int, int]]) -> TrainingGraph:
    made = tuple(Edge(u, output, v) for u, output, v in edges)
    return TrainingGraph("test", ("fast", "slow"), tuple(operations), made)


def strategy(graph: TrainingGraph, batch: int, *decisions: Decision) -> Strategy:
    """Give each operation a decision of its own, or all the same."""
    if len(decisions) == 1:
        return Strategy(batch, (tuple(range(len(graph))),), decisions)
    return Strategy(batch, tuple((o,) for o in range(len(graph))), decisions)


def built(
    graph: TrainingGraph,
    batch: int,
    *decisions: Decision,
    on: TrainingCluster | None = None,
    options: Options | None = None,
    **given: Any,
) -> Compiled:
    made = strategy(graph, batch, *decisions)
    return compile_strategy(graph, on or cluster(), made, options or Options(**given))


def scheduled(compiled: Compiled) -> Schedule:
    schedule = simulate(compiled.instance, Partition(compiled.placement), heterog)
    assert not verify(compiled.instance, schedule)
    return schedule


def makespan(compiled: Compiled) -> Fraction:
    return scheduled(compiled).makespan(compiled.instance)


def described(compiled: Compiled) -> set[str]:
    """Return each edge as what it carries, in words."""
    graph = compiled.instance.graph
    return {
        f"{graph.names[u]} → {graph.names[v]}"
        + ("" if (size := graph.tensor_size[t]) == 0 else f": {size}")
        for u, v, t in zip(graph.edge_source, graph.edge_target, graph.edge_tensor, strict=True)
    }


def kinds(compiled: Compiled) -> Counter[str]:
    return Counter(str(vertex.kind) for vertex in compiled.vertices)


def times(compiled: Compiled) -> dict[str, Fraction]:
    instance = compiled.instance
    return {name: instance.graph.ops[v] for v, name in enumerate(instance.graph.names)}


# --- results known in closed form ------------------------------------------------------------


def test_n_equal_devices_take_an_nth_of_one_which_is_optimal() -> None:
    graph = layer_chain([[line(0, 5)]] * 3, [[line(0, 7)]] * 3, gradient=100)
    for n in (1, 2, 3, 4):
        many = Decision((1,) * n, "allreduce" if n > 1 else None)
        compiled = built(graph, 12, many, on=cluster("f" * n, None, 0))
        assert makespan(compiled) == Fraction(12 * 3 * (5 + 7), n)
        assert load_bound(compiled.instance) == makespan(compiled)


@pytest.mark.parametrize("n", [2, 3, 5])
@pytest.mark.parametrize("topology", ["pairs", "shared"])
def test_the_transfers_of_a_ring_take_as_long_as_the_formula_says(n: int, topology: Any) -> None:
    graph = layer_chain([[line()]], [[line()]], gradient=60)
    given = strategy(graph, n, Decision((1,) * n, "allreduce"))
    found = {}
    for collectives in ("queue", "ring"):
        # With one device per server and a link of its own for every pair.
        options = replace(FREE, collectives=collectives, topology=topology)
        compiled = compile_strategy(graph, cluster("f" * n), given, options)
        found[collectives] = makespan(compiled)
    transfers = 2 * n * (n - 1)
    assert kinds(compiled)["chunk"] == n + transfers
    if topology == "pairs":
        assert found["ring"] == found["queue"] == 2 * (n - 1) * (3 + Fraction(60, 2 * n))
    else:  # they share one link, one after the other
        assert kinds(compiled)["transfer"] == transfers
        assert found["ring"] == transfers * (3 + Fraction(60, 2 * n))


def test_the_transfers_of_a_ring_over_unlike_links_take_at_most_what_the_formula_says() -> None:
    graph = layer_chain([[line()]], [[line()]], gradient=60)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(2, 6))
        many = random_training_cluster(rng, n, ("fast",))
        many = replace(many, servers=tuple(range(n)))  # so that a ring is the only structure
        given = strategy(graph, n, Decision((1,) * n, "allreduce"))
        compiled = compile_strategy(graph, many, given, replace(FREE, collectives="ring"))
        assert makespan(compiled) <= allreduce(many, range(n), Fraction(60)).time


# --- replicas --------------------------------------------------------------------------------


def test_a_device_computes_its_share_in_one_vertex_or_in_one_per_replica() -> None:
    graph = graph_of([operation("a", time=line(10, 3))], [])
    given = strategy(graph, 12, Decision((2, 1), 0))
    fused = compile_strategy(graph, cluster(), given)
    assert times(fused) == {"a @g0": 10 + 3 * 8, "a @g1": 10 + 3 * 4}
    separate = compile_strategy(graph, cluster(), given, Options(replicas="separate"))
    assert times(separate) == dict.fromkeys(("a @g0 #1", "a @g0 #2", "a @g1"), 10 + 3 * 4)


def test_what_cannot_split_computes_the_whole_batch_once_on_each_device() -> None:
    graph = graph_of([operation("a", time=line(10, 3), splittable=False)], [])
    for option in ("fused", "separate"):
        compiled = built(graph, 12, Decision((2, 1), 0), replicas=option)
        assert times(compiled) == {"a @g0": 10 + 3 * 12, "a @g1": 10 + 3 * 12}


def test_an_update_takes_its_time_once_whatever_the_microbatches() -> None:
    changed = [replace(o, times=(line(5, 1),)) for o in LAYER.operations]
    graph = replace(LAYER, operations=tuple(changed))
    for count in (1, 3):
        compiled = built(graph, 12, Decision((2, 1), 0), microbatches=count)
        assert times(compiled)["a0 @g0"] == 5 + 8


def test_each_vertex_has_one_device_which_is_that_of_its_share() -> None:
    graph = layer_chain([[line(0, 1)]], [[line(0, 1)]], gradient=1)
    compiled = built(graph, 4, Decision((1, 0, 1), "allreduce"), on=cluster("fff"))
    instance = compiled.instance
    assert instance.cluster.names == ("g0", "g1", "g2", "nccl")
    assert (instance.allowed.sum(axis=1) == 1).all()
    assert (instance.allowed.argmax(axis=1) == compiled.placement).all()
    assert times(compiled).keys() == {
        *("f0 @g0", "f0 @g2", "b0 @g0", "b0 @g2", "a0 @g0", "a0 @g2"),
        "allreduce b0:1",
    }


def test_names_that_are_taken_do_not_clash() -> None:
    graph = graph_of([operation("a @g1"), operation("a @g1 @g0")], [])
    odd = cluster()
    names = [Device("g0"), Device("g1 @g0")]
    odd = replace(odd, cluster=Cluster.of(names, 1, 1))
    compiled = built(graph, 2, Decision.on(1, 2), Decision((1, 0)), on=odd)
    assert compiled.instance.graph.names == ("a @g1 @g1 @g0", "a @g1 @g0 @g0")
    graph = graph_of([operation("a"), operation("a @g1")], [])
    compiled = built(graph, 2, Decision.on(1, 2), Decision((1, 0)), on=odd)
    assert compiled.instance.graph.names == ("a @g1 @g0", "a @g1 @g0 (2)")
    chain = layer_chain([[line()]], [[line()]])
    taken = replace(
        cluster(), cluster=Cluster.of([Device("nccl"), Device("g")], 1, 1), kinds=("fast",) * 2
    )
    compiled = built(chain, 2, Decision((1, 1), "allreduce"), on=taken)
    assert compiled.instance.cluster.names == ("nccl", "g", "nccl'")


# --- layouts of samples ----------------------------------------------------------------------

PAIR = graph_of([operation("a", batched(10)), operation("b")], [(0, 0, 1)])


@pytest.mark.parametrize("resharding", ["overlap", "heterog"])
def test_the_same_samples_on_the_same_devices_need_nothing(resharding: Any) -> None:
    options = Options(resharding=resharding)
    compiled = built(PAIR, 6, Decision((2, 1), 0), Decision((2, 1), "allreduce"), options=options)
    assert described(compiled) == {"a @g0 → b @g0: 40", "a @g1 → b @g1: 20"}


@pytest.mark.parametrize("resharding", ["overlap", "heterog"])
def test_slices_are_concatenated_where_the_whole_is_needed(resharding: Any) -> None:
    compiled = built(
        PAIR,
        6,
        Decision((2, 1), 0),
        Decision.on(1, 2),
        on=cluster(copying=5),
        resharding=resharding,
    )
    assert described(compiled) == {
        "a @g0 → concat a:0 @g1: 40",
        "a @g1 → concat a:0 @g1: 20",
        "concat a:0 @g1 → b @g1: 60",
    }
    assert times(compiled)["concat a:0 @g1"] == Fraction(2 * 60, 5)


@pytest.mark.parametrize("resharding", ["overlap", "heterog"])
def test_the_whole_is_split_where_it_is_made(resharding: Any) -> None:
    compiled = built(
        PAIR,
        6,
        Decision.on(1, 2),
        Decision((2, 1), 0),
        on=cluster(copying=5),
        resharding=resharding,
    )
    assert described(compiled) == {
        "a @g1 → split a:0 @g1: 60",
        "split a:0 @g1 → b @g0: 40",
        "split a:0 @g1 → b @g1: 20",
    }
    assert times(compiled)["split a:0 @g1"] == Fraction(2 * 60, 5)


def test_devices_exchange_the_slices_in_which_unlike_layouts_overlap() -> None:
    compiled = built(PAIR, 6, Decision((1, 1), 0), Decision((2, 1), 0))
    # g0 has samples 0–2 and needs 0–3; g1 has 3–5 and needs 4–5.
    assert described(compiled) == {
        "a @g0 → concat a:0 @g0: 30",
        "a @g1 → split a:0 @g1: 30",
        "split a:0 @g1 → concat a:0 @g0: 10",
        "split a:0 @g1 → b @g1: 20",
        "concat a:0 @g0 → b @g0: 40",
    }


def test_a_slice_has_its_own_fixed_bytes() -> None:
    graph = graph_of([operation("a", batched(10, alpha=7)), operation("b")], [(0, 0, 1)])
    compiled = built(graph, 6, Decision.on(0, 2), Decision((2, 1), 0))
    assert "split a:0 @g0 → b @g1: 27" in described(compiled)


def test_in_heterog_chunks_are_joined_and_split_where_the_first_part_of_each_is() -> None:
    options = Options(replicas="separate", resharding="heterog")
    compiled = built(
        PAIR,
        12,
        Decision((1, 1, 1, 1), 0),
        Decision((2, 2, 1, 1), 0),
        on=cluster("ffff"),
        options=options,
    )
    # 4 and 6 replicas have 2 chunks in common: of 2 and 3 replicas.
    assert {edge for edge in described(compiled) if "concat" in edge} == {
        "a @g0 → concat a:0 @g0: 30",
        "a @g1 → concat a:0 @g0: 30",
        "concat a:0 @g0 → split a:0 @g0: 60",
        "a @g2 → concat a:0 @g2: 30",
        "a @g3 → concat a:0 @g2: 30",
        "concat a:0 @g2 → split a:0 @g2: 60",
    }
    assert {edge for edge in described(compiled) if edge.startswith("split")} == {
        *("split a:0 @g0 → b @g0 #1: 20", "split a:0 @g0 → b @g0 #2: 20"),
        *("split a:0 @g0 → b @g1 #1: 20", "split a:0 @g2 → b @g1 #2: 20"),
        *("split a:0 @g2 → b @g2: 20", "split a:0 @g2 → b @g3: 20"),
    }


def test_in_heterog_equally_many_replicas_exchange_by_number() -> None:
    options = Options(replicas="separate", resharding="heterog")
    compiled = built(PAIR, 6, Decision((2, 1), 0), Decision((1, 2), 0), options=options)
    assert described(compiled) == {
        "a @g0 #1 → b @g0: 20",
        "a @g0 #2 → b @g1 #1: 20",
        "a @g1 → b @g1 #2: 20",
    }


def test_consumers_with_the_same_samples_share_conversions() -> None:
    graph = graph_of(
        [operation("a", batched(10)), operation("b"), operation("c")], [(0, 0, 1), (0, 0, 2)]
    )
    two = Decision((1, 1), 0)
    for resharding in ("overlap", "heterog"):
        compiled = built(graph, 6, Decision((2, 1), 0), two, two, resharding=resharding)
        found = kinds(compiled)
        assert (found["split"], found["concat"]) == (1, 1)


def test_equal_parts_are_made_once_for_several_devices() -> None:
    graph = graph_of(
        [operation("a", batched(10)), operation("b"), operation("c")], [(0, 0, 1), (0, 0, 2)]
    )
    given = strategy(graph, 6, Decision.on(0, 3), Decision((1, 1, 0), 0), Decision((0, 1, 1), 1))
    compiled = compile_strategy(graph, cluster("fff"), given)
    assert described(compiled) == {
        "a @g0 → split a:0 @g0: 60",
        *("split a:0 @g0 → b @g0: 30", "split a:0 @g0 → b @g1: 30"),
        *("split a:0 @g0 → c @g1: 30", "split a:0 @g0 → c @g2: 30"),
    }
    assert compiled.instance.graph.tensors == 2 + 1  # two parts, and the whole


def test_in_heterog_the_first_reader_joins_the_whole_for_all() -> None:
    graph = graph_of([operation("a", batched(10)), operation("b", splittable=False)], [(0, 0, 1)])
    two = Decision((1, 1), 0)
    compiled = built(graph, 6, two, two, resharding="heterog")
    assert described(compiled) == {
        *("a @g0 → concat a:0 @g0: 30", "a @g1 → concat a:0 @g0: 30"),
        *("concat a:0 @g0 → b @g0: 60", "concat a:0 @g0 → b @g1: 60"),
    }
    overlap = built(graph, 6, two, two)
    assert kinds(overlap)["concat"] == 2


def test_a_consumer_takes_samples_from_a_whole_copy_nearby() -> None:
    graph = graph_of([operation("a", batched(10), splittable=False), operation("b")], [(0, 0, 1)])
    rate = [[None, 1, 1, 1], [1, None, 1, 2], [1, 1, None, 1], [1, 1, 1, None]]
    compiled = built(
        graph, 6, Decision((1, 1, 0, 0), 0), Decision((0, 1, 1, 1), 1), on=cluster("ffff", rate)
    )
    assert described(compiled) == {
        "a @g0 → split a:0 @g0: 60",
        "a @g1 → split a:0 @g1: 60",
        "split a:0 @g1 → b @g1: 20",  # its own
        "split a:0 @g0 → b @g2: 20",  # as near as g1, but first
        "split a:0 @g1 → b @g3: 20",  # nearest
    }


def test_what_has_no_samples_comes_from_the_own_device_or_the_nearest() -> None:
    whole = Output(Layout.WHOLE, line(8))
    graph = graph_of([operation("a", whole), operation("b")], [(0, 0, 1)])
    rate = [[None, 1, 2], [1, None, 4], [1, 1, None]]
    compiled = built(
        graph, 6, Decision((1, 1, 0), 0), Decision((0, 1, 1), 1), on=cluster("fff", rate)
    )
    assert described(compiled) == {"a @g1 → b @g1: 8", "a @g1 → b @g2: 8"}


def test_the_own_copy_is_read_even_if_transfers_take_no_time() -> None:
    graph = graph_of([operation("a", Output(Layout.WHOLE, line(8))), operation("b")], [(0, 0, 1)])
    two = Decision((1, 1), 0)
    compiled = built(graph, 6, two, two, on=cluster("ff", None, 0))
    assert described(compiled) == {"a @g0 → b @g0: 8", "a @g1 → b @g1: 8"}


def test_all_replicas_of_the_consumer_wait_for_all_of_a_control_dependency() -> None:
    graph = graph_of([operation("a"), operation("b")], [(0, CONTROL, 1)])
    compiled = built(graph, 6, Decision((1, 1, 0), 0), Decision((0, 1, 1), 1), on=cluster("fff"))
    assert described(compiled) == {f"a @g{d} → b @g{e}" for d in (0, 1) for e in (1, 2)}


# --- gradients -------------------------------------------------------------------------------

LAYER = layer_chain([[line(0, 1)]], [[line(0, 1)]], gradient=90)


def edges_about_gradients(compiled: Compiled) -> set[str]:
    return {edge for edge in described(compiled) if not edge.startswith("f0")}


def test_a_single_device_applies_its_gradient() -> None:
    compiled = built(LAYER, 6, Decision.on(1, 2))
    assert edges_about_gradients(compiled) == {"b0 @g1 → a0 @g1: 90"}


def test_a_parameter_server_sums_and_sends_back() -> None:
    compiled = built(LAYER, 6, Decision((2, 1), 1), on=cluster(copying=5))
    assert edges_about_gradients(compiled) == {
        "b0 @g0 → addn b0:1 @g1: 90",
        "b0 @g1 → addn b0:1 @g1: 90",
        "addn b0:1 @g1 → a0 @g0: 90",
        "addn b0:1 @g1 → a0 @g1: 90",
    }
    assert times(compiled)["addn b0:1 @g1"] == Fraction(2 * 90, 5)


def test_an_allreduce_waits_for_gradients_that_stay_where_they_are() -> None:
    compiled = built(LAYER, 6, Decision((2, 1), "allreduce"))
    assert edges_about_gradients(compiled) == {
        *("b0 @g0 → a0 @g0: 90", "b0 @g1 → a0 @g1: 90"),
        *("b0 @g0 → allreduce b0:1", "b0 @g1 → allreduce b0:1"),
        *("allreduce b0:1 → a0 @g0", "allreduce b0:1 → a0 @g1"),
    }
    assert times(compiled)["allreduce b0:1"] == 2 * (3 + Fraction(90, 4))


def test_one_allreduce_runs_at_a_time_and_occupies_no_link() -> None:
    graph = layer_chain([[line()]] * 3, [[line()]] * 3, gradient=90)
    compiled = built(graph, 6, Decision((1, 1), "allreduce"), tick=None)
    assert makespan(compiled) == 3 * 2 * (3 + Fraction(90, 4))
    used = {r for r, time in loads(compiled.instance, compiled.placement).items() if time}
    assert used == {("device", 2, 2)}


def test_updates_that_share_a_gradient_share_its_synchronisation() -> None:
    graph = replace(
        LAYER,
        operations=(*LAYER.operations, replace(LAYER.operations[2], name="also")),
        edges=(*LAYER.edges, Edge(1, 1, 3)),
    )
    for sync in ("allreduce", 0):
        given = strategy(graph, 6, Decision((1, 1), sync))  # type: ignore[arg-type]
        compiled = compile_strategy(graph, cluster(), given)
        assert kinds(compiled)["allreduce"] + kinds(compiled)["addn"] == 1


def test_replicas_of_one_device_are_summed_before_they_leave_it() -> None:
    compiled = built(LAYER, 6, Decision((2, 1), "allreduce"), replicas="separate")
    assert edges_about_gradients(compiled) >= {
        *("b0 @g0 #1 → addn b0:1 @g0: 90", "b0 @g0 #2 → addn b0:1 @g0: 90"),
        *("addn b0:1 @g0 → allreduce b0:1", "addn b0:1 @g0 → a0 @g0: 90"),
    }
    alone = built(LAYER, 6, Decision((3, 0)), replicas="separate")
    assert kinds(alone)["addn"] == 1


def test_whole_sums_of_what_cannot_split_need_no_synchronisation() -> None:
    operations = [replace(o, splittable=False) for o in LAYER.operations]
    graph = replace(LAYER, operations=tuple(operations))
    compiled = built(graph, 6, Decision((1, 1), "allreduce"))
    assert edges_about_gradients(compiled) == {"b0 @g0 → a0 @g0: 90", "b0 @g1 → a0 @g1: 90"}


# --- links, times and memory -----------------------------------------------------------------


def test_times_are_rounded_up_to_ticks_or_exact() -> None:
    graph = graph_of(
        [operation("a", batched(10), time=line(0, Fraction(1, 4))), operation("b")], [(0, 0, 1)]
    )
    given = strategy(graph, 3, Decision.on(0, 2), Decision.on(1, 2))
    slow = cluster("ff", 7, Fraction(1, 3))
    for tick in (Fraction(1), Fraction(1, 10), Fraction(5), None):
        instance = compile_strategy(graph, slow, given, Options(tick=tick)).instance
        for exact, found in (
            (Fraction(3, 4), instance.graph.ops[0]),
            (Fraction(1, 3) + Fraction(30, 7), instance.delay(0, 0, 1)),
            (Fraction(1, 3), instance.cluster.latency[0, 1]),
        ):
            assert found is not None
            assert 0 <= found - exact < (tick or Fraction(1))
            assert found == exact if tick is None else found % tick == 0


def test_a_shared_link_carries_one_transfer_at_a_time_in_its_server() -> None:
    names = ("a", "b", "c", "d")
    graph = graph_of(
        [
            *(operation(name, batched(10), time=line()) for name in names),
            *(operation(f"{name}'", time=line()) for name in names),
        ],
        [(i, 0, i + 4) for i in range(4)],
    )
    # a and b leave g0 and g1 for each other, in server 0; c goes to server 1; d stays in it.
    where = [0, 1, 0, 2, 1, 0, 2, 3]
    given = strategy(graph, 2, *(Decision.on(d, 4) for d in where))
    four = cluster("ffff", servers="0011")
    assert makespan(compile_strategy(graph, four, given)) == 3 + 10
    shared = compile_strategy(graph, four, given, Options(topology="shared"))
    assert shared.instance.cluster.names[4:] == (
        "link in server 0",
        "link between servers",
        "link in server 1",
    )
    assert makespan(shared) == 2 * (3 + 10)
    assert Counter(
        shared.instance.cluster.names[v.device]
        for v in shared.vertices
        if v.kind is VertexKind.TRANSFER
    ) == {"link in server 0": 2, "link between servers": 1, "link in server 1": 1}
    assert shared.instance.model.memory == "none"


def test_parameters_stay_with_the_optimiser_s_where_they_are_updated() -> None:
    graph = layer_chain([[line()]] * 2, [[line()]] * 2, gradient=90)
    forward_only = layer_chain([[line()]] * 2, gradient=90)

    def resident(graph: TrainingGraph, **options: Any) -> dict[str, Fraction]:
        compiled = built(graph, 6, Decision((2, 1), 0), **options)
        found = compiled.instance.graph
        return {
            name: memory
            for name, memory in zip(found.names, found.memory.fractions(), strict=True)
            if memory
        }

    applies = ("a0 @g0", "a0 @g1", "a1 @g0", "a1 @g1")
    for replicas in ("fused", "separate"):
        assert resident(graph, replicas=replicas) == dict.fromkeys(applies, 270)
    assert resident(graph, slots=0) == dict.fromkeys(applies, 90)
    assert resident(graph, microbatches=2) == dict.fromkeys(applies, 270)
    users = ("f0 @g0", "f0 @g1", "f1 @g0", "f1 @g1")
    assert resident(forward_only) == dict.fromkeys(users, 90)
    once = resident(forward_only, replicas="separate", microbatches=2)
    assert sum(once.values()) == 4 * 90


def test_memory_counts_if_a_device_has_a_limit_and_it_is_not_left_out() -> None:
    given = strategy(LAYER, 6, Decision((1, 1), 0))

    def model(limit: int | None, **options: Any) -> str:
        return compile_strategy(
            LAYER, cluster(memory=limit), given, Options(**options)
        ).instance.model.memory

    assert (model(10**6), model(None), model(10**6, memory="none")) == ("refcount", "none", "none")


def test_schedules_hold_just_the_memory_that_they_need() -> None:
    for seed in range(25):
        rng = np.random.default_rng(seed)
        graph = random_training_graph(rng)
        devices = int(rng.integers(1, 4))
        free = random_training_cluster(rng, devices)
        microbatches = int(rng.integers(1, 3))
        given = random_strategy(rng, graph, devices, microbatches=microbatches)
        options = Options(
            microbatches=microbatches,
            collectives=str(rng.choice(["queue", "ring"])),  # type: ignore[arg-type]
            replicas=str(rng.choice(["fused", "separate"])),  # type: ignore[arg-type]
        )
        compiled = compile_strategy(graph, free, given, options)
        schedule = scheduled(compiled)
        peak = max(peak_memory(compiled.instance, schedule, "refcount")[:devices])
        for limit, fits in ((peak, True), (peak - 1, False)):
            known = free.cluster
            of = [Device(name, memory=max(limit, 0)) for name in known.names]
            rates, latencies = (
                [list(row) for row in matrix] for matrix in (free.rate, free.latency)
            )
            limited = replace(free, cluster=Cluster.of(of, rates, latencies))
            try:
                instance = compile_strategy(graph, limited, given, options).instance
            except InputError:
                assert not fits  # even the parameters alone do not
                continue
            assert instance.model.memory == "refcount"
            assert (not verify(instance, schedule)) is fits, seed


def test_parameters_that_do_not_fit_where_a_strategy_puts_them_are_a_reason() -> None:
    graph = layer_chain([[line()]] * 2, [[line()]] * 2, gradient=90)
    both = cluster(memory=300)
    apart = [Decision.on(d, 2) for d in (0, 1)]
    given = Strategy(6, graph.tied, tuple(apart))
    assert contradiction(compile_strategy(graph, both, given).instance) == ""
    together = built(graph, 6, Decision.on(0, 2), on=both)
    assert contradiction(together.instance) == (
        "not enough memory on g0: units a1 @g0, a0 @g0 may run only there and need 540, "
        "but 300 is available"
    )


# --- what is refused -------------------------------------------------------------------------


def test_a_missing_link_is_named() -> None:
    no_link = cluster("fff", [[None, 0, 1], [1, None, 1], [1, 1, None]])
    cases = [
        (LAYER, strategy(LAYER, 6, Decision((1, 1, 0), 1)), "b0"),
        (LAYER, strategy(LAYER, 6, Decision((1, 1, 0), 0)), "b0"),
        (PAIR, strategy(PAIR, 6, Decision.on(0, 3), Decision.on(1, 3)), "a"),
        (PAIR, strategy(PAIR, 6, Decision.on(0, 3), Decision((0, 1, 1), 1)), "a"),
    ]
    for graph, given, name in cases:
        for topology in ("pairs", "shared"):
            with pytest.raises(InputError) as error:
                compile_strategy(graph, no_link, given, Options(topology=topology))
            assert str(error.value) == (
                f"g0 → g1: no link, but the strategy sends what {name!r} makes; "
                "give one, or a strategy that does not need it"
            )
    for collectives in ("queue", "ring"):
        with pytest.raises(InputError, match="allreduce over g0, g1: no link g0 → g1"):
            built(LAYER, 6, Decision((1, 1, 0), "allreduce"), on=no_link, collectives=collectives)


def test_a_copy_that_cannot_be_sent_is_not_chosen() -> None:
    whole = Output(Layout.WHOLE, line(8))
    graph = graph_of([operation("a", whole), operation("b")], [(0, 0, 1)])
    no_link = cluster("fff", [[None, 1, 0], [1, None, 1], [1, 1, None]])
    compiled = built(graph, 6, Decision((1, 1, 0), 0), Decision.on(2, 3), on=no_link)
    assert described(compiled) == {"a @g1 → b @g2: 8"}


def test_parameters_that_fit_nowhere_are_named_with_as_few_as_possible() -> None:
    names = ("big", "small", "tiny", "tied")
    sizes = (50, 30, 1, 40)
    users = ((0,), (1,), (2,), (0, 1))
    graph = replace(
        graph_of([operation(name) for name in "abc"], []),
        parameters=tuple(
            Parameter(name, Fraction(size), using)
            for name, size, using in zip(names, sizes, users, strict=True)
        ),
    )
    with pytest.raises(
        InputError, match=r"^parameters big, tied: need 90 .* largest device has 89"
    ):
        check_parameters_fit(graph, cluster(memory=89), 2)
    check_parameters_fit(graph, cluster(memory=120), 2)
    apart = replace(graph, parameters=graph.parameters[:3])
    check_parameters_fit(apart, cluster(memory=50), 2)
    with pytest.raises(InputError, match=r"^parameters big, small: need 80 .* all devices have 79"):
        check_parameters_fit(
            apart,
            replace(
                cluster(), cluster=Cluster.of([Device("g0", memory=50), Device("g1", memory=29)])
            ),
            2,
        )
    check_parameters_fit(apart, cluster(), 2)
    updated = layer_chain([[line()]], [[line()]], gradient=90)
    with pytest.raises(InputError, match="need 270 bytes with the optimiser's"):
        built(updated, 6, Decision.on(0, 2), on=cluster(memory=269))
    built(updated, 6, Decision.on(0, 2), on=cluster(memory=269), slots=1)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"replicas": "some"}, "replicas: unknown 'some'; choose one of fused, separate"),
        ({"resharding": "x"}, "resharding: unknown 'x'; choose one of overlap, heterog"),
        ({"slots": -1}, "slots: negative (-1); give a whole number ≥ 0"),
        ({"tick": Fraction(0)}, "tick: 0 is not positive; give a time > 0"),
        ({"microbatches": 0}, "microbatches: 0; give a whole number ≥ 1"),
    ],
)
def test_an_option_that_makes_no_sense_is_refused(given: Any, message: str) -> None:
    with pytest.raises(InputError) as error:
        Options(**given)
    assert str(error.value) == message


def test_limits_of_memory_are_not_ignored_over_shared_links() -> None:
    given = strategy(LAYER, 6, Decision.on(0, 2))
    limited = cluster(memory=10**6)
    with pytest.raises(InputError, match="shared links do not keep limits of memory"):
        compile_strategy(LAYER, limited, given, Options(topology="shared"))
    compile_strategy(LAYER, limited, given, Options(topology="shared", memory="none"))


def test_more_microbatches_than_samples_are_refused() -> None:
    given = strategy(LAYER, 6, Decision((2, 1), 0))
    compile_strategy(LAYER, cluster(), given, Options(microbatches=2))
    with pytest.raises(InputError, match="microbatches: 3 for 3 replicas and a batch of 6"):
        compile_strategy(LAYER, cluster(), given, Options(microbatches=3))


def test_an_update_that_reads_samples_has_one_microbatch() -> None:
    graph = replace(LAYER, edges=(*LAYER.edges, Edge(0, 0, 2)))
    given = strategy(graph, 6, Decision((2, 1), 0))
    compile_strategy(graph, cluster(), given)
    with pytest.raises(InputError, match="a0: reads samples, of which every microbatch has others"):
        compile_strategy(graph, cluster(), given, Options(microbatches=2))


def test_a_gradient_and_its_update_are_in_one_group() -> None:
    graph = replace(LAYER, parameters=())
    with pytest.raises(InputError, match="'b0' sums over samples what 'a0' in another group"):
        built(graph, 6, *[Decision.on(0, 2)] * 3)
    assert (1, 2) in graph.tied
