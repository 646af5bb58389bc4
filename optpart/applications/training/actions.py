"""Decisions of a strategy for a group: the M + 4 actions of [G] §4.1.2, or more."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, NamedTuple

from optpart.applications.training.collectives import allreduce
from optpart.applications.training.graph import Line
from optpart.applications.training.problem import StrategyProblem
from optpart.applications.training.strategy import Decision, Sync
from optpart.base.errors import InputError

#: Replicas per device that proportional counts have at most.
MOST_REPLICAS = 8

#: Counts of replicas that one group may choose among at most.
MOST_COUNTS = 20_000


@dataclass(frozen=True)
class ActionRules:
    """Rules that select the actions of a group.

    Attributes
    ----------
    proportional : {"measured", "heterog"}
        Proportional replicas: by the measured speeds of the devices, or as in the program of [G],
        two on each of the first four devices and one on each of the others.
    counts : int
        If positive, any counts of replicas from 0 to this, not only even and proportional ones.
    servers : bool
        Any of the devices as the parameter server, not only the best by estimate.
    """

    proportional: Literal["measured", "heterog"] = "measured"
    counts: int = 0
    servers: bool = False


class Action(NamedTuple):
    """One choice for a group: its name in tables, and the decision."""

    name: str
    decision: Decision


def actions(
    problem: StrategyProblem, rules: ActionRules | None = None
) -> tuple[tuple[Action, ...], ...]:
    """Return the actions of every group; no two of a group are the same decision.

    By default the M + 4 of [G]: each single device, and even or proportional replicas with a
    parameter server or AllReduce. Left out are: more replicas than there are samples, a
    synchronisation for which links are missing, and all but one synchronisation for a group without
    gradients. There is always one action, since a single device needs neither.
    """
    rules = rules or ActionRules()
    k, names = len(problem.cluster), problem.cluster.names
    named = [(names[d], tuple(int(e == d) for e in range(k))) for d in range(k)]
    named += _replications(problem, rules)
    found = []
    for g in range(len(problem.groups)):
        distinct: dict[Decision, str] = {}
        for name, counts in named:
            for decision in _decisions(problem, g, counts, rules):
                distinct.setdefault(decision, _label(problem, g, name, decision))
        found.append(tuple(Action(name, decision) for decision, name in distinct.items()))
    return tuple(found)


def decision(
    problem: StrategyProblem, group: int, counts: tuple[int, ...], sync: Literal["ps", "allreduce"]
) -> Decision | None:
    """Return the decision of replicas and a kind of synchronisation; ``None`` if impossible.

    The server of ``"ps"`` is :func:`best_server`. A group without gradients has nothing to
    synchronise: its decision is the same for both kinds.
    """
    if sum(counts) > problem.batch:
        return None
    if sum(1 for count in counts if count) == 1:
        return Decision(counts)
    if sync == "allreduce" or not gradients(problem, group):
        return Decision(counts, "allreduce") if _ring(problem, group, counts) else None
    server = best_server(problem, group, counts)
    return None if server is None else Decision(counts, server)


def even(problem: StrategyProblem) -> tuple[int, ...]:
    """Return one replica per device."""
    return (1,) * len(problem.cluster)


def speeds(problem: StrategyProblem) -> tuple[Fraction, ...]:
    """Return iterations per nanosecond of each device alone, ignoring its memory.

    A device that takes no time is as fast as the fastest of the others.
    """
    totals = [
        sum((o.times[kind].at(problem.batch) for o in problem.graph.operations), Fraction(0))
        for kind in problem.kind
    ]
    least = min((total for total in totals if total), default=Fraction(1))
    return tuple(1 / max(total, least) for total in totals)


def proportional(
    problem: StrategyProblem, rule: Literal["measured", "heterog"] = "measured"
) -> tuple[int, ...]:
    """Return small counts of replicas in proportion to the speeds of the devices.

    ``"measured"``: of all counts that round a multiple of the speeds, with at most
    :data:`MOST_REPLICAS` on a device, those with the least ``max_d n_d / speed_d`` per replica, so
    that the slowest share ends first; of equal ones, the fewest replicas. ``"heterog"``: 2 on each
    of the first four devices and 1 elsewhere ([R]).
    """
    k = len(problem.cluster)
    if rule == "heterog":
        return tuple(2 if d < 4 else 1 for d in range(k))
    speed = speeds(problem)
    slowest = min(speed)
    best: tuple[Fraction, int, tuple[int, ...]] | None = None
    for factor in range(1, MOST_REPLICAS + 1):
        counts = tuple(max(1, round(factor * s / slowest)) for s in speed)
        if factor > 1 and max(counts) > MOST_REPLICAS:
            break
        counts = tuple(min(count, MOST_REPLICAS) for count in counts)
        common = math.gcd(*counts)
        counts = tuple(count // common for count in counts)
        total = sum(counts)
        if total > problem.batch:
            continue
        longest = max(Fraction(n) / s for n, s in zip(counts, speed, strict=True)) / total
        best = min(best or (longest, total, counts), (longest, total, counts))
    return best[2] if best else even(problem)


def gradients(problem: StrategyProblem, group: int) -> tuple[tuple[int, int, Fraction], ...]:
    """Return what replicas of a group must sum: producer, output and bytes of each gradient.

    The gradients of an operation that cannot be split are whole at every replica, and not listed.
    """
    graph = problem.graph
    found: set[tuple[int, int, Fraction]] = set()
    for o in problem.groups[group]:
        for edge in graph.in_edges[o]:
            producer = graph.operations[edge.producer]
            if graph.sums(edge) and producer.splittable:
                size = producer.outputs[edge.output].size.alpha
                found.add((edge.producer, edge.output, size))
    return tuple(sorted(found))


def best_server(problem: StrategyProblem, group: int, counts: tuple[int, ...]) -> int | None:
    """Return the replica's device where the gradients of a group are summed earliest ([G] §3.4).

    By an estimate: each replica computes the group's operations that make gradients without
    waiting, its gradients then go to the server over an idle link, and the server adds them. Of
    equal servers, the first; ``None`` if every device lacks a link from or to another.
    """
    graph, cluster = problem.graph, problem.cluster
    sums = gradients(problem, group)
    devices = [d for d, count in enumerate(counts) if count]
    share = {d: Fraction(counts[d] * problem.batch, sum(counts)) for d in devices}
    total = sum((size for _, _, size in sums), Fraction(0))
    # Times are linear in samples and in bytes, so that sums of lines and of bytes suffice.
    producers = [graph.operations[o] for o in {o for o, _, _ in sums}]
    lines = {
        kind: sum((operation.times[kind] for operation in producers), Line())
        for kind in {problem.kind[d] for d in devices}
    }
    ready = {d: lines[problem.kind[d]].at(share[d]) for d in devices}
    best: tuple[Fraction, int] | None = None
    for p in devices:
        if not _serves(problem, p, devices):
            continue
        arrival = (
            ready[d] + (len(sums) - 1) * cluster.latency[d][p] + cluster.transfer(d, p, total)
            for d in devices
            if d != p
        )
        summed = max([ready[p], *arrival]) + cluster.copying(p, len(devices) * total)
        if best is None or summed < best[0]:
            best = summed, p
    return None if best is None else best[1]


def _replications(
    problem: StrategyProblem, rules: ActionRules
) -> list[tuple[str, tuple[int, ...]]]:
    k = len(problem.cluster)
    found = [("even", even(problem)), ("proportional", proportional(problem, rules.proportional))]
    if rules.counts > 0:
        if (rules.counts + 1) ** k > MOST_COUNTS:
            raise InputError(
                "counts",
                f"{(rules.counts + 1) ** k:,} choices on {k} devices",
                f"allow fewer replicas: at most {MOST_COUNTS:,} choices",
            )
        found += [("×".join(map(str, counts)), counts) for counts in _counts(problem, rules.counts)]
    return found


def _counts(problem: StrategyProblem, most: int) -> Iterator[tuple[int, ...]]:
    """Yield all counts with two devices or more; fused replicas depend on their ratio only."""
    separate = problem.options.replicas == "separate"
    for counts in itertools.product(range(most + 1), repeat=len(problem.cluster)):
        if sum(map(bool, counts)) > 1 and (separate or math.gcd(*counts) == 1):
            yield counts


def _decisions(
    problem: StrategyProblem, group: int, counts: tuple[int, ...], rules: ActionRules
) -> Iterator[Decision]:
    devices = [d for d, count in enumerate(counts) if count]
    syncs: tuple[Literal["ps", "allreduce"], ...] = ("ps", "allreduce")
    yield from filter(None, (decision(problem, group, counts, sync) for sync in syncs))
    if rules.servers and len(devices) > 1 and sum(counts) <= problem.batch:
        for p in devices if gradients(problem, group) else ():
            if _serves(problem, p, devices):
                yield Decision(counts, p)


def _label(problem: StrategyProblem, group: int, name: str, decision: Decision) -> str:
    sync: Sync = decision.sync
    if sync is None:
        return problem.cluster.names[decision.devices[0]]
    if not gradients(problem, group):
        return name
    if sync == "allreduce":
        return f"{name} AllReduce"
    return f"{name} PS {problem.cluster.names[sync]}"


def _ring(problem: StrategyProblem, group: int, counts: tuple[int, ...]) -> bool:
    """Return whether an AllReduce can run on these devices; without gradients nothing runs."""
    try:
        if gradients(problem, group):
            allreduce(problem.cluster, [d for d, n in enumerate(counts) if n], Fraction(1))
    except InputError:
        return False
    return True


def _serves(problem: StrategyProblem, server: int, devices: Iterable[int]) -> bool:
    """Return whether a parameter server has links from and to all other devices."""
    linked = problem.cluster.linked
    return all(linked(d, server) and linked(server, d) for d in devices if d != server)
