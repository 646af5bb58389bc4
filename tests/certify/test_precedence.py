"""The refutation by placement and precedence: sound, complete on small instances, and strict."""

from __future__ import annotations

import itertools
import json
import lzma
import math
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from numpy.typing import NDArray
from pysat.solvers import Cadical195

from optpart import Cluster, Graph, GraphBuilder, Instance, Schedule, retime
from optpart.certify import check as order_encoding
from optpart.certify import lemmas, precedence
from optpart.certify.certify import HOLDS, grid_scales
from optpart.certify.check import Problem, RejectedError, read_json
from optpart.certify.lemmas import Second, Shorter, add_second, find_lemmas, prove
from optpart.certify.precedence import (
    FAMILIES,
    Clause,
    Consequences,
    Precedence,
    clauses,
    holds,
    interchangeable,
)
from optpart.errors import ArgumentError
from optpart.folders import new_folder
from optpart.formats import native
from optpart.formats import result as result_format
from optpart.solution.result import conclude
from optpart.solution.verifier import verify
from optpart.testing.brute_force import optimum
from optpart.testing.draw import random_instance
from optpart.testing.solutions import random_order, random_placement

Family = Callable[[Precedence], Iterator[Clause]]


def problem_of(instance: Instance) -> Problem:
    return Problem(read_json(native.dumps(instance).encode(), "instance"))


def drawn(seed: int, max_vertices: int = 6) -> Instance:
    """Return a random instance with every feature; half of them have limited memory."""
    memory = "estimate" if seed % 4 < 2 else "none"
    return random_instance(np.random.default_rng(seed), max_vertices, memory=memory, far=False)


def open_to_choice(seed: int) -> Instance:
    """Return an instance without restricted devices, which often needs more than arithmetic."""
    return random_instance(
        np.random.default_rng(seed), 6, types=False, allowed=False, durations=False, far=False
    )


def equal_devices(seed: int) -> Instance:
    """Return an instance with three interchangeable devices."""
    instance = random_instance(
        np.random.default_rng(seed),
        6,
        types=False,
        allowed=False,
        measured=False,
        durations=False,
        far=False,
    )
    return Instance(instance.graph, Cluster.uniform(3, bandwidth=1), name="random")


def job_shop(seed: int) -> Instance:
    """Return a job shop of four jobs on two machines: nothing to place, much to order."""
    rng, builder = np.random.default_rng(seed), GraphBuilder()
    for job in range(4):
        for i, machine in enumerate(rng.permutation(2).tolist()):
            builder.vertex(f"{job}.{i}", int(rng.integers(1, 10)), devices=[f"d{machine}"])
        builder.edge(f"{job}.0", f"{job}.1", None)
    return Instance(builder.build(), Cluster.uniform(2))


def refuted_at_optimum(instances: Iterable[Instance]) -> Iterator[tuple[Precedence, list[Clause]]]:
    """Yield the formula of each instance at its optimum, and the lemmas found for it."""
    for instance in instances:
        best = optimum(instance)
        if best is not None and best.makespan > 0:
            code = Precedence(problem_of(instance), best.makespan)
            found = find_lemmas(code, 60)
            assert isinstance(found, list)
            yield code, found


def solvable(clauses_of_all: list[Clause]) -> bool:
    with Cadical195(bootstrap_with=clauses_of_all) as solver:
        return bool(solver.solve())


def schedules(seeds: range) -> Iterator[tuple[Instance, Schedule]]:
    """Yield valid schedules of random instances, which use interchangeable devices in turn."""
    for seed in seeds:
        instance = (drawn, equal_devices)[seed % 5 == 0](seed)
        rng = np.random.default_rng(seed)
        placement = random_placement(rng, instance)
        if placement is not None:
            order = random_order(rng, instance)
            schedule = retime(instance, renamed(instance, placement), order)
            before = retime(instance, placement, order)
            assert schedule.makespan(instance) == before.makespan(instance)
            assert bool(verify(instance, schedule)) == bool(verify(instance, before))
            if not verify(instance, schedule):
                yield instance, schedule


def renamed(instance: Instance, placement: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the placement with the devices of a class in the order of their first vertices."""
    names = {}
    for devices in interchangeable(Precedence(problem_of(instance), Fraction(1))):
        used = list(dict.fromkeys(d for d in placement.tolist() if d in devices))
        names.update(zip(used, devices, strict=False))
    return np.array([names[d] for d in placement.tolist()], dtype=np.int32)


def said_of(code: Precedence, instance: Instance, schedule: Schedule) -> set[int]:
    """Return the literals that a schedule satisfies, by the meaning of the variables."""
    start = schedule.start.fractions()
    place = {v: i for i, v in enumerate(code.problem.order)}

    def turn(v: int) -> tuple[Fraction, bool, int]:
        return start[v], schedule.end(instance, v) > start[v], place[v]

    unit_of = code.problem.unit
    on = {(unit_of[v], int(d)) for v, d in enumerate(schedule.placement)}
    literals = {x if code.placing[x] in on else -x for x in code.placing}
    return literals | {x if turn(a) < turn(b) else -x for x, (a, b) in code.ordering.items()}


def undercut(instance: Instance, schedule: Schedule) -> Fraction:
    """Return a makespan slightly longer than the schedule."""
    return schedule.makespan(instance) + Fraction(1, 7)


class TestSchedulesAreSolutions:
    """A schedule satisfies every clause, and no part of its literals is contradictory."""

    def test_of_every_family(self) -> None:
        count = 0
        for instance, schedule in schedules(range(150)):
            code = Precedence(problem_of(instance), undercut(instance, schedule))
            said = said_of(code, instance, schedule)
            assert all(said & set(clause) for clause in clauses(code))
            count += 1
        assert count > 100

    def test_and_nothing_false_follows(self) -> None:
        """This covers heads, tails, devices and orders, from all literals and random parts."""
        for seed, (instance, schedule) in enumerate(schedules(range(150))):
            rng = np.random.default_rng(seed)
            problem = problem_of(instance)
            makespan = undercut(instance, schedule)
            weights = [rng.integers(0, 5, instance.devices).tolist()]
            code = Precedence(problem, makespan, weights if any(weights[0]) else [])
            said = sorted(said_of(code, instance, schedule))
            scale = Fraction(code.makespan) / makespan
            for share in (1.0, 0.6, 0.3, 0.0):
                known = Consequences(code, [x for x in said if rng.random() < share])
                assert not known.contradict()
                for v, d in enumerate(schedule.placement.tolist()):
                    assert d in known.possible[problem.unit[v]]
                    start, end = schedule.start[v], schedule.end(instance, v)
                    assert known.head[v][d] <= start * scale
                    assert known.tail[v][d] <= (schedule.makespan(instance) - end) * scale

    @pytest.mark.parametrize(
        ("name", "wrong"),
        [
            (
                "one_device",
                lambda code: ([code.place(u, d[0])] for u, d in enumerate(code.possible)),
            ),
            ("apart", lambda code: ([-x] for x in code.placing)),
            (
                "linked",
                lambda code: (
                    [-code.place(code.problem.unit[u], d), -code.place(code.problem.unit[v], e)]
                    for u, v, _ in code.problem.edges
                    for d in code.possible[code.problem.unit[u]]
                    for e in code.possible[code.problem.unit[v]]
                    if d != e
                ),
            ),
            ("in_line", lambda code: ([x] for x in code.ordering)),
            (
                "alike",
                lambda code: ([-code.place(0, d)] for d in range(1, len(code.problem.devices))),
            ),
        ],
    )
    def test_a_family_that_is_too_strict_is_caught(self, name: str, wrong: Family) -> None:
        families = [wrong if family.__name__ == name else family for family in FAMILIES]
        assert any(
            not all(said & set(clause) for clause in clauses(code, families))
            for instance, schedule in schedules(range(40))
            for code in [Precedence(problem_of(instance), undercut(instance, schedule))]
            for said in [said_of(code, instance, schedule)]
        )

    @pytest.mark.parametrize(
        ("name", "wrong"),
        [
            (
                "_fits",
                lambda self, v, d: self.head[v][d] + 2 * self.code.run[v][d] < self.code.makespan,
            ),
            ("_too_much", lambda self, there, d: len(there) > 3),
            ("_no_order", lambda self, there, d: self._order(*there[:2]) if there[1:] else False),
            ("_balance", lambda self, weight: self._keep(0, self.possible[0][:1])),
        ],
    )
    def test_arithmetic_that_claims_too_much_is_caught(
        self, monkeypatch: pytest.MonkeyPatch, name: str, wrong: Callable[..., object]
    ) -> None:
        monkeypatch.setattr(Consequences, name, wrong)
        with pytest.raises(AssertionError):
            self.test_and_nothing_false_follows()


class TestAgainstEnumeration:
    def test_nothing_is_shorter_than_the_optimum_and_the_optimum_is_shorter_than_anything_more(
        self,
    ) -> None:
        """A schedule found below a makespan is valid; otherwise, all lemmas found hold."""
        refuted = 0
        for instance in map(self.some, range(130)):
            best = optimum(instance)
            problem = problem_of(instance)
            if best is None or best.makespan == 0:
                continue
            code = Precedence(problem, best.makespan, lemmas._weights(problem))
            found = find_lemmas(code, 60)
            assert isinstance(found, list)
            assert not solvable([*clauses(code), *found])
            assert all(holds(code, lemma) for lemma in found)
            refuted += len(found)
            above = best.makespan + Fraction(1, 1000)
            found = find_lemmas(Precedence(problem, above, lemmas._weights(problem)), 60)
            assert isinstance(found, Shorter)
            schedule = retime(instance, found.placement, found.order)
            assert not verify(instance, schedule)
            assert schedule.makespan(instance) < above
        assert refuted > 200

    def some(self, seed: int) -> Instance:
        return (drawn, open_to_choice, equal_devices)[seed % 3](seed)

    @pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
    def test_without_a_family_some_formula_has_a_solution(self, family: Family) -> None:
        rest = [other for other in FAMILIES if other is not family]
        assert any(
            solvable([*clauses(code, rest), *found])
            for code, found in refuted_at_optimum(
                itertools.chain(
                    map(open_to_choice, range(80)),
                    map(job_shop, range(10)),
                    map(equal_devices, range(40)),
                )
            )
        )

    def test_both_encodings_agree(self) -> None:
        """One has times on a grid, the other orders; at, below and above the optimum."""
        answers = []
        for instance in map(self.some, range(60)):
            best = optimum(instance)
            if best is None or best.makespan == 0:
                continue
            problem = problem_of(instance)
            exact = math.lcm(*(need.denominator for need in problem.need))
            for makespan in (best.makespan, best.makespan * 2 / 3, best.makespan * 4 / 3):
                scale = grid_scales(problem, makespan)[-1]
                windows = order_encoding.Windows(order_encoding.Grid(problem, scale, makespan))
                refuted = not windows.feasible
                if not refuted:
                    record = {
                        "encoding": "order/1",
                        "loads": [],
                        "multipliers": [],
                        "memory_scale": str(exact),
                    }
                    formula = order_encoding.Encoding(windows, record)
                    refuted = not solvable(list(order_encoding.clauses(formula)))
                found = find_lemmas(Precedence(problem, makespan), 60)
                assert refuted == isinstance(found, list)
                answers.append(refuted)
        assert answers.count(True) > 50
        assert answers.count(False) > 25


def chain() -> Instance:
    """Return an instance of four vertices, which two equal devices run in 5."""
    builder = GraphBuilder()
    for name, ops in (("a", 2), ("b", 3), ("c", 4), ("d", 1)):
        builder.vertex(name, ops, outputs=[1])
    return Instance(builder.edge("a", "b").build(), Cluster.uniform(2), name="chain")


def certificate(folder: Path, instance: Instance, schedule: Schedule) -> Path:
    """Write a certificate without its first refutation."""
    result = conclude(instance, "given", schedule)
    with new_folder(folder, HOLDS) as draft:
        (draft / "instance.json").write_text(native.dumps(instance))
        (draft / "schedule.json").write_text(result_format.dumps(result))
        (draft / "certificate.json").write_text(json.dumps({"makespan": str(result.makespan)}))
    return folder


@pytest.fixture(scope="module")
def proven(tmp_path_factory: pytest.TempPathFactory) -> Path:
    instance = open_to_choice(8)
    best = optimum(instance)
    assert best is not None
    schedule = retime(instance, best.placement, best.order)
    folder = certificate(tmp_path_factory.mktemp("proven"), instance, schedule)
    second = add_second(folder, 60)
    assert second is not None
    assert len(second.lemmas) > 2
    return folder


@pytest.fixture
def copy(proven: Path, tmp_path: Path) -> Path:
    for file in proven.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    return tmp_path


def rejected(folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    assert precedence.main([str(folder)]) == 1
    line = capsys.readouterr().out
    assert line.startswith("REJECTED: ")
    assert line.count("\n") == 1
    return line


class TestFiles:
    def test_are_accepted_with_what_they_prove(
        self, proven: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert precedence.main([str(proven)]) == 0
        line = capsys.readouterr().out
        assert line.startswith("ACCEPTED: 'random': optimal makespan ")
        assert "by precedence" in line

    def test_only_the_lemmas_that_the_proof_uses_are_kept(self, proven: Path) -> None:
        record = json.loads((proven / "precedence.json").read_text())
        problem = Problem(read_json((proven / "instance.json").read_bytes(), "instance"))
        code = Precedence(problem, Fraction(record["makespan"]), record["weights"])
        base = len(list(clauses(code)))
        text = lzma.decompress((proven / "precedence.lrat.xz").read_bytes()).decode()
        named = {
            int(hint)
            for line in text.splitlines()
            if " d " not in line
            for hint in line.split(" 0")[1].split()
        }
        assert set(range(base + 1, base + len(record["lemmas"]) + 1)) <= named

    def test_a_makespan_that_is_not_optimal_is_an_error_and_nothing_is_written(
        self, tmp_path: Path
    ) -> None:
        instance = chain()
        schedule = retime(instance, np.zeros(4, dtype=np.int32), [0, 1, 2, 3])
        folder = certificate(tmp_path, instance, schedule)
        with pytest.raises(Exception, match="10 is not optimal"):
            add_second(folder, 60)
        assert not list(tmp_path.glob("precedence*"))

    def test_without_time_there_is_no_refutation(self) -> None:
        instance = open_to_choice(8)
        assert prove(problem_of(instance), Fraction(19, 6), 0) is None

    def test_a_makespan_of_zero_needs_no_proof(self) -> None:
        instance = Instance(GraphBuilder().vertex("a", 0).build(), Cluster.uniform(1))
        assert "less than 0" in precedence.refute(problem_of(instance), Fraction(0), {}, [])

    def test_an_infeasible_length_of_the_example(self) -> None:
        second = prove(problem_of(chain()), Fraction(5), 60)
        assert isinstance(second, Second)
        assert isinstance(prove(problem_of(chain()), Fraction(11, 2), 60), Shorter)


class TestAttacks:
    def edit(self, folder: Path, **entries: object) -> None:
        record = json.loads((folder / "precedence.json").read_text())
        (folder / "precedence.json").write_text(json.dumps({**record, **entries}))

    @pytest.mark.parametrize(
        ("entries", "reason"),
        [
            ({"lemmas": [[]]}, "lemma 0 does not hold"),
            ({"lemmas": [[2]]}, "lemma 0 does not hold"),
            ({"lemmas": [[1]]}, "a literal without a variable"),
            ({"lemmas": [[0]]}, "a literal without a variable"),
            ({"lemmas": [[10**30]]}, "is not in"),
            ({"lemmas": [[True]]}, "not a whole number"),
            ({"lemmas": [["2"]]}, "not a whole number"),
            ({"lemmas": [2]}, "not a list"),
            ({"lemmas": []}, "proof"),
            ({"weights": [[1, -1, 1]]}, "weights"),
            ({"weights": [[1]]}, "weights"),
            ({"makespan": "1"}, "the schedule takes"),
            ({"makespan": "1/0"}, "divides by zero"),
            ({"instance_sha256": "0"}, "another instance"),
            ({"format": "optpart-certificate/1"}, "not optpart-precedence/1"),
            ({"more": 1}, "unknown key"),
        ],
    )
    def test_on_the_record(
        self,
        copy: Path,
        capsys: pytest.CaptureFixture[str],
        entries: dict[str, object],
        reason: str,
    ) -> None:
        self.edit(copy, **entries)
        assert reason in rejected(copy, capsys)

    def test_a_missing_or_weakened_lemma_is_noticed(
        self, copy: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        record = json.loads((copy / "precedence.json").read_text())
        known = record["lemmas"]
        for i in range(len(known)):
            self.edit(copy, lemmas=known[:i] + known[i + 1 :])
            rejected(copy, capsys)

    def test_strengthened_lemmas_do_not_hold(self, proven: Path) -> None:
        """No literal of a lemma can be left out, unless the rest still follows."""
        record = json.loads((proven / "precedence.json").read_text())
        problem = Problem(read_json((proven / "instance.json").read_bytes(), "instance"))
        code = Precedence(problem, Fraction(record["makespan"]), record["weights"])
        for lemma in record["lemmas"]:
            for part in itertools.combinations(lemma, len(lemma) - 1):
                assert not holds(code, part)

    def test_a_larger_makespan_leaves_lemmas_that_do_not_hold(self, proven: Path) -> None:
        record = json.loads((proven / "precedence.json").read_text())
        problem = Problem(read_json((proven / "instance.json").read_bytes(), "instance"))
        with pytest.raises(RejectedError, match="does not hold"):
            precedence.refute(problem, Fraction(record["makespan"]) * 2, record, [])

    @pytest.mark.parametrize("name", ["precedence.json", "precedence.lrat.xz", "schedule.json"])
    def test_any_byte_changed_or_cut_is_rejected_or_changes_nothing(
        self, copy: Path, name: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """It never crashes, and an accepted certificate has the same claim as before."""
        precedence.main([str(copy)])
        before = capsys.readouterr().out
        content = (copy / name).read_bytes()
        rng = np.random.default_rng(0)
        for _ in range(40):
            at = int(rng.integers(len(content)))
            broken = bytearray(content)
            broken[at] ^= 1 << int(rng.integers(8))
            if rng.random() < 0.2:
                broken = broken[:at]
            (copy / name).write_bytes(bytes(broken))
            if precedence.main([str(copy)]) == 0:
                assert capsys.readouterr().out.split(";")[0] == before.split(";")[0]
            else:
                assert capsys.readouterr().out.startswith("REJECTED: ")

    @pytest.mark.parametrize("name", ["precedence.json", "precedence.lrat.xz", "instance.json"])
    def test_a_missing_file(
        self, copy: Path, name: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (copy / name).unlink()
        assert f"{name} cannot be read" in rejected(copy, capsys)

    @pytest.mark.parametrize(
        "instance",
        [
            Instance(GraphBuilder().vertex("a", 1).build(), Cluster.uniform(101)),
            Instance(
                Graph.from_networkx(nx.empty_graph(151, create_using=nx.DiGraph)),
                Cluster.uniform(1),
            ),
        ],
        ids=["devices", "vertices"],
    )
    def test_instances_too_large_for_the_formula(self, instance: Instance) -> None:
        with pytest.raises(RejectedError, match="too many"):
            Precedence(problem_of(instance), Fraction(1))

    def test_work_without_end(
        self, copy: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(order_encoding, "MAX_STEPS", 50_000)
        assert "too long" in rejected(copy, capsys)


class TestBombs:
    """Small files that would take much time or memory."""

    @staticmethod
    def problem(**more: object) -> Problem:
        names = [f"v{i}" for i in range(60)]
        document = {
            "format": "optpart-instance/1",
            "vertices": [{"name": name, "ops": 1} for name in names],
            "devices": [{"name": f"d{d}"} for d in range(60)],
            **more,
        }
        return Problem(read_json(json.dumps(document).encode(), "instance"))

    def test_denominators_without_a_short_common_one_are_rejected_at_once(self) -> None:
        durations = [[f"1/{10**380 + 60 * v + d}" for d in range(60)] for v in range(60)]
        with pytest.raises(RejectedError, match="too many different denominators"):
            Precedence(self.problem(durations=durations), Fraction(1))

    def test_times_that_are_long_numbers_in_common_units_are_paid_for(self) -> None:
        long = self.problem(durations=[[f"1{d:02}e300" for d in range(60)] for _ in range(60)])
        before = long.allowance.bytes
        Precedence(long, Fraction(1))
        assert before - long.allowance.bytes > 60 * 60 * 1000 // 8
        long.allowance.bytes = 60 * 60 * 1000 // 8
        with pytest.raises(RejectedError, match="too much memory"):
            Precedence(long, Fraction(1))

    def test_the_work_of_a_round_counts_what_groups_and_weights_cost(self) -> None:
        alone, together = self.problem(), self.problem(colocation=[[f"v{i}" for i in range(60)]])
        assert Precedence(together, Fraction(1)).round > 60 * 60 * 60
        weighed = Precedence(alone, Fraction(1), [[1] * 60] * 10)
        assert weighed.round > Precedence(alone, Fraction(1)).round + 10 * 60 * 60

    def test_a_separation_repeated_a_thousand_times_counts_once(self) -> None:
        problem = self.problem(separation=[["v0", "v1"]] * 1000)
        assert Precedence(problem, Fraction(1)).separated == [(0, 1)]


def test_an_instance_too_large_for_a_second_refutation_is_reported(tmp_path: Path) -> None:
    builder = GraphBuilder()
    for i in range(151):
        builder.vertex(f"v{i}", 1)
    instance = Instance(builder.build(), Cluster.uniform(1))
    schedule = retime(instance, np.zeros(151, dtype=np.int32), list(range(151)))
    with pytest.raises(ArgumentError, match="too many vertices"):
        add_second(certificate(tmp_path, instance, schedule), 60)
