"""Errors about unknown names suggest close ones and stay short."""

from __future__ import annotations

import pytest

from optpart.base.choices import choice, close
from optpart.base.errors import InputError
from optpart.methods import registry


def test_close_names_come_first() -> None:
    assert close("Cpsta", ["heft", "cpsat"]) == ["cpsat"]
    assert close("a100", ["a10", "a100-pcie-80gb"]) == ["a100-pcie-80gb", "a10"]
    assert choice("makspan", ["traffic", "makespan"]) == (
        "did you mean makespan? There are traffic, makespan"
    )


def test_a_long_list_is_cut_between_names() -> None:
    remedy = choice("x", [f"name-{i}" for i in range(1000)])
    assert len(remedy) <= 160
    assert remedy.startswith("choose one of name-0, name-1, ")
    assert remedy.endswith("and 986 more")


def test_a_command_lists_what_a_line_cannot() -> None:
    many = [f"name-{i}" for i in range(1000)]
    assert choice("x", many, "optpart methods") == "'optpart methods' lists the names"
    assert choice("name-77x", many, "optpart methods").endswith("'optpart methods' lists all")


def test_without_any_choice_the_name_is_left_out() -> None:
    assert choice("x", []) == "leave it out: there are none"


@pytest.mark.parametrize("name", ["", "x" * 10**6, 7])
def test_no_name_is_too_odd(name: object) -> None:
    assert len(choice(name, ["y" * 10**5, "z"])) < 10**5 + 200


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [("cpsta", "cpsat"), ("mite+pc", "mite+pct"), ("mitex+pct", "mite+pct"), ("Heft", "heft")],
)
def test_an_unknown_method_is_one_short_line(wrong: str, meant: str) -> None:
    with pytest.raises(InputError) as caught:
        registry.get(wrong)
    said = str(caught.value)
    assert f"did you mean {meant}" in said
    assert said.endswith("'optpart methods' lists all")
    assert len(said) <= 160
