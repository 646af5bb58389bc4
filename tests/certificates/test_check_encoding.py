"""The lower half: nothing that is true is refuted, and what is refuted is false.

Both are judged by enumerating tiny instances, on exact and on rounded grids; and each family of
clauses is dropped, weakened or sharpened, to see that these tests would notice.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from pysat.solvers import Cadical195

from optpart import Cluster, Device, GraphBuilder, Instance, Model, retime
from optpart.certificates import check
from optpart.certificates.arithmetic import load_record, one_machine_record, path_record
from optpart.certificates.check import (
    FAMILIES,
    Clause,
    Encoding,
    Family,
    Problem,
    RejectedError,
    Windows,
    clauses,
    read_json,
)
from optpart.interop.formats import native
from optpart.kernels.ticks import quantum
from optpart.testing import brute_force
from optpart.testing.draw import random_instance
from optpart.testing.solutions import random_order, random_placement

SYMMETRY: tuple[Family, ...] = (check.alike_devices, check.alike_vertices)
IMPLIED: tuple[Family, ...] = (
    check.windows_by_device,
    check.loads,
    check.least_loads,
    *SYMMETRY,
)
NECESSARY = tuple(family for family in FAMILIES if family not in IMPLIED)


def problem_of(instance: Instance) -> Problem:
    return Problem(read_json(native.dumps(instance).encode(), "instance.json"))


def exact_record(windows: Windows) -> dict[str, Any]:
    """Return a record with loads over all and over late vertices, and exact memory."""
    problem = windows.problem
    loads = []
    for d in range(len(problem.devices)):
        loads.append([d, 0, 0])
        heads = {min(row[d], windows.horizon) for row in windows.head}
        loads += [[d, head, 0] for head in sorted(heads)[-2:]]
    scale = math.lcm(1, *(x.denominator for x in (*problem.need, *problem.capacity) if x))
    return {
        "encoding": "order/1",
        "loads": loads,
        "multipliers": [1 + d % 2 for d in range(len(problem.devices))],
        "memory_scale": str(scale),
    }


def encoding(windows: Windows) -> Encoding:
    return Encoding(windows, exact_record(windows))


def windows_below(problem: Problem, scale: Fraction, makespan: Fraction) -> Windows:
    problem.allowance = check.Allowance()
    return Windows(problem, scale, makespan)


def satisfiable(formula: Sequence[Clause], assumptions: Sequence[int] = ()) -> list[int] | None:
    """Return the true literals of a model, ``None`` if there is none."""
    if [] in formula:
        return None
    with Cadical195(bootstrap_with=formula) as solver:
        return list(solver.get_model()) if solver.solve(assumptions=list(assumptions)) else None


def model_below(
    windows: Windows, families: Sequence[Family] = FAMILIES
) -> tuple[Encoding, list[int]] | None:
    """Return a model of the formula, ``None`` if windows or the solver refute it."""
    if not windows.feasible:
        return None
    code = encoding(windows)
    model = satisfiable(list(clauses(code, families)))
    return None if model is None else (code, model)


@dataclass(frozen=True)
class Case:
    """An instance with its optimum by enumeration, and the tick of its exact grid."""

    instance: Instance
    problem: Problem
    makespan: Fraction
    tick: Fraction

    @property
    def scale(self) -> Fraction:
        return 1 / self.tick

    def unsatisfiable(self) -> Windows:
        return windows_below(self.problem, self.scale, self.makespan)

    def possible(self) -> Windows:
        return windows_below(self.problem, self.scale, self.makespan + self.tick)


def case_of(instance: Instance) -> Case | None:
    best = brute_force.optimum(instance)
    if best is None or best.makespan == 0:
        return None
    tick = quantum(instance, best.makespan)
    assert tick is not None
    return Case(instance, problem_of(instance), best.makespan, tick)


@cache
def cases() -> list[Case]:
    """Return instances with every feature, a quarter with rational numbers, half with memory."""
    rng = np.random.default_rng(11)
    found = []
    for i in range(180):
        instance = random_instance(
            rng, 5, 3, memory=("none", "estimate")[i % 2], rational=i % 4 == 0
        )
        case = case_of(instance)
        if case is not None:
            found.append(case)
    return [*found, *special_cases()]


def special_cases() -> list[Case]:
    """Return cases that random draws rarely give: identical devices, tight memory and so on."""
    jobs = GraphBuilder()
    for v, ops in enumerate((3, 3, 3, 2, 2)):
        jobs.vertex(f"v{v}", ops)
    fork = GraphBuilder().vertex("a", 1, outputs=[2])
    for v in range(4):
        fork.vertex(f"b{v}", 3).edge("a", f"b{v}", 0)
    tight = GraphBuilder()
    for v, memory in enumerate((3, 3, 2, 2, 2)):
        tight.vertex(f"v{v}", 2 + memory, memory=memory)
    pairs = GraphBuilder()
    for v, memory in enumerate((5, 5, 2, 2)):
        pairs.vertex(f"v{v}", 1, memory=memory)
    uneven = Cluster.of([Device("d0", 1, None, 10), Device("d1", 1, None, 4)])
    apart = GraphBuilder().vertex("a", 4).vertex("b", 4).vertex("c", 1)
    slow = Cluster.of([Device("d0", 4), Device("d1", 1)])
    limited = Cluster.of([Device("d0", 1, None, 6), Device("d1", 1, None, 6)])
    instances = [
        Instance(jobs.build(), Cluster.uniform(2)),
        Instance(jobs.build(), Cluster.uniform(3)),
        Instance(fork.build(), Cluster.uniform(3, bandwidth=2)),
        Instance(tight.build(), limited, Model(memory="estimate")),
        Instance(pairs.build(), uneven, Model(memory="estimate")),
        Instance(apart.separate("a", "b").build(), slow),
    ]
    found = [case_of(instance) for instance in instances]
    return [case for case in found if case is not None]


# --- the formula and the optimum ---------------------------------------------------------------


def test_a_tick_below_the_optimum_nothing_satisfies_the_formula() -> None:
    assert len(cases()) > 120
    for case in cases():
        assert model_below(case.unsatisfiable()) is None, native.dumps(case.instance)


def test_at_the_optimum_a_model_is_a_schedule() -> None:
    for case in cases():
        found = model_below(case.possible())
        assert found is not None, native.dumps(case.instance)
        document = decoded(*found, case.tick)
        assert check.check_schedule(case.problem, document) == case.makespan


def decoded(code: Encoding, model: list[int], tick: Fraction) -> dict[str, Any]:
    """Return the schedule of a model."""
    true = {literal for literal in model if literal > 0} | {check.TRUE}
    problem = code.problem
    device = [
        next(d for d in code.windows.possible[unit] if code.place(unit, d) in true)
        for unit in problem.unit
    ]
    start = []
    for moment in code.start:
        held = [moment.at_least(t) in true for t in range(moment.low + 1, moment.high + 1)]
        start.append((moment.low + sum(held)) * tick)
    crossing = {(t, device[v]) for u, v, t in problem.edges if device[u] != device[v]}
    output = {number: which for (_, which), number in problem.number_of.items()}
    transfers = []
    for tensor, target in sorted(crossing):
        u = problem.producer[tensor]
        run, delay = problem.run[u][device[u]], problem.delay(tensor, device[u], target)
        assert run is not None
        assert delay is not None
        transfers.append(
            {
                "tensor": [problem.vertices[u], output[tensor]],
                "to": problem.devices[target],
                "start": str(start[u] + run),
                "end": str(start[u] + run + delay),
            }
        )
    return {
        "placement": {
            name: problem.devices[d] for name, d in zip(problem.vertices, device, strict=True)
        },
        "start": {name: str(t) for name, t in zip(problem.vertices, start, strict=True)},
        "transfers": transfers,
    }


def some_schedules() -> Iterator[tuple[Problem, Fraction, list[int], list[Fraction]]]:
    """Yield random valid schedules: makespan, placement and starts."""
    rng = np.random.default_rng(12)
    for i in range(60):
        instance = random_instance(rng, 6, 3, memory=("none", "estimate")[i % 2])
        placement = random_placement(rng, instance)
        if placement is None:
            continue
        schedule = retime(instance, placement, random_order(rng, instance))
        problem = problem_of(instance)
        used = [Fraction(0)] * len(problem.devices)
        for members, need in zip(problem.members, problem.need, strict=True):
            used[placement[members[0]]] += need
        if all(c is None or u <= c for u, c in zip(used, problem.capacity, strict=True)):
            start = schedule.start.fractions()
            yield problem, schedule.makespan(instance), placement.tolist(), start


@pytest.mark.parametrize("ticks", [3, 17, 101])
def test_every_schedule_is_a_model_on_every_grid(ticks: int) -> None:
    """All families except symmetry hold for the schedule with its times rounded down."""
    seen = 0
    for problem, makespan, device, start in some_schedules():
        longer = makespan * Fraction(21, 20) + Fraction(1, 7)
        scale = ticks / longer
        windows = windows_below(problem, scale, longer)
        assert windows.feasible
        code = encoding(windows)
        code.memory_scale *= Fraction(2, 3)
        families = [family for family in FAMILIES if family not in SYMMETRY]
        formula = list(clauses(code, families))
        said = [code.place(unit, device[v]) for v, unit in enumerate(problem.unit)]
        for moment, time in zip(code.start, start, strict=True):
            t = math.floor(time * scale)
            said += [moment.at_least(t), -moment.at_least(t + 1)]
        assert check.FALSE not in said
        assumptions = [literal for literal in said if literal != check.TRUE]
        assert satisfiable(formula, assumptions) is not None, (problem.name, device, start)
        seen += 1
    assert seen > 30


def test_nothing_longer_than_the_optimum_is_refuted_on_rounded_grids() -> None:
    rng = np.random.default_rng(13)
    for case in cases()[::3]:
        above = case.makespan * (1 + Fraction(1, int(rng.integers(5, 200))))
        scale = Fraction(int(rng.integers(1, 40)), int(rng.integers(1, 40)))
        found = model_below(windows_below(case.problem, scale, above))
        assert found is not None, (native.dumps(case.instance), scale, above)


# --- arithmetic ---------------------------------------------------------------------------------


def test_arithmetic_refutes_nothing_that_is_true() -> None:
    """This holds for any vertices and multipliers in a record."""
    rng = np.random.default_rng(14)
    for case in cases():
        windows = case.possible()
        assert windows.feasible
        n, k = len(case.problem.vertices), len(case.problem.devices)
        for _ in range(8):
            chosen = [v for v in range(n) if rng.integers(3)]
            limited = [limit is not None for limit in case.problem.capacity]
            load = {
                "vertices": chosen,
                "load": rng.integers(0, 4, k).tolist(),
                "memory": [str(Fraction(int(rng.integers(0, 4)), 3)) if x else 0 for x in limited],
            }
            with pytest.raises(RejectedError):
                check.refute_by_load(windows, load)
            with pytest.raises(RejectedError):
                check.refute_by_one_machine(
                    windows, {"device": int(rng.integers(k)), "vertices": chosen}
                )


def test_memory_without_a_limit_has_no_price() -> None:
    builder = GraphBuilder().vertex("a", 2, memory=9).vertex("b", 2, memory=9)
    instance = Instance(builder.build(), Cluster.uniform(2), Model(memory="estimate"))
    windows = windows_below(problem_of(instance), Fraction(1), Fraction(9))
    with pytest.raises(RejectedError, match="without a memory limit"):
        check.refute_by_load(windows, {"vertices": [], "load": [1, 1], "memory": [1, 1]})


def test_the_records_of_the_arithmetic_tiers_are_accepted_and_sufficient() -> None:
    tiers = {"path": 0, "one-machine": 0, "load": 0}
    for case in cases()[::2]:
        windows = case.unsatisfiable()
        if path_record(windows) is not None:
            check.refute_by_path(windows, {})
            tiers["path"] += 1
            continue
        record = one_machine_record(windows)
        if record is not None:
            check.refute_by_one_machine(windows, record)
            tiers["one-machine"] += 1
        record = load_record(windows)
        if record is not None:
            check.refute_by_load(windows, record)
            tiers["load"] += 1
        assert path_record(case.possible()) is None
        assert one_machine_record(case.possible()) is None
    assert min(tiers.values()) >= 3, tiers


# --- mutation: each family dropped, and each sharpened -----------------------------------------


@pytest.mark.parametrize("dropped", NECESSARY, ids=lambda family: str(family.__name__))
def test_without_a_necessary_family_something_false_is_satisfiable(dropped: Family) -> None:
    families = [family for family in FAMILIES if family is not dropped]
    assert any(model_below(case.unsatisfiable(), families) for case in reversed(cases()))


@pytest.mark.parametrize("dropped", IMPLIED, ids=lambda family: str(family.__name__))
def test_without_an_implied_family_the_answers_are_the_same(dropped: Family) -> None:
    families = [family for family in FAMILIES if family is not dropped]
    for case in cases()[::4]:
        assert model_below(case.unsatisfiable(), families) is None
        assert model_below(case.possible(), families) is not None


@contextmanager
def replaced(name: str, value: object) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(check, name, value)
        yield


def longer_lag(family: Family) -> Family:
    """Return the family, with one tick more between two moments."""
    follows = check.follows

    def mutant(code: Encoding) -> Iterator[Clause]:
        with replaced("follows", lambda c, first, second, lag: follows(c, first, second, lag + 1)):
            yield from list(family(code))

    return mutant


def lower_limit(family: Family) -> Family:
    """Return the family, with limits that are lower by one."""
    at_most = check.at_most

    def mutant(code: Encoding) -> Iterator[Clause]:
        with replaced("at_most", lambda c, weights, limit: at_most(c, weights, limit - 1)):
            yield from list(family(code))

    return mutant


def never_on_the_last(code: Encoding) -> Iterator[Clause]:
    yield from check.one_device(code)
    for unit, devices in enumerate(code.windows.possible):
        if len(devices) > 1:
            yield [-code.place(unit, devices[-1])]


def always_apart(code: Encoding) -> Iterator[Clause]:
    """Treat all pairs as separated."""
    for a, b in pairwise(range(len(code.windows.members))):
        for d in code.windows.possible[a]:
            yield [-code.place(a, d), -code.place(b, d)]


def thresholds_backwards(code: Encoding) -> Iterator[Clause]:
    for moment in code.start:
        for t in range(moment.low + 1, moment.high):
            yield [-moment.at_least(t), moment.at_least(t + 1)]


def narrower_windows(code: Encoding) -> Iterator[Clause]:
    for v, (start, unit) in enumerate(zip(code.start, code.problem.unit, strict=True)):
        for d in code.windows.possible[unit]:
            yield [-code.place(unit, d), start.at_least(code.windows.head[v][d] + 1)]


def all_devices_alike(code: Encoding) -> Iterator[Clause]:
    for d, e in pairwise(range(len(code.problem.devices))):
        for unit in range(len(code.windows.members)):
            yield [-code.place(unit, e), *(code.place(other, d) for other in range(unit))]


def all_vertices_alike(code: Encoding) -> Iterator[Clause]:
    for start, following in pairwise(code.start):
        yield from check.follows([], start, following, 0)


MUTANTS: dict[str, tuple[Family, Family]] = {
    "one_device": (check.one_device, never_on_the_last),
    "thresholds": (check.thresholds, thresholds_backwards),
    "run_times": (check.run_times, longer_lag(check.run_times)),
    "precedence": (check.precedence, longer_lag(check.precedence)),
    "no_overlap": (check.no_overlap, longer_lag(check.no_overlap)),
    "apart": (check.apart, always_apart),
    "memory": (check.memory, lower_limit(check.memory)),
    "windows_by_device": (check.windows_by_device, narrower_windows),
    "loads": (check.loads, lower_limit(check.loads)),
    "least_loads": (check.least_loads, lower_limit(check.least_loads)),
    "alike_devices": (check.alike_devices, all_devices_alike),
    "alike_vertices": (check.alike_vertices, all_vertices_alike),
}


def test_every_family_has_a_mutant() -> None:
    assert {family for family, _ in MUTANTS.values()} == set(FAMILIES)


@pytest.mark.parametrize("name", MUTANTS)
def test_a_family_that_is_too_strict_is_noticed(name: str) -> None:
    family, mutant = MUTANTS[name]
    families = [mutant if each is family else each for each in FAMILIES]
    assert any(model_below(case.possible(), families) is None for case in reversed(cases()))


def test_windows_that_are_too_strict_are_noticed() -> None:
    longest = Windows._longest

    def longer(self: Windows, *arguments: Any) -> list[list[int]]:
        return [[time + 1 for time in row] for row in longest(self, *arguments)]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Windows, "_longest", longer)
        assert any(not case.possible().feasible for case in cases())


def test_a_horizon_one_tick_too_low_is_noticed() -> None:
    refuted = [case for case in cases()[::5] if model_below(case.unsatisfiable()) is None]
    assert len(refuted) == len(cases()[::5])
    assert all(model_below(case.possible()) is not None for case in refuted)


def test_every_family_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs" / "certificates.md").read_text(encoding="utf-8")
    for family in FAMILIES:
        kind = " (implied)" if family in IMPLIED else ""
        kind = " (symmetry)" if family in SYMMETRY else kind
        assert f"| `{family.__name__}`{kind} |" in page


# --- parts -----------------------------------------------------------------------------------


def test_a_diagram_counts_right() -> None:
    rng = np.random.default_rng(15)
    for _ in range(60):
        size, limit = int(rng.integers(1, 8)), int(rng.integers(0, 25))
        weights = rng.integers(0, 9, size).tolist()
        code = FakeEncoding(size)
        items = [(weight, i + 2) for i, weight in enumerate(weights)]
        diagram = [
            [literal for literal in clause if literal != check.FALSE]
            for clause in check.at_most(cast(Encoding, code), items, limit)
            if check.TRUE not in clause
        ]
        for chosen in range(2**size):
            bits = [chosen >> i & 1 for i in range(size)]
            literals = [i + 2 if bit else -i - 2 for i, bit in enumerate(bits)]
            total = sum(weight for weight, bit in zip(weights, bits, strict=True) if bit)
            found = satisfiable([*diagram, *([literal] for literal in literals)])
            assert (found is not None) == (total <= limit)


class FakeEncoding:
    """An encoding that only allocates variables."""

    def __init__(self, used: int) -> None:
        self.variables = used + 1
        self.allowance = check.Allowance()

    def new(self) -> int:
        self.variables += 1
        return self.variables


def test_clauses_are_paid_for_before_they_are_made() -> None:
    case = cases()[-1]
    code = encoding(windows_below(case.problem, Fraction(200), case.makespan))
    code.allowance.steps = 10_000
    made: list[list[int]] = []
    with pytest.raises(RejectedError, match="takes too long"):
        made.extend(clauses(code))
    assert sum(20 + 4 * len(clause) for clause in made) < 10_000 + 2**14
    code = encoding(windows_below(case.problem, Fraction(200), case.makespan))
    code.allowance.bytes = 20_000
    with pytest.raises(RejectedError, match="too much memory"):
        check.Formula(clauses(code), code.allowance)


def test_too_many_variables_are_rejected() -> None:
    case = cases()[-1]
    with pytest.raises(RejectedError, match="too many variables"):
        encoding(windows_below(case.problem, Fraction(10**12), case.makespan + 1))


RECORDS: dict[str, dict[str, Any]] = {
    "unknown key": {"extra": 1},
    "not order/1": {"encoding": "order/2"},
    "is not in": {"loads": [[9, 0, 0]]},
    "not a whole number": {"loads": [[0, "0", 0]]},
    "entries": {"loads": [[0, 0]]},
    "not one multiplier": {"multipliers": [1] * 9},
    "not a number": {"memory_scale": None},
    "negative": {"memory_scale": -1},
}


@pytest.mark.parametrize(("reason", "change"), RECORDS.items(), ids=list(RECORDS))
def test_an_invalid_record_is_rejected(reason: str, change: dict[str, Any]) -> None:
    windows = cases()[-1].possible()
    with pytest.raises(RejectedError, match=reason):
        Encoding(windows, exact_record(windows) | change)
