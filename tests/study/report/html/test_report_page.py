"""The page of a report in a real browser: its numbers, what it asks for, and that it reacts."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from browser import CHROMIUM, Browser, browser
from hostile import NAMES

import optpart as op
from optpart.problem.cluster import Cluster, Device
from optpart.problem.graph import GraphBuilder
from optpart.problem.instance import Instance
from optpart.problem.model import Model
from optpart.solution.result import Progress, Result, conclude
from optpart.solution.schedule import retime
from optpart.study import library
from optpart.study.run import Run
from optpart.study.store import Store

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")

HOSTILE = (
    "</script><script>document.title='ran'</script><img src=x onerror=\"document.title='ran'\">"
)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Start the browser once; starting takes longer than a test."""
    with browser(tmp_path_factory.mktemp("browser")) as found:
        yield found


@pytest.fixture
def opened(page: Browser, tmp_path: Path) -> Iterator[Browser]:
    """Hold every test to it: no complaint on the console, and no request."""
    page.complaints.clear()
    page.requests.clear()
    yield page
    assert page.complaints == []
    assert page.requests == []


def diamond(memory: str = "refcount") -> Instance:
    """Return a → (b, c) → d with a third part of a time unit in it, on two devices."""
    builder = GraphBuilder()
    for name in "abc":
        builder.vertex(name, 10, outputs=[20])
    builder.vertex(HOSTILE, 10)
    for source, target in (("a", "b"), ("a", "c"), ("b", HOSTILE), ("c", HOSTILE)):
        builder.edge(source, target)
    devices = [Device("cpu", 3, "CPU", 1000), Device("gpu <b>", 7, "GPU", 60)]
    return Instance(builder.build(), Cluster.of(devices, 10), Model(memory=memory), name="diamond")


def result(instance: Instance, placement: list[int], method: str = "given") -> Result:
    order = instance.graph.topological_order.tolist()
    trace = (Progress(0.5, Fraction(40, 3), Fraction(1)), Progress(1.5, None, Fraction(5)))
    return conclude(
        instance,
        method,
        retime(instance, placement, order),
        bound=Fraction(5),
        trace=trace,
        seconds=2.0,
    )


def large(vertices: int, devices: int = 4) -> Instance:
    rng = np.random.default_rng(5)
    builder = GraphBuilder()
    for v in range(vertices):
        name = f"model/layer_{v // 50}/op_{v}"
        builder.vertex(name, int(rng.integers(1, 90)), outputs=[int(rng.integers(1, 9))])
    for v in range(1, vertices):
        for u in {v - 1 - int(step) for step in rng.integers(0, min(v, 30), 2)}:
            builder.edge(f"model/layer_{u // 50}/op_{u}", f"model/layer_{v // 50}/op_{v}")
    return Instance(builder.build(), Cluster.uniform(devices, 3, 2), name="large")


def spread(instance: Instance) -> Result:
    blocks = np.arange(instance.vertices) // 25 % instance.devices
    return result(instance, blocks.tolist())


def exact(page: Browser, key: str) -> str:
    found = page.value(f"document.querySelector('[data-key={key}] [data-exact]').dataset.exact")
    assert isinstance(found, str)
    return found


def test_the_library_is_the_one_that_its_page_names() -> None:
    vendor = Path(op.__file__).parent / "study" / "report" / "html" / "vendor"
    digest = hashlib.sha256((vendor / "echarts.min.js").read_bytes()).hexdigest()
    assert digest in (vendor / "README.md").read_text()


def choose(page: Browser, name: str, value: str) -> None:
    page.value(
        f"(s => {{ s.value = {json.dumps(value)}; s.dispatchEvent(new Event('change')); }})"
        f"(document.getElementById('{name}'))"
    )


def test_the_numbers_are_those_of_the_result_file(opened: Browser, tmp_path: Path) -> None:
    instance = diamond()
    op.save(instance, tmp_path / "diamond.json")
    op.save(result(instance, [0, 0, 1, 1]), tmp_path / "result.json")
    op.write_report([tmp_path / "result.json", tmp_path / "diamond.json"], tmp_path / "r.html")
    document = json.loads((tmp_path / "result.json").read_text())
    opened.open(tmp_path / "r.html")
    for key in ("makespan", "traffic"):
        assert exact(opened, key) == document[key]
    assert exact(opened, "claimed_bound") == document["lower_bound"]
    said = f"claimed by {tmp_path / 'result.json'} ("
    assert said in text(opened, "verdict")
    assert f"lower bound {document['lower_bound']} {said}" in text(opened, "claimed")
    opened.value("document.getElementById('table-box').open = true")
    opened.wait("document.querySelectorAll('#table-rows tbody tr').length === 4")
    rows = opened.value(
        "[...document.querySelectorAll('#table-rows tbody tr')]"
        ".map(row => [...row.cells].map(cell => cell.textContent))"
    )
    assert {name: start for name, _, start, _ in rows} == document["schedule"]["start"]
    assert {name: where for name, where, _, _ in rows} == document["schedule"]["placement"]


def test_headings_have_the_unit_that_the_instance_states(opened: Browser, tmp_path: Path) -> None:
    heads = "[...document.querySelectorAll('#figures dt')].map(one => one.textContent)"
    for unit, head in (("", "Makespan"), ("us", "Makespan (µs)")):
        instance = replace(diamond(), time_unit=unit)
        op.write_report([result(instance, [0, 0, 1, 1])], tmp_path / "r.html")
        opened.open(tmp_path / "r.html")
        assert head in opened.value(heads)
        assert ("times in µs" in text(opened, "facts")) == bool(unit)
        assert (" µs" in text(opened, "verdict")) == bool(unit)


def test_names_are_text_and_never_run(opened: Browser, tmp_path: Path) -> None:
    op.write_report(result(diamond(), [0, 0, 1, 1]), tmp_path / "r.html")
    opened.open(tmp_path / "r.html")
    assert opened.value("document.title") == "diamond – optpart report"
    assert opened.value("document.images.length") == 0
    assert HOSTILE not in (tmp_path / "r.html").read_text()
    assert HOSTILE in opened.value("document.getElementById('why-text').textContent")
    # Hovering makes a tip of the name, and choosing makes details of it.
    opened.value("document.getElementById('find').value = 'script'")
    opened.value("document.getElementById('find').dispatchEvent(new Event('change'))")
    assert HOSTILE in opened.value("document.getElementById('details').textContent")
    assert opened.value("document.title") == "diamond – optpart report"


def test_hostile_names_are_drawn_as_they_are(opened: Browser, tmp_path: Path) -> None:
    names = [name for name in NAMES if name.isprintable() and len(name) <= 22]
    builder = GraphBuilder()
    for name in names:
        builder.vertex(name, 10, outputs=[1])
    for source, target in pairwise(names):
        builder.edge(source, target, 0)
    cluster = Cluster.of([Device(NAMES[0], 1, NAMES[1]), Device("<i>", 1, "__proto__")], 10)
    instance = Instance(builder.build(), cluster, name="</title><b>")
    placement = [v % 2 for v in range(len(names))]
    op.write_report(result(instance, placement, "</td>"), tmp_path / "r.html")
    watch = opened.call(
        "Page.addScriptToEvaluateOnNewDocument",
        source="""
        window.drawn = new Set();
        const canvas = CanvasRenderingContext2D.prototype, draw = canvas.fillText;
        canvas.fillText = function (text, ...rest) {
          window.drawn.add(text);
          return draw.call(this, text, ...rest);
        };
        """,
    )
    opened.open(tmp_path / "r.html")
    opened.call("Page.removeScriptToEvaluateOnNewDocument", **watch)
    assert opened.value("document.title") == "</title><b> – optpart report"
    drawn = opened.value("[...window.drawn]")
    # Labels that overlap others are left out; those with braces are templates of the library.
    assert {"{}", "{b}", "{a|b}", "${HOME}"} <= {*drawn} & {*names}


def box(page: Browser, name: str) -> tuple[float, float, float, float]:
    page.value(f"document.getElementById('{name}').scrollIntoView({{block: 'center'}})")
    place = page.value(
        "(b => [b.x, b.y, b.width, b.height])"
        f"(document.getElementById('{name}').getBoundingClientRect())"
    )
    return tuple(place)


def zoom(page: Browser) -> list[float]:
    return [
        float(part) for part in page.value("document.getElementById('gantt').dataset.zoom").split()
    ]


def test_wheel_and_keys_zoom_the_schedule(opened: Browser, tmp_path: Path) -> None:
    op.write_report(result(diamond(), [0, 0, 1, 1]), tmp_path / "r.html")
    opened.open(tmp_path / "r.html")
    x, y, width, height = box(opened, "gantt")
    assert zoom(opened) == [0, 100]
    opened.click(x + width / 2, y + height / 2)
    opened.mouse("mouseWheel", x + width / 2, y + height / 2, deltaX=0, deltaY=-240)
    opened.wait("document.getElementById('gantt').dataset.zoom !== '0.00 100.00'")
    opened.key("0")
    assert zoom(opened) == [0, 100]
    opened.key("+")
    assert zoom(opened) == [25, 75]
    opened.key("ArrowRight")
    assert zoom(opened) == [37.5, 87.5]
    opened.key("-")
    assert zoom(opened) == [0, 100]


def test_hovering_shows_exact_times(opened: Browser, tmp_path: Path) -> None:
    op.write_report(result(diamond(), [0, 0, 1, 1]), tmp_path / "r.html")
    opened.open(tmp_path / "r.html")
    x, y, _width, _ = box(opened, "gantt")
    opened.mouse("mouseMoved", x + 150, y + 60)  # the beginning of the first row, where a runs
    opened.wait("document.querySelector('#gantt .tip') !== null")
    said = opened.value("document.querySelector('#gantt .tip').textContent")
    assert said.startswith("a")
    assert "10/3" in said


def test_stepping_shows_the_inputs_of_a_vertex(opened: Browser, tmp_path: Path) -> None:
    op.write_report(result(diamond(), [0, 0, 1, 1]), tmp_path / "r.html")
    opened.open(tmp_path / "r.html")
    opened.value("document.getElementById('gantt').focus()")
    opened.key(".")
    assert "a" in opened.value("document.querySelector('#details b').textContent")
    opened.key(".")
    assert "a:0" in opened.value("document.getElementById('details').textContent")
    opened.key("Escape")
    assert opened.value("document.getElementById('details').textContent") == ""


@pytest.mark.parametrize("name", ["transfers", "path", "idle"])
def test_toggles_change_the_picture(opened: Browser, tmp_path: Path, name: str) -> None:
    op.write_report(result(diamond(), [0, 0, 1, 1]), tmp_path / "r.html")
    opened.open(tmp_path / "r.html")
    picture = "document.querySelector('#gantt canvas').toDataURL()"
    before = opened.value(picture)
    opened.value(f"document.getElementById('show-{name}').click()")
    opened.wait(f"{picture} !== {json.dumps(before)}")


def test_results_side_by_side(opened: Browser, tmp_path: Path) -> None:
    instance = diamond()
    several = [result(instance, [0, 0, 1, 1], "one"), result(instance, [1, 1, 1, 1], "two")]
    op.write_report(several, tmp_path / "r.html")
    opened.open(tmp_path / "r.html")
    shown = (
        "[...document.querySelectorAll('#comparison-table [data-exact]')].map(f => f.dataset.exact)"
    )
    assert {str(one.makespan) for one in several} <= set(opened.value(shown))
    choose(opened, "other", "1")
    assert not opened.value("document.getElementById('gantt-b-box').hidden")
    assert opened.value("document.getElementById('gantt-b-note').textContent").startswith(
        "2 vertices run on another"
    )
    choose(opened, "choose", "1")
    assert exact(opened, "makespan") == str(several[1].makespan)


def test_an_infeasible_instance_says_why(opened: Browser, tmp_path: Path) -> None:
    found = conclude(diamond(), "cpsat", None, infeasible="a fits no device")
    op.write_report(found, tmp_path / "r.html")
    opened.open(tmp_path / "r.html")
    said = opened.value("document.getElementById('verdict').textContent")
    assert said.startswith("Infeasible")
    assert "a fits no device" in said
    assert opened.value("document.getElementById('schedule').hidden")


def test_a_large_graph_is_grouped_and_groups_open(opened: Browser, tmp_path: Path) -> None:
    op.write_report(spread(large(1500)), tmp_path / "r.html")
    opened.open(tmp_path / "r.html")
    nodes = "Number(document.getElementById('graph-chart').dataset.nodes)"
    assert opened.value(nodes) < 100
    before = opened.value(nodes)
    first = opened.value("document.getElementById('open-group').options[1].value")
    choose(opened, "open-group", first)
    assert opened.value(nodes) > before
    opened.value("document.getElementById('close-all').click()")
    assert opened.value(nodes) == before


def test_a_huge_schedule_is_shown_in_intervals(
    opened: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("optpart.study.report.html.page.WHOLE", 1000)
    found = spread(large(1500))
    op.write_report(found, tmp_path / "r.html")
    opened.open(tmp_path / "r.html")
    assert "too many to show" in opened.value(
        "document.getElementById('schedule-hint').textContent"
    )
    assert exact(opened, "makespan") == str(found.makespan)
    assert opened.value("document.getElementById('table').hidden")


def test_dark_mode_narrow_windows_and_print(opened: Browser, tmp_path: Path) -> None:
    op.write_report(result(diamond(), [0, 0, 1, 1]), tmp_path / "r.html")
    opened.open(tmp_path / "r.html", dark=True)
    assert opened.value("getComputedStyle(document.body).backgroundColor") == "rgb(20, 24, 31)"
    opened.open(tmp_path / "r.html", width=400)
    assert opened.value("document.documentElement.scrollWidth <= window.innerWidth")
    assert opened.printed().startswith(b"%PDF")
    assert opened.value("document.querySelectorAll('img.print').length") == 0


def test_numbers_that_no_double_holds_are_told_right(opened: Browser, tmp_path: Path) -> None:
    builder = GraphBuilder()
    for name in "ab":
        builder.vertex(name, 10**400, outputs=[1])
    builder.edge("a", "b")
    instance = Instance(builder.build(), Cluster.uniform(1, 1), name="huge")
    op.write_report(
        conclude(instance, "given", retime(instance, [0, 0], [0, 1])), tmp_path / "h.html"
    )
    opened.open(tmp_path / "h.html")
    assert exact(opened, "makespan") == str(2 * 10**400)
    assert "2.00000e400" in opened.value("document.getElementById('verdict').textContent")
    assert "Infinity" not in opened.value("document.body.innerText")


def test_an_empty_graph_and_a_bare_instance_have_reports(opened: Browser, tmp_path: Path) -> None:
    empty = Instance(GraphBuilder().build(), Cluster.uniform(2), name="empty")
    op.write_report(conclude(empty, "given", retime(empty, [], [])), tmp_path / "e.html")
    opened.open(tmp_path / "e.html")
    assert exact(opened, "makespan") == "0"
    op.write_report(diamond(), tmp_path / "i.html")
    opened.open(tmp_path / "i.html")
    assert "without a result" in opened.value("document.getElementById('summary').textContent")


def text(page: Browser, name: str) -> str:
    found = page.value(f"document.getElementById('{name}').textContent")
    assert isinstance(found, str)
    return found


def test_the_tight_bound_is_explained_and_its_interval_marked(
    opened: Browser, tmp_path: Path
) -> None:
    builder = GraphBuilder().vertex("sink", 1)
    for name in "abc":
        builder.vertex(name, 10, outputs=[1]).edge(name, "sink")
    instance = Instance(builder.build(), Cluster.uniform(4, 1, Fraction(1, 15)), name="fan")
    order = instance.graph.topological_order.tolist()
    schedule = retime(instance, [0, 0, 1, 2], order)
    found = conclude(instance, "cpsat", schedule, bound=Fraction(26))
    assert found.makespan == 26
    op.write_report(found, tmp_path / "r.html")
    opened.open(tmp_path / "r.html")
    assert text(opened, "tight").startswith("It is the bound one-machine")
    said = opened.value("document.querySelector('.interval').textContent")
    assert "3 vertices (a, b, c) all run there before it, one at a time" in said
    assert "then sink starts no earlier than 30" in said
    assert "Or one of them runs elsewhere; then sink starts no earlier than 25" in said
    picture = "document.querySelector('#gantt canvas').toDataURL()"
    assert opened.value("document.getElementById('bound').value") == "one-machine"
    before = opened.value(picture)
    choose(opened, "bound", "")
    opened.wait(f"{picture} !== {json.dumps(before)}")


def test_a_bound_by_a_solver_says_so_and_how_far_the_others_reach(
    opened: Browser, tmp_path: Path
) -> None:
    instance = op.load("small-10-2-ccr0.1-g-s1")
    known = library.evidence(instance).best
    assert known is not None
    found = conclude(instance, "cpsat", known.schedule, bound=known.makespan)
    op.write_report(found, tmp_path / "r.html")
    opened.open(tmp_path / "r.html")
    assert "CP-SAT proved it in its search" in text(opened, "tight")
    assert "the largest of them, load, is 1595, 99.6 % of it" in text(opened, "tight")


def test_energy_lists_its_intervals_with_exact_figures(opened: Browser, tmp_path: Path) -> None:
    op.write_report("kwok-ahmad-9-2", tmp_path / "r.html")
    opened.open(tmp_path / "r.html")
    rows = opened.value(
        "[...document.querySelectorAll('table.intervals tbody tr')]"
        ".map(row => [...row.querySelectorAll('[data-exact]')].map(f => f.dataset.exact))"
    )
    assert rows == [["2", "15", "13"], ["2", "15", "13"]]
    said = text(opened, "bounds-text")
    assert "no schedule takes 15 or less" in said
    assert "at least 28 of work" in said
    assert "room for 26" in said


@pytest.mark.parametrize("objective", ["traffic", "bottleneck"])
def test_other_objectives_say_which_bound_counts(
    opened: Browser, tmp_path: Path, objective: str
) -> None:
    found = op.solve(diamond("none"), "enumerate", objective=objective, seconds=10)
    op.write_report(found, tmp_path / "r.html")
    opened.open(tmp_path / "r.html")
    assert text(opened, "own-bound").startswith(f"This run minimised the {objective}")
    assert f"say nothing about the {objective}" in text(opened, "own-bound")


def test_a_store_of_several_instances_has_a_table_and_a_page_for_each(
    opened: Browser, tmp_path: Path
) -> None:
    path = tmp_path / "runs.db"
    makespans = {}
    with Store(path) as store:
        for name in ("heft-10", "kwok-ahmad-9-2"):
            instance = op.load(name)
            found = result(instance, [0] * instance.vertices)
            makespans[name] = found.makespan
            store.add(Run(instance, "given", 0, op.Budget()), found)
    op.write_report(path, tmp_path / "r.html")
    opened.open(tmp_path / "r.html")
    rows = (
        "[...document.querySelectorAll('#overview-table tbody tr')]"
        ".map(row => [row.cells[0].textContent, row.querySelector('[data-exact]').dataset.exact])"
    )
    assert dict(opened.value(rows)) == {name: str(value) for name, value in makespans.items()}
    assert opened.value("getComputedStyle(document.getElementById('bounds')).display") == "none"
    opened.value("document.querySelectorAll('#overview-table a')[1].click()")
    arrive(opened, "kwok-ahmad-9-2")
    assert exact(opened, "makespan") == str(makespans["kwok-ahmad-9-2"])
    opened.value("document.querySelector('#instances a').click()")
    arrive(opened, "2 instances")


def arrive(page: Browser, title: str) -> None:
    """Wait until a link has led to the page with a title; until then, it may be going away."""
    ready = "document.body?.dataset.ready === 'yes' && document.getElementById('title').textContent"
    for _ in range(500):
        try:
            if page.value(ready) == title:
                return
        except AssertionError:
            pass
        time.sleep(0.02)
    raise AssertionError(f"{title} did not appear")


def test_a_bound_of_the_report_that_proves_more_than_the_run_is_told(
    opened: Browser, tmp_path: Path
) -> None:
    known = library.evidence(op.load("kwok-ahmad-9-2")).best
    assert known is not None
    found = conclude(known.instance, "given", known.schedule, bound=Fraction(11))
    op.write_report(found, tmp_path / "r.html")
    opened.open(tmp_path / "r.html")
    assert text(opened, "beyond").startswith("In fact it is optimal: the bound series below")
    assert "The bound series below proves more than the run: 17." in text(opened, "tight")
