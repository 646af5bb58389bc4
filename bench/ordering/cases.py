"""The cases: the models of [H] and two more, each with a batch that keeps all resources busy."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from optpart.applications.ordering.efficiency import assigned
from optpart.applications.ordering.models import base_model
from optpart.applications.ordering.replica import (
    BANDWIDTH,
    ELEMENT,
    SPEED,
    platform,
    worker_partition,
)
from optpart.kernels.tasks import Tasks, tasks
from optpart.problem.instance import Instance

#: In the order of [H] figure 9, then those that [H] does not have.
PUBLISHED = ("alexnet", "inception-v2", "vgg16", "par-32", "seq-32")
MODELS = (*PUBLISHED, "inception-v3", "resnet-50")

#: Models of real networks.
REAL = tuple(name for name in MODELS if not name.endswith("-32"))


@dataclass(frozen=True)
class Case:
    """The partition of a worker of one model."""

    model: str
    training: bool

    @property
    def name(self) -> str:
        """Name in tables."""
        return f"{self.model} {'training' if self.training else 'forward'}"

    @property
    def batch(self) -> int:
        """Batch at which the worker computes about as long as its parameters are transferred.

        [H] §6 chooses a batch with S > 0.9; with this one it is largest.
        """
        base = base_model(self.model)
        once = sum(op.operations for op in base.ops) * (3 if self.training else 1)
        return max(1, round(base.size * ELEMENT / BANDWIDTH * SPEED / once))


@cache
def instance(case: Case) -> Instance:
    return worker_partition(base_model(case.model), training=case.training, on=platform(case.batch))


@cache
def work(case: Case) -> Tasks:
    return tasks(instance(case), assigned(instance(case)))


def cases(models: tuple[str, ...] = MODELS) -> list[Case]:
    return [Case(model, training) for training in (False, True) for model in models]
