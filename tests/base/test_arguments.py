"""Wrong arguments of the Python interface end in one line of the project's own error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np
import pytest

import optpart as op
from optpart.base.arguments import checked
from optpart.base.errors import ArgumentError


def builder() -> op.GraphBuilder:
    return op.GraphBuilder().vertex("a", 1, outputs=[1]).vertex("b", 1).edge("a", "b")


CLUSTER = op.Cluster.uniform(2)
TWO = op.Instance(builder().build(), CLUSTER)
#: Arguments of any type, as a user without a type checker gives them.
py: Any = op


@pytest.mark.parametrize(
    ("call", "said"),
    [
        # A step is missing, or another thing is given.
        (
            lambda: py.Instance(builder(), CLUSTER),
            "graph: is of type GraphBuilder; give the Graph that its build() returns",
        ),
        (
            lambda: py.solve(builder()),
            "instance: is of type GraphBuilder; give Instance(builder.build(), cluster)",
        ),
        (
            lambda: py.Instance(builder().build(), [op.Device("a")]),
            "cluster: is of type list; give a Cluster such as Cluster.of([Device('gpu', 10)])",
        ),
        (
            lambda: py.Instance(builder().build(), CLUSTER, model="link"),
            "model: is of type str; give a Model such as Model('link')",
        ),
        (lambda: py.verify(op.solve(TWO, "heft"), TWO), "instance: is of type Result; give an "),
        (lambda: py.compare([TWO]), "instance: is of type list; give an Instance or a path"),
        (lambda: py.Cluster.of(["gpu"]), "devices[0]: is 'gpu'; give a Device, such as Device("),
        (lambda: py.Graph.from_networkx({}), "graph: is of type dict; give a DiGraph or a Multi"),
        (lambda: py.plot_comparisons([TWO]), "comparisons[0]: is of type Instance; give what comp"),
        # Names.
        (
            lambda: py.solve(TWO, secnds=5),
            "secnds: is no parameter of solve; did you mean seconds? There are instance, ",
        ),
        (lambda: py.Device("a", sped=3), "sped: is no parameter of Device; did you mean speed? "),
        (lambda: builder().vertex("c", mem=3), "mem: is no parameter of vertex; did you"),  # type: ignore[arg-type]
        (lambda: py.Cluster.of([], bandwith=1), "bandwith: is no parameter of Cluster.of; did you"),
        (lambda: py.Model("lnk"), "model.communication: unknown 'lnk'; did you mean link? "),
        (lambda: py.Model(memory="refcont"), "model.memory: unknown 'refcont'; did you mean refco"),
        (lambda: py.costed(op.workload("gpt2"), CLUSTER, "unit", sed=1), "sed: is no option of an"),
        (lambda: py.workload("gpt2", contxt=5), "contxt: means nothing to the format llm; did you"),
        # Number of arguments.
        (lambda: py.solve(), "instance: is missing in the call of solve; give an Instance or a pa"),
        (
            lambda: py.solve(TWO, "heft", 5),
            "too many arguments for solve; it takes instance, method by position; name all others",
        ),
        # Types.
        (lambda: builder().vertex("c", outputs=50), "vertices[2].outputs: 50 is not a list; list"),  # type: ignore[arg-type]
        (lambda: builder().vertex("c", devices=5), "vertices[2].devices: 5 is not a list; list"),  # type: ignore[arg-type]
        (lambda: builder().output("a", 1, 5), "vertices[0].outputs[1].delay: is no matrix; give"),  # type: ignore[arg-type]
        (lambda: py.solve(TWO, seconds="5"), "seconds: is of type str; give a number"),
        (lambda: py.solve(TWO, workers=2.0), "workers: is of type float; give a whole number"),
        (lambda: py.solve(TWO, placement=[0, 1]), "placement: is of type list; give a dict of na"),
        (lambda: py.solve(TWO, watch=True), "watch: is of type bool; give a function"),
        (lambda: py.sweep("heft-10"), "instances: is of type str; give a list"),
        (lambda: py.divide(TWO, [5]), "method: 5 is not a name; 'optpart methods' lists them"),
        (lambda: py.Cluster.of([py.Device("a", type=5)]), "devices[0].type: 5 is not a name; name"),
        (lambda: TWO.plot([0, 1]), "placement: is of type list; give a dict"),  # type: ignore[arg-type]
        # Values.
        (lambda: py.sweep([TWO], seeds=0), "seeds: 0 is below 1; give a number ≥ 1"),
        (lambda: py.retime(TWO, [0], [0, 1]), "placement: 1 entries for 2 vertices; give 2 number"),
        (lambda: py.retime(TWO, [0, -1], [0, 1]), "placement: no device -1; give numbers from 0 t"),
        (lambda: py.retime(TWO, [0, 2], [0, 1]), "placement: no device 2; give numbers from 0 to"),
        (lambda: py.retime(TWO, [[0, 1]], [0, 1]), "placement: 1 entries for 2 vertices; give 2"),
        (lambda: py.retime(TWO, [0.5, 1], [0, 1]), "placement: 0.5 is no number of a device; give"),
        (lambda: py.retime(TWO, ["d0", "d1"], [0, 1]), "placement: 'd0' is no number of a device;"),
        (lambda: py.retime(TWO, [0, 1], "ab"), "order: is of type str; give a list or a dict"),
        (lambda: py.retime(TWO, [0, 1], ["a", None]), "order: does not fit the placement; name e"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_in_one_line(call: Callable[[], object], said: str) -> None:
    with pytest.raises(op.InputError) as caught:
        call()
    assert str(caught.value).startswith(said)
    assert "\n" not in str(caught.value)


def test_every_function_of_the_interface_is_checked() -> None:
    for name in op.__all__:
        value = getattr(op, name)
        if callable(value) and not isinstance(value, type):
            with pytest.raises(op.OptpartError, match=r"is no parameter|is missing in"):
                value(nothing=1)


def test_numbers_arrays_and_subclasses_serve_as_they_are() -> None:
    assert op.Device("a", np.int64(3)).speed == 3
    ones = np.ones((2, 2))
    cluster = op.Cluster.of([op.Device("a"), op.Device("b")], ones, ones)  # type: ignore[arg-type]
    assert cluster.latency[0, 1] == 1
    timed = op.Instance(builder().build(), cluster, durations=ones)  # type: ignore[arg-type]
    assert timed.duration(0, 0) == 1
    assert op.retime(timed, np.zeros(2, np.int64), range(2)).makespan(timed) == 2

    class Named(str):
        pass

    assert op.load(Named("heft-10")).vertices == 10
    assert len(op.Graph.from_networkx(nx.DiGraph())) == 0


def test_what_an_annotation_does_not_tell_is_left_to_the_function() -> None:
    @checked
    def function(first: object, *rest: int, third: int = 0, **others: str) -> tuple[object, ...]:
        return first, *rest, third, *others

    assert function(None, "x", third=1, fourth=2) == (None, "x", 1, "fourth")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="third: is of type list; give a whole number"):
        function(1, third=[])  # type: ignore[arg-type]
