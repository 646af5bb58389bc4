"""Refutations by paths as sums of clauses: read by a reader of their own, and true of schedules."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
from proof_readers import Sum, certificates_of, divided, opb, saturated, veripb_refutes

from optpart import Cluster, Device, GraphBuilder, Instance, Schedule
from optpart.certificates.check import Allowance, Problem, Windows, read_json
from optpart.certificates.path_rows import PathProof
from optpart.certificates.proof_files import write
from optpart.interop.formats import native
from optpart.methods import registry
from optpart.testing.draw import draw_instance

SMALL = [
    path for path in certificates_of("path") if (path / "instance.json").stat().st_size < 30000
]


def windows(instance: Instance, scale: Fraction | int, claim: Fraction) -> Windows:
    problem = Problem(read_json(native.dumps(instance).encode(), "instance.json"), Allowance())
    return Windows(problem, Fraction(scale), claim)


def files(proof: PathProof) -> tuple[list[Sum], str]:
    """Return rows and a proof as they are written."""
    rows = [({f"x{x}": a for x, a in row.items()}, least) for row, least in proof.rows]
    lines = ["pseudo-Boolean proof version 2.0", f"f {len(rows)}"]
    lines += [f"pol {each}" for each in proof.sums]
    lines += ["output NONE", f"conclusion UNSAT : {len(rows) + len(proof.sums)}"]
    return rows, "\n".join([*lines, "end pseudo-Boolean proof"])


def refuted(instance: Instance, scale: Fraction | int, most: Fraction) -> Windows | None:
    """Return windows of the greatest claim, of a tenth of the makespan each, that paths prove."""
    for tenths in range(10, 0, -1):
        found = windows(instance, scale, most * tenths / 10)
        if not found.feasible:
            return found
    return None


def weaker(rows: list[Sum], at: int) -> list[Sum]:
    row, least = rows[at]
    return [*rows[:at], (row, least - 1), *rows[at + 1 :]]


def values(
    proof: PathProof, schedule: Schedule, scale: Fraction | int, members: object
) -> list[int]:
    """Return what a schedule makes of each variable."""
    units: list[list[int]] = members  # type: ignore[assignment]
    found = []
    for what, i, j in proof.variables:
        if what == "place":
            found.append(int(schedule.placement[units[i][0]] == j))
        else:
            found.append(int(schedule.start[i] * scale // 1 >= j))
    return found


def test_the_sums_of_two_rows() -> None:
    builder = GraphBuilder().vertex("a", 2, outputs=[3]).vertex("b", 4).edge("a", "b")
    instance = Instance(builder.build(), Cluster.of([Device("x")]), name="chain")
    proof = PathProof(windows(instance, 1, Fraction(6)))
    b_on_x, b_at_2, a_on_x = 1, 2, 3
    assert proof.variables == {
        ("place", 1, 0): b_on_x,
        ("start", 1, 2): b_at_2,
        ("place", 0, 0): a_on_x,
    }
    assert proof.rows == [
        ({b_on_x: -1, b_at_2: -1}, -1),  # starting at 2 or later, b does not end by 5
        ({a_on_x: -1, b_on_x: -1, b_at_2: 1}, -1),
        ({a_on_x: 1}, 1),
        ({b_on_x: 1}, 1),
    ]
    # b starts at 2 or later if it is on x; so it is not on x; but it is.
    assert proof.sums == ["2 3 +", "5 1 + s", "6 4 +"]
    assert veripb_refutes(*files(proof))


@pytest.mark.parametrize("path", SMALL, ids=lambda path: path.name)
def test_certificates_of_the_library(path: Path, tmp_path: Path) -> None:
    assert write(path, tmp_path / "proof") == ["formula.opb", "proof.pbp"]
    rows = opb((tmp_path / "proof" / "formula.opb").read_text())
    proof = (tmp_path / "proof" / "proof.pbp").read_text()
    assert veripb_refutes(rows, proof)
    for at in {0, len(rows) // 2, len(rows) - 1}:
        assert not veripb_refutes(weaker(rows, at), proof)


def test_every_row_is_needed_and_true_of_every_schedule() -> None:
    """The shortest schedule violates nothing but what says that all ends in time."""
    proven = 0
    for seed in range(60):
        instance = draw_instance(seed, vertices=(3, 7), far=False)
        best = registry.get("enumerate")(instance)
        if best.schedule is None or not best.makespan:
            continue
        for scale in (Fraction(60), Fraction(2)):  # of which many are not exact
            found = refuted(instance, scale, best.makespan)
            if found is None:
                continue
            proven += 1
            proof = PathProof(found)
            rows, text = files(proof)
            assert veripb_refutes(rows, text), seed
            assert not any(veripb_refutes(weaker(rows, at), text) for at in range(len(rows)))
            value = values(proof, best.schedule, scale, found.members)
            names = list(proof.variables)
            for row, least in proof.rows:
                if sum(a * value[x - 1] for x, a in row.items()) < least:
                    (_, unit, d), *late = [names[x - 1] for x in row]
                    t = late[0][2] if late else 0
                    of = [late[0][1]] if late else found.members[unit]
                    assert any(t + found.time(v, d) > found.horizon for v in of)
    assert proven == 116


def test_colocated_vertices_without_a_common_link() -> None:
    """A unit on one device, an input from another, a missing link, and a device too slow."""
    builder = GraphBuilder()
    for name, ops in (("a", 4), ("b", 2), ("c", 3)):
        builder.vertex(name, ops, outputs=[1])
    builder.edge("a", "b").edge("b", "c").colocate("a", "c")
    cluster = Cluster.of([Device("x"), Device("y"), Device("z", "1/10")], [[0, 0, 1]] * 3)
    instance = Instance(builder.build(), cluster, name="group")
    best = registry.get("enumerate")(instance)
    assert best.makespan == 9
    proof = PathProof(windows(instance, 1, Fraction(9)))
    assert veripb_refutes(*files(proof))


def test_what_has_no_device_is_refuted() -> None:
    builder = GraphBuilder().vertex("a", 1)
    devices = [Device("x"), Device("y")]
    instance = Instance(builder.build(), Cluster.of(devices), durations=[[None, None]], name="none")
    proof = PathProof(windows(instance, 1, Fraction(5)))
    rows, text = files(proof)
    assert len(rows) == 3
    assert veripb_refutes(rows, text)


def test_the_reader_saturates_and_divides_as_cutting_planes_do() -> None:
    # 3 a + 2 ¬b ≥ 2, that is 3 a − 2 b ≥ 0
    assert saturated(({"a": 3, "b": -2}, 0)) == ({"a": 2, "b": -2}, 0)
    assert divided(({"a": 3, "b": -2}, 0), 2) == ({"a": 2, "b": -1}, 0)
    assert saturated(({"a": 3}, 0)) == ({}, 0)


def test_a_wrong_proof_is_refused() -> None:
    instance = draw_instance(3, vertices=(5, 6), far=False)
    best = registry.get("enumerate")(instance)
    assert best.makespan is not None
    found = refuted(instance, 60, best.makespan)
    assert found is not None
    rows, text = files(PathProof(found))
    lines = text.splitlines()
    sums = [i for i, line in enumerate(lines) if line.startswith("pol")]
    for i in sums:  # each leaves out its first row
        short = lines[i].split()
        del short[1]
        if "+" in short:
            short.remove("+")
            wrong = "\n".join([*lines[:i], " ".join(short), *lines[i + 1 :]])
            assert not veripb_refutes(rows, wrong)
