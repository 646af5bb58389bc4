"""Sources of costs share one signature, and say what they drew, assumed or rounded."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from optpart.base.errors import InputError
from optpart.interop.costs.drawn import drawn, unit
from optpart.interop.costs.from_csv import from_csv
from optpart.interop.costs.registry import SOURCES, Options, apply
from optpart.interop.devices.named import NamedCluster
from optpart.interop.formats.cluster_toml import loads_named
from optpart.problem.cluster import Cluster
from optpart.problem.graph import Graph, GraphBuilder
from optpart.problem.workload import Work, Workload

NAMED = loads_named('default_link = "pcie-4-x16"\n[[device]]\nof = "t4"\ncount = 2\nname = "gpu"')
PLAIN = NamedCluster.unnamed(Cluster.uniform(2, memory=500))
TABLE = "name,ops,memory,sizes\na,30,4,50\nb,1/3,0,7\n"


def workload(**measured: tuple[Fraction | None, ...]) -> Workload:
    builder = GraphBuilder().vertex("a", outputs=[8]).vertex("b", outputs=[8]).edge("a", "b")
    counts = [np.array([5, 6], dtype=np.int64) for _ in range(3)]
    work = Work(("Conv", "Relu"), ("float32",) * 2, *counts)
    return Workload(builder.build(), work, measured=measured, name="net", source="net.onnx")


def costs(graph: Graph) -> tuple[list[Fraction], list[Fraction], list[Fraction]]:
    return graph.ops.fractions(), graph.memory.fractions(), graph.tensor_size.fractions()


@pytest.mark.parametrize("name", list(SOURCES))
def test_every_source_makes_an_instance_that_says_how(tmp_path: Path, name: str) -> None:
    path = tmp_path / "costs.csv"
    path.write_text(TABLE)
    times = tmp_path / "times.csv"
    times.write_text("name,gpu (us)\na,3\nb,4\n")
    options = Options(
        file=path if name == "table" else None,
        measured={"gpu": times} if name == "measured" else None,
    )
    made = apply(
        name, workload(gpu=(Fraction(3), Fraction(4)), t4=(Fraction(3),) * 2), NAMED, options
    )
    assert made.instance.name == "net"
    assert made.instance.source.startswith("net.onnx, costs: ")
    assert made.remarks
    assert all(remark.endswith(".") and "\n" not in remark for remark in made.remarks)
    assert SOURCES[name].name == name
    assert SOURCES[name].summary
    assert SOURCES[name].needs


@pytest.mark.parametrize("name", list(SOURCES))
def test_the_reserve_is_kept_free_where_memory_is_in_bytes(tmp_path: Path, name: str) -> None:
    (tmp_path / "costs.csv").write_text(TABLE)
    (tmp_path / "times.csv").write_text("name,gpu (us)\na,3\nb,4\n")
    options = Options(
        file=tmp_path / "costs.csv" if name == "table" else None,
        measured={"gpu": tmp_path / "times.csv"} if name == "measured" else None,
    )
    needs = replace(
        workload(gpu0=(Fraction(3),) * 2, gpu1=(Fraction(3),) * 2),
        reserve=2**30,
        reserved_for="buffers",
    )
    made = apply(name, needs, NAMED, options)
    whole = NAMED.cluster.memory
    said = "Of the memory of every device, 1.00 GiB are kept free for buffers; "
    if name in ("roofline", "file", "measured"):
        assert made.instance.cluster.memory == tuple(each - 2**30 for each in whole)
        assert any(remark.startswith(said) for remark in made.remarks)
        free = apply(name, needs, NAMED, replace(options, memory="none"))
        assert free.instance.cluster.memory == whole
        with pytest.raises(InputError) as fault:
            apply(name, replace(needs, reserve=2**40), NAMED, options)
        assert str(fault.value) == (
            "device 'gpu0': has no more memory than the 1024.00 GiB to keep free for buffers; "
            "give it more memory, or --reserve SIZE"
        )
    else:
        assert made.instance.cluster.memory == whole
        assert not any(remark.startswith(said) for remark in made.remarks)


def test_nothing_is_reserved_on_devices_without_limits() -> None:
    cluster = replace(NAMED, cluster=replace(NAMED.cluster, memory=(None, None)))
    needs = replace(workload(), reserve=5, reserved_for="buffers")
    made = apply("roofline", needs, cluster, Options())
    assert not any("kept free" in remark for remark in made.remarks)


def test_drawn_unit_and_table_give_the_numbers_they_always_gave(tmp_path: Path) -> None:
    path = tmp_path / "costs.csv"
    path.write_text(TABLE)
    one = workload()
    for name, options, graph in (
        ("drawn", Options(seed=5), drawn(one.graph, 5)),
        ("drawn", Options(), drawn(one.graph, 0)),
        ("unit", Options(), unit(one.graph)),
        ("table", Options(file=path), from_csv(one.graph, path)),
    ):
        made = apply(name, one, PLAIN, options).instance
        assert costs(made.graph) == costs(graph)
        assert made.given_durations is None
        assert made.cluster is PLAIN.cluster


def test_what_is_drawn_is_said() -> None:
    made = apply("drawn", workload(), NAMED, Options(seed=3))
    assert "with seed 3" in made.remarks[0]
    assert "Drawn operations and sizes count as FLOPs and bytes on this cluster." in made.remarks
    assert made.instance.source.startswith("net.onnx, costs: drawn, seed 3. ")


def test_the_source_of_the_instance_holds_every_remark() -> None:
    one = replace(workload(), assumed=("opset 99 is read as opset 27",))
    made = apply("unit", one, NAMED, Options())
    assert made.remarks[0] == "opset 99 is read as opset 27"
    for remark in made.remarks:
        assert remark in made.instance.source


def test_costs_of_the_file_that_do_not_count_are_named() -> None:
    for name in ("drawn", "unit"):
        said = apply(name, workload(gpu0=(Fraction(1),) * 2), PLAIN, Options()).remarks
        assert any(each == "Not used: the run times, sizes of the file." for each in said)


def test_transfers_count_as_asked_for() -> None:
    made = apply("unit", workload(), PLAIN, Options(communication="link"))
    assert made.instance.model.communication == "link"


def test_limits_of_memory_count_whatever_the_costs(tmp_path: Path) -> None:
    path = tmp_path / "costs.csv"
    path.write_text(TABLE)
    assert apply("table", workload(), PLAIN, Options(file=path)).instance.model.memory == "estimate"
    for name in ("drawn", "unit"):
        assert apply(name, workload(), PLAIN, Options()).instance.model.memory != "none"
    made = apply("drawn", workload(), PLAIN, Options(memory="none"))
    assert made.instance.model.memory == "none"
    assert made.remarks[-1].startswith("Memory: the limits of the devices do not count")
    asked = apply("unit", workload(), PLAIN, Options(memory="refcount"))
    assert asked.instance.model.memory == "refcount"


def test_an_option_that_means_nothing_is_refused() -> None:
    for name, options, key in (
        ("roofline", Options(seed=3), "seed"),
        ("drawn", Options(file="x.csv"), "file"),
        ("unit", Options(efficiencies="x.toml"), "efficiencies"),
    ):
        with pytest.raises(InputError, match=f"^{key}: means nothing to the costs '{name}'"):
            apply(name, workload(), PLAIN, options)


def test_unknown_sources_and_missing_tables_are_one_line() -> None:
    with pytest.raises(InputError, match=r"costs: unknown 'guess'; choose one of roofline, file"):
        apply("guess", workload(), PLAIN, Options())
    with pytest.raises(InputError, match=r"file: missing; name the table"):
        apply("table", workload(), PLAIN, Options())


class TestMeasuredInTheFile:
    def test_names_of_devices_count_before_the_library_and_types(self) -> None:
        two = workload(
            gpu1=(Fraction(1), Fraction(2)), t4=(Fraction(3), Fraction(4)), GPU=(Fraction(9),) * 2
        )
        instance = apply("file", two, NAMED, Options()).instance
        assert [instance.duration(0, d) for d in range(2)] == [3, 1]
        one = workload(GPU=(Fraction(9), Fraction(8)))
        assert apply("file", one, NAMED, Options()).instance.duration(1, 1) == 8

    def test_times_are_rounded_up_and_missing_ones_forbid(self) -> None:
        made = apply(
            "file", workload(gpu0=(Fraction(5, 2), None), t4=(Fraction(1),) * 2), NAMED, Options()
        )
        assert made.instance.duration(0, 0) == 3
        assert made.instance.vertex_allowed.tolist() == [[True, True], [False, True]]
        assert "gpu0: 1 operation not measured, so not run there." in made.remarks
        assert "Run times were rounded up to whole nanoseconds." in made.remarks

    def test_what_was_not_measured_is_refused(self) -> None:
        with pytest.raises(InputError, match="net: holds no measured times"):
            apply("file", workload(), NAMED, Options())
        with pytest.raises(InputError, match=r"device 'gpu0': was not measured; .* of v100"):
            apply("file", workload(v100=(Fraction(1),) * 2), NAMED, Options())
        with pytest.raises(InputError, match="'b' was measured on no device"):
            apply("file", workload(t4=(Fraction(1), None)), NAMED, Options())

    def test_a_cluster_without_units_is_taken_in_nanoseconds(self) -> None:
        cluster = NamedCluster.unnamed(Cluster.uniform(1))
        made = apply("file", workload(d0=(Fraction(1),) * 2), cluster, Options())
        assert made.remarks == (
            "The cluster's latencies and bandwidths are taken as nanoseconds and bytes.",
        )
