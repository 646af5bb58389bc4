"""The CSV of PyTorch's pipelining; ``tests/runtimes`` lets PyTorch run it."""

from fractions import Fraction
from io import BytesIO

import pytest

from optpart.base.errors import InputError
from optpart.exporters.plan import Plan, plan_of
from optpart.exporters.torch_schedule import KIND, torch_schedule
from optpart.interop.generate.training_pipeline import training_pipeline
from optpart.methods import registry


def plan(*placed):
    """Return a plan of vertices one after another: ``device:vertex``."""
    pairs = [each.split(":") for each in placed]
    device = {name: where for where, name in pairs}
    return Plan("toy", "by hand", device, {name: Fraction(k) for k, name in enumerate(device)})


def test_a_row_per_rank_in_the_order_of_first_stages() -> None:
    found = torch_schedule(plan_of(registry.get("1f1b")(training_pipeline(devices=2))))
    first, second = found.text.splitlines()
    assert first.startswith("0F0,0F1,0I0,0W0,0F2,0I1,0W1,")
    assert second.startswith("1F0,1I0,1W0,1F1,")
    assert found.remarks[0] == "Ranks are devices by their first stages: 0 is d0, 1 is d1."
    assert KIND.holds(BytesIO(found.text.encode()))


def test_microbatches_are_numbered_as_they_reach_the_last_stage() -> None:
    found = torch_schedule(
        plan("a:0F0", "a:0F1", "b:1F1", "b:1B1", "b:1F0", "a:0B1", "b:1B0", "a:0B0")
    )
    assert found.text == "0F1,0F0,0B0,0B1\n1F0,1B0,1F1,1B1\n"
    assert found.remarks[-1] == "Microbatches are numbered anew, as they reach the last stage."


def test_what_is_kept_needs_no_action() -> None:
    found = torch_schedule(plan("a:0F0", "a:0S0", "a:0B0"))
    assert found.text == "0F0,0B0\n"


@pytest.mark.parametrize(
    ("placed", "said"),
    [
        (("a:0F0", "a:x"), "vertex 'x': is no pass of a training pipeline"),
        (("a:0F0", "b:0B0"), "stage 0: is on 'a' and on 'b'"),
        (("a:0F0", "h:0S0", "a:0B0"), "vertex '0S0': offloads to 'h', for which PyTorch has"),
        (("a:0F0", "a:0F1", "a:1F0"), "microbatch 1: has no forward pass through the last stage"),
    ],
)
def test_what_is_no_pipeline_is_refused(placed, said) -> None:
    with pytest.raises(InputError, match=said):
        torch_schedule(plan(*placed))
