"""The two recurrent networks of [B] §5.1."""

from __future__ import annotations

from collections import Counter
from typing import Any

import networkx as nx
import numpy as np
import pytest

from optpart import Graph, InputError, Instance
from optpart.interop.generate import lstm
from optpart.strategies.partition.expert import layers
from optpart.strategies.partition.unit_graph import unit_graph

CELL = [
    "concat", "MatMul", "BiasAdd", "split", "Sigmoid_1", "Tanh", "Add", "Sigmoid", "Sigmoid_2",
    "mul", "mul_1", "Add_1", "Tanh_1", "mul_2",
]  # fmt: skip


def inputs(graph: Graph, name: str) -> list[str]:
    """Return the input tensors of a vertex, in any order."""
    found = graph.edge_tensor[graph.edge_target == graph.index[name]]
    return sorted(graph.tensor_name(tensor) for tensor in found)


def outputs(graph: Graph, name: str) -> list[int]:
    """Return the sizes of a vertex's outputs."""
    found = np.flatnonzero(graph.tensor_vertex == graph.index[name])
    return [int(graph.tensor_size[tensor]) for tensor in found]


def operations(graph: Graph, name: str) -> int:
    return int(graph.ops[graph.index[name]])


def sinks(graph: Graph) -> list[str]:
    return [name for v, name in enumerate(graph.names) if v not in graph.edge_source]


class TestRnn:
    def test_has_two_layers_of_40_cells(self) -> None:
        graph = lstm.rnn(training=False)
        cells = Counter(
            name.rpartition("/")[0] for name in graph.names if name.startswith("layer_")
        )
        steps = [f"layer_{i}/step_{t}" for i in range(2) for t in range(40)]
        assert cells == {**dict.fromkeys(steps, 14), "layer_0": 3, "layer_1": 3}

    def test_a_cell_is_a_basic_lstm_cell(self) -> None:
        graph = lstm.rnn(steps=2, training=False)
        here, before = "layer_1/step_1", "layer_1/step_0"
        assert [n.removeprefix(f"{here}/") for n in graph.names if n.startswith(here)] == CELL
        assert inputs(graph, f"{here}/concat") == ["layer_0/step_1/mul_2:0", f"{before}/mul_2:0"]
        assert inputs(graph, f"{here}/MatMul") == ["layer_1/kernel:0", f"{here}/concat:0"]
        assert inputs(graph, f"{here}/split") == [f"{here}/BiasAdd:0"]
        gates = ("Sigmoid_1", "Tanh", "Add", "Sigmoid_2")
        assert [inputs(graph, f"{here}/{gate}") for gate in gates] == [
            [f"{here}/split:{i}"] for i in range(4)
        ]
        assert inputs(graph, f"{here}/mul") == [f"{before}/Add_1:0", f"{here}/Sigmoid:0"]
        assert inputs(graph, f"{here}/Add_1") == [f"{here}/mul:0", f"{here}/mul_1:0"]
        assert inputs(graph, f"{here}/mul_2") == [f"{here}/Sigmoid_2:0", f"{here}/Tanh_1:0"]

    def test_the_first_step_reads_the_initial_state(self) -> None:
        graph = lstm.rnn(steps=1, training=False)
        assert inputs(graph, "layer_0/step_0/concat") == [
            "inputs/step_0:0",
            "layer_0/initial_state:1",
        ]
        assert "layer_0/initial_state:0" in inputs(graph, "layer_0/step_0/mul")

    def test_the_loss_sums_over_all_steps(self) -> None:
        graph = lstm.rnn(steps=3, training=False)
        assert inputs(graph, "loss") == [f"softmax/step_{t}/CrossEntropy:0" for t in range(3)]
        assert inputs(graph, "softmax/step_2/MatMul") == [
            "layer_1/step_2/mul_2:0",
            "softmax/kernel:0",
        ]

    def test_costs_follow_from_the_sizes(self) -> None:
        """20 sentences, layers of 1500: 4 gates of (1500 + 1500) × 1500 weights each."""
        graph = lstm.rnn(steps=1)
        assert operations(graph, "layer_0/step_0/MatMul") == 2 * 20 * 3000 * 6000
        assert outputs(graph, "layer_0/step_0/MatMul") == [4 * 20 * 6000]
        assert outputs(graph, "layer_0/step_0/split") == [4 * 20 * 1500] * 4
        assert operations(graph, "layer_0/step_0/Tanh") == 20 * 1500
        assert operations(graph, "layer_0/kernel") == 0
        assert graph.memory[graph.index["layer_0/kernel"]] == 4 * 3000 * 6000
        assert operations(graph, "gradients/layer_0/step_0/MatMul") == 2 * 2 * 20 * 3000 * 6000


class TestTraining:
    @pytest.mark.parametrize(
        ("network", "first"), [(lstm.rnn, "layer_0"), (lstm.nmt, "encoder/layer_0")]
    )
    def test_everything_leads_to_the_loss_or_an_update(self, network: Any, first: str) -> None:
        """Except for the gradient of the first cell's inputs, which nothing reads."""
        graph = network(steps=2, training=False)
        assert sinks(graph) == ["loss"]
        weights = [name for name in graph.names if name.endswith(("kernel", "bias"))]
        updates = [f"update/{name}" for name in weights]
        unread = f"gradients/{first}/step_0/concat"
        assert sorted(sinks(network(steps=2))) == sorted(["loss", unread, *updates])

    def test_mirrors_every_edge(self) -> None:
        """If ``w`` reads ``u``, the gradient of ``u`` reads that of ``w``."""
        graph = lstm.nmt(steps=3)
        pairs = {
            (graph.names[u], graph.names[v])
            for u, v in zip(graph.edge_source, graph.edge_target, strict=True)
        }
        forward = [
            (u, v)
            for u, v in pairs
            if not v.startswith(("gradients/", "update/")) and f"gradients/{u}" in graph.index
        ]
        assert len(forward) > 100
        assert {(f"gradients/{v}", f"gradients/{u}") for u, v in forward} <= pairs

    def test_a_gradient_reads_the_inputs_of_its_operation_and_has_as_many_outputs(self) -> None:
        graph = lstm.rnn(steps=2)
        here = "layer_0/step_0"
        assert inputs(graph, f"gradients/{here}/mul_1") == [
            f"gradients/{here}/Add_1:1",
            f"{here}/Sigmoid_1:0",
            f"{here}/Tanh:0",
        ]
        assert outputs(graph, f"gradients/{here}/concat") == [4 * 20 * 1500] * 2
        assert outputs(graph, f"gradients/{here}/split") == [4 * 20 * 6000]

    def test_the_gradient_of_a_weight_sums_over_its_steps(self) -> None:
        graph = lstm.rnn(steps=3)
        assert inputs(graph, "gradients/layer_1/bias") == [
            f"gradients/layer_1/step_{t}/BiasAdd:1" for t in range(3)
        ]
        assert inputs(graph, "update/layer_1/bias") == [
            "gradients/layer_1/bias:0",
            "layer_1/bias:0",
        ]

    def test_weights_share_a_device_with_their_updates(self) -> None:
        graph = lstm.rnn(steps=1)
        together = {tuple(graph.names[v] for v in group) for group in graph.colocation}
        assert ("layer_0/kernel", "update/layer_0/kernel") in together
        assert len(together) == 6


class TestNmt:
    def test_has_two_layers_of_50_cells_on_either_side(self) -> None:
        graph = lstm.nmt(training=False)
        cells = {name.rpartition("/")[0] for name in graph.names if name.count("/") == 3}
        assert cells == {
            f"{side}/layer_{i}/step_{t}"
            for side in ("encoder", "decoder")
            for i in range(2)
            for t in range(50)
        }

    def test_the_decoder_starts_from_the_last_state_of_the_encoder(self) -> None:
        graph = lstm.nmt(steps=3, training=False)
        assert inputs(graph, "decoder/layer_1/step_0/concat") == [
            "decoder/layer_0/step_0/mul_2:0", "encoder/layer_1/step_2/mul_2:0",
        ]  # fmt: skip
        assert "encoder/layer_1/step_2/Add_1:0" in inputs(graph, "decoder/layer_1/step_0/mul")
        assert "decoder/layer_1/initial_state" not in graph.index

    def test_each_side_reads_its_own_words(self) -> None:
        graph = lstm.nmt(steps=3, training=False)
        assert "source/step_1:0" in inputs(graph, "encoder/layer_0/step_1/concat")
        assert "target/step_1:0" in inputs(graph, "decoder/layer_0/step_1/concat")

    def test_sizes_are_those_of_the_thesis(self) -> None:
        graph = lstm.nmt(steps=1, training=False)
        assert operations(graph, "encoder/layer_0/step_0/MatMul") == 2 * 64 * 2048 * 4096


class TestInstance:
    @pytest.mark.parametrize("devices", [1, 8])
    def test_devices_are_equal(self, devices: int) -> None:
        cluster = lstm.instance("rnn", devices).cluster
        assert len(cluster) == devices
        assert cluster.speed.fractions() == [lstm.SPEED] * devices

    def test_a_cell_and_its_gradients_are_a_group_each(self) -> None:
        instance = lstm.instance("rnn")
        sizes = Counter(len(unit) for unit in instance.units)
        assert sizes[14] == 2 * 2 * 40
        assert len(lstm.instance("rnn", cells=False).units) == instance.vertices - 6

    @pytest.mark.parametrize("model", ["rnn", "nmt"])
    def test_groups_form_no_cycle(self, model: lstm.Network) -> None:
        instance = lstm.instance(model)
        unit, graph = instance.unit_of, instance.graph
        merged = nx.DiGraph(
            (int(unit[u]), int(unit[v]))
            for u, v in zip(graph.edge_source, graph.edge_target, strict=True)
            # An update comes after everything that reads its weights.
            if unit[u] != unit[v] and not graph.names[v].startswith("update/")
        )
        assert nx.is_directed_acyclic_graph(merged)
        assert len(unit_graph(instance).source) >= merged.number_of_edges()

    def test_names_distinguish_layers_of_encoder_decoder_and_gradients(self) -> None:
        instance = lstm.instance("nmt", 2)
        layer = dict(zip(instance.graph.names, layers(instance)[instance.unit_of], strict=True))
        assert layer["decoder/layer_1/step_4/Tanh"] == 1
        assert layer["gradients/encoder/layer_0/step_4/Tanh"] == 0
        assert layer["update/encoder/layer_1/kernel"] == 1
        assert layer["loss"] == -1

    def test_costs_may_be_1_for_everything(self) -> None:
        instance = lstm.instance("rnn", costs="unit")
        assert instance.graph.ops.sum() == instance.vertices
        assert instance.cluster.speed[0] == 1

    def test_or_drawn_with_a_seed(self) -> None:
        def ops(seed: int) -> list[int]:
            found: list[int] = lstm.instance(
                "rnn", 2, seed, costs="drawn"
            ).graph.ops.numerators.tolist()
            return found

        assert ops(1) == ops(1) != ops(2)
        assert {1, 100} <= set(ops(1)) <= set(range(1, 101))

    def test_names_tell_them_apart(self) -> None:
        made: list[Instance] = [
            lstm.instance("rnn"),
            lstm.instance("rnn", 8),
            lstm.instance("rnn", costs="unit"),
            lstm.instance("rnn", costs="drawn", seed=1),
            lstm.instance("rnn", costs="drawn", seed=2),
            lstm.instance("rnn", training=False),
            lstm.instance("rnn", cells=False),
            lstm.instance("nmt"),
        ]
        assert len({instance.name for instance in made}) == len(made)

    @pytest.mark.parametrize(
        ("options", "place"),
        [
            ({"network": "gru"}, "network"),
            ({"network": "rnn", "devices": 0}, "devices"),
            ({"network": "rnn", "costs": "free"}, "costs"),
            ({"network": "rnn", "costs": "drawn", "seed": -1}, "seed"),
        ],
    )
    def test_an_invalid_option_is_named(self, options: dict[str, Any], place: str) -> None:
        with pytest.raises(InputError, match=f"^{place}: "):
            lstm.instance(**options)

    @pytest.mark.parametrize("size", ["layers", "steps", "units", "batch", "vocabulary"])
    def test_sizes_are_at_least_1(self, size: str) -> None:
        with pytest.raises(InputError, match=f"^{size}: 0 is too few"):
            lstm.nmt(**{size: 0})
