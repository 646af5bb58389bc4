"""Run times after the roofline model, computed by hand."""

from dataclasses import replace
from fractions import Fraction
from math import ceil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optpart.base.errors import InputError
from optpart.interop.costs import efficiency
from optpart.interop.costs.roofline import roofline
from optpart.interop.devices.library import device
from optpart.interop.devices.named import NamedCluster
from optpart.interop.devices.spec import Coefficients, FittedSpec
from optpart.interop.formats.cluster_toml import loads_named
from optpart.problem.cluster import Cluster
from optpart.problem.graph import GraphBuilder
from optpart.problem.instance import Instance
from optpart.problem.workload import Work, Workload

PAIR = """
[[device]]
of = "rtx-3090"
name = "gpu"
[[device]]
of = "epyc-7763"
name = "cpu"
memory = "64 GB"
[[link]]
from = "gpu"
to = "cpu"
bandwidth = "3 GB/s"
latency = "2 us"
"""


def workload(*rows: tuple[str, str, int, int, int], size: int = 1000) -> Workload:
    """A chain of operations: kind, data type, FLOPs, bytes read, bytes written."""
    builder = GraphBuilder()
    for v in range(len(rows)):
        builder.vertex(f"v{v}", outputs=[size], memory=10)
        if v:
            builder.edge(f"v{v - 1}", f"v{v}")
    kinds, precisions, *counts = zip(*rows, strict=True)
    flops, read, written = (np.array(count, dtype=np.int64) for count in counts)
    work = Work(kinds, precisions, flops, read, written)
    return Workload(builder.build(), work, name="net", source="net.onnx")


CONV = ("Conv", "float32", 10**9, 10**6, 10**6)
RELU = ("Relu", "float32", 10**6, 4 * 10**6, 4 * 10**6)


def test_an_operation_takes_its_launch_and_the_slower_of_computing_and_moving() -> None:
    instance = roofline(workload(CONV, RELU), loads_named(PAIR)).instance
    # On the GPU: 10^9 / (35,600 · 0.6), and 8 · 10^6 / (936 · 0.8), after 5 us each.
    assert instance.duration(0, 0) == 5000 + ceil(10**9 / Fraction(21_360))
    assert instance.duration(1, 0) == 5000 + ceil(8 * 10**6 / (936 * Fraction(8, 10)))
    # On the processor: 10^9 / (5,017.6 · 0.6), and 8 · 10^6 / (204.8 · 0.8), after 1 us each.
    assert instance.duration(0, 1) == 1000 + ceil(10**9 / (Fraction("5017.6") * Fraction(6, 10)))
    assert instance.duration(1, 1) == 1000 + ceil(8 * 10**6 / (Fraction("204.8") * Fraction(8, 10)))


def test_every_time_is_whole_and_never_below_the_estimate() -> None:
    costed = roofline(workload(CONV, RELU, size=1001), loads_named(PAIR))
    instance = costed.instance
    for v in range(2):
        for d in range(2):
            assert instance.duration(v, d).denominator == 1
    # 2,000 + 1,001 / 3 = 2,333.67
    assert instance.delay(0, 0, 1) == instance.delay(0, 1, 0) == 2334
    assert any("Run times were rounded up to whole" in remark for remark in costed.remarks)
    assert "Transfers: times of 1 tensor rounded up to whole nanoseconds." in (costed.remarks)


def test_transfer_times_that_are_whole_stay_as_they_are() -> None:
    costed = roofline(workload(CONV, RELU, size=999), loads_named(PAIR))
    assert costed.instance.delay(0, 0, 1) == 2333
    assert not costed.instance.graph.tensor_delay
    assert not any(remark.startswith("Transfers") for remark in costed.remarks)


def test_latencies_are_rounded_too_since_signals_have_no_delay_of_their_own() -> None:
    named = loads_named(PAIR.replace('"2 us"', '"2000.5 ns"'))
    costed = roofline(workload(CONV, RELU), named)
    assert costed.instance.cluster.latency[0, 1] == 2001
    assert "Links: latencies were rounded up to whole nanoseconds." in costed.remarks


def test_where_no_link_is_a_rounded_tensor_cannot_cross_either() -> None:
    named = loads_named(PAIR + '[[link]]\nfrom = "cpu"\nto = "gpu"\nbandwidth = 0\nboth = false')
    instance = roofline(workload(CONV, RELU), named).instance
    assert instance.delay(0, 0, 1) == 2334
    assert instance.delay(0, 1, 0) is None


def test_a_missing_peak_is_replaced_and_named() -> None:
    rows = [("Gemm", "float16", 10**9, 8, 8), ("Gemm", "q4_K", 10**9, 8, 8)]
    costed = roofline(workload(*rows), loads_named(PAIR))
    assert costed.instance.duration(0, 0) == 5000 + ceil(10**9 / (71_000 * Fraction(6, 10)))
    assert costed.instance.duration(0, 1) == roofline(
        workload(CONV), loads_named(PAIR)
    ).instance.duration(0, 1)
    assert "cpu: no peak for float16; 1 operation at that of float32." in costed.remarks
    assert "gpu: no peak for q4_K; 1 operation at that of float32." in costed.remarks


def test_a_tpu_computes_float32_in_bfloat16() -> None:
    costed = roofline(workload(CONV), loads_named('[[device]]\nof = "tpu-v4"'))
    assert costed.instance.duration(0, 0) == 2000 + ceil(10**9 / (275_000 * Fraction(6, 10)))
    assert "tpu-v4: no peak for float32; 1 operation at that of bfloat16." in costed.remarks


def test_nothing_stands_in_for_float64() -> None:
    with pytest.raises(InputError, match=r"device gpu: has no peak for float64, in which Gemm"):
        roofline(workload(("Gemm", "double", 1, 1, 1)), loads_named(PAIR))


def test_moving_data_needs_no_peak() -> None:
    costed = roofline(workload(("Concat", "float64", 0, 700, 0)), loads_named(PAIR))
    assert costed.instance.duration(0, 0) == 5000 + ceil(700 / (936 * Fraction(7, 10)))
    assert not any("no peak" in remark for remark in costed.remarks)


def test_free_operations_take_no_time_and_are_named() -> None:
    rows = [CONV, ("Reshape", "float32", 0, 10**6, 10**6), ("Constant", "float32", 0, 0, 9)]
    costed = roofline(workload(*rows), loads_named(PAIR))
    assert costed.instance.duration(1, 0) == costed.instance.duration(2, 1) == 0
    assert "Taken to cost nothing: 2 operations (Constant, Reshape)." in costed.remarks


def test_unknown_kinds_are_named() -> None:
    costed = roofline(workload(("Frobnicate", "float32", 10**9, 1, 1)), loads_named(PAIR))
    assert costed.instance.duration(0, 0) == 5000 + ceil(10**9 / (35_600 * Fraction(3, 10)))
    assert "Of no known class: 1 operation (Frobnicate)." in costed.remarks


def test_the_assumed_efficiencies_and_launch_times_are_stated() -> None:
    remarks = roofline(workload(CONV, CONV, RELU), loads_named(PAIR)).remarks
    assert "contraction 60%/80% (2), elementwise 50%/80% (1)." in remarks[0]
    assert remarks[1] == "Launching an operation is assumed to take: gpu 5 us, cpu 1 us."


def test_a_calibrated_device_counts_with_its_coefficients() -> None:
    fits = {"contraction": Coefficients(Fraction(10), Fraction(1, 1000), Fraction(0))}
    overall = Coefficients(Fraction(7), Fraction(0), Fraction(1, 3))
    kinds = {"Gemm": Coefficients(Fraction(1), Fraction(0), Fraction(0))}
    spec = FittedSpec("mine", "GPU", None, "float32", overall, fits, kinds)
    named = NamedCluster(Cluster.uniform(1), (spec,), fixed_units=True)
    half = ("Gemm", "float16", 5, 5, 5)
    costed = roofline(workload(CONV, RELU, half), named)
    assert costed.instance.duration(0, 0) == 10 + 10**6
    assert costed.instance.duration(1, 0) == 7 + ceil(8 * 10**6 / 3)
    assert costed.instance.duration(2, 0) == 1
    assert (
        "d0: class elementwise was not measured; its overall fit counts for 1 operation."
        in costed.remarks
    )
    assert (
        "d0: calibrated in float32; 1 operation in float16 counted as if in it." in costed.remarks
    )
    assert not any("datasheets" in remark for remark in costed.remarks)


class TestMemory:
    """Limits of memory count, at the least price, unless someone asks for something else."""

    def model(self, limit: str, memory: object = None) -> tuple[str, str]:
        named = loads_named(f'[[device]]\nof = "t4"\nmemory = "{limit}"')
        costed = roofline(workload(CONV, RELU), named, memory=memory)  # type: ignore[arg-type]
        said = " ".join(remark for remark in costed.remarks if remark.startswith("Memory"))
        return costed.instance.model.memory, said

    def test_estimate_where_the_whole_graph_fits(self) -> None:
        # Weights of 20, two outputs of 1,000, one of which is an input as well.
        memory, said = self.model("3020 B")
        assert memory == "estimate"
        assert "no limit can bind" in said

    def test_refcount_where_it_might_not(self) -> None:
        memory, said = self.model("3019 B")
        assert memory == "refcount"
        assert "devices have limits" in said

    def test_another_model_when_asked_for(self) -> None:
        assert self.model("1 kB", "edges") == ("edges", "")
        memory, said = self.model("1 kB", "none")
        assert memory == "none"
        assert "limits of the devices do not count" in said

    def test_none_without_limits(self) -> None:
        costed = roofline(workload(CONV), loads_named('[[device]]\nof = "epyc-7763"'))
        assert costed.instance.model.memory == "none"
        assert "Memory: epyc-7763: none given, so it counts as unlimited." in costed.remarks


def test_the_instance_says_where_it_comes_from() -> None:
    instance = roofline(workload(CONV), loads_named(PAIR)).instance
    assert isinstance(instance, Instance)
    assert instance.name == "net"
    assert instance.source == "net.onnx, costs: roofline, in nanoseconds, on rtx-3090, epyc-7763"
    assert instance.time_unit == "ns"


def test_a_workload_without_work_is_refused() -> None:
    bare = replace(workload(CONV), work=None)
    with pytest.raises(InputError, match="net: says neither operations nor bytes"):
        roofline(bare, loads_named(PAIR))


def test_a_device_of_which_nothing_is_known_is_refused() -> None:
    with pytest.raises(InputError, match="device 'd0': has no figures to estimate run times from"):
        roofline(workload(CONV), NamedCluster.unnamed(Cluster.uniform(1)))


@settings(derandomize=True, deadline=None, max_examples=50)
@given(
    counts=st.tuples(*[st.integers(0, 10**12)] * 3),
    kind=st.sampled_from(["Conv", "Relu", "Softmax", "Concat", "MaxPool", "Unknown"]),
    precision=st.sampled_from(["float32", "float16", "bfloat16", "int8", "int64", "q8_0"]),
)
def test_a_device_that_is_better_in_everything_is_never_slower(
    counts: tuple[int, int, int], kind: str, precision: str
) -> None:
    one = workload((kind, precision, *counts))
    slow, fast = (
        roofline(one, loads_named(f'[[device]]\nof = "{name}"')).instance.duration(0, 0)
        for name in ("rtx-3090", "h100-sxm")
    )
    assert fast <= slow
    assert fast >= device("h100-sxm", "").overhead


class TestEfficiencies:
    def test_every_class_is_within_bounds(self) -> None:
        table = efficiency.defaults()
        assert {"contraction", "elementwise", "other"} <= table.classes.keys()
        for part in table.classes.values():
            assert 0 < part.compute <= 1
            assert 0 < part.bandwidth <= 1
        assert set(table.kinds.values()) <= table.classes.keys() | {"free"}

    def test_kinds_are_matched_without_domain_and_case(self) -> None:
        table = efficiency.defaults()
        for kind in ("MatMul", "com.microsoft.FusedMatMul", "MUL_MAT", "ai.onnx/Conv"):
            assert table.class_of(kind) == "contraction"
        assert table.class_of("Frobnicate") == "other"

    def test_a_table_of_ones_own_overrides_what_it_names(self, tmp_path) -> None:
        path = tmp_path / "mine.toml"
        path.write_text(
            "[contraction]\ncompute = 0.9\n[magic]\ncompute = 1\nbandwidth = 1\n"
            'kinds = ["Frobnicate", "Relu"]\n'
        )
        table = efficiency.read(path)
        assert table.classes["contraction"].compute == Fraction(9, 10)
        assert table.classes["contraction"].bandwidth == Fraction(8, 10)
        assert table.class_of("frobnicate") == table.class_of("Relu") == "magic"
        assert table.class_of("Conv") == "contraction"

    @pytest.mark.parametrize(
        ("text", "part"),
        [
            ("[contraction]\ncompute = 1.5", "contraction.compute: 3/2; give a number above 0"),
            ("[contraction]\ncompute = 0", "contraction.compute: 0"),
            ("[magic]\ncompute = 1", "magic.bandwidth: missing"),
            ("[free]\ncompute = 1", "free.compute: free takes no time"),
            ("[softmax]\nspeed = 1", "unknown key 'speed'"),
            ("contraction = 3", "contraction: is a number; give an object"),
            ('[softmax]\nkinds = ["X"]\n[pooling]\nkinds = ["x"]', "'x' is also in softmax"),
        ],
    )
    def test_a_faulty_table_is_one_line(self, tmp_path, text: str, part: str) -> None:
        path = tmp_path / "mine.toml"
        path.write_text(text)
        with pytest.raises(InputError) as error:
            efficiency.read(path)
        assert str(error.value).startswith(f"{path}: ")
        assert part in str(error.value)
