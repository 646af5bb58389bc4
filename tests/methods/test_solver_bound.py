"""The bound that the solver proves for an instance or its relaxation."""

from __future__ import annotations

from fractions import Fraction

import pytest

from optpart import Cluster, GraphBuilder, Instance, Model
from optpart.methods.solver_bound import solver_bound
from optpart.problem.model import Communication


def three_on_two(model: Model | None = None, memory: int | None = None) -> Instance:
    builder = GraphBuilder()
    for v in range(3):
        builder.vertex(f"v{v}", 4, memory=3)
    return Instance(builder.build(), Cluster.uniform(2, memory=memory), model or Model())


def test_it_reaches_the_optimum() -> None:
    assert solver_bound(three_on_two(), 20.0) == 8


@pytest.mark.parametrize("communication", ["sendrecv", "link", "port"])
def test_other_models_are_relaxed(communication: Communication) -> None:
    model = Model(communication, "refcount", send_ops=Fraction(1))
    assert solver_bound(three_on_two(model, 9), 20.0) == 8


def test_static_memory_counts() -> None:
    assert solver_bound(three_on_two(Model(memory="estimate"), 9), 20.0) == 8
    assert solver_bound(three_on_two(Model(memory="estimate"), 4), 20.0) is None
