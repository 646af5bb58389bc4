"""PyJobShop solves our problems, and we its own: the optima agree."""

from __future__ import annotations

from dataclasses import replace

import pytest

import optpart as op
from optpart.interop.formats import pyjobshop as converter
from optpart.testing.draw import draw_instance

pyjobshop = pytest.importorskip("pyjobshop", reason="needs pyjobshop")

SEEDS = range(40)


def drawn(seed: int) -> op.Instance:
    """Draw an instance, and let its transfers take no time."""
    instance = draw_instance(seed, vertices=(4, 7), measured=False, far=False, exact=True)
    cluster = instance.cluster
    kinds = zip(cluster.names, cluster.speed.fractions(), cluster.types, strict=True)
    devices = [op.Device(name, speed, type=kind) for name, speed, kind in kinds]
    return replace(instance, cluster=op.Cluster.of(devices))


def test_both_find_the_same_optimum() -> None:
    """Without presolve, with which OR-Tools 9.15 sometimes proves a false optimum."""
    for seed in SEEDS:
        instance = drawn(seed)
        data = op.to_pyjobshop(instance)
        theirs = pyjobshop.solve(data, num_workers=1, time_limit=20, cp_model_presolve=False)
        ours = op.solve(instance, workers=1)
        result = op.result_from_pyjobshop(instance, theirs)
        if ours.status is op.Status.INFEASIBLE:
            assert theirs.status is pyjobshop.SolveStatus.INFEASIBLE
            continue
        assert ours.status is op.Status.OPTIMAL, seed
        assert theirs.status is pyjobshop.SolveStatus.OPTIMAL, seed
        assert ours.makespan is not None
        assert ours.makespan * converter.scale(instance) == theirs.objective, seed
        assert result.makespan == ours.makespan
        back = op.from_pyjobshop(data)
        assert back.graph.names == instance.graph.names
        assert op.solve(back, "enumerate").makespan == theirs.objective


def test_a_false_optimum_stays_a_claim() -> None:
    """OR-Tools 9.15 takes 6 for the optimum, and a schedule of 5 exists."""
    only = {"b": ["fast"], "e": ["fast"], "g": ["slow"]}
    builder = op.GraphBuilder()
    for name in "abcdefg":
        builder.vertex(name, 2, devices=only.get(name))
    for name in "abcefg":
        builder.edge(name, "d", None)
    devices = [op.Device("slow", 1), op.Device("fast", 2)]
    instance = op.Instance(builder.build(), op.Cluster.of(devices))
    assert op.solve(instance).makespan == 5
    theirs = pyjobshop.solve(op.to_pyjobshop(instance), num_workers=1)
    assert theirs.status is pyjobshop.SolveStatus.OPTIMAL
    result = op.result_from_pyjobshop(instance, theirs)
    assert (result.status is op.Status.OPTIMAL) == (theirs.objective == 5)
    assert result.lower_bound == 5


def test_a_model_of_pyjobshop_is_read() -> None:
    model = pyjobshop.Model()
    cut, drill = model.add_machine(name="cut"), model.add_machine(name="drill")
    job = model.add_job(name="chair")
    sawn, bored = model.add_task(job=job, name="sawn"), model.add_task(job=job, name="bored")
    model.add_mode(sawn, cut, 3)
    model.add_mode(bored, [drill], 2)
    model.add_end_before_start(sawn, bored)
    instance = op.from_pyjobshop(model)
    assert op.solve(instance).makespan == 5
    model.add_setup_time(cut, sawn, bored, 1)
    with pytest.raises(op.UnsupportedError, match=r"constraints\.setup_times"):
        op.from_pyjobshop(model)
