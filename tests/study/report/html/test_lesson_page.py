"""The page of a lesson: its schedules and verdicts are those of optpart, and it fits a phone."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import CHROMIUM, Browser, browser
from hostile import NAMES

import optpart as op
from optpart.problem.cluster import Cluster, Device
from optpart.problem.graph import GraphBuilder
from optpart.problem.instance import Instance
from optpart.problem.model import Model
from optpart.solution.schedule import crossings
from optpart.solution.verifier import verify
from optpart.strategies.base import Partition
from optpart.strategies.scheduling.pct import pct
from optpart.strategies.simulator import simulate
from optpart.study.report.html.lesson import tick

needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Start the browser once; starting takes longer than a test."""
    with browser(tmp_path_factory.mktemp("browser")) as found:
        yield found


@pytest.fixture
def opened(page: Browser) -> Iterator[Browser]:
    """Hold every test to it: no complaint on the console, and no request."""
    page.complaints.clear()
    page.requests.clear()
    yield page
    assert page.complaints == []
    assert page.requests == []


def ruled() -> Instance:
    """Return a graph with every rule: types, groups, separation, memory, a missing link."""
    builder = GraphBuilder()
    for v, name in enumerate("abcdefg"):
        kind = "GPU" if name == "c" else None
        builder.vertex(name, 3 * v % 7, memory=Fraction(v, 3), outputs=[v + 1], device_type=kind)
    for source, target in ("ab", "ac", "bd", "cd", "ce", "df", "ef"):
        builder.edge(source, target)
    builder.edge("a", "g", None)
    builder.colocate("a", "g")
    builder.separate("b", "e")
    devices = [Device("cpu", 3, "CPU", 30), Device("gpu", 7, "GPU", 28), Device("slow", 1)]
    cluster = Cluster.of(devices, [[None, 2, 5], [2, None, 4], [5, 0, None]], latency=1)
    return Instance(builder.build(), cluster, Model(memory="estimate"), name="ruled")


def written(instance: Instance | str, folder: Path) -> Path:
    """Write the page; the time limit is that of a busy machine."""
    op.write_lesson(instance, folder / "lesson.html", seconds=20)
    return folder / "lesson.html"


def computed(page: Browser, placements: list[list[int]]) -> list[dict[str, Any]]:
    """Return the schedule and the violated rules of each placement, as the page computes them."""
    call = "{ ...rules.schedule(place), broken: rules.violations(place) }"
    found = page.value(f"{json.dumps(placements)}.map((place) => ({call}))")
    assert isinstance(found, list)
    return found


@needs_browser
@pytest.mark.parametrize(
    "name", ["heft-10", "kwok-ahmad-9-3", "graham-1969-3", "small-10-4-ccr0.1-loose-s4",
             "small-20-2-ccr0.1-t-tight-s10", "ruled"],
)  # fmt: skip
def test_schedules_are_those_of_optpart(opened: Browser, tmp_path: Path, name: str) -> None:
    instance = ruled() if name == "ruled" else op.load(name)
    step = tick(instance)
    path = tmp_path / "lesson.html"
    best = op.write_lesson(instance, path, seconds=20)
    opened.open(path)
    rng = np.random.default_rng(1)
    drawn = rng.integers(0, instance.devices, (200, instance.vertices))
    # Where memory is scarce, only those near the optimum are valid.
    kept = rng.random((100, instance.vertices)) < 0.9
    assert best.schedule is not None
    drawn[100:] = np.where(kept, best.schedule.placement, drawn[100:])
    own = "rules.schedule(data.optimum.placement, data.optimum.start).makespan"
    assert opened.value(own) * step == best.makespan
    valid = 0
    for place, found in zip(drawn, computed(opened, drawn.tolist()), strict=True):
        allowed = instance.vertex_allowed[np.arange(instance.vertices), place].all()
        where = place.astype(np.int32)
        cross = all(
            instance.delay(t, int(where[instance.graph.tensor_vertex[t]]), d) is not None
            for t, d in crossings(instance, where)
        )
        if not (allowed and cross):
            assert found["broken"]
            continue
        schedule = simulate(instance, Partition(where), pct)
        assert [at * step for at in found["start"]] == schedule.start.fractions()
        assert found["makespan"] * step == schedule.makespan(instance)
        transfers = schedule.transfers
        assert {(t["tensor"], t["device"], t["from"] * step, t["to"] * step)
                for t in found["transfers"]} == {
                    *zip(transfers.tensor.tolist(), transfers.target.tolist(),
                         transfers.start.fractions(), transfers.end.fractions(), strict=True)
                }  # fmt: skip
        assert bool(found["broken"]) == bool(verify(instance, schedule))
        valid += not found["broken"]
        steps = found["path"]
        assert steps[-1]["to"] == found["makespan"]
        assert steps[0]["from"] == 0
        assert all(a["to"] == b["from"] for a, b in pairwise(steps))
        # Both are bounds of what this placement can reach.
        assert max(*found["load"], found["longest"]) <= found["makespan"]
    assert valid


@needs_browser
def test_its_own_schedules_are_the_optimum_and_heft(opened: Browser, tmp_path: Path) -> None:
    opened.open(written("heft-10", tmp_path))
    verdict = "document.getElementById('verdict').textContent"
    assert "0 of 10 vertices placed" in opened.value(verdict)
    opened.value("document.getElementById('heft').click()")
    assert "Makespan 80: 7 more than the optimum 73 (9.59%)." in opened.value(verdict)
    opened.value("document.getElementById('optimum').click()")
    assert "Makespan 73: optimal. No schedule is shorter." in opened.value(verdict)
    bounds = opened.value("document.getElementById('bounds').textContent")
    assert "critical path≥ 54" in bounds
    opened.value("document.getElementById('reset').click()")
    assert "0 of 10 vertices placed" in opened.value(verdict)
    assert opened.value("location.hash") == "#p=----------"


@needs_browser
def test_every_rule_is_said_in_words(opened: Browser, tmp_path: Path) -> None:
    opened.open(written(ruled(), tmp_path))
    opened.value("location.hash = '#p=1201010'")
    opened.wait("document.getElementById('rules').children.length > 0")
    said = opened.value("[...document.getElementById('rules').children].map((r) => r.textContent)")
    assert said == [
        "c may not run on cpu, only on gpu (it needs a device of type GPU).",
        "a and g must share a device, but are on gpu and cpu.",
        "Nothing can be sent from slow to gpu, but d needs b.",
    ]
    opened.value("location.hash = '#p=1111111'")
    opened.wait("document.getElementById('rules').textContent.includes('memory')")
    said = opened.value("document.getElementById('rules').textContent")
    assert "b and e must not share a device, but both are on gpu." in said
    assert re.search(r"gpu has memory for 28, but its vertices need \d+\.", said)


@needs_browser
def test_it_takes_clicks_keys_drags_and_addresses(opened: Browser, tmp_path: Path) -> None:
    opened.open(written("heft-10", tmp_path))
    opened.value("chips[3].click(); buttons[1].click()")
    assert opened.value("place") == [None, None, None, 1, *[None] * 6]
    opened.value("chips[4].focus()")
    opened.key("3")
    assert opened.value("place[4]") == 2
    opened.value("chips[4].focus()")
    opened.key("Delete")
    assert opened.value("place[4]") is None
    opened.value(
        "(() => { const dataTransfer = new DataTransfer();"
        "chips[0].dispatchEvent(new DragEvent('dragstart', { dataTransfer }));"
        "buttons[2].dispatchEvent(new DragEvent('drop', { dataTransfer })); })()"
    )
    assert opened.value("place[0]") == 2
    for wrong in ("#p=123", "#p=99999999999", "#p=9999999999", "#<img src=x>"):
        opened.value(f"location.hash = '{wrong}'")
    opened.value("location.hash = '#p=012012012-'")
    opened.wait("place[8] === 2")
    assert opened.value("place") == [0, 1, 2, 0, 1, 2, 0, 1, 2, None]
    opened.value("document.getElementById('share').click()")
    assert opened.value("document.getElementById('link').value").endswith("#p=012012012-")


@needs_browser
def test_a_shared_address_opens_with_its_placement(opened: Browser, tmp_path: Path) -> None:
    opened.open(written("heft-10", tmp_path), part="#p=012012012-")
    assert opened.value("place") == [0, 1, 2, 0, 1, 2, 0, 1, 2, None]


@needs_browser
@pytest.mark.parametrize("name", ["heft-10", "small-30-2-ccr1-tight-s20", "chain-20"])
def test_a_phone_shows_it_without_scrolling_sideways(
    opened: Browser, tmp_path: Path, name: str
) -> None:
    path = written(name, tmp_path)
    for dark in (False, True):
        opened.open(path, width=360, dark=dark)
        for button in ("reset", "heft", "optimum", "share"):
            opened.value(f"document.getElementById('{button}').click()")
            assert opened.value("document.documentElement.scrollWidth") == 360


@needs_browser
def test_hostile_names_are_text(opened: Browser, tmp_path: Path) -> None:
    for begin in range(0, len(NAMES), 30):
        builder = GraphBuilder()
        names = NAMES[begin : begin + 30]
        for name in names:
            builder.vertex(name, 1, outputs=[1])
        builder.edge(names[0], names[1])
        builder.separate(names[2], names[3])
        cluster = Cluster.of([Device(name) for name in names[:3]], 1)
        opened.open(written(Instance(builder.build(), cluster, name=names[3]), tmp_path), width=360)
        opened.value("location.hash = '#p=' + '1'.repeat(n)")
        opened.wait("place[0] === 1")
        assert opened.value("document.title") == "optpart lesson"
        assert opened.value("document.querySelectorAll('img, script').length") == 3
        assert opened.value("document.documentElement.scrollWidth") == 360
        for button in ("heft", "optimum"):
            opened.value(f"document.getElementById('{button}').click()")


def small(n: int = 2, k: int = 2, ops: object = 1, **model: Any) -> Instance:
    builder = GraphBuilder()
    for v in range(n):
        builder.vertex(str(v), ops, outputs=[1])
        if v:
            builder.edge(str(v - 1), str(v))
    cluster = Cluster.of([Device(str(d), d + 1) for d in range(k)], 1)
    return Instance(builder.build(), cluster, Model(**model), name="small")


@pytest.mark.parametrize(
    ("instance", "said"),
    [
        (small(communication="link"), "communication: is link, whose queues a lesson does not"),
        (small(memory="refcount"), "memory: is refcount, which changes with time; give"),
        (small(41), "vertices: 41 are too many; give an instance with 1 to 40"),
        (small(0), "vertices: 0 are too few; give an instance with 1 to 40"),
        (small(2, 7), "devices: 7 are too many; give an instance with 1 to 6"),
        (small(2, 2, Fraction(1, 10**15 + 37)), "times: have no common unit"),
    ],
)
def test_what_a_page_cannot_show_exactly_is_refused(
    tmp_path: Path, instance: Instance, said: str
) -> None:
    with pytest.raises(op.InputError, match=re.escape(said)) as caught:
        op.write_lesson(instance, tmp_path / "x.html")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "x.html").exists()


def test_without_a_proof_there_is_no_lesson(tmp_path: Path) -> None:
    with pytest.raises(op.InputError, match="its optimum is not proven within"):
        op.write_lesson("small-40-4-ccr0.1-t-g-loose-s31", tmp_path / "x.html", seconds=0)
    builder = GraphBuilder()
    for name in "ab":
        builder.vertex(name, 1)
    builder.separate("a", "b")
    alone = Instance(builder.build(), Cluster.of([Device("d")], 1))
    with pytest.raises(op.InputError, match="has no schedule"):
        op.write_lesson(alone, tmp_path / "x.html")
    with pytest.raises(op.InputError, match="is not the name of a page"):
        op.write_lesson("heft-10", tmp_path / "x.pdf")
    assert [*tmp_path.iterdir()] == []
