"""What a report is made of: results, instances and stores; a fault is one line."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest
from commandline import Run

import optpart as op
from optpart.problem.instance import Instance
from optpart.solution.claim import LIBRARY, Claim
from optpart.solution.result import Budget, Result, conclude
from optpart.solution.schedule import retime
from optpart.solution.termination import Termination
from optpart.study import library
from optpart.study.report.html.sources import read_subjects
from optpart.study.run import Run as StudyRun
from optpart.study.store import Store


def result(name: str = "heft-10", method: str = "given") -> Result:
    instance = op.load(name)
    placement = [0] * instance.vertices
    order = instance.graph.topological_order.tolist()
    return conclude(instance, method, retime(instance, placement, order), bound=None)


def proven() -> Result:
    """Return an optimal result, as a run that has proven it does."""
    instance = op.load("graham-1969-3")
    best = library.best_schedule(instance)
    return conclude(instance, "given", best, bound=Fraction(12), termination=Termination.PROVEN)


def own(name: str = "own") -> Instance:
    builder = op.GraphBuilder()
    builder.vertex("v", 1)
    return Instance(builder.build(), op.Cluster.uniform(1), name=name)


def assert_refused(run: Run, folder: Path, said: str, *arguments: object) -> None:
    target = folder / "report.html"
    outcome = run("report", *arguments, "-o", target)
    assert outcome.code == 2
    assert outcome.err.count("\n") == 1
    assert said in outcome.err
    assert not list(folder.glob("*report.html*"))


def test_a_result_of_the_library_needs_no_instance(run: Run, tmp_path: Path) -> None:
    op.save(result(), tmp_path / "r.json")
    outcome = run("report", tmp_path / "r.json", "-o", tmp_path / "r.html")
    assert outcome.code == 0
    assert "heft-10" in (tmp_path / "r.html").read_text()


def test_an_instance_of_the_library_comes_with_its_best_schedule() -> None:
    (subject,) = read_subjects(["heft-10"], op.load)
    assert [entry.result.makespan for entry in subject.entries] == [73]
    best = subject.entries[0].result
    assert (best.status, best.lower_bound) == ("FEASIBLE", None)
    assert best.claim == Claim(LIBRARY, {"makespan": Fraction(73)})


def test_the_bound_of_a_file_is_claimed_by_it(tmp_path: Path) -> None:
    op.save(proven(), tmp_path / "r.json")
    (subject,) = read_subjects([tmp_path / "r.json"], op.load)
    (entry,) = subject.entries
    assert (entry.result.status, entry.result.termination) == ("FEASIBLE", None)
    assert str(entry.result.claim) == f"claimed by {tmp_path / 'r.json'} (given)"


def test_an_accepted_certificate_makes_a_claim_a_proof(tmp_path: Path) -> None:
    op.save(proven(), tmp_path / "r.json")
    certificate = library.folder() / "certificates" / "graham-1969-3"
    for options, status in (({}, "FEASIBLE"), ({"certificate": certificate}, "OPTIMAL")):
        op.write_report(tmp_path / "r.json", tmp_path / "r.html", **options)
        assert f'"status":"{status}"' in (tmp_path / "r.html").read_text()


def test_a_result_that_found_and_proved_says_by_which_members(tmp_path: Path) -> None:
    op.save(result(), tmp_path / "r.json")
    document = json.loads((tmp_path / "r.json").read_text())
    document["bound_by"] = "cpsat"
    (tmp_path / "r.json").write_text(json.dumps(document))
    (subject,) = read_subjects([tmp_path / "r.json"], op.load)
    assert subject.entries[0].result.bound_by == "cpsat"


def test_of_a_store_the_runs_on_the_instance_count(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with Store(path) as store:
        for name in ("heft-10", "kwok-ahmad-9-2"):
            found = result(name)
            store.add(StudyRun(found.instance, "given", 0, Budget()), found)
    (subject,) = read_subjects([path, "heft-10"], op.load)
    assert [entry.result.instance.name for entry in subject.entries] == ["heft-10"]
    assert_refused(run, tmp_path, "has no run on laich-2.5", path, "laich-2.5")


def test_a_store_of_several_instances_gives_a_report_on_each(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with Store(path) as store:
        for name in ("kwok-ahmad-9-2", "heft-10"):
            found = result(name)
            store.add(StudyRun(found.instance, "given", 0, Budget()), found)
    subjects = read_subjects([path], op.load)
    assert [subject.instance.name for subject in subjects] == ["heft-10", "kwok-ahmad-9-2"]
    assert all(len(subject.entries) == 1 for subject in subjects)
    certificate = ("--certificate", "somewhere")
    assert_refused(
        run, tmp_path, "is of one instance, but the report of several", path, *certificate
    )
    with Store(path) as store:
        found = conclude(own(), "given", retime(own(), [0], [0]))
        store.add(StudyRun(found.instance, "given", 0, Budget()), found)
    assert_refused(run, tmp_path, "runs on instances that are not in the library (own)", path)
    op.save(own(), tmp_path / "own.json")
    subjects = read_subjects([path, "heft-10", tmp_path / "own.json"], op.load)
    assert [subject.instance.name for subject in subjects] == ["heft-10", "own"]


def test_strategies_and_plans_are_refused_with_what_to_do(run: Run, tmp_path: Path) -> None:
    for kind, said in (
        ("strategy", "optpart strategy plot"),
        ("pipeline", "--objective bottleneck"),
    ):
        file = tmp_path / "file.json"
        file.write_text(json.dumps({"format": f"optpart-{kind}/1"}))
        assert_refused(run, tmp_path, said, file)


def test_results_of_several_instances_are_refused(run: Run, tmp_path: Path) -> None:
    op.save(result(), tmp_path / "a.json")
    op.save(result("kwok-ahmad-9-2"), tmp_path / "b.json")
    assert_refused(run, tmp_path, "one instance", tmp_path / "a.json", tmp_path / "b.json")
    assert_refused(run, tmp_path, "is a result of heft-10", tmp_path / "a.json", "kwok-ahmad-9-2")
    assert_refused(run, tmp_path, "another instance", "heft-10", "kwok-ahmad-9-2")


def test_a_result_of_an_instance_out_of_the_library_needs_it(run: Run, tmp_path: Path) -> None:
    found = conclude(own(), "given", retime(own(), [0], [0]))
    op.save(found, tmp_path / "r.json")
    op.save(own(), tmp_path / "i.json")
    assert_refused(run, tmp_path, "give the file of the instance", tmp_path / "r.json")
    args = (tmp_path / "r.json", tmp_path / "i.json")
    assert run("report", *args, "-o", tmp_path / "r.html").code == 0


def test_what_is_no_result_is_refused(run: Run, tmp_path: Path) -> None:
    (tmp_path / "text.json").write_text("{")
    assert_refused(run, tmp_path, "text.json", tmp_path / "text.json")
    assert_refused(run, tmp_path, "no such file", tmp_path / "missing.json")
    op.save(result(), tmp_path / "r.json")
    document = json.loads((tmp_path / "r.json").read_text())
    (tmp_path / "r.json").write_text(json.dumps(document | {"makespan": "1"}))
    assert_refused(run, tmp_path, "makespan", tmp_path / "r.json")


def test_a_place_that_cannot_be_written_is_refused_first(run: Run, tmp_path: Path) -> None:
    outcome = run("report", "heft-10", "-o", tmp_path / "missing" / "r.html")
    assert outcome.code == 2
    assert "cannot be written" in outcome.err


def test_a_certificate_is_checked_and_must_be_of_the_instance(run: Run, tmp_path: Path) -> None:
    from optpart.study.library import folder

    certificate = folder() / "certificates" / "graham-1969-3"
    option = ("--certificate", certificate)
    assert_refused(run, tmp_path, "certifies another instance", "heft-10", *option)
    op.write_report("graham-1969-3", tmp_path / "r.html", certificate=certificate)
    assert "Certificate checked" in (tmp_path / "r.html").read_text()
    (tmp_path / "empty").mkdir()
    assert_refused(run, tmp_path, "is rejected", "heft-10", "--certificate", tmp_path / "empty")


@pytest.mark.parametrize("method", ["one", "two"])
def test_results_given_in_python_keep_their_order(method: str) -> None:
    several = [result(method="one"), result(method="two")]
    (subject,) = read_subjects(several, op.load)
    found = [entry.result.method for entry in subject.entries]
    assert found.index(method) == [one.method for one in several].index(method)
