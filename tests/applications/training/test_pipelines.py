"""Microbatches in the orders of GPipe and 1F1B, in any order, and in the limit of many."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import Any, get_args

import numpy as np
import pytest

from optpart.applications.training.cluster import TrainingCluster
from optpart.applications.training.compiled import Compiled, Options, VertexKind
from optpart.applications.training.compiler import compile_strategy
from optpart.applications.training.graph import CONTROL, Edge, Line, Role, TrainingGraph
from optpart.applications.training.pipelines import (
    GivenOrder,
    bottleneck_of_many,
    pipeline_schedule,
    stages,
)
from optpart.applications.training.strategy import Decision, Strategy
from optpart.base.errors import InputError
from optpart.methods.cpsat import cpsat
from optpart.problem.cluster import Cluster
from optpart.solution.metrics import peak_memory
from optpart.solution.result import Budget, Status
from optpart.solution.schedule import Schedule
from optpart.solution.verifier import verify
from optpart.testing.training import layer_chain

ORDERS: tuple[GivenOrder, ...] = get_args(GivenOrder)


def line(beta: Fraction | int) -> Line:
    return Line(Fraction(0), Fraction(beta))


def devices(k: int, rate: int | None = None, latency: int = 0) -> TrainingCluster:
    return TrainingCluster(
        Cluster.uniform(k, bandwidth=rate, latency=latency), ("fast",) * k, (0,) * k, (None,) * k
    )


def chain(forward: list[int], backward: list[int], **sizes: Any) -> TrainingGraph:
    return layer_chain([[line(f)] for f in forward], [[line(b)] for b in backward], **sizes)


def one_each(graph: TrainingGraph, batch: int) -> Strategy:
    """Put each layer on a device of its own."""
    k = len(graph.tied)
    return Strategy(batch, graph.tied, tuple(Decision.on(i, k) for i in range(k)))


def valid(compiled: Compiled, order: GivenOrder) -> Schedule:
    schedule = pipeline_schedule(compiled, order)
    assert not verify(compiled.instance, schedule)
    return schedule


def passes(compiled: Compiled, schedule: Schedule, device: int) -> str:
    """Return the passes of a device in the order of their starts, such as ``F1 F2 B1 B2``."""
    found = []
    for v in schedule.sequence:
        what = compiled.vertices[v]
        role = compiled.graph.operations[what.operation].role
        replica = what.kind is VertexKind.REPLICA
        if what.device == device and replica and role is not Role.APPLY:
            found.append(f"{role[0].upper()}{what.microbatch + 1}")
    return " ".join(found)


def test_both_orders_of_equal_stages_take_the_known_time() -> None:
    for stages_, count in ((1, 3), (2, 5), (4, 8), (4, 2)):
        graph = chain([1] * stages_, [2] * stages_)
        compiled = compile_strategy(
            graph, devices(stages_), one_each(graph, count), Options(microbatches=count)
        )
        for order in ORDERS:
            schedule = valid(compiled, order)
            assert schedule.makespan(compiled.instance) == (count + stages_ - 1) * 3


def test_the_orders_of_a_device() -> None:
    graph = chain([1] * 3, [1] * 3)
    compiled = compile_strategy(graph, devices(3), one_each(graph, 4), Options(microbatches=4))
    schedule = valid(compiled, "gpipe")
    for d in range(3):
        assert passes(compiled, schedule, d) == "F1 F2 F3 F4 B1 B2 B3 B4"
    schedule = valid(compiled, "1f1b")
    assert passes(compiled, schedule, 0) == "F1 F2 F3 B1 F4 B2 B3 B4"
    assert passes(compiled, schedule, 1) == "F1 F2 B1 F3 B2 F4 B3 B4"
    assert passes(compiled, schedule, 2) == "F1 B1 F2 B2 F3 B3 F4 B4"


def test_1f1b_keeps_as_many_microbatches_as_there_are_stages_ahead() -> None:
    graph = chain([1] * 4, [1] * 4, activation=line(1))

    def held(order: GivenOrder, count: int) -> list[Fraction]:
        compiled = compile_strategy(
            graph, devices(4), one_each(graph, count), Options(microbatches=count)
        )
        return peak_memory(compiled.instance, valid(compiled, order), "refcount")

    few, many = held("1f1b", 8), held("1f1b", 12)
    assert few == many
    for d in range(4):
        assert 4 - d <= many[d] <= 4 - d + 3  # and what comes in and goes out
        assert 12 <= held("gpipe", 12)[d] <= 12 + 3


def drawn(seed: int) -> tuple[TrainingGraph, TrainingCluster, Strategy, int]:
    """Draw a chain with replicated stages over slow links."""
    rng = np.random.default_rng(seed)
    layers = int(rng.integers(1, 6))
    graph = chain(
        rng.integers(1, 9, layers).tolist(),
        rng.integers(1, 9, layers).tolist(),
        activation=line(int(rng.integers(1, 5))),
        gradient=int(rng.integers(1, 200)),
    )
    k = int(rng.integers(2, 6))
    several = int(rng.integers(1, min(k - 1, layers) + 1))
    cuts = sorted(rng.choice(np.arange(1, layers), several - 1, replace=False).tolist())
    bounds = [*pairwise([0, *cuts, layers])]
    homes = [list(part) for part in np.array_split(np.arange(k), len(bounds))]
    decisions = []
    for home in homes:
        counts = [int(rng.integers(1, 3)) if d in home else 0 for d in range(k)]
        if len(home) == 1:
            decisions.append(Decision(tuple(counts)))
        else:
            sync = int(rng.choice(home)) if rng.random() < 0.3 else "allreduce"
            decisions.append(Decision(tuple(counts), sync))
    of_layer = {g[0]: g for g in graph.tied}
    groups = [tuple(o for i in range(*bound) for o in of_layer[i]) for bound in bounds]
    count = int(rng.integers(1, 6))
    cluster = devices(k, int(rng.integers(1, 9)), int(rng.integers(0, 3)))
    return graph, cluster, Strategy(12 * count, tuple(groups), tuple(decisions)), count


def first_come_first_served(compiled: Compiled, schedule: Schedule) -> bool:
    """Whether AllReduces and transfers over shared links run in the order of readiness."""
    graph = compiled.instance.graph
    ready: dict[int, Fraction] = {}
    for u, v in zip(graph.edge_source.tolist(), graph.edge_target.tolist(), strict=True):
        ready[v] = max(ready.get(v, Fraction(0)), schedule.end(compiled.instance, u))
    queues: dict[int, list[Fraction]] = {}
    for v in schedule.sequence:
        if compiled.vertices[v].device >= len(compiled.cluster):
            queues.setdefault(compiled.vertices[v].device, []).append(ready[v])
    return all(queue == sorted(queue) for queue in queues.values())


@pytest.mark.parametrize("order", ORDERS)
def test_given_orders_of_replicated_stages_are_valid_and_not_below_the_limit(
    order: GivenOrder,
) -> None:
    for seed in range(20):
        graph, cluster, strategy, count = drawn(seed)
        options = Options(
            microbatches=count,
            collectives=("queue", "ring")[seed % 2],
            topology=("pairs", "shared")[seed // 2 % 2],
        )
        compiled = compile_strategy(graph, cluster, strategy, options)
        schedule = valid(compiled, order)
        assert first_come_first_served(compiled, schedule)
        makespan = schedule.makespan(compiled.instance)
        # The first microbatch has nothing to accumulate its gradients with.
        limit = bottleneck_of_many(graph, cluster, strategy, options)
        assert makespan >= (count - 1) * limit


def test_with_many_microbatches_1f1b_takes_the_bottleneck_per_microbatch() -> None:
    for seed in range(4):
        rng = np.random.default_rng(seed)
        graph = chain(rng.integers(1, 9, 3).tolist(), rng.integers(1, 9, 3).tolist())
        found = []
        for count in (12, 13):
            strategy, options = one_each(graph, count), Options(microbatches=count)
            compiled = compile_strategy(graph, devices(3), strategy, options)
            found.append(valid(compiled, "1f1b").makespan(compiled.instance))
            bottleneck = bottleneck_of_many(graph, devices(3), strategy, options)
        assert found[1] - found[0] == bottleneck
        layers = zip(graph.operations[:3], graph.operations[3::2][::-1], strict=True)
        assert bottleneck == max(f.times[0].beta + b.times[0].beta for f, b in layers)


def test_a_link_may_be_the_bottleneck() -> None:
    graph = chain([1, 1], [1, 1], activation=line(30))
    cluster, strategy = devices(2, rate=2, latency=1), one_each(graph, 3)
    assert bottleneck_of_many(graph, cluster, strategy, Options(microbatches=3)) == 16


def test_no_given_order_is_better_than_the_best_free_one() -> None:
    graph, count = chain([2, 1], [2, 3]), 2
    given, options = one_each(graph, count), Options(microbatches=count)
    compiled = compile_strategy(graph, devices(2), given, options)
    best = cpsat(compiled.instance, budget=Budget(10, 1))
    assert best.status is Status.OPTIMAL
    assert best.makespan is not None
    limit = bottleneck_of_many(graph, devices(2), given, options)
    times = [valid(compiled, order).makespan(compiled.instance) for order in ORDERS]
    assert count * limit <= best.makespan <= min(times)


def test_the_microbatches_of_a_replica_are_one_unit_of_placement() -> None:
    graph = chain([1, 1], [1, 1])
    compiled = compile_strategy(graph, devices(2), one_each(graph, 3), Options(microbatches=3))
    names = compiled.instance.graph.names
    units = {tuple(names[v] for v in unit) for unit in compiled.instance.units}
    assert ("b1 @d1 m1", "b1 @d1 m2", "b1 @d1 m3") in units
    assert ("a1 @d1",) in units


def test_gradients_are_accumulated_one_microbatch_after_the_other() -> None:
    graph = chain([1], [1], gradient=8)
    compiled = compile_strategy(graph, devices(1), one_each(graph, 3), Options(microbatches=3))
    instance = compiled.instance
    # Besides the parameters and the optimiser's, the sum and one gradient, not three.
    assert max(peak_memory(instance, valid(compiled, "1f1b"), "refcount")) == 3 * 8 + 2 * 8
    names = instance.graph.names
    summed = [
        (names[u], names[v])
        for u, v in zip(instance.graph.edge_source, instance.graph.edge_target, strict=True)
        if "addn" in names[v]
    ]
    assert summed == [
        ("b0 @d0 m1", "addn b0:1 @d0 m2"),
        ("b0 @d0 m2", "addn b0:1 @d0 m2"),
        ("addn b0:1 @d0 m2", "addn b0:1 @d0 m3"),
        ("b0 @d0 m3", "addn b0:1 @d0 m3"),
    ]


def test_groups_on_the_same_devices_are_one_stage() -> None:
    graph = chain([1] * 4, [1] * 4)
    groups = tuple(graph.tied)
    decisions = tuple(Decision.on(d, 2) for d in (0, 0, 1, 1))
    compiled = compile_strategy(graph, devices(2), Strategy(2, groups, decisions))
    assert stages(compiled)[:4] == (2, 2, 1, 1)
    data_parallel = Strategy(2, groups, (Decision((1, 1), "allreduce"),) * 4)
    assert set(stages(compile_strategy(graph, devices(2), data_parallel))) == {1}


def test_groups_that_share_some_devices_are_one_stage() -> None:
    graph = chain([1] * 4, [1] * 4)
    decisions = (
        Decision((1, 1, 0, 0), 0),
        Decision((0, 0, 1, 0)),
        Decision((0, 1, 1, 0), 1),  # joins the two before
        Decision((0, 0, 0, 1)),
    )
    compiled = compile_strategy(graph, devices(4), Strategy(4, graph.tied, decisions))
    assert stages(compiled)[:4] == (2, 2, 2, 1)
    valid(compiled, "1f1b")


def test_an_order_that_contradicts_the_edges_is_refused() -> None:
    graph = chain([1], [1])
    back = replace(graph, edges=(*graph.edges, Edge(4, CONTROL, 3)), operations=(
        *graph.operations, replace(graph.operations[0], name="g"),
        replace(graph.operations[1], name="c"),
    ))  # fmt: skip
    assert back.operations[3].role is Role.FORWARD  # after a backward pass, which comes later
    assert back.operations[4].role is Role.BACKWARD
    given = Strategy(2, (tuple(range(5)),), (Decision.on(0, 1),))
    compiled = compile_strategy(back, devices(1), given)
    with pytest.raises(InputError, match=r"^order: contradicts the edges: cycle .* choose another"):
        pipeline_schedule(compiled, "gpipe")


@pytest.mark.parametrize(
    "options", [Options(), Options(collectives="ring"), Options(topology="shared")]
)
def test_gradients_are_summed_while_backward_passes_go_on(options: Options) -> None:
    graph = chain([10] * 3, [10] * 3, gradient=40)
    for sync in ("allreduce", 0):
        given = Strategy(2, (tuple(range(len(graph))),), (Decision((1, 1), sync),))
        compiled = compile_strategy(graph, devices(2, rate=4), given, options)
        schedule = valid(compiled, "1f1b")
        # Sums of the first two layers take 10 or 20 and are hidden behind the layers below.
        assert 60 < schedule.makespan(compiled.instance) < 60 + 3 * 20


def test_stages_that_lead_back_are_refused() -> None:
    graph = chain([1] * 4, [1] * 4)
    decisions = tuple(Decision.on(d, 2) for d in (0, 1, 0, 1))
    compiled = compile_strategy(graph, devices(2), Strategy(2, tuple(graph.tied), decisions))
    for order in ORDERS:
        with pytest.raises(InputError, match="not stages of a pipeline: forward passes lead") as e:
            pipeline_schedule(compiled, order)
        assert "\n" not in str(e.value)
