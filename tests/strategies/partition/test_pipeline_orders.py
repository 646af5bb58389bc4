"""Orders of pipeline passes: the times and the memory that their papers state."""

from contextlib import suppress
from itertools import product

import pytest

from optpart.base.errors import InputError, UnsupportedError
from optpart.exact.enumeration import enumerate_all
from optpart.interop.generate.training_pipeline import training_pipeline
from optpart.methods import registry
from optpart.methods.cpsat import cpsat
from optpart.methods.starts import heuristic_schedules, pass_orders
from optpart.solution.metrics import peak_memory
from optpart.solution.result import Budget

ONE = Budget(seconds=60, workers=1)
UNIT = {"forward": (1, 1), "backward": (1, 1), "weight": (1, 1)}
UNEQUAL = {"forward": (4, 9), "backward": (4, 9), "weight": (4, 9)}


def makespan(order, **shape):
    found = registry.get(order)(training_pipeline(**shape))
    assert found.makespan is not None, found.reason
    return found.makespan


def held(order, **shape):
    """Return the most activations that each device holds."""
    instance = training_pipeline(**shape, memory=10_000)
    found = registry.get(order)(instance)
    return [int(most) for most in peak_memory(instance, found.schedule, "refcount")]


SIZES = [*product((2, 3, 4, 6), (6, 12))]


@pytest.mark.parametrize(("p", "m"), SIZES)
class TestEqualTimes:
    """One unit for a forward pass, and for each gradient."""

    @pytest.mark.parametrize("order", ["gpipe", "1f1b"])
    def test_whole_backward_passes_leave_a_bubble_of_all_other_stages(self, order, p, m) -> None:
        shape = {"devices": p, "microbatches": m, "joined": True}
        assert makespan(order, **shape, **UNIT) == 3 * (m + p - 1)

    def test_zb_h1_leaves_a_third_of_it(self, p, m) -> None:
        assert makespan("zb-h1", devices=p, microbatches=m, **UNIT) == 3 * m + p - 1

    def test_zb_v_leaves_no_more_than_the_first_arrival_at_the_last_device(self, p, m) -> None:
        m = max(m, 2 * p)
        shape = {"devices": p, "microbatches": m, "chunks": 2, "shape": "v"}
        assert makespan("zb-v", **shape, **UNIT) == 6 * m + p - 1
        assert max(held("zb-v", **shape, **UNIT)) <= 2 * p

    def test_dualpipe_v_leaves_as_little_and_holds_half_a_microbatch_more(self, p, m) -> None:
        m = max(m, 2 * p)
        shape = {"devices": p, "microbatches": m, "chunks": 2, "shape": "v"}
        assert makespan("dualpipe-v", **shape, **UNIT) == 6 * m + p - 1
        assert held("dualpipe-v", **shape, **UNIT) == [2 * p + 1] * p

    def test_interleaving_divides_the_bubble_of_whole_backward_passes(self, p, m) -> None:
        m = p * (m // 2)
        shape = {"devices": p, "microbatches": m, "chunks": 2, "joined": True}
        assert makespan("interleaved-1f1b", **shape, **UNIT) == 2 * 3 * m + 3 * (p - 1)


def test_zb_h2_leaves_no_bubble_where_zb_h1_does() -> None:
    times = {"forward": (10, 10), "backward": (12, 12), "weight": (8, 8)}
    shape = {"devices": 4, "microbatches": 12} | times
    assert makespan("zb-h1", **shape) == 12 * 30 + 3 * (10 + 12 - 8)
    assert makespan("zb-h2", **shape) == 12 * 30 + 3 * 10


def test_dualpipe_v_waits_where_zb_v_does_not() -> None:
    times = {"forward": (5, 5), "backward": (6, 6), "weight": (4, 4)}
    shape = {"devices": 4, "microbatches": 16, "chunks": 2, "shape": "v"} | times
    assert makespan("zb-v", **shape) == 16 * 30 + 3 * 6
    assert makespan("dualpipe-v", **shape) == 16 * 30 + 3 * (5 + 6 - 4)


@pytest.mark.parametrize(
    ("order", "most"),
    [("gpipe", [8] * 4), ("1f1b", [4, 3, 2, 1]), ("zb-h1", [4] * 4), ("zb-h2", [7] * 4)],
)
def test_memory(order, most) -> None:
    assert held(order, devices=4, microbatches=8) == most


@pytest.mark.parametrize("order", ["gpipe", "1f1b", "zb-h1", "zb-h2"])
@pytest.mark.parametrize("seed", range(5))
def test_unequal_stages_and_few_microbatches_have_valid_orders(order, seed) -> None:
    for p, m in product((1, 2, 5), (1, 3)):
        found = registry.get(order)(
            training_pipeline(seed, devices=p, microbatches=m, transfer=3, **UNEQUAL)
        )
        assert found.schedule is not None, found.reason


@pytest.mark.parametrize("seed", range(4))
def test_no_order_is_shorter_than_the_optimum_of_two_formulations(seed) -> None:
    instance = training_pipeline(seed, devices=2, microbatches=2, transfer=1, memory=1, **UNEQUAL)
    exact = enumerate_all(instance, budget=ONE)
    assert exact.makespan == cpsat(instance, budget=ONE).makespan
    for order in ("gpipe", "1f1b", "zb-h1", "zb-h2"):
        found = registry.get(order)(instance).makespan
        assert found is None or found >= exact.makespan


@pytest.mark.parametrize("shape", [{}, {"chunks": 2, "shape": "v"}, {"joined": True}])
def test_solvers_and_searches_start_from_every_order(shape) -> None:
    instance = training_pipeline(devices=2, microbatches=8, memory=6, transfer=2, **shape)
    starts = {schedule.makespan(instance) for schedule in pass_orders(instance)}
    found = set()
    for order in ("gpipe", "1f1b", "interleaved-1f1b", "zb-h1", "zb-h2", "zb-v", "dualpipe-v"):
        with suppress(UnsupportedError):
            found.add(registry.get(order)(instance).makespan)
    assert starts == found - {None}
    assert len(starts) >= 2
    assert starts <= {schedule.makespan(instance) for schedule in heuristic_schedules(instance)}


def test_an_order_beyond_the_memory_is_not_repaired() -> None:
    found = registry.get("gpipe")(training_pipeline(memory=4))
    assert found.schedule is None
    assert "d0 holds 8" in found.reason


@pytest.mark.parametrize(
    ("order", "shape", "said"),
    [
        ("1f1b", {"chunks": 2}, "chunks: several stages on a device"),
        ("zb-h1", {"joined": True}, "backward passes: are one task each"),
        ("zb-v", {}, "stages: are not two per device that lead there and back"),
        ("dualpipe-v", {"chunks": 2, "shape": "v", "microbatches": 7}, "microbatches: 7, where"),
        ("interleaved-1f1b", {"microbatches": 6}, "microbatches: 6, which is no multiple of 4"),
        ("interleaved-1f1b", {"chunks": 2, "shape": "v"}, "stages: do not go round"),
    ],
)
def test_what_an_order_is_not_for_is_said(order, shape, said) -> None:
    with pytest.raises(InputError, match=said):
        registry.get(order)(training_pipeline(**shape))
