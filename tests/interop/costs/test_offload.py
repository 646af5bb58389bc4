"""Devices that hold weights only: copying them takes time, and another device computes."""

from fractions import Fraction

import pytest

import optpart as op
from optpart.base.errors import InputError
from optpart.interop.costs import registry
from optpart.interop.costs.offload import in_a_row
from optpart.interop.costs.registry import Options
from optpart.interop.formats import llm_names
from optpart.interop.formats.cluster_toml import loads_named
from optpart.interop.formats.llm import Step

CLUSTER = """
[[device]]
of = "rtx-3090"
name = "gpu"
[[device]]
name = "host"
type = "CPU"
memory = "64 GB"
{}
[[link]]
from = "gpu"
to = "host"
bandwidth = "16 GB/s"
latency = "3 us"
"""
ALONE = 'peak = {float32 = "1 TFLOP/s"}\nmemory_bandwidth = "50 GB/s"'
STEP = Step(context=100)


def costed(device, step=STEP, costs="roofline"):
    workload = llm_names.read("llama-2-7b", step)
    return workload, registry.apply(costs, workload, loads_named(CLUSTER.format(device)), Options())


def test_an_operation_takes_as_long_as_on_the_gpu_after_its_weights_have_come():
    workload, made = costed('computes_on = "gpu"')
    durations = made.instance.durations
    weights = [
        int(held) - cached
        for held, cached in zip(workload.graph.memory.fractions(), workload.cached, strict=True)
    ]
    for v, size in enumerate(weights):
        on_gpu, for_host = durations.times[v, 0], durations.times[v, 1]
        assert 0 <= for_host - on_gpu - (3000 + Fraction(size, 16)) < 1


def test_what_it_reads_and_hands_on_stays_on_the_gpu():
    _, made = costed('computes_on = "gpu"')
    cluster = made.instance.cluster
    assert cluster.infinite.all()
    assert not any(cluster.latency.fractions())


def test_the_gpu_keeps_room_for_the_cache_and_the_weights_in_use():
    workload, made = costed('computes_on = "gpu"')
    _, alone = costed(ALONE)
    gpu = made.instance.cluster.memory[0]
    block = 2 * 4 * 4096**2 + 2 * 3 * 4096 * 11008 + 2 * 2 * 4096
    assert gpu == alone.instance.cluster.memory[0] - sum(workload.cached) - max(
        block, 2 * 32000 * 4096
    )
    assert sum(workload.cached) == 32 * 2 * 100 * 4096 * 2
    weights = sum(workload.graph.memory.fractions()) - sum(workload.cached)
    assert sum(made.instance.graph.memory.fractions()) == weights
    assert any("gpu computes for host, one operation after the other" in r for r in made.remarks)


def test_operations_come_one_after_the_other():
    builder = op.GraphBuilder()
    for name in "abcd":
        builder.vertex(name, 1, memory=1, outputs=[1])
    for source, target in ("ab", "ac", "bd", "cd"):
        builder.edge(source, target, 0)
    graph = in_a_row(builder.build())
    assert op.solve(op.Instance(graph, op.Cluster.uniform(4)), seconds=5).makespan == 4
    builder.edge("b", "c", None)
    assert graph == builder.build()
    assert in_a_row(graph) == graph


@pytest.mark.parametrize(
    ("device", "fault"),
    [
        ('computes_on = "gpv"', r"device\[1\].computes_on: 'gpv' is no device; .*gpu"),
        ('computes_on = "host"', "'host' does not compute itself"),
    ],
)
def test_only_a_device_that_computes_can_be_named(device, fault):
    with pytest.raises(InputError, match=fault):
        loads_named(CLUSTER.format(device))


def test_other_costs_and_tight_devices_refuse_it():
    with pytest.raises(InputError, match="means nothing to the costs 'unit'"):
        costed('computes_on = "gpu"', costs="unit")
    with pytest.raises(InputError, match="no room for keys and values"):
        costed('computes_on = "gpu"', Step(context=4096, batch=12))
    workload = llm_names.read("llama-2-7b", STEP)
    unlinked = loads_named(CLUSTER.format('computes_on = "gpu"').replace('"16 GB/s"', "0"))
    with pytest.raises(InputError, match="no link to 'gpu', which computes for it"):
        registry.apply("roofline", workload, unlinked, Options())
