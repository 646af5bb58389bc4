"""The linear program over actions: its rows are true of every strategy."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from optpart import InputError
from optpart.applications.training.actions import actions
from optpart.applications.training.bounds.costs import Costs
from optpart.applications.training.bounds.program import (
    Multipliers,
    Program,
    proven,
    strategy_bound,
)
from optpart.applications.training.bounds.rows import NCCL, Row, Rows
from optpart.applications.training.bounds.shares import average_path, load
from optpart.applications.training.cluster import TrainingCluster
from optpart.applications.training.cluster_file import figures, read, training_cluster
from optpart.applications.training.compiled import Options, VertexKind, by_rank
from optpart.applications.training.evaluator import Evaluator
from optpart.applications.training.graph import Line
from optpart.applications.training.groups import contiguous_groups
from optpart.applications.training.models import network
from optpart.applications.training.problem import Choices, StrategyProblem
from optpart.applications.training.strategy import Decision
from optpart.problem.cluster import Cluster, Device
from optpart.testing.chains import chain
from optpart.testing.choices import compiled_strategies, random_choices


def drawn(seed):
    rng = np.random.default_rng(seed)
    tick = (Fraction(1), None, Fraction(1, 3))[int(rng.integers(3))]
    auxiliary = ("memory", "free")[int(rng.random() < 0.3)]
    return random_choices(
        rng,
        layers=int(rng.integers(1, 5)),
        devices=int(rng.integers(1, 5)),
        groups=int(rng.integers(1, 4)),
        options=Options(memory="none", tick=tick, auxiliary=auxiliary),
        missing=0.1 if seed % 5 == 0 else 0,
    )


def loads(compiled):
    """Times of every resource of a compiled strategy."""
    found = {}
    instance, k = compiled.instance, len(compiled.cluster)
    for v, vertex in enumerate(compiled.vertices):
        d = vertex.device
        key = NCCL if vertex.kind is VertexKind.ALLREDUCE else ("device", d, d)
        found[key] = found.get(key, 0) + instance.duration(v, d)
    moves = by_rank(compiled).transfers
    for tensor, e in zip(moves.tensor.tolist(), moves.target.tolist(), strict=True):
        d = compiled.vertices[int(instance.graph.tensor_vertex[tensor])].device
        if max(d, e) < k:
            key = ("link", d, e)
            found[key] = found.get(key, 0) + instance.delay(tensor, d, e)
    return found


@pytest.mark.parametrize("seed", range(12))
def test_every_row_is_true_of_every_strategy(seed):
    choices = drawn(seed)
    program = Program(Rows(Costs(choices)))
    bound = program.solve()
    rows = program.rows
    for chosen, compiled in list(compiled_strategies(choices))[:8]:
        x = rows.point(chosen)
        assert not x[~rows.possible].any()
        makespan = by_rank(compiled).makespan(compiled.instance) * rows.costs.scale
        assert bound.ticks is not None
        assert bound.ticks <= makespan
        assert all(rows.coefficients(row) @ x <= makespan for row in program.known)
        # Rows that the program did not need, too.
        assert not program.separator.violated(x.astype(float), float(makespan))


@pytest.mark.parametrize("seed", range(8))
def test_loads_are_those_of_the_compiled_strategy(seed):
    choices = drawn(seed)
    rows = Rows(Costs(choices))
    alone = all(len(ways) == 1 for tensors in rows.readers for ways in tensors)
    for chosen, compiled in list(compiled_strategies(choices))[:6]:
        x, found = rows.point(chosen), loads(compiled)
        for resource in rows.resources:
            counted = rows.coefficients(Row("load", resource)) @ x
            true = found.get(resource, 0) * rows.costs.scale
            assert counted <= true
            if alone and choices.problem.options.tick is not None:
                assert counted == true


def test_strategies_without_links_are_impossible():
    rng = np.random.default_rng(3)
    choices = random_choices(rng, missing=0.5, options=Options(memory="none"))
    rows = Rows(Costs(choices))
    compiled = {chosen for chosen, _ in compiled_strategies(choices)}
    for chosen in np.ndindex(*map(len, choices.actions)):
        assert rows.possible[rows.point(chosen) == 1].all() == (chosen in compiled)


def small(devices=2, memory=None, chosen=None, layers=2, batch=8):
    """A chain on equal devices with free links."""
    graph = chain(layers, ("a",), forward=Line.of(0, 10), activation=0, weights=100)
    cluster = TrainingCluster(
        Cluster.of([Device(f"d{i}", memory=memory) for i in range(devices)]),
        ("a",) * devices,
        (0,) * devices,
        (None,) * devices,
    )
    groups = tuple(tuple(sorted(group)) for group in graph.tied)
    single = tuple(Decision.on(d, devices) for d in range(devices))
    even = Decision((1,) * devices, "allreduce")
    chosen = (*single, even) if chosen is None else chosen
    return Choices(StrategyProblem(graph, cluster, batch, groups), (chosen,) * len(groups))


def test_equal_devices_with_free_links_divide_the_time():
    bound = strategy_bound(small(devices=4))
    assert bound.value == Fraction(2 * 8 * 30, 4)
    alone = strategy_bound(small(devices=4, chosen=(Decision.on(0, 4),)))
    assert alone.value == 2 * 8 * 30


def test_memory_forces_parameters_apart():
    # The parameters and Adam's two copies take 300 bytes a layer: one layer fits on each device.
    bound = strategy_bound(small(memory=300))
    assert bound.value == 2 * 8 * 30
    assert strategy_bound(small(memory=299)).value is None


def test_parameters_that_do_not_fit_together_leave_a_bound_without_memory():
    alone = strategy_bound(small(memory=300, layers=3))
    assert alone.value == strategy_bound(small(layers=3)).value


def test_without_time_the_loads_bound_it():
    choices = small(devices=2, chosen=(Decision.on(0, 2), Decision((1, 1), "allreduce")))
    bound = strategy_bound(choices, 0.0)
    assert bound.rounds == 0
    assert bound.value == strategy_bound(choices).value == Fraction(2 * 8 * 30, 2)


def test_the_time_limit_only_weakens_the_bound():
    for seed in range(5):
        choices = drawn(seed)
        without, with_time = strategy_bound(choices, 0.0), strategy_bound(choices)
        assert without.value is not None
        assert 0 < without.value <= with_time.value


def test_any_multipliers_prove_something_true():
    rng = np.random.default_rng(11)
    choices = random_choices(rng, options=Options(memory="none"))
    program = Program(Rows(Costs(choices)))
    bound = program.solve()
    best = bound.ticks
    assert best is not None
    for _ in range(30):
        rows = tuple(
            (row, multiplier * int(rng.integers(0, 4)))
            for row, multiplier in bound.multipliers.rows
        )
        messages = {
            pair: tuple(tuple(x * int(rng.integers(-1, 3)) for x in side) for side in sides)
            for pair, sides in bound.multipliers.messages.items()
        }
        found = proven(program.rows, Multipliers(rows, messages))
        assert found is not None
        assert found <= best + 1


def test_a_load_without_multipliers_proves_nothing():
    rows = Rows(Costs(small()))
    assert proven(rows, Multipliers((), {})) == 0


def test_more_actions_never_increase_the_bound():
    rng = np.random.default_rng(8)
    for _ in range(5):
        choices = random_choices(rng, actions=4, options=Options(memory="none"))
        fewer = replace(choices, actions=tuple(row[:2] for row in choices.actions))
        assert strategy_bound(choices).value <= strategy_bound(fewer).value


@pytest.mark.parametrize(
    "options",
    [
        {"replicas": "separate"},
        {"resharding": "heterog"},
        {"collectives": "ring"},
        {"topology": "shared"},
        {"microbatches": 2},
    ],
)
def test_options_that_the_rows_do_not_describe_are_refused(options):
    choices = small()
    with pytest.raises(InputError, match=next(iter(options))):
        Choices(
            replace(choices.problem, options=Options(memory="none", **options)), choices.actions
        )


def test_repeated_or_missing_actions_are_refused():
    choices = small()
    with pytest.raises(InputError, match="repeated"):
        replace(choices, actions=((Decision.on(0, 2),) * 2, choices.actions[1]))
    with pytest.raises(InputError, match="one per group"):
        replace(choices, actions=choices.actions[:1])


def test_a_gradient_stays_in_its_group():
    choices = small(layers=1)
    parts = replace(choices.problem.graph, parameters=())
    with pytest.raises(InputError, match="another group"):
        StrategyProblem(parts, choices.problem.cluster, 8, ((0,), (1,), (2,)))


@pytest.mark.parametrize("name", ["vgg19", "transformer"])
def test_no_random_strategy_of_a_model_is_faster(name):
    rng = np.random.default_rng(7)
    named = read("heterog-4-split")
    graph = network(name).training_graph(figures(named))
    cluster = training_cluster(named)
    problem = StrategyProblem(graph, cluster, 96, contiguous_groups(graph, 96, 8))
    lists = [[action.decision for action in row] for row in actions(problem)]
    bound = strategy_bound(Choices(problem, lists))
    assert bound.value > max(load(problem), average_path(problem))
    evaluator = Evaluator(problem)
    for _ in range(200):
        # Runs of groups with one action: others are far slower than any bound.
        last = sorted(int(x) for x in rng.integers(0, len(lists) + 1, size=2))
        one, two = rng.random(2)
        shares = [one if last[0] <= g < last[1] else two for g in range(len(lists))]
        chosen = [row[int(x * len(row))] for row, x in zip(lists, shares, strict=True)]
        makespan = evaluator.of(chosen).makespan
        assert makespan is None or bound.value <= makespan
