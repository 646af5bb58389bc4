"""The model replica of [H] §2.3 and §2.4: partitions, resources, times."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import typer
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from optpart import Cluster, InputError, Instance
from optpart.applications.ordering.compare import order
from optpart.applications.ordering.efficiency import assigned
from optpart.applications.ordering.models import base_model
from optpart.applications.ordering.models.operations import BaseModel, Op, Parameter
from optpart.applications.ordering.replica import CHANNEL, platform, replica, worker_partition
from optpart.commands.generate import generate_replica
from optpart.interop.formats import native

#: x → a (parameters p, q) → b (parameter r) → loss.
SMALL = BaseModel(
    "small",
    (
        Op("x", (), (), 0, 0),
        Op("a", ("x",), (Parameter("p", 100), Parameter("q", 10)), 1000, 500),
        Op("b", ("a",), (Parameter("r", 50),), 3000, 1500),
        Op("loss", ("b",), (), 10, 0),
    ),
)
ON = platform(batch=2, speed=10, bandwidth=4, server_speed=5)


def on_device(instance: Instance) -> dict[str, str]:
    names = instance.cluster.names
    devices = [names[d] for d in assigned(instance)]
    return dict(zip(instance.graph.names, devices, strict=True))


def times(instance: Instance) -> dict[str, Fraction]:
    device = assigned(instance)
    return {
        name: instance.duration(v, int(device[v])) for v, name in enumerate(instance.graph.names)
    }


def inputs(instance: Instance) -> dict[str, set[str]]:
    graph = instance.graph
    found: dict[str, set[str]] = {name: set() for name in graph.names}
    for u, v in zip(graph.edge_source, graph.edge_target, strict=True):
        found[graph.names[v]].add(graph.names[u])
    return found


class TestWorker:
    def test_forward(self) -> None:
        instance = worker_partition(SMALL, on=ON)
        assert inputs(instance) == {
            "worker_0/recv/p": set(),
            "worker_0/recv/q": set(),
            "worker_0/recv/r": set(),
            "worker_0/x": set(),
            "worker_0/a": {"worker_0/x", "worker_0/recv/p", "worker_0/recv/q"},
            "worker_0/b": {"worker_0/a", "worker_0/recv/r"},
            "worker_0/loss": {"worker_0/b"},
        }
        assert times(instance) == {
            "worker_0/recv/p": 100,
            "worker_0/recv/q": 10,
            "worker_0/recv/r": 50,
            "worker_0/x": 0,
            "worker_0/a": 200,
            "worker_0/b": 600,
            "worker_0/loss": 2,
        }

    def test_training_sends_the_gradients_by_the_parameters(self) -> None:
        instance = worker_partition(SMALL, training=True, on=ON)
        found = inputs(instance)
        assert found["worker_0/gradients/loss"] == {"worker_0/loss"}
        assert found["worker_0/gradients/b"] == {"worker_0/gradients/loss"}
        assert found["worker_0/gradients/b/own"] == {"worker_0/gradients/loss"}
        assert found["worker_0/gradients/a/own"] == {"worker_0/gradients/b"}
        assert found["worker_0/send/r"] == {"worker_0/gradients/b/own"}
        assert found["worker_0/send/q"] == {"worker_0/gradients/a/own"}
        # The sample is not a parameter, so no gradient by it is needed.
        assert "worker_0/gradients/a" not in found
        assert times(instance)["worker_0/gradients/b"] == times(instance)["worker_0/b"]
        assert times(instance)["worker_0/send/q"] == times(instance)["worker_0/recv/q"]

    @pytest.mark.parametrize("model", ["alexnet", "inception-v3-aux", "resnet-50"])
    def test_recv_ops_are_leaves_and_send_ops_are_roots(self, model: str) -> None:
        instance = worker_partition(base_model(model), training=True)
        found = inputs(instance)
        used = set().union(*found.values())
        sends = {name for name in found if name.startswith("worker_0/send/")}
        recvs = {name for name in found if name.startswith("worker_0/recv/")}
        assert len(sends) == len(recvs) == len(base_model(model).parameters)
        assert not any(found[name] for name in recvs)
        assert not sends & used
        assert recvs <= used


class TestReplica:
    def test_a_server_has_five_kinds_of_ops_for_every_parameter(self) -> None:
        instance = replica(SMALL, workers=2, training=True, on=ON)
        found = inputs(instance)
        assert found["server_0/send/p/worker_1"] == {"server_0/read/p"}
        assert found["worker_1/recv/p"] == {"server_0/send/p/worker_1"}
        assert found["server_0/recv/p/worker_1"] == {"worker_1/send/p"}
        assert found["server_0/aggregate/p"] == {
            "server_0/recv/p/worker_0",
            "server_0/recv/p/worker_1",
        }
        assert found["server_0/update/p"] == {"server_0/aggregate/p"}
        assert times(instance)["server_0/aggregate/p"] == 20
        assert times(instance)["server_0/update/p"] == 40
        # Per parameter: read, aggregate, update, and per worker send and recv at both ends.
        per_worker = instance.vertices - 3 * 3
        assert per_worker % 2 == 0

    def test_without_training_nothing_comes_back(self) -> None:
        instance = replica(SMALL, workers=3, servers=2, on=ON)
        kinds = {name.split("/")[1] for name in instance.graph.names if "server" in name}
        assert {"read", "send"} >= {k for k in kinds if k in ("read", "send", "recv", "update")}
        assert not any("worker_0/server" in name for name in instance.cluster.names)

    def test_devices_are_workers_servers_and_channels_in_both_directions(self) -> None:
        instance = replica(SMALL, workers=2, servers=2, channels=2, training=True, on=ON)
        assert set(instance.cluster.names) == {
            "worker_0", "worker_1", "server_0", "server_1",
            *(f"server_{s}/worker_{w}/{c}" for s in (0, 1) for w in (0, 1) for c in (0, 1)),
            *(f"worker_{w}/server_{s}/{c}" for s in (0, 1) for w in (0, 1) for c in (0, 1)),
        }  # fmt: skip
        assert instance.cluster.types.count(CHANNEL) == 16

    def test_parameters_go_to_servers_in_turn_and_there_to_channels_in_turn(self) -> None:
        device = on_device(worker_partition(SMALL, servers=2, channels=2, on=ON))
        assert device["worker_0/recv/p"] == "server_0/worker_0/0"
        assert device["worker_0/recv/q"] == "server_1/worker_0/0"
        assert device["worker_0/recv/r"] == "server_0/worker_0/1"

    @settings(max_examples=25)
    @given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 3), st.booleans())
    def test_there_is_no_choice_of_devices_and_times_are_whole(
        self, workers: int, servers: int, channels: int, training: bool
    ) -> None:
        instance = replica(
            SMALL, workers=workers, servers=servers, channels=channels, training=training, on=ON
        )
        device = assigned(instance)
        assert all(instance.duration(v, int(d)).denominator == 1 for v, d in enumerate(device))
        makespan = order(instance, "tao").makespan
        assert makespan is not None
        assert makespan >= 802  # what a worker computes forward

    def test_workers_are_independent_until_the_servers_aggregate(self) -> None:
        one, four = (order(replica(SMALL, workers=w, on=ON), "tao").makespan for w in (1, 4))
        assert one == four

    def test_the_worker_partition_is_the_worker_s_part_of_the_whole(self) -> None:
        whole = inputs(replica(SMALL, servers=2, training=True, on=ON))
        part = inputs(worker_partition(SMALL, servers=2, training=True, on=ON))
        for name, before in part.items():
            expected = whole[name] if "/recv/" not in name else set()
            assert before == expected


class TestRefusals:
    @pytest.mark.parametrize(
        ("given_", "message"),
        [
            ({"batch": 0}, "batch: 0 is too few"),
            ({"speed": 0}, "speed: 0 is not positive"),
            ({"bandwidth": "x"}, "bandwidth: 'x' is not a number"),
            ({"server_speed": -1}, "server speed: -1 is not positive"),
        ],
    )
    def test_a_platform(self, given_: dict[str, int], message: str) -> None:
        with pytest.raises(InputError, match=message):
            platform(**given_)

    def test_no_workers(self) -> None:
        with pytest.raises(InputError, match="workers: 0 is too few"):
            replica(SMALL, workers=0)


class TestCommand:
    app = typer.Typer()
    app.command()(generate_replica)

    def test_it_writes_an_instance(self, tmp_path: Path) -> None:
        path = tmp_path / "x.json"
        options = ["--model", "alexnet", "--workers", "2", "--training", "-o", str(path)]
        answer = CliRunner().invoke(self.app, options)
        assert answer.exit_code == 0
        assert "50,303,912 parameters" in answer.output
        instance = native.read(path)
        assert isinstance(instance.cluster, Cluster)
        assert np.array_equal(
            assigned(instance), assigned(replica(base_model("alexnet"), workers=2, training=True))
        )

    def test_only_a_worker(self, tmp_path: Path) -> None:
        path = tmp_path / "x.json"
        options = ["--model", "par-32", "--only-worker", "-o", str(path)]
        assert CliRunner().invoke(self.app, options).exit_code == 0
        assert native.read(path).vertices == 66
        answer = CliRunner().invoke(self.app, [*options, "--workers", "2"])
        assert isinstance(answer.exception, InputError)
