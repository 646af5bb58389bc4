"""Random plans of pipelines: does the method, or its verifier, contradict enumeration?

The enumeration is written from design §2 alone. It is compared with the plan that is found, its
status and its file, and with what the verifier says of plans that keep the rules, or nearly do.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import optpart as op
from bench.soak.runs import FailedError
from optpart.base.errors import UnsupportedError
from optpart.exact.pipeline.plan import PipelinePlan
from optpart.exact.pipeline.plan_file import check_plan, write_plan
from optpart.exact.pipeline.splits import Stage
from optpart.exact.pipeline.verifier import loads, violations
from optpart.problem.instance import Instance
from optpart.problem.model import Communication, Memory
from optpart.solution.result import Status
from optpart.testing import naive_plans
from optpart.testing.draw import draw_instance
from optpart.testing.naive_plans import in_scope, plans_of
from optpart.testing.options import draw_options
from optpart.testing.pick import Draw, seeded

#: Models as often as they are drawn; the last three are refused, except without any limit.
_MODELS: tuple[tuple[Communication, Memory], ...] = (
    *[("delay", "estimate")] * 10,
    *[("delay", "none")] * 7,
    ("delay", "refcount"),
    ("delay", "edges"),
    ("link", "estimate"),
)

#: Plans of which the verifier is asked.
_ASKED = 12


def case(number: int, folder: Path) -> str:
    """Draw an instance and options, plan, and compare with all plans."""
    instance = drawn(number)
    options = draw_options("plan", instance, number)
    order = [instance.cluster.index[name] for name in options["device_order"] or ()]
    try:
        found = op.plan(instance, **options)
    except UnsupportedError as error:
        if in_scope(instance):
            raise FailedError(f"refused, but in scope: {error}") from None
        return "refused"
    if not in_scope(instance):
        raise FailedError(f"not in scope, but {found.status}")
    every = dict(plans_of(instance, options["replicas"], order, options["sync_rate"]))
    least = min(every.values(), default=None)
    expected = Status.INFEASIBLE if least is None else Status.OPTIMAL
    if (found.status, found.bottleneck, found.bound) != (expected, least, least):
        raise FailedError(
            f"{found.status} {found.bottleneck}, bound {found.bound}, by enumeration {least}"
        )
    write_plan(found, folder / "plan.json")
    if faults := check_plan(found.pipeline, folder / "plan.json"):
        raise FailedError(f"the verifier rejects the plan: {faults[0]}")
    _judge(found, every, Draw(seeded(number, "plans")))
    return "accepted"


def drawn(number: int) -> Instance:
    """Draw an instance."""
    return draw_instance(
        number,
        *_MODELS[number % len(_MODELS)],
        vertices=(0, 4),
        devices=(1, 5),
        no_links=number % 16 == 0,
        measured=number % 8 == 0,
        exact=False,
    )


def _judge(
    found: PipelinePlan, every: dict[tuple[naive_plans.Stage, ...], Fraction], draw: Draw
) -> None:
    """Ask the verifier about plans, some of which keep the rules."""
    pipeline = found.pipeline
    n, k = len(pipeline.vertices), len(pipeline.devices)
    known = list(every)
    for _ in range(_ASKED if n else 0):
        if known and draw.chance(2):
            plan = [(set(block), set(group)) for block, group in draw.one_of(known)]
            _, group = draw.one_of(plan)
            group ^= {draw.between(0, k - 1)}
        else:
            count = draw.between(1, min(n, k))
            place = [draw.between(0, count - 1) for _ in range(n)]
            plan = [
                ({v for v in range(n) if place[v] == i}, {d for d in range(k) if draw.chance(2)})
                for i in range(count)
            ]
        if not all(block and group for block, group in plan):
            continue
        if len({d for _, group in plan for d in group}) < sum(len(group) for _, group in plan):
            continue
        key = tuple((frozenset(block), frozenset(group)) for block, group in plan)
        stages = [
            Stage(tuple(sorted(block)), tuple(draw.one_of((sorted, list))(group)))
            for block, group in plan
        ]
        faults = list(violations(pipeline, stages, found.order, found.replicas))
        if bool(faults) == (key in every):
            raise FailedError(f"of {key}, the verifier says {faults}")
        if not faults and max(loads(pipeline, stages)) != every[key]:
            raise FailedError(f"the loads of {key} are not {every[key]}")
