"""Questions with contiguous blocks, an order of devices and the bottleneck, from Python."""

from __future__ import annotations

from typing import Any

import pytest

import optpart as op
from optpart.methods import registry


@pytest.mark.parametrize(
    "goal",
    [op.Goal("bottleneck"), op.Goal(contiguous=True), op.Goal(device_order=(1, 0))],
    ids=repr,
)
def test_which_methods_can(goal: op.Goal) -> None:
    able = op.supporting(op.load("heft-10"), goal)
    assert able == ["auto", "cpsat", "milp", "milp-cbc", "enumerate"]
    for name in ("minizinc", "search", "hybrid", "heft"):
        assert registry.supports(name, op.load("heft-10"), goal)


def test_milp_counts_loads_under_every_model_but_no_times() -> None:
    heft = op.load("heft-10")
    linked = op.Instance(heft.graph, heft.cluster, op.Model("link"), heft.durations)
    assert registry.supports("milp", linked, op.Goal("bottleneck")) == ""
    assert registry.supports("milp", linked, op.Goal("bottleneck", makespan=9))
    assert registry.supports("milp", linked, op.Goal(contiguous=True))


@pytest.mark.parametrize("method", ["cpsat", "milp", "enumerate"])
def test_one_answer(method: str) -> None:
    result = op.solve("heft-10", method, objective="bottleneck", device_order=["d2", "d0", "d1"])
    assert (result.status, result.bottleneck, result.bottleneck_bound, result.gap) == (
        "OPTIMAL", 36, 36, 0.0,
    )  # fmt: skip
    assert result.device_order == (2, 0, 1)
    assert "bottleneck 36, lower bound 36" in repr(result)
    assert op.verify("heft-10", result) == []
    assert op.verify("heft-10", result, device_order=["d0", "d1", "d2"])[0].rule == "contiguity"


def test_without_pruning_the_answer_is_the_same() -> None:
    result = op.solve("heft-10", objective="bottleneck", contiguous=True, audit=True)
    assert (result.status, result.bottleneck) == ("OPTIMAL", 36)


def test_a_fixed_placement_may_not_be_contiguous() -> None:
    heft = op.solve("heft-10", "heft")
    result = op.solve("heft-10", placement=heft.placement, device_order=["d0", "d1", "d2"])
    assert result.status == "INFEASIBLE"
    assert result.reason.startswith("the edge from ")


def test_the_front_can_be_limited_to_blocks() -> None:
    from optpart.methods.solve import ask

    front = ask(op.load("heft-10"), contiguous=True).front()
    assert [point.status for point in front] == ["OPTIMAL"] * len(front)
    assert all(op.verify("heft-10", point) == [] and point.contiguous for point in front)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"contiguous": "yes"}, "contiguous: is of type str; give True or False"),
        ({"device_order": "d0"}, "device_order: is of type str; give a list"),
        ({"device_order": ["d0", 1]}, "device_order: no device 1; did you mean d1?"),
        (
            {"objective": "load"},
            "objective: no objective 'load'; choose one of makespan, traffic, ",
        ),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(op.InputError) as error:
        op.solve("heft-10", **arguments)
    assert str(error.value).startswith(message)


def test_a_method_of_ones_own_is_checked() -> None:
    """A schedule that is not contiguous is no answer, whatever the method claims."""
    heft = op.solve("heft-10", "heft").schedule

    def mine(instance: op.Instance, *, goal: op.Goal | None = None, **_: Any) -> op.Result:
        return op.conclude(instance, "mine", heft)

    op.register("mine", "ignores its goal")(mine)
    with pytest.raises(op.InputError, match="violates the goal"):
        op.solve("heft-10", "mine", device_order=["d0", "d1", "d2"])
    found = op.solve("heft-10", "mine", objective="bottleneck")
    assert (found.status, found.bottleneck_bound) == ("FEASIBLE", None)
    assert found.bottleneck is not None
