"""Random layouts and states of tiny instances, for tests of searchers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from optpart.kernels.struct import hints
from optpart.problem.instance import Instance
from optpart.problem.rational import RationalArray
from optpart.search.evaluator import Evaluator
from optpart.search.layout import repaired
from optpart.search.plan import Layout, Plan
from optpart.search.state import State, valued
from optpart.solution.schedule import Schedule, Transfers
from optpart.solution.verifier import Violation, verify
from optpart.testing.solutions import random_order


def random_layout(instance: Instance, rng: np.random.Generator) -> Layout | None:
    """Draw a layout that keeps every rule on placements; ``None`` if none is found."""
    wished = rng.integers(0, instance.devices, instance.vertices, dtype=np.int32)
    wished = wished[[members[0] for members in instance.units]][instance.unit_of]
    anytime = RationalArray.from_fractions([Fraction(0)] * instance.vertices)
    found = repaired(instance, Schedule(wished, anytime, Transfers.of(())), rng)
    if found is None:
        return None
    order = np.array(random_order(rng, instance), dtype=np.int32)
    return Layout(found.device, order, rng.random(instance.graph.tensors) < 0.5)


def random_state(instance: Instance, rng: np.random.Generator, size: int = 5) -> State | None:
    """Draw a state of large-neighbourhood search; ``None`` if no placement is found."""
    layout = random_layout(instance, rng)
    if layout is None:
        return None
    at = Evaluator(instance, "makespan")
    at.enter(layout)
    return valued(at, at.weights(at.value()), size)


def copied(p: Plan) -> Plan:
    return Plan(*(np.copy(array) for array in p))


def differing(one: Plan, other: Plan) -> list[str]:
    """Names of what is not the same in two plans."""
    pairs = zip(hints(Plan), one, other, strict=True)
    return [name for name, mine, its in pairs if not np.array_equal(mine, its)]


def broken_rules(at: Evaluator, layout: Layout) -> list[Violation]:
    """What a layout breaks besides memory that changes with time."""
    violations = verify(at.instance, at.schedule(layout))
    if at.instance.model.memory in ("edges", "refcount"):
        return [violation for violation in violations if violation.rule != "memory"]
    return violations
