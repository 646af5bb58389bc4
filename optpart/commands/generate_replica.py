"""``optpart generate replica``."""

from __future__ import annotations

from typing import Annotated

import typer

from optpart.base.limits import MOST_DEVICES
from optpart.commands.options import NewInstance


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
    from optpart.base.errors import InputError
    from optpart.base.terminal import say
    from optpart.commands.generate import write_generated

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
