"""What commands of ``optpart strategy`` share: the group, and the question that they ask."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from typer.core import TyperGroup

from optpart.base.choices import choice
from optpart.base.errors import InputError
from optpart.base.limits import MOST_GROUPS, MOST_SAMPLES
from optpart.base.terminal import say
from optpart.commands.options import (
    pairs,
    whole,
)

if TYPE_CHECKING:
    from optpart.applications.training.compiled import Options
    from optpart.applications.training.question import Question


class StrategyGroup(TyperGroup):
    """Find, bound and check strategies of training on unlike devices."""


StrategyPath = Annotated[str, typer.Argument(metavar="STRATEGY", help="A strategy file.")]
ItsModel = Annotated[
    str | None, typer.Option("--model", help="Its model, if not where the file says.")
]
ItsCluster = Annotated[
    str | None, typer.Option("--cluster", help="Its cluster, if not where the file says.")
]

_Value = TypeVar("_Value")


def compiler_options(texts: Sequence[str] | None) -> Options:
    """Return the options of the compiler that the command line gives."""
    from optpart.applications.training.compiled import Options
    from optpart.problem.rational import rational

    found: dict[str, Any] = {}
    for key, text in pairs(texts, "--compiler").items():
        if key not in Options.__dataclass_fields__:
            remedy = choice(key, Options.__dataclass_fields__)
            raise InputError("--compiler", f"no option {key!r}", remedy)
        if key == "tick":
            found[key] = None if text == "none" else rational(text, "--compiler tick")
        else:
            counted = key in ("slots", "microbatches")
            found[key] = whole(text, f"--compiler {key}") if counted else text
    try:
        return Options(**found)
    except InputError as error:
        raise InputError(f"--compiler {error.place}", error.problem, error.remedy) from None


@dataclass(frozen=True)
class Asked:
    """The arguments and options that ask a question; every field is one."""

    model: Annotated[
        str, typer.Argument(help="A model of the package, such as vgg19, or the file of a model.")
    ]
    cluster: Annotated[
        str,
        typer.Option(
            "--cluster", help="A cluster of the package, such as heterog-8, or a cluster file."
        ),
    ]
    batch: Annotated[int, typer.Option(help="Samples of one iteration.", min=1, max=MOST_SAMPLES)]
    groups: Annotated[
        int,
        typer.Option(
            help="Groups of operations at most, each with its own decision.", min=1, max=MOST_GROUPS
        ),
    ] = 20
    grouping: Annotated[
        str, typer.Option(metavar="WAY", help="How operations are grouped: contiguous or nearest.")
    ] = "contiguous"
    compiler: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="How strategies are compiled; repeatable. Replicas fused or separate, resharding "
            "overlap or heterog, auxiliary memory or free, collectives queue or ring, topology "
            "pairs or shared, memory refcount or none, slots a number, tick nanoseconds or none, "
            "microbatches a number; such as replicas=fused.",
        ),
    ] = None
    samples: Annotated[
        str | None,
        typer.Option(
            metavar="SAMPLES",
            help="Samples that the figures of a profile or model file are for, or its symbol for "
            "them.",
        ),
    ] = None
    slowness: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND=NUMBER",
            help="How many times as long as the measured device a kind of device takes; "
            "repeatable.",
        ),
    ] = None
    shape: Annotated[
        list[str] | None,
        typer.Option(metavar="SYMBOL=SIZE", help="A size that the model leaves open; repeatable."),
    ] = None
    network: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Which network, where a folder of profiles holds several.",
        ),
    ] = None
    tensor_parallel: Annotated[
        int | None,
        typer.Option(
            metavar="DEGREE",
            help="GPUs that compute each layer together, of a folder of profiles; a device of the "
            "cluster is such a group.",
            min=1,
            max=MOST_SAMPLES,
        ),
    ] = None
    gpu: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND=TYPE",
            help="The GPU type that a folder of profiles has for a kind of device, if its name is "
            "another; repeatable.",
        ),
    ] = None
    costs: Annotated[
        str | None,
        typer.Option(
            metavar="COSTS.json",
            help="Times and links by 'optpart profile fit', in place of those of model and "
            "cluster.",
        ),
    ] = None

    def question(self) -> Question:
        """Read model and cluster."""
        from optpart.problem.rational import rational
        from optpart.training_api import strategy_question

        samples = self.samples
        return strategy_question(
            self.model,
            self.cluster,
            self.batch,
            groups=self.groups,
            grouping=self.grouping,
            options=compiler_options(self.compiler),
            samples=int(samples) if samples and samples.isdecimal() else samples,
            slowness=_each(self.slowness, "--slowness", rational),
            shapes=_each(self.shape, "--shape", whole),
            network=self.network,
            tensor_parallel=self.tensor_parallel,
            gpus=pairs(self.gpu, "--gpu"),
            costs=self.costs,
        )


def say_remarks(remarks: Sequence[str]) -> None:
    """Print what had to be assumed."""
    for remark in remarks:
        say(remark)


def _each(
    texts: Sequence[str] | None, option: str, read: Callable[[str, str], _Value]
) -> dict[str, _Value]:
    return {key: read(text, f"{option} {key}") for key, text in pairs(texts, option).items()}
