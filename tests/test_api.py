"""``import optpart as op``: each function does what the command of its name does."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from fractions import Fraction
from importlib import import_module
from inspect import signature
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import pytest
from commandline import Run

import optpart as op
from optpart import api

#: Small enough for a second opinion by enumeration.
SMALL = "graham-1969-4"


def test_every_name_that_is_offered_is_there_and_listed() -> None:
    assert set(op.__all__) <= set(dir(op))
    assert [name for name in op.__all__ if getattr(op, name, None) is None] == []


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = op.nothing


def test_python_can_suggest_a_name_close_to_an_unknown_one() -> None:
    with pytest.raises(AttributeError) as caught:
        _ = op.slove
    assert (caught.value.name, caught.value.obj) == ("slove", op)


def test_no_name_is_that_of_a_package_which_would_take_its_place() -> None:
    modules = {module.name for module in iter_modules(op.__path__)}
    assert not modules & {*op.__all__}


class TestLoad:
    def test_takes_the_name_of_a_library_instance_or_a_path(self, tmp_path: Path) -> None:
        instance = op.load("heft-10")
        op.save(instance, tmp_path / "copy.json")
        assert op.load(tmp_path / "copy.json").sha256 == instance.sha256
        assert op.load(str(tmp_path / "copy.json")).sha256 == instance.sha256

    def test_neither_is_an_input_error(self) -> None:
        with pytest.raises(op.InputError, match="nowhere: no such file; name a file"):
            op.load("nowhere")


class TestSolve:
    def test_says_what_the_command_says(self, run: Run) -> None:
        shown = json.loads(run("solve", "heft-10", "-m", "heft", "--json").out)
        result = op.solve("heft-10", "heft")
        assert (result.status, str(result.makespan)) == (shown["status"], shown["makespan"])
        assert str(result.lower_bound) == shown["lower_bound"]

    def test_bounds_what_a_heuristic_finds(self) -> None:
        result = op.solve(op.load("heft-10"), "heft")
        assert (result.makespan, result.lower_bound) == (80, 73)
        assert result.status is op.Status.FEASIBLE

    def test_proves_an_optimum(self) -> None:
        result = op.solve(SMALL, "enumerate")
        assert result.status is op.Status.OPTIMAL
        assert result.makespan == result.lower_bound == 12

    def test_decides_whether_there_is_a_schedule_within_a_limit(self) -> None:
        assert op.solve(SMALL, "enumerate", within=11).status is op.Status.INFEASIBLE
        assert op.solve(SMALL, "enumerate", within=Fraction(12)).status is op.Status.OPTIMAL

    @pytest.mark.parametrize("fix", ["placement", "both"])
    def test_keeps_what_is_fixed_of_a_start(self, fix: str) -> None:
        start = op.solve("heft-10", "heft")
        assert start.schedule is not None
        for given in (start, start.schedule, "heft"):
            kept = op.solve("heft-10", start=given, fix=fix, seconds=20)  # type: ignore[arg-type]
            assert kept.schedule is not None
            assert kept.schedule.placement.tolist() == start.schedule.placement.tolist()
            assert kept.given

    @pytest.mark.parametrize(
        ("asked", "problem"),
        [
            ({"method": "nothing"}, "no method 'nothing'"),
            ({"method": "heft", "objective": "traffic"}, "heft can only minimise"),
            ({"objective": "beauty"}, "no objective 'beauty'"),
            ({"fix": "colour", "start": "heft"}, "cannot fix 'colour'"),
            ({"fix": "order"}, "no schedule to take it from"),
            ({"within": "soon"}, "within"),
            ({"checkpoint": "state"}, "auto does not save its state"),
            ({"method": "search", "resume": True}, "no checkpoint to resume from"),
        ],
    )
    def test_refuses_what_makes_no_sense(self, asked: dict[str, object], problem: str) -> None:
        with pytest.raises(op.InputError, match=problem):
            op.solve("heft-10", **asked)  # type: ignore[arg-type]

    def test_a_false_proof_of_a_small_instance_is_told(self) -> None:
        from optpart.base.errors import ContradictionError

        @op.register("liar")
        def liar(instance: op.Instance, **_: object) -> op.Result:
            return op.conclude(instance, "liar", None, infeasible="because I say so")

        with pytest.raises(ContradictionError, match="liar says INFEASIBLE"):
            op.solve(SMALL, "liar")


class TestAMethodOfYourOwn:
    """It may raise and claim anything; none of that passes for a result."""

    def test_that_raises_is_an_input_error(self) -> None:
        @op.register("raiser")
        def raiser(instance: op.Instance, **_: object) -> op.Result:
            raise ValueError("no idea")

        with pytest.raises(op.InputError, match=r"raiser: failed \(ValueError: no idea\)"):
            op.solve("heft-10", "raiser")

    def test_that_returns_something_else_is_an_input_error(self) -> None:
        op.register("silent")(lambda instance, **_: None)  # type: ignore[arg-type, return-value]
        with pytest.raises(op.InputError, match="silent: returned 'NoneType', not a Result"):
            op.solve("heft-10", "silent")

    def test_a_false_makespan_is_an_input_error(self) -> None:
        @op.register("boaster")
        def boaster(instance: op.Instance, **_: object) -> op.Result:
            true = op.solve(instance, "heft")
            return replace(true, values={"makespan": Fraction(73)}, status=op.Status.OPTIMAL)

        with pytest.raises(op.InputError, match="makespan 73 is not that of its schedule"):
            op.solve("heft-10", "boaster")

    @pytest.mark.parametrize("bound", [float("nan"), 73.0, "73", "many"])
    def test_a_bound_that_is_no_exact_number_is_an_input_error(self, bound: object) -> None:
        @op.register("vague")
        def vague(instance: op.Instance, **_: object) -> op.Result:
            return replace(op.solve(instance, "heft"), bounds={"makespan": bound})  # type: ignore[dict-item]

        with pytest.raises(op.InputError, match=r"vague: lower_bound: .* is not an exact number"):
            op.solve("heft-10", "vague")

    def test_a_schedule_that_breaks_the_goal_is_an_input_error(self) -> None:
        @op.register("deaf")
        def deaf(instance: op.Instance, *, goal: object = None, **_: object) -> op.Result:
            return op.solve(instance, "heft")

        with pytest.raises(op.InputError, match=r"deaf: .*violates the goal"):
            op.solve("heft-10", "deaf", within=79)

    def test_an_optimum_of_another_objective_is_an_input_error(self) -> None:
        @op.register("other")
        def other(instance: op.Instance, *, goal: object = None, **_: object) -> op.Result:
            return op.solve(instance, "cpsat", seconds=20)

        with pytest.raises(op.InputError, match="other: OPTIMAL without a bound"):
            op.solve("heft-10", "other", objective="traffic")

    def test_a_bound_above_its_own_schedule_is_an_input_error(self) -> None:
        @op.register("above")
        def above(instance: op.Instance, **_: object) -> op.Result:
            return replace(op.solve(instance, "heft"), bounds={"makespan": Fraction(81)})

        with pytest.raises(op.InputError, match="bound 81 contradicts its own schedule of 80"):
            op.solve("heft-10", "above")


def test_pareto_is_the_front_of_the_command(run: Run) -> None:
    shown = json.loads(run("solve", SMALL, "--pareto", "--json").out)["front"]
    front = op.pareto(SMALL)
    assert [(str(r.makespan), str(r.traffic)) for r in front] == [
        (point["makespan"], point["traffic"]) for point in shown
    ]


def test_bounds_are_those_of_the_command(run: Run) -> None:
    shown = json.loads(run("bound", SMALL, "--json").out)["bounds"]
    found = op.bounds(SMALL)
    assert [(b.name, str(b.value)) for b in found] == [(b["bound"], b["value"]) for b in shown]


class TestVerify:
    def test_accepts_a_schedule_a_result_and_its_file(self, tmp_path: Path) -> None:
        result = op.solve("heft-10", "heft")
        assert result.schedule is not None
        op.save(result, tmp_path / "result.json")
        for given in (result, result.schedule, tmp_path / "result.json"):
            assert op.verify("heft-10", given) == []

    def test_names_what_is_wrong(self) -> None:
        result = op.solve("heft-10", "heft")
        assert [
            v.rule for v in op.verify("heft-10", replace(result, values={"makespan": Fraction(79)}))
        ]
        other = op.load(SMALL)
        assert op.verify(other, op.solve(other, "hash+fifo")) == []


def test_simulate_executes_a_pair_of_strategies(run: Run) -> None:
    shown = json.loads(run("simulate", "heft-10", "-m", "hash+fifo", "--seed", 3, "--json").out)
    assert str(op.simulate("heft-10", "hash+fifo", seed=3).result.makespan) == shown["makespan"]


def test_simulate_takes_the_placement_of_a_schedule() -> None:
    start = op.solve("heft-10", "heft").schedule
    assert start is not None
    done = op.simulate("heft-10", start=start)
    assert done.result.method == "given+pct"
    assert done.schedule is not None
    assert done.schedule.placement.tolist() == start.placement.tolist()


@pytest.mark.parametrize("ask", [op.solve, op.simulate])
@pytest.mark.parametrize("method", ["hash+pct", "search"])
def test_a_start_of_another_instance_is_an_input_error(ask: Any, method: str) -> None:
    start = op.solve("heft-10", "heft")
    if ask is op.simulate and method == "search":
        method = "pct"
    for given in (start, start.schedule):
        with pytest.raises(op.InputError, match="schedule: not one of 9 vertices on 4 devices"):
            ask(SMALL, method, start=given)


def test_compare_and_sweep_measure_methods() -> None:
    one = op.compare(SMALL, ["heft"])
    (same,) = op.sweep([op.load(SMALL)], ["heft"], seeds=1)
    assert one.reference.makespan == same.reference.makespan == 12


def test_a_sweep_keeps_its_runs_and_has_every_seed(tmp_path: Path) -> None:
    for _ in range(2):
        (found,) = op.sweep([SMALL], "hash+fifo", seed=3, seeds=2, store=tmp_path / "runs.db")
        assert [result.seed for result in found.results] == [3, 4]


def test_divide_is_the_table_of_axes() -> None:
    division = op.divide(SMALL, ["heft"], seconds=10)
    assert division.free.makespan == 12


class TestEveryResultHasABound:
    def test_of_a_comparison(self) -> None:
        for result in op.compare("heft-10", ["heft", "hash+pct"]).results:
            assert result.lower_bound == 73

    def test_of_a_sweep(self) -> None:
        (found,) = op.sweep(["heft-10"], ["heft"])
        assert found.results[0].lower_bound == 73
        assert found.results[0].status is op.Status.FEASIBLE

    def test_of_a_simulation(self) -> None:
        assert op.simulate("heft-10", "hash+fifo").result.lower_bound is not None

    @pytest.mark.parametrize("method", ["heft", "hash+pct", "enumerate", "search"])
    def test_of_a_solve(self, method: str) -> None:
        assert op.solve(SMALL, method, seconds=1, workers=1).lower_bound is not None

    def test_of_a_goal(self) -> None:
        result = op.solve(SMALL, "enumerate", objective="traffic")
        assert result.lower_bound is not None
        assert result.makespan is not None
        assert result.lower_bound <= result.makespan


class TestNames:
    """Placements and orders are taken and given by the names of vertices and devices."""

    @pytest.fixture
    def heft(self) -> op.Result:
        return op.solve("heft-10", "heft")

    def test_a_result_gives_them(self, heft: op.Result) -> None:
        assert heft.placement is not None
        assert heft.order is not None
        assert heft.placement["n1"] == "d2"
        assert heft.order["d2"] == ["n1", "n3", "n5", "n7"]
        assert sorted(name for names in heft.order.values() for name in names) == sorted(
            heft.instance.graph.names
        )

    def test_without_a_schedule_there_are_none(self) -> None:
        nothing = op.conclude(op.load(SMALL), "none", None)
        assert (nothing.placement, nothing.order) == (None, None)

    def test_they_make_the_same_schedule_again(self, heft: op.Result) -> None:
        assert heft.placement is not None
        assert heft.order is not None
        again = op.retime(heft.instance, heft.placement, heft.order)
        assert again.makespan(heft.instance) <= 80
        one = sorted(heft.placement, key=lambda name: int(name[1:]))
        assert op.retime(heft.instance, heft.placement, one).placement.tolist() == (
            again.placement.tolist()
        )

    def test_solve_keeps_a_placement_of_some(self) -> None:
        kept = op.solve("heft-10", placement={"n1": "d0", "n10": "d2"}, seconds=20)
        assert kept.placement is not None
        assert (kept.placement["n1"], kept.placement["n10"]) == ("d0", "d2")
        assert kept.given == "the placement of 2 vertices"

    def test_solve_keeps_an_order(self, heft: op.Result) -> None:
        kept = op.solve("heft-10", placement=heft.placement, order=heft.order, seconds=20)
        assert kept.order == heft.order
        reverse = op.solve(SMALL, "enumerate", order=[*reversed(op.load(SMALL).graph.names)])
        assert reverse.status is not op.Status.UNKNOWN

    def test_a_goal_is_built_from_them(self) -> None:
        instance = op.load("heft-10")
        goal = op.Goal.of(instance, placement={"n2": "d1"}, order=["n2", "n3"], makespan="80")
        assert goal.placement == {1: 1}
        assert goal.order == ((1, 2),)
        assert op.supporting(instance, goal)[:2] == ["auto", "cpsat"]

    def test_simulate_takes_a_placement(self, heft: op.Result) -> None:
        done = op.simulate("heft-10", placement=heft.placement)
        assert done.result.placement == heft.placement
        assert op.simulate("heft-10", start=heft).result.placement == heft.placement

    def test_draw_takes_the_schedule_that_they_make(self, heft: op.Result, tmp_path: Path) -> None:
        assert heft.placement is not None
        schedule = op.retime(heft.instance, heft.placement, heft.order or {})
        op.draw(schedule, tmp_path / "x.svg", instance="heft-10")
        assert (tmp_path / "x.svg").exists()

    @pytest.mark.parametrize(
        ("asked", "problem"),
        [
            ({"placement": {"n11": "d0"}}, "placement: no vertex 'n11'; did you mean n1"),
            ({"placement": {"n1": "d9"}}, "placement: no device 'd9'; did you mean d"),
            ({"placement": {"n1": 0}}, "placement: no device 0; "),
            ({"order": ["n1", "x"]}, "order: no vertex 'x'; name a vertex of the instance"),
            ({"order": {"q": ["n1"]}}, "order: no device 'q'; "),
            ({"order": ["n1", "n1"]}, "order: names 'n1' twice; name every vertex once"),
            (
                {"placement": {}, "fix": "placement", "start": "heft"},
                "placement: cannot be combined with `fix`; leave one of them out",
            ),
        ],
    )
    def test_a_wrong_name_is_one_line(self, asked: dict[str, object], problem: str) -> None:
        with pytest.raises(op.InputError) as caught:
            op.solve("heft-10", **asked)  # type: ignore[arg-type]
        assert str(caught.value).startswith(problem)
        assert "\n" not in str(caught.value)

    def test_an_order_against_the_edges_is_one_line(self, heft: op.Result) -> None:
        with pytest.raises(op.InputError, match="contradicts the edges: n"):
            op.retime(heft.instance, heft.placement or {}, {"d1": ["n10", "n4"]})

    def test_an_order_of_a_device_that_the_placement_does_not_keep_is_one_line(
        self, heft: op.Result
    ) -> None:
        for placement in (heft.placement, {}):
            with pytest.raises(op.InputError, match="order: lists 'n1' on d0, but the placement"):
                op.solve("heft-10", placement=placement, order={"d0": ["n1"]})

    def test_a_placement_of_some_executes_nothing(self) -> None:
        with pytest.raises(op.InputError, match="9 vertices are missing, the first 'n2'"):
            op.simulate("heft-10", placement={"n1": "d0"})


@pytest.mark.parametrize(
    "name",
    ["solve", "pareto", "bounds", "certify", "compare", "sweep", "divide", "compare_orders"],
)
def test_whatever_can_take_long_has_the_same_limits(name: str) -> None:
    parameters = signature(getattr(api, name)).parameters
    assert isinstance(parameters["seconds"].default, float)
    # One search takes the whole of a cluster, unless it is told otherwise.
    workers = None if name == "solve" else 2
    assert (parameters["workers"].default, parameters["seed"].default) == (workers, 0)
    assert parameters["memory"].default is None
    assert not {"budget", "time_limit"} & set(parameters)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"instance": 5}, "instance: is of type int; give an Instance or"),
        ({"method": 7}, "method: is of type int; give a text"),
        ({"seconds": "ten"}, "seconds: is of type str; give a number"),
        ({"workers": 1.5}, "workers: is of type float; give a whole"),
    ],
)
def test_an_argument_of_a_wrong_type_is_refused_by_name(given: dict[str, Any], said: str) -> None:
    arguments: dict[str, Any] = {"instance": SMALL, "method": "heft", **given}
    with pytest.raises(op.InputError, match=f"^{said}"):
        op.solve(**arguments)


class TestNoOptionIsNamedInPython:
    @pytest.mark.parametrize(
        ("asked", "said", "shown"),
        [
            ({"within": "soon"}, "within: 'soon' is not", "--within: 'soon' is not"),
            ({"traffic_limit": "x"}, "traffic_limit: 'x'", "--traffic-limit: 'x'"),
            (
                {"fix": "placement"},
                "fix: no schedule to take it from; give a result with `start`, or",
                "--fix: no schedule to take it from; give a result with --start, or",
            ),
            (
                {"checkpoint": "x"},
                "checkpoint: auto does not save its state; use it with `method` search or hybrid",
                "--checkpoint: auto does not save its state; use it with --method search or",
            ),
            (
                {"method": "heft", "objective": "traffic"},
                "method: heft can only minimise the makespan; use auto, cpsat, search, hybrid",
                "--method: heft can only minimise the makespan; use auto, cpsat, search, hybrid",
            ),
        ],
    )
    def test_but_on_the_command_line(
        self, run: Run, asked: dict[str, str], said: str, shown: str
    ) -> None:
        with pytest.raises(op.InputError) as caught:
            op.solve("heft-10", **asked)  # type: ignore[arg-type]
        assert str(caught.value).startswith(said)
        assert "--" not in str(caught.value)
        options = [part for name, value in asked.items()
                   for part in (f"--{name.replace('_', '-')}", value)]  # fmt: skip
        done = run("solve", "heft-10", *options)
        assert done.code == 2
        assert done.err.startswith(f"optpart: {shown}")

    def test_an_engine(self) -> None:
        with pytest.raises(op.InputError, match=r"^engine: no engine 'spark'"):
            op.sweep([SMALL], ["heft"], engine="spark")


class TestRefusalsNameWhoCan:
    def test_a_registered_method_is_among_them(self) -> None:
        @op.register("able")
        def able(instance: op.Instance, *, goal: object = None, **_: object) -> op.Result:
            raise NotImplementedError

        with pytest.raises(op.InputError) as caught:
            op.solve("heft-10", "heft", within=80)
        assert caught.value.remedy.startswith("use auto, cpsat, milp, milp-cbc")
        assert caught.value.remedy.endswith("enumerate or able")

    def test_scope(self) -> None:
        with pytest.raises(op.UnsupportedError) as caught:
            op.solve("recurrent_network-50", "enumerate")
        assert caught.value.remedy.startswith(
            "give at most 12, or use auto, cpsat, series, search, hybrid"
        )

    def test_audit(self) -> None:
        with pytest.raises(op.InputError, match="use auto, cpsat, milp or milp-cbc"):
            op.solve(SMALL, "heft", audit=True)
        assert op.solve(SMALL, audit=True, seconds=10).makespan == 12


def test_every_public_name_is_documented_and_what_it_names_exists() -> None:
    """A docstring may name functions and attributes of the package only if they exist."""
    for name in op.__all__:
        if name == "__version__":
            continue
        text = getattr(op, name).__doc__ or ""
        assert text, name
        for target in re.findall(r":(?:func|class|attr|meth|data|mod):`~?([\w.]+)`", text):
            assert _resolves(target, getattr(op, name)), f"{name}: {target}"


def _resolves(target: str, holder: object) -> bool:
    if not target.startswith("optpart"):
        module = import_module(getattr(holder, "__module__", "optpart"))
        first, *rest = target.split(".")
        found = getattr(holder, first, None) or getattr(module, first, None)
        return found is not None and all(
            (found := getattr(found, part, None)) is not None for part in rest
        )
    parts = target.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found = import_module(".".join(parts[:cut]))
        except ImportError:
            continue
        for part in parts[cut:]:
            if not hasattr(found, part):
                return False
            found = getattr(found, part)
        return True
    return False


def test_certify_writes_what_check_accepts(tmp_path: Path) -> None:
    pytest.importorskip("pysat")
    op.certify(SMALL, tmp_path / "proof")
    assert "12" in op.check(tmp_path / "proof")
    with pytest.raises(op.CertificateError, match="cannot be read"):
        op.check(tmp_path / "nowhere")


def test_draw_gives_the_bytes_that_plot_gives(run: Run, tmp_path: Path) -> None:
    op.save(op.solve("heft-10", "heft"), tmp_path / "result.json")
    op.draw(tmp_path / "result.json", tmp_path / "one.svg")
    assert run("plot", tmp_path / "result.json", "-o", tmp_path / "two.svg").code == 0
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()


def test_only_the_bound_of_a_file_is_drawn_as_claimed(tmp_path: Path) -> None:
    result = op.solve("heft-10", "cpsat")
    op.save(result, tmp_path / "result.json")
    op.draw(result, tmp_path / "one.svg")
    op.draw(tmp_path / "result.json", tmp_path / "two.svg")
    assert b"claimed bound" not in (tmp_path / "one.svg").read_bytes()
    assert b"claimed bound" in (tmp_path / "two.svg").read_bytes()


def test_a_report_is_a_page_by_its_name(tmp_path: Path) -> None:
    with pytest.raises(op.InputError, match=r"report\.pdf: is not the name of a page"):
        op.write_report(op.load("heft-10"), tmp_path / "report.pdf")
    assert not list(tmp_path.iterdir())
