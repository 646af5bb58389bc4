"""Measured times: bound to devices, matched with vertices, and never guessed."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from optpart.base.errors import InputError
from optpart.interop.costs.measured import read
from optpart.interop.costs.registry import Options, apply
from optpart.interop.devices.named import NamedCluster
from optpart.interop.formats.cluster_toml import loads_named
from optpart.problem.cluster import Cluster
from optpart.problem.graph import GraphBuilder
from optpart.problem.workload import Work, Workload

NAMED = loads_named(
    'default_link = "pcie-4-x16"\n[[device]]\nof = "t4"\ncount = 2\nname = "gpu"\n'
    '[[device]]\nof = "epyc-7763"\nname = "cpu"\n'
)
GPU, CPU = "name,gpu (us)\na,3\na,5\na,4.0004\nb,7\n", "name,cpu (us)\na,30\nb,70\n"


def workload(kinds: tuple[str, ...] = ("Conv", "Relu"), names: str = "ab") -> Workload:
    builder = GraphBuilder()
    for name in names:
        builder.vertex(name, memory=10, outputs=[8])
    for u, v in pairwise(names):
        builder.edge(u, v)
    counts = [np.array([5_000_000] * len(names), dtype=np.int64) for _ in range(3)]
    work = Work(kinds, ("float32",) * len(names), *counts)
    return Workload(builder.build(), work, name="net", source="net.onnx")


def times(folder: Path, **tables: str) -> dict[str, Path]:
    for name, text in tables.items():
        (folder / f"{name}.csv").write_text(text)
    return {name: folder / f"{name}.csv" for name in tables}


def test_a_table_gives_the_median_in_whole_nanoseconds(tmp_path: Path) -> None:
    made = apply("measured", workload(), NAMED, Options(measured=times(tmp_path, gpu=GPU, cpu=CPU)))
    instance = made.instance
    assert [[instance.duration(v, d) for d in range(3)] for v in range(2)] == [
        [4000, 4000, 30_000],
        [7000, 7000, 70_000],
    ]
    assert instance.source.startswith(
        "net.onnx, costs: measured, in nanoseconds, gpu gpu.csv, cpu cpu.csv. "
    )
    assert made.remarks[:3] == (
        "gpu: 2 of 2 operations measured; the median of 1 to 3 measurements counts.",
        "cpu: 2 of 2 operations measured, once each.",
        "Run times were rounded to the nearest nanosecond.",
    )


def test_fractions_can_be_kept(tmp_path: Path) -> None:
    options = Options(measured=times(tmp_path, gpu=GPU, cpu=CPU), exact=True)
    made = apply("measured", workload(), NAMED, options)
    assert made.instance.duration(0, 0) == Fraction(40004, 10)
    assert not [remark for remark in made.remarks if "rounded to the nearest" in remark]


@pytest.mark.parametrize("key", ["gpu", "t4", "GPU"])
def test_a_file_serves_all_devices_of_an_entry_a_library_name_or_a_type(
    tmp_path: Path, key: str
) -> None:
    files = times(tmp_path, **{key: GPU.replace("gpu", key)}, cpu=CPU)
    instance = apply("measured", workload(), NAMED, Options(measured=files)).instance
    assert [instance.duration(1, d) for d in range(3)] == [7000, 7000, 70_000]


def test_a_device_of_its_own_name_comes_first(tmp_path: Path) -> None:
    files = times(tmp_path, gpu=GPU, cpu=CPU, gpu1="name,gpu1 (ns)\na,1\nb,2\n")
    instance = apply("measured", workload(), NAMED, Options(measured=files)).instance
    assert [instance.duration(1, d) for d in range(3)] == [7000, 2, 70_000]


def test_what_was_not_measured_is_refused_or_estimated(tmp_path: Path) -> None:
    files = times(tmp_path, gpu="name,gpu (us)\na,4\nfused,9\n", cpu=CPU)
    with pytest.raises(InputError) as fault:
        apply("measured", workload(), NAMED, Options(measured=files))
    assert str(fault.value) == (
        "device 'gpu0': not measured: b (the file has fused instead); measure them, or estimate "
        'them with fill="roofline"'
    )
    made = apply("measured", workload(), NAMED, Options(measured=files, fill="roofline"))
    estimated = apply("roofline", workload(), NAMED, Options()).instance
    assert made.instance.duration(0, 0) == 4000
    assert abs(made.instance.duration(1, 0) - estimated.duration(1, 0)) <= 1
    assert "gpu.csv, cpu cpu.csv, the rest by roofline. " in made.instance.source
    assert "gpu: 1 name of no vertex, not counted: fused." in made.remarks
    assert "gpu0, gpu1: 1 operation not measured, so estimated: b." in made.remarks
    assert any(remark.startswith("Run times are estimates") for remark in made.remarks)


def test_what_must_not_run_on_a_device_need_not_be_measured_there(tmp_path: Path) -> None:
    graph = GraphBuilder().vertex("a").vertex("b", device_type="CPU").build()
    work = Workload(graph, name="net")
    files = times(tmp_path, gpu="name,gpu (us)\na,4\n", cpu=CPU)
    instance = apply("measured", work, NAMED, Options(measured=files)).instance
    assert instance.vertex_allowed.tolist() == [[True, True, True], [False, False, True]]


def test_a_device_without_a_file_is_refused_or_estimated(tmp_path: Path) -> None:
    files = times(tmp_path, gpu=GPU)
    with pytest.raises(InputError, match="device 'cpu': has no file of times; measure them, or"):
        apply("measured", workload(), NAMED, Options(measured=files))
    made = apply("measured", workload(), NAMED, Options(measured=files, fill="roofline"))
    assert "cpu: 2 operations not measured, so estimated: a, b." in made.remarks


def test_nothing_that_was_given_is_ignored(tmp_path: Path) -> None:
    files = times(tmp_path, gpu=GPU, cpu=CPU)
    for options, message in (
        (Options(), "measured: missing; name a file of times for a device or type"),
        (Options(measured=files | {"tpu": "x"}), "measured 'tpu': no device takes its times from"),
        (Options(measured=files, efficiencies="x"), "efficiencies: nothing is estimated; give"),
        (Options(measured=files, seed=3), "seed: means nothing to the costs 'measured'"),
        (Options(measured=files | {"gpu": tmp_path / "no"}), "no: cannot be read (No such file"),
        (Options(measured=files | {"gpu": tmp_path}), ": is no file; name a readable file"),
    ):
        with pytest.raises(InputError) as fault:
            apply("measured", workload(), NAMED, options)
        assert message in str(fault.value)


def test_other_files_are_refused(tmp_path: Path) -> None:
    for name, content, message in (
        ("x.json", b"{}", "is no profile that is known; give a CSV, a profile of ONNX Runtime"),
        ("x.json.gz", b"\x1f\x8b\x08", "is compressed; unpack it with gunzip"),
        ("x.csv", b"#name,input_sizes\n", "holds memory, not times; give it as node_memory"),
        ("y.csv", b"name,gpu\nc,1\n", "no name in it is a vertex; measure operations such as a"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError) as fault:
            read(workload(), tmp_path / name, "gpu")
        assert str(fault.value).startswith(f"{tmp_path / name}: {message}")


def test_a_cluster_without_units_is_taken_in_nanoseconds(tmp_path: Path) -> None:
    files = times(tmp_path, d0="name,d0 (ns)\na,1\nb,2\n")
    cluster = NamedCluster.unnamed(Cluster.uniform(1))
    made = apply("measured", workload(), cluster, Options(measured=files))
    assert made.remarks[-1] == (
        "The cluster's latencies and bandwidths are taken as nanoseconds and bytes."
    )


class TestOperationsWithoutNames:
    """ONNX Runtime calls them after their kind and index."""

    def profile(self, folder: Path, *nodes: tuple[str, str, int]) -> Path:
        events: list[dict[str, Any]] = [
            {
                "cat": "Node", "name": f"{name}_kernel_time", "dur": index + 1, "args": {
                    "op_name": kind, "node_index": str(index), "provider": "CPUExecutionProvider"
                },
            }
            for name, kind, index in nodes
        ]  # fmt: skip
        path = folder / "profile.json"
        path.write_text(json.dumps(events))
        return path

    def test_they_match_by_kind_and_order(self, tmp_path: Path) -> None:
        path = self.profile(tmp_path, ("Add_12", "Add", 12), ("Add_3", "Add", 3), ("b", "Relu", 1))
        found = read(workload(("Add", "Relu", "Add"), "abc"), path, "cpu")
        assert found.times == (4000, 2000, 13000)
        assert found.remarks[-1] == ("2 operations without a name matched by kind and order: a, c.")

    def test_they_stay_unmatched_if_their_number_differs(self, tmp_path: Path) -> None:
        path = self.profile(tmp_path, ("Add_3", "Add", 3), ("b", "Relu", 1))
        work = workload(("Add", "Relu", "Add"), "abc")
        found = read(work, path, "cpu")
        assert found.times == (None, 2000, None)
        assert found.unmatched == ("Add_3",)
        assert found.missing(work.graph) == ["a", "c"]


class TestMemoryStatistics:
    HEADER = "#name,input_sizes,initializers_sizes,total_dynamic_sizes,total_temp_allocations\n"

    def test_temporary_allocations_are_added_to_weights(self, tmp_path: Path) -> None:
        stats = tmp_path / "stats.csv"
        stats.write_text(self.HEADER + "a_12,1,2,3,100\nRelu_13,1,2,3,7\ngone_14,0,0,0,9\n")
        options = Options(measured=times(tmp_path, gpu=GPU, cpu=CPU), node_memory=stats)
        made = apply("measured", workload(), NAMED, options)
        assert made.instance.graph.memory.fractions() == [110, 17]
        assert "Memory: 1 name of no vertex, not counted: gone." in made.remarks

    def test_nothing_in_common_is_refused(self, tmp_path: Path) -> None:
        stats = tmp_path / "stats.csv"
        stats.write_text(self.HEADER + "x_12,1,2,3,100\n")
        options = Options(measured=times(tmp_path, gpu=GPU, cpu=CPU), node_memory=stats)
        with pytest.raises(InputError, match=r"stats.csv: no name in it is a vertex; give the"):
            apply("measured", workload(), NAMED, options)


class TestRealProfile:
    """What the installed ONNX Runtime writes of a small model."""

    @pytest.fixture
    def model(self, tmp_path: Path) -> Path:
        onnx = pytest.importorskip("onnx")
        helper, kind = onnx.helper, onnx.TensorProto.FLOAT
        weight = onnx.numpy_helper.from_array(np.ones((4, 3, 3, 3), np.float32), "w")
        nodes = [
            helper.make_node("Conv", ["x", "w"], ["c"], name="conv", pads=[1, 1, 1, 1]),
            helper.make_node("Relu", ["c"], ["r"], name="relu"),
            helper.make_node("Add", ["r", "r"], ["s"]),
            helper.make_node("Add", ["s", "r"], ["y"]),
        ]
        graph = helper.make_graph(
            nodes,
            "net",
            [helper.make_tensor_value_info("x", kind, [1, 3, 16, 16])],
            [helper.make_tensor_value_info("y", kind, [1, 4, 16, 16])],
            [weight],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
        model.ir_version = 9
        onnx.save(model, tmp_path / "net.onnx")
        return tmp_path / "net.onnx"

    def profiled(self, model: Path, *, optimized: bool) -> tuple[Path, Path]:
        runtime = pytest.importorskip("onnxruntime")
        options = runtime.SessionOptions()
        options.enable_profiling = True
        options.profile_file_prefix = str(model.with_suffix(""))
        options.enable_mem_pattern = False
        level = runtime.GraphOptimizationLevel
        options.graph_optimization_level = (
            level.ORT_ENABLE_ALL if optimized else level.ORT_DISABLE_ALL
        )
        stats = model.with_suffix(".csv")
        options.add_session_config_entry("session.collect_node_memory_stats_to_file", str(stats))
        session = runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        for _ in range(3):
            session.run(None, {"x": np.ones((1, 3, 16, 16), np.float32)})
        return Path(session.end_profiling()), stats

    def work(self) -> Workload:
        """The model, named as its reader does: after nodes, else after their first outputs."""
        builder = GraphBuilder()
        for name in ("conv", "relu", "s", "y"):
            builder.vertex(name, memory=0, outputs=[4096])
        for u, v in (("conv", "relu"), ("relu", "s"), ("relu", "y"), ("s", "y")):
            builder.edge(u, v)
        counts = [np.ones(4, dtype=np.int64) for _ in range(3)]
        kinds = ("Conv", "Relu", "Add", "Add")
        return Workload(builder.build(), Work(kinds, ("float32",) * 4, *counts), name="net")

    def test_without_optimizations_every_vertex_is_measured(self, model: Path) -> None:
        profile, stats = self.profiled(model, optimized=False)
        cluster = loads_named('[[device]]\nof = "epyc-7763"\nname = "cpu"\n')
        options = Options(measured={"cpu": profile}, node_memory=stats)
        made = apply("measured", self.work(), cluster, options)
        durations = made.instance.given_durations
        assert durations is not None
        assert durations.times.numerators.min() >= 0
        assert durations.times.denominator == 1
        assert made.remarks[:2] == (
            "cpu: 4 of 4 operations measured; the median of 3 measurements counts.",
            "cpu: 2 operations without a name matched by kind and order: s, y.",
        )

    def test_what_the_optimizer_fused_is_listed(self, model: Path) -> None:
        profile, _ = self.profiled(model, optimized=True)
        found = read(self.work(), profile, "cpu")
        assert found.unmatched
        assert "relu" in found.missing(self.work().graph)
