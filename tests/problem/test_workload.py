"""A workload holds one entry per vertex in every part of it."""

from dataclasses import replace

import numpy as np
import pytest

from optpart.base.errors import InputError
from optpart.problem.graph import GraphBuilder
from optpart.problem.workload import Work, Workload


def of_two() -> tuple[GraphBuilder, Work]:
    builder = GraphBuilder().vertex("a", outputs=[4]).vertex("b").edge("a", "b")
    counts = np.array([1, 2], dtype=np.int64)
    return builder, Work(("Relu", "Gemm"), ("float32",) * 2, counts, counts.copy(), counts.copy())


def test_takes_one_entry_per_vertex() -> None:
    builder, work = of_two()
    workload = Workload(builder.build(), work, measured={"cpu": (None, None)})
    assert workload.work is work


@pytest.mark.parametrize("part", ["kinds", "precisions", "flops", "read", "written"])
def test_refuses_other_lengths(part: str) -> None:
    builder, work = of_two()
    short = replace(work, **{part: getattr(work, part)[:1]})
    with pytest.raises(InputError, match=part):
        Workload(builder.build(), short)


def test_refuses_measurements_of_other_lengths() -> None:
    builder, work = of_two()
    with pytest.raises(InputError, match="cpu: 1 entries"):
        Workload(builder.build(), work, measured={"cpu": (None,)})


def test_refuses_negative_work() -> None:
    _, work = of_two()
    with pytest.raises(InputError, match="negative"):
        replace(work, flops=np.array([-1, 0]))
