"""``optpart reduce``: its output, its files and its exit codes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
import typer
from applications.reductions.sources import answer, draw
from commandline import Run
from typer.testing import CliRunner

from optpart.applications.reductions import picture
from optpart.applications.reductions.base import read_source
from optpart.applications.reductions.catalogue import REDUCTIONS
from optpart.applications.reductions.decide import decide
from optpart.base.errors import InputError
from optpart.commands.reduce import reduce
from optpart.interop.formats import native
from optpart.interop.formats.json import pretty
from optpart.solution.result import Budget

app = typer.Typer()
app.command()(reduce)
runner = CliRunner()
ONE = Budget(seconds=60, workers=1)

YES = {"problem": "partition", "numbers": [3, 5, 7, 2, 3]}
NO = {"problem": "partition", "numbers": [4, 4, 4, 4, 4]}


def write(path: Path, document: object) -> str:
    path.write_text(json.dumps(document))
    return str(path)


def test_yes(tmp_path: Path) -> None:
    file = write(tmp_path / "in.json", YES)
    done = runner.invoke(app, ["partition", file, "-o", str(tmp_path / "out"), "--workers", "1"])
    assert done.exit_code == 0, done.output
    assert "do some of them sum to 10?" in done.output
    assert "answer    yes: makespan 10" in done.output
    assert done.output.count("valid") == 3
    assert native.read(tmp_path / "out.json").vertices == 5
    assert read_source(REDUCTIONS.find("partition"), tmp_path / "out.source.json").numbers == (
        3, 5, 7, 2, 3,
    )  # fmt: skip
    assert (tmp_path / "out.png").read_bytes().startswith(b"\x89PNG")


def test_no(tmp_path: Path) -> None:
    file = write(tmp_path / "in.json", NO)
    done = runner.invoke(app, ["partition", file, "-o", str(tmp_path / "out"), "-m", "enumerate"])
    assert done.exit_code == 3
    assert "answer    no: " in done.output
    assert "solution" not in done.output


def test_an_unknown_reduction_is_named_as_an_argument(run: Run) -> None:
    said = run("reduce", "magic")
    assert said.code == 2
    assert said.err.startswith("optpart: NAME: unknown 'magic'; ")


def test_unknown(tmp_path: Path) -> None:
    done = runner.invoke(
        app, ["partition", "--random", "12", "--time-limit", "0", "-o", str(tmp_path / "out")]
    )
    assert done.exit_code == 4
    assert "answer    unknown" in done.output


def test_json(tmp_path: Path) -> None:
    file = write(tmp_path / "in.json", YES)
    out = str(tmp_path / "out")
    done = runner.invoke(app, ["partition", file, "--json", "-o", out, "-m", "enumerate"])
    document = json.loads(done.output)
    assert document["answer"] == "yes"
    assert document["source"] == YES
    assert document["deadline"] == 10
    assert document["verified"] == {"schedule": True, "solution": True, "forth": True}
    assert document["written"] == [out + s for s in (".json", ".source.json", ".png")]


def test_without_a_name_all_are_listed() -> None:
    done = runner.invoke(app, [])
    assert done.exit_code == 0
    assert all(name in done.output for name in REDUCTIONS)


def test_without_a_name_all_are_listed_as_json() -> None:
    done = runner.invoke(app, ["--json"])
    assert [row["name"] for row in json.loads(done.output)["reductions"]] == [*REDUCTIONS]


@pytest.mark.parametrize("option", ["--random", "--output"])
def test_without_a_name_nothing_can_be_drawn_or_written(option: str) -> None:
    with pytest.raises(InputError, match=f"{option}: used without a problem"):
        runner.invoke(app, [option, "3"], catch_exceptions=False)


def test_a_file_and_random_exclude_each_other(tmp_path: Path) -> None:
    file = write(tmp_path / "in.json", YES)
    with pytest.raises(InputError, match="choose one"):
        runner.invoke(app, ["partition", file, "--random", "3"], catch_exceptions=False)


@pytest.mark.parametrize("name", REDUCTIONS)
def test_sources_survive_a_file(name: str, tmp_path: Path) -> None:
    chosen = REDUCTIONS.find(name)
    for seed in range(3):
        source = chosen.random(chosen.size, np.random.default_rng(seed))
        path = tmp_path / f"{seed}.json"
        path.write_text(pretty(chosen.document(source)))
        assert read_source(chosen, path) == source


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("verdict", [True, False])
def test_pictures_show_both_sides(name: str, verdict: bool, tmp_path: Path) -> None:
    chosen = REDUCTIONS.find(name)
    for seed in range(100):
        source = draw(name, np.random.default_rng(seed))
        if answer(name, source) == verdict:
            break
    picture.draw(decide(chosen, source, budget=ONE), tmp_path / "a.svg")
    text = (tmp_path / "a.svg").read_text()
    assert f"TF:  {'yes' if verdict else 'no'}" in text
    assert ("No, proven" in text) != verdict


def test_a_no_is_shown_beside_an_optimal_schedule(tmp_path: Path) -> None:
    found = decide(REDUCTIONS.find("partition"), REDUCTIONS.find("partition").read(NO), "enumerate")
    picture.draw(found, tmp_path / "a.svg")
    text = " ".join(re.findall(r">([^<>]+)</text>", (tmp_path / "a.svg").read_text()))
    assert "Below an optimal schedule, makespan" in text
    assert "time (units of the instance)" in text


def test_colours_of_devices_mean_the_same_in_the_source(tmp_path: Path) -> None:
    colours = {picture._COLOURS[0], picture._COLOURS[1]}
    for document, meant in ((YES, colours), (NO, set())):
        source = REDUCTIONS.find("partition").read(document)
        picture.draw(decide(REDUCTIONS.find("partition"), source, budget=ONE), tmp_path / "a.svg")
        assert {*re.findall(r"#[0-9a-f]{6}", (tmp_path / "a.svg").read_text())} & {
            *picture._COLOURS
        } == meant
    source = draw("scheduling", np.random.default_rng(0))
    picture.draw(decide(REDUCTIONS.find("scheduling"), source, budget=ONE), tmp_path / "a.svg")
    text = (tmp_path / "a.svg").read_text()
    assert not any(f"fill: {colour}" in text for colour in picture._COLOURS)


def test_edges_of_the_transitive_closure_are_explained() -> None:
    chain = {"jobs": ["a", "b", "c"], "order": [["a", "b"], ["b", "c"]], "processors": 1,
             "limit": 3}  # fmt: skip
    scheduling = REDUCTIONS.find("scheduling")
    said = "1 edge follows from the 2 pairs (transitive closure)"
    assert scheduling.added(scheduling.read(chain)) == said
    assert scheduling.added(scheduling.read({**chain, "order": []})) == ""


def test_pictures_depend_only_on_the_answer(tmp_path: Path) -> None:
    found = decide(REDUCTIONS.find("partition"), REDUCTIONS.find("partition").read(YES), budget=ONE)
    for suffix in ("png", "svg"):
        first, second = tmp_path / f"a.{suffix}", tmp_path / f"b.{suffix}"
        picture.draw(found, first)
        picture.draw(found, second)
        assert first.read_bytes() == second.read_bytes()


def test_a_picture_needs_a_known_suffix(tmp_path: Path) -> None:
    found = decide(REDUCTIONS.find("partition"), REDUCTIONS.find("partition").read(NO), "enumerate")
    with pytest.raises(InputError, match="no picture format"):
        picture.draw(found, tmp_path / "a.gif")


ORDER = {"order": [], "processors": 2, "limit": 3}


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("partition", [], "give an object"),
        ("partition", {"problem": "sorting"}, "problem: 'sorting'"),
        ("partition", {"numbers": [1]}, "problem: missing"),
        ("partition", {}, "numbers: missing"),
        ("partition", {"numbers": [1], "limit": 2}, "unknown key 'limit'"),
        ("partition", {"numbers": []}, "numbers: empty"),
        ("partition", {"numbers": [1, 0]}, "numbers[1]: 0"),
        ("partition", {"numbers": [True]}, "numbers[0]: True"),
        ("partition", {"numbers": [1.5]}, "numbers[0]: 1.5"),
        ("partition", {"numbers": [2**50]}, "from 1 to 2^40"),
        ("partition", {"numbers": "12"}, "give a list"),
        ("three-partition", {"numbers": [1, 2]}, "give three, six"),
        ("three-partition", {"numbers": [9, 9, 9, 9, 9, 8]}, "numbers: sum 53"),
        ("three-partition", {"numbers": [1, 9, 9]}, "numbers[0]: 1 is not between"),
        ("scheduling", {"jobs": ["a", "a"], **ORDER}, "jobs[1]: duplicate name 'a'"),
        ("scheduling", {"jobs": [], **ORDER}, "jobs: empty"),
        ("scheduling", {"jobs": [3], **ORDER}, "jobs[0]: 3"),
        ("scheduling", {"jobs": ["a"], **ORDER, "order": [["a"]]}, "order[0]: not a pair"),
        ("scheduling", {"jobs": ["a"], **ORDER, "order": [["a", "b"]]}, "unknown name 'b'"),
        ("scheduling", {"jobs": ["a"], **ORDER, "order": [["a", ["b"]]]}, "order[0]: unknown name"),
        ("scheduling", {"jobs": ["a", "b"], **ORDER, "order": [["a", "b"], ["b", "a"]]}, "cycle"),
        ("scheduling", {"jobs": ["a"], **ORDER, "processors": 0}, "processors: 0"),
        ("communication", {"tasks": ["a"], "order": [["a", "a"]], "limit": 6}, "cycle"),
        ("communication", {"tasks": ["a"], "order": [], "limit": "6"}, "limit: '6'"),
        ("clique", {"nodes": ["a-b"], "edges": [], "size": 1}, "letters and digits"),
        ("clique", {"nodes": ["a"], "edges": [["a", "a"]], "size": 1}, "edges[0]: a loop"),
        ("clique", {"nodes": ["a"], "edges": [], "size": 2}, "size: 2 of 1 nodes"),
        ("job-shop", {"jobs": [[]], "limit": 1}, "no operation"),
        ("job-shop", {"jobs": [[["m"]]], "limit": 1}, "jobs[0][0]: not a pair"),
        ("job-shop", {"jobs": [[[1, 1]]], "limit": 1}, "name a machine"),
        ("job-shop", {"jobs": [[["m", -1]]], "limit": 1}, "-1 is not positive"),
        ("job-shop", {"jobs": [[["m", "x"]]], "limit": 1}, "'x' is not a number"),
        ("job-shop", {"jobs": [3], "limit": 1}, "jobs[0]"),
        ("bin-packing", {"sizes": [1], "capacity": 0, "bins": 1}, "capacity: 0"),
    ],
)
def test_errors_in_a_source_file(name: str, content: object, words: str, tmp_path: Path) -> None:
    if isinstance(content, dict) and words != "problem: missing":
        content = {"problem": name, **content}
    path = tmp_path / "in.json"
    write(path, content)
    with pytest.raises(InputError) as caught:
        read_source(REDUCTIONS.find(name), path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert words in message
    assert "\n" not in message
