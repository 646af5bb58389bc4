"""Certificates end to end: written completely or not at all, and accepted by the checker."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import optpart
from optpart import Cluster, GraphBuilder, Instance, Model, Schedule, load
from optpart.base import clock
from optpart.base.errors import InputError, OptpartError, UnsupportedError
from optpart.certificates import check
from optpart.certificates.arithmetic import load_record
from optpart.certificates.certify import UncertifiedError, certify, grid_scales, problem_of
from optpart.commands.certify import certify as certify_command
from optpart.commands.check import check as check_command
from optpart.interop.formats import native
from optpart.interop.formats.result import read_schedule, write
from optpart.problem.model import Communication
from optpart.solution.result import conclude
from optpart.solution.schedule import retime
from optpart.solution.verifier import verify
from optpart.study import library
from optpart.testing import brute_force
from optpart.testing.draw import random_instance

app = typer.Typer()
app.command()(certify_command)
app.command()(check_command)
runner = CliRunner()


def optimal(instance: Instance) -> Schedule | None:
    best = brute_force.optimum(instance)
    return None if best is None else retime(instance, best.placement, best.order)


def jobs(*ops: int, devices: int = 2) -> Instance:
    builder = GraphBuilder()
    for v, each in enumerate(ops):
        builder.vertex(f"v{v}", each)
    return Instance(builder.build(), Cluster.uniform(devices), name="jobs")


def test_optima_by_enumeration_are_certified(tmp_path: Path) -> None:
    rng = np.random.default_rng(31)
    tiers = set()
    for i in range(16):
        instance = random_instance(rng, 6, 3, memory=("none", "estimate")[i % 2])
        schedule = optimal(instance)
        if schedule is None:
            continue
        found = certify(instance, schedule, tmp_path / str(i))
        tiers.add(found.tier)
        said = check.check(str(tmp_path / str(i)))
        assert f"optimal makespan {schedule.makespan(instance)} (" in said
        again = read_schedule(tmp_path / str(i) / "schedule.json", instance)
        assert not verify(instance, again)
    assert {"path", "probing"} <= tiers


def test_what_is_not_optimal_is_not_certified(tmp_path: Path) -> None:
    rng = np.random.default_rng(32)
    for i in range(5):
        instance = random_instance(rng, 4, 2, rational=False)
        schedule = optimal(instance)
        if schedule is None or schedule.makespan(instance) == 0:
            continue
        scale = Fraction(1, 1) / 3
        late = [str(t + scale) for t in schedule.start.fractions()]
        worse = Schedule(
            schedule.placement,
            type(schedule.start).from_fractions(map(Fraction, late)),
            type(schedule.transfers).of(
                (int(t), int(d), s + scale, e + scale)
                for t, d, s, e in zip(
                    schedule.transfers.tensor,
                    schedule.transfers.target,
                    schedule.transfers.start.fractions(),
                    schedule.transfers.end.fractions(),
                    strict=True,
                )
            ),
        )
        assert not verify(instance, worse)
        with pytest.raises(UncertifiedError, match="shorter schedule"):
            certify(instance, worse, tmp_path / str(i))
    assert not list(tmp_path.iterdir())


def test_an_invalid_schedule_is_an_input_error(tmp_path: Path) -> None:
    instance = jobs(2, 2)
    schedule = retime(instance, [0, 0], [0, 1])
    together = Schedule(
        schedule.placement,
        type(schedule.start).from_fractions([Fraction(0)] * 2),
        schedule.transfers,
    )
    with pytest.raises(InputError, match="not valid"):
        certify(instance, together, tmp_path / "out")
    assert not list(tmp_path.iterdir())


OUTSIDE = {"refcount": Model(memory="refcount"), "2": Model("port", channels=2)}


@pytest.mark.parametrize(("name", "model"), OUTSIDE.items(), ids=list(OUTSIDE))
def test_unsupported_models_are_refused(name: str, model: Model, tmp_path: Path) -> None:
    instance = Instance(jobs(1).graph, Cluster.uniform(1), model)
    with pytest.raises(UnsupportedError, match=name):
        certify(instance, retime(instance, [0], [0]), tmp_path / "out")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("communication", ["sendrecv", "link", "port"])
def test_transfers_that_take_turns_are_certified_if_the_turns_do_not_matter(
    communication: Communication, tmp_path: Path
) -> None:
    builder = GraphBuilder().vertex("a", 2, outputs=[6], devices=["d0"])
    builder.vertex("b", 9, devices=["d1"]).edge("a", "b").vertex("c", 1, devices=["d2"])
    instance = Instance(
        builder.edge("a", "c").build(),
        Cluster.uniform(3, bandwidth=3),
        Model(communication, send_ops=Fraction(1, 2)),
    )
    schedule = retime(instance, [0, 1, 2], [0, (0, 1), (0, 2), 1, 2])
    certify(instance, schedule, tmp_path / "out")
    makespan = Fraction(27, 2) if communication == "sendrecv" else 13
    assert f"optimal makespan {makespan} (tier path" in check.check(str(tmp_path / "out"))
    late = retime(instance, [0, 1, 2], [0, (0, 2), (0, 1), 1, 2])
    if communication in ("sendrecv", "port"):
        with pytest.raises(UncertifiedError):
            certify(instance, late, tmp_path / "late")


@pytest.mark.parametrize("instance", [jobs(), jobs(0, 0)], ids=["nothing", "no time"])
def test_a_makespan_of_0_needs_no_proof(instance: Instance, tmp_path: Path) -> None:
    placement = [0] * instance.vertices
    schedule = retime(instance, placement, list(range(instance.vertices)))
    assert certify(instance, schedule, tmp_path / "out").tier == "none"
    assert "no schedule takes less than 0" in check.check(str(tmp_path / "out"))


def test_a_coarser_grid_can_prove_more_than_the_exact_one(tmp_path: Path) -> None:
    """Three jobs of 10 on two devices: 15 on average, but 20 with whole jobs."""
    instance = jobs(10, 10, 10)
    schedule = optimal(instance)
    assert schedule is not None
    found = certify(instance, schedule, tmp_path / "out")
    assert (found.tier, found.ticks_per_unit) == ("load", Fraction(1, 10))


def test_the_grids_are_coarse_first() -> None:
    builder = GraphBuilder().vertex("a", 20, outputs=[7]).vertex("b", 30).edge("a", "b")
    instance = Instance(builder.build(), Cluster.uniform(2, bandwidth=1))
    problem = check.Problem(check.read_json(native.dumps(instance).encode(), "instance"))
    assert grid_scales(problem, Fraction(50)) == [Fraction(1, 10), Fraction(1)]


def too_fine(devices: int) -> Instance:
    """Jobs of almost one unit."""
    builder = GraphBuilder()
    for v in range(3):
        builder.vertex(f"v{v}", Fraction(10**20 + v, 10**20))
    return Instance(builder.build(), Cluster.uniform(devices))


def test_arithmetic_is_exact_however_fine_the_times(tmp_path: Path) -> None:
    schedule = retime(too_fine(1), [0, 0, 0], [0, 1, 2])
    found = certify(too_fine(1), schedule, tmp_path / "out")
    assert (found.tier, found.ticks_per_unit) == ("one-machine", Fraction(10**20))


def test_a_rounded_grid_refutes_no_more_than_is_true(tmp_path: Path) -> None:
    schedule = retime(too_fine(2), [1, 0, 0], [0, 1, 2])  # the two longest jobs share a device
    with pytest.raises(UncertifiedError, match="shorter schedule"):
        certify(too_fine(2), schedule, tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_without_time_no_formula_is_written(tmp_path: Path) -> None:
    instance = library.load("kwok-ahmad-9-2")
    schedule = library.best_schedule(instance)
    assert schedule is not None
    with pytest.raises(UncertifiedError, match="in the time limit"):
        certify(instance, schedule, tmp_path / "out", seconds=0)
    assert not list(tmp_path.iterdir())


def test_what_is_compiled_on_the_way_takes_nothing_from_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clock, "now", lambda: 0.0)  # as while something is compiled
    instance = library.load("kwok-ahmad-9-2")
    schedule = library.best_schedule(instance)
    assert schedule is not None
    assert certify(instance, schedule, tmp_path / "out", seconds=1e-6).tier == "series"


def test_an_earlier_certificate_is_replaced_and_nothing_else_is(tmp_path: Path) -> None:
    instance = jobs(2, 2, 2)
    schedule = optimal(instance)
    assert schedule is not None
    out = tmp_path / "out"
    certify(instance, schedule, out)
    certify(instance, schedule, out)
    check.check(str(out))
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    (out / "notes.txt").write_text("x")
    with pytest.raises(InputError, match=r"notes.txt: was not written by optpart"):
        certify(instance, schedule, out)
    assert (out / "notes.txt").read_text() == "x"
    other = tmp_path / "other"
    other.mkdir()
    (other / "precious").write_text("x")
    with pytest.raises(InputError, match="precious: is there, and no manifest"):
        certify(instance, schedule, other)
    with pytest.raises(InputError, match="does not exist"):
        certify(instance, schedule, tmp_path / "no" / "where")
    assert (other / "precious").read_text() == "x"


def test_a_certificate_that_the_checker_rejects_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reject(directory: str) -> str:
        raise check.RejectedError("for a test")

    monkeypatch.setattr(check, "check", reject)
    instance = jobs(2, 2, 2)
    schedule = optimal(instance)
    assert schedule is not None
    with pytest.raises(OptpartError, match="for a test"):
        certify(instance, schedule, tmp_path / "out")
    assert not list(tmp_path.iterdir())


# --- commands ------------------------------------------------------------------------------------


def test_a_library_instance_is_certified_with_its_unchanged_file(tmp_path: Path) -> None:
    out = tmp_path / "out"
    ended = runner.invoke(app, ["certify", "lpt-2", "-o", str(out), "--json"])
    assert ended.exit_code == 0, ended.output
    assert json.loads(ended.stdout)["tier"] == "load"
    source = library.folder() / "classic" / "lpt-2.json"
    assert (out / "instance.json").read_bytes() == source.read_bytes()
    ended = runner.invoke(app, ["check", str(out), "--instance", str(source)])
    assert ended.exit_code == 0
    assert ended.stdout.startswith("ACCEPTED: 'lpt-2': optimal makespan 6 (tier load;")


def test_a_result_can_be_given(tmp_path: Path) -> None:
    instance = jobs(3, 3, 2, 2, 2)
    native.write(instance, tmp_path / "jobs.json")
    schedule = optimal(instance)
    assert schedule is not None
    certify(instance, schedule, tmp_path / "first")
    result = str(tmp_path / "first" / "schedule.json")
    arguments = [str(tmp_path / "jobs.json"), "-o", str(tmp_path / "out"), "--result", result]
    ended = runner.invoke(app, ["certify", *arguments])
    assert ended.exit_code == 0, ended.output
    assert "makespan 6 is optimal; proven by tier load" in ended.stdout
    ended = runner.invoke(app, ["check", str(tmp_path / "out"), "--json"])
    assert json.loads(ended.stdout)["certificates"][0]["accepted"] is True
    (tmp_path / "out" / "precedence.json").write_text("{}")
    ended = runner.invoke(app, ["check", str(tmp_path / "out")])
    assert "precedence.json, a second refutation" in ended.stdout
    ended = runner.invoke(app, ["check", str(tmp_path / "out"), str(tmp_path)])
    assert ended.exit_code == 1
    assert [line.split(":")[0] for line in ended.stdout.splitlines()] == ["ACCEPTED", "REJECTED"]


def test_a_rejection_exits_with_1(tmp_path: Path) -> None:
    ended = runner.invoke(app, ["check", str(tmp_path)])
    assert ended.exit_code == 1
    assert ended.stdout == "REJECTED: certificate.json cannot be read (No such file or directory)\n"


def test_a_folder_that_does_not_exist_is_wrong_usage(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing")
    with pytest.raises(InputError, match="missing: no such folder"):
        runner.invoke(app, ["check", missing], catch_exceptions=False)


def test_an_instance_without_a_schedule_exits_with_3(tmp_path: Path) -> None:
    builder = GraphBuilder().vertex("a", 1).vertex("b", 1).separate("a", "b")
    native.write(Instance(builder.build(), Cluster.uniform(1)), tmp_path / "none.json")
    out = tmp_path / "out"
    ended = runner.invoke(app, ["certify", str(tmp_path / "none.json"), "-o", str(out)])
    assert ended.exit_code == 3
    assert not out.exists()


def test_a_schedule_that_is_not_optimal_exits_with_4(tmp_path: Path) -> None:
    instance = jobs(2, 2)
    native.write(instance, tmp_path / "jobs.json")
    write(conclude(instance, "test", retime(instance, [0, 0], [0, 1])), tmp_path / "result.json")
    out, result = tmp_path / "out", str(tmp_path / "result.json")
    arguments = [str(tmp_path / "jobs.json"), "-o", str(out), "--result", result]
    ended = runner.invoke(app, ["certify", *arguments])
    assert ended.exit_code == 4
    assert not out.exists()


# --- sudden ends ---------------------------------------------------------------------------------

#: The command line, but the formula is one whose refutation takes for ever.
_ENDLESS = """
import itertools
import optpart.certificates.certify as module
from optpart.certificates import sat
from optpart.cli import main

def refute(variables, clauses, seconds):
    inside = lambda pigeon, hole: pigeon * 13 + hole + 1
    clauses = [[inside(p, h) for h in range(13)] for p in range(14)]
    for h, (p, q) in itertools.product(range(13), itertools.combinations(range(14), 2)):
        clauses.append([-inside(p, h), -inside(q, h)])
    return sat.refute(14 * 13, clauses, 1000)

module.refute = refute
main()
"""


def working_on(folder: Path) -> int:
    """Count the processes that have a folder among their arguments."""
    command = ["ps", "-ww", "-e", "-o", "args"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return sum(str(folder) in line for line in shown.splitlines())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_the_solver_and_its_files_end_with_the_command(
    number: signal.Signals, tmp_path: Path
) -> None:
    instance = library.load("small-20-4-ccr1-t-s14")  # has no proof but by a formula
    given = library.folder() / "certificates" / instance.name / "schedule.json"
    native.write(instance, tmp_path / "instance.json")
    place = tmp_path / "temporary"
    place.mkdir()
    command = ["certify", tmp_path / "instance.json", "--result", given, "-o", tmp_path / "out"]
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", _ENDLESS, *command, "--time-limit", "1000"],
        env={**os.environ, "TMPDIR": str(place)},
        stderr=subprocess.DEVNULL,
    )
    try:
        while not list(place.glob("optpart-*/proof")):  # the solver is at work
            assert process.poll() is None
            time.sleep(0.01)
        (folder,) = place.iterdir()
        assert working_on(folder) == 2  # solver and watchdog
        process.send_signal(number)
        process.wait()
    finally:
        process.kill()
        process.wait()
    while working_on(folder):
        time.sleep(0.01)
    assert not list(place.iterdir())
    assert {path.name for path in tmp_path.iterdir()} == {"instance.json", "temporary"}


def test_what_the_checker_refuses_is_refused_before_anything_is_written_or_solved(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    instance = load("heft-10")
    monkeypatch.setattr("optpart.certificates.check.MAX_CELLS", 29)
    monkeypatch.setattr(
        "optpart.certificates.certify.native.dumps", lambda _: pytest.fail("written")
    )
    with pytest.raises(UnsupportedError, match="30 pairs of a vertex and a device, of 29 at"):
        problem_of(instance)
    with pytest.raises(UnsupportedError, match="too large for a certificate"):
        optpart.certify(instance, tmp_path / "folder")


def test_no_load_is_tried_after_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "optpart.certificates.arithmetic.multipliers",
        lambda *_: pytest.fail("a program was solved"),
    )
    monkeypatch.setattr("optpart.certificates.arithmetic._sets", lambda _: [[0]])
    assert load_record(None, deadline=0.0) is None
