"""Strategy makers: every one by name, with one signature."""

from optpart.training.makers.alpa import alpa
from optpart.training.makers.base import Budget, Made, Maker
from optpart.training.makers.baselines import (
    blocks,
    cp_ar,
    cp_ps,
    ev_ar,
    ev_ps,
    round_robin,
    single,
)
from optpart.training.makers.flexflow import flexflow
from optpart.training.makers.pipedream import pipedream
from optpart.training.makers.policy_gradient import policy_gradient
from optpart.training.makers.search import search
from optpart.training.makers.stages import stages

#: Every maker: its name and function.
MAKERS: dict[str, Maker] = {
    "ev-ps": ev_ps,
    "ev-ar": ev_ar,
    "cp-ps": cp_ps,
    "cp-ar": cp_ar,
    "single": single,
    "blocks": blocks,
    "round-robin": round_robin,
    "policy-gradient": policy_gradient,
    "flexflow": flexflow,
    "alpa": alpa,
    "pipedream": pipedream,
    "stages": stages,
    "search": search,
}

__all__ = ["MAKERS", "Budget", "Made", "Maker"]
