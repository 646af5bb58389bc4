"""``optpart strategy``: its commands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from typer.core import TyperGroup

from optpart.base.choices import choice
from optpart.base.clock import remaining
from optpart.base.errors import InputError
from optpart.base.limits import MOST_GROUPS, MOST_SAMPLES
from optpart.base.terminal import note, put, say
from optpart.commands.options import (
    Json,
    MemoryLimit,
    NewInstance,
    Picture,
    Seed,
    TimeLimit,
    file_to_write,
    pairs,
    say_size,
    spread,
    time_limit,
    whole,
)
from optpart.commands.options import output as written

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


@spread
def compare(
    asked: Asked,
    method: Annotated[
        list[str] | None,
        typer.Option("--method", "-m", help="A method to compare; repeatable. Default: all."),
    ] = None,
    time_limit: Annotated[float, time_limit("Seconds for each method, and for the bound.")] = 20.0,
    memory_limit: MemoryLimit = None,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Compare methods on one model and cluster: times, and gaps to a proven lower bound."""
    from optpart.interop.formats.json import pretty
    from optpart.study.report.console import plain_console
    from optpart.study.report.strategy.table import comparison_document, print_comparison
    from optpart.training_api import compare_strategies

    question = asked.question()
    found = compare_strategies(
        question, method or (), seconds=remaining(time_limit), seed=seed, memory=memory_limit
    )
    if json:
        put(pretty(comparison_document(question, found)))
    else:
        say_remarks(question.remarks)
        print_comparison(plain_console(), question, found)
    if found.best is None:
        raise typer.Exit(3 if found.bound.infeasible else 4)


@spread
def solve(
    asked: Asked,
    method: Annotated[
        str, typer.Option("--method", "-m", help="See 'optpart strategy compare'.")
    ] = "search",
    order: Annotated[
        str,
        typer.Option(
            help="rank (that of HeteroG), or a method of 'optpart methods', which then has the "
            "time limit once more."
        ),
    ] = "rank",
    time_limit: TimeLimit = 60.0,
    memory_limit: MemoryLimit = None,
    seed: Seed = 0,
    output: Annotated[
        Path | None, written("optpart.applications.training.strategy_file:KIND")
    ] = None,
    json: Json = False,
) -> None:
    """Find a strategy, and prove how far from optimal it can be."""
    from optpart.base.files import written_first
    from optpart.interop.formats.json import pretty
    from optpart.study.report.strategy.table import failure_document, said_solution
    from optpart.training_api import solve_strategy

    question = asked.question()
    found = solve_strategy(
        question, method, order=order, seconds=remaining(time_limit), seed=seed, memory=memory_limit
    )
    save = output if found.made.feasible else None
    with written_first(found.save, save):
        if json:
            feasible = found.made.feasible
            put(found.dumps() if feasible else pretty(failure_document(found)))
        else:
            say_remarks(question.remarks)
            for line in said_solution(found):
                say(line)
            if save is not None:
                say(f"→ {save}")
    if not found.made.feasible:
        raise typer.Exit(3 if found.bound.infeasible else 4)


@spread
def bound(
    asked: Asked,
    time_limit: TimeLimit = 30.0,
    memory_limit: MemoryLimit = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", help="A folder for a certificate, which 'optpart check' verifies."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Prove how long an iteration takes at least, whatever the strategy."""
    from optpart.applications.training.bounds.certificate import HOLDS
    from optpart.base.folders import check_folder
    from optpart.interop.formats.json import pretty
    from optpart.study.report.strategy.table import (
        bound_document,
        heading,
        milliseconds,
        said_bounds,
    )
    from optpart.training_api import strategy_bound

    if output is not None:
        check_folder(output, HOLDS)
    question = asked.question()
    found = strategy_bound(question, seconds=remaining(time_limit), memory=memory_limit)
    if json:
        put(pretty(bound_document(question, found)))
    else:
        say_remarks(question.remarks)
        say(heading(question))
        for line in said_bounds(found):
            say(line)
    if output is not None and found.value is not None:
        written = found.certify(output)
        if not json:
            say(f"→ {written}, which proves {milliseconds(found.certified, up=False)}")
    if found.value is None:
        raise typer.Exit(3 if found.infeasible else 4)


def verify(
    strategy: StrategyPath,
    model: ItsModel = None,
    cluster: ItsCluster = None,
    json: Json = False,
) -> None:
    """Compile and execute a strategy again, and check links, memory and what the file claims."""
    from optpart.interop.formats.json import pretty
    from optpart.study.report.strategy.table import check_document, said_check
    from optpart.training_api import verify_strategy

    found = verify_strategy(strategy, model=model, cluster=cluster)
    if json:
        put(pretty(check_document(found)))
    else:
        say_remarks(found.remarks)
        for fault in found.faults:
            say(fault)
        if not found.faults:
            say(f"{strategy}: {said_check(found)}")
    if found.faults:
        raise typer.Exit(1)


def compile_(
    strategy: StrategyPath,
    output: NewInstance,
    model: ItsModel = None,
    cluster: ItsCluster = None,
) -> None:
    """Write a strategy as an instance, for all other commands of optpart."""
    from optpart.interop.formats import native
    from optpart.training_api import verify_strategy

    found = verify_strategy(strategy, model=model, cluster=cluster)
    instance = found.compiled.instance
    native.write(instance, output)
    say_remarks(found.remarks)
    for fault in found.faults:
        say(f"{strategy}: {fault}")
    say_size(instance, output)


def plot(
    strategy: StrategyPath,
    output: Picture,
    shares: Annotated[
        bool,
        typer.Option("--shares", help="Draw which device computes how much of each group."),
    ] = False,
    model: ItsModel = None,
    cluster: ItsCluster = None,
) -> None:
    """Draw the iteration, devices and links over time, or the shares, as PNG or SVG."""
    from optpart.training_api import draw_strategy

    draw_strategy(strategy, output, shares=shares, model=model, cluster=cluster)


def export(
    strategy: StrategyPath,
    to: Annotated[str, typer.Option(help="devices, torch-stages, ranks or dtensor.")],
    output: Annotated[
        Path | None, file_to_write("-o", "--output", help="Where to write; else printed.")
    ] = None,
    model: ItsModel = None,
    cluster: ItsCluster = None,
) -> None:
    """Hand a strategy to a runtime: devices of operations, stages, or batch sizes of ranks."""
    from optpart.training_api import export_strategy

    found = export_strategy(strategy, to=to, output=output, model=model, cluster=cluster)
    # What a text does not say must not get into it where it is printed.
    tell = note if output is None else say
    if output is None:
        put(found.text)
    for remark in found.remarks:
        tell(remark)
    if output is not None:
        say(f"→ {output}")
