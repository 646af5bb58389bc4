"""Names of every hostile kind, through every command: no line, table or document is changed."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from commandline import Run
from hostile import UNSEEN, meant

#: What would steer a terminal, turn its direction, or open markup, a formula, a macro or a row.
NAMES = [
    "\x1b[31mred\x1b]0;t\x07", "c1\x9b31m", "tab\tcr\rlf\nx", "\u202eturned",
    "zero\u200bwidth\ufeff", "[red]:smile:[/red]", "</script><img src=x onerror=1>", "a&b\"q'",
    "=cmd|' /C calc'!A0", "\\input{/etc/passwd}%$_^~{}", "L" * 3000, "頂点\U0001f600", "a\u0301",
    "nul\0", " ", "-dash", "];<![CDATA[",
]  # fmt: skip


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An instance whose vertices, devices, types and own name are hostile."""
    whole = "".join(NAMES[:10])
    content = {
        "format": "optpart-instance/1",
        "name": whole,
        "source": whole,
        "vertices": [{"name": n, "ops": i + 2, "outputs": [1]} for i, n in enumerate(NAMES)],
        "edges": [[NAMES[i], NAMES[i + 1], 0] for i in range(4)],
        "colocation": [[NAMES[5], NAMES[6]]],
        "separation": [[NAMES[7], NAMES[8]]],
        "devices": [{"name": f"{whole}0", "type": whole}, {"name": f"{whole}1", "speed": 2}],
        "bandwidth": [[None, 3], [3, None]],
    }
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "h.json"
    path.write_text(json.dumps(content))
    return path


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("solve h.json -m heft --time-limit 0", 0),
        ("solve h.json -m heft --json --time-limit 0", 0),
        ("gap h.json -m heft", 0),
        ("gap h.json -m heft --seeds 2", 0),
        ("gap h.json h.json h.json h.json -m heft", 0),
        ("gap h.json -m heft --json", 0),
        ("gap h.json -m heft --axis", 0),
        ("bound h.json --time-limit 0", 0),
        ("bound h.json --json --time-limit 0", 0),
        ("simulate h.json -m hash+pct", 0),
        ("ordering h.json", 2),
        ("pipeline h.json", 0),
        ("export h.json --to device-map -o x.json", 2),
        ("convert h.json -o copy.json", 0),
    ],
)
@pytest.mark.usefixtures("hostile")
def test_no_command_prints_what_no_terminal_should_see(run: Run, command: str, code: int) -> None:
    shown = run(*command.split())
    assert shown.code == code
    assert not UNSEEN.search(shown.out + shown.err)
    assert max(map(len, shown.err.splitlines()), default=0) <= 301


@pytest.mark.usefixtures("hostile")
def test_no_written_file_is_changed_by_them(run: Run, tmp_path: Path) -> None:
    for command in (
        "solve h.json -m heft --time-limit 0 -o result.json",
        "plot result.json --instance h.json -o picture.svg",
        "report h.json result.json -o page.html",
        "lesson h.json -o lesson.html --time-limit 20",
        "export result.json --instance h.json --to trace -o trace.json",
        "export h.json --to lp -o program.lp",
        "certify h.json -o certificate --time-limit 2",
    ):
        assert run(*command.split()).code == 0
    for path in tmp_path.rglob("*"):
        if path.is_file() and path.name != "h.json":
            assert not UNSEEN.search(path.read_text(encoding="utf-8")), path
    ElementTree.parse(tmp_path / "picture.svg")
    for page in ("page.html", "lesson.html"):
        assert "</script><img" not in (tmp_path / page).read_text()
    json.loads((tmp_path / "trace.json").read_text())


@pytest.mark.usefixtures("hostile")
def test_csv_and_json_hold_the_very_names(run: Run) -> None:
    whole = "".join(NAMES[:10])
    (row,) = csv.DictReader(
        io.StringIO(run("gap", "h.json", "-m", "heft", "--csv").out, newline="")
    )
    assert meant(row["instance"]) == whole
    assert (
        json.loads(run("gap", "h.json", "-m", "heft", "--json").out)["instances"][0]["instance"]
        == whole
    )
    run("solve", "h.json", "-m", "heft", "--time-limit", 0, "-o", "r.json")
    assert set(json.loads(Path("r.json").read_text())["schedule"]["placement"]) == set(NAMES)


def test_a_lone_surrogate_is_refused(run: Run, hostile: Path) -> None:
    hostile.write_text(hostile.read_text().replace("-dash", "\\ud800"))
    shown = run("solve", hostile)
    assert (shown.code, shown.out) == (2, "")
    assert "has a string with a lone surrogate; give valid text" in shown.err


@pytest.mark.parametrize("columns", ["1", "20"])
@pytest.mark.parametrize(
    "command",
    [
        "gap h.json heft-10 -m heft",
        "solve h.json -m heft --time-limit 0",
        "bound h.json --time-limit 0",
    ],
)
@pytest.mark.usefixtures("hostile")
def test_a_narrow_terminal_cuts_no_figure(
    run: Run, monkeypatch: pytest.MonkeyPatch, command: str, columns: str
) -> None:
    figure = re.compile(r"\d+\.\d+%")
    whole = set(figure.findall(run(*command.split()).out))
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    shown = run(*command.split())
    assert shown.code == 0
    assert not UNSEEN.search(re.sub(r"\x1b\[\d*m", "", shown.out))  # besides our own styles
    assert whole <= set(figure.findall(shown.out))


#: The same, as far as a file may be called so.
FILES = [name.replace("\0", "").replace("/", "")[:50] for name in NAMES]

PLUGIN = """
from optpart import conclude, register, retime

def method(name):
    def run(instance, *, budget=None, seed=0, start=None, watch=None):
        order = instance.graph.topological_order.tolist()
        return conclude(instance, name, retime(instance, [0] * instance.vertices, order), seed=seed)
    run.__qualname__ = name
    return run

for name in NAMES:
    register(name, name)(method(name))
"""


@pytest.fixture
def plugin(hostile: Path) -> Path:
    """A file that registers a method under every hostile name."""
    path = hostile.with_name("mine.py")
    path.write_text(f"NAMES = {NAMES!r}\n{PLUGIN}", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("methods", 0),
        ("gap heft-10 --store runs.db", 0),
        ("gap heft-10 -m heft -m hef", 2),
        ("solve heft-10 -m nothing", 2),
    ],
)
def test_methods_of_plug_ins_may_have_any_name(
    run: Run, plugin: Path, command: str, code: int
) -> None:
    shown = run("--plugin", plugin, *command.split())
    assert shown.code == code
    assert not UNSEEN.search(shown.out + shown.err)
    assert max(map(len, shown.err.splitlines()), default=0) <= 301


@pytest.mark.parametrize("name", NAMES[:3])
def test_a_method_of_any_name_can_be_chosen(run: Run, plugin: Path, name: str) -> None:
    shown = run("--plugin", plugin, "solve", "heft-10", f"--method={name}", "--time-limit", 0)
    assert shown.code == 0
    assert not UNSEEN.search(shown.out + shown.err)


def test_a_table_holds_the_very_names_of_methods(run: Run, plugin: Path) -> None:
    chosen = [f"--method={name}" for name in NAMES]
    shown = run("--plugin", plugin, "gap", "heft-10", *chosen, "--workers", 1, "--csv")
    rows = csv.DictReader(io.StringIO(shown.out, newline=""))
    assert [meant(row["method"]) for row in rows] == NAMES


def test_a_report_of_hostile_labels_is_harmless(run: Run, plugin: Path, tmp_path: Path) -> None:
    options = ("-m", NAMES[0], "-m", NAMES[9], "--workers", 1, "--store", "runs.db")
    assert run("--plugin", plugin, "gap", "h.json", *options).code == 0
    for by in ([], ["--by", "instance"]):
        shown = run("report", "runs.db", *by, "-o", f"paper{len(by)}")
        assert shown.code == 0
        assert not UNSEEN.search(shown.out + shown.err)
    for path in (*tmp_path.glob("paper*/*.[!p]*"),):
        if path.suffix != ".pdf":
            assert not UNSEEN.search(path.read_text(encoding="utf-8")), path
    for path in tmp_path.glob("paper*/*.svg"):
        ElementTree.parse(path)
    assert "\\input{" not in (tmp_path / "paper0" / "summary.tex").read_text()


@pytest.mark.parametrize("name", FILES[::4])
def test_files_may_have_any_name(run: Run, hostile: Path, tmp_path: Path, name: str) -> None:
    folder = tmp_path / f"in {name}"
    folder.mkdir()
    file = folder / f"{name}.json"
    hostile.rename(file)
    for command in (
        ("solve", file, "-m", "heft", "--time-limit", 0, "-o", folder / f"result {name}.json"),
        ("verify", file, folder / f"result {name}.json"),
        ("gap", file, "-m", "heft", "--workers", 1, "--store", folder / f"{name}.db"),
        ("report", file, folder / f"result {name}.json", "-o", folder / f"{name}.html"),
        ("convert", file, "-o", folder / f"copy {name}.json"),
    ):
        shown = run(*command)
        assert shown.code == 0, shown.err
        assert not UNSEEN.search(shown.out + shown.err)
    missing = (
        ("solve", folder / f"no {name}"),
        ("--plugin", folder / f"no {name}.py", "methods"),
        ("gap", "heft-10", "--store", folder / f"no {name}" / "runs.db"),
        ("solve", "heft-10", "-m", "heft", "-o", folder / f"no {name}" / "r.json"),
        ("report", folder / f"no {name}.db", "-o", folder / "paper"),
    )
    for command in missing:
        shown = run(*command)
        assert (shown.code, shown.out) == (2, "")
        assert shown.err.count("\n") == 1
        assert not UNSEEN.search(shown.err)
        assert len(shown.err) <= 301
