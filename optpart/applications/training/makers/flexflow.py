"""FlexFlow's Markov chain Monte Carlo over the actions of all groups."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from optpart.applications.training.actions import Action, ActionRules, actions
from optpart.applications.training.makers.base import DEFAULT, Clock, Made, evaluate_exactly
from optpart.applications.training.makers.scoring import Floats, Ints, Scorer
from optpart.applications.training.problem import StrategyProblem
from optpart.solution.result import Budget

#: Inverse temperature of the chain, relative to the time of its start.
BETA = 100.0

#: Factor on the time of a strategy that runs out of memory.
_PENALTY = 10.0


def flexflow(
    problem: StrategyProblem,
    *,
    budget: Budget = DEFAULT,
    seed: int = 0,
    rules: ActionRules | None = None,
    beta: float = BETA,
) -> Made:
    """Walk from data parallelism by one random action at a time (FlexFlow's MCMC).

    From Jia, Zaharia and Aiken, *Beyond Data and Model Parallelism for Deep Neural Networks*
    (MLSys 2019) §6: the proposal replaces the configuration of one random operation by a random
    one; it is accepted with probability ``min(1, exp(β (cost − cost′)))``; one chain starts from
    data parallelism and one from a random strategy; a chain ends when its share of the budget is
    spent, or when half of its time has not improved the best.

    What differs: a configuration is an action of
    :func:`~optpart.applications.training.actions.actions`, of a group instead of one operation,
    since the paper's SOAP dimensions other than samples do not exist here; the cost is the
    project's own simulation instead of the paper's; the paper gives no β, and here it is relative
    to the time of the chain's start. A strategy that runs out of memory costs ten times its time,
    which the paper leaves open.

    Parameters
    ----------
    rules : ActionRules, optional
        Which actions the groups have.
    """
    clock, rng = Clock(budget), np.random.default_rng(seed)
    choices = actions(problem, rules)
    scorer = Scorer(problem, choices, _PENALTY)
    count = np.array([len(each) for each in choices])
    starts = [replicated(choices), rng.integers(count)]
    best, value = starts[0], math.inf
    for i, start in enumerate(starts):
        found, score = _chain(scorer, start, clock, (i + 1) / len(starts), rng, beta, count)
        if score < value:
            best, value = found, score
    return evaluate_exactly(problem, scorer.decisions(best.tolist()), clock)


def replicated(choices: Sequence[Sequence[Action]]) -> Ints:
    """Return, by group, the first of the actions with the most devices: data parallelism."""
    most = [[len(action.decision.devices) for action in each] for each in choices]
    return np.array([counts.index(max(counts)) for counts in most], dtype=np.int64)


def _chain(
    scorer: Scorer,
    start: Ints,
    clock: Clock,
    until: float,
    rng: np.random.Generator,
    beta: float,
    count: Ints,
) -> tuple[Ints, float]:
    """Walk until a share of the budget is spent; return the best strategy and its score."""
    current = start.copy()
    value = _score(scorer, current, clock)
    best, least = current.copy(), value
    scale = beta / value if math.isfinite(value) and value else 0.0
    began = improved = clock.share
    while clock.share < until and (clock.share - improved) * 2 <= until - began:
        group = rng.integers(len(count))
        proposed = current.copy()
        proposed[group] = rng.integers(count[group])
        found = _score(scorer, proposed, clock)
        if not scale and math.isfinite(found):
            scale = beta / found
        if found <= value or rng.random() < math.exp(scale * (value - found)):
            current, value = proposed, found
        if value < least:
            best, least, improved = current.copy(), value, clock.share
    return best, least


def _score(scorer: Scorer, chosen: Ints, clock: Clock) -> float:
    scores: Floats = scorer.scores(chosen[None], clock)
    return float(scores[0])
