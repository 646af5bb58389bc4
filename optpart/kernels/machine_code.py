"""The compiler; importing this module loads it, which takes half a second."""

# mypy: allow-untyped-calls

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numba
from numba.core import event
from numba.extending import register_jitable, typeof_impl

from optpart import clock
from optpart.kernels.cache import keep_compiled
from optpart.terminal import note


def compiled(function: Callable[..., Any]) -> Any:
    """Return a function that compiles itself when called, and keeps the machine code on disk."""
    dispatcher = numba.njit(error_model="numpy")(function)
    keep_compiled(dispatcher)
    if hasattr(dispatcher, "py_func"):  # unless numba's compilation is disabled
        _stop_clock(dispatcher)
    return dispatcher


def _stop_clock(dispatcher: Any) -> None:
    """Let the clock stand still while a function is compiled, or loaded from disk, or kept there.

    numba looks the method up whenever there is no machine code yet for the types of arguments.
    """
    compile_for = dispatcher._compile_for_args

    def compile_unhurried(*arguments: Any, **named: Any) -> Any:
        with clock.stopped():
            return compile_for(*arguments, **named)

    dispatcher._compile_for_args = compile_unhurried


def teach(kind: type[Any], functions: Iterable[Callable[..., Any]]) -> None:
    """Let compiled code call objects of a class by their ``dispatcher``, and functions directly."""
    if kind not in _known:
        _known.add(kind)
        typeof_impl.register(kind)(lambda value, context: typeof_impl(value.dispatcher, context))
    for function in functions:
        register_jitable(error_model="numpy")(function)


_known: set[type[Any]] = set()


class _Announcer(event.Listener):
    said = False

    def on_start(self, event: Any) -> None:
        if not self.said:
            note("compiling inner loops that were not used before (a minute or two, only once) …")
        self.said = True

    def on_end(self, event: Any) -> None:
        pass


event.register("numba:compile", _Announcer())
