"""Kernels are interpreted where that is cheaper than to compile them, with the same results."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from optpart.base.clock import GRACE, OutOfTimeError, limited
from optpart.kernels import compiled, machine_code, store
from optpart.kernels.compiled import (
    Kernel,
    inner,
    kernel,
    short_kernel,
    slowdown,
)
from optpart.kernels.struct import Longs
from optpart.kernels.ticks import Grid
from optpart.lower_bounds.best import BOUNDS
from optpart.lower_bounds.one_machine import sharpened
from optpart.lower_bounds.windows import windows
from optpart.methods import registry
from optpart.problem.instance import Instance
from optpart.testing.draw import draw_instance


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin as a new process does: nothing has been interpreted yet."""
    monkeypatch.setattr(Kernel, "_interpreted", 0.0)


@inner
def twice(x: int) -> Any:
    return 2 * x


@short_kernel
def summed(values: Longs) -> Any:
    total = 0
    for value in values:
        total += twice(value)
    return total, values[0] > 0


@kernel
def summed_at_once(values: Longs) -> Any:
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
    monkeypatch.setattr(machine_code, "compiled", lambda function: code)
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

    def test_machine_code_is_loaded_once_interpreting_has_cost_as_much(
        self, watched: tuple[Any, Watched], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        one, _ = watched
        monkeypatch.setattr(Kernel, "_interpreted", compiled._LOADING + 1)
        assert one(np.arange(3)) == "compiled"

    def test_a_kernel_that_is_not_short_is_compiled(self, watched: tuple[Any, Watched]) -> None:
        assert Kernel(twice)(1) == "compiled"


class TestWhileAnotherProcessCompiles:
    @pytest.fixture(autouse=True)
    def missing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(store, "others_compile", lambda: True)
        monkeypatch.setattr(Kernel, "kept_as", None)
        for function in (twice, summed.py_func):  # type: ignore[attr-defined]
            monkeypatch.setattr(function, "__module__", Kernel.__module__)

    def test_kernels_are_interpreted(self, watched: tuple[Any, Watched]) -> None:
        one, _ = watched
        assert one(np.arange(compiled._SMALL + 1))[1] is False
        assert Kernel(twice)(1) == 2
        assert slowdown(Kernel(twice)) > 100

    def test_those_of_users_are_not(
        self, watched: tuple[Any, Watched], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(twice, "__module__", "theirs")
        assert slowdown(Kernel(twice)) == 1
        assert Kernel(twice)(1) == "compiled"

    def test_they_are_loaded_once_they_are_there(
        self, watched: tuple[Any, Watched], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        one: Any = Kernel(twice)
        assert one(1) == 2
        monkeypatch.setattr(Kernel, "kept_as", "file")
        assert one(1) == "compiled"

    def test_long_kernels_wait_until_they_are_there(
        self, watched: tuple[Any, Watched], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def waited(seconds: float) -> None:
            monkeypatch.setattr(Kernel, "kept_as", "file")

        monkeypatch.setattr("optpart.kernels.compiled.time.sleep", waited)
        assert Kernel(twice, long=True)(1) == "compiled"

    def test_long_kernels_wait_no_longer_than_the_time_limit(self) -> None:
        with limited(-GRACE), pytest.raises(OutOfTimeError):
            Kernel(twice, long=True)(1)


class TestResults:
    def test_numbers_are_pythons(self, fresh: None) -> None:
        total, positive = summed(np.arange(1, 4))
        assert (type(total), type(positive)) == (int, bool)

    def test_integers_wrap_around_without_a_warning(self, fresh: None) -> None:
        most = np.array([2**62, 2**62])
        expected = summed.dispatcher(most)  # type: ignore[attr-defined]
        again: Any = Kernel(summed.py_func, short=True)  # type: ignore[attr-defined]
        assert again(most) == expected == (0, True)

    def test_compiled_kernels_call_short_ones_and_inner_functions(self) -> None:
        assert summed_at_once(np.arange(1, 4)) == (12, True)

    def test_functions_of_others_are_compiled_as_ever(self) -> None:
        code = """
import numba
import numpy as np
import optpart.kernels.machine_code

@numba.njit
def inner(values, size):
    some = values[:size].copy()
    seen = np.zeros(size, numba.boolean)
    return some.sum() + seen.sum()

@numba.njit
def outer(size):
    zeros = np.zeros(size)
    ones = np.full(size, 1)
    return inner(zeros, size) + ones[0]

@numba.njit
def later(size):
    seen = np.zeros(size, numba.boolean)
    return seen.sum()

print(outer(3), later(3))
"""
        command = [sys.executable, "-P", "-c", code]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        assert run.stdout == "1.0 0\n", run.stderr


def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Interpret all kernels but long ones, as while they are compiled."""
    monkeypatch.setattr(
        Kernel,
        "__call__",
        lambda self, *arguments: (
            self.dispatcher(*arguments) if self._long else self._interpret(arguments)
        ),
    )


def at_once(found: Callable[[], Any]) -> Any:
    """Return what is found without interpreting anything."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Kernel, "_prefers_python", lambda self, arguments: False)
        return found()


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

    expected = at_once(found)
    interpreted(monkeypatch)
    assert found() == expected


def test_windows_are_the_same_interpreted(drawn: Instance, monkeypatch: pytest.MonkeyPatch) -> None:
    def found() -> list[list[Any]]:
        grid = Grid.of(drawn)
        first = windows(drawn, grid)
        limit = 2 * (first.bound or 1)
        both = (first, sharpened(drawn, grid, windows(drawn, grid, limit), limit))
        return [[getattr(w, name).tolist() for name in vars(w)] for w in both]

    expected = at_once(found)
    interpreted(monkeypatch)
    assert found() == expected


def test_bounds_are_the_same_interpreted(drawn: Instance, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("critical-path", "load", "one-machine", "energy")

    def found() -> list[Any]:
        return [BOUNDS[name].compute(drawn, seconds=60.0, makespan=None) for name in names]

    expected = at_once(found)
    interpreted(monkeypatch)
    assert found() == expected
