"""Kernels are interpreted where that is cheaper than to compile them, with the same results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from optpart.bounds.best import BOUNDS
from optpart.bounds.one_machine import sharpened
from optpart.bounds.windows import windows
from optpart.kernels import compiled
from optpart.kernels.compiled import (
    Kernel,
    compiling,
    inner,
    is_interpreted,
    kernel,
    short_kernel,
)
from optpart.kernels.ticks import Grid
from optpart.methods import registry
from optpart.problem.cluster import Cluster
from optpart.problem.graph import GraphBuilder
from optpart.problem.instance import Instance
from optpart.testing.draw import draw_instance


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin as a new process does: nothing has been interpreted yet."""
    monkeypatch.setattr(Kernel, "_interpreted_by_all", 0.0)


@inner
def twice(x: Any) -> Any:
    return 2 * x


@short_kernel
def summed(values: Any) -> Any:
    total = 0
    for value in values:
        total += twice(value)
    return total, values[0] > 0


@kernel
def summed_at_once(values: Any) -> Any:
    return summed(values)


class Watched:
    """Stands in for the machine code of a kernel, and counts its calls."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, *arguments: Any) -> str:
        self.calls += 1
        return "compiled"


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch, fresh: None) -> tuple[Any, Watched]:
    one: Any = Kernel(summed.py_func, short=True)  # type: ignore[attr-defined]
    code = Watched()
    monkeypatch.setitem(vars(one), "dispatcher", code)
    monkeypatch.setitem(vars(one), "_kept", False)
    return one, code


class TestTheChoice:
    def test_small_arguments_of_a_short_kernel_are_interpreted(
        self, watched: tuple[Any, Watched]
    ) -> None:
        one, code = watched
        assert one(np.arange(3)) == (6, False)
        assert code.calls == 0

    def test_large_arguments_are_not(self, watched: tuple[Any, Watched]) -> None:
        one, _ = watched
        assert one(np.arange(compiled._SMALL + 1)) == "compiled"

    def test_entries_of_arrays_in_tuples_count(self) -> None:
        assert compiled._entries([np.zeros((2, 3)), 5, (np.zeros(4), (np.zeros(1), 2.0))]) == 11

    def test_what_is_compiled_once_stays_so(self, watched: tuple[Any, Watched]) -> None:
        one, _ = watched
        one(np.arange(compiled._SMALL + 1))
        assert one(np.arange(3)) == "compiled"

    def test_all_are_compiled_on_request(self, watched: tuple[Any, Watched]) -> None:
        one, _ = watched
        with compiling():
            assert one(np.arange(3)) == "compiled"

    def test_a_kernel_on_disk_is_loaded_once_interpreting_has_cost_as_much(
        self, watched: tuple[Any, Watched], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        one, _ = watched
        monkeypatch.setattr(Kernel, "_interpreted_by_all", compiled._LOADING + 1)
        assert one(np.arange(3)) == (6, False)  # not on disk: compiling costs more
        monkeypatch.setitem(vars(one), "_kept", True)
        assert one(np.arange(3)) == "compiled"

    def test_a_kernel_is_compiled_once_interpreting_it_has_cost_as_much(
        self, watched: tuple[Any, Watched]
    ) -> None:
        one, _ = watched
        one._interpreted = compiled._COMPILING + 1
        assert one(np.arange(3)) == "compiled"

    def test_a_kernel_that_is_not_short_is_compiled(self) -> None:
        one: Any = Kernel(twice, short=False)
        vars(one)["dispatcher"] = code = Watched()
        assert one(1) == "compiled"
        assert code.calls == 1


class TestResults:
    def test_numbers_are_pythons(self, fresh: None) -> None:
        total, positive = summed(np.arange(1, 4))
        assert (type(total), type(positive)) == (int, bool)

    def test_integers_wrap_around_without_a_warning(self, fresh: None) -> None:
        most = np.array([2**62, 2**62])
        with compiling():
            expected = summed(most)
        again: Any = Kernel(summed.py_func, short=True)  # type: ignore[attr-defined]
        assert again(most) == expected == (0, True)

    def test_compiled_kernels_call_short_ones_and_inner_functions(self) -> None:
        assert summed_at_once(np.arange(1, 4)) == (12, True)


def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Interpret all short kernels, as a process on a machine without machine code does."""
    monkeypatch.setattr(Kernel, "_prefers_python", lambda self, arguments: True)
    never = property(lambda self: False, lambda self, value: None)
    monkeypatch.setattr(Kernel, "_compiled", never, raising=False)


COMMUNICATIONS = ("delay", "sendrecv", "link", "port")


@pytest.fixture(params=range(16))
def drawn(request: pytest.FixtureRequest) -> Instance:
    seed = request.param
    memory = "estimate" if seed % 3 == 0 else "none"
    communication = COMMUNICATIONS[seed % len(COMMUNICATIONS)]
    return draw_instance(seed, communication, memory, vertices=(1, 14), exact=seed % 2 == 0)


def test_heuristics_find_the_same_interpreted(
    drawn: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    def found() -> list[Any]:
        schedules = [registry.get(name)(drawn).schedule for name in registry.starts()]
        return [each and (each.placement.tolist(), each.start.fractions()) for each in schedules]

    with compiling():
        expected = found()
    interpreted(monkeypatch)
    assert found() == expected


def test_windows_are_the_same_interpreted(drawn: Instance, monkeypatch: pytest.MonkeyPatch) -> None:
    def found() -> list[list[Any]]:
        grid = Grid.of(drawn)
        first = windows(drawn, grid)
        limit = 2 * (first.bound or 1)
        both = (first, sharpened(drawn, grid, windows(drawn, grid, limit), limit))
        return [[getattr(w, name).tolist() for name in vars(w)] for w in both]

    with compiling():
        expected = found()
    interpreted(monkeypatch)
    assert found() == expected


def test_bounds_are_the_same_interpreted(drawn: Instance, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("critical-path", "load", "one-machine", "energy")

    def found() -> list[Any]:
        return [BOUNDS[name].compute(drawn, seconds=60.0, makespan=None) for name in names]

    with compiling():
        expected = found()
    interpreted(monkeypatch)
    assert found() == expected


def test_a_small_instance_is_interpreted_and_a_large_one_is_not() -> None:
    def chain(vertices: int) -> Instance:
        builder = GraphBuilder()
        for v in range(vertices):
            builder.vertex(str(v), 1)
        return Instance(builder.build(), Cluster.uniform(4))

    assert is_interpreted(chain(50))
    assert not is_interpreted(chain(1000))
