"""What was put in comes out: coefficients of synthetic measurements, and their errors."""

from pathlib import Path

import numpy as np
import pytest

from optpart.base.errors import InputError
from optpart.interop.costs.calibration import Measurement, calibrate, read_measurements
from optpart.interop.costs.roofline import roofline
from optpart.interop.devices.spec import Coefficients
from optpart.interop.formats import calibration_toml, cluster_toml
from optpart.problem.graph import GraphBuilder
from optpart.problem.workload import Work, Workload

#: Seconds per launch, FLOP and byte, by class.
TRUE = {"contraction": (6e-6, 4e-14, 1e-12), "elementwise": (5e-6, 0.0, 1.3e-12)}
KINDS = {"contraction": ("Conv", "Gemm"), "elementwise": ("Relu", "Add")}


def measured(noise: float = 0.0, rows: int = 40) -> list[Measurement]:
    rng = np.random.default_rng(7)
    found = []
    for class_, (constant, per_flop, per_byte) in TRUE.items():
        for i in range(rows):
            flops, moved = (int(10 ** rng.uniform(low, low + 4)) for low in (6, 4))
            seconds = constant + per_flop * flops + per_byte * moved
            seconds *= float(np.exp(rng.normal(0, noise)))
            found.append(Measurement(KINDS[class_][i % 2], class_, flops, moved, seconds))
    return found


def seconds(fit: Coefficients) -> list[float]:
    return [float(value) / 1e9 for value in (fit.constant, fit.per_flop, fit.per_byte)]


def test_exact_measurements_are_recovered() -> None:
    found = calibrate(measured(), name="mine", precision="float32")
    for class_, true in TRUE.items():
        assert seconds(found.spec.classes[class_]) == pytest.approx(true, rel=1e-6, abs=1e-18)
        assert found.class_errors[class_] < 1e-6
    assert found.error < 1e-6
    assert found.remarks == ()


def test_noise_of_five_percent_moves_the_coefficients_by_a_few_percent() -> None:
    found = calibrate(measured(noise=0.05, rows=200), name="mine", precision="float32")
    for class_, true in TRUE.items():
        assert seconds(found.spec.classes[class_]) == pytest.approx(true, rel=0.1, abs=1e-15)
        assert 0.02 < found.class_errors[class_] < 0.05


def test_coefficients_are_never_negative() -> None:
    rng = np.random.default_rng(1)
    for _ in range(20):
        rows = [
            Measurement("X", "other", *(int(c) for c in rng.integers(0, 10**9, 2)), rng.random())
            for _ in range(6)
        ]
        fit = calibrate(rows, name="x", precision="float32", by_kind=True).spec
        for one in (fit.overall, *fit.classes.values(), *fit.kinds.values()):
            assert min(one.constant, one.per_flop, one.per_byte) >= 0


def test_kinds_are_fitted_when_asked_for_and_count_before_their_class() -> None:
    rows = [*measured(), *(Measurement("Gelu", "elementwise", n, n, 1e-3) for n in range(1, 6))]
    plain = calibrate(rows, name="mine", precision="float32")
    kinds = calibrate(rows, name="mine", precision="float32", by_kind=True)
    assert plain.spec.kinds == {}
    assert set(kinds.spec.kinds) == {"Conv", "Gemm", "Relu", "Add", "Gelu"}
    assert kinds.kind_errors["Gelu"] < 1e-6 < plain.kind_errors["Gelu"]


def test_what_the_rows_do_not_tell_is_said() -> None:
    rows = [
        *(Measurement("Conv", "contraction", n, 2 * n, 1e-6 + n * 1e-12) for n in range(1, 50, 7)),
        Measurement("Softmax", "softmax", 5, 5, 1e-6),
    ]
    found = calibrate(rows, name="mine", precision="float32")
    assert set(found.spec.classes) == {"contraction"}
    assert found.remarks[0].startswith("class contraction: the rows do not tell launch, FLOPs")
    assert found.remarks[1] == "class softmax: 1 row, too few for a fit of its own."


def test_a_calibration_is_written_and_named_by_a_cluster(tmp_path: Path) -> None:
    spec = calibrate(measured(), name="mine", precision="float32", type="GPU").spec
    calibration_toml.write(spec, tmp_path / "mine.toml")
    (tmp_path / "cluster.toml").write_text('[[device]]\nof = "mine.toml"\n')
    named = cluster_toml.read_named(tmp_path / "cluster.toml")
    assert named.specs == (spec,)
    graph = GraphBuilder().vertex("a").build()
    counts = [np.array([count], dtype=np.int64) for count in (10**9, 10**6, 10**6)]
    work = Work(("Conv",), ("float32",), *counts)
    instance = roofline(Workload(graph, work), named).instance
    # 6 us + 10^9 · 4 · 10^-14 s + 2 · 10^6 · 10^-12 s
    assert float(instance.duration(0, 0)) == pytest.approx(6000 + 40_000 + 2000, abs=2)


TABLE = "kind,class,flops,bytes,seconds\nConv,contraction,10,20,1e-6\nRelu,,1,2,0.5\n"


def test_a_table_is_read_and_an_empty_class_is_that_of_the_kind(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(TABLE)
    assert read_measurements(path) == [
        Measurement("Conv", "contraction", 10, 20, 1e-6),
        Measurement("Relu", "elementwise", 1, 2, 0.5),
    ]


@pytest.mark.parametrize(
    ("old", "new", "part"),
    [
        ("kind,class", "class,kind", "line 1: the header is"),
        ("1e-6", "0", "line 2, seconds: 0 is not positive"),
        ("1e-6", "x", "line 2, seconds: 'x' is not a number"),
        (",10,", ",1.5,", "line 2, flops: 1.5 is not whole"),
        (",20,", ",-2,", "line 2, bytes: -2 is negative"),
        (",20,", ",", "line 2: 4 fields"),
    ],
)
def test_a_faulty_table_is_one_line(tmp_path: Path, old: str, new: str, part: str) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(TABLE.replace(old, new))
    with pytest.raises(InputError) as error:
        read_measurements(path)
    assert str(error.value).startswith(f"{path}: ")
    assert part in str(error.value)


def test_too_few_rows_are_refused() -> None:
    with pytest.raises(InputError, match="measurements: 3 rows; give 4 or more"):
        calibrate(measured()[:3], name="mine", precision="float32")
    with pytest.raises(InputError, match="give counts ≥ 0 and seconds > 0"):
        Measurement("Conv", "contraction", 1, 1, 0.0)
