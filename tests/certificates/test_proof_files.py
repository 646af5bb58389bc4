"""Proofs for other checkers, read by small readers that know nothing of optpart."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
from commandline import Run
from proof_readers import certificates_of, opb, veripb_refutes

from optpart import Cluster, Device, GraphBuilder, Instance, Model
from optpart.base.errors import InputError
from optpart.certificates.certify import certify
from optpart.certificates.check import RejectedError
from optpart.certificates.proof_files import write
from optpart.methods import registry
from optpart.study import library


def dimacs(text: str) -> list[list[int]]:
    lines = [line for line in text.splitlines() if not line.startswith("c")]
    kind, form, variables, count = lines[0].split()
    clauses = [[int(x) for x in line.split()] for line in lines[1:]]
    assert (kind, form, int(count)) == ("p", "cnf", len(clauses))
    assert all(clause[-1] == 0 for clause in clauses)
    assert all(0 < abs(x) <= int(variables) for clause in clauses for x in clause[:-1])
    return [clause[:-1] for clause in clauses]


def lrat_refutes(clauses: list[list[int]], proof: str) -> bool:
    """Check a proof by reverse unit propagation, as its hints say."""
    known = dict(enumerate(clauses, 1))
    for line in proof.splitlines():
        name, *rest = line.split()
        if rest[0] == "d":
            for deleted in rest[1:-1]:
                del known[int(deleted)]
            continue
        zero = rest.index("0")
        lemma = [int(x) for x in rest[:zero]]
        false, conflict = set(lemma), False
        for hint in map(int, rest[zero + 1 : -1]):
            left = [x for x in known[hint] if x not in false]
            if not left:
                conflict = True
                break
            if len(left) > 1:
                return False
            false.add(-left[0])
        if not conflict:
            return False
        known[int(name)] = lemma
        if not lemma:
            return True
    return False


def smallest(tier: str) -> str:
    return str(certificates_of(tier)[0])


def exported(tier: str, place: Path) -> tuple[str, str]:
    formula, proof = write(smallest(tier), place)
    return (place / formula).read_text(), (place / proof).read_text()


def test_a_proof_of_clauses_in_dimacs_and_lrat(tmp_path: Path) -> None:
    formula, proof = exported("lrat", tmp_path / "proof")
    clauses = dimacs(formula)
    assert lrat_refutes(clauses, proof)
    lemma = next(line.split() for line in proof.splitlines() if line.split()[1] != "d")
    needed = int(lemma[-2]) - 1  # the clause of its conflict
    assert not lrat_refutes([*clauses[:needed], [1], *clauses[needed + 1 :]], proof)


def test_the_variables_have_the_meaning_that_the_comments_say(tmp_path: Path) -> None:
    """The optimal schedule, one tick too long, violates only what says that it ends in time."""
    formula, _ = exported("lrat", tmp_path / "proof")
    said = [line.split()[1:] for line in formula.splitlines() if line.startswith("c ")]
    starts = {int(x[1]): tuple(map(int, x[2:])) for x in said if x[0] == "start" and x[1] != "V"}
    instance = library.load(Path(smallest("lrat")).name)
    assert sorted(starts) == list(range(instance.vertices))
    thresholds = {tuple(sorted(clause)) for clause in dimacs(formula)}
    for low, high, first in starts.values():
        assert low <= high
        for t in range(low + 1, high):  # at T + 1 or later implies at T or later
            x = first + t - low - 1
            assert tuple(sorted((-(x + 1), x))) in thresholds


def test_a_sum_of_loads_in_opb(tmp_path: Path) -> None:
    formula, proof = exported("load", tmp_path / "proof")
    rows = opb(formula)
    assert veripb_refutes(rows, proof)
    used = int(proof.split("pol ")[1].split()[0])
    row, least = rows[used - 1]
    rows[used - 1] = row, least - 10**9
    assert not veripb_refutes(rows, proof)


def test_loads_of_random_instances(tmp_path: Path) -> None:
    """Equal and unlike devices, with memory that decides and without."""
    for memory in (None, 7):
        builder = GraphBuilder()
        for v in range(7):
            builder.vertex(f"v{v}", 3, memory=2)
        devices = [Device("a", 2, memory=memory), Device("b", 1)]
        model = Model(memory="none" if memory is None else "estimate")
        instance = Instance(builder.build(), Cluster.of(devices), model, name="jobs")
        best = registry.get("enumerate")(instance).schedule
        assert best is not None
        place = tmp_path / f"{memory}"
        if certify(instance, best, place).tier == "load":
            write(place, tmp_path / f"proof {memory}")
            files = [tmp_path / f"proof {memory}" / name for name in ("formula.opb", "proof.pbp")]
            assert veripb_refutes(opb(files[0].read_text()), files[1].read_text())


def test_one_machine_in_opb(tmp_path: Path) -> None:
    builder = GraphBuilder().vertex("first", 2, outputs=[0])
    for name, ops in (("a", 3), ("b", 4), ("c", "5/2")):
        builder.vertex(name, ops, devices=["x"], outputs=[0]).edge("first", name)
    builder.vertex("last", 1)
    for name in "abc":
        builder.edge(name, "last")
    instance = Instance(builder.build(), Cluster.of([Device("x"), Device("y")]), name="machine")
    best = registry.get("enumerate")(instance)
    assert best.makespan == Fraction(25, 2)
    assert best.schedule is not None
    assert certify(instance, best.schedule, tmp_path / "it").tier == "one-machine"
    write(tmp_path / "it", tmp_path / "proof")
    formula, proof = ((tmp_path / "proof" / x).read_text() for x in ("formula.opb", "proof.pbp"))
    assert veripb_refutes(opb(formula), proof)


def test_another_tier_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="tier probing"):
        write(smallest("probing"), tmp_path / "proof")
    assert not (tmp_path / "proof").exists()


def test_what_the_judge_rejects_is_not_exported(tmp_path: Path) -> None:
    source = Path(smallest("load"))
    for file in source.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes().replace(b'"load": [', b'"load": [9,'))
    with pytest.raises(RejectedError):
        write(tmp_path, tmp_path / "proof")


def test_the_command(run: Run, tmp_path: Path) -> None:
    done = run("check", smallest("lrat"), "--export", tmp_path / "proof")
    assert done.code == 0
    assert done.out.splitlines()[1] == f"formula.cnf and proof.lrat, in {tmp_path / 'proof'}"
    two = run("check", smallest("lrat"), smallest("load"), "--export", tmp_path / "x")
    assert two.code == 2


def test_a_bound_without_a_schedule(run: Run, tmp_path: Path) -> None:
    assert run("certify", "lpt-2", "--bound", "-o", tmp_path / "bound").code == 0
    done = run("check", tmp_path / "bound", "--export", tmp_path / "proof")
    assert done.code == 0, done.err
    formula, proof = ((tmp_path / "proof" / x).read_text() for x in ("formula.opb", "proof.pbp"))
    assert veripb_refutes(opb(formula), proof)
