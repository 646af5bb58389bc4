"""The backward pass of small forward passes, operation by operation."""

from __future__ import annotations

from fractions import Fraction

import pytest

from optpart.applications.training.backward import (
    Forward,
    ForwardOperation,
    Tensor,
    batched,
    with_backward,
)
from optpart.applications.training.graph import (
    CONTROL,
    Layout,
    Line,
    Output,
    Parameter,
    Role,
    TrainingGraph,
)
from optpart.base.errors import InputError


def operation(name: str, *reads: Tensor, outputs: int = 1, **given: object) -> ForwardOperation:
    return ForwardOperation(
        name,
        (Line(Fraction(1), Fraction(2)),),
        (Line(Fraction(3), Fraction(4)),),
        reads,
        tuple(batched(0, 10 * (k + 1)) for k in range(outputs)),
        **given,
    )


def graph_of(operations: list[ForwardOperation], *weights: Parameter) -> TrainingGraph:
    updates = tuple((Line(w.size),) for w in weights)
    return with_backward(Forward("g", ("gpu",), tuple(operations), weights, updates))


def edges(graph: TrainingGraph) -> set[tuple[str, int, str]]:
    name = [operation.name for operation in graph.operations]
    return {(name[e.producer], e.output, name[e.consumer]) for e in graph.edges}


def test_a_chain() -> None:
    graph = graph_of(
        [operation("a"), operation("b", Tensor(0))],
        Parameter("wa", Fraction(100), (0,)),
        Parameter("wb", Fraction(50), (1,)),
    )
    assert [o.name for o in graph.operations] == [
        "a", "b", "b/backward", "a/backward", "a/apply", "b/apply",
    ]  # fmt: skip
    assert edges(graph) == {
        ("a", 0, "b"),
        ("b", 0, "b/backward"),  # the loss is computed from it
        ("a", 0, "b/backward"),  # what b read
        ("b/backward", 0, "a/backward"),
        ("b/backward", 1, "b/apply"),
        ("a/backward", 0, "a/apply"),
    }
    b = graph.operations[2]
    assert [(o.layout, o.size) for o in b.outputs] == [
        (Layout.BATCHED, Line(beta=Fraction(10))),
        (Layout.SUMMED, Line(Fraction(50))),
    ]
    assert b.times == (Line(Fraction(3), Fraction(4)),)
    assert graph.operations[4].times == (Line(Fraction(100)),)
    assert [p.users for p in graph.parameters] == [(0, 3, 4), (1, 2, 5)]


def test_nothing_before_the_first_weights_has_a_gradient() -> None:
    graph = graph_of(
        [operation("pad"), operation("a", Tensor(0))], Parameter("w", Fraction(8), (1,))
    )
    assert [o.name for o in graph.operations] == ["pad", "a", "a/backward", "a/apply"]
    assert [o.layout for o in graph.operations[2].outputs] == [Layout.SUMMED]


def test_without_a_gradient_of_inputs_the_backward_pass_may_be_shorter() -> None:
    first = operation("a", first_backward_times=(Line(Fraction(7)),))
    graph = graph_of([first], Parameter("w", Fraction(8), (0,)))
    assert graph.operations[1].times == (Line(Fraction(7)),)
    later = operation("b", Tensor(0), first_backward_times=(Line(Fraction(7)),))
    graph = graph_of([operation("a"), later], Parameter("w", Fraction(8), (0, 1)))
    assert graph.operations[graph.index["b/backward"]].times != (Line(Fraction(7)),)


def test_a_tensor_with_two_readers_gets_both_gradients() -> None:
    graph = graph_of(
        [operation("a"), operation("b", Tensor(0)), operation("c", Tensor(0), Tensor(1))],
        Parameter("w", Fraction(8), (0,)),
    )
    found = edges(graph)
    assert ("b/backward", 0, "a/backward") in found
    assert ("c/backward", 0, "a/backward") in found
    assert ("c/backward", 1, "b/backward") in found


def test_each_output_has_a_gradient_of_its_own() -> None:
    graph = graph_of(
        [operation("a", outputs=2), operation("b", Tensor(0, 1))], Parameter("w", Fraction(8), (0,))
    )
    assert graph.operations[graph.index["b/backward"]].outputs[0].size.beta == 20
    # Output 0 is read by nobody: nothing is known of its gradient but that there is another one.
    assert {e for e in edges(graph) if e[2] == "a/backward"} == {("b/backward", 0, "a/backward")}


def test_shared_weights_have_one_update() -> None:
    graph = graph_of(
        [operation("in"), operation("mid", Tensor(0)), operation("out", Tensor(1))],
        Parameter("table", Fraction(80), (0, 2)),
        Parameter("w", Fraction(8), (2,)),
    )
    assert [o.name for o in graph.operations if o.role is Role.APPLY] == ["in/apply", "out/apply"]
    out = graph.operations[graph.index["out/backward"]]
    assert [o.size for o in out.outputs[1:]] == [Line(Fraction(80)), Line(Fraction(8))]
    assert ("out/backward", 1, "in/apply") in edges(graph)
    assert ("in/backward", 0, "in/apply") in edges(graph)
    assert graph.resident[graph.index["in/apply"]] == 80
    # All that share a tensor are tied, whatever else they hold.
    (tied,) = (group for group in graph.tied if len(group) > 1)
    assert {graph.operations[o].name for o in tied} == {
        "in", "out", "in/backward", "out/backward", "in/apply", "out/apply",
    }  # fmt: skip


def test_several_weights_of_an_operation_have_one_gradient_and_one_update() -> None:
    graph = graph_of(
        [operation("a")], Parameter("w", Fraction(8), (0,)), Parameter("bias", Fraction(2), (0,))
    )
    assert graph.operations[1].outputs[0].size == Line(Fraction(10))
    assert graph.operations[2].times == (Line(Fraction(10)),)


def test_what_is_saved_is_held_for_the_backward_pass_alone() -> None:
    saved = operation("a", saved=Line(beta=Fraction(5)))
    graph = graph_of([saved, operation("b", Tensor(0))], Parameter("w", Fraction(8), (0,)))
    assert graph.operations[0].outputs[1].size.beta == 5
    assert [e for e in edges(graph) if e[:2] == ("a", 1)] == [("a", 1, "a/backward")]


def test_activations_are_read_as_far_as_they_are_needed() -> None:
    both = operation("b", Tensor(0), needs_reads=False, needs_outputs=True)
    graph = graph_of(
        [operation("a"), both, operation("c", Tensor(1))], Parameter("w", Fraction(8), (0,))
    )
    found = edges(graph)
    assert ("a", 0, "b/backward") not in found
    assert ("b", 0, "b/backward") in found
    assert ("b", 0, "c/backward") in found


def test_an_operation_without_outputs_is_waited_for() -> None:
    graph = graph_of([operation("a", outputs=0)], Parameter("w", Fraction(8), (0,)))
    assert ("a", CONTROL, "a/backward") in edges(graph)


def test_control_dependencies_stay_in_the_forward_pass() -> None:
    graph = graph_of(
        [operation("a"), operation("b", after=(0,))], Parameter("w", Fraction(8), (0,))
    )
    assert ("a", CONTROL, "b") in edges(graph)
    assert "b/backward" not in graph.index


def test_what_cannot_be_split_cannot_be_in_the_backward_pass_either() -> None:
    graph = graph_of([operation("a", splittable=False)], Parameter("w", Fraction(8), (0,)))
    assert [o.splittable for o in graph.operations] == [False, False, True]


def test_operations_come_after_what_they_read() -> None:
    with pytest.raises(InputError, match=r"^b: reads of a later operation"):
        graph_of([operation("b", Tensor(1)), operation("a")])


def test_a_sum_over_samples_that_is_no_gradient_of_weights_is_refused() -> None:
    whole = ForwardOperation(
        "norm",
        (Line(),),
        (Line(),),
        outputs=(Output(Layout.WHOLE, Line(Fraction(8))),),
        splittable=False,
    )
    reader = operation("b", Tensor(0))
    with pytest.raises(InputError, match=r"^b: its gradient of 'norm', which does not depend on"):
        graph_of([whole, reader], Parameter("w", Fraction(8), (0,)))
    graph = graph_of(
        [whole, operation("b", Tensor(0), splittable=False)], Parameter("w", Fraction(8), (0,))
    )
    assert graph.operations[graph.index["b/backward"]].outputs[0].layout is Layout.WHOLE
