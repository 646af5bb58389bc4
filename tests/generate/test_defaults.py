"""What a generator draws without being told more is what its command draws."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from inspect import Parameter, signature
from typing import Any

import pytest

from optpart import InputError
from optpart.commands.registry import COMMANDS, command
from optpart.generate import cluster, heterog_worst, layered, lstm, small, thesis
from optpart.ordering import replica
from optpart.problem.rational import rational

#: The functions behind each command: together they have all its parameters.
GENERATORS: dict[str, list[Callable[..., Any]]] = {
    "generate cluster": [cluster.drawn_cluster],
    "generate heterog-worst": [heterog_worst.heterog_worst],
    "generate layered": [layered.layered, cluster.drawn_cluster],
    "generate lstm": [lstm.instance],
    "generate replica": [replica.replica, replica.platform],
    "generate small": [small.small],
    "generate thesis": [thesis.instance],
}

#: Options of a command alone.
OF_THE_COMMAND = {"output", "only_worker"}


def defaults(functions: list[Callable[..., Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for function in functions:
        for name, parameter in signature(function).parameters.items():
            found.setdefault(name, parameter.default)
    if "width" in found:
        found["min_width"], found["max_width"] = found["width"]
        found["edge_probability"] = layered.EDGE_PROBABILITY
    return found


def plain(value: Any) -> Any:
    value = value.value if isinstance(value, Enum) else value
    try:
        return value if isinstance(value, bool) else rational(value)
    except InputError:  # no number
        return value


@pytest.mark.parametrize("name", [name for name in COMMANDS if name.startswith("generate ")])
def test_defaults_are_those_of_the_command(name: str) -> None:
    mine = defaults(GENERATORS[name])
    for option, parameter in signature(command(name)).parameters.items():
        if option in OF_THE_COMMAND or parameter.default is Parameter.empty:
            continue
        assert plain(mine[option]) == plain(parameter.default), option


def test_without_a_number_of_edges_the_default_probability_draws_them() -> None:
    said = layered.layered(3, edge_probability=layered.EDGE_PROBABILITY)
    assert layered.layered(3) == said
