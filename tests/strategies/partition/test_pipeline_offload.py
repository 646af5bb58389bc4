"""Offloading in training pipelines: what instances mean, their optima, and 1F1B in less memory."""

from collections import defaultdict
from itertools import product

import numpy as np
import pytest
from ortools.sat.python import cp_model

from optpart.base.errors import InputError
from optpart.exact.enumeration import enumerate_all
from optpart.interop.formats.pipeline_parts import passes_of
from optpart.interop.generate.training_pipeline import training_pipeline
from optpart.methods import registry
from optpart.methods.cpsat import cpsat
from optpart.methods.starts import pass_orders
from optpart.solution.metrics import peak_memory
from optpart.solution.result import Budget, Status

ONE = Budget(seconds=60, workers=1)

#: A pass forward takes 2, one back 2, and each of two devices holds one microbatch.
TINY = {"devices": 2, "microbatches": 2, "joined": True, "memory": 1, "forward": (2, 2),
        "backward": (1, 1), "weight": (1, 1)}  # fmt: skip


def shortest(instance, activations, released, offload):
    """Return the least makespan by another model: nothing is a vertex or transfer but passes.

    What crosses between devices must take no longer than any pass, so that no link is busy.
    """
    passes = passes_of(instance)
    model, limits = cp_model.CpModel(), instance.cluster.memory
    longest = 1000
    busy, held, start, end = defaultdict(list), defaultdict(list), {}, {}

    def time():
        return model.new_int_var(0, longest, "")

    def hold(d, size, since, until, literal):
        span = model.new_optional_interval_var(since, time(), until, literal, "")
        held[d].append((span, size))

    def move(way, length, literal):
        begin = time()
        busy[way].append(model.new_optional_fixed_size_interval_var(begin, length, literal, ""))
        return begin

    for each, v in passes.vertex.items():
        length, d = int(instance.graph.ops[v]), passes.device[each.stage]
        start[each] = time()
        end[each] = start[each] + length
        busy[d].append(model.new_fixed_size_interval_var(start[each], length, ""))
    for each in [each for each in start if each.kind == "F"]:
        s, d = each.stage, passes.device[each.stage]
        first, last = (each._replace(kind=kind) for kind in (*passes.backward, "B")[:2])
        latency = int(instance.cluster.latency[0, -1])
        after = [(end[each], start[first])]
        after += [(end[first], start[last])] * (last != first)
        for other, back in ((s + 1, False), (s - 1, True)):
            if 0 <= other < len(passes.device):
                wait = latency * (passes.device[other] != d)
                one = first if back else each
                after.append((end[one] + wait, start[one._replace(stage=other)]))
        away, size = model.new_bool_var(""), activations + released
        out = move((d, "out"), offload, away)
        after.append((end[each], out))
        hold(d, size, start[each], out + offload, away)
        for part, reader in ((activations, last), (released, first)):
            if not part:
                continue
            takes = offload * part // size
            back = move((d, "back"), takes, away)
            model.add(out + offload <= back).only_enforce_if(away)
            model.add(back + takes <= start[reader]).only_enforce_if(away)
            hold(d, part, back, end[reader], away)
            hold(d, part, start[each], end[reader], ~away)
        for one, other in after:
            model.add(one <= other)
    for spans in busy.values():
        model.add_no_overlap(spans)
    for d, spans in held.items():
        model.add_cumulative([span for span, _ in spans], [x for _, x in spans], int(limits[d]))
    makespan = time()
    for each in end.values():
        model.add(each <= makespan)
    model.minimize(makespan)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    assert solver.solve(model) == cp_model.OPTIMAL
    return solver.objective_value


def drawn(seed):
    """Return keywords of a tiny step whose memory is tight."""
    rng = np.random.default_rng(seed)
    devices, joined = (1, 2)[int(rng.integers(2))], bool(rng.integers(2))
    shape = {"chunks": 2, "shape": "v"} if devices == 1 else {}
    sizes = {"activations": int(rng.integers(1, 3)), "released": int(rng.integers(0, 3))}
    size = sum(sizes.values())
    return {
        "devices": devices, "microbatches": 2, "joined": joined, "transfer": int(rng.integers(3)),
        "forward": (2, 5), "backward": (2, 5), "weight": (2, 5),
        "memory": size + int(rng.integers(size)) + size * bool(shape),
        "offload": size * int(rng.integers(3)),
    } | shape | sizes  # fmt: skip


@pytest.mark.parametrize("seed", range(16))
def test_the_optimum_is_that_of_a_model_without_vertices_that_store(seed) -> None:
    given = drawn(seed)
    kept = training_pipeline(seed, **given | {"offload": None})
    expected = shortest(kept, given["activations"], given["released"], given["offload"])
    instance = training_pipeline(seed, **given)
    found = cpsat(instance, budget=ONE)
    assert (found.status, found.makespan) == (Status.OPTIMAL, expected)
    assert found.makespan <= (cpsat(kept, budget=ONE).makespan or expected)
    made = registry.get("1f1b-offload")(instance) if given["devices"] > 1 else found
    assert made.makespan >= expected


def test_an_optimum_by_hand_and_by_enumeration() -> None:
    # Both leave stage 0: 0F0 at 0, out at 2; 0F1 at 3, out at 5; 0F0's back at 6, 0B0 at 7; 0F1's
    # back at 9, 0B1 at 10. Without offloading, 0F1 waits until 0B0 has ended at 8.
    assert cpsat(training_pipeline(**TINY), budget=ONE).makespan == 16
    instance = training_pipeline(**TINY, offload=1)
    assert cpsat(instance, budget=ONE).makespan == 12
    assert enumerate_all(instance, budget=ONE).makespan == 12
    made = registry.get("1f1b-offload")(instance).schedule
    start = dict(zip(instance.graph.names, made.start, strict=True))
    assert [start[name] for name in ("0F0", "0F1", "0B0", "0B1")] == [0, 3, 7, 10]
    assert cpsat(training_pipeline(**TINY, offload=2), budget=ONE).makespan == 16


def test_a_host_has_its_own_limit() -> None:
    host = {"offload": 1, "host_memory": 0}
    assert cpsat(training_pipeline(**TINY, **host), budget=ONE).makespan == 16
    # One may be away, so that 0F1 stays and goes back first, as in stage 1, where 1F0 is away, too:
    # 1F0 at 2, 1F1 at 5, 1B1 at 7, 1B0 at 10; 0B1 at 9, 0B0 at 12.
    assert cpsat(training_pipeline(**TINY, **host | {"host_memory": 1}), budget=ONE).makespan == 14


@pytest.mark.parametrize("joined", [True, False])
@pytest.mark.parametrize(("p", "m"), [(1, 3), (2, 1), (2, 5), (3, 5), (4, 7)])
def test_1f1b_fits_wherever_one_microbatch_fits(p, m, joined) -> None:
    for memory, offload, released in product(range(1, p + 1), (0, 3, 30), (0, 2)):
        instance = training_pipeline(
            1, devices=p, microbatches=m, forward=(4, 9), backward=(4, 9), weight=(4, 9),
            transfer=2, joined=joined, activations=1, released=released,
            memory=memory * (1 + released), offload=offload,
        )  # fmt: skip
        found = registry.get("1f1b-offload")(instance)
        assert found.makespan is not None, found.reason
        kept = registry.get("1f1b")(instance)
        assert kept.makespan is None or kept.makespan == found.makespan
        held = peak_memory(instance, found.schedule, "refcount")[:p]
        assert max(held) <= memory * (1 + released)


def test_room_for_two_costs_no_time_where_transfers_hide_behind_passes() -> None:
    step = {"devices": 6, "microbatches": 12, "joined": True}
    free = registry.get("1f1b")(training_pipeline(**step))
    less = training_pipeline(**step, memory=2, offload=10)
    assert free.makespan == registry.get("1f1b-offload")(less).makespan
    assert [free.makespan] == [each.makespan(less) for each in pass_orders(less)]


def test_no_more_is_offloaded_than_the_room_asks_for() -> None:
    instance = training_pipeline(devices=4, microbatches=8, memory=3, offload=10)
    made = registry.get("1f1b-offload")(instance).schedule
    away = made.placement >= 4
    assert [*np.array(instance.graph.names)[away]] == [f"0S{m}" for m in (1, 2, 3, 5, 6, 7)]


def test_other_orders_keep_what_may_be_offloaded() -> None:
    step = {"devices": 2, "microbatches": 4, "chunks": 2, "shape": "v", "memory": 8}
    for order in ("gpipe", "zb-v", "dualpipe-v"):
        kept, may = training_pipeline(**step), training_pipeline(**step, offload=1)
        assert registry.get(order)(kept).makespan == registry.get(order)(may).makespan


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"memory": 4}, "activations: may not be offloaded"),
        ({"memory": 4, "offload": 1, "chunks": 2}, "chunks: several stages on a device"),
    ],
)
def test_what_1f1b_offload_is_not_for_is_said(given, said) -> None:
    with pytest.raises(InputError, match=said):
        registry.get("1f1b-offload")(training_pipeline(**given))


def test_a_device_without_room_for_one_microbatch_is_named() -> None:
    instance = training_pipeline(devices=1, microbatches=1, activations=3, memory=2, offload=1)
    found = registry.get("1f1b-offload")(instance)
    assert found.schedule is None
    assert "d0 has no room for one microbatch" in found.reason
    assert cpsat(instance, budget=ONE).status is Status.INFEASIBLE
