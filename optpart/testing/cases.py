"""Drawn cases of intervals, as certificates of tier ``intervals`` have them."""

from __future__ import annotations

import random
from typing import Any

from optpart.certificates.check import Problem

#: Pairs that a case decides, at most.
_DEPTH = 6


def drawn_record(draw: random.Random, problem: Problem) -> dict[str, Any]:
    """Draw a record of some steps forwards and, mostly, some backwards."""
    record = {"steps": [drawn_step(draw, problem) for _ in range(draw.randint(0, 3))]}
    if draw.random() < 0.8:
        steps = [drawn_step(draw, problem, backwards=True) for _ in range(draw.randint(0, 3))]
        record["backwards"] = steps
    return record


def drawn_step(draw: random.Random, problem: Problem, *, backwards: bool = False) -> dict[str, Any]:
    """Draw a set of vertices and a tree of cases that the judge can read."""
    vertices = draw.sample(problem.order, draw.randint(1, len(problem.order)))
    vertices.sort(key=problem.order.index, reverse=backwards)
    units = [(problem.unit[a], problem.unit[b]) for a, b in problem.separated]
    label = [problem.unit[v] for v in vertices]
    apart = {pair for a, b in units if {a, b} <= {*label} for pair in ((a, b), (b, a))}
    return {"vertices": vertices, "cases": _tree(draw, label, apart, _DEPTH)}


def _tree(
    draw: random.Random, label: list[int], apart: set[tuple[int, int]], depth: int
) -> list[int]:
    pairs = [
        (i, j)
        for i, a in enumerate(label)
        for j, b in enumerate(label[:i])
        if a != b and (a, b) not in apart
    ]
    if not pairs or not depth or draw.random() < 0.1:
        return [-1]
    i, j = draw.choice(pairs)
    moved = {unit: label[i] if unit == label[j] else unit for unit in label}
    joined = {(moved[a], moved[b]) for a, b in apart}
    parted = apart | {(label[i], label[j]), (label[j], label[i])}
    together = _tree(draw, [moved[unit] for unit in label], joined, depth - 1)
    return [i, j, *together, *_tree(draw, label, parted, depth - 1)]
