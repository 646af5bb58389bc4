"""The draws vary every option that changes an answer, with every other and with every feature.

An option that is added to a function of the package, and neither drawn nor declared to change no
question, fails here.
"""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from inspect import Parameter, isclass, signature
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from features import FEATURES

import optpart as op
from bench.soak.plans import drawn
from optpart.problem.instance import Instance
from optpart.solution.goal import Goal
from optpart.testing.options import OPTIONS, draw_options

#: Functions whose options make a goal, and the field that each option sets; ``test_draw.py`` says
#: what is drawn of them.
GOALS = {
    "solve": {
        "objective": "objective", "within": "makespan", "within_percent": "makespan",
        "traffic_limit": "traffic",
        "fix": "placement", "placement": "placement", "order": "order",
        "contiguous": "contiguous", "device_order": "device_order",
    },
    "verify": {"contiguous": "contiguous", "device_order": "device_order"},
}  # fmt: skip

#: Functions whose options are arguments of another one.
SAME = {"pipeline_problem": "plan"}

#: Options that say how an answer is looked for, for how long, and where it is kept.
SETTINGS = {
    "audit", "checkpoint", "engine", "memory", "method", "methods", "pairs", "resume", "seconds",
    "seed", "seeds", "start", "store", "watch", "workers",
}  # fmt: skip

#: Functions that build, show or write what is given to them; and two whose options
#: ``tests/study/test_robust.py`` and ``tests/applications/recompute`` vary.
NO_QUESTION = {
    "certify", "certify_bound", "conclude", "draw", "draw_strategy", "export", "export_strategy",
    "recompute", "result_from_pyjobshop", "retime", "robust", "save", "write_lesson",
    "write_report",
}  # fmt: skip


def questions() -> dict[str, list[Parameter]]:
    """Functions that answer something about an instance, and their options."""
    found = {}
    for name in op.__all__:
        function = getattr(op, name)
        if callable(function) and not isclass(function) and name not in NO_QUESTION:
            first, *others = [*signature(function).parameters.values(), None]
            if first is not None and "Instance" in str(first.annotation):
                found[name] = [each for each in others if each is not None]
    return found


def test_every_option_that_changes_an_answer_is_drawn() -> None:
    missing = [
        f"{name}: {option.name}"
        for name, options in questions().items()
        for option in options
        if option.name
        not in {*OPTIONS.get(SAME.get(name, name), ()), *GOALS.get(name, ()), *SETTINGS}
    ]
    # A result is what is verified; the other two are the question of a function of its own.
    assert missing == [
        "makespan_bounds: placement", "simulate: placement", "supporting: goal", "verify: result",
    ]  # fmt: skip


def test_what_is_drawn_are_options() -> None:
    known = {name: {each.name for each in options} for name, options in questions().items()}
    assert {"solve", "verify", "plan", "pipeline_problem"} <= known.keys()
    for name, options in [*OPTIONS.items(), *GOALS.items()]:
        assert {*options} <= known[name]
    assert {*GOALS["solve"].values()} == {each.name for each in fields(Goal)}


# --- plans -----------------------------------------------------------------------------------


@cache
def plans(count: int = 4000) -> list[tuple[Instance, dict[str, Any]]]:
    return [
        (instance, draw_options("plan", instance, number))
        for number in range(count)
        if (instance := drawn(number)).model.communication == "delay"
    ]


def given(options: dict[str, Any]) -> set[str]:
    usual = signature(op.plan).parameters
    return {name for name, value in options.items() if value != usual[name].default}


#: Features of instances that plans refuse.
REFUSED = {"sendrecv", "link", "port", "channels"}


def test_every_option_of_plan_is_given_with_every_other_and_with_every_feature() -> None:
    names = [*OPTIONS["plan"], *(FEATURES.keys() - REFUSED)]
    wanted = {frozenset(pair) for pair in combinations(names, 2) if pair[0] in OPTIONS["plan"]}
    for instance, options in plans():
        here = [name for name in FEATURES.keys() - REFUSED if FEATURES[name](instance)]
        own = given(options)
        wanted -= {frozenset((option, name)) for option in own for name in {*own, *here}}
        if not wanted:
            break
    assert sorted(map(sorted, wanted)) == []


def differing(instance: Instance, d: int, e: int) -> set[str]:
    """The fields in which two devices differ, or which exchanging them changes."""
    cluster, times = instance.cluster, instance.given_durations
    lists = [set(names) for names in instance.graph.allowed_devices.values()]
    swap = np.arange(instance.devices)
    swap[[d, e]] = e, d
    off = ~np.eye(len(swap), dtype=np.bool_)

    def turned(*tables: Any) -> bool:
        return any((table != table[np.ix_(swap, swap)])[off].any() for table in tables)

    found = {
        "speed": cluster.speed[d] != cluster.speed[e],
        "type": cluster.types[d] != cluster.types[e],
        "memory": cluster.memory[d] != cluster.memory[e],
        "allowed": any((cluster.names[d] in own) != (cluster.names[e] in own) for own in lists),
        "durations": times is not None
        and any(
            (table[:, d] != table[:, e]).any() for table in (times.possible, times.times.numerators)
        ),
        "bandwidth": turned(cluster.bandwidth.numerators, cluster.infinite),
        "latency": turned(cluster.latency.numerators),
    }
    return {name for name, differs in found.items() if differs}


@pytest.mark.parametrize(
    "field", ["speed", "type", "memory", "allowed", "durations", "bandwidth", "latency"]
)
@pytest.mark.parametrize("sync", [None, "links", "rate"])
def test_devices_alike_but_for_one_field_are_in_an_order(field: str, sync: str | None) -> None:
    def holds(instance: Instance, options: dict[str, Any]) -> bool:
        rate = options["sync_rate"]
        order = [instance.cluster.index[name] for name in options["device_order"] or ()]
        return (
            options["replicas"] > 1
            and (rate if rate in (None, "links") else "rate") == sync
            and any(differing(instance, d, e) == {field} for d, e in combinations(order, 2))
        )

    assert any(holds(*each) for each in plans())


@pytest.mark.parametrize("missing", [False, True])
def test_an_order_has_another_device_between_two_that_are_alike(missing: bool) -> None:
    def holds(instance: Instance, options: dict[str, Any]) -> bool:
        order = [instance.cluster.index[name] for name in options["device_order"] or ()]
        return (
            options["replicas"] > 1
            and (len(order) < instance.devices) == missing
            and any(
                not differing(instance, a, c) and differing(instance, a, b)
                for a, b, c in combinations(order, 3)
            )
        )

    assert sum(holds(*each) for each in plans()) > 20
