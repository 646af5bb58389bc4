"""Strategy makers: every one by name, with one signature."""

from optpart.applications.training.makers.alpa import alpa
from optpart.applications.training.makers.base import Made, Maker
from optpart.applications.training.makers.baselines import (
    blocks,
    cp_ar,
    cp_ps,
    ev_ar,
    ev_ps,
    round_robin,
    single,
)
from optpart.applications.training.makers.flexflow import flexflow
from optpart.applications.training.makers.pipedream import pipedream
from optpart.applications.training.makers.policy_gradient import policy_gradient
from optpart.applications.training.makers.search import search
from optpart.applications.training.makers.stages import stages

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

__all__ = ["MAKERS", "Made", "Maker"]
