"""Objects in notebooks: HTML, pictures on the user's axes, data frames, live progress."""

import io
import os
import re
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path

import matplotlib as mpl
import networkx as nx
import pytest
from matplotlib import pyplot
from matplotlib.figure import Figure

import optpart as op
from optpart.applications.training.comparison import Bounded
from optpart.applications.training.comparison import Comparison as StrategyComparison
from optpart.applications.training.makers.base import Made
from optpart.applications.training.question import Solved
from optpart.applications.training.strategy import Decision, Strategy
from optpart.base.errors import InputError
from optpart.certificates.certify import Refutation
from optpart.problem.graph import Graph
from optpart.solution.result import Progress
from optpart.study.gap import Comparison, Reference
from optpart.study.report.plots import KINDS
from optpart.testing.draw import draw_instance

mpl.use("Agg")

EVIL = '<script>alert("$x$")</script>\x1b[31m\n\u202e'


class Tags(HTMLParser):
    """Collects tags, and finds those that are not closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        if tag != "img":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def pair(name: str = "pair") -> op.Instance:
    builder = op.GraphBuilder().vertex(name, 2, outputs=[4]).vertex("b", 1).edge(name, "b")
    cluster = op.Cluster.of([op.Device(f"{name}0"), op.Device("d1")], bandwidth=2)
    return op.Instance(builder.build(), cluster, name=name, source=name)


def solved(name: str = "pair") -> op.Result:
    instance = pair(name)
    steps = (Progress(0.1, Fraction(6), Fraction(2)), Progress(0.5, Fraction(5), Fraction(3)))
    schedule = op.retime(instance, [0, 1], [0, 1])
    return op.conclude(instance, name, schedule, bound=Fraction(3), trace=steps, seconds=1.0)


def compared(name: str = "pair") -> Comparison:
    instance = pair(name)
    found = [
        op.conclude(instance, method, op.retime(instance, place, [0, 1]), seed=seed)
        for method, place in (("near", [0, 0]), (f"{name} far", [0, 1]))
        for seed in (0, 1)
    ]
    failed = [op.conclude(instance, "none", None, reason=name, seed=seed) for seed in (0, 1)]
    return Comparison(instance, Reference(Fraction(3), Fraction(3), name, name), (*found, *failed))


def shown(name: str) -> list[object]:
    result = solved(name)
    return [
        result.instance, result.schedule, result, compared(name),
        Refutation("path", Fraction(1), {}),
        Strategy(8, ((0, 1),), (Decision((1, 1), "allreduce"),)),
    ]  # fmt: skip


@pytest.mark.parametrize("what", range(6))
def test_every_answer_has_a_short_repr_and_html_of_escaped_names(what: int) -> None:
    thing = shown(EVIL)[what]
    assert len(repr(thing)) <= 160
    assert repr(thing).isprintable()
    html = thing._repr_html_()
    tags = Tags(html)
    assert tags.open == []
    assert tags.seen <= {"div", "strong", "table", "thead", "tbody", "tr", "th", "td", "p", "img"}
    assert not re.search(r"[\x00-\x1f\u202e]", html)


def test_strategies_that_were_solved_are_shown() -> None:
    question = op.strategy_question("vgg19", "heterog-8", 32, groups=2)
    assert repr(question) == "<Question on vgg19: batch 32, 2 groups, 8 devices>"
    strategy = Strategy(32, question.problem.groups, (Decision((1,) * 8, "allreduce"),) * 2)
    made = Made(strategy, Fraction(10**9))
    answer = Solved(question, "by hand", made, Bounded(Fraction(10**8), actions=9))
    assert repr(answer) == ("<Solved by hand for vgg19 on heterog-8: <Made: 1,000,000,000 ns>>")
    html = answer._repr_html_()
    for text in ("1000 ms", "gap 90.00%", "allreduce"):
        assert text in html
    several = StrategyComparison(question.problem, (("by hand", made),), answer.bound)
    assert repr(several) == "<Comparison on vgg19: 1 methods>"
    assert "90.00%" in several._repr_html_()


def test_a_result_shows_its_values_and_its_schedule() -> None:
    html = solved()._repr_html_()
    for text in ("FEASIBLE", ">5<", ">3<", "40.00%", "data:image/png;base64,"):
        assert text in html
    empty = op.conclude(pair(), "m", None, reason="nothing <found>")._repr_html_()
    assert "nothing &lt;found&gt;" in empty
    assert "<img" not in empty


def drawn(axes: mpl.axes.Axes) -> str:
    """Draw for real, and return all texts."""
    target = io.BytesIO()
    with mpl.rc_context({"svg.fonttype": "none"}):
        axes.figure.savefig(target, format="svg")
    return target.getvalue().decode()


@pytest.mark.parametrize("ax", [None, "given"])
def test_plots_return_the_axes_that_were_given_or_new_ones(ax: str | None) -> None:
    for plot in (
        solved().plot, solved().plot_progress, pair().plot,
        lambda ax: pair().plot({"pair": "d1"}, ax=ax),
        *(lambda ax, kind=kind: compared().plot(kind, ax=ax) for kind in KINDS),
    ):  # fmt: skip
        given = None if ax is None else Figure().add_subplot()
        axes = plot(ax=given)
        assert isinstance(axes, mpl.axes.Axes)
        assert given is None or axes is given
        assert drawn(axes)
    mpl.pyplot.close("all")


def test_pictures_take_names_literally() -> None:
    for plot in (solved("$x$").plot, pair("$x$").plot, compared("$x$").plot):
        assert "$x$" in drawn(plot(ax=Figure().add_subplot()))


def test_the_first_picture_of_a_notebook_leaves_pictures_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    subplots = pyplot.subplots

    def first(*sizes: object, **options: object) -> object:
        mpl.interactive(True)  # as the backend of notebooks does when it is loaded
        return subplots(*sizes, **options)

    monkeypatch.setattr(pyplot, "subplots", first)
    with mpl.rc_context():
        mpl.interactive(False)
        solved().plot()
        assert mpl.is_interactive()
    pyplot.close("all")


def test_axes_name_their_units() -> None:
    assert solved().plot(ax=Figure().add_subplot()).get_xlabel() == "time (units of the instance)"
    progress = solved().plot_progress(ax=Figure().add_subplot())
    assert progress.get_xlabel() == "time of the run (s)"
    assert progress.get_ylabel() == "makespan (units of the instance)"
    result = solved()
    stated = replace(result, instance=replace(result.instance, time_unit="us"))
    assert stated.plot(ax=Figure().add_subplot()).get_xlabel() == "time (µs)"
    assert stated.plot_progress(ax=Figure().add_subplot()).get_ylabel() == "makespan (µs)"


def test_a_result_has_the_unit_of_its_instance() -> None:
    result = solved()
    assert "makespan 5, lower bound 3>" in repr(result)
    stated = replace(result, instance=replace(result.instance, time_unit="us"))
    assert "makespan 5 µs, lower bound 3 µs>" in repr(stated)
    assert "5 µs" in stated._repr_html_()


def test_a_profile_counts_runs_without_a_schedule() -> None:
    axes = compared().plot("profile", ax=Figure().add_subplot())
    ends = {line.get_label(): line.get_ydata()[-1] for line in axes.get_lines()}
    assert ends == {"near": 1.0, "pair far": 1.0, "none": 0.0}
    assert "2/2 not solved" in drawn(compared().plot("mean", ax=Figure().add_subplot()))


def test_what_cannot_be_drawn_is_one_line() -> None:
    for fault, message in (
        (lambda: op.conclude(pair(), "m", None).plot(), "schedule: missing"),
        (lambda: op.conclude(pair(), "m", None).plot_progress(), "trace: empty"),
        (lambda: pair().plot({"x": "d1"}), "placement: no vertex 'x'"),
        (lambda: pair().plot({"b": "d7"}), "placement: no device 'd7'"),
        (lambda: compared().plot("pie"), "kind: unknown 'pie'; choose one of box, profile, mean"),
        (lambda: op.plot_comparisons([]), "comparisons: without results"),
    ):
        with pytest.raises(InputError, match=message):
            fault()


@pytest.mark.parametrize("seed", range(20))
def test_graphs_come_back_from_networkx(seed: int) -> None:
    there = draw_instance(seed, "link", "refcount").to_networkx()
    again = Graph.from_networkx(there).to_networkx()
    assert nx.utils.graphs_equal(there, again)  # edges may come in another order


def test_frames_hold_doubles_and_exact_values() -> None:
    pytest.importorskip("pandas", reason="needs optpart[pandas]")
    frame = solved().to_dataframe()
    assert frame["end"].tolist() == [2.0, 5.0]
    assert frame["end_exact"].tolist() == [Fraction(2), Fraction(5)]
    assert frame["device"].tolist() == ["pair0", "d1"]
    assert pair().to_dataframe()["out_edges"].tolist() == [1, 0]
    assert sorted({*compared().to_dataframe()["method"]}) == ["near", "none", "pair far"]


def test_without_pandas_there_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(InputError, match=r"pandas: not installed; .* 'optpart\[pandas\]'"):
        pair().to_dataframe()


def test_importing_the_package_loads_nothing_that_draws() -> None:
    code = (
        "import sys, optpart; optpart.Result; optpart.Instance; "
        "print([m for m in ('matplotlib', 'pandas', 'IPython', 'optpart.study.report') "
        "if m in sys.modules])"
    )
    ran = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True
    )
    assert ran.stdout == "[]\n"


def test_progress_outside_of_notebooks_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    watch = op.live("mine ")
    watch(Progress(0.1, Fraction(6), Fraction(2)))
    watch("heft", None)
    watch.clear()
    assert capsys.readouterr().out == ""


CELLS = [
    "import optpart as op\n"
    "instance = op.load('heft-10')\n"
    "result = op.solve(instance, 'cpsat', seconds=5, watch=op.live())",
    "instance", "result", "result.schedule", "result.plot(); None",
]  # fmt: skip


def test_a_notebook_runs_and_shows_html() -> None:
    nbformat = pytest.importorskip("nbformat", reason="needs nbformat")
    client = pytest.importorskip("nbclient", reason="needs nbclient")
    pytest.importorskip("ipykernel", reason="needs ipykernel")
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    client.NotebookClient(book, timeout=120, kernel_name="python3").execute()
    progress, instance, result, schedule, plot = (cell.outputs for cell in book.cells)
    assert any("incumbent" in out.get("data", {}).get("text/html", "") for out in progress)
    assert not any(out.output_type == "stream" for out in progress)
    for shown, text in ((instance, "Instance heft-10"), (result, "makespan"), (schedule, "device")):
        assert text in shown[0]["data"]["text/html"]
        assert shown[0]["data"]["text/plain"].startswith("<")
    assert any("image/png" in out.get("data", {}) for out in plot)


def test_plain_ipython_prints_short_texts(tmp_path: Path) -> None:
    pytest.importorskip("IPython", reason="needs ipython")
    code = (
        "import optpart as op; i = op.load('heft-10'); "
        "r = op.solve(i, 'heft', watch=op.live()); get_ipython().run_cell('r')"
    )
    ran = subprocess.run(
        [sys.executable, "-P", "-m", "IPython", "--no-banner", "--colors=NoColor", "-c", code],
        capture_output=True, text=True, check=True, cwd=tmp_path,
        env={**os.environ, "IPYTHONDIR": str(tmp_path)},
    )  # fmt: skip
    assert "<Result heft on heft-10: FEASIBLE, makespan 80" in ran.stdout
    assert ran.stdout.count("\n") <= 4
