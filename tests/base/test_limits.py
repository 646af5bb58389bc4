"""What may be asked for: every number has a range, and what would not fit is not begun."""

from __future__ import annotations

import os
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

import pytest
import typer
from commandline import Run

from optpart import Budget, InputError, load
from optpart.base.limits import (
    LARGEST_SEED,
    MOST_DEVICES,
    MOST_EDGES,
    MOST_RUNS,
    MOST_SECONDS,
    MOST_VERTICES,
    MOST_WORKERS,
    check_seed,
    check_size,
)
from optpart.cli import app
from optpart.commands.generate import command_of
from optpart.interop.generate.registry import GENERATORS
from optpart.methods import registry


def commands(group: typer.Typer) -> Iterator[tuple[str, Callable[..., Any]]]:
    for command in group.registered_commands:
        assert command.callback is not None
        yield command.callback.__name__, command.callback
    for below in group.registered_groups:
        assert below.typer_instance is not None
        yield from commands(below.typer_instance)
    if group is app:
        yield from ((name, command_of(row)) for name, row in GENERATORS.items())


def numeric_options() -> Iterator[tuple[str, Any]]:
    for command, callback in commands(app):
        for name, hint in get_type_hints(callback, include_extras=True).items():
            if get_origin(hint) in (Union, types.UnionType):
                hint = get_args(hint)[0]
            kinds = get_args(hint)[:1]
            kinds = get_args(kinds[0]) or kinds if kinds else ()
            if int in kinds or float in kinds:
                yield f"{command} {name}", hint.__metadata__[0]


def test_every_number_of_the_command_line_has_a_range() -> None:
    found = dict(numeric_options())
    assert len(found) > 40
    assert {"solve time_limit", "small ccr", "layered decay", "thesis number"} <= set(found)
    # What has a parser is checked by it.
    assert [
        name
        for name, option in found.items()
        if option.parser is None and (option.min is None or option.max is None)
    ] == []


@pytest.mark.parametrize(
    "option",
    [
        "solve --time-limit inf", "solve --time-limit nan", "solve --time-limit 1e400",
        "solve --time-limit -1", "solve --time-limit 1000001", "solve --time-limit soon",
        "solve --time-limit 10s", "bound --time-limit 5min", "gap --time-limit nan",
        "certify -o folder --time-limit 1e18", "ordering --time-limit ten",
        "reduce --time-limit -1", "solve --memory-limit 4G", "bound --memory-limit nan",
        "gap --memory-limit -1GiB", "certify -o folder --memory-limit 1",
        "solve --seed 2147483648", "solve --seed -1", "solve --seed 1e3",
        "solve --workers 0", "solve --workers -2", "solve --workers 1025",
        "gap --time-limit inf", "gap --seeds 10001", "gap --seeds 2 --seed 2147483647",
        "bound --time-limit inf", "simulate --runs 0", "simulate --runs 9 --seed 2147483640",
        "certify -o folder --workers 100000", "ordering --seed 2147483648",
    ],
)  # fmt: skip
def test_a_number_out_of_range_is_one_line_and_exit_2(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    monkeypatch.chdir(tmp_path)
    command, *rest = option.split()
    shown = run(command, "heft-10", *rest)
    assert (shown.code, shown.out) == (2, "")
    assert shown.err.startswith("optpart: ")
    assert rest[-2] in shown.err
    assert "; " in shown.err
    assert shown.err.count("\n") == 1
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"seconds": float("inf")}, {"seconds": float("nan")}, {"seconds": -1.0},
        {"seconds": MOST_SECONDS + 1}, {"workers": 0}, {"workers": MOST_WORKERS + 1},
        {"deterministic": float("inf")}, {"deterministic": -0.1},
    ],
)  # fmt: skip
def test_a_budget_out_of_range_is_refused_when_it_is_made(wrong: dict[str, Any]) -> None:
    (name,) = wrong
    with pytest.raises(InputError, match=rf"^{name}: .* is out of range; give"):
        Budget(**wrong)


def test_the_largest_budget_is_one_that_the_system_can_wait_for() -> None:
    assert Budget(MOST_SECONDS, MOST_WORKERS).seconds * 1000 < 2**31


@pytest.mark.parametrize("method", ["cpsat", "milp", "enumerate", "search", "hybrid", "heft+pct"])
@pytest.mark.parametrize("seed", [-1, LARGEST_SEED + 1])
def test_every_method_refuses_a_seed_out_of_range(method: str, seed: int) -> None:
    with pytest.raises(InputError, match=f"^seed: {seed} is out of range"):
        registry.get(method)(load("heft-10"), seed=seed)


def test_the_largest_seed_solves() -> None:
    found = registry.get("cpsat")(load("kwok-ahmad-9-2"), seed=LARGEST_SEED)
    assert found.status == "OPTIMAL"


def test_the_seeds_of_all_runs_are_in_range() -> None:
    assert check_seed(LARGEST_SEED - MOST_RUNS + 1, MOST_RUNS)
    with pytest.raises(InputError, match="is out of range"):
        check_seed(LARGEST_SEED - MOST_RUNS + 2, MOST_RUNS)


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("layered --levels 10000", "edge_probability: would have about 2"),
        ("layered --levels 1000000", "levels and width: would have about 5,000,000 vertices"),
        ("layered --levels 1000000 --decay 0.5 --min-width 1 --max-width 1", "decay: "),
        ("layered --max-width 1000000 --levels 9", "levels and width: would have about "),
        ("layered --random-edges 5000001", "--random-edges"),
        ("layered --levels 70000 --edge-probability 0 --devices 1000", "vertices and devices: "),
        ("small --vertices 1000000 --devices 101", "vertices and devices: "),
        ("small --devices 1001", "--devices"),
        ("thesis 1 --devices 1001", "--devices"),
        ("lstm rnn --devices 1001", "--devices"),
        ("cluster --devices 1001", "--devices"),
        ("heterog-worst --devices 51", "--devices"),
        ("heterog-worst --length 1000000001", "--length"),
        ("replica --model vgg16 --workers 500 --servers 2", "1502 devices, channels included"),
    ],
)
def test_what_would_not_fit_is_not_generated(
    run: Run, tmp_path: Path, command: str, problem: str
) -> None:
    output = tmp_path / "out.json"
    shown = run("generate", *command.split(), "-o", output)
    assert (shown.code, shown.err.count("\n")) == (2, 1)
    assert problem in shown.err
    assert not output.exists()


def test_the_largest_sizes_are_allowed() -> None:
    check_size(MOST_VERTICES, MOST_EDGES, devices=100)
    check_size(MOST_VERTICES // 10, devices=MOST_DEVICES)
