"""Arguments and options that the strategy commands share, and what they say."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from optpart.base.choices import choice
from optpart.base.errors import InputError
from optpart.base.limits import MOST_GROUPS, MOST_SAMPLES
from optpart.base.terminal import say

if TYPE_CHECKING:
    from optpart.applications.training.compiled import Options
    from optpart.applications.training.question import Question

Model = Annotated[
    str, typer.Argument(help="A model of the package, such as vgg19, or the file of a model.")
]
ClusterName = Annotated[
    str,
    typer.Option(
        "--cluster", help="A cluster of the package, such as heterog-8, or a cluster file."
    ),
]
Batch = Annotated[int, typer.Option(help="Samples of one iteration.", min=1, max=MOST_SAMPLES)]
Groups = Annotated[
    int,
    typer.Option(
        help="Groups of operations at most, each with its own decision.", min=1, max=MOST_GROUPS
    ),
]
Grouping = Annotated[
    str, typer.Option(metavar="WAY", help="How operations are grouped: contiguous or nearest.")
]
Compiler = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KEY=VALUE",
        help="How strategies are compiled; repeatable. Replicas fused or separate, resharding "
        "overlap or heterog, auxiliary memory or free, collectives queue or ring, topology pairs "
        "or shared, memory refcount or none, slots a number, tick nanoseconds or none, "
        "microbatches a number; such as replicas=fused.",
    ),
]
Samples = Annotated[
    str | None,
    typer.Option(
        metavar="SAMPLES",
        help="Samples that the figures of a profile or model file are for, or its symbol for them.",
    ),
]
Slowness = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KIND=NUMBER",
        help="How many times as long as the measured device a kind of device takes; repeatable.",
    ),
]
Shape = Annotated[
    list[str] | None,
    typer.Option(metavar="SYMBOL=SIZE", help="A size that the model leaves open; repeatable."),
]
Network = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Which network, where a folder of profiles holds several.",
    ),
]
TensorParallel = Annotated[
    int | None,
    typer.Option(
        metavar="DEGREE",
        help="GPUs that compute each layer together, of a folder of profiles; a device of the "
        "cluster is such a group.",
        min=1,
        max=MOST_SAMPLES,
    ),
]
Gpu = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KIND=TYPE",
        help="The GPU type that a folder of profiles has for a kind of device, if its name is "
        "another; repeatable.",
    ),
]
Costs = Annotated[
    str | None,
    typer.Option(
        metavar="COSTS.json",
        help="Times and links by 'optpart profile fit', in place of those of model and cluster.",
    ),
]
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
            whole = key in ("slots", "microbatches")
            found[key] = _whole(text, f"--compiler {key}") if whole else text
    try:
        return Options(**found)
    except InputError as error:
        raise InputError(f"--compiler {error.place}", error.problem, error.remedy) from None


@dataclass(frozen=True)
class Asked:
    """The arguments and options that ask a question; every field is one."""

    model: Model
    cluster: ClusterName
    batch: Batch
    groups: Groups = 20
    grouping: Grouping = "contiguous"
    compiler: Compiler = None
    samples: Samples = None
    slowness: Slowness = None
    shape: Shape = None
    network: Network = None
    tensor_parallel: TensorParallel = None
    gpu: Gpu = None
    costs: Costs = None

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
            shapes=_each(self.shape, "--shape", _whole),
            network=self.network,
            tensor_parallel=self.tensor_parallel,
            gpus=pairs(self.gpu, "--gpu"),
            costs=self.costs,
        )


def asking(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the arguments and options of :class:`Asked`, its first parameter."""

    @wraps(command)
    def run(**given: Any) -> None:
        asked = Asked(**{each.name: given.pop(each.name) for each in fields(Asked)})
        command(asked, **given)

    own = list(inspect.signature(command, eval_str=True).parameters.values())[1:]
    parameters = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for parameter in (*inspect.signature(Asked, eval_str=True).parameters.values(), *own)
    ]
    run.__dict__["__signature__"] = inspect.Signature(parameters)
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def pairs(texts: Sequence[str] | None, option: str) -> dict[str, str]:
    """Split ``KEY=VALUE``; every key once."""
    found: dict[str, str] = {}
    for text in texts or ():
        key, _, value = text.partition("=")
        if not key or not value:
            raise InputError(option, f"{text!r}", "give KEY=VALUE")
        if key in found:
            raise InputError(option, f"{key!r} is given twice", "give it once")
        found[key] = value
    return found


def say_remarks(remarks: Sequence[str]) -> None:
    """Print what had to be assumed."""
    for remark in remarks:
        say(remark)


def _each(
    texts: Sequence[str] | None, option: str, read: Callable[[str, str], _Value]
) -> dict[str, _Value]:
    return {key: read(text, f"{option} {key}") for key, text in pairs(texts, option).items()}


def _whole(text: str, place: str) -> int:
    if not (text.isascii() and text.isdecimal()) or len(text) > 18:
        raise InputError(place, f"{text!r}", "give a whole number ≥ 0")
    return int(text)
