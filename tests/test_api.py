"""``import optpart as op``: each function does what the command of its name does."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import ModuleType

import pytest
from commandline import Run

import optpart as op
from optpart.certify.check import RejectedError

#: Small enough for a second opinion by enumeration.
SMALL = "graham-1969-4"


def test_every_name_that_is_offered_is_there_and_listed() -> None:
    assert set(op.__all__) <= set(dir(op))
    assert [name for name in op.__all__ if getattr(op, name, None) is None] == []


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = op.nothing


@pytest.mark.parametrize("name", ["bounds", "certify", "export"])
def test_some_names_are_packages_that_can_be_called(name: str) -> None:
    package = getattr(op, name)
    assert isinstance(package, ModuleType)
    assert callable(package)


def test_importing_a_module_of_such_a_package_takes_nothing_away() -> None:
    code = (
        "import optpart as op, optpart.bounds.best; from optpart.certify import check;"
        f"print(len(op.bounds({SMALL!r})), callable(op.certify))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "6 True\n"


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
            ({"method": "heft", "objective": "traffic"}, "heft takes no goal"),
            ({"objective": "beauty"}, "no objective 'beauty'"),
            ({"fix": "colour", "start": "heft"}, "cannot keep 'colour'"),
            ({"fix": "order"}, "nothing to take it from"),
            ({"within": "soon"}, "within"),
            ({"checkpoint": "state"}, "cpsat keeps no state"),
            ({"method": "search", "resume": True}, "nothing to go on from"),
        ],
    )
    def test_refuses_what_makes_no_sense(self, asked: dict[str, object], problem: str) -> None:
        with pytest.raises(op.InputError, match=problem):
            op.solve("heft-10", **asked)  # type: ignore[arg-type]

    def test_a_false_proof_of_a_small_instance_is_told(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from optpart.errors import ContradictionError
        from optpart.methods import registry

        monkeypatch.setattr(registry, "_own", {})

        @op.register("liar")
        def liar(instance: op.Instance, **_: object) -> op.Result:
            return op.conclude(instance, "liar", None, infeasible="because I say so")

        with pytest.raises(ContradictionError, match="liar says INFEASIBLE"):
            op.solve(SMALL, "liar")


class TestAMethodOfYourOwn:
    """It may raise and claim anything; none of that passes for a result."""

    @pytest.fixture(autouse=True)
    def forgotten(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from optpart.methods import registry

        monkeypatch.setattr(registry, "_own", {})

    def test_that_raises_is_an_input_error(self) -> None:
        @op.register("raiser")
        def raiser(instance: op.Instance, **_: object) -> op.Result:
            raise ValueError("no idea")

        with pytest.raises(op.InputError, match=r"raiser: failed \(ValueError: no idea\)"):
            op.solve("heft-10", "raiser")

    def test_that_returns_something_else_is_an_input_error(self) -> None:
        op.register("silent")(lambda instance, **_: None)  # type: ignore[arg-type, return-value]
        with pytest.raises(op.InputError, match="silent: returns no Result"):
            op.solve("heft-10", "silent")

    def test_a_false_makespan_is_computed_again(self) -> None:
        @op.register("boaster")
        def boaster(instance: op.Instance, **_: object) -> op.Result:
            true = op.solve(instance, "heft")
            return replace(true, makespan=Fraction(73), status=op.Status.OPTIMAL)

        result = op.solve("heft-10", "boaster")
        assert (result.makespan, result.status) == (80, op.Status.FEASIBLE)

    def test_a_bound_above_its_own_schedule_is_an_input_error(self) -> None:
        @op.register("above")
        def above(instance: op.Instance, **_: object) -> op.Result:
            return replace(op.solve(instance, "heft"), lower_bound=Fraction(81))

        with pytest.raises(op.InputError, match="claims the lower bound 81"):
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
        assert [v.rule for v in op.verify("heft-10", replace(result, makespan=Fraction(79)))]
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


def test_compare_and_sweep_measure_methods() -> None:
    budget = op.Budget(20)
    instance = op.load(SMALL)
    one = op.compare(instance, ["heft"], budget=budget)
    (same,) = op.sweep([instance], ["heft"], budget=budget)
    assert one.reference.makespan == same.reference.makespan == 12


def test_certify_writes_what_check_accepts(tmp_path: Path) -> None:
    pytest.importorskip("pysat")
    op.certify(SMALL, tmp_path / "proof")
    assert "12" in op.check(tmp_path / "proof")
    with pytest.raises(RejectedError):
        op.check(tmp_path / "nowhere")


def test_draw_gives_the_bytes_that_plot_gives(run: Run, tmp_path: Path) -> None:
    result = op.solve("heft-10", "heft")
    op.save(result, tmp_path / "result.json")
    op.draw(result, tmp_path / "one.svg")
    op.draw(tmp_path / "result.json", tmp_path / "two.svg")
    assert run("plot", tmp_path / "result.json", "-o", tmp_path / "three.svg").code == 0
    one, two, three = ((tmp_path / f"{n}.svg").read_bytes() for n in ("one", "two", "three"))
    assert one == two == three
