"""What is measured."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from bench.store import Row, Values
from bench.strategy.cases import GROUPS, free, problem, straggling, swept
from bench.strategy.losses import loss
from optpart.applications.training.actions import actions, decision, even, proportional, speeds
from optpart.applications.training.bounds.exact import joint_optimum
from optpart.applications.training.bounds.program import strategy_bound
from optpart.applications.training.bounds.shares import average_path, load
from optpart.applications.training.makers import MAKERS
from optpart.applications.training.makers.base import Clock, evaluate_exactly
from optpart.applications.training.problem import Choices, StrategyProblem
from optpart.applications.training.strategy import Decision
from optpart.solution.result import Budget

BASELINES = ("ev-ps", "ev-ar", "cp-ps", "cp-ar")
SIMPLE = ("single", "blocks", "round-robin", "stages")
PEERS = ("policy-gradient", "flexflow", "alpa", "pipedream")
OURS = "search"
#: Strategies, of which the loss against the bound is split.
SPLIT = ("ev-ps", "cp-ps", OURS)
SPLIT_ON = "heterog-8"
METHODS = (*BASELINES, *SIMPLE, *PEERS, OURS)
#: Methods that take as long as they may; of the others, only what they compute.
LIMITED = (*(peer for peer in PEERS if peer != "pipedream"), OURS)

#: Groups as their decisions: replicas by device, and synchronisation.
Chosen = list[list[Any]]


def method(run: Values) -> Values:
    """Make a strategy."""
    return made(asked(run), run["method"], run["seconds"])


def asked(run: Values) -> StrategyProblem:
    """Return the problem of a run."""
    if run["part"] == "bandwidth":
        return swept(run["model"], run["gbit"])
    if run["part"] == "straggler":
        return straggling(run["model"], run["straggler"])
    return problem(run["model"], run["cluster"], run["groups"])


def made(question: StrategyProblem, name: str, seconds: float) -> Values:
    """Return what a maker makes."""
    found = MAKERS[name](question, budget=Budget(seconds), seed=0)
    decisions = None if found.strategy is None else found.strategy.decisions
    return {
        "ns": None if found.makespan is None else str(found.makespan),
        "reason": found.reason,
        "moves": found.moves,
        "seconds": round(found.seconds, 2),
        "decisions": None if decisions is None else [[d.replicas, d.sync] for d in decisions],
    }


def bound(run: Values, chosen: Sequence[Chosen]) -> Values:
    """Bound all strategies: of any shares, and of [G]'s actions and those that were found.

    Parameters
    ----------
    chosen : sequence
        Strategies whose decisions are actions besides [G]'s.
    """
    question = problem(run["model"], run["cluster"], run["groups"])
    shares = [load(question), average_path(question)]
    choices = Choices(question, widened(question, chosen))
    program = strategy_bound(choices, run["seconds"])
    return {
        "shares": None if None in shares else str(max(filter(None, shares))),
        "actions": None if program.value is None else str(program.value),
        "rounds": program.rounds,
    }


def widened(question: StrategyProblem, chosen: Sequence[Chosen]) -> list[list[Decision]]:
    """Return the actions of [G] of every group, and those of some strategies."""
    found = []
    for g, each in enumerate(actions(question)):
        known = [action.decision for action in each]
        for strategy in chosen:
            replicas, sync = strategy[g]
            known.append(Decision(tuple(replicas), sync))
        found.append(list(dict.fromkeys(known)))
    return found


def digest(chosen: Sequence[Chosen]) -> str:
    """Return a short name of some strategies."""
    return hashlib.sha256(json.dumps(chosen).encode()).hexdigest()[:12]


def exact(run: Values) -> Values:
    """Prove the best of [G]'s actions for few groups, and its best order."""
    question = problem(run["model"], run["cluster"], run["groups"])
    choices = Choices(question, [[a.decision for a in each] for each in actions(question)])
    found = joint_optimum(choices, seconds=run["seconds"], workers=2)
    return {
        "status": found.status.name,
        "ns": None if found.makespan is None else str(found.makespan),
        "bound": None if found.bound is None else str(found.bound),
        "seconds": round(found.seconds, 2),
    }


def split(run: Values, chosen: Chosen) -> Values:
    """Split what a strategy in [G]'s order loses: by the order, and by places of servers."""
    question = problem(run["model"], run["cluster"], run["groups"])
    decisions = [Decision(tuple(replicas), sync) for replicas, sync in chosen]
    budget = Budget(run["seconds"])
    lost, best = loss(
        question, evaluate_exactly(question, decisions, Clock(budget)), Fraction(0), budget=budget
    )
    return {
        "order": str(lost.order),
        "servers": str(lost.servers),
        "ns": str(best.makespan),
        "by": best.by,
        "bound": str(best.bound),
    }


def gain(run: Values) -> Values:
    """Compare proportional with even replicas where nothing but computing takes time."""
    question = free(run["model"])
    speed = speeds(question)
    times = [
        uniform(question, counts)
        for counts in (even(question), proportional(question), (2, 2, 1, 1))
    ]
    return {
        "ratio": str(max(speed) / min(speed)),
        "even": str(times[0]),
        "proportional": str(times[1]),
        "double": str(times[2]),
    }


def uniform(question: StrategyProblem, counts: tuple[int, ...]) -> Fraction | None:
    """Return the time of the same replicas for all groups."""
    found = [decision(question, g, counts, "allreduce") for g in range(len(question.groups))]
    chosen = [one for one in found if one is not None]
    return evaluate_exactly(question, chosen, Clock()).makespan


def case(model: str, cluster: str, name: str, seconds: float) -> Values:
    """Return the parameters of a method on a case; a method without limit has none."""
    return {
        "part": "case",
        "model": model,
        "cluster": cluster,
        "groups": GROUPS,
        "method": name,
        "seconds": seconds if name in LIMITED else 0.0,
    }


def time_of(row: Row, key: str = "ns") -> Fraction | None:
    """Return a time of a row in nanoseconds."""
    text = row.result.get(key)
    return None if text is None or text == "None" else Fraction(text)
