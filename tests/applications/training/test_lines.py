from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from optpart.applications.training.cluster_file import specs_of
from optpart.applications.training.graph import Line
from optpart.applications.training.lines import REMARK, Kernel, lines, scaled, total
from optpart.interop.devices.spec import Coefficients, FittedSpec

V100 = specs_of("v100-16gb")
RATE, BANDWIDTH = 15_700 * Fraction(3, 5), 900 * Fraction(4, 5)


def test_alpha_launches_and_reads_weights_and_beta_computes() -> None:
    (times,), assumed = lines([Kernel("Conv", 10**9, 10**6, 7200)], V100)
    assert times == (Line(5000 + Fraction(10), 10**9 / RATE),)
    assert REMARK in assumed


def test_beta_moves_activations_where_that_takes_longer() -> None:
    (times,), _ = lines([Kernel("Relu", 10, 10**6)], V100)
    assert times == (Line(Fraction(5000), 10**6 / BANDWIDTH),)


def test_what_is_free_takes_no_time() -> None:
    assert lines([Kernel("Reshape", 0, 10**6, 100)], V100)[0] == [(Line(),)]


def test_figures_may_stand_for_several_samples() -> None:
    one, _ = lines([Kernel("Conv", 10**9, 10**6, 7200)], V100)
    eight, _ = lines([Kernel("Conv", 8 * 10**9, 8 * 10**6, 7200)], V100, samples=8)
    assert one == eight


def test_calibrated_devices_are_lines_themselves() -> None:
    fit = Coefficients(Fraction(7), Fraction(1, 100), Fraction(1, 10))
    spec = FittedSpec("mine", "GPU", None, "float32", fit)
    (times,), _ = lines([Kernel("Conv", 1000, 50, 30)], {"mine": spec})
    assert times == (Line(Fraction(10), Fraction(15)),)
    for b in (1, 3, 10):
        assert times[0].at(b) == fit.time(1000 * b, 50 * b + 30)


@given(
    flops=st.integers(0, 10**10),
    moved=st.integers(0, 10**8),
    weights=st.integers(0, 10**8),
    samples=st.integers(1, 1000),
)
def test_a_line_is_above_the_roofline_by_at_most_the_reading_of_weights(
    flops: int, moved: int, weights: int, samples: int
) -> None:
    (times,), _ = lines([Kernel("Conv", flops, moved, weights)], V100)
    roof = 5000 + max(flops * samples / RATE, (weights + moved * samples) / BANDWIDTH)
    assert 0 <= times[0].at(samples) - roof <= weights / BANDWIDTH


def test_lines_add_up() -> None:
    one, two = (Line(Fraction(1), Fraction(2)),), (Line(Fraction(3), Fraction(5)),)
    assert total([one, two], 1) == (Line(Fraction(4), Fraction(7)),)
    assert total([], 2) == (Line(), Line())
    assert scaled(one, 2) == (Line(Fraction(2), Fraction(4)),)


def test_what_does_not_grow_counts_once() -> None:
    """Computing 10⁹ operations takes longer than reading 720 bytes."""
    ((line,),), _ = lines([Kernel("Conv", 0, 0, 720, fixed_flops=10**9)], V100)
    assert line == Line(5000 + 10**9 / RATE)
