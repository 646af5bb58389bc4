"""Moves of stretches, blocks and parts: they keep every rule, and leave no trace if undone."""

from __future__ import annotations

from itertools import product
from typing import get_args

import numpy as np
import pytest
from layouts import broken_rules, copied, differing, random_layout

from optpart import Cluster, Device, GraphBuilder, Instance, Model
from optpart.kernels.rng import source
from optpart.problem.model import Communication, Memory
from optpart.search.evaluator import Evaluator
from optpart.search.incremental import forget, settle, take_back
from optpart.search.moves import MOVES, change
from optpart.search.plan import Layout
from optpart.search.units import release
from optpart.testing.draw import draw_instance

RUNS = ("stretch", "block", "boundary", "part", "exchange-stretches", "exchange-blocks")

pytestmark = pytest.mark.filterwarnings("ignore:overflow")  # random numbers wrap around


def entered(instance: Instance, devices: list[int]) -> Evaluator:
    at = Evaluator(instance, "makespan")
    eager = np.zeros(instance.graph.tensors, dtype=np.bool_)
    at.enter(Layout(np.array(devices, np.int32), instance.graph.topological_order.copy(), eager))
    return at


def outcomes(at: Evaluator, name: str, v: int, draws: int = 400) -> set[str]:
    """Return the placements, as digits, to which a move around a vertex leads."""
    found = set()
    a, g, p, s = at.arrays, at.links, at.plan, at.notes
    for seed in range(draws):
        forget(p, s)
        state = source(np.random.default_rng(seed))
        if change(a, g, p, s, state, MOVES.index(name), v, np.inf):
            found.add("".join(map(str, p.device.tolist())))
            release(a, p, s)
            take_back(p, s)
    return found


def chain(length: int, memory: list[int | None], need: int = 1) -> Instance:
    builder = GraphBuilder()
    for i in range(length):
        builder.vertex(str(i), 1, memory=need)
        if i:
            builder.edge(str(i - 1), str(i), None)
    devices = [Device(str(d), memory=m) for d, m in enumerate(memory)]
    return Instance(builder.build(), Cluster.of(devices), Model(memory="estimate"))


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize(
    ("communication", "memory"), list(product(get_args(Communication), get_args(Memory)))
)
def test_every_move_keeps_every_rule_and_can_be_undone(
    communication: Communication, memory: Memory, name: str
) -> None:
    made = 0
    for seed in range(5):
        instance = draw_instance(seed, communication, memory, vertices=12, devices=3)
        rng = np.random.default_rng(seed)
        layout = random_layout(instance, rng)
        if layout is None:
            continue
        at = Evaluator(instance, "makespan")
        at.enter(layout)
        a, g, p, s = at.arrays, at.links, at.plan, at.notes
        before, state = copied(p), source(rng)
        for v in range(instance.vertices):
            forget(p, s)
            if change(a, g, p, s, state, MOVES.index(name), v, np.inf):
                made += 1
                assert settle(a, g, p, s, np.inf)
                moved = Layout(p.device.copy(), p.order.copy(), p.eager.copy())
                anew = Evaluator(instance, "makespan")
                anew.enter(moved)
                assert set(differing(p, anew.plan)) <= {"tail"}
                assert broken_rules(anew, moved) == []
                release(a, p, s)
                take_back(p, s)
            assert not differing(p, before)
    assert made > 5


def test_a_stretch_begins_or_ends_at_the_vertex() -> None:
    at = entered(chain(4, [None, None]), [0, 0, 0, 0])
    assert outcomes(at, "stretch", 1) == {"0100", "0110", "0111", "1100"}


def test_a_stretch_moves_as_far_as_it_fits() -> None:
    at = entered(chain(4, [None, 2]), [0, 0, 0, 0])
    assert outcomes(at, "stretch", 1) == {"0100", "0110", "1100"}


def test_a_block_moves_whole_and_may_merge_with_its_neighbour() -> None:
    at = entered(chain(5, [None, None, None]), [0, 1, 1, 1, 2])
    assert outcomes(at, "block", 2) == {"00002", "02222"}


def test_a_boundary_shifts_to_the_vertex_as_far_as_there_is_room() -> None:
    at = entered(chain(6, [None, None]), [0, 0, 0, 1, 1, 1])
    assert outcomes(at, "boundary", 1) == {"011111", "110111"}
    at = entered(chain(6, [None, 4]), [0, 0, 0, 1, 1, 1])
    assert outcomes(at, "boundary", 1) == {"001111", "100111"}


def test_a_stretch_ends_where_little_crosses() -> None:
    builder = GraphBuilder()
    for i, size in enumerate((9, 9, 1, 9, 9, 9)):
        builder.vertex(str(i), 1, outputs=[size])
        if i:
            builder.edge(str(i - 1), str(i))
    devices = Cluster.uniform(2, bandwidth=1)
    at = entered(Instance(builder.build(), devices), [0] * 6)
    found = {move for move in outcomes(at, "stretch", 0) if move.startswith("11")}
    assert found == {"111000", "110000", "111111"}


def fork() -> Instance:
    """Two vertices in parallel, between two cut vertices, and one more vertex."""
    builder = GraphBuilder()
    for name in "abcde":
        builder.vertex(name, 1)
    for source_name, target in ("ab", "ac", "bd", "cd", "de"):
        builder.edge(source_name, target, None)
    return Instance(builder.build(), Cluster.of([Device("0"), Device("1")]))


def test_a_part_moves_with_all_that_runs_beside_it() -> None:
    found = outcomes(entered(fork(), [0, 0, 0, 0, 0]), "part", 2)
    assert found == {"01110", "01111"}


def test_stretches_are_exchanged_although_both_devices_are_full() -> None:
    at = entered(chain(4, [2, 2]), [0, 0, 1, 1])
    found = {move for v in (0, 1) for move in outcomes(at, "exchange-stretches", v)}
    assert found == {"1100", "1010", "1001", "0110", "0101"}
    assert outcomes(at, "exchange-blocks", 0) == {"1100"}


def test_the_second_stretch_may_go_to_a_third_device() -> None:
    at = entered(chain(2, [1, 1, 1]), [0, 1])
    assert outcomes(at, "exchange-stretches", 0) == {"10", "12"}
