"""Tables on narrow terminals: no line is wider than the terminal, and no figure is cut."""

import io
import itertools
import re
from collections.abc import Callable
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from rich.cells import cell_len
from rich.table import Table

import optpart as op
from optpart.api import pipeline_problem, plan
from optpart.applications.ordering.compare import Orders, compare_orders
from optpart.applications.training.graph import Line
from optpart.applications.training.profile import Fit, FittedCosts
from optpart.commands.bound import print_bounds
from optpart.commands.devices import print_library
from optpart.commands.ordering import print_orders
from optpart.commands.pipeline import print_plan
from optpart.commands.profile import print_costs
from optpart.exact.pipeline.plan import PipelinePlan
from optpart.interop.devices import library
from optpart.lower_bounds.best import LowerBound
from optpart.methods import registry
from optpart.solution.result import Progress, Result
from optpart.solution.schedule import retime
from optpart.study.attribution import Division, Split
from optpart.study.gap import Comparison, Reference
from optpart.study.report.axis_table import print_division
from optpart.study.report.console import PlainConsole
from optpart.study.report.gap_table import print_comparison, print_line, print_summary
from optpart.study.report.progress import position, said
from optpart.study.report.simulation import print_devices
from optpart.study.report.text import remark

WIDTHS = (80, 60, 40)


def console(width: int) -> PlainConsole:
    return PlainConsole(file=io.StringIO(), markup=False, emoji=False, highlight=False,
                        soft_wrap=True, width=width)  # fmt: skip


def printed(width: int, show: Callable[[PlainConsole], None]) -> str:
    where = console(width)
    show(where)
    text = where.file.getvalue()
    assert max(cell_len(line.rstrip()) for line in text.splitlines()) <= width, text
    return text


def figures(text: str) -> list[str]:
    return re.findall(r"\d[\d.,/%]*\d%?|\d%?", text)


def result(instance: op.Instance, method: str, makespan: int, seed: int, **known: object) -> Result:
    return Result(
        instance, method, op.Status.FEASIBLE,
        {"makespan": Fraction(makespan), "traffic": Fraction(98765432)},
        seconds=123.4, seed=seed, **known,
    )  # fmt: skip


METHODS = ("critical-path-paper+pct-min", "heft", "mite+pct", "a-method-of-the-user-with-a-name")


def comparison(seeds: int, name: str = "gpt2-xl-decode-workstation-tight") -> Comparison:
    builder = op.GraphBuilder().vertex("a", 1)
    instance = op.Instance(builder.build(), op.Cluster.uniform(2), name=name)
    reference = Reference(
        Fraction(1_234_567_890), Fraction(1_234_567_889), "search", "crossings",
        note="the time limit was reached before the proof",
    )  # fmt: skip
    results = [
        result(instance, method, 1_334_567_890 + 7919 * i + 31 * seed, seed, reason="out of time")
        for i, method in enumerate(METHODS)
        for seed in range(seeds)
    ]
    return Comparison(instance, reference, tuple(results))


def division(seeds: int) -> Division:
    made = comparison(seeds)
    splits = [Split(each, None, each) for each in made.results]
    return Division(made.instance, made.results[0], tuple(splits))


@cache  # its seconds differ from run to run
def stages() -> PipelinePlan:
    builder = op.GraphBuilder()
    names = [f"transformer/block-{'abcdef'[i]}/attention" for i in range(6)]
    for name in names:
        builder.vertex(name, 1_234_567, outputs=[10])
    for one, next_one in itertools.pairwise(names):
        builder.edge(one, next_one)
    cluster = op.Cluster.of([op.Device(f"a-device-of-the-lab-{d}") for d in "abc"], 10)
    return plan(pipeline_problem(op.Instance(builder.build(), cluster, name="stages")))


def fitted() -> FittedCosts:
    fit = Fit(Line(Fraction(123_456_789), Fraction(98_765)), 1234, 0.0123, 1.2345)
    keys = [("transformer/h/attention", "v100-16gb"), ("conv", "a100")]
    return FittedCosts(dict.fromkeys(keys, fit), {("gpu-of-rack-a", "gpu-of-rack-b"): fit})


@cache
def orders() -> Orders:
    builder = op.GraphBuilder()
    for name, time, where in (("r", 3_000_001, "c"), ("s", 3_000_017, "c"), ("o", 4_000_037, "w")):
        builder.vertex(name, time, devices=[where])
    builder.edge("r", "o", None)
    cluster = op.Cluster.of([op.Device("w"), op.Device("c")])
    instance = op.Instance(builder.build(), cluster, name="figure")
    return compare_orders(instance, op.Budget(10.0, 1))


def simulated(c: PlainConsole) -> None:
    instance = op.load("heft-10")
    placement = [0] * instance.vertices
    order = instance.graph.topological_order.tolist()
    print_devices(c, instance, retime(instance, placement, order))


def bounds(c: PlainConsole) -> None:
    names = ("critical-path", "one-machine", "a-bound-of-the-user-with-a-long-name")
    found = [LowerBound(n, Fraction(10**15 + i), 12.3 + i) for i, n in enumerate(names)]
    print_bounds(c, [*found, LowerBound("load", None, 0.0)], found[2])


TABLES: dict[str, Callable[[PlainConsole], None]] = {
    "gap": lambda c: print_comparison(c, comparison(1)),
    "gap --seeds": lambda c: print_comparison(c, comparison(3)),
    "gap of many": lambda c: print_line(c, comparison(1)),
    "summary": lambda c: print_summary(c, [comparison(2), comparison(2, "x")]),
    "gap --axis": lambda c: print_division(c, division(1)),
    "gap --axis --seeds": lambda c: print_division(c, division(2)),
    "simulate": simulated,
    "bound": bounds,
    "devices": lambda c: print_library(
        c, [*library.devices().values()], [*library.links().values()]
    ),
    "methods": lambda c: c.tell_rows([(e.name, e.kind, e.summary) for e in registry.entries()]),
    "pipeline": lambda c: print_plan(c, stages()),
    "profile fit": lambda c: print_costs(c, fitted()),
    "ordering": lambda c: print_orders(c, "figure", orders()),
}


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("table", TABLES)
def test_every_figure_of_a_table_stays_whole(table: str, width: int) -> None:
    wide, narrow = printed(500, TABLES[table]), printed(width, TABLES[table])
    missing = {*figures(wide)} - {*figures(narrow)}
    assert not missing
    assert "…" not in re.sub(r"[a-z-]+…[a-z-]*", "", narrow)  # only words may be shortened


@pytest.mark.parametrize("seed", range(12))
def test_drawn_tables_fit_and_keep_their_figures(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = Table(box=None, pad_edge=False, padding=(0, 2))
    columns = int(rng.integers(1, 9))
    table.add_column("  name", no_wrap=True)
    for i in range(columns):
        table.add_column("of the " * int(rng.integers(0, 3)) + f"head{i}", justify="right")
    remarks = bool(rng.integers(2))
    if remarks:
        table.add_column("")
    shown = []
    for row in range(int(rng.integers(1, 40))):
        cells = [str(rng.integers(10 ** int(rng.integers(1, 12)))) for _ in range(columns)]
        shown += cells
        why = [remark("why " * int(rng.integers(0, 30)))] if remarks else []
        table.add_row(f"  {'n' * int(rng.integers(1, 50))}{row}", *cells, *why)
    text = printed(int(rng.integers(40, 120)), lambda c: c.show(table))
    assert {*shown} <= {*re.findall(r"\d+", text)}


def test_heads_break_first_then_letters_stand_for_names_then_rows_break() -> None:
    table = Table(box=None, pad_edge=False, padding=(0, 2))
    for head in ("  method", "mean over optimum", "worst"):
        table.add_column(head, justify="left" if head == "  method" else "right")
    table.add_row("! mite+pct-with-a-name", "35.62%", "1,234,567")
    assert printed(80, lambda c: c.show(table)).splitlines()[0].split() == [
        "method", "mean", "over", "optimum", "worst",
    ]  # fmt: skip
    assert printed(45, lambda c: c.show(table)).splitlines()[2].split() == [
        "method", "optimum", "worst",
    ]  # fmt: skip
    assert "! a" in printed(30, lambda c: c.show(table))
    assert "  a = mite+pct-with-a-name" in printed(30, lambda c: c.show(table))
    text = console(20)
    text.show(table)
    assert text.file.getvalue().splitlines() == [
        "! mite+pct…th-a-name", "    mean over", "    optimum 35.62%,", "    worst 1,234,567",
    ]  # fmt: skip


def test_sentences_are_broken_beside_their_words_or_below_them() -> None:
    rows = [("heft", "pair", "earliest finish time first"), ("cpsat", "exact", "a solver")]
    assert printed(40, lambda c: c.tell_rows(rows)).splitlines() == [
        "heft   pair   earliest finish time first",
        "cpsat  exact  a solver",
    ]
    assert printed(38, lambda c: c.tell_rows(rows)).splitlines() == [
        "heft   pair   earliest finish time",
        "              first",
        "cpsat  exact  a solver",
    ]
    assert printed(30, lambda c: c.tell_rows(rows)).splitlines() == [
        "heft  pair", "    earliest finish time first", "cpsat  exact", "    a solver",
    ]  # fmt: skip


def test_names_bring_neither_markup_nor_control_characters() -> None:
    name = "[red]x[/red]\x1b[31m\u202e:smile:\n"
    text = printed(60, lambda c: print_comparison(c, comparison(1, name)))
    assert "[red]x[/red]\\x1b[31m\\u202e:smile:\\n" in text
    assert "\x1b" not in text


@pytest.mark.parametrize("width", [20, 40, 60, 80])
def test_a_progress_line_never_wraps_and_cuts_no_figure(width: int) -> None:
    for step in (
        None,
        Progress(1.5, Fraction(10**17), Fraction(10**16)),
        Progress(1234.5, Fraction(80), Fraction(73), remark="a remark " * 9),
    ):
        line = said("[1/9, about 3 min left] a-long-name-of-an-instance  mite+pct", step, width)
        assert len(line) <= width
        if step is not None:
            whole = {*figures(said("x", step))} | {*figures("[1/9, about 3")}
            assert {*figures(re.sub(r"^.*?  ", "", line))} <= whole


def test_a_sweep_says_how_long_it_will_take() -> None:
    assert position(0, 1, 5) == ""
    assert position(0, 4, 5) == "[1/4] "
    assert position(1, 4, 5) == "[2/4, about 15 s left] "
    assert position(2, 4, 400) == "[3/4, about 7 min left] "
    assert position(1, 3, 5000) == "[2/3, about 3 h left] "


ROWS = [("a", "1", "OPTIMAL"), ("one\nname", "12,345,678", "FEASIBLE")]
HEADS = ("name", "best makespan", "status")


def test_many_rows_are_printed_as_a_table() -> None:
    text = printed(40, lambda c: c.show_rows(HEADS, ROWS, left=("name", "status")))
    assert text.splitlines() == [
        "name       best makespan  status",
        "a                      1  OPTIMAL",
        "one\\nname     12,345,678  FEASIBLE",
    ]


def test_many_rows_are_rearranged_as_a_table_is() -> None:
    def as_table(console: PlainConsole) -> None:
        table = Table(box=None, pad_edge=False)
        for head in HEADS:
            table.add_column(head, justify="right" if head == HEADS[1] else "left")
        for row in ROWS:
            table.add_row(*row)
        console.show(table)

    for width in (30, 24):
        text = printed(width, lambda c: c.show_rows(HEADS, ROWS, left=("name", "status")))
        assert text == printed(width, as_table)
        assert figures(text) == figures("1 12,345,678")
