"""Comparisons of stored runs: nothing that is unsolved or missing leaves a mean silently."""

from __future__ import annotations

import csv
import io
import math
import sqlite3
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from optpart import Budget, InputError
from optpart.interop.generate.families import fft
from optpart.solution.result import Status
from optpart.study.paper import NOT_STATED, Comparison, Row
from optpart.study.report.paper.tables import runs_csv
from optpart.study.run import Run, execute
from optpart.study.store import Store
from optpart.study.stored import StoredRun, read_runs


def run(
    instance: str, method: str, makespan: int | None, bound: int | None = None, seed: int = 0
) -> StoredRun:
    return StoredRun(
        instance=instance,
        sha256=instance,
        method=method,
        seed=seed,
        limit=10.0,
        workers=1,
        deterministic=0.0,
        optpart="1",
        status=Status.UNKNOWN if makespan is None else Status.FEASIBLE,
        makespan=None if makespan is None else Fraction(makespan),
        lower_bound=None if bound is None else Fraction(bound),
        seconds=1.0,
        vertices=None if makespan is None else 7,
        refused=False,
        trace=(),
        is_verified=True,
    )


def only(comparison: Comparison, method: str) -> Row:
    (row,) = [row for row in comparison.rows() if row.method == method]
    return row


class TestMeans:
    def test_are_over_instances_of_the_ratio_to_the_least_makespan(self) -> None:
        runs = [run("x", "a", 10), run("x", "b", 15), run("y", "a", 30), run("y", "b", 20)]
        row = only(Comparison(runs), "a")
        assert (row.mean, row.median) == (Fraction(5, 4), 1.25)
        assert row.low is not None
        assert row.high is not None
        assert row.low < 1.25 < row.high

    def test_an_instance_counts_once_however_many_seeds_it_has(self) -> None:
        runs = [run("x", "a", 10), run("x", "a", 20, seed=1), run("y", "a", 5)]
        assert only(Comparison(runs), "a").mean == (Fraction(3, 2) + 1) / 2

    def test_there_is_none_if_a_run_is_unsolved(self) -> None:
        runs = [run("x", "a", None), run("x", "b", 4), run("y", "a", 6), run("y", "b", 3)]
        row = only(Comparison(runs), "a")
        assert (row.mean, row.low, row.unsolved, row.runs) == (None, None, 1, 2)
        assert row.mean_of_solved == 2
        assert row.median == math.inf

    def test_an_instance_is_unsolved_if_any_seed_is(self) -> None:
        runs = [run("x", "a", 4), run("x", "a", None, seed=1)]
        assert only(Comparison(runs), "a").mean is None

    def test_there_is_none_if_a_method_was_not_run_everywhere(self) -> None:
        runs = [run("x", "a", 4), run("x", "b", 4), run("y", "b", 4)]
        row = only(Comparison(runs), "a")
        assert (row.mean, row.median, row.missing) == (None, None, 1)

    def test_of_one_instance_have_no_interval(self) -> None:
        assert only(Comparison([run("x", "a", 4)]), "a").low is None


class TestGroups:
    RUNS = (
        run("fft-m4-d3-ccr0.5-s0", "a", 4),
        run("fft-m4-d3-ccr10-s0", "a", 4),
        run("fft-m4-d3-ccr1e-06-s0", "a", 4),
    )

    def test_are_by_numbers_in_the_names_of_instances(self) -> None:
        assert Comparison(self.RUNS, ["ccr"]).groups == [("1e-06",), ("0.5",), ("10",)]

    def test_n_is_the_number_of_vertices_also_of_unsolved_runs(self) -> None:
        runs = [run("x", "a", 4), run("x", "b", None)]
        assert Comparison(runs, ["n"]).groups == [("7",)]

    def test_what_is_not_stated_has_a_group_and_a_note(self) -> None:
        comparison = Comparison([*self.RUNS, run("other", "a", 4)], ["ccr"])
        assert comparison.groups[-1] == (NOT_STATED,)
        assert comparison.notes == ["Group –: 1 of 4 runs do not state ccr."]

    def test_a_factor_that_no_run_states_is_refused(self) -> None:
        with pytest.raises(InputError, match="--by size: no run states it"):
            Comparison(self.RUNS, ["size"])

    def test_runs_that_differ_in_their_limit_are_told_apart_or_refused(self) -> None:
        runs = [run("x", "a", 4), replace(run("x", "a", 4), limit=60.0)]
        with pytest.raises(InputError, match="add --by seconds"):
            Comparison(runs)
        assert Comparison(runs, ["seconds"]).groups == [("10",), ("60",)]


class TestWhatIsLeftOut:
    def test_infeasible_instances_are_named(self) -> None:
        infeasible = replace(run("x", "a", None), status=Status.INFEASIBLE)
        comparison = Comparison([infeasible, run("y", "a", 4)])
        assert comparison.notes == ["Instances that are proven infeasible are left out, 1: x."]
        assert only(comparison, "a").runs == 1

    def test_instances_without_length_are_named(self) -> None:
        comparison = Comparison([run("x", "a", 0), run("x", "b", 3), run("y", "a", 4)])
        assert "have a schedule of length 0" in comparison.notes[0]

    def test_nothing_left_is_an_error(self) -> None:
        with pytest.raises(InputError, match="no instance is left"):
            Comparison([run("x", "a", 0)])
        with pytest.raises(InputError, match="no runs"):
            Comparison([])


@pytest.mark.parametrize("false", [run("x", "b", None, bound=5), run("x", "b", None)])
def test_false_claims_are_refused(false: StoredRun) -> None:
    if false.lower_bound is None:
        false = replace(false, status=Status.INFEASIBLE)
    with pytest.raises(InputError, match="a has a schedule of 4"):
        Comparison([run("x", "a", 4), false])


def test_the_table_of_runs_states_the_unit_of_their_times() -> None:
    runs = [replace(run("a", "m", 6), time_unit="ns"), run("b", "m", 6)]
    rows = csv.DictReader(io.StringIO(runs_csv(Comparison(runs))))
    assert [row["time_unit"] for row in rows] == ["ns", ""]


def test_optimal_is_what_any_run_proves() -> None:
    comparison = Comparison([run("x", "a", 4), run("x", "b", 5, bound=4)])
    assert (only(comparison, "a").optimal, only(comparison, "b").optimal) == (1, 0)


def test_integrals_of_gaps_end_at_the_limit() -> None:
    """5 from second 2, 4 from second 6; bound 2 from second 4."""
    trace = ((2.0, Fraction(5), None), (4.0, Fraction(5), Fraction(2)), (6.0, Fraction(4), None))
    traced = replace(run("x", "a", 4), trace=trace, seconds=9.0)
    primal, dual = Comparison([traced]).integrals(traced)
    assert primal == pytest.approx(2 + 4 * (1 - 4 / 5))
    assert dual == pytest.approx(4 + 6 * (1 - 2 / 4))
    unsolved = run("x", "b", None)
    assert Comparison([traced, unsolved]).integrals(unsolved) == (10, 10)


def test_pairs_use_the_instances_that_both_were_run_on() -> None:
    runs = [run("x", "a", 4), run("x", "b", 5), run("y", "a", 4), run("z", "a", 4)]
    runs += [run("z", "b", None)]
    (pair,) = Comparison(runs).pairs()
    assert (pair.first_better, pair.second_better, pair.equal) == (2, 0, 0)
    assert Comparison(runs).common() == [((), "x"), ((), "z")]


class TestReading:
    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        path = tmp_path / "runs.db"
        one = Run(fft(4), "heft", 0, Budget(5, workers=1))
        with Store(path) as store:
            store.add(one, execute(one))
        return path

    def test_a_store_gives_its_runs(self, path: Path) -> None:
        (found,) = read_runs(path)
        assert (found.instance, found.method, found.limit) == (fft(4).name, "heft", 5)
        assert (found.factor("n"), found.factor("ccr"), found.factor("p")) == ("15", "1", None)
        assert found.makespan is not None

    def test_a_store_may_be_read_only(self, path: Path) -> None:
        before = path.read_bytes()
        path.chmod(0o444)
        assert len(read_runs(path)) == 1
        assert path.read_bytes() == before

    def test_another_file_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "text").write_text("no store")
        with pytest.raises(InputError, match="cannot be read as a store"):
            read_runs(tmp_path / "text")
        with pytest.raises(InputError, match="no such file"):
            read_runs(tmp_path / "missing.db")
        assert not (tmp_path / "missing.db").exists()
        other = sqlite3.connect(tmp_path / "other.db")
        other.execute("CREATE TABLE run (x)")
        other.close()
        with pytest.raises(InputError, match="not a store"):
            read_runs(tmp_path / "other.db")

    @pytest.mark.parametrize("document", ["{}", "no JSON", "[]", '{"format": "optpart-result/1"}'])
    def test_a_damaged_row_is_named(self, path: Path, document: str) -> None:
        database = sqlite3.connect(path)
        database.execute("UPDATE run SET document = ?", [document])
        database.commit()
        database.close()
        with pytest.raises(InputError, match="row of heft, seed 0"):
            read_runs(path)
