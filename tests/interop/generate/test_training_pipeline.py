"""Steps of training on a pipeline: what depends on what, where it runs, what it holds."""

from fractions import Fraction

import pytest

from optpart.base.errors import InputError, UnsupportedError
from optpart.interop.formats.pipeline_parts import passes_of
from optpart.interop.generate.training_pipeline import training_pipeline
from optpart.problem.cluster import Cluster
from optpart.problem.graph import GraphBuilder
from optpart.problem.instance import Instance


def edges(instance: Instance) -> set[tuple[str, str]]:
    names = instance.graph.names
    pairs = zip(instance.graph.edge_source, instance.graph.edge_target, strict=True)
    return {(names[u], names[v]) for u, v in pairs}


def test_gradients_need_what_is_ahead_and_those_of_weights_keep_nobody_waiting() -> None:
    instance = training_pipeline(devices=2, microbatches=1)
    assert edges(instance) == {
        ("0F0", "1F0"), ("1F0", "1I0"), ("1I0", "0I0"), ("0F0", "0I0"),
        ("0F0", "0W0"), ("1F0", "1W0"), ("0I0", "0W0"), ("1I0", "1W0"),
    }  # fmt: skip


def test_both_gradients_may_be_one_task() -> None:
    instance = training_pipeline(
        devices=2, microbatches=1, joined=True, backward=(3, 3), weight=(4, 4)
    )
    assert edges(instance) == {("0F0", "1F0"), ("1F0", "1B0"), ("1B0", "0B0"), ("0F0", "0B0")}
    assert instance.graph.ops[instance.graph.names.index("1B0")] == 7
    assert passes_of(instance).backward == ("B",)


@pytest.mark.parametrize(("shape", "device"), [("loop", (0, 1, 2) * 2), ("v", (0, 1, 2, 2, 1, 0))])
def test_several_stages_per_device(shape, device) -> None:
    instance = training_pipeline(devices=3, microbatches=2, chunks=2, shape=shape)
    found = passes_of(instance)
    assert found.device == device
    assert found.microbatches == 2
    first_of_rank = [stages[0] for stages in found.stages_of_rank]
    assert first_of_rank == [0, 1, 2]


def test_times_are_those_of_the_stage_and_drawn_from_their_ranges() -> None:
    instance = training_pipeline(3, devices=4, microbatches=3, forward=(5, 9), backward=(1, 100))
    times = dict(zip(instance.graph.names, instance.graph.ops, strict=True))
    for stage in range(4):
        assert len({times[f"{stage}F{m}"] for m in range(3)}) == 1
        assert 5 <= times[f"{stage}F0"] <= 9
        assert times[f"{stage}W0"] == 10
    assert len({times[f"{stage}I0"] for stage in range(4)}) > 1


def test_memory_counts_only_if_it_is_limited() -> None:
    assert training_pipeline().model.memory == "none"
    limited = training_pipeline(memory=3)
    assert limited.model.memory == "refcount"
    assert [*limited.cluster.memory] == [3] * 4


def test_a_v_has_two_stages_per_device() -> None:
    with pytest.raises(InputError, match="chunks: 3, where a V has two"):
        training_pipeline(chunks=3, shape="v")


def test_what_is_too_large_is_refused() -> None:
    with pytest.raises(InputError, match="microbatches: would have about"):
        training_pipeline(devices=1000, chunks=1000, microbatches=10_000)


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ("0F0 0I0 0W0 x", "no pass is called 'x'"),
        ("0F0 0I0 0W0 1F0", "passes are missing"),
        ("0F0 0B0 0W0", "passes are missing"),
    ],
)
def test_what_is_no_training_pipeline_is_said(names, said) -> None:
    graph = GraphBuilder()
    for name in names.split():
        graph.vertex(name, 1, devices=["d0"])
    instance = Instance(graph.build(), Cluster.uniform(1))
    with pytest.raises(UnsupportedError, match=said):
        passes_of(instance)


def test_what_may_be_offloaded_passes_a_vertex_that_stores_it() -> None:
    instance = training_pipeline(
        devices=1, microbatches=1, activations=2, released=4, memory=9, offload=4
    )
    assert edges(instance) == {
        ("0F0", "0S0"), ("0S0", "0I0"), ("0S0", "0W0"), ("0F0", "0I0"), ("0I0", "0W0"),
    }  # fmt: skip
    assert passes_of(instance).device == (0,)
    sizes = instance.graph.tensor_size.fractions()
    moved = {(size, instance.delay(t, 1, 0)) for t, size in enumerate(sizes) if size}
    assert moved == {(6, 4), (2, Fraction(4, 3)), (4, Fraction(8, 3))}


def test_a_gradient_does_not_wait_for_nothing() -> None:
    step = {"devices": 1, "microbatches": 1, "memory": 9, "offload": 4}
    assert ("0S0", "0I0") not in edges(training_pipeline(**step))
    assert ("0S0", "0W0") not in edges(training_pipeline(**step, activations=0, released=1))


def test_each_device_has_a_host_and_no_link_to_another() -> None:
    cluster = training_pipeline(devices=2, memory=1, offload=0, host_memory=7, transfer=3).cluster
    assert cluster.names == ("d0", "d1", "host0", "host1")
    assert [*cluster.memory] == [1, 1, 7, 7]
    own = {(0, 1), (1, 0), (0, 2), (2, 0), (1, 3), (3, 1)}
    links = {(d, e) for d in range(4) for e in range(4) if d != e and cluster.linked[d, e]}
    assert links == own
    assert [cluster.latency[d, e] for d, e in sorted(own)] == [3, 0, 3, 0, 0, 0]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"offload": 1}, "offload: memory has no limit"),
        ({"offload": 1, "memory": 1, "activations": 0}, "offload: a forward pass leaves nothing"),
        ({"host_memory": 1}, "host_memory: there are no hosts"),
        ({"offload": 1, "memory": 1, "devices": 501}, "devices and their hosts: 1002 is out of"),
    ],
)
def test_offloading_that_is_of_no_use_is_refused(given, said) -> None:
    with pytest.raises(InputError, match=said):
        training_pipeline(**given)
