"""Random schedules: do the verifier, its reference and a naive verifier agree on each?"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import get_args

import numpy as np

from bench.soak.runs import FailedError
from optpart.base.errors import InputError
from optpart.problem.graph import CONTROL
from optpart.problem.instance import Instance
from optpart.problem.model import Communication, Memory
from optpart.problem.rational import RationalArray
from optpart.solution.metrics import traffic
from optpart.solution.schedule import Schedule, Transfers, crossings, retime
from optpart.solution.verifier import reference, verify
from optpart.testing.disguise import renamed, scaled
from optpart.testing.draw import draw_instance
from optpart.testing.naive_verifier import NaiveVerifier, Transfer
from optpart.testing.pick import Draw, seeded
from optpart.testing.solutions import allowed_placements, picked_order

#: Schedules of one instance.
_EACH = 25

#: Every communication and memory model.
MODELS = list(product(get_args(Communication), get_args(Memory)))


def case(number: int, folder: Path) -> str:
    """Draw a schedule, most of them changed, and let all judge it."""
    judged = instance_of(number // _EACH)
    draw = Draw(seeded(number, "schedule"))
    schedule = _drawn(draw, judged)
    return judged.judge(schedule)


class Judged:
    """An instance and the naive verifier of its document."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.naive = NaiveVerifier(instance.to_dict())
        self.placements = [p.tolist() for p in allowed_placements(instance)]
        graph = instance.graph
        self.tensors = [
            (int(u), None if o == CONTROL else int(o))
            for u, o in zip(graph.tensor_vertex, graph.tensor_output, strict=True)
        ]

    def faults(self, schedule: Schedule) -> list[str]:
        """Return the rules that a schedule breaks, as the naive verifier says."""
        where, start, moves = self.naively(schedule)
        return self.naive.faults(where, start, moves)

    def naively(self, schedule: Schedule) -> tuple[list[int], list[Fraction], list[Transfer]]:
        """Return a schedule as the naive verifier takes it."""
        sent = schedule.transfers
        moves = [
            (self.tensors[tensor], target, sent.start[i], sent.end[i])
            for i, (tensor, target) in enumerate(
                zip(sent.tensor.tolist(), sent.target.tolist(), strict=True)
            )
        ]
        return schedule.placement.tolist(), schedule.start.fractions(), moves

    def judge(self, schedule: Schedule) -> str:
        """Compare three verdicts; of what all accept, compare the values, too."""
        where, start, moves = self.naively(schedule)
        naive = self.naive.faults(where, start, moves)
        quick, slow = verify(self.instance, schedule), reference(self.instance, schedule)
        if bool(naive) != bool(quick) or bool(naive) != bool(slow):
            raise FailedError(
                f"naive {naive}, verifier {[*map(str, quick)]}, reference {[*map(str, slow)]}"
            )
        if naive:
            return "refused"
        values = schedule.makespan(self.instance), traffic(self.instance, schedule.placement)
        if values != (self.naive.makespan(where, start), self.naive.traffic(where)):
            raise FailedError(f"makespan and traffic {values}")
        return "accepted"


@lru_cache(maxsize=2)
def instance_of(number: int) -> Judged:
    """Draw an instance, with other names and now and then in other units."""
    communication, memory = MODELS[number % len(MODELS)]
    instance = draw_instance(
        number, communication, memory, vertices=(0, 6), devices=(1, 4), exact=number % 8 > 0
    )
    if number % 7 == 0:
        instance, _, _ = scaled(instance, number)
    return Judged(renamed(instance, number))


def _drawn(draw: Draw, judged: Judged) -> Schedule:
    """Draw a placement and an order, time them, and change up to three details."""
    instance = judged.instance
    n, k = instance.vertices, instance.devices
    where = [draw.between(0, k - 1) for _ in range(n)]
    if judged.placements and not draw.chance(6):
        where = draw.one_of(judged.placements)
    array = np.array(where, dtype=np.int32)
    order = picked_order(draw.between, instance, crossings(instance, array))
    try:
        schedule = retime(instance, array, order)
    except InputError:  # a link is missing
        schedule = _anyhow(draw, instance, where)
    return _changed(draw, judged, schedule)


def _anyhow(draw: Draw, instance: Instance, where: list[int]) -> Schedule:
    """Return a schedule without regard to any rule."""
    moves = crossings(instance, np.array(where, dtype=np.int32))
    return _built(
        where,
        [Fraction(draw.between(0, 9)) for _ in where],
        [(t, e, Fraction(draw.between(0, 9)), Fraction(draw.between(0, 9))) for t, e in moves],
    )


def _built(
    where: list[int], start: list[Fraction], moves: list[tuple[int, int, Fraction, Fraction]]
) -> Schedule:
    return Schedule(
        np.array(where, dtype=np.int32), RationalArray.from_fractions(start), Transfers.of(moves)
    )


def _changed(draw: Draw, judged: Judged, schedule: Schedule) -> Schedule:
    """Change up to three details: times by what other times suggest, transfers, devices."""
    changes = draw.one_of((0, 0, 1, 1, 1, 2, 3))
    if not changes:
        return schedule
    instance = judged.instance
    where, start = schedule.placement.tolist(), schedule.start.fractions()
    sent = schedule.transfers
    moves = list(
        zip(sent.tensor.tolist(), sent.target.tolist(), sent.start.fractions(),
            sent.end.fractions(), strict=True)
    )  # fmt: skip
    tensors = instance.graph.tensors
    for _ in range(changes):
        times = [Fraction(0), *start, *(end for *_, end in moves)]
        times += [
            start[v] + instance.duration(v, d)
            for v, d in enumerate(where)
            if instance.vertex_allowed[v, d]
        ]
        tiny = max(max(times), Fraction(1)) / draw.one_of((1, 2, 3, 10**6, 10**30))
        time = draw.one_of(times) + draw.one_of((0, 0, 0, 1, -1)) * tiny
        what = draw.between(0, 11)
        if what < 4 and start:
            start[draw.between(0, len(start) - 1)] = time
        elif what == 4 and start:  # all later, which breaks no rule but under `delay`
            start = [each + tiny for each in start]
            moves = [(t, e, a + tiny, b + tiny) for t, e, a, b in moves]
        elif what == 5 and start:
            where[draw.between(0, len(where) - 1)] = draw.between(0, instance.devices - 1)
        elif what in (6, 7) and moves:
            i = draw.between(0, len(moves) - 1)
            t, e, a, b = moves[i]
            later = time - a
            moves[i] = (t, e, a + later, b + later)
        elif what == 8 and moves:
            i = draw.between(0, len(moves) - 1)
            t, e, a, b = moves[i]
            moves[i] = draw.one_of(((t, e, time, b), (t, e, a, time)))
        elif what == 9 and moves:
            del moves[draw.between(0, len(moves) - 1)]
        elif what == 10 and moves:
            moves.append(draw.one_of(moves))
        elif what == 11 and tensors:
            moves.append(
                (draw.between(0, tensors - 1), draw.between(0, instance.devices - 1), time, time)
            )
    return _built(where, start, moves)
