"""Stores that somebody else made: nothing in them runs, is believed, or takes long to read."""

from __future__ import annotations

import json
import sqlite3
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from commandline import Run as Command

from optpart import Budget, InputError, Status
from optpart.solution.claim import Claim
from optpart.study import library
from optpart.study.gap import sweep
from optpart.study.report.html import sources
from optpart.study.report.html.sources import read_subjects
from optpart.study.run import Run, execute
from optpart.study.store import Store, instances_of, read_rows
from optpart.study.stored import read_runs

INSTANCE = library.load("heft-10")
RUN = Run(INSTANCE, "heft", 0, Budget(5, workers=1))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store that holds one run, of makespan 80 and without a bound."""
    path = tmp_path / "runs.db"
    with Store(path) as store:
        store.add(RUN, execute(RUN))
    return path


def changed(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as database:
        for statement in statements:
            database.execute(statement)
        database.commit()


ENDLESS = (
    "DROP TABLE latest",
    "CREATE VIEW latest AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) "
    "SELECT '' AS method, '' AS optpart, '' AS code FROM n",
)
DELETING = "CREATE TRIGGER t AFTER INSERT ON latest BEGIN DELETE FROM run; END"
SCHEMAS = {
    "view": (*ENDLESS,),
    "trigger": (DELETING,),
    "index": ("CREATE INDEX mine ON run (upper(method))",),
    "table": ("CREATE TABLE mine (a)",),
    "other tables": ("ALTER TABLE run ADD COLUMN twice AS (seed * 2)",),
}


@pytest.mark.parametrize("what", SCHEMAS)
@pytest.mark.parametrize(
    "use",
    [
        Store,
        lambda path: [*read_rows(path)],
        lambda path: [*instances_of(path)],
        read_runs,
        lambda path: read_subjects([path, "heft-10"], library.load),
    ],
)
def test_a_schema_that_no_store_has_is_refused_in_one_line(
    path: Path, what: str, use: Callable[[Path], object]
) -> None:
    changed(path, *SCHEMAS[what])
    before = path.read_bytes()
    with pytest.raises(InputError, match=f"^{path}: has (a |other ){what.split()[-1]}") as fault:
        use(path)
    assert str(fault.value).count("\n") == 0
    assert path.read_bytes() == before


def test_a_trigger_that_deletes_rows_deletes_none(path: Path, run: Command) -> None:
    changed(path, DELETING)
    shown = run("gap", "heft-10", "-m", "heft", "--store", path)
    assert (shown.code, shown.out, shown.err.count("\n")) == (2, "", 1)
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("SELECT count(*) FROM run").fetchone() == (1,)


class TestClaims:
    """heft's schedule of 80 is not optimal: 73 is."""

    @pytest.fixture(autouse=True)
    def _unproven(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let neither the exact method nor the library close the gap."""
        monkeypatch.setattr("optpart.study.gap.EXACT", "heft")
        monkeypatch.setattr(library, "evidence", lambda _: library.Evidence())

    @pytest.fixture
    def forged(self, path: Path) -> Path:
        said = "'$.lower_bound', '80', '$.status', 'OPTIMAL', '$.gap', 0, '$.termination', 'proven'"
        changed(path, f"UPDATE run SET document = json_set(document, {said})")
        return path

    def test_a_row_makes_no_result_optimal(self, forged: Path) -> None:
        with Store(forged) as store:
            result = store.get(RUN)
        assert result is not None
        assert (result.status, result.makespan, result.lower_bound) == (Status.FEASIBLE, 80, None)
        assert result.termination is None
        claimed = result.values["makespan"]
        assert result.claim == Claim(
            str(forged), {"makespan": claimed}, method="heft", code=RUN.key.code
        )

    def test_a_row_makes_no_reference_an_optimum(self, forged: Path) -> None:
        with Store(forged) as store:
            (comparison,) = sweep([INSTANCE], ["heft"], budget=RUN.budget, store=store)
        reference = comparison.reference
        assert reference.kind == "claimed optimum"
        assert reference.bound is not None
        assert reference.bound < 80
        assert not comparison.is_optimal(comparison.results[0])

    def test_every_output_of_gap_names_the_file(self, forged: Path, run: Command) -> None:
        arguments = (
            "gap",
            "heft-10",
            "-m",
            "heft",
            "--time-limit",
            5,
            "--workers",
            1,
            "--store",
            forged,
        )
        said = f"lower bound 80 claimed by {forged} (heft, optpart "
        table = run(*arguments)
        assert "claimed optimum 80 by heft, bound " in table.out
        assert said in " ".join(table.out.split())
        assert "proven by" not in table.out
        (row,) = json.loads(run(*arguments, "--json").out)["results"]
        assert (row["optimal"], row["status"], row["claimed_bound"]) == (False, "FEASIBLE", "80")
        assert said in run(*arguments, "--csv").out

    def test_a_row_that_says_infeasible_is_a_claim(self, path: Path) -> None:
        lie = "'$.status', 'INFEASIBLE', '$.schedule', NULL, '$.makespan', NULL, '$.traffic', NULL"
        changed(path, f"UPDATE run SET document = json_set(document, {lie}, '$.gap', NULL)")
        with Store(path) as store:
            (comparison,) = sweep([INSTANCE], ["heft"], budget=RUN.budget, store=store)
        assert comparison.reference.kind == "claimed infeasible"
        assert not comparison.reference.infeasible

    def test_tables_for_papers_say_what_is_claimed(
        self, forged: Path, run: Command, tmp_path: Path
    ) -> None:
        assert run("report", forged, "-o", tmp_path / "paper").code == 0
        header, row = (tmp_path / "paper" / "runs.csv").read_text().splitlines()
        fields = dict(zip(header.split(","), row.split(","), strict=True))
        assert fields["status"] == "claimed OPTIMAL"
        assert fields["verified"] == "True"
        assert "claimed optimal" in (tmp_path / "paper" / "summary.tex").read_text()


def test_a_false_makespan_of_an_instance_at_hand_is_refused(path: Path) -> None:
    changed(path, "UPDATE run SET document = json_set(document, '$.makespan', '79')")
    with pytest.raises(InputError, match="makespan 79 is not that of its schedule"):
        read_runs(path)


def test_without_the_instance_a_makespan_is_only_claimed(tmp_path: Path) -> None:
    from optpart.interop.generate.families import fft
    from optpart.study.paper import Comparison

    instance = fft(4, 2, seed=3)
    other = Run(instance, "heft", 0, Budget(5, workers=1))
    with Store(tmp_path / "runs.db") as store:
        store.add(other, execute(other))
    runs = read_runs(tmp_path / "runs.db")
    assert [one.is_verified for one in runs] == [False]
    assert any("only claimed" in note for note in Comparison(runs).notes)
    runs = read_runs(tmp_path / "runs.db", [instance])
    assert [one.is_verified for one in runs] == [True]
    assert not Comparison(runs).notes


class TestLongOnes:
    """100,000 rows of another instance, as of a long sweep."""

    ROWS = 100_000

    @pytest.fixture
    def long(self, path: Path) -> Path:
        document = "x" * 200

        def rows() -> Iterator[tuple[object, ...]]:
            for seed in range(self.ROWS):
                yield ("0" * 64, "magic", seed, 5.0, 1, 0.0, 0, "0", "", document)

        with closing(sqlite3.connect(path)) as database:
            database.executemany(f"INSERT INTO run VALUES ({', '.join('?' * 10)})", rows())
            database.commit()
        return path

    def test_are_read_for_one_instance_without_the_rest(self, long: Path) -> None:
        tracemalloc.start()
        try:
            (subject,) = read_subjects([long, "heft-10"], library.load)
            with Store(long) as store:
                assert store.begin([RUN]) == 0
                assert store.get(RUN) is not None
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert [entry.result.makespan for entry in subject.entries] == [80]
        assert peak < 50 * self.ROWS  # far less than the rows themselves

    def test_are_refused_for_a_page_of_all(self, long: Path) -> None:
        with pytest.raises(InputError, match="has more than 10,000 runs; name the instances"):
            read_subjects([long], library.load)

    def test_are_refused_for_a_page_of_an_instance_with_too_many(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sources, "MOST_RUNS", 0)
        with pytest.raises(InputError, match="has more than 0 runs on heft-10; make tables"):
            read_subjects([path, "heft-10"], library.load)
