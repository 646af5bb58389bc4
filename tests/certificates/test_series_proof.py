"""Refutations in series as sums of rows: read by a reader of their own, and true of schedules."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from proof_readers import Sum, certificates_of, opb, row_of, veripb_refutes
from series_draws import accepted, blocks, drawn_prices, problem_of, record_of

from optpart import Cluster, Device, GraphBuilder, Instance, Model, Schedule
from optpart.base.errors import InputError
from optpart.certificates import cutting_planes, series_parts, series_proof
from optpart.certificates.certify import grid_scales
from optpart.certificates.check import Series, Windows
from optpart.certificates.cutting_planes import text
from optpart.certificates.proof_files import write
from optpart.certificates.series_proof import SeriesProof, refutation
from optpart.certificates.series_rows import SeriesRows
from optpart.methods import registry
from optpart.testing.draw import draw_instance

#: Potentials without memory, and with labels of up to three kinds of memory.
SMALL = ["squeezenet-workstation-free", "vgg-19-edge-tight"]

CERTIFICATES = {path.name: path for path in certificates_of("series")}


def files(proof: SeriesProof) -> tuple[list[Sum], str]:
    """Return rows and a proof as they are written."""
    script = proof.rows.script
    rows = [row_of(text(row).removesuffix(" ;")) for row in script.rows]
    lines = ["pseudo-Boolean proof version 2.0", f"f {len(rows)}", *script.lines]
    lines += ["output NONE", f"conclusion UNSAT : {len(rows) + len(script.lines)}"]
    return rows, "\n".join([*lines, "end pseudo-Boolean proof"])


def violated(rows: SeriesRows, windows: Windows, schedule: Schedule, ticks: Fraction) -> int:
    """Return how many rows a schedule does not satisfy."""
    problem, value = windows.problem, dict[str, int]()
    start = [math.floor(t * ticks) for t in schedule.start]
    when = [
        (schedule.start[v], schedule.start[v] + (problem.run[v][d] or 0), problem.order.index(v))
        for v, d in enumerate(schedule.placement)
    ]
    for said in rows.said:
        what, i, j, x = said.split()
        a, b = int(i), int(j)
        if what == "place":
            value[x] = int(schedule.placement[windows.members[a][0]] == b)
        else:
            value[x] = start[a] >> b & 1 if what == "bit" else int(when[a] < when[b])
    formula = [row_of(text(row).removesuffix(" ;")) for row in rows.script.rows]
    return sum(sum(a * value[x] for x, a in row.items()) < least for row, least in formula)


# --- certificates -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", SMALL)
def test_certificates_of_the_library(name: str, tmp_path: Path) -> None:
    assert write(CERTIFICATES[name], tmp_path / "proof") == ["formula.opb", "proof.pbp"]
    rows = opb((tmp_path / "proof" / "formula.opb").read_text())
    proof = (tmp_path / "proof" / "proof.pbp").read_text()
    assert veripb_refutes(rows, proof)
    lines = proof.splitlines()
    rng = np.random.default_rng(7)
    refused = Counter[str]()
    for at in rng.integers(2, len(lines) - 3, 6):  # a line less
        wrong = "\n".join([*lines[:at], "pol 1", *lines[at + 1 :]])
        refused["line"] += not veripb_refutes(rows, wrong)
    for at in rng.integers(0, len(rows), 6):  # a row that says nothing
        refused["row"] += not veripb_refutes([*rows[:at], ({}, 0), *rows[at + 1 :]], proof)
    for at in [i for i, line in enumerate(lines) if line.startswith("red")][:40:8]:
        definition, _, witness = lines[at].partition(" ; ")
        terms, _, least = definition.partition(" >= ")
        wrong = f"{terms} >= {int(least) + 1} ; {witness}"
        assert not veripb_refutes(rows, "\n".join([*lines[:at], wrong, *lines[at + 1 :]]))
    assert refused["line"] >= 3
    assert refused["row"] >= 2


@pytest.mark.parametrize(
    ("module", "limit", "what"),
    [
        (series_parts, "WAYS", "a part of 1 vertices has too many ways to be placed"),
        (series_parts, "DEPTH", "a part of 1 vertices has too many ways to be placed"),
        (series_parts, "OUTCOMES", "a part has more than 2 outcomes"),
        (series_proof, "LABELS", "a cut has more than 2 labels"),
        (cutting_planes, "BYTES", "it has more than 2 bytes"),
    ],
)
def test_what_is_too_large_is_refused_in_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, module: object, limit: str, what: str
) -> None:
    monkeypatch.setattr(module, limit, 0 if limit == "DEPTH" else 2)
    with pytest.raises(InputError, match=f"the proof would be too large: {what}"):
        write(CERTIFICATES["vgg-19-edge-tight"], tmp_path / "proof")
    assert not (tmp_path / "proof").exists()


# --- random draws -----------------------------------------------------------------------------


def judge(instance: Instance, rng: np.random.Generator, coarse: int, seen: Counter[str]) -> None:
    """Prove what the judge accepts, and nothing else; the best schedule satisfies the rows."""
    best = registry.get("enumerate")(instance)
    if best.schedule is None or not best.makespan:
        return
    problem = problem_of(instance)
    ticks = grid_scales(problem, best.makespan)[-1] / coarse
    windows = Windows(problem, ticks, best.makespan)
    later = Windows(problem, ticks, best.makespan + 1 / ticks)
    for joined in (False, True):
        rows = SeriesRows(later, joined=joined)
        assert not violated(rows, later, best.schedule, ticks)
    free = [Fraction(0)] * len(problem.devices)
    later_record = record_of(later, free, drawn_prices(rng, later))
    assert refutation(later, later_record) is None
    if not windows.feasible:
        return
    record = record_of(windows, free, *(drawn_prices(rng, windows) for _ in range(2)))
    proof = refutation(windows, record)
    assert (proof is not None) == accepted(windows, record)
    if proof is not None:
        assert veripb_refutes(*files(proof))
        series = Series(windows)
        seen["proofs"] += 1
        seen["parts"] += len(series.parts) > 2
        seen["joined"] += len(proof.rows.parts) < len(series.parts)
        seen["labels"] += bool(proof.counts)
        seen["memory"] += bool(proof.rows.limited)
        seen["orders"] += bool(proof.rows.first)
        seen["rules"] += any(series.rule)


@pytest.mark.parametrize("memory", ["none", "estimate"])
def test_blocks_in_a_row_are_proven(memory: str) -> None:
    rng = np.random.default_rng(66)
    seen: Counter[str] = Counter()
    for i in range(28):
        judge(blocks(rng, memory), rng, 1 + i % 2, seen)
    assert min(seen[x] for x in ("proofs", "parts", "orders", "rules")) > 5
    assert seen["joined"]
    assert memory == "none" or min(seen["labels"], seen["memory"]) > 2


@pytest.mark.parametrize("memory", ["none", "estimate"])
def test_instances_of_every_kind_are_proven(memory: str) -> None:
    rng = np.random.default_rng(62)
    seen: Counter[str] = Counter()
    for seed in range(30):
        instance = draw_instance(seed, "delay", memory, vertices=(3, 5), far=False)  # type: ignore[arg-type]
        judge(instance, rng, 1 + seed % 2, seen)
    assert seen["proofs"] > 5


# --- small cases ------------------------------------------------------------------------------


def test_the_rows_of_a_chain() -> None:
    builder = GraphBuilder().vertex("a", 2, outputs=[3]).vertex("b", 4).edge("a", "b")
    instance = Instance(builder.build(), Cluster.of([Device("x"), Device("y", 2)], 1), name="chain")
    windows = Windows(problem_of(instance), Fraction(1), Fraction(3))
    assert windows.horizon == 2
    rows = SeriesRows(Windows(problem_of(instance), Fraction(1), Fraction(4)))
    assert rows.said == [
        *("place 0 0 x1", "place 0 1 x2", "place 1 0 x3", "place 1 1 x4"),
        *("bit 0 0 x5", "bit 0 1 x6", "bit 1 0 x7", "bit 1 1 x8"),
    ]
    end_of_a = {1: -2, 2: -1}
    assert rows.script.rows == [
        ({1: 1, 2: 1}, 1),
        ({3: 1, 4: 1}, 1),
        ({1: -1, 2: -1}, -1),
        ({3: -1, 4: -1}, -1),
        ({5: -1, 6: -2, **end_of_a, 7: 1, 8: 2}, 0),
        ({5: -1, 6: -2, 1: -2 - 3, 2: -1, 7: 1, 8: 2, 4: -3}, 3 - 6),
        ({5: -1, 6: -2, 1: -2, 2: -1 - 3, 7: 1, 8: 2, 3: -3}, 3 - 6),
        ({7: -1, 8: -2, 3: -4, 4: -2}, -3),
    ]


def test_colocated_cuts() -> None:
    """Their one place is named by labels and by outcomes; half of the memory fits on each."""
    builder = GraphBuilder()
    for name in "abcd":
        builder.vertex(name, 6, memory=2, outputs=[0])
    builder.edge("a", "b").edge("b", "c").edge("c", "d").colocate("b", "c")
    devices = [Device("fast", 3, memory=5), Device("slow", 1)]
    model = Model(memory="estimate")
    instance = Instance(builder.build(), Cluster.of(devices, 1), model, name="chain")
    best = registry.get("enumerate")(instance)
    assert best.makespan == 16
    windows = Windows(problem_of(instance), Fraction(1), best.makespan)
    proof = SeriesProof(windows, record_of(windows))
    assert proof.counts
    assert veripb_refutes(*files(proof))


def test_the_reader_refuses_variables_that_do_not_stand_for_their_row() -> None:
    rows: list[Sum] = [({"x1": 1, "x2": 1}, 1), ({"x1": -1, "x2": -1}, 0)]
    forth = "red +1 x1 +1 x2 -2 x3 >= 0 ; x3 -> 0"
    back = "red -1 x1 -1 x2 +1 x3 >= -1 ; x3 -> 1"

    def read(*lines: str) -> bool:
        """Return whether the reader comes to the last line, a contradiction."""
        body = [f"f {len(rows)}", *lines, "pol 1 2 +", "output NONE"]
        end = [f"conclusion UNSAT : {3 + len(lines)}", "end pseudo-Boolean proof"]
        return veripb_refutes(rows, "\n".join(["pseudo-Boolean proof version 2.0", *body, *end]))

    assert read(forth, back)
    assert read(back, forth)
    assert not read("red +1 x1 -1 x2 >= 0 ; x2 -> 0")  # of the formula
    assert not read("pol x3", forth)  # used before
    assert not read(forth.replace("-> 0", "-> 1"))
    assert not read(forth.replace(">= 0", ">= 1"))
    assert not read(forth, back.replace(">= -1", ">= 0"))  # no value if x1 + x2 = 1
    assert not read(forth, "pol 1", back)
