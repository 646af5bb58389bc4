"""Sweeps over instances, methods and seeds, executed by an engine and kept in a store."""

from __future__ import annotations

import csv
import io
import json
import os
import sqlite3
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from commandline import Run as Command

from optpart import (
    Budget,
    Cluster,
    GraphBuilder,
    InputError,
    Instance,
    RationalArray,
    Result,
    Status,
    conclude,
    register,
)
from optpart.cli import main
from optpart.exact.enumeration import enumerate_all
from optpart.interop.generate.small import small
from optpart.lower_bounds.best import LowerBound
from optpart.methods import registry
from optpart.solution.job import Job
from optpart.solution.termination import Termination
from optpart.study import gap, library, paper
from optpart.study.engine import choose, local
from optpart.study.gap import Comparison, sweep
from optpart.study.report import gap_table
from optpart.study.report.console import plain_console
from optpart.study.run import Run, Watch, execute
from optpart.study.store import Store, read_rows
from optpart.study.stored import read_runs

BUDGET = Budget(seconds=5, workers=1)


@pytest.fixture
def instances() -> list[Instance]:
    return [library.load("laich-2.5"), library.load("heft-10")]


class Counting:
    """An engine that executes runs in this process, last first, and records them."""

    def __init__(self, stop_after: int = 10**6) -> None:
        self.done: list[tuple[str, str, int]] = []
        self.stop_after = stop_after

    def __call__(self, runs: Sequence[Run], watch: Watch | None) -> Iterator[tuple[Run, Result]]:
        for run in reversed(runs[-self.stop_after :]):
            self.done.append((run.instance.name, run.method, run.seed))
            yield run, execute(run)


def figures(comparisons: list[Comparison]) -> list[tuple[str, str, int, Fraction | None]]:
    return [(c.instance.name, r.method, r.seed, r.makespan) for c in comparisons for r in c.results]


def test_the_order_of_arrival_does_not_matter(instances: list[Instance]) -> None:
    names = ["heft", "hash-random+pct"]
    here = list(sweep(instances, names, budget=BUDGET, seeds=[5, 6]))
    elsewhere = list(sweep(instances, names, budget=BUDGET, seeds=[5, 6], engine=Counting()))
    assert figures(here) == figures(elsewhere)
    assert [c.reference.makespan for c in here] == [c.reference.makespan for c in elsewhere]
    heft = "laich-2.5", "heft"
    assert figures(here)[:2] == [(*heft, 5, Fraction(14)), (*heft, 6, Fraction(14))]


def test_the_run_for_the_reference_alone_has_one_seed(instances: list[Instance]) -> None:
    engine = Counting()
    list(sweep(instances[:1], ["heft"], budget=BUDGET, seeds=[5, 6], engine=engine))
    assert engine.done == [
        ("laich-2.5", "cpsat", 5), ("laich-2.5", "heft", 6), ("laich-2.5", "heft", 5),
    ]  # fmt: skip


def test_an_interrupted_sweep_says_so_and_resumes_without_repetition(
    instances: list[Instance], tmp_path: Path
) -> None:
    begun, resumed, again = Counting(stop_after=4), Counting(), Counting()
    with Store(tmp_path / "runs.db") as store:
        first, second, third = (
            list(sweep(instances, ["heft"], budget=BUDGET, seeds=[0, 1], engine=e, store=store))
            for e in (begun, resumed, again)
        )
    assert [(c.instance.name, c.interrupted) for c in first] == [
        ("laich-2.5", True), ("heft-10", False),
    ]  # fmt: skip
    assert len(begun.done) == 4
    assert len(resumed.done) == 2
    assert not {*begun.done} & {*resumed.done}
    assert again.done == []
    assert figures(second) == figures(third)
    assert not any(c.interrupted for c in second)


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ("'{'", "not JSON"),
        (
            "json_set(document, '$.lower_bound', '99')",
            "bound 99 contradicts its own schedule of 14",
        ),
        ("json_set(document, '$.seconds', -1)", "seed 0: seconds: no duration"),
        ("json_set(document, '$.makespan', 'x')", "seed 0: makespan: 'x' is not a number"),
    ],
)
def test_an_invalid_row_of_the_store_is_named_and_its_run_repeated(
    instances: list[Instance], tmp_path: Path, document: str, problem: str
) -> None:
    path, again = tmp_path / "runs.db", Counting()
    with Store(path) as store:
        list(sweep(instances, ["heft"], budget=BUDGET, store=store))
        with closing(sqlite3.connect(path)) as rows:
            mine = "method = 'heft' AND instance_sha256 = ?"
            change = f"UPDATE run SET document = {document} WHERE {mine}"
            rows.execute(change, (instances[0].sha256,))
            rows.commit()
        tampered = list(sweep(instances, ["heft"], budget=BUDGET, store=store, engine=again))
        mended = list(sweep(instances, ["heft"], budget=BUDGET, store=store))
    assert again.done == [("laich-2.5", "heft", 0)]
    assert figures(tampered) == figures(mended)
    (finding,) = tampered[0].findings
    assert finding.source.startswith(f"{path}: heft, seed 0")
    assert problem in str(finding)
    assert str(finding).endswith("; done again")
    assert not tampered[1].findings
    assert not any(comparison.findings for comparison in mended)


def test_a_stored_proof_that_a_schedule_contradicts_is_not_used(
    instances: list[Instance], tmp_path: Path
) -> None:
    """Only other rows can show that a bound without a schedule is wrong."""
    path = tmp_path / "runs.db"
    with Store(path) as store:
        list(sweep(instances[:1], ["heft"], budget=BUDGET, store=store))
        with closing(sqlite3.connect(path)) as rows:
            lie = "'$.status', 'INFEASIBLE', '$.schedule', NULL, '$.makespan', NULL"
            rows.execute(
                f"UPDATE run SET document = json_set(document, {lie}) WHERE method = 'cpsat'"
            )
            rows.commit()
        (comparison,) = sweep(instances[:1], ["heft"], budget=BUDGET, store=store)
    assert comparison.reference.makespan == 14
    assert [str(finding) for finding in comparison.findings] == [
        "laich-2.5: cpsat: INFEASIBLE contradicts a verified schedule of 14 by heft"
    ]


def test_a_refused_run_is_kept_and_refused_again(instances: list[Instance], tmp_path: Path) -> None:
    @register("raiser")
    def raiser(instance: Instance, **_: object) -> Result:
        raise ZeroDivisionError("oh")

    again = Counting()
    with Store(tmp_path / "runs.db") as store:
        (first,) = sweep(instances[:1], ["raiser"], budget=BUDGET, store=store)
        (second,) = sweep(instances[:1], ["raiser"], budget=BUDGET, store=store, engine=again)
    assert again.done == []
    assert [str(finding) for finding in first.findings] == [str(f) for f in second.findings]
    assert "raiser: failed: ZeroDivisionError: oh" in str(first.findings[0])


def test_an_interrupted_run_is_not_kept(instances: list[Instance], tmp_path: Path) -> None:
    @register("stopped")
    def stopped(instance: Instance, **_: object) -> Result:
        raise KeyboardInterrupt

    with Store(tmp_path / "runs.db") as store:
        comparisons = list(sweep(instances, ["stopped", "heft"], budget=BUDGET, store=store))
        kept = store.get(Run(instances[0], "stopped", 0, BUDGET))
    assert [c.interrupted for c in comparisons] == [True]
    assert kept is None


def test_a_run_that_did_not_fit_the_memory_available_is_not_kept(
    instances: list[Instance], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("optpart.problem.footprint.available_memory", lambda: 2**20)
    allowed = Budget(seconds=5, workers=1, memory=2**20)
    with Store(tmp_path / "runs.db") as store:
        for budget, kept in ((BUDGET, False), (allowed, True)):
            (comparison,) = sweep(instances[:1], ["heft"], budget=budget, store=store)
            (result,) = comparison.results
            assert result.termination is Termination.MEMORY_LIMIT
            assert "would need about" in result.reason
            assert (store.get(Run(instances[0], "heft", 0, budget)) is not None) == kept


def test_a_limit_of_memory_is_part_of_what_was_asked(run: Command, tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    for memory in ("1MiB", "4GiB", "4096MiB"):
        arguments = ("gap", "laich-2.5", "-m", "heft", "--memory-limit", memory, "--store", path)
        assert run(*arguments).code == 0
    rows = [row for row in read_rows(path) if row.key.method == "heft"]
    assert [row.key.memory for row in rows] == [2**20, 2**32]
    assert [json.loads(row.document)["termination"] for row in rows] == [
        "memory limit", "completed",
    ]  # fmt: skip


def test_the_runs_of_a_method_that_forgets_its_seed_are_distinguished(
    instances: list[Instance],
) -> None:
    @register("forgetful")
    def forgetful(instance: Instance, **_: object) -> Result:
        return registry.get("heft")(instance)

    (comparison,) = sweep(instances[:1], ["forgetful"], budget=BUDGET, seeds=[7, 8])
    assert [(r.method, r.seed) for r in comparison.results] == [("forgetful", 7), ("forgetful", 8)]


def test_over_several_seeds_tables_hold_means_and_deviations(instances: list[Instance]) -> None:
    comparisons = list(
        sweep(instances[1:], ["hash-random+pct", "heft"], budget=BUDGET, seeds=[0, 1, 2])
    )
    (random, heft) = csv.DictReader(io.StringIO(gap_table.to_csv(comparisons)))
    makespans = [r.makespan for r in comparisons[0].results if r.method == "hash-random+pct"]
    assert all(makespan is not None for makespan in makespans)
    mean = sum(makespan or 0 for makespan in makespans) / 3
    assert (random["seeds"], random["solved"]) == ("3", "3")
    assert Fraction(random["makespan_mean"]) == mean
    assert Fraction(random["makespan_best"]) == min(makespan or 0 for makespan in makespans)
    assert float(random["over_reference_mean"]) == pytest.approx(float(mean / 73 - 1))
    assert float(random["makespan_std"]) > 0
    assert (heft["makespan_mean"], heft["makespan_std"]) == ("80", "0.0")
    document = json.loads(json.dumps(gap_table.to_document(comparisons)))
    assert [(row["method"], row["seed"]) for row in document["results"][3:]] == [
        ("heft", 0), ("heft", 1), ("heft", 2),
    ]  # fmt: skip
    assert document["seeds"][1]["makespan_best"] == "80"


def test_seeds_without_a_schedule_are_counted_but_not_in_the_mean(
    instances: list[Instance],
) -> None:
    @register("moody")
    def moody(instance: Instance, *, seed: int = 0, **_: object) -> Result:
        if seed == 1:
            raise ValueError("not today")
        return registry.get("heft")(instance)

    (comparison,) = sweep(instances[1:], ["moody"], budget=BUDGET, seeds=[0, 1])
    (spread,) = comparison.spreads()
    assert len(spread.found) == 1
    assert spread.mean == 80
    assert spread.deviation is None
    assert "not today" in spread.reason


def test_engines_by_name() -> None:
    assert choose("local", 1) is local
    for name in ("spark", "dask:", "dask://", "local://here", ""):
        with pytest.raises(InputError, match="use local, dask, dask://"):
            choose(name, 1)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ("--engine spark", "--engine: no engine 'spark'; use local"),
        ("--store notes.txt", "notes.txt: exists and is not a store of 'optpart gap --store'; "),
        (
            "--store no-such-folder/runs.db",
            "no-such-folder/runs.db: cannot be written (No such file or directory)",
        ),
    ],
)
def test_wrong_usage_is_reported_in_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: str,
    problem: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.txt").write_text("no database, but long enough to be one " * 100)
    monkeypatch.setattr(sys, "argv", ["optpart", "gap", "heft-10", *arguments.split()])
    with pytest.raises(SystemExit, match="2"):
        main()
    shown = capsys.readouterr()
    assert shown.err.startswith(f"optpart: {problem}")
    assert (shown.err.count("\n"), shown.out) == (1, "")
    assert os.listdir(tmp_path) == ["notes.txt"]


def test_the_command_shows_means_over_seeds_and_keeps_its_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "runs.db"
    for _ in range(2):
        arguments = f"gap heft-10 -m heft -m hash-random+pct --seeds 3 --seed 4 --store {store}"
        monkeypatch.setattr(sys, "argv", ["optpart", *arguments.split()])
        with pytest.raises(SystemExit):
            main()
    first, second = capsys.readouterr().out.split("heft-10  10 vertices")[1:]
    assert "± std" in first
    rows = [
        [line.replace("claimed ", "").split() for line in text.splitlines()[3:]]
        for text in (first, second)
    ]
    assert rows[0] == rows[1]  # times included: nothing was done again
    assert "optimum 73 by cpsat, proven by cpsat" in first
    assert f"lower bound 73 claimed by {store} (cpsat, optpart " in second
    with closing(sqlite3.connect(store)) as rows:
        kept = rows.execute("SELECT method, seed FROM run ORDER BY method, seed").fetchall()
    methods = [("cpsat", 4), *(("hash-random+pct", s) for s in (4, 5, 6))]
    assert kept == [*methods, *(("heft", s) for s in (4, 5, 6))]


def test_a_proof_that_enumeration_contradicts_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """a and b are separated: makespan 1 + 2 + 1, which no other method has to find."""
    builder = GraphBuilder().vertex("a", 1, outputs=[2]).vertex("b", 1).edge("a", "b")
    graph = builder.separate("a", "b").build()
    instance = Instance(graph, Cluster.uniform(2, bandwidth=1), name="apart")

    def wrong(job: Job, watch: object) -> Result:
        """Return a schedule that waits too long, and claim that it is optimal."""
        best = enumerate_all(instance).schedule
        assert best is not None
        late = replace(best, start=RationalArray.of([0, 4]))
        return conclude(instance, "cpsat", late, bound=Fraction(5))

    monkeypatch.setattr("optpart.methods.registry.get", lambda name: wrong)
    row = execute(Run(instance, "cpsat", 0, Budget(5.0)))
    assert row.refused
    assert "cpsat has lower bound 5, enumerate has a schedule of makespan 4" in row.reason


def test_a_row_says_why_its_run_ended_and_has_a_float_beside_every_exact_number(
    instances: list[Instance],
) -> None:
    (comparison,) = sweep(instances[1:], ["heft"], budget=BUDGET)
    (row,) = csv.DictReader(io.StringIO(gap_table.to_csv([comparison])))
    assert row["termination"] == "completed"
    for name in ("reference", "bound", "makespan", "traffic"):
        assert float(row[f"{name}_float"]) == float(Fraction(row[name]))
    (result,) = comparison.results
    bound = Fraction(row["bound"])
    assert result.makespan is not None
    assert float(row["gap"]) == float((result.makespan - bound) / result.makespan)
    (of_seeds, _) = csv.DictReader(
        io.StringIO(gap_table.to_csv(list(sweep(instances, ["heft"], budget=BUDGET, seeds=[1, 2]))))
    )
    assert of_seeds["terminations"] == "completed 2"
    assert float(of_seeds["makespan_mean_float"]) == float(Fraction(of_seeds["makespan_mean"]))


def test_a_table_says_that_means_leave_out_runs_without_a_schedule(
    instances: list[Instance], capsys: pytest.CaptureFixture[str]
) -> None:
    comparisons = list(sweep(instances, ["heft"], budget=BUDGET))
    gap_table.print_summary(plain_console(), comparisons)
    assert "Means are over solved runs only" not in capsys.readouterr().out
    (result,) = comparisons[0].results
    unsolved = replace(result, status=Status.UNKNOWN, values={}, schedule=None)
    comparisons[0] = replace(comparisons[0], results=(unsolved,))
    gap_table.print_summary(plain_console(), comparisons)
    assert "Means are over solved runs only" in capsys.readouterr().out


def test_a_sweep_and_whoever_reads_its_store_have_the_same_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Read again, no bounds but cheap ones are computed; what the sweep has proven is claimed."""
    instance, asked = small(12, 3, seed=1), []
    found = execute(Run(instance, "heft", 0, BUDGET)).makespan
    assert found is not None
    small_bound, large_bound = found - Fraction(1, 2), found - Fraction(1, 9)

    def bound(*_: object, among: object = None, **__: object) -> LowerBound:
        asked.append(among)
        return LowerBound("crossings", small_bound if among else large_bound, 0.0)

    monkeypatch.setattr(gap, "best_bound", bound)
    path, budget = tmp_path / "runs.db", Budget(seconds=0, workers=1)
    with Store(path) as store:
        first, again = (
            next(sweep([instance], ["heft"], budget=budget, store=store)).reference
            for _ in range(2)
        )
    assert asked == [None, gap.CHEAP]
    reported = paper.Comparison(read_runs(path))
    assert {reported.bound(run) for run in reported.runs} == {first.bound} == {large_bound}
    assert (again.bound, again.claimed_bound) == (small_bound, large_bound)
