"""Plans with replicas against every plan of small pipelines, and what the verifier rejects."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from naive_pipelines import plans

import optpart as op
from optpart.exact.pipeline.plan import concluded, plan_pipeline
from optpart.exact.pipeline.problem import Pipeline, Ring, Tensor, pipeline_of
from optpart.exact.pipeline.splits import Stage, best_split
from optpart.exact.pipeline.verifier import loads, violations
from optpart.problem.cluster import Cluster, Device
from optpart.problem.graph import GraphBuilder
from optpart.problem.instance import Instance
from optpart.problem.model import Model
from optpart.solution.result import Status


def drawn(seed: int) -> Pipeline:
    """A pipeline with every feature, most of them in a part of the draws only."""
    rng = np.random.default_rng(seed)

    def number(most: int) -> Fraction:
        return Fraction(int(rng.integers(0, most)), int(rng.integers(1, 4)))

    n, kinds = int(rng.integers(1, 5)), int(rng.integers(1, 3))
    alike = tuple(sorted(int(d) for d in rng.integers(0, kinds, rng.integers(1, 5))))
    alike = tuple(sorted(set(alike)).index(kind) for kind in alike)
    pairs = [(u, v) for u in range(n) for v in range(u + 1, n)]
    edges = tuple(pair for pair in pairs if rng.random() < 0.4)
    rows = []
    for _ in range(n):
        by_kind = [None if rng.random() < 0.1 else number(9) for _ in range(kinds)]
        rows.append(tuple(by_kind[kind] for kind in alike))
    capacity = [
        Fraction(int(rng.integers(4, 12))) if rng.random() < 0.5 else None for _ in range(kinds)
    ]
    tensors = tuple(
        Tensor(u, tuple(v for v in range(n) if v != u and rng.random() < 0.5), number(5))
        for u in range(n)
        if rng.random() < 0.5
    )
    some = [pair for pair in pairs if rng.random() < 0.15]
    weighs = rng.random() < 0.5
    return Pipeline(
        name=f"drawn-{seed}",
        vertices=tuple(f"v{v}" for v in range(n)),
        devices=tuple(f"d{d}" for d in range(len(alike))),
        alike=alike,
        edges=edges,
        times=tuple(rows),
        need=tuple(number(4) for _ in range(n)),
        capacity=tuple(capacity[kind] for kind in alike),
        together=tuple(some[:1]),
        apart=tuple(some[1:2]),
        tensors=tensors,
        pays=tuple(kind == 0 for kind in alike),
        weights=tuple(number(4) if weighs else Fraction(0) for _ in range(n)),
        rings=tuple(
            None if rng.random() < 0.2 else Ring(number(3), number(3)) for _ in range(kinds)
        ),
        sha256="",
    )  # fmt: skip


@pytest.mark.parametrize("replicas", [1, 2, 4])
def test_the_least_bottleneck_of_all_plans(replicas: int) -> None:
    for seed in range(120):
        pipeline = drawn(seed)
        found = plan_pipeline(pipeline, replicas=replicas)
        values = [value for _, value in plans(pipeline, replicas)]
        assert (found.status is Status.INFEASIBLE) == (not values)
        if values:
            assert found.status is Status.OPTIMAL
            assert found.bottleneck == min(values)


@pytest.mark.parametrize("replicas", [1, 3])
def test_the_least_bottleneck_along_an_order(replicas: int) -> None:
    for seed in range(120):
        pipeline = drawn(seed)
        order = np.random.default_rng(seed).permutation(len(pipeline.devices)).tolist()
        order = order[: max(1, len(order) - seed % 2)]
        found = plan_pipeline(pipeline, order=order, replicas=replicas)
        values = [value for _, value in plans(pipeline, replicas, order)]
        assert (found.status is Status.INFEASIBLE) == (not values)
        assert not values or found.bottleneck == min(values)


def test_the_verifier_accepts_what_keeps_the_rules_and_agrees_on_loads() -> None:
    for seed in range(60):
        pipeline = drawn(seed)
        for stages, value in plans(pipeline, 2):
            rows = [Stage(*stage) for stage in stages]
            assert not list(violations(pipeline, rows, replicas=2))
            assert max(loads(pipeline, rows)) == value


def chain(**changed: object) -> Pipeline:
    graph = (
        GraphBuilder()
        .vertex("a", 4, memory=2).vertex("b", 4, memory=2).vertex("c", 4, memory=2)
        .edge("a", "b", None).edge("b", "c", None)
        .build()
    )  # fmt: skip
    return replace(pipeline_of(Instance(graph, Cluster.uniform(3, bandwidth=1))), **changed)  # type: ignore[arg-type]


def stages(*rows: tuple[str, str]) -> list[Stage]:
    return [Stage(tuple("abc".index(v) for v in own), tuple(map(int, on))) for own, on in rows]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (stages(("ab", "0")), "c is in no stage"),
        (stages(("ab", "0"), ("bc", "1")), "b is in two stages"),
        (stages(("ab", "0"), ("c", "0")), "d0 is used twice"),
        (stages(("b", "0"), ("ac", "1")), "a is in a later stage than b, which it precedes"),
        (stages(("ab", "01"), ("c", "2")), "stage 0 has 2 replicas, of which 1 are allowed"),
        (stages(("abc", "")), "stage 0 is empty or has no device"),
        (stages(("a", "1"), ("bc", "0")),
         "stage 0 has d1, which comes after a device of stage 1 in the order"),
        (stages(("a", "02"), ("bc", "1")),
         "stage 0 has d2, which comes after a device of stage 1 in the order"),
    ],
)  # fmt: skip
def test_the_verifier_names_what_is_wrong(wrong: list[Stage], said: str) -> None:
    assert said in list(violations(chain(), wrong, order=(0, 1, 2)))
    with pytest.raises(AssertionError):
        concluded(chain(), wrong, None, order=(0, 1, 2))


@pytest.mark.parametrize(
    ("pipeline", "said"),
    [
        (chain(capacity=(Fraction(3),) * 3, need=(Fraction(2),) * 3),
         "d0 holds 4 and has memory for 3"),
        (chain(together=((1, 2),)), "b and its group are in different stages"),
        (chain(apart=((0, 1),)), "a and b share a stage"),
        (chain(times=((None,) * 3, *chain().times[1:])), "a cannot run on d0"),
        (chain(alike=(0, 1, 0), rings=(Ring(), Ring())),
         "the replicas of stage 0 are on unlike devices"),
        (chain(weights=(Fraction(1),) * 3, rings=(None,)),
         "the replicas of stage 0 are not linked"),
    ],
)  # fmt: skip
def test_the_verifier_checks_every_stage(pipeline: Pipeline, said: str) -> None:
    plan = stages(("ab", "01"), ("c", "2"))
    assert said in list(violations(pipeline, plan, replicas=2))


def test_replicas_share_items_and_synchronise() -> None:
    cluster = Cluster.of(
        [Device("x"), Device("y")], bandwidth=[[None, 2], [2, None]], latency=[[0, 1], [1, 0]]
    )
    graph = GraphBuilder().vertex("a", 100, memory=8).build()
    free = plan_pipeline(pipeline_of(Instance(graph, cluster)), replicas=2)
    assert free.bottleneck == 50
    ring = plan_pipeline(pipeline_of(Instance(graph, cluster), synchronise=True), replicas=2)
    assert ring.bottleneck == 50 + 2 * (1 + Fraction(8, 2) / 2)
    given = plan_pipeline(pipeline_of(Instance(graph, cluster), rate=Fraction(4)), replicas=2)
    assert given.bottleneck == 50 + 2 * Fraction(8, 2) / 4


def test_a_claim_above_the_bottleneck_stops_the_program() -> None:
    with pytest.raises(AssertionError, match="above the bottleneck"):
        concluded(chain(), stages(("abc", "0")), Fraction(13))


def test_long_decimals_are_proven_exactly() -> None:
    """Shares of numbers with many digits are beyond 64 bits."""
    for seed in range(40):
        pipeline = drawn(seed)
        noise = Fraction(seed + 1, 10**25 + 39)
        times = tuple(
            tuple(None if time is None else time + (v + 1) * noise for time in row)
            for v, row in enumerate(pipeline.times)
        )
        noisy = replace(pipeline, times=times)
        values = [value for _, value in plans(noisy, 3)]
        found = best_split(noisy, replicas=3)
        assert (found is None) == (not values)
        if found is not None:
            assert found.bound == found.bottleneck == min(values)


# --- along an order of devices (design §2) ---------------------------------------------------


def one_vertex(*devices: Device, **fields: object) -> Instance:
    graph = GraphBuilder().vertex("v", 2, **fields).build()  # type: ignore[arg-type]
    return Instance(graph, Cluster.of(devices))


def test_alike_devices_share_a_stage_across_empty_ones() -> None:
    apart = one_vertex(Device("a"), Device("b", Fraction(1, 2)), Device("c"))
    found = op.plan(apart, replicas=2, device_order=["a", "b", "c"])
    assert found.stages == (Stage((0,), (0, 2)),)
    assert (found.status, found.bottleneck, found.bound) == (Status.OPTIMAL, 1, 1)


def test_a_stage_between_replicas_of_another_is_no_plan() -> None:
    """Not even where no edge connects them: stages come one after another."""
    graph = GraphBuilder().vertex("u", 2).vertex("v", 2).build()
    cluster = Cluster.of([Device("a"), Device("b", 2), Device("c")])
    free = op.plan(Instance(graph, cluster), replicas=2)
    assert free.bottleneck == 1
    along = op.plan(Instance(graph, cluster), replicas=2, device_order=["a", "b", "c"])
    assert (along.status, along.bottleneck) == (Status.OPTIMAL, 2)
    between = [Stage((0,), (0, 2)), Stage((1,), (1,))]
    assert not list(violations(along.pipeline, between, replicas=2))
    assert list(violations(along.pipeline, between, (0, 1, 2), replicas=2))


def test_the_devices_of_a_stage_are_a_set() -> None:
    plan = stages(("a", "20"), ("bc", "1"))
    assert not list(violations(chain(), plan, (0, 2, 1), replicas=2))


def test_a_device_outside_the_order_is_named() -> None:
    assert list(violations(chain(), stages(("abc", "2")), (0, 1))) == [
        "d2 is not in the order of devices"
    ]


# --- devices that are alike (design §2) ------------------------------------------------------


def test_units_tell_devices_apart_and_their_members_do_not() -> None:
    """The group runs on ``a`` alone, whatever its members could do on ``b`` and ``c``."""
    graph = (
        GraphBuilder()
        .vertex("u", 1, devices=["a", "b"]).vertex("v", 1, devices=["a", "c"]).vertex("w", 8)
        .colocate("u", "v")
        .build()
    )  # fmt: skip
    found = op.plan(Instance(graph, Cluster.of([Device(name) for name in "abc"])), replicas=2)
    assert found.bottleneck == 4


@pytest.mark.parametrize(("back", "best"), [(1, 3), (2, 4)])
def test_links_to_devices_that_differ_anyway_do_not_count(back: int, best: int) -> None:
    cluster = Cluster.of(
        [Device("a"), Device("b"), Device("slow", Fraction(1, 100))],
        bandwidth=[[None, 1, 7], [back, None, 8], [9, 10, None]],
    )
    graph = GraphBuilder().vertex("v", 4, memory=1).build()
    found = op.plan(Instance(graph, cluster), replicas=2, sync_rate="links")
    assert found.bottleneck == best


def test_capacities_count_only_where_memory_is_limited() -> None:
    near = one_vertex(Device("a", memory=5), Device("b", memory=Fraction(4999999999999, 10**12)))
    assert op.plan(near, replicas=2, sync_rate="links").bottleneck == 1
    limited = replace(near, model=Model(memory="estimate"))
    assert op.plan(limited, replicas=2).bottleneck == 2


# --- memory ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("less", "status"), [(0, Status.OPTIMAL), (1, Status.INFEASIBLE)])
def test_memory_of_any_number_of_digits_is_added_exactly(less: int, status: Status) -> None:
    """Two of three vertices fit a device, or just do not."""
    size = Fraction(1, 3) + Fraction(1, 10**30)
    builder = GraphBuilder()
    for name in "uvw":
        builder.vertex(name, 1, memory=size)
    cluster = Cluster.uniform(3, memory=2 * size - Fraction(less, 10**40))
    instance = Instance(builder.build(), cluster, Model(memory="estimate"))
    assert op.plan(instance, device_order=["d0", "d1"]).status is status


# --- why there is no plan --------------------------------------------------------------------


def test_a_reason_names_the_unit_that_runs_nowhere() -> None:
    graph = GraphBuilder().vertex("u", 1, devices=["b"]).vertex("v", 1).colocate("u", "v").build()
    found = op.plan(Instance(graph, Cluster.of([Device("a"), Device("b")])), device_order=["a"])
    assert found.status is Status.INFEASIBLE
    assert found.reason == "the group of u (2 vertices) may run on none of a"


def test_a_reason_names_the_unit_that_is_too_large() -> None:
    tight = one_vertex(Device("a", memory=3), Device("b", memory=2), memory=Fraction(31, 10))
    found = op.plan(replace(tight, model=Model(memory="estimate")))
    assert found.status is Status.INFEASIBLE
    assert found.reason == "v needs more memory than any device that it may use has"
