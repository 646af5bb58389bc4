"""[G]'s reinforcement learning in its smallest form: one softmax per group."""

from __future__ import annotations

import math

import numpy as np

from optpart.applications.training.actions import ActionRules, actions
from optpart.applications.training.makers.base import DEFAULT, Clock, Made, evaluate_exactly
from optpart.applications.training.makers.scoring import Floats, Ints, Scorer
from optpart.applications.training.problem import StrategyProblem
from optpart.solution.result import Budget

#: Strategies sampled for one step of the gradient.
_SAMPLES = 16
#: Step size of the gradient.
_STEP = 20.0
#: Weight of the entropy at the start; it falls to 0 over the budget.
_ENTROPY = 0.005
#: Weight of the latest reward in its moving average.
_MEMORY = 0.1


def policy_gradient(
    problem: StrategyProblem,
    *,
    budget: Budget = DEFAULT,
    seed: int = 0,
    rules: ActionRules | None = None,
) -> Made:
    """Learn a probability for every action of every group (the policy gradient of [G] §4.1).

    From [G] §4.1.2–4.1.3: a softmax over the actions of each group; the reward ``−√T`` of a sampled
    strategy, multiplied by 10 if it runs out of memory; the gradient of its logarithm times what
    the reward exceeds a moving average by (REINFORCE); a term for the entropy, so that actions stay
    possible. The best strategy ever sampled is the result.

    What differs: probabilities are free parameters of one graph. [G] computes them with a graph
    attention network and a Transformer-XL, so that what one graph teaches serves others; on a
    single graph, such a network cannot represent more than these parameters, and without a GPU its
    evaluation would take nearly all of the budget. ``T`` is relative to the first sample, so that
    steps do not depend on units. The weight of the entropy falls to 0; [G] does not give any.

    Parameters
    ----------
    rules : ActionRules, optional
        Which actions the groups have.
    """
    clock, rng = Clock(budget), np.random.default_rng(seed)
    choices = actions(problem, rules)
    # 10 times the reward is 100 times the time.
    scorer = Scorer(problem, choices, 100.0)
    groups, most = len(choices), max(map(len, choices))
    missing = np.array([[a >= len(each) for a in range(most)] for each in choices])
    logits = np.where(missing, -np.inf, 0.0)
    best: Ints = np.zeros(groups, dtype=np.int64)
    value, unit, average = math.inf, 0.0, 0.0
    while not clock.spent:
        chance = softmax(logits)
        chosen = sample(chance, rng, _SAMPLES)
        scores = scorer.scores(chosen, clock)
        least = int(scores.argmin())
        if scores[least] < value:
            best, value = chosen[least], float(scores[least])
        finite = np.isfinite(scores)
        if not finite.any():
            continue
        if not unit:
            unit = float(scores[finite].max()) or 1.0
            average = float(-np.sqrt(scores[finite] / unit).mean())
        # A missing link is as bad as the worst that has been sampled with links, but for memory.
        reward = -np.sqrt(np.where(finite, scores, 100.0 * unit) / unit)
        advantage = reward - average
        average += _MEMORY * float(reward.mean() - average)
        weight = _ENTROPY * (1 - clock.share)
        logits = logits + _STEP * (
            expected(chosen, advantage, chance) + weight * entropy_gradient(chance)
        )
    return evaluate_exactly(problem, scorer.decisions(best.tolist()), clock)


def softmax(logits: Floats) -> Floats:
    """Return the probabilities of each row; −∞ has none."""
    raised = np.exp(logits - logits.max(axis=1, keepdims=True))
    chance: Floats = raised / raised.sum(axis=1, keepdims=True)
    return chance


def sample(chance: Floats, rng: np.random.Generator, count: int) -> Ints:
    """Draw one action per group, ``count`` times."""
    drawn = rng.random((count, len(chance), 1))
    below = chance.cumsum(axis=1)[None, :, :-1] <= drawn
    found: Ints = below.sum(axis=2, dtype=np.int64)
    return np.minimum(found, _last(chance))


def expected(chosen: Ints, advantage: Floats, chance: Floats) -> Floats:
    """Return the mean of ``advantage · ∇ log p``, groups × actions."""
    picked = np.zeros((len(chosen), *chance.shape))
    np.put_along_axis(picked, chosen[:, :, None], 1.0, axis=2)
    gradient: Floats = (advantage[:, None, None] * (picked - chance)).mean(axis=0)
    return gradient


def entropy_gradient(chance: Floats) -> Floats:
    """Return the gradient of the entropy by the logits, groups × actions."""
    logarithm = np.log(np.maximum(chance, 1e-300))
    entropy = -(chance * logarithm).sum(axis=1, keepdims=True)
    gradient: Floats = -chance * (logarithm + entropy)
    return gradient


def _last(chance: Floats) -> Ints:
    """Return the last action of each group that has a probability; rounding may miss it."""
    found: Ints = chance.shape[1] - 1 - (chance[:, ::-1] > 0).argmax(axis=1)
    return found
