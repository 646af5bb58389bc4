"""PyTorch runs the pipelines of ``op.place`` in two processes, and computes what it did before."""

import gc
import re
import socket
import weakref
from pathlib import Path

import pytest
from small_models import GPT, MODELS, Branching, Transposing, inputs_of

import optpart as op
from optpart.base.errors import InputError
from optpart.interop.costs.efficiency import defaults
from optpart.interop.formats.cluster_toml import loads_named
from optpart.interop.generate.training_pipeline import training_pipeline
from optpart.placing.torch_modules import PlacedModule

torch = pytest.importorskip("torch")
flop_counter = pytest.importorskip("torch.utils.flop_counter")
attention = pytest.importorskip("torch.nn.attention")

#: Two unlike processors, neither of which holds the whole model.
CLUSTER = """
default_link = "ethernet-10g"
[[device]]
of = "ryzen-9-7950x"
name = "cpu0"
memory = {limit}
[[device]]
of = "core-i9-13900k"
name = "cpu1"
memory = {limit}
"""


def placed(name):
    model, given = MODELS[name]().eval(), inputs_of(name, 2)
    held = sum(each.numel() * each.element_size() for each in model.parameters())
    cluster = loads_named(CLUSTER.format(limit=int(0.75 * held) + 2**20))
    dynamic = {"tokens": {0: torch.export.Dim("batch", max=64)}} if name == "dynamic" else None
    shapes = {"batch": 2} if name == "dynamic" else None
    return model, op.place(model, given, cluster, dynamic_shapes=dynamic, shapes=shapes, seconds=30)


@pytest.mark.parametrize("name", MODELS)
def test_two_processes_compute_what_the_whole_module_does(name, tmp_path):
    _, plan = placed(name)
    assert [device for device, _ in plan.stages] in (["cpu0", "cpu1"], ["cpu1", "cpu0"])
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    run = (name, plan.stages, plan.example_inputs, port, tmp_path / "output.pt")
    torch.multiprocessing.spawn(stage, run, nprocs=2)
    found, expected = torch.load(tmp_path / "output.pt")
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


def stage(rank, name, stages, example_inputs, port, place):
    """Run one rank of two, on two microbatches."""
    import torch.distributed as dist
    from torch.distributed.pipelining import ScheduleGPipe

    torch.manual_seed(0)
    model = MODELS[name]().eval()
    pipe = PlacedModule(None, stages, example_inputs, ()).apply(model, rank)
    address = f"tcp://127.0.0.1:{port}"
    dist.init_process_group("gloo", init_method=address, rank=rank, world_size=2)
    with torch.no_grad():
        schedule = ScheduleGPipe(pipe.build_stage(rank, torch.device("cpu")), n_microbatches=2)
        other = inputs_of(name, 2, seed=2)
        both = [torch.cat(parts) for parts in zip(example_inputs, other, strict=True)]
        found = schedule.step(*both) if rank == 0 else schedule.step()
        if rank == 1:
            torch.save((found, model(*both)), place)
    dist.barrier()
    dist.destroy_process_group()


def test_a_proven_order_of_passes_has_the_gradients_of_the_whole_model(tmp_path):
    instance = training_pipeline(
        1, devices=2, microbatches=4, chunks=2, shape="v", forward=(9, 13), transfer=2, memory=6
    )
    result = op.solve(instance, seconds=60)
    assert result.status is op.Status.OPTIMAL
    op.export(result, "torch-schedule", tmp_path / "order.csv")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    run = (port, str(tmp_path / "order.csv"), [[0, 3], [1, 2]], 4)
    torch.multiprocessing.spawn(trained, run, nprocs=2)


def trained(rank, port, order, stages, microbatches):
    """Train the stages of one rank for a step, and compare their gradients."""
    import copy

    import torch.distributed as dist
    from torch.distributed.pipelining import PipelineStage
    from torch.distributed.pipelining.schedules import _PipelineScheduleRuntime

    dist.init_process_group(
        "gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=len(stages)
    )
    torch.manual_seed(0)
    nn, count, mine = torch.nn, sum(map(len, stages)), stages[rank]
    whole = nn.Sequential(*(nn.Sequential(nn.Linear(8, 8), nn.Tanh()) for _ in range(count)))
    own = [copy.deepcopy(whole[s]) for s in mine]
    given, target = torch.randn(2 * microbatches, 8), torch.randn(2 * microbatches, 8)
    loss = nn.MSELoss(reduction="sum")
    built = [
        PipelineStage(module, s, count, torch.device("cpu"))
        for module, s in zip(own, mine, strict=True)
    ]
    schedule = _PipelineScheduleRuntime(built, microbatches, loss_fn=loss, scale_grads=False)
    schedule._load_csv(order)
    schedule.step(
        *([given] if 0 in mine else []), **({"target": target} if count - 1 in mine else {})
    )
    loss(whole(given), target).backward()
    for module, s in zip(own, mine, strict=True):
        for a, b in zip(module.parameters(), whole[s].parameters(), strict=True):
            torch.testing.assert_close(a.grad, b.grad, rtol=1e-4, atol=1e-4)
    dist.barrier()
    dist.destroy_process_group()


def test_what_a_stage_sends_is_contiguous():
    given, stages = (torch.randn(2, 4, 8),), (("cpu0", ""), ("cpu1", "two"))
    model = Transposing().eval()
    pipe = PlacedModule(None, stages, given, ()).apply(model)
    sent = pipe.get_stage_module(0)(*given)
    assert sent.shape == (2, 16, 4)
    assert sent.is_contiguous()
    assert torch.equal(pipe.get_stage_module(1)(sent), model(*given))


def test_a_stage_holds_its_own_weights_only_if_its_rank_is_named():
    model, stages = Transposing(), (("cpu0", ""), ("cpu1", "two"))
    other = weakref.ref(model.one.weight)
    pipe = PlacedModule(None, stages, (torch.randn(2, 4, 8),), ()).apply(model, 1)
    stage, kept = pipe.get_stage_module(1), pipe.info()  # which build_stage hands to the stage
    del model, pipe
    gc.collect()
    assert kept.num_stages == 2
    assert [*stage.state_dict()] == ["two.weight", "two.bias"]
    assert other() is None


def test_a_module_is_left_as_it_was():
    model = Transposing()
    plan = PlacedModule(None, (("cpu0", ""), ("cpu1", "two")), (torch.randn(2, 4, 8),), ())
    for _ in range(2):
        assert plan.apply(model).num_stages == 2
        assert "forward" not in vars(model.two)
    with pytest.raises(InputError, match=r"module: .* has no attribute .*give the module that was"):
        plan.apply(torch.nn.Linear(2, 2))


def test_sizes_are_given_by_the_names_of_dimensions_and_are_else_those_of_the_example():
    dims = {"tokens": {0: torch.export.Dim("batch", max=64), 1: torch.export.Dim("length", max=64)}}
    cluster = loads_named(CLUSTER.format(limit=2**30))

    def operations(**shapes):
        plan = op.place(
            GPT().eval(),
            inputs_of("gpt", 2),
            cluster,
            dynamic_shapes=dims,
            shapes=shapes,
            seconds=5,
        )
        return plan.example_inputs[0].shape, sum(plan.result.instance.graph.ops), plan.remarks

    shape, example, said = operations()
    assert shape == (2, 32)
    assert "Open sizes are those of the example: tokens.0 is 2, tokens.1 is 32." in said
    shape, more, _ = operations(batch=6, length=32)
    assert (shape, more) == ((6, 32), 3 * example)
    shape, longer, said = operations(length=64)
    assert shape == (2, 64)
    assert longer > 2 * example
    assert "Open sizes are those of the example: tokens.0 is 2." in said
    with pytest.raises(InputError, match="shape 'width': the model has no such size"):
        operations(width=3)


def test_a_pipeline_of_many_microbatches_uses_both_devices_without_need():
    model, given = GPT().eval(), inputs_of("gpt", 2)
    cluster = loads_named(CLUSTER.format(limit=2**32))
    assert len(op.place(model, given, cluster, seconds=5).stages) == 1
    plan = op.place(model, given, cluster, objective="bottleneck", seconds=10)
    assert len(plan.stages) == 2
    assert plan.result.bottleneck < plan.result.makespan


def test_the_page_on_pytorch_does_what_it_says(tmp_path, monkeypatch):
    page = (Path(__file__).parents[2] / "docs" / "use" / "pytorch.md").read_text(encoding="utf-8")
    example = re.search(r"^```py\n(.*?)^```", page, re.MULTILINE | re.DOTALL)[1]
    model, (microbatch,) = GPT().eval(), inputs_of("gpt", 2)
    monkeypatch.chdir(tmp_path)
    Path("cluster.toml").write_text(CLUSTER.format(limit=2**32), encoding="utf-8")
    names = {"model": model, "microbatch": microbatch, "device": torch.device("cpu")}
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{tmp_path}/meeting", rank=0, world_size=1
    )
    try:
        exec(example, names)
        batch = microbatch.repeat(4, 1)
        with torch.no_grad():
            torch.testing.assert_close(names["schedule"].step(batch), model(batch))
    finally:
        torch.distributed.destroy_process_group()


@pytest.mark.parametrize("name", MODELS)
def test_products_have_the_operations_that_pytorch_counts(name, tmp_path):
    model, given = MODELS[name]().eval(), inputs_of(name, 2)
    torch.export.save(torch.export.export(model, given), tmp_path / "model.pt2")
    work = op.workload(tmp_path / "model.pt2").work
    products = [defaults().class_of(kind) == "contraction" for kind in work.kinds]
    # PyTorch does not count the fused attention of processors, but the products that it is made of.
    counter = flop_counter.FlopCounterMode(display=False)
    with counter, torch.no_grad(), attention.sdpa_kernel(attention.SDPBackend.MATH):
        model(*given)
    assert work.flops[products].sum() == pytest.approx(counter.get_total_flops(), rel=0.01)


def test_measured_on_the_spot_every_operation_takes_time():
    model, given = MODELS["gpt"]().eval(), inputs_of("gpt", 2)
    cluster = op.Cluster.of([op.Device("cpu")], bandwidth=1)
    plan = op.place(model, given, cluster, measure=True, seconds=5)
    assert plan.stages == (("cpu", ""),)
    assert plan.result.makespan > 0
    with pytest.raises(InputError, match="device 'cuda7': is no device of PyTorch on this"):
        op.place(model, given, op.Cluster.of([op.Device("cuda7")]), measure=True)


def test_branches_on_values_are_refused_with_the_remedy():
    with pytest.raises(InputError, match=r"Branching: torch.export cannot trace it .*torch.where"):
        op.place(Branching(), (torch.ones(2, 8),), loads_named(CLUSTER.format(limit=2**30)))
