"""``verify`` checks a result's bottleneck and blocks, and every claim about them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from optpart import Cluster, GraphBuilder, InputError, Instance, Model, Result, retime
from optpart.api import solve, verify
from optpart.interop.formats import result as results
from optpart.study.arrival import rebuild
from optpart.study.report.verification import check_result

Document = dict[str, Any]


def chain(model: Model | None = None) -> Instance:
    """Four vertices of 4, 3, 2 and 1 operations in a row, on two devices."""
    graph = GraphBuilder()
    for name, ops in zip("abcd", (4, 3, 2, 1), strict=True):
        graph.vertex(name, ops, outputs=[1])
    for source, target in ("ab", "bc", "cd"):
        graph.edge(source, target)
    return Instance(graph.build(), Cluster.uniform(2, bandwidth=2, memory=9), model or Model())


CHAIN = chain()


def solved() -> Result:
    """The least bottleneck along d1, then d0: a and b would be too much, b and c is not."""
    return solve(CHAIN, "enumerate", objective="bottleneck", device_order=["d1", "d0"])


def broken(document: Document, path: Path, **required: Any) -> set[str]:
    """Return the rules that a document breaks."""
    path.write_text(json.dumps(document))
    return {found.rule for found in check_result(CHAIN, path, **required).violations}


def test_a_true_result_is_accepted(tmp_path: Path) -> None:
    document = results.to_dict(solved())
    assert document["bottleneck"] == document["bottleneck_bound"] == "6"
    assert document["device_order"] == ["d1", "d0"]
    assert broken(document, tmp_path / "result.json", contiguous=True, device_order=(1, 0)) == set()


@pytest.mark.parametrize(
    ("change", "rules"),
    [
        ({"bottleneck": "5"}, {"bottleneck"}),
        ({"bottleneck_bound": "5"}, {"status", "gap"}),
        ({"bottleneck_bound": "7"}, {"status", "bottleneck_bound"}),
        ({"bottleneck_bound": None}, {"status", "gap"}),
        ({"objective": "makespan"}, {"status", "gap", "trace[0]", "trace[1]"}),
        ({"objective": "traffic"}, {"status", "gap"}),
        ({"gap": 0.5}, {"gap"}),
        ({"device_order": ["d0", "d1"]}, {"contiguity"}),
        ({"device_order": ["d1"]}, {"contiguity"}),
        ({"trace": [[0, "5", "0"]]}, {"trace[0]"}),
        ({"trace": [[0, None, "7"]]}, {"trace[0]"}),
        ({"status": "INFEASIBLE", "schedule": None}, {"makespan", "traffic", "bottleneck"}),
    ],
    ids=lambda value: str(sorted(value) if isinstance(value, set) else value),
)
def test_a_false_claim_is_named(change: Document, rules: set[str], tmp_path: Path) -> None:
    document = {**results.to_dict(solved()), **change}
    assert broken(document, tmp_path / "result.json") == rules


@pytest.mark.parametrize(
    ("placement", "stated", "required", "rules"),
    [
        ([0, 1, 0, 0], {}, {}, set()),
        ([0, 1, 0, 0], {"contiguous": True}, {}, {"contiguity"}),
        ([0, 1, 0, 0], {"contiguous": False}, {}, set()),
        ([0, 1, 0, 0], {}, {"contiguous": True}, {"contiguity"}),
        ([0, 1, 0, 0], {"device_order": ["d0", "d1"]}, {}, {"contiguity"}),
        ([0, 0, 1, 1], {"contiguous": True}, {"device_order": (0, 1)}, set()),
        ([0, 0, 1, 1], {"contiguous": True}, {"device_order": (1, 0)}, {"contiguity"}),
        ([0, 0, 1, 1], {"device_order": ["d0", "d1"]}, {"device_order": (1, 0)}, {"contiguity"}),
    ],
    ids=lambda value: str(sorted(value) if isinstance(value, set) else value),
)
def test_blocks_are_checked_as_the_file_or_the_caller_asks(
    placement: list[int], stated: Document, required: Document, rules: set[str], tmp_path: Path
) -> None:
    schedule = retime(CHAIN, placement, [0, 1, 2, 3])
    document = {
        "format": "optpart-result/1",
        "status": "FEASIBLE",
        "schedule": results.schedule_to_dict(CHAIN, schedule),
        **stated,
    }
    assert broken(document, tmp_path / "result.json", **required) == rules
    if not stated:
        order = [f"d{d}" for d in required.get("device_order", ())] or None
        found = verify(
            CHAIN, schedule, contiguous=required.get("contiguous", False), device_order=order
        )
        assert {violation.rule for violation in found} == rules


def test_the_bottleneck_where_memory_depends_on_time_is_no_objective(tmp_path: Path) -> None:
    instance = chain(Model(memory="refcount"))
    document = results.to_dict(solved()) | {"instance_sha256": instance.sha256}
    path = tmp_path / "result.json"
    path.write_text(json.dumps(document))
    (violation,) = check_result(instance, path).violations
    assert str(violation) == (
        "objective: the bottleneck is not defined where memory depends on time (refcount)"
    )


class TestArrival:
    def test_a_result_is_rebuilt_with_its_bottleneck_and_blocks(self) -> None:
        result = solved()
        found = rebuild(results.to_dict(result), CHAIN)
        assert results.to_dict(found) == results.to_dict(result)

    @pytest.mark.parametrize(
        "change",
        [
            lambda document: document.update(bottleneck="5"),
            lambda document: document.update(bottleneck_bound="7"),
            lambda document: document.update(bottleneck_bound="5"),
            lambda document: document.update(device_order=["d0", "d1"]),
            lambda document: document.update(device_order=["d0", "d9"]),
            lambda document: document.update(contiguous="yes"),
        ],
    )
    def test_a_false_one_is_refused(self, change: Callable[[Document], None]) -> None:
        document = results.to_dict(solved())
        change(document)
        with pytest.raises(InputError):
            rebuild(document, CHAIN)
