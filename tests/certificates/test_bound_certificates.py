"""Certificates of bounds: what is claimed is true, and what is not proven is said or refused."""

from __future__ import annotations

import json
import math
import shutil
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from optpart import Cluster, GraphBuilder, Instance, Schedule, certify_bound
from optpart.base.errors import InputError
from optpart.certificates import check
from optpart.certificates.certify import UncertifiedError
from optpart.certificates.certify import certify_bound as write_bound
from optpart.certificates.check import RejectedError
from optpart.commands.certify import certify as certify_command
from optpart.commands.check import check as check_command
from optpart.interop.formats import native
from optpart.interop.formats.result import read_schedule, write
from optpart.solution.result import conclude
from optpart.solution.schedule import retime
from optpart.solution.verifier import verify
from optpart.testing import brute_force
from optpart.testing.draw import random_instance

app = typer.Typer()
app.command()(certify_command)
app.command()(check_command)
runner = CliRunner()


def chain() -> Instance:
    """Two vertices that share a device take 5; apart, they take 6."""
    builder = GraphBuilder().vertex("a", 2, outputs=[1]).vertex("b", 3).edge("a", "b")
    return Instance(builder.build(), Cluster.uniform(2, bandwidth=1), name="chain")


def late() -> Schedule:
    """A valid schedule of the chain, on both devices."""
    return retime(chain(), [0, 1], [0, (0, 1), 1])


def edited(folder: Path, **values: object) -> str:
    """Check a certificate after a change of its claims."""
    path = folder / "certificate.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))
    return check.check(str(folder))


def test_a_bound_needs_no_schedule(tmp_path: Path) -> None:
    found = write_bound(chain(), [Fraction(5)], tmp_path / "out")
    assert (found.bound, found.refutation.tier, found.missed) == (5, "path", {})
    assert "'chain': no schedule takes less than 5 (tier path" in check.check(str(tmp_path / "out"))
    assert not (tmp_path / "out" / "schedule.json").exists()


def test_with_a_schedule_the_gap_is_proven(tmp_path: Path) -> None:
    write_bound(chain(), [Fraction(5)], tmp_path / "out", schedule=late())
    said = check.check(str(tmp_path / "out"))
    assert "a schedule takes 6 and none less than 5, a gap of at most 16.67% (tier path" in said
    assert not verify(chain(), read_schedule(tmp_path / "out" / "schedule.json", chain()))


def test_the_greatest_bound_with_a_proof_is_certified_and_the_others_are_named(
    tmp_path: Path,
) -> None:
    proposed = [Fraction(1), Fraction(11, 2), Fraction(5)]  # no proof of 11/2 can exist
    found = write_bound(chain(), proposed, tmp_path / "out")
    assert found.bound == 5
    assert list(found.missed) == [Fraction(11, 2)]


def test_a_bound_that_does_not_hold_is_never_written(tmp_path: Path) -> None:
    with pytest.raises(UncertifiedError):
        write_bound(chain(), [Fraction(11, 2)], tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_bounds_up_to_the_optimum_are_certified_and_none_above_it(tmp_path: Path) -> None:
    rng = np.random.default_rng(41)
    tiers = set()
    for i in range(5):
        instance = random_instance(rng, 5, 3, memory=("none", "estimate")[i % 2])
        best = brute_force.optimum(instance)
        if best is None or not best.makespan:
            continue
        optimum = best.makespan
        proposed = [optimum * Fraction(1001, 1000), optimum, optimum / 2]
        found = write_bound(instance, proposed, tmp_path / str(i))
        tiers.add(found.refutation.tier)
        assert found.bound == optimum
        with pytest.raises(RejectedError):
            edited(tmp_path / str(i), bound=str(proposed[0]))
    assert len(tiers) > 1


def test_a_forged_schedule_is_rejected(tmp_path: Path) -> None:
    out = tmp_path / "out"
    write_bound(chain(), [Fraction(5)], out, schedule=late())
    with pytest.raises(RejectedError, match="the schedule takes 6, not 5"):
        edited(out, makespan="5")
    shutil.copy(out / "schedule.json", tmp_path / "kept.json")
    (out / "schedule.json").unlink()
    with pytest.raises(RejectedError, match=r"schedule\.json cannot be read"):
        edited(out, makespan="6")
    document = json.loads((tmp_path / "kept.json").read_text())
    document["schedule"]["start"]["b"] = "1"
    (out / "schedule.json").write_text(json.dumps(document))
    with pytest.raises(RejectedError):
        edited(out)


def test_a_certificate_of_a_bound_does_not_pass_for_one_of_an_optimum(tmp_path: Path) -> None:
    out = tmp_path / "out"
    write_bound(chain(), [Fraction(5)], out, schedule=late())
    with pytest.raises(RejectedError, match="unknown"):
        edited(out, format=check.FORMAT)


def test_an_invalid_schedule_is_an_input_error(tmp_path: Path) -> None:
    early = Schedule(
        late().placement, type(late().start).from_fractions([Fraction(0)] * 2), late().transfers
    )
    with pytest.raises(InputError, match="not valid"):
        write_bound(chain(), [Fraction(5)], tmp_path / "out", schedule=early)
    assert not list(tmp_path.iterdir())


def test_in_python_all_bounds_are_proposed(tmp_path: Path) -> None:
    found = certify_bound(chain(), tmp_path / "out", seconds=5)
    assert found.bound == 5


def test_the_command_certifies_a_bound_and_a_gap(tmp_path: Path) -> None:
    native.write(chain(), tmp_path / "chain.json")
    write(conclude(chain(), "test", late()), tmp_path / "result.json")
    bound = ["certify", str(tmp_path / "chain.json"), "--bound", "-o", str(tmp_path / "out")]
    ended = runner.invoke(app, bound)
    assert ended.exit_code == 0, ended.output
    assert "chain: no schedule takes less than 5; proven by tier path" in ended.stdout
    ended = runner.invoke(app, [*bound, "--result", str(tmp_path / "result.json"), "--json"])
    document = json.loads(ended.stdout)
    assert (document["bound"], document["makespan"]) == ("5", "6")
    assert document["gap"] == math.nextafter(1 / 6, 1)  # the nearest double is below
    ended = runner.invoke(app, ["check", str(tmp_path / "out")])
    assert ended.exit_code == 0
    assert "gap of at most 16.67%" in ended.stdout


def test_an_instance_without_a_schedule_exits_with_3(tmp_path: Path) -> None:
    builder = GraphBuilder().vertex("a", 1).vertex("b", 1).separate("a", "b")
    native.write(Instance(builder.build(), Cluster.uniform(1)), tmp_path / "none.json")
    out = tmp_path / "out"
    ended = runner.invoke(app, ["certify", str(tmp_path / "none.json"), "--bound", "-o", str(out)])
    assert ended.exit_code == 3
    assert not out.exists()
