"""A generator draws the same from Python as from its command, also where nothing is given."""

from __future__ import annotations

from enum import Enum
from inspect import Parameter, signature
from typing import Any

import pytest

from optpart import InputError
from optpart.applications.ordering import replica
from optpart.commands.registry import command
from optpart.interop.generate import layered
from optpart.interop.generate.cluster import drawn_cluster
from optpart.interop.generate.layered import instance
from optpart.problem.rational import rational


def defaults(*functions: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for function in functions:
        for name, parameter in signature(function).parameters.items():
            if parameter.default is not Parameter.empty:
                found.setdefault(name, parameter.default)
    return found


def plain(value: Any) -> Any:
    value = value.value if isinstance(value, Enum) else value
    try:
        return value if isinstance(value, bool) else rational(value)
    except InputError:  # no number
        return value


@pytest.mark.parametrize(
    ("whole", "parts"),
    [
        (instance, (layered.layered, drawn_cluster)),
        (command("generate replica"), (replica.replica, replica.platform)),
    ],
    ids=["layered", "replica"],
)
def test_the_parts_have_the_defaults_of_the_whole(whole: Any, parts: tuple[Any, ...]) -> None:
    mine, theirs = defaults(*parts), defaults(whole)
    if "width" in mine:
        mine["min_width"], mine["max_width"] = mine["width"]
        mine["edge_probability"] = layered.EDGE_PROBABILITY
    shared = mine.keys() & theirs.keys()
    assert len(shared) > 3
    for option in shared:
        assert plain(mine[option]) == plain(theirs[option]), option


def test_without_a_number_of_edges_the_default_probability_draws_them() -> None:
    said = layered.layered(3, edge_probability=layered.EDGE_PROBABILITY)
    assert layered.layered(3) == said
