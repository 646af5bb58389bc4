"""Why a method ended: it agrees with the status, and no code reads it from a remark."""

from __future__ import annotations

import ast
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

import optpart
from optpart import Cluster, GraphBuilder, Instance, Status, conclude, retime
from optpart.solution.result import refused, with_bound
from optpart.solution.termination import Termination

INSTANCE = Instance(GraphBuilder().vertex("a", 2).build(), Cluster.uniform(1))
SCHEDULE = retime(INSTANCE, [0], [0])
PACKAGE = Path(optpart.__file__).parent


class TestConclude:
    def test_completed_is_the_default(self) -> None:
        assert conclude(INSTANCE, "", SCHEDULE).termination is Termination.COMPLETED
        assert conclude(INSTANCE, "", None).termination is Termination.COMPLETED

    @pytest.mark.parametrize("said", [t for t in Termination if t is not Termination.INTERRUPTED])
    def test_a_proof_takes_precedence(self, said: Termination) -> None:
        optimal = conclude(INSTANCE, "", SCHEDULE, bound=Fraction(2), termination=said)
        infeasible = conclude(INSTANCE, "", None, infeasible="no room", termination=said)
        assert (optimal.status, infeasible.status) == (Status.OPTIMAL, Status.INFEASIBLE)
        assert optimal.termination is infeasible.termination is Termination.PROVEN

    def test_except_over_an_interrupt(self) -> None:
        ended = Termination.INTERRUPTED
        result = conclude(INSTANCE, "", SCHEDULE, bound=Fraction(2), termination=ended)
        assert (result.status, result.termination) == (Status.OPTIMAL, ended)

    @pytest.mark.parametrize("said", [t for t in Termination if t is not Termination.PROVEN])
    def test_without_a_proof_the_method_decides(self, said: Termination) -> None:
        for schedule in (None, SCHEDULE):
            assert conclude(INSTANCE, "", schedule, termination=said).termination is said

    def test_no_method_can_claim_a_proof(self) -> None:
        result = conclude(INSTANCE, "", SCHEDULE, termination=Termination.PROVEN)
        assert (result.status, result.termination) == (Status.FEASIBLE, Termination.COMPLETED)


def test_a_later_bound_may_be_the_proof() -> None:
    result = conclude(INSTANCE, "", SCHEDULE, termination=Termination.TIME_LIMIT)
    assert with_bound(result, Fraction(1)).termination is Termination.TIME_LIMIT
    assert with_bound(result, Fraction(2)).termination is Termination.PROVEN


def test_a_refused_method_has_failed_whatever_is_proven_later() -> None:
    result = refused(conclude(INSTANCE, "", SCHEDULE), "it lied")
    assert (result.termination, result.reason, result.refused) == (
        Termination.FAILED,
        "it lied",
        True,
    )
    assert with_bound(result, Fraction(2)).termination is Termination.FAILED
    assert replace(result, refused=False).termination is Termination.FAILED


# --- remarks steer nothing -------------------------------------------------------------------


def _is_remark(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "reason"


def comparisons(source: str) -> list[int]:
    """Return the lines where a remark is compared, searched, or asked how it begins or ends."""
    lines = []
    for node in ast.walk(ast.parse(source)) if "reason" in source else ():
        match node:
            case ast.Compare():
                parts = [node.left, *node.comparators]
            case ast.Call(func=ast.Attribute()):
                parts = [node.func.value]
            case ast.Match():
                parts = [node.subject]
            case _:
                continue
        lines += [node.lineno for part in parts if _is_remark(part)]
    return lines


@pytest.mark.parametrize(
    "source",
    [
        "result.reason == 'interrupted'",
        "'bounds' in self.reason",
        "found.reason.startswith('interrupted')",
        "match found.reason:\n    case _: pass",
    ],
)
def test_a_comparison_is_detected(source: str) -> None:
    assert comparisons(source)


def test_no_code_compares_remarks() -> None:
    found = {
        path.relative_to(PACKAGE).as_posix(): lines
        for path in PACKAGE.rglob("*.py")
        if path.relative_to(PACKAGE).parts[0] != "commands" and path.parent.name != "report"
        if (lines := comparisons(path.read_text(encoding="utf-8")))
    }
    assert found == {}
