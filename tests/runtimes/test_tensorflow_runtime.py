"""TensorFlow runs every operation where the plan says, and computes what it did before."""

import numpy as np
import pytest

import optpart as op

tensorflow = pytest.importorskip("tensorflow")
rewriter = pytest.importorskip("tensorflow.core.protobuf.rewriter_config_pb2")
v1 = tensorflow.compat.v1

NAMES = {"near": "/CPU:0", "far": "/CPU:1"}
X = np.random.default_rng(0).normal(size=(4, 32)).astype("float32")


def network():
    """Return a perceptron of which two branches meet, with constants as weights."""
    draw = np.random.default_rng(1)

    def layer(x, name, width=64):
        weights = draw.normal(size=(x.shape[1], width)).astype("float32")
        x = v1.matmul(x, v1.constant(weights, name=f"{name}/weights"), name=f"{name}/product")
        return v1.nn.relu(v1.nn.bias_add(x, v1.ones(width)), name=f"{name}/relu")

    with v1.Graph().as_default() as graph:
        first = layer(v1.placeholder("float32", X.shape, name="x"), "first")
        branches = [layer(first, name) for name in ("left", "right")]
        v1.identity(layer(v1.concat(branches, 1), "last", 8), name="y")
        return graph.as_graph_def()


def run(definition):
    """Run a graph as it is on two devices; return the output, and where every operation ran."""
    as_it_is = v1.GraphOptions(
        optimizer_options=v1.OptimizerOptions(opt_level=v1.OptimizerOptions.L0),
        rewrite_options=rewriter.RewriterConfig(disable_meta_optimizer=True),
    )
    config = v1.ConfigProto(device_count={"CPU": 2}, graph_options=as_it_is)
    with v1.Graph().as_default() as graph, v1.Session(graph=graph, config=config) as session:
        v1.import_graph_def(definition, name="")
        said = v1.RunMetadata()
        traced = v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE)
        found = session.run("y:0", {"x:0": X}, options=traced, run_metadata=said)
    ran = {
        node.node_name: device.device.removeprefix("/job:localhost/replica:0/task:0/device:")
        for device in said.step_stats.dev_stats
        for node in device.node_stats
    }
    return found, ran


def test_every_operation_runs_where_the_plan_has_it(tmp_path):
    definition = network()
    v1.io.write_graph(definition, str(tmp_path), "model.pb", as_text=False)
    cluster = op.Cluster.of([op.Device("near", 2), op.Device("far", 1)])
    made = op.costed(op.workload(tmp_path / "model.pb"), cluster, "unit")
    plan = op.solve(made.instance, seconds=10)
    assert plan.status == "OPTIMAL"
    assert {*plan.placement.values()} == {"near", "far"}
    op.export(plan, "tensorflow", tmp_path / "placed.pb", model=tmp_path / "model.pb", names=NAMES)

    placed = v1.GraphDef.FromString((tmp_path / "placed.pb").read_bytes())
    (expected, _), (found, ran) = run(definition), run(placed)
    np.testing.assert_array_equal(found, expected)
    planned = {name: NAMES[device][1:] for name, device in plan.placement.items()}
    del planned["x"]  # which is fed, and so not run
    assert {name: device for name, device in ran.items() if name in planned} == planned
