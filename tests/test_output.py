"""What leaves the command line: targets are tried first, and nothing that was found is lost."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from commandline import Run
from hostile import meant

from optpart import InputError
from optpart.base import files
from optpart.interop.formats import native
from optpart.lower_bounds import best
from optpart.lower_bounds.best import BOUNDS
from optpart.problem.instance import Instance
from optpart.search import checkpoint
from optpart.study.store import Store

#: Commands that write, with all that they need but the place.
WRITERS = [
    "solve heft-10 -o",
    "solve heft-10 -m search --checkpoint",
    "gap heft-10 -o",
    "gap heft-10 --axis -o",
    "gap heft-10 --store",
    "simulate heft-10 -o",
    "plot result.json -o",
    "import graph.pb --devices 2 -o",
    "convert heft-10 -o",
    "convert heft-10 -o copy.csv --devices",
    "certify heft-10 -o",
    "reduce clique -o",
    "generate small -o",
    "generate thesis 1 -o",
    "generate lstm rnn -o",
    "generate layered -o",
    "generate cluster -o",
    "generate heterog-worst -o",
    "generate replica --model alexnet -o",
]


@pytest.fixture
def idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """No instance can be read: whoever gets that far has not tried the target first."""

    def worked(*_: object) -> None:
        raise AssertionError("worked before the target was tried")

    monkeypatch.setattr("optpart.study.library.load", worked)
    monkeypatch.setattr("optpart.interop.formats.detect.read_instance", worked)
    monkeypatch.setattr("optpart.applications.reductions.decide.decide", worked)


@pytest.fixture
def evil() -> str:
    """A name that would forge a line, colour the terminal and turn its direction."""
    return "x\nINJECTED: OPTIMAL, makespan 0\x1b[31m\u202e[red]:smile:$a_$"


@pytest.fixture
def forged(tmp_path: Path, evil: str) -> Path:
    path = tmp_path / "forged.json"
    content = {
        "format": "optpart-instance/1",
        "name": evil,
        "vertices": [{"name": f"{evil}a", "ops": 4, "outputs": [6]}, {"name": "b", "ops": 2}],
        "edges": [[f"{evil}a", "b", 0]],
        "devices": [{"name": f"{evil}0", "type": evil}, {"name": "y", "speed": 2}],
        "bandwidth": [[None, 3], [3, None]],
    }
    path.write_text(json.dumps(content))
    return path


def full(monkeypatch: pytest.MonkeyPatch, *endings: str) -> None:
    """Let files of these endings find no space when they get their names."""
    replace = os.replace

    def refuse(source: Any, target: Any) -> None:
        if str(target).endswith(endings):
            raise OSError(28, "No space left on device")
        replace(source, target)

    monkeypatch.setattr(os, "replace", refuse)


class TestTargets:
    @pytest.mark.usefixtures("idle")
    @pytest.mark.parametrize("command", WRITERS)
    def test_a_missing_folder_is_noticed_before_any_work(
        self, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
    ) -> None:
        monkeypatch.chdir(tmp_path)
        shown = run(*command.split(), "none/out.json")
        assert (shown.code, shown.out) == (2, "")
        assert shown.err.startswith("optpart: none/out")
        assert shown.err.count("\n") == 1
        assert os.listdir(tmp_path) == []

    @pytest.mark.usefixtures("idle")
    @pytest.mark.parametrize("command", WRITERS)
    def test_so_is_a_folder(
        self, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
    ) -> None:
        monkeypatch.chdir(tmp_path)
        suffix = ".json" if command.startswith("reduce") else ""
        folder = tmp_path / f"out{suffix}"
        folder.mkdir()
        (folder / "kept").touch()
        shown = run(*command.split(), "out")
        assert (shown.code, shown.out) == (2, "")
        assert shown.err.startswith("optpart: out")
        assert os.listdir(tmp_path) == [folder.name]
        assert os.listdir(folder) == ["kept"]

    @pytest.mark.usefixtures("idle")
    @pytest.mark.parametrize("command", WRITERS)
    def test_so_is_a_full_disk(
        self, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
    ) -> None:
        def refuse(*_: object, **__: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(files.tempfile, "TemporaryFile", refuse)
        shown = run(*command.split(), "out.png" if "plot" in command else "out.json")
        assert (shown.code, shown.out) == (2, "")
        assert "cannot be written (No space left on device); name a writable place" in shown.err

    def test_a_device_is_never_replaced_by_a_file(self) -> None:
        with pytest.raises(
            InputError, match=r"/dev/null: cannot be written \(is not a regular file\)"
        ):
            files.check_target("/dev/null", files.ANY)

    def test_trying_leaves_what_is_there(self, tmp_path: Path) -> None:
        old = tmp_path / "old"
        old.write_text("old")
        files.check_target(old, files.ANY)
        files.check_target(tmp_path / "new", files.ANY)
        assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("old", "old")]


class TestFailedWrites:
    """What was found is printed, then comes the fault."""

    @pytest.mark.parametrize(
        ("command", "said"),
        [
            ("solve heft-10 -m heft -o", "heft-10: FEASIBLE, makespan 80"),
            ("solve heft-10 -m heft --json -o", '"makespan": "80"'),
            ("simulate heft-10 -o", "heft-10: heft+pct, makespan"),
            ("gap heft-10 -m heft -o", "optimum 73"),
            ("gap heft-10 -m heft --csv -o", "heft-10,10,15,3,,optimum,73"),
            ("gap heft-10 -m heft --axis --json -o", '"optpart-axis/1"'),
            ("reduce partition --random 4 -o", "makespan at most"),
        ],
    )
    def test_the_result_is_printed(
        self,
        run: Run,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        command: str,
        said: str,
    ) -> None:
        full(monkeypatch, "out.json")
        shown = run(*command.split(), tmp_path / ("out" if "reduce" in command else "out.json"))
        assert shown.code == 2
        assert said in shown.out
        faults = [line for line in shown.err.splitlines() if line.startswith("optpart: ")]
        assert len(faults) == 1
        assert "out.json: cannot be written (No space left on device)" in faults[0]
        assert os.listdir(tmp_path) == []

    def test_a_search_outlives_its_checkpoint(
        self, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("optpart.search.search._CHECKPOINT", 0.0)
        full(monkeypatch, "state.json")
        shown = run(
            "solve", "small-60-8-ccr1-tight-s44", "-m", "search", "--workers", 1, "--time-limit", 1,
            "--checkpoint", tmp_path / "state.json", "-o", tmp_path / "result.json",
        )  # fmt: skip
        assert shown.code == 2
        assert "state not saved: cannot be written" in shown.out
        assert "makespan" in shown.out
        faults = [line for line in shown.err.splitlines() if line.startswith("optpart: ")]
        assert len(faults) == 2
        assert faults[0].startswith("optpart: the search continues without a checkpoint: ")
        assert faults[1].endswith(
            "cannot be written (No space left on device); name a writable place"
        )
        assert os.listdir(tmp_path) == ["result.json"]

    def test_a_checkpoint_that_is_written_again_is_no_fault(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        told: list[InputError] = []
        state = checkpoint.StateFile(tmp_path / "state.json", told.append)

        def refuse(*_: object) -> None:
            raise InputError("", "full", "make room")

        monkeypatch.setattr(checkpoint, "write", refuse)
        for _ in range(3):
            state.keep(Any, Any)  # type: ignore[arg-type]
        assert [str(fault) for fault in told] == ["full; make room"]
        assert state.fault is told[0] or str(state.fault) == "full; make room"
        monkeypatch.setattr(checkpoint, "write", lambda *_: None)
        state.keep(Any, Any)  # type: ignore[arg-type]
        assert state.fault is None

    def test_a_sweep_tells_what_was_done_before_its_store_failed(
        self, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        add = Store.add

        def refuse(self: Store, run: Any, result: Any) -> None:
            if run.instance.name != "heft-10":
                raise InputError("", "cannot be used as a store (full)", "make room", "store")
            add(self, run, result)

        monkeypatch.setattr(Store, "add", refuse)
        table = tmp_path / "table.csv"
        shown = run(
            "gap", "heft-10", "kwok-ahmad-9-2", "-m", "heft", "--store", tmp_path / "store",
            "-o", table, "--csv",
        )  # fmt: skip
        assert shown.code == 2
        # The run that could not be stored is told as well.
        assert [row["instance"] for row in csv.DictReader(io.StringIO(shown.out))] == [
            "heft-10", "kwok-ahmad-9-2",
        ]  # fmt: skip
        assert table.read_text() == shown.out
        assert "stopped: the results so far follow" in shown.err
        assert shown.err.endswith("optpart: store: cannot be used as a store (full); make room\n")


def test_a_store_that_can_only_be_read_is_refused_at_once(tmp_path: Path) -> None:
    path = tmp_path / "store"
    Store(path).__exit__()

    class ReadOnly(Store):
        def _prepare(self) -> None:
            self._database.execute("PRAGMA query_only = ON")
            super()._prepare()

    with pytest.raises(InputError, match="cannot be used as a store"):
        ReadOnly(path)


class TestForgedNames:
    """Names reach the terminal with their control characters as escapes."""

    @pytest.mark.parametrize(
        "command",
        [
            "solve {} -m heft",
            "gap {} -m heft",
            "gap {} {} {} {} -m heft",
            "gap {} -m heft --axis",
            "simulate {} -m hash+pct",
            "certify {} -o {}.certificate",
            "ordering {}",
            "solve {} --json -m heft",
        ],
    )
    def test_none_forges_a_line(self, run: Run, forged: Path, command: str) -> None:
        shown = run(*(part.format(forged) for part in command.split()))
        for line in (shown.out + shown.err).splitlines():
            assert not line.startswith("INJECTED")
        for character in "\x1b\u202e":
            assert character not in shown.out + shown.err
        assert "INJECTED" in shown.out + shown.err
        assert "[red]:smile:" in shown.out + shown.err

    def test_json_means_the_name(self, run: Run, forged: Path, evil: str) -> None:
        assert json.loads(run("solve", forged, "--json", "-m", "heft").out)["instance"] == evil
        copy = forged.with_name("copy.json")
        run("convert", forged, "-o", copy)
        assert native.read(copy).name == evil

    @pytest.mark.parametrize("name", ["a\r1,2,3", "a\n1,2", 'a"b', "a,b"])
    def test_csv_means_the_name(self, run: Run, forged: Path, name: str) -> None:
        forged.write_text(json.dumps({**json.loads(forged.read_text()), "name": name}))
        table = run("gap", forged, "-m", "heft", "--csv").out
        rows = list(csv.DictReader(io.StringIO(table, newline="")))
        assert [meant(row["instance"]) for row in rows] == [name]

    def test_on_a_terminal_csv_and_json_are_escaped(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        from optpart.base.terminal import put

        monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
        put("a,\x1b[31m\n")
        assert capsys.readouterr().out == "a,\\x1b[31m\n"

    def test_faults_are_one_short_line(self, run: Run, forged: Path) -> None:
        long = "y" * 5000
        forged.write_text(json.dumps({**json.loads(forged.read_text()), f"k\x1b[31m\n{long}": 1}))
        shown = run("solve", forged)
        assert shown.code == 2
        assert shown.err.count("\n") == 1
        assert "\x1b" not in shown.err
        assert len(shown.err) <= 301
        assert "; known keys are $schema, bandwidth, " in shown.err

    def test_a_list_of_choices_too_long_for_a_line_is_named(self, run: Run) -> None:
        shown = run("solve", "heft-10", "-m", "magic")
        assert shown.err == (
            "optpart: --method: no method 'magic'; 'optpart methods' lists the names\n"
        )

    @pytest.mark.parametrize("suffix", ["png", "svg"])
    def test_pictures_show_them_as_they_can(self, run: Run, forged: Path, suffix: str) -> None:
        result, picture = forged.with_name("r.json"), forged.with_name(f"p.{suffix}")
        run("solve", forged, "-m", "heft", "-o", result)
        shown = run("plot", result, "--instance", forged, "-o", picture)
        assert (shown.code, shown.err) == (0, "")
        assert picture.stat().st_size > 1000


class TestInterruptedBounds:
    @pytest.fixture
    def struck(self, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
        """Let Ctrl-C come while a bound is computed."""

        def strike(name: str) -> None:
            def interrupted(*_: object, **__: object) -> None:
                raise KeyboardInterrupt

            monkeypatch.setitem(BOUNDS.rows, name, replace(BOUNDS[name], compute=interrupted))

        return strike

    def test_bounds_proven_so_far_are_printed_with_the_best(
        self, run: Run, struck: Callable[[str], None]
    ) -> None:
        struck("energy")
        shown = run("bound", "heft-10")
        assert shown.code == 0
        _, *rows = [line.split() for line in shown.out.splitlines()]
        assert [row[0] for row in rows] == [
            "critical-path",
            "load",
            "colocation",
            "cases",
            "one-machine",
            "best:",
        ]
        values = [float(row[1].rstrip(",")) for row in rows]
        assert values[-1] == max(values)
        assert "interrupted: the bounds proven so far follow" in shown.err

    def test_as_json(self, run: Run, struck: Callable[[str], None]) -> None:
        struck("load")
        document = json.loads(run("bound", "heft-10", "--json").out)
        assert document["interrupted"]
        assert document["best"] == "critical-path"
        assert [row["bound"] for row in document["bounds"]] == ["critical-path"]

    def test_nothing_proven_is_nothing_found(self, run: Run, struck: Callable[[str], None]) -> None:
        struck("critical-path")
        assert run("bound", "heft-10").code == 4


def test_each_bound_is_told_as_soon_as_it_is_proven(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("computed before it was asked for")

    monkeypatch.setitem(BOUNDS.rows, "load", replace(BOUNDS["load"], compute=never))
    from optpart.study import library

    instance: Instance = library.load("heft-10")
    bounds: Iterator[best.LowerBound] = best.each_bound(instance)
    assert next(bounds).name == "critical-path"


def test_bounds_under_way_are_named_on_a_terminal(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("bound", "heft-10", "--time-limit", 1)  # what must be compiled is said between the steps
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    err = run("bound", "heft-10", "--time-limit", 1).err
    steps = err.split("\r")
    assert "heft-10  critical-path  bound –" in err
    assert "heft-10  load  bound 54" in err
    assert steps[-1] == ""
    assert max(map(len, steps)) < 80
