"""Results that come from elsewhere, rebuilt and verified again."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optpart import Budget, InputError, Status, library, methods
from optpart.formats import native
from optpart.formats import result as result_format
from optpart.formats.native import parse_json
from optpart.sweep.arrival import rebuild

INSTANCE = library.load("laich-2.5")


def document(by: str = "heft", /, **changes: Any) -> Any:
    result = methods.get(by)(INSTANCE, budget=Budget(5, workers=1), seed=3)
    content = {**result_format.to_dict(result), **changes}
    return parse_json(json.dumps(content))


@pytest.mark.parametrize("method", ["heft", "hash+pct", "cpsat", "enumerate"])
def test_the_document_of_what_was_rebuilt_is_the_same(method: str) -> None:
    given = document(method)
    again = result_format.dumps(rebuild(given, INSTANCE))
    assert parse_json(again) == given


def test_an_infeasible_instance_stays_infeasible_with_its_reason() -> None:
    told = document(status="INFEASIBLE", schedule=None, reason="too little memory")
    result = rebuild(told, INSTANCE)
    assert (result.status, result.reason) == (Status.INFEASIBLE, "too little memory")


def test_what_follows_from_the_schedule_is_computed_not_believed() -> None:
    result = rebuild(document(makespan="1", traffic="0", status="OPTIMAL"), INSTANCE)
    assert result.makespan == 14
    assert result.status is Status.FEASIBLE


def test_a_schedule_that_is_not_valid_is_dropped() -> None:
    told = document()
    told["schedule"]["start"] = dict.fromkeys(told["schedule"]["start"], "0")
    result = rebuild(told, INSTANCE)
    assert result.schedule is None
    assert "not valid" in result.reason


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"format": "optpart-result/0"}, "format"),
        ({"instance_sha256": "0" * 64}, "instance_sha256"),
        ({"lower_bound": "15"}, "lower_bound"),
        ({"lower_bound": "x"}, "lower_bound"),
        ({"method": None}, "method"),
        ({"seconds": "1e400"}, "seconds"),
        ({"seed": "0"}, "seed"),
        ({"objective": "beauty"}, "objective"),
        ({"objective": []}, "objective"),
        ({"trace": [[1]]}, "trace[0]"),
        ({"versions": {"optpart": 1}}, "versions"),
        ({"schedule": []}, "schedule"),
    ],
)
def test_a_fault_is_named_with_its_place(changes: dict[str, Any], place: str) -> None:
    with pytest.raises(InputError) as fault:
        rebuild(document(**changes), INSTANCE)
    assert fault.value.place == place


@given(st.data())
def test_no_document_ends_in_anything_but_a_result_or_one_line(data: st.DataObject) -> None:
    scalars = st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.just("1e999")
    value = data.draw(scalars | st.lists(scalars, max_size=3) | st.dictionaries(st.text(), scalars))
    told = document()
    told[data.draw(st.sampled_from(sorted(told)))] = value
    with suppress(InputError):
        assert rebuild(told, INSTANCE).makespan in (14, None)


def test_an_instance_that_travels_as_text_is_the_same_instance() -> None:
    there = native.from_dict(native.parse_json(native.dumps(INSTANCE)))
    assert there.sha256 == INSTANCE.sha256
