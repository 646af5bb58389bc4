"""The judge of tier ``intervals``: cases are only a hint, and no hint proves what is false.

In the fork, four vertices take 5 along a path, 8 on one device, and 7 in the best schedule. In the
fan, a vertex with two consumers takes 4 along a path, 7 on one device, and 6 in the best schedule.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from copy import deepcopy
from fractions import Fraction
from typing import Any

import pytest

import optpart
from optpart import Cluster, Device, GraphBuilder, Instance
from optpart.certify import check
from optpart.certify.check import (
    Grid,
    Intervals,
    Problem,
    RejectedError,
    Windows,
    refute_by_intervals,
)
from optpart.formats import native
from optpart.testing import brute_force
from optpart.testing.cases import drawn_record
from optpart.testing.draw import draw_instance

A, B, C, D = range(4)

#: Whether a and b share a device; if so, whether c does; and if so, whether d does.
TREE = [0, 1, 0, 2, 0, 3, -1, -1, -1, -1]

FORK = {"steps": [{"vertices": [A, B, C, D], "cases": TREE}]}

#: Whether the consumers of a share its device, first c and then b.
TAILS = {"vertices": [C, B, A], "cases": [0, 2, 1, 2, -1, -1, -1]}

FAN = {"steps": [], "backwards": [TAILS]}


def add_fork(builder: GraphBuilder, a: str, b: str, c: str, d: str) -> GraphBuilder:
    builder.vertex(b, 3, outputs=[2]).vertex(c, 3, outputs=[2]).vertex(d, 1, outputs=[2])
    return builder.edge(a, b).edge(a, c).edge(b, d).edge(c, d)


def fork(*, together: bool = False, separated: bool = False) -> Instance:
    builder = add_fork(GraphBuilder().vertex("a", 1, outputs=[2]), *"abcd")
    if together:
        builder.colocate(*"abcd")
    if separated:
        builder.separate("a", "b")
    return Instance(builder.build(), Cluster.uniform(2, bandwidth=1), name="fork")


def fan() -> Instance:
    builder = GraphBuilder().vertex("a", 1, outputs=[2]).vertex("b", 3).vertex("c", 3)
    graph = builder.edge("a", "b").edge("a", "c").build()
    return Instance(graph, Cluster.uniform(2, bandwidth=1), name="fan")


def waist() -> Instance:
    """Two producers and two consumers of one vertex; 7 along a path, 11 in the best schedule."""
    builder = GraphBuilder()
    for name in ("b", "c"):
        builder.vertex(name, 3, outputs=[2])
    builder.vertex("m", 1, outputs=[2]).vertex("e", 3).vertex("f", 3)
    builder.edge("b", "m").edge("c", "m").edge("m", "e").edge("m", "f")
    return Instance(builder.build(), Cluster.uniform(2, bandwidth=1), name="waist")


WAIST = {
    "steps": [{"vertices": [0, 1, 2], "cases": [0, 2, 1, 2, -1, -1, -1]}],
    "backwards": [{"vertices": [4, 3, 2], "cases": [0, 2, 1, 2, -1, -1, -1]}],
}


def two_devices(speed: Fraction | int) -> Cluster:
    return Cluster.of([Device("d0"), Device("d1", speed)], bandwidth=1)


def windows_of(instance: Instance, bound: Fraction | int, scale: Fraction | int = 1) -> Windows:
    problem = Problem(check.read_json(native.dumps(instance).encode(), "instance"))
    return Windows(Grid(problem, Fraction(scale), Fraction(bound)))


def refutes(instance: Instance, bound: Fraction | int, record: Any) -> bool:
    """Return whether the record proves a bound."""
    try:
        refute_by_intervals(windows_of(instance, bound), record)
    except RejectedError:
        return False
    return True


def test_cases_prove_what_paths_and_loads_do_not() -> None:
    assert brute_force.optimum(fork()).makespan == 7  # type: ignore[union-attr]
    assert windows_of(fork(), 6).feasible
    assert refutes(fork(), 7, FORK)
    assert not refutes(fork(), 8, FORK)


def test_without_cases_heads_are_those_of_the_windows() -> None:
    assert not refutes(fork(), 6, {"steps": []})
    assert not refutes(fork(), 6, {"steps": [{"vertices": [A, B, C, D], "cases": [-1]}]})


def test_tails_prove_what_no_heads_do() -> None:
    assert brute_force.optimum(fan()).makespan == 6  # type: ignore[union-attr]
    assert refutes(fan(), 6, FAN)
    assert not refutes(fan(), 7, FAN)
    heads = {"steps": [{"vertices": [A, B, C], "cases": [0, 1, 0, 2, -1, -1, -1]}]}
    assert not refutes(fan(), 5, heads)


def test_tails_add_to_the_heads_that_have_risen() -> None:
    assert brute_force.optimum(waist()).makespan == 11  # type: ignore[union-attr]
    assert refutes(waist(), 11, WAIST)
    assert not refutes(waist(), 12, WAIST)
    for part in WAIST:
        assert refutes(waist(), 9, {"steps": [], part: WAIST[part]})
        assert not refutes(waist(), 10, {"steps": [], part: WAIST[part]})


def test_a_record_without_tails_is_judged_as_ever() -> None:
    assert refutes(fork(), 7, FORK | {"backwards": []})
    with pytest.raises(RejectedError, match="not a list"):
        refute_by_intervals(windows_of(fork(), 7), FORK | {"backwards": None})
    with pytest.raises(RejectedError, match="unknown key"):
        refute_by_intervals(windows_of(fork(), 7), FORK | {"forwards": []})


def test_vertices_on_one_device_take_turns() -> None:
    one_case = {"steps": [{"vertices": [A, B, C, D], "cases": [-1]}]}
    assert refutes(fork(together=True), 8, one_case)
    assert not refutes(fork(together=True), 9, one_case)


def test_separated_vertices_wait_for_their_tensors() -> None:
    one_case = {"steps": [{"vertices": [A, B, C, D], "cases": [-1]}]}
    assert refutes(fork(separated=True), 7, one_case)
    assert not refutes(fork(separated=True), 8, one_case)


def test_vertices_that_no_path_orders_may_run_in_any_order() -> None:
    builder = GraphBuilder().vertex("b", 3).vertex("c", 1, outputs=[2]).colocate("b", "c")
    builder.vertex("d", 10, devices=["d1"]).edge("c", "d")
    late = Instance(builder.separate("c", "d").build(), Cluster.uniform(2, bandwidth=1))
    assert not refutes(late, 14, {"steps": [{"vertices": [0, 1, 2], "cases": [-1]}]})


def test_what_is_not_decided_may_be_anywhere() -> None:
    builder = GraphBuilder().vertex("a", 1, outputs=[2], devices=["d0"]).vertex("b", 20)
    anywhere = Instance(builder.edge("a", "b").build(), two_devices(10))
    for cases in ([-1], [0, 1, -1, -1]):
        assert not refutes(anywhere, 6, {"steps": [{"vertices": [0, 1], "cases": cases}]})


def test_one_device_in_time_is_enough() -> None:
    slow = Instance(fork(together=True).graph, two_devices(Fraction(1, 2)))
    one_case = {"steps": [{"vertices": [A, B, C, D], "cases": [-1]}]}
    assert refutes(slow, 8, one_case)
    assert not refutes(slow, 15, one_case)


def test_no_case_inherits_from_the_one_before() -> None:
    builder = add_fork(GraphBuilder().vertex("a", 1, outputs=[2]), *"abcd")
    builder.vertex("e", 1).edge("d", "e")
    longer = Instance(builder.build(), Cluster.uniform(2, bandwidth=1))
    record = {"steps": [{"vertices": [A, B, C, D, 4], "cases": TREE}]}
    assert refutes(longer, 8, record)
    assert not refutes(longer, 9, record)


def test_steps_add_up_whatever_their_order_in_the_record() -> None:
    builder = add_fork(GraphBuilder().vertex("a", 1, outputs=[2]), *"abcd")
    add_fork(builder, *"defg")
    twice = Instance(builder.build(), Cluster.uniform(2, bandwidth=1), name="twice")
    steps = [{"vertices": [D, 4, 5, 6], "cases": TREE}, {"vertices": [A, B, C, D], "cases": TREE}]
    assert not refutes(twice, 12, {"steps": steps[:1]})
    assert refutes(twice, 13, {"steps": steps})
    assert refutes(twice, 13, {"steps": steps[::-1]})


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        ({"vertices": [A, B], "cases": []}, "None is not a whole number"),
        ({"vertices": [A, B], "cases": [0, 1, -1]}, "None is not a whole number"),
        ({"vertices": [A, B], "cases": [0]}, "None is not a whole number"),
        ({"vertices": [A, B], "cases": [-1, -1]}, "more than one tree"),
        ({"vertices": [A, B], "cases": [0, 2, -1, -1]}, "not in 0"),
        ({"vertices": [A, B], "cases": [0, -1, -1, -1]}, "not in 0"),
        ({"vertices": [A, B], "cases": [-2]}, "not in -1"),
        ({"vertices": [A, B], "cases": [True, 0, -1, -1]}, "not a whole number"),
        ({"vertices": [A, B], "cases": ["0", 1, -1, -1]}, "not a whole number"),
        ({"vertices": [A, B], "cases": [1, 1, -1, -1]}, "decided already"),
        ({"vertices": [A, B], "cases": [0, 1, 1, 0, -1, -1, -1]}, "decided already"),
        ({"vertices": [A, B], "cases": [0, 1, -1, 1, 0, -1, -1]}, "decided already"),
        ({"vertices": [B, A], "cases": [-1]}, "topological"),
        ({"vertices": [A, A], "cases": [-1]}, "twice"),
        ({"vertices": [A, 4], "cases": [-1]}, "not in 0"),
        ({"vertices": [], "cases": [-1]}, "no vertices"),
        ({"vertices": [A]}, "not a list"),
        ({"vertices": [A], "cases": [-1], "heads": [9]}, "unknown key"),
        ([], "not an object"),
    ],
)
def test_what_is_no_tree_of_cases_is_refused(step: Any, reason: str) -> None:
    with pytest.raises(RejectedError, match=reason):
        refute_by_intervals(windows_of(fork(), 7), {"steps": [step]})
    mirrored = step | {"vertices": step["vertices"][::-1]} if step else step
    with pytest.raises(RejectedError, match=reason):
        refute_by_intervals(windows_of(fork(), 7), {"steps": [], "backwards": [mirrored]})


def test_both_directions_share_one_allowance() -> None:
    def left(record: Any) -> int:
        windows = windows_of(fork(), 7)
        refute_by_intervals(windows, record)
        return windows.allowance.steps

    windows = windows_of(fork(), 7)
    before = windows.allowance.steps
    forwards = before - left(FORK)
    both = before - left(FORK | {"backwards": []})
    assert 0 < forwards < both
    windows.allowance.steps = both - 1
    with pytest.raises(RejectedError, match="takes too long"):
        refute_by_intervals(windows, FORK | {"backwards": []})
    windows.allowance.steps = both
    refute_by_intervals(windows, FORK | {"backwards": []})


def test_cases_that_wait_are_paid_for_until_they_are_done() -> None:
    windows = windows_of(fork(), 7)
    intervals = Intervals(windows)
    before = windows.allowance.bytes
    intervals.replay(FORK["steps"])
    tables = len(intervals._elsewhere) * 2 * (8 * 2 + 100)  # of times from other devices
    assert windows.allowance.bytes == before - tables


def other_records(record: Any) -> Iterator[Any]:
    """Yield the record with each of its numbers changed, removed, and repeated."""
    for part, steps in record.items():
        for s, step in enumerate(steps):
            for key, numbers in step.items():
                for i, number in enumerate(numbers):
                    near = ([number - 1], [number + 1], [number + 2], [-1], [], [number, number])
                    for new in near:
                        changed = deepcopy(record)
                        changed[part][s][key][i : i + 1] = new
                        yield changed


@pytest.mark.parametrize(
    ("instance", "best", "record"), [(fork(), 7, FORK), (fan(), 6, FAN), (waist(), 11, WAIST)]
)
def test_no_changed_number_proves_more_than_the_optimum(
    instance: Instance, best: int, record: Any
) -> None:
    records = list(other_records(record))
    assert not any(refutes(instance, best + 1, other) for other in records)
    # Most prove less than before; none of them breaks the judge.
    assert sum(refutes(instance, best, other) for other in records) < len(records) / 3


def mirrored(problem: Problem) -> Problem:
    """Return the problem with time reversed, as its document."""
    n, k = len(problem.vertices), len(problem.devices)
    outputs: list[list[Any]] = [[] for _ in range(n)]
    edges = []
    for u, v, tensor in problem.edges:
        delay = [[problem.delay(tensor, e, d) for e in range(k)] for d in range(k)]
        texts = [[None if x is None else str(x) for x in row] for row in delay]
        edges.append([problem.vertices[v], problem.vertices[u], len(outputs[v])])
        outputs[v].append({"delay": texts})
    names = problem.vertices
    units = [[w for v, w in enumerate(names) if problem.unit[v] == u] for u in set(problem.unit)]
    document = {
        "format": "optpart-instance/1",
        "vertices": [{"name": name, "outputs": outputs[v]} for v, name in enumerate(names)],
        "devices": [{"name": name} for name in problem.devices],
        "durations": [[None if p is None else str(p) for p in row] for row in problem.run],
        "edges": edges,
        "colocation": units,
        "separation": [[names[a], names[b]] for a, b in problem.separated],
    }
    result = Problem(check.read_json(json.dumps(document).encode(), "instance"))
    result.order = problem.order[::-1]
    return result


@pytest.mark.parametrize("communication", ["delay", "sendrecv", "link", "port"])
def test_tails_are_the_heads_when_time_is_reversed(communication: str) -> None:
    draw, raised = random.Random(6), {"steps": 0, "backwards": 0}
    for seed in range(60):
        instance = draw_instance(seed, communication, "none", vertices=(3, 7), devices=(2, 3))
        if instance.model.channels > 1:
            continue
        windows = windows_of(instance, 10_000, 7)
        other = Windows(Grid(mirrored(windows.grid.problem), Fraction(7), Fraction(10_000)))
        assert (windows.head, windows.tail) == (other.tail, other.head)
        for _ in range(4):
            record = drawn_record(draw, windows.grid.problem)
            for part, backwards in (("steps", False), ("backwards", True)):
                found = Intervals(windows, backwards=backwards)
                found.replay(record.get(part, []))
                expected = Intervals(other, backwards=not backwards)
                expected.replay(record.get(part, []))
                assert found.head == expected.head
                raised[part] += found.head != (windows.tail if backwards else windows.head)
    assert min(raised.values()) > 5


def optimum(instance: Instance) -> Fraction | None:
    """Return the optimum; brute force knows one model of communication, CP-SAT all."""
    if instance.model.communication == "delay" and instance.model.memory != "edges":
        best = brute_force.optimum(instance)
        return None if best is None else best.makespan
    result = optpart.solve(instance, method="cpsat", seconds=20, workers=1)
    return result.makespan if result.makespan == result.lower_bound else None


@pytest.mark.parametrize("memory", ["none", "estimate", "edges"])
@pytest.mark.parametrize("communication", ["delay", "sendrecv", "link", "port"])
def test_no_drawn_cases_refute_an_optimal_schedule(communication: str, memory: str) -> None:
    draw, tried = random.Random(5), 0
    for seed in range(3):
        instance = draw_instance(seed, communication, memory, vertices=(3, 5), devices=(2, 3))
        known = optimum(instance) if instance.model.channels == 1 else None
        if not known:
            continue
        scale = draw.choice((1000, 17)) / known
        windows = windows_of(instance, known + 1 / scale, scale)
        for _ in range(18):
            with pytest.raises(RejectedError, match="raised heads and tails fit"):
                refute_by_intervals(windows, drawn_record(draw, windows.grid.problem))
            tried += 1
    assert tried
