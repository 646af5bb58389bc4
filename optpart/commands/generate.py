"""``optpart generate``: a command for every generator, derived from its signature."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperGroup

from optpart.base.errors import InputError
from optpart.base.limits import MOST_DEVICES
from optpart.base.terminal import say
from optpart.commands.options import NewInstance, Seed, file_to_write, forcible, say_size
from optpart.commands.options import output as written

if TYPE_CHECKING:
    from optpart.interop.generate.registry import Generator
    from optpart.problem.instance import Instance


class Generate(TyperGroup):
    """Draw random instances."""

    # Built on demand: loading their modules takes longer than running other commands.

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the generators, then of the group's other commands."""
        from optpart.interop.generate.registry import GENERATORS

        return [*GENERATORS, *super().list_commands(ctx)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command by name."""
        from optpart.interop.generate.registry import GENERATORS

        if cmd_name not in GENERATORS:
            return super().get_command(ctx, cmd_name)
        alone = typer.Typer(add_completion=False, rich_markup_mode=None)
        row = GENERATORS[cmd_name]
        alone.command(cmd_name, short_help=row.summary)(forcible(command_of(row)))
        return typer.main.get_command(alone)


def command_of(generator: Generator) -> Callable[..., None]:
    """Return the command of a generator.

    Parameters without a default become arguments, the others options. A parameter ``name``
    receives the name of the output file without its suffix.
    """
    make = generator.load()
    offered = list(_offered(make))
    named = "name" in inspect.signature(make).parameters

    def generate(output: Path, **given: Any) -> None:
        from optpart.interop.formats import cluster_toml
        from optpart.problem.cluster import Cluster

        made = make(**given, **({"name": output.stem} if named else {}))
        if isinstance(made, Cluster):
            cluster_toml.write(made, output)
        else:
            write_generated(made, output)

    generate.__doc__ = generator.summary
    generate.__annotations__ = {one.name: one.annotation for one in offered}
    generate.__signature__ = inspect.Signature(offered)  # type: ignore[attr-defined]
    return generate


def _offered(make: Callable[..., Any]) -> Iterator[inspect.Parameter]:
    """Yield the parameters of a generator's command: arguments, output, options and seed."""
    from optpart.problem.cluster import Cluster

    hints = get_type_hints(make, include_extras=True)
    parameters = inspect.signature(make).parameters
    found = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=one.default,
                          annotation=_annotation(hints[name], one.default is one.empty))
        for name, one in parameters.items()
        if get_origin(hints[name]) is Annotated
    ]  # fmt: skip
    yield from (one for one in found if one.default is one.empty)
    kind = (
        f"optpart.interop.formats.{'cluster_toml' if hints['return'] is Cluster else 'native'}:KIND"
    )
    needed = Annotated[Path, written(kind)]
    yield inspect.Parameter("output", inspect.Parameter.KEYWORD_ONLY, annotation=needed)
    yield from (one for one in found if one.default is not one.empty)
    if "seed" in parameters:
        yield inspect.Parameter("seed", inspect.Parameter.KEYWORD_ONLY, default=0, annotation=Seed)


def _annotation(hint: Any, required: bool) -> Any:
    """Return the annotation of a parameter for Typer."""
    kind, option = get_args(hint)
    look: dict[str, Any] = {"help": option.help or None}
    if get_origin(kind) is Literal:  # the generator itself rejects other words
        kind, words = str, get_args(kind)
        look |= {} if required else {"metavar": f"<{'|'.join(words)}>"}
    if option.least is not None:
        look |= {"min": option.least, "max": option.most}
    return Annotated[kind, typer.Argument(**look) if required else typer.Option(**look)]


def write_generated(instance: Instance, output: Path) -> None:
    """Write an instance and print its size."""
    from optpart.interop.formats import native

    native.write(instance, output)
    say_size(instance, output)


def generate_replica(
    model: Annotated[
        str,
        typer.Option(
            "--model",
            help="alexnet, vgg16, inception-v2, inception-v3, inception-v3-aux, resnet-50, par-32 "
            "or seq-32.",
        ),
    ],
    output: NewInstance,
    workers: Annotated[int, typer.Option(help="Copies of the model.", min=1, max=MOST_DEVICES)] = 1,
    servers: Annotated[int, typer.Option(help="Parameter servers.", min=1, max=MOST_DEVICES)] = 1,
    channels: Annotated[
        int,
        typer.Option(help="Channels from one sender to one receiver.", min=1, max=MOST_DEVICES),
    ] = 1,
    training: Annotated[
        bool, typer.Option("--training", help="Include gradients, their transfers and updates.")
    ] = False,
    only_worker: Annotated[
        bool,
        typer.Option("--only-worker", help="Only the partition of one worker, without servers."),
    ] = False,
    batch: Annotated[
        int, typer.Option(help="Samples per worker and iteration.", min=1, max=10**9)
    ] = 32,
    speed: Annotated[
        str, typer.Option(help="Operations per microsecond of a worker and a server.")
    ] = "500000",
    bandwidth: Annotated[str, typer.Option(help="Bytes per microsecond of a channel.")] = "125",
) -> None:
    """Build a model replica with parameter servers; channels are devices ([H] §2.3)."""
    from optpart.applications.ordering.models import base_model
    from optpart.applications.ordering.replica import platform, replica, worker_partition

    base, on = base_model(model), platform(batch, speed, bandwidth)
    if only_worker:
        if workers > 1:
            raise InputError("--workers", "used with --only-worker", "leave one of them out")
        instance = worker_partition(
            base, servers=servers, channels=channels, training=training, on=on
        )
    else:
        instance = replica(
            base, workers=workers, servers=servers, channels=channels, training=training, on=on
        )
    write_generated(instance, output)
    say(f"{base.size:,} parameters")


def generate_set(
    like: Annotated[
        str, typer.Argument(help="The group of the library: random, workflows or thesis.")
    ],
    secret: Annotated[
        Path, typer.Option(metavar="FILE", help="The file of a secret, from which all is drawn.")
    ],
    output: Annotated[Path, file_to_write("-o", "--output", help="A folder for the set.")],
    commitment: Annotated[
        str | None,
        typer.Option(metavar="SHA256", help="What was published; another secret is refused."),
    ] = None,
) -> None:
    """Draw the instances of a group anew, from a secret.

    Publish the commitment, which is the SHA-256 of the secret, before anybody is measured with
    'optpart gap --set FOLDER', and the secret afterwards: everybody can draw the same set again.
    """
    from optpart.study.dataset import check_commitment, read_secret, write_drawn
    from optpart.study.dataset import commitment as committed

    text = read_secret(secret)
    if commitment is not None:
        check_commitment(text, commitment.strip().lower())
    say(f"{write_drawn(like, text, output)}")
    say(f"commitment {committed(text)} → {output}")
